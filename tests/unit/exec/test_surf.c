// SPDX-License-Identifier: Apache-2.0
/* Surface loads, stores and reductions against a model in C: a byte array with the same layout, and
 * the three ways of what is outside (.trap, .clamp, .zero). After stores all of the memory is
 * compared, so a stray byte shows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <cmocka.h>

#include "tests/unit/exec/texture.h"

static const unsigned channel_bytes[] = {1, 2, 4, 1, 2, 4, 2, 4};
static const char *const geoms[] = {"1d", "2d", "3d", "a1d", "a2d"};
static const char *const modes[] = {"trap", "clamp", "zero"};
static const char *const coords[] = {"{%r0}", "{%r0, %r1}", "{%r0, %r1, %r2, %r2}", "{%r4, %r0}",
                                     "{%r4, %r0, %r1, %r1}"};
static uint8_t model[TEXEL_BYTES];

static unsigned dims(unsigned g)
{
    return g == 0 || g == 3 ? 1 : g == 2 ? 3 : 2;
}

static void make_surface(struct tx *t, unsigned g, unsigned texel)
{
    struct ws_texture *h = t->h;
    static const uint8_t shapes[] = {WS_TEX_1D, WS_TEX_2D, WS_TEX_3D, WS_TEX_1D, WS_TEX_2D};
    *h = (struct ws_texture){.magic = WS_SURFACE_MAGIC, .shape = shapes[g], .n_levels = 1};
    h->n_channels = texel == 16 || texel == 4 ? 4 : texel == 8 ? 2 : 1;
    h->format = texel / h->n_channels == 1   ? WS_TEX_U8
                : texel / h->n_channels == 2 ? WS_TEX_S16
                                             : WS_TEX_U32;
    h->flags = g >= 3 ? WS_TEX_LAYERED : 0;
    unsigned w = 1 + below(20), hh = dims(g) == 1 ? 1 : 1 + below(20),
             d = g >= 2 ? 1 + below(5) : 1;
    h->level[0] = (struct ws_texture_level){.address = t->texels + 256,
                                            .width = w,
                                            .height = hh,
                                            .depth = d,
                                            .row_bytes = (w + below(3)) * 16};
    h->level[0].slice_bytes = h->level[0].row_bytes * hh + 16 * below(3);
    for (unsigned k = 0; k < TEXEL_BYTES; k++)
        t->mem[k] = (uint8_t)rnd();
    memcpy(model, t->mem, TEXEL_BYTES);
}

static unsigned texel_bytes(const struct tx *t)
{
    return channel_bytes[t->h->format] * t->h->n_channels;
}

/* Where thread @k's access of @bytes goes in the model. false: nowhere. */
static bool model_at(const struct tx *t, unsigned g, unsigned k, unsigned bytes, unsigned mode,
                     bool texels, unsigned size, uint64_t *ret)
{
    const struct ws_texture_level *l = &t->h->level[0];
    int64_t x = (int32_t)t->x[k * 8], y = (int32_t)t->x[k * 8 + 1], z = (int32_t)t->x[k * 8 + 2];
    /* the last place of an access that is @size aligned */
    int64_t limit[3] = {(int64_t)l->width * texel_bytes(t) - bytes, l->height - 1, l->depth - 1};
    int64_t at[3] = {texels ? x * texel_bytes(t) : x, dims(g) > 1 ? y : 0,
                     g == 2   ? z
                     : g >= 3 ? (int64_t)t->x[k * 8 + 4]
                              : 0};
    for (int d = 0; d < 3; d++) {
        if (at[d] >= 0 && at[d] <= limit[d])
            continue;
        if (mode != 1)
            return false;
        at[d] = at[d] < 0 ? 0 : d == 0 ? limit[0] - limit[0] % size : limit[d];
    }
    *ret =
        256 + (uint64_t)at[2] * l->slice_bytes + (uint64_t)at[1] * l->row_bytes + (uint64_t)at[0];
    return true;
}

/* Coordinates around the surface; of .trap: inside. Element @size divides x. */
static void make_coords(struct tx *t, unsigned g, unsigned size, unsigned bytes, unsigned mode)
{
    const struct ws_texture_level *l = &t->h->level[0];
    unsigned w = l->width * texel_bytes(t);
    for (unsigned k = 0; k < THREADS; k++) {
        uint32_t *x = &t->x[k * 8];
        for (unsigned n = 0; n < 8; n++)
            x[n] = rnd() << 8 ^ rnd();
        if (mode == 0) {
            x[0] = below((w - bytes) / size + 1) * size;
            x[1] = below(l->height);
            x[2] = below(l->depth);
            x[4] = below(l->depth);
        } else {
            x[0] = (below(3 * w / size + 1) - w / size) * size;
            x[1] = below(3 * l->height) - l->height;
            x[2] = below(3 * l->depth) - l->depth;
            x[4] = below(2 * l->depth);
            if (below(20) == 0)
                x[below(2)] = below(2) ? 0x80000000u : 0x7ffffff0u;
        }
    }
    (void)g;
}

static void loads_and_stores(void)
{
    static const char *const types[] = {"b8", "b16", "b32", "b64"};
    static const char *const regs[] = {"%h", "%h", "%r", "%d"};
    struct tx t;
    tx_init(&t);
    for (unsigned n = 0; n < rounds(400); n++) {
        unsigned g = below(5), ty = below(4), size = 1u << ty, vec = 1u << below(3),
                 mode = below(3);
        bool store = below(2);
        if (size * vec > 16)
            continue;
        static const unsigned sizes[] = {1, 2, 4, 8, 16};
        do
            make_surface(&t, g, sizes[below(5)]);
        while (t.h->level[0].width * texel_bytes(&t) < size * vec);
        make_coords(&t, g, size, size * vec, mode);
        char list[100] = "", insn[800], v[8] = "";
        if (vec > 1)
            snprintf(v, sizeof(v), ".v%u", vec);
        for (unsigned k = 0; k < vec; k++) /* %h4, %r12, %d12 and so on are not used otherwise */
            snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s%u", k ? ", " : "",
                     regs[ty], 12 + k);
        if (store)
            snprintf(insn, sizeof(insn),
                     "mov.b32 %%r12, %%r5;\nmov.b32 %%r13, %%r6;\nmov.b32 %%r14, %%r7;\nmov.b32 "
                     "%%r15, %%r3;\n"
                     "mov.b64 %%d12, {%%r5, %%r6};\nmov.b64 %%d13, {%%r7, %%r3};\n"
                     "mov.b32 {%%h12, %%h13}, %%r5;\nmov.b32 {%%h14, %%h15}, %%r6;\n"
                     "setp.eq.u32 %%p0, %%r16, 5;\n@%%p0 sust.b.%s%s.%s.%s [%%d0, %s], {%s};",
                     geoms[g], v, types[ty], modes[mode], coords[g], list);
        else
            snprintf(insn, sizeof(insn),
                     "mov.b32 %%r12, 0;\nmov.b32 %%r13, 0;\nmov.b32 %%r14, 0;\nmov.b32 %%r15, 0;\n"
                     "suld.b.%s%s.%s.%s {%s}, [%%d0, %s];\n%s",
                     geoms[g], v, types[ty], modes[mode], list, coords[g],
                     ty < 2 ? "cvt.u32.u16 %r12, %h12;\ncvt.u32.u16 %r13, %h13;\ncvt.u32.u16 %r14, "
                              "%h14;\ncvt.u32.u16 "
                              "%r15, %h15;\n"
                     : ty == 3 ? "mov.b64 {%r12, %r13}, %d12;\nmov.b64 {%r14, %r15}, %d13;\n"
                               : "");
        strcat(insn,
               "mov.b32 %r8, %r12;\nmov.b32 %r9, %r13;\nmov.b32 %r10, %r14;\nmov.b32 %r11, %r15;");
        load(&t, insn);
        must_launch(&t);
        for (unsigned k = 0; k < THREADS; k++) {
            uint64_t at = 0;
            bool in = model_at(&t, g, k, size * vec, mode, false, size, &at);
            uint32_t *x = &t.x[k * 8];
            if (store && k == 5 &&
                in) { /* one thread: stores of several to one place have no order */
                uint32_t words[4] = {x[5], x[6], x[7], x[3]};
                if (ty == 0)
                    for (unsigned e = 0; e < vec; e++)
                        model[at + e] = (uint8_t)(words[e / 2] >> 16 * (e % 2));
                else
                    memcpy(model + at, words, size * vec);
            }
            for (unsigned e = 0; !store && e < vec; e++) {
                uint8_t want[8] = {0}, got[8];
                if (in)
                    memcpy(want, model + at + e * size, size);
                memcpy(got, (const uint8_t *)&t.got[k * 4] + e * (ty == 3 ? 8 : 4), size);
                if (memcmp(want, got, size) != 0)
                    fail_msg("%s thread %u element %u", insn, k, e);
            }
        }
        if (memcmp(model, t.mem, TEXEL_BYTES) != 0)
            fail_msg("memory after %s", insn);
        if (mode == 0) { /* one lane outside */
            t.x[5 * 8] = t.h->level[0].width * texel_bytes(&t);
            assert_int_equal(launch(&t), WS_DEV_E_ILLEGAL_ADDRESS);
            assert_non_null(
                strstr(t.f.text, replaced() ? "xfffffffffffff030" : "outside of the surface"));
            assert_memory_equal(model, t.mem, TEXEL_BYTES);
        }
    }
    fix_deinit(&t.f);
}
static void test_loads_and_stores(void **state)
{
    (void)state;
    each_isa(loads_and_stores);
}

/* Every thread has a place of its own: rows of a 2-D surface filled, read back through a texture of
 * the same memory. */
static void test_store_then_texture(void **state)
{
    (void)state;
    struct tx t;
    tx_init(&t);
    struct ws_texture *tex = fix_host(&t.f, t.sampler);
    make_surface(&t, 1, 4);
    t.h->format = WS_TEX_F32;
    t.h->n_channels = 1;
    t.h->level[0] = (struct ws_texture_level){t.texels, 128, 0, 32, 4, 1, 0};
    *tex = *t.h;
    tex->magic = WS_TEXTURE_MAGIC;
    load(&t, "and.b32 %r0, %r16, 31;\nshr.u32 %r1, %r16, 5;\nshl.b32 %r2, %r0, 2;\ncvt.rn.f32.u32 "
             "%f0, %r16;\n"
             "sust.b.2d.b32.trap [%d0, {%r2, %r1}], {%f0};\ncvt.rn.f32.u32 %f1, "
             "%r0;\ncvt.rn.f32.u32 %f2, %r1;\n"
             "add.f32 %f1, %f1, 0f3F000000;\nadd.f32 %f2, %f2, 0f3F000000;\n"
             "tex.2d.v4.f32.f32 {%r8, %r9, %r10, %r11}, [%d1, {%f1, %f2}];");
    must_launch(&t);
    for (unsigned k = 0; k < THREADS; k++)
        assert_true(f_of(t.got[4 * k]) == (float)k);
    fix_deinit(&t.f);
}

static void test_formatted_stores(void **state)
{
    (void)state;
    static const struct {
        uint8_t format;
        uint32_t flags;
        float in;
        int32_t in_int; /* of formats that read as integers */
        uint32_t want;
    } rows[] = {
        {WS_TEX_U8, WS_TEX_NORMALIZED_FLOAT, 0.5f, 0, 128},
        {WS_TEX_U8, WS_TEX_NORMALIZED_FLOAT, 7, 0, 255},
        {WS_TEX_U8, WS_TEX_NORMALIZED_FLOAT, -3, 0, 0},
        {WS_TEX_U8, WS_TEX_NORMALIZED_FLOAT, NAN, 0, 0},
        {WS_TEX_S8, WS_TEX_NORMALIZED_FLOAT, -1, 0, 0x81},
        {WS_TEX_S16, WS_TEX_NORMALIZED_FLOAT, 1, 0, 0x7fff},
        {WS_TEX_U16, WS_TEX_NORMALIZED_FLOAT, 1, 0, 0xffff},
        {WS_TEX_F16, 0, 1.5f, 0, 0x3e00},
        {WS_TEX_F32, 0, 1.5f, 0, 0x3fc00000},
        {WS_TEX_U8, 0, 0, 300, 255},
        {WS_TEX_S8, 0, 0, -300, 0x80},
        {WS_TEX_S16, 0, 0, 40000, 0x7fff},
        {WS_TEX_U32, 0, 0, -2, 0xfffffffe},
        {WS_TEX_S8, 0, 0, -5, 0xfb},
    };
    struct tx t;
    tx_init(&t);
    load(&t,
         "setp.eq.u32 %p0, %r16, 0;\n@%p0 sust.p.2d.v2.b32.trap [%d0, {%r0, %r1}], {%r2, %r2};");
    for (size_t k = 0; k < WS_ARRAY_SIZE(rows); k++) {
        make_surface(&t, 1, 4);
        t.h->format = rows[k].format;
        t.h->n_channels = 2;
        t.h->flags = rows[k].flags;
        t.h->level[0] = (struct ws_texture_level){t.texels, 64, 0, 8, 8, 1, 0};
        t.x[0] = 3;
        t.x[1] = 2;
        memcpy(&t.x[2], rows[k].in_int ? (const void *)&rows[k].in_int : &rows[k].in, 4);
        must_launch(&t);
        unsigned size = channel_bytes[rows[k].format], at = 2 * 64 + 3 * 2 * size;
        memcpy(model + at, &rows[k].want, size);
        memcpy(model + at + size, &rows[k].want, size);
        if (memcmp(model, t.mem, TEXEL_BYTES) != 0)
            fail_msg("row %zu: got %x", k, t.mem[at]);
    }
    fix_deinit(&t.f);
}

static void test_reductions(void **state)
{
    (void)state;
    static const struct {
        const char *form;
        unsigned size;
        char op;
        bool is_signed;
    } rows[] = {
        {"sured.b.add.2d.u32.trap", 4, '+', false}, {"sured.b.min.2d.s32.trap", 4, '<', true},
        {"sured.b.min.2d.u32.zero", 4, '<', false}, {"sured.b.max.2d.s32.clamp", 4, '>', true},
        {"sured.b.and.2d.b32.trap", 4, '&', false}, {"sured.b.or.2d.b32.trap", 4, '|', false},
        {"sured.b.add.2d.u64.trap", 8, '+', false}, {"sured.b.max.2d.s64.trap", 8, '>', true},
        {"sured.p.add.2d.b32.trap", 4, '+', false}, {"sured.p.max.2d.b32.trap", 4, '>', true},
    };
    struct tx t;
    tx_init(&t);
    for (size_t n = 0; n < WS_ARRAY_SIZE(rows); n++) {
        char insn[200];
        bool formatted = rows[n].form[6] == 'p';
        snprintf(insn, sizeof(insn), "mov.b64 %%d12, {%%r2, %%r3};\n%s [%%d0, {%%r0, %%r1}], %s;",
                 rows[n].form, rows[n].size == 8 ? "%d12" : "%r2");
        load(&t, insn);
        make_surface(&t, 1, 4);
        t.h->format = rows[n].is_signed ? WS_TEX_S32 : WS_TEX_U32;
        t.h->n_channels = (uint8_t)(rows[n].size / 4);
        t.h->level[0] = (struct ws_texture_level){t.texels, 64, 0, 4, 3, 1, 0};
        for (unsigned k = 0; k < THREADS; k++) {
            for (unsigned w = 0; w < 8; w++)
                t.x[k * 8 + w] = rnd() << 8 ^ rnd();
            t.x[k * 8] = below(4) * (formatted ? 1 : rows[n].size);
            t.x[k * 8 + 1] = below(3);
            uint64_t a = 0, b = 0, at;
            assert_true(model_at(&t, 1, k, rows[n].size, 0, formatted, 1, &at));
            at -= 256;
            memcpy(&a, model + at, rows[n].size);
            memcpy(&b, &t.x[k * 8 + 2], rows[n].size);
            int64_t sa = rows[n].size == 4 ? (int32_t)a : (int64_t)a,
                    sb = rows[n].size == 4 ? (int32_t)b : (int64_t)b;
            bool less = rows[n].is_signed ? sa < sb : a < b;
            switch (rows[n].op) {
            case '+':
                a += b;
                break;
            case '&':
                a &= b;
                break;
            case '|':
                a |= b;
                break;
            case '<':
                a = less ? a : b;
                break;
            default:
                a = less ? b : a;
                break;
            }
            memcpy(model + at, &a, rows[n].size);
        }
        must_launch(&t);
        if (memcmp(model, t.mem, TEXEL_BYTES) != 0)
            fail_msg("%s", rows[n].form);
    }
    load(&t, "sured.b.add.2d.u32.trap [%d0, {%r0, %r1}], %r2;");
    t.x[0] = 2;
    assert_int_equal(launch(&t), replaced() ? WS_DEV_E_ILLEGAL_ADDRESS : WS_DEV_E_MISALIGNED);
    if (replaced())
        assert_non_null(strstr(t.f.text, "xfffffffffffff038"));
    fix_deinit(&t.f);
}

static void test_queries(void **state)
{
    (void)state;
    static const struct {
        const char *query;
        uint32_t want;
    } rows[] = {{"width", 8},
                {"height", 4},
                {"depth", 1},
                {"array_size", 3},
                {"channel_data_type", 0x10da},
                {"channel_order", 0x10b5},
                {"memory_layout", 0}};
    struct tx t;
    tx_init(&t);
    make_surface(&t, 4, 4);
    t.h->level[0] = (struct ws_texture_level){t.texels, 64, 256, 8, 4, 3, 0};
    for (size_t k = 0; k < WS_ARRAY_SIZE(rows); k++) {
        char insn[100];
        snprintf(insn, sizeof(insn), "suq.%s.b32 %%r8, [%%d0];", rows[k].query);
        load(&t, insn);
        must_launch(&t);
        if (t.got[0] != rows[k].want)
            fail_msg("%s: %u", rows[k].query, t.got[0]);
    }
    load(&t, "istypep.surfref %p0, %d0;\nselp.b32 %r8, 1, 0, %p0;");
    must_launch(&t);
    assert_int_equal(t.got[0], 1);
    fix_must_load(&t.f, kernel_text(".global .surfref canvas;", "suq.width.b32 %r8, [canvas];"));
    memcpy(fix_host(&t.f, t.f.var_va[0]), &t.header, 8);
    must_launch(&t);
    assert_int_equal(t.got[0], 8);
    fix_deinit(&t.f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loads_and_stores), cmocka_unit_test(test_store_then_texture),
        cmocka_unit_test(test_formatted_stores), cmocka_unit_test(test_reductions),
        cmocka_unit_test(test_queries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
