// SPDX-License-Identifier: Apache-2.0
/* Measures how long response-time analyses take: each method on one core over generated sets, and a
 * million GCAPS analyses on two cores. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "papers/common/parallel.h"
#include "cli/common/table.h"
#include "papers/sets/gen_gcaps.h"
#include "papers/sets/gen_stgm.h"

enum { SETS = 1000, MILLION = 1000000, CORES = 2, CHUNKS = 1000 };

static struct ws_rt_set gcaps[SETS], stgm[SETS];

static void make_sets(void)
{
    for (int i = 0; i < SETS; i++) {
        struct ws_random r;
        struct ws_gen_gcaps g = ws_gen_gcaps_default;
        /* Half of them easier, so that analyses run to their ends as well as stop early. */
        g.util_min = i % 2 ? g.util_min : 0.1;
        g.util_max = i % 2 ? g.util_max : 0.2;
        ws_random_init_part(&r, 1, (uint64_t)i);
        if (ws_gen_gcaps(&g, &r, &gcaps[i]) || ws_gen_stgm(&ws_gen_stgm_default, &r, &stgm[i]))
            exit(1);
    }
}

static struct ws_rta_work reserve(void)
{
    struct ws_rta_work w = WS_RTA_WORK_NULL;
    for (int i = 0; i < SETS; i++)
        if (ws_rta_work_reserve(&w, gcaps[i].gcaps.n_tasks, gcaps[i].gcaps.n_segments))
            exit(1);
    return w;
}

/* ns for all sets; @ret_ok: how many are schedulable. */
static uint64_t run_gcaps(const struct ws_rta_method *m, struct ws_rta_work *w, int *ret_ok)
{
    uint64_t start = ws_clock_ns();
    for (int i = 0; i < SETS; i++) {
        struct ws_rta_result r;
        if (m->run(&gcaps[i].gcaps, w, &r))
            exit(1);
        *ret_ok += r.ok;
    }
    return ws_clock_ns() - start;
}

static uint64_t run_stgm(const struct ws_rta_method *m, int *ret_ok)
{
    struct ws_stgm_work w = WS_STGM_WORK_NULL;
    if (ws_stgm_work_reserve(&w, 64))
        exit(1);
    uint64_t start = ws_clock_ns();
    for (int i = 0; i < SETS; i++) {
        struct ws_stgm_result r;
        ws_stgm_allocate(&stgm[i].stgm, m->variant, &w, &r);
        *ret_ok += r.ok;
    }
    uint64_t t = ws_clock_ns() - start;
    ws_stgm_work_deinit(&w);
    return t;
}

static void chunk(void *arg, size_t k)
{
    const struct ws_rta_method *const *m = arg;
    struct ws_rta_work w = reserve();
    for (int i = 0; i < MILLION / CHUNKS; i++) {
        struct ws_rta_result r;
        if (m[i % 2]->run(&gcaps[(k + (size_t)i) % SETS].gcaps, &w, &r))
            exit(1);
    }
    ws_rta_work_deinit(&w);
}

int main(void)
{
    static const char *const heads[] = {"method", "us a set", "schedulable", NULL};
    struct ws_table t;
    size_t n;
    const struct ws_rta_method *m = ws_rta_methods(&n);
    make_sets();
    struct ws_rta_work w = reserve();
    ws_table_init(&t, heads);
    for (size_t i = 0; i < n; i++) {
        int n_ok = 0;
        uint64_t ns = m[i].stgm ? run_stgm(&m[i], &n_ok) : run_gcaps(&m[i], &w, &n_ok);
        ws_table_add(&t, "%s", m[i].name);
        ws_table_add(&t, "%.2f", (double)ns / 1e3 / SETS);
        ws_table_add(&t, "%d", n_ok);
        ws_table_end_row(&t);
    }
    printf("%d sets of each paper, one core\n", SETS);
    ws_table_print(&t, stdout);
    ws_table_deinit(&t);
    ws_rta_work_deinit(&w);
    const struct ws_rta_method *both[2] = {ws_rta_method_find("gcaps_suspend"),
                                           ws_rta_method_find("gcaps_busy")};
    uint64_t start = ws_clock_ns();
    ws_parallel_for(CHUNKS, CORES, chunk, both, NULL);
    printf(
        "%d GCAPS analyses (suspend and busy in turn) on %d cores: %.2f s (wanted: at most 60)\n",
        MILLION, CORES, (double)(ws_clock_ns() - start) / 1e9);
    for (int i = 0; i < SETS; i++) {
        ws_rt_set_deinit(&gcaps[i]);
        ws_rt_set_deinit(&stgm[i]);
    }
    return 0;
}
