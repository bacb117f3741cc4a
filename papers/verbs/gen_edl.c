// SPDX-License-Identifier: Apache-2.0
/* `wattshare gen --paper edl`: task sets for `wattshare cluster`. */
#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/cli.h"
#include "papers/verbs/gen.h"
#include "papers/verbs/input.h"
#include "papers/sets/gen_edl.h"

static const char help[] =
    "usage: wattshare gen --paper edl [--seed N] [--online] [--u U] [--u-online U] [--base N] "
    "[--u-dist paper|release|LOW:HIGH]\n"
    "                     [--slots N] [--library FILE]\n"
    "A set of tasks with deadlines for `wattshare cluster`, one a line.\n"
    "  --u U         utilisation of the tasks there at 0, as a share of --base pairs (1; 0.4 with "
    "--online)\n"
    "  --u-online U  of those that arrive during the day (1.6 with --online)\n"
    "  --base N      1024\n"
    "  --u-dist      a task's utilisation: uniform in (0,1) as the paper says, in the release's "
    "range, or in LOW:HIGH\n"
    "  --slots N     in a day (1440)\n"
    "  --library     applications to draw from, as `wattshare fit --json` prints them; else drawn "
    "from the paper's ranges\n";

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
    ws_cli_error("--u-dist %s: paper, release or LOW:HIGH with 0 ≤ LOW < HIGH ≤ 1 is wanted", text);
    return false;
}

int ws_cli_gen_edl(int argc, char **argv, uint64_t seed)
{
    static const struct option options[] = {{"online", no_argument, NULL, 'o'},
                                            {"u", required_argument, NULL, 'u'},
                                            {"u-online", required_argument, NULL, 'U'},
                                            {"base", required_argument, NULL, 'b'},
                                            {"u-dist", required_argument, NULL, 'd'},
                                            {"slots", required_argument, NULL, 's'},
                                            {"library", required_argument, NULL, 'l'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    double u = NAN, u_online = NAN, base = 1024, slots = 1440;
    const char *dist = "paper";
    char *library[] = {NULL, NULL};
    bool online = false;
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        int bad = 0;
        switch (c) {
        case 'o':
            online = true;
            break;
        case 'u':
            bad = ws_cli_number("u", optarg, 0, 1e4, &u);
            break;
        case 'U':
            bad = ws_cli_number("u-online", optarg, 0, 1e4, &u_online);
            break;
        case 'b':
            bad = ws_cli_number("base", optarg, 1, 1e6, &base);
            break;
        case 's':
            bad = ws_cli_number("slots", optarg, 1, 1e8, &slots);
            break;
        case 'd':
            dist = optarg;
            break;
        case 'l':
            library[0] = optarg;
            break;
        case 'h':
            fputs(help, stdout);
            return 0;
        default:
            fputs(help, stderr);
            return WS_EXIT_USAGE;
        }
        if (bad)
            return WS_EXIT_USAGE;
    }
    if (optind < argc) {
        ws_cli_error("gen --paper edl: '%s' is not wanted", argv[optind]);
        return WS_EXIT_USAGE;
    }
    struct ws_gen_edl g = online ? ws_gen_edl_online : ws_gen_edl_offline;
    g.seed = seed;
    g.u_initial = isnan(u) ? g.u_initial : u;
    g.u_online = isnan(u_online) ? g.u_online : u_online;
    g.base = (int)base;
    g.n_slots = (int)slots;
    if (!parse_dist(dist, &g))
        return WS_EXIT_USAGE;
    struct library lib = {0};
    struct ws_cluster_task *tasks = NULL;
    size_t n = 0;
    int r = library[0] ? ws_cli_each_input(library, read_library, &lib) : 0;
    g.library = library[0] ? lib.v : NULL;
    g.n_library = (int)lib.n;
    if (!r && library[0] && !lib.n) {
        ws_cli_error("%s: no applications", library[0]);
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
