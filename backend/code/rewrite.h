// SPDX-License-Identifier: Apache-2.0
/* backend/code/rewrite.h - kernels rewritten by the passes that let a launch be carried out in
 * parts (ptx/passes/pass.h). Only to try the passes on whole programs (`rewrite` in
 * wattshared.conf): launches are cut, stopped and resumed at random. Threads: any. */
#ifndef WS_BACKEND_CODE_REWRITE_H
#define WS_BACKEND_CODE_REWRITE_H

#include "device/device.h"
#include "ptx/passes/pass.h"

struct ws_rewrite_choice {
    enum ws_ptx_rewrite kind; /* WS_REWRITE_NONE: none */
    bool fence;
    bool fuse;       /* fused with itself, which has no work; not together with the others */
    bool same_block; /* @fuse is only for launches whose blocks have one shape */
    bool whole;      /* not cut and stopped */
};
static inline bool ws_rewrite_any(const struct ws_rewrite_choice *c)
{
    return c->kind != WS_REWRITE_NONE || c->fence || c->fuse;
}

struct ws_rewritten {          /* of one kernel */
    uint32_t from, made;       /* functions: what the last pass was given, what it made; 0: none */
    int32_t kernel;            /* index of the rewritten one; -1: there is none */
    bool flat;                 /* only for one-dimensional blocks */
    uint32_t fence_at, ctl_at; /* offsets among its parameters */
    uint32_t own_bytes;        /* of the original's parameters */
    bool waits; /* may wait for other blocks: all that fitted the GPU at once must still do */
    const struct ws_dmodule *module;
    struct ws_ptx_fused fused;
};

/* Adds what @choice asks for to each kernel of @m that allows it. @ret: [@n_own], malloc'ed, for
 * ws_rewrite_find().
 * Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_rewrite_module(struct ws_ptx_module *m, uint32_t n_own,
                                    const struct ws_rewrite_choice *choice,
                                    struct ws_rewritten **ret);
/* Which kernel stands for which, after the module was loaded. @all: [@n_own] */
void ws_rewrite_find(const struct ws_dmodule *module, uint32_t n_own,
                     const struct ws_rewrite_choice *choice, const struct ws_ptx_module *m,
                     struct ws_rewritten *all);

#endif
