// SPDX-License-Identifier: Apache-2.0
/* device/soft/decode/machine.c - the machine instructions that one of PTX becomes.
 *
 * PTX is not what a GPU executes: moves between registers, loads of parameters and conversions of
 * addresses disappear, while a division is a dozen instructions. The models of energy and time were
 * fitted to counts of machine instructions, so these are estimated here. The numbers are what
 * NVIDIA's compiler is seen to emit for Volta, rounded; what it does with the instructions around
 * one is not known. A lane that is switched off by a predicate counts as if it were on. Tensor
 * instructions count as issued only: no source of measurements tells their energy.
 *
 * Before Volta there is no product of 32-bit integers in one instruction: the CUDA C++ Programming
 * Guide has "multiple instructions" for compute capabilities 5.x and 6.x in its table of arithmetic
 * throughput, and the CUDA Binary Utilities list XMAD, a short multiplication, for Maxwell and
 * Pascal. ptxas 12.4 makes the lower 32 bits of three of these, all 64 of seven. Nor can an index
 * be added to an address in one instruction, as on Volta (IMAD.WIDE): a multiplication by a power
 * of two becomes two shifts there, and the addition two with carry. */
#include "device/soft/decode/priv.h"

static struct ws_machine ops(uint8_t n_insns, enum ws_unit_op unit, uint8_t n)
{
    struct ws_machine m = {.n_insns = n_insns};
    m.unit[unit] = n;
    return m;
}

static bool is_wide(const struct ws_ptx_insn *i)
{
    return i->n_types && ws_ptx_type_bytes(i->types[0]) == 8;
}

static bool is_power_of_two(const struct ws_ptx_operand *o)
{
    return o->kind == WS_OPD_IMM && o->imm && (o->imm & (o->imm - 1)) == 0;
}

/* A product or a product with a sum before Volta. */
static struct ws_machine old_product(const struct ws_ptx_insn *i)
{
    enum { PRODUCT = 3, WIDE_PRODUCT = 7, LONG_PRODUCT = 15, LONG_SUM = 2 };
    bool shifts = is_power_of_two(&i->operands[2]), gives_long = i->sub == WS_SUB_WIDE;
    unsigned n = is_wide(i) ? LONG_PRODUCT : gives_long ? WIDE_PRODUCT : PRODUCT;
    if (shifts)
        n = is_wide(i) || gives_long ? 2 : 1;
    if (i->op == WS_OP_MAD && (is_wide(i) || gives_long))
        n += LONG_SUM;
    return ops((uint8_t)n, WS_UNIT_INT, (uint8_t)n);
}

/* A quotient or a remainder of 32 bits: as many instructions as ptxas 12.4 makes of one by a
 * divisor that nothing else is divided by. One guesses the reciprocal, two convert. */
static struct ws_machine quotient(const struct ws_ptx_insn *i, bool old)
{
    enum { OTHERS = 3 };
    static const uint8_t n_insns[2][2][2] = {/* unsigned and signed: quotient, remainder */
                                             {{19, 17}, {25, 23}},
                                             {{27, 26}, {32, 29}}};
    bool is_signed = i->n_types && i->types[0] != WS_T_U32 && i->types[0] != WS_T_U16;
    uint8_t n = n_insns[old][is_signed][i->op == WS_OP_REM];
    return (struct ws_machine){n, {(uint8_t)(n - OTHERS), 0, 0, 1}};
}

static struct ws_machine integer(const struct ws_ptx_insn *i, bool old)
{
    bool wide = is_wide(i);
    if (old && (i->op == WS_OP_MUL || i->op == WS_OP_MAD))
        return old_product(i);
    if (old && wide && (i->op == WS_OP_ADD || i->op == WS_OP_SUB))
        return ops(2, WS_UNIT_INT, 2);
    switch (i->op) {
    case WS_OP_DIV:
    case WS_OP_REM:
        return wide ? (struct ws_machine){75, {65, 0, 0, 2}} : quotient(i, old);
    case WS_OP_MUL:
    case WS_OP_MAD:
        return wide ? ops(4, WS_UNIT_INT, 4) : ops(1, WS_UNIT_INT, 1);
    case WS_OP_SHL:
    case WS_OP_SHR:
    case WS_OP_MIN:
    case WS_OP_MAX:
    case WS_OP_AND:
    case WS_OP_OR:
    case WS_OP_XOR:
    case WS_OP_SELP:
    case WS_OP_SETP:
        return ops(wide ? 2 : 1, WS_UNIT_INT, wide ? 2 : 1);
    default: /* the 64-bit additions are mostly of addresses, one instruction with a product */
        return ops(1, WS_UNIT_INT, 1);
    }
}

static struct ws_machine single(const struct ws_ptx_insn *i)
{
    if (i->op != WS_OP_DIV)
        return ops(1, WS_UNIT_FP32, 1);
    if (i->flags & WS_F_APPROX)
        return (struct ws_machine){2, {0, 1, 0, 1}};
    return i->flags & WS_F_FULL ? (struct ws_machine){5, {1, 3, 0, 1}}
                                : (struct ws_machine){10, {1, 7, 0, 1}};
}

static struct ws_machine twice(const struct ws_ptx_insn *i)
{
    return i->op == WS_OP_DIV ? (struct ws_machine){12, {2, 0, 8, 1}} : ops(1, WS_UNIT_FP64, 1);
}

static struct ws_machine special(const struct ws_ptx_insn *i)
{
    if (is_wide(i)) /* a reciprocal is five products with sums after a first guess */
        return i->op == WS_OP_RCP ? (struct ws_machine){8, {2, 0, 5, 1}}
                                  : (struct ws_machine){10, {2, 0, 7, 1}};
    switch (i->op) {
    case WS_OP_SQRT:
    case WS_OP_RCP:
        return i->flags & WS_F_APPROX ? ops(1, WS_UNIT_SFU, 1)
                                      : (struct ws_machine){8, {1, 5, 0, 1}};
    case WS_OP_SIN:
    case WS_OP_COS:
    case WS_OP_EX2:
    case WS_OP_LG2: /* what goes in or out is scaled */
        return (struct ws_machine){2, {0, 1, 0, 1}};
    default:
        return ops(1, WS_UNIT_SFU, 1);
    }
}

static bool is_double(const struct ws_ptx_insn *i)
{
    for (unsigned k = 0; k < i->n_types; k++)
        if (i->types[k] == WS_T_F64)
            return true;
    return false;
}

struct ws_machine ws_dec_machine(const struct ws_ptx_insn *i, uint32_t hardware_cc)
{
    enum { VOLTA = 70 };
    bool old = hardware_cc && hardware_cc < VOLTA;
    static const struct ws_machine none, issued = {.n_insns = 1};
    switch (ws_ptx_insn_mix(i)) {
    case WS_MIX_INT:
        return i->op == WS_OP_CVTA ? none : integer(i, old);
    case WS_MIX_FP32:
        return single(i);
    case WS_MIX_FP16:
        return ops(1, WS_UNIT_FP32, 1);
    case WS_MIX_FP64:
        return twice(i);
    case WS_MIX_SFU:
        return special(i);
    case WS_MIX_CONV:
        if (i->op == WS_OP_CVTA)
            return none;
        return is_double(i) ? ops(1, WS_UNIT_FP64, 1) : ops(1, WS_UNIT_INT, 1);
    case WS_MIX_MOVE: /* of a special register: one; else the compiler renames registers */
        return i->op != WS_OP_CVTA && i->n_operands == 2 && i->operands[1].kind == WS_OPD_SREG
                   ? issued
                   : none;
    case WS_MIX_LDST: /* parameters are operands of what uses them */
        return i->op == WS_OP_LD && i->space == WS_SP_PARAM ? none : issued;
    default:
        return issued;
    }
}
