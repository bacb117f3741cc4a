// SPDX-License-Identifier: Apache-2.0
/* ptx/pass.h - kernels rewritten so that a grid can be stopped between two blocks and gone on with later, on the same GPU or
 * another; kept to a set of SMs; or run in pieces. The rewritten kernel is one more .entry of the same module, so that it shares the
 * module's variables with the original, which stays.
 *
 *   slice       block numbers start at an offset: a launch runs blocks [offset, offset + its own grid) of the whole grid.
 *   ticket      each block takes the number it shall be from a counter, or leaves if a flag is up or its SM is not wanted.
 *   persistent  ticket in a loop: a few blocks run all of the grid's, one after another. Only where analysis shows it safe.
 *
 * The rewritten kernel has one parameter more, at the end: struct ws_ptx_ctl. Its grid is one-dimensional.
 * A module is rewritten by whoever made it, before others see it; pointers into m->funcs are stale afterwards.
 * Threads: none while rewriting. Source: facts of sections 1.1 to 1.8 of the project's notes on GPU mechanisms; PTX ISA 9.7.13. */
#ifndef WS_PTX_PASS_H
#define WS_PTX_PASS_H

#include "ptx/ptx.h"

enum ws_ptx_rewrite {
    WS_REWRITE_NONE,
    WS_REWRITE_SLICE,
    WS_REWRITE_TICKET,
    WS_REWRITE_PERSISTENT,
    _WS_REWRITE_N
};
const char *ws_ptx_rewrite_name(enum ws_ptx_rewrite r); /* "slice" */

/* What a rewritten kernel gets at the end of its parameters, at the offset ws_ptx_ctl_offset() tells. */
struct ws_ptx_ctl {
    uint32_t grid[3]; /* of the launch as the program asked for it */
    uint32_t total;   /* grid[0] * grid[1] * grid[2]; below 2^31 */
    uint64_t
        ticket; /* address of a uint32_t that starts at 0: the next block. When no launch runs, it is how many blocks are
                       * done, up to total. ticket, persistent */
    uint64_t flag; /* address of a uint32_t: not 0: begin no more blocks. ticket, persistent */
    uint64_t mask; /* address of uint32_t[8]: bit n: SM n may be used. 0: all. ticket, persistent */
    uint32_t offset; /* of the first block. slice */
    uint32_t reserved[5];
};
/* Where it stands among the parameters of @f, the original. */
uint64_t ws_ptx_ctl_offset(const struct ws_ptx_func *f);

/**
 * ws_ptx_rewrite_refused() - why a kernel can't be rewritten that way
 * @ret_flat_block: where 0 is returned: it holds only for launches with a one-dimensional block (threads of one warp then have
 *   neighbouring %tid.x)
 * @ret_text: gets the reason, with the PTX line where there is one: "line 41: grid synchronisation needs all blocks at once"
 * @text_bytes: of @ret_text
 *
 * Return: 0: it can; WS_PTX_E_UNSUPPORTED: it can't, and must run whole; -ENOMEM.
 */
WS_MUST_CHECK int ws_ptx_rewrite_refused(const struct ws_ptx_module *m, uint32_t func,
                                         enum ws_ptx_rewrite kind, bool *ret_flat_block,
                                         char *ret_text, size_t text_bytes);

/**
 * ws_ptx_rewrite() - add a rewritten entry to the module
 * @func: index of an .entry with a body, for which ws_ptx_rewrite_refused() said 0
 * @ret_func: index of the new entry; its name is NAME$slice, NAME$ticket, NAME$persistent
 *
 * Return: 0, or -ENOMEM with the module as it was.
 */
WS_MUST_CHECK int ws_ptx_rewrite(struct ws_ptx_module *m, uint32_t func, enum ws_ptx_rewrite kind,
                                 uint32_t *ret_func);

/* ---- fence (ptx/fence.c): a kernel that can't touch memory of others in a context it shares with them ---- */

/* Where a client's memory is, in device memory that no client can write. */
struct ws_ptx_ranges {
    uint32_t n, reserved;
    struct {
        uint64_t low, bytes;
    } range[];
};
/* What a fenced kernel gets at the end of its parameters. */
struct ws_ptx_fence {
    uint64_t low;    /* of the client's largest range, which nearly all accesses hit */
    uint64_t limit;  /* its bytes less WS_FENCE_SLACK, or 0 where it is no longer than that */
    uint64_t ranges; /* address of struct ws_ptx_ranges: all ranges, exactly */
    uint64_t
        fault; /* address of two uint64_t: at the first access outside: 1, and the address. Threads that go outside end. */
};
enum { WS_FENCE_SLACK = 4096 };

/* Why a kernel can't be fenced: it must run in a context without others. Otherwise as ws_ptx_rewrite_refused(). */
WS_MUST_CHECK int ws_ptx_fence_refused(const struct ws_ptx_module *m, uint32_t func, char *ret_text,
                                       size_t text_bytes);
/**
 * ws_ptx_fence() - add an entry in which each access to global memory is checked first
 * @func: index of an .entry for which ws_ptx_fence_refused() said 0; may be a rewritten one only in the other order: fence first,
 *   then ws_ptx_rewrite() the fenced one
 * @ret_func: index of the new entry, NAME$fence
 *
 * Loads, stores, atomics and asynchronous copies through global or generic addresses are checked, by register and offset, before they
 * are made; accesses through one register within a basic block are checked together. Generic addresses of shared and local memory
 * pass. Variables of the module count as the client's: an access by their name is checked when the kernel is rewritten.
 * Return: 0, or -ENOMEM with the module as it was (but for the helper function ws$fence).
 */
WS_MUST_CHECK int ws_ptx_fence(struct ws_ptx_module *m, uint32_t func, uint32_t *ret_func);

/* ---- uniformity (ptx/uniform.c) ---- */
/* For each register of @f whether its value may differ between threads of one block, counting what decides which definition
 * reaches (conservative: true where it isn't known). Allocates from @a. Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_ptx_divergent_regs(const struct ws_ptx_func *f, const struct ws_ptx_cfg *cfg,
                                        struct ws_arena *a, bool **ret);

#endif
