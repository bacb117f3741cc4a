// SPDX-License-Identifier: Apache-2.0
/* wattshare gen --paper sbeet: makes task sets as in sBEET-mg's Table V, for `wattshare sim`. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/common/options.h"
#include "papers/verbs/gen.h"
#include "papers/verbs/input.h"
#include "papers/sets/gen_sbeet.h"

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

enum offsets { STAGGER, RANDOM, BOTH };
struct gen_sbeet_options {
    struct ws_gen_request request;
    double u;
    int n_tasks, count, ref_sm, offsets;
};

static const struct ws_option options[] = {
    WS_GEN_OPTIONS,
    {"u", "U", "The utilisation of each set, on --ref-sm SMs of an RTX 3070 (1).",
     WS_NUMBER(struct gen_sbeet_options, u, 0.01, 32)},
    {"tasks", "N", "The number of tasks in a set (6).",
     WS_INT(struct gen_sbeet_options, n_tasks, 1, WS_GEN_SBEET_MAX)},
    {"count", "N", "How many sets are made; set i has the seed plus i (1).",
     WS_INT(struct gen_sbeet_options, count, 1, 1000000000)},
    {"ref-sm", "N",
     "Periods come from the mean time on 1 to N SMs (24; the paper does not say how many).",
     WS_INT(struct gen_sbeet_options, ref_sm, 1, 46)},
    {"offsets", NULL,
     "First releases: the highest priority last, 2 ms apart (stagger); random; or both by turns "
     "(both).",
     .words = "stagger|random|both", WS_CHOICE(struct gen_sbeet_options, offsets)},
    {0}};

static int gen_sbeet(int argc, char **argv);

const struct ws_verb ws_verb_gen_sbeet = {
    .name = "gen --paper sbeet",
    .purpose = "periodic kernels on several GPUs",
    .about = "Prints task sets as in sBEET-mg's Table V for wattshare sim, one a line.",
    .options = options,
    .run = gen_sbeet,
};

static int gen_sbeet(int argc, char **argv)
{
    struct gen_sbeet_options o = {.request = WS_GEN_REQUEST_DEFAULT,
                                  .u = 1,
                                  .n_tasks = 6,
                                  .count = 1,
                                  .ref_sm = 24,
                                  .offsets = BOTH};
    char **rest;
    int status = ws_verb_parse(&ws_verb_gen_sbeet, argc, argv, &o, &rest);
    if (status >= 0)
        return status;
    for (uint64_t i = 0; i < (uint64_t)o.count; i++) {
        struct ws_sbeet_task t[WS_GEN_SBEET_MAX];
        bool is_random = o.offsets == BOTH ? i % 2 == 1 : o.offsets == RANDOM;
        struct ws_gen_sbeet g = {.seed = o.request.seed + i,
                                 .n_tasks = o.n_tasks,
                                 .util = o.u,
                                 .ref_sm = o.ref_sm,
                                 .random_offsets = is_random};
        if (ws_gen_sbeet(&g, t)) {
            ws_cli_error("--u %g: %d tasks have 0.01 to 0.5 each; expected %g to %g", o.u,
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
