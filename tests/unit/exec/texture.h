// SPDX-License-Identifier: Apache-2.0
/* What the tests of textures, surfaces and video instructions share: a kernel around one
 * instruction, a texture in memory. */
#ifndef WS_TESTS_UNIT_EXEC_TEXTURE_H
#define WS_TESTS_UNIT_EXEC_TEXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/texture.h"
#include "tests/unit/exec/fixture.h"

enum { THREADS = 128, TEXEL_BYTES = 1 << 20 };

static uint32_t seed = 1;
static inline uint32_t rnd(void)
{
    seed = seed * 1664525u + 1013904223u;
    return seed >> 8;
}
static inline uint32_t below(uint32_t n)
{
    return rnd() % n;
}

/* ---- a texture in memory, kernels around one instruction ---- */
struct tx {
    struct fix f;
    uint64_t header, sampler, texels, in, out;
    struct ws_texture *h;
    uint8_t *mem;
    uint32_t *x;         /* [THREADS][8]: what the instruction gets in %r0 to %r7, %f0 to %f7 */
    const uint32_t *got; /* [THREADS][4]: what it leaves in %r8 to %r11 */
};

static inline void tx_init(struct tx *t)
{
    fix_init(&t->f);
    t->header = fix_alloc(&t->f, sizeof(struct ws_texture));
    t->sampler = fix_alloc(&t->f, sizeof(struct ws_texture));
    t->texels = fix_alloc(&t->f, TEXEL_BYTES);
    t->in = fix_alloc(&t->f, THREADS * 32);
    t->out = fix_alloc(&t->f, THREADS * 16);
    t->h = fix_host(&t->f, t->header);
    t->mem = fix_host(&t->f, t->texels);
    t->x = fix_host(&t->f, t->in);
    t->got = fix_host(&t->f, t->out);
}

static inline char *kernel_text(const char *globals, const char *insn)
{
    static char text[4096];
    snprintf(
        text, sizeof(text),
        ".version 8.0\n.target sm_75\n.address_size 64\n%s\n"
        ".visible .entry k(.param .u64 pt, .param .u64 pin, .param .u64 pout, .param .u64 ps)\n{\n"
        ".reg .b32 %%r<20>;\n.reg .f32 %%f<20>;\n.reg .b64 %%d<20>;\n.reg .b16 %%h<20>;\n"
        ".reg .pred %%p<4>;\n"
        "ld.param.u64 %%d0, [pt];\nld.param.u64 %%d1, [ps];\n"
        "ld.param.u64 %%d2, [pin];\nld.param.u64 %%d3, [pout];\n"
        "mov.u32 %%r16, %%tid.x;\nmul.wide.u32 %%d4, %%r16, 32;\nadd.u64 %%d2, %%d2, %%d4;\n"
        "mul.wide.u32 %%d4, %%r16, 16;\nadd.u64 %%d3, %%d3, %%d4;\n"
        "ld.global.v4.b32 {%%r0, %%r1, %%r2, %%r3}, [%%d2];\n"
        "ld.global.v4.b32 {%%r4, %%r5, %%r6, %%r7}, [%%d2+16];\n"
        "mov.b32 %%f0, %%r0;\nmov.b32 %%f1, %%r1;\nmov.b32 %%f2, %%r2;\nmov.b32 %%f3, %%r3;\n"
        "mov.b32 %%f4, %%r4;\nmov.b32 %%f5, %%r5;\nmov.b32 %%f6, %%r6;\nmov.b32 %%f7, %%r7;\n"
        "mov.b32 %%r8, -1;\nmov.b32 %%r9, -1;\nmov.b32 %%r10, -1;\nmov.b32 %%r11, -1;\n"
        "%s\n"
        "st.global.v4.b32 [%%d3], {%%r8, %%r9, %%r10, %%r11};\nret;\n}\n",
        globals, insn);
    return text;
}

static inline void load(struct tx *t, const char *insn)
{
    fix_must_load(&t->f, kernel_text("", insn));
}

static inline enum ws_dev_error launch(struct tx *t)
{
    uint64_t params[4] = {t->header, t->in, t->out, t->sampler};
    memset(fix_host(&t->f, t->out), 0xee, THREADS * 16);
    return fix_launch(&t->f, &(struct launch){.grid = {1}, .block = {THREADS}, .params = params});
}

static inline void must_launch(struct tx *t)
{
    if (launch(t) != WS_DEV_OK) {
        print_error("%s\n", t->f.text);
        fail();
    }
}

static inline void put_f(struct tx *t, unsigned thread, unsigned k, float v)
{
    memcpy(&t->x[thread * 8 + k], &v, 4);
}
static inline float f_of(uint32_t v)
{
    float f;
    memcpy(&f, &v, 4);
    return f;
}

/* Fewer of many where instructions are replaced, which takes much longer;
 * tests/unit/exec/textured.sh. */
static inline bool replaced(void)
{
    return getenv("WS_FIX_TEXTURE") != NULL;
}
static inline unsigned rounds(unsigned n)
{
    return replaced() ? n / 32 + 1 : n;
}

/* Runs @test in every vector build that the processor has, with the same random numbers. */
static inline void each_isa(void (*test)(void))
{
    static const char *const isas[] = {"sse2", "avx2", "avx512"};
    if (replaced()) { /* no matter which: the interpreter is not what is tried */
        seed = 7;
        test();
        return;
    }
    for (int k = 0; k < 3; k++) {
        setenv("WS_SOFT_ISA", isas[k], 1);
        if (strcmp(ws_exec_isa(), isas[k]) == 0) {
            seed = 7;
            test();
        }
    }
    unsetenv("WS_SOFT_ISA");
}

#endif
