// SPDX-License-Identifier: Apache-2.0
/* Templates as text. What is made is valid PTX, holds the members' variables apart, and has nothing
 * that nobody uses; the leader's code is checked, what is refused, with its line, and manifests
 * that are wrong. That templates compute the right thing is tests/unit/backend/test_fused.c's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/macros.h"
#include "templates/manifest.h"
#include "templates/template.h"

#define HEAD ".version 8.0\n.target sm_75\n.address_size 64\n"

static const char two[] = HEAD
    ".global .align 4 .u32 used = 7;\n.global .align 4 .u32 unused[1000];\n"
    ".const .align 4 .u32 k = 3;\n"
    ".func (.reg .b32 r) half(.reg .b32 x)\n{\nshr.u32 r, x, 1;\nret;\n}\n"
    ".func (.reg .b32 r) idle(.reg .b32 x)\n{\nshr.u32 r, x, 2;\nret;\n}\n"
    ".visible .entry one(.param .u64 p)\n{\n.reg .b32 %r<4>; .reg .b64 %rd<3>;\n"
    "ld.param.u64 %rd1, [p]; mov.u32 %r1, %ctaid.z; call (%r2), half, (%r1); ld.const.u32 %r3, "
    "[k]; add.u32 %r2, %r2, %r3; st.global.u32 [%rd1], %r2; mov.u64 %rd2, used; "
    "red.global.add.u32 [%rd2], 1; red.global.add.u32 [used], 2; ret;\n}\n"
    ".visible .entry other(.param .u64 p)\n{\n.reg .b64 %rd;\nld.param.u64 %rd, [p]; "
    "st.global.u32 [%rd], 1; ret;\n}\n";

static struct ws_ptx_module *parse(const char *text)
{
    struct ws_ptx_module *m = NULL;
    struct ws_diags d = WS_DIAGS_NULL;
    if (ws_ptx_parse(&m, text, strlen(text), "t.ptx", &d))
        fail_msg("%s", ws_diags_text(&d));
    ws_diags_deinit(&d);
    return m;
}

static char *print(const struct ws_ptx_module *m)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    assert_int_equal(ws_ptx_print(m, f), 0);
    fclose(f);
    return text;
}

/* Valid, and read again as it was printed. */
static void check_sound(const struct ws_template *t)
{
    struct ws_diags d = WS_DIAGS_NULL;
    char *text = print(t->ptx);
    if (ws_ptx_validate(t->ptx, "made", &d))
        fail_msg("%s\n%s", ws_diags_text(&d), text);
    struct ws_ptx_module *again = parse(text);
    assert_int_equal(again->n_funcs, t->ptx->n_funcs); /* registers may come in another order */
    for (uint32_t k = 0; k < again->n_funcs; k++) {
        const struct ws_ptx_func *f = ws_ptx_find_func(again, t->ptx->funcs[k].name);
        assert_non_null(f);
        assert_int_equal(f->n_insns, t->ptx->funcs[k].n_insns);
        assert_int_equal(f->param_bytes, t->ptx->funcs[k].param_bytes);
    }
    ws_ptx_module_free(again);
    free(text);
    uint32_t n_entries = 0;
    for (uint32_t k = 0; k < t->ptx->n_funcs; k++)
        n_entries += t->ptx->funcs[k].is_entry;
    assert_int_equal(n_entries, 1);
    assert_true(t->ptx->funcs[t->fused.func].is_entry);
}

static void test_members_are_apart(void **state)
{
    struct ws_ptx_module *m = parse(two);
    struct ws_template_kernel k[] = {{m, 2}, {m, 3}, {m, 2}};
    struct ws_template *t = NULL;
    char why[256] = "", *before = print(m);
    if (ws_template_make(&t, k, 3, false, false, why, sizeof(why)))
        fail_msg("%s", why);
    check_sound(t);
    assert_int_equal(t->fused.n, 3);
    assert_int_equal(t->ptx->n_vars, 4); /* used and k, twice */
    for (uint32_t a = 0; a < 3; a += 2) {
        assert_int_equal(t->member[a].n_vars, 3);
        assert_int_equal(t->member[a].var[1], -1); /* unused */
        assert_int_not_equal(t->member[a].var[0], t->member[2 - a].var[0]);
        assert_string_equal(t->ptx->vars[t->member[a].var[0]].name, a ? "m2$used" : "m0$used");
        assert_int_equal(t->member[a].own_bytes, 8);
        assert_int_equal(t->member[a].fence, 8);
    }
    for (int v = 0; v < 3; v++)
        assert_int_equal(t->member[1].var[v], -1);
    for (uint32_t v = 0; v < t->ptx->n_vars; v++) /* the values are the clients', and there */
        assert_null(t->ptx->vars[v].init);
    assert_null(ws_ptx_find_func(t->ptx, "m0$idle"));
    assert_non_null(ws_ptx_find_func(t->ptx, "m2$half"));
    char *after = print(m);
    assert_string_equal(before, after);
    free(before);
    free(after);
    ws_template_free(t);
    ws_ptx_module_free(m);
}

/* Nothing is by name any more that differs between instances. */
static void test_leader(void **state)
{
    static const char *const absent[] = {
        "\n.const", "ld.const", "m0$unused", "[m0$used", "[p]", "mov.u64 \t%rd2, m0$used", NULL};
    struct ws_ptx_module *m = parse(two);
    struct ws_template_kernel k = {m, 2};
    struct ws_template *t = NULL;
    char why[256] = "";
    if (ws_template_make_leader(&t, &k, false, why, sizeof(why)))
        fail_msg("%s", why);
    check_sound(t);
    char *text = print(t->ptx);
    for (int n = 0; absent[n]; n++)
        if (strstr(text, absent[n]))
            fail_msg("%s in:\n%s", absent[n], text);
    unsigned n_ctaid = 0;
    for (const char *p = text; (p = strstr(p, "%ctaid.z")); p++)
        n_ctaid++;
    assert_int_equal(n_ctaid, 1); /* once, in front */
    free(text);
    assert_int_equal(t->record_bytes % 16, 0);
    assert_true(t->vars_at >= 8 + sizeof(struct ws_ptx_fence));
    /* launches: one grid, as many times as deep */
    uint64_t va0[] = {0x1000, 0, 0x2000}, va1[] = {0x3000, 0, 0x4000}, arg[] = {11, 22};
    const uint64_t *va[] = {va0, va1};
    struct ws_template_work w[2] = {{.grid = {3, 2, 4}, .block = {8, 1, 1}, .params = &arg[0]},
                                    {.grid = {3, 2, 4}, .block = {8, 1, 1}, .params = &arg[1]}};
    uint8_t *table = calloc(2, t->record_bytes), params[64];
    struct ws_ptx_fuse_launch l;
    assert_int_equal(ws_template_lead(t, w, va, 2, table, 0x7000, params, &l), 0);
    assert_int_equal(l.grid[0] * 10000 + l.grid[1] * 100 + l.grid[2], 30208);
    uint64_t got;
    memcpy(&got, table + t->record_bytes, 8);
    assert_int_equal(got, 22);
    memcpy(&got, table + t->record_bytes + t->vars_at + 8 * (size_t)t->member[0].var[0], 8);
    assert_int_equal(got, 0x3000);
    w[1].grid[1] = 3;
    assert_int_equal(ws_template_lead(t, w, va, 2, table, 0x7000, params, &l),
                     WS_PTX_E_UNSUPPORTED);
    free(table);
    ws_template_free(t);
    ws_ptx_module_free(m);
}

/* For a device to whose kernels textures and constants are memory: what each member reaches through
 * them is behind its own fence, not only behind that of all of them. */
static void test_plain(void **state)
{
    static const char sampled[] =
        HEAD ".global .texref ref;\n.const .align 4 .u32 k[4] = {1, 2, 3, 4};\n"
             ".visible .entry one(.param .u64 p)\n{\n.reg .b32 %r<9>; .reg .b64 %rd<4>;\n"
             "ld.param.u64 %rd0, [p];\nmov.u32 %r0, 0;\nld.const.u32 %r8, [k+4];\n"
             "tex.1d.v4.u32.s32 {%r1, %r2, %r3, %r4}, [ref, {%r0}];\n"
             "suld.b.1d.b32.trap {%r5}, [%rd0, {%r0}];\n"
             "st.global.v4.u32 [%rd0], {%r1, %r5, %r8, %r4};\nret;\n}\n";
    static const char *const absent[] = {"\n.const", "ld.const", "tex.1d", "suld", ".texref", NULL};
    struct ws_ptx_module *m = parse(sampled);
    struct ws_template_kernel k[] = {{m, 0}, {m, 0}};
    for (int leader = 0; leader < 2; leader++) {
        struct ws_template *t = NULL;
        char why[256] = "";
        if (leader ? ws_template_make_leader(&t, k, true, why, sizeof(why))
                   : ws_template_make(&t, k, 2, false, true, why, sizeof(why)))
            fail_msg("%s", why);
        check_sound(t);
        char *text = print(t->ptx);
        for (int n = 0; absent[n]; n++)
            if (strstr(text, absent[n]))
                fail_msg("%s in:\n%s", absent[n], text);
        free(text);
        assert_null(ws_ptx_find_func(t->ptx, "ws$tex")); /* nobody calls those without a fence */
        assert_null(ws_ptx_find_func(t->ptx, "ws$surface"));
        assert_non_null(ws_ptx_find_func(t->ptx, "ws$tex$fence"));
        assert_non_null(ws_ptx_find_func(t->ptx, "ws$surface$fence"));
        ws_template_free(t);
    }
    ws_ptx_module_free(m);
}

static void test_refused(void **state)
{
    static const struct {
        const char *description, *body, *why;
    } rows[] = {
        {"call by register",
         ".visible .entry k(.param .u64 p)\n{\n.reg .b64 %rd;\nld.param.u64 %rd, [p];\nP: "
         ".callprototype _ ();\ncall %rd, P;\nret;\n}\n",
         "line 9: a call through a register"},
        {"address of a function",
         ".func f()\n{\nret;\n}\n.visible .entry k(.param .u64 p)\n{\n.reg .b64 %rd;\nmov.u64 %rd, "
         "f;\nret;\n}\n",
         "the address of a function"},
        {"address of a parameter",
         ".visible .entry k(.param .align 8 .b8 p[16])\n{\n.reg .b64 %rd; .reg .b32 %r;\nmov.b64 "
         "%rd, p;\nld.param.u32 %r, [%rd+4];\nret;\n}\n",
         "line 7: the address of a parameter"},
        {"malloc",
         ".extern .func (.param .b64 r) malloc(.param .b64 n);\n.visible .entry k()\n{\n.param "
         ".b64 "
         "n; "
         ".param .b64 r;\nst.param.b64 [n], 8;\ncall (r), malloc, (n);\nret;\n}\n",
         "calls malloc"},
        {"kind of an address",
         ".visible .entry k(.param .u64 p)\n{\n.reg .b64 %rd; .reg .pred %p;\nld.param.u64 %rd, "
         "[p];\nisspacep.const %p, %rd;\nret;\n}\n",
         "line 8: isspacep.const"},
        {"warp number", ".visible .entry k()\n{\n.reg .b32 %r;\nmov.u32 %r, %warpid;\nret;\n}\n",
         "%warpid"},
    };
    for (size_t n = 0; n < WS_ARRAY_SIZE(rows); n++) {
        char text[2048], why[256] = "";
        snprintf(text, sizeof(text), HEAD "%s", rows[n].body);
        struct ws_ptx_module *m = parse(text);
        struct ws_template_kernel k = {m, (uint32_t)(ws_ptx_find_func(m, "k") - m->funcs)};
        struct ws_template *t = NULL;
        int r = ws_template_make(&t, &k, 1, false, false, why, sizeof(why));
        if (r != WS_PTX_E_UNSUPPORTED || !strstr(why, rows[n].why))
            fail_msg("%s: %d, %s", rows[n].description, r, why);
        assert_null(t);
        ws_ptx_module_free(m);
    }
    char why[256];
    struct ws_template *t = NULL;
    assert_int_equal(ws_template_make(&t, NULL, WS_FUSE_MAX + 1, false, false, why, sizeof(why)),
                     WS_PTX_E_UNSUPPORTED);
}

/* What nvcc makes of the workloads. */
static void test_workloads(void **state)
{
    static const struct {
        const char *file;
        unsigned n_kernels;
    } rows[] = {{"aes", 2},        {"sort", 3},    {"blackscholes", 1}, {"matmul", 1},
                {"montecarlo", 1}, {"stencil", 1}, {"histogram", 1},    {"search", 1}};
    const char *dir = getenv("srcdir");
    struct ws_ptx_module *all[16];
    struct ws_template_kernel k[16];
    uint32_t n = 0, n_files = 0;
    for (size_t f = 0; f < WS_ARRAY_SIZE(rows); f++) {
        char path[600], why[256] = "", *text = calloc(1, 1 << 20);
        snprintf(path, sizeof(path), "%s/tests/cuda/ptx/%s.ptx", dir ? dir : ".", rows[f].file);
        FILE *file = fopen(path, "r");
        if (!file || !fread(text, 1, (1 << 20) - 1, file))
            fail_msg("%s", path);
        fclose(file);
        struct ws_ptx_module *m = all[n_files++] = parse(text);
        free(text);
        unsigned kernels = 0;
        for (uint32_t i = 0; i < m->n_funcs; i++) {
            if (!m->funcs[i].is_entry)
                continue;
            kernels++;
            struct ws_template_kernel own = {m, i};
            for (int leader = 0; leader < 2; leader++) {
                struct ws_template *t = NULL;
                int r = leader ? ws_template_make_leader(&t, &own, false, why, sizeof(why))
                               : ws_template_make(&t, &own, 1, true, false, why, sizeof(why));
                if (r)
                    fail_msg("%s %s: %s", leader ? "leader" : "fused", m->funcs[i].name, why);
                check_sound(t);
                ws_template_free(t);
            }
            k[n++] = own;
        }
        assert_int_equal(kernels, rows[f].n_kernels);
    }
    struct ws_template *t = NULL; /* and all in one */
    char why[256] = "";
    if (ws_template_make(&t, k, n, false, false, why, sizeof(why)))
        fail_msg("%s", why);
    check_sound(t);
    ws_template_free(t);
    while (n_files--)
        ws_ptx_module_free(all[n_files]);
}

/* ---- manifests ---- */

static void write_file(const char *dir, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

#define DIGITS "0123456789abcdef0123456789abcdef0123456789abcdef0123456789ABCDEF"
static void test_manifest(void **state)
{
    static const struct {
        const char *description, *text, *wrong; /* wrong: NULL: it isn't */
        size_t n;
    } rows[] = {
        {"empty", "# nothing\n\n", NULL, 0},
        {"one", "k(u64) a.ptx one # comment\n", NULL, 1},
        {"by image and for any", "k(s64) a.ptx one\nk(b64) sha256:" DIGITS " a.ptx other\n", NULL,
         2},
        {"no types", "\nk a.ptx one\n", "manifest:2: KERNEL(TYPES)", 0},
        {"words are missing", "k(u64) a.ptx\n", "manifest:1: KERNEL(TYPES)", 0},
        {"a word too many", "k(u64) sha256:" DIGITS " a.ptx one more\n", "manifest:1: KERNEL", 0},
        {"no such file", "k(u64) b.ptx one\n", "manifest:1: ", 0},
        {"a path", "k(u64) ../a.ptx one\n", "without a path", 0},
        {"no PTX", "k(u64) bad.ptx one\n", "manifest:1: ", 0},
        {"no such entry", "k(u64) a.ptx none\n", "manifest:1: a.ptx has no kernel none", 0},
        {"a function", "k(u64) a.ptx half\n", "has no kernel half", 0},
        {"takes something else", "k(u64,u32) a.ptx one\n",
         "manifest:1: one takes (b64), the kernel that it is for (b64,b32)", 0},
        {"short hash", "k(u64) sha256:12 a.ptx one\n", "64 hexadecimal digits", 0},
        {"twice", "k(u64) a.ptx one\n# again\nk(s64) a.ptx other\n",
         "manifest:3: k(b64) is replaced already", 0},
        {"can't be fused", "k() a.ptx wrong\n",
         "manifest:1: wrong can't be in a fused launch: line", 0},
        {"all are said", "k a.ptx one\nk(u64) a.ptx none\n", "manifest:2: a.ptx has no kernel", 0},
    };
    char dir[] = "/tmp/test_templates.XXXXXX", text[8192];
    assert_non_null(mkdtemp(dir));
    snprintf(text, sizeof(text),
             "%s.visible .entry wrong()\n{\n.reg .b32 %%r;\nmov.u32 %%r, "
             "%%warpid;\nret;\n}\n",
             two);
    write_file(dir, "a.ptx", text);
    write_file(dir, "bad.ptx", "hello");
    for (size_t n = 0; n < WS_ARRAY_SIZE(rows); n++) {
        struct ws_template_manifest *t = NULL;
        struct ws_diags d = WS_DIAGS_NULL;
        write_file(dir, "manifest", rows[n].text);
        int r = ws_template_manifest_read(&t, dir, &d);
        char *said = ws_diags_text(&d);
        if (r != (rows[n].wrong ? WS_PTX_E_SYNTAX : 0) ||
            (rows[n].wrong && !strstr(said, rows[n].wrong)))
            fail_msg("%s: %d, %s", rows[n].description, r, said);
        assert_int_equal(ws_template_manifest_n(t), rows[n].n);
        if (n == 2) {
            struct ws_ptx_module *m = parse(HEAD ".visible .entry k(.param .u64 p)\n{\nret;\n}\n"
                                                 ".visible .entry l(.param .u64 p)\n{\nret;\n}\n");
            uint8_t any[32] = {0}, own[32];
            for (int k = 0; k < 32; k++)
                sscanf(DIGITS + 2 * k, "%2hhx", &own[k]);
            const struct ws_template_replacement *x = ws_template_manifest_find(t, m, 0, any);
            assert_string_equal(x->m->funcs[x->func].name, "one");
            x = ws_template_manifest_find(t, m, 0, own);
            assert_string_equal(x->m->funcs[x->func].name, "other");
            assert_null(ws_template_manifest_find(t, m, 1, any));
            assert_null(ws_template_manifest_find(NULL, m, 0, any));
            ws_ptx_module_free(m);
        }
        free(said);
        ws_diags_deinit(&d);
        ws_template_manifest_free(t);
    }
    const char *names[] = {"a.ptx", "bad.ptx", "manifest"};
    for (int k = 0; k < 3; k++) {
        snprintf(text, sizeof(text), "%s/%s", dir, names[k]);
        unlink(text);
    }
    rmdir(dir);
    struct ws_template_manifest *t = NULL;
    struct ws_diags d = WS_DIAGS_NULL;
    assert_int_equal(ws_template_manifest_read(&t, dir, &d), WS_PTX_E_SYNTAX);
    ws_diags_deinit(&d);
}

/* What is shipped. */
static void test_enterprise(void **state)
{
    const char *src = getenv("srcdir");
    char dir[600];
    struct ws_template_manifest *t = NULL;
    struct ws_diags d = WS_DIAGS_NULL;
    snprintf(dir, sizeof(dir), "%s/templates/enterprise", src ? src : ".");
    if (ws_template_manifest_read(&t, dir, &d))
        fail_msg("%s", ws_diags_text(&d));
    assert_true(ws_template_manifest_n(t) > 0);
    ws_template_manifest_free(t);
    ws_diags_deinit(&d);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_members_are_apart),
        cmocka_unit_test(test_leader),
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_workloads),
        cmocka_unit_test(test_manifest),
        cmocka_unit_test(test_enterprise),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
