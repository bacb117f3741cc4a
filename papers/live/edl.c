// SPDX-License-Identifier: Apache-2.0
/* Voltage, clocks and sleep under deadlines, live: three periodic programs with slack on two GTX
 * 1080 Ti, under EDL and our own policy with and without DVFS and under a policy that uses neither.
 * The energy of a job while it runs is compared with models/dvfs, with the parameters that the
 * daemon assumes of programs that nobody has measured (it knows a job's time, but not how the time
 * depends on the clocks). */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "cli/cli.h"
#include "papers/experiments/experiment.h"
#include "papers/live/live.h"
#include "models/dvfs.h"

enum { PROGRAMS = 3, GPUS = 2, BLOCKS = 28 };
#define PERIOD_MS   6.0
#define DEADLINE_MS 3.0
#define TIME_SCALE  50.0
/* As the daemon assumes: parts of a busy GPU's power that go with the memory clock, of a job's
 * time that go with the core clock. */
#define MEMORY_WATTS 0.1
#define CORE_BOUND   0.8

struct edl_outcome {
    double energy_mj, active_mj, busy_ms; /* all; while kernels ran; how long that was */
    int released, missed, skipped;        /* skipped: of the released ones, those that never ran */
};
static const struct {
    const char *label, *policy, *options;
} ways[] = {{"EDL", "edl", NULL},
            {"EDL without DVFS", "edl", "\"dvfs=no\""},
            {"fifo", "fifo", NULL},
            {"wattshare with DVFS", "wattshare", "\"dvfs=yes\""},
            {"wattshare", "wattshare", NULL}};
enum { EDL_DVFS, EDL_FIXED, OWN_DVFS = 3, OWN_FIXED };
enum { WAYS = sizeof(ways) / sizeof(*ways) };

static int run_way(struct ws_experiment_run *x, int way, double duration_ms,
                   struct edl_outcome *ret)
{
    struct ws_live l;
    char log[4096], tasks[512];
    snprintf(log, sizeof(log), "%s/%s.log", x->folder, x->name);
    snprintf(tasks, sizeof(tasks),
             "slots = 1\ntask job {\n priority = 1\n period_ms = %g\n deadline_ms = %g\n}\n",
             PERIOD_MS, DEADLINE_MS);
    struct ws_live_wish wish = {.gpus = "gtx1080ti,gtx1080ti",
                                .policy = ways[way].policy,
                                .options = ways[way].options,
                                .tasks = tasks,
                                .time_scale = TIME_SCALE,
                                .log = log};
    int r = ws_live_start(&l, &wish);
    for (int i = 0; i < PROGRAMS && !r; i++)
        r = ws_live_addf(&l, "job",
                         "montecarlo --blocks %d --length 10000 --seed %d --period-ms %g "
                         "--deadline-ms %g --offset-ms %g --for-ms %g --warm 2",
                         BLOCKS, i + 1, PERIOD_MS, DEADLINE_MS, i * 2.0, duration_ms) < 0
                ? -1
                : 0;
    if (!r)
        r = ws_live_run(&l, 300);
    if (!r) {
        *ret = (struct edl_outcome){0};
        for (int i = 0; i < GPUS; i++) {
            const struct ws_live_counters *a = &l.before[i], *b = &l.after[i];
            double idle_mj = b->idle_mj - a->idle_mj,
                   active_mj = b->energy_mj - a->energy_mj - idle_mj;
            ret->busy_ms += b->busy_ms - a->busy_ms;
            ret->active_mj += active_mj;
            /* The counters run until they are read, so idle energy is scaled to the duration. */
            ret->energy_mj += active_mj + idle_mj * duration_ms / (b->now_ms - a->now_ms);
        }
        for (int i = 0; i < PROGRAMS; i++) {
            ret->released += l.programs[i].released;
            ret->missed += l.programs[i].missed;
            ret->skipped += l.programs[i].skipped;
        }
    }
    ws_live_stop(&l);
    return r;
}

/* Energy and time of a job with DVFS, as shares of those without. */
struct edl_saving {
    double energy, time;
};

/* What models/dvfs says of a job that takes @ms at the default and then draws @busy_w above static
 * power. The setting is the one of least energy as the daemon assumes; @ret_true is what the same
 * setting gives if all of the time goes with the core clock, as that of Monte Carlo does. */
static int predict(const struct ws_gpu_spec *spec, double ms, double busy_w,
                   struct edl_saving *ret_assumed, struct edl_saving *ret_true)
{
    struct ws_dvfs_task t = {.p0 = spec->static_mw / 1e3,
                             .gamma = MEMORY_WATTS * busy_w,
                             .c = (1 - MEMORY_WATTS) * busy_w,
                             .d = ms,
                             .delta = CORE_BOUND};
    struct ws_dvfs_point best, usual = ws_dvfs_default(&t);
    int r = ws_dvfs_optimum(&t, &ws_dvfs_wide, DEADLINE_MS, &best);
    if (r)
        return -EINVAL;
    *ret_assumed = (struct edl_saving){best.e / usual.e, best.t / usual.t};
    t.delta = 1;
    struct ws_dvfs_point is = ws_dvfs_at(&t, best.v, best.fc, best.fm);
    *ret_true = (struct edl_saving){is.e / usual.e, is.t / usual.t};
    return 0;
}

static int n_run(const struct edl_outcome *o)
{
    return o->released - o->skipped;
}

static void put_savings(struct ws_experiment_run *x, const struct edl_outcome *with,
                        const struct edl_outcome *without, const struct edl_saving *assumed,
                        const struct edl_saving *all_core)
{
    struct edl_saving live = {with->active_mj / n_run(with) / (without->active_mj / n_run(without)),
                              with->busy_ms / n_run(with) / (without->busy_ms / n_run(without))};
    ws_experiment_compare(x, "a job's energy with DVFS, of that without", assumed->energy,
                          live.energy, 0.05, WS_SPREAD_RELATIVE,
                          "\"paper\": models/dvfs as the daemon assumes: 0.8 of the time goes with "
                          "the core clock");
    ws_experiment_compare(x, "the same, if all of the time goes with it", all_core->energy,
                          live.energy, 0.05, WS_SPREAD_RELATIVE,
                          "models/dvfs at the same setting; so it is for Monte Carlo");
    ws_experiment_compare(x, "a job's time with DVFS, of that without", assumed->time, live.time,
                          0.1, WS_SPREAD_RELATIVE, "as the daemon assumes");
    ws_experiment_compare(x, "the same, if all of it goes with the core clock", all_core->time,
                          live.time, 0.1, WS_SPREAD_RELATIVE, "");
}

static int run_edl(struct ws_experiment_run *x)
{
    double duration_ms = x->quick ? 24 : 96;
    struct edl_saving assumed, all_core;
    struct ws_gpu_spec spec;
    struct edl_outcome o[WAYS];
    ws_experiment_gpus("gtx1080ti");
    int r = ws_live_gpu("gtx1080ti", &spec);
    FILE *f = r ? NULL : ws_experiment_csv(x, "live-edl");
    if (!f)
        return -EIO;
    fprintf(f, "policy,energy (mJ),energy while kernels ran (mJ),busy (ms),jobs,missed\n");
    for (int i = 0; i < WAYS && !r; i++) {
        r = run_way(x, i, duration_ms, &o[i]);
        if (!r)
            fprintf(f, "%s,%.3f,%.3f,%.4f,%d,%d\n", ways[i].label, o[i].energy_mj, o[i].active_mj,
                    o[i].busy_ms, o[i].released, o[i].missed);
    }
    if (fclose(f) && !r)
        r = -EIO;
    if (!r) /* the power is the meter's, as for the daemon */
        r = predict(&spec, o[EDL_FIXED].busy_ms / n_run(&o[EDL_FIXED]),
                    o[EDL_FIXED].active_mj / o[EDL_FIXED].busy_ms - spec.static_mw / 1e3, &assumed,
                    &all_core);
    if (r)
        return -EIO;
    for (int i = 0; i < WAYS; i++) {
        char text[96], note[96];
        snprintf(text, sizeof(text), "%s: missed (%%)", ways[i].label);
        snprintf(note, sizeof(note), "%d jobs; %.1f mJ in %g ms", o[i].released, o[i].energy_mj,
                 duration_ms);
        ws_experiment_compare(x, text, 0, 100.0 * o[i].missed / o[i].released, 2,
                              WS_SPREAD_ABSOLUTE, note);
    }
    put_savings(x, &o[EDL_DVFS], &o[EDL_FIXED], &assumed, &all_core);
    ws_experiment_claim(x, "with DVFS EDL takes less energy",
                        o[EDL_DVFS].energy_mj < o[EDL_FIXED].energy_mj, "");
    ws_experiment_claim(x, "with DVFS wattshare takes less energy",
                        o[OWN_DVFS].energy_mj < o[OWN_FIXED].energy_mj, "");
    ws_experiment_plot(x, "live-edl",
                       "set style data histograms\nset style fill solid 0.7\nset ylabel 'mJ'\nplot "
                       "'live-edl.csv' using 2:xtic(1), '' using 3");
    return 0;
}

const struct ws_experiment ws_experiment_live_edl = {
    "live-edl", "Mei et al., Section 4",
    "deadlines with slack on two GTX 1080 Ti: energy with and without DVFS", run_edl};
