// SPDX-License-Identifier: Apache-2.0
/* The kernels of sBEET-mg as software GPUs run them that follow the authors' measurements (timing =
 * measured): a program launches a kernel of the profile's name on each number of SMs, and the
 * device's time and the GPU's energy are held against what was measured. Copies and everything
 * between program and device are in it. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/cli.h"
#include "models/measured.h"
#include "models/store.h"
#include "papers/experiments/experiment.h"
#include "papers/live/live.h"

#define WANTED 3

/* ---- the store that the daemon follows ---- */

static int put_kernel(struct ws_store *s, const struct ws_measured_kernel *k, int percent)
{
    struct ws_profile p = WS_PROFILE_NULL;
    char hash[WS_PROFILE_HASH_BYTES], share[16] = "";
    const double times = percent / 100.0;
    if (percent != 100)
        snprintf(share, sizeof(share), "_%d", percent);
    snprintf(hash, sizeof(hash), "sbeet-mg:%s%s", k->name, share);
    snprintf(p.name, sizeof(p.name), "%s%s", k->name, share);
    int r = ws_profile_key_set(&p.key, hash, k->gpu, "");
    for (int m = 1; !r && m <= k->cost.n_sm; m++) {
        struct ws_profile_point q = {.n_sms = (uint32_t)m,
                                     .n_runs = 1,
                                     .time_max_ms = times * k->cost.wcet[m - 1],
                                     .time_mean_ms = times * k->mean_ms[m - 1],
                                     .time_min_ms = times * k->min_ms[m - 1],
                                     .n_powers = 1,
                                     .power_w = k->cost.power_w[m - 1]};
        r = ws_profile_put_point(&p, &q);
    }
    if (!r)
        r = ws_store_put(s, &p);
    ws_profile_deinit(&p);
    return r;
}

int ws_live_measured_store(const char *path, const int *percents, int n_percents)
{
    static const char *const gpus[] = {"rtx3070", "t400"};
    struct ws_store *s = NULL;
    (void)unlink(path);
    int r = ws_store_open(&s, path, WS_STORE_WRITE, NULL);
    for (size_t g = 0; !r && g < WS_ARRAY_SIZE(gpus); g++)
        for (int app = 0; !r && app < WS_MEASURED_APPS; app++)
            for (int i = -1; !r && i < n_percents; i++)
                r = put_kernel(s, ws_measured_app(gpus[g], app), i < 0 ? 100 : percents[i]);
    ws_store_close(s);
    if (r)
        ws_cli_error("%s: the measured kernels cannot be stored", path);
    return r ? -1 : 0;
}

/* ---- one launch ---- */

static int launch(const char *store, const struct ws_measured_kernel *k, int n_sms, double *ret_ms,
                  double *ret_w)
{
    struct ws_live l;
    struct ws_live_wish wish = {.gpus = k->gpu, .time_scale = 1, .follow = store};
    char text[16];
    snprintf(text, sizeof(text), "%d", n_sms);
    if (setenv(WS_ENV_SMS, text, 1))
        return -1;
    int r = ws_live_start(&l, &wish);
    if (!r)
        r = ws_live_addf(&l, k->name, "steps --as %s --blocks 92 --length 32 --jobs 1", k->name) <
            0;
    if (!r)
        r = ws_live_run(&l, 60);
    const struct ws_live_counters *a = &l.before[0], *b = &l.after[0];
    double mj = b->energy_mj - a->energy_mj - (b->idle_mj - a->idle_mj);
    *ret_ms = b->busy_ms - a->busy_ms;
    *ret_w = mj / *ret_ms;
    ws_live_stop(&l);
    unsetenv(WS_ENV_SMS);
    return r ? -1 : 0;
}

int ws_live_measured_profile(const char *path)
{
    static const char *const gpus[] = {"rtx3070", "t400"};
    double ms, w;
    for (size_t g = 0; g < WS_ARRAY_SIZE(gpus); g++)
        for (int app = 0; app < WS_MEASURED_APPS; app++) {
            const struct ws_measured_kernel *k = ws_measured_app(gpus[g], app);
            for (int m = 1, next; m <= k->cost.n_sm; m = next) {
                next = m < k->cost.n_sm ? WS_MIN(2 * m, k->cost.n_sm) : m + 1;
                if (launch(path, k, m, &ms, &w))
                    return -1;
            }
        }
    return 0;
}

/* ---- the experiment ---- */

struct sums {
    double time, power, worst_time, worst_power;
    int n;
};

static int run_kernel(const char *store, const struct ws_measured_kernel *k, bool quick, FILE *csv,
                      struct sums *s)
{
    int all = k->cost.n_sm, r = 0;
    for (int m = 1; !r && m <= all; m++) {
        double ms, w;
        if (quick && m != 1 && m != all / 2 && m != all)
            continue;
        r = launch(store, k, m, &ms, &w);
        if (r)
            return r;
        double time = 100 * fabs(ms / k->mean_ms[m - 1] - 1);
        double power = 100 * fabs(w / k->cost.power_w[m - 1] - 1);
        fprintf(csv, "%s,%s,%d,%.6g,%.6g,%.6g,%.6g\n", k->gpu, k->name, m, k->mean_ms[m - 1], ms,
                k->cost.power_w[m - 1], w);
        fflush(csv);
        s->time += time;
        s->power += power;
        s->worst_time = fmax(s->worst_time, time);
        s->worst_power = fmax(s->worst_power, power);
        s->n++;
    }
    return 0;
}

static int run_gpu(struct ws_experiment_run *x, const char *store, const char *gpu, FILE *csv)
{
    struct sums s = {0};
    char what[80], note[96];
    for (int app = 0; app < (x->quick ? 3 : WS_MEASURED_APPS); app++)
        if (run_kernel(store, ws_measured_app(gpu, app), x->quick, csv, &s))
            return -EIO;
    snprintf(what, sizeof(what), "%s: time beside the authors', mean (%%)", gpu);
    snprintf(note, sizeof(note), "%d numbers of SMs and kernels; worst %.2f", s.n, s.worst_time);
    ws_experiment_at_most(x, what, WANTED, s.time / s.n, note);
    snprintf(what, sizeof(what), "%s: power beside the authors', mean (%%)", gpu);
    snprintf(note, sizeof(note), "%d numbers of SMs and kernels; worst %.2f", s.n, s.worst_power);
    ws_experiment_at_most(x, what, WANTED, s.power / s.n, note);
    return 0;
}

static int run_measured(struct ws_experiment_run *x)
{
    char store[4096];
    snprintf(store, sizeof(store), "%s/live-measured.db", x->folder);
    FILE *csv = ws_experiment_csv(x, "live-measured");
    if (!csv)
        return -EIO;
    fprintf(csv, "gpu,kernel,sms,measured_ms,live_ms,measured_w,live_w\n");
    ws_experiment_gpus("rtx3070,t400");
    puts("timing = measured: kernels take the times and powers that the authors measured");
    int r = ws_live_measured_store(store, NULL, 0) ? -EIO : 0;
    if (!r)
        r = run_gpu(x, store, "rtx3070", csv);
    if (!r)
        r = run_gpu(x, store, "t400", csv);
    if (fclose(csv) && !r)
        r = -EIO;
    if (!r)
        ws_experiment_plot(x, "live-measured",
                           "set logscale xy\nset xlabel 'measured (ms)'\nset ylabel 'live (ms)'\n"
                           "plot 'live-measured.csv' using 4:5 with points, x notitle");
    return r;
}

const struct ws_experiment ws_experiment_live_measured = {
    "live-measured", "sBEET-mg, profiles",
    "kernels that follow the authors' times and powers, on each number of SMs", run_measured};
