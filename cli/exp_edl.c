// SPDX-License-Identifier: Apache-2.0
/* Experiments of Mei et al. (models/dvfs.h): Table 3 and Figs. 4 to 13. The runs are of the paper's text (Algorithm 3 groups pairs, a
 * queued task starts when its pair is free). The paper's own figures for more than one pair a server come from a program that opens
 * whole servers and never runs Algorithm 3 (doc/edl.md), so they are compared with runs of both forms ("grouped", "whole").
 * Energies are in 10^6 W·slot, which the paper calls MJ. Task sets come in two kinds: u uniform in (0, 1) as the text says ("u01"), and
 * in the range that the released program draws from ("release"). */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/cli.h"
#include "cli/experiment.h"
#include "cli/parallel.h"
#include "sim/edl_apps.h"
#include "sim/edl_study.h"

enum { PAPER_SETS = 100, THETA_N = 5, L_N = 5, MAX_CELLS = 80, U_N = 8 };
static const double thetas[THETA_N] = {1, 0.95, 0.9, 0.85, 0.8};
static const int ls[L_N] = {1, 2, 4, 8, 16};
static const char *const dists[2] = {"u01", "release"};
static const char whole_servers[] =
    "the paper's program opens whole servers, and Algorithm 3 is never run";
static const char *const forms[2] = {"grouped", "whole"};
static const char *const form_notes[2] = {whole_servers, "as the paper's program opens servers"};

/* ---- studies ---- */

struct grid {
    struct ws_edl_study s;
    struct ws_edl_cell cells[MAX_CELLS];
};

/* @whole: servers=whole, the way the paper's program opens servers. */
static void add_cell(struct grid *g, const char *policy, bool dvfs, double theta, int l, bool whole)
{
    g->cells[g->s.n_cells++] = (struct ws_edl_cell){policy, dvfs, theta, l, whole};
}

static struct ws_edl_means get(const struct grid *g, const char *policy, bool dvfs, double theta,
                               int l, bool whole)
{
    for (int i = 0; i < g->s.n_cells; i++)
        if (!strcmp(g->cells[i].policy, policy) && g->cells[i].dvfs == dvfs &&
            g->cells[i].theta == theta && g->cells[i].l == l && g->cells[i].whole == whole)
            return ws_edl_study_means(&g->s, i);
    return (struct ws_edl_means){.e_total = NAN, .e_run = NAN, .e_idle = NAN, .n_pairs = NAN};
}

/* Runs @g's cells over the sets. @u: 0: a day online. Negative: said. */
static int run(struct ws_experiment_run *x, struct grid *g, double u, bool release)
{
    char what[64];
    struct ws_progress progress;
    g->s.gen = u > 0 ? ws_gen_edl_offline : ws_gen_edl_online;
    g->s.gen.seed = x->seed;
    g->s.gen.u_initial = u > 0 ? u : g->s.gen.u_initial;
    if (release)
        ws_gen_edl_release_u(&g->s.gen);
    g->s.cells = g->cells;
    g->s.n_sets = (int)fmax(2, round(PAPER_SETS * x->scale));
    int r = ws_edl_study_init(&g->s);
    if (!r) {
        snprintf(what, sizeof(what), "%s %s, U = %g", x->name, dists[release],
                 u > 0 ? u : g->s.gen.u_initial + g->s.gen.u_online);
        ws_progress_start(&progress, what, (uint64_t)g->s.n_sets);
        ws_parallel_for((size_t)g->s.n_sets, x->n_jobs, ws_edl_study_set, &g->s, &progress);
        ws_progress_end(&progress);
        r = g->s.error;
    }
    if (r)
        ws_cli_error("%s: the simulation failed: %s", x->name,
                     r < 0 ? strerror(-r) : "a policy decided what can't be");
    return r ? -EIO : 0;
}

/* Both kinds of sets at each utilisation: [dist][u]. */
struct offline {
    struct grid g[2][U_N];
};

static double u_of(int i)
{
    return (i + 1) * 2 / 10.0;
}

static struct offline *run_offline(struct ws_experiment_run *x, void (*cells)(struct grid *g))
{
    struct offline *o = ws_alloc(sizeof(*o));
    int r = o ? 0 : -ENOMEM;
    for (int d = 0; d < 2 && !r; d++)
        for (int i = 0; i < U_N && !r; i++) {
            cells(&o->g[d][i]);
            r = run(x, &o->g[d][i], u_of(i), d);
        }
    if (!r)
        return o;
    for (int d = 0; o && d < 2; d++)
        for (int i = 0; i < U_N; i++)
            ws_edl_study_deinit(&o->g[d][i].s);
    free(o);
    return NULL;
}

static void free_offline(struct offline *o)
{
    for (int d = 0; d < 2; d++)
        for (int i = 0; i < U_N; i++)
            ws_edl_study_deinit(&o->g[d][i].s);
    free(o);
}

static int close_csv(struct ws_experiment_run *x, FILE *f)
{
    if (!ferror(f) && !fclose(f))
        return 0;
    ws_cli_error("%s: writing: %s", x->folder, strerror(errno));
    return -EIO;
}

static double saving(double e, double base)
{
    return 100 * (1 - e / base);
}

/* ---- Table 3 ---- */

static int run_table3(struct ws_experiment_run *x)
{
    static const struct ws_cluster_task tasks[] = {{1, 0, 50, {100, 0, 200, 5, 25, 0}},
                                                   {2, 0, 36, {100, 0, 200, 5, 25, 1}},
                                                   {3, 0, 60, {100, 0, 200, 5, 25, 0.5}},
                                                   {4, 0, 100, {100, 0, 200, 5, 25, 0.8}},
                                                   {5, 0, 300, {100, 0, 200, 5, 25, 0.2}}};
    static const double paper[][2] = {
        {125.23, 25.83}, {176.31, 36}, {135.20, 35.44}, {141.39, 39.10}, {127.60, 30.86}};
    enum { N = WS_ARRAY_SIZE(tasks) };
    const struct ws_cluster cluster = {.n_pairs = 10, .pairs_per_server = 2, .idle_w = 30};
    double total[2];
    FILE *f = ws_experiment_csv(x, "edl-table3");
    if (!f)
        return -EIO;
    fprintf(f, "theta,task,delta,d,V,fc,fm,P_hat,t_hat,t_min,pair,start,length,power,energy\n");
    for (int k = 0; k < 2; k++) {
        struct ws_cluster_job jobs[N];
        struct ws_cluster_result r;
        const char *options[] = {k ? "theta=1" : "theta=0.9", "rho=0", "slot=0", NULL};
        char error[200] = "";
        if (ws_cluster_run(&cluster, tasks, N, &ws_policy_edl, options, jobs, &r, error,
                           sizeof(error))) {
            ws_cli_error("%s: %s", x->name, error);
            fclose(f);
            return -EIO;
        }
        total[k] = r.e_total;
        for (int i = 0; i < N; i++) {
            struct ws_dvfs_point p;
            char name[40];
            if (ws_dvfs_optimum(&tasks[i].dvfs, &ws_dvfs_wide, tasks[i].deadline, &p))
                continue;
            fprintf(f, "%g,J%d,%g,%g,%.6f,%.6f,%.6f,%.4f,%.4f,%.4f,%d,%.4f,%.4f,%.4f,%.3f\n",
                    k ? 1 : 0.9, i + 1, tasks[i].dvfs.delta, tasks[i].deadline, p.v, p.fc, p.fm,
                    p.p, p.t, ws_dvfs_t_min(&tasks[i].dvfs, &ws_dvfs_wide), jobs[i].pair,
                    jobs[i].start, jobs[i].point.t, jobs[i].point.p, jobs[i].point.e);
            if (k)
                continue;
            snprintf(name, sizeof(name), "J%d power, W", i + 1);
            ws_experiment_compare(
                x, name, paper[i][0], p.p, 0.006, WS_SPREAD_ABSOLUTE,
                i ? "" : "a solver in V stops short of V = 0.5, where g1 has infinite slope");
            snprintf(name, sizeof(name), "J%d length", i + 1);
            ws_experiment_compare(x, name, paper[i][1], p.t, 0.006, WS_SPREAD_ABSOLUTE, "");
        }
        if (!k) {
            ws_experiment_compare(x, "J3 readjusted length, theta = 0.9", 34.17, jobs[2].point.t,
                                  0.006, WS_SPREAD_ABSOLUTE, "");
            ws_experiment_claim(x, "theta = 0.9: S11(J2,J4) S12(J1,J3,J5)",
                                jobs[1].pair == jobs[3].pair && jobs[0].pair == jobs[2].pair &&
                                    jobs[0].pair == jobs[4].pair && jobs[0].pair != jobs[1].pair,
                                "");
        } else {
            ws_experiment_claim(x, "theta = 1: S11(J2) S12(J1,J4) S21(J3,J5)",
                                jobs[0].pair == jobs[3].pair && jobs[2].pair == jobs[4].pair &&
                                    jobs[1].pair != jobs[0].pair && jobs[1].pair != jobs[2].pair,
                                "");
        }
    }
    ws_experiment_claim(x, "theta = 0.9 takes less than theta = 1", total[0] < total[1],
                        "24338 against 24955; holds only if the empty slot counts as idle");
    return close_csv(x, f);
}

/* ---- Fig. 4 ---- */

static int run_fig4(struct ws_experiment_run *x)
{
    FILE *f = ws_experiment_csv(x, "edl-fig4");
    double sum[2][2][2] = {{{0}}}, n[2] = {0}; /* gpu, interval, divided by 13 */
    if (!f)
        return -EIO;
    fprintf(f, "index,gpu,app,interval,div13,V,fc,fm,t_ms,W,mJ,saving_pct\n");
    for (int i = 0; i < ws_edl_n_apps; i++) {
        const struct ws_edl_app *a = &ws_edl_apps[i];
        n[a->gpu]++;
        for (int k = 0; k < 4; k++) {
            bool narrow = k & 1, divided = k & 2;
            struct ws_dvfs_task t = a->dvfs;
            struct ws_dvfs_point p;
            t.p0 /= divided ? 13 : 1;
            t.gamma /= divided ? 13 : 1;
            if (ws_dvfs_optimum(&t, narrow ? &ws_dvfs_narrow : &ws_dvfs_wide, INFINITY, &p))
                continue;
            double s = saving(p.e, ws_dvfs_default(&t).e);
            sum[a->gpu][narrow][divided] += s;
            fprintf(f, "%g,%s,%s,%s,%d,%.6f,%.6f,%.6f,%.6f,%.4f,%.4f,%.4f\n", n[a->gpu],
                    a->gpu == WS_EDL_RTX2070S ? "RTX2070S" : "GTX1080Ti", a->name,
                    narrow ? "narrow" : "wide", divided, p.v, p.fc, p.fm, p.t, p.p, p.e, s);
        }
    }
    enum { GTX = WS_EDL_GTX1080TI, RTX = WS_EDL_RTX2070S };
    ws_experiment_compare(x, "mean saving, Wide, %", 36.4, sum[RTX][0][1] / n[RTX], 0.5,
                          WS_SPREAD_ABSOLUTE,
                          "RTX 2070 S with P0 and gamma divided by 13, as the release draws it");
    ws_experiment_compare(x, "mean saving, Wide, GTX 1080 Ti as measured, %", 36.4,
                          sum[GTX][0][0] / n[GTX], 0.5, WS_SPREAD_ABSOLUTE,
                          "the platform the text names, without that division");
    ws_experiment_compare(x, "mean saving, Wide, RTX 2070 S as measured, %", 36.4,
                          sum[RTX][0][0] / n[RTX], 0.5, WS_SPREAD_ABSOLUTE, "");
    ws_experiment_compare(x, "mean saving, Narrow, GTX 1080 Ti, %", 4.3, sum[GTX][1][0] / n[GTX],
                          0.1, WS_SPREAD_ABSOLUTE, "all 30 applications");
    int r = close_csv(x, f);
    ws_experiment_plot(
        x, "edl-fig4",
        "set style data points\nset xlabel 'application'\nset ylabel 'energy saved, %'\n"
        "plot 'edl-fig4.csv' using 1:(strcol(2) eq 'RTX2070S' && strcol(4) eq 'wide' && $5 == 1 ? "
        "$12 : NaN) title 'Wide (RTX 2070 S, P0 and gamma / 13)', '' using 1:(strcol(2) eq "
        "'GTX1080Ti' && strcol(4) eq 'narrow' && $5 == 0 ? $12 : NaN) title 'Narrow (GTX 1080 "
        "Ti)', "
        "'' using 1:(strcol(2) eq 'GTX1080Ti' && strcol(4) eq 'wide' && $5 == 0 ? $12 : NaN) title "
        "'Wide (GTX 1080 Ti as measured)'");
    return r;
}

/* ---- Figs. 5 to 9: offline ---- */

static const char *const names[4] = {"edl", "edf-bf", "edf-wf", "lpt-ff"};

static void cells_l1(struct grid *g)
{
    for (int a = 0; a < 4; a++)
        for (int dvfs = 0; dvfs < 2; dvfs++)
            add_cell(g, names[a], dvfs, 1, 1, false);
}

static int run_fig5(struct ws_experiment_run *x)
{
    struct offline *o = run_offline(x, cells_l1);
    FILE *f = o ? ws_experiment_csv(x, "edl-fig5") : NULL;
    double mean[2] = {0}, top[2][2];
    bool same = true;
    if (!f) {
        if (o)
            free_offline(o);
        return -EIO;
    }
    fprintf(f, "U,base_release,dvfs_release,saving_release_pct,base_u01,dvfs_u01,saving_u01_pct\n");
    for (int i = 0; i < U_N; i++) {
        fprintf(f, "%g", u_of(i));
        for (int d = 1; d >= 0; d--) {
            struct ws_edl_means b = get(&o->g[d][i], "edl", false, 1, 1, false),
                                m = get(&o->g[d][i], "edl", true, 1, 1, false);
            fprintf(f, ",%.5f,%.5f,%.4f", b.e_run / 1e6, m.e_run / 1e6, saving(m.e_run, b.e_run));
            mean[d] += saving(m.e_total, b.e_total) / U_N;
            top[d][0] = b.e_run / 1e6;
            top[d][1] = m.e_run / 1e6;
            for (int a = 1; a < 4; a++)
                same = same && fabs(get(&o->g[d][i], names[a], true, 1, 1, false).e_run - m.e_run) <
                                   1e-6 * m.e_run;
        }
        fputc('\n', f);
    }
    ws_experiment_compare(x, "U = 1.6 without DVFS", 96.98, top[1][0], 0.02, WS_SPREAD_RELATIVE,
                          "released CSV; release u");
    ws_experiment_compare(x, "U = 1.6 with DVFS", 64.41, top[1][1], 0.02, WS_SPREAD_RELATIVE,
                          "released CSV; release u");
    ws_experiment_compare(x, "saving, mean over U, release u, %", 33.5, mean[1], 0.5,
                          WS_SPREAD_ABSOLUTE, "");
    ws_experiment_compare(x, "saving, mean over U, u in (0,1), %", 33.5, mean[0], 0.5,
                          WS_SPREAD_ABSOLUTE, "");
    ws_experiment_claim(x, "run energy is the same for all four algorithms", same, "");
    int r = close_csv(x, f);
    ws_experiment_plot(
        x, "edl-fig5",
        "set datafile missing NaN\nset xlabel 'U'\nset ylabel '10^6 W slot'\nset y2label 'saved, "
        "%'\nset "
        "y2tics\nset ytics nomirror\nplot 'edl-fig5.csv' using 1:2 with linespoints, "
        "'' using 1:3 with linespoints, '' using 1:4 axes x1y2 with linespoints, '' "
        "using 1:7 axes x1y2 with linespoints");
    free_offline(o);
    return r;
}

static void cells_plain(struct grid *g)
{
    for (int a = 0; a < 4; a++)
        for (int k = 0; k < 2 * L_N; k++)
            add_cell(g, names[a], false, 1, ls[k % L_N], k / L_N);
}

/* One row for each kind of set, l and U, one column for each algorithm. */
static int offline_table(struct ws_experiment_run *x, const struct offline *o, const char *name,
                         double (*value)(const struct grid *g, const char *algo, int l))
{
    FILE *f = ws_experiment_csv(x, name);
    if (!f)
        return -EIO;
    fprintf(f, "u_dist,l,U,edl,edf-bf,edf-wf,lpt-ff\n");
    for (int d = 0; d < 2; d++)
        for (int l = 0; l < L_N; l++)
            for (int i = 0; i < U_N; i++) {
                fprintf(f, "%s,%d,%g", dists[d], ls[l], u_of(i));
                for (int a = 0; a < 4; a++)
                    fprintf(f, ",%.5f", value(&o->g[d][i], names[a], ls[l]));
                fputc('\n', f);
            }
    return close_csv(x, f);
}

static double normalised_as(const struct grid *g, const char *algo, int l, bool whole)
{
    return get(g, algo, false, 1, l, whole).e_total / get(g, algo, false, 1, 1, false).e_run;
}

static double normalised(const struct grid *g, const char *algo, int l)
{
    return normalised_as(g, algo, l, false);
}

static double normalised_whole(const struct grid *g, const char *algo, int l)
{
    return normalised_as(g, algo, l, true);
}

static int run_fig6(struct ws_experiment_run *x)
{
    struct offline *o = run_offline(x, cells_plain);
    if (!o)
        return -EIO;
    int r = offline_table(x, o, "edl-fig6", normalised);
    r = r ? r : offline_table(x, o, "edl-fig6-whole", normalised_whole);
    ws_experiment_compare(x, "idle of EDL, l = 16, U = 0.2, %, whole", 10.4,
                          100 * (normalised_whole(&o->g[1][0], "edl", 16) - 1), 1.5,
                          WS_SPREAD_ABSOLUTE, "released CSV; release u");
    const struct grid *low = &o->g[0][0];
    ws_experiment_compare(x, "idle of LPT-FF, l = 16, U = 0.2, % (u in (0,1))", 31,
                          100 * (normalised(low, "lpt-ff", 16) - 1), 3, WS_SPREAD_ABSOLUTE,
                          "neither form gives it; in the released figure LPT-FF idles least");
    bool least = true, fast = true;
    for (int i = 0; i < U_N; i++)
        for (int a = 1; a < 4; a++)
            least = least &&
                    normalised(&o->g[0][i], "edl", 16) <= normalised(&o->g[0][i], names[a], 16);
    fast = normalised(&o->g[0][U_N - 1], "edl", 16) < 1.005;
    ws_experiment_claim(x, "EDL idles least, l = 16 (u in (0,1))", least, "");
    ws_experiment_claim(x, "EDL's idle energy falls to zero fast, l = 16 (u in (0,1))", fast,
                        "below 0.5 % at U = 1.6");
    bool lpt = true;
    for (int a = 0; a < 3; a++)
        lpt = lpt && normalised(low, "lpt-ff", 16) >= normalised(low, names[a], 16);
    ws_experiment_claim(x, "LPT-FF idles most, l = 16, U = 0.2 (u in (0,1))", lpt,
                        "here EDF-BF and EDF-WF idle more");
    ws_experiment_plot(
        x, "edl-fig6",
        "set datafile missing NaN\nset xlabel 'U'\nset ylabel 'energy / base (l = 16, u in "
        "(0,1))'\nplot for [c=4:7] "
        "'edl-fig6.csv' using 3:(strcol(1) eq 'u01' && $2 == 16 ? column(c) : NaN) with "
        "linespoints");
    free_offline(o);
    return r;
}

static int run_fig7(struct ws_experiment_run *x)
{
    static const double paper[2][2][4] = {
        {{150.9, 127.8, 127.2, 206.7}, {184.2, 155.8, 156.7, 252.8}},
        {{1218.5, 990.8, 1000.1, 1670.4},
         {1492.8, 1236.2, 1242.9, 2080.2}}}; /* U, dvfs, algorithm */
    struct offline *o = run_offline(x, cells_l1);
    FILE *f = o ? ws_experiment_csv(x, "edl-fig7") : NULL;
    if (!f) {
        if (o)
            free_offline(o);
        return -EIO;
    }
    fprintf(f, "u_dist,U,edl,edf-bf,edf-wf,lpt-ff,edl-d,edf-bf-d,edf-wf-d,lpt-ff-d\n");
    for (int d = 0; d < 2; d++)
        for (int i = 0; i < U_N; i++) {
            fprintf(f, "%s,%g", dists[d], u_of(i));
            for (int k = 0; k < 8; k++)
                fprintf(f, ",%.2f", get(&o->g[d][i], names[k % 4], k / 4, 1, 1, false).n_pairs);
            fputc('\n', f);
        }
    for (int k = 0; k < 16; k++) {
        char name[60];
        snprintf(name, sizeof(name), "pairs, U = %g, %s%s", k < 8 ? 0.2 : 1.6, names[k % 4],
                 k / 4 % 2 ? " with DVFS" : "");
        ws_experiment_compare(
            x, name, paper[k / 8][k / 4 % 2][k % 4],
            get(&o->g[1][k < 8 ? 0 : U_N - 1], names[k % 4], k / 4 % 2, 1, 1, false).n_pairs, 0.05,
            WS_SPREAD_RELATIVE, "released CSV; release u");
    }
    const struct grid *high = &o->g[1][U_N - 1];
    double p[4];
    for (int a = 0; a < 4; a++)
        p[a] = get(high, names[a], false, 1, 1, false).n_pairs;
    ws_experiment_claim(x, "LPT-FF > EDL > EDF-WF >= EDF-BF at U = 1.6",
                        p[3] > p[0] && p[0] > p[2] && p[2] >= p[1], "");
    int r = close_csv(x, f);
    ws_experiment_plot(x, "edl-fig7",
                       "set datafile missing NaN\nset xlabel 'U'\nset ylabel 'pairs (l = 1)'\nplot "
                       "for [c=3:10] 'edl-fig7.csv' "
                       "using 2:(strcol(1) eq 'release' ? column(c) : NaN) with linespoints");
    free_offline(o);
    return r;
}

static void cells_dvfs(struct grid *g)
{
    add_cell(g, "edl", false, 1, 1, false);
    for (int whole = 0; whole < 2; whole++)
        for (int a = 0; a < 4; a++)
            for (int l = 0; l < L_N; l++)
                add_cell(g, names[a], true, 1, ls[l], whole);
}

static double saved_as(const struct grid *g, const char *algo, double theta, int l, bool whole)
{
    return saving(get(g, algo, true, theta, l, whole).e_total,
                  get(g, "edl", false, 1, 1, false).e_total);
}

static double saved(const struct grid *g, const char *algo, int l)
{
    return saved_as(g, algo, 1, l, false);
}

static double saved_whole(const struct grid *g, const char *algo, int l)
{
    return saved_as(g, algo, 1, l, true);
}

static int run_fig8(struct ws_experiment_run *x)
{
    static const double paper[4] = {14.9, 20, 5.5, 26};
    struct offline *o = run_offline(x, cells_dvfs);
    if (!o)
        return -EIO;
    int r = offline_table(x, o, "edl-fig8", saved);
    r = r ? r : offline_table(x, o, "edl-fig8-whole", saved_whole);
    for (int k = 0; k < 8; k++) {
        char name[80];
        snprintf(name, sizeof(name), "saving, l = 16, U = 1.6, %s, %s, %%", names[k % 4],
                 forms[k / 4]);
        ws_experiment_compare(
            x, name, paper[k % 4], saved_as(&o->g[1][U_N - 1], names[k % 4], 1, 16, k / 4), 1,
            WS_SPREAD_ABSOLUTE,
            k == 5 ? "its load isn't defined in the paper, and the program's differs"
                   : form_notes[k / 4]);
    }
    double at_1 = saved(&o->g[1][U_N - 1], "edl", 1);
    ws_experiment_compare(x, "saving, l = 1, U = 1.6, edl with DVFS, %", 33.6, at_1, 0.5,
                          WS_SPREAD_ABSOLUTE, "released CSV");
    ws_experiment_plot(
        x, "edl-fig8",
        "set datafile missing NaN\nset xlabel 'U'\nset ylabel 'saved, % (l = 16, release u)'\nplot "
        "for [c=4:7] "
        "'edl-fig8.csv' "
        "using 3:(strcol(1) eq 'release' && $2 == 16 ? column(c) : NaN) with linespoints, for "
        "[c=4:7] "
        "'edl-fig8-whole.csv' using 3:(strcol(1) eq 'release' && $2 == 16 ? column(c) : NaN) with "
        "linespoints dashtype 2 title columnhead(c).' whole'");
    free_offline(o);
    return r;
}

static void cells_theta(struct grid *g)
{
    add_cell(g, "edl", false, 1, 1, false);
    for (int k = 0; k < 2 * L_N; k++) {
        for (int t = 0; t < THETA_N; t++)
            add_cell(g, "edl", true, thetas[t], ls[k % L_N], k / L_N);
        add_cell(g, "lpt-ff", true, 1, ls[k % L_N], k / L_N);
    }
}

/* One line of Fig. 9; what it shows is gathered in @apart (for l <= 4, how much less than LPT-FF) and @gain (for l = 16). */
static void fig9_row(FILE *f, const struct grid *g, int l, bool whole, double *apart, double *gain)
{
    double lpt = saved_as(g, "lpt-ff", 1, l, whole), one = saved_as(g, "edl", 1, l, whole);
    for (int t = 0; t < THETA_N; t++) {
        double s = saved_as(g, "edl", thetas[t], l, whole);
        fprintf(f, ",%.4f", s);
        *apart = l <= 4 ? fmax(*apart, lpt - s) : *apart;
        *gain = l == 16 ? fmax(*gain, s - one) : *gain;
    }
    fprintf(f, ",%.4f\n", lpt);
}

static int run_fig9(struct ws_experiment_run *x)
{
    struct offline *o = run_offline(x, cells_theta);
    FILE *f = o ? ws_experiment_csv(x, "edl-fig9") : NULL;
    if (!f) {
        if (o)
            free_offline(o);
        return -EIO;
    }
    double apart[2] = {0}, gain[2] = {0};
    fprintf(f, "u_dist,l,U,servers,theta=1,theta=0.95,theta=0.9,theta=0.85,theta=0.8,lpt-ff\n");
    for (int d = 0; d < 2; d++)
        for (int whole = 0; whole < 2; whole++)
            for (int l = 0; l < L_N; l++)
                for (int i = 0; i < U_N; i++) {
                    fprintf(f, "%s,%d,%g,%s", dists[d], ls[l], u_of(i), forms[whole]);
                    fig9_row(f, &o->g[d][i], ls[l], whole, &apart[whole], &gain[whole]);
                }
    int r = close_csv(x, f);
    for (int whole = 0; whole < 2; whole++) {
        char name[100], note[120];
        snprintf(note, sizeof(note), "%s; at most %.1f less", form_notes[whole], apart[whole]);
        snprintf(name, sizeof(name),
                 "l <= 4: each theta saves at most 3 points less than LPT-FF, %s", forms[whole]);
        ws_experiment_claim(x, name, apart[whole] <= 3, note);
        snprintf(name, sizeof(name), "l = 16: theta < 1 brings EDL nearer to LPT-FF, %s",
                 forms[whole]);
        ws_experiment_claim(x, name, gain[whole] > 1, form_notes[whole]);
        snprintf(name, sizeof(name), "l = 16: most that theta < 1 adds, points, %s", forms[whole]);
        ws_experiment_compare(x, name, NAN, gain[whole], 0, WS_SPREAD_ABSOLUTE, "");
    }
    ws_experiment_plot(
        x, "edl-fig9",
        "set datafile missing NaN\nset xlabel 'U'\nset ylabel 'saved, % (l = 16, release u, whole "
        "servers)'\nplot for "
        "[c=5:10] "
        "'edl-fig9.csv' using 3:(strcol(1) eq 'release' && strcol(4) eq 'whole' && $2 == 16 ? "
        "column(c) : NaN) with linespoints");
    free_offline(o);
    return r;
}

/* ---- Figs. 10 to 13: online ---- */

struct online {
    struct grid g[2];
};

static int run_online(struct ws_experiment_run *x, struct online *o)
{
    *o = (struct online){0};
    int r = 0;
    for (int d = 0; d < 2 && !r; d++) {
        struct grid *g = &o->g[d];
        for (int l = 0; l < L_N; l++) {
            add_cell(g, "bin-packing", false, 1, ls[l],
                     false); /* which opens whole servers anyway */
            add_cell(g, "bin-packing", true, 1, ls[l], false);
            for (int whole = 0; whole < 2; whole++) {
                add_cell(g, "edl", false, 1, ls[l], whole);
                for (int t = 0; t < THETA_N; t++)
                    add_cell(g, "edl", true, thetas[t], ls[l], whole);
            }
        }
        r = run(x, g, 0, d);
    }
    return r;
}

static void free_online(struct online *o)
{
    for (int d = 0; d < 2; d++)
        ws_edl_study_deinit(&o->g[d].s);
}

/* All of a day, long form; the figures are views of it. */
static int online_table(struct ws_experiment_run *x, const struct online *o, const char *name)
{
    FILE *f = ws_experiment_csv(x, name);
    if (!f)
        return -EIO;
    fprintf(f, "u_dist,policy,dvfs,theta,l,servers,E_run,E_idle,E_turn_on,E_total,ci95_total,"
               "reduction_pct,turn_on_servers,max_servers_on,pairs,readjusted,missed\n");
    for (int d = 0; d < 2; d++)
        for (int i = 0; i < o->g[d].s.n_cells; i++) {
            const struct ws_edl_cell *c = &o->g[d].cells[i];
            struct ws_edl_means m = ws_edl_study_means(&o->g[d].s, i),
                                base = get(&o->g[d], "edl", false, 1, c->l, c->whole);
            fprintf(f, "%s,%s,%d,%g,%d,%s,%.5f,%.5f,%.5f,%.5f,%.5f,%.4f,%.2f,%.2f,%.2f,%.2f,%g\n",
                    dists[d], c->policy, c->dvfs, c->theta, c->l, forms[c->whole], m.e_run / 1e6,
                    m.e_idle / 1e6, m.e_turn_on / 1e6, m.e_total / 1e6, m.ci95_total / 1e6,
                    saving(m.e_total, base.e_total), m.n_servers_on, m.max_servers_on, m.n_pairs,
                    m.n_readjusted, m.n_missed);
        }
    return close_csv(x, f);
}

static struct ws_edl_means day(const struct online *o, const char *policy, bool dvfs, double theta,
                               int l, bool whole)
{
    return get(&o->g[1], policy, dvfs, theta, l, whole);
}

static double total(const struct online *o, const char *policy, bool dvfs, double theta, int l,
                    bool whole)
{
    return day(o, policy, dvfs, theta, l, whole).e_total / 1e6;
}

/* A value of l = 16 that the paper gives, in both forms. @theta 0: without DVFS. */
static void compare_16(struct ws_experiment_run *x, const struct online *o, const char *what,
                       double paper, double theta, bool idle, double spread)
{
    for (int whole = 0; whole < 2; whole++) {
        char name[80];
        struct ws_edl_means m = day(o, "edl", theta > 0, theta > 0 ? theta : 1, 16, whole);
        snprintf(name, sizeof(name), "%s, l = 16, %s", what, forms[whole]);
        ws_experiment_compare(x, name, paper, (idle ? m.e_idle : m.e_total) / 1e6, spread,
                              WS_SPREAD_RELATIVE, form_notes[whole]);
    }
}

#define SERIES(name, who, condition, y)                                                            \
    "'" name ".csv' using (strcol(1) eq 'release' && " condition " ? $5 : NaN):" y                 \
    " with linespoints title '" who "'"
#define EDL(form) "strcol(2) eq 'edl' && strcol(6) eq '" form "' && "
#define BIN       "strcol(2) eq 'bin-packing' && "
#define PLOT_LINES(name, y)                                                                        \
    "plot " SERIES(name, "EDL", EDL("grouped") "$3 == 0", y) ", " SERIES(                          \
        name, "EDL whole", EDL("whole") "$3 == 0",                                                 \
        y) ", " SERIES(name, "EDL-D", EDL("grouped") "$3 == 1 && $4 == 1",                         \
                       y) ", " SERIES(name, "EDL-D whole", EDL("whole") "$3 == 1 && $4 == 1",      \
                                      y) ", " SERIES(name, "EDL-D 0.9 whole",                      \
                                                     EDL("whole") "$4 == 0.9",                     \
                                                     y) ", " SERIES(name, "BIN", BIN "$3 == 0",    \
                                                                    y) ", " SERIES(name, "BIN-D",  \
                                                                                   BIN "$3 == 1",  \
                                                                                   y)

static int run_fig10(struct ws_experiment_run *x)
{
    struct online o;
    int r = run_online(x, &o);
    r = r ? r : online_table(x, &o, "edl-fig10");
    if (!r) {
        double base = day(&o, "edl", false, 1, 1, false).e_run / 1e6,
               dvfs = day(&o, "edl", true, 1, 1, false).e_run / 1e6,
               bin = total(&o, "bin-packing", true, 1, 16, false);
        ws_experiment_compare(x, "run energy without DVFS", 120.22, base, 0.02, WS_SPREAD_RELATIVE,
                              "release u; the expectation of the draws is 120.8");
        ws_experiment_compare(x, "run energy with DVFS, theta = 1", 79.87, dvfs, 0.02,
                              WS_SPREAD_RELATIVE, "");
        ws_experiment_compare(x, "run energy saved, %", 34.7, saving(dvfs, base), 0.5,
                              WS_SPREAD_ABSOLUTE,
                              "the text divides by a misprinted 122.22; 120.22 gives 33.6");
        ws_experiment_compare(x, "run energy saved, by the paper's 120.22 and 79.87, %",
                              saving(79.87, 120.22), saving(dvfs, base), 0.5, WS_SPREAD_ABSOLUTE,
                              "");
        ws_experiment_compare(x, "total, l = 1, EDL-D", 80.1, total(&o, "edl", true, 1, 1, false),
                              0.02, WS_SPREAD_RELATIVE, "paper: 80.03 to 80.24");
        ws_experiment_compare(x, "total, l = 1, BIN-D", 80.1,
                              total(&o, "bin-packing", true, 1, 1, false), 0.02, WS_SPREAD_RELATIVE,
                              "paper: 80.03 to 80.24");
        compare_16(x, &o, "total, EDL-D theta = 1", 102.49, 1, false, 0.02);
        compare_16(x, &o, "total, EDL-D theta = 0.9", 99.73, 0.9, false, 0.02);
        ws_experiment_compare(x, "total, BIN-D, l = 16", 85.27, bin, 0.025, WS_SPREAD_RELATIVE, "");
        for (int whole = 0; whole < 2; whole++)
            ws_experiment_claim(x,
                                whole ? "l = 16: BIN-D takes less than EDL-D, whole"
                                      : "l = 16: BIN-D takes less than EDL-D, grouped",
                                bin < total(&o, "edl", true, 1, 16, whole), "");
        ws_experiment_plot(x, "edl-fig10",
                           "set datafile missing NaN\nset logscale x 2\nset xlabel 'l'\nset ylabel "
                           "'total, 10^6 W slot "
                           "(release u)'\n" PLOT_LINES("edl-fig10", "10"));
    }
    free_online(&o);
    return r;
}

static int run_fig11(struct ws_experiment_run *x)
{
    struct online o;
    int r = run_online(x, &o);
    r = r ? r : online_table(x, &o, "edl-fig11");
    if (!r) {
        compare_16(x, &o, "idle, EDL", 18.44, 0, true, 0.1);
        compare_16(x, &o, "idle, EDL-D theta = 1", 22.61, 1, true, 0.1);
        compare_16(x, &o, "idle, EDL-D theta = 0.9", 19.82, 0.9, true, 0.1);
        ws_experiment_compare(x, "smallest idle energy (BIN, l = 1), kW slot", 33.64,
                              day(&o, "bin-packing", false, 1, 1, false).e_idle / 1e3, 0.1,
                              WS_SPREAD_RELATIVE,
                              "the program counts busy time in whole slots, ours ends within one");
        ws_experiment_compare(x, "servers turned on, EDL, l = 1", 603.1,
                              day(&o, "edl", false, 1, 1, false).n_servers_on, 0.05,
                              WS_SPREAD_RELATIVE, "the paper's 120.62 kJ at 200 J a server");
        ws_experiment_claim(x, "turning on is marginal: below 0.2 % of the total",
                            day(&o, "edl", true, 1, 1, false).e_turn_on <
                                0.002 * day(&o, "edl", true, 1, 1, false).e_total,
                            "");
        ws_experiment_plot(x, "edl-fig11",
                           "set datafile missing NaN\nset logscale x 2\nset xlabel 'l'\nset ylabel "
                           "'idle, 10^6 W slot "
                           "(release u)'\n" PLOT_LINES("edl-fig11", "8"));
    }
    free_online(&o);
    return r;
}

/* The theta with the least total for @l. */
static double best_theta(const struct online *o, int l, bool whole)
{
    double best = thetas[0];
    for (int t = 1; t < THETA_N; t++)
        if (total(o, "edl", true, thetas[t], l, whole) < total(o, "edl", true, best, l, whole))
            best = thetas[t];
    return best;
}

static int run_fig12(struct ws_experiment_run *x)
{
    struct online o;
    int r = run_online(x, &o);
    r = r ? r : online_table(x, &o, "edl-fig12");
    if (!r) {
        compare_16(x, &o, "total, theta = 0.95", 100.94, 0.95, false, 0.02);
        compare_16(x, &o, "idle, theta = 0.95", 21.05, 0.95, true, 0.1);
        bool grows = true;
        for (int t = 1; t < THETA_N; t++)
            grows = grows && day(&o, "edl", true, thetas[t], 16, true).e_run >=
                                 day(&o, "edl", true, thetas[t - 1], 16, true).e_run;
        ws_experiment_claim(x, "run energy grows as theta falls", grows, "");
        for (int k = 0; k < 2 * (L_N - 1); k++) {
            int l = ls[1 + k % (L_N - 1)];
            bool whole = k / (L_N - 1);
            char name[80], note[80];
            snprintf(name, sizeof(name), "theta = 0.8 takes least, l = %d, %s", l, forms[whole]);
            snprintf(note, sizeof(note), "here %g does", best_theta(&o, l, whole));
            ws_experiment_claim(x, name, best_theta(&o, l, whole) == 0.8, note);
        }
        ws_experiment_plot(
            x, "edl-fig12",
            "set datafile missing NaN\nset xlabel 'theta'\nset ylabel 'total, 10^6 W slot (release "
            "u, whole servers)'\nplot "
            "for [n in '1 2 4 8 16'] 'edl-fig12.csv' using (strcol(1) eq 'release' && strcol(2) eq "
            "'edl' && strcol(6) eq 'whole' && $3 == 1 && $5 == n ? $4 : NaN):10 with linespoints "
            "title 'l = '.n");
    }
    free_online(&o);
    return r;
}

static int run_fig13(struct ws_experiment_run *x)
{
    struct online o;
    int r = run_online(x, &o);
    r = r ? r : online_table(x, &o, "edl-fig13");
    for (int k = 0; k < 2 * L_N && !r; k++) {
        int l = ls[k % L_N];
        bool whole = k / L_N;
        char name[80];
        double theta = best_theta(&o, l, whole);
        snprintf(name, sizeof(name), "reduction, l = %d, theta = %g (the best), %s, %%", l, theta,
                 forms[whole]);
        ws_experiment_compare(
            x, name, 31.5,
            saving(total(&o, "edl", true, theta, l, whole), total(&o, "edl", false, 1, l, whole)),
            2.1, WS_SPREAD_ABSOLUTE, "paper: 30 to 33 with a good theta");
    }
    for (int whole = 0; whole < 2 && !r; whole++)
        ws_experiment_compare(
            x,
            whole ? "reduction, l = 16, theta = 1, whole, %"
                  : "reduction, l = 16, theta = 1, grouped, %",
            26.1,
            saving(total(&o, "edl", true, 1, 16, whole), total(&o, "edl", false, 1, 16, whole)), 1,
            WS_SPREAD_ABSOLUTE, form_notes[whole]);
    if (!r)
        ws_experiment_plot(
            x, "edl-fig13",
            "set datafile missing NaN\nset logscale x 2\nset xlabel 'l'\nset ylabel 'reduction, % "
            "(release u, whole "
            "servers)'\nplot for [t in '1 0.95 0.9 0.85 0.8'] 'edl-fig13.csv' using (strcol(1) eq "
            "'release' && strcol(2) eq 'edl' && strcol(6) eq 'whole' && $3 == 1 && $4 == t ? $5 : "
            "NaN):12 with linespoints title 'theta = '.t");
    free_online(&o);
    return r;
}

const struct ws_experiment ws_experiment_edl_table3 = {
    "edl-table3", "EDL, Table 3", "Worked example: five tasks, theta 0.9 and 1.", run_table3};
const struct ws_experiment ws_experiment_edl_fig4 = {
    "edl-fig4", "EDL, Fig. 4", "Best voltage and clocks of measured applications.", run_fig4};
const struct ws_experiment ws_experiment_edl_fig5 = {
    "edl-fig5", "EDL, Fig. 5", "Offline energy and saving, one pair a server.", run_fig5};
const struct ws_experiment ws_experiment_edl_fig6 = {
    "edl-fig6", "EDL, Fig. 6", "Offline energy without DVFS, more pairs a server.", run_fig6};
const struct ws_experiment ws_experiment_edl_fig7 = {"edl-fig7", "EDL, Fig. 7",
                                                     "Offline: pairs occupied.", run_fig7};
const struct ws_experiment ws_experiment_edl_fig8 = {
    "edl-fig8", "EDL, Fig. 8", "Offline saving with DVFS, more pairs a server.", run_fig8};
const struct ws_experiment ws_experiment_edl_fig9 = {
    "edl-fig9", "EDL, Fig. 9", "Offline saving with theta-readjustment.", run_fig9};
const struct ws_experiment ws_experiment_edl_fig10 = {
    "edl-fig10", "EDL, Fig. 10", "A day online: run, idle and turn-on energy.", run_fig10};
const struct ws_experiment ws_experiment_edl_fig11 = {
    "edl-fig11", "EDL, Fig. 11", "A day online: idle energy and turning on.", run_fig11};
const struct ws_experiment ws_experiment_edl_fig12 = {
    "edl-fig12", "EDL, Fig. 12", "A day online: theta-readjustment.", run_fig12};
const struct ws_experiment ws_experiment_edl_fig13 = {
    "edl-fig13", "EDL, Fig. 13", "A day online: reduction against EDL without DVFS.", run_fig13};
