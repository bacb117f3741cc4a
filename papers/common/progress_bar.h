// SPDX-License-Identifier: Apache-2.0
/* papers/common/progress_bar.h - shows how far a long command is, on standard error if that is a
 * terminal. Threads: any may step. */
#ifndef WS_PAPERS_COMMON_PROGRESS_BAR_H
#define WS_PAPERS_COMMON_PROGRESS_BAR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct ws_progress_bar {
    const char *what; /* borrowed */
    uint64_t total;   /* 0: unknown */
    _Atomic uint64_t done;
    _Atomic uint64_t shown_ns; /* when it was last drawn */
    uint64_t start_ns;
    bool on;
};
void ws_progress_bar_start(struct ws_progress_bar *p, const char *what, uint64_t total);
void ws_progress_bar_step(struct ws_progress_bar *p, uint64_t n);
/* Clears the line. */
void ws_progress_bar_end(struct ws_progress_bar *p);

#endif
