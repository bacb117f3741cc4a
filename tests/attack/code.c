/* SPDX-License-Identifier: Apache-2.0 */
/* tests/attack/code.c - attacks by device code: rows 1, 8 and 9, and very large images. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "tests/attack/attack.h"

#define HEAD "// %u\n.version 7.0\n.target sm_50\n.address_size 64\n"

/* A text that grows. */
struct text {
    char *p;
    size_t n, size;
};

static void __attribute__((format(printf, 2, 3))) say(struct text *x, const char *format, ...)
{
    va_list ap;
    if (x->size - x->n < 4096) {
        x->size = 2 * x->size + 8192;
        x->p = realloc(x->p, x->size);
        if (!x->p)
            abort();
    }
    va_start(ap, format);
    x->n += (size_t)vsnprintf(x->p + x->n, x->size - x->n, format, ap);
    va_end(ap);
}

/* ---- row 1: launches between a reset and its end ---- */

/* A kernel of some tens of ms. */
#define LONG_KERNEL                                                                                \
    ".visible .entry k()\n{\n.reg .u32 %%r<2>;\n.reg .pred %%p;\nmov.u32 %%r1, 0;\n"               \
    "L:\nadd.u32 %%r1, %%r1, 1;\nsetp.lt.u32 %%p, %%r1, 3000000;\n@%%p bra L;\nret;\n}\n"

static const char *reset(const struct target *t, unsigned copy)
{
    Ws__Reset reset_it = WS__RESET__INIT;
    Ws__Launch l = raw_launch(1, 0);
    struct text x = {0};
    struct raw r;
    say(&x, HEAD LONG_KERNEL, copy);
    for (; attack_goes_on(t) && attack_open(&r, t); raw_close(&r)) {
        if (raw_load(&r, 1, x.p, x.n))
            continue;
        raw_put(&r, WS__COMMAND__C_LAUNCH, &l);
        uint64_t seq = raw_put(&r, WS__COMMAND__C_RESET, &reset_it);
        for (int i = 0; i < 20; i++)
            raw_put(&r, WS__COMMAND__C_LAUNCH, &l);
        if (!raw_send(&r))
            raw_wait(&r, seq, NULL);
        attack_sleep_ms(5);
    }
    return NULL;
}

/* ---- row 8: compile bombs ---- */

static const char *load_again_and_again(const struct target *t, unsigned copy,
                                        void (*make)(struct text *, unsigned))
{
    struct raw r;
    for (unsigned i = 0; attack_goes_on(t) && attack_open(&r, t); i++) {
        struct text x = {0};
        make(&x, copy * 1000 + i);
        raw_load_begin(&r, 1, x.p, x.n);
        /* Without waiting for the end: another client brings the next one. */
        attack_sleep_ms(50);
        free(x.p);
    }
    return NULL;
}

/* Functions of which each calls the one before it twice. */
static void make_doubling(struct text *x, unsigned seed)
{
    say(x, HEAD ".func f0()\n{\nret;\n}\n", seed);
    for (unsigned i = 1; i <= 700; i++)
        say(x, ".func f%u()\n{\ncall f%u;\ncall f%u;\nret;\n}\n", i, i - 1, i - 1);
    say(x, ".visible .entry k()\n{\ncall f700;\nret;\n}\n");
}

static const char *doubling(const struct target *t, unsigned copy)
{
    return load_again_and_again(t, copy, make_doubling);
}

static void make_many(struct text *x, unsigned seed)
{
    say(x, HEAD, seed);
    for (unsigned i = 0; i < 10000; i++)
        say(x, ".entry k%u(){ret;}\n", i);
}

static const char *many(const struct target *t, unsigned copy)
{
    return load_again_and_again(t, copy, make_many);
}

/* Unsaid by the issue, same family: one huge kernel whose blocks all jump everywhere. */
static void make_jumps(struct text *x, unsigned seed)
{
    say(x, HEAD ".visible .entry k()\n{\n.reg .pred %%p;\n.reg .u32 %%r<4>;\n", seed);
    for (unsigned i = 0; i < 6000; i++)
        say(x, "L%u:\nsetp.eq.u32 %%p, %%r1, %u;\n@%%p bra L%u;\n", i, i, (i * 2654435761u) % 6000);
    say(x, "ret;\n}\n");
}

static const char *jumps(const struct target *t, unsigned copy)
{
    return load_again_and_again(t, copy, make_jumps);
}

/* Kernels that run for long, and of which a compiler makes very much: each access may be one of
 * many kinds. */
static void make_costly(struct text *x, unsigned seed)
{
    say(x,
        HEAD ".global .align 8 .b8 g[4096];\n.visible .entry k()\n{\n.reg .pred %%p;\n"
             ".reg .u32 %%r<200>;\n.reg .u64 %%x<3>;\nmov.u64 %%x1, g;\nmov.u32 %%r1, %%tid.x;\n"
             "mul.wide.u32 %%x2, %%r1, 4;\nadd.u64 %%x1, %%x1, %%x2;\nmov.u32 %%r0, 0;\nL:\n",
        seed);
    for (unsigned i = 0; i < 500; i++)
        say(x, "ld.global.u32 %%r%u, [%%x1+%u];\nst.global.u32 [%%x1+%u], %%r%u;\n", 2 + i % 190,
            4 * i, 4 * i + 4, 2 + (i + 7) % 190);
    say(x, "add.u32 %%r0, %%r0, 1;\nsetp.lt.u32 %%p, %%r0, 1000;\n@%%p bra L;\nret;\n}\n");
}

static const char *compiling(const struct target *t, unsigned copy)
{
    Ws__Launch l = raw_launch(1, 0);
    struct raw r;
    l.grid_x = 1000;
    l.block_x = 64;
    for (unsigned i = 0; attack_goes_on(t) && attack_open(&r, t); i++) {
        struct text x = {0};
        make_costly(&x, copy * 1000 + i);
        if (!raw_load(&r, 1, x.p, x.n))
            raw_put(&r, WS__COMMAND__C_LAUNCH, &l);
        raw_send(&r);
        attack_sleep_ms(1000);
        free(x.p);
    }
    return NULL;
}

/* Kernels that are hard to look at before they are compiled: jumps through long lists, each to the
 * one before. */
static void make_lists(struct text *x, unsigned seed)
{
    enum { LABELS = 2500, LISTS = 600 };
    say(x,
        HEAD ".global .align 4 .b8 g[4];\n.visible .entry k()\n{\n.reg .pred %%p;\n"
             ".reg .u32 %%r<3>;\n.reg .u64 %%x;\nmov.u64 %%x, g;\nmov.u32 %%r0, 0;\n"
             "mov.u32 %%r1, %%tid.x;\nmov.u32 %%r2, %%tid.y;\nA:\nadd.u32 %%r0, %%r0, 1;\n"
             "setp.lt.u32 %%p, %%r0, 2000;\n@%%p bra A;\nbra L%u;\nT: .branchtargets E",
        seed, LISTS - 1);
    for (unsigned i = 1; i < LABELS; i++)
        say(x, ",E");
    for (unsigned i = 0; i < LISTS; i++)
        say(x, ";\nL%u:\nsetp.eq.u32 %%p, %%r1, 77;\n@%%p bra L%u;\nbrx.idx %%r1, T", i,
            i ? i - 1 : 0);
    say(x, ";\nE:\nst.global.u32 [%%x], %%r2;\nret;\n}\n");
}

/* Somebody who loads small modules and unloads them again. */
static void come_and_go(const struct target *t)
{
    Ws__Launch l = raw_launch(1, 0);
    Ws__Sync s = WS__SYNC__INIT;
    uint64_t module = 1;
    struct raw r;
    s.what_case = WS__SYNC__WHAT_DEVICE;
    for (unsigned i = 0; attack_goes_on(t) && attack_open(&r, t); i++) {
        struct text x = {0};
        say(&x, HEAD ".visible .entry k()\n{\nret;\n}\n", i);
        if (!raw_load(&r, 1, x.p, x.n)) {
            raw_put(&r, WS__COMMAND__C_LAUNCH, &l);
            raw_put(&r, WS__COMMAND__C_MODULE_UNLOAD, &module);
            raw_call(&r, WS__COMMAND__C_SYNC, &s, NULL);
        }
        raw_close(&r);
        free(x.p);
        attack_sleep_ms(5);
    }
}

static const char *lists(const struct target *t, unsigned copy)
{
    Ws__Launch l = raw_launch(1, 0);
    struct raw r;
    if (copy)
        come_and_go(t);
    l.grid_x = 1000;
    l.block_x = 64;
    for (unsigned i = 0; attack_goes_on(t) && attack_open(&r, t); i++) {
        struct text x = {0};
        make_lists(&x, i);
        if (!raw_load(&r, 1, x.p, x.n))
            raw_put(&r, WS__COMMAND__C_LAUNCH, &l);
        raw_send(&r);
        attack_sleep_ms(1500);
        raw_close(&r);
        free(x.p);
    }
    return NULL;
}

/* ---- row 10: kernels whose blocks take very much memory ---- */

/* Each thread writes to every page of as much local memory as it may have, and goes on for ever. */
static const char *local_memory(const struct target *t, unsigned copy)
{
    Ws__Launch l = raw_launch(1, 0);
    struct text x = {0};
    struct raw r;
    say(&x,
        HEAD ".visible .entry k()\n{\n.local .align 8 .b8 all[524288];\n.reg .pred %%p;\n"
             ".reg .u32 %%r<2>;\n.reg .u64 %%x<2>;\nAGAIN:\nmov.u32 %%r1, 0;\n"
             "mov.u64 %%x1, all;\nL:\nst.local.u32 [%%x1], %%r1;\nadd.u64 %%x1, %%x1, 4096;\n"
             "add.u32 %%r1, %%r1, 1;\nsetp.lt.u32 %%p, %%r1, 128;\n@%%p bra L;\nbra AGAIN;\n}\n",
        copy);
    l.grid_x = 1000;
    l.block_x = 64;
    for (; attack_goes_on(t) && attack_open(&r, t); raw_close(&r)) {
        Ws__Sync s = WS__SYNC__INIT;
        s.what_case = WS__SYNC__WHAT_DEVICE;
        if (raw_load(&r, 1, x.p, x.n))
            continue;
        raw_put(&r, WS__COMMAND__C_LAUNCH, &l);
        uint64_t seq = raw_put(&r, WS__COMMAND__C_SYNC, &s);
        if (!raw_send(&r))
            raw_wait(&r, seq, NULL);
    }
    return NULL;
}

/* Launches of very many blocks, of which only the last does not end. Until then each launch keeps
 * what the others have cost. */
static const char *records(const struct target *t, unsigned copy)
{
    enum { STREAMS = 600, GRID = 1 << 14 };
    Ws__StreamCreate create = WS__STREAM_CREATE__INIT;
    Ws__Launch l = raw_launch(1, 0);
    struct text x = {0};
    struct raw r;
    say(&x,
        HEAD ".visible .entry k()\n{\n.reg .pred %%p;\n.reg .u32 %%r<2>;\nmov.u32 %%r1, "
             "%%ctaid.x;\nsetp.eq.u32 %%p, %%r1, %u;\nL:\n@%%p bra L;\nret;\n}\n",
        copy, GRID - 1);
    create.non_blocking = true;
    l.grid_x = GRID;
    if (!attack_open(&r, t) || raw_load(&r, 1, x.p, x.n))
        return NULL;
    for (unsigned i = 0; i < STREAMS; i++) {
        create.stream = l.stream = WS_STREAM_FIRST + i;
        raw_put(&r, WS__COMMAND__C_STREAM_CREATE, &create);
        raw_put(&r, WS__COMMAND__C_LAUNCH, &l);
    }
    raw_send(&r);
    while (attack_goes_on(t))
        attack_sleep_ms(5);
    return NULL;
}

/* ---- very large images ---- */

enum { GIB = 1 << 30, PIECE = 1 << 20 };

/* Kernels, then spaces: the most that max_image_bytes allows by default. Hashing it would take
 * longer than the attack: sha256sum has printed this for the text that gibibyte() makes. */
static const char gibibyte_sha256[] =
    "\x72\xe3\x9f\xf1\x4d\xe4\x62\x29\xf1\x03\xfc\xe1\x84\x64\x13\x37"
    "\x52\x74\x64\xd5\x5f\x39\x5c\x83\x50\x4f\x05\x08\x6e\x0f\x0d\x5f";

static const char *gibibyte(const struct target *t, unsigned copy)
{
    char *p = malloc(GIB);
    struct raw r;
    (void)copy;
    if (!p || !attack_open(&r, t))
        return NULL;
    memset(p, ' ', GIB);
    int n = snprintf(p, 4096, HEAD ".visible .entry k()\n{\nret;\n}\n", 1u);
    p[n] = ' ';
    raw_load_hashed(&r, 1, (const uint8_t *)gibibyte_sha256, p, GIB - 1);
    return NULL;
}

/* The same in some 100 KB: a fat binary with a text that zstd has compressed. */
static const char *decompressed(const struct target *t, unsigned copy)
{
    uint8_t *image = calloc(1, PIECE);
    char *piece = malloc(PIECE);
    ZSTD_CCtx *z = ZSTD_createCCtx();
    ZSTD_outBuffer out = {image, PIECE, 80};
    struct raw r;
    if (!image || !piece || !z || !attack_open(&r, t))
        return NULL;
    for (unsigned i = 0; i < 1023; i++) {
        memset(piece, ' ', PIECE);
        ZSTD_inBuffer in = {piece, PIECE, 0};
        if (!i)
            piece[snprintf(piece, 4096, HEAD ".visible .entry k()\n{\nret;\n}\n", copy)] = ' ';
        ZSTD_compressStream2(z, &out, &in, i == 1022 ? ZSTD_e_end : ZSTD_e_continue);
    }
    uint64_t payload = (out.pos - 80 + 7) / 8 * 8, all = payload + 64, text = 1023ull * PIECE,
             flags = 0x8000;
    uint32_t compressed = (uint32_t)(out.pos - 80), sm = 50, n = 64;
    /* The layout is that of ptx/images/fatbin.c. */
    memcpy(image, "\x50\xed\x55\xba\1\0\x10\0", 8);
    memcpy(image + 8, &all, 8);
    memcpy(image + 16, "\1\0\1\1", 4);
    memcpy(image + 20, &n, 4);
    memcpy(image + 24, &payload, 8);
    memcpy(image + 32, &compressed, 4);
    memcpy(image + 42, "\7", 1);
    memcpy(image + 44, &sm, 4);
    memcpy(image + 56, &flags, 8);
    memcpy(image + 72, &text, 8);
    raw_load(&r, 1, image, 16 + all);
    return NULL;
}

/* ---- row 9: kernels that never end ---- */

static const char *endless_kernel(const struct target *t, unsigned copy)
{
    Ws__Launch l = raw_launch(1, 0);
    struct text x = {0};
    struct raw r;
    say(&x, HEAD ".visible .entry k()\n{\nL:\nbra L;\n}\n", copy);
    l.grid_x = 64; /* on all SMs */
    for (; attack_goes_on(t) && attack_open(&r, t); raw_close(&r)) {
        Ws__Sync s = WS__SYNC__INIT;
        s.what_case = WS__SYNC__WHAT_DEVICE;
        if (raw_load(&r, 1, x.p, x.n))
            continue;
        for (int i = 0; i < 8; i++)
            raw_put(&r, WS__COMMAND__C_LAUNCH, &l);
        uint64_t seq = raw_put(&r, WS__COMMAND__C_SYNC, &s);
        if (raw_send(&r))
            continue;
        /* Nobody answers before it is stopped. */
        while (attack_goes_on(t) && raw_wait(&r, seq, NULL) < 0)
            ;
    }
    return NULL;
}

/* By default others may have to wait for three seconds, which is long for a test. */
#define MAX_KERNEL "max_kernel_ms = 500\n"
#define ENDLESS(policy_name, options)                                                              \
    {                                                                                              \
        "9", "endless-" policy_name, "a kernel that never ends, policy " policy_name,              \
            endless_kernel,                                                                        \
            .ms = 3000, .max_call_ms = 1500,                                                       \
            .conf = MAX_KERNEL "policy = \"" policy_name "\"\npolicy_options = {" options "}\n",   \
            .with_attackers = true                                                                 \
    }

const struct attack attacks_code[] = {
    {"1", "reset", "launches between a reset and its end", reset, .ms = 3000, .max_call_ms = 1000},
    {"8", "doubling", "functions that call the last one twice, 30 KB", doubling, .copies = 2,
     .max_mib = 1024, .with_attackers = true},
    {"8", "many-kernels", "modules of 10,000 kernels, 170 KB", many, .copies = 2, .max_mib = 1024,
     .with_attackers = true},
    {"8", "jumps", "a kernel of 6,000 jumps to anywhere", jumps, .copies = 2, .max_mib = 1024,
     .with_attackers = true},
    {"8", "compiling", "kernels that take minutes to compile, compile = tiers", compiling,
     .copies = 2, .ms = 3000, .max_call_ms = 1000, .conf = "compile = tiers\n",
     .with_attackers = true},
    {"8", "lists", "kernels that take long to look at, compile = tiers", lists, .copies = 2,
     .ms = 4000, .max_mib = 1024, .max_call_ms = 1000, .conf = "compile = tiers\n",
     .with_attackers = true},
    {"10", "local-memory", "endless blocks with 32 MiB of local memory each", local_memory,
     .copies = 8, .ms = 3000, .max_call_ms = 1000,
     .conf = "limits { max_block_bytes = 268435456 }\n", .with_attackers = true},
    {"10", "records", "1,200 endless launches of 16,384 blocks each", records, .copies = 2,
     .max_mib = 192, .max_call_ms = 1000, .conf = "limits { max_block_bytes = 268435456 }\n",
     .with_attackers = true},
    {"+", "gibibyte", "PTX text of 1 GiB", gibibyte, .ms = 5000, .max_mib = 2560,
     .with_attackers = true},
    {"+", "decompressed", "PTX text of 1 GiB in 100 KB", decompressed, .ms = 5000, .max_mib = 2560,
     .with_attackers = true},
    {"9", "endless-none", "a kernel that never ends, no policy", endless_kernel, .ms = 3000,
     .max_call_ms = 1500, .with_attackers = true},
    ENDLESS("fifo", ""),
    ENDLESS("rr", ""),
    ENDLESS("gcaps", ""),
    ENDLESS("consolidate", "\"threshold=4\", \"window=2\""),
    ENDLESS("stgm", ""),
    ENDLESS("edl", "\"theta=0.9\", \"servers=whole\""),
    ENDLESS("sbeet-mg", ""),
    {0}};
