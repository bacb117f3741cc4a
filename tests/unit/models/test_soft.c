// SPDX-License-Identifier: Apache-2.0
/* models against the software GPU: the time of merged kernels, predicted from what each took alone.
 * The device's timeline is the measurement here; the models see only times of single kernels and
 * how long their blocks keep issue slots and memory busy. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "device/catalog.h"
#include "device/soft/timeline/timing.h"
#include "models/consolidate.h"

struct fixture {
    struct ws_catalog catalog;
    struct ws_gpu_spec spec; /* tesla-c1060 */
    struct ws_timing *t;
    struct ws_cost blocks[1024];
    struct ws_mix m;
};

static int setup(void **state)
{
    struct fixture *x = calloc(1, sizeof(*x));
    *state = x;
    char path[512];
    const char *dir = getenv("srcdir");
    snprintf(path, sizeof(path), "%s/conf/gpu.d", dir ? dir : ".");
    if (!x || ws_catalog_load(&x->catalog, path, NULL))
        return -1;
    x->spec = *ws_catalog_find(&x->catalog, "tesla-c1060");
    return 0;
}

static int teardown(void **state)
{
    struct fixture *x = *state;
    ws_timing_free(x->t);
    ws_catalog_deinit(&x->catalog);
    ws_mix_deinit(&x->m);
    free(x);
    return 0;
}

/* A launch of the first @n of x->blocks on an idle device, in ns without what launching costs. */
static double measure(struct fixture *x, uint32_t n, uint32_t occupancy)
{
    struct ws_timed done;
    struct ws_timing_kernel k = {.owner = 1,
                                 .need = {4, 2048, 0},
                                 .blocks_per_sm = occupancy,
                                 .n_blocks = n,
                                 .blocks = x->blocks,
                                 .dram_share = 1};
    ws_timing_free(x->t);
    x->t = NULL;
    assert_int_equal(ws_timing_new(&x->t, &x->spec), 0);
    ws_timing_kernel(x->t, &k, &done);
    return (double)(done.end_ns - done.start_ns);
}

static uint32_t next_random(uint64_t *s)
{
    *s = *s * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*s >> 33);
}

/* @most_blocks: of each kernel */
static void pairs(struct fixture *x, bool memory, uint32_t most_blocks, double *ret_mean,
                  double *ret_worst)
{
    uint64_t random = 7;
    double sum = 0, worst = 0;
    enum { N = 200 };
    double overhead = 0;
    x->blocks[0] = (struct ws_cost){.issue_ns = 1, .latency_ns = 1};
    overhead = measure(x, 1, 1) - 1;
    for (int i = 0; i < N; i++) {
        struct ws_mix_measured parts[2] = {0};
        struct ws_cost costs[2];
        uint32_t occupancy = 1 + next_random(&random) % 4, n = 0;
        for (int k = 0; k < 2; k++) {
            double latency = 1e5 * (1 + next_random(&random) % 100);
            double issue = latency * (1 + next_random(&random) % 100) / 100;
            double bytes = memory ? latency * (next_random(&random) % 10) : 0; /* of 102 per ns */
            costs[k] = (struct ws_cost){issue, latency, bytes};
            parts[k].n_blocks = parts[k].alone_blocks = 1 + next_random(&random) % most_blocks;
            for (uint32_t b = 0; b < parts[k].n_blocks; b++)
                x->blocks[b] = costs[k];
            parts[k].alone_time = measure(x, parts[k].n_blocks, occupancy) - overhead;
            parts[k].issue_time = issue;
            parts[k].memory_time = bytes / ((double)x->spec.memory_bytes_per_s / 1e9);
        }
        for (int k = 0; k < 2; k++)
            for (uint32_t b = 0; b < parts[k].n_blocks; b++)
                x->blocks[n++] = costs[k];
        double took = measure(x, n, occupancy) - overhead;
        struct ws_mix_options o = {
            .policy = WS_DISPATCH_GREEDY, .model = WS_DISPATCH_BOUNDED, .occupancy = occupancy};
        assert_int_equal(ws_mix_measured(&x->m, x->spec.n_sms, parts, 2, &o, NULL), 0);
        double error = fabs(x->m.dispatch.makespan / took - 1);
        sum += error;
        worst = fmax(worst, error);
    }
    *ret_mean = sum / N;
    *ret_worst = worst;
}

/* What the paper merges: kernels that leave SMs empty. What they take alone tells what a block
 * takes. */
static void small_kernels(void **state)
{
    double mean, worst;
    pairs(*state, false, 30, &mean, &worst);
    print_message("200 pairs of small kernels: %.2f %% mean, %.2f %% worst\n", 100 * mean,
                  100 * worst);
    assert_true(mean < 0.01 && worst < 0.05);
    pairs(*state, true, 30, &mean, &worst);
    print_message("the same with memory: %.2f %% mean, %.2f %% worst\n", 100 * mean, 100 * worst);
    assert_true(mean < 0.03); /* the worst: alone, one was held up by the memory already */
}

/* Kernels that fill the GPU alone: where issue slots or memory limited them, a block's own time
 * can't be told from that. */
static void large_kernels(void **state)
{
    double mean, worst;
    pairs(*state, false, 60, &mean, &worst);
    print_message("200 pairs up to 60 blocks: %.2f %% mean, %.2f %% worst\n", 100 * mean,
                  100 * worst);
    assert_true(mean < 0.03);
    pairs(*state, true, 60, &mean, &worst);
    print_message("the same with memory: %.2f %% mean, %.2f %% worst\n", 100 * mean, 100 * worst);
    assert_true(mean < 0.03);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(small_kernels, setup, teardown),
        cmocka_unit_test_setup_teardown(large_kernels, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
