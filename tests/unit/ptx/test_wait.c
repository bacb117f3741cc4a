// SPDX-License-Identifier: Apache-2.0
/* Which loops wait for other blocks (ptx/analysis/wait.c): what nvcc makes of the usual ones, and
 * the shapes it makes seldom. */
#include "config.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "ptx/passes/pass.h"

static const char *const waits = "a loop may wait for another block";

static struct ws_ptx_module *parse(const char *text)
{
    struct ws_ptx_module *m = NULL;
    struct ws_diags d = WS_DIAGS_NULL;
    if (ws_ptx_parse(&m, text, strlen(text), "k.ptx", &d)) {
        char *why = ws_diags_text(&d);
        fail_msg("%s in\n%s", why, text);
    }
    return m;
}

static char *read_file(const char *name)
{
    const char *dir = getenv("srcdir");
    char path[600], *text = calloc(1, 1 << 20);
    snprintf(path, sizeof(path), "%s/%s", dir ? dir : ".", name);
    FILE *f = fopen(path, "r");
    if (!f || !fread(text, 1, (1 << 20) - 1, f))
        fail_msg("%s", path);
    fclose(f);
    return text;
}

/* Each kernel of waiting.ptx says by its name what it does; and still does when its accesses are
 * checked first. */
static void as_compiled(void **state)
{
    char *text = read_file("tests/ptx/waiting.ptx");
    struct ws_ptx_module *m = parse(text);
    unsigned n[2] = {0, 0};
    uint32_t n_funcs = m->n_funcs, fenced;
    for (uint32_t k = 0; k < n_funcs; k++) {
        const char *name = m->funcs[k].name;
        if (!m->funcs[k].is_entry)
            continue;
        bool should = strncmp(name, "waits_", 6) == 0;
        assert_true(should || strncmp(name, "ends_", 5) == 0);
        n[should]++;
        char why[160] = "";
        bool flat;
        int r = ws_ptx_rewrite_refused(m, k, WS_REWRITE_SLICE, &flat, why, sizeof(why));
        if (r != (should ? WS_PTX_E_UNSUPPORTED : 0) || (should && !strstr(why, waits)))
            fail_msg("%s: %d, %s", name, r, why);
        assert_int_equal(ws_ptx_fuse_refused(m, k, why, sizeof(why)), r);
        assert_int_equal(ws_ptx_fence(m, k, &fenced), 0);
        r = ws_ptx_rewrite_refused(m, fenced, WS_REWRITE_SLICE, &flat, why, sizeof(why));
        if (should && r != WS_PTX_E_UNSUPPORTED)
            fail_msg("%s, fenced: %d, %s", name, r, why);
    }
    assert_int_equal(n[0], 18);
    assert_int_equal(n[1], 20);
    ws_ptx_module_free(m);
    free(text);
}

#define TOP ".version 8.0\n.target sm_75\n.address_size 64\n"
#define HEAD                                                                                       \
    ".visible .entry k(.param .u64 a, .param .u32 n)\n{\n.reg .pred %p<9>; .reg .b32 %r<19>; "     \
    ".reg .b64 %rd<9>; .shared .b32 sh[64]; ld.param.u64 %rd1, [a]; ld.param.u32 %r9, [n];\n"
#define POLL "ld.volatile.global.u32 %r1, [%rd1]; setp.ne.u32 %p1, %r1, 5; "

static void shapes(void **state)
{
    static const struct {
        const char *description, *before, *body;
        bool waits;
    } rows[] = {
        {"no loop", "", POLL "@%p1 bra E; add.u32 %r2, %r2, 1; E: ret;", false},
        {"a flag set where the value is seen", "",
         "mov.u32 %r2, 0;\nL: " POLL "@%p1 bra M; mov.u32 %r2, 1; M: setp.eq.u32 %p2, %r2, 0; @%p2 "
         "bra L; ret;",
         true},
        {"the same by a guard and by selp", "",
         "mov.u32 %r2, 0;\nL: " POLL "selp.u32 %r3, 0, 1, %p1; @!%p1 mov.u32 %r2, %r3; setp.eq.u32 "
         "%p2, %r2, 0; @%p2 bra L; ret;",
         true},
        {"ends by a ret in the loop", "", "L: " POLL "@!%p1 ret; bra L;", true},
        {"ends by an exit or a counter", "",
         "mov.u32 %r2, 0; L: " POLL "@!%p1 exit; add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, %r9; "
         "@%p2 bra L; ret;",
         false},
        {"the counter is set back", "",
         "mov.u32 %r2, 0; L: " POLL "@!%p1 exit; add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, %r9; "
         "mov.u32 %r2, 0; @%p2 bra L; ret;",
         true},
        {"the counter moves only when the value is seen", "",
         "mov.u32 %r2, 0; L: " POLL "@%p1 bra M; add.u32 %r2, %r2, 1; M: setp.lt.u32 %p2, %r2, "
         "%r9; @%p2 bra L; ret;",
         true},
        {"the counter goes round", "",
         "mov.u32 %r2, 0; L: " POLL "@!%p1 exit; add.u32 %r2, %r2, 1; and.b32 %r2, %r2, 7; "
         "setp.lt.u32 %p2, %r2, %r9; @%p2 bra L; ret;",
         true},
        {"two registers change places", "",
         "mov.u32 %r2, 0; L: " POLL "@!%p1 exit; mov.u32 %r4, %r3; mov.u32 %r3, %r2; mov.u32 %r2, "
         "%r4; setp.lt.u32 %p2, %r2, %r9; @%p2 bra L; ret;",
         true},
        {"a parameter ends it, or not", "",
         "L: " POLL "@!%p1 exit; setp.lt.u32 %p2, %r9, 7; @%p2 bra L; ret;", true},
        {"a wait within a counted loop, with one head", "",
         "mov.u32 %r2, 0; L: " POLL "@%p1 bra L; add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, %r9; "
         "@%p2 bra L; ret;",
         true},
        {"a counted loop within a wait", "",
         "L: mov.u32 %r2, 0; M: add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, %r9; @%p2 bra M; " POLL
         "@%p1 bra L; ret;",
         true},
        {"a way round the counter's test", "",
         "mov.u32 %r2, 0; L: " POLL "@!%p1 exit; setp.eq.u32 %p3, %r9, 3; @%p3 bra L; add.u32 %r2, "
         "%r2, 1; setp.lt.u32 %p2, %r2, %r9; @%p2 bra L; ret;",
         true},
        {"both at once: stays while the value isn't there and the counter is small", "",
         "mov.u32 %r2, 0; L: add.u32 %r2, %r2, 1; ld.volatile.global.u32 %r1, [%rd1]; setp.lt.u32 "
         "%p2, %r2, %r9; setp.ne.and.u32 %p1, %r1, 5, %p2; @%p1 bra L; ret;",
         false},
        {"stays while the value isn't there or the counter is small", "",
         "mov.u32 %r2, 0; L: add.u32 %r2, %r2, 1; ld.volatile.global.u32 %r1, [%rd1]; setp.lt.u32 "
         "%p2, %r2, %r9; setp.ne.or.u32 %p1, %r1, 5, %p2; @%p1 bra L; ret;",
         true},
        {"the same with a negated guard: leaves when both", "",
         "mov.u32 %r2, 0; L: add.u32 %r2, %r2, 1; ld.volatile.global.u32 %r1, [%rd1]; setp.ge.u32 "
         "%p2, %r2, %r9; setp.eq.u32 %p1, %r1, 5; and.pred %p3, %p1, %p2; @!%p3 bra L; ret;",
         true},
        {"leaves when either", "",
         "mov.u32 %r2, 0; L: add.u32 %r2, %r2, 1; ld.volatile.global.u32 %r1, [%rd1]; setp.ge.u32 "
         "%p2, %r2, %r9; setp.eq.u32 %p1, %r1, 5; or.pred %p3, %p1, %p2; @!%p3 bra L; ret;",
         false},
        {"a plain load with nothing that may change it", "",
         "L: ld.global.u32 %r1, [%rd1]; bar.sync 0; setp.ne.u32 %p1, %r1, 5; @%p1 bra L; ret;",
         true},
        {"a plain load of what the loop itself writes", "",
         "L: ld.global.u32 %r1, [%rd1]; add.u32 %r1, %r1, 1; st.global.u32 [%rd1], %r1; "
         "setp.lt.u32 "
         "%p1, %r1, 5; @%p1 bra L; ret;",
         false},
        {"the same with a fence", "",
         "L: ld.global.u32 %r1, [%rd1]; add.u32 %r1, %r1, 1; st.global.u32 [%rd1], %r1; "
         "fence.sc.gpu; "
         "setp.lt.u32 %p1, %r1, 5; @%p1 bra L; ret;",
         true},
        {"plain loads of one place after another", "",
         "L: ld.global.u32 %r1, [%rd1]; add.u64 %rd1, %rd1, 4; setp.ne.u32 %p1, %r1, 5; @%p1 bra "
         "L; "
         "ret;",
         false},
        {"through shared memory, by one thread for all", "",
         "mov.u32 %r2, %tid.x; setp.ne.u32 %p2, %r2, 0; L: @%p2 bra M; " POLL "selp.u32 %r3, 1, 0, "
         "%p1; st.shared.u32 [sh], %r3; M: bar.sync 0; ld.shared.u32 %r4, [sh]; bar.sync 0; "
         "setp.ne.u32 %p3, %r4, 0; @%p3 bra L; ret;",
         true},
        {"through a vote", "", "L: " POLL "vote.sync.any.pred %p2, %p1, -1; @%p2 bra L; ret;",
         true},
        {"by a function",
         ".func (.param .b32 v) get(.param .b64 p) { .reg .b32 %r1; .reg .b64 %rd1; "
         "ld.param.u64 %rd1, [p]; ld.volatile.u32 %r1, [%rd1]; st.param.b32 [v], "
         "%r1; ret; }\n",
         "L: { .param .b64 x; .param .b32 y; st.param.b64 [x], %rd1; call.uni (y), get, (x); "
         "ld.param.b32 %r1, [y]; } setp.ne.u32 %p1, %r1, 5; @%p1 bra L; ret;",
         true},
        {"by a function that looks at nothing others write",
         ".func (.param .b32 v) get(.param .b64 p) { .reg .b32 %r1; .reg .b64 %rd1; ld.param.u64 "
         "%rd1, [p]; cvt.u32.u64 %r1, %rd1; st.param.b32 [v], %r1; ret; }\n",
         "L: add.u64 %rd1, %rd1, 1; { .param .b64 x; .param .b32 y; st.param.b64 [x], %rd1; "
         "call.uni (y), get, (x); ld.param.b32 %r1, [y]; } setp.ne.u32 %p1, %r1, 5; @%p1 bra L; "
         "ret;",
         false},
        {"in a function",
         ".func w(.param .b64 p) { .reg .pred %p1; .reg .b32 %r1; .reg .b64 %rd1; ld.param.u64 "
         "%rd1, [p]; L: ld.acquire.gpu.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra L; ret; "
         "}\n",
         "{ .param .b64 x; st.param.b64 [x], %rd1; call.uni w, (x); } ret;", true},
        {"by brx.idx", "",
         "L: ld.volatile.global.u32 %r1, [%rd1]; min.u32 %r1, %r1, 2; ts: .branchtargets M, E, L; "
         "brx.idx %r1, ts; M: bra L; E: ret;",
         true},
        {"a swap that reads", "",
         "L: atom.global.cas.b32 %r1, [%rd1], 5, 5; setp.ne.u32 %p1, %r1, 5; @%p1 bra L; ret;",
         true},
        {"a swap that waits to be given something", "",
         "L: atom.global.cas.b32 %r1, [%rd1], 1, 0; setp.ne.u32 %p1, %r1, 1; @%p1 bra L; ret;",
         true},
        {"a swap whose success isn't what ends it", "",
         "L: atom.global.cas.b32 %r1, [%rd1], 0, 1; setp.ne.u32 %p1, %r1, 7; @%p1 bra L; ret;",
         true},
        {"a lock taken with the thread's number", "",
         "add.u32 %r3, %r9, 1; L: atom.global.cas.b32 %r1, [%rd1], 0, %r3; setp.ne.u32 %p1, %r1, "
         "0; "
         "@%p1 bra L; ret;",
         false},
        {"a lock and then a wait for what it guards", "",
         "L: atom.global.cas.b32 %r1, [%rd1], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra L; "
         "membar.gl; "
         "ld.global.u32 %r2, [%rd1+4]; atom.global.exch.b32 %r3, [%rd1], 0; setp.eq.u32 %p2, %r2, "
         "0; @%p2 bra L; ret;",
         true},
        {"or and and lock nothing that is known", "",
         "L: atom.global.or.b32 %r1, [%rd1], 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra L; ret;", true},
        {"a swap that expects what was loaded before the loop", "",
         "ld.global.u32 %r2, [%rd1]; L: add.u32 %r3, %r2, 1; atom.global.cas.b32 %r1, [%rd1], %r2, "
         "%r3; setp.ne.u32 %p1, %r1, %r2; @%p1 bra L; ret;",
         true},
        {"a swap that expects what was read elsewhere", "",
         "L: ld.global.u32 %r2, [%rd1+4]; add.u32 %r3, %r2, 1; atom.global.cas.b32 %r1, [%rd1], "
         "%r2, %r3; setp.ne.u32 %p1, %r1, %r2; @%p1 bra L; ret;",
         true},
        {"work taken until none is left, and none put back", "",
         "L: atom.global.add.u32 %r1, [%rd1], 1; setp.lt.u32 %p1, %r1, %r9; @%p1 bra L; ret;",
         false},
        {"counting up until somebody counts", "",
         "L: atom.global.add.u32 %r1, [%rd1], 1; setp.ge.u32 %p1, %r1, %r9; @%p1 bra L; ret;",
         true},
        {"counting up and down", "",
         "L: atom.global.add.u32 %r1, [%rd1], 1; red.global.add.u32 [%rd1], -1; setp.lt.u32 %p1, "
         "%r1, %r9; @%p1 bra L; ret;",
         true},
        {"an atomic's result decides within the loop only", "",
         "mov.u32 %r2, 0; L: atom.global.add.u32 %r1, [%rd1], 1; setp.gt.u32 %p1, %r1, 5; @%p1 bra "
         "M; st.global.u32 [%rd1+4], %r1; M: add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 9; @%p2 "
         "bra L; ret;",
         false},
        {"a list, with an atomic for each of its members", "",
         "L: red.global.add.u32 [%rd1], 1; ld.global.u64 %rd1, [%rd1+8]; setp.ne.u64 %p1, %rd1, 0; "
         "@%p1 bra L; ret;",
         false},
        {"a loop with two entries", "",
         "setp.eq.u32 %p2, %r9, 1; @%p2 bra M; L: add.u32 %r2, %r2, 1; M: " POLL "@%p1 bra L; ret;",
         true},
    };
    for (size_t k = 0; k < WS_ARRAY_SIZE(rows); k++) {
        char text[3000], why[160] = "";
        bool flat;
        snprintf(text, sizeof(text), "%s%s%s%s\n}\n", TOP, rows[k].before, HEAD, rows[k].body);
        struct ws_ptx_module *m = parse(text);
        int r =
            ws_ptx_rewrite_refused(m, m->n_funcs - 1, WS_REWRITE_SLICE, &flat, why, sizeof(why));
        if (r != (rows[k].waits ? WS_PTX_E_UNSUPPORTED : 0) ||
            (rows[k].waits && !strstr(why, waits)))
            fail_msg("%s: %d, '%s'", rows[k].description, r, why);
        ws_ptx_module_free(m);
    }
}

/* Whatever a client sends, the answer comes soon; when it takes too long, the kernel waits. */
static void large(void **state)
{
    char *text = NULL;
    size_t bytes;
    FILE *f = open_memstream(&text, &bytes);
    fprintf(f, "%s%s", TOP, HEAD);
    for (int k = 0; k < 3000; k++)
        fprintf(f,
                "L%d: ld.volatile.global.u32 %%r1, [%%rd1]; setp.ne.u32 %%p1, %%r1, %d;\n"
                "@%%p1 bra L%d;\n",
                k, k, k * 7 % 3000);
    fprintf(f, "bra L0;\n}\n");
    fclose(f);
    struct ws_ptx_module *m = parse(text);
    char why[160] = "";
    bool flat;
    assert_int_equal(ws_ptx_rewrite_refused(m, 0, WS_REWRITE_SLICE, &flat, why, sizeof(why)),
                     WS_PTX_E_UNSUPPORTED);
    ws_ptx_module_free(m);
    free(text);
    /* The same with counters: nothing waits, if it is found out. */
    f = open_memstream(&text, &bytes);
    fprintf(f, "%s%s", TOP, HEAD);
    for (int k = 0; k < 2000; k++)
        fprintf(f,
                "L%d: atom.global.add.u32 %%r1, [%%rd1], 1; setp.ne.u32 %%p1, %%r1, %d;\n"
                "@%%p1 bra M%d; st.global.u32 [%%rd1], %%r9; M%d:\n",
                k, k, k, k);
    fprintf(f, "add.u32 %%r2, %%r2, 1; setp.lt.u32 %%p2, %%r2, %%r9; @%%p2 bra L0; ret;\n}\n");
    fclose(f);
    m = parse(text);
    int r = ws_ptx_rewrite_refused(m, 0, WS_REWRITE_SLICE, &flat, why, sizeof(why));
    assert_true(r == 0 || r == WS_PTX_E_UNSUPPORTED);
    ws_ptx_module_free(m);
    free(text);
}

static void out_of_memory(void **state)
{
    struct ws_ptx_module *m = parse(TOP HEAD "L: " POLL "@%p1 bra L; ret;\n}\n");
    int failures = 0, r = -1;
    for (uint64_t n = 1; n < 200 && r < 0; n++) {
        char why[160] = "";
        bool flat;
        ws_alloc_fail_after(n);
        r = ws_ptx_rewrite_refused(m, 0, WS_REWRITE_SLICE, &flat, why, sizeof(why));
        ws_alloc_fail_after(0);
        assert_true(r == -ENOMEM || r == WS_PTX_E_UNSUPPORTED);
        failures += r < 0;
    }
    assert_int_equal(r, WS_PTX_E_UNSUPPORTED);
    assert_true(failures > 3);
    ws_ptx_module_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_compiled),
        cmocka_unit_test(shapes),
        cmocka_unit_test(large),
        cmocka_unit_test(out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
