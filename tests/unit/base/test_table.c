/* SPDX-License-Identifier: Apache-2.0 */
/* base/table.h: tables hold what was put into them, and no insertion does much at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/table.h"

enum {
    N = 100000,
    MOST_IN_BUCKET = 32, /* there are up to 4 on average, so more are next to impossible */
};

struct entry {
    uint64_t key;
    UT_hash_handle hh;
};
struct fixture {
    struct entry *table, entries[N];
    bool there[N]; /* what the table is compared with */
    unsigned n;
};

/* The linker sends the calls of base/ here. */
void *__real_realloc(void *p, size_t bytes);
void *__wrap_realloc(void *p, size_t bytes);
static bool no_memory;

void *__wrap_realloc(void *p, size_t bytes)
{
    return no_memory ? NULL : __real_realloc(p, bytes);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    for (unsigned i = 0; f && i < N; i++)
        f->entries[i].key = (uint64_t)i << 32; /* the same low bits */
    *state = f;
    return f ? 0 : -1;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    HASH_CLEAR(hh, f->table);
    free(f);
    return 0;
}

static struct entry *find(struct fixture *f, unsigned i)
{
    struct entry *e;
    HASH_FIND(hh, f->table, &f->entries[i].key, sizeof(uint64_t), e);
    return e;
}

static void put(struct fixture *f, unsigned i)
{
    struct entry *e = &f->entries[i];
    HASH_ADD(hh, f->table, key, sizeof(e->key), e);
    f->there[i] = true;
    f->n++;
}

static void take(struct fixture *f, unsigned i)
{
    struct entry *e = &f->entries[i];
    HASH_DEL(f->table, e);
    f->there[i] = false;
    f->n--;
}

static void check_all(struct fixture *f)
{
    unsigned n = 0;
    for (unsigned i = 0; i < N; i++)
        assert_ptr_equal(find(f, i), f->there[i] ? &f->entries[i] : NULL);
    for (struct entry *e = f->table; e; e = e->hh.next, n++)
        assert_true(f->there[e - f->entries]);
    assert_int_equal(n, f->n);
    assert_int_equal(HASH_COUNT(f->table), f->n);
}

/* More comes than goes, then the other way round, until the table is empty, three times. */
static void test_holds_what_was_put(void **state)
{
    struct fixture *f = *state;
    unsigned seed = 1;
    for (unsigned phase = 0; phase < 6; phase++) {
        for (unsigned k = 0; k < 2 * N; k++) {
            unsigned i = (unsigned)rand_r(&seed) % N;
            bool wanted = rand_r(&seed) % 8 ? phase % 2 == 0 : phase % 2 == 1;
            assert_ptr_equal(find(f, i), f->there[i] ? &f->entries[i] : NULL);
            if (wanted && !f->there[i])
                put(f, i);
            else if (!wanted && f->there[i])
                take(f, i);
        }
        check_all(f);
        if (phase % 2 == 0)
            continue;
        for (unsigned i = 0; i < N; i++)
            if (f->there[i])
                take(f, i);
        assert_null(f->table);
    }
}

static void test_an_insertion_splits_one_bucket(void **state)
{
    struct fixture *f = *state;
    put(f, 0);
    const UT_hash_table *t = f->table->hh.tbl;
    for (unsigned i = 1; i < N; i++) {
        unsigned before = t->num_buckets;
        put(f, i);
        assert_in_range(t->num_buckets, before, before + 1);
        assert_in_range(t->num_items, 1, (WS_TABLE_LOAD + 1) * t->num_buckets);
        if (t->num_buckets > before) /* what was moved into the new one */
            assert_in_range(t->buckets[before].count, 0, MOST_IN_BUCKET);
    }
    assert_true(t->num_buckets > N / (WS_TABLE_LOAD + 1));
    for (unsigned b = 0; b < t->num_buckets; b++)
        assert_in_range(t->buckets[b].count, 0, MOST_IN_BUCKET);
    check_all(f);
}

static void test_does_not_grow_without_memory(void **state)
{
    struct fixture *f = *state;
    put(f, 0);
    const UT_hash_table *t = f->table->hh.tbl;
    unsigned before = t->num_buckets;
    no_memory = true;
    for (unsigned i = 1; i < 1000; i++)
        put(f, i);
    no_memory = false;
    assert_int_equal(t->num_buckets, before);
    check_all(f);
    put(f, 1000);
    assert_int_equal(t->num_buckets, before + 1);
    check_all(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_holds_what_was_put, setup, teardown),
        cmocka_unit_test_setup_teardown(test_an_insertion_splits_one_bucket, setup, teardown),
        cmocka_unit_test_setup_teardown(test_does_not_grow_without_memory, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
