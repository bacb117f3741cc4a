/* SPDX-License-Identifier: Apache-2.0 */
/* device/soft/decode/util.h - what the files that decode instructions share: emitting "d =
 * h(sources)", refusing by name.
 *
 * insn.c chooses the function for each opcode; half.c has narrow and packed floating point, cmp.c
 * comparisons, cvt.c moves and conversions, mem.c memory. Each function decodes one
 * PTX instruction; operands were counted by the validator only as far as opcodes.def says. */
#ifndef WS_DEVICE_SOFT_DECODE_UTIL_H
#define WS_DEVICE_SOFT_DECODE_UTIL_H

#include "device/soft/decode/priv.h"
#include "device/soft/decode/lane.h"

typedef const struct ws_ptx_insn *insn;
typedef enum ws_ptx_type type;

/* Handlers of one operation by width of type (see wi()); SU3 by sign, too. */
#define W3(name) ((const uint16_t[]){WS_H_##name##_16, WS_H_##name##_32, WS_H_##name##_64})
#define V3(name) ((const uint16_t[]){WS_H_##name##16, WS_H_##name##32, WS_H_##name##64})

static inline bool is_signed(type t)
{
    return t == WS_T_S8 || t == WS_T_S16 || t == WS_T_S32 || t == WS_T_S64;
}

static inline unsigned wi(type t)
{
    unsigned b = ws_ptx_type_bytes(t);
    return b == 2 ? 0 : b == 4 ? 1 : 2;
}

static inline uint32_t mxcsr(insn i, bool honour_rnd)
{
    uint32_t mx = 0x1f80;
    if (honour_rnd)
        switch (i->rnd) {
        case WS_RND_RM:
        case WS_RND_RMI:
            mx |= 1 << 13;
            break;
        case WS_RND_RP:
        case WS_RND_RPI:
            mx |= 2 << 13;
            break;
        case WS_RND_RZ:
        case WS_RND_RZI:
            mx |= 3 << 13;
            break;
        default:
            break;
        }
    return i->flags & WS_F_FTZ ? mx | 0x8040 : mx;
}

#define no_such ws_dec_no_such

/* d = h(sources of type t…), to a destination of type td */
static inline struct ws_uop *op_n(struct ws_dec *d, insn i, enum ws_handler h, type td, unsigned n,
                                  const type *ts)
{
    uint32_t s[4] = {0};
    bool finish;
    if (i->n_operands < n + 1) {
        no_such(d, i);
        return ws_dec_emit(d, WS_H_nop);
    }
    for (unsigned k = 0; k < n; k++)
        s[k] = ws_dec_src(d, &i->operands[k + 1], ts[k]);
    uint32_t dst = ws_dec_dst(d, &i->operands[0], td, &finish);
    struct ws_uop *u = ws_dec_emit3(d, h, dst, s[0], s[1]);
    u->c = (int32_t)s[2];
    u->e = (int32_t)s[3];
    if (finish) {
        size_t at = d->n_uops - 1;
        ws_dec_finish(d, &i->operands[0], td, dst);
        if (!d->oom)
            u = &d->uops[at];
    }
    return u;
}

static inline struct ws_uop *op1(struct ws_dec *d, insn i, enum ws_handler h, type td, type ta)
{
    return op_n(d, i, h, td, 1, &ta);
}

static inline struct ws_uop *op2(struct ws_dec *d, insn i, enum ws_handler h, type td, type ta,
                                 type tb)
{
    return op_n(d, i, h, td, 2, (const type[]){ta, tb});
}

static inline struct ws_uop *op3(struct ws_dec *d, insn i, enum ws_handler h, type td, type ta,
                                 type tb, type tc)
{
    return op_n(d, i, h, td, 3, (const type[]){ta, tb, tc});
}

static inline void post(struct ws_dec *d, enum ws_handler h, int32_t row)
{
    ws_dec_emit3(d, h, (uint32_t)row, (uint32_t)row, 0);
}

static inline bool is_half(type t)
{
    return t == WS_T_F16 || t == WS_T_F16X2 || t == WS_T_BF16 || t == WS_T_BF16X2;
}

/* A micro-op "lane": @dst = @fn(@src…, @x). Widths are in bytes. */
struct ws_uop *ws_dec_lane(struct ws_dec *d, ws_lane_fn fn, uint32_t x, uint32_t dst,
                           uint32_t dst_width, unsigned n, const uint32_t *src,
                           const uint32_t *src_widths);
/* The same of an instruction: destination of type td, sources of types ts. */
struct ws_uop *ws_dec_lane_n(struct ws_dec *d, const struct ws_ptx_insn *i, ws_lane_fn fn,
                             uint32_t x, enum ws_ptx_type td, unsigned n,
                             const enum ws_ptx_type *ts);

/* ---- half.c ---- */
/* Half, packed and mixed-precision arithmetic and comparisons. Return: false: not one of them. */
bool ws_dec_half(struct ws_dec *d, const struct ws_ptx_insn *i);

/* ---- cmp.c ---- */
void ws_dec_setp(struct ws_dec *d, const struct ws_ptx_insn *i);
void ws_dec_set(struct ws_dec *d, const struct ws_ptx_insn *i);
void ws_dec_selp(struct ws_dec *d, const struct ws_ptx_insn *i);
void ws_dec_slct(struct ws_dec *d, const struct ws_ptx_insn *i);
void ws_dec_lop3(struct ws_dec *d, const struct ws_ptx_insn *i);

/* ---- cvt.c ---- */
void ws_dec_mov_insn(struct ws_dec *d, const struct ws_ptx_insn *i);
void ws_dec_cvt(struct ws_dec *d, const struct ws_ptx_insn *i);
void ws_dec_cvt_pack(struct ws_dec *d, const struct ws_ptx_insn *i);

/* ---- mem.c ---- */
void ws_dec_load(struct ws_dec *d, const struct ws_ptx_insn *i);
void ws_dec_store(struct ws_dec *d, const struct ws_ptx_insn *i);
void ws_dec_atom(struct ws_dec *d, const struct ws_ptx_insn *i);
void ws_dec_red(struct ws_dec *d, const struct ws_ptx_insn *i);
void ws_dec_cp_async(struct ws_dec *d, const struct ws_ptx_insn *i);
void ws_dec_cvta(struct ws_dec *d, const struct ws_ptx_insn *i);

#endif
