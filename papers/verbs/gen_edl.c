// SPDX-License-Identifier: Apache-2.0
/* wattshare gen --paper edl: makes task sets for `wattshare cluster`. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/cli.h"
#include "cli/common/options.h"
#include "papers/verbs/gen.h"
#include "papers/verbs/input.h"
#include "papers/sets/gen_edl.h"

struct library {
    struct ws_dvfs_task *v;
    size_t n, cap;
    bool failed;
};

static int read_library(void *arg, FILE *f, const char *name)
{
    struct library *x = arg;
    struct ws_jsonl r;
    struct ws_json_line l;
    int e;
    ws_jsonl_init(&r, f, name);
    while (!(e = ws_jsonl_next(&r, &l))) {
        struct ws_json_at at = ws_json_root(&l);
        struct ws_dvfs_task t = {0};
        if (!l.bad)
            t = ws_dvfs_task_read(&at);
        bool good = ws_json_line_report(&l, stderr, "wattshare");
        ws_json_line_deinit(&l);
        void *v = x->v;
        x->failed = x->failed || !good;
        if (!good)
            continue;
        if ((e = ws_grow(&v, &x->cap, x->n + 1, sizeof(*x->v))) < 0)
            break;
        x->v = v;
        x->v[x->n++] = t;
    }
    ws_jsonl_deinit(&r);
    return e < 0 ? e : 0;
}

static bool parse_dist(const char *text, struct ws_gen_edl *g)
{
    char *end;
    if (!strcmp(text, "paper"))
        return true;
    if (!strcmp(text, "release")) {
        ws_gen_edl_release_u(g);
        return true;
    }
    g->u_low = strtod(text, &end);
    if (end != text && *end == ':') {
        const char *high = end + 1;
        g->u_high = strtod(high, &end);
        if (end != high && !*end && g->u_low >= 0 && g->u_low < g->u_high && g->u_high <= 1)
            return true;
    }
    ws_cli_error("--u-dist %s: expected paper, release or LOW:HIGH with 0 ≤ LOW < HIGH ≤ 1", text);
    return false;
}

struct gen_edl_options {
    struct ws_gen_request request;
    bool online;
    double u, u_online; /* NAN: not given */
    int base, n_slots;
    const char *dist, *library;
};

static const struct ws_option options[] = {
    WS_GEN_OPTIONS,
    {"online", NULL, "Tasks arrive during a day, besides those that are there at 0.",
     WS_FLAG(struct gen_edl_options, online)},
    {"u", "U",
     "The utilisation of the tasks that are there at 0, as a share of --base pairs (1; with "
     "--online 0.4).",
     WS_NUMBER(struct gen_edl_options, u, 0, 1e4)},
    {"u-online", "U", "The utilisation of those that arrive during the day (with --online 1.6).",
     WS_NUMBER(struct gen_edl_options, u_online, 0, 1e4)},
    {"base", "N", "The number of pairs that utilisations are shares of (1024).",
     WS_INT(struct gen_edl_options, base, 1, 1000000)},
    {"u-dist", "DIST",
     "A task's utilisation: uniform in (0,1) as the paper says, in the release's range, or in "
     "LOW:HIGH (paper).",
     .more = "DIST is paper, release or LOW:HIGH.", WS_TEXT(struct gen_edl_options, dist)},
    {"slots", "N", "The slots in a day (1440).",
     WS_INT(struct gen_edl_options, n_slots, 1, 100000000)},
    {"library", "FILE",
     "Applications to draw from, as wattshare fit --json prints them; without it they are drawn "
     "from the paper's ranges.",
     WS_TEXT(struct gen_edl_options, library)},
    {0}};

static int gen_edl(int argc, char **argv);

const struct ws_verb ws_verb_gen_edl = {
    .name = "gen --paper edl",
    .purpose = "tasks with deadlines on a cluster of CPU-GPU pairs",
    .about = "Prints a set of tasks for wattshare cluster, one a line.",
    .options = options,
    .run = gen_edl,
};

static struct ws_gen_edl settings(const struct gen_edl_options *o)
{
    struct ws_gen_edl g = o->online ? ws_gen_edl_online : ws_gen_edl_offline;
    g.seed = o->request.seed;
    g.u_initial = isnan(o->u) ? g.u_initial : o->u;
    g.u_online = isnan(o->u_online) ? g.u_online : o->u_online;
    g.base = o->base;
    g.n_slots = o->n_slots;
    return g;
}

static int gen_edl(int argc, char **argv)
{
    struct gen_edl_options o = {.request = WS_GEN_REQUEST_DEFAULT,
                                .u = NAN,
                                .u_online = NAN,
                                .base = 1024,
                                .n_slots = 1440,
                                .dist = "paper"};
    char **rest;
    int r = ws_verb_parse(&ws_verb_gen_edl, argc, argv, &o, &rest);
    if (r >= 0)
        return r;
    struct ws_gen_edl g = settings(&o);
    if (!parse_dist(o.dist, &g))
        return WS_EXIT_USAGE;
    struct library lib = {0};
    struct ws_cluster_task *tasks = NULL;
    size_t n = 0;
    char *files[] = {(char *)o.library, NULL};
    r = o.library ? ws_cli_each_input(files, read_library, &lib) : 0;
    g.library = o.library ? lib.v : NULL;
    g.n_library = (int)lib.n;
    if (!r && o.library && !lib.n) {
        ws_cli_error("%s: no applications", o.library);
        r = 1;
    }
    if (!r && (r = ws_gen_edl(&g, &tasks, &n)))
        ws_cli_error("%s", strerror(-r));
    for (size_t i = 0; !r && i < n; i++)
        ws_cluster_task_write(stdout, &tasks[i]);
    free(tasks);
    free(lib.v);
    return r || lib.failed || fflush(stdout) ? 1 : 0;
}
