// SPDX-License-Identifier: Apache-2.0
/* Functions of our own for printf, assert, trap, malloc and free: which kernels get them and which
 * can't, that what is made is PTX and can be fenced and rewritten, and that the host believes
 * nothing of what it finds in a launch's box. What they do when they run is in
 * tests/device/lib.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "device/cuda/cuda_private.h"
#include "ptx/passes/devlib.h"

#define HEAD ".version 7.5\n.target sm_75\n.address_size 64\n"
#define DECLS                                                                                      \
    ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"                       \
    ".extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, "      \
    ".param .b64 c);\n"                                                                            \
    ".extern .func (.param .b64 r) malloc(.param .b64 n);\n"                                       \
    ".extern .func free(.param .b64 p);\n"
#define PRINT "{\n.param .b32 r;\ncall (r), vprintf, (%rd1, %rd2);\n}\n"
#define TAKE  "{\n.param .b64 r;\ncall (r), malloc, (%rd1);\n}\n"
#define REGS  ".reg .b64 %rd<4>; .reg .b32 %r<4>; .reg .pred %p<3>;\n"

static struct ws_ptx_module *parse(const char *text)
{
    struct ws_ptx_module *m;
    struct ws_diags d = WS_DIAGS_NULL;
    int r = ws_ptx_parse(&m, text, strlen(text), "t.ptx", &d);
    if (r)
        fail_msg("%d: %s", r, d.n ? d.v[0].text : "");
    ws_diags_deinit(&d);
    return m;
}

static uint32_t find(const struct ws_ptx_module *m, const char *name)
{
    const struct ws_ptx_func *f = ws_ptx_find_func(m, name);
    assert_non_null(f);
    return (uint32_t)(f - m->funcs);
}

static void what_kernels_use(void **state)
{
    static const struct {
        const char *body;
        uint32_t uses;
    } cases[] = {
        {"", 0},
        {PRINT, WS_LIB_PRINTS},
        {TAKE, WS_LIB_HEAP},
        {"call free, (%rd1);\n", WS_LIB_HEAP},
        {"trap;\n", WS_LIB_STOPS},
        {"@%p1 brkpt;\n", WS_LIB_STOPS},
        {"call inner, (%rd1);\n", WS_LIB_PRINTS | WS_LIB_STOPS},
        {"call other, (%rd1);\n", 0},
        {"{\n.param .b64 r;\ncall (r), odd, (%rd1);\n}\n", 0},
    };
    for (size_t k = 0; k < WS_ARRAY_SIZE(cases); k++) {
        char text[2000];
        uint32_t uses;
        /* names of registers of functions are parameters' */
        snprintf(text, sizeof(text), "%s%sret;\n}\n",
                 HEAD DECLS ".extern .func (.param .b64 r) odd(.param .b64 n);\n"
                            ".func inner(.reg .b64 %rdx)\n{\n" REGS PRINT "trap;\n}\n"
                            ".func other(.reg .b64 %rdx)\n{\nret;\n}\n"
                            ".entry k()\n{\n" REGS,
                 cases[k].body);
        struct ws_ptx_module *m = parse(text);
        assert_int_equal(ws_ptx_lib_uses(m, find(m, "k"), &uses), 0);
        assert_int_equal(uses, cases[k].uses);
        ws_ptx_module_free(m);
    }
}

/* Functions of these names that are the program's own, or take something else, are left alone. */
static void the_programs_own(void **state)
{
    uint32_t uses;
    struct ws_ptx_module *m =
        parse(HEAD ".func (.param .b64 r) malloc(.param .b64 n)\n{\n.reg .b64 "
                   "%rd; mov.u64 %rd, 5; st.param.b64 [r], %rd;\nret;\n}\n"
                   ".extern .func free(.param .b32 n);\n"
                   ".entry k()\n{\n" REGS TAKE "mov.u32 %r1, 1;\n"
                   "call free, (%r1);\nret;\n}\n");
    assert_int_equal(ws_ptx_lib_uses(m, find(m, "k"), &uses), 0);
    assert_int_equal(uses, 0);
    ws_ptx_module_free(m);
}

static void refusals(void **state)
{
    char why[160], text[6000];
    uint32_t uses;
    struct ws_ptx_module *m =
        parse(HEAD DECLS ".func inner()\n{\n" REGS PRINT "ret;\n}\n"
                         ".global .align 8 .u64 table[1] = {inner};\n"
                         ".entry k()\n{\n" REGS "ld.global.u64 %rd1, [table];\n"
                         "P: .callprototype _ ();\ncall %rd1, (), P;\nret;\n}\n"
                         ".entry direct()\n{\n" REGS "call inner;\nret;\n}\n");
    assert_int_equal(ws_ptx_lib_uses(m, find(m, "k"), &uses), 0);
    assert_int_equal(uses, WS_LIB_PRINTS);
    assert_int_equal(ws_ptx_lib_refused(m, find(m, "k"), why, sizeof(why)), WS_PTX_E_UNSUPPORTED);
    assert_int_equal(strncmp(why, "line ", 5), 0);
    assert_non_null(strstr(why, "call through a register"));
    assert_int_equal(ws_ptx_lib_refused(m, find(m, "direct"), why, sizeof(why)), 0);
    assert_int_equal(ws_ptx_lib_refused(m, find(m, "inner"), why, sizeof(why)),
                     WS_PTX_E_UNSUPPORTED);
    ws_ptx_module_free(m);
    snprintf(text, sizeof(text), HEAD ".entry k(.param .align 8 .b8 p[4300])\n{\ntrap;\n}\n");
    m = parse(text);
    assert_int_equal(ws_ptx_lib_refused(m, 0, why, sizeof(why)), WS_PTX_E_UNSUPPORTED);
    assert_non_null(strstr(why, "no room"));
    ws_ptx_module_free(m);
}

static const char both[] = HEAD DECLS
    ".func inner(.reg .b64 %rdx)\n{\n" REGS "mov.u64 %rd1, %rdx; mov.u64 %rd2, %rdx;\n"
    "setp.ne.u64 %p1, %rd1, 0;\n@%p1 trap;\n" PRINT "ret;\n}\n"
    ".func ws$vprintf()\n{\nret;\n}\n"
    ".entry a(.param .u64 p)\n{\n" REGS "ld.param.u64 %rd1, [p];\ncall inner, (%rd1);\n"
    "bar.sync 0;\ncall inner, (%rd1);\nst.global.u64 [%rd1], %rd1;\nret;\n}\n"
    ".entry b(.param .u64 p)\n{\n" REGS "ld.param.u64 %rd1, [p];\nmov.u64 %rd2, %rd1;\n" TAKE
    "call free, (%rd1);\n"
    "mov.u32 %r1, 5;\ncall __assertfail, (%rd1, %rd1, %r1, %rd1, %rd1);\ncall ws$vprintf;\n"
    "ret;\n}\n";

static char *print(const struct ws_ptx_module *m)
{
    char *text = NULL;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    assert_int_equal(ws_ptx_print(m, f), 0);
    fclose(f);
    return text;
}

/* Two kernels share functions; what comes out is PTX, fenced and rewritten too, and reads back as
 * what it was. */
static void passes_go_on_from_it(void **state)
{
    for (int fence = 0; fence < 2; fence++)
        for (int kind = 0; kind < _WS_REWRITE_N; kind++) {
            struct ws_ptx_module *m = parse(both), *again;
            char why[160];
            bool flat;
            for (int k = 0; k < 2; k++) {
                uint32_t to, from = find(m, k ? "b" : "a");
                assert_int_equal(ws_ptx_lib_refused(m, from, why, sizeof(why)), 0);
                assert_int_equal(ws_ptx_lib(m, from, &to), 0);
                const struct ws_ptx_func *f = &m->funcs[to];
                assert_int_equal(f->n_params, 2);
                assert_int_equal(f->params[1].size_bytes, 8);
                if (fence) {
                    int r = ws_ptx_fence_refused(m, to, why, sizeof(why));
                    if (r)
                        fail_msg("fence: %s", why);
                    assert_int_equal(ws_ptx_fence(m, to, &to), 0);
                }
                if (kind) {
                    int r = ws_ptx_rewrite_refused(m, to, (enum ws_ptx_rewrite)kind, &flat, why,
                                                   sizeof(why));
                    if (r)
                        fail_msg("%s: %s", ws_ptx_rewrite_name((enum ws_ptx_rewrite)kind), why);
                    assert_int_equal(ws_ptx_rewrite(m, to, (enum ws_ptx_rewrite)kind, &to), 0);
                }
            }
            uint32_t n_inner = 0, n_lib = 0;
            for (uint32_t k = 0; k < m->n_funcs; k++) {
                n_inner += m->funcs[k].lib_of && !m->funcs[k].is_entry && !m->funcs[k].fence;
                n_lib += m->funcs[k].lib && !m->funcs[k].fence;
            }
            assert_int_equal(n_inner, 1);
            assert_int_equal(n_lib, 10);
            assert_int_equal(ws_ptx_validate(m, NULL, NULL), 0);
            char *text = print(m);
            again = parse(text);
            assert_int_equal(again->n_funcs, m->n_funcs);
            for (uint32_t k = 0; k < m->n_funcs; k++)
                assert_int_equal(m->funcs[k].n_insns,
                                 ws_ptx_find_func(again, m->funcs[k].name)->n_insns);
            free(text);
            ws_ptx_module_free(again);
            ws_ptx_module_free(m);
        }
}

static void memory_runs_out(void **state)
{
    int failures = 0, r = -1;
    for (uint64_t n = 1; n < 4000 && r; n++) {
        struct ws_ptx_module *m = parse(both), *same = parse(both);
        uint32_t to, before = m->n_funcs;
        ws_alloc_fail_after(n);
        r = ws_ptx_lib(m, find(m, "a"), &to);
        ws_alloc_fail_after(0);
        if (r) {
            failures++;
            assert_int_equal(r, -ENOMEM);
            for (uint32_t k = before; k < m->n_funcs; k++)
                assert_true(m->funcs[k].lib);
            m->n_funcs = before;
            assert_true(ws_ptx_module_equal(m, same));
        }
        ws_ptx_module_free(m);
        ws_ptx_module_free(same);
    }
    assert_int_equal(r, 0);
    assert_true(failures > 10);
}

/* ---- the host's side ---- */

struct heard {
    char text[2][20000];
    uint32_t n[2];
};
static void on_print(void *arg, enum ws_output to, const char *text, size_t n)
{
    struct heard *h = arg;
    unsigned k = to == WS_OUTPUT_ASSERT;
    h->n[k]++;
    size_t at = strlen(h->text[k]);
    for (size_t i = 0; i < n; i++)
        assert_true(text[i] || to == WS_OUTPUT_PRINTF);
    if (at + n < sizeof(h->text[k]))
        memcpy(h->text[k] + at, text, n);
}

struct host {
    struct heard heard[2];
    struct ws_space *space[2];
    struct ws_kernel_info kernel;
    struct ws_dmodule module;
    struct ws_dinstance instance;
    struct ws_op op;
};
static struct host *host_new(void)
{
    struct host *h = calloc(1, sizeof(*h));
    for (int k = 0; k < 2; k++) {
        assert_int_equal(ws_space_new(&h->space[k]), 0);
        ws_space_set_print(h->space[k], on_print, &h->heard[k]);
    }
    h->kernel.name = "kernel";
    h->module.info.kernels = &h->kernel;
    h->module.info.n_kernels = 1;
    h->instance.module = &h->module;
    h->op = (struct ws_op){
        .kind = WS_OPK_LAUNCH,
        .space = h->space[0],
        .launch = {.instance = &h->instance, .grid = {6, 4, 1}, .block = {64, 1, 1}}};
    return h;
}
static void host_free(struct host *h)
{
    for (int k = 0; k < 2; k++)
        ws_space_free(h->space[k]);
    free(h);
}

/* A record as a kernel writes it. Return: its bytes. */
static uint32_t put_record(uint8_t *at, uint32_t kind, uint64_t block, uint32_t thread,
                           const char *format, uint32_t n_args, const uint64_t *args,
                           const char *strings, uint32_t string_bytes)
{
    uint32_t f = format ? (uint32_t)strlen(format) + 1 : 0,
             bytes = (uint32_t)WS_ALIGN_UP(32 + 8 * n_args + f + string_bytes, 8u);
    struct ws_lib_record r = {.bytes = bytes,
                              .kind = kind,
                              .block = block,
                              .thread = thread,
                              .n_args = n_args,
                              .format_bytes = f,
                              .line = 12};
    memset(at, 0, bytes);
    memcpy(at, &r, 32);
    if (n_args)
        memcpy(at + 32, args, 8 * n_args);
    if (f)
        memcpy(at + 32 + 8 * n_args, format, f);
    if (string_bytes)
        memcpy(at + 32 + 8 * n_args + f, strings, string_bytes);
    return bytes;
}

static void records(void **state)
{
    struct host *h = host_new();
    uint8_t room[4096];
    uint32_t n = 0;
    n += put_record(room + n, WS_LIB_TEXT, 0, 0, "a %d %s\n", 2,
                    (uint64_t[]){(uint32_t)-5, 32 + 16 + 9}, "text", 5);
    n += put_record(room + n, WS_LIB_TEXT, 0, 0, "none\n", 0, NULL, NULL, 0);
    n += put_record(room + n, WS_LIB_ASSERT, 1 | UINT64_C(2) << 32, 3 | 4 << 10, NULL, 3,
                    (uint64_t[]){56, 62, 67}, "x > 1\0f.cu\0fn()", 16);
    n += put_record(room + n, WS_LIB_TRAP, 1, 1, NULL, 1, (uint64_t[]){0}, NULL, 0);
    ws_cuda_lib_read(&h->op, room, n);
    assert_string_equal(h->heard[0].text[0], "a -5 text\nnone\n");
    assert_string_equal(
        h->heard[0].text[1],
        "f.cu:12: fn(): block: [1,2,0], thread: [3,4,0] Assertion `x > 1` failed.\n");
    assert_int_equal(h->op.error, WS_DEV_E_ASSERT); /* the first */
    assert_string_equal(h->op.text, "assert: kernel kernel block (1,2,0) thread (3,4,0) assertion "
                                    "`x > 1' failed at f.cu:12");
    host_free(h);
}

static void broken_records(void **state)
{
    static const struct {
        size_t at;
        uint32_t value;
        const char *want;
    } cases[] = {
        {0, 0, ""},
        {0, 24, ""},
        {0, 100, ""},
        {0, UINT32_MAX & ~7u, ""},
        {4, 0, ""},
        {4, 99, ""},
        {20, UINT32_MAX, ""}, /* arguments that aren't there: no format behind them either */
        {20, 1, NULL},
        {20, 500, ""},
        {24, UINT32_MAX, "a 7 text\n"}, /* the format has its NUL */
        {40, UINT32_MAX, "a 7 (null)\n"},
        {40, 4, "a 7 (null)\n"},
        {40, 63, "a 7 (null)\n"}, /* behind its last NUL */
    };
    for (size_t k = 0; k < WS_ARRAY_SIZE(cases); k++) {
        struct host *h = host_new();
        uint64_t args[] = {7, 32 + 16 + 9};
        uint8_t *room = malloc(64); /* to the byte, for AddressSanitizer */
        assert_int_equal(
            put_record(room, WS_LIB_TEXT, 0, 0, "a %d %s\n", 2, args, "text\0x", 6) % 8, 0);
        uint32_t bytes;
        memcpy(&bytes, room, 4);
        assert_int_equal(bytes, 64);
        memset(room + 62, 'y', 2); /* no NUL at its end */
        memcpy(room + cases[k].at, &cases[k].value, 4);
        ws_cuda_lib_read(&h->op, room, 64);
        if (cases[k].want)
            assert_string_equal(h->heard[0].text[0], cases[k].want);
        assert_int_equal(h->op.error, WS_DEV_OK);
        free(room);
        host_free(h);
    }
    /* and anything at all */
    struct host *h = host_new();
    uint32_t x = 12345;
    for (int round = 0; round < 20000; round++) {
        uint8_t *room = malloc(256);
        uint32_t n = put_record(room, 1 + (uint32_t)round % 4, 0, 0, "%s %5d %*s", 4,
                                (uint64_t[]){70, 3, 4, 80}, "abcdefgh\0ijklmno", 17);
        for (uint32_t i = n; i < 256; i++)
            room[i] = (uint8_t)(x >> 24);
        for (int i = 0; i < 6; i++) {
            x = x * 1664525u + 1013904223u;
            room[x >> 8 & 127] = x >> 30 ? (uint8_t)(x >> 20) : 0;
        }
        h->op.error = WS_DEV_OK;
        ws_cuda_lib_read(&h->op, room, 256);
        free(room);
    }
    host_free(h);
}

/* A launch of two clients: rounds of 2 blocks of the first and 4 of the second. */
static void parts(void **state)
{
    struct host *h = host_new();
    struct ws_launch_parts *p = calloc(1, sizeof(*p) + 2 * sizeof(p->part[0]));
    uint8_t room[4096];
    uint32_t n = 0;
    p->n = 2;
    p->round = 6;
    p->part[0] = (struct ws_launch_part){
        .space = h->space[0], .share = 2, .kernel = "one", .grid = {8, 1, 1}, .block = {64, 1, 1}};
    p->part[1] = (struct ws_launch_part){
        .space = h->space[1], .share = 4, .kernel = "two", .grid = {4, 4, 1}, .block = {16, 4, 1}};
    h->op.launch.parts = p;
    /* block 5 of the third round is the second's 2 * 4 + 3 */
    n += put_record(room + n, WS_LIB_TEXT, 1, 0, "one\n", 0, NULL, NULL, 0);
    n += put_record(room + n, WS_LIB_TEXT, 2, 0, "two\n", 0, NULL, NULL, 0);
    n += put_record(room + n, WS_LIB_TRAP, 5 | UINT64_C(2) << 32, 19, NULL, 1, (uint64_t[]){0},
                    NULL, 0);
    ws_cuda_lib_read(&h->op, room, n);
    assert_string_equal(h->heard[0].text[0], "one\n");
    assert_string_equal(h->heard[1].text[0], "two\n");
    assert_int_equal(h->op.error, WS_DEV_OK);
    assert_int_equal(p->part[0].error, WS_DEV_OK);
    assert_int_equal(p->part[1].error, WS_DEV_E_TRAP);
    assert_string_equal(p->part[1].text, "trap: kernel two block (3,2,0) thread (3,1,0)");
    free(p);
    host_free(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_kernels_use), cmocka_unit_test(the_programs_own),
        cmocka_unit_test(refusals),         cmocka_unit_test(passes_go_on_from_it),
        cmocka_unit_test(memory_runs_out),  cmocka_unit_test(records),
        cmocka_unit_test(broken_records),   cmocka_unit_test(parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
