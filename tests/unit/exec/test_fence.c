// SPDX-License-Identifier: Apache-2.0
/* A fenced kernel reads and writes what is its client's, to the byte, and nothing else: the
 * neighbour's memory is mapped, so that only the fence stands before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/macros.h"
#include "tests/unit/exec/fixture.h"

enum { BYTES = 8192 };
struct world {
    struct fix f;
    uint64_t mine, other, table; /* addresses; other's memory is all 0x5a */
    struct ws_ptx_ranges *ranges;
    uint64_t *fault;
};

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    fix_init(&w->f);
    w->f.fence = false;
    w->mine = fix_alloc(&w->f, BYTES);
    w->other = fix_alloc(&w->f, BYTES);
    w->table = fix_alloc(&w->f, 4096);
    w->ranges = fix_host(&w->f, w->table + 64);
    w->fault = fix_host(&w->f, w->table);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    fix_deinit(&w->f);
    free(w);
    return 0;
}

static const char functions_text[] =
    ".func put(.reg .b64 a, .reg .b32 v) { st.global.u32 [a], v; ret; }\n"
    ".func deep(.reg .b64 a, .reg .b32 n);\n"
    ".func deep(.reg .b64 a, .reg .b32 n) { .reg .pred %p; .reg .b64 %b; .reg .b32 %m;\n"
    "call put, (a, n); setp.eq.u32 %p, n, 0; @%p ret; add.u64 %b, a, 4; sub.u32 %m, n, 1; call "
    "deep, (%b, %m); ret; }\n"
    ".func (.param .b32 r) get(.param .b64 a) { .reg .b64 %a; .reg .b32 %v; .local .b32 there[2];\n"
    "ld.param.u64 %a, [a]; ld.global.u32 %v, [%a]; st.local.u32 [there+4], %v; ld.local.u32 %v, "
    "[there+4]; st.param.b32 [r], %v; ret; }\n";

/* Runs @body fenced: %rd1 is @address, %r1 the thread. Only [mine, mine + @bytes) is the client's.
 * Return: the fault noted, or 0. */
static uint64_t run_with(struct world *w, const char *more, const char *body, uint64_t address,
                         uint64_t bytes)
{
    char text[4000];
    snprintf(text, sizeof(text),
             ".version 8.0\n.target sm_80\n.address_size 64\n%s%s.visible .global .b32 "
             "g[4];\n.visible .entry k(.param .u64 a)\n{\n"
             ".reg .pred %%p<4>; .reg .b32 %%r<18>; .reg .f32 %%f<9>; .reg .b64 %%rd<8>; .shared "
             ".align 16 .b32 "
             "sh[64]; .local .b32 lo[4];\n"
             "ld.param.u64 %%rd1, [a]; mov.u32 %%r1, %%tid.x;\n%s\nret;\n}\n",
             more, functions_text, body);
    struct ws_ptx_module *m = NULL;
    struct ws_diags d = WS_DIAGS_NULL;
    if (ws_ptx_parse(&m, text, strlen(text), "k.ptx", &d))
        fail_msg("%s", ws_diags_text(&d));
    char why[160];
    uint32_t added, k = m->n_funcs - 1;
    if (ws_ptx_fence_refused(m, k, why, sizeof(why)))
        fail_msg("%s: %s", body, why);
    assert_int_equal(ws_ptx_fence(m, k, &added), 0);
    assert_int_equal(ws_ptx_validate(m, "fenced.ptx", NULL), 0);
    char *fenced = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&fenced, &n);
    assert_int_equal(ws_ptx_print(m, f), 0);
    fclose(f);
    ws_ptx_module_free(m);
    fix_must_load(&w->f, fenced);
    free(fenced);
    memset(fix_host(&w->f, w->other), 0x5a, BYTES);
    memset(w->fault, 0, 16);
    w->ranges->n = 2;
    w->ranges->range[0].low = w->table + 2048; /* some other, small range of the client */
    w->ranges->range[0].bytes = 16;
    w->ranges->range[1].low = w->mine;
    w->ranges->range[1].bytes = bytes;
    struct {
        uint64_t a;
        struct ws_ptx_fence fence;
    } p = {address,
           {.low = w->mine,
            .limit = bytes > WS_FENCE_SLACK ? bytes - WS_FENCE_SLACK : 0,
            .ranges = w->table + 64,
            .fault = w->table}};
    fix_run(&w->f, &(struct launch){.kernel = "k$fence", .grid = {1}, .block = {32}, .params = &p});
    const uint8_t *other = fix_host(&w->f, w->other);
    for (int i = 0; i < BYTES; i++)
        if (other[i] != 0x5a)
            fail_msg("%s: wrote the other's byte %d", body, i);
    return w->fault[0] ? w->fault[1] : 0;
}

static uint64_t run(struct world *w, const char *body, uint64_t address, uint64_t bytes)
{
    return run_with(w, "", body, address, bytes);
}

static void to_the_byte(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *body;
        int bytes; /* accessed at %rd1 */
        int step;  /* alignment */
    } rows[] = {
        {"st.global.u32 [%rd1], %r1;", 4, 4},
        {"st.u8 [%rd1], %r1;", 1, 1},
        {"st.global.v4.u32 [%rd1], {%r1, %r1, %r1, %r1};", 16, 16},
        {"ld.global.nc.u64 %rd2, [%rd1];", 8, 8},
        {"atom.global.add.u32 %r2, [%rd1], 1;", 4, 4},
        {"red.add.u64 [%rd1], 1;", 8, 8},
        {"ld.volatile.global.v2.u32 {%r2, %r3}, [%rd1];", 8, 8},
        {"mov.u32 %r4, sh; cp.async.ca.shared.global [%r4], [%rd1], 16; cp.async.wait_all;", 16,
         16},
        /* a group: its lowest and its highest byte count */
        {"ld.global.u32 %r2, [%rd1]; ld.global.u32 %r3, [%rd1+60]; st.global.u32 [%rd1+28], %r2;",
         64, 4},
        {"add.s64 %rd2, %rd1, 16; ld.global.u32 %r2, [%rd2+-16]; ld.global.u32 %r3, [%rd1+12];", 16,
         4},
        {"ld.global.u32 %r2, [%rd1+60]; ld.global.u32 %r3, [%rd1+32]; ld.global.u32 %r4, [%rd1];",
         64, 4},
        /* a register written between: two groups */
        {"ld.global.u32 %r2, [%rd1]; add.s64 %rd1, %rd1, 4; ld.global.u32 %r3, [%rd1];", 8, 4},
    };
    for (size_t k = 0; k < WS_ARRAY_SIZE(rows); k++)
        for (uint64_t bytes = 64; bytes <= BYTES; bytes *= 128) {
            uint64_t n = (uint64_t)rows[k].bytes, end = w->mine + bytes;
            assert_int_equal(run(w, rows[k].body, w->mine, bytes), 0);
            assert_int_equal(run(w, rows[k].body, end - n, bytes), 0);
            uint64_t step = (uint64_t)rows[k].step;
            assert_in_range(run(w, rows[k].body, end - n + step, bytes), end - n + step, end + n);
            assert_in_range(run(w, rows[k].body, w->mine - step, bytes), w->mine - step,
                            w->mine - 1);
            assert_in_range(run(w, rows[k].body, w->other, bytes), w->other, w->other + n);
            if (n > 1) /* begins where the range does, which is shorter */
                assert_int_not_equal(run(w, rows[k].body, w->mine, n - 1), 0);
            assert_int_not_equal(run(w, rows[k].body, (uint64_t)-16, bytes), 0);
        }
}

static void what_is_not_done_is_not_asked(void **state)
{
    struct world *w = *state;
    assert_int_equal(
        run(w, "setp.lt.u32 %p1, %r1, 99; @!%p1 st.global.u32 [%rd1], %r1;", w->other, BYTES), 0);
    assert_int_equal(run(w, "setp.lt.u32 %p1, %r1, 99; @%p1 bra E; st.global.u32 [%rd1], %r1; E:",
                         w->other, BYTES),
                     0);
    /* one thread of the warp */
    assert_int_equal(
        run(w, "setp.eq.u32 %p1, %r1, 7; @%p1 st.global.u32 [%rd1], %r1;", w->other, BYTES),
        w->other);
    assert_int_equal(
        run(w, "setp.ne.u32 %p1, %r1, 7; @!%p1 st.global.u32 [%rd1], %r1;", w->other, BYTES),
        w->other);
}

static void windows_and_variables_pass(void **state)
{
    struct world *w = *state;
    assert_int_equal(
        run(w,
            "mov.u32 %r2, sh; cvt.u64.u32 %rd2, %r2; cvta.shared.u64 %rd3, %rd2; st.u32 [%rd3+8], "
            "%r1; mov.u64 "
            "%rd4, lo; cvta.local.u64 %rd5, %rd4; st.u32 [%rd5], %r1; st.shared.u32 [sh], %r1;",
            0, BYTES),
        0);
    assert_int_equal(run(w, "st.global.u32 [g+12], %r1; ld.global.u32 %r2, [g];", 0, BYTES), 0);
    assert_int_equal(
        run(w, "ld.global.u32 %r2, [%rd1]; st.global.u32 [%rd1+8], %r2;", w->table + 2048, BYTES),
        0);
    assert_int_not_equal(
        run(w, "ld.global.u32 %r2, [%rd1]; st.global.u32 [%rd1+16], %r2;", w->table + 2048, BYTES),
        0);
}

/* Matrices reach as far as the distance of their lines says. */
static void matrices(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *body;
        int bytes;
    } rows[] = {
        {"wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r10, %r11, %r12, %r13, %r14, %r15, "
         "%r16, %r17}, [%rd1], %r2;",
         (15 * 24 + 16) * 2},
        {"wmma.load.b.sync.aligned.row.m32n8k16.global.f16 {%r10, %r11, %r12, %r13, %r14, %r15, "
         "%r16, %r17}, [%rd1];",
         16 * 8 * 2},
        {"wmma.load.c.sync.aligned.col.m16n16k16.f32 {%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8}, "
         "[%rd1], 40;",
         (15 * 40 + 16) * 4},
        {"wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%rd1], {%f1, %f2, %f3, %f4, %f5, "
         "%f6, %f7, %f8}, %r2;",
         (15 * 24 + 16) * 4},
        {"wmma.load.a.sync.aligned.row.m8n8k32.global.s4 {%r10}, [%rd1], 64;", (7 * 64 + 32) / 2},
    };
    for (size_t k = 0; k < WS_ARRAY_SIZE(rows); k++) {
        char body[600];
        snprintf(body, sizeof(body), "mov.u32 %%r2, 24; %s", rows[k].body);
        for (uint64_t bytes = 4096; bytes <= BYTES; bytes += 4096) {
            uint64_t n = (uint64_t)rows[k].bytes, end = w->mine + bytes;
            assert_int_equal(run(w, body, w->mine, bytes), 0);
            assert_int_equal(run(w, body, end - n, bytes), 0);
            assert_int_equal(run(w, body, end - n + 32, bytes), end - n + 32);
            assert_int_equal(run(w, body, w->mine - 32, bytes), w->mine - 32);
            assert_int_equal(run(w, body, w->other, bytes), w->other);
        }
    }
}

/* Matrices in shared memory by their generic addresses. */
static void matrices_in_a_window(void **state)
{
    assert_int_equal(
        run(*state,
            ".shared .align 32 .b8 big[1024]; mov.u64 %rd2, big; cvta.shared.u64 %rd2, "
            "%rd2; mov.u32 %r2, 16; wmma.store.d.sync.aligned.row.m16n16k16.f16 "
            "[%rd2], {%r1, %r1, %r1, %r1}, %r2;",
            0, BYTES),
        0);
}

/* Functions are checked too, at any depth, and where they call themselves. */
static void functions(void **state)
{
    struct world *w = *state;
    assert_int_equal(run(w, "call put, (%rd1, %r1);", w->mine, BYTES), 0);
    assert_int_equal(run(w, "call put, (%rd1, %r1);", w->other, BYTES), w->other);
    assert_int_equal(run(w, "call deep, (%rd1, 5);", w->mine, BYTES), 0);
    assert_int_equal(run(w, "call deep, (%rd1, 5);", w->mine + BYTES - 24, BYTES), 0);
    assert_int_equal(run(w, "call deep, (%rd1, 5);", w->mine + BYTES - 20, BYTES), w->mine + BYTES);
    assert_int_equal(run(w, "call (%r2), get, (%rd1); st.global.u32 [%rd1], %r2;", w->mine, BYTES),
                     0);
    assert_int_equal(run(w, "call (%r2), get, (%rd1); st.global.u32 [%rd1], %r2;", w->other, BYTES),
                     w->other);
    assert_int_equal(
        run(w, "setp.eq.u32 %p1, %r1, 3; @%p1 call put, (%rd1, %r1);", w->other, BYTES), w->other);
    assert_int_equal(
        run(w, "setp.eq.u32 %p1, %r1, 99; @%p1 call put, (%rd1, %r1);", w->other, BYTES), 0);
}

/* A client can't stand in for the check by a function of its name. */
static void names_are_not_trusted(void **state)
{
    struct world *w = *state;
    assert_int_equal(
        run_with(w,
                 ".func ws$fence(.reg .b64 a, .reg .b64 n, .reg .b32 g, .reg .b64 r, .reg .b64 "
                 "f) { ret; }\n.func put$fence(.reg .b64 a, .reg .b32 v, .reg .b64 l, .reg .b64 "
                 "m, .reg .b64 r, .reg .b64 f) { ret; }\n",
                 "st.global.u32 [%rd1], %r1; call put, (%rd1, %r1);", w->other, BYTES),
        w->other);
}

/* Threads that went outside are gone; barriers of the others go on. */
static void the_rest_ends(void **state)
{
    struct world *w = *state;
    assert_int_equal(run(w,
                         "setp.lt.u32 %p1, %r1, 16; @%p1 bra A; st.global.u32 [%rd1], %r1; A: "
                         "bar.sync 0; st.shared.u32 "
                         "[sh], %r1; bar.sync 0;",
                         w->other, BYTES),
                     w->other);
}

/* A fenced kernel in a loop of blocks: whichever thread goes outside, and wherever the others wait
 * for each other, all end, and what comes next can still be done. */
static void faults_in_the_loop(void **state)
{
    struct world *w = *state;
    static const char text[] =
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 good, .param "
        ".u64 bad, .param .u32 at, .param .u32 who)\n{\n"
        ".reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<8>;\n"
        "ld.param.u64 %rd1, [good]; ld.param.u64 %rd2, [bad]; ld.param.u32 %r1, [at]; ld.param.u32 "
        "%r2, [who]; mov.u32 %r3, %ctaid.x; mov.u32 %r4, %tid.x;\n"
        "bar.sync 0; setp.eq.u32 %p1, %r3, %r1; setp.eq.and.u32 %p1, %r4, %r2, %p1; selp.b64 %rd3, "
        "%rd2, %rd1, %p1; st.global.u32 [%rd3], %r4; bar.sync 0; mul.wide.u32 %rd4, %r3, 4; "
        "add.s64 %rd5, %rd1, %rd4; setp.ne.u32 %p2, %r4, 33; @%p2 ret; st.global.u32 [%rd5+64], 1; "
        "ret;\n}\n";
    for (uint32_t at = 0; at < 8; at += 3)
        for (uint32_t who = 0; who < 64; who += 31) {
            struct ws_ptx_module *m = NULL;
            char why[160], *made = NULL;
            size_t n = 0;
            bool flat;
            uint32_t fenced, looped;
            assert_int_equal(ws_ptx_parse(&m, text, strlen(text), "k.ptx", NULL), 0);
            assert_int_equal(ws_ptx_fence(m, 0, &fenced), 0);
            if (ws_ptx_rewrite_refused(m, fenced, WS_REWRITE_PERSISTENT, &flat, why, sizeof(why)))
                fail_msg("%s", why);
            assert_int_equal(ws_ptx_rewrite(m, fenced, WS_REWRITE_PERSISTENT, &looped), 0);
            FILE *f = open_memstream(&made, &n);
            assert_int_equal(ws_ptx_print(m, f), 0);
            fclose(f);
            ws_ptx_module_free(m);
            fix_must_load(&w->f, made);
            free(made);
            memset(fix_host(&w->f, w->mine), 0, BYTES);
            memset(w->fault, 0, 16);
            w->ranges->n = 1;
            w->ranges->range[0].low = w->mine;
            w->ranges->range[0].bytes = BYTES;
            uint32_t *counters = fix_host(&w->f, w->table + 1024);
            memset(counters, 0, 8);
            struct {
                uint64_t good, bad;
                uint32_t at, who;
                struct ws_ptx_fence fence;
                struct ws_ptx_ctl ctl;
            } p = {w->mine,
                   w->other,
                   at,
                   who,
                   {w->mine, BYTES - WS_FENCE_SLACK, w->table + 64, w->table},
                   {.ticket = w->table + 1024, .flag = w->table + 1028}};
            assert_true(ws_ptx_shape_set(&p.ctl.grid, (uint32_t[3]){8, 1, 1}));
            /* A launch of two workers, as the device would be given again while blocks are left. */
            fix_run(&w->f, &(struct launch){.kernel = "k$fence$persistent",
                                            .grid = {2},
                                            .block = {64},
                                            .params = &p,
                                            .co_resident = 2});
            assert_int_equal(w->fault[0], 1);
            assert_int_equal(w->fault[1], w->other);
            const uint32_t *did = fix_host(&w->f, w->mine + 64);
            for (uint32_t k = 0; k < 8; k++) /* the other worker went on; blocks begun were ended */
                assert_int_equal(did[k], 1);
            assert_true(counters[0] >= 8);
        }
}

static void refusals(void **state)
{
    static const struct {
        const char *body, *why;
    } rows[] = {
        {"st.global.u32 [g+16], 1; ret;", "line 5: an access beside the variable it names"},
        {"call f, (); ret;", NULL},
        {".reg .b64 %rd<2>; P: .callprototype _ (); mov.u64 %rd1, f; call %rd1, (), P; ret;",
         "a call through a register, of functions with accesses"},
        {"multimem.red.global.add.u32 [g], 1; ret;", "multimem: an access that can't be checked"},
        {".reg .b64 %rd<2>; prefetch.global.L2 [%rd1]; ret;", NULL},
        {".reg .b64 %rd<2>; .reg .b32 %r<9>; .shared .align 32 .b8 s[512]; "
         "wmma.load.a.sync.aligned."
         "row.m16n16k16.shared.f16 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [s]; ret;",
         NULL},
        {".reg .b32 %r<2>; ld.u32 %r1, [%r1]; ret;", "ld: an address that has not 64 bits"},
        {"call h, (); ret;", NULL},
        {"call x, (); ret;", "calls x, which isn't known"},
        {".reg .b64 %rd<2>; discard.global.L2 [%rd1], 128; ret;",
         "discard: an access that can't be checked"},
    };
    for (size_t k = 0; k < WS_ARRAY_SIZE(rows); k++) {
        char text[1000], why[160];
        snprintf(text, sizeof(text),
                 ".version 8.0\n.target sm_80\n.address_size 64\n.func f() { .reg .b64 %%rd<2>; "
                 "st.global.u32 [%%rd1], 1; ret; } "
                 ".func h() { ret; } .extern .func x(); .global .b32 g[4];\n.entry k() { %s }\n",
                 rows[k].body);
        struct ws_ptx_module *m = NULL;
        struct ws_diags d = WS_DIAGS_NULL;
        if (ws_ptx_parse(&m, text, strlen(text), "k.ptx", &d))
            fail_msg("%s", ws_diags_text(&d));
        int r = ws_ptx_fence_refused(m, 3, why, sizeof(why));
        if (rows[k].why ? r != WS_PTX_E_UNSUPPORTED || !strstr(why, rows[k].why) : r != 0)
            fail_msg("%s: %d %s", rows[k].body, r, why);
        ws_ptx_module_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(to_the_byte, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_not_done_is_not_asked, setup, teardown),
        cmocka_unit_test_setup_teardown(windows_and_variables_pass, setup, teardown),
        cmocka_unit_test_setup_teardown(matrices, setup, teardown),
        cmocka_unit_test_setup_teardown(matrices_in_a_window, setup, teardown),
        cmocka_unit_test_setup_teardown(functions, setup, teardown),
        cmocka_unit_test_setup_teardown(names_are_not_trusted, setup, teardown),
        cmocka_unit_test_setup_teardown(the_rest_ends, setup, teardown),
        cmocka_unit_test_setup_teardown(faults_in_the_loop, setup, teardown),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
