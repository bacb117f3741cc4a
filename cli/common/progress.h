// SPDX-License-Identifier: Apache-2.0
/* cli/common/progress.h - how far a long command is, on standard error, only where that is a terminal. Threads: any for step(). */
#ifndef WS_CLI_COMMON_PROGRESS_H
#define WS_CLI_COMMON_PROGRESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct ws_progress {
    const char *what; /* borrowed */
    uint64_t total;   /* 0: unknown */
    _Atomic uint64_t done;
    _Atomic uint64_t shown_ns; /* when it was last drawn */
    uint64_t start_ns;
    bool on;
};
void ws_progress_start(struct ws_progress *p, const char *what, uint64_t total);
void ws_progress_step(struct ws_progress *p, uint64_t n);
/* Clears the line. */
void ws_progress_end(struct ws_progress *p);

#endif
