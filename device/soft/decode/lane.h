/* SPDX-License-Identifier: Apache-2.0 */
/* device/soft/decode/lane.h - functions of one lane's values, for the micro-op "lane": what is rare
 * in programs (narrow floating formats, directed roundings of halves, byte dot products) is written
 * once, for exactness, and is the same in every vector build.
 *
 * A function gets up to three values (low bits of its operands' rows, the rest zero) and its
 * modifiers, and returns the bits of its result. It runs under the default MXCSR. Threads: any; no
 * state. Source: PTX ISA 9.0, 9.7.1 to 9.7.9. */
#ifndef WS_DEVICE_SOFT_DECODE_LANE_H
#define WS_DEVICE_SOFT_DECODE_LANE_H

#include "device/soft/exec/priv.h"

typedef uint64_t (*ws_lane_fn)(uint64_t a, uint64_t b, uint64_t c, uint32_t x);

/* Widths of the rows in uop.mx: two bits (log2 of the bytes) each of d, a, b, c. */
#define WS_LANE_W(d, a, b, c) ((d) | (a) << 2 | (b) << 4 | (c) << 6)

/* ---- formats ---- */
enum ws_fmt {
    WS_FMT_F16,
    WS_FMT_BF16,
    WS_FMT_TF32,
    WS_FMT_F32,
    WS_FMT_F64,
    WS_FMT_E4M3,
    WS_FMT_E5M2,
    WS_FMT_E2M3,
    WS_FMT_E3M2,
    WS_FMT_E2M1,
    WS_FMT_UE8M0,
    WS_FMT_S64, /* integers, already widened to 64 bits */
    WS_FMT_U64,
    _WS_FMT_N
};

/* ---- modifiers ---- */
enum {
    /* of ws_lane_cvt: destination, source, rounding (enum ws_ptx_rnd: 4 bits), then flags */
    WS_CVT_DST_SHIFT = 0,
    WS_CVT_SRC_SHIFT = 4,
    WS_CVT_RND_SHIFT = 8,
    WS_CVT_SAT = 1 << 12,
    WS_CVT_SATFINITE = 1 << 13,
    WS_CVT_RELU = 1 << 14,
    WS_CVT_FTZ = 1 << 15,      /* f32 on either side */
    WS_CVT_PAIR_SRC = 1 << 16, /* a holds two values; else a is the upper and b the lower one */
    WS_CVT_PAIR = 1 << 17,     /* two results */
    WS_CVT_INTEGRAL = 1 << 18, /* round to an integral value, which the format holds */

    /* of ws_lane_half: operation in the low byte */
    WS_HALF_BF16 = 1 << 8,
    WS_HALF_X2 = 1 << 9,
    WS_HALF_FTZ = 1 << 10,
    WS_HALF_SAT = 1 << 11,
    WS_HALF_RELU = 1 << 12,
    WS_HALF_NAN = 1 << 13,
    WS_HALF_XORSIGN = 1 << 14,
};
enum ws_half_op {
    WS_HALF_ADD,
    WS_HALF_SUB,
    WS_HALF_MUL,
    WS_HALF_FMA,
    WS_HALF_MIN,
    WS_HALF_MAX,
    WS_HALF_FLUSH, /* subnormals to zero */
    WS_HALF_EX2,
    WS_HALF_TANH,
};

uint64_t ws_lane_cvt(uint64_t a, uint64_t b, uint64_t c, uint32_t x);
uint64_t ws_lane_half(uint64_t a, uint64_t b, uint64_t c, uint32_t x);
/* x: bit 0: a's parts are signed, bit 1: b's, bit 2: .hi */
uint64_t ws_lane_dp2a(uint64_t a, uint64_t b, uint64_t c, uint32_t x);
uint64_t ws_lane_fns(uint64_t a, uint64_t b, uint64_t c, uint32_t x);
/* x: bits of a part | 0x100 signed | 0x200: a third operand gives the upper bits */
uint64_t ws_lane_pack(uint64_t a, uint64_t b, uint64_t c, uint32_t x);
/* x: bits of the integer | 0x100 signed; a double, already integral or to be truncated */
uint64_t ws_lane_f64_to_narrow(uint64_t a, uint64_t b, uint64_t c, uint32_t x);
/* x: 1: rsqrt, 0: rcp; approx.ftz.f64 */
uint64_t ws_lane_approx_f64(uint64_t a, uint64_t b, uint64_t c, uint32_t x);

#endif
