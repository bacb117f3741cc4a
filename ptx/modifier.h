/* SPDX-License-Identifier: Apache-2.0 */
/* ptx/modifier.h - modifiers of instructions. In struct ws_ptx_insn, each field is 0 where the
 * modifier is not written. */
#ifndef WS_PTX_MODIFIER_H
#define WS_PTX_MODIFIER_H

/* clang-format off */
/* Rounding. */
enum ws_ptx_rnd {
    WS_RND_NONE,
    WS_RND_RN, WS_RND_RZ, WS_RND_RM, WS_RND_RP, WS_RND_RNA,
    WS_RND_RNI, WS_RND_RZI, WS_RND_RMI, WS_RND_RPI, /* to an integer */
};

/* Comparisons. */
enum ws_ptx_cmp {
    WS_CMP_NONE,
    WS_CMP_EQ, WS_CMP_NE, WS_CMP_LT, WS_CMP_LE, WS_CMP_GT, WS_CMP_GE,
    WS_CMP_LO, WS_CMP_LS, WS_CMP_HI, WS_CMP_HS,                             /* unsigned */
    WS_CMP_EQU, WS_CMP_NEU, WS_CMP_LTU, WS_CMP_LEU, WS_CMP_GTU, WS_CMP_GEU, /* or unordered */
    WS_CMP_NUM, WS_CMP_NAN,
};

/* The word that selects a variant of an opcode: boolean or atomic operation, mode, part, … */
enum ws_ptx_sub {
    WS_SUB_NONE,
    /* atom and red (9.7.13.5), setp's boolean operation, bar.red, redux */
    WS_SUB_AND, WS_SUB_OR, WS_SUB_XOR, WS_SUB_ADD, WS_SUB_MIN, WS_SUB_MAX,
    WS_SUB_INC, WS_SUB_DEC, WS_SUB_CAS, WS_SUB_EXCH, WS_SUB_POPC,
    WS_SUB_UP, WS_SUB_DOWN, WS_SUB_BFLY, WS_SUB_IDX,   /* shfl */
    WS_SUB_ALL, WS_SUB_ANY, WS_SUB_UNI, WS_SUB_BALLOT, /* vote, match */
    WS_SUB_LO, WS_SUB_HI, WS_SUB_WIDE,                 /* mul, mad */
    WS_SUB_L, WS_SUB_R,                                /* shf */
    WS_SUB_CTA, WS_SUB_GL, WS_SUB_SYS,                 /* membar */
    WS_SUB_TO,                                         /* cvta.to */
    WS_SUB_F4E, WS_SUB_B4E, WS_SUB_RC8, WS_SUB_ECL, WS_SUB_ECR, WS_SUB_RC16, /* prmt */
    WS_SUB_FINITE, WS_SUB_INFINITE, WS_SUB_NUMBER, WS_SUB_NOTANUMBER,        /* testp */
    WS_SUB_NORMAL, WS_SUB_SUBNORMAL,                                         /* testp */
    _WS_SUB_N
};

/* Memory order. */
enum ws_ptx_sem {
    WS_SEM_NONE,
    WS_SEM_WEAK, WS_SEM_RELAXED, WS_SEM_ACQUIRE, WS_SEM_RELEASE, WS_SEM_ACQ_REL, WS_SEM_SC,
    WS_SEM_VOLATILE, WS_SEM_MMIO,
};

enum ws_ptx_scope { WS_SCOPE_NONE, WS_SCOPE_CTA, WS_SCOPE_CLUSTER, WS_SCOPE_GPU, WS_SCOPE_SYS };
/* clang-format on */

enum ws_ptx_flag {
    WS_F_FTZ = 1u << 0,
    WS_F_SAT = 1u << 1,
    WS_F_APPROX = 1u << 2,
    WS_F_FULL = 1u << 3,
    WS_F_UNI = 1u << 4,
    WS_F_SYNC = 1u << 5,
    WS_F_ALIGNED = 1u << 6,
    WS_F_CC = 1u << 7, /* writes the carry flag */
    WS_F_NC = 1u << 8,
    WS_F_SHIFTAMT = 1u << 9,
    WS_F_CLAMP = 1u << 10,
    WS_F_WRAP = 1u << 11,
    WS_F_NOFTZ = 1u << 12,
    WS_F_NAN = 1u << 13,
    WS_F_XORSIGN_ABS = 1u << 14,
    WS_F_RELU = 1u << 15,
    WS_F_NOINC = 1u << 16,
    /* The space was written with a narrower name; the field space is SHARED or PARAM in all cases.
     */
    WS_F_SP_CTA = 1u << 17,     /* .shared::cta, .param::entry */
    WS_F_SP_CLUSTER = 1u << 18, /* .shared::cluster, .param::func */
    WS_F_SP2_CTA = 1u << 19,    /* the same of the second space */
    WS_F_SP2_CLUSTER = 1u << 20,
};

#endif
