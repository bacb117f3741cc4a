// SPDX-License-Identifier: Apache-2.0
/* wattshare experiment: runs experiments from their table, writes their files and comparisons,
 * and calls gnuplot. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/common/options.h"
#include "papers/experiments/experiment.h"
#include "papers/live/live.h"

#define WS_EXPERIMENT(symbol) extern const struct ws_experiment ws_experiment_##symbol;
#include "papers/experiments/experiments.def"
#undef WS_EXPERIMENT

static const struct ws_experiment *const experiments[] = {
#define WS_EXPERIMENT(symbol) &ws_experiment_##symbol,
#include "papers/experiments/experiments.def"
#undef WS_EXPERIMENT
    NULL};

static FILE *open_in(const struct ws_experiment_run *x, const char *name, const char *ending)
{
    char path[PATH_MAX];
    if ((size_t)snprintf(path, sizeof(path), "%s/%s%s", x->folder, name, ending) >= sizeof(path)) {
        ws_cli_error("%s: the path is too long", x->folder);
        return NULL;
    }
    FILE *f = fopen(path, "w");
    if (!f)
        ws_cli_error("%s: %s", path, strerror(errno));
    return f;
}

FILE *ws_experiment_csv(struct ws_experiment_run *x, const char *name)
{
    return open_in(x, name, ".csv");
}

void ws_experiment_gpus(const char *names)
{
    char text[128], *save = NULL;
    snprintf(text, sizeof(text), "%s", names);
    for (char *p = strtok_r(text, ",", &save); p; p = strtok_r(NULL, ",", &save)) {
        struct ws_gpu_spec spec;
        if (!ws_live_gpu(p, &spec))
            printf("catalog entry %s: %s\n", spec.name, ws_gpu_spec_calibrated(&spec));
    }
    fflush(stdout);
}

/* CSV text: quotes doubled. */
static void put_quoted(FILE *f, const char *s)
{
    fputc('"', f);
    for (; *s; s++) {
        if (*s == '"')
            fputc('"', f);
        fputc(*s, f);
    }
    fputc('"', f);
}

static void put_line(struct ws_experiment_run *x, const char *quantity, const char *paper,
                     const char *ours, const char *spread, const char *verdict, const char *note)
{
    const char *cells[] = {quantity, paper, ours, spread, verdict, note};
    for (size_t i = 0; i < WS_ARRAY_SIZE(cells); i++) {
        ws_table_add(&x->table, "%s", cells[i]);
        put_quoted(x->summary, cells[i]);
        fputc(i + 1 < WS_ARRAY_SIZE(cells) ? ',' : '\n', x->summary);
    }
}

void ws_experiment_compare(struct ws_experiment_run *x, const char *quantity, double paper,
                           double ours, double spread, enum ws_spread kind, const char *note)
{
    char p[32] = "–", o[32], s[32] = "–";
    const char *verdict = "–";
    snprintf(o, sizeof(o), "%.6g", ours);
    if (!isnan(paper)) {
        double allowed = kind == WS_SPREAD_RELATIVE ? spread * fabs(paper) : spread;
        bool same = fabs(ours - paper) <= allowed;
        verdict = same ? "reproduces" : "differs";
        x->n_compared++;
        x->n_apart += !same;
        snprintf(p, sizeof(p), "%.6g", paper);
        snprintf(s, sizeof(s), kind == WS_SPREAD_RELATIVE ? "±%.3g %%" : "±%.3g",
                 kind == WS_SPREAD_RELATIVE ? spread * 100 : spread);
    }
    put_line(x, quantity, p, o, s, verdict, note);
}

double ws_experiment_half_interval(double sum_of_squares, int n)
{
    return n > 1 ? 1.96 * sqrt(sum_of_squares / (n - 1) / n) : NAN;
}

void ws_experiment_at_most(struct ws_experiment_run *x, const char *quantity, double wanted,
                           double ours, const char *note)
{
    char w[32], o[32];
    bool holds = ours <= wanted;
    x->n_compared++;
    x->n_apart += !holds;
    snprintf(w, sizeof(w), "≤ %.4g", wanted);
    snprintf(o, sizeof(o), "%.1f", ours);
    put_line(x, quantity, w, o, "–", holds ? "reproduces" : "differs", note);
}

void ws_experiment_claim(struct ws_experiment_run *x, const char *claim, bool holds,
                         const char *note)
{
    x->n_compared++;
    x->n_apart += !holds;
    put_line(x, claim, "claimed", holds ? "holds" : "does not hold", "–",
             holds ? "reproduces" : "differs", note);
}

void ws_experiment_plot(struct ws_experiment_run *x, const char *name, const char *commands)
{
    FILE *f = open_in(x, name, ".gp");
    if (!f)
        return;
    /* Twice the same drawing; gnuplots without cairo have the older png terminal. */
    fprintf(f, "set datafile separator ','\nset key autotitle columnhead outside\nset grid\n");
    fprintf(f, "if (strstrt(GPVAL_TERMINALS, 'pngcairo')) set terminal pngcairo size 1000,640; "
               "else set terminal png "
               "size 1000,640\n");
    fprintf(f, "set output '%s.png'\n%s\nset terminal svg size 1000,640\nset output '%s.svg'\n%s\n",
            name, commands, name, commands);
    bool written = !ferror(f);
    if (fclose(f) || !written) {
        ws_cli_error("%s/%s.gp: %s", x->folder, name, strerror(errno));
        return;
    }
    if (!x->plot)
        return;
    char script[PATH_MAX];
    snprintf(script, sizeof(script), "%s.gp", name);
    pid_t pid = fork();
    if (pid == 0) {
        if (!chdir(x->folder))
            execlp("gnuplot", "gnuplot", script, NULL);
        _exit(127);
    }
    int status = 0;
    if (pid < 0 || waitpid(pid, &status, 0) < 0 ||
        (WIFEXITED(status) && WEXITSTATUS(status) == 127)) {
        x->plot = false;
        ws_cli_error("gnuplot is missing, so there are only CSV and .gp files; install gnuplot-nox "
                     "for pictures");
    } else if (status) {
        ws_cli_error("gnuplot failed on %s/%s", x->folder, script);
    }
}

static int run_one(const struct ws_experiment *e, struct ws_experiment_run *x)
{
    static const char *const heads[] = {"quantity", "paper", "ours", "spread",
                                        "verdict",  "note",  NULL};
    char name[128];
    snprintf(name, sizeof(name), "%s-summary", e->name);
    x->name = e->name;
    x->n_compared = x->n_apart = 0;
    ws_table_init(&x->table, heads);
    x->summary = ws_experiment_csv(x, name);
    if (!x->summary)
        return -EIO;
    fprintf(x->summary, "quantity,paper,ours,spread,verdict,note\n");
    printf("%s: %s. %s (seed %" PRIu64 ", scale %g)\n", e->name, e->paper, e->shows, x->seed,
           x->scale);
    fflush(stdout);
    int r = e->run(x);
    if (fclose(x->summary) && !r) {
        ws_cli_error("%s/%s.csv: %s", x->folder, name, strerror(errno));
        r = -EIO;
    }
    if (ws_table_print(&x->table, stdout) && !r)
        r = -ENOMEM;
    printf("%d of %d reproduce; files in %s\n", x->n_compared - x->n_apart, x->n_compared,
           x->folder);
    ws_table_deinit(&x->table);
    return r;
}

static int list(void)
{
    static const char *const heads[] = {"name", "paper", "shows", NULL};
    struct ws_table t;
    ws_table_init(&t, heads);
    for (size_t i = 0; experiments[i]; i++) {
        ws_table_add(&t, "%s", experiments[i]->name);
        ws_table_add(&t, "%s", experiments[i]->paper);
        ws_table_add(&t, "%s", experiments[i]->shows);
    }
    int r = ws_table_print(&t, stdout);
    ws_table_deinit(&t);
    return r ? 1 : 0;
}

struct experiment_options {
    struct ws_experiment_run run;
    bool list;
};

static const struct ws_option options[] = {
    {"out", "FOLDER", "The folder for the files, made if it does not exist (experiments).",
     WS_TEXT(struct experiment_options, run.folder)},
    {"seed", "N", "The seed of all that is drawn, a whole number (1).",
     .more = "The same seed gives the same files, except of live experiments.",
     WS_UINT64(struct experiment_options, run.seed)},
    {"scale", "S",
     "The share of the paper's number of task sets; smaller is quicker and noisier (1).",
     WS_NUMBER(struct experiment_options, run.scale, 1e-4, 1)},
    WS_OPTION_JOBS(struct experiment_options, run.n_jobs),
    {"quick", NULL, "Experiments named live-, own- and slurm-: few points and short runs.",
     WS_FLAG(struct experiment_options, run.quick)},
    {"mispredict", "PERCENT",
     "live-own, live-sbeet: each job takes up to so much more or less time than is usual (0).",
     WS_INT(struct experiment_options, run.mispredict, 0, 90)},
    {"overrun", NULL,
     "live-own, live-sbeet: a quarter of the first task's jobs take four times as long.",
     WS_FLAG(struct experiment_options, run.overrun)},
    {"death", NULL,
     "live-own, live-sbeet: the first task's program is killed when half of the time is over.",
     WS_FLAG(struct experiment_options, run.death)},
    {"data", "FOLDER", "The folder of measurements of real GPUs, for experiments named truth-.",
     WS_TEXT(struct experiment_options, run.data)},
    {"no-plot", NULL, "Write CSV and the commands for gnuplot, but no pictures.",
     WS_CLEAR(struct experiment_options, run.plot)},
    {"list", NULL, "Print the experiments' names, their figures and tables, and what each shows.",
     WS_FLAG(struct experiment_options, list), .alone = true},
    {0}};
static const char *const arguments[] = {"NAME...", "all", NULL};
static const char *const examples[] = {"wattshare experiment --list",
                                       "wattshare experiment sbeet-fig7 --scale 0.1", NULL};

static int experiment(int argc, char **argv);

const struct ws_verb ws_verb_experiment = {
    .name = "experiment",
    .purpose = "rerun figures and tables of the papers",
    .about = "Writes CSV and plots, and prints the paper's values beside ours. Experiments whose "
             "names begin with live- start programs on software GPUs, those with slurm- a private "
             "Slurm cluster, and those with truth- need --data; all leaves these out.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .max_arguments = WS_ARGUMENTS_ANY,
    .asked = "experiments",
    .run = experiment,
};

/* Whether an experiment needs more than the models: a host with nothing else to do, Slurm, or
 * measurements. */
static bool needs_more(const char *name)
{
    static const char *const kinds[] = {"live-", "slurm-", "truth-"};
    for (size_t i = 0; i < WS_ARRAY_SIZE(kinds); i++)
        if (!strncmp(name, kinds[i], strlen(kinds[i])))
            return true;
    return false;
}

/* Runs the experiment @name, or all of them. Return: the exit status. */
static int run_named(const char *name, struct ws_experiment_run *x)
{
    bool all = !strcmp(name, "all"), found = all, failed = false;
    for (size_t i = 0; experiments[i]; i++) {
        if ((all && !needs_more(experiments[i]->name)) || !strcmp(name, experiments[i]->name)) {
            found = true;
            failed |= run_one(experiments[i], x) < 0;
        }
    }
    if (found)
        return failed;
    return ws_verb_wrong(&ws_verb_experiment,
                         "no experiment '%s'; wattshare experiment --list names them", name);
}

static int experiment(int argc, char **argv)
{
    struct experiment_options o = {
        .run = {.folder = "experiments", .seed = 1, .scale = 1, .plot = true}};
    char **names;
    int status = ws_verb_parse(&ws_verb_experiment, argc, argv, &o, &names);
    if (status >= 0)
        return status;
    if (o.list)
        return list();
    if (!*names)
        return ws_verb_wrong(&ws_verb_experiment, "experiment needs a name, or all");
    if (mkdir(o.run.folder, 0777) && errno != EEXIST) {
        ws_cli_error("%s: %s", o.run.folder, strerror(errno));
        return 1;
    }
    status = 0;
    for (; *names && status != WS_EXIT_USAGE; names++) {
        int r = run_named(*names, &o.run);
        status = r == WS_EXIT_USAGE ? r : status | r;
    }
    return status;
}
