// SPDX-License-Identifier: Apache-2.0
/* base/trace_file.h - writes traces that Perfetto (ui.perfetto.dev) and chrome://tracing open,
 * in the Trace Event Format's JSON form. A track is a thread of a process; both are numbered
 * from 1. Times are given in ms and written in µs. Every event is written at once; nothing is
 * kept. Threads: one for each trace. */
#ifndef WS_BASE_TRACE_FILE_H
#define WS_BASE_TRACE_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "base/macros.h"

struct ws_trace {
    FILE *f; /* borrowed */
    bool begun;
};
void ws_trace_begin(struct ws_trace *t, FILE *f);
/* Writes the end; the file stays open. Return: 0 or -EIO (something could not be written). */
WS_MUST_CHECK int ws_trace_end(struct ws_trace *t);
/* Names the process, the thread, or both; NULL: leaves the name as it is. Processes are shown in
 * the order of their numbers. */
void ws_trace_name(struct ws_trace *t, int process, int thread, const char *process_name,
                   const char *thread_name);
/* Something about a process that viewers do not show: @args as below. */
void ws_trace_about(struct ws_trace *t, int process, const char *what, const char *args);
/* Something that lasts from @start to @end. @args: the inside of a JSON object, as in '"sms":
 * 6', or NULL. @name is any text; it is quoted here. */
void ws_trace_slice(struct ws_trace *t, int process, int thread, const char *name, double start,
                    double end, const char *args);
/* Something that happens at one time. */
void ws_trace_mark(struct ws_trace *t, int process, int thread, const char *name, double at,
                   const char *args);
/* The value that @name has from @at on. */
void ws_trace_counter(struct ws_trace *t, int process, const char *name, double at, double value);
/* An arrow from one slice or mark to another; @id is the same at both ends. */
void ws_trace_flow(struct ws_trace *t, int process, int thread, const char *name, double at,
                   uint64_t id, bool end);
/* Writes @text as a JSON string, with its quotes. */
void ws_trace_quote(FILE *f, const char *text);

#endif
