// SPDX-License-Identifier: Apache-2.0
/* Measures energy-aware scheduling with deadlines: optima and fits per second, an online day of the
 * paper's size with each policy, how time and memory grow with the number of tasks, and, as the
 * baseline, the same day as a plain slot loop in Python (bench/edl_day.py). */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "papers/fit/fit.h"
#include "papers/sets/edl_apps.h"
#include "papers/sets/edl_study.h"

/* Processor time, so that other work on the machine doesn't count; the Python baseline measures the
 * same. */
static uint64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * WS_NS_PER_S + (uint64_t)t.tv_nsec;
}

static double seconds_since(uint64_t from_ns)
{
    return (double)(cpu_ns() - from_ns) / 1e9;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof(*v), by_value);
    return v[n / 2];
}

static void optima(const struct ws_cluster_task *tasks, size_t n)
{
    double free_s[5], limit_s[5], sum = 0;
    for (int k = 0; k < 5; k++) {
        struct ws_dvfs_point p;
        uint64_t t = cpu_ns();
        for (size_t i = 0; i < 50 * n; i++)
            sum += ws_dvfs_optimum(&tasks[i % n].dvfs, &ws_dvfs_wide, INFINITY, &p) ? 0 : p.e;
        free_s[k] = seconds_since(t) / (50.0 * (double)n);
        t = cpu_ns();
        for (size_t i = 0; i < 50 * n; i++) {
            const struct ws_dvfs_task *d = &tasks[i % n].dvfs;
            double limit = ws_dvfs_t_min(d, &ws_dvfs_wide) * 1.05;
            sum += ws_dvfs_optimum(d, &ws_dvfs_wide, limit, &p) ? 0 : p.e;
        }
        limit_s[k] = seconds_since(t) / (50.0 * (double)n);
    }
    double a = median(free_s, 5), b = median(limit_s, 5);
    printf("%-44s %9.2f us  %10.0f /s\n", "optimum without a time limit", a * 1e6, 1 / a);
    printf("%-44s %9.2f us  %10.0f /s%s\n", "optimum with a time limit", b * 1e6, 1 / b,
           sum == 0 ? "!" : "");
}

static void fits(void)
{
    struct ws_fit_sample s[20];
    double v[5], sum = 0;
    const struct ws_dvfs_task *d = &ws_edl_apps[3].dvfs;
    for (int i = 0; i < 20; i++) {
        double fc = 0.88 + 0.05 * (i / 4), fm = 0.8 + 0.1 * (i % 4);
        s[i] = (struct ws_fit_sample){fc, fm, NAN, ws_dvfs_time(d, fc, fm) * (1 + 0.01 * (i % 3)),
                                      ws_dvfs_power(d, ws_dvfs_g1_inverse(fc), fc, fm) *
                                          (1 - 0.01 * (i % 5))};
    }
    for (int k = 0; k < 5; k++) {
        uint64_t t = cpu_ns();
        for (int i = 0; i < 20000; i++) {
            struct ws_dvfs_task f;
            char error[160];
            sum += ws_fit(s, 20, WS_FIT_NNLS, &f, error, sizeof(error)) ? 0 : f.c;
        }
        v[k] = seconds_since(t) / 20000;
    }
    double a = median(v, 5);
    printf("%-44s %9.2f us  %10.0f /s%s\n", "fit of 20 samples (time and power)", a * 1e6, 1 / a,
           sum == 0 ? "!" : "");
}

static double day(const struct ws_edl_cell *cell, const struct ws_cluster_task *tasks, size_t n,
                  struct ws_cluster_result *r)
{
    double v[9];
    for (int k = 0; k < 9; k++) {
        uint64_t t = cpu_ns();
        if (ws_edl_cell_run(cell, false, tasks, n, r))
            return NAN;
        v[k] = seconds_since(t);
    }
    return median(v, 9);
}

/* The same day in Python; NAN: no python3. */
static double python_day(const struct ws_edl_cell *cell, const struct ws_cluster_task *tasks,
                         size_t n, double *ret_e_run)
{
    char path[] = "/tmp/bench_edl.XXXXXX", command[600], line[200];
    int fd = mkstemp(path);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    if (!f)
        return NAN;
    for (size_t i = 0; i < n; i++)
        ws_cluster_task_write(f, &tasks[i]);
    fclose(f);
    snprintf(command, sizeof(command), "python3 '%s/bench/edl_day.py' %s %d %g", SRCDIR, path,
             cell->l, cell->theta);
    FILE *p = popen(command, "r");
    double s = NAN;
    if (p && (!fgets(line, sizeof(line), p) || sscanf(line, "%lf %lf", &s, ret_e_run) != 2))
        s = NAN;
    if (p)
        pclose(p);
    unlink(path);
    return s;
}

static void days(const struct ws_cluster_task *tasks, size_t n)
{
    static const struct ws_edl_cell cells[] = {
        {"edl", true, 0.9, 16, false},  {"edl", true, 0.9, 1, false},
        {"edl", false, 1, 16, false},   {"bin-packing", true, 1, 16, false},
        {"edf-bf", true, 1, 16, false}, {"lpt-ff", true, 1, 16, false}};
    double first = NAN, e_run = 0, python_e_run = 0;
    printf("\nan online day of %zu tasks, up to 2048 pairs' worth of work\n", n);
    for (size_t i = 0; i < WS_ARRAY_SIZE(cells); i++) {
        struct ws_cluster_result r;
        double s = day(&cells[i], tasks, n, &r);
        char name[64];
        snprintf(name, sizeof(name), "%s%s, theta %g, l = %d", cells[i].policy,
                 cells[i].dvfs ? "" : " without DVFS", cells[i].theta, cells[i].l);
        printf("%-44s %9.2f ms  %10.0f decisions/s  %5.2f us a task\n", name, s * 1e3,
               (double)r.n_decisions / s, s / (double)n * 1e6);
        if (!i) {
            first = s;
            e_run = r.e_run;
        }
    }
    double p = python_day(&cells[0], tasks, n, &python_e_run);
    if (isnan(p))
        printf("%-44s not measured: no python3\n", "the first as a slot loop in Python");
    else
        printf("%-44s %9.0f ms  %10.0f times ours; run energies %.9g apart\n",
               "the first as a slot loop in Python", p * 1e3, p / first,
               fabs(python_e_run / e_run - 1));
}

/* Time and memory of growing sets, each in a process of its own. */
static void growth(void)
{
    printf("\nEDL, theta 0.9, l = 1, the same day with more tasks\n");
    for (int base = 256; base <= 262144; base *= 8) {
        fflush(stdout);
        pid_t pid = fork();
        if (pid == 0) {
            struct ws_gen_edl g = ws_gen_edl_online;
            struct ws_cluster_task *tasks;
            struct ws_cluster_result r;
            const struct ws_edl_cell cell = {"edl", true, 0.9, 1, false};
            size_t n;
            ws_gen_edl_release_u(&g);
            g.base = base;
            if (ws_gen_edl(&g, &tasks, &n))
                _exit(1);
            uint64_t t = cpu_ns();
            if (ws_edl_cell_run(&cell, false, tasks, n, &r))
                _exit(1);
            double s = seconds_since(t);
            struct rusage u;
            getrusage(RUSAGE_SELF, &u);
            printf("%9zu tasks %44.2f us a task  %8.0f bytes of memory a task\n", n,
                   s / (double)n * 1e6, (double)u.ru_maxrss * 1024 / (double)n);
            fflush(stdout);
            _exit(0);
        }
        waitpid(pid, NULL, 0);
    }
}

int main(void)
{
    struct ws_gen_edl g = ws_gen_edl_online;
    struct ws_cluster_task *tasks;
    size_t n;
    ws_gen_edl_release_u(&g);
    if (ws_gen_edl(&g, &tasks, &n)) {
        fprintf(stderr, "bench_edl: no task set\n");
        return 1;
    }
    optima(tasks, n);
    fits();
    days(tasks, n);
    growth();
    free(tasks);
    return 0;
}
