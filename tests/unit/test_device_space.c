// SPDX-License-Identifier: Apache-2.0
/* Address spaces: what maps, what does not, readers beside a writer, memory that outlives its mapping. */
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
    struct fixture *f = ws_alloc(sizeof *f);
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

/* Mapping i says so by its address and its size: a torn read would not fit. */
static void *reader(void *arg)
{
    struct fixture *f = arg;
    uint64_t seed = (uint64_t)(uintptr_t)&seed;
    while (!f->stop) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint64_t va = ((seed >> 40) % 64 + 1) * 4096;
        struct ws_mapping m;
        if (!ws_space_find(f->s, va, 1, &m))
            continue;
        f->n_found++;
        if (m.va != va || m.bytes != va / 64 || m.host != f->memory + va / 4096)
            f->n_wrong++;
        if (!ws_space_find(f->s, 70 * 4096, 4096, &m)) /* is always there */
            f->n_wrong++;
    }
    return NULL;
}

static void test_readers_beside_a_writer(void **state)
{
    struct fixture *f = *state;
    pthread_t threads[2];
    assert_int_equal(ws_space_map_host(f->s, 70 * 4096, 4096, f->memory), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, reader, f), 0);
    uint64_t seed = 3;
    bool mapped[65] = {false};
    for (int i = 0; i < 1000000 || (!f->n_found && i < 10000000); i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint64_t k = (seed >> 40) % 64 + 1, va = k * 4096;
        int r = mapped[k] ? ws_space_unmap(f->s, va)
                          : ws_space_map_host(f->s, va, va / 64, f->memory + k);
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
    struct fixture *f = *state;
    struct ws_mapping m;
    for (uint64_t i = 1; i <= 16; i++)
        assert_int_equal(map(f, i * 4096, 512), 0);
    ws_alloc_fail_after(1); /* the larger table */
    assert_int_equal(map(f, 17 * 4096, 512), -ENOMEM);
    assert_false(ws_space_find(f->s, 17 * 4096, 1, &m));
    assert_int_equal(map(f, 17 * 4096, 512), 0);
    assert_true(ws_space_find(f->s, 17 * 4096, 1, &m));
    assert_true(ws_space_find(f->s, 1 * 4096, 1, &m));
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
        cmocka_unit_test_setup_teardown(test_print, setup, teardown),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
