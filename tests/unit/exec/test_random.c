// SPDX-License-Identifier: Apache-2.0
/* Random kernels (random_program.h) in the interpreter, for each vector width, with blocks one
 * after the other, several at once in short turns, and on two host threads, against their
 * evaluation in C.
 * WS_RANDOM_FIRST and WS_RANDOM_COUNT choose other seeds than the few of every test run. With
 * WS_SOFT_JIT=always each kernel first runs in the interpreter, and the work that is counted must
 * be the same. So with WS_SOFT_JIT=tiers, where every other block is interpreted. */
#include <setjmp.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "device/soft/jit/code.h"
#include "tests/unit/exec/fixture.h"
#include "tests/unit/exec/random_program.h"

enum { BLOCKS = 5, COUNT = 200 };

struct launched {
    struct ws_grid *g;
    _Atomic uint64_t *next;
    uint64_t step;    /* 0: another one each time */
    uint64_t *random; /* for that */
    unsigned width;
    struct ws_exec_work *work; /* of the last thread to end */
};

/* Takes blocks until there are none, several for each call. */
static void work_off_in_runs(const struct launched *l, struct ws_exec_work *work)
{
    enum { AT_ONCE = 3 };
    struct ws_block_ask asks[AT_ONCE];
    struct ws_blockrun *b;
    uint64_t first;
    if (ws_blockrun_new(&b, l->g) != 0)
        abort();
    while ((first = atomic_fetch_add(l->next, AT_ONCE)) < BLOCKS) {
        uint64_t end = WS_MIN(first + AT_ONCE, (uint64_t)BLOCKS);
        while (first < end && !l->g->stop) {
            uint32_t n = (uint32_t)(end - first);
            for (uint32_t k = 0; k < n; k++)
                asks[k] = (struct ws_block_ask){.linear = first + k, .work = work};
            n = ws_blockrun_run(b, asks, n, l->step, UINT64_MAX);
            while (n && asks[n - 1].step == WS_STEP_MORE)
                asks[n - 1].step = ws_blockrun_step(b, l->step, work);
            first += n;
        }
    }
    ws_blockrun_free(b);
}

/* Up to one warp instruction, or two, or four, … or 4096. */
static uint64_t random_step(uint64_t *random)
{
    uint64_t v = rnd_next(random);
    return 1 + (v >> 8) % (UINT64_C(1) << v % 13);
}

/* Takes blocks until there are none, a few at a time, in turn. */
static void work_off_in_turn(const struct launched *l, struct ws_exec_work *work)
{
    struct ws_blockrun *b[4] = {NULL};
    bool busy[4] = {false}, any;
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
                busy[k] = ws_blockrun_step(b[k], l->step ? l->step : random_step(l->random),
                                           work) == WS_STEP_MORE;
        }
    } while (any);
    for (unsigned k = 0; k < 4; k++)
        ws_blockrun_free(b[k]);
}

static void *work_off(void *arg)
{
    const struct launched *l = arg;
    struct ws_exec_work work = {0};
    if (l->width == 1)
        work_off_in_runs(l, &work);
    else
        work_off_in_turn(l, &work);
    *l->work = work;
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

struct way {
    const char *name;
    unsigned threads, width;
    uint64_t step;
};
static const struct way ways[] = {
    {"one by one", 1, 1, 100000},
    {"in short turns", 1, 4, 23},
    {"on two threads", 2, 2, 400},
    {"stopped at random", 1, 4, 0},
};

struct program {
    uint64_t seed;
    const char *ptx;
    unsigned threads;
    struct rnd_memory want;
};

static struct ws_exec_work run_one_way(const struct program *p, struct fix *f, const char *isa,
                                       const struct way *way, const uint64_t params[4])
{
    size_t out_bytes = BLOCKS * p->threads * RND_OUT_BYTES,
           own_bytes = BLOCKS * p->threads * RND_OWN_BYTES;
    struct rnd_memory is = {fix_host(f, params[0]), fix_host(f, params[1]), fix_host(f, params[2]),
                            fix_host(f, params[3])};
    char how[64];
    struct ws_grid g = {.code = f->code,
                        .grid = {BLOCKS, 1, 1},
                        .block = {p->threads, 1, 1},
                        .params = (const uint8_t *)params,
                        .space = f->space,
                        .var_va = f->var_va,
                        .n_sms = 4,
                        .sm = 80};
    _Atomic uint64_t next = 0;
    struct ws_exec_work work, other_work;
    uint64_t random = p->seed;
    struct launched l = {&g, &next, way->step, &random, way->width, &work};
    struct launched l2 = {&g, &next, way->step, NULL, way->width, &other_work};
    pthread_t other;
    snprintf(how, sizeof(how), "%s, %s", isa, way->name);
    fix_kernel(f, "k", &g.kernel);
    fill(&is, p->seed);
    if (way->threads > 1)
        assert_int_equal(pthread_create(&other, NULL, work_off, &l2), 0);
    work_off(&l);
    if (way->threads > 1)
        pthread_join(other, NULL);
    if (g.stop)
        fail_msg("seed %llu, %s: %s", (unsigned long long)p->seed, how, g.text);
    compare("registers", is.out, p->want.out, out_bytes, RND_OUT_BYTES, p->seed, how, p->ptx);
    compare("own memory", is.own, p->want.own, own_bytes, RND_OWN_BYTES, p->seed, how, p->ptx);
    compare("cells", is.cells, p->want.cells, RND_CELLS * 4, 4, p->seed, how, p->ptx);
    return work;
}

/* Says that the kernel has run for long, and waits until every other block is to run compiled. */
static void heat(struct fix *f, unsigned threads)
{
    uint32_t kernel;
    fix_kernel(f, "k", &kernel);
    struct ws_jit_code *j = ws_jit_of(f->code, kernel, (const uint32_t[3]){threads, 1, 1}, NULL);
    if (j)
        ws_jit_ran(j, NULL, false, 1, UINT64_C(1) << 40);
    while (j && atomic_load(&j->tier) <= WS_JIT_QUEUED)
        usleep(500);
}

/* @most: so many of the ways. Return: the work of the first one. */
static struct ws_exec_work run_ways(const struct program *p, const char *isa, size_t most)
{
    struct fix f;
    struct ws_exec_work first = {0};
    fix_init(&f);
    fix_must_load(&f, p->ptx);
    const char *jit = getenv("WS_SOFT_JIT");
    if (jit && strcmp(jit, "tiers") == 0)
        heat(&f, p->threads);
    const uint64_t params[4] = {fix_alloc(&f, BLOCKS * RND_MAX_THREADS * RND_OUT_BYTES),
                                fix_alloc(&f, BLOCKS * RND_MAX_THREADS * RND_OWN_BYTES),
                                fix_alloc(&f, RND_IN_BYTES), fix_alloc(&f, RND_CELLS * 4)};
    for (size_t w = 0; w < WS_MIN(most, WS_ARRAY_SIZE(ways)); w++) {
        struct ws_exec_work work = run_one_way(p, &f, isa, &ways[w], params);
        first = w == 0 ? work : first;
    }
    fix_deinit(&f);
    return first;
}

static void try_seed(uint64_t seed)
{
    static const unsigned sizes[] = {32, 40, 64, 96, 128, 33};
    static const char *const isas[] = {"sse2", "avx2", "avx512"};
    const char *jit = getenv("WS_SOFT_JIT");
    char *how = strdup(jit ? jit : "never");
    bool compiled = how && strcmp(how, "never") != 0;
    struct rnd_program *rnd = rnd_new(seed);
    struct program p = {.seed = seed, .ptx = rnd_ptx(rnd), .threads = sizes[seed % 6]};
    p.want = (struct rnd_memory){.out = calloc(BLOCKS * RND_MAX_THREADS, RND_OUT_BYTES),
                                 .own = calloc(BLOCKS * RND_MAX_THREADS, RND_OWN_BYTES),
                                 .in = calloc(1, RND_IN_BYTES),
                                 .cells = calloc(RND_CELLS, 4)};
    fill(&p.want, seed);
    rnd_evaluate(rnd, BLOCKS, p.threads, &p.want);
    for (size_t i = 0; i < WS_ARRAY_SIZE(isas); i++) {
        struct ws_exec_work interpreted = {0};
        setenv("WS_SOFT_ISA", isas[i], 1);
        if (strcmp(ws_exec_isa(), isas[i]) != 0)
            continue; /* not on this processor */
        if (compiled) {
            setenv("WS_SOFT_JIT", "never", 1);
            interpreted = run_ways(&p, isas[i], 1);
            setenv("WS_SOFT_JIT", how, 1);
        }
        struct ws_exec_work work = run_ways(&p, isas[i], WS_ARRAY_SIZE(ways));
        const uint64_t *is = (const uint64_t *)&work, *want = (const uint64_t *)&interpreted;
        for (size_t k = 0; compiled && k < sizeof(work) / sizeof(*is); k++)
            if (is[k] != want[k])
                fail_msg("seed %llu, %s: compiled, count %zu of the work is %llu, should be %llu",
                         (unsigned long long)seed, isas[i], k, (unsigned long long)is[k],
                         (unsigned long long)want[k]);
    }
    unsetenv("WS_SOFT_ISA");
    free(how);
    free(p.want.out);
    free(p.want.own);
    free(p.want.in);
    free(p.want.cells);
    rnd_free(rnd);
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
