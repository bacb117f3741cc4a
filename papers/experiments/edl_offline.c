// SPDX-License-Identifier: Apache-2.0
/* Experiments of Mei et al., offline: Figs. 5 to 9. edl.c has what they share, and says what is
 * compared with what. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "papers/experiments/edl.h"

enum { U_N = 8 };

/* Both kinds of sets at each utilisation: [dist][u]. */
struct offline {
    struct ws_exp_edl_grid g[2][U_N];
};

static double u_of(int i)
{
    return (i + 1) * 2 / 10.0;
}

static struct offline *run_offline(struct ws_experiment_run *x,
                                   void (*cells)(struct ws_exp_edl_grid *g))
{
    struct offline *o = ws_alloc(sizeof(*o));
    int r = o ? 0 : -ENOMEM;
    for (int d = 0; d < 2 && !r; d++)
        for (int i = 0; i < U_N && !r; i++) {
            cells(&o->g[d][i]);
            r = ws_exp_edl_run(x, &o->g[d][i], u_of(i), d);
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

static const char *const names[4] = {"edl", "edf-bf", "edf-wf", "lpt-ff"};

static void cells_l1(struct ws_exp_edl_grid *g)
{
    for (int a = 0; a < 4; a++)
        for (int dvfs = 0; dvfs < 2; dvfs++)
            ws_exp_edl_cell(g, names[a], dvfs, 1, 1, false);
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
            struct ws_edl_means b = ws_exp_edl_means(&o->g[d][i], "edl", false, 1, 1, false),
                                m = ws_exp_edl_means(&o->g[d][i], "edl", true, 1, 1, false);
            fprintf(f, ",%.5f,%.5f,%.4f", b.e_run / 1e6, m.e_run / 1e6,
                    ws_exp_edl_saving(m.e_run, b.e_run));
            mean[d] += ws_exp_edl_saving(m.e_total, b.e_total) / U_N;
            top[d][0] = b.e_run / 1e6;
            top[d][1] = m.e_run / 1e6;
            for (int a = 1; a < 4; a++)
                same =
                    same && fabs(ws_exp_edl_means(&o->g[d][i], names[a], true, 1, 1, false).e_run -
                                 m.e_run) < 1e-6 * m.e_run;
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
    int r = ws_exp_edl_close(x, f);
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

static void cells_plain(struct ws_exp_edl_grid *g)
{
    for (int a = 0; a < 4; a++)
        for (int k = 0; k < 2 * WS_EXP_EDL_L_N; k++)
            ws_exp_edl_cell(g, names[a], false, 1, ws_exp_edl_ls[k % WS_EXP_EDL_L_N],
                            k / WS_EXP_EDL_L_N);
}

/* One row for each kind of set, l and U, one column for each algorithm. */
static int offline_table(struct ws_experiment_run *x, const struct offline *o, const char *name,
                         double (*value)(const struct ws_exp_edl_grid *g, const char *algo, int l))
{
    FILE *f = ws_experiment_csv(x, name);
    if (!f)
        return -EIO;
    fprintf(f, "u_dist,l,U,edl,edf-bf,edf-wf,lpt-ff\n");
    for (int d = 0; d < 2; d++)
        for (int l = 0; l < WS_EXP_EDL_L_N; l++)
            for (int i = 0; i < U_N; i++) {
                fprintf(f, "%s,%d,%g", ws_exp_edl_dists[d], ws_exp_edl_ls[l], u_of(i));
                for (int a = 0; a < 4; a++)
                    fprintf(f, ",%.5f", value(&o->g[d][i], names[a], ws_exp_edl_ls[l]));
                fputc('\n', f);
            }
    return ws_exp_edl_close(x, f);
}

static double normalised_as(const struct ws_exp_edl_grid *g, const char *algo, int l, bool whole)
{
    return ws_exp_edl_means(g, algo, false, 1, l, whole).e_total /
           ws_exp_edl_means(g, algo, false, 1, 1, false).e_run;
}

static double normalised(const struct ws_exp_edl_grid *g, const char *algo, int l)
{
    return normalised_as(g, algo, l, false);
}

static double normalised_whole(const struct ws_exp_edl_grid *g, const char *algo, int l)
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
    const struct ws_exp_edl_grid *low = &o->g[0][0];
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
            fprintf(f, "%s,%g", ws_exp_edl_dists[d], u_of(i));
            for (int k = 0; k < 8; k++)
                fprintf(f, ",%.2f",
                        ws_exp_edl_means(&o->g[d][i], names[k % 4], k / 4, 1, 1, false).n_pairs);
            fputc('\n', f);
        }
    for (int k = 0; k < 16; k++) {
        char name[60];
        snprintf(name, sizeof(name), "pairs, U = %g, %s%s", k < 8 ? 0.2 : 1.6, names[k % 4],
                 k / 4 % 2 ? " with DVFS" : "");
        ws_experiment_compare(
            x, name, paper[k / 8][k / 4 % 2][k % 4],
            ws_exp_edl_means(&o->g[1][k < 8 ? 0 : U_N - 1], names[k % 4], k / 4 % 2, 1, 1, false)
                .n_pairs,
            0.05, WS_SPREAD_RELATIVE, "released CSV; release u");
    }
    const struct ws_exp_edl_grid *high = &o->g[1][U_N - 1];
    double p[4];
    for (int a = 0; a < 4; a++)
        p[a] = ws_exp_edl_means(high, names[a], false, 1, 1, false).n_pairs;
    ws_experiment_claim(x, "LPT-FF > EDL > EDF-WF >= EDF-BF at U = 1.6",
                        p[3] > p[0] && p[0] > p[2] && p[2] >= p[1], "");
    int r = ws_exp_edl_close(x, f);
    ws_experiment_plot(x, "edl-fig7",
                       "set datafile missing NaN\nset xlabel 'U'\nset ylabel 'pairs (l = 1)'\nplot "
                       "for [c=3:10] 'edl-fig7.csv' "
                       "using 2:(strcol(1) eq 'release' ? column(c) : NaN) with linespoints");
    free_offline(o);
    return r;
}

static void cells_dvfs(struct ws_exp_edl_grid *g)
{
    ws_exp_edl_cell(g, "edl", false, 1, 1, false);
    for (int whole = 0; whole < 2; whole++)
        for (int a = 0; a < 4; a++)
            for (int l = 0; l < WS_EXP_EDL_L_N; l++)
                ws_exp_edl_cell(g, names[a], true, 1, ws_exp_edl_ls[l], whole);
}

static double saved_as(const struct ws_exp_edl_grid *g, const char *algo, double theta, int l,
                       bool whole)
{
    return ws_exp_edl_saving(ws_exp_edl_means(g, algo, true, theta, l, whole).e_total,
                             ws_exp_edl_means(g, "edl", false, 1, 1, false).e_total);
}

static double saved(const struct ws_exp_edl_grid *g, const char *algo, int l)
{
    return saved_as(g, algo, 1, l, false);
}

static double saved_whole(const struct ws_exp_edl_grid *g, const char *algo, int l)
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
                 ws_exp_edl_forms[k / 4]);
        ws_experiment_compare(
            x, name, paper[k % 4], saved_as(&o->g[1][U_N - 1], names[k % 4], 1, 16, k / 4), 1,
            WS_SPREAD_ABSOLUTE,
            k == 5 ? "its load isn't defined in the paper, and the program's differs"
                   : ws_exp_edl_form_notes[k / 4]);
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

static void cells_theta(struct ws_exp_edl_grid *g)
{
    ws_exp_edl_cell(g, "edl", false, 1, 1, false);
    for (int k = 0; k < 2 * WS_EXP_EDL_L_N; k++) {
        for (int t = 0; t < WS_EXP_EDL_THETA_N; t++)
            ws_exp_edl_cell(g, "edl", true, ws_exp_edl_thetas[t], ws_exp_edl_ls[k % WS_EXP_EDL_L_N],
                            k / WS_EXP_EDL_L_N);
        ws_exp_edl_cell(g, "lpt-ff", true, 1, ws_exp_edl_ls[k % WS_EXP_EDL_L_N],
                        k / WS_EXP_EDL_L_N);
    }
}

/* One line of Fig. 9; what it shows is gathered in @apart (for l <= 4, how much less than
 * LPT-FF) and @gain (for l = 16). */
static void fig9_row(FILE *f, const struct ws_exp_edl_grid *g, int l, bool whole, double *apart,
                     double *gain)
{
    double lpt = saved_as(g, "lpt-ff", 1, l, whole), one = saved_as(g, "edl", 1, l, whole);
    for (int t = 0; t < WS_EXP_EDL_THETA_N; t++) {
        double s = saved_as(g, "edl", ws_exp_edl_thetas[t], l, whole);
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
            for (int l = 0; l < WS_EXP_EDL_L_N; l++)
                for (int i = 0; i < U_N; i++) {
                    fprintf(f, "%s,%d,%g,%s", ws_exp_edl_dists[d], ws_exp_edl_ls[l], u_of(i),
                            ws_exp_edl_forms[whole]);
                    fig9_row(f, &o->g[d][i], ws_exp_edl_ls[l], whole, &apart[whole], &gain[whole]);
                }
    int r = ws_exp_edl_close(x, f);
    for (int whole = 0; whole < 2; whole++) {
        char name[100], note[120];
        snprintf(note, sizeof(note), "%s; at most %.1f less", ws_exp_edl_form_notes[whole],
                 apart[whole]);
        snprintf(name, sizeof(name),
                 "l <= 4: each theta saves at most 3 points less than LPT-FF, %s",
                 ws_exp_edl_forms[whole]);
        ws_experiment_claim(x, name, apart[whole] <= 3, note);
        snprintf(name, sizeof(name), "l = 16: theta < 1 brings EDL nearer to LPT-FF, %s",
                 ws_exp_edl_forms[whole]);
        ws_experiment_claim(x, name, gain[whole] > 1, ws_exp_edl_form_notes[whole]);
        snprintf(name, sizeof(name), "l = 16: most that theta < 1 adds, points, %s",
                 ws_exp_edl_forms[whole]);
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
