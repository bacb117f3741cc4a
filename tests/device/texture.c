// SPDX-License-Identifier: Apache-2.0
/* Tests textures and surfaces on a device: headers as the frontend writes them (base/texture.h),
 * read by kernels, against references in whole numbers in C. It fails if a value differs, or if a
 * header or a handle that leads outside of the client's own memory does not fault or affects
 * another client. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "base/texture.h"
#include "tests/device/suite.h"

enum { W = 8, H = 4, THREADS = 64, SMS_SOME = 2 };
enum kernel { SAMPLE, FETCH, STORE, LOAD, QUERY, CUBE };

/* The threads: thread i of each. */
static const char text[] =
    ".version 8.0\n.target sm_75\n.address_size 64\n"
    ".global .texref ref;\n"
    /* the texel at (i/4 - 2, i/8) of a 2-D texture, four channels summed after scaling by 256 *
     * 255 */
    ".visible .entry sample(.param .u64 t, .param .u64 out)\n{\n"
    ".reg .b64 %rd<4>; .reg .b32 %r<9>; .reg .f32 %f<9>;\n"
    "ld.param.u64 %rd0, [t]; ld.param.u64 %rd1, [out];\n"
    "mov.u32 %r0, %tid.x; mul.wide.u32 %rd2, %r0, 16; add.s64 %rd1, %rd1, %rd2;\n"
    "cvt.rn.f32.u32 %f0, %r0; fma.rn.f32 %f1, %f0, 0f3E800000, 0fC0000000;\n"
    "mul.f32 %f2, %f0, 0f3E000000;\n"
    "tex.2d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [%rd0, {%f1, %f2}];\n"
    "st.global.v4.f32 [%rd1], {%f3, %f4, %f5, %f6};\nret;\n}\n"
    /* texel i - 4 of linear memory, through a reference, by odd threads alone */
    ".visible .entry fetch(.param .u64 unused, .param .u64 out)\n{\n"
    ".reg .b64 %rd<4>; .reg .b32 %r<9>; .reg .pred %p;\n"
    "ld.param.u64 %rd1, [out];\n"
    "mov.u32 %r0, %tid.x; mul.wide.u32 %rd2, %r0, 4; add.s64 %rd1, %rd1, %rd2;\n"
    "sub.s32 %r1, %r0, 4; and.b32 %r2, %r0, 1; setp.eq.u32 %p, %r2, 1; mov.u32 %r3, 77;\n"
    "@%p tex.1d.v4.u32.s32 {%r3, %r4, %r5, %r6}, [ref, {%r1}];\n"
    "st.global.u32 [%rd1], %r3;\nret;\n}\n"
    /* texel (i % 8, i / 8) of a surface gets i + arg; outside: nothing */
    ".visible .entry store(.param .u64 t, .param .u64 arg)\n{\n"
    ".reg .b64 %rd<4>; .reg .b32 %r<9>;\n"
    "ld.param.u64 %rd0, [t]; ld.param.u32 %r4, [arg];\n"
    "mov.u32 %r0, %tid.x; and.b32 %r1, %r0, 7; shl.b32 %r1, %r1, 2; shr.u32 %r2, %r0, 3;\n"
    "add.u32 %r3, %r0, %r4;\n"
    "sust.b.2d.b32.zero [%rd0, {%r1, %r2}], {%r3};\nret;\n}\n"
    ".visible .entry load(.param .u64 t, .param .u64 out)\n{\n"
    ".reg .b64 %rd<4>; .reg .b32 %r<9>;\n"
    "ld.param.u64 %rd0, [t]; ld.param.u64 %rd1, [out];\n"
    "mov.u32 %r0, %tid.x; mul.wide.u32 %rd2, %r0, 4; add.s64 %rd1, %rd1, %rd2;\n"
    "and.b32 %r1, %r0, 7; shl.b32 %r1, %r1, 2; shr.u32 %r2, %r0, 3;\n"
    "suld.b.2d.b32.trap {%r3}, [%rd0, {%r1, %r2}];\n"
    "st.global.u32 [%rd1], %r3;\nret;\n}\n"
    ".visible .entry query(.param .u64 t, .param .u64 out)\n{\n"
    ".reg .b64 %rd<4>; .reg .b32 %r<9>;\n"
    "ld.param.u64 %rd0, [t]; ld.param.u64 %rd1, [out];\n"
    "txq.width.b32 %r1, [%rd0]; txq.height.b32 %r2, [%rd0];\n"
    "txq.channel_order.b32 %r3, [%rd0]; txq.addr_mode_0.b32 %r4, [%rd0];\n"
    "st.global.v4.u32 [%rd1], {%r1, %r2, %r3, %r4};\nret;\n}\n"
    /* not done: named where it is asked for, and the others go on */
    ".visible .entry offset(.param .u64 t)\n{\n.reg .b64 %rd0; .reg .b32 %r<9>; .reg .f32 %f<4>;\n"
    "ld.param.u64 %rd0, [t];\nmov.f32 %f0, 0f00000000; mov.u32 %r0, 1;\n"
    "tex.2d.v4.u32.f32 {%r1, %r2, %r3, %r4}, [%rd0, {%f0, %f0}], {%r0, %r0};\nret;\n}\n";

struct textures {
    struct suite *s;
    struct ws_ptx_module *ptx;
    struct ws_dmodule *code;
    struct ws_dinstance *instance;
    uint64_t ref, header, texels, out;
    uint8_t texel[H][W][4];
};

static void begin(struct textures *t, struct suite *s)
{
    *t = (struct textures){.s = s};
    assert_int_equal(ws_ptx_parse(&t->ptx, text, sizeof(text) - 1, "texture.ptx", NULL), 0);
    assert_int_equal(ws_device_module_load(s->device, t->ptx, &t->code, NULL), 0);
    t->ref = suite_alloc(s, 0, 512);
    t->header = suite_alloc(s, 0, sizeof(struct ws_texture));
    t->texels = suite_alloc(s, 0, sizeof(t->texel));
    t->out = suite_alloc(s, 0, THREADS * 16);
    assert_int_equal(ws_device_instance_new(s->device, t->code, s->space[0], &t->ref, &t->instance),
                     0);
    for (unsigned k = 0; k < sizeof(t->texel); k++)
        ((uint8_t *)t->texel)[k] = (uint8_t)(k * 37 + k / 3);
    suite_put(s, 0, t->texels, t->texel, sizeof(t->texel));
}

static void end(struct textures *t)
{
    ws_device_instance_free(t->s->device, t->instance);
    ws_device_module_unload(t->s->device, t->code);
    ws_ptx_module_free(t->ptx);
}

static struct ws_texture header(const struct textures *t)
{
    struct ws_texture h = {.magic = WS_TEXTURE_MAGIC,
                           .shape = WS_TEX_2D,
                           .format = WS_TEX_U8,
                           .n_channels = 4,
                           .n_levels = 1,
                           .address_mode = {WS_TEX_CLAMP, WS_TEX_CLAMP, WS_TEX_CLAMP},
                           .flags = WS_TEX_NORMALIZED_FLOAT | WS_TEX_FILTER_LINEAR,
                           .level[0] = {.address = t->texels,
                                        .row_bytes = W * 4,
                                        .slice_bytes = W * H * 4,
                                        .width = W,
                                        .height = H,
                                        .depth = 1}};
    return h;
}

/* @sms: only a few SMs, where kernels take their blocks from a counter. */
static struct suite_op launch(const struct textures *t, enum kernel k, uint64_t p0, uint64_t p1,
                              bool sms)
{
    struct suite_op o = suite_launch(t->s, 0, K_READ, 1, THREADS, p0, p1, 0, 0);
    o.op.launch.instance = t->instance;
    o.op.launch.kernel = k;
    for (unsigned n = 0; sms && n < SMS_SOME; n++)
        ws_sm_set_add(&o.op.launch.sms, n);
    return o;
}

static void run(const struct textures *t, enum kernel k, const struct ws_texture *h, uint64_t p1,
                bool sms)
{
    suite_put(t->s, 0, t->header, h, sizeof(*h));
    struct suite_op o = launch(t, k, t->header, p1, sms);
    suite_run(t->s, &o, WS_DEV_OK);
}

static int clamp(int v, int n)
{
    return v < 0 ? 0 : v >= n ? n - 1 : v;
}

/* Bilinear at quarters and eighths of texels: exact in integers, in 64ths of a channel's step. */
static void check_samples(struct textures *t, bool sms)
{
    float got[THREADS][4];
    struct ws_texture h = header(t);
    run(t, SAMPLE, &h, t->out, sms);
    suite_get(t->s, 0, got, t->out, sizeof(got));
    for (int k = 0; k < THREADS; k++)
        for (int c = 0; c < 4; c++) {
            int x = k * 2 - 16 - 4, y = k - 4; /* in eighths, from the middle of texel 0 */
            int i = x >> 3, j = y >> 3, fx = x & 7, fy = y & 7, sum = 0;
            for (int n = 0; n < 4; n++)
                sum += (n & 1 ? fx : 8 - fx) * (n & 2 ? fy : 8 - fy) *
                       t->texel[clamp(j + (n >> 1), H)][clamp(i + (n & 1), W)][c];
            assert_float_equal(got[k][c] * 255 * 64, sum, 0.01);
        }
}

static void check_fetches(struct textures *t, bool sms)
{
    uint32_t got[THREADS], want[W * H];
    struct ws_texture h = header(t);
    memcpy(want, t->texel, sizeof(want));
    h.shape = WS_TEX_LINEAR;
    h.format = WS_TEX_U32;
    h.n_channels = 1;
    h.flags = 0;
    h.level[0].width = W * H;
    h.level[0].height = 1;
    suite_put(t->s, 0, t->ref, &t->header, 8);
    run(t, FETCH, &h, t->out, sms);
    suite_get(t->s, 0, got, t->out, sizeof(got));
    for (int k = 0; k < THREADS; k++)
        assert_int_equal(got[k], k % 2 == 0 ? 77 : k - 4 >= 0 && k - 4 < W * H ? want[k - 4] : 0);
}

static void check_surface(struct textures *t, bool sms)
{
    uint32_t got[THREADS], bytes[W * H];
    struct ws_texture h = header(t);
    h.magic = WS_SURFACE_MAGIC;
    run(t, STORE, &h, 1000, sms);
    suite_get(t->s, 0, bytes, t->texels, sizeof(bytes));
    for (int k = 0; k < W * H; k++)
        assert_int_equal(bytes[k], k + 1000);
    struct suite_op o = launch(t, LOAD, t->header, t->out, sms); /* threads past the surface */
    suite_run(t->s, &o, WS_DEV_E_ILLEGAL_ADDRESS);
    assert_non_null(strstr(o.op.text, "outside of the surface"));
    o.op.launch.block[0] = W * H;
    suite_run(t->s, &o, WS_DEV_OK);
    suite_get(t->s, 0, got, t->out, W * H * 4);
    assert_memory_equal(got, bytes, W * H * 4);
    suite_put(t->s, 0, t->texels, t->texel, sizeof(t->texel));
}

static void check_query(struct textures *t)
{
    static const uint32_t want[] = {W, H, 0x10b5, 3}; /* RGBA, clamp to edge */
    uint32_t got[4];
    struct ws_texture h = header(t);
    run(t, QUERY, &h, t->out, false);
    suite_get(t->s, 0, got, t->out, sizeof(got));
    assert_memory_equal(got, want, sizeof(want));
}

void suite_textures(struct suite *s)
{
    struct textures t;
    begin(&t, s);
    const struct ws_dmodule_info *i = ws_dmodule_info(t.code);
    for (uint32_t k = 0; k < i->n_kernels; k++)
        if (!strcmp(i->kernels[k].name, "offset"))
            assert_non_null(strstr(i->kernels[k].unsupported, "tex"));
        else
            assert_null(i->kernels[k].unsupported);
    for (int sms = 0; sms < 2; sms++) {
        check_samples(&t, sms);
        check_fetches(&t, sms);
        if (!suite_target.options.unfenced) /* something faults */
            check_surface(&t, sms);
    }
    check_query(&t);
    end(&t);
}

enum { THEIRS = 4096 };

/* The launch faults, and says @why; client 1's memory is as it was. */
static void faults(struct textures *t, struct suite_op o, uint64_t theirs, const char *why)
{
    uint8_t is[THEIRS];
    suite_run(t->s, &o, WS_DEV_E_ILLEGAL_ADDRESS);
    if (!strstr(o.op.text, why))
        fail_msg("'%s', not '%s'", o.op.text, why);
    suite_get(t->s, 1, is, theirs, sizeof(is));
    for (unsigned k = 0; k < sizeof(is); k++)
        assert_int_equal(is[k], 0x5a);
    assert_null(suite_target.cuda ? ws_device_cuda_lost(t->s->device) : NULL);
}

void suite_textures_isolated(struct suite *s)
{
    struct textures t;
    uint8_t fill[THEIRS];
    begin(&t, s);
    uint64_t theirs = suite_alloc(s, 1, THEIRS);
    memset(fill, 0x5a, sizeof(fill));
    for (int sms = 0; sms < 2; sms++) {
        const char *outside = suite_target.cuda ? "not the client's" : "";
        struct ws_texture h = header(&t), bad;
        /* a texture of their own, whose handle this one guesses */
        suite_put(s, 1, theirs, &h, sizeof(h));
        struct suite_op o = launch(&t, SAMPLE, theirs, t.out, sms);
        suite_run(s, &o, WS_DEV_E_ILLEGAL_ADDRESS);
        o = launch(&t, QUERY, theirs, t.out, sms);
        suite_run(s, &o, WS_DEV_E_ILLEGAL_ADDRESS);
        suite_put(s, 1, theirs, fill, sizeof(fill));
        /* headers that lead into their memory, or past the end of the own */
        for (int n = 0; n < 3; n++) {
            bad = h;
            bad.level[0].address = n == 2 ? t.texels : theirs;
            if (n == 1)
                bad.magic = WS_SURFACE_MAGIC;
            if (n == 2)
                bad.level[0].row_bytes = theirs - t.texels;
            suite_put(s, 0, t.header, &bad, sizeof(bad));
            faults(&t, launch(&t, n == 1 ? STORE : SAMPLE, t.header, n == 1 ? 5 : t.out, sms),
                   theirs, outside);
        }
        /* what is none */
        suite_put(s, 0, t.header, &h, sizeof(h));
        faults(&t, launch(&t, STORE, t.header, 5, sms), theirs, "no surface");
        faults(&t, launch(&t, SAMPLE, t.texels, t.out, sms), theirs,
               suite_target.cuda ? "no texture" : "texture handle");
        faults(&t, launch(&t, SAMPLE, 0, t.out, sms), theirs, outside);
        faults(&t, launch(&t, SAMPLE, t.header + 4, t.out, sms), theirs, "handle");
        bad = h;
        bad.shape = WS_TEX_3D;
        suite_put(s, 0, t.header, &bad, sizeof(bad));
        faults(&t, launch(&t, SAMPLE, t.header, t.out, sms), theirs, "another shape");
    }
    end(&t);
}
