// SPDX-License-Identifier: Apache-2.0
/* Measures the simulator: task sets of sBEET-mg's Table V, 15 s each, in the compatibility mode and
 * with exact times, against a plain Python event loop of the same rules (bench/sbeet_loop.py) on
 * the same sets in the same run. Both must find the same releases, misses and energy. Without
 * python3 only our times are printed. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "papers/sets/gen_sbeet.h"
#include "papers/sets/sbeet_set.h"

enum { N_SETS = 10, ROUNDS = 20 };
#define DURATION_MS 15000

struct sample {
    struct ws_sbeet_task tasks[WS_GEN_SBEET_MAX];
    struct ws_sbeet_set set;
    double util, ticks_s, events_s, python_s;
    uint64_t released, missed;
    double energy_j;
};

static void stop(const char *what)
{
    fprintf(stderr, "bench_sim: %s\n", what);
    exit(1);
}

/* The quickest of some rounds: what else the machine does only adds. */
static double run(struct sample *s, double tick, struct ws_sbeet_outcome *ret)
{
    const struct ws_policy_ops *ops = ws_policy_find("sbeet-mg");
    struct ws_machine_options o = {.duration = DURATION_MS, .tick = tick};
    double best = INFINITY;
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t begin = ws_clock_ns();
        if (ws_sbeet_set_run(ret, &s->set, ops, NULL, &o))
            stop("the simulation failed");
        best = fmin(best, (double)(ws_clock_ns() - begin) / 1e9);
        if (i + 1 < ROUNDS)
            ws_sbeet_outcome_deinit(ret);
    }
    return best;
}

static void put_set(FILE *f, const struct sample *s, int i)
{
    fprintf(f, "{\"id\":\"%d\",\"duration_ms\":%d,\"tasks\":[", i, DURATION_MS);
    for (int k = 0; k < s->set.system.n_tasks; k++)
        fprintf(f, "%s{\"app\":%d,\"period_ms\":%.17g,\"phi_ms\":%.17g}", k ? "," : "",
                s->tasks[k].app, s->tasks[k].period, s->tasks[k].offset);
    fprintf(f, "]}\n");
}

/* Return: whether Python ran. */
static bool run_python(struct sample *sets)
{
    char path[] = "/tmp/bench_sim.XXXXXX", command[1024], line[512];
    int fd = mkstemp(path);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    if (!f)
        return false;
    for (int i = 0; i < N_SETS; i++)
        put_set(f, &sets[i], i);
    fclose(f);
    snprintf(command, sizeof(command),
             "python3 '%s/bench/sbeet_loop.py' '%s/models/measured.def' < %s", WS_SRCDIR, WS_SRCDIR,
             path);
    FILE *p = popen(command, "r");
    int n = 0;
    for (; p && n < N_SETS && fgets(line, sizeof(line), p); n++) {
        uint64_t released, missed;
        double energy_j, seconds;
        if (sscanf(line,
                   "{\"id\": \"%*d\", \"released\": %" SCNu64 ", \"missed\": %" SCNu64
                   ", \"energy_J\": %lf, \"seconds\": %lf",
                   &released, &missed, &energy_j, &seconds) != 4)
            break;
        if (released != sets[n].released || missed != sets[n].missed ||
            fabs(energy_j - sets[n].energy_j) > 1e-4)
            stop("Python's results are others");
        sets[n].python_s = seconds;
    }
    if (p)
        pclose(p);
    unlink(path);
    return n == N_SETS;
}

int main(void)
{
    static struct sample sets[N_SETS];
    struct ws_gpus gpus;
    char error[160];
    double python = 0, ours = 0;
    if (ws_gpus_parse(&gpus, "rtx3070@24,t400", error, sizeof(error)))
        stop(error);
    for (int i = 0; i < N_SETS; i++) {
        sets[i].util = 0.4 + 0.4 * (i / 2);
        struct ws_gen_sbeet g = ws_gen_sbeet_reference(sets[i].util, i);
        struct ws_sbeet_outcome o;
        if (ws_gen_sbeet(&g, sets[i].tasks) ||
            ws_sbeet_set_make(&sets[i].set, &gpus, sets[i].tasks, g.n_tasks, false, error,
                              sizeof(error)))
            stop("no task sets");
        sets[i].events_s = run(&sets[i], 0, &o);
        ws_sbeet_outcome_deinit(&o);
        sets[i].ticks_s = run(&sets[i], 1, &o);
        sets[i].released = o.r.n_released;
        sets[i].missed = o.r.n_late + o.r.n_skipped;
        sets[i].energy_j = o.r.energy / 1000;
        ws_sbeet_outcome_deinit(&o);
    }
    bool compared = run_python(sets);
    printf("sbeet-mg, rtx3070@24 and t400, %d s: time of one run\n"
           "%6s %9s %8s %12s %12s %12s %10s\n",
           DURATION_MS / 1000, "U", "jobs", "missed", "events us", "ticks us", "Python ms",
           "ratio");
    for (int i = 0; i < N_SETS; i++) {
        printf("%6.1f %9" PRIu64 " %8" PRIu64 " %12.1f %12.1f ", sets[i].util, sets[i].released,
               sets[i].missed, sets[i].events_s * 1e6, sets[i].ticks_s * 1e6);
        if (compared)
            printf("%12.1f %10.0f\n", sets[i].python_s * 1e3, sets[i].python_s / sets[i].ticks_s);
        else
            printf("%12s %10s\n", "-", "-");
        python += sets[i].python_s;
        ours += sets[i].ticks_s;
        ws_sbeet_set_deinit(&sets[i].set);
    }
    if (compared)
        printf("all: Python %.2f s, ticks %.2f ms: %.0f times\n", python, ours * 1e3,
               python / ours);
    ws_gpus_deinit(&gpus);
    return 0;
}
