// SPDX-License-Identifier: Apache-2.0
/* `wattshare gen --paper sbeet`: task sets as in sBEET-mg's Table V, for `wattshare sim`. */
#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "papers/verbs/gen.h"
#include "papers/verbs/input.h"
#include "papers/sets/gen_sbeet.h"

static const char help[] =
    "usage: wattshare gen --paper sbeet [--seed N] [--u U] [--tasks N] [--count N] [--ref-sm N] "
    "[--offsets "
    "stagger|random|both]\n"
    "Periodic kernels of the sBEET-mg paper for `wattshare sim`, one task set a line; set i has "
    "seed N + i.\n"
    "  --u U        utilisation of each set, on --ref-sm SMs of an RTX 3070 (1)\n"
    "  --tasks N    in a set (6)\n"
    "  --count N    task sets (1)\n"
    "  --ref-sm N   SM counts 1 to N make the mean time that periods come from (24; the paper "
    "doesn't say)\n"
    "  --offsets O  stagger: highest priority last, 2 ms apart; random; both: by turns (both)\n";

static void print_set(const struct ws_gen_sbeet *g, uint64_t i, const struct ws_sbeet_task *t)
{
    printf("{\"id\":\"sbeet_%" PRIu64 "\",\"util\":%.12g,\"seed\":%" PRIu64
           ",\"phi_rule\":\"%s\",\"ref_gpu\":\"rtx3070\",\"ref_sm\":%d,\"duration_ms\":15000,"
           "\"deadline_factor\":0.5,\"tasks\":[",
           i, g->util, g->seed, g->random_offsets ? "random" : "stagger", g->ref_sm);
    for (int k = 0; k < g->n_tasks; k++)
        printf("%s{\"id\":%d,\"app\":%d,\"benchmark\":\"%s\",\"period_ms\":%.17g,\"deadline_ms\":%."
               "17g,"
               "\"phi_ms\":%.17g,\"ref_util\":%.9f}",
               k ? "," : "", k, t[k].app, t[k].kernel, t[k].period, t[k].deadline, t[k].offset,
               t[k].utilization);
    printf("]}\n");
}

int ws_cli_gen_sbeet(int argc, char **argv, uint64_t seed)
{
    static const struct option options[] = {{"u", required_argument, NULL, 'u'},
                                            {"tasks", required_argument, NULL, 't'},
                                            {"count", required_argument, NULL, 'c'},
                                            {"ref-sm", required_argument, NULL, 'r'},
                                            {"offsets", required_argument, NULL, 'o'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    double u = 1, n_tasks = 6, count = 1, ref_sm = 24;
    const char *offsets = "both";
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        int bad = 0;
        switch (c) {
        case 'u':
            bad = ws_cli_number("u", optarg, 0.01, 32, &u);
            break;
        case 't':
            bad = ws_cli_number("tasks", optarg, 1, WS_GEN_SBEET_MAX, &n_tasks);
            break;
        case 'c':
            bad = ws_cli_number("count", optarg, 1, 1e9, &count);
            break;
        case 'r':
            bad = ws_cli_number("ref-sm", optarg, 1, 46, &ref_sm);
            break;
        case 'o':
            offsets = optarg;
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
    bool both = !strcmp(offsets, "both"), random = !strcmp(offsets, "random");
    if (optind < argc || (!both && !random && strcmp(offsets, "stagger") != 0)) {
        ws_cli_error("gen --paper sbeet: '%s' is not wanted",
                     optind < argc ? argv[optind] : offsets);
        return WS_EXIT_USAGE;
    }
    for (uint64_t i = 0; i < (uint64_t)count; i++) {
        struct ws_sbeet_task t[WS_GEN_SBEET_MAX];
        struct ws_gen_sbeet g = {.seed = seed + i,
                                 .n_tasks = (int)n_tasks,
                                 .util = u,
                                 .ref_sm = (int)ref_sm,
                                 .random_offsets = both ? i % 2 == 1 : random};
        if (ws_gen_sbeet(&g, t)) {
            ws_cli_error("--u %g: with %d tasks of 0.01 to 0.5 each, from %g to %g is wanted", u,
                         g.n_tasks, 0.015 * g.n_tasks, 0.475 * g.n_tasks);
            return WS_EXIT_USAGE;
        }
        print_set(&g, i, t);
    }
    if (fflush(stdout)) {
        ws_cli_error("the task sets could not be written: %s", strerror(errno));
        return 1;
    }
    return 0;
}
