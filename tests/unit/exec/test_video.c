// SPDX-License-Identifier: Apache-2.0
/* Video instructions against the PTX ISA's own description of them, step by step in 128-bit
 * integers: random modifiers, selectors and masks; random operands and edges. Each kernel holds 16
 * instructions of one kind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/exec/texture.h"

typedef __int128 wide;

struct form {
    char text[100]; /* with modifiers and operands */
    const char *op;
    unsigned lanes; /* 1: scalar */
    bool sd, sa, sb, sat, wrap, po, neg_ab, neg_c;
    int dsel, asel, bsel;              /* scalar: 0 all, 1..4 bytes, 5, 6 halves */
    unsigned apick[4], bpick[4], mask; /* SIMD */
    int second, cmp, shift;
};

static const char *const parts[] = {"", ".b0", ".b1", ".b2", ".b3", ".h0", ".h1"};
static const char *const seconds[] = {"", ".add", ".min", ".max"};
static const char *const cmps[] = {".eq", ".ne", ".lt", ".le", ".gt", ".ge"};

/* ---- the description ---- */
static wide extend(uint32_t v, int sel, bool is_signed)
{
    unsigned bits = sel == 0  ? 32
                    : sel < 5 ? 8
                              : 16,
             shift = sel == 0  ? 0
                     : sel < 5 ? (unsigned)(sel - 1) * 8
                               : (unsigned)(sel - 5) * 16;
    wide r = (v >> shift) & ((UINT64_C(1) << bits) - 1);
    return is_signed && (r >> (bits - 1)) ? r - ((wide)1 << bits) : r;
}
static wide clamp(wide v, wide min, wide max)
{
    return v < min ? min : v > max ? max : v;
}
static wide saturate(wide v, unsigned bits, bool is_signed)
{
    wide one = 1;
    return is_signed ? clamp(v, -(one << (bits - 1)), (one << (bits - 1)) - 1)
                     : clamp(v, 0, (one << bits) - 1);
}
static bool is(const struct form *f, const char *op)
{
    return strncmp(f->op, op, strlen(op)) == 0 &&
           (f->op[strlen(op)] == 0 || f->op[strlen(op)] == '2' || f->op[strlen(op)] == '4');
}
static wide first(const struct form *f, wide a, wide b)
{
    if (is(f, "vadd"))
        return a + b;
    if (is(f, "vsub"))
        return a - b;
    if (is(f, "vabsdiff"))
        return a > b ? a - b : b - a;
    if (is(f, "vmin"))
        return a < b ? a : b;
    if (is(f, "vmax"))
        return a > b ? a : b;
    if (is(f, "vavrg")) { /* half away from zero upwards only for sums that are not negative */
        wide s = a + b;
        return s >= 0 ? (s + 1) >> 1 : s >> 1;
    }
    if (is(f, "vset")) {
        bool r[] = {a == b, a != b, a<b, a <= b, a> b, a >= b};
        return r[f->cmp];
    }
    unsigned n = f->wrap ? (unsigned)b & 31 : (uint32_t)b > 32 ? 32 : (unsigned)b;
    return is(f, "vshl") ? a * ((wide)1 << n) : a >> n;
}
static uint32_t ref_mad(const struct form *f, wide a, wide b, uint32_t c)
{
    bool signed_final = f->sa || f->sb || f->neg_ab || f->neg_c;
    bool signed_product = f->sa || f->sb || f->neg_ab;
    wide v = (f->neg_ab ? -(a * b) : a * b), cc = signed_product ? (wide)(int32_t)c : (wide)c;
    v += f->neg_c ? -cc : cc;
    v += f->po;
    v >>= f->shift;
    if (f->sat)
        v = saturate(v, 32, signed_final);
    return (uint32_t)v;
}
static uint32_t ref_scalar(const struct form *f, uint32_t a, uint32_t b, uint32_t c)
{
    wide ta = extend(a, f->asel, f->sa), tb = extend(b, f->bsel, f->sb), v;
    if (is(f, "vmad"))
        return ref_mad(f, ta, tb, c);
    unsigned bits = f->dsel == 0 ? 32 : f->dsel < 5 ? 8 : 16;
    v = first(f, ta, tb);
    if (f->sat)
        v = saturate(v, bits, f->sd);
    uint32_t r = (uint32_t)v;
    bool less = f->sd ? (int32_t)r < (int32_t)c : r < c;
    if (f->second == 1)
        r += c;
    else if (f->second == 2)
        r = less ? r : c;
    else if (f->second == 3)
        r = less ? c : r;
    if (f->dsel == 0)
        return r;
    unsigned shift = f->dsel < 5 ? (unsigned)(f->dsel - 1) * 8 : (unsigned)(f->dsel - 5) * 16;
    uint32_t ones = (uint32_t)((UINT64_C(1) << bits) - 1);
    return (c & ~(ones << shift)) | (r & ones) << shift;
}
static uint32_t ref_simd(const struct form *f, uint32_t a, uint32_t b, uint32_t c)
{
    unsigned n = f->lanes, bits = 32 / n;
    int base = n == 2 ? 5 : 1;
    uint32_t sum = c, merged = 0;
    for (unsigned k = 0; k < n; k++) {
        unsigned p = f->apick[k], q = f->bpick[k];
        wide va = extend(p < n ? a : b, base + (int)(p % n), f->sa),
             vb = extend(q < n ? a : b, base + (int)(q % n), f->sb);
        wide v = first(f, va, vb);
        if (f->sat)
            v = saturate(v, bits, f->sd);
        if (f->mask >> k & 1)
            sum += (uint32_t)v;
        uint32_t ones = (uint32_t)((UINT64_C(1) << bits) - 1);
        merged |= (f->mask >> k & 1 ? (uint32_t)v & ones : c >> (bits * k) & ones) << (bits * k);
    }
    return f->second == 1 ? sum : merged;
}

/* ---- random forms ---- */
static const char *type_name(bool is_signed)
{
    return is_signed ? ".s32" : ".u32";
}

static struct form scalar_form(const char *op, unsigned d)
{
    struct form f = {
        .op = op, .lanes = 1, .sd = below(2), .sa = below(2), .sb = below(2), .sat = below(2)};
    bool shift = is(&f, "vshl") || is(&f, "vshr"), set = is(&f, "vset"), mad = is(&f, "vmad");
    f.asel = (int)below(7);
    f.bsel = (int)below(7);
    if (below(3) == 0)
        f.dsel = 1 + (int)below(6);
    else
        f.second = (int)below(4);
    if (shift) {
        f.sb = false;
        f.wrap = below(2);
    }
    if (set) {
        f.sat = f.sd = false;
        f.cmp = (int)below(6);
    }
    char types[40], tail[20] = "";
    snprintf(types, sizeof(types), "%s%s%s", set ? "" : type_name(f.sd), type_name(f.sa),
             type_name(f.sb));
    if (mad) {
        static const int shifts[] = {0, 7, 15};
        f.dsel = f.second = 0;
        f.shift = shifts[below(3)];
        f.po = below(3) == 0;
        if (!f.po) {
            f.neg_ab = below(3) == 0;
            f.neg_c = !f.neg_ab && below(2);
        }
        f.sd = f.sa || f.sb || f.neg_ab || f.neg_c;
        snprintf(types, sizeof(types), "%s%s%s%s", type_name(f.sd), type_name(f.sa),
                 type_name(f.sb), f.po ? ".po" : "");
        snprintf(tail, sizeof(tail), "%s", f.shift == 7 ? ".shr7" : f.shift ? ".shr15" : "");
        bool on_a = below(2);
        snprintf(f.text, sizeof(f.text), "vmad%s%s%s %%r%u, %s%%r0%s, %s%%r1%s, %s%%r2;", types,
                 f.sat ? ".sat" : "", tail, d, f.neg_ab && on_a ? "-" : "", parts[f.asel],
                 f.neg_ab && !on_a ? "-" : "", parts[f.bsel], f.neg_c ? "-" : "");
        return f;
    }
    snprintf(f.text, sizeof(f.text), "%s%s%s%s%s%s %%r%u%s, %%r0%s, %%r1%s%s;", op, types,
             set ? cmps[f.cmp] : "", f.sat ? ".sat" : "",
             shift ? (f.wrap ? ".wrap" : ".clamp") : "", seconds[f.second], d, parts[f.dsel],
             parts[f.asel], parts[f.bsel], f.dsel || f.second ? ", %r2" : "");
    return f;
}

static void put_digit(char *text, unsigned digit)
{
    strcat(text, (const char[]){(char)('0' + digit), 0});
}

static struct form simd_form(const char *op, unsigned d)
{
    struct form f = {.op = op, .sd = below(2), .sa = below(2), .sb = below(2), .sat = below(2)};
    unsigned n = f.lanes = (unsigned)(op[strlen(op) - 1] - '0');
    bool set = is(&f, "vset");
    char asel[8] = "", bsel[8] = "", mask[8] = "", types[40];
    f.second = (int)below(2);
    f.sat = f.sat && !f.second && !set;
    if (set) {
        f.sd = false;
        f.cmp = (int)below(6);
    }
    for (unsigned k = 0; k < n; k++) {
        f.apick[k] = k;
        f.bpick[k] = n + k;
    }
    f.mask = (1u << n) - 1;
    if (below(2)) {
        strcpy(asel, n == 2 ? ".h" : ".b");
        for (unsigned k = n; k-- > 0;) {
            f.apick[k] = below(2 * n);
            put_digit(asel, f.apick[k]);
        }
    }
    if (below(2)) {
        strcpy(bsel, n == 2 ? ".h" : ".b");
        for (unsigned k = n; k-- > 0;) {
            f.bpick[k] = below(2 * n);
            put_digit(bsel, f.bpick[k]);
        }
    }
    if (below(2)) {
        f.mask = 1 + below((1u << n) - 1);
        strcpy(mask, n == 2 ? ".h" : ".b");
        for (unsigned k = n; k-- > 0;)
            if (f.mask >> k & 1)
                put_digit(mask, k);
    }
    snprintf(types, sizeof(types), "%s%s%s", set ? "" : type_name(f.sd), type_name(f.sa),
             type_name(f.sb));
    snprintf(f.text, sizeof(f.text), "%s%s%s%s%s %%r%u%s, %%r0%s, %%r1%s, %%r2;", op, types,
             set ? cmps[f.cmp] : "", f.sat ? ".sat" : "", seconds[f.second], d, mask, asel, bsel);
    return f;
}

static void check_ops(const char *const *ops, size_t n_ops, bool simd)
{
    struct tx t;
    tx_init(&t);
    for (size_t o = 0; o < n_ops; o++)
        for (unsigned round = 0; round < 60; round++) {
            struct form f[4];
            char insns[600] = "";
            for (unsigned k = 0; k < 4; k++) {
                f[k] = simd ? simd_form(ops[o], 8 + k) : scalar_form(ops[o], 8 + k);
                strcat(insns, f[k].text);
                strcat(insns, "\n");
            }
            static const uint32_t edge[] = {
                0, 1, 0x7fffffff, 0x80000000, 0xffffffff, 0x7f807f80, 0x80ff00ff, 31, 32, 33};
            for (unsigned k = 0; k < THREADS * 8; k++)
                t.x[k] = below(3) ? rnd() << 8 ^ rnd() : edge[below(WS_ARRAY_SIZE(edge))];
            load(&t, insns);
            must_launch(&t);
            for (unsigned k = 0; k < THREADS * 4; k++) {
                const uint32_t *x = &t.x[k / 4 * 8];
                uint32_t want = (simd ? ref_simd : ref_scalar)(&f[k % 4], x[0], x[1], x[2]);
                if (t.got[k] != want)
                    fail_msg("%s a %08x b %08x c %08x: got %08x, want %08x", f[k % 4].text, x[0],
                             x[1], x[2], t.got[k], want);
            }
        }
    fix_deinit(&t.f);
}

static void test_scalar(void **state)
{
    (void)state;
    static const char *const ops[] = {"vadd", "vsub", "vabsdiff", "vmin", "vmax",
                                      "vshl", "vshr", "vmad",     "vset"};
    check_ops(ops, WS_ARRAY_SIZE(ops), false);
}

static void test_simd(void **state)
{
    (void)state;
    static const char *const ops[] = {"vadd2",     "vsub2", "vavrg2", "vabsdiff2", "vmin2",
                                      "vmax2",     "vset2", "vadd4",  "vsub4",     "vavrg4",
                                      "vabsdiff4", "vmin4", "vmax4",  "vset4"};
    check_ops(ops, WS_ARRAY_SIZE(ops), true);
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const insns[] = {
        "vadd.u32.u32.u32 %r8, %r0.b4, %r1;",
        "vadd.u32.u32.u32 %r8, %r0.b10, %r1;",
        "vadd.u32.u32.u32.add %r8, %r0, %r1;",
        "vadd.u32.u32.u32.add %r8.b1, %r0, %r1, %r2;",
        "vadd.u32.u32.u32 %r8, %r0, %r1, %r2;",
        "vshl.u32.u32.s32.clamp %r8, %r0, %r1;",
        "vshl.u32.u32.u32 %r8, %r0, %r1;",
        "vmad.s32.s32.s32.po %r8, %r0, %r1, -%r2;",
        "vmad.s32.s32.s32 %r8, -%r0, %r1, -%r2;",
        "vmad.s32.s32.s32.shr8 %r8, %r0, %r1, %r2;",
        "vset.u32.u32.ltu %r8, %r0, %r1;",
        "vadd2.u32.u32.u32 %r8, %r0.h14, %r1, %r2;",
        "vadd2.u32.u32.u32 %r8.h01, %r0, %r1, %r2;",
        "vadd4.u32.u32.u32 %r8, %r0.b321, %r1, %r2;",
        "vadd4.u32.u32.u32 %r8.b4, %r0, %r1, %r2;",
        "vadd4.u32.u32.u32.sat.add %r8, %r0, %r1, %r2;",
    };
    struct tx t;
    tx_init(&t);
    for (size_t k = 0; k < WS_ARRAY_SIZE(insns); k++) {
        if (fix_load(&t.f, kernel_text("", insns[k])) == 0)
            fail_msg("loaded: %s", insns[k]);
        char *text = ws_diags_text(&t.f.diags);
        if (!strstr(text, "35:"))
            fail_msg("%s: %s", insns[k], text);
        free(text);
    }
    fix_deinit(&t.f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scalar),
        cmocka_unit_test(test_simd),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
