// SPDX-License-Identifier: Apache-2.0
/* Address spaces: what maps, what does not, readers beside a writer, memory that outlives its
 * mapping. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/alloc.h"
#include "device/space.h"

struct fixture {
    struct ws_space *s;
    struct ws_device device; /* only its address is used */
    uint8_t memory[1 << 16];
    _Atomic int n_released;
    _Atomic bool stop;
    _Atomic uint64_t n_found, n_wrong;
};

static int setup(void **state)
{
    struct fixture *f = ws_alloc(sizeof(*f));
    *state = f;
    return ws_space_new(&f->s);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    ws_space_free(f->s);
    free(f);
    return 0;
}

static void on_release(void *arg, uint8_t *host, uint64_t bytes)
{
    struct fixture *f = arg;
    f->n_released++;
}

static int map(struct fixture *f, uint64_t va, uint64_t bytes)
{
    struct ws_mapping m = {.va = va,
                           .bytes = bytes,
                           .host = f->memory + va % 1024,
                           .readers = WS_ACCESS_ALL,
                           .writers = WS_ACCESS_ALL,
                           .device = &f->device};
    return ws_space_map(f->s, &m, on_release, f);
}

static void test_overlaps_are_refused(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(map(f, 0x1000, 0x1000), 0);
    assert_int_equal(map(f, 0x3000, 0x1000), 0);
    static const struct {
        uint64_t va, bytes;
        int want;
    } rows[] = {
        {0x1000, 0x1000, -EEXIST},     {0x1fff, 1, -EEXIST},      {0x0fff, 2, -EEXIST},
        {0x0800, 0x10000, -EEXIST},    {0x2000, 0x1001, -EEXIST}, {0x5000, 0, -EINVAL},
        {UINT64_MAX - 9, 11, -EINVAL}, {0x2000, 0x1000, 0},       {0x0fff, 1, 0},
        {UINT64_MAX - 10, 10, 0},
    };
    for (unsigned i = 0; i < WS_ARRAY_SIZE(rows); i++)
        assert_int_equal(map(f, rows[i].va, rows[i].bytes), rows[i].want);
    assert_int_equal(ws_space_map_host(f->s, 0x9000, 1, NULL), -EINVAL);
    assert_int_equal(ws_space_unmap(f->s, 0x1001), -ENOENT);
    assert_int_equal(ws_space_unmap(f->s, 0x500), -ENOENT);
    assert_int_equal(ws_space_unmap(f->s, 0x1000), 0);
    assert_int_equal(ws_space_unmap(f->s, 0x1000), -ENOENT);
    assert_int_equal(f->n_released, 1);
}

static void test_find(void **state)
{
    struct fixture *f = *state;
    struct ws_mapping m;
    assert_false(ws_space_find(f->s, 0, 1, &m));
    assert_int_equal(map(f, 0x1000, 0x1000), 0);
    assert_int_equal(ws_space_map_host(f->s, 0x2000, 0x10, f->memory), 0);
    assert_true(ws_space_find(f->s, 0x1000, 0x1000, &m));
    assert_ptr_equal(m.device, &f->device);
    assert_int_equal(m.bytes, 0x1000);
    assert_true(ws_space_find(f->s, 0x1fff, 1, &m));
    assert_false(ws_space_find(f->s, 0x1fff, 2, &m)); /* not whole in one mapping */
    assert_false(ws_space_find(f->s, 0x0fff, 1, &m));
    assert_false(ws_space_find(f->s, 0x1800, UINT64_MAX, &m));
    assert_true(ws_space_find(f->s, 0x200f, 1, &m));
    assert_null(m.device);
    assert_ptr_equal(m.host, f->memory);
    assert_int_equal(ws_space_device_bytes(f->s), 0x1000);
}

static void test_many_mappings(void **state)
{
    struct fixture *f = *state;
    struct ws_mapping m;
    for (uint64_t i = 0; i < 5000; i++) {
        uint64_t k = i * 2741 % 5000;
        assert_int_equal(map(f, (k + 1) * 1024, 512), 0);
    }
    for (uint64_t i = 0; i < 5000; i += 2)
        assert_int_equal(ws_space_unmap(f->s, (i + 1) * 1024), 0);
    for (uint64_t i = 0; i < 5000; i++) {
        assert_int_equal(ws_space_find(f->s, (i + 1) * 1024 + 511, 1, &m), i & 1);
        assert_false(ws_space_find(f->s, (i + 1) * 1024 + 512, 1, &m));
    }
    assert_int_equal(f->n_released, 2500);
}

static void test_memory_outlives_its_mapping(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(map(f, 0x1000, 512), 0);
    assert_int_equal(map(f, 0x2000, 512), 0);
    assert_int_equal(map(f, 0x3000, 512), 0);
    unsigned a = ws_space_enter(f->s);
    assert_int_equal(ws_space_unmap(f->s, 0x1000), 0);
    assert_int_equal(f->n_released, 0);
    unsigned b = ws_space_enter(f->s);
    assert_int_equal(ws_space_unmap(f->s, 0x2000), 0);
    ws_space_leave(f->s, b);
    assert_int_equal(f->n_released, 0); /* a may still see both */
    ws_space_leave(f->s, a);
    assert_int_equal(f->n_released, 2);
    assert_int_equal(ws_space_unmap(f->s, 0x3000), 0);
    assert_int_equal(f->n_released, 3);
}

static void test_overlapping_users_hold_nothing_back_for_ever(void **state)
{
    struct fixture *f = *state;
    unsigned before = ws_space_enter(f->s);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(map(f, 0x1000, 512), 0);
        assert_int_equal(ws_space_unmap(f->s, 0x1000), 0);
        unsigned next = ws_space_enter(f->s);
        ws_space_leave(f->s, before);
        before = next;
    }
    assert_in_range(f->n_released, 95, 100);
    ws_space_leave(f->s, before);
    assert_int_equal(f->n_released, 100);
}

/* So many that the pages of the table are split, become empty and are used again. */
enum { READ_MAPPINGS = 600, READ_DISTANCE = 65536, READ_ALWAYS = 300 * READ_DISTANCE + 40960 };

/* Mapping i says so by its address and its size: a torn read would not fit. */
static void *reader(void *arg)
{
    struct fixture *f = arg;
    uint64_t seed = (uint64_t)(uintptr_t)&seed;
    while (!f->stop) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint64_t va = ((seed >> 40) % READ_MAPPINGS + 1) * READ_DISTANCE;
        struct ws_mapping m;
        if (!ws_space_find(f->s, va, 1, &m))
            continue;
        f->n_found++;
        if (m.va != va || m.bytes != va / 1024 || m.host != f->memory + va / READ_DISTANCE)
            f->n_wrong++;
        if (!ws_space_find(f->s, READ_ALWAYS, 4096, &m))
            f->n_wrong++;
    }
    return NULL;
}

static void test_readers_beside_a_writer(void **state)
{
    struct fixture *f = *state;
    pthread_t threads[2];
    assert_int_equal(ws_space_map_host(f->s, READ_ALWAYS, 4096, f->memory), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, reader, f), 0);
    uint64_t seed = 3;
    bool mapped[READ_MAPPINGS + 1] = {false};
    for (int i = 0; i < 1000000 || (!f->n_found && i < 10000000); i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        /* Now all come, in any order, now all go. */
        uint64_t k = (seed >> 40) % READ_MAPPINGS + 1, va = k * READ_DISTANCE;
        if (mapped[k] == !(i >> 10 & 1))
            continue;
        int r = mapped[k] ? ws_space_unmap(f->s, va)
                          : ws_space_map_host(f->s, va, va / 1024, f->memory + k);
        if (r)
            f->n_wrong++;
        mapped[k] = !mapped[k];
    }
    f->stop = true;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(f->n_wrong, 0);
    assert_true(f->n_found > 0);
}

static void test_out_of_memory_changes_nothing(void **state)
{
    enum { N = 3000 };
    struct fixture *f = *state;
    struct ws_mapping m;
    unsigned n_failed = 0;
    for (uint64_t i = 1; i <= N; i++) {
        uint64_t va = i * 1789 % N * 4096 + 4096;
        ws_alloc_fail_after(i % 3 + 1); /* a slot, a larger table, a page */
        if (map(f, va, 512)) {
            n_failed++;
            assert_false(ws_space_find(f->s, va, 1, &m));
            assert_int_equal(map(f, va, 512), 0);
        }
        ws_alloc_fail_after(0);
        assert_true(ws_space_find(f->s, va, 1, &m));
    }
    assert_in_range(n_failed, 2, N);
    for (uint64_t i = 1; i <= N; i++)
        assert_true(ws_space_find(f->s, i * 4096, 512, &m));
    assert_int_equal(f->n_released, 0);
}

static void on_print(void *arg, enum ws_output to, const char *text, size_t n)
{
    strncat(arg, text, n);
}

static void test_print(void **state)
{
    struct fixture *f = *state;
    char out[64] = "";
    ws_space_print(f->s, WS_OUTPUT_PRINTF, "nobody", 6);
    ws_space_set_print(f->s, on_print, out);
    ws_space_print(f->s, WS_OUTPUT_PRINTF, "a\nb", 2);
    ws_space_print(f->s, WS_OUTPUT_ASSERT, "c", 1);
    assert_string_equal(out, "a\nc");
}

/* ---- joint spaces ---- */
struct joint {
    struct ws_space *a, *b, *both;
    uint8_t of_a[256], of_b[256];
};

static int joint_setup(void **state)
{
    struct joint *j = ws_alloc(sizeof(*j));
    *state = j;
    return ws_space_new(&j->a) || ws_space_new(&j->b) ||
           ws_space_map_host(j->a, 0x1000, 256, j->of_a) ||
           ws_space_map_host(j->b, 0x2000, 256, j->of_b);
}

static int joint_teardown(void **state)
{
    struct joint *j = *state;
    ws_space_free(j->both);
    ws_space_free(j->a);
    ws_space_free(j->b);
    free(j);
    return 0;
}

static uint8_t *host_of(const struct ws_space *s, uint64_t va)
{
    struct ws_mapping m;
    return ws_space_find(s, va, 1, &m) ? m.host + (va - m.va) : NULL;
}

static void test_join_holds_what_members_hold(void **state)
{
    struct joint *j = *state;
    struct ws_space *members[] = {j->a, j->b, j->a};
    assert_int_equal(ws_space_join(&j->both, members, 3), 0);
    assert_ptr_equal(host_of(j->both, 0x1010), j->of_a + 0x10);
    assert_ptr_equal(host_of(j->both, 0x20ff), j->of_b + 0xff);
    assert_null(host_of(j->both, 0x2100));
    assert_true(ws_space_covers(j->both, 0x2000, 256, true));
    assert_false(ws_space_covers(j->both, 0x2000, 257, false));
    /* at the moment of each access: later mappings too, those that are gone no more */
    assert_int_equal(ws_space_map_host(j->b, 0x3000, 16, j->of_b), 0);
    assert_ptr_equal(host_of(j->both, 0x3001), j->of_b + 1);
    assert_int_equal(ws_space_unmap(j->a, 0x1000), 0);
    assert_null(host_of(j->both, 0x1010));
    assert_int_equal(ws_space_map_host(j->both, 0x9000, 16, j->of_b), -EINVAL);
    assert_null(host_of(j->a, 0x2000)); /* the members stay apart */
}

/* Of very many mappings the first ones are looked at, and the last one. */
static void test_covers_very_many(void **state)
{
    struct joint *j = *state;
    enum { N = 2 * WS_SPACE_COVERS_MOST };
    for (uint64_t i = 0; i < N; i++)
        assert_int_equal(ws_space_map_host(j->a, 0x100000 + 16 * i, 16, j->of_a), 0);
    assert_true(ws_space_covers(j->a, 0x100000, 16 * N, true));
    assert_false(ws_space_covers(j->a, 0x100000, 16 * N + 1, true));
    assert_false(ws_space_covers(j->a, 0x100000, UINT64_MAX, true));
    assert_int_equal(ws_space_unmap(j->a, 0x100000 + 16 * (WS_SPACE_COVERS_MOST - 1)), 0);
    assert_false(ws_space_covers(j->a, 0x100000, 16 * N, true));
}

static void test_join_refuses(void **state)
{
    struct joint *j = *state;
    struct ws_space *members[WS_SPACE_JOIN_MAX + 1] = {j->a, j->b};
    assert_int_equal(ws_space_join(&j->both, members, 0), -EINVAL);
    assert_int_equal(ws_space_join(&j->both, members, WS_SPACE_JOIN_MAX + 1), -EINVAL);
    assert_int_equal(ws_space_join(&j->both, members, 3), -EINVAL); /* NULL among them */
    static const struct {
        uint64_t va, bytes;
        int want;
    } at_b[] = {{0x0f01, 256, -EEXIST}, {0x10ff, 1, -EEXIST},     {0x1100, 16, 0},
                {0x0f00, 256, 0},       {0x0f00, 0x300, -EEXIST}, {0x1010, 4, -EEXIST}};
    for (size_t k = 0; k < WS_ARRAY_SIZE(at_b); k++) {
        uint8_t memory[0x300];
        assert_int_equal(ws_space_map_host(j->b, at_b[k].va, at_b[k].bytes, memory), 0);
        assert_int_equal(ws_space_join(&j->both, members, 2), at_b[k].want);
        if (!at_b[k].want) {
            struct ws_space *nested[] = {j->both};
            struct ws_space *none;
            assert_int_equal(ws_space_join(&none, nested, 1), -EINVAL);
            j->both = ws_space_free(j->both);
        }
        assert_int_equal(ws_space_unmap(j->b, at_b[k].va), 0);
    }
}

/* A mapping made later, where another member has one: who was there first keeps seeing its own, in
 * whatever order they joined. */
static void test_join_keeps_the_older(void **state)
{
    struct joint *j = *state;
    for (int order = 0; order < 2; order++) {
        struct ws_space *members[] = {order ? j->b : j->a, order ? j->a : j->b};
        assert_int_equal(ws_space_join(&j->both, members, 2), 0);
        assert_int_equal(ws_space_map_host(j->b, 0x1000, 16, j->of_b), 0);
        assert_ptr_equal(host_of(j->both, 0x1004), j->of_a + 4);
        assert_ptr_equal(host_of(j->b, 0x1004), j->of_b + 4);
        assert_int_equal(ws_space_unmap(j->a, 0x1000), 0);
        assert_ptr_equal(host_of(j->both, 0x1004), j->of_b + 4);
        assert_int_equal(ws_space_unmap(j->b, 0x1000), 0);
        assert_int_equal(ws_space_map_host(j->a, 0x1000, 256, j->of_a), 0);
        j->both = ws_space_free(j->both);
    }
}

static void count_release(void *arg, uint8_t *host, uint64_t bytes)
{
    ++*(int *)arg;
}

static void test_join_holds_back_memory_of_its_members(void **state)
{
    struct joint *j = *state;
    int n = 0;
    struct ws_mapping m = {.va = 0x8000,
                           .bytes = 256,
                           .host = j->of_b,
                           .readers = WS_ACCESS_ALL,
                           .writers = WS_ACCESS_ALL};
    assert_int_equal(ws_space_map(j->b, &m, count_release, &n), 0);
    unsigned before = ws_space_enter(j->b); /* so that the members' epochs differ */
    struct ws_space *members[] = {j->a, j->b};
    assert_int_equal(ws_space_join(&j->both, members, 2), 0);
    unsigned e = ws_space_enter(j->both);
    assert_int_equal(ws_space_unmap(j->b, 0x8000), 0);
    ws_space_leave(j->b, before);
    assert_int_equal(n, 0);
    unsigned second = ws_space_enter(j->both);
    ws_space_leave(j->both, e);
    assert_int_equal(n, 1); /* the second came after the end of the mapping */
    ws_space_leave(j->both, second);
}

static void test_ranges(void **state)
{
    struct fixture *f = *state;
    static const struct ws_device_ops none;
    uint64_t r[4][2];
    uint32_t version, again;
    f->device.ops = &none; /* nobody to be told */
    assert_int_equal(ws_space_ranges(f->s, WS_ACCESS_ALL, r, 4, &version), 0);
    assert_int_equal(version, ws_space_version(f->s));
    assert_int_equal(map(f, 0x10000, 512), 0);
    assert_int_equal(map(f, 0x10400, 512), 0);
    assert_int_equal(map(f, 0x20000, 4096), 0);
    assert_int_equal(ws_space_ranges(f->s, WS_ACCESS_ALL, r, 4, &again), 3);
    assert_int_not_equal(version, again);
    assert_int_equal(map(f, 0x10200, 512), 0); /* closes the gap */
    assert_int_equal(ws_space_ranges(f->s, WS_ACCESS_ALL, r, 4, NULL), 2);
    assert_int_equal(r[0][0], 0x10000);
    assert_int_equal(r[0][1], 3 * 512);
    assert_int_equal(r[1][0], 0x20000);
    assert_int_equal(r[1][1], 4096);
    r[1][0] = 1;
    assert_int_equal(ws_space_ranges(f->s, WS_ACCESS_ALL, r, 1, NULL),
                     2); /* no room for the second */
    assert_int_equal(r[1][0], 1);
    /* what others may read counts for them only */
    version = ws_space_version(f->s);
    assert_int_equal(ws_space_set_access(f->s, 0x10200, 2, 2), 0);
    assert_int_not_equal(version, ws_space_version(f->s));
    assert_int_equal(ws_space_ranges(f->s, 1, r, 4, NULL), 3);
    assert_int_equal(ws_space_ranges(f->s, 2, r, 4, NULL), 2);
    assert_int_equal(ws_space_unmap(f->s, 0x20000), 0);
    assert_int_equal(ws_space_ranges(f->s, 1, r, 4, NULL), 2);
    assert_int_equal(r[1][0], 0x10400);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_overlaps_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_find, setup, teardown),
        cmocka_unit_test_setup_teardown(test_many_mappings, setup, teardown),
        cmocka_unit_test_setup_teardown(test_memory_outlives_its_mapping, setup, teardown),
        cmocka_unit_test_setup_teardown(test_overlapping_users_hold_nothing_back_for_ever, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_readers_beside_a_writer, setup, teardown),
        cmocka_unit_test_setup_teardown(test_out_of_memory_changes_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ranges, setup, teardown),
        cmocka_unit_test_setup_teardown(test_print, setup, teardown),
        cmocka_unit_test_setup_teardown(test_join_holds_what_members_hold, joint_setup,
                                        joint_teardown),
        cmocka_unit_test_setup_teardown(test_covers_very_many, joint_setup, joint_teardown),
        cmocka_unit_test_setup_teardown(test_join_refuses, joint_setup, joint_teardown),
        cmocka_unit_test_setup_teardown(test_join_keeps_the_older, joint_setup, joint_teardown),
        cmocka_unit_test_setup_teardown(test_join_holds_back_memory_of_its_members, joint_setup,
                                        joint_teardown),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
