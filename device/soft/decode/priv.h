/* SPDX-License-Identifier: Apache-2.0 */
/* device/soft/decode/priv.h - the decoder's state, shared by its files: decode.c (images,
 * rows, storage of variables), flow.c (blocks, branches, calls), insn.c (all other
 * instructions). */
#ifndef WS_DEVICE_SOFT_DECODE_PRIV_H
#define WS_DEVICE_SOFT_DECODE_PRIV_H

#include "base/alloc.h"
#include "base/error.h"
#include "device/soft/exec/priv.h"

enum ws_store_kind {
    WS_STORE_NONE,
    WS_STORE_SHARED,
    WS_STORE_LOCAL /* in the frame */,
    WS_STORE_ROW,
    WS_STORE_KPARAM
};
/* Where a function's variable lives. */
struct ws_var_store {
    uint8_t kind, width; /* ROW: bytes of a lane */
    uint32_t placed;     /* SHARED: the image that it has a place in */
    uint32_t off;
};

/* One function of the image; or the node for calls through registers, which has no f. */
struct ws_dfunc {
    const struct ws_ptx_func *f;
    uint32_t index;            /* in module->funcs */
    uint32_t *rows;            /* [n_regs] */
    struct ws_var_store *vars; /* by localvar index */
    uint32_t n_vars;
    uint32_t frame_bytes, entry_seg, thunk_seg;
    uint32_t kept_sp; /* row: the stack pointer at entry; 0: the function does not move it */
    bool recursive;
    uint32_t image;       /* the image that it was reached in */
    uint32_t next_callee; /* of ws_dec_reach() */
    uint32_t save_first, n_saves;
    uint32_t depth;       /* of calls below it */
    uint64_t local_bytes; /* its frame and those below */
};

/* Serves all images of a module, one after the other, so that an image costs what its kernel
 * reaches, however large the module is. */
struct ws_dec {
    const struct ws_ptx_module *m;
    struct ws_diags *diags;
    struct ws_code *code;
    const struct ws_callgraph *graph;
    struct ws_arena keep;       /* what lasts longer than an image: */
    uint32_t image;             /* number of the one being made, from 1 */
    struct ws_var_store *gvars; /* [module n_vars]: shared ones */
    struct ws_dfunc *funcs;     /* [module n_funcs + 1]: those with the image's number count */
    uint32_t *path, n_path;
    /* [n_reached]: functions of the image by number; below: each before those that call it. */
    uint32_t *reached, *below, n_reached;
    bool has_indirect; /* calls through registers; behind the end of below stands their node */
    /* Growing arrays, used again by the next image. */
    struct ws_uop *uops;
    /* Per uop: bit 0: imm is a segment, bit 1: fall is one, bit 2: imm is a brx table. */
    uint8_t *ctl;
    uint32_t *seg_first; /* segment -> uop */
    uint32_t *seg_insns;
    uint32_t (*seg_cls)[8], (*seg_unit)[4];
    bool *seg_loud; /* something in it can be seen outside of the warp */
    struct ws_fill *fills;
    struct ws_srcref *srcs;
    uint32_t *saves;
    uint32_t *brx; /* segment numbers of all tables */
    uint32_t *fill_next;
    size_t cap_fill_next, cap_uops, cap_ctl, cap_seg_first, cap_seg_insns, cap_seg_cls,
        cap_seg_unit, cap_seg_loud, cap_fills, cap_srcs, cap_saves, cap_brx;
    struct ws_arena tmp; /* reset after each image */
    /* From here on: zero when an image is begun. */
    struct ws_exec_image *img;
    bool uses_heap, prints, starts;
    bool oom, unsupported, unresolved; /* unresolved: unsupported for want of a definition */
    char reason[256];                  /* the first thing that is unsupported */
    uint32_t fill_heads[1024];
    uint32_t n_uops, n_segs, n_fills, n_srcs, n_saves, n_brx, n_maps;
    uint32_t top;          /* next free byte of the register file */
    uint32_t dyn32, dyn64; /* fills holding the start of dynamic shared memory; 0: none yet */
    uint32_t slots[16];    /* rows that carry arguments of indirect calls; 0: none yet */
    uint32_t ret_slot;
    /* of the instruction being decoded */
    struct ws_dfunc *df;
    const struct ws_ptx_insn *in;
    uint32_t seg, guard, gneg, all;
    uint32_t temps[9][16], n_temps[9], temps_used[9]; /* by lane width in bytes; 0: predicates */
    uint32_t cf;                                      /* carry word */
    uint32_t sink[9], sink128;                        /* rows that nobody reads */
};

/* Makes room for @want elements in an array of the decoder. True: no memory. */
#define WS_DEC_GROW(d, array, cap, want)                                                           \
    (ws_grow((void **)&(d)->array, &(d)->cap, (want), sizeof(*(d)->array)) != 0)

/* ---- decode.c ---- */
struct ws_uop *ws_dec_emit(struct ws_dec *d, enum ws_handler h);
struct ws_uop *ws_dec_emit3(struct ws_dec *d, enum ws_handler h, uint32_t dst, uint32_t a,
                            uint32_t b);
void ws_dec_unsupported(struct ws_dec *d, const char *fmt, ...) WS_PRINTF(2, 3);
uint32_t ws_dec_row_alloc(struct ws_dec *d, uint32_t width);
uint32_t ws_dec_temp(struct ws_dec *d, uint32_t width);
uint32_t ws_dec_const(struct ws_dec *d, uint32_t width, uint64_t value);
uint32_t ws_dec_var_row(struct ws_dec *d, uint32_t width, uint32_t var, uint64_t addend);
uint32_t ws_dec_shared_off(struct ws_dec *d,
                           int32_t sym); /* static shared variable's offset; ~0: dynamic */
uint32_t ws_dec_dyn_row(struct ws_dec *d, uint32_t width);
/* Row of a source operand, read as type t. Emits what it takes to get there. */
uint32_t ws_dec_src(struct ws_dec *d, const struct ws_ptx_operand *o, enum ws_ptx_type t);
/* Row to write a value of type t to; if *ret_finish, ws_dec_finish() must follow the writing. */
uint32_t ws_dec_dst(struct ws_dec *d, const struct ws_ptx_operand *o, enum ws_ptx_type t,
                    bool *ret_finish);
void ws_dec_finish(struct ws_dec *d, const struct ws_ptx_operand *o, enum ws_ptx_type t,
                   uint32_t row);
/* @i with whole vector registers (.reg .v4) written as lists of their elements; @i itself if it has
 *   none. */
const struct ws_ptx_insn *ws_dec_spell_out(struct ws_dec *d, const struct ws_ptx_insn *i);
/* Row of stack pointers (u32: offset in local memory, from the top down); asking makes the image
 * have one. */
uint32_t ws_dec_sp_row(struct ws_dec *d);
/* A 128-bit register is two rows of 64-bit lanes: the low halves, and WS_DEC_HIGH_HALF bytes on the
 * high ones. */
enum { WS_DEC_HIGH_HALF = 256 };
uint32_t ws_dec_src128(struct ws_dec *d, const struct ws_ptx_operand *o);
uint32_t ws_dec_dst128(struct ws_dec *d, const struct ws_ptx_operand *o);
/* Predicate word of a source; *ret_neg: inverted. */
uint32_t ws_dec_pred(struct ws_dec *d, const struct ws_ptx_operand *o, bool *ret_neg);
uint32_t ws_dec_pred_dst(struct ws_dec *d, const struct ws_ptx_operand *o);
uint32_t ws_dec_mov(struct ws_dec *d, uint32_t width, uint32_t dst, uint32_t src);
const struct ws_ptx_var *ws_dec_symvar(struct ws_dec *d, int32_t sym,
                                       struct ws_var_store **ret_store);
enum ws_handler ws_dec_cvt_int(uint32_t width, enum ws_ptx_type from);
/* Return: 0 or -ENOMEM. */
int ws_dec_new(struct ws_dec **ret, struct ws_code *code, struct ws_diags *diags);
struct ws_dec *ws_dec_free(struct ws_dec *d); /* NULL ok; returns NULL */
/* Makes the image of kernel @func, in the code's arena. @reason: gets what is unsupported. Return:
 * 0, WS_PTX_E_UNSUPPORTED, WS_PTX_E_NOTFOUND (unresolved), -ENOMEM. */
int ws_dec_image(struct ws_dec *d, uint32_t func, struct ws_exec_image **ret, char reason[256]);

static inline uint32_t ws_dec_width(enum ws_ptx_type t)
{
    return t == WS_T_PRED ? 0 : ws_ptx_type_bytes(t);
}

static inline uint32_t ws_dec_reg_width(const struct ws_ptx_reg *r)
{
    uint32_t w = ws_dec_width(r->type);
    return w == 1 ? 2 : w;
}

/* A vector register is as many rows as it has elements, one behind the other. */
static inline uint32_t ws_dec_row_bytes(uint32_t width)
{
    return WS_MAX(64u, 32 * width);
}

/* ---- flow.c: of the call that is being decoded, arguments and results of a function that the
 * interpreter knows ---- */
/* Row of an argument of @width bytes. */
uint32_t ws_dec_arg(struct ws_dec *d, const struct ws_ptx_operand *o, uint32_t width);
/* Row of the 4-byte word @k of an argument that is a structure. */
uint32_t ws_dec_arg_word(struct ws_dec *d, const struct ws_ptx_operand *o, unsigned k);
/* The result @o is in @row. */
void ws_dec_result(struct ws_dec *d, const struct ws_ptx_operand *o, uint32_t width, uint32_t row);

/* ---- start.c ---- */
/* A call of the device runtime. Return: false: @name is none that is known. */
bool ws_dec_start(struct ws_dec *d, const struct ws_ptx_call *c, const char *name);

/* ---- calls.c ---- */
/* Allocates from @a. NULL: no memory. */
const struct ws_callgraph *ws_dec_callgraph_new(const struct ws_ptx_module *m, struct ws_arena *a);
/* Finds the functions that kernel @func may come to: d->reached and what stands beside it. */
void ws_dec_reach(struct ws_dec *d, uint32_t func);
/* Depth of calls and local memory below each function, where none is recursive. */
void ws_dec_measure_calls(struct ws_dec *d);
/* Whether calls through registers may come to @df in this image. */
static inline bool ws_dec_has_thunk(const struct ws_dec *d, const struct ws_dfunc *df)
{
    return d->has_indirect && d->graph->target_no[df->index] < d->graph->n_targets;
}

/* ---- flow.c ---- */
void ws_dec_function(struct ws_dec *d, struct ws_dfunc *df);
void ws_dec_thunk(struct ws_dec *d, struct ws_dfunc *df);
uint32_t ws_dec_new_seg(struct ws_dec *d);
enum { WS_NO_SEG = 0xffffffffu };

/* ---- dead.c ---- */
/* Marks instructions of @f whose result may be written for all lanes: *ret[k] for instruction k (in
 * @d->tmp). -ENOMEM sets oom. */
const uint8_t *ws_dec_find_dead(struct ws_dec *d, const struct ws_ptx_func *f,
                                const uint8_t *leader);

/* ---- insn.c ---- */
void ws_dec_insn(struct ws_dec *d, const struct ws_ptx_insn *i);
enum ws_work_class ws_dec_class(const struct ws_ptx_insn *i);

/* ---- machine.c ---- */
/* The machine instructions that one of PTX becomes, and what each lane has the units do for it. */
struct ws_machine {
    uint8_t n_insns, unit[_WS_UNIT_N];
};
/* @hardware_cc: as for ws_code_new(). */
struct ws_machine ws_dec_machine(const struct ws_ptx_insn *i, uint32_t hardware_cc);

/* Names the instruction as one that can't be decoded. Return: false. */
bool ws_dec_no_such(struct ws_dec *d, const struct ws_ptx_insn *i);

/* ---- families of instructions with files of their own: tex.c, video.c, matrix.c, async.c ---- */
void ws_dec_async(struct ws_dec *d, const struct ws_ptx_insn *i);
void ws_dec_matrix(struct ws_dec *d, const struct ws_ptx_insn *i);
void ws_dec_tex(struct ws_dec *d, const struct ws_ptx_insn *i);
void ws_dec_video(struct ws_dec *d, const struct ws_ptx_insn *i);

#endif
