// SPDX-License-Identifier: Apache-2.0
/* frontend/session/callers.h - who called this library: the program's functions on the stack. For
 * what `wattshare check` says of allocations. Threads: any. */
#ifndef WS_FRONTEND_SESSION_CALLERS_H
#define WS_FRONTEND_SESSION_CALLERS_H

#include <stdio.h>

enum { WS_CALLERS_MAX = 12 };
struct ws_callers {
    void *at[WS_CALLERS_MAX]; /* where each call returns to, innermost first */
    int n;
};

/* The calling thread's, without those of this library. */
void ws_callers_take(struct ws_callers *ret);
/* A line for each, after @indent: function, how far in it, file, how far in the file's code (as
 * addr2line takes it). */
void ws_callers_print(const struct ws_callers *c, FILE *to, const char *indent);
/* @name as C++ would write it, in @buf; or as it is. Returns @buf. */
const char *ws_callers_demangle(const char *name, char *buf, size_t size);

#endif
