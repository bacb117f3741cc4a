// SPDX-License-Identifier: Apache-2.0
/* ptx: what the parser makes of a text, field by field; fixtures check the breadth, this the
 * meaning. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/clock.h"
#include "ptx/ptx.h"
#include "tests/lib/cpu_time.h"

struct fixture {
    struct ws_ptx_module *m, *m2;
    struct ws_diags diags;
    char *text;
    struct ws_arena arena;
};

static int setup(void **state)
{
    *state = calloc(1, sizeof(struct fixture));
    return *state ? 0 : -1;
}

static int teardown(void **state)
{
    struct fixture *x = *state;
    ws_alloc_fail_after(0);
    ws_ptx_module_free(x->m);
    ws_ptx_module_free(x->m2);
    ws_diags_deinit(&x->diags);
    ws_arena_deinit(&x->arena);
    free(x->text);
    free(x);
    return 0;
}

#define HEAD ".version 8.0\n.target sm_75\n.address_size 64\n"
#define KERNEL(body)                                                                               \
    HEAD ".visible .entry k(.param .u32 a, .param .align 8 .b8 s[12], .param .u64 p)\n{\n"         \
         ".reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .f32 %f<9>; .reg .f64 %g<9>;"    \
         ".reg .pred %p<9>;\n" body "\n}\n"

static const struct ws_ptx_func *parse(struct fixture *x, const char *text)
{
    int r = ws_ptx_parse(&x->m, text, strlen(text), "t.ptx", &x->diags);
    if (r) {
        x->text = ws_diags_text(&x->diags);
        print_error("%s", x->text);
    }
    assert_int_equal(r, 0);
    return ws_ptx_find_func(x->m, "k");
}

static void test_header_and_parameters(void **state)
{
    struct fixture *x = *state;
    const struct ws_ptx_func *f = parse(x, KERNEL("ret;"));
    assert_int_equal(x->m->version, 80);
    assert_int_equal(x->m->sm, 75);
    assert_string_equal(x->m->target, "sm_75");
    assert_int_equal(x->m->address_size, 64);
    assert_non_null(f);
    assert_true(f->is_entry && !f->is_decl);
    assert_int_equal(f->link, WS_LINK_VISIBLE);
    assert_int_equal(f->n_params, 3);
    assert_int_equal(f->params[0].param_offset, 0);
    assert_int_equal(f->params[1].param_offset, 8);
    assert_int_equal(f->params[1].size_bytes, 12);
    assert_int_equal(f->params[2].param_offset, 24);
    assert_int_equal(f->param_bytes, 32);
    assert_int_equal(f->n_regs, 0); /* none is used */
    assert_null(ws_ptx_find_func(x->m, "nothing"));
    assert_ptr_equal(ws_ptx_localvar(f, 2), &f->params[2]);
    assert_null(ws_ptx_localvar(f, 3));
}

static void test_modifiers_become_fields(void **state)
{
    struct fixture *x = *state;
    const struct ws_ptx_func *f =
        parse(x, KERNEL("cvt.rzi.ftz.s32.f32 %r1, %f2;"
                        "setp.geu.and.ftz.f32 %p1|%p2, %f1, %f2, !%p3;"
                        "atom.global.gpu.relaxed.add.u32 %r1, [%d1+-8], %r2;"
                        "ld.global.cg.v2.f64 {%g1, _}, [%d1];"
                        "vote.ballot.sync.b32 %r1, %p1, -1;"
                        "@!%p1 mul.wide.s32 %d1, %r1, 4;"
                        "mad.lo.cc.u32 %r1, %r2, %r3, %r4;"
                        "ld.shared::cta.L1::no_allocate.u32 %r1, [%d1];"
                        "bar.cta.sync 0;"
                        "ld.mmio.relaxed.sys.global.u32 %r1, [%d1];"
                        "cp.async.cg.shared.global [%d1], [%d2], 16;"));
    const struct ws_ptx_insn *i = f->insns;
    assert_int_equal(f->n_insns, 11);
    assert_int_equal(i[0].op, WS_OP_CVT);
    assert_int_equal(i[0].rnd, WS_RND_RZI);
    assert_int_equal(i[0].flags, WS_F_FTZ);
    assert_int_equal(i[0].n_types, 2);
    assert_int_equal(i[0].types[0], WS_T_S32);
    assert_int_equal(i[0].types[1], WS_T_F32);
    assert_int_equal(i[0].guard, -1);

    assert_int_equal(i[1].cmp, WS_CMP_GEU);
    assert_int_equal(i[1].sub, WS_SUB_AND);
    assert_int_equal(i[1].operands[0].kind, WS_OPD_PAIR);
    assert_string_equal(f->regs[i[1].operands[0].v[1].reg].name, "%p2");
    assert_int_equal(i[1].operands[3].neg, 1);

    assert_int_equal(i[2].sub, WS_SUB_ADD);
    assert_int_equal(i[2].space, WS_SP_GLOBAL);
    assert_int_equal(i[2].sem, WS_SEM_RELAXED);
    assert_int_equal(i[2].scope, WS_SCOPE_GPU);
    assert_int_equal(i[2].operands[1].kind, WS_OPD_ADDR);
    assert_int_equal(i[2].operands[1].imm, -8);
    assert_string_equal(f->regs[i[2].operands[1].reg].name, "%d1");

    assert_int_equal(i[3].vec, 2);
    assert_string_equal(ws_ptx_cache_names[i[3].cache - 1], "cg");
    assert_int_equal(i[3].operands[0].kind, WS_OPD_VEC);
    assert_int_equal(i[3].operands[0].n, 2);
    assert_int_equal(i[3].operands[0].v[1].kind, WS_OPD_SINK);

    assert_int_equal(i[4].op, WS_OP_VOTE);
    assert_int_equal(i[4].sub, WS_SUB_BALLOT);
    assert_int_equal(i[4].flags, WS_F_SYNC);

    assert_int_equal(i[5].sub, WS_SUB_WIDE);
    assert_string_equal(f->regs[i[5].guard].name, "%p1");
    assert_int_equal(i[5].guard_neg, 1);

    assert_int_equal(i[6].sub, WS_SUB_LO);
    assert_int_equal(i[6].flags, WS_F_CC);

    assert_int_equal(i[7].space, WS_SP_SHARED);
    assert_int_equal(i[7].flags, WS_F_SP_CTA);
    assert_string_equal(i[7].ext, ".L1::no_allocate");

    assert_int_equal(i[8].op, WS_OP_BAR_SYNC);
    assert_int_equal(i[9].sem, WS_SEM_MMIO);
    assert_int_equal(i[10].space, WS_SP_SHARED);
    assert_int_equal(i[10].space2, WS_SP_GLOBAL);
    assert_null(i[10].ext);
}

static void test_special_registers(void **state)
{
    static const struct {
        const char *text;
        int sreg, dim;
    } rows[] = {
        {"%tid.x", WS_SR_TID, 0},
        {"%ctaid.z", WS_SR_CTAID, 2},
        {"%laneid", WS_SR_LANEID, 0},
        {"%envreg31", WS_SR_ENVREG, 31},
        {"%pm7", WS_SR_PM, 7},
        {"WARP_SZ", WS_SR_WARPSZ, 0},
        {"%lanemask_lt", WS_SR_LANEMASK_LT, 0},
        {"%reserved_smem_offset_1", WS_SR_RESERVED_SMEM_OFFSET, 1},
        {"%clock", WS_SR_CLOCK, 0},
        {"%smid", WS_SR_SMID, 0},
        {"%nctaid.y", WS_SR_NCTAID, 1},
    };
    struct fixture *x = *state;
    for (size_t k = 0; k < WS_ARRAY_SIZE(rows); k++) {
        char text[200];
        snprintf(text, sizeof(text), HEAD ".entry k() { .reg .b32 x; mov.u32 x, %s; }",
                 rows[k].text);
        const struct ws_ptx_func *f = parse(x, text);
        assert_int_equal(f->insns[0].operands[1].kind, WS_OPD_SREG);
        assert_int_equal(f->insns[0].operands[1].sreg, rows[k].sreg);
        assert_int_equal(f->insns[0].operands[1].sreg_dim, rows[k].dim);
        x->m = ws_ptx_module_free(x->m);
    }
}

static void test_registers_of_a_range_cost_nothing_until_used(void **state)
{
    struct fixture *x = *state;
    const struct ws_ptx_func *f =
        parse(x, HEAD ".entry k() { .reg .b32 %x<2000000000>; .reg .b32 %x1<20>; mov.u32 "
                      "%x1999999999, %x17; mov.u32 %x17, %x3; }");
    assert_int_equal(f->n_regs, 3);
    assert_string_equal(f->regs[0].name, "%x1999999999");
    assert_string_equal(f->regs[2].name, "%x3");
    assert_true(x->m->arena.total_bytes < 64 * 1024);
}

static void test_immediates(void **state)
{
    static const struct {
        const char *text;
        enum ws_ptx_type type;
        uint64_t want;
    } rows[] = {
        {"0x10", WS_T_U32, 16},
        {"010", WS_T_U32, 8},
        {"0b101", WS_T_B64, 5},
        {"-1", WS_T_U16, 0xffff},
        {"-1", WS_T_U64, UINT64_MAX},
        {"0xFFFFFFFFFFFFFFFF", WS_T_U64, UINT64_MAX},
        {"42U", WS_T_U32, 42},
        {"0f3F800000", WS_T_F32, 0x3f800000},
        {"0f7FC01234", WS_T_F32, 0x7fc01234},
        {"0f3F800000", WS_T_F64, 0x3ff0000000000000},
        {"0d3FF0000000000000", WS_T_F64, 0x3ff0000000000000},
        {"0d3FF0000000000000", WS_T_F32, 0x3f800000},
        {"0d3FF0000000000000", WS_T_B64, 0x3ff0000000000000},
        {"0f3F800000", WS_T_B32, 0x3f800000},
        {"1.5", WS_T_F32, 0x3fc00000},
        {"-1.5e0", WS_T_F64, 0xbff8000000000000},
        {"-0f3F800000", WS_T_F32, 0xbf800000},
        {"1", WS_T_F32, 0x3f800000},
        {"1.0", WS_T_F16, 0x3c00},
        {"65504.0", WS_T_F16, 0x7bff},
        {"65520.0", WS_T_F16, 0x7c00},
        {"5.9604644775390625e-8", WS_T_F16, 1},
        {"1.0", WS_T_BF16, 0x3f80},
        {"-2.5", WS_T_F16, 0xc100},
        {"(1 << 4) | 3", WS_T_U32, 19},
        {"7 - 2 * 3", WS_T_S32, 1},
        {"-7 / 2", WS_T_S32, (uint32_t)-3},
        {"~0 >> 63", WS_T_U64, UINT64_MAX},
        {"0xFFFFFFFFFFFFFFFF >> 63", WS_T_U64, 1},
        {"3 > 2 ? 10 : 20", WS_T_U32, 10},
        {"!3", WS_T_U32, 0},
        {"(.u64)-1 / 2", WS_T_U64, INT64_MAX},
        {"1 == 1 && 2 <= 1 || 5 != 4", WS_T_U32, 1},
    };
    struct fixture *x = *state;
    for (size_t k = 0; k < WS_ARRAY_SIZE(rows); k++) {
        char text[200];
        snprintf(text, sizeof(text), HEAD ".entry k() { .reg .b64 d; mov.b64 d, %s; }",
                 rows[k].text);
        const struct ws_ptx_func *f = parse(x, text);
        uint64_t got = ws_ptx_imm_as(&f->insns[0].operands[1], rows[k].type);
        if (got != rows[k].want)
            print_error("%s as .%s\n", rows[k].text, ws_ptx_type_name(rows[k].type));
        assert_int_equal(got, rows[k].want);
        x->m = ws_ptx_module_free(x->m);
    }
}

static void test_initial_values(void **state)
{
    struct fixture *x = *state;
    static const uint32_t grid[] = {1, 2, 0, 0, 3, 0, 0, 0, 9, 8};
    parse(x, HEAD ".func f();\n.global .u32 g[3][4] = {1, 2, {3}, {9, 8}};\n.global .u64 a[3] = "
                  "{0, g + 4, f};\n"
                  ".global .u8 b[5] = {7, 0xFF00(generic(g)+2)};\n.global .b8 open[] = {1, 2, "
                  "0};\n.extern .shared .b8 dyn[];");
    const struct ws_ptx_var *v = x->m->vars;
    assert_int_equal(v[0].size_bytes, 48);
    assert_int_equal(v[0].init_bytes, sizeof(grid) - 3); /* trailing zeros are left out */
    assert_memory_equal(v[0].init, grid, v[0].init_bytes);
    assert_int_equal(v[1].n_init_syms, 2);
    assert_int_equal(v[1].init_syms[0].offset, 8);
    assert_int_equal(v[1].init_syms[0].addend, 4);
    assert_int_equal(v[1].init_syms[0].sym, WS_PTX_SYM_VAR | 0);
    assert_int_equal(v[1].init_syms[0].bytes, 8);
    assert_int_equal(v[1].init_syms[1].sym, WS_PTX_SYM_FUNC | 0);
    assert_true(v[2].init_syms[0].masked && v[2].init_syms[0].generic);
    assert_int_equal(v[2].init_syms[0].shift, 8);
    assert_int_equal(v[2].init_syms[0].offset, 1);
    assert_int_equal(v[3].size_bytes, 3);
    assert_int_equal(v[3].n_elems, 3);
    assert_int_equal(v[4].size_bytes, 0);
    assert_int_equal(v[4].link, WS_LINK_EXTERN);
}

static void test_blocks_are_flattened(void **state)
{
    struct fixture *x = *state;
    const struct ws_ptx_func *f = parse(
        x, HEAD ".entry k() { .reg .pred p;\n"
                "{ .param .b32 q; .reg .b32 r; st.param.b32 [q], r; l: @p bra l; @p bra end; }\n"
                "{ .param .b32 q; .reg .b32 r; st.param.b32 [q], r; l: @p bra l; }\n"
                "end: ret; }");
    assert_int_equal(f->n_vars, 2);
    assert_string_equal(f->vars[0].name, "q");
    assert_string_equal(f->vars[1].name, "q$1");
    assert_int_equal(f->insns[0].operands[0].sym, WS_PTX_SYM_LOCALVAR | 0);
    assert_int_equal(f->insns[3].operands[0].sym, WS_PTX_SYM_LOCALVAR | 1);
    assert_int_not_equal(f->insns[0].operands[1].reg, f->insns[3].operands[1].reg);
    assert_int_equal(f->n_labels, 3);
    assert_int_equal(f->labels[f->insns[1].operands[0].label].insn, 1);
    assert_int_equal(f->labels[f->insns[4].operands[0].label].insn, 4);
    assert_int_equal(f->labels[f->insns[2].operands[0].label].insn, 5);
    assert_string_equal(f->labels[1].name, "l$1");
}

/* Moved to the top of the body, a declaration must not hide what the body means elsewhere. */
static void test_declarations_do_not_hide_the_module(void **state)
{
    struct fixture *x = *state;
    const struct ws_ptx_func *f =
        parse(x, HEAD ".global .u32 a, b, c;\n.entry k() { .reg .b64 d; .reg .b32 a; mov.u64 d, b; "
                      ".reg .b32 b; mov.b32 b, a;\n"
                      "{ .reg .b32 c; mov.b32 c, b; }\nmov.u64 d, c; }");
    const struct ws_ptx_insn *i = f->insns;
    assert_int_equal(i[0].operands[1].sym, WS_PTX_SYM_VAR | 1);
    assert_string_equal(f->regs[i[1].operands[0].reg].name, "b$1");
    assert_string_equal(f->regs[i[1].operands[1].reg].name,
                        "a"); /* nothing meant the module's before */
    assert_string_equal(f->regs[i[2].operands[0].reg].name, "c$1");
    assert_int_equal(i[3].operands[1].sym, WS_PTX_SYM_VAR | 2);
}

static void test_calls(void **state)
{
    struct fixture *x = *state;
    const struct ws_ptx_func *f = parse(
        x, HEAD
        ".func (.param .b32 r) f(.param .b32 a);\n.func (.reg .u32 o) g(.reg .u32 i) { add.u32 o, "
        "i, 1; ret; }\n"
        ".entry k() { .reg .b64 d; .reg .b32 b; .param .b32 q, z;\nst.param.b32 [q], 1;\n"
        "call.uni (z), f, (q);\ncall (b), g, (3);\nmov.u64 d, f;\n"
        "pr: .callprototype (.param .b32 _) _ (.param .b32 _);\ncall (z), d, (q), pr;\nret; }");
    const struct ws_ptx_call *c = f->insns[1].call;
    assert_int_equal(f->insns[1].flags, WS_F_UNI);
    assert_int_equal(c->callee.sym, WS_PTX_SYM_FUNC | 0);
    assert_int_equal(c->n_rets, 1);
    assert_int_equal(c->args[0].sym, WS_PTX_SYM_LOCALVAR | 0);
    assert_int_equal(c->proto, -1);
    c = f->insns[2].call;
    assert_int_equal(c->rets[0].kind, WS_OPD_REG);
    assert_int_equal(c->args[0].imm, 3);
    c = f->insns[4].call;
    assert_int_equal(c->callee.kind, WS_OPD_REG);
    assert_string_equal(f->protos[c->proto].name, "pr");
    const struct ws_ptx_func *g = ws_ptx_find_func(x->m, "g");
    assert_int_equal(g->params[0].space, WS_SP_REG);
    assert_int_equal(g->insns[0].operands[1].reg, g->params[0].reg);
    assert_int_equal(g->insns[0].operands[0].reg, g->rets[0].reg);
}

/* Triton writes one element in braces; it is no vector then, and printed without them. */
static void test_a_vector_of_one_element(void **state)
{
    struct fixture *x = *state;
    char buf[100];
    const struct ws_ptx_func *f =
        parse(x, KERNEL("ld.global.b32 { %r1 }, [ %d1 + 4 ]; @%p1 st.global.b32 [%d1], {%r2};"
                        "atom.global.add.u32 {%r3}, [%d1], {%r4};"));
    assert_int_equal(f->insns[0].operands[0].kind, WS_OPD_REG);
    assert_int_equal(f->insns[0].vec, 0);
    ws_ptx_insn_text(x->m, f, &f->insns[1], buf, sizeof(buf));
    assert_string_equal(buf, "@%p1 st.global.b32 [%d1], %r2;");
    ws_ptx_insn_text(x->m, f, &f->insns[2], buf, sizeof(buf));
    assert_string_equal(buf, "atom.global.add.u32 %r3, [%d1], %r4;");
}

static void test_branch_tables(void **state)
{
    struct fixture *x = *state;
    const struct ws_ptx_func *f = parse(
        x, KERNEL("t: .branchtargets A, B, A;\nbrx.idx %r1, t;\nA: mov.u32 %r1, 1;\nB: ret;"));
    const struct ws_ptx_operand *o = &f->insns[0].operands[1];
    assert_int_equal(o->n, 3);
    assert_int_equal(f->labels[o->v[0].label].insn, 1);
    assert_int_equal(f->labels[o->v[1].label].insn, 2);
    assert_int_equal(f->labels[o->v[2].label].insn, 1);
}

static void test_instruction_text(void **state)
{
    struct fixture *x = *state;
    char buf[100], small[8];
    const struct ws_ptx_func *f =
        parse(x, KERNEL("@!%p1 ld.global.nc.v2.f32 {%f1, %f2}, [%d1+16];"
                        "min.f32.xorsign.abs.ftz.NaN %f1, %f2, -0f3F800000;"));
    ws_ptx_insn_text(x->m, f, f->insns, buf, sizeof(buf));
    assert_string_equal(buf, "@!%p1 ld.global.nc.v2.f32 {%f1, %f2}, [%d1+16];");
    ws_ptx_insn_text(x->m, f, &f->insns[1], buf, sizeof(buf));
    assert_string_equal(buf, "min.ftz.NaN.xorsign.abs.f32 %f1, %f2, 0fBF800000;");
    ws_ptx_insn_text(x->m, f, f->insns, small, sizeof(small));
    assert_true(strlen(small) < sizeof(small));
}

/* Compilers write .file behind the kernels. */
static void test_places_in_the_source(void **state)
{
    struct fixture *x = *state;
    char buf[64], small[22];
    const struct ws_ptx_func *f =
        parse(x, KERNEL("mov.u32 %r1, 1;\n.loc 1 7 5\nmov.u32 %r1, 2;\n"
                        ".loc 2 12 3, function_name $L__info_string0, inlined_at 1 9 5\n"
                        "mov.u32 %r1, 3;\n.loc 1 0 0\nmov.u32 %r1, 4;\n"
                        ".loc 4097 3 0\nmov.u32 %r1, 5;\n.loc 3 8 0\nmov.u32 %r1, 6;") //
              ".visible .entry l()\n{\nret;\n}\n"
              ".file 1 \"/home/a/sum.cu\"\n.file 2 \"c\td.h\", 1711, 23\n.file 2 \"e.h\"\n"
              ".file 4097 \"f.h\"\n.file 4000000000 \"g.h\"\n");
    static const char *const want[] = {"PTX line 7",
                                       "/home/a/sum.cu:7 (PTX line 9)",
                                       "c?d.h:12 (PTX line 11)",
                                       "PTX line 13",
                                       "PTX line 15",
                                       "PTX line 17"};
    for (size_t k = 0; k < WS_ARRAY_SIZE(want); k++) {
        ws_ptx_insn_place(&f->insns[k], buf, sizeof(buf));
        assert_string_equal(buf, want[k]);
    }
    ws_ptx_insn_place(&f->insns[1], small, sizeof(small));
    assert_string_equal(small, "sum.cu:7 (PTX line 9)");
    ws_ptx_insn_place(&f->insns[1], small, 8);
    assert_string_equal(small, "sum.cu:");
    ws_ptx_insn_place(ws_ptx_find_func(x->m, "l")->insns, buf, sizeof(buf));
    assert_string_equal(buf, "PTX line 21");
}

static void test_mix(void **state)
{
    struct fixture *x = *state;
    static const enum ws_ptx_mix want[] = {WS_MIX_FP32, WS_MIX_INT,  WS_MIX_FP64, WS_MIX_SFU,
                                           WS_MIX_LDST, WS_MIX_ATOM, WS_MIX_CTRL, WS_MIX_FP32};
    const struct ws_ptx_func *f = parse(
        x, KERNEL("add.f32 %f1, %f2, %f3; add.u32 %r1, %r2, %r3; fma.rn.f64 %g1, %g2, %g3, %g4;"
                  "sin.approx.f32 %f1, %f2; ld.global.u32 %r1, [%d1]; atom.add.u32 %r1, [%d1], 1;"
                  "ret; set.lt.u32.f32 %r1, %f1, %f2;"));
    for (size_t k = 0; k < WS_ARRAY_SIZE(want); k++)
        assert_int_equal(ws_ptx_insn_mix(&f->insns[k]), want[k]);
}

static void test_validate_finds_what_a_pass_breaks(void **state)
{
    struct fixture *x = *state;
    parse(x,
          KERNEL("L: add.u32 %r1, %r2, %r3; @%p1 bra L; ld.u32 %r1, [%d1]; mov.u64 %d1, k; ret;"));
    struct ws_ptx_func *f = &x->m->funcs[0];
    struct ws_ptx_insn *i = f->insns;
    const struct {
        int32_t *at, wrong;
    } ints[] = {
        {&i[0].operands[1].reg, 99},
        {&i[0].operands[1].reg, -1},
        {&i[1].operands[0].label, 1},
        {&i[1].guard, 0},
        {&i[1].guard, 1000},
        {&i[2].operands[1].reg, 77},
        {&i[3].operands[1].sym, WS_PTX_SYM_FUNC | 1},
        {&i[3].operands[1].sym, WS_PTX_SYM_LOCALVAR | 3},
    };
    assert_int_equal(ws_ptx_validate(x->m, NULL, NULL), 0);
    for (size_t k = 0; k < WS_ARRAY_SIZE(ints); k++) {
        int32_t old = *ints[k].at;
        *ints[k].at = ints[k].wrong;
        assert_int_equal(ws_ptx_validate(x->m, NULL, &x->diags), WS_PTX_E_SYNTAX);
        *ints[k].at = old;
    }
    i[0].op = _WS_OP_N;
    assert_int_equal(ws_ptx_validate(x->m, NULL, NULL), WS_PTX_E_SYNTAX);
    i[0].op = WS_OP_SHL;
    assert_int_equal(ws_ptx_validate(x->m, NULL, NULL), WS_PTX_E_SYNTAX); /* not on .u32 */
    i[0].op = WS_OP_ADD;
    f->labels[0].insn = 100;
    assert_int_equal(ws_ptx_validate(x->m, NULL, NULL), WS_PTX_E_SYNTAX);
}

/* Any change to the text that changes its meaning must make another module. */
static void test_equal_sees_every_difference(void **state)
{
    static const char base[] = ".version 8.0\n.target sm_75\n.address_size 64\n.global .align 4 "
                               ".u32 g[2] = {1, 2};\n.global .u64 q = g+4;\n"
                               ".func (.param .b32 r) f(.param .b32 i);\n.visible .entry k(.param "
                               ".u64 a) .maxntid 64, 1, 1\n{\n.reg .b32 %r<9>;\n"
                               ".reg .pred %p<3>;\n.shared .u32 s[3];\n.param .b32 z, y;\nadd.s32 "
                               "%r1, %r2, 7;\n@%p1 ld.global.u32 %r1, [g+4];\nL:\n"
                               "call (z), f, (y);\n.pragma \"x\";\ncvt.rn.f32.s32 %r1, "
                               "%r2;\nmov.u32 %r1, %tid.x;\nbra L;\nN: bra N;\n}\n";
    static const struct {
        const char *from, *to;
    } rows[] = {
        {".version 8.0", ".version 8.1"},
        {"sm_75", "sm_80"},
        {"_size 64", "_size 32"},
        {"sm_75", "sm_75a"},
        {".align 4 ", ".align 8 "},
        {"{1, 2}", "{1, 3}"},
        {"{1, 2}", "{1}"},
        {"g[2]", "g[3]"},
        {"g[2]", "g[2][1]"},
        {"g+4;", "g+8;"},
        {"= g+4", "= generic(g)+4"},
        {".visible ", ".weak "},
        {".u64 a)", ".b64 a)"},
        {"64, 1, 1", "32, 1, 1"},
        {"s[3]", "s[4]"},
        {"%r2, 7", "%r3, 7"},
        {"%r2, 7", "%r2, 8"},
        {"add.s32", "add.u32"},
        {"add.s32", "add.sat.s32"},
        {"add.s32", "sub.s32"},
        {"@%p1", "@!%p1"},
        {"@%p1", "@%p2"},
        {"@%p1", ""},
        {"[g+4]", "[g+8]"},
        {"ld.global", "ld.volatile.global"},
        {"ld.global", "ld"},
        {"ld.global", "ld.global.cg"},
        {"ld.global", "ld.global.L1::x"},
        {"(y)", "(z)"},
        {"(z), f", "(y), f"},
        {"\"x\"", "\"y\""},
        {".rn.f32", ".rz.f32"},
        {"tid.x", "tid.y"},
        {"tid.x", "ntid.x"},
        {"bra L", "bra N"},
        {"L:", "M: L:"},
        {"bra N;", "bra N; ret;"},
        {".u32 s[", ".b32 s["},
        {".param .b32 z, y", ".param .b32 y, z"},
    };
    struct fixture *x = *state;
    assert_int_equal(ws_ptx_parse(&x->m, base, strlen(base), "t", &x->diags), 0);
    for (size_t k = 0; k < WS_ARRAY_SIZE(rows); k++) {
        char changed[sizeof(base) + 40];
        const char *at = strstr(base, rows[k].from);
        assert_non_null(at);
        snprintf(changed, sizeof(changed), "%.*s%s%s", (int)(at - base), base, rows[k].to,
                 at + strlen(rows[k].from));
        if (ws_ptx_parse(&x->m2, changed, strlen(changed), "t", &x->diags)) {
            x->text = ws_diags_text(&x->diags);
            fail_msg("'%s': %s", rows[k].to, x->text);
        }
        if (ws_ptx_module_equal(x->m, x->m2))
            fail_msg("'%s' or '%s' is all the same", rows[k].from, rows[k].to);
        x->m2 = ws_ptx_module_free(x->m2);
    }
    assert_int_equal(ws_ptx_parse(&x->m2, base, strlen(base), "t", &x->diags), 0);
    assert_true(ws_ptx_module_equal(x->m, x->m2));
}

static void test_every_allocation_may_fail(void **state)
{
    struct fixture *x = *state;
    static const char text[] =
        HEAD ".global .u32 g[2] = {1, 2};\n.func f(.param .b32 a);\n.entry k() { .reg .b32 %r<4>; "
             ".reg .pred p;\n"
             ".shared .u32 s; { .param .b32 q; st.param.b32 [q], %r1; call f, (q); }\n"
             "L: mov.b32 %r1, {%r2, %r3};\n@p bra L;\n.pragma \"a\";\nld.L1::b.u32 %r1, [s];\n}";
    int r = -ENOMEM;
    /* mov's types are wrong, so that diagnostics are made, too */
    for (uint64_t n = 1; n < 100000 && r == -ENOMEM; n++) {
        ws_alloc_fail_after(n);
        r = ws_ptx_parse(&x->m, text, sizeof(text) - 1, "t", &x->diags);
        assert_null(x->m);
        assert_true(r == -ENOMEM || r == WS_PTX_E_SYNTAX);
    }
    ws_alloc_fail_after(0);
    assert_int_equal(r, WS_PTX_E_SYNTAX);
}

/* Repeats @unit n times inside a kernel. */
static char *repeat(const char *before, const char *unit, size_t n, const char *after,
                    size_t *ret_len)
{
    size_t a = strlen(before), u = strlen(unit), b = strlen(after);
    char *t = malloc(a + n * u + b + 1), *p = t;
    assert_non_null(t);
    memcpy(p, before, a);
    for (p += a; n--; p += u)
        memcpy(p, unit, u);
    memcpy(p, after, b + 1);
    *ret_len = p - t + b;
    return t;
}

static void test_hostile_texts_stay_small_and_quick(void **state)
{
    static const struct {
        const char *before, *unit, *after;
        int want;
    } rows[] = {
        {HEAD ".entry k() {", "{", "", WS_PTX_E_UNSUPPORTED},
        {HEAD ".entry k() { .reg .b32 x; mov.u32 x, ", "(", ";}", WS_PTX_E_UNSUPPORTED},
        {HEAD ".entry k() { .reg .b32 x; mov.u32 x, ", "-", "1;}", WS_PTX_E_UNSUPPORTED},
        {HEAD ".entry k() { .reg .b32 x; ld.u32 x, ", "[", ";}", WS_PTX_E_SYNTAX},
        {HEAD ".entry k() { .reg .b32 x; mov.u32 x, ", "{", ";}", WS_PTX_E_SYNTAX},
        {HEAD ".entry k() { .reg .b32 x; add", ".x", " x;}", WS_PTX_E_SYNTAX},
        {HEAD ".entry k() {", "{ .reg .b32 x; mov.u32 x, 1; l: bra l; }", "}", 0},
        {HEAD ".entry k() { .reg .pred p; ", "l$1: ", "}", WS_PTX_E_SYNTAX},
        {HEAD ".entry k() {", "@@@@", "}", WS_PTX_E_SYNTAX},
        {HEAD, ".global .u8 x[999][999][999][999] = {{{{1}}},{{{1}}}};", "", WS_PTX_E_UNSUPPORTED},
        {HEAD ".global .u8 x = ", "1+", "1;", 0},
        {HEAD ".global .u8 x[9999999] = {", "1,", "1};", 0},
        {HEAD ".entry k() { ", ".pragma \"x\";", "ret; }", WS_PTX_E_UNSUPPORTED},
        {HEAD ".entry k() { ", "ret;", "}", 0},
        {HEAD, "/*", "", WS_PTX_E_SYNTAX},
        {HEAD, "\"", "", WS_PTX_E_SYNTAX},
        {HEAD ".entry k() { .reg .b32 %r<99>; ", "mov.u32 %r12, %r", "1; }", WS_PTX_E_SYNTAX},
    };
    struct fixture *x = *state;
    for (size_t k = 0; k < WS_ARRAY_SIZE(rows); k++) {
        size_t len;
        free(x->text);
        x->text = repeat(rows[k].before, rows[k].unit, 100000 / strlen(rows[k].unit), rows[k].after,
                         &len);
        uint64_t start = cpu_ns();
        int r = ws_ptx_parse(&x->m, x->text, len, "t", &x->diags);
        uint64_t ms = (cpu_ns() - start) / WS_NS_PER_MS;
        if (r != rows[k].want || ms > 1000)
            print_error("%s…: %d after %u ms\n", rows[k].unit, r, (unsigned)ms);
        assert_int_equal(r, rows[k].want);
        assert_true(ms < 1000); /* 100 kB; the sanitizers included */
        if (!r)
            assert_true(x->m->arena.total_bytes < 100 * len);
        x->m = ws_ptx_module_free(x->m);
    }
}

int main(int argc, char **argv)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_header_and_parameters),
        T(test_modifiers_become_fields),
        T(test_special_registers),
        T(test_registers_of_a_range_cost_nothing_until_used),
        T(test_immediates),
        T(test_initial_values),
        T(test_blocks_are_flattened),
        T(test_declarations_do_not_hide_the_module),
        T(test_equal_sees_every_difference),
        T(test_calls),
        T(test_a_vector_of_one_element),
        T(test_branch_tables),
        T(test_instruction_text),
        T(test_places_in_the_source),
        T(test_mix),
        T(test_validate_finds_what_a_pass_breaks),
        T(test_every_allocation_may_fail),
        T(test_hostile_texts_stay_small_and_quick),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
