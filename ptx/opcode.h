/* SPDX-License-Identifier: Apache-2.0 */
/* ptx/opcode.h - types, state spaces and opcodes of PTX, and what is known of each opcode.
 *
 * Every opcode is one row of ptx/opcodes.def, which explains its columns. The functions are in
 * ptx/text/op.c.
 * Source: PTX ISA 9.0. */
#ifndef WS_PTX_OPCODE_H
#define WS_PTX_OPCODE_H

#include <stdint.h>

/* clang-format off */
/* Chapter 5.2. */
enum ws_ptx_type {
    WS_T_NONE,
    WS_T_B8, WS_T_B16, WS_T_B32, WS_T_B64, WS_T_B128,
    WS_T_U8, WS_T_U16, WS_T_U32, WS_T_U64,
    WS_T_S8, WS_T_S16, WS_T_S32, WS_T_S64,
    WS_T_F16, WS_T_F16X2, WS_T_BF16, WS_T_BF16X2, WS_T_TF32, WS_T_F32, WS_T_F64,
    WS_T_U16X2, WS_T_S16X2,
    WS_T_PRED,
    WS_T_TEXREF, WS_T_SAMPLERREF, WS_T_SURFREF,
    WS_T_F32X2,
    /* 5.2.3: types that only cvt and matrix instructions name; registers of .b8 to .b32 hold them
     */
    WS_T_E4M3, WS_T_E5M2,
    WS_T_E4M3X2, WS_T_E5M2X2, WS_T_E2M3X2, WS_T_E3M2X2, WS_T_E2M1X2, WS_T_UE8M0X2,
    WS_T_E4M3X4, WS_T_E5M2X4, WS_T_E2M3X4, WS_T_E3M2X4, WS_T_E2M1X4,
    _WS_T_N
};

/* State spaces, chapter 5.1. GENERIC: no space is written. */
enum ws_ptx_space {
    WS_SP_GENERIC, WS_SP_REG, WS_SP_CONST, WS_SP_GLOBAL, WS_SP_LOCAL, WS_SP_SHARED, WS_SP_PARAM,
    _WS_SP_N
};

enum ws_ptx_op {
#define WS_OP(id, ...) WS_OP_##id,
#include "ptx/opcodes.def"
#undef WS_OP
    _WS_OP_N
};

/* What an opcode does beside writing its destination. */
enum ws_ptx_effect {
    WS_EFFECT_NONE,    /* nothing, and it writes no destination either */
    WS_EFFECT_ALU,     /* nothing: it computes */
    WS_EFFECT_READ,    /* reads memory */
    WS_EFFECT_WRITE,   /* writes memory */
    WS_EFFECT_ATOMIC,  /* reads and writes memory */
    WS_EFFECT_WARP,    /* exchanges values between the lanes of a warp */
    WS_EFFECT_BARRIER, /* synchronises threads of a block or a cluster */
    WS_EFFECT_FENCE,   /* orders accesses to memory */
    WS_EFFECT_CONTROL, /* changes what is executed next */
    WS_EFFECT_MATRIX,  /* works on matrices that a warp or more holds */
};

/* Properties of an opcode that analyses and passes ask for; a row of opcodes.def has any number of
 * them. */
enum ws_ptx_property {
    /* memory */
    WS_DOES_LOAD = 1u << 0,   /* reads memory at an address operand, each thread for itself */
    WS_DOES_STORE = 1u << 1,  /* writes memory likewise */
    WS_DOES_UPDATE = 1u << 2, /* reads and writes memory likewise, atomically */
    WS_DOES_BULK = 1u << 3,   /* moves a run of bytes without the thread */
    WS_DOES_HIDE = 1u << 4,   /* accesses memory that no operand names as an address */
    /* values */
    WS_DOES_COPY = 1u << 5,     /* the destination gets the source's value */
    /* While one operand only grows or only falls, the result does so too. */
    WS_DOES_ORDER = 1u << 6,
    WS_DOES_CARRY_IN = 1u << 7, /* reads the carry flag */
    /* control */
    WS_DOES_END_BLOCK = 1u << 8, /* a basic block ends behind it */
    WS_DOES_LEAVE = 1u << 9,     /* returns from the function or ends the thread */
    /* synchronisation */
    WS_DOES_SYNC_WARP = 1u << 10,  /* waits for other lanes of the warp */
    WS_DOES_SYNC_BLOCK = 1u << 11, /* waits for other threads of the block */
    WS_DOES_ARRIVE = 1u << 12,     /* counts at a barrier of the block without waiting */
    WS_DOES_CLUSTER = 1u << 13,    /* concerns other blocks of a cluster */
    WS_DOES_OUTLIVE = 1u << 14,    /* changes state that a block's end does not undo */
    _WS_DOES_ALL = (1u << 15) - 1,
};

/* Classes of the instruction mix, for models of time and energy. AUTO, in opcodes.def only: by the
 * first type. */
enum ws_ptx_mix {
    WS_MIX_AUTO,
    WS_MIX_INT, WS_MIX_FP16, WS_MIX_FP32, WS_MIX_FP64, WS_MIX_SFU, WS_MIX_CONV, WS_MIX_MOVE,
    WS_MIX_LDST, WS_MIX_ATOM, WS_MIX_SHUFFLE, WS_MIX_SYNC, WS_MIX_CTRL, WS_MIX_TEX, WS_MIX_TENSOR,
    _WS_MIX_N
};
/* clang-format on */

/* One row of opcodes.def. */
struct ws_ptx_op_info {
    const char *name, *mods, *sig, *meaning;
    uint64_t subs;   /* 1 << enum ws_ptx_sub */
    uint64_t t0, t1; /* 1 << enum ws_ptx_type */
    uint32_t does;   /* WS_DOES_… */
    uint8_t min_types, max_types, effect, mix;
};
extern const struct ws_ptx_op_info ws_ptx_ops[_WS_OP_N];
extern const char *const ws_ptx_cache_names[];     /* "ca", "cg", …; NULL-terminated */
const char *ws_ptx_op_name(enum ws_ptx_op op);     /* "mad", without modifiers */
const char *ws_ptx_type_name(enum ws_ptx_type t);  /* "f32" */
unsigned ws_ptx_type_bytes(enum ws_ptx_type t);    /* of one value: 1 to 16; PRED 1; NONE 0 */
enum ws_ptx_type ws_ptx_bits_type(unsigned bytes); /* B8, B16 or B32 of that size; else B64 */
enum ws_ptx_type ws_ptx_uint_type(unsigned bytes); /* U8, U16 or U32 of that size; else U64 */

#endif
