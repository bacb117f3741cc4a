// SPDX-License-Identifier: Apache-2.0
/* Replaced texture instructions as text: what is put in place, what stays, what it asks of the
 * compiler; memory that runs out. That they compute the same is tests/unit/exec/textured.sh's.
 *
 * With an argument: prints a kernel with all forms, replaced, fenced and in a loop, for a real
 * assembler to look at. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <errno.h>

#include "base/alloc.h"
#include "ptx/passes/pass.h"
#include "ptx/passes/texop.h"

#define HEAD ".version 8.0\n.target sm_75\n.address_size 64\n"
#define REGS                                                                                       \
    ".reg .pred %p<4>; .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .f32 %f<9>; .reg .b64 %rd<9>;\n"

static struct ws_ptx_module *parse(const char *text)
{
    struct ws_ptx_module *m = NULL;
    struct ws_diags d = WS_DIAGS_NULL;
    if (ws_ptx_parse(&m, text, strlen(text), "t.ptx", &d))
        fail_msg("%s in\n%s", ws_diags_text(&d), text);
    return m;
}

static char *print(const struct ws_ptx_module *m)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    assert_int_equal(ws_ptx_print(m, f), 0);
    fclose(f);
    return text;
}

/* Valid, and read again as it was printed. */
static void check_sound(const struct ws_ptx_module *m)
{
    struct ws_diags d = WS_DIAGS_NULL;
    char *text = print(m);
    if (ws_ptx_validate(m, "made", &d))
        fail_msg("%s\n%s", ws_diags_text(&d), text);
    ws_ptx_module_free(parse(text));
    free(text);
}

static bool has_texop(const struct ws_ptx_func *f)
{
    for (uint32_t k = 0; k < f->n_insns; k++)
        if (ws_ptx_is_texop((enum ws_ptx_op)f->insns[k].op))
            return true;
    return false;
}

static const char *const forms[] = {
    "tex.1d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%rd0, {%f4}];",
    "tex.1d.v4.s32.s32 {%r0, %r1, %r2, %r3}, [%rd0, {%r4}];",
    "tex.2d.v4.u32.f32 {%r0, _, _, %r3}, [%rd0, {%f4, 0f3F000000}];",
    "@%p1 tex.2d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%rd0, {%r4, 7}];",
    "tex.3d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%rd0, {%f4, %f5, %f6, %f6}];",
    "tex.a1d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%rd0, {%r4, %f5}];",
    "tex.a2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%rd0, %rd1, {%r4, %f5, %f6, %f6}];",
    "tex.cube.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%rd0, {%f4, %f5, %f6, %f6}];",
    "tex.acube.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%rd0, {%r4, %f5, %f6, %f7}];",
    "tex.base.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%rd0, {%f4, %f5}];",
    "tex.level.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%rd0, {%f4, %f5}], %f6;",
    "@!%p2 tex.grad.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%rd0, {%f4, %f5}], {%f6, %f7}, {%f7, "
    "%f6};",
    "tex.2d.v4.f16.f32 {%h0, %h1, %h2, %h3}, [%rd0, {%f4, %f5}];",
    "tex.2d.v2.f16x2.f32 {%r0, %r1}, [%rd0, {%f4, %f5}];",
    "tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}|%p3, [%rd0, {%f4, %f5}];",
    "tld4.g.2d.v4.u32.f32 {%r0, %r1, %r2, %r3}, [%rd0, {%f4, %f5}];",
    "tld4.a.acube.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%rd0, {%r4, %f4, %f5, %f6}];",
    "txq.width.b32 %r0, [%rd0];",
    "txq.level.height.b32 %r0, [%rd0], %r1;",
    "suq.channel_order.b32 %r0, [%rd0];",
    "suld.b.1d.b8.zero {%h0}, [%rd0, {%r4}];",
    "suld.b.2d.v2.b16.clamp {%h0, %h1}, [%rd0, {%r4, %r5}];",
    "@%p1 suld.b.3d.v4.b32.trap {%r0, %r1, %r2, %r3}, [%rd0, {%r4, %r5, %r6, %r6}];",
    "suld.b.a2d.v2.b64.zero {%rd2, %rd3}, [%rd0, {%r4, %r5, %r6, %r6}];",
    "sust.b.2d.v4.b8.trap [%rd0, {%r4, %r5}], {%h0, %h1, %h2, %h3};",
    "sust.b.a1d.b64.zero [%rd0, {%r4, %r5}], {%rd2};",
    "@!%p1 sust.p.2d.v4.b32.trap [%rd0, {%r4, %r5}], {%r0, %r1, %r2, 3};",
    "sured.b.add.2d.u32.trap [%rd0, {%r4, %r5}], %r0;",
    "sured.b.min.1d.s64.clamp [%rd0, {%r4}], %rd2;",
    "sured.p.or.2d.b64.zero [%rd0, {%r4, %r5}], %rd2;",
    "mov.b64 %rd2, ref;",
    "tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [ref, smp, {%f4, %f5}];",
};

/* In a kernel each, or in one. */
static char *all_forms(bool one)
{
    static const char before[] =
        "(.param .u64 p, .param .texref q)\n{\n" REGS
        "ld.param.u64 %rd0, [p]; mov.u64 %rd1, %rd0; mov.b64 %rd4, q; mov.u64 %rd2, 1;\n"
        "mov.u32 %r0, %tid.x; mov.u32 %r1, %r0; mov.u32 %r2, %r0; mov.u32 %r3, %r0; "
        "mov.u32 %r4, %r0; mov.u32 %r5, %r0; mov.u32 %r6, %r0;\n"
        "cvt.u16.u32 %h0, %r0; mov.u16 %h1, %h0; mov.u16 %h2, %h0; mov.u16 %h3, %h0;\n"
        "mov.f32 %f4, 0f3F000000; mov.f32 %f5, %f4; mov.f32 %f6, %f4; mov.f32 %f7, %f4;\n"
        "mov.f32 %f0, %f4; setp.lt.u32 %p1, %r0, 7; setp.lt.u32 %p2, %r0, 9;\n";
    static const char after[] =
        "st.global.u32 [%rd0], %r0; st.global.f32 [%rd0+4], %f0; st.global.u16 [%rd0+8], %h0;\n"
        "st.global.u64 [%rd0+16], %rd2; st.global.u64 [%rd0+24], %rd4;\nret;\n}\n";
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    assert_non_null(f);
    fputs(HEAD ".global .texref ref;\n.global .samplerref smp;\n", f);
    for (size_t k = 0; k < WS_ARRAY_SIZE(forms); k++)
        if (one)
            fprintf(f, "%s%s\n%s", k ? "" : ".visible .entry k", k ? "" : before, forms[k]);
        else
            fprintf(f, ".visible .entry k%zu%s%s\n%s", k, before, forms[k], after);
    if (one)
        fputs(after, f);
    fclose(f);
    return text;
}

static void test_all_forms(void **state)
{
    char *text = all_forms(false);
    struct ws_ptx_module *m = parse(text);
    uint32_t n = m->n_funcs;
    assert_int_equal(ws_ptx_texture(m), 0);
    assert_true(m->n_funcs > n && m->n_funcs <= n + WS_TEXTURE_FUNCS);
    for (uint32_t k = 0; k < n; k++) {
        char name[16];
        snprintf(name, sizeof(name), "k%u", k);
        assert_string_equal(m->funcs[k].name, name);
        if (has_texop(&m->funcs[k]))
            fail_msg("%s stays", forms[k]);
        assert_int_equal(m->funcs[k].param_bytes, 16);
        assert_int_equal(m->funcs[k].params[1].type, WS_T_B64);
    }
    for (uint32_t v = 0; v < m->n_vars; v++)
        assert_true(m->vars[v].type == WS_T_B64 && m->vars[v].size_bytes == 8);
    check_sound(m);
    uint32_t again = m->n_funcs; /* nothing is left to do */
    assert_int_equal(ws_ptx_texture(m), 0);
    assert_int_equal(m->n_funcs, again);
    ws_ptx_module_free(m);
    free(text);
}

/* A guarded fetch: who doesn't make it, doesn't call; one whose handle is a reference's. */
static void test_text(void **state)
{
    struct ws_ptx_module *m = parse(
        HEAD ".global .surfref ref;\n.visible .entry k()\n{\n.reg .pred %p; .reg .b32 %r<3>;\n"
             "mov.u32 %r0, %tid.x; setp.eq.u32 %p, %r0, 3;\n"
             "@%p suld.b.1d.b32.zero {%r1}, [ref, {%r0}];\nret;\n}\n");
    static const struct {
        enum ws_ptx_op op;
        bool guarded;
    } expect[] = {{WS_OP_MOV, false},
                  {WS_OP_SETP, false},
                  {WS_OP_BRA, true},
                  {WS_OP_LD, false} /* the handle */,
                  {WS_OP_MOV, false} /* the word */,
                  {WS_OP_MOV, false} /* coordinates */,
                  {WS_OP_MOV, false},
                  {WS_OP_MOV, false},
                  {WS_OP_MOV, false} /* layer */,
                  {WS_OP_CALL, false},
                  {WS_OP_SETP, false},
                  {WS_OP_MOV, false} /* outside: 0 */,
                  {WS_OP_LD, true},
                  {WS_OP_RET, false}};
    assert_int_equal(ws_ptx_texture(m), 0);
    const struct ws_ptx_func *f = &m->funcs[0];
    assert_int_equal(f->n_insns, WS_ARRAY_SIZE(expect));
    for (uint32_t k = 0; k < f->n_insns; k++) {
        assert_int_equal(f->insns[k].op, expect[k].op);
        assert_int_equal(f->insns[k].guard >= 0, expect[k].guarded);
    }
    assert_true(f->insns[2].guard_neg); /* over it all, to the end */
    assert_int_equal(f->labels[f->insns[2].operands[0].label].insn, 13);
    assert_int_equal(f->insns[3].space, WS_SP_GLOBAL);
    assert_int_equal(f->insns[12].space, WS_SP_GLOBAL);
    assert_string_equal(m->funcs[WS_PTX_SYM_INDEX(f->insns[9].call->callee.sym)].name,
                        "ws$surface");
    ws_ptx_module_free(m);
}

/* Blocks of any size can go on being launched, unless the kernel says what it is for. */
static void test_registers(void **state)
{
    struct ws_ptx_module *m =
        parse(HEAD ".func f(.reg .b64 h)\n{\n" REGS "txq.width.b32 %r0, [h];\nret;\n}\n"
                   ".visible .entry any()\n{\n" REGS "mov.u64 %rd0, 0;\ncall f, (%rd0);\nret;\n}\n"
                   ".visible .entry own()\n.maxntid 256, 2, 1\n{\n" REGS
                   "mov.u64 %rd0, 0;\ncall f, (%rd0);\nret;\n}\n"
                   ".visible .entry none()\n{\nret;\n}\n");
    assert_int_equal(ws_ptx_texture(m), 0);
    assert_int_equal(ws_ptx_find_func(m, "any")->maxntid[0], 1024);
    assert_int_equal(ws_ptx_find_func(m, "any")->maxntid[1], 1);
    assert_int_equal(ws_ptx_find_func(m, "own")->maxntid[0], 256);
    assert_int_equal(ws_ptx_find_func(m, "own")->maxntid[1], 2);
    assert_int_equal(ws_ptx_find_func(m, "none")->maxntid[0], 0);
    check_sound(m);
    ws_ptx_module_free(m);
}

/* A program may have functions of these names; one whose instruction can't be replaced stays as it
 * was, and the others don't. */
static void test_names_and_refusals(void **state)
{
    struct ws_ptx_module *m =
        parse(HEAD ".func ws$tex()\n{\nret;\n}\n.func ws$tex_1()\n{\nret;\n}\n"
                   ".visible .entry asks(.param .u64 p)\n{\n" REGS
                   "ld.param.u64 %rd0, [p];\nistypep.texref %p0, %rd0;\n" /* and one that can be */
                   "tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%rd0, {%r0}];\nret;\n}\n"
                   ".visible .entry offset(.param .u64 p)\n{\n" REGS "ld.param.u64 %rd0, [p];\n"
                   "tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%rd0, {%r0}], %r1;\nret;\n}\n"
                   ".visible .entry good(.param .u64 p)\n{\n" REGS "ld.param.u64 %rd0, [p];\n"
                   "tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%rd0, {%r0}];\nret;\n}\n");
    assert_int_equal(ws_ptx_texture(m), 0);
    assert_true(has_texop(ws_ptx_find_func(m, "asks")));
    assert_int_equal(ws_ptx_find_func(m, "asks")->n_insns, 4);
    assert_true(has_texop(ws_ptx_find_func(m, "offset")));
    assert_false(has_texop(ws_ptx_find_func(m, "good")));
    assert_non_null(ws_ptx_find_func(m, "ws$tex_0"));
    assert_int_equal(ws_ptx_find_func(m, "ws$tex")->n_insns, 1);
    check_sound(m);
    ws_ptx_module_free(m);
}

static void test_memory_runs_out(void **state)
{
    static const char text[] = HEAD ".global .texref ref;\n.visible .entry k()\n{\n" REGS
                                    "@%p0 txq.width.b32 %r0, [ref];\nmov.b64 %rd0, ref;\nret;\n}\n";
    int failures = 0, r = -1;
    for (uint64_t n = 1; n < 5000 && r; n++) {
        struct ws_ptx_module *m = parse(text);
        ws_alloc_fail_after(n);
        r = ws_ptx_texture(m);
        ws_alloc_fail_after(0);
        failures += r != 0;
        if (r)
            assert_int_equal(r, -ENOMEM);
        ws_ptx_module_free(m);
    }
    assert_int_equal(r, 0);
    assert_true(failures > 20);
}

static int print_all(void)
{
    struct ws_ptx_module *m;
    char *text = all_forms(true);
    int r = ws_ptx_parse(&m, text, strlen(text), NULL, NULL);
    free(text);
    if (r || ws_ptx_texture(m))
        return 1;
    uint32_t fenced, looping;
    if (ws_ptx_fence(m, 0, &fenced) || ws_ptx_rewrite(m, fenced, WS_REWRITE_PERSISTENT, &looping))
        return 1;
    m->funcs[0].n_insns = m->funcs[0].n_labels = 0;
    m->funcs[fenced].n_insns = m->funcs[fenced].n_labels = 0;
    r = ws_ptx_print(m, stdout);
    ws_ptx_module_free(m);
    return r ? 1 : 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_forms),       cmocka_unit_test(test_text),
        cmocka_unit_test(test_registers),       cmocka_unit_test(test_names_and_refusals),
        cmocka_unit_test(test_memory_runs_out),
    };
    return argc > 1 ? print_all() : cmocka_run_group_tests(tests, NULL, NULL);
}
