// SPDX-License-Identifier: Apache-2.0
/* tests/reference/check_edl.h - what the checks of reference/edl share. Threads: none. */
#ifndef WS_TESTS_REFERENCE_CHECK_EDL_H
#define WS_TESTS_REFERENCE_CHECK_EDL_H

#include <math.h>
#include <stdarg.h>
#include <string.h>
#include "models/dvfs.h"
#include "sim/cluster.h"
#include "tests/reference/check.h"

/* Text that lives until the next but three calls. */
static inline const char *WS_PRINTF(1, 2) where(const char *fmt, ...)
{
    static char text[4][200];
    static unsigned next;
    char *s = text[next++ % 4];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(s, sizeof(text[0]), fmt, ap);
    va_end(ap);
    return s;
}

/* Any finite number, which must be there. */
static inline double number(const struct ws_json_at *at, const char *key)
{
    return ws_json_number(at, key, -1e18, 1e18, NAN);
}

static inline bool first_has(struct ws_json_line *first, const char *const *keys)
{
    if (first->bad || !first->root)
        return false;
    struct ws_json_at root = ws_json_root(first);
    for (; *keys; keys++)
        if (!ws_json_has(&root, *keys))
            return false;
    return true;
}

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
