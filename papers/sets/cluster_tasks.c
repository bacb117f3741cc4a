// SPDX-License-Identifier: Apache-2.0
/* Reads and writes the tasks of a cluster as JSON lines (papers/sim/cluster.h). The names of the
 * fields are the paper's. */
#include "config.h"

#include <inttypes.h>
#include <math.h>

#include "papers/sim/cluster.h"

static const double most = 1e15;

struct ws_dvfs_task ws_dvfs_task_read(const struct ws_json_at *at)
{
    struct ws_dvfs_task t = {.p0 = ws_json_number(at, "P0", 0, most, NAN),
                             .gamma = ws_json_number(at, "gamma", 0, most, NAN),
                             .c = ws_json_number(at, "c", 0, most, NAN),
                             .t0 = ws_json_number(at, "t0", 0, most, NAN),
                             .d = ws_json_number(at, "D", 0, most, NAN),
                             .delta = ws_json_number(at, "delta", 0, 1, NAN)};
    if (!at->line->bad && !(t.t0 + t.d > 0))
        ws_json_bad(at->line, "t0", "t0 and D are 0: the task takes no time");
    return t;
}

struct ws_cluster_task ws_cluster_task_read(struct ws_json_line *line,
                                            const struct ws_cluster_limits *limits)
{
    struct ws_json_at at = ws_json_root(line);
    struct ws_cluster_task t = {.id = ws_json_integer(&at, "id", -(INT64_C(1) << 53),
                                                      INT64_C(1) << 53, false, line->number),
                                .arrival = ws_json_number(&at, "a", 0, most, 0),
                                .deadline = ws_json_number(&at, "d", 0, most, NAN),
                                .dvfs = ws_dvfs_task_read(&at)};
    if (line->bad)
        return t;
    double room = t.deadline - t.arrival;
    double shortest =
        limits->dvfs ? ws_dvfs_t_min(&t.dvfs, &limits->interval) : ws_dvfs_default(&t.dvfs).t;
    if (!(room > 0))
        ws_json_bad(line, "d", "%g is not after the arrival a = %g", t.deadline, t.arrival);
    else if (room + 1e-9 * t.deadline < shortest)
        ws_json_bad(line, "d", "%g leaves %g from the arrival, but the task takes at least %g%s",
                    t.deadline, room, shortest, limits->dvfs ? "" : " at the default clocks");
    return t;
}

void ws_cluster_task_write(FILE *f, const struct ws_cluster_task *t)
{
    struct ws_dvfs_point p = ws_dvfs_default(&t->dvfs);
    fprintf(f,
            "{\"id\": %" PRId64 ", \"a\": %.12g, \"u\": %.9g, \"d\": %.15g, \"P0\": %.12g, "
            "\"gamma\": %.12g, \"c\": %.12g, \"D\": %.12g, \"delta\": %.12g, \"t0\": %.12g, "
            "\"t_star\": %.12g, \"P_star\": %.12g}\n",
            t->id, t->arrival, p.t / (t->deadline - t->arrival), t->deadline, t->dvfs.p0,
            t->dvfs.gamma, t->dvfs.c, t->dvfs.d, t->dvfs.delta, t->dvfs.t0, p.t, p.p);
}
