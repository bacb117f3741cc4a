// SPDX-License-Identifier: Apache-2.0
/* The heap of device code against a model: what is live never overlaps, nothing is lost, garbage is
 * refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include "base/macros.h"
#include "device/heap.h"

enum { HEAP = 1 << 20, LIVE = 600 };

static void test_all_comes_back(void **state)
{
    (void)state;
    struct ws_heap *h;
    uint64_t at, other;
    assert_int_equal(ws_heap_new(&h, HEAP), 0);
    for (int round = 0; round < 3; round++) {
        static uint64_t v[HEAP / 16];
        size_t n = 0;
        while (n < WS_ARRAY_SIZE(v) && ws_heap_take(h, 16, &v[n]))
            n++;
        assert_int_equal(n, HEAP / 16); /* not a byte is overhead */
        assert_false(ws_heap_take(h, 1, &at));
        for (size_t i = 0; i < n; i++) /* odd ones first: nothing to merge with yet */
            assert_true(ws_heap_give(h, v[(2 * i + 1) % n + (2 * i + 1 >= n ? -1 : 0)]));
    }
    assert_true(ws_heap_take(h, HEAP, &at));
    assert_int_equal(at, 0);
    assert_false(ws_heap_take(h, 1, &other));
    assert_true(ws_heap_give(h, at));
    ws_heap_free(h);
}

static void test_garbage(void **state)
{
    (void)state;
    struct ws_heap *h;
    uint64_t a, b;
    assert_int_not_equal(ws_heap_new(&h, 0), 0);
    assert_int_not_equal(ws_heap_new(&h, UINT64_MAX), 0);
    assert_int_equal(ws_heap_new(&h, HEAP), 0);
    assert_true(ws_heap_take(h, 100, &a));
    assert_true(ws_heap_take(h, 0, &b));
    assert_int_not_equal(a, b);
    assert_false(ws_heap_give(h, a + 16)); /* inside a block */
    assert_false(ws_heap_give(h, a + 1));
    assert_false(ws_heap_give(h, HEAP));
    assert_false(ws_heap_give(h, UINT64_MAX - 15));
    assert_false(ws_heap_give(h, HEAP - 16)); /* free */
    assert_false(ws_heap_take(h, UINT64_MAX, &a));
    assert_true(ws_heap_give(h, a));
    assert_false(ws_heap_give(h, a)); /* twice */
    assert_true(ws_heap_give(h, b));
    assert_false(ws_heap_give(h, b));
    ws_heap_free(h);
}

static void churn(struct ws_heap *h, unsigned seed, uint8_t *owner, uint8_t mine)
{
    static __thread struct {
        uint64_t at, bytes;
    } live[LIVE];
    size_t n = 0;
    for (int i = 0; i < 40000; i++) {
        unsigned r = (unsigned)rand_r(&seed);
        if (n < LIVE && r & 1) {
            uint64_t bytes = r % 97 == 0 ? r % 60000 : r % 900;
            if (!ws_heap_take(h, bytes, &live[n].at))
                continue;
            live[n].bytes = WS_ALIGN_UP(WS_MAX(bytes, UINT64_C(1)), UINT64_C(16));
            for (uint64_t k = live[n].at / 16; k < (live[n].at + live[n].bytes) / 16; k++) {
                assert_true(k < HEAP / 16);
                assert_int_equal(owner[k], 0);
                owner[k] = mine;
            }
            n++;
        } else if (n) {
            size_t k = r / 2 % n;
            for (uint64_t g = live[k].at / 16; g < (live[k].at + live[k].bytes) / 16; g++) {
                assert_int_equal(owner[g], mine);
                owner[g] = 0;
            }
            assert_true(ws_heap_give(h, live[k].at));
            live[k] = live[--n];
        }
    }
    while (n--) {
        memset(owner + live[n].at / 16, 0, live[n].bytes / 16);
        assert_true(ws_heap_give(h, live[n].at));
    }
}

static void test_churn(void **state)
{
    (void)state;
    static uint8_t owner[HEAP / 16];
    struct ws_heap *h;
    uint64_t at;
    assert_int_equal(ws_heap_new(&h, HEAP), 0);
    for (unsigned seed = 1; seed < 6; seed++)
        churn(h, seed, owner, 1);
    assert_true(ws_heap_take(h, HEAP, &at)); /* all merged again */
    ws_heap_free(h);
}

struct worker {
    struct ws_heap *h;
    uint8_t *owner;
    unsigned id;
};
static void *work(void *arg)
{
    struct worker *w = arg;
    churn(w->h, w->id, w->owner, (uint8_t)w->id);
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    static uint8_t owner[HEAP / 16];
    pthread_t t[4];
    struct worker w[4];
    struct ws_heap *h;
    uint64_t at;
    assert_int_equal(ws_heap_new(&h, HEAP), 0);
    for (unsigned i = 0; i < 4; i++) {
        w[i] = (struct worker){h, owner, i + 1};
        assert_int_equal(pthread_create(&t[i], NULL, work, &w[i]), 0);
    }
    for (unsigned i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    assert_true(ws_heap_take(h, HEAP, &at));
    ws_heap_free(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_comes_back),
        cmocka_unit_test(test_garbage),
        cmocka_unit_test(test_churn),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
