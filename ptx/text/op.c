// SPDX-License-Identifier: Apache-2.0
/* ptx/text/op.c - the tables behind the names: opcodes.def as data, types, special registers. */
#include "ptx/ptx.h"

#include <string.h>

/* Sets of types, of properties and of sub-operations, named as opcodes.def uses them. */
#define B(t)   (UINT64_C(1) << WS_T_##t)
#define TI32   (B(U32) | B(S32))
#define TI3264 (TI32 | B(U64) | B(S64))
#define TI     (TI3264 | B(U16) | B(S16))
#define TS     (B(S16) | B(S32) | B(S64) | B(S16X2))
#define TB3264 (B(B32) | B(B64))
#define TB     (TB3264 | B(B16))
#define TX2    (B(U16X2) | B(S16X2))
#define TF     (B(F32) | B(F64) | B(F32X2))
#define TH     (B(F16) | B(F16X2) | B(BF16) | B(BF16X2))
#define TP     B(PRED)
#define TLD    (TB | TI | B(F32) | B(F64) | B(B8) | B(U8) | B(S8) | B(B128))
#define TATOM  (TB | TI3264 | TF | TH | B(B128))
#define TANY   (~UINT64_C(0))

#define P(property) WS_DOES_##property

#define SETOF(s) (UINT64_C(1) << WS_SUB_##s)
#define SBOOL    (SETOF(AND) | SETOF(OR) | SETOF(XOR))
#define SLOHI    (SETOF(LO) | SETOF(HI))
#define SWIDE    SETOF(WIDE)
#define STESTP                                                                                     \
    (SETOF(FINITE) | SETOF(INFINITE) | SETOF(NUMBER) | SETOF(NOTANUMBER) | SETOF(NORMAL) |         \
     SETOF(SUBNORMAL))
#define SSHF    (SETOF(L) | SETOF(R))
#define SSHFL   (SETOF(UP) | SETOF(DOWN) | SETOF(BFLY) | SETOF(IDX))
#define SPRMT   (SETOF(F4E) | SETOF(B4E) | SETOF(RC8) | SETOF(ECL) | SETOF(ECR) | SETOF(RC16))
#define SBARRED (SETOF(AND) | SETOF(OR) | SETOF(POPC))
#define SMEMBAR (SETOF(CTA) | SETOF(GL) | SETOF(SYS))
#define SATOM                                                                                      \
    (SBOOL | SETOF(ADD) | SETOF(MIN) | SETOF(MAX) | SETOF(INC) | SETOF(DEC) | SETOF(CAS) |         \
     SETOF(EXCH))
#define SVOTE  (SETOF(ALL) | SETOF(ANY) | SETOF(UNI) | SETOF(BALLOT))
#define SMATCH (SETOF(ALL) | SETOF(ANY))
#define SREDUX (SBOOL | SETOF(ADD) | SETOF(MIN) | SETOF(MAX))
#define SVIDEO (SETOF(ADD) | SETOF(MIN) | SETOF(MAX))

const struct ws_ptx_op_info ws_ptx_ops[_WS_OP_N] = {
#define WS_OP(id, name_, mods_, subs_, sig_, min_, max_, t0_, t1_, effect_, mix_, does_, decode_,  \
              meaning_)                                                                            \
    [WS_OP_##id] = {.name = name_,                                                                 \
                    .mods = mods_,                                                                 \
                    .sig = sig_,                                                                   \
                    .meaning = meaning_,                                                           \
                    .subs = subs_,                                                                 \
                    .t0 = t0_,                                                                     \
                    .t1 = t1_,                                                                     \
                    .min_types = min_,                                                             \
                    .max_types = max_,                                                             \
                    .effect = WS_EFFECT_##effect_,                                                 \
                    .mix = WS_MIX_##mix_,                                                          \
                    .does = does_},
#include "ptx/opcodes.def"
#undef WS_OP
};

const char *const ws_ptx_cache_names[] = {"ca", "cg", "cs", "lu", "cv", "wb", "wt", NULL};

/* clang-format off */
static const struct {
    const char *name;
    uint8_t bytes;
} types[_WS_T_N] = {
    [WS_T_NONE] = {"", 0},
    [WS_T_B8] = {"b8", 1}, [WS_T_B16] = {"b16", 2}, [WS_T_B32] = {"b32", 4},
    [WS_T_B64] = {"b64", 8}, [WS_T_B128] = {"b128", 16},
    [WS_T_U8] = {"u8", 1}, [WS_T_U16] = {"u16", 2}, [WS_T_U32] = {"u32", 4}, [WS_T_U64] = {"u64", 8},
    [WS_T_S8] = {"s8", 1}, [WS_T_S16] = {"s16", 2}, [WS_T_S32] = {"s32", 4}, [WS_T_S64] = {"s64", 8},
    [WS_T_F16] = {"f16", 2}, [WS_T_F16X2] = {"f16x2", 4}, [WS_T_BF16] = {"bf16", 2},
    [WS_T_BF16X2] = {"bf16x2", 4}, [WS_T_TF32] = {"tf32", 4}, [WS_T_F32] = {"f32", 4},
    [WS_T_F64] = {"f64", 8}, [WS_T_U16X2] = {"u16x2", 4}, [WS_T_S16X2] = {"s16x2", 4},
    [WS_T_PRED] = {"pred", 1}, [WS_T_TEXREF] = {"texref", 8},
    [WS_T_SAMPLERREF] = {"samplerref", 8}, [WS_T_SURFREF] = {"surfref", 8},
    [WS_T_F32X2] = {"f32x2", 8}, [WS_T_E4M3] = {"e4m3", 1}, [WS_T_E5M2] = {"e5m2", 1},
    [WS_T_E4M3X2] = {"e4m3x2", 2}, [WS_T_E5M2X2] = {"e5m2x2", 2}, [WS_T_E2M3X2] = {"e2m3x2", 2},
    [WS_T_E3M2X2] = {"e3m2x2", 2}, [WS_T_E2M1X2] = {"e2m1x2", 1}, [WS_T_UE8M0X2] = {"ue8m0x2", 2},
    [WS_T_E4M3X4] = {"e4m3x4", 4}, [WS_T_E5M2X4] = {"e5m2x4", 4}, [WS_T_E2M3X4] = {"e2m3x4", 4},
    [WS_T_E3M2X4] = {"e3m2x4", 4}, [WS_T_E2M1X4] = {"e2m1x4", 2},
};
/* clang-format on */

unsigned ws_ptx_type_bytes(enum ws_ptx_type t)
{
    return (unsigned)t < _WS_T_N ? types[t].bytes : 0;
}

enum ws_ptx_type ws_ptx_bits_type(unsigned bytes)
{
    switch (bytes) {
    case 1:
        return WS_T_B8;
    case 2:
        return WS_T_B16;
    case 4:
        return WS_T_B32;
    default:
        return WS_T_B64;
    }
}

enum ws_ptx_type ws_ptx_uint_type(unsigned bytes)
{
    switch (bytes) {
    case 1:
        return WS_T_U8;
    case 2:
        return WS_T_U16;
    case 4:
        return WS_T_U32;
    default:
        return WS_T_U64;
    }
}

const char *ws_ptx_type_name(enum ws_ptx_type t)
{
    return (unsigned)t < _WS_T_N ? types[t].name : "?";
}

const char *ws_ptx_op_name(enum ws_ptx_op op)
{
    return (unsigned)op < _WS_OP_N ? ws_ptx_ops[op].name : "?";
}

static const char *const sregs[_WS_SR_N] = {
    [WS_SR_NONE] = "",
    [WS_SR_TID] = "%tid",
    [WS_SR_NTID] = "%ntid",
    [WS_SR_CTAID] = "%ctaid",
    [WS_SR_NCTAID] = "%nctaid",
    [WS_SR_LANEID] = "%laneid",
    [WS_SR_WARPID] = "%warpid",
    [WS_SR_NWARPID] = "%nwarpid",
    [WS_SR_SMID] = "%smid",
    [WS_SR_NSMID] = "%nsmid",
    [WS_SR_GRIDID] = "%gridid",
    [WS_SR_LANEMASK_EQ] = "%lanemask_eq",
    [WS_SR_LANEMASK_LE] = "%lanemask_le",
    [WS_SR_LANEMASK_LT] = "%lanemask_lt",
    [WS_SR_LANEMASK_GE] = "%lanemask_ge",
    [WS_SR_LANEMASK_GT] = "%lanemask_gt",
    [WS_SR_CLOCK] = "%clock",
    [WS_SR_CLOCK_HI] = "%clock_hi",
    [WS_SR_CLOCK64] = "%clock64",
    [WS_SR_GLOBALTIMER] = "%globaltimer",
    [WS_SR_GLOBALTIMER_LO] = "%globaltimer_lo",
    [WS_SR_GLOBALTIMER_HI] = "%globaltimer_hi",
    [WS_SR_ENVREG] = "%envreg",
    [WS_SR_DYNAMIC_SMEM_SIZE] = "%dynamic_smem_size",
    [WS_SR_TOTAL_SMEM_SIZE] = "%total_smem_size",
    [WS_SR_RESERVED_SMEM_OFFSET] = "%reserved_smem_offset",
    [WS_SR_CLUSTERID] = "%clusterid",
    [WS_SR_NCLUSTERID] = "%nclusterid",
    [WS_SR_CLUSTER_CTAID] = "%cluster_ctaid",
    [WS_SR_CLUSTER_NCTAID] = "%cluster_nctaid",
    [WS_SR_CLUSTER_CTARANK] = "%cluster_ctarank",
    [WS_SR_CLUSTER_NCTARANK] = "%cluster_nctarank",
    [WS_SR_IS_EXPLICIT_CLUSTER] = "%is_explicit_cluster",
    [WS_SR_PM] = "%pm",
    [WS_SR_WARPSZ] = "WARP_SZ",
    [WS_SR_AGGR_SMEM_SIZE] = "%aggr_smem_size",
    [WS_SR_CURRENT_GRAPH_EXEC] = "%current_graph_exec",
};

bool ws_ptx_sreg_is_clock(enum ws_ptx_sreg sr)
{
    switch (sr) {
    case WS_SR_CLOCK:
    case WS_SR_CLOCK_HI:
    case WS_SR_CLOCK64:
    case WS_SR_GLOBALTIMER:
    case WS_SR_GLOBALTIMER_LO:
    case WS_SR_GLOBALTIMER_HI:
    case WS_SR_PM:
        return true;
    default:
        return false;
    }
}

const char *ws_ptx_sreg_name(enum ws_ptx_sreg sr)
{
    return (unsigned)sr < _WS_SR_N ? sregs[sr] : "?";
}

enum ws_ptx_mix ws_ptx_insn_mix(const struct ws_ptx_insn *i)
{
    enum ws_ptx_mix mix = i->op < _WS_OP_N ? ws_ptx_ops[i->op].mix : WS_MIX_INT;
    if (mix != WS_MIX_AUTO)
        return mix;
    /* set and setp compare types of their last place */
    switch (i->n_types ? i->types[i->n_types - 1] : WS_T_NONE) {
    case WS_T_F16:
    case WS_T_F16X2:
    case WS_T_BF16:
    case WS_T_BF16X2:
        return WS_MIX_FP16;
    case WS_T_F32:
    case WS_T_F32X2:
    case WS_T_TF32:
        return WS_MIX_FP32;
    case WS_T_F64:
        return WS_MIX_FP64;
    default:
        return WS_MIX_INT;
    }
}
