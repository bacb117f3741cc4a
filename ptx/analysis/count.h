/* SPDX-License-Identifier: Apache-2.0 */
/* ptx/analysis/count.h - what a kernel's threads execute, counted without running it: the inputs of
 * performance and power models.
 *
 * A static estimate. Counts of a loop's body are multiplied by the loop's trips where these can be
 * read off (a counter that begins and ends with constants), else by what the caller assumes. Both
 * sides of a branch count in full unless one leaves the kernel. Where counts of a run are to be had
 * (the software GPU's), those are better.
 * Threads: any; the module is only read. Errors: base/error.h. */
#ifndef WS_PTX_ANALYSIS_COUNT_H
#define WS_PTX_ANALYSIS_COUNT_H

#include "ptx/ptx.h"

struct ws_ptx_count_options {
    double loop_trips; /* of a loop whose trips are not known; 0: 16 */
    /* Threads of a block; 0: the kernel's .reqntid or .maxntid, else unknown (many in x). */
    uint32_t ntid[3];
};
/* Per thread. */
struct ws_ptx_counts {
    double total; /* instructions executed */
    double comp;  /* all but the next three: arithmetic, control, shared and constant memory, … */
    /* Accesses to global, local and generic memory by which a warp asks for no more 32-byte sectors
     * than it needs. */
    double coal;
    double uncoal; /* the others */
    /* Mean sectors that an uncoalesced warp access asks for, 2 to 32; 1 where there are none. */
    double uncoal_per_mw;
    double synch; /* barriers of the block */
    double mix[_WS_MIX_N];
    uint32_t n_loops_guessed; /* loops that loop_trips was used for */
    bool opaque;              /* calls through registers: what they execute is not counted */
};
/**
 * ws_ptx_count() - count what kernel or function @f executes, with the functions that it calls
 * @o: NULL: defaults
 * Return: 0, -EINVAL (a declaration without body), -ENOMEM.
 */
WS_MUST_CHECK int ws_ptx_count(const struct ws_ptx_module *m, const struct ws_ptx_func *f,
                               const struct ws_ptx_count_options *o, struct ws_ptx_counts *ret);

/* The same for many kernels of one module, whose functions are counted once. */
struct ws_ptx_counter;
/* @m: borrowed. Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_ptx_counter_new(struct ws_ptx_counter **ret, const struct ws_ptx_module *m,
                                     const struct ws_ptx_count_options *o);
struct ws_ptx_counter *ws_ptx_counter_free(struct ws_ptx_counter *c); /* NULL ok; returns NULL */
/* Return: as ws_ptx_count(); not to be used again after -ENOMEM. */
WS_MUST_CHECK int ws_ptx_counter_count(struct ws_ptx_counter *c, const struct ws_ptx_func *f,
                                       struct ws_ptx_counts *ret);

#endif
