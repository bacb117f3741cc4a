// SPDX-License-Identifier: Apache-2.0
/* papers/sim/trace.h - traces that Perfetto (ui.perfetto.dev) and chrome://tracing open: the Trace Event Format's JSON object form.
 * Tracks are threads of processes, both numbered from 1; times are ms and written as µs. Written as it comes; nothing is kept.
 * Threads: one for each trace. */
#ifndef WS_PAPERS_SIM_TRACE_H
#define WS_PAPERS_SIM_TRACE_H

#include <stdbool.h>
#include <stdio.h>
#include "base/macros.h"
#include "policy/policy.h"
#include "papers/sim/machine.h"

struct ws_trace {
    FILE *f; /* borrowed */
    bool begun;
};
void ws_trace_begin(struct ws_trace *t, FILE *f);
/* Return: 0 or -EIO (something could not be written). */
WS_MUST_CHECK int ws_trace_end(struct ws_trace *t);
/* Names; @thread NULL: of the process. Processes are shown in the order of their numbers. */
void ws_trace_name(struct ws_trace *t, int process, int thread, const char *process_name,
                   const char *thread_name);
/* @args: the inside of a JSON object, as '"sms": 6', or NULL. @name is text and is quoted here. */
void ws_trace_slice(struct ws_trace *t, int process, int thread, const char *name, double start,
                    double end, const char *args);
void ws_trace_mark(struct ws_trace *t, int process, int thread, const char *name, double at,
                   const char *args);
void ws_trace_counter(struct ws_trace *t, int process, const char *name, double at, double value);
/* An arrow from one slice or mark to another; @id is the same at both ends. */
void ws_trace_flow(struct ws_trace *t, int process, int thread, const char *name, double at,
                   uint64_t id, bool end);
/* Writes @text as a JSON string, quotes and all. */
void ws_trace_quote(FILE *f, const char *text);

/* What a machine does: the tasks' releases and misses, each GPU's slots with the parts of each job, its SMs, its power.
 * Give ws_machine_trace_event and the struct to ws_machine_options; deinit ends what still runs at @end. */
struct ws_machine_trace {
    struct ws_trace *t;
    const struct ws_policy_system *sys;
    char (*why)[160]; /* of the job in each slot */
    struct ws_policy_run *runs;
    struct ws_machine_event *starts;
    int *first;
};
WS_MUST_CHECK int ws_machine_trace_init(struct ws_machine_trace *m, struct ws_trace *t,
                                        const struct ws_policy_system *sys);
void ws_machine_trace_event(void *arg, const struct ws_machine_event *e);
void ws_machine_trace_deinit(struct ws_machine_trace *m, double end);

#endif
