// SPDX-License-Identifier: Apache-2.0
/* The linker: what each kind of symbol does across modules, told by printing the result and parsing
 * it again; and its errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/link_image.h"
#include "ptx/ptx.h"

#define HEAD ".version 8.0\n.target sm_75\n.address_size 64\n"

struct fix {
    struct ws_ptx_module *m;
    struct ws_diags diags;
    char *log, *text;
    size_t text_bytes;
};

static int setup(void **state)
{
    *state = calloc(1, sizeof(struct fix));
    return *state ? 0 : -1;
}

static void clear(struct fix *f)
{
    f->m = ws_ptx_module_free(f->m);
    ws_diags_deinit(&f->diags);
    free(f->log);
    free(f->text);
    *f = (struct fix){0};
}

static int teardown(void **state)
{
    clear(*state);
    free(*state);
    return 0;
}

/* Links texts named a.ptx, b.ptx, …; the log and, on success, the printed module are in @f. */
static int link_texts(struct fix *f, unsigned flags, size_t n, const char *const *texts)
{
    static const char *const names[] = {"a.ptx", "b.ptx", "c.ptx"};
    struct ws_ptx_link_part parts[3];
    clear(f);
    for (size_t k = 0; k < n; k++) {
        parts[k].name = names[k];
        if (ws_ptx_parse(&parts[k].m, texts[k], strlen(texts[k]), names[k], &f->diags)) {
            f->log = ws_diags_text(&f->diags);
            fail_msg("%s", f->log);
        }
    }
    int r = ws_ptx_link(&f->m, parts, n, flags, &f->diags);
    f->log = ws_diags_text(&f->diags);
    if (r)
        return r;
    FILE *out = open_memstream(&f->text, &f->text_bytes);
    assert_int_equal(ws_ptx_print(f->m, out), 0);
    fclose(out);
    return 0;
}
#define LINK(f, flags, ...)                                                                        \
    link_texts(f, flags, sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *),                   \
               (const char *[]){__VA_ARGS__})

static void must_link(struct fix *f, int r)
{
    if (r)
        fail_msg("link gave %d: %s", r, f->log);
    /* what is printed parses, validates, and is the same */
    struct ws_ptx_module *again;
    struct ws_diags d = WS_DIAGS_NULL;
    r = ws_ptx_parse(&again, f->text, strlen(f->text), "printed", &d);
    char *log = ws_diags_text(&d);
    if (r)
        fail_msg("%s\n%s", log, f->text);
    assert_true(ws_ptx_module_equal(f->m, again));
    free(log);
    ws_diags_deinit(&d);
    ws_ptx_module_free(again);
}

static void must_say(const struct fix *f, const char *what)
{
    if (!strstr(f->log, what))
        fail_msg("'%s' is not in the log: %s", what, f->log);
}

static const struct ws_ptx_var *var(const struct fix *f, const char *name)
{
    for (uint32_t k = 0; k < f->m->n_vars; k++)
        if (!strcmp(f->m->vars[k].name, name))
            return &f->m->vars[k];
    fail_msg("no variable %s in\n%s", name, f->text);
    return NULL;
}

static unsigned count(const char *text, const char *what)
{
    unsigned n = 0;
    for (; (text = strstr(text, what)); text++)
        n++;
    return n;
}

#define USES_F                                                                                     \
    HEAD ".extern .func (.param .b32 r) f(.param .b32 a);\n"                                       \
         ".visible .entry k(.param .u64 o)\n{\n.reg .b32 %r<3>; .reg .b64 %rd<2>;\n"               \
         "{ .param .b32 a; .param .b32 r; st.param.b32 [a], 5; call (r), f, (a); "                 \
         "ld.param.b32 %r1, [r]; }\nld.param.u64 %rd1, [o]; st.global.u32 [%rd1], %r1; ret;\n}\n"
#define HAS_F                                                                                      \
    HEAD ".visible .func (.param .b32 r) f(.param .b32 a)\n{\n.reg .b32 %r<3>;\n"                  \
         "ld.param.b32 %r1, [a]; add.s32 %r2, %r1, 1; st.param.b32 [r], %r2; ret;\n}\n"

static void test_extern_meets_definition(void **state)
{
    struct fix *f = *state;
    for (int order = 0; order < 2; order++) {
        must_link(f, order ? LINK(f, WS_PTX_LINK_STRICT, HAS_F, USES_F)
                           : LINK(f, WS_PTX_LINK_STRICT, USES_F, HAS_F));
        assert_int_equal(f->m->n_funcs, 2);
        const struct ws_ptx_func *k = ws_ptx_find_func(f->m, "k"), *g = ws_ptx_find_func(f->m, "f");
        assert_false(g->is_decl);
        assert_int_equal(g->link, WS_LINK_VISIBLE);
        const struct ws_ptx_call *c = NULL;
        for (uint32_t i = 0; i < k->n_insns; i++)
            if (k->insns[i].op == WS_OP_CALL)
                c = k->insns[i].call;
        assert_non_null(c);
        assert_int_equal(c->callee.sym, WS_PTX_SYM_FUNC | (int32_t)(g - f->m->funcs));
    }
}

static void test_variables_meet(void **state)
{
    struct fix *f = *state;
    must_link(f,
              LINK(f, WS_PTX_LINK_STRICT,
                   HEAD ".extern .global .align 4 .b8 table[16];\n.extern .const .align 8 .u64 c;\n"
                        ".visible .global .u64 at = table;\n.extern .shared .b8 s[];\n"
                        ".visible .entry k()\n{\n.reg .b64 %rd<3>; mov.u64 %rd1, table; "
                        "ld.const.u64 %rd2, [c]; mov.u64 %rd1, s; ret;\n}\n",
                   HEAD ".visible .global .align 16 .u32 table[4] = {1, 2, 3, 4};\n"
                        ".visible .const .u64 c = 7;\n.extern .shared .align 16 .b8 s[];\n"
                        ".visible .entry j()\n{\n.reg .b64 %rd<3>; mov.u64 %rd1, s; ret;\n}\n"));
    const struct ws_ptx_var *t = var(f, "table"), *at = var(f, "at");
    assert_int_equal(t->init_bytes, 13); /* zeros at the end are not kept */
    assert_int_equal(t->align, 16);
    assert_int_equal(t->link, WS_LINK_VISIBLE);
    assert_int_equal(at->n_init_syms, 1);
    assert_int_equal(at->init_syms[0].sym, t - f->m->vars);
    assert_int_equal(f->m->n_vars, 4); /* one s */
    assert_int_equal(var(f, "s")->align, 16);
}

static void test_locals_are_kept_apart(void **state)
{
    struct fix *f = *state;
#define PART(kernel, value)                                                                        \
    HEAD ".global .u32 x = " value ";\n.func (.param .b32 r) g() { .reg .b32 %r<2>; "              \
         "ld.global.u32 %r1, [x]; st.param.b32 [r], %r1; ret; }\n.visible .entry " kernel          \
         "(.param .u64 o)\n{\n.reg .b32 %r<2>; .reg .b64 %rd<2>; { .param .b32 v; call (v), g; "   \
         "ld.param.b32 %r1, [v]; } ld.param.u64 %rd1, [o]; st.global.u32 [%rd1], %r1; ret;\n}\n"
    must_link(f, LINK(f, 0, PART("k", "11"), PART("j", "22"), PART("i", "33")));
    assert_int_equal(f->m->n_vars, 3);
    static const char *const vars[] = {"x", "x$1", "x$2"}, *const funcs[] = {"g", "g$1", "g$2"};
    for (int k = 0; k < 3; k++) {
        const struct ws_ptx_func *g = ws_ptx_find_func(f->m, funcs[k]);
        assert_int_equal(var(f, vars[k])->init[0], 11 * (k + 1));
        assert_non_null(g);
        for (uint32_t i = 0; i < g->n_insns; i++)
            if (g->insns[i].op == WS_OP_LD)
                assert_int_equal(g->insns[i].operands[1].sym, var(f, vars[k]) - f->m->vars);
    }
}

static void test_a_shared_name_comes_before_a_local_one(void **state)
{
    struct fix *f = *state;
    must_link(f, LINK(f, 0, HEAD ".global .u32 x = 1;\n", HEAD ".visible .global .u32 x = 2;\n"));
    assert_int_equal(var(f, "x")->init[0], 2);
    assert_int_equal(var(f, "x$1")->init[0], 1);
}

static void test_weak_and_common(void **state)
{
    struct fix *f = *state;
    must_link(f, LINK(f, WS_PTX_LINK_STRICT,
                      HEAD ".weak .global .u32 w = 1;\n.common .global .b8 c[4];\n"
                           ".weak .func t() { ret; }\n.weak .entry e() { call t; ret; }\n",
                      HEAD ".weak .global .u32 w = 2;\n.common .global .b8 c[64];\n"
                           ".weak .func t() { ret; }\n.weak .entry e() { call t; ret; }\n",
                      HEAD ".visible .global .u32 w = 3;\n.common .global .b8 c[8];\n"));
    assert_int_equal(var(f, "w")->init[0], 3);
    assert_int_equal(var(f, "c")->size_bytes, 64);
    assert_int_equal(f->m->n_funcs, 2);
    assert_int_equal(count(f->text, ".entry e"), 2); /* head and body of one */
}

static void test_function_pointers(void **state)
{
    struct fix *f = *state;
    must_link(f,
              LINK(f, WS_PTX_LINK_STRICT,
                   HEAD ".extern .global .align 8 .b8 table[16];\n.visible .entry k()\n{\n"
                        ".reg .b64 %rd<3>; mov.u64 %rd1, table; "
                        "ld.global.u64 %rd2, [table+8]; { p: .callprototype _ (); call %rd2, "
                        "p; } ret;\n}\n",
                   HEAD ".func one();\n.func two();\n.visible .global .u64 table[2] = {one, two};\n"
                        ".func one() { ret; }\n.func two() { ret; }\n"));
    const struct ws_ptx_var *t = var(f, "table");
    assert_int_equal(t->n_init_syms, 2);
    for (int k = 0; k < 2; k++)
        assert_string_equal(f->m->funcs[WS_PTX_SYM_INDEX(t->init_syms[k].sym)].name,
                            k ? "two" : "one");
}

/* A program may begin the names of its own functions as the device runtime's begin. */
static void test_names_like_the_runtimes(void **state)
{
    struct fix *f = *state;
    must_link(f, LINK(f, WS_PTX_LINK_STRICT,
                      HEAD ".extern .func cudaFreeAll();\n.visible .entry k()\n{\n"
                           "call.uni cudaFreeAll, ();\nret;\n}\n",
                      HEAD ".visible .func cudaFreeAll()\n{\nret;\n}\n"));
    assert_false(ws_ptx_find_func(f->m, "cudaFreeAll")->is_decl);
    assert_int_equal(LINK(f, WS_PTX_LINK_STRICT,
                          HEAD ".extern .func cudaFreeAll();\n.visible .entry k()\n{\n"
                               "call.uni cudaFreeAll, ();\nret;\n}\n"),
                     WS_PTX_E_NOTFOUND);
    must_say(f, "unresolved external function 'cudaFreeAll'");
    must_link(f,
              LINK(f, WS_PTX_LINK_STRICT,
                   HEAD ".extern .func (.param .b32 r) cudaGetLastError_ptsz();\n.visible .entry "
                        "k()\n{\n{ .param .b32 r; call.uni (r), cudaGetLastError_ptsz, (); }\n"
                        "ret;\n}\n"));
}

static void test_unresolved(void **state)
{
    struct fix *f = *state;
    assert_int_equal(LINK(f, WS_PTX_LINK_STRICT, HEAD, USES_F), WS_PTX_E_NOTFOUND);
    must_say(f, "b.ptx:8: unresolved external function 'f', first used here");
    must_link(f, LINK(f, 0, HEAD, USES_F)); /* not strict: still an extern */
    assert_true(ws_ptx_find_func(f->m, "f")->is_decl);
    must_say(f, "'f'");
    assert_int_equal(LINK(f, WS_PTX_LINK_STRICT,
                          HEAD
                          ".extern .global .u32 gone;\n.visible .entry k()\n{\n.reg .b32 %r<2>;\n"
                          "ld.global.u32 %r1, [gone];\nret;\n}\n"),
                     WS_PTX_E_NOTFOUND);
    must_say(f, "a.ptx:8: unresolved external variable 'gone'");
    /* declared and not used, or a function of the device's own: right */
    must_link(f,
              LINK(f, WS_PTX_LINK_STRICT,
                   HEAD ".extern .global .u32 gone;\n.extern .func g();\n.extern .func (.param "
                        ".b32 r) vprintf(.param .b64 a, .param .b64 b);\n.visible .entry k()\n{\n"
                        "{ .param .b64 a; .param .b64 b; .param .b32 r; st.param.b64 [a], 0; "
                        "st.param.b64 [b], 0; call (r), vprintf, (a, b); } ret;\n}\n"));
    assert_string_equal(f->log, "");
}

static void test_conflicts(void **state)
{
    static const struct {
        const char *a, *b, *want;
    } cases[] = {
        {".visible .global .u32 x;\n", ".visible .global .u32 x;\n",
         "b.ptx:4: 'x' is defined twice (first in a.ptx:4)"},
        {".visible .func f() { ret; }\n", "\n.visible .func f() { ret; }\n",
         "b.ptx:5: 'f' is defined twice (first in a.ptx:4)"},
        {".visible .entry k() { ret; }\n", ".visible .entry k() { ret; }\n",
         "'k' is defined twice"},
        {".extern .global .u32 x;\n", ".visible .global .u64 x;\n",
         "'x' is declared with another size in a.ptx:4"},
        {".extern .global .u32 x;\n", ".visible .const .u32 x;\n", "another state space"},
        {".extern .global .b8 x[8];\n", ".visible .global .b8 x[16];\n", "another size"},
        {".extern .func f(.param .b32 a);\n", ".visible .func f(.param .b64 a) { ret; }\n",
         "other parameters"},
        {".extern .func f();\n", ".visible .func (.param .b32 r) f() { ret; }\n",
         "other parameters"},
        {".extern .func f();\n", ".visible .global .u32 f;\n",
         "as a variable here and as a function"},
        {".extern .func k();\n", ".visible .entry k() { ret; }\n", "as a kernel"},
    };
    struct fix *f = *state;
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        char a[256], b[256];
        snprintf(a, sizeof(a), "%s%s", HEAD, cases[k].a);
        snprintf(b, sizeof(b), "%s%s", HEAD, cases[k].b);
        assert_int_equal(LINK(f, 0, a, b), WS_PTX_E_SYNTAX);
        must_say(f, cases[k].want);
    }
    assert_int_equal(LINK(f, 0, HEAD, ".version 8.0\n.target sm_75\n.address_size 32\n"),
                     WS_PTX_E_SYNTAX);
    must_say(f, "32 bits");
}

static void test_the_newest_target_counts(void **state)
{
    struct fix *f = *state;
    must_link(f, LINK(f, 0, ".version 7.0\n.target sm_75\n.address_size 64\n",
                      ".version 8.5\n.target sm_90a\n.address_size 64\n"));
    assert_int_equal(f->m->version, 85);
    assert_string_equal(f->m->target, "sm_90a");
}

static void test_aliases(void **state)
{
    struct fix *f = *state;
    must_link(f, LINK(f, WS_PTX_LINK_STRICT,
                      HEAD ".extern .func g();\n.visible .entry k() { call g; ret; }\n",
                      HEAD ".visible .func f() { ret; }\n.visible .func g();\n.alias g, f;\n"));
    assert_int_equal(f->m->n_aliases, 1);
    assert_string_equal(f->m->funcs[f->m->aliases[0].alias].name, "g");
    assert_string_equal(f->m->funcs[f->m->aliases[0].aliasee].name, "f");
}

/* ---- containers ---- */

struct box {
    struct ws_link_image h;
    struct ws_link_part p[2];
    char names[16];
    char text[2][512];
};

static void fill(struct box *b, const char *first, const char *second)
{
    *b = (struct box){.h = {.magic = WS_LINK_IMAGE_MAGIC,
                            .version = WS_LINK_IMAGE_VERSION,
                            .n_parts = 2,
                            .bytes = sizeof(*b)},
                      .names = "a.ptx\0b.ptx"};
    for (int k = 0; k < 2; k++) {
        snprintf(b->text[k], sizeof(b->text[k]), "%s", k ? second : first);
        b->p[k] =
            (struct ws_link_part){offsetof(struct box, text) + k * sizeof(b->text[0]),
                                  strlen(b->text[k]) + 1, offsetof(struct box, names) + k * 6};
    }
}

static int open_box(struct fix *f, const struct box *b, size_t len)
{
    struct ws_ptx_texts t;
    clear(f);
    int r = ws_ptx_image_texts(&t, b, len, 75, "no", 1 << 20, "box", &f->diags);
    if (!r) {
        r = ws_ptx_image_parse(&f->m, &t, &f->diags);
        ws_ptx_texts_deinit(&t);
    }
    f->log = ws_diags_text(&f->diags);
    return r;
}

static void test_container(void **state)
{
    struct fix *f = *state;
    struct box b;
    fill(&b, USES_F, HAS_F);
    assert_int_equal(ws_image_kind(&b, sizeof(b)), WS_IMAGE_LINK);
    assert_int_equal(open_box(f, &b, sizeof(b)), 0);
    assert_int_equal(f->m->n_funcs, 2);
    fill(&b, USES_F, HEAD);
    assert_int_equal(open_box(f, &b, sizeof(b)), 0);
    b.h.flags = WS_LINK_IMAGE_STRICT;
    assert_int_equal(open_box(f, &b, sizeof(b)), WS_PTX_E_NOTFOUND);
    must_say(f, "a.ptx:8: unresolved external function 'f'");
    fill(&b, USES_F, HEAD "frob;\n");
    assert_int_equal(open_box(f, &b, sizeof(b)), WS_PTX_E_SYNTAX);
    must_say(f, "b.ptx:4");
}

static void test_damaged_containers(void **state)
{
    struct fix *f = *state;
    struct box good, b;
    fill(&good, USES_F, HAS_F);
    for (size_t len = 0; len < sizeof(good.h) + sizeof(good.p); len += 4)
        assert_int_not_equal(open_box(f, &good, len), 0);
#define BROKEN(change)                                                                             \
    b = good;                                                                                      \
    change;                                                                                        \
    assert_int_equal(open_box(f, &b, sizeof(b)), WS_PTX_E_FORMAT)
    BROKEN(b.h.version = 2);
    BROKEN(b.h.bytes--);
    BROKEN(b.h.n_parts = 0);
    BROKEN(b.h.n_parts = 1000);
    BROKEN(b.p[1].offset = sizeof(b) + 1);
    BROKEN(b.p[1].bytes = UINT64_MAX);
    BROKEN(b.p[1].offset = UINT64_MAX);
    BROKEN(b.p[0].name = sizeof(b));
    BROKEN((b.p[0].name = sizeof(b) - 1, b.text[1][511] = 'x'));
    BROKEN(memcpy(b.text[1], "nonsense", 9));
}

/* A part that is the device runtime is left out; what calls it stays extern. */
static void test_device_runtime_is_left_out(void **state)
{
    struct fix *f = *state;
    struct box b;
    fill(&b,
         HEAD ".extern .func __cudaCDP2LaunchDeviceV2();\n.visible .entry k() { call "
              "__cudaCDP2LaunchDeviceV2; ret; }\n",
         HEAD ".visible .func __cudaCDP2LaunchDeviceV2() { ret; }\n");
    b.h.flags = WS_LINK_IMAGE_STRICT;
    assert_int_equal(open_box(f, &b, sizeof(b)), 0);
    assert_true(ws_ptx_find_func(f->m, "__cudaCDP2LaunchDeviceV2")->is_decl);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_extern_meets_definition),
        T(test_variables_meet),
        T(test_locals_are_kept_apart),
        T(test_a_shared_name_comes_before_a_local_one),
        T(test_weak_and_common),
        T(test_function_pointers),
        T(test_unresolved),
        T(test_names_like_the_runtimes),
        T(test_conflicts),
        T(test_the_newest_target_counts),
        T(test_aliases),
        T(test_container),
        T(test_damaged_containers),
        T(test_device_runtime_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
