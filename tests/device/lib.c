// SPDX-License-Identifier: Apache-2.0
/* Tests printf, assert, trap, malloc and free in kernels on any device. It fails if a text differs
 * from that of the host's snprintf(), or if blocks of memory overlap or differ from a list that the
 * host keeps. Kernels take formats and arguments from memory that the host has written, so that any
 * format can be tried. */
#include "tests/device/suite.h"

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

#include "base/macros.h"
#include "device/space.h"
#include "device/text.h"
#include "tests/device/lib.h"

enum { L_PRINT, L_ASSERT, L_STOP, L_TAKE, L_GIVE, L_CHURN, L_ONE, L_AGAIN, L_BREAK };

#define GID                                                                                        \
    "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.u32 %r4, %r1, %r2, " \
    "%r3;\n"
/* %r9: size of block %r5 of thread %r4: 1 … 1024, now and then more */
#define SIZE                                                                                       \
    "mul.lo.u32 %r6, %r4, 2654435761; mul.lo.u32 %r7, %r5, 40503; add.u32 %r6, %r6, %r7; shr.u32 " \
    "%r8, %r6, 7; and.b32 %r9, %r8, 1023;\nshr.u32 %r8, %r6, 27; setp.eq.u32 %p1, %r8, 3; @%p1 "   \
    "mul.lo.u32 %r9, %r9, 9; add.u32 %r9, %r9, 1; cvt.u64.u32 %rd5, %r9;\n"
static const char lib_ptx[] =
    ".version 7.5\n.target sm_75\n.address_size 64\n"
    ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"
    ".extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param "
    ".b64 c);\n"
    ".extern .func (.param .b64 r) malloc(.param .b64 n);\n"
    ".extern .func free(.param .b64 p);\n"
    /* r[thread] = vprintf(f, a), n times */
    ".visible .entry print(.param .u64 f, .param .u64 a, .param .u64 r, .param .u64 n)\n{\n"
    ".reg .pred %p; .reg .b32 %r<10>; .reg .b64 %rd<10>;\n"
    "ld.param.u64 %rd1, [f]; ld.param.u64 %rd2, [a]; ld.param.u64 %rd3, [r]; ld.param.u32 %r6, "
    "[n];\n" GID "AGAIN:\n{\n.param .b64 x; .param .b64 y; .param .b32 z;\n"
    "st.param.b64 [x], %rd1; st.param.b64 [y], %rd2;\ncall.uni (z), vprintf, (x, y);\n"
    "ld.param.b32 %r5, [z];\n}\nmul.wide.u32 %rd4, %r4, 4; add.s64 %rd4, %rd4, %rd3;\n"
    "st.global.u32 [%rd4], %r5;\nsub.u32 %r6, %r6, 1;\nsetp.gt.s32 %p, %r6, 0;\n@%p bra "
    "AGAIN;\nret;\n}\n"
    /* thread x's assertion fails; who is left, after a barrier, sets p[thread] */
    ".visible .entry check(.param .u64 p, .param .u64 t, .param .u64 x, .param .u64 y)\n{\n"
    ".reg .pred %p; .reg .b32 %r<10>; .reg .b64 %rd<10>;\n"
    "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [t]; ld.param.u32 %r5, [x];\n" GID
    "setp.ne.u32 %p, %r4, %r5;\n@%p bra GOOD;\n"
    "add.s64 %rd3, %rd2, 64; add.s64 %rd4, %rd2, 128; mov.u32 %r6, 77; mov.u64 %rd5, 1;\n"
    "{\n.param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e;\n"
    "st.param.b64 [a], %rd2; st.param.b64 [b], %rd3; st.param.b32 [c], %r6; st.param.b64 [d], "
    "%rd4; st.param.b64 [e], %rd5;\ncall.uni __assertfail, (a, b, c, d, e);\n}\n"
    "GOOD:\nbar.sync 0;\nmul.wide.u32 %rd4, %r4, 4; add.s64 %rd4, %rd4, %rd1; mov.u32 %r6, 1;\n"
    "st.global.u32 [%rd4], %r6;\nret;\n}\n"
    /* the same with a trap, in a function */
    ".func inner(.param .b32 i, .param .b32 x)\n{\n.reg .pred %p; .reg .b32 %r<3>;\n"
    "ld.param.b32 %r1, [i]; ld.param.b32 %r2, [x];\nsetp.eq.u32 %p, %r1, %r2;\n@%p trap;\nret;\n}\n"
    ".visible .entry stop(.param .u64 p, .param .u64 t, .param .u64 x, .param .u64 y)\n{\n"
    ".reg .pred %p; .reg .b32 %r<10>; .reg .b64 %rd<10>;\n"
    "ld.param.u64 %rd1, [p]; ld.param.u32 %r5, [x];\n" GID
    "{\n.param .b32 a; .param .b32 b;\nst.param.b32 [a], %r4; st.param.b32 [b], %r5;\n"
    "call.uni inner, (a, b);\n}\n"
    "bar.sync 0;\nmul.wide.u32 %rd4, %r4, 4; add.s64 %rd4, %rd4, %rd1; mov.u32 %r6, 1;\n"
    "st.global.u32 [%rd4], %r6;\nret;\n}\n"
    /* p[thread * n + k] = malloc(size(thread, k)) or 0; its first and its last byte are k */
    ".visible .entry take(.param .u64 p, .param .u64 n, .param .u64 x, .param .u64 y)\n{\n"
    ".reg .pred %p<5>; .reg .b32 %r<12>; .reg .b64 %rd<10>;\n"
    "ld.param.u64 %rd1, [p]; ld.param.u32 %r10, [n];\n" GID "mov.u32 %r5, 0;\nNEXT:\n" SIZE
    "{\n.param .b64 a; .param .b64 b;\nst.param.b64 [a], %rd5;\ncall.uni (b), malloc, (a);\n"
    "ld.param.b64 %rd2, [b];\n}\n"
    "mad.lo.u32 %r11, %r4, %r10, %r5; mul.wide.u32 %rd4, %r11, 8; add.s64 %rd4, %rd4, %rd1;\n"
    "st.global.u64 [%rd4], %rd2;\nsetp.eq.u64 %p2, %rd2, 0;\n@%p2 bra NONE;\n"
    "add.s64 %rd6, %rd2, %rd5;\nst.u8 [%rd2], %r5;\nst.u8 [%rd6+-1], %r5;\nNONE:\n"
    "add.u32 %r5, %r5, 1;\nsetp.lt.u32 %p3, %r5, %r10;\n@%p3 bra NEXT;\nret;\n}\n"
    /* free(p[thread * n + k]), for k from x on in steps of y */
    ".visible .entry give(.param .u64 p, .param .u64 n, .param .u64 x, .param .u64 y)\n{\n"
    ".reg .pred %p<5>; .reg .b32 %r<13>; .reg .b64 %rd<10>;\n"
    "ld.param.u64 %rd1, [p]; ld.param.u32 %r10, [n]; ld.param.u32 %r5, [x]; ld.param.u32 %r12, "
    "[y];\n" GID "NEXT:\n"
    "mad.lo.u32 %r11, %r4, %r10, %r5; mul.wide.u32 %rd4, %r11, 8; add.s64 %rd4, %rd4, %rd1;\n"
    "ld.global.u64 %rd2, [%rd4];\n{\n.param .b64 a;\nst.param.b64 [a], %rd2;\ncall.uni free, "
    "(a);\n}\n"
    "add.u32 %r5, %r5, %r12;\nsetp.lt.u32 %p3, %r5, %r10;\n@%p3 bra NEXT;\nret;\n}\n"
    /* n times: takes one, fills it, looks whether all is as it was written, gives it back. p[0]:
     * how often it wasn't, p[1]: there was none */
    ".visible .entry churn(.param .u64 p, .param .u64 n, .param .u64 x, .param .u64 y)\n{\n"
    ".reg .pred %p<6>; .reg .b32 %r<16>; .reg .b64 %rd<12>;\n"
    "ld.param.u64 %rd1, [p]; ld.param.u32 %r10, [n];\n" GID "mov.u32 %r5, 0;\nNEXT:\n" SIZE
    "add.u64 %rd5, %rd5, 3; and.b64 %rd5, %rd5, -4;\n"
    "{\n.param .b64 a; .param .b64 b;\nst.param.b64 [a], %rd5;\ncall (b), malloc, (a);\n"
    "ld.param.b64 %rd2, [b];\n}\n"
    "setp.ne.u64 %p2, %rd2, 0;\n@%p2 bra FILL;\natom.global.add.u32 %r11, [%rd1+4], 1;\nbra "
    "DONE;\nFILL:\n"
    "add.s64 %rd6, %rd2, %rd5; mov.u64 %rd7, %rd2; shl.b32 %r12, %r4, 8; or.b32 %r12, %r12, %r5;\n"
    "W:\nst.u32 [%rd7], %r12;\nadd.s64 %rd7, %rd7, 4;\nsetp.lt.u64 %p3, %rd7, %rd6;\n@%p3 bra W;\n"
    "mov.u64 %rd7, %rd2;\n"
    "C:\nld.u32 %r13, [%rd7];\nsetp.ne.u32 %p4, %r13, %r12;\n@%p4 atom.global.add.u32 %r11, "
    "[%rd1], 1;\nadd.s64 %rd7, %rd7, 4;\nsetp.lt.u64 %p3, %rd7, %rd6;\n@%p3 bra C;\n"
    "{\n.param .b64 a;\nst.param.b64 [a], %rd2;\ncall free, (a);\n}\nDONE:\n"
    "add.u32 %r5, %r5, 1;\nsetp.lt.u32 %p3, %r5, %r10;\n@%p3 bra NEXT;\nret;\n}\n"
    /* *p = malloc(n) */
    ".visible .entry one(.param .u64 p, .param .u64 n, .param .u64 x, .param .u64 y)\n{\n"
    ".reg .b64 %rd<4>;\nld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [n];\n"
    "{\n.param .b64 a; .param .b64 b;\nst.param.b64 [a], %rd2;\ncall.uni (b), malloc, (a);\n"
    "ld.param.b64 %rd3, [b];\n}\nst.global.u64 [%rd1], %rd3;\nret;\n}\n"
    /* takes blocks of 4096 bytes until there are none, gives them all back; *p = malloc(n). p[1]:
     * how many there were */
    ".visible .entry again(.param .u64 p, .param .u64 n, .param .u64 x, .param .u64 y)\n{\n"
    ".reg .b64 %rd<8>; .reg .pred %p<3>;\nld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [n];\n"
    "mov.u64 %rd3, 0; mov.u64 %rd5, 4096; mov.u64 %rd6, 0;\nMORE:\n"
    "{\n.param .b64 a; .param .b64 b;\nst.param.b64 [a], %rd5;\ncall.uni (b), malloc, (a);\n"
    "ld.param.b64 %rd4, [b];\n}\nsetp.eq.u64 %p1, %rd4, 0;\n@%p1 bra GIVE;\n"
    "st.global.u64 [%rd4], %rd3;\nmov.u64 %rd3, %rd4;\nadd.u64 %rd6, %rd6, 1;\nbra MORE;\n"
    "GIVE:\nsetp.eq.u64 %p1, %rd3, 0;\n@%p1 bra LAST;\nld.global.u64 %rd4, [%rd3];\n"
    "{\n.param .b64 a;\nst.param.b64 [a], %rd3;\ncall.uni free, (a);\n}\n"
    "mov.u64 %rd3, %rd4;\nbra GIVE;\nLAST:\n"
    "{\n.param .b64 a; .param .b64 b;\nst.param.b64 [a], %rd2;\ncall.uni (b), malloc, (a);\n"
    "ld.param.b64 %rd4, [b];\n}\nst.global.u64 [%rd1], %rd4;\nst.global.u64 [%rd1+8], "
    "%rd6;\nret;\n}\n"
    ".visible .entry break()\n{\nbrkpt;\nret;\n}\n";

struct lib {
    struct suite *s;
    struct ws_ptx_module *m;
    struct ws_dmodule *code;
    struct ws_dinstance *inst[SUITE_CLIENTS];
};

static struct lib begin(struct suite *s)
{
    struct lib l = {.s = s};
    assert_int_equal(ws_ptx_parse(&l.m, lib_ptx, sizeof(lib_ptx) - 1, "lib.ptx", NULL), 0);
    assert_int_equal(ws_device_module_load(s->device, l.m, &l.code, NULL), 0);
    const struct ws_dmodule_info *i = ws_dmodule_info(l.code);
    for (uint32_t k = 0; k < i->n_kernels; k++) {
        if (i->kernels[k].unsupported)
            fail_msg("%s: %s", i->kernels[k].name, i->kernels[k].unsupported);
        assert_int_equal(i->kernels[k].uses_heap, k >= L_TAKE && k <= L_AGAIN);
        assert_int_equal(i->kernels[k].prints,
                         k == L_PRINT || (k == L_ASSERT && !suite_target.cuda));
    }
    for (int c = 0; c < SUITE_CLIENTS; c++)
        assert_int_equal(ws_device_instance_new(s->device, l.code, s->space[c], NULL, &l.inst[c]),
                         0);
    return l;
}

static void end(struct lib *l)
{
    for (int c = 0; c < SUITE_CLIENTS; c++)
        ws_device_instance_free(l->s->device, l->inst[c]);
    ws_device_module_unload(l->s->device, l->code);
    ws_ptx_module_free(l->m);
}

static struct suite_op launch(struct lib *l, int c, uint32_t kernel, uint32_t blocks,
                              uint32_t threads, uint64_t p0, uint64_t p1, uint64_t p2, uint64_t p3)
{
    struct suite_op o =
        suite_launch(l->s, c, (enum suite_kernel)kernel, blocks, threads, p0, p1, p2, p3);
    o.op.launch.instance = l->inst[c];
    return o;
}

/* ---- what is printed ---- */

struct printed {
    char text[2][400000];
    size_t n[2];
    uint32_t lines[2];
};
static struct printed printed[SUITE_CLIENTS];

static void on_print(void *arg, enum ws_output to, const char *text, size_t n)
{
    struct printed *p = arg;
    unsigned k = to == WS_OUTPUT_ASSERT;
    assert_true(to == WS_OUTPUT_PRINTF || to == WS_OUTPUT_ASSERT);
    p->lines[k]++;
    if (n < sizeof(p->text[k]) - p->n[k]) {
        memcpy(p->text[k] + p->n[k], text, n);
        p->n[k] += n;
        p->text[k][p->n[k]] = 0;
    }
}

static void listen(struct lib *l)
{
    memset(printed, 0, sizeof(printed));
    for (int c = 0; c < SUITE_CLIENTS; c++)
        ws_space_set_print(l->s->space[c], on_print, &printed[c]);
}

static uint64_t bits(double d)
{
    uint64_t v;
    memcpy(&v, &d, 8);
    return v;
}

/* Arguments as nvcc lays them out: each of 4 or 8 bytes at a multiple of that; of strings, the
 * offset in the memory. */
struct arg {
    char kind; /* i 4 bytes, l 8 bytes, s a string */
    uint64_t v;
    const char *s;
};
struct print_case {
    const char *format;
    struct arg args[10];
    const char *want;
    int n; /* arguments that are counted */
};

static void print_one(struct lib *l, uint64_t mem, const struct print_case *k)
{
    static uint8_t image[16384];
    uint64_t at = 0, string = 8192;
    memset(image, 0xee, sizeof(image));
    assert_true(strlen(k->format) < 4000);
    strcpy((char *)image + 4096, k->format);
    for (const struct arg *a = k->args; a->kind; a++) {
        uint64_t v = a->v, bytes = a->kind == 'i' ? 4 : 8;
        at = WS_ALIGN_UP(at, bytes);
        if (a->kind == 's' && a->s) {
            v = mem + string;
            strcpy((char *)image + string, a->s);
            string += strlen(a->s) + 1;
        }
        memcpy(image + at, &v, bytes);
        at += bytes;
    }
    suite_put(l->s, 0, mem, image, sizeof(image));
    listen(l);
    struct suite_op o = launch(l, 0, L_PRINT, 1, 1, mem + 4096, mem, mem + 16384, 1);
    suite_run(l->s, &o, WS_DEV_OK);
    int32_t n;
    suite_get(l->s, 0, &n, mem + 16384, 4);
    if (strcmp(printed[0].text[0], k->want))
        fail_msg("\"%s\" made \"%s\", not \"%s\"", k->format, printed[0].text[0], k->want);
    if (n != k->n)
        fail_msg("\"%s\" has %d arguments, not %d", k->format, n, k->n);
    assert_int_equal(printed[0].lines[0], 1);
}

void suite_lib_formats(struct suite *s)
{
    char expect[20][5000], many[1500], cut[1100], format[2000];
    struct lib l = begin(s);
    uint64_t mem = suite_alloc(s, 0, 20480);
    memset(many, 'm', sizeof(many) - 1);
    many[sizeof(many) - 1] = 0;
    memset(cut, 'm', 1023);
    cut[1023] = 0;
    memset(format, 'f', 1500);
    format[1500] = 0;
    snprintf(expect[0], sizeof(expect[0]), "%d %u %i %x %X %o|", -7, 4000000000u, 12, 0xbeef,
             0xbeef, 8);
    snprintf(expect[1], sizeof(expect[1]), "%8d|%-8d|%08d|%+d|% d|%#x|%#o|", 42, 42, 42, 42, 42, 42,
             42);
    snprintf(expect[2], sizeof(expect[2]), "%lld %llu %lx|", -5000000000LL, 18000000000000000000ull,
             0x123456789abcdefUL);
    snprintf(expect[3], sizeof(expect[3]), "%f %e %g %E %G %a %A %F|", 1.5, -2.25e10, 1e-7, 3e-9,
             123456789.0, 1.0, 0.5, INFINITY);
    snprintf(expect[4], sizeof(expect[4]), "%10.3f|%-12.2e|%.0f|%#.0f|", 3.14159, 31415.9, 2.5,
             2.5);
    snprintf(expect[5], sizeof(expect[5]), "%*d|%-*d|%.*f|%*.*f|", 6, 1, 6, 2, 2, 3.14159, 9, 1,
             2.55);
    snprintf(expect[6], sizeof(expect[6]), "%s|%10s|%-10s|%.3s|%c%c|", "alpha", "b", "c", "delta",
             'x', 'y');
    snprintf(expect[7], sizeof(expect[7]), "%p|", (void *)0x1234);
    snprintf(expect[8], sizeof(expect[8]), "%s", cut);
    snprintf(expect[9], sizeof(expect[9]), "%.1023s", format);
    snprintf(expect[10], sizeof(expect[10]), "%zu %td %jd %hd|", (size_t)99, (ptrdiff_t)-1,
             (intmax_t)7, (short)5);
    const struct print_case cases[] = {
        {"plain\n", {{0}}, "plain\n", 0},
        {"", {{0}}, "", 0},
        {"100%%|%5%|", {{0}}, "100%|%|", 0},
        {"%d %u %i %x %X %o|",
         {{'i', (uint32_t)-7, 0},
          {'i', 4000000000u, 0},
          {'i', 12, 0},
          {'i', 0xbeef, 0},
          {'i', 0xbeef, 0},
          {'i', 8, 0}},
         expect[0],
         6},
        {"%8d|%-8d|%08d|%+d|% d|%#x|%#o|",
         {{'i', 42, 0},
          {'i', 42, 0},
          {'i', 42, 0},
          {'i', 42, 0},
          {'i', 42, 0},
          {'i', 42, 0},
          {'i', 42, 0}},
         expect[1],
         7},
        {"%lld %llu %lx|",
         {{'l', (uint64_t)-5000000000LL, 0},
          {'l', 18000000000000000000ull, 0},
          {'l', 0x123456789abcdefUL, 0}},
         expect[2],
         3},
        {"%f %e %g %E %G %a %A %F|",
         {{'l', bits(1.5), 0},
          {'l', bits(-2.25e10), 0},
          {'l', bits(1e-7), 0},
          {'l', bits(3e-9), 0},
          {'l', bits(123456789.0), 0},
          {'l', bits(1.0), 0},
          {'l', bits(0.5), 0},
          {'l', bits(INFINITY), 0}},
         expect[3],
         8},
        {"%10.3f|%-12.2e|%.0f|%#.0f|",
         {{'l', bits(3.14159), 0},
          {'l', bits(31415.9), 0},
          {'l', bits(2.5), 0},
          {'l', bits(2.5), 0}},
         expect[4],
         4},
        {"%*d|%-*d|%.*f|%*.*f|",
         {{'i', 6, 0},
          {'i', 1, 0},
          {'i', 6, 0},
          {'i', 2, 0},
          {'i', 2, 0},
          {'l', bits(3.14159), 0},
          {'i', 9, 0},
          {'i', 1, 0},
          {'l', bits(2.55), 0}},
         expect[5],
         9},
        {"%s|%10s|%-10s|%.3s|%c%c|",
         {{'s', 0, "alpha"},
          {'s', 0, "b"},
          {'s', 0, "c"},
          {'s', 0, "delta"},
          {'i', 'x', 0},
          {'i', 'y', 0}},
         expect[6],
         6},
        {"%p|", {{'l', 0x1234, 0}}, expect[7], 1},
        {"%s", {{'s', 0, many}}, expect[8], 1}, /* strings have a longest length, and formats */
        {format, {{0}}, expect[9], 0},
        {"%zu %td %jd %hd|",
         {{'l', 99, 0}, {'l', (uint64_t)-1, 0}, {'l', 7, 0}, {'i', 5, 0}},
         expect[10],
         4},
        {"%s|", {{'s', 0, NULL}}, "(null)|", 1},
        /* what is no conversion takes nothing */
        {"%y|%", {{0}}, "y|", 0},
        {"%-", {{0}}, "", 0},
        {"%5.3", {{0}}, "", 0},
        {"%ll", {{0}}, "", 0},
        {"%5-d%d|", {{'i', 3, 0}}, "-d3|", 1},
        {"%n|%d", {{'i', 4, 0}}, "n|4", 1},
        {"%.1.2d|", {{0}}, ".2d|", 0},
        {"%l.d|", {{0}}, ".d|", 0},
        {"%.*.*d|", {{'i', 4, 0}}, ".*d|", 1},
        {"a%d b%lld c%d d%s e%d|", /* alignment */
         {{'i', 1, 0}, {'l', 2, 0}, {'i', 3, 0}, {'s', 0, "four"}, {'i', 5, 0}},
         "a1 b2 c3 dfour e5|",
         5},
    };
    for (size_t k = 0; k < WS_ARRAY_SIZE(cases); k++)
        print_one(&l, mem, &cases[k]);
    /* no format at all */
    listen(&l);
    struct suite_op o = launch(&l, 0, L_PRINT, 1, 1, 0, mem, mem + 16384, 1);
    suite_run(s, &o, WS_DEV_OK);
    int32_t n;
    suite_get(s, 0, &n, mem + 16384, 4);
    assert_int_equal(n, -1);
    assert_int_equal(printed[0].lines[0], 0);
    end(&l);
}

/* Formats of any letters: who walks them on the device and who makes the text on the host must read
 * them alike, or arguments shift. All arguments are the address of one string. */
struct same {
    struct ws_text_args base;
    uint64_t at, word;
};
static uint64_t same_next(struct ws_text_args *base, unsigned bytes)
{
    struct same *a = WS_CONTAINER_OF(base, struct same, base);
    a->at = WS_ALIGN_UP(a->at, (uint64_t)bytes);
    uint64_t v = bytes == 8 ? a->word : a->at % 8 ? a->word >> 32 : (uint32_t)a->word;
    a->at += bytes;
    return v;
}
static bool same_string(struct ws_text_args *base, uint64_t value, char *to, size_t size)
{
    assert_int_equal(value, WS_CONTAINER_OF(base, struct same, base)->word);
    snprintf(to, size, "string");
    return true;
}

void suite_lib_any_format(struct suite *s)
{
    static const char letters[] = "%%%%%%dsxugfcpein-+ #0159*.*hlLqjzty|";
    struct lib l = begin(s);
    uint64_t mem = suite_alloc(s, 0, 8192), words[128];
    uint32_t x = 4711;
    for (size_t k = 0; k < WS_ARRAY_SIZE(words); k++)
        words[k] = mem + 4096;
    suite_put(s, 0, mem, words, sizeof(words));
    suite_put(s, 0, mem + 4096, "string", 7);
    for (int round = 0; round < 150; round++) {
        char format[40], want[WS_TEXT_MAX];
        struct same a = {.base = {.next = same_next, .string = same_string}, .word = mem + 4096};
        size_t n = 1 + (uint32_t)round % (sizeof(format) - 1);
        for (size_t k = 0; k < n; k++) {
            x = x * 1664525u + 1013904223u;
            format[k] = letters[(x >> 8) % (sizeof(letters) - 1)];
        }
        format[n - 1] = 0;
        suite_put(s, 0, mem + 2048, format, n);
        listen(&l);
        struct suite_op o = launch(&l, 0, L_PRINT, 1, 1, mem + 2048, mem, mem + 6144, 1);
        suite_run(s, &o, WS_DEV_OK);
        size_t len = ws_text_format(format, &a.base, want, sizeof(want));
        int32_t got;
        suite_get(s, 0, &got, mem + 6144, 4);
        if (got != a.base.n || printed[0].n[0] != len || memcmp(printed[0].text[0], want, len) != 0)
            fail_msg("\"%s\": %d arguments, not %d; \"%s\", not \"%.*s\"", format, got, a.base.n,
                     printed[0].text[0], (int)len, want);
    }
    end(&l);
}

/* Many threads of many blocks, each several times: all lines are there, whole; of each thread as
 * often as it printed. */
void suite_lib_many_prints(struct suite *s)
{
    enum { BLOCKS = 20, THREADS = 64, TIMES = 5, N = BLOCKS * THREADS * TIMES };
    struct lib l = begin(s);
    uint64_t mem = suite_alloc(s, 0, 32768);
    uint64_t other = suite_alloc(s, 1, 32768);
    const struct {
        uint32_t v, pad;
        uint64_t s;
    } args = {5, 0, mem + 2048};
    suite_put(s, 0, mem, "line %d of %s\n", 15);
    suite_put(s, 0, mem + 1024, &args, sizeof(args));
    suite_put(s, 0, mem + 2048, "many", 5);
    suite_put(s, 1, other, "other\n", 7);
    listen(&l);
    struct suite_op o = launch(&l, 0, L_PRINT, BLOCKS, THREADS, mem, mem + 1024, mem + 4096, TIMES);
    struct suite_op p = launch(&l, 1, L_PRINT, 3, 32, other, 0, other + 4096, 1);
    suite_submit(s, &o);
    suite_submit(s, &p);
    suite_wait(&o);
    suite_wait(&p);
    assert_int_equal(o.op.error, WS_DEV_OK);
    assert_int_equal(p.op.error, WS_DEV_OK);
    assert_int_equal(printed[0].lines[0], N);
    assert_int_equal(printed[0].n[0], N * strlen("line 5 of many\n"));
    for (uint32_t k = 0; k < N; k++)
        assert_memory_equal(printed[0].text[0] + k * 15, "line 5 of many\n", 15);
    assert_int_equal(printed[1].lines[0], 96);
    assert_int_equal(printed[0].lines[1] + printed[1].lines[1], 0);
    /* nothing of it is left for the next */
    listen(&l);
    suite_put(s, 0, mem, "next\n", 6);
    o = launch(&l, 0, L_PRINT, 1, 1, mem, mem + 1024, mem + 4096, 1);
    suite_run(s, &o, WS_DEV_OK);
    assert_string_equal(printed[0].text[0], "next\n");
    end(&l);
}

/* ---- who stops ---- */

static void still_well(struct lib *l)
{
    struct suite_op other = suite_launch(l->s, 1, K_COUNT, 1, 32, 0, 0, 0, 0);
    suite_run(l->s, &other, WS_DEV_OK);
    assert_null(suite_target.cuda ? ws_device_cuda_lost(l->s->device) : NULL);
}

void suite_lib_assert(struct suite *s)
{
    enum { BLOCKS = 6, THREADS = 64 };
    struct lib l = begin(s);
    uint64_t p = suite_alloc(s, 0, 4096), t = suite_alloc(s, 0, 512);
    suite_put(s, 0, t, "x < 3", 6);
    suite_put(s, 0, t + 64, "file.cu", 8);
    suite_put(s, 0, t + 128, "void check(int)", 16);
    for (int sms = 0; sms < 2; sms++) {
        listen(&l);
        struct suite_op o = launch(&l, 0, L_ASSERT, BLOCKS, THREADS, p, t, 3 * THREADS + 5, 0);
        if (sms)
            ws_sm_set_add(&o.op.launch.sms, 2);
        suite_run(s, &o, WS_DEV_E_ASSERT);
        assert_non_null(strstr(o.op.text, "x < 3"));
        assert_non_null(strstr(o.op.text, "block (3,0,0) thread (5,0,0)"));
        assert_string_equal(printed[0].text[1],
                            "file.cu:77: void check(int): block: [3,0,0], thread: [5,0,0] "
                            "Assertion `x < 3` failed.\n");
        assert_int_equal(printed[0].lines[0] + printed[1].lines[0] + printed[1].lines[1], 0);
        still_well(&l);
        /* and none fails */
        o = launch(&l, 0, L_ASSERT, BLOCKS, THREADS, p, t, 100000, 0);
        suite_run(s, &o, WS_DEV_OK);
        uint32_t v[BLOCKS * THREADS];
        suite_get(s, 0, v, p, sizeof(v));
        for (uint32_t k = 0; k < BLOCKS * THREADS; k++)
            assert_int_equal(v[k], 1);
    }
    end(&l);
}

void suite_lib_trap(struct suite *s)
{
    struct lib l = begin(s);
    uint64_t p = suite_alloc(s, 0, 4096);
    struct suite_op o = launch(&l, 0, L_STOP, 4, 64, p, 0, 130, 0);
    suite_run(s, &o, WS_DEV_E_TRAP);
    assert_non_null(strstr(o.op.text, "stop"));
    assert_non_null(strstr(o.op.text, "block (2,0,0) thread (2,0,0)"));
    still_well(&l);
    o = launch(&l, 0, L_STOP, 4, 64, p, 0, 1000, 0);
    suite_run(s, &o, WS_DEV_OK);
    o = launch(&l, 0, L_BREAK, 1, 1, 0, 0, 0, 0);
    suite_run(s, &o, WS_DEV_E_TRAP);
    still_well(&l);
    end(&l);
}

/* A launch of two clients, in rounds of one block of the first and two of the second: each hears
 * what its blocks print, and an assertion is the error of its part alone. */
void suite_lib_parts(struct suite *s)
{
    enum { ROUNDS = 5 };
    struct lib l = begin(s);
    uint64_t p = suite_alloc(s, 0, 4096), t = suite_alloc(s, 0, 512);
    struct ws_launch_parts *parts = calloc(1, sizeof(*parts) + 2 * sizeof(parts->part[0]));
    suite_put(s, 0, t, "x < 3", 6);
    suite_put(s, 0, t + 64, "file.cu", 8);
    suite_put(s, 0, t + 128, "void check(int)", 16);
    suite_put(s, 0, t + 256, "line\n", 6);
    for (int asserts = 0; asserts < 2; asserts++) {
        *parts = (struct ws_launch_parts){.common = s->space[0], .n = 2, .round = 3};
        for (uint32_t k = 0; k < 2; k++)
            parts->part[k] = (struct ws_launch_part){.space = s->space[k],
                                                     .share = k + 1,
                                                     .kernel = k ? "second" : "first",
                                                     .grid = {ROUNDS * (k + 1), 1, 1},
                                                     .block = {32, 1, 1}};
        listen(&l);
        struct suite_op o = asserts ? launch(&l, 0, L_ASSERT, 3, 32, p, t, 2 * 32 + 7, 0)
                                    : launch(&l, 0, L_PRINT, 3, 32, t + 256, 0, p, 1);
        o.op.launch.grid[1] = ROUNDS;
        o.op.launch.parts = parts;
        suite_run(s, &o, WS_DEV_OK);
        assert_int_equal(parts->part[0].error, WS_DEV_OK);
        if (!asserts) {
            assert_int_equal(parts->part[1].error, WS_DEV_OK);
            assert_int_equal(printed[0].lines[0], ROUNDS * 32);
            assert_int_equal(printed[1].lines[0], 2 * ROUNDS * 32);
            continue;
        }
        /* the kernel looks at %ctaid.x alone: block 2 of each round, the second's blocks 1, 3, … */
        assert_int_equal(parts->part[1].error, WS_DEV_E_ASSERT);
        assert_non_null(strstr(parts->part[1].text, "kernel second block ("));
        assert_non_null(strstr(parts->part[1].text, "thread (7,0,0)"));
        assert_int_equal(printed[0].lines[1], 0);
        assert_true(printed[1].lines[1] >= 1 && printed[1].lines[1] <= ROUNDS);
        for (uint32_t k = 0; k < 2 * ROUNDS; k++) {
            char text[160];
            snprintf(text, sizeof(text),
                     "file.cu:77: void check(int): block: [%u,0,0], thread: [7,0,0] ", k);
            if (k % 2 == 0)
                assert_null(strstr(printed[1].text[1], text));
        }
        still_well(&l);
    }
    free(parts);
    end(&l);
}

/* ---- memory ---- */

static uint32_t size_of(uint32_t thread, uint32_t k)
{
    uint32_t x = thread * 2654435761u + k * 40503u, n = x >> 7 & 1023;
    return (x >> 27 == 3 ? n * 9 : n) + 1;
}

static int by_address(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return x[0] < y[0] ? -1 : x[0] > y[0];
}

/* What the kernel was given: aligned, apart from each other, and as it was written. Return: how
 * many blocks. */
static uint32_t check_blocks(struct lib *l, uint64_t p, uint32_t threads, uint32_t n,
                             uint64_t heap_bytes)
{
    uint32_t total = threads * n, got = 0;
    uint64_t *va = malloc(total * sizeof(*va));
    uint64_t(*v)[2] = malloc(total * sizeof(*v)), low = UINT64_MAX, high = 0;
    suite_get(l->s, 0, va, p, total * sizeof(*va));
    for (uint32_t k = 0; k < total; k++)
        if (va[k]) {
            v[got][0] = va[k];
            v[got++][1] = va[k] + size_of(k / n, k % n);
            assert_int_equal(va[k] % 16, 0);
            low = WS_MIN(low, va[k]);
            high = WS_MAX(high, v[got - 1][1]);
        }
    qsort(v, got, sizeof(*v), by_address);
    for (uint32_t k = 1; k < got; k++)
        assert_true(v[k][0] >= v[k - 1][1]);
    assert_true(!got || high - low <= heap_bytes);
    uint8_t *all = got ? malloc(high - low) : NULL;
    if (got)
        suite_get(l->s, 0, all, low, high - low);
    for (uint32_t k = 0; k < total; k++)
        if (va[k]) {
            assert_int_equal(all[va[k] - low], k % n);
            assert_int_equal(all[va[k] - low + size_of(k / n, k % n) - 1], k % n);
        }
    free(all);
    free(v);
    free(va);
    return got;
}

void suite_lib_heap(struct suite *s)
{
    enum { BLOCKS = 8, THREADS = 64, N = 6, ALL = BLOCKS * THREADS };
    struct lib l = begin(s);
    uint64_t p = suite_alloc(s, 0, ALL * N * 8), word[2];
    uint32_t first = 0;
    for (int round = 0; round < 3; round++) { /* with room for all of it */
        struct suite_op o = launch(&l, 0, L_TAKE, BLOCKS, THREADS, p, N, 0, 0);
        suite_run(s, &o, WS_DEV_OK);
        uint32_t got = check_blocks(&l, p, ALL, N, 8 << 20);
        assert_int_equal(got, ALL * N);
        for (uint64_t from = 0; from < 3; from++) { /* in three goes */
            o = launch(&l, 0, L_GIVE, BLOCKS, THREADS, p, N, from, 3);
            suite_run(s, &o, WS_DEV_OK);
        }
        first = got;
    }
    assert_true(first > 0);
    /* once it is there its size can't change; dropped, it is another one */
    assert_int_equal(ws_space_set_heap_bytes(s->space[0], 300000), -EBUSY);
    ws_space_drop_heap(s->space[0], NULL);
    bool placed = s->device->ops->map != NULL;
    if (placed)
        assert_int_equal(ws_space_place_heap(s->space[0], 0, &word[0]), 0);
    assert_int_equal(ws_space_set_heap_bytes(s->space[0], 300000), 0);
    if (placed)
        assert_int_equal(
            ws_space_place_heap(s->space[0], SUITE_VA(0) + (UINT64_C(3) << 31), &word[0]), 0);
    for (int round = 0; round < 3; round++) {
        struct suite_op o = launch(&l, 0, L_TAKE, BLOCKS, THREADS, p, N, 0, 0);
        suite_run(s, &o, WS_DEV_OK);
        uint32_t got = check_blocks(&l, p, ALL, N, 300000 + 512);
        assert_true(got > 100 && got < ALL * N); /* the others were told that there is none */
        o = launch(&l, 0, L_GIVE, BLOCKS, THREADS, p, N, 0, 1);
        suite_run(s, &o, WS_DEV_OK);
    }
    /* all given back: one large block is to be had again, once */
    for (int k = 0; k < 2; k++) {
        struct suite_op o = launch(&l, 0, L_ONE, 1, 1, p, 200000, 0, 0);
        suite_run(s, &o, WS_DEV_OK);
        suite_get(s, 0, word, p, 8);
        assert_int_equal(word[0] != 0, k == 0);
        if (!k)
            suite_put(s, 0, p + 8, word, 8);
    }
    struct suite_op give = launch(&l, 0, L_GIVE, 1, 1, p, 2, 0, 1); /* it, and NULL */
    suite_run(s, &give, WS_DEV_OK);
    /* the same within a kernel, again and again */
    for (int k = 0; k < 3; k++) {
        struct suite_op o = launch(&l, 0, L_AGAIN, 1, 1, p, 200000, 0, 0);
        suite_run(s, &o, WS_DEV_OK);
        suite_get(s, 0, word, p, 16);
        assert_true(word[0] && word[1] > 50 && word[1] < 300000 / 4096);
        o = launch(&l, 0, L_AGAIN, 1, 1, p + 16, 200000, 0, 0); /* while it is taken */
        suite_run(s, &o, WS_DEV_OK);
        suite_get(s, 0, word, p + 16, 16);
        assert_true(!word[0] && word[1] > 10 && word[1] < 100000 / 4096 + 1);
        o = launch(&l, 0, L_GIVE, 1, 1, p, 1, 0, 1);
        suite_run(s, &o, WS_DEV_OK);
    }
    /* all threads at once take, use and give back */
    suite_put(s, 0, p, (uint64_t[2]){0}, 16);
    struct suite_op o = launch(&l, 0, L_CHURN, 6, THREADS, p, 10, 0, 0);
    suite_run(s, &o, WS_DEV_OK);
    suite_get(s, 0, word, p, 8);
    assert_int_equal((uint32_t)word[0], 0);
    end(&l);
}

/* What malloc() didn't give, and what was given back already: an error of that client's alone. */
void suite_lib_free(struct suite *s)
{
    struct lib l = begin(s);
    uint64_t p = suite_alloc(s, 0, 512), v, odd[] = {p, 16, 0};
    struct suite_op o = launch(&l, 0, L_TAKE, 1, 1, p, 1, 0, 0);
    suite_run(s, &o, WS_DEV_OK);
    suite_get(s, 0, &v, p, 8);
    odd[2] = v + 16;
    for (size_t k = 0; k < 3; k++) {
        suite_put(s, 0, p, &odd[k], 8);
        o = launch(&l, 0, L_GIVE, 1, 1, p, 1, 0, 1);
        suite_run(s, &o, WS_DEV_E_ILLEGAL_ADDRESS);
        assert_non_null(strstr(o.op.text, "free()"));
        still_well(&l);
    }
    suite_put(s, 0, p, &v, 8);
    o = launch(&l, 0, L_GIVE, 1, 1, p, 1, 0, 1);
    suite_run(s, &o, WS_DEV_OK);
    o = launch(&l, 0, L_GIVE, 1, 1, p, 1, 0, 1);
    suite_run(s, &o, WS_DEV_E_ILLEGAL_ADDRESS);
    still_well(&l);
    suite_put(s, 0, p, (uint64_t[1]){0}, 8); /* free(NULL) is none */
    o = launch(&l, 0, L_GIVE, 1, 1, p, 1, 0, 1);
    suite_run(s, &o, WS_DEV_OK);
    end(&l);
}
