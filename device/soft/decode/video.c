// SPDX-License-Identifier: Apache-2.0
/* device/soft/decode/video.c - video instructions: selectors and modifiers into one micro-op.
 *
 * A selector stands behind a register (".b2", ".h1", ".b7654") and the IR keeps it as written; here
 * it becomes numbers. What is not one that the PTX ISA lists is refused. */
#include <string.h>

#include "device/soft/decode/priv.h"
#include "device/soft/exec/video.h"

typedef const struct ws_ptx_insn *insn;

static bool is_signed(uint8_t t)
{
    return t == WS_T_S32;
}

/* Rows of operands whose parts were read apart. */
static uint32_t src_whole(struct ws_dec *d, const struct ws_ptx_operand *o)
{
    struct ws_ptx_operand w = *o;
    w.part = NULL;
    w.neg = 0;
    return ws_dec_src(d, &w, WS_T_U32);
}

static bool scalar_part(const struct ws_ptx_operand *o, uint8_t *ret)
{
    static const char *const names[] = {"", ".b0", ".b1", ".b2", ".b3", ".h0", ".h1"};
    for (size_t k = 0; k < WS_ARRAY_SIZE(names); k++)
        if (strcmp(o->part ? o->part : "", names[k]) == 0) {
            *ret = (uint8_t)k;
            return true;
        }
    return false;
}

/* ".hxy", ".bxyzw": the highest lane's number first. @first: the default, of lane 0. */
static bool simd_select(const char *part, unsigned n, unsigned first, uint32_t *ret)
{
    *ret = 0;
    if (!part) {
        for (unsigned k = 0; k < n; k++)
            *ret |= (first + k) << (3 * k);
        return true;
    }
    if (strlen(part) != n + 2 || part[0] != '.' || part[1] != (n == 2 ? 'h' : 'b'))
        return false;
    for (unsigned k = 0; k < n; k++) {
        unsigned v = (unsigned)(part[2 + n - 1 - k] - '0');
        if (v >= 2 * n)
            return false;
        *ret |= v << (3 * k);
    }
    return true;
}

/* ".b310": numbers of lanes, falling. */
static bool simd_mask(const char *part, unsigned n, uint8_t *ret)
{
    unsigned last = n;
    *ret = (uint8_t)((1u << n) - 1);
    if (!part)
        return true;
    if (part[0] != '.' || part[1] != (n == 2 ? 'h' : 'b') || !part[2])
        return false;
    *ret = 0;
    for (const char *p = part + 2; *p; p++) {
        unsigned v = (unsigned)(*p - '0');
        if (v >= last)
            return false;
        last = v;
        *ret |= (uint8_t)(1u << v);
    }
    return true;
}

/* vmad's .po and scale are the only words that the IR leaves as text. */
static bool extras(insn i, union ws_video *x)
{
    const char *e = i->ext ? i->ext : "";
    if (i->op != WS_OP_VMAD)
        return !*e;
    if (strncmp(e, ".po", 3) == 0) {
        x->flags |= WS_VIDEO_PO;
        e += 3;
    }
    x->shift = strcmp(e, ".shr7") == 0 ? 7 : strcmp(e, ".shr15") == 0 ? 15 : 0;
    return x->shift || !*e;
}

static bool compares(insn i)
{
    return i->op == WS_OP_VSET || i->op == WS_OP_VSET2 || i->op == WS_OP_VSET4;
}

static uint8_t type_flags(insn i)
{
    if (compares(i)) /* no destination type: 0, 1 and sums of these */
        return (uint8_t)((is_signed(i->types[0]) ? WS_VIDEO_A_SIGNED : 0) |
                         (is_signed(i->types[1]) ? WS_VIDEO_B_SIGNED : 0));
    return (uint8_t)((is_signed(i->types[0]) ? WS_VIDEO_D_SIGNED : 0) |
                     (is_signed(i->types[1]) ? WS_VIDEO_A_SIGNED : 0) |
                     (is_signed(i->types[2]) ? WS_VIDEO_B_SIGNED : 0) |
                     (i->flags & WS_F_SAT ? WS_VIDEO_SAT : 0) |
                     (i->flags & WS_F_WRAP ? WS_VIDEO_WRAP : 0));
}

/* Rows of d, a, b, c; the destination may be written in part, so it is not a conversion's. */
static void emit(struct ws_dec *d, insn i, enum ws_handler h, const union ws_video *x, uint32_t sel)
{
    struct ws_ptx_operand to = i->operands[0];
    bool finish;
    to.part = NULL;
    uint32_t a = src_whole(d, &i->operands[1]), b = src_whole(d, &i->operands[2]),
             c = i->n_operands > 3 ? src_whole(d, &i->operands[3]) : ws_dec_const(d, 4, 0);
    uint32_t dst = ws_dec_dst(d, &to, WS_T_U32, &finish);
    struct ws_uop *u = ws_dec_emit3(d, h, dst, a, b);
    u->c = (int32_t)c;
    u->x = sel;
    u->imm = x->imm;
    if (finish)
        ws_dec_finish(d, &to, WS_T_U32, dst);
}

static void scalar(struct ws_dec *d, insn i, enum ws_video_op op)
{
    union ws_video x = {.imm = 0};
    bool shift = op == WS_VIDEO_SHL || op == WS_VIDEO_SHR;
    x.op = (uint8_t)op;
    x.flags = type_flags(i);
    x.cmp = i->cmp;
    x.second = i->sub;
    const struct ws_ptx_operand *o = i->operands;
    bool ok = i->n_operands >= 3 && scalar_part(&o[0], &x.dsel) && scalar_part(&o[1], &x.asel) &&
              scalar_part(&o[2], &x.bsel) && (i->n_operands < 4 || !o[3].part) && extras(i, &x);
    if (ok && op == WS_VIDEO_MAD && i->n_operands == 4) {
        bool ab = o[1].neg != o[2].neg;
        x.flags |= (uint8_t)((ab ? WS_VIDEO_NEG_AB : 0) | (o[3].neg ? WS_VIDEO_NEG_C : 0));
        ok = !(ab && o[3].neg) && !((x.flags & WS_VIDEO_PO) && (o[1].neg || o[2].neg || o[3].neg));
    }
    /* c is there for a second operation or a merge, not both; vmad always has it, and writes all of
     * d */
    unsigned want = op == WS_VIDEO_MAD || x.second || (ok && x.dsel) ? 4 : 3;
    if (!ok || i->n_operands != want || (x.second && x.dsel) || (op == WS_VIDEO_MAD && x.dsel) ||
        (shift && (i->types[2] != WS_T_U32 || !(i->flags & (WS_F_WRAP | WS_F_CLAMP)))) ||
        (compares(i) && (i->cmp < WS_CMP_EQ || i->cmp > WS_CMP_GE)) ||
        ((x.flags & WS_VIDEO_PO) && x.op != WS_VIDEO_MAD)) {
        ws_dec_no_such(d, i);
        return;
    }
    emit(d, i, WS_H_video, &x, 0);
}

static void simd(struct ws_dec *d, insn i, enum ws_video_op op, unsigned n)
{
    union ws_video x = {.imm = 0};
    uint32_t asel = 0, bsel = 0;
    x.op = (uint8_t)op;
    x.flags = type_flags(i);
    x.cmp = i->cmp;
    x.second = i->sub;
    x.shift = (uint8_t)n;
    const struct ws_ptx_operand *o = i->operands;
    if (i->n_operands != 4 || !extras(i, &x) || !simd_mask(o[0].part, n, &x.dsel) ||
        !simd_select(o[1].part, n, 0, &asel) || !simd_select(o[2].part, n, n, &bsel) || o[3].part ||
        (compares(i) && (i->cmp < WS_CMP_EQ || i->cmp > WS_CMP_GE)) ||
        (x.second && (i->flags & WS_F_SAT))) {
        ws_dec_no_such(d, i);
        return;
    }
    bool plain = !o[0].part && !o[1].part && !o[2].part;
    if (plain && n == 4 && op == WS_VIDEO_ABSDIFF && x.second &&
        x.flags == 0) /* sums of absolute differences */
        emit(d, i, WS_H_vabsdiff4_add, &x, 0);
    else
        emit(d, i, WS_H_video_simd, &x, asel | bsel << 16);
}

void ws_dec_video(struct ws_dec *d, insn i)
{
    static const struct {
        uint16_t op;
        uint8_t what, lanes;
    } ops[] = {
        {WS_OP_VADD, WS_VIDEO_ADD, 1},          {WS_OP_VSUB, WS_VIDEO_SUB, 1},
        {WS_OP_VABSDIFF, WS_VIDEO_ABSDIFF, 1},  {WS_OP_VMIN, WS_VIDEO_MIN, 1},
        {WS_OP_VMAX, WS_VIDEO_MAX, 1},          {WS_OP_VSHL, WS_VIDEO_SHL, 1},
        {WS_OP_VSHR, WS_VIDEO_SHR, 1},          {WS_OP_VMAD, WS_VIDEO_MAD, 1},
        {WS_OP_VSET, WS_VIDEO_SET, 1},          {WS_OP_VADD2, WS_VIDEO_ADD, 2},
        {WS_OP_VSUB2, WS_VIDEO_SUB, 2},         {WS_OP_VAVRG2, WS_VIDEO_AVRG, 2},
        {WS_OP_VABSDIFF2, WS_VIDEO_ABSDIFF, 2}, {WS_OP_VMIN2, WS_VIDEO_MIN, 2},
        {WS_OP_VMAX2, WS_VIDEO_MAX, 2},         {WS_OP_VSET2, WS_VIDEO_SET, 2},
        {WS_OP_VADD4, WS_VIDEO_ADD, 4},         {WS_OP_VSUB4, WS_VIDEO_SUB, 4},
        {WS_OP_VAVRG4, WS_VIDEO_AVRG, 4},       {WS_OP_VABSDIFF4, WS_VIDEO_ABSDIFF, 4},
        {WS_OP_VMIN4, WS_VIDEO_MIN, 4},         {WS_OP_VMAX4, WS_VIDEO_MAX, 4},
        {WS_OP_VSET4, WS_VIDEO_SET, 4},
    };
    for (size_t k = 0; k < WS_ARRAY_SIZE(ops); k++) {
        if (ops[k].op != i->op)
            continue;
        if (ops[k].lanes == 1)
            scalar(d, i, (enum ws_video_op)ops[k].what);
        else
            simd(d, i, (enum ws_video_op)ops[k].what, ops[k].lanes);
        return;
    }
    ws_dec_no_such(d, i);
}
