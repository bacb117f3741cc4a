// SPDX-License-Identifier: Apache-2.0
/* `wattshare experiment`: the table of experiments, their folder, the comparison with the paper, gnuplot. */
#include "config.h"

#include <errno.h>
#include <getopt.h>
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
#include "papers/experiments/experiment.h"

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
        ws_cli_error(
            "no gnuplot: the CSV and .gp files are there; install gnuplot-nox for pictures");
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

static const char help[] = "usage: wattshare experiment NAME… | all [--out FOLDER] [--seed N] "
                           "[--scale S] [--jobs N] [--quick] [--no-plot]\n"
                           "       wattshare experiment --list\n"
                           "Reruns a figure or table of a paper from a seed: CSV, plots, and the "
                           "paper's values beside ours.\n"
                           "  --out FOLDER  where files go (experiments)\n"
                           "  --seed N      1\n"
                           "  --scale S     share of the paper's number of task sets, up to 1; "
                           "smaller is quicker and noisier (1)\n"
                           "  --quick       live experiments: few points, short runs\n"
                           "live-… start processes on software GPUs; `all` leaves them out\n";

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

int ws_cli_experiment(int argc, char **argv)
{
    static const struct option options[] = {{"out", required_argument, NULL, 'o'},
                                            {"seed", required_argument, NULL, 's'},
                                            {"scale", required_argument, NULL, 'c'},
                                            {"jobs", required_argument, NULL, 'j'},
                                            {"quick", no_argument, NULL, 'q'},
                                            {"no-plot", no_argument, NULL, 'n'},
                                            {"list", no_argument, NULL, 'l'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    struct ws_experiment_run x = {.folder = "experiments", .seed = 1, .scale = 1, .plot = true};
    char *end;
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;)
        switch (c) {
        case 'o':
            x.folder = optarg;
            break;
        case 's':
            errno = 0;
            x.seed = strtoull(optarg, &end, 10);
            if (errno || end == optarg || *end || *optarg == '-') {
                ws_cli_error("--seed %s: a whole number from 0 is wanted", optarg);
                return WS_EXIT_USAGE;
            }
            break;
        case 'c':
            x.scale = strtod(optarg, &end);
            if (end == optarg || *end || !(x.scale > 0 && x.scale <= 1)) {
                ws_cli_error("--scale %s: a number above 0, up to 1, is wanted", optarg);
                return WS_EXIT_USAGE;
            }
            break;
        case 'j':
            if (ws_cli_jobs(optarg, &x.n_jobs))
                return WS_EXIT_USAGE;
            break;
        case 'q':
            x.quick = true;
            break;
        case 'n':
            x.plot = false;
            break;
        case 'l':
            return list();
        case 'h':
            fputs(help, stdout);
            return 0;
        default:
            fputs(help, stderr);
            return WS_EXIT_USAGE;
        }
    if (optind == argc) {
        fputs(help, stderr);
        return WS_EXIT_USAGE;
    }
    if (mkdir(x.folder, 0777) && errno != EEXIST) {
        ws_cli_error("%s: %s", x.folder, strerror(errno));
        return 1;
    }
    int failed = 0;
    for (int i = optind; i < argc; i++) {
        bool all = !strcmp(argv[i], "all"), found = all;
        for (size_t k = 0; experiments[k]; k++)
            if ((all && strncmp(experiments[k]->name, "live-", 5)) ||
                !strcmp(argv[i], experiments[k]->name)) {
                found = true;
                failed |= run_one(experiments[k], &x) < 0;
            }
        if (!found) {
            ws_cli_error("no experiment '%s'; see wattshare experiment --list", argv[i]);
            return WS_EXIT_USAGE;
        }
    }
    return failed;
}
