// SPDX-License-Identifier: Apache-2.0
/* own-edl: our own policy for clusters against those of Mei et al. (models/dvfs.h), on days online
 * as in their Figs. 10 to 13 (papers/sets/gen_edl.h).
 *
 * The others run in both forms ("grouped", "whole": edl.c), edl with each theta of the paper. The
 * best of them on average is what ours is compared with. No policy that drops nothing takes less
 * than the bound: each job at its setting of least energy within its deadline, on pairs that are
 * never idle. That is the run energy of edl without readjustment. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "cli/cli.h"
#include "papers/experiments/edl.h"

#define OWN "wattshare-servers"
static const int ls[] = {1, 4, 16};
static const char *const others[] = {"edf-bf", "edf-wf", "lpt-ff", "bin-packing"};
enum { N_L = WS_ARRAY_SIZE(ls) };

static void add_cells(struct ws_exp_edl_grid *g, int l)
{
    ws_exp_edl_cell(g, OWN, true, 1, l, false);
    for (int whole = 0; whole < 2; whole++) {
        for (int t = 0; t < WS_EXP_EDL_THETA_N; t++)
            ws_exp_edl_cell(g, "edl", true, ws_exp_edl_thetas[t], l, whole);
        for (size_t i = 0; i < WS_ARRAY_SIZE(others); i++)
            ws_exp_edl_cell(g, others[i], true, 1, l, whole);
    }
}

static const char *label(const struct ws_edl_cell *c, char *buf, size_t bytes)
{
    if (!strcmp(c->policy, OWN))
        return OWN;
    if (!strcmp(c->policy, "edl"))
        snprintf(buf, bytes, "edl theta=%g, %s", c->theta, ws_exp_edl_forms[c->whole]);
    else
        snprintf(buf, bytes, "%s, %s", c->policy, ws_exp_edl_forms[c->whole]);
    return buf;
}

static double bound(const struct ws_exp_edl_grid *g, int l)
{
    return ws_exp_edl_means(g, "edl", true, 1, l, false).e_run / 1e6;
}

static double per_job(const struct ws_edl_means *m)
{
    return m->e_total / fmax(m->n_tasks - m->n_missed, 1);
}

static void write_cells(FILE *f, const struct ws_exp_edl_grid *g, const char *dist)
{
    char buf[64];
    for (int i = 0; i < g->s.n_cells; i++) {
        const struct ws_edl_cell *c = &g->cells[i];
        struct ws_edl_means m = ws_edl_study_means(&g->s, i);
        fprintf(f, "%s,%d,\"%s\",%.5f,%.5f,%.5f,%.5f,%.5f,%.1f,%.2f,%.2f,%g,%.5f\n", dist, c->l,
                label(c, buf, sizeof(buf)), m.e_total / 1e6, m.ci95_total / 1e6, m.e_run / 1e6,
                m.e_idle / 1e6, m.e_turn_on / 1e6, per_job(&m), m.n_servers_on, m.max_servers_on,
                m.n_missed, bound(g, c->l));
    }
}

/* Total and missed of each policy, for people. add_cells() adds the same policies for each l. */
static int print(const struct ws_exp_edl_grid *g, const char *dist)
{
    static const char *const heads[] = {"policy", "l = 1", "l = 4", "l = 16", NULL};
    const int each = g->s.n_cells / N_L;
    struct ws_table t;
    char buf[64];
    printf("\nutilisations %s: 10^6 W·slot ± 95 %% interval / missed jobs a day, %d days\n", dist,
           g->s.n_sets);
    ws_table_init(&t, heads);
    for (int i = 0; i < each; i++) {
        ws_table_add(&t, "%s", label(&g->cells[i], buf, sizeof(buf)));
        for (int k = 0; k < N_L; k++) {
            struct ws_edl_means m = ws_edl_study_means(&g->s, k * each + i);
            ws_table_add(&t, "%.2f ± %.2f / %g", m.e_total / 1e6, m.ci95_total / 1e6, m.n_missed);
        }
    }
    ws_table_add(&t, "lower bound");
    for (int k = 0; k < N_L; k++)
        ws_table_add(&t, "%.2f", bound(g, ls[k]));
    int r = ws_table_print(&t, stdout);
    ws_table_deinit(&t);
    return r;
}

/* The cell of the paper's policies with the least total on servers of cell @own's size. */
static int best_other(const struct ws_exp_edl_grid *g, int own)
{
    int best = own + 1;
    for (int i = own + 1; i < g->s.n_cells && g->cells[i].l == g->cells[own].l; i++)
        if (ws_edl_study_means(&g->s, i).e_total < ws_edl_study_means(&g->s, best).e_total)
            best = i;
    return best;
}

static void compare(struct ws_experiment_run *x, const struct ws_exp_edl_grid *g, int own,
                    const char *dist)
{
    const int l = g->cells[own].l, best = best_other(g, own);
    const struct ws_edl_means ours = ws_edl_study_means(&g->s, own),
                              theirs = ws_edl_study_means(&g->s, best);
    char what[120], note[200], buf[64];
    int more = 0;
    for (int i = 0; i < g->s.n_sets; i++) {
        const struct ws_cluster_result *r = &g->s.results[i * g->s.n_cells];
        more += r[own].n_missed > r[best].n_missed;
    }
    double above = theirs.e_total - 1e6 * bound(g, l);
    snprintf(what, sizeof(what), "%s, l = %d: energy, %% of the best of the paper's", dist, l);
    snprintf(note, sizeof(note), "that is %s; %.0f %% of its way to the bound",
             label(&g->cells[best], buf, sizeof(buf)),
             100 * (theirs.e_total - ours.e_total) / above);
    ws_experiment_at_most(x, what, 100, 100 * ours.e_total / theirs.e_total, note);
    snprintf(what, sizeof(what), "%s, l = %d: days with more missed jobs", dist, l);
    snprintf(note, sizeof(note), "of %d; ours %g a day, theirs %g", g->s.n_sets, ours.n_missed,
             theirs.n_missed);
    ws_experiment_at_most(x, what, 0, more, note);
}

static int run_own_edl(struct ws_experiment_run *x)
{
    FILE *f = ws_experiment_csv(x, "own-edl");
    if (!f)
        return -EIO;
    fprintf(f, "u_dist,l,policy,E_total,ci95,E_run,E_idle,E_turn_on,energy_per_job_in_time,"
               "turn_on_servers,max_servers_on,missed,bound\n");
    int r = 0;
    for (int d = 0; d < 2 && !r; d++) {
        struct ws_exp_edl_grid g = {0};
        for (int k = 0; k < N_L; k++)
            add_cells(&g, ls[k]);
        struct ws_experiment_run run = *x;
        run.scale = x->quick ? 0.01 : x->scale;
        r = ws_exp_edl_run(&run, &g, 0, d);
        if (!r) {
            write_cells(f, &g, ws_exp_edl_dists[d]);
            r = print(&g, ws_exp_edl_dists[d]);
        }
        for (int k = 0; k < N_L && !r; k++)
            compare(x, &g, k * g.s.n_cells / N_L, ws_exp_edl_dists[d]);
        ws_edl_study_deinit(&g.s);
    }
    putchar('\n');
    int e = ws_exp_edl_close(x, f);
    if (!r && !e)
        ws_experiment_plot(
            x, "own-edl",
            "set datafile missing NaN\nset logscale x 2\nset xlabel 'pairs in a server'\n"
            "set ylabel 'total, 10^6 W slot (release u)'\n"
            "plot for [p in '\"" OWN "\" \"edl theta=1, grouped\" \"edl theta=0.8, grouped\" "
            "\"edf-bf, grouped\" \"lpt-ff, grouped\" \"bin-packing, grouped\"'] 'own-edl.csv' "
            "using (strcol(1) eq 'release' && strcol(3) eq p ? $2 : NaN):4 with linespoints title "
            "p, '' using (strcol(1) eq 'release' ? $2 : NaN):13 with lines title 'lower bound'");
    return r ? r : e;
}

const struct ws_experiment ws_experiment_own_edl = {
    "own-edl", "our own, on EDL's days online",
    "energy and misses of wattshare-servers and of every policy for clusters", run_own_edl};
