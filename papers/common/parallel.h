// SPDX-License-Identifier: Apache-2.0
/* papers/common/parallel.h - runs the same function on many things on several cores, with
 * results in the order of the input.
 * Threads: `work` runs on any thread, several at once, and may share only what it is given; all
 * else runs on the caller's. */
#ifndef WS_PAPERS_COMMON_PARALLEL_H
#define WS_PAPERS_COMMON_PARALLEL_H

#include <stddef.h>
#include "papers/common/progress_bar.h"
#include "papers/sets/jsonl.h"

/* Calls @work(@arg, i) once for each i < @n, on @n_jobs threads (0: all cores). @progress may be
 * NULL. */
void ws_parallel_for(size_t n, int n_jobs, void (*work)(void *arg, size_t i), void *arg,
                     struct ws_progress_bar *progress);

/**
 * ws_parallel_lines() - read lines, work on several at once, and pass on the results in order
 * @work: turns a good line into text (malloc'ed; NULL: none), or marks it as bad (ws_json_bad).
 * Not called for lines that are bad already.
 * @sink: gets each line, good or bad, with its text, in order, on the caller's thread; prints
 * messages (ws_json_line_report()). The text is freed afterwards.
 * Return: 0 or negative (reading failed, out of memory).
 */
int ws_parallel_lines(struct ws_jsonl *r, int n_jobs,
                      char *(*work)(void *arg, struct ws_json_line *l),
                      void (*sink)(void *arg, struct ws_json_line *l, const char *text), void *arg,
                      struct ws_progress_bar *progress);

#endif
