/* SPDX-License-Identifier: Apache-2.0 */
/* ptx/passes/pass.h - passes: kernels rewritten so that a grid can be stopped at a block boundary
 * and resumed later, on the same GPU or another; can be kept to a set of SMs; or can run in pieces.
 * The rewritten kernel is one more .entry of the same module, so it shares the module's variables
 * with the original, which stays.
 *
 *   slice       block numbers start at an offset: a launch runs blocks [offset, offset + its own
 *               grid) of the whole grid.
 *   ticket      each block takes its number from a counter, or ends if a flag is set or its SM is
 *               not wanted.
 *   persistent  ticket in a loop: a few blocks execute all blocks of the grid, one after another.
 *               Only where analysis shows that this is safe.
 *
 * New names are NAME$fence and the like, with one $ more as long as the module has them already.
 * The rewritten kernel has one parameter more, at the end: struct ws_ptx_ctl. Its grid is
 * one-dimensional. The maker of a module rewrites it before others see it; pointers into m->funcs
 * are not valid afterwards.
 * Threads: none while rewriting. Source: facts of sections 1.1 to 1.8 of the project's notes on GPU
 * mechanisms; PTX ISA 9.7.13. */
#ifndef WS_PTX_PASSES_PASS_H
#define WS_PTX_PASSES_PASS_H

#include "ptx/ptx.h"

enum ws_ptx_rewrite {
    WS_REWRITE_NONE,
    WS_REWRITE_SLICE,
    WS_REWRITE_TICKET,
    WS_REWRITE_PERSISTENT,
    _WS_REWRITE_N
};
const char *ws_ptx_rewrite_name(enum ws_ptx_rewrite r); /* "slice" */

/* Extents of a grid or a block, with what a kernel needs to divide by the first two of them: a /
 * n[d], for a below 2^31, is the upper half of 2a * by[d].magic, shifted right by by[d].shift. */
struct ws_ptx_shape {
    uint32_t n[3], total; /* n[0] * n[1] * n[2] */
    struct {
        uint32_t magic, shift;
    } by[2];
};
/* Return: false where the product is 0 or above 2^31 - 1; such a launch must stay as it is. */
bool ws_ptx_shape_set(struct ws_ptx_shape *s, const uint32_t n[3]);

/* What a rewritten kernel gets at the end of its parameters, at the offset ws_ptx_ctl_offset()
 * tells. */
struct ws_ptx_ctl {
    struct ws_ptx_shape grid; /* of the launch as the program asked for it */
    /* Address of a uint32_t that starts at 0: the next block. When no launch runs, it is how many
     * blocks are done, up to grid.total. ticket, persistent. */
    uint64_t ticket;
    uint64_t flag; /* address of a uint32_t: not 0: begin no more blocks. ticket, persistent */
    uint64_t mask; /* address of uint32_t[8]: bit n: SM n may be used. 0: all. ticket, persistent */
    uint32_t offset; /* of the first block. slice */
    uint32_t reserved;
};
/* Where it stands among the parameters of @f, the original. */
uint64_t ws_ptx_ctl_offset(const struct ws_ptx_func *f);

/**
 * ws_ptx_rewrite_refused() - why a kernel can't be rewritten that way
 * @ret_flat_block: where 0 is returned: it holds only for launches with a one-dimensional block
 *   (ticket and persistent of a kernel that never looks at %tid.y and .z; where threads of one warp
 *   must have neighbouring %tid.x)
 * @ret_text: gets the reason, with the PTX line where there is one: "line 41: grid synchronisation
 *   needs all blocks at once"
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

/* ---- textures (ptx/passes/texture.c) ---- */
/**
 * ws_ptx_texture() - replace texture and surface instructions by what they compute, as plain loads
 * and stores
 *
 * For devices on which a handle is the address of a header (base/texture.h) as it is on software
 * GPUs, but the hardware knows nothing of it. In place: functions keep their numbers and names, new
 * ones stand behind them; references (.texref) become variables of 8 bytes. Before all other
 * passes. A function with an instruction that can't be replaced (istypep, forms that
 * ws_ptx_texop_read() refuses) stays as it is, and mustn't be compiled. What an access that goes
 * wrong says: WS_SAMPLE_FAULT (ptx/passes/sampler.h).
 * Return: 0, or -ENOMEM: with some functions replaced.
 */
WS_MUST_CHECK int ws_ptx_texture(struct ws_ptx_module *m);
enum { WS_TEXTURE_FUNCS = 8 }; /* that it adds at most */

/* ---- fence (ptx/passes/fence.c) ---- */
/* A fenced kernel cannot access other clients' memory in a context that it shares with them. */

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
    /* Address of two uint64_t: at the first access outside: 1, and the address. Threads that go
     * outside end. */
    uint64_t fault;
};
enum { WS_FENCE_SLACK = 4096 };

/* Why a kernel can't be fenced: it must run in a context without others. Otherwise as
 * ws_ptx_rewrite_refused(). */
WS_MUST_CHECK int ws_ptx_fence_refused(const struct ws_ptx_module *m, uint32_t func, char *ret_text,
                                       size_t text_bytes);
/**
 * ws_ptx_fence() - add an entry in which each access to global memory is checked first
 * @func: index of an .entry for which ws_ptx_fence_refused() said 0; may be a rewritten one only in
 *   the other order: fence first, then ws_ptx_rewrite() the fenced one
 * @ret_func: index of the new entry, NAME$fence
 *
 * Loads, stores, atomics and asynchronous copies through global or generic addresses are checked,
 * by register and offset, before they are made; accesses through one register within a basic block
 * are checked together. Generic addresses of shared and local memory pass. Variables of the module
 * count as the client's: an access by their name is checked when the kernel is rewritten.
 * Return: 0, or -ENOMEM with the module as it was (but for the helper function ws$fence).
 */
WS_MUST_CHECK int ws_ptx_fence(struct ws_ptx_module *m, uint32_t func, uint32_t *ret_func);

/* ---- fuse (ptx/passes/fuse.c, ptx/passes/deal.c): several kernels in one launch ---- */
enum { WS_FUSE_MAX = 32 };
/* What the fused kernel must know of one member's launch. */
struct ws_ptx_fuse_member {
    uint32_t share, first;           /* blocks of it in each round of dealing; place of the first */
    uint32_t total, threads;         /* grid.total, block.total */
    struct ws_ptx_shape grid, block; /* grid.total 0: this member does nothing */
};
/* What a fused kernel gets at the end of its parameters. */
struct ws_ptx_fuse {
    uint32_t round; /* sum of the shares */
    uint32_t reserved;
    struct ws_ptx_fuse_member member[]; /* as many as were fused */
};
/* Shares in proportion to the members' blocks (grid and block are set), so that all end about
 * together; sets all but grid and block.
 * Return: blocks of the fused launch, whose grid is {round, blocks / round}; 0 where they would be
 * too many. */
uint32_t ws_ptx_fuse_deal(struct ws_ptx_fuse *f, uint32_t n_members);

/* Why a kernel can't be a member. As ws_ptx_rewrite_refused(). */
WS_MUST_CHECK int ws_ptx_fuse_refused(const struct ws_ptx_module *m, uint32_t func, char *ret_text,
                                      size_t text_bytes);

/* A fused kernel, as its launch must know it. What it costs: as many registers as the
 * member that has most, and a few; as much static and dynamic shared memory as the member that has
 * most, not the sum, since a block is of one member; as many resident blocks, hence, as the most
 * demanding member allows. Each thread executes about ten instructions more (three for each halving
 * of the members, seven to find its number), six where the blocks have one shape. Blocks dealt past
 * a member's last one end at once. */
struct ws_ptx_fused {
    uint32_t func; /* index of the new entry */
    uint32_t n;    /* members */
    bool same_block;
    uint64_t param_bytes, header; /* of all parameters; offset of struct ws_ptx_fuse among them */
    uint64_t shared_bytes;        /* static, without the module's */
    struct {
        uint64_t param, param_bytes; /* its own parameters among all */
        /* It looks at %ctaid.x alone: only for launches with a one-dimensional grid. */
        bool flat_grid;
        /* It looks at %tid.x alone: only for one-dimensional blocks, unless same_block. */
        bool flat_block;
    } member[WS_FUSE_MAX];
};
/**
 * ws_ptx_fuse_make() - add an entry that does the work of several
 * @funcs: entries for which ws_ptx_fuse_refused() said 0; the same one may stand there several
 *   times
 * @n: 1…WS_FUSE_MAX
 * @same_block: only for launches in which all members' blocks have one shape, which makes it
 *   cheaper
 * @name: of the new entry; copied
 * @ret: what was made; untouched unless 0 is returned
 *
 * Blocks are dealt in rounds: so many of the first member, so many of the second, … Members keep
 * their barriers, since a block is of one member; their static shared memory lies in the same
 * place. Threads beyond a member's block end at once. A barrier with a number of threads waits for
 * that many of the member's, as before. All members' global variables are the module's: kernels of
 * different clients are fused in a module linked of theirs.
 * Return: 0; WS_PTX_E_UNSUPPORTED: their parameters are too many; -ENOMEM; in both cases with the
 * module as it was.
 */
WS_MUST_CHECK int ws_ptx_fuse_make(struct ws_ptx_module *m, const uint32_t *funcs, uint32_t n,
                                   bool same_block, const char *name, struct ws_ptx_fused *ret);
/* The same for blocks of any shape. @ret_param: [n]: where each member's parameters begin; struct
 * ws_ptx_fuse is the last one. */
WS_MUST_CHECK int ws_ptx_fuse(struct ws_ptx_module *m, const uint32_t *funcs, uint32_t n,
                              const char *name, uint32_t *ret_func, uint64_t *ret_param);

/* The launch of one member, as its program asked for it. */
struct ws_ptx_fuse_work {
    uint32_t grid[3], block[3], shared_bytes; /* dynamic */
    /* param_bytes of them, borrowed; NULL: this member does nothing (grid and block are not looked
     * at). */
    const void *params;
};
struct ws_ptx_fuse_launch {
    uint32_t grid[3], block[3], shared_bytes;
};
/**
 * ws_ptx_fuse_launch() - the one launch that does the members' work
 * @work: [k->n]
 * @params: gets k->param_bytes: what the launch is given
 *
 * Return: 0; WS_PTX_E_UNSUPPORTED: these launches don't go together: a shape that k->member[]
 * forbids, blocks of several shapes where same_block, an empty or too large grid, no work at all.
 */
WS_MUST_CHECK int ws_ptx_fuse_launch(const struct ws_ptx_fused *k,
                                     const struct ws_ptx_fuse_work *work, uint8_t *params,
                                     struct ws_ptx_fuse_launch *ret);

/* ---- uniformity (ptx/analysis/uniform.c) ---- */
/* For each register of @f whether its value may differ between threads of one block, counting what
 * decides which definition reaches (conservative: true where it isn't known). Allocates from @a.
 * Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_ptx_divergent_regs(const struct ws_ptx_func *f, const struct ws_ptx_cfg *cfg,
                                        struct ws_arena *a, bool **ret);

#endif
