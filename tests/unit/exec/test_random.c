// SPDX-License-Identifier: Apache-2.0
/* Random kernels (random_program.h) in the interpreter, for each vector width, with blocks one
 * after the other, several at once in short turns, and on two host threads, against their
 * evaluation in C.
 * WS_RANDOM_FIRST and WS_RANDOM_COUNT choose other seeds than the few of every test run. */
#include <setjmp.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/exec/fixture.h"
#include "tests/unit/exec/random_program.h"

enum { BLOCKS = 5, COUNT = 200 };

struct launched {
    struct ws_grid *g;
    _Atomic uint64_t *next;
    uint64_t step;
    unsigned width;
};

/* Takes blocks until there are none, a few at a time, in turn. */
static void *work_off(void *arg)
{
    struct launched *l = arg;
    struct ws_blockrun *b[4] = {NULL};
    bool busy[4] = {false}, any;
    struct ws_exec_work work = {0};
    do {
        any = false;
        for (unsigned k = 0; k < l->width; k++) {
            uint64_t n;
            if (!busy[k] && (n = atomic_fetch_add(l->next, 1)) < BLOCKS) {
                if (!b[k] && ws_blockrun_new(&b[k], l->g) != 0)
                    abort();
                ws_blockrun_start(b[k], n, k, 0);
                busy[k] = true;
            }
            any |= busy[k];
            if (busy[k])
                busy[k] = ws_blockrun_step(b[k], l->step, &work) == WS_STEP_MORE;
        }
    } while (any);
    for (unsigned k = 0; k < 4; k++)
        ws_blockrun_free(b[k]);
    return NULL;
}

static void fill(struct rnd_memory *m, uint64_t seed)
{
    uint64_t s = seed ^ 0x5555;
    for (unsigned k = 0; k < RND_IN_BYTES; k += 8) {
        uint64_t v = rnd_next(&s);
        memcpy(m->in + k, &v, 8);
    }
    memset(m->own, 0, BLOCKS * RND_MAX_THREADS * RND_OWN_BYTES);
    memset(m->out, 0xee, BLOCKS * RND_MAX_THREADS * RND_OUT_BYTES);
    for (unsigned k = 0; k < RND_CELLS; k++)
        m->cells[k] = k / 16 == 2 ? 0xffffffff : k / 16 == 3 ? 0x80000000 : 0;
}

static void compare(const char *what, const void *is, const void *want, size_t bytes, size_t each,
                    uint64_t seed, const char *how, const char *ptx)
{
    if (memcmp(is, want, bytes) == 0)
        return;
    size_t at = 0;
    while (((const uint8_t *)is)[at] == ((const uint8_t *)want)[at])
        at++;
    const char *path = getenv("WS_RANDOM_KEEP");
    FILE *f = path ? fopen(path, "w") : NULL;
    if (f) {
        fputs(ptx, f);
        fclose(f);
    }
    uint32_t x, y;
    memcpy(&x, (const uint8_t *)is + (at & ~(size_t)3), 4);
    memcpy(&y, (const uint8_t *)want + (at & ~(size_t)3), 4);
    fail_msg("seed %llu, %s: %s of %zu, byte %zu: 0x%x, should be 0x%x", (unsigned long long)seed,
             how, what, at / each, at % each, x, y);
}

static void try_seed(uint64_t seed)
{
    static const unsigned sizes[] = {32, 40, 64, 96, 128, 33};
    static const char *const isas[] = {"sse2", "avx2", "avx512"};
    static const struct {
        const char *name;
        unsigned threads, width;
        uint64_t step;
    } ways[] = {
        {"one by one", 1, 1, 100000}, {"in short turns", 1, 4, 23}, {"on two threads", 2, 2, 400}};
    struct rnd_program *p = rnd_new(seed);
    const char *ptx = rnd_ptx(p);
    unsigned threads = sizes[seed % 6];
    size_t out_bytes = BLOCKS * threads * RND_OUT_BYTES,
           own_bytes = BLOCKS * threads * RND_OWN_BYTES;
    struct rnd_memory want = {.out = calloc(BLOCKS * RND_MAX_THREADS, RND_OUT_BYTES),
                              .own = calloc(BLOCKS * RND_MAX_THREADS, RND_OWN_BYTES),
                              .in = calloc(1, RND_IN_BYTES),
                              .cells = calloc(RND_CELLS, 4)};
    fill(&want, seed);
    rnd_evaluate(p, BLOCKS, threads, &want);
    for (size_t i = 0; i < WS_ARRAY_SIZE(isas); i++) {
        struct fix f;
        setenv("WS_SOFT_ISA", isas[i], 1);
        if (strcmp(ws_exec_isa(), isas[i]) != 0)
            continue; /* not on this processor */
        fix_init(&f);
        fix_must_load(&f, ptx);
        uint64_t params[4] = {fix_alloc(&f, BLOCKS * RND_MAX_THREADS * RND_OUT_BYTES),
                              fix_alloc(&f, BLOCKS * RND_MAX_THREADS * RND_OWN_BYTES),
                              fix_alloc(&f, RND_IN_BYTES), fix_alloc(&f, RND_CELLS * 4)};
        struct rnd_memory is = {fix_host(&f, params[0]), fix_host(&f, params[1]),
                                fix_host(&f, params[2]), fix_host(&f, params[3])};
        for (size_t w = 0; w < WS_ARRAY_SIZE(ways); w++) {
            char how[64];
            struct ws_grid g = {.code = f.code,
                                .grid = {BLOCKS, 1, 1},
                                .block = {threads, 1, 1},
                                .params = (const uint8_t *)params,
                                .space = f.space,
                                .var_va = f.var_va,
                                .n_sms = 4,
                                .sm = 80};
            _Atomic uint64_t next = 0;
            struct launched l = {&g, &next, ways[w].step, ways[w].width};
            pthread_t other;
            snprintf(how, sizeof(how), "%s, %s", isas[i], ways[w].name);
            fix_kernel(&f, "k", &g.kernel);
            fill(&is, seed);
            if (ways[w].threads > 1)
                assert_int_equal(pthread_create(&other, NULL, work_off, &l), 0);
            work_off(&l);
            if (ways[w].threads > 1)
                pthread_join(other, NULL);
            if (g.stop)
                fail_msg("seed %llu, %s: %s", (unsigned long long)seed, how, g.text);
            compare("registers", is.out, want.out, out_bytes, RND_OUT_BYTES, seed, how, ptx);
            compare("own memory", is.own, want.own, own_bytes, RND_OWN_BYTES, seed, how, ptx);
            compare("cells", is.cells, want.cells, RND_CELLS * 4, 4, seed, how, ptx);
        }
        fix_deinit(&f);
    }
    unsetenv("WS_SOFT_ISA");
    free(want.out);
    free(want.own);
    free(want.in);
    free(want.cells);
    rnd_free(p);
}

static void test_random(void **state)
{
    const char *first = getenv("WS_RANDOM_FIRST"), *count = getenv("WS_RANDOM_COUNT");
    uint64_t from = first ? strtoull(first, NULL, 0) : 1,
             n = count ? strtoull(count, NULL, 0) : COUNT;
    (void)state;
    for (uint64_t k = 0; k < n; k++)
        try_seed(from + k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random)};
    return cmocka_run_group_tests_name("exec_random", tests, NULL, NULL);
}
