// SPDX-License-Identifier: Apache-2.0
/* Measures the planner for Slurm: how long it takes to plan a queue of jobs at once, as after a
 * restart of the cluster, and one job more beside that queue, as at each submission. The jobs are
 * those of the simulator's day (papers/sets/gen_edl.h). The baseline is the same day in the
 * simulator. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "papers/sets/gen_edl.h"
#include "slurm/planner/plan.h"

enum { JOBS = 4000, PAIRS = 2000, PAIRS_PER_NODE = 4, NODES = PAIRS / PAIRS_PER_NODE, TIMES = 7 };
static const double bound_ms = 100;

static struct ws_cluster_task *tasks;
static struct ws_plan_node nodes[NODES];
static struct ws_plan_wish wishes[JOBS];
static struct ws_plan_place places[JOBS];
static struct ws_plan_job queue[JOBS];

/* Processor time, so that other work on the machine doesn't count. */
static double cpu_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v)
{
    qsort(v, TIMES, sizeof(*v), by_value);
    return v[TIMES / 2];
}

static double plan_ms(const struct ws_plan_cluster *c, size_t n)
{
    double v[TIMES];
    for (int i = 0; i < TIMES; i++) {
        double t = cpu_ms();
        if (ws_plan_make(c, 0, wishes, n, places))
            return NAN;
        v[i] = cpu_ms() - t;
    }
    return median(v);
}

static double simulator_ms(void)
{
    const struct ws_cluster sim = {
        .n_pairs = PAIRS, .pairs_per_server = PAIRS_PER_NODE, .idle_w = 37};
    const char *options[] = {"theta=0.9", NULL};
    struct ws_cluster_result r;
    char error[200];
    double v[TIMES];
    for (int i = 0; i < TIMES; i++) {
        double t = cpu_ms();
        if (ws_cluster_run(&sim, tasks, JOBS, &ws_policy_edl, options, NULL, &r, error,
                           sizeof(error)))
            return NAN;
        v[i] = cpu_ms() - t;
    }
    return median(v);
}

/* Jobs of a day, all of them there at once, with the time that each had. */
static int make_jobs(void)
{
    struct ws_gen_edl g = ws_gen_edl_online;
    size_t n;
    g.base = 1600; /* more than enough tasks */
    if (ws_gen_edl(&g, &tasks, &n) || n < JOBS)
        return -1;
    for (size_t i = 0; i < JOBS; i++) {
        tasks[i].deadline -= tasks[i].arrival;
        tasks[i].arrival = 0;
        wishes[i] = (struct ws_plan_wish){.deadline = tasks[i].deadline, .on = {&tasks[i].dvfs}};
    }
    for (size_t i = 0; i < NODES; i++)
        nodes[i] = (struct ws_plan_node){.n_gpus = PAIRS_PER_NODE, .power = WS_PLAN_OFF};
    return 0;
}

int main(void)
{
    struct ws_plan_cluster c = {.n_kinds = 1,
                                .nodes = nodes,
                                .n_nodes = NODES,
                                .theta = 0.9,
                                .interval = ws_dvfs_wide,
                                .interval_text = "wide"};
    size_t n_refused = 0;
    if (make_jobs())
        return 1;
    double all = plan_ms(&c, JOBS);
    for (size_t i = 0; i < JOBS; i++) {
        if (places[i].node < 0)
            n_refused++;
        else
            queue[c.n_jobs++] = (struct ws_plan_job){places[i].node, INFINITY, places[i].point.t};
    }
    c.jobs = queue;
    wishes[0].deadline = 1e6;
    double one = plan_ms(&c, 1), sim = simulator_ms();
    printf("%-52s %9.2f ms  (bound %g ms: %s)\n", "a plan for 4,000 jobs on 2,000 pairs", all,
           bound_ms, all <= bound_ms ? "kept" : "missed");
    printf("%-52s %9zu\n", "  of these refused: all pairs are taken", n_refused);
    printf("%-52s %9.2f ms\n", "a plan for one job beside those", one);
    printf("%-52s %9.2f ms\n", "the same jobs in the simulator", sim);
    free(tasks);
    return isnan(all + one + sim);
}
