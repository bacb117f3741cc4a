// SPDX-License-Identifier: Apache-2.0
/* wattshare gen --paper gcaps and --paper stgm: make real-time task sets for `wattshare analyze`
 * and `wattshare sim`. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/common/options.h"
#include "papers/verbs/gen.h"
#include "papers/verbs/input.h"
#include "papers/sets/gen_gcaps.h"
#include "papers/sets/gen_stgm.h"

struct gen_rt_options {
    struct ws_gen_request request;
    const char *axis, *reading;
    double x; /* NAN: not given */
    int count;
};
#define GEN_RT_DEFAULT                                                                             \
    ((struct gen_rt_options){.request = WS_GEN_REQUEST_DEFAULT, .x = NAN, .count = 1})

#define COUNT_ROW                                                                                  \
    {                                                                                              \
        "count", "N", "How many sets are made (1).",                                               \
            .more = "Set number i of a seed is the same whatever the count.",                      \
            WS_INT(struct gen_rt_options, count, 1, 1000000000)                                    \
    }
#define X_ROW                                                                                      \
    {                                                                                              \
        "x", "X", "The value of what --axis names.", WS_NUMBER(struct gen_rt_options, x, 0, 1e9)   \
    }

static const struct ws_option gcaps_options[] = {
    WS_GEN_OPTIONS,
    COUNT_ROW,
    {"axis", "AXIS", "What the paper's experiment varies.",
     .words = "num_tasks|util_per_cpu|num_cpus|ratio_gpu_tasks|ratio_g_to_c|ratio_be|num_gpu_segs|"
              "tasks_per_cpu|epsilon|theta",
     WS_TEXT(struct gen_rt_options, axis)},
    X_ROW,
    {"reading", NULL, "Sets as the authors' program makes them, or as the paper describes (code).",
     .more = "code: one task of a core is much larger than the others. paper: UUniFast, worst fit "
             "decreasing, periods in steps of 10 ms.",
     .words = "code|paper", WS_TEXT(struct gen_rt_options, reading)},
    {0}};
static const struct ws_option stgm_options[] = {
    WS_GEN_OPTIONS,
    COUNT_ROW,
    {"axis", "AXIS", "What the paper's experiment varies.",
     .words = "num_tasks|num_tasks_2cpu|num_sm|ratio_gpu|num_gpu_segs|util",
     WS_TEXT(struct gen_rt_options, axis)},
    X_ROW,
    {"reading", NULL, "Whether kernel times are drawn on all SMs or on one (all-sms).",
     .words = "all-sms|one-sm", WS_TEXT(struct gen_rt_options, reading)},
    {0}};

static int gen_gcaps(int argc, char **argv);
static int gen_stgm(int argc, char **argv);

const struct ws_verb ws_verb_gen_gcaps = {
    .name = "gen --paper gcaps",
    .purpose = "real-time tasks with GPU segments on cores, preemptive GPU",
    .about = "Prints the task sets of the GCAPS experiments, one a line; times are in ms.",
    .options = gcaps_options,
    .run = gen_gcaps,
};
const struct ws_verb ws_verb_gen_stgm = {
    .name = "gen --paper stgm",
    .purpose = "real-time tasks whose kernels run on sets of SMs",
    .about = "Prints the task sets of STGM's Table I, one a line; times are in microseconds.",
    .options = stgm_options,
    .run = gen_stgm,
};

static int parse(const struct ws_verb *v, int argc, char **argv, struct gen_rt_options *o)
{
    char **rest;
    int status = ws_verb_parse(v, argc, argv, o, &rest);
    if (status < 0 && !o->axis != isnan(o->x))
        return ws_verb_wrong(v, "--axis and --x go together");
    return status;
}

static int set_axis(const struct gen_rt_options *o, int r)
{
    if (r)
        ws_cli_error("--x %g is out of the range of %s", o->x, o->axis);
    return r ? WS_EXIT_USAGE : 0;
}

static void print_set(const struct gen_rt_options *q, const char *axis, uint64_t seed, uint64_t i,
                      const struct ws_rt_set *set)
{
    printf("{\"id\": %" PRIu64 ", \"paper\": \"%s\", \"seed\": %" PRIu64 ", ", i, q->request.paper,
           seed);
    if (axis)
        printf("\"axis\": \"%s\", \"x\": %.10g, ", axis, q->x);
    ws_rt_set_write(set, stdout);
    puts("}");
}

static int finish(int r)
{
    if (r)
        ws_cli_error("%s", strerror(-r));
    if (fflush(stdout) || ferror(stdout)) {
        ws_cli_error("standard output: %s", strerror(errno));
        return 1;
    }
    return r ? 1 : 0;
}

static int gen_gcaps(int argc, char **argv)
{
    struct gen_rt_options q = GEN_RT_DEFAULT;
    int status = parse(&ws_verb_gen_gcaps, argc, argv, &q);
    struct ws_gen_gcaps g = ws_gen_gcaps_default;
    if (status >= 0)
        return status;
    if (q.axis && set_axis(&q, ws_gen_gcaps_axis(&g, q.axis, q.x)))
        return WS_EXIT_USAGE;
    bool paper = q.reading && !strcmp(q.reading, "paper");
    g.reading = paper ? WS_GEN_PAPER : WS_GEN_CODE;
    int r = 0;
    for (uint64_t i = 0; !r && i < (uint64_t)q.count; i++) {
        struct ws_random random;
        struct ws_rt_set set;
        ws_random_init_part(&random, q.request.seed, i);
        r = ws_gen_gcaps(&g, &random, &set);
        if (!r)
            print_set(&q, q.axis, q.request.seed, i, &set);
        ws_rt_set_deinit(&set);
    }
    return finish(r);
}

static int gen_stgm(int argc, char **argv)
{
    struct gen_rt_options q = GEN_RT_DEFAULT;
    int status = parse(&ws_verb_gen_stgm, argc, argv, &q);
    struct ws_gen_stgm g = ws_gen_stgm_default;
    if (status >= 0)
        return status;
    if (q.axis && set_axis(&q, ws_gen_stgm_axis(&g, q.axis, q.x)))
        return WS_EXIT_USAGE;
    g.drawn_on_one_sm = q.reading && !strcmp(q.reading, "one-sm");
    int r = 0;
    for (uint64_t i = 0; !r && i < (uint64_t)q.count; i++) {
        struct ws_random random;
        struct ws_rt_set set;
        ws_random_init_part(&random, q.request.seed, i);
        r = ws_gen_stgm(&g, &random, &set);
        if (!r)
            print_set(&q, q.axis, q.request.seed, i, &set);
        ws_rt_set_deinit(&set);
    }
    return finish(r);
}
