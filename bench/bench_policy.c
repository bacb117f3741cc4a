// SPDX-License-Identifier: Apache-2.0
/* Measures one decision of sbeet-mg and of wattshare by the number of tasks and of GPUs: one ready
 * job, random states of the GPUs (idle, partly used, full), random priorities; mean and worst over
 * the states. The worst is a job whose own GPU (the first, if the policy gives tasks none) is full
 * and which looks at all the others, idle ones, trying SM counts against the coming jobs there.
 * `bench_policy FILE` also writes the rows of sbeet-mg as CSV, beside what n·log n would be;
 * bench/decisions.gp draws it. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "policy/sbeet.h"
#include "papers/sets/random.h"
#include "papers/sets/sbeet_set.h"

enum { STATES = 300, REPEATS = 20, MAX_GPUS = 8, MAX_TASKS = 1600 };

static struct ws_policy_run runs[2 * MAX_GPUS];
static struct ws_policy_gpu_state states[MAX_GPUS];
static struct ws_policy_job jobs[1 + 2 * MAX_GPUS];

static void stop(const char *what)
{
    fprintf(stderr, "bench_policy: %s\n", what);
    exit(1);
}

/* All GPUs but @full (of the job) are left idle where @worst. */
static int random_state(struct ws_random *r, const struct ws_sbeet_set *s, int home, bool worst,
                        double now)
{
    int n = 1;
    for (int k = 0; k < s->system.n_gpus; k++) {
        int busy = worst ? (k == home ? 2 : 0) : (int)ws_random_integer(r, 0, 2), left;
        left = s->system.gpus[k].sm_limit;
        states[k] = (struct ws_policy_gpu_state){.slots = &runs[2 * k], .n_slots = 2};
        for (int i = 0; i < 2; i++) {
            runs[2 * k + i] = (struct ws_policy_run){.job = -1, .task = -1};
            if (i >= busy || left < 1)
                continue;
            int task = (int)ws_random_integer(r, 1, s->system.n_tasks - 1);
            int m = (int)ws_random_integer(r, 1, worst ? WS_MAX(left / 2, 1) : left);
            double end = now + ws_random_uniform(r, 1, 60);
            left -= m;
            jobs[n] = (struct ws_policy_job){.task = task,
                                             .state = WS_JOB_RUNNING,
                                             .seq = (uint64_t)n,
                                             .deadline = end + 10.0 * n,
                                             .gpu = k};
            runs[2 * k + i] = (struct ws_policy_run){
                .job = n, .task = task, .n_sm = m, .gpu_end = end, .end = end + 1};
            n++;
            states[k].n_running++;
        }
    }
    return n;
}

static void measure(const char *policy, bool preempts, int n_tasks, int n_gpus, bool worst,
                    double *ret_mean_us, double *ret_max_us)
{
    static struct ws_sbeet_task tasks[MAX_TASKS];
    char text[128] = "", error[160];
    struct ws_gpus gpus;
    struct ws_sbeet_set s;
    struct ws_random r;
    ws_random_init(&r, (uint64_t)n_tasks);
    for (int k = 0; k < n_gpus; k++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", k ? "," : "",
                 k % 2 ? "t400" : "rtx3070@46");
    if (ws_gpus_parse(&gpus, text, error, sizeof(error)))
        stop(error);
    for (int i = 0; i < gpus.n_types; i++)
        gpus.types[i].preempts = preempts;
    for (int i = 0; i < n_tasks;
         i++) { /* a load of 0.4 for each GPU, whatever the number of tasks */
        double period = floor(ws_random_uniform(&r, 20, 60) * n_tasks / n_gpus) + 20;
        tasks[i] = (struct ws_sbeet_task){.app = (int)ws_random_integer(&r, 0, 7),
                                          .period = period,
                                          .deadline = period / 2,
                                          .offset = floor(ws_random_uniform(&r, 0, period))};
    }
    const struct ws_policy_ops *ops = ws_policy_find(policy);
    struct ws_policy *p;
    if (ws_sbeet_set_make(&s, &gpus, tasks, n_tasks, false, error, sizeof(error)) ||
        ops->make(&p, NULL, error, sizeof(error)) ||
        ops->prepare(p, &s.system, error, sizeof(error)))
        stop(error);
    struct ws_policy_decisions d = WS_POLICY_DECISIONS_NULL;
    struct ws_policy_event e = {.kind = WS_EVENT_ARRIVAL};
    double sum = 0, most = 0;
    for (int i = 0; i < STATES; i++) {
        double now = 1000 + floor(ws_random_uniform(&r, 0, 5000));
        int task = (int)ws_random_integer(&r, 0, n_tasks - 1);
        jobs[0] = (struct ws_policy_job){
            .task = task,
            .state = WS_JOB_WAITING,
            .release = now,
            .deadline = now + (worst ? ws_random_uniform(&r, 1, 30) : s.tasks[task].deadline)};
        struct ws_policy_snapshot snap = {
            .system = &s.system, .now = now, .gpus = states, .jobs = jobs};
        int home = ws_sbeet_is(ops) ? ws_sbeet_home(p, task) : 0;
        snap.n_jobs = random_state(&r, &s, home, worst, now);
        double least = INFINITY; /* of repeats: what interrupts only adds */
        for (int k = 0; k < REPEATS; k++) {
            uint64_t begin = ws_clock_ns();
            d.n = 0;
            if (ops->decide(p, &snap, &e, &d))
                stop("deciding failed");
            least = fmin(least, (double)(ws_clock_ns() - begin) / 1e3);
        }
        sum += least;
        most = fmax(most, least);
    }
    *ret_mean_us = sum / STATES;
    *ret_max_us = most;
    ws_policy_decisions_deinit(&d);
    ops->free(p);
    ws_sbeet_set_deinit(&s);
    ws_gpus_deinit(&gpus);
}

/* @csv: NULL: not written. */
static void measure_all(const char *policy, bool preempts, FILE *csv)
{
    static const int tasks[] = {6, 12, 25, 50, 100, 200, 400, 800, 1600};
    static const int gpus[] = {2, 4, 8};
    printf("one decision of %s%s, us\n%5s %6s %12s %12s %16s %16s %14s\n", policy,
           preempts ? " where jobs can be taken off" : "", "GPUs", "tasks", "random mean",
           "random max", "own full, mean", "own full, max", "as n log n");
    for (size_t g = 0; g < sizeof(gpus) / sizeof(*gpus); g++) {
        double unit = 0;
        for (size_t t = 0; t < sizeof(tasks) / sizeof(*tasks); t++) {
            double mean, most, full_mean, full_max;
            measure(policy, preempts, tasks[t], gpus[g], false, &mean, &most);
            measure(policy, preempts, tasks[t], gpus[g], true, &full_mean, &full_max);
            double nlogn = tasks[t] * log2(tasks[t]);
            if (tasks[t] == 100) /* what the rest would be if 100 tasks cost what they cost */
                unit = full_max / nlogn;
            printf("%5d %6d %12.2f %12.2f %16.2f %16.2f ", gpus[g], tasks[t], mean, most, full_mean,
                   full_max);
            if (unit > 0)
                printf("%14.2f\n", unit * nlogn);
            else
                printf("%14s\n", "");
            if (csv)
                fprintf(csv, "%d,%d,%.4f,%.4f,%.4f,%.4f,%.4f\n", gpus[g], tasks[t], mean, most,
                        full_mean, full_max, unit * nlogn);
        }
    }
}

int main(int argc, char **argv)
{
    FILE *csv = argc > 1 ? fopen(argv[1], "w") : NULL;
    if (argc > 1 && !csv)
        stop("the CSV can't be written");
    if (csv)
        fprintf(csv, "gpus,tasks,mean_us,random_max_us,full_mean_us,full_max_us,n_log_n_us\n");
    measure_all("sbeet-mg", false, csv);
    measure_all("wattshare", false, NULL);
    measure_all("wattshare", true, NULL);
    return csv && fclose(csv) ? 1 : 0;
}
