// SPDX-License-Identifier: Apache-2.0
/* device/soft/decode/lane.c - the functions behind the micro-op "lane".
 *
 * Conversions: a value of any format becomes a number - sign, exponent, 64 significant bits of
 * which the lowest is sticky - which is rounded once to the destination. Sources have at most 64
 * significant bits, so nothing is lost on the way. Half arithmetic: exact or rounded to odd in
 * double, whose 53 bits leave at least two more than twice a half's, so that the one rounding to
 * the half is right in every case.
 * To add a format: a row in formats[], and its name in cvt.c. */
#include "device/soft/decode/lane.h"

#include <math.h>
#include <string.h>

/* ---- numbers ---- */
enum num_class { NUM_ZERO, NUM_FINITE, NUM_INF, NUM_NAN };
struct num {
    bool neg;
    enum num_class cls;
    int exp;       /* FINITE: value = mant * 2^(exp - 63), mant >= 2^63 */
    uint64_t mant; /* lowest bit: or of all below */
};

static const struct format {
    uint8_t ebits, mbits, shift; /* shift: bits of zero below, in the register */
    bool inf, nan;               /* it has infinities; it has NaNs */
    uint32_t nan_bits;           /* the NaN that results are */
    uint32_t max_bits;           /* the largest finite value */
} formats[] = {
    [WS_FMT_F16] = {5, 10, 0, true, true, 0x7fff, 0x7bff},
    [WS_FMT_BF16] = {8, 7, 0, true, true, 0x7fff, 0x7f7f},
    [WS_FMT_TF32] = {8, 10, 13, true, true, 0x7fffffff, 0x7f7fe000},
    [WS_FMT_F32] = {8, 23, 0, true, true, 0x7fffffff, 0x7f7fffff},
    [WS_FMT_F64] = {11, 52, 0, true, true, 0, 0},
    [WS_FMT_E4M3] = {4, 3, 0, false, true, 0x7f, 0x7e},
    [WS_FMT_E5M2] = {5, 2, 0, true, true, 0x7f, 0x7b},
    [WS_FMT_E2M3] = {2, 3, 0, false, false, 0x1f, 0x1f},
    [WS_FMT_E3M2] = {3, 2, 0, false, false, 0x1f, 0x1f},
    [WS_FMT_E2M1] = {2, 1, 0, false, false, 0x7, 0x7},
};

static int bias_of(const struct format *f)
{
    return (1 << (f->ebits - 1)) - 1;
}

static struct num from_int(uint64_t v, bool neg)
{
    struct num r = {.neg = neg};
    if (v) {
        int z = __builtin_clzll(v);
        r.cls = NUM_FINITE;
        r.exp = 63 - z;
        r.mant = v << z;
    }
    return r;
}

static struct num from_ue8m0(uint64_t v)
{
    v &= 0xff;
    if (v == 0xff)
        return (struct num){.cls = NUM_NAN};
    return (struct num){.cls = NUM_FINITE, .exp = (int)v - 127, .mant = UINT64_C(1) << 63};
}

static struct num unpack(enum ws_fmt fmt, uint64_t v)
{
    if (fmt == WS_FMT_S64)
        return from_int((int64_t)v < 0 ? 0 - v : v, (int64_t)v < 0);
    if (fmt == WS_FMT_U64)
        return from_int(v, false);
    if (fmt == WS_FMT_UE8M0)
        return from_ue8m0(v);
    const struct format *f = &formats[fmt];
    v >>= f->shift;
    uint64_t m = v & ((UINT64_C(1) << f->mbits) - 1), top = (UINT64_C(1) << f->ebits) - 1,
             e = v >> f->mbits & top;
    struct num r = {.neg = v >> (f->ebits + f->mbits) & 1};
    if (e == top && f->inf) {
        r.cls = m ? NUM_NAN : NUM_INF;
        return r;
    }
    if (f->nan && !f->inf && e == top && m == (UINT64_C(1) << f->mbits) - 1) { /* e4m3 */
        r.cls = NUM_NAN;
        return r;
    }
    if (e)
        m |= UINT64_C(1) << f->mbits;
    if (!m)
        return r;
    int z = __builtin_clzll(m);
    r.cls = NUM_FINITE;
    r.mant = m << z;
    r.exp = (e ? (int)e : 1) - bias_of(f) - f->mbits + 63 - z;
    return r;
}

/* mant shifted down by drop (0 to anything) and rounded to an integer. */
static uint64_t shift_round(uint64_t mant, int drop, bool neg, enum ws_ptx_rnd rnd)
{
    uint64_t q, rest, half;
    if (drop <= 0)
        return mant;
    if (drop > 64) {
        q = 0;
        rest = 1; /* less than half, not zero */
        half = 2;
    } else {
        q = drop == 64 ? 0 : mant >> drop;
        rest = drop == 64 ? mant : mant & ((UINT64_C(1) << drop) - 1);
        half = UINT64_C(1) << (drop - 1);
    }
    switch (rnd) {
    case WS_RND_RZ:
    case WS_RND_RZI:
        return q;
    case WS_RND_RM:
    case WS_RND_RMI:
        return q + (neg && rest);
    case WS_RND_RP:
    case WS_RND_RPI:
        return q + (!neg && rest);
    case WS_RND_RNA:
        return q + (rest >= half);
    default:
        return q + (rest > half || (rest == half && (q & 1)));
    }
}

static struct num to_integral(struct num n, enum ws_ptx_rnd rnd)
{
    if (n.cls != NUM_FINITE || n.exp >= 63)
        return n;
    return from_int(shift_round(n.mant, 63 - n.exp, n.neg, rnd), n.neg);
}

static uint64_t pack_ue8m0(struct num n, enum ws_ptx_rnd rnd, bool satfinite)
{
    uint64_t e;
    if (n.cls == NUM_NAN)
        return 0xff;
    if (n.cls == NUM_INF)
        return satfinite ? 0xfe : 0xff;
    if (n.cls == NUM_ZERO || n.exp < -127)
        return 0;
    e = (uint64_t)(n.exp + 127);
    if (rnd == WS_RND_RP && n.mant != UINT64_C(1) << 63)
        e++;
    return e >= 0xff ? (satfinite ? 0xfe : 0xff) : e;
}

/* The number in a format, rounded once. */
static uint64_t pack(enum ws_fmt fmt, struct num n, enum ws_ptx_rnd rnd, bool satfinite)
{
    if (fmt == WS_FMT_UE8M0)
        return pack_ue8m0(n, rnd, satfinite);
    const struct format *f = &formats[fmt];
    uint64_t sign = (uint64_t)n.neg << (f->ebits + f->mbits + f->shift);
    uint64_t max = fmt == WS_FMT_F64 ? UINT64_C(0x7fefffffffffffff) : f->max_bits;
    uint64_t inf = f->inf ? max + (UINT64_C(1) << f->shift) : f->nan_bits;
    int least = 1 - bias_of(f); /* exponent of the smallest normal value */
    switch (n.cls) {
    case NUM_NAN:
        return fmt == WS_FMT_F64 ? UINT64_C(0x7ff8000000000000) : f->nan_bits;
    case NUM_ZERO:
        return sign;
    case NUM_INF:
        return sign | (satfinite ? max : inf);
    default:
        break;
    }
    int e = n.exp < least ? least : n.exp;
    uint64_t q = shift_round(n.mant, 63 - f->mbits + (e - n.exp), n.neg, rnd);
    if (e > 2 * bias_of(f) + 2) /* far beyond the format; keeps the next line in range */
        q = UINT64_C(1) << 63;
    else /* the hidden bit, and a carry out of the rounding, add one to the exponent */
        q += (uint64_t)(e - least) << f->mbits;
    if (q > max >> f->shift) {
        bool away = rnd == WS_RND_RP ? !n.neg : rnd == WS_RND_RM ? n.neg : rnd != WS_RND_RZ;
        return sign | (satfinite || !away ? max : inf);
    }
    return sign | q << f->shift;
}

/* ---- conversions ---- */
static uint64_t cvt_one(uint64_t v, uint32_t x)
{
    enum ws_fmt td = x & 15, ts = x >> WS_CVT_SRC_SHIFT & 15;
    enum ws_ptx_rnd rnd = x >> WS_CVT_RND_SHIFT & 15;
    struct num n = unpack(ts, v);
    if ((x & WS_CVT_FTZ) && (ts == WS_FMT_F32 || ts == WS_FMT_BF16) && n.cls == NUM_FINITE &&
        n.exp < -126)
        n = (struct num){.neg = n.neg};
    if ((x & WS_CVT_RELU) && n.neg && n.cls != NUM_NAN)
        n = (struct num){.neg = false};
    if (x & WS_CVT_SAT) {
        if (n.cls == NUM_NAN || n.neg)
            n = (struct num){.neg = false};
        else if (n.cls == NUM_INF || n.exp >= 0)
            n = n.cls == NUM_ZERO ? n : from_int(1, false);
    }
    if (x & WS_CVT_INTEGRAL)
        n = to_integral(n, rnd);
    return pack(td, n, rnd, x & WS_CVT_SATFINITE);
}

static unsigned fmt_bits(enum ws_fmt f)
{
    switch (f) {
    case WS_FMT_F16:
    case WS_FMT_BF16:
        return 16;
    case WS_FMT_E2M1:
        return 4;
    default:
        return 8;
    }
}

uint64_t ws_lane_cvt(uint64_t a, uint64_t b, uint64_t c, uint32_t x)
{
    (void)c;
    if (!(x & WS_CVT_PAIR))
        return cvt_one(a, x);
    unsigned wd = fmt_bits(x & 15);
    if (x & WS_CVT_PAIR_SRC) {
        unsigned ws = fmt_bits(x >> WS_CVT_SRC_SHIFT & 15);
        b = a & ((UINT64_C(1) << ws) - 1);
        a = a >> ws & ((UINT64_C(1) << ws) - 1);
    }
    return cvt_one(a, x) << wd | cvt_one(b, x);
}

/* ---- half arithmetic ---- */
static double half_value(uint16_t v, bool bf)
{
    struct num n = unpack(bf ? WS_FMT_BF16 : WS_FMT_F16, v);
    uint64_t bits = pack(WS_FMT_F64, n, WS_RND_RN, false);
    double d;
    memcpy(&d, &bits, 8);
    return d;
}

static uint16_t half_bits(double d, bool bf)
{
    uint64_t bits;
    memcpy(&bits, &d, 8);
    return (uint16_t)pack(bf ? WS_FMT_BF16 : WS_FMT_F16, unpack(WS_FMT_F64, bits), WS_RND_RN,
                          false);
}

/* p + c, to odd where it is not exact. */
static double add_odd(double p, double c)
{
    double s = p + c, bb = s - p, err = (p - (s - bb)) + (c - bb);
    uint64_t bits;
    if (!(err > 0.0 || err < 0.0))
        return s; /* exact, infinite or NaN */
    memcpy(&bits, &s, 8);
    if (!(bits & 1)) /* towards the error, where the odd neighbour is */
        bits = (err < 0.0) != (s < 0.0) ? bits - 1 : bits + 1;
    memcpy(&s, &bits, 8);
    return s;
}

static uint16_t half_flush(uint16_t v, bool bf)
{
    return v & (bf ? 0x7f80 : 0x7c00) ? v : v & 0x8000;
}

static bool half_nan(uint16_t v, bool bf)
{
    return (v & 0x7fff) > (bf ? 0x7f80 : 0x7c00);
}

static uint16_t half_min_max(uint16_t a, uint16_t b, uint32_t x)
{
    bool bf = x & WS_HALF_BF16, max = (x & 0xff) == WS_HALF_MAX, na, nb;
    uint16_t sign = 0, r;
    if (x & WS_HALF_XORSIGN) {
        sign = (a ^ b) & 0x8000;
        a &= 0x7fff;
        b &= 0x7fff;
    }
    na = half_nan(a, bf);
    nb = half_nan(b, bf);
    if ((na && nb) || ((na || nb) && (x & WS_HALF_NAN)))
        return 0x7fff;
    /* as integers that ascend with the value; -0 below +0 */
    int32_t ka = a & 0x8000 ? -(a & 0x7fff) - 1 : a, kb = b & 0x8000 ? -(b & 0x7fff) - 1 : b;
    if (na)
        r = b;
    else if (nb)
        r = a;
    else
        r = (ka < kb) != max ? a : b;
    return r | sign;
}

static uint16_t half_one(uint16_t a, uint16_t b, uint16_t c, uint32_t x)
{
    bool bf = x & WS_HALF_BF16;
    uint16_t r;
    if (x & WS_HALF_FTZ) {
        a = half_flush(a, bf);
        b = half_flush(b, bf);
        c = half_flush(c, bf);
    }
    double da = half_value(a, bf), db = half_value(b, bf);
    switch ((enum ws_half_op)(x & 0xff)) {
    case WS_HALF_ADD:
        r = half_bits(add_odd(da, db), bf);
        break;
    case WS_HALF_SUB:
        r = half_bits(add_odd(da, -db), bf);
        break;
    case WS_HALF_MUL:
        r = half_bits(da * db, bf);
        break;
    case WS_HALF_FMA:
        r = half_bits(add_odd(da * db, half_value(c, bf)), bf);
        break;
    case WS_HALF_MIN:
    case WS_HALF_MAX:
        r = half_min_max(a, b, x);
        break;
    case WS_HALF_EX2:
        r = half_bits(exp2(da), bf);
        break;
    case WS_HALF_TANH:
        r = half_bits(tanh(da), bf);
        break;
    default:
        return half_flush(a, bf);
    }
    if (x & WS_HALF_FTZ)
        r = half_flush(r, bf);
    if ((x & WS_HALF_RELU) && (r & 0x8000) && !half_nan(r, bf))
        r = 0;
    if (x & WS_HALF_SAT) {
        uint16_t one = bf ? 0x3f80 : 0x3c00;
        r = half_nan(r, bf) || (r & 0x8000) ? 0 : r > one ? one : r;
    }
    return r;
}

uint64_t ws_lane_half(uint64_t a, uint64_t b, uint64_t c, uint32_t x)
{
    uint64_t lo = half_one((uint16_t)a, (uint16_t)b, (uint16_t)c, x);
    if (!(x & WS_HALF_X2))
        return lo;
    return lo | (uint64_t)half_one((uint16_t)(a >> 16), (uint16_t)(b >> 16), (uint16_t)(c >> 16), x)
                    << 16;
}

/* ---- integers ---- */
uint64_t ws_lane_dp2a(uint64_t a, uint64_t b, uint64_t c, uint32_t x)
{
    uint32_t sum = (uint32_t)c;
    for (unsigned k = 0; k < 2; k++) {
        uint16_t va = (uint16_t)(a >> (16 * k));
        uint8_t vb = (uint8_t)(b >> (8 * k + (x & 4 ? 16 : 0)));
        int32_t sa = x & 1 ? (int16_t)va : va, sb = x & 2 ? (int8_t)vb : vb;
        sum += (uint32_t)(sa * sb);
    }
    return sum;
}

uint64_t ws_lane_fns(uint64_t a, uint64_t b, uint64_t c, uint32_t x)
{
    int32_t offset = (int32_t)c, step = offset < 0 ? -1 : 1;
    int64_t left = offset < 0 ? -(int64_t)offset : offset;
    (void)x;
    if (left == 0)
        return b < 32 && (a >> b & 1) ? b : 0xffffffff;
    for (int32_t at = b < 32 ? (int32_t)b : 32; at >= 0 && at < 32; at += step)
        if ((a >> at & 1) && --left == 0)
            return (uint32_t)at;
    return 0xffffffff;
}

uint64_t ws_lane_pack(uint64_t a, uint64_t b, uint64_t c, uint32_t x)
{
    unsigned bits = x & 0xff;
    int64_t max = (INT64_C(1) << (x & 0x100 ? bits - 1 : bits)) - 1, min = x & 0x100 ? -max - 1 : 0;
    int64_t va = (int32_t)a, vb = (int32_t)b;
    uint64_t mask = (UINT64_C(1) << bits) - 1;
    va = va < min ? min : va > max ? max : va;
    vb = vb < min ? min : vb > max ? max : vb;
    uint64_t r = ((uint64_t)va & mask) << bits | ((uint64_t)vb & mask);
    return (uint32_t)(x & 0x200 ? c << (2 * bits) | r : r);
}

uint64_t ws_lane_f64_to_narrow(uint64_t a, uint64_t b, uint64_t c, uint32_t x)
{
    unsigned bits = x & 0xff;
    double v, max = (double)((1u << (x & 0x100 ? bits - 1 : bits)) - 1),
              min = x & 0x100 ? -max - 1 : 0;
    (void)b;
    (void)c;
    memcpy(&v, &a, 8);
    if (v != v)
        return UINT64_C(1) << (bits - 1);
    return (uint64_t)(int64_t)(v < min ? min : v > max ? max : v);
}

/* ---- approximations that see and give the high half only ---- */
uint64_t ws_lane_approx_f64(uint64_t a, uint64_t b, uint64_t c, uint32_t x)
{
    const uint64_t high = UINT64_C(0xffffffff00000000), expo = UINT64_C(0x7ff0000000000000);
    double d, r;
    (void)b;
    (void)c;
    a &= high;
    if (!(a & expo))
        a &= UINT64_C(1) << 63;
    memcpy(&d, &a, 8);
    r = x ? 1.0 / sqrt(d) : 1.0 / d;
    if (r != r)
        return UINT64_C(0x7fffffff00000000);
    memcpy(&a, &r, 8);
    if ((a & expo) && (a & expo) != expo)
        a += UINT64_C(1) << 31; /* to the nearest of what the high half can say */
    else if (!(a & expo))
        a &= UINT64_C(1) << 63;
    return a & high;
}
