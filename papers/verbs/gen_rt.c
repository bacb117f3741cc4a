// SPDX-License-Identifier: Apache-2.0
/* `wattshare gen --paper gcaps` and `--paper stgm`: real-time task sets for `wattshare analyze` and `wattshare sim`. */
#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "papers/verbs/gen.h"
#include "papers/verbs/input.h"
#include "papers/sets/gen_gcaps.h"
#include "papers/sets/gen_stgm.h"

static const char gcaps_help[] =
    "usage: wattshare gen --paper gcaps [--seed N] [--count N] [--axis A --x X] [--reading "
    "code|paper]\n"
    "Real-time task sets of the GCAPS experiments, one a line, in ms.\n"
    "  --axis A      what to vary: num_tasks, util_per_cpu, num_cpus, ratio_gpu_tasks, "
    "ratio_g_to_c,\n"
    "                ratio_be, num_gpu_segs, tasks_per_cpu, epsilon, theta; --x gives its value\n"
    "  --reading     code (as released, the default) or paper (worst fit decreasing, periods in "
    "steps of 10 ms)\n";
static const char stgm_help[] =
    "usage: wattshare gen --paper stgm [--seed N] [--count N] [--axis A --x X] [--reading "
    "all-sms|one-sm]\n"
    "Real-time task sets of Table I of STGM, one a line, in us.\n"
    "  --axis A      what to vary: num_tasks, num_tasks_2cpu, num_sm, ratio_gpu, num_gpu_segs, "
    "util; --x gives\n"
    "                its value\n"
    "  --reading     kernel times are drawn on all SMs (the default) or on one\n";

struct request {
    const char *paper, *help, *axis, *reading;
    double x, count;
    int status; /* where it ends here: >= 0 */
};

static struct request parse(int argc, char **argv, const char *paper, const char *help)
{
    static const struct option options[] = {
        {"count", required_argument, NULL, 'c'},   {"axis", required_argument, NULL, 'a'},
        {"x", required_argument, NULL, 'x'},       {"help", no_argument, NULL, 'h'},
        {"reading", required_argument, NULL, 'r'}, {NULL, 0, NULL, 0}};
    struct request q = {.paper = paper, .help = help, .x = NAN, .count = 1, .status = -1};
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        int bad = 0;
        if (c == 'c')
            bad = ws_cli_number("count", optarg, 1, 1e9, &q.count);
        else if (c == 'a')
            q.axis = optarg;
        else if (c == 'x')
            bad = ws_cli_number("x", optarg, 0, 1e9, &q.x);
        else if (c == 'r')
            q.reading = optarg;
        else {
            fputs(help, c == 'h' ? stdout : stderr);
            q.status = c == 'h' ? 0 : WS_EXIT_USAGE;
            return q;
        }
        if (bad)
            q.status = WS_EXIT_USAGE;
    }
    if (optind < argc)
        ws_cli_error("gen --paper %s: '%s' is not wanted", paper, argv[optind]);
    else if (!q.axis != isnan(q.x))
        ws_cli_error("gen --paper %s: --axis and --x go together", paper);
    else
        return q;
    q.status = WS_EXIT_USAGE;
    return q;
}

static int set_axis(const struct request *q, int r)
{
    if (r == -ENOENT) {
        ws_cli_error("--axis %s: there is no such axis", q->axis);
        fputs(q->help, stderr);
    } else if (r)
        ws_cli_error("--x %g is out of the range of %s", q->x, q->axis);
    return r ? WS_EXIT_USAGE : 0;
}

/* Whether --reading is @second (true) or @first or missing (false). */
static int set_reading(const struct request *q, const char *first, const char *second, bool *ret)
{
    *ret = q->reading && !strcmp(q->reading, second);
    if (!q->reading || *ret || !strcmp(q->reading, first))
        return 0;
    ws_cli_error("--reading %s: %s or %s is wanted", q->reading, first, second);
    return WS_EXIT_USAGE;
}

static void print_set(const struct request *q, const char *axis, uint64_t seed, uint64_t i,
                      const struct ws_rt_set *set)
{
    printf("{\"id\": %" PRIu64 ", \"paper\": \"%s\", \"seed\": %" PRIu64 ", ", i, q->paper, seed);
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

int ws_cli_gen_gcaps(int argc, char **argv, uint64_t seed)
{
    struct request q = parse(argc, argv, "gcaps", gcaps_help);
    struct ws_gen_gcaps g = ws_gen_gcaps_default;
    bool paper;
    if (q.status >= 0)
        return q.status;
    if ((q.axis && set_axis(&q, ws_gen_gcaps_axis(&g, q.axis, q.x))) ||
        set_reading(&q, "code", "paper", &paper))
        return WS_EXIT_USAGE;
    g.reading = paper ? WS_GEN_PAPER : WS_GEN_CODE;
    int r = 0;
    for (uint64_t i = 0; !r && i < (uint64_t)q.count; i++) {
        struct ws_random random;
        struct ws_rt_set set;
        ws_random_init_part(&random, seed, i);
        r = ws_gen_gcaps(&g, &random, &set);
        if (!r)
            print_set(&q, q.axis, seed, i, &set);
        ws_rt_set_deinit(&set);
    }
    return finish(r);
}

int ws_cli_gen_stgm(int argc, char **argv, uint64_t seed)
{
    struct request q = parse(argc, argv, "stgm", stgm_help);
    struct ws_gen_stgm g = ws_gen_stgm_default;
    if (q.status >= 0)
        return q.status;
    if ((q.axis && set_axis(&q, ws_gen_stgm_axis(&g, q.axis, q.x))) ||
        set_reading(&q, "all-sms", "one-sm", &g.drawn_on_one_sm))
        return WS_EXIT_USAGE;
    int r = 0;
    for (uint64_t i = 0; !r && i < (uint64_t)q.count; i++) {
        struct ws_random random;
        struct ws_rt_set set;
        ws_random_init_part(&random, seed, i);
        r = ws_gen_stgm(&g, &random, &set);
        if (!r)
            print_set(&q, q.axis, seed, i, &set);
        ws_rt_set_deinit(&set);
    }
    return finish(r);
}
