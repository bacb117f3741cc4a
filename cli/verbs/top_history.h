// SPDX-License-Identifier: Apache-2.0
/* cli/verbs/top_history.h - what the GPUs did in the last pages of `wattshare top`, as strips.
 * Threads: none. */
#ifndef WS_CLI_VERBS_TOP_HISTORY_H
#define WS_CLI_VERBS_TOP_HISTORY_H

#include <stdbool.h>
#include <stdio.h>
#include "protocol/protocol.h"

enum { WS_TOP_PAGES = 60 };

struct ws_top_history {
    unsigned n; /* pages so far, all GPUs */
    /* Means from one page to the next; negative: the GPU's clock did not move. */
    float power_w[WS_MAX_DEVICES][WS_TOP_PAGES], sm_share[WS_MAX_DEVICES][WS_TOP_PAGES];
};

/* Means of a GPU between two statuses. Return: false: its clock did not move. */
bool ws_top_means(const Ws__GpuStatus *now, const Ws__GpuStatus *before, double *ret_power_w,
                  double *ret_sm_share);
/* Notes what came since @before. */
void ws_top_history_add(struct ws_top_history *h, const Ws__StatusReply *now,
                        const Ws__StatusReply *before);
/* Two strips in a line, with the ends of their scales; nothing where there is no page yet. */
void ws_top_history_print(const struct ws_top_history *h, const Ws__GpuStatus *g, FILE *f);

#endif
