// SPDX-License-Identifier: Apache-2.0
/* tests/reference/check_edl.h - what the checks of reference/edl share. Threads: none. */
#ifndef WS_TESTS_REFERENCE_CHECK_EDL_H
#define WS_TESTS_REFERENCE_CHECK_EDL_H

#include <math.h>
#include <string.h>
#include "models/dvfs.h"
#include "papers/sim/cluster.h"
#include "tests/reference/check.h"

/* A whole file that is one object; false: said. */
static inline bool open_json(struct ws_check *c, const char *path, struct ws_json_line *ret)
{
    int r = ws_json_file(path, ret);
    if (r)
        ws_check_fail(c, "%s: %s", path, strerror(-r));
    else if (ret->bad)
        ws_json_line_report(ret, stderr, "check");
    c->failed = c->failed || r || ret->bad;
    return !r && !ret->bad;
}

static inline void close_json(struct ws_check *c, struct ws_json_line *l)
{
    if (!ws_json_line_report(l, stderr, "check"))
        c->failed = true;
    ws_json_line_deinit(l);
}

/* All of a file of tasks; NULL: said. free(). */
struct ws_cluster_task *read_tasks(struct ws_check *c, const char *path, size_t *ret_n);

#endif
