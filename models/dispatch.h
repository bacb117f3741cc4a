// SPDX-License-Identifier: Apache-2.0
/* models/dispatch.h - which blocks of a merged grid an SM executes, and when: dealing,
 * redistribution, critical SMs.
 *
 * Source: the consolidation paper (2011), V: blocks are dealt round-robin over the SMs; blocks that
 * no SM has begun may move to SMs that run dry; the SMs that finish last are critical and give the
 * time of the whole. Times are in any one unit. Threads: one at a time per workspace. Errors:
 * base/error.h. */
#ifndef WS_MODELS_DISPATCH_H
#define WS_MODELS_DISPATCH_H

#include <stdbool.h>
#include "base/diag.h"
#include "base/macros.h"

enum ws_dispatch_policy {
    /* The first occupancy blocks of each SM are dealt round-robin and begin. At the first instant
     * at which blocks finish, all that are left are dealt round-robin over the SMs where they
     * finished; nothing moves after that. The reading of the paper that gives its critical SMs in
     * both of its scenarios. */
    WS_DISPATCH_REDEAL,
    WS_DISPATCH_RR,         /* block b of the merged grid goes to SM b mod n_sms, for good */
    WS_DISPATCH_RR_RESTART, /* the same, but each kernel begins at SM 0 again */
    WS_DISPATCH_GREEDY      /* a free slot takes the next block: what hardware does */
};
enum ws_dispatch_model {
    WS_DISPATCH_ADDITIVE, /* r blocks on an SM each progress at 1/r: they share its issue slots */
    WS_DISPATCH_OVERLAP,  /* each progresses as if it were alone */
    /* Between the two: a block takes block_time alone, of which the SM's issue slots are busy for
     * issue_time; with r blocks it takes max(block_time, r · issue_time); and where all that run
     * ask for more memory than there is, all are slowed alike. What the software GPU does
     * (device/soft/timeline/timing.c). [ours] */
    WS_DISPATCH_BOUNDED
};
const char *ws_dispatch_policy_name(enum ws_dispatch_policy p); /* "redeal" */
const char *ws_dispatch_model_name(enum ws_dispatch_model m);   /* "additive" */
/* Return: false: no such name. */
bool ws_dispatch_policy_find(const char *name, enum ws_dispatch_policy *ret);
bool ws_dispatch_model_find(const char *name, enum ws_dispatch_model *ret);

struct ws_dispatch_kernel {
    uint32_t n_blocks; /* 0: none */
    double block_time; /* of one block alone on an SM; > 0 */
    /* BOUNDED only */
    double issue_time; /* of it, at most block_time; 0: not known, all of it */
    /* In which the memory would move the block's bytes, if they were all it had to do; 0: no
     * limit */
    double memory_time;
};
struct ws_dispatch_in {
    uint32_t n_sms, occupancy; /* occupancy: blocks resident on an SM, at most */
    enum ws_dispatch_policy policy;
    enum ws_dispatch_model model;
    uint32_t n_kernels;
    const struct ws_dispatch_kernel *kernels; /* in grid order */
};
enum { WS_DISPATCH_MAX_SMS = 4096, WS_DISPATCH_MAX_BLOCKS = 1 << 24 };
#define WS_DISPATCH_NONE UINT32_MAX

struct ws_dispatch_block {
    uint32_t kernel, sm;
    /* The block after it in its SM's list, in the order in which they were given to it */
    uint32_t next;
    double start, end;
};
struct ws_dispatch_sm {
    uint32_t first, n_blocks; /* of its list */
    double finish;            /* 0: nothing to do */
    bool critical;            /* finishes within 1e-7 (relative) of the makespan */
    bool redealt;             /* took part in the second deal */
};
/* Result and workspace: reused from call to call, grows as needed. */
struct ws_block_schedule {
    uint32_t n_sms, n_blocks, n_critical;
    struct ws_dispatch_sm *sms;       /* [n_sms] */
    struct ws_dispatch_block *blocks; /* [n_blocks], in grid order */
    double makespan;
    bool did_redeal;
    double redealt_at;
    /* private */
    size_t cap_sms, cap_blocks, cap_slots;
    struct ws_dispatch_run *runs;
    struct ws_dispatch_slot *slots;
};
#define WS_DISPATCH_NULL ((struct ws_block_schedule){0})
void ws_dispatch_deinit(struct ws_block_schedule *d);
/* Return: 0, -EINVAL (with a diagnostic; @diags may be NULL), -ENOMEM. */
WS_MUST_CHECK int ws_dispatch_run(struct ws_block_schedule *d, const struct ws_dispatch_in *in,
                                  struct ws_diags *diags);

#endif
