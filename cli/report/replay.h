// SPDX-License-Identifier: Apache-2.0
/* cli/report/replay.h - what other policies would have done with the jobs of a trace: the simulator
 * of papers/sim/machine.h runs them under each. Threads: none. */
#ifndef WS_CLI_REPORT_REPLAY_H
#define WS_CLI_REPORT_REPLAY_H

#include "cli/report/report.h"

enum { WS_REPLAY_ROWS = 32, WS_REPLAY_JOBS_MAX = 5000 };

struct ws_replay_row {
    const char *name;                /* of the policy */
    double end_ms;                   /* from the first release until the last job was done */
    double wait_ms, longest_wait_ms; /* from release to start: mean and longest */
    double response_ms;              /* from release to end: mean */
    double joules;
    uint64_t n_done, n_late; /* late: after the deadline, or dropped because of it */
    char note[160];          /* why there are no figures; "": there are */
};
struct ws_replay {
    struct ws_replay_row traced, rows[WS_REPLAY_ROWS]; /* traced: as it was */
    size_t n_rows, n_jobs, n_left_out;                 /* left out: beyond WS_REPLAY_JOBS_MAX */
    bool has_deadlines, has_idle; /* idle: the trace says what idle GPUs take */
    const char *impossible;       /* why nothing was simulated; NULL: it was */
};

/* Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_replay(const struct ws_report *r, struct ws_replay *ret);

#endif
