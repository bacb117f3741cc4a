/* SPDX-License-Identifier: Apache-2.0 */
/* device/soft/jit/mem.h - what mem.c and atoms.c share. Private to the compiler. */
#ifndef WS_DEVICE_SOFT_JIT_MEM_H
#define WS_DEVICE_SOFT_JIT_MEM_H

#include "device/soft/jit/emit.h"

/* An operation of which the lanes' parts can be put together and then applied to memory at once. */
struct ws_jit_atomic {
    int rmw;     /* LLVM's number of it */
    int how;     /* of two, that for which this comparison is true is taken; 0: it is no choice */
    uint64_t id; /* changes nothing; of fewer bytes: the low ones */
};

struct ws_jit_access {
    struct ws_jit_emit *e;
    llvm_builder b;
    const struct ws_uop *u;
    bool store, shared;
    bool local;
    bool general; /* what the interpreter does by its general way: ld_x, st_x */
    unsigned bytes;
    uint32_t address, data; /* rows */
    unsigned lanes;         /* that make it: the first ones */
    int64_t apart[32], low, high;
    const struct ws_jit_atomic *atomic; /* NULL: a load or store */
    bool one_place;                     /* an atomic of all lanes on one place */
    bool even;                          /* all are multiples of the access's width */
    unsigned group;                     /* so many lanes are consecutive or the same; 0: none are */
};

static inline llvm_value ws_jit_i64(struct ws_jit_access *a, uint64_t v)
{
    return ws_jit_int(a->e, a->e->i64, v);
}

/* ---- mem.c ---- */
/* Whether all lanes' accesses at @va are aligned, and 0 <= @off <= @room for all of their places
 * @off. @va, @off: vectors of @room's type; signed. */
llvm_value ws_jit_lanes_fit(struct ws_jit_access *a, llvm_value va, llvm_value off,
                            llvm_value room);
/* Whether all lanes' addresses are ones that may be accessed, as global_any() of ../exec/mem.inc
 * asks; *ret_bias: what to add to them. */
llvm_value ws_jit_check_lanes(struct ws_jit_access *a, llvm_value va, llvm_value *ret_bias);
/* Counts an access of all lanes at @va. */
void ws_jit_count_places(struct ws_jit_access *a, llvm_value va);
/* The handler's way, and on to @join. */
void ws_jit_slow(struct ws_jit_access *a, llvm_block at, llvm_block join);

/* ---- atoms.c ---- */
/* Whether it is an atomic that has code. */
bool ws_jit_is_atomic(struct ws_jit_access *a, uint16_t h);
/* All lanes on one place: does it at @host, and counts it at @address. */
void ws_jit_perform_atomic(struct ws_jit_access *a, llvm_value host);
void ws_jit_count_atomic(struct ws_jit_access *a, llvm_value address);
/* Emits one on several places, if there is code for it. */
bool ws_jit_emit_places(struct ws_jit_access *a);

#endif
