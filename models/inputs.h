// SPDX-License-Identifier: Apache-2.0
/* models/inputs.h - a kernel for the models, from its PTX or from what was counted while it ran.
 * Threads: any. */
#ifndef WS_MODELS_INPUTS_H
#define WS_MODELS_INPUTS_H

#include "models/mwp_cwp.h"
#include "ptx/analysis/count.h"

/* From the text (ptx/analysis/count.h). @blocks_per_sm: occupancy. Return: 0, or -EINVAL (nothing
 * is executed, no threads or blocks). */
WS_MUST_CHECK int ws_mwp_kernel_from_counts(struct ws_mwp_kernel *ret,
                                            const struct ws_ptx_counts *c,
                                            uint32_t threads_per_block, uint64_t n_blocks,
                                            uint32_t blocks_per_sm);

/* What a launch executed, all its blocks together, in warp instructions. */
struct ws_run_counts {
    uint64_t warp_insns;      /* all */
    uint64_t global_accesses; /* of them: loads, stores and atomics of global memory */
    uint64_t sectors;         /* 32-byte sectors that these asked for */
    uint64_t barriers;        /* as counted by each warp that came to one */
};
/* From a run. Accesses of which a warp asks for up to four sectors (a word for each lane) count as
 * coalesced; the average of all is split into those and accesses with 32 sectors so that both sums
 * are kept. Return: as above. */
WS_MUST_CHECK int ws_mwp_kernel_from_run(struct ws_mwp_kernel *ret, const struct ws_run_counts *e,
                                         uint32_t threads_per_block, uint64_t n_blocks,
                                         uint32_t blocks_per_sm);

#endif
