/* SPDX-License-Identifier: Apache-2.0 */
/* device/soft/jit/emit.h - what the files that emit code share. Private to the compiler.
 *
 * An image becomes one function, in which its segments stand four times. In the whole version all
 * lanes of the warp run together and rows of known shape are scalars; in the masked version some
 * lanes run, and each row is a vector. In the narrow version the lanes that run are of one group of
 * eight, and of each row there is only this group's part. In the lone version one lane runs, and
 * each row is a scalar. Code goes from the whole version to the others where lanes diverge, and
 * back where all are together again and the rows have their shapes.
 */
#ifndef WS_DEVICE_SOFT_JIT_EMIT_H
#define WS_DEVICE_SOFT_JIT_EMIT_H

#include "device/soft/jit/llvm.h"
#include "device/soft/jit/plan.h"

enum ws_jit_version { WS_JIT_WHOLE, WS_JIT_MASKED, WS_JIT_NARROW, WS_JIT_LONE, _WS_JIT_VERSIONS };
enum { WS_JIT_GROUP = 8 /* lanes of the narrow version */ };
/* Counts that are kept in registers until the function is left: those of struct ws_exec_work. */
enum ws_jit_count {
    WS_JIT_SHARED_ACCESSES,
    WS_JIT_SHARED_LOADS,
    WS_JIT_SHARED_TRANSACTIONS,
    WS_JIT_GLOBAL_LOADS,
    WS_JIT_GLOBAL_STORES,
    WS_JIT_LOAD_SECTORS,
    WS_JIT_STORE_SECTORS,
    WS_JIT_ATOMICS,
    WS_JIT_ATOMIC_SECTORS,
    _WS_JIT_COUNTS
};

struct ws_jit_emit {
    const struct ws_jit_plan *p;
    llvm_context cx;
    llvm_module mod;
    llvm_builder b;
    llvm_value fn;
    llvm_type i1, i8, i16, i32, i64, f32, f64;
    llvm_value c;    /* the context's address, as i64 */
    llvm_value regs; /* where that of the warp's register file is kept (alloca) */
    /* By row: where its value is kept (alloca); words: scalars. In the masked version only rows
     * that nothing writes are kept so; the others stay in the register file. In the lone version
     * all are scalars, and a word is all ones or zero. */
    llvm_value *scalars, *vectors;
    /* By row, in the masked version: its value, if it is known in this block; the store of that
     * value, if nothing in this block needs it so far. */
    llvm_value *held, *kept;
    llvm_block held_in;
    /* Without mask registers: all ones in the active lanes, else zeros; of the masked and of the
     * narrow version. */
    llvm_value lanes, few_lanes;
    llvm_value group; /* number of the first lane of the narrow version's group */
    llvm_value lane;  /* number of the lone version's lane (i64) */
    llvm_value entry, active, budget, limit, tally, patterns, count[_WS_JIT_COUNTS];
    bool counted[_WS_JIT_COUNTS];       /* something adds to it */
    llvm_block (*at)[_WS_JIT_VERSIONS]; /* by micro-op: the block that begins there, or NULL */
    llvm_block (*go)[_WS_JIT_VERSIONS]; /* by segment: the block that enters it */
    llvm_block *whole;                  /* by segment: goes to its whole version, if it may */
    llvm_block *narrow, *lone;          /* by segment: goes to its narrow, its lone version */
    bool has_narrow, has_lone;          /* they stand there, too */
    llvm_block next[_WS_JIT_VERSIONS];  /* where all that leaves the core goes */
    llvm_block dispatch, leave;         /* to the place that `entry` says, or out of the function */
    enum ws_jit_version v;              /* that is being emitted */
    uint32_t k;                         /* the micro-op */
    uint64_t *dirty, *set;
    const struct ws_isa *isa;         /* the vector build whose handlers the code calls */
    bool has_fma, has_mask_registers; /* of the processor that the code is for */
    llvm_value places;                /* room for the addresses of all lanes (alloca) */
};

/* ---- rows.c ---- */
llvm_value ws_jit_int(struct ws_jit_emit *e, llvm_type t, uint64_t v);
llvm_type ws_jit_int_type(struct ws_jit_emit *e, unsigned bytes);
/* @n lanes of @t; 1: @t itself. */
llvm_type ws_jit_lanes(llvm_type t, unsigned n);
llvm_value ws_jit_splat(struct ws_jit_emit *e, llvm_value scalar, unsigned n);
/* The integer constants {first, first + step, …}. */
llvm_value ws_jit_constants(struct ws_jit_emit *e, llvm_type t, const int64_t *v, unsigned n);
/* Of a micro-op or a segment (NULL: 0). Code has no other addresses of the process in it. */
#define ws_jit_address(e, p)                                                                       \
    _Generic((p), const struct ws_uop *                                                            \
             : ws_jit_address_of_uop, const struct ws_seg *                                        \
             : ws_jit_address_of_seg)(e, p)
llvm_value ws_jit_address_of_uop(struct ws_jit_emit *e, const struct ws_uop *u);
llvm_value ws_jit_address_of_seg(struct ws_jit_emit *e, const struct ws_seg *seg);
llvm_value ws_jit_plus(struct ws_jit_emit *e, llvm_value base, size_t offset);
llvm_value ws_jit_load(struct ws_jit_emit *e, llvm_type t, llvm_value address, unsigned align);
llvm_value ws_jit_store(struct ws_jit_emit *e, llvm_value v, llvm_value address, unsigned align);
llvm_value ws_jit_field(struct ws_jit_emit *e, llvm_type t, size_t offset); /* of the context */
void ws_jit_set_field(struct ws_jit_emit *e, llvm_value v, size_t offset);
/* Of a variable (alloca). */
llvm_value ws_jit_get(struct ws_jit_emit *e, llvm_type t, llvm_value variable);
void ws_jit_put(struct ws_jit_emit *e, llvm_value v, llvm_value variable);
llvm_block ws_jit_block(struct ws_jit_emit *e);
void ws_jit_begin(struct ws_jit_emit *e, llvm_block at);
/* A call of a function of ours, which link.c must know: all arguments and the result are i64. */
llvm_value ws_jit_call(struct ws_jit_emit *e, void (*f)(void), llvm_value *args, unsigned n);
const struct ws_jit_row *ws_jit_row_at(const struct ws_jit_emit *e, uint32_t row);
llvm_type ws_jit_row_type(struct ws_jit_emit *e, uint32_t row); /* of one lane */
/* Lanes of a vector in the version that is being emitted; a bit of a word for each of them. */
unsigned ws_jit_n_lanes(const struct ws_jit_emit *e);
llvm_value ws_jit_bits(struct ws_jit_emit *e, llvm_value word);
/* The lowest lane of a word; the first one of the group that it is in. */
llvm_value ws_jit_lowest_of(struct ws_jit_emit *e, llvm_value word);
llvm_value ws_jit_group_of(struct ws_jit_emit *e, llvm_value word);
/* The row's value, in all lanes; lane 0 of a row of known shape; a predicate word (i32). */
llvm_value ws_jit_vector(struct ws_jit_emit *e, uint32_t row);
llvm_value ws_jit_scalar(struct ws_jit_emit *e, uint32_t row);
llvm_value ws_jit_word(struct ws_jit_emit *e, uint32_t row);
/* Whether the row is kept as a scalar in the version that is being emitted. */
bool ws_jit_is_scalar(const struct ws_jit_emit *e, uint32_t row);
/* A word of which all lanes have the same bit: those that do not exist get it, too. */
llvm_value ws_jit_spread_word(struct ws_jit_emit *e, llvm_value w);
/* In the masked version: the value of a row that is written somewhere. */
llvm_value ws_jit_read_row(struct ws_jit_emit *e, uint32_t row);
/* Of rows that stay in the register file, those that are not in @live are not read any more. */
void ws_jit_forget_rows(struct ws_jit_emit *e, const uint64_t *live);
/* Makes the row's value that of the register file, and the other way round. */
void ws_jit_fetch(struct ws_jit_emit *e, uint32_t row);
void ws_jit_give(struct ws_jit_emit *e, uint32_t row);
/* Takes what is filled, but for constants: what all blocks of a grid, or all warps of a block have
 * the same, or what warps have their own. */
enum ws_jit_whose { WS_JIT_GRIDS, WS_JIT_BLOCKS, WS_JIT_WARPS };
void ws_jit_fetch_fills(struct ws_jit_emit *e, enum ws_jit_whose whose);
/* Of a row that is filled for each block: @v (i32), in its width. */
llvm_value ws_jit_filled(struct ws_jit_emit *e, const struct ws_fill *f, llvm_value v);
const struct ws_uop *ws_jit_uop(const struct ws_jit_emit *e); /* that is being emitted */
/* Words: the lanes that run; those in which the micro-op takes effect. */
llvm_value ws_jit_active(struct ws_jit_emit *e);
llvm_value ws_jit_mask(struct ws_jit_emit *e);
void ws_jit_set_active(struct ws_jit_emit *e, llvm_value word);
/* Gives the row its value (of one lane, if it is a scalar), where the micro-op's mask says. */
void ws_jit_set(struct ws_jit_emit *e, uint32_t row, llvm_value v);
void ws_jit_set_word(struct ws_jit_emit *e, uint32_t row, llvm_value v);
void ws_jit_bump(struct ws_jit_emit *e, enum ws_jit_count n, llvm_value by);

/* ---- emit.c ---- */
/* Goes to the masked version, before the micro-op, where @bad (i1) is true. */
void ws_jit_unless(struct ws_jit_emit *e, llvm_value bad);
/* Calls the interpreter's handler of the micro-op. */
void ws_jit_call_handler(struct ws_jit_emit *e);
/* A call of one of our functions that may take from the budget. */
void ws_jit_call_spending(struct ws_jit_emit *e, void (*f)(void), llvm_value *args, unsigned n);
/* Emits the function "run" for the image of @p. Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_jit_emit(struct ws_jit_emit *e, const struct ws_jit_plan *p);
/* The function's entry at micro-op @k in version @v; 0 is none. */
static inline uint32_t ws_jit_entry(uint32_t k, enum ws_jit_version v)
{
    return _WS_JIT_VERSIONS * k + (uint32_t)v + 1;
}
/* Whether the function has an entry at micro-op @k in version @v. Where lanes wait for each other
 * it has none in the whole version: lanes that are all there seldom do. */
bool ws_jit_enters(const struct ws_jit_plan *p, uint32_t k, enum ws_jit_version v);

/* Adds what was counted to the work at @work; forgets it. */
void ws_jit_add_counts(struct ws_jit_emit *e, llvm_value work);
void ws_jit_clear_counts(struct ws_jit_emit *e);

/* ---- blocks.c ---- */
/* A warp ends here, with all its lanes: goes to @entry with the next warp or block, if that is all
 * there is to do. */
void ws_jit_go_on(struct ws_jit_emit *e, llvm_block entry);

/* ---- ops.c ---- */
/* Emits micro-op e->k if there is code for it. */
bool ws_jit_emit_op(struct ws_jit_emit *e);

/* ---- warp.c ---- */
/* The same, of shuffles, votes and barriers of a warp in the whole version. */
bool ws_jit_emit_warp(struct ws_jit_emit *e);

/* ---- mem.c ---- */
/* The same, of loads and stores in the whole version. */
bool ws_jit_emit_memory(struct ws_jit_emit *e);

/* ---- jit.c: called by compiled code ---- */
const struct ws_uop *ws_jit_handler(struct ws_core_ctx *c, const struct ws_uop *u);
/* The core was left, in the whole version or not: what comes next. Return: the entry; 0: compiled
 * code is to return; with the sign bit: to return and be entered there. What it has counted until
 * it returns belongs to ctx.work_before. */
uint32_t ws_jit_next(struct ws_core_ctx *c, uint64_t whole);
/* A whole warp is at a barrier of all threads with a constant number. Return: enum ws_bar_way; if
 * another warp has its turn, that plus what ws_jit_next() returns. */
uint64_t ws_jit_wait(struct ws_core_ctx *c, const struct ws_uop *u, uint64_t budget);
/* A call that all active lanes make. Return: whether they go on in the function now; else the core
 * is left. */
uint64_t ws_jit_call_function(struct ws_core_ctx *c, const struct ws_uop *u);
/* Lanes @m return. Return: the number of the segment where all active lanes go on now, plus one; 0:
 * the core is left. */
uint64_t ws_jit_return(struct ws_core_ctx *c, const struct ws_uop *u, uint64_t m);
/* A strong load of the place at @host. */
void ws_jit_look(struct ws_core_ctx *c, uint64_t host);
/* An access records the lines of the sample that it touches: all from one address to another, or
 * those of the two. */
void ws_jit_note(struct ws_core_ctx *c, uint64_t first, uint64_t last, uint64_t store);
void ws_jit_note_two(struct ws_core_ctx *c, uint64_t a, uint64_t b, uint64_t store);
/* Minima or maxima at the places @hosts of the lanes @lanes: @how is the bytes, | 1 << 8 signed,
 * | 1 << 9 a maximum. */
void ws_jit_improve(const uint64_t *hosts, const void *values, uint64_t lanes, uint64_t how);

#endif
