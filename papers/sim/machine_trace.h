// SPDX-License-Identifier: Apache-2.0
/* papers/sim/machine_trace.h - the trace of a simulated machine (papers/sim/machine.h): the
 * tasks' releases and misses, each GPU's slots with the parts of each job, its SMs, and its
 * power. Threads: one for each trace. */
#ifndef WS_PAPERS_SIM_MACHINE_TRACE_H
#define WS_PAPERS_SIM_MACHINE_TRACE_H

#include "base/trace_file.h"
#include "papers/sim/machine.h"
#include "policy/policy.h"

struct ws_machine_trace {
    struct ws_trace *t;
    const struct ws_policy_system *sys;
    char (*why)[WS_POLICY_WHY]; /* of the job in each slot */
    struct ws_policy_run *runs;
    struct ws_machine_event *starts;
    int *first;
};
/* @t and @sys stay in use. Give ws_machine_trace_event() and @m to the options of
 * ws_machine_run(). Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_machine_trace_init(struct ws_machine_trace *m, struct ws_trace *t,
                                        const struct ws_policy_system *sys);
void ws_machine_trace_event(void *arg, const struct ws_machine_event *e);
/* Ends what still runs at the time @end, and frees what init made. */
void ws_machine_trace_deinit(struct ws_machine_trace *m, double end);

#endif
