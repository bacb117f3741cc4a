// SPDX-License-Identifier: Apache-2.0
/* Rewritten kernels as text, and what is refused and why. That they compute the same is
 * tests/unit/exec/rewritten.sh's. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/error.h"
#include "ptx/passes/pass.h"

#define HEAD                                                                                       \
    ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u32 " \
    "n)\n{\n.reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<4>; .shared .b32 sh[64];\n"

enum pass { FENCE, FUSE, FUSE_SAME };
#define TOP ".version 8.0\n.target sm_75\n.address_size 64\n"

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

/* The text of the rewritten kernel from its { on. malloc'ed. */
static char *rewritten(const char *text, enum ws_ptx_rewrite kind)
{
    struct ws_ptx_module *m = parse(text);
    uint32_t added = 0;
    assert_int_equal(ws_ptx_rewrite(m, 0, kind, &added), 0);
    assert_int_equal(added, m->n_funcs - 1);
    char *all = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&all, &n);
    assert_int_equal(ws_ptx_print(m, f), 0);
    fclose(f);
    char *at = strstr(all, m->funcs[added].name);
    assert_non_null(at);
    char *part = strdup(at);
    free(all);
    ws_ptx_module_free(m);
    return part;
}

static void golden(void **state)
{
    static const struct {
        const char *description, *body;
        enum ws_ptx_rewrite kind;
        const char *want;
    } rows[] = {
#include "tests/unit/ptx/rewrite_golden.inc"
    };
    for (size_t k = 0; k < WS_ARRAY_SIZE(rows); k++) {
        char text[2000];
        snprintf(text, sizeof(text), "%s%s\n}\n", HEAD, rows[k].body);
        char *got = rewritten(text, rows[k].kind);
        if (strcmp(got, rows[k].want)) {
            fprintf(stderr, "%s: got\n%s", rows[k].description,
                    got); /* too long for cmocka's messages */
            fail();
        }
        free(got);
    }
}

/* Fence and fuse: their new functions, with the slow check left out, which is the same everywhere.
 * @text: a module, whose last kernel is fenced, or all of whose kernels are fused. */
static char *made_by(const char *text, enum pass pass)
{
    struct ws_ptx_module *m = parse(text);
    uint32_t n = m->n_funcs, added = 0, funcs[WS_FUSE_MAX], n_entries = 0;
    struct ws_ptx_fused fused;
    char why[160];
    for (uint32_t k = 0; k < n; k++)
        if (m->funcs[k].is_entry)
            funcs[n_entries++] = k;
    if (pass == FENCE) {
        assert_int_equal(ws_ptx_fence_refused(m, n - 1, why, sizeof(why)), 0);
        assert_int_equal(ws_ptx_fence(m, n - 1, &added), 0);
    } else {
        assert_int_equal(ws_ptx_fuse_make(m, funcs, n_entries, pass == FUSE_SAME, "all", &fused),
                         0);
    }
    struct ws_diags d = WS_DIAGS_NULL;
    assert_int_equal(ws_ptx_validate(m, "made.ptx", &d), 0);
    ws_diags_deinit(&d);
    /* The new ones alone; what they call is known by its head. */
    for (uint32_t k = 0; k < m->n_funcs; k++) {
        bool shown = k >= n && m->funcs[k].fence != WS_PTX_FENCE_HELPER;
        m->funcs[k].is_decl = !shown;
    }
    char *all = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&all, &bytes);
    assert_int_equal(ws_ptx_print(m, f), 0);
    fclose(f);
    ws_ptx_module_free(m);
    char *end = strstr(all, ".address_size 64\n"), *body = NULL;
    assert_non_null(end);
    /* behind the heads of all functions, each of which ends in ";" */
    for (char *at = end; (at = strstr(at, ";\n.")) != NULL; at++)
        if (strncmp(at + 3, "visible", 7) == 0 || strncmp(at + 3, "func", 4) == 0 ||
            strncmp(at + 3, "entry", 5) == 0) {
            char *brace = strchr(at + 3, '{'), *semi = strchr(at + 3, ';');
            if (brace && (!semi || brace < semi)) {
                body = at + 2;
                break;
            }
        }
    body = strdup(body ? body : end + strlen(".address_size 64\n"));
    free(all);
    return body;
}

static void golden_fence_and_fuse(void **state)
{
    static const struct {
        const char *description, *text;
        enum pass pass;
        const char *want;
    } rows[] = {
#include "tests/unit/ptx/fence_fuse_golden.inc"
    };
    for (size_t k = 0; k < WS_ARRAY_SIZE(rows); k++) {
        char *got = made_by(rows[k].text, rows[k].pass);
        if (strcmp(got, rows[k].want)) {
            fprintf(stderr, "%s: got\n%s", rows[k].description, got);
            fail();
        }
        free(got);
    }
}

static void refusals(void **state)
{
    static const struct {
        const char *body, *slice, *ticket,
            *persistent; /* NULL: it can be; "flat": for one-dimensional blocks */
    } rows[] = {
        {"mov.u32 %r1, %ctaid.x; ret;", NULL, NULL, NULL},
        {"mov.u32 %r1, %envreg1; ret;", "line 7: %envreg", "line 7: %envreg", "line 7: %envreg"},
        {"barrier.cluster.arrive; ret;", "clusters", "clusters", "clusters"},
        {"mapa.shared::cluster.u32 %r1, %r2, 1; ret;", "clusters", "clusters", "clusters"},
        {"ld.shared::cluster.u32 %r1, [%r2]; ret;", "clusters", "clusters", "clusters"},
        {"mov.u32 %r1, %cluster_ctarank; ret;", "clusters", "clusters", "clusters"},
        {"mov.u32 %r1, %dynamic_smem_size; ret;", NULL, "would count the slot",
         "would count the slot"},
        /* waits for another block */
        {"ld.param.u64 %rd1, [a];\nL: ld.volatile.global.u32 %r1, [%rd1]; setp.ne.u32 %p1, %r1, 5; "
         "@%p1 bra L; ret;",
         "line 8: a loop may wait", "line 8: a loop may wait", "line 8: a loop may wait"},
        {"ld.param.u64 %rd1, [a];\nL: atom.global.add.u32 %r1, [%rd1], 0; setp.lt.u32 %p1, %r1, 5; "
         "@%p1 bra L; ret;",
         "a loop may wait", "a loop may wait", "a loop may wait"},
        {"ld.param.u64 %rd1, [a];\nL: ld.global.cg.u32 %r1, [%rd1]; setp.ne.u32 %p1, %r1, 5; "
         "@%p1 bra L; ret;",
         "a loop may wait", "a loop may wait", "a loop may wait"},
        /* a lock, and a compare-and-swap loop, end by themselves */
        {"ld.param.u64 %rd1, [a];\nL: atom.global.cas.b32 %r1, [%rd1], 0, 1; setp.ne.u32 %p1, %r1, "
         "0; @%p1 bra L; ret;",
         NULL, NULL, NULL},
        /* threads that end early, and a barrier of the others */
        {"mov.u32 %r1, %tid.x; setp.gt.u32 %p1, %r1, 7; @%p1 ret; bar.sync 0; ret;", NULL, NULL,
         "some threads may end here"},
        {"mov.u32 %r1, %tid.x; setp.gt.u32 %p1, %r1, 7; @%p1 bra E; bar.sync 0; E: ret;", NULL,
         NULL, "some threads may end here"},
        {"mov.u32 %r1, %tid.x; setp.gt.u32 %p1, %r1, 7; @%p1 bra E; add.u32 %r1, %r1, 1; E: "
         "bar.sync "
         "0; ret;",
         NULL, NULL, NULL},
        /* all threads alike: a parameter decides */
        {"ld.param.u32 %r1, [n]; setp.gt.u32 %p1, %r1, 7; @%p1 ret; bar.sync 0; ret;", NULL, NULL,
         NULL},
        /* what a thread knows only from where it went */
        {"mov.u32 %r1, %tid.x; setp.gt.u32 %p1, %r1, 7; mov.u32 %r2, 0; @%p1 bra A; mov.u32 %r2, "
         "1; "
         "A: setp.eq.u32 %p2, %r2, 0; @%p2 ret; bar.sync 0; ret;",
         NULL, NULL, "some threads may end here"},
        {"mov.u32 %r1, %tid.x; and.b32 %r1, %r1, 1; setp.eq.u32 %p1, %r1, 0; @%p1 bar.sync 0; ret;",
         NULL, NULL, "under a condition that differs"},
        /* warps: the lanes of one must stay together */
        {"mov.u32 %r1, %tid.x; setp.gt.u32 %p1, %r1, 31; @%p1 ret; bar.warp.sync -1; ret;", NULL,
         NULL, "flat"},
        {"mov.u32 %r1, %tid.x; setp.gt.u32 %p1, %r1, 30; @%p1 ret; bar.warp.sync -1; ret;", NULL,
         NULL, "some threads may end here"},
        {"bar.arrive 1, 64; ret;", NULL, NULL, "only arrive"},
        /* who never looks at %tid.y is taken to have flat blocks */
        {"mov.u32 %r1, %tid.x; ret;", NULL, "flat", "flat"},
        {"mov.u32 %r1, %tid.y; ret;", "any shape", "any shape", "any shape"},
    };
    for (size_t k = 0; k < WS_ARRAY_SIZE(rows); k++) {
        char text[2000];
        snprintf(text, sizeof(text), "%s%s\n}\n", HEAD, rows[k].body);
        struct ws_ptx_module *m = parse(text);
        const char *want[] = {rows[k].slice, rows[k].ticket, rows[k].persistent};
        for (int kind = 1; kind < _WS_REWRITE_N; kind++) {
            char why[160] = "";
            bool flat = false;
            int r =
                ws_ptx_rewrite_refused(m, 0, (enum ws_ptx_rewrite)kind, &flat, why, sizeof(why));
            bool any = want[kind - 1] && !strcmp(want[kind - 1], "any shape");
            bool can = !want[kind - 1] || any || !strcmp(want[kind - 1], "flat");
            if ((r == 0) != can || (want[kind - 1] && can && flat == any) ||
                (!can && !strstr(why, want[kind - 1])))
                fail_msg("%s of %s: %d, flat %d, '%s', want '%s'",
                         ws_ptx_rewrite_name((enum ws_ptx_rewrite)kind), rows[k].body, r, flat, why,
                         want[kind - 1] ? want[kind - 1] : "can");
        }
        ws_ptx_module_free(m);
    }
}

static void functions_count(void **state)
{
    struct ws_ptx_module *m = parse(".version 8.0\n.target sm_75\n.address_size 64\n"
                                    ".func f() { .reg .b32 %r<2>; mov.u32 %r1, %ctaid.x; ret; }\n"
                                    ".func g() { call f, (); ret; }\n"
                                    ".visible .entry k() { call g, (); ret; }\n"
                                    ".visible .entry l() { ret; }\n");
    char why[160];
    bool flat;
    for (int kind = 1; kind < _WS_REWRITE_N; kind++) {
        assert_int_equal(
            ws_ptx_rewrite_refused(m, 2, (enum ws_ptx_rewrite)kind, &flat, why, sizeof(why)),
            WS_PTX_E_UNSUPPORTED);
        assert_string_equal(why, "line 4: a function reads the block's number");
        assert_int_equal(
            ws_ptx_rewrite_refused(m, 3, (enum ws_ptx_rewrite)kind, &flat, why, sizeof(why)), 0);
    }
    ws_ptx_module_free(m);
}

/* Programs may use the names that passes give. */
static void names_are_free(void **state)
{
    struct ws_ptx_module *m =
        parse(".version 8.0\n.target sm_75\n.address_size 64\n.global .u32 k$slice;\n"
              ".func f() { ret; }\n.func f$fence() { ret; }\n"
              ".visible .entry k() { .reg .u64 %p; mov.u64 %p, 0; st.global.u64 [%p], %p; call f, "
              "(); ret; }\n"
              ".visible .entry k$fence() { ret; }\n.visible .entry k$fence$() { ret; }\n"
              ".visible .entry k$ticket() { ret; }\n.visible .entry all() { ret; }\n");
    uint32_t k = (uint32_t)(ws_ptx_find_func(m, "k") - m->funcs), made;
    struct ws_ptx_fused fused;
    assert_int_equal(ws_ptx_fence(m, k, &made), 0);
    assert_string_equal(m->funcs[made].name, "k$fence$$");
    for (int kind = 1; kind < _WS_REWRITE_N; kind++) {
        static const char *const want[] = {"", "k$slice$", "k$ticket$", "k$persistent"};
        assert_int_equal(ws_ptx_rewrite(m, k, (enum ws_ptx_rewrite)kind, &made), 0);
        assert_string_equal(m->funcs[made].name, want[kind]);
    }
    assert_int_equal(ws_ptx_fuse_make(m, (uint32_t[]){k, k}, 2, false, "all", &fused), 0);
    assert_string_equal(m->funcs[fused.func].name, "all$");
    struct ws_diags d = WS_DIAGS_NULL;
    assert_int_equal(ws_ptx_validate(m, "made.ptx", &d), 0);
    ws_diags_deinit(&d);
    char *text = NULL; /* and it is a module again */
    size_t bytes = 0;
    FILE *f = open_memstream(&text, &bytes);
    assert_int_equal(ws_ptx_print(m, f), 0);
    fclose(f);
    ws_ptx_module_free(parse(text));
    free(text);
    ws_ptx_module_free(m);
}

static void division_by_magic(void **state)
{
    uint64_t seed = 11;
    for (uint32_t k = 0; k < 200000; k++) {
        seed = seed * UINT64_C(6364136223846793005) + 1;
        uint32_t n = (uint32_t)(seed >> 33) >> (seed >> 20) % 31,
                 a = (uint32_t)(seed >> 5) & INT32_MAX;
        n = k < 100 ? k + 1 : WS_MIN(WS_MAX(n, 1u), (uint32_t)INT32_MAX);
        struct ws_ptx_shape s;
        assert_true(ws_ptx_shape_set(&s, (uint32_t[3]){n, 1, 1}));
        uint32_t tries[] = {a, 0, n - 1, n, a / n * n, a / n > 0 ? a / n * n - 1 : 0, INT32_MAX};
        for (size_t t = 0; t < WS_ARRAY_SIZE(tries); t++) {
            uint32_t hi = (uint32_t)((uint64_t)(2 * tries[t]) * s.by[0].magic >> 32);
            if (hi >> s.by[0].shift != tries[t] / n)
                fail_msg("%u / %u", tries[t], n);
        }
    }
    struct ws_ptx_shape s;
    assert_false(ws_ptx_shape_set(&s, (uint32_t[3]){3, 0, 1}));
    assert_false(ws_ptx_shape_set(&s, (uint32_t[3]){65536, 32768, 1}));
    assert_false(ws_ptx_shape_set(&s, (uint32_t[3]){UINT32_MAX, UINT32_MAX, UINT32_MAX}));
    assert_true(ws_ptx_shape_set(&s, (uint32_t[3]){65535, 32768, 1}));
    assert_int_equal(s.total, 65535 * 32768u);
}

static void out_of_memory_leaves_the_module(void **state)
{
    for (int kind = 1; kind < _WS_REWRITE_N; kind++) {
        char text[2000];
        snprintf(text, sizeof(text), "%smov.u32 %%r1, %%ctaid.y; L: bar.sync 0; bra L;\n}\n", HEAD);
        int failures = 0, r = -1;
        for (uint64_t n = 1; n < 400 && r; n++) {
            struct ws_ptx_module *m = parse(text), *same = parse(text);
            uint32_t added;
            ws_alloc_fail_after(n);
            r = ws_ptx_rewrite(m, 0, (enum ws_ptx_rewrite)kind, &added);
            ws_alloc_fail_after(0);
            if (r) {
                failures++;
                assert_int_equal(r, -ENOMEM);
                assert_true(ws_ptx_module_equal(m, same));
            }
            ws_ptx_module_free(m);
            ws_ptx_module_free(same);
        }
        assert_int_equal(r, 0);
        assert_true(failures > 10);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden),
        cmocka_unit_test(golden_fence_and_fuse),
        cmocka_unit_test(refusals),
        cmocka_unit_test(functions_count),
        cmocka_unit_test(names_are_free),
        cmocka_unit_test(division_by_magic),
        cmocka_unit_test(out_of_memory_leaves_the_module),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
