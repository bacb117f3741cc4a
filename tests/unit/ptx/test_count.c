// SPDX-License-Identifier: Apache-2.0
/* ptx: counts of what kernels execute, against counting by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "models/inputs.h"
#include "models/kernel_hash.h"
#include "ptx/analysis/count.h"
#include "tests/lib/cpu_time.h"

struct fixture {
    struct ws_ptx_module *m;
    struct ws_diags diags;
    char *text;
};

static int setup(void **state)
{
    *state = calloc(1, sizeof(struct fixture));
    return *state ? 0 : -1;
}

static int teardown(void **state)
{
    struct fixture *x = *state;
    ws_ptx_module_free(x->m);
    ws_diags_deinit(&x->diags);
    free(x->text);
    free(x);
    return 0;
}

#define HEAD   ".version 8.0\n.target sm_75\n.address_size 64\n"
#define REGS   ".reg .b32 %r<40>; .reg .b64 %d<40>; .reg .f32 %f<10>; .reg .pred %p<10>;\n"
#define KERNEL HEAD ".entry k(.param .u64 a, .param .u32 n) {\n" REGS
/* %r4: the thread's number in the grid; %d1: its word */
#define INDEX                                                                                      \
    "ld.param.u64 %d0, [a]; ld.param.u32 %r0, [n];\n"                                              \
    "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;\n"                          \
    "mad.lo.s32 %r4, %r1, %r2, %r3; cvta.to.global.u64 %d0, %d0;\n"
enum { N_INDEX = 7 };

static struct ws_ptx_counts count(struct fixture *x, const char *text,
                                  const struct ws_ptx_count_options *o)
{
    struct ws_ptx_counts c;
    x->m = ws_ptx_module_free(x->m);
    int r = ws_ptx_parse(&x->m, text, strlen(text), "t", &x->diags);
    if (r)
        print_error("%s", ws_diags_text(&x->diags));
    assert_int_equal(r, 0);
    assert_int_equal(ws_ptx_count(x->m, ws_ptx_find_func(x->m, "k"), o, &c), 0);
    assert_true(fabs(c.total - (c.comp + c.coal + c.uncoal + c.synch)) <= 1e-9 * c.total);
    return c;
}

static void access_patterns(void **state)
{
    static const struct {
        const char *description, *text;
        uint32_t ntid[3];
        double coal, uncoal, per_mw;
    } rows[] = {
        {"neighbouring words",
         "mul.wide.s32 %d1, %r4, 4; add.s64 %d2, %d0, %d1; ld.global.f32 %f0, [%d2+8];",
         {0},
         1,
         0,
         1},
        {"by shift and conversion",
         "cvt.s64.s32 %d1, %r4; shl.b64 %d3, %d1, 2; add.s64 %d2, %d0, %d3; st.global.f32 [%d2], "
         "%f0;",
         {0},
         1,
         0,
         1},
        {"one word for all", "ld.global.f32 %f0, [%d0];", {0}, 1, 0, 1},
        {"backwards",
         "sub.s32 %r5, 1000, %r4; mul.wide.s32 %d1, %r5, 4; add.s64 %d2, %d0, %d1; ld.global.f32 "
         "%f0, [%d2];",
         {0},
         0,
         1,
         5}, /* 1000 words on, 32 words down: a sector more than the least */
        {"every other word",
         "mul.wide.s32 %d1, %r4, 8; add.s64 %d2, %d0, %d1; ld.global.f32 %f0, [%d2];",
         {0},
         0,
         1,
         8},
        {"records of 32 bytes",
         "mul.wide.s32 %d1, %r4, 32; add.s64 %d2, %d0, %d1; ld.global.f32 %f0, [%d2];",
         {0},
         0,
         1,
         32},
        {"rows of unknown length",
         "mul.lo.s32 %r5, %r4, %r0; mul.wide.s32 %d1, %r5, 4; add.s64 %d2, %d0, %d1; ld.global.f32 "
         "%f0, [%d2];",
         {0},
         0,
         1,
         32},
        {"four words at once",
         "mul.wide.s32 %d1, %r4, 16; add.s64 %d2, %d0, %d1; ld.global.v4.f32 {%f0, %f1, %f2, %f3}, "
         "[%d2];",
         {0},
         1,
         0,
         1},
        {"bytes",
         "cvt.s64.s32 %d1, %r4; add.s64 %d2, %d0, %d1; ld.global.u8 %r9, [%d2];",
         {0},
         1,
         0,
         1},
        {"through a table",
         "mul.wide.s32 %d1, %r4, 4; add.s64 %d2, %d0, %d1; ld.global.u32 %r9, [%d2];\n"
         "mul.wide.u32 %d3, %r9, 4; add.s64 %d4, %d0, %d3; ld.global.u32 %r10, [%d4];",
         {0},
         1,
         1,
         32},
        {"16 x 16: two rows, unknown distance",
         "mov.u32 %r5, %tid.y; mad.lo.s32 %r6, %r5, %r0, %r3; mul.wide.s32 %d1, %r6, 4;\n"
         "add.s64 %d2, %d0, %d1; ld.global.f32 %f0, [%d2];",
         {16, 16, 1},
         1,
         0,
         1},
        {"4 x 64: eight short rows",
         "mov.u32 %r5, %tid.y; mad.lo.s32 %r6, %r5, %r0, %r3; mul.wide.s32 %d1, %r6, 4;\n"
         "add.s64 %d2, %d0, %d1; ld.global.f32 %f0, [%d2];",
         {4, 64, 1},
         0,
         1,
         8},
        {"column by lane",
         "mov.u32 %r5, %laneid; mul.wide.u32 %d1, %r5, 128; add.s64 %d2, %d0, %d1; ld.global.f32 "
         "%f0, [%d2];",
         {0},
         0,
         1,
         32},
        {"hashed",
         "and.b32 %r5, %r4, 1023; mul.wide.u32 %d1, %r5, 4; add.s64 %d2, %d0, %d1; "
         "atom.global.add.u32 %r9, [%d2], 1;",
         {0},
         0,
         1,
         32},
        {"shared memory is not counted",
         "shl.b32 %r5, %r3, 7; ld.shared.f32 %f0, [%r5];",
         {0},
         0,
         0,
         1},
        {"8 threads of 32",
         "mul.wide.s32 %d1, %r4, 128; add.s64 %d2, %d0, %d1; ld.global.f32 %f0, [%d2];",
         {8, 1, 1},
         0,
         1,
         8},
    };
    for (size_t i = 0; i < WS_ARRAY_SIZE(rows); i++) {
        char text[2048];
        snprintf(text, sizeof(text), "%s%s\nret; }", KERNEL INDEX, rows[i].text);
        struct ws_ptx_count_options o = {0};
        memcpy(o.ntid, rows[i].ntid, sizeof(o.ntid));
        struct ws_ptx_counts c = count(*state, text, &o);
        if (c.coal != rows[i].coal || c.uncoal != rows[i].uncoal ||
            c.uncoal_per_mw != rows[i].per_mw)
            fail_msg("%s: %g coalesced, %g not, %g sectors; should be %g, %g, %g",
                     rows[i].description, c.coal, c.uncoal, c.uncoal_per_mw, rows[i].coal,
                     rows[i].uncoal, rows[i].per_mw);
    }
}

/* A pointer that walks along: its constant part changes, its coefficients don't. */
static void walking_pointer(void **state)
{
    struct ws_ptx_counts c = count(
        *state,
        KERNEL INDEX "mul.wide.s32 %d1, %r4, 4; add.s64 %d2, %d0, %d1; mov.u32 %r9, 0;\n"
                     "$L: ld.global.f32 %f0, [%d2]; add.s64 %d2, %d2, 4096; add.s32 %r9, %r9, 1;\n"
                     "setp.lt.s32 %p0, %r9, 10; @%p0 bra $L; ret; }",
        NULL);
    assert_true(c.coal == 10 && c.uncoal == 0);
    assert_int_equal(c.n_loops_guessed, 0);
    assert_true(c.total == N_INDEX + 3 + 10 * 5 + 1);
}

static void loops(void **state)
{
    static const struct {
        const char *description, *text;
        double body;
        unsigned guessed;
    } rows[] = {
        {"up to, at the bottom",
         "mov.u32 %r9, 0; $L: bar.sync 0; add.s32 %r9, %r9, 1; setp.lt.s32 %p0, %r9, 10; @%p0 bra "
         "$L;",
         10, 0},
        {"including",
         "mov.u32 %r9, 0; $L: bar.sync 0; add.s32 %r9, %r9, 1; setp.le.s32 %p0, %r9, 10; @%p0 bra "
         "$L;",
         11, 0},
        {"until equal",
         "mov.u32 %r9, 0; $L: bar.sync 0; add.s32 %r9, %r9, 4; setp.ne.s32 %p0, %r9, 64; @%p0 bra "
         "$L;",
         16, 0},
        {"leaves when equal",
         "mov.u32 %r9, 0; $L: bar.sync 0; add.s32 %r9, %r9, 4; setp.eq.s32 %p0, %r9, 64; @%p0 bra "
         "$E; bra $L; $E:",
         16, 0},
        {"leaves when above",
         "mov.u32 %r9, 0; $L: bar.sync 0; add.s32 %r9, %r9, 1; setp.gt.s32 %p0, %r9, 10; @%p0 bra "
         "$E; bra $L; $E:",
         11, 0},
        {"downwards",
         "mov.u32 %r9, 32; $L: bar.sync 0; add.s32 %r9, %r9, -1; setp.gt.s32 %p0, %r9, 0; @%p0 bra "
         "$L;",
         32, 0},
        {"negated guard",
         "mov.u32 %r9, 0; $L: bar.sync 0; add.s32 %r9, %r9, 1; setp.ge.s32 %p0, %r9, 10; @!%p0 bra "
         "$L;",
         10, 0},
        {"bound in a register",
         "mov.u32 %r9, 0; mov.u32 %r10, 7; $L: bar.sync 0; add.s32 %r9, %r9, 1; setp.lt.s32 %p0, "
         "%r9, %r10; @%p0 bra $L;",
         7, 0},
        {"counter moved back",
         "mov.u32 %r9, 0; $L: bar.sync 0; add.s32 %r11, %r9, 1; mov.u32 %r9, %r11; setp.lt.s32 "
         "%p0, %r11, 10; @%p0 bra $L;",
         10, 0},
        {"bound unknown",
         "mov.u32 %r9, 0; $L: bar.sync 0; add.s32 %r9, %r9, 1; setp.lt.s32 %p0, %r9, %r0; @%p0 bra "
         "$L;",
         16, 1},
        {"endless", "$L: bar.sync 0; bra $L;", 16, 1},
        {"never the bound",
         "mov.u32 %r9, 0; $L: bar.sync 0; add.s32 %r9, %r9, 3; setp.ne.s32 %p0, %r9, 10; @%p0 bra "
         "$L;",
         16, 1},
        {"nested",
         "mov.u32 %r9, 0; $L: mov.u32 %r10, 0; $M: bar.sync 0; add.s32 %r10, %r10, 1; setp.lt.s32 "
         "%p1, %r10, 3; @%p1 bra $M;\n"
         "add.s32 %r9, %r9, 1; setp.lt.s32 %p0, %r9, 5; @%p0 bra $L;",
         15, 0},
        {"no loop", "setp.lt.s32 %p0, %r4, %r0; @%p0 bra $E; bar.sync 0; $E:", 1, 0},
    };
    for (size_t i = 0; i < WS_ARRAY_SIZE(rows); i++) {
        char text[2048];
        snprintf(text, sizeof(text), "%s%s\nret; }", KERNEL INDEX, rows[i].text);
        struct ws_ptx_counts c = count(*state, text, NULL);
        if (c.synch != rows[i].body || c.n_loops_guessed != rows[i].guessed)
            fail_msg("%s: %g times, %u guessed; should be %g, %u", rows[i].description, c.synch,
                     c.n_loops_guessed, rows[i].body, rows[i].guessed);
    }
    struct ws_ptx_count_options o = {.loop_trips = 100};
    assert_true(count(*state, KERNEL "$L: bar.sync 0; bra $L; }", &o).synch == 100);
}

static void calls(void **state)
{
    struct ws_ptx_counts c =
        count(*state,
              HEAD ".func g() { bar.sync 0; ret; }\n.func f() { call g; call g; ret; }\n"
                   ".entry k() { call f; bar.sync 0; ret; }",
              NULL);
    assert_true(c.synch == 3 && !c.opaque);
    c = count(*state,
              HEAD
              ".func f();\n.func f() { call f; bar.sync 0; ret; }\n.entry k() { call f; ret; }",
              NULL);
    assert_true(c.opaque && c.synch >= 1);
    c = count(*state, HEAD ".extern .func other();\n.entry k() { call other; ret; }", NULL);
    assert_true(c.opaque);
    struct fixture *x = *state;
    struct ws_ptx_counts none;
    assert_int_equal(ws_ptx_count(x->m, ws_ptx_find_func(x->m, "other"), NULL, &none), -EINVAL);
}

/* A saxpy as nvcc writes it: 12 instructions before the branch's end, two loads and a store. */
static void to_models(void **state)
{
    struct ws_ptx_counts c = count(
        *state,
        KERNEL INDEX "setp.ge.s32 %p0, %r4, %r0; @%p0 bra $E;\n"
                     "mul.wide.s32 %d1, %r4, 4; add.s64 %d2, %d0, %d1; ld.global.f32 %f0, [%d2];\n"
                     "ld.global.f32 %f1, [%d2+4096]; fma.rn.f32 %f2, %f0, %f1, %f1; st.global.f32 "
                     "[%d2], %f2; $E: ret; }",
        NULL);
    assert_true(c.coal == 3 && c.comp == N_INDEX + 2 + 2 + 1 + 1);
    assert_true(c.mix[WS_MIX_FP32] == 1 && c.mix[WS_MIX_LDST] == 5);
    struct ws_mwp_kernel k;
    assert_int_equal(ws_mwp_kernel_from_counts(&k, &c, 256, 100, 4), 0);
    assert_true(k.coal_insts == 3 && k.comp_insts == 13 && k.n_blocks == 100);
    assert_int_equal(ws_mwp_kernel_from_counts(&k, &c, 0, 100, 4), -EINVAL);
    /* the same from a run: 800 warps, 16 instructions each, 3 accesses of 4 sectors */
    struct ws_run_counts e = {800 * 16, 800 * 3, 800 * 12, 0};
    struct ws_mwp_kernel q;
    assert_int_equal(ws_mwp_kernel_from_run(&q, &e, 256, 100, 4), 0);
    assert_true(q.coal_insts == 3 && q.uncoal_insts == 0 && q.comp_insts == 13);
    e.sectors = 800 * 3 * 18; /* half way to 32 */
    assert_int_equal(ws_mwp_kernel_from_run(&q, &e, 256, 100, 4), 0);
    assert_true(q.coal_insts == 1.5 && q.uncoal_insts == 1.5 && q.uncoal_per_mw == 32);
    e.global_accesses = e.warp_insns + 1;
    assert_int_equal(ws_mwp_kernel_from_run(&q, &e, 256, 100, 4), -EINVAL);
}

static void hash_of(struct fixture *x, const char *text, char *ret)
{
    x->m = ws_ptx_module_free(x->m);
    int r = ws_ptx_parse(&x->m, text, strlen(text), "t", &x->diags);
    if (r)
        print_error("%s", ws_diags_text(&x->diags));
    assert_int_equal(r, 0);
    assert_int_equal(ws_kernel_hash(x->m, ws_ptx_find_func(x->m, "k"), ret), 0);
}

/* The same code, whatever else is in the module; other code, another hash. */
static void hashes(void **state)
{
#define BODY(s) ".entry k(.param .u64 a) {\n" REGS "ld.param.u64 %d0, [a];\n" s "ret; }\n"
    static const struct {
        const char *description, *text;
        bool same;
    } rows[] = {
        {"another kernel beside it",
         HEAD ".entry j() { bar.sync 0; ret; }\n" BODY("mov.u32 %r1, 5;"), true},
        {"layout and comments", HEAD "\n\n// here\n" BODY("mov.u32   %r1,5 ; // there\n"), true},
        {"another number", HEAD BODY("mov.u32 %r1, 6;"), false},
        {"another type", HEAD BODY("mov.s32 %r1, 5;"), false},
        {"one more instruction", HEAD BODY("mov.u32 %r1, 5; bar.sync 0;"), false},
        {"a label elsewhere", HEAD BODY("$L: mov.u32 %r1, 5;"), false},
        {"another bound",
         HEAD ".entry k(.param .u64 a) .maxntid 128 {\n" REGS
              "ld.param.u64 %d0, [a];\nmov.u32 %r1, 5;ret; }\n",
         false},
        {"another parameter",
         HEAD ".entry k(.param .u64 a, .param .u32 b) {\n" REGS
              "ld.param.u64 %d0, [a];\nmov.u32 %r1, 5;ret; }\n",
         false},
    };
    char first[WS_PROFILE_HASH_BYTES], h[WS_PROFILE_HASH_BYTES], g[WS_PROFILE_HASH_BYTES];
    hash_of(*state, HEAD BODY("mov.u32 %r1, 5;"), first);
    assert_int_equal(strlen(first), 64);
    for (size_t i = 0; i < WS_ARRAY_SIZE(rows); i++) {
        hash_of(*state, rows[i].text, h);
        if (!strcmp(h, first) != rows[i].same)
            fail_msg("%s: the hash is %s", rows[i].description,
                     rows[i].same ? "another" : "the same");
    }
    /* what it calls counts, in whatever order it stands; what it doesn't call doesn't */
    static const char call[] = ".entry k() { call f; ret; }\n";
    char text[512];
    snprintf(text, sizeof(text), HEAD ".func g() { trap; }\n.func f() { bar.sync 0; ret; }\n%s",
             call);
    hash_of(*state, text, h);
    snprintf(text, sizeof(text), HEAD ".func f() { bar.sync 0; ret; }\n%s", call);
    hash_of(*state, text, g);
    assert_string_equal(h, g);
    snprintf(text, sizeof(text), HEAD ".func f() { bar.sync 1; ret; }\n%s", call);
    hash_of(*state, text, g);
    assert_string_not_equal(h, g);
    static const char f[] = ".func f() { bar.sync 0; ret; }\n", g2[] = ".func g() { trap; }\n",
                      both[] = ".entry k() { call f; call g; ret; }\n";
    snprintf(text, sizeof(text), "%s%s%s%s", HEAD, f, g2, both);
    hash_of(*state, text, h);
    snprintf(text, sizeof(text), "%s%s%s%s", HEAD, g2, f, both);
    hash_of(*state, text, g);
    assert_string_equal(h, g);
    /* a table's size counts, its contents don't */
    hash_of(*state,
            HEAD ".global .align 4 .u32 t[4] = {1, 2, 3, 4};\n" BODY("ld.global.u32 %r1, [t];"), h);
    hash_of(*state,
            HEAD ".global .align 4 .u32 t[4] = {9, 2, 3, 4};\n" BODY("ld.global.u32 %r1, [t];"), g);
    assert_string_equal(h, g);
    hash_of(*state,
            HEAD ".global .align 4 .u32 t[5] = {1, 2, 3, 4};\n" BODY("ld.global.u32 %r1, [t];"), g);
    assert_string_not_equal(h, g);
    struct fixture *x = *state;
    struct ws_profile_key key;
    assert_int_equal(ws_profile_key_set(&key, h, "t400", ""), 0); /* fits the store */
    x->m = ws_ptx_module_free(x->m);
}

/* Text made to keep a counter busy: thousands of nested loops, a chain of moves against the order
 * of the text. */
static void hostile_text(void **state)
{
    struct fixture *x = *state;
    enum { N = 4000 };
    size_t len;
    FILE *f = open_memstream(&x->text, &len);
    fprintf(f, HEAD ".entry k() { .reg .pred %%p; .reg .b32 %%r<%d>;\n", N + 1);
    for (int i = 0; i < N; i++)
        fprintf(f, "$L%d: mov.u32 %%r%d, %%r%d;\n", i, i, i + 1);
    fprintf(f, "mov.u32 %%r%d, %%tid.x;\n", N);
    for (int i = N; i-- > 0;)
        fprintf(f, "@%%p bra $L%d;\n", i);
    fprintf(f, "ret; }");
    fclose(f);
    uint64_t before = cpu_ns();
    struct ws_ptx_counts c = count(x, x->text, NULL);
    assert_true(isfinite(c.total) && c.n_loops_guessed > 0);
    assert_true(cpu_ns() - before < 10 * WS_NS_PER_S);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(access_patterns), T(walking_pointer), T(loops),        T(calls),
        T(to_models),       T(hashes),          T(hostile_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
