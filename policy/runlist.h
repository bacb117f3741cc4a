// SPDX-License-Identifier: Apache-2.0
/* policy/runlist.h - the run list of GCAPS as it was published: Algorithm 1 as printed, and the
 * authors' driver patch. Both keep two sets, running and pending, and err where policy/gcaps.c does
 * not; kept to show the difference and to reproduce it. Threads: none. Errors: base/error.h. */
#ifndef WS_POLICY_RUNLIST_H
#define WS_POLICY_RUNLIST_H

#include <stdbool.h>
#include "base/macros.h"

enum ws_runlist_form {
    WS_RUNLIST_ALG1,  /* GCAPS paper, Algorithm 1 */
    WS_RUNLIST_DRIVER /* released patch of the Tegra driver */
};
struct ws_runlist_task {
    int priority; /* 0: best effort */
    bool running, pending;
};
struct ws_runlist {
    enum ws_runlist_form form;
    /* The order is the order of TSG numbers, which decides between equals */
    struct ws_runlist_task *tasks;
    int n_tasks;
};
#define WS_RUNLIST_NULL ((struct ws_runlist){0})

/* All best effort, nothing open. */
WS_MUST_CHECK int ws_runlist_init(struct ws_runlist *l, enum ws_runlist_form form, int n_tasks);
void ws_runlist_deinit(struct ws_runlist *l);
/* Task @t opens a GPU segment. */
void ws_runlist_begin(struct ws_runlist *l, int t);
/* Task @t closes it. */
void ws_runlist_end(struct ws_runlist *l, int t);
const char *ws_runlist_form_name(enum ws_runlist_form form);

#endif
