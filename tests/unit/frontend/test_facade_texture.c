// SPDX-License-Identifier: Apache-2.0
/* Arrays and textures of the façades: which header CUDA's descriptions make, what is refused, whose
 * what is and when it goes; and the cutting of boxes into pieces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "frontend/session/box.h"
#include "frontend/errors.h"
#include "frontend/texture/texture.h"
#include "tests/unit/frontend/fake_session.h"

int cuInit(unsigned);
int cuCtxCreate_v2(void **, unsigned, int);
int cuCtxDestroy_v2(void *);
int cuCtxSetCurrent(void *);
int cuModuleLoadData(void **, const void *);
int cuModuleUnload(void *);
int cuModuleGetTexRef(void **, void *, const char *);
int cuTexRefSetFilterMode(void *, int);
int cuTexRefSetAddress_v2(size_t *, void *, uint64_t, size_t);
int cuTexRefSetArray(void *, void *, unsigned);
int cuTexRefGetAddress_v2(uint64_t *, void *);
int cudaSetDevice(int);
int cudaDeviceReset(void);
int cudaMallocArray(void **, const struct cuda_channel_desc *, size_t, size_t, unsigned);
int cudaFreeArray(void *);
int cudaArrayGetInfo(struct cuda_channel_desc *, struct cuda_extent *, unsigned *, void *);
int cudaCreateTextureObject(uint64_t *, const struct cuda_resource_desc *,
                            const struct cuda_texture_desc *, const struct cuda_view_desc *);
int cudaDestroyTextureObject(uint64_t);
int cudaMemcpy3D(const struct cuda_memcpy_3d_parms *);
int cudaGetLastError(void);

enum { H2D = 1, DRV_FLOAT = 0x20, DRV_U8 = 1, DRV_U32 = 3 };
static const struct cuda_channel_desc float1 = {32, 0, 0, 0, 2};
static struct ws_cuda_context *ctx;

static int setup(void **state)
{
    int device;
    fake_reset();
    assert_int_equal(cuInit(0), 0);
    assert_int_equal(cudaSetDevice(0), 0);
    assert_int_equal(ws_rt_enter(&device), 0);
    ctx = ws_ctx_current();
    return 0;
}
static int teardown(void **state)
{
    cudaDeviceReset();
    cudaGetLastError();
    return 0;
}

/* ---- formats ---- */

static void test_formats_come_back_as_they_went(void **state)
{
    struct ws_texel t, u;
    struct cuda_channel_desc d;
    int n = 0;
    for (int f = -1; f < 0x100; f++)
        for (unsigned c = 0; c < 6; c++) {
            if (ws_texel_of_format(f, c, &t))
                continue;
            n++;
            assert_int_equal(ws_texel_format(&t), f);
            assert_int_equal(t.n_channels, c);
            ws_texel_channels(&t, &d);
            assert_int_equal(ws_texel_of_channels(&d, &u), 0);
            assert_memory_equal(&t, &u, sizeof(t));
        }
    assert_int_equal(n, 8 * 3 + 12);
    static const struct cuda_channel_desc bad[] = {
        {8, 8, 8, 0, 1},  {8, 16, 0, 0, 1}, {0, 8, 0, 0, 1}, {64, 0, 0, 0, 1}, {8, 0, 0, 0, 2},
        {32, 0, 0, 0, 3}, {0, 0, 0, 0, 1},  {8, 0, 0, 0, 6}, {-8, 0, 0, 0, 1}, {32, 0, 0, 0, 99}};
    for (size_t i = 0; i < WS_ARRAY_SIZE(bad); i++)
        assert_int_equal(ws_texel_of_channels(&bad[i], &t), CUDA_INVALID_CHANNEL_DESCRIPTOR);
    fake.n_unsupported = 0;
    assert_int_equal(ws_texel_of_channels(&(struct cuda_channel_desc){8, 8, 8, 8, 17}, &t),
                     CUDA_NOT_SUPPORTED); /* BC1 */
    assert_int_equal(ws_texel_of_format(0x91, 4, &t), CUDA_NOT_SUPPORTED);
    assert_int_equal(ws_texel_of_view(0x19, &t), CUDA_NOT_SUPPORTED);
    assert_int_equal(fake.n_unsupported, 3);
    assert_int_equal(ws_texel_of_view(0x23, &t), CUDA_INVALID_VALUE);
    assert_int_equal(ws_texel_of_view(0x18, &t), 0); /* float4 */
    assert_int_equal(t.bytes, 16);
    assert_int_equal(ws_texel_of_view(0x05, &t), 0); /* char2 */
    assert_int_equal(t.format * 10 + t.n_channels, WS_TEX_S8 * 10 + 2);
}

/* ---- arrays ---- */

static struct ws_array *array(uint64_t w, uint64_t h, uint64_t d, int format, unsigned channels,
                              unsigned flags)
{
    struct ws_array_desc x = {.width = w, .height = h, .depth = d, .flags = flags};
    struct ws_array *a = NULL;
    assert_int_equal(ws_texel_of_format(format, channels, &x.texel), 0);
    assert_int_equal(ws_array_new(ctx, &x, &a), 0);
    return a;
}

static void test_extents(void **state)
{
    enum { L = WS_ARRAY_LAYERED, S = WS_ARRAY_SURFACE, C = WS_ARRAY_CUBEMAP, G = WS_ARRAY_GATHER };
    static const struct {
        uint64_t w, h, d;
        unsigned flags;
        int code;
    } v[] = {
        {131072, 0, 0, 0, 0},     {131073, 0, 0, 0, 1},     {131072, 65536, 0, 0, 2},
        {1, 65537, 0, 0, 1},      {8, 8, 16384, 0, 0},      {8, 8, 32768, 0, 0},
        {8200, 8, 16385, 0, 1},   {8, 8, 32769, 0, 1},      {8, 0, 8, 0, 1},
        {0, 8, 0, 0, 1},          {8, 0, 2048, L, 0},       {8, 0, 2049, L, 1},
        {8, 8, 2048, L, 0},       {32769, 8, 4, L, 1},      {8, 8, 0, L, 1},
        {8, 8, 6, C, 0},          {8, 8, 12, C, 1},         {8, 7, 6, C, 1},
        {8, 8, 12, C | L, 0},     {8, 8, 13, C | L, 1},     {8, 8, 2048, C | L, 1},
        {32768, 0, 0, S, 0},      {32769, 0, 0, S, 1},      {8, 8, 0, G, 0},
        {8, 0, 0, G, 1},          {8, 8, 8, G, 1},          {32769, 8, 0, G, 1},
        {8, 8, 0, 0x40, 801},     {8, 8, 0, 0x80, 801},     {8, 8, 0, 0x200, 1},
        {UINT64_MAX, 0, 0, 0, 1}, {8, UINT64_MAX, 0, 0, 1}, {8, 8, UINT64_MAX, 0, 1},
    };
    for (size_t i = 0; i < WS_ARRAY_SIZE(v); i++) {
        struct ws_array_desc d = {.width = v[i].w,
                                  .height = v[i].h,
                                  .depth = v[i].d,
                                  .flags = v[i].flags,
                                  .texel = {WS_TEX_F32, 1, false, 4}};
        struct ws_array *a;
        fake.next = v[i].code == 2 ? WS__ERROR__OUT_OF_MEMORY : WS__ERROR__OK;
        int code = ws_array_new(ctx, &d, &a);
        if (code != v[i].code)
            fail_msg("case %zu gave %d", i, code);
        fake.next = WS__ERROR__OK;
        if (!code)
            assert_int_equal(ws_array_free(a), 0);
    }
}

static void test_sides_of_copies(void **state)
{
    struct ws_array *a = array(10, 6, 4, DRV_U8, 4, 0); /* rows of 40 bytes */
    struct ws_copy_side s;
    struct ws_copy_box b = {40, 6, 4};
    assert_true(ws_array_side(a, 0, 0, 0, &b, &s));
    assert_int_equal(s.address, a->memory.address);
    assert_int_equal(s.pitch_bytes * 1000 + s.slice_bytes, 40240);
    assert_false(ws_array_side(a, 4, 0, 0, &b, &s));
    assert_false(ws_array_side(a, 0, 1, 0, &b, &s));
    assert_false(ws_array_side(a, 0, 0, 1, &b, &s));
    assert_false(ws_array_side(a, UINT64_MAX - 3, 0, 0, &b, &s));
    assert_false(ws_array_side(a, 0, UINT64_MAX, 0, &b, &s));
    b = (struct ws_copy_box){8, 2, 1};
    assert_true(ws_array_side(a, 32, 4, 3, &b, &s));
    assert_int_equal(s.address, a->memory.address + 3 * 240 + 4 * 40 + 32);
    assert_false(ws_array_side(a, 30, 4, 3, &b, &s)); /* inside a texel */
    assert_int_equal(ws_array_stretch(a, 959, 1), a->memory.address + 959);
    assert_int_equal(ws_array_stretch(a, 959, 2), 0);
    assert_int_equal(ws_array_stretch(a, UINT64_MAX, 2), 0);
    /* an extent counts texels as soon as there is an array */
    uint8_t host[4096];
    struct cuda_memcpy_3d_parms p = {.srcPtr = {host, 50, 10, 7},
                                     .dstArray = a,
                                     .dstPos = {1, 2, 1},
                                     .extent = {9, 3, 3},
                                     .kind = H2D};
    assert_int_equal(cudaMemcpy3D(&p), 0);
    assert_int_equal(fake.box.box.width_bytes, 36);
    assert_int_equal(fake.box.dst.address, a->memory.address + 240 + 80 + 4);
    assert_int_equal(fake.box.src.pitch_bytes * 1000 + fake.box.src.slice_bytes, 50350);
    p.srcPtr.pitch = 35;
    assert_int_equal(cudaMemcpy3D(&p), CUDA_INVALID_PITCH);
    p.srcPtr.pitch = 50;
    p.extent.width = 10;
    assert_int_equal(cudaMemcpy3D(&p), CUDA_INVALID_VALUE);
    p.extent.width = SIZE_MAX / 2;
    assert_int_equal(cudaMemcpy3D(&p), CUDA_INVALID_VALUE);
    p.extent.width = 9;
    p.dstPtr.ptr = host; /* two destinations */
    assert_int_equal(cudaMemcpy3D(&p), CUDA_INVALID_VALUE);
    p.dstPtr.ptr = NULL;
    p.dstArray = host;
    assert_int_equal(cudaMemcpy3D(&p), CUDA_INVALID_HANDLE);
}

/* ---- headers ---- */

static void test_headers_of_arrays(void **state)
{
    struct ws_texture h;
    struct cu_texture_desc t = {.addressMode = {0, 2, 3},
                                .filterMode = 1,
                                .maxAnisotropy = 99,
                                .borderColor = {1, 2, 3, 4},
                                .mipmapLevelBias = 0.5f};
    struct cu_resource_desc r = {.resType = WS_RES_ARRAY,
                                 .res.array = array(20, 10, 0, DRV_U8, 4, 0)};
    assert_int_equal(ws_texture_describe(0, &r, &t, NULL, &h), 0);
    assert_int_equal(h.magic, WS_TEXTURE_MAGIC);
    assert_int_equal(h.shape * 100 + h.format * 10 + h.n_channels, WS_TEX_2D * 100 + 4);
    assert_int_equal(h.flags, WS_TEX_NORMALIZED_FLOAT | WS_TEX_FILTER_LINEAR);
    assert_int_equal(h.address_mode[0] * 100 + h.address_mode[1] * 10 + h.address_mode[2], 113);
    assert_int_equal(h.max_anisotropy, 16);
    assert_int_equal(h.n_levels, 1);
    assert_true(h.border[3] == 4 && h.level_bias == 0.5f);
    assert_int_equal(h.level[0].row_bytes, 80);
    assert_int_equal(h.level[0].width * 10000 + h.level[0].height * 100 + h.level[0].depth, 201001);
    t.flags = WS_TRSF_READ_AS_INTEGER;
    assert_int_equal(ws_texture_describe(0, &r, &t, NULL, &h), CUDA_INVALID_FILTER_SETTING);
    t.filterMode = 0;
    t.flags |= WS_TRSF_NORMALIZED_COORDINATES | WS_TRSF_SRGB;
    assert_int_equal(ws_texture_describe(0, &r, &t, NULL, &h), 0);
    assert_int_equal(h.flags, WS_TEX_NORMALIZED_COORDS);
    assert_int_equal(h.address_mode[0] * 100 + h.address_mode[1] * 10 + h.address_mode[2], 23);
    t.flags = WS_TRSF_SRGB;
    assert_int_equal(ws_texture_describe(0, &r, &t, NULL, &h), 0);
    assert_int_equal(h.flags, WS_TEX_NORMALIZED_FLOAT | WS_TEX_SRGB);
    assert_int_equal(ws_texture_describe(1, &r, &t, NULL, &h), CUDA_INVALID_VALUE); /* device */
    t.flags = 4;
    assert_int_equal(ws_texture_describe(0, &r, &t, NULL, &h), CUDA_INVALID_VALUE);
    t.flags = 0;
    t.addressMode[2] = 4;
    assert_int_equal(ws_texture_describe(0, &r, &t, NULL, &h), CUDA_INVALID_VALUE);
    t.addressMode[2] = 0;
    r.flags = 1;
    assert_int_equal(ws_texture_describe(0, &r, &t, NULL, &h), CUDA_INVALID_VALUE);
    /* 32-bit integers stay integers */
    r = (struct cu_resource_desc){.resType = WS_RES_ARRAY,
                                  .res.array = array(4, 0, 0, DRV_U32, 1, 0)};
    assert_int_equal(ws_texture_describe(0, &r, &t, NULL, &h), 0);
    assert_int_equal(h.shape, WS_TEX_1D);
    assert_int_equal(h.flags, 0);
    /* normalised formats are always floats */
    r.res.array = array(4, 4, 4, 0xc5, 4, 0);
    t.flags = WS_TRSF_READ_AS_INTEGER;
    t.filterMode = 1;
    assert_int_equal(ws_texture_describe(0, &r, &t, NULL, &h), 0);
    assert_int_equal(h.shape, WS_TEX_3D);
    assert_int_equal(h.flags, WS_TEX_NORMALIZED_FLOAT | WS_TEX_FILTER_LINEAR);
}

static void test_headers_of_layers_levels_and_views(void **state)
{
    struct ws_texture h;
    struct cu_texture_desc t = {.flags = WS_TRSF_NORMALIZED_COORDINATES};
    struct cu_resource_desc r = {
        .resType = WS_RES_ARRAY,
        .res.array = array(8, 8, 24, DRV_FLOAT, 1, WS_ARRAY_CUBEMAP | WS_ARRAY_LAYERED)};
    struct ws_array *cubes = r.res.array;
    struct cuda_view_desc v = {
        .width = 8, .height = 8, .depth = 24, .firstLayer = 6, .lastLayer = 17};
    t.flags |= WS_TRSF_SEAMLESS_CUBEMAP;
    assert_int_equal(ws_texture_describe(0, &r, &t, &v, &h), 0);
    assert_int_equal(h.shape, WS_TEX_CUBE);
    assert_int_equal(h.flags, WS_TEX_LAYERED | WS_TEX_NORMALIZED_COORDS | WS_TEX_SEAMLESS_CUBE);
    assert_int_equal(h.level[0].depth, 12);
    assert_int_equal(h.level[0].address, cubes->memory.address + 6 * 256);
    v.lastLayer = 16; /* no whole cubes */
    assert_int_equal(ws_texture_describe(0, &r, &t, &v, &h), CUDA_INVALID_VALUE);
    v.lastLayer = 24;
    assert_int_equal(ws_texture_describe(0, &r, &t, &v, &h), CUDA_INVALID_VALUE);
    v.lastLayer = 5;
    assert_int_equal(ws_texture_describe(0, &r, &t, &v, &h), CUDA_INVALID_VALUE);
    struct ws_array_desc d = {.width = 40, .height = 12, .texel = {WS_TEX_U32, 1, false, 4}};
    struct ws_mipmap *m;
    assert_int_equal(ws_mipmap_new(ctx, &d, 99, &m), 0);
    assert_int_equal(m->n_levels, 6);
    r = (struct cu_resource_desc){.resType = WS_RES_MIPMAP, .res.mipmap = m};
    v = (struct cuda_view_desc){.format = 0x16, /* float1 */
                                .width = 40,
                                .height = 12,
                                .firstMipmapLevel = 2,
                                .lastMipmapLevel = 5};
    t = (struct cu_texture_desc){
        .flags = WS_TRSF_NORMALIZED_COORDINATES, .filterMode = 1, .mipmapFilterMode = 1};
    assert_int_equal(ws_texture_describe(0, &r, &t, NULL, &h), CUDA_INVALID_FILTER_SETTING);
    assert_int_equal(ws_texture_describe(0, &r, &t, &v, &h), 0);
    assert_int_equal(h.format, WS_TEX_F32);
    assert_int_equal(h.n_levels, 4);
    assert_int_equal(h.level[0].width * 100 + h.level[0].height, 1003);
    assert_int_equal(h.level[3].width * 100 + h.level[3].height, 101);
    assert_int_equal(h.flags,
                     WS_TEX_NORMALIZED_COORDS | WS_TEX_FILTER_LINEAR | WS_TEX_MIPMAP_LINEAR);
    for (unsigned i = 1; i < 4; i++)
        assert_true(h.level[i].address >= h.level[i - 1].address + h.level[i - 1].slice_bytes);
    v.lastMipmapLevel = 6;
    assert_int_equal(ws_texture_describe(0, &r, &t, &v, &h), CUDA_INVALID_VALUE);
    t.flags = 0;
    assert_int_equal(ws_texture_describe(0, &r, &t, NULL, &h), CUDA_INVALID_VALUE);
    assert_int_equal(ws_array_free(m->level[1]), CUDA_INVALID_VALUE);
    assert_int_equal(ws_mipmap_free(m), 0);
    t.flags = WS_TRSF_NORMALIZED_COORDINATES;
    assert_int_equal(ws_texture_describe(0, &r, &t, NULL, &h), CUDA_INVALID_HANDLE);
}

static void test_headers_of_linear_memory(void **state)
{
    struct ws_texture h;
    uint64_t p;
    struct cu_texture_desc t = {.filterMode = 1, .flags = WS_TRSF_READ_AS_INTEGER};
    assert_int_equal(ws_session_mem_alloc(0, 4096, &p), 0);
    struct cu_resource_desc r = {
        .resType = WS_RES_LINEAR,
        .res.linear = {
            .devPtr = p + 512, .format = DRV_U32, .numChannels = 4, .sizeInBytes = 1000}};
    assert_int_equal(ws_texture_describe(0, &r, &t, NULL, &h), 0); /* filters are ignored */
    assert_int_equal(h.shape, WS_TEX_LINEAR);
    assert_int_equal(h.flags, 0);
    assert_int_equal(h.level[0].width, 62);
    r.res.linear.sizeInBytes = 1 << 20; /* more than there is */
    assert_int_equal(ws_texture_describe(0, &r, &t, NULL, &h), 0);
    assert_int_equal(h.level[0].width, 3584 / 16);
    r.res.linear.devPtr = p + 256;
    assert_int_equal(ws_texture_describe(0, &r, &t, NULL, &h), CUDA_INVALID_VALUE);
    r.res.linear.devPtr = p + 4096;
    assert_int_equal(ws_texture_describe(0, &r, &t, NULL, &h), CUDA_INVALID_VALUE);
    r.res.linear.devPtr = p;
    r.res.linear.numChannels = 3;
    assert_int_equal(ws_texture_describe(0, &r, &t, NULL, &h), CUDA_INVALID_CHANNEL_DESCRIPTOR);
    r = (struct cu_resource_desc){.resType = WS_RES_PITCH2D,
                                  .res.pitch2D = {.devPtr = p,
                                                  .format = DRV_FLOAT,
                                                  .numChannels = 1,
                                                  .width = 20,
                                                  .height = 8,
                                                  .pitchInBytes = 96}};
    assert_int_equal(ws_texture_describe(0, &r, &t, NULL, &h), 0);
    assert_int_equal(h.flags, WS_TEX_FILTER_LINEAR);
    assert_int_equal(h.level[0].row_bytes, 96);
    static const uint64_t bad[][3] = {{0, 8, 96},       {20, 0, 96},        {20, 65001, 96},
                                      {20, 8, 100},     {20, 8, 64},        {131073, 8, 1 << 20},
                                      {20, 8, 2097152}, {UINT64_MAX, 8, 96}};
    for (size_t i = 0; i < WS_ARRAY_SIZE(bad); i++) {
        r.res.pitch2D.width = bad[i][0];
        r.res.pitch2D.height = bad[i][1];
        r.res.pitch2D.pitchInBytes = bad[i][2];
        assert_int_equal(ws_texture_describe(0, &r, &t, NULL, &h), CUDA_INVALID_VALUE);
    }
}

static void test_surfaces_need_the_flag(void **state)
{
    struct ws_texture h;
    struct cu_resource_desc r = {
        .resType = WS_RES_ARRAY,
        .res.array = array(8, 8, 3, DRV_U8, 2, WS_ARRAY_SURFACE | WS_ARRAY_LAYERED)};
    assert_int_equal(ws_surface_describe(0, &r, &h), 0);
    assert_int_equal(h.magic, WS_SURFACE_MAGIC);
    assert_int_equal(h.flags, WS_TEX_LAYERED);
    assert_int_equal(h.level[0].slice_bytes, 128);
    r.res.array = array(8, 8, 3, DRV_U8, 2, WS_ARRAY_LAYERED);
    assert_int_equal(ws_surface_describe(0, &r, &h), CUDA_INVALID_VALUE);
    r.resType = WS_RES_MIPMAP;
    assert_int_equal(ws_surface_describe(0, &r, &h), CUDA_INVALID_VALUE);
}

/* ---- objects ---- */

static uint64_t texture(struct ws_array *a)
{
    struct cuda_resource_desc r = {.resType = WS_RES_ARRAY, .res.array = a};
    struct cuda_texture_desc t = {0};
    uint64_t o = 0;
    assert_int_equal(cudaCreateTextureObject(&o, &r, &t, NULL), 0);
    return o;
}

static void test_places_are_used_again_last(void **state)
{
    struct ws_array *a = array(8, 8, 0, DRV_FLOAT, 1, 0);
    int syncs = fake.n_syncs;
    uint64_t first = texture(a);
    assert_int_equal(fake.copy.bytes, sizeof(struct ws_texture));
    assert_ptr_equal(fake.copy.dst, (void *)(uintptr_t)first);
    assert_true(fake.copy.stream != ws_stream_legacy(0));
    assert_int_equal(fake.n_syncs, syncs + 1);
    assert_int_equal(cudaDestroyTextureObject(first), 0);
    for (int i = 0; i < 255; i++) {
        uint64_t o = texture(a);
        assert_true(o != first && o % 64 == 0);
        assert_int_equal(cudaDestroyTextureObject(o), 0);
    }
    assert_int_equal(texture(a), first);
}

static void test_what_a_context_had_goes_with_it(void **state)
{
    void *c, *a, *mine;
    uint64_t o;
    assert_int_equal(cudaMallocArray(&mine, &float1, 8, 8, 0), 0);
    assert_int_equal(cuCtxCreate_v2(&c, 0, 0), 0);
    assert_int_equal(cudaMallocArray(&a, &float1, 8, 8, 0), 0);
    o = texture(a);
    assert_int_equal(cuCtxDestroy_v2(c), 0);
    assert_int_equal(cuCtxSetCurrent(ctx), 0);
    assert_int_equal(cudaDestroyTextureObject(o), CUDA_INVALID_VALUE);
    assert_int_equal(cudaFreeArray(a), CUDA_INVALID_VALUE);
    assert_int_equal(cudaArrayGetInfo(NULL, NULL, NULL, mine), 0);
    o = texture(mine);
    assert_int_equal(cudaDeviceReset(), 0);
    assert_int_equal(cudaArrayGetInfo(NULL, NULL, NULL, mine), CUDA_INVALID_VALUE);
    assert_int_equal(cudaDestroyTextureObject(o), CUDA_INVALID_VALUE);
    assert_int_equal(cudaArrayGetInfo(NULL, NULL, NULL, (void *)5), CUDA_INVALID_VALUE);
    assert_int_equal(cudaFreeArray(NULL), 0);
}

static void test_an_object_that_cant_be_written_leaves_nothing(void **state)
{
    struct ws_array *a = array(8, 8, 0, DRV_FLOAT, 1, 0);
    struct cuda_resource_desc r = {.resType = WS_RES_ARRAY, .res.array = a};
    struct cuda_texture_desc t = {0};
    uint64_t o = 0, before = texture(a);
    fake.lost = WS__ERROR__ILLEGAL_ADDRESS;
    assert_int_equal(cudaCreateTextureObject(&o, &r, &t, NULL), CUDA_ILLEGAL_ADDRESS);
    assert_int_equal(o, 0);
    fake.lost = WS__ERROR__OK;
    assert_int_equal(cudaDestroyTextureObject(before), 0);
}

/* ---- references ---- */

static void test_references_follow_their_state(void **state)
{
    void *m, *t, *other;
    uint64_t p, got;
    size_t offset = 7;
    assert_int_equal(ws_session_mem_alloc(0, 4096, &p), 0);
    assert_int_equal(cuModuleLoadData(&m, ".version 6.0"), 0);
    assert_int_equal(cuModuleGetTexRef(&t, m, "v"), CUDA_NOT_FOUND); /* a variable, no reference */
    assert_int_equal(cuModuleGetTexRef(&t, m, "t"), 0);
    assert_int_equal(cuModuleGetTexRef(&other, m, "t"), 0);
    assert_ptr_equal(t, other);
    int copies = fake.n_copies;
    assert_int_equal(cuTexRefSetFilterMode(t, 1), 0); /* bound to nothing: nothing to write */
    assert_int_equal(fake.n_copies, copies);
    assert_int_equal(cuTexRefSetAddress_v2(NULL, t, p + 16, 64), CUDA_INVALID_VALUE);
    assert_int_equal(cuTexRefSetAddress_v2(&offset, t, p + 16, 64), 0);
    assert_int_equal(offset, 16);
    assert_int_equal(fake.n_copies, copies + 2); /* the variable, the header */
    assert_int_equal(cuTexRefGetAddress_v2(&got, t), 0);
    assert_int_equal(got, p);
    int syncs = fake.n_syncs;
    assert_int_equal(cuTexRefSetFilterMode(t, 0), 0);
    assert_int_equal(fake.n_copies, copies + 3);
    assert_int_equal(fake.n_syncs, syncs + 2); /* the device, then the write */
    assert_int_equal(cuTexRefSetArray(t, m, 1), CUDA_INVALID_VALUE);
    assert_int_equal(cuTexRefSetArray(t, array(8, 8, 0, DRV_FLOAT, 1, 0), 1), 0);
    assert_int_equal(cuTexRefGetAddress_v2(&got, t), CUDA_INVALID_VALUE);
    assert_int_equal(cuModuleUnload(m), 0);
    assert_int_equal(cuTexRefSetFilterMode(t, 0), CUDA_INVALID_VALUE);
}

/* ---- boxes ---- */

static void test_pieces_cover_a_box_once(void **state)
{
    static uint8_t memory[40 * 11 * 7], packed[40 * 11 * 7], seen[40 * 11 * 7];
    struct ws_copy_side s = {(uintptr_t)memory, 40, 40 * 11};
    struct ws_copy_box box = {31, 9, 5};
    for (size_t i = 0; i < sizeof(memory); i++)
        memory[i] = (uint8_t)(i * 7 + i / 256);
    for (uint64_t limit = 1; limit < 31 * 9 * 5 + 3; limit += limit < 40 ? 1 : 13) {
        struct ws_box_cursor c = {.box = box};
        struct ws_box_piece p;
        uint64_t at = 0;
        memset(seen, 0, sizeof(seen));
        while (ws_box_next(&c, limit, &p)) {
            assert_true(p.bytes && p.bytes <= limit);
            assert_int_equal(p.bytes, p.box.width_bytes * p.box.height * p.box.depth);
            ws_box_pack(packed + at, &s, &p);
            at += p.bytes;
            struct ws_copy_side back = {(uintptr_t)seen, 40, 40 * 11};
            ws_box_unpack(&back, packed + at - p.bytes, &p);
        }
        assert_int_equal(at, 31 * 9 * 5);
        for (int z = 0; z < 7; z++)
            for (int y = 0; y < 11; y++)
                for (int x = 0; x < 40; x++) {
                    int i = (z * 11 + y) * 40 + x;
                    bool inside = x < 31 && y < 9 && z < 5;
                    assert_int_equal(seen[i], inside ? memory[i] : 0);
                    if (inside)
                        assert_int_equal(packed[(z * 9 + y) * 31 + x], memory[i]);
                }
    }
}

int main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_formats_come_back_as_they_went),
        T(test_extents),
        T(test_sides_of_copies),
        T(test_headers_of_arrays),
        T(test_headers_of_layers_levels_and_views),
        T(test_headers_of_linear_memory),
        T(test_surfaces_need_the_flag),
        T(test_places_are_used_again_last),
        T(test_what_a_context_had_goes_with_it),
        T(test_an_object_that_cant_be_written_leaves_nothing),
        T(test_references_follow_their_state),
        T(test_pieces_cover_a_box_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
