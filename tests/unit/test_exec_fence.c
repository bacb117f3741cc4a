// SPDX-License-Identifier: Apache-2.0
/* A fenced kernel reads and writes what is its client's, to the byte, and nothing else: the neighbour's memory is mapped, so that
 * only the fence stands before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/macros.h"
#include "exec_fixture.h"

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

/* Runs @body fenced: %rd1 is @address, %r1 the thread. Only [mine, mine + @bytes) is the client's. Return: the fault noted, or 0. */
static uint64_t run(struct world *w, const char *body, uint64_t address, uint64_t bytes)
{
    char text[3000];
    snprintf(text, sizeof(text),
             ".version 8.0\n.target sm_80\n.address_size 64\n.visible .global .b32 g[4];\n.visible "
             ".entry k(.param .u64 a)\n{\n"
             ".reg .pred %%p<4>; .reg .b32 %%r<8>; .reg .b64 %%rd<8>; .shared .align 16 .b32 "
             "sh[64]; .local .b32 lo[4];\n"
             "ld.param.u64 %%rd1, [a]; mov.u32 %%r1, %%tid.x;\n%s\nret;\n}\n",
             body);
    struct ws_ptx_module *m = NULL;
    struct ws_diags d = WS_DIAGS_NULL;
    if (ws_ptx_parse(&m, text, strlen(text), "k.ptx", &d))
        fail_msg("%s", ws_diags_text(&d));
    char why[160];
    uint32_t added;
    if (ws_ptx_fence_refused(m, 0, why, sizeof(why)))
        fail_msg("%s: %s", body, why);
    assert_int_equal(ws_ptx_fence(m, 0, &added), 0);
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

static void refusals(void **state)
{
    static const struct {
        const char *body, *why;
    } rows[] = {
        {"st.global.u32 [g+16], 1; ret;", "line 5: an access beside the variable it names"},
        {"call f, (); ret;", "line 4: a function has accesses"},
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
        cmocka_unit_test_setup_teardown(the_rest_ends, setup, teardown),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
