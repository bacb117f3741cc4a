// SPDX-License-Identifier: Apache-2.0
/* device/soft: memory is zero whoever had it before, and making it so does not take the time of
 * whoever allocates it or gives it back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>
#include <sys/mman.h>

#include "device/soft/mem.h"

#define MIB (UINT64_C(1) << 20)

static struct ws_mem *mem;

static int setup(void **state)
{
    return ws_mem_new(&mem, 256 * MIB);
}

static int teardown(void **state)
{
    mem = ws_mem_unref(mem);
    return 0;
}

static uint64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static bool is_zero(const uint8_t *p, uint64_t bytes)
{
    return !p[0] && !memcmp(p, p + 1, bytes - 1);
}

static void test_used_again_is_zero(void **state)
{
    static const uint64_t sizes[] = {512,     64 << 10, 128 << 10, 132 << 10,
                                     1 * MIB, 32 * MIB, 33 * MIB,  (16 << 20) + 512};
    for (unsigned round = 0; round < 6; round++)
        for (size_t i = 0; i < WS_ARRAY_SIZE(sizes); i++) {
            uint8_t *p;
            assert_int_equal(ws_mem_alloc(mem, sizes[i], &p), 0);
            assert_true(is_zero(p, sizes[i]));
            memset(p, 0xa5, sizes[i]);
            ws_mem_release(mem, p, sizes[i]);
        }
    assert_int_equal(ws_mem_used_bytes(mem), 0);
}

/* Many at once, more than the cache holds, and given back in another order. */
static void test_many_blocks(void **state)
{
    enum { N = 24 };
    uint8_t *p[N];
    for (unsigned round = 0; round < 4; round++) {
        for (unsigned i = 0; i < N; i++) {
            assert_int_equal(ws_mem_alloc(mem, 8 * MIB, &p[i]), 0);
            assert_true(is_zero(p[i], 8 * MIB));
            memset(p[i], (int)i + 1, 8 * MIB);
        }
        for (unsigned i = 0; i < N; i++)
            ws_mem_release(mem, p[i * 7 % N], 8 * MIB);
    }
}

/* Touching the memory takes what it takes; compared with that, the calls take nothing. */
static void test_calls_are_short(void **state)
{
    uint64_t in_calls = 0, touching = 0;
    for (unsigned round = 0; round < 12; round++) {
        uint8_t *p;
        uint64_t bytes = round % 2 ? 32 * MIB : 64 * MIB, from = cpu_ns();
        assert_int_equal(ws_mem_alloc(mem, bytes, &p), 0);
        in_calls += cpu_ns() - from;
        from = cpu_ns();
        memset(p, 0xa5, bytes);
        touching += cpu_ns() - from;
        from = cpu_ns();
        ws_mem_release(mem, p, bytes);
        in_calls += cpu_ns() - from;
    }
    assert_in_range(in_calls, 0, touching / 20);
}

static void test_clear(void **state)
{
    uint64_t bytes = 4 * MIB;
    for (unsigned shared = 0; shared < 2; shared++) {
        uint8_t *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                          MAP_ANONYMOUS | (shared ? MAP_SHARED : MAP_PRIVATE), -1, 0);
        assert_true(p != MAP_FAILED);
        for (unsigned n = 0; n < 3; n++) {
            uint64_t from = 100 + n, to = n == 2 ? 3000 : bytes - 77;
            memset(p, 0xee, bytes);
            ws_mem_clear(p + from, to - from, !shared);
            assert_true(is_zero(p + from, to - from));
            assert_int_equal(p[from - 1], 0xee);
            assert_int_equal(p[to], 0xee);
        }
        munmap(p, bytes);
    }
}

int main(int argc, char **argv)
{
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_used_again_is_zero),
        T(test_many_blocks),
        T(test_calls_are_short),
        T(test_clear),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
