// SPDX-License-Identifier: Apache-2.0
/* backend/task.h - what the configuration says of a program: which task it is, how often it runs, how urgent, how much it may
 * have. wattshared.conf(5), "task". A client has a copy from its Hello on, so reloading the file never pulls it away.
 * Threads: none. */
#ifndef WS_BACKEND_TASK_H
#define WS_BACKEND_TASK_H

#include <stdbool.h>
#include "base/sm_set.h"

enum { WS_TASK_NAME_BYTES = 64 };
struct ws_task {
    char name[WS_TASK_NAME_BYTES]; /* of the entry; of a program that none matches: its file name */
    double period_ms, deadline_ms; /* relative to release; 0: none */
    int priority;                  /* larger is higher; real-time > 0; 0: best effort */
    double weight;                 /* share, 1 by default */
    double
        wcet_ms; /* of one job's kernels on the whole first GPU, as stated; 0: from profiles, or learned */
    unsigned n_sm_max;    /* at most so many SMs; 0: no limit */
    struct ws_sm_set sms; /* fixed; n == 0: none */
    char gpu[32];         /* only on GPUs of this catalog name; "": any */
    char profile[64];     /* program in the profile store; "": none */
    bool busy_wait;
    bool
        copies; /* copies count as the job's work too, and wait for its turn (GCAPS: a segment opens at the first GPU command) */
};

/* The task of a program nobody has said anything about. @exe: path, may be "". */
void ws_task_default(struct ws_task *ret, const char *exe);

#endif
