// SPDX-License-Identifier: Apache-2.0
// Uses texture and surface references of a module, as programs of the old driver API do, beside
// texture objects. Fails if what a kernel reads is not what was bound last before its launch.
#include <dlfcn.h>
#include <math.h>
#include "drv.h"
#define WORK "texref"

static const char ptx[] =
    ".version 6.0\n.target sm_60\n.address_size 64\n"
    ".global .texref image;\n.global .texref table;\n.global .surfref result;\n"
    ".global .align 4 .u32 plain;\n"
    ".visible .entry read(.param .u64 out, .param .u32 w, .param .f32 dx)\n{\n"
    ".reg .u32 %x, %y, %w, %n, %b, %t<4>;\n.reg .f32 %fx, %fy, %dx, %f<4>, %ft, %s;\n"
    ".reg .u64 %o, %a;\n"
    "mov.u32 %x, %tid.x;\nmov.u32 %y, %ctaid.x;\nld.param.u32 %w, [w];\nld.param.f32 %dx, [dx];\n"
    "cvt.rn.f32.u32 %fx, %x;\ncvt.rn.f32.u32 %fy, %y;\nadd.f32 %fx, %fx, %dx;\n"
    "add.f32 %fy, %fy, 0f3F000000;\n"
    "tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [image, {%fx, %fy}];\n"
    "tex.1d.v4.u32.s32 {%t0, %t1, %t2, %t3}, [table, {%x, %y, %y, %y}];\n" /* as old PTX has it */
    "cvt.rn.f32.u32 %ft, %t0;\nadd.f32 %s, %f0, %ft;\n"
    "mad.lo.u32 %n, %y, %w, %x;\nmul.wide.u32 %a, %n, 4;\nld.param.u64 %o, [out];\n"
    "cvta.to.global.u64 %o, %o;\nadd.u64 %a, %a, %o;\nst.global.f32 [%a], %s;\n"
    "mov.b32 %b, %f0;\nshl.b32 %n, %x, 2;\n"
    "sust.b.2d.b32.trap [result, {%n, %y}], {%b};\nret;\n}\n"
    ".visible .entry object(.param .u64 t, .param .u64 out)\n{\n"
    ".reg .u32 %x;\n.reg .f32 %f<4>, %fx;\n.reg .u64 %t, %o, %a;\n"
    "mov.u32 %x, %tid.x;\ncvt.rn.f32.u32 %fx, %x;\nadd.f32 %fx, %fx, 0f3F000000;\n"
    "ld.param.u64 %t, [t];\nld.param.u64 %o, [out];\ncvta.to.global.u64 %o, %o;\n"
    "tex.1d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%t, {%fx}];\n"
    "mul.wide.u32 %a, %x, 4;\nadd.u64 %a, %a, %o;\nst.global.f32 [%a], %f0;\nret;\n}\n";

enum { W = 24, H = 6, FLOAT = 0x20, U32 = 3, U8 = 1, SURFACE = 2 };
struct array_desc {
    size_t w, h;
    int format;
    unsigned channels;
};
struct array3d_desc {
    size_t w, h, d;
    int format;
    unsigned channels, flags;
};
struct resource {
    int type;
    union {
        void *array;
        int pad[32];
    } res;
    unsigned flags;
};
struct texture {
    int mode[3], filter;
    unsigned flags, anisotropy;
    int mip_filter;
    float bias, low, high, border[4];
    int pad[12];
};

struct copy_2d { /* CUDA_MEMCPY2D */
    size_t src_x, src_y;
    int src_type;
    const void *src_host;
    CUdeviceptr src_device;
    void *src_array;
    size_t src_pitch, dst_x, dst_y;
    int dst_type;
    void *dst_host;
    CUdeviceptr dst_device;
    void *dst_array;
    size_t dst_pitch, width, height;
};
struct copy_3d { /* CUDA_MEMCPY3D */
    size_t src_x, src_y, src_z, src_lod;
    int src_type;
    const void *src_host;
    CUdeviceptr src_device;
    void *src_array, *reserved0;
    size_t src_pitch, src_height, dst_x, dst_y, dst_z, dst_lod;
    int dst_type;
    void *dst_host;
    CUdeviceptr dst_device;
    void *dst_array, *reserved1;
    size_t dst_pitch, dst_height, width, height, depth;
};
enum { HOST = 1, DEVICE = 2, ARRAY = 3, UNIFIED = 4 };

#define EXTRA(F)                                                                                   \
    F(cuArrayCreate_v2, (void **, const struct array_desc *))                                      \
    F(cuArray3DCreate_v2, (void **, const struct array3d_desc *))                                  \
    F(cuArrayDestroy, (void *))                                                                    \
    F(cuArray3DGetDescriptor_v2, (struct array3d_desc *, void *))                                  \
    F(cuMemcpyHtoA_v2, (void *, size_t, const void *, size_t))                                     \
    F(cuMemcpyAtoH_v2, (void *, void *, size_t, size_t))                                           \
    F(cuMemcpyAtoA_v2, (void *, size_t, void *, size_t, size_t))                                   \
    F(cuMemcpyDtoA_v2, (void *, size_t, CUdeviceptr, size_t))                                      \
    F(cuMemcpyAtoD_v2, (CUdeviceptr, void *, size_t, size_t))                                      \
    F(cuMemcpy2D_v2, (const struct copy_2d *))                                                     \
    F(cuMemcpy2DAsync_v2, (const struct copy_2d *, CUstream))                                      \
    F(cuMemcpy2DUnaligned_v2, (const struct copy_2d *))                                            \
    F(cuMemcpy3D_v2, (const struct copy_3d *))                                                     \
    F(cuModuleGetTexRef, (void **, CUmodule, const char *))                                        \
    F(cuModuleGetSurfRef, (void **, CUmodule, const char *))                                       \
    F(cuTexRefSetArray, (void *, void *, unsigned))                                                \
    F(cuTexRefSetAddress_v2, (size_t *, void *, CUdeviceptr, size_t))                              \
    F(cuTexRefSetAddress2D_v3, (void *, const struct array_desc *, CUdeviceptr, size_t))           \
    F(cuTexRefSetFormat, (void *, int, int))                                                       \
    F(cuTexRefSetFilterMode, (void *, int))                                                        \
    F(cuTexRefSetAddressMode, (void *, int, int))                                                  \
    F(cuTexRefSetFlags, (void *, unsigned))                                                        \
    F(cuTexRefGetArray, (void **, void *))                                                         \
    F(cuTexRefGetFilterMode, (int *, void *))                                                      \
    F(cuTexRefGetFormat, (int *, int *, void *))                                                   \
    F(cuSurfRefSetArray, (void *, void *, unsigned))                                               \
    F(cuParamSetTexRef, (CUfunction, int, void *))                                                 \
    F(cuTexObjectCreate, (CUdeviceptr *, const struct resource *, const struct texture *, void *)) \
    F(cuTexObjectDestroy, (CUdeviceptr))
#define POINTER(symbol, args) static CUresult(*symbol) args;
EXTRA(POINTER)

static void load(void)
{
    void *lib = dlopen("libcuda.so.1", RTLD_NOW);
#define LOOKUP(symbol, args)                                                                       \
    if (!lib || !(*(void **)&symbol = dlsym(lib, #symbol))) {                                      \
        printf("FAIL " WORK ": libcuda.so.1 has no %s\n", #symbol);                                \
        exit(1);                                                                                   \
    }
    EXTRA(LOOKUP)
}

#define GIVES(call, code)                                                                          \
    do {                                                                                           \
        CUresult r_ = (call);                                                                      \
        if (r_ != (code)) {                                                                        \
            work_fail(WORK, "line %d: %s gave %d", __LINE__, #call, r_);                           \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
#define OK(call) GIVES(call, 0)

static float image[2][W * H], out[W * H], surface[W * H];
static unsigned table[W];

/* What the kernel makes of image @k read @dx from the texels' left edges, with the filter or
 * without. */
static int check(const char *what, int k, float dx, int filter)
{
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++) {
            double at = x + dx - (filter ? 0.5 : 0), f = at - floor(at);
            int i = (int)floor(at), j = i + 1;
            i = i < 0 ? 0 : i >= W ? W - 1 : i;
            j = j < 0 ? 0 : j >= W ? W - 1 : j;
            const float *row = image[k] + y * W;
            double want = filter ? (1 - f) * row[i] + f * row[j] : row[i];
            if (fabs(out[y * W + x] - table[x] - want) > 0.01 * W)
                return work_fail(WORK, "%s: (%d, %d) is %g, not %g", what, x, y, out[y * W + x],
                                 want + table[x]);
            if (fabs(surface[y * W + x] - want) > 0.01 * W)
                return work_fail(WORK, "%s: surface (%d, %d) is %g", what, x, y,
                                 surface[y * W + x]);
        }
    return 0;
}

/* Boxes: host to array, array to pitched memory, from there to a volume, and back to the host. */
static int boxes(void *array, CUdeviceptr pitched)
{
    struct array3d_desc volume = {W, H, 4, FLOAT, 1, 0};
    struct copy_2d up = {.src_type = HOST,
                         .src_host = image[1],
                         .src_pitch = W * 4,
                         .src_x = 8,
                         .src_y = 1,
                         .dst_type = ARRAY,
                         .dst_array = array,
                         .dst_x = 4,
                         .width = 60,
                         .height = 4};
    struct copy_2d over = {.src_type = ARRAY,
                           .src_array = array,
                           .src_x = 4,
                           .dst_type = UNIFIED,
                           .dst_device = pitched,
                           .dst_pitch = 128,
                           .width = 60,
                           .height = 4};
    struct copy_3d in = {.src_type = DEVICE,
                         .src_device = pitched,
                         .src_pitch = 128,
                         .src_height = 2,
                         .dst_type = ARRAY,
                         .dst_x = 16,
                         .dst_y = 3,
                         .dst_z = 1,
                         .width = 60,
                         .height = 2,
                         .depth = 2};
    struct copy_3d back = {.src_type = ARRAY,
                           .src_x = 16,
                           .src_y = 3,
                           .src_z = 1,
                           .dst_type = HOST,
                           .dst_host = out,
                           .dst_pitch = 60,
                           .dst_height = 2,
                           .width = 60,
                           .height = 2,
                           .depth = 2};
    OK(cuMemcpy2D_v2(&up));
    OK(cuMemcpy2DAsync_v2(&over, NULL));
    OK(cuArray3DCreate_v2(&in.dst_array, &volume));
    back.src_array = in.dst_array;
    OK(cuMemcpy3D_v2(&in));
    OK(cuMemcpy3D_v2(&back));
    for (int y = 0; y < 4; y++)
        if (memcmp((char *)out + 60 * y, (char *)image[1] + (y + 1) * W * 4 + 8, 60))
            return work_fail(WORK, "row %d of a copy through arrays", y);
    up.dst_x = 40; /* 100 bytes in a row of 96 */
    GIVES(cuMemcpy2D_v2(&up), 1);
    up.dst_x = 2; /* inside a texel */
    GIVES(cuMemcpy2DUnaligned_v2(&up), 1);
    back.src_z = 3;
    GIVES(cuMemcpy3D_v2(&back), 1);
    back.src_array = out;
    GIVES(cuMemcpy3D_v2(&back), 400);
    OK(cuArrayDestroy(in.dst_array));
    return 0;
}

int main(int argc, char **argv)
{
    long iterations = work_arg(argc, argv, 2, 1, 1000000);
    CUdeviceptr d_out, d_table, d_pitched, object, none;
    CUmodule m;
    CUfunction read, read_object;
    void *a[2], *s, *image_ref, *table_ref, *result_ref, *got;
    struct array_desc d = {W, H, FLOAT, 1}, d1 = {W, 0, FLOAT, 1};
    struct array3d_desc ds = {W, H, 0, FLOAT, 1, SURFACE}, described;
    int bad = 0, filter, format, channels, w = W;
    float dx = 0.5f;
    size_t offset;
    drv_begin();
    load();
    for (int i = 0; i < W * H; i++) {
        image[0][i] = (float)(i % W * 2 + i / W);
        image[1][i] = (float)(1000 - i);
    }
    for (int i = 0; i < W; i++)
        table[i] = 5000u * (unsigned)i;
    OK(drv.module_load_data_ex(&m, ptx, 0, NULL, NULL));
    OK(drv.module_get_function(&read, m, "read"));
    OK(drv.module_get_function(&read_object, m, "object"));
    OK(drv.mem_alloc(&d_out, sizeof(out)));
    OK(drv.mem_alloc(&d_table, 4096));
    OK(drv.mem_alloc(&d_pitched, 128 * H));
    for (int k = 0; k < 2; k++) {
        OK(cuArrayCreate_v2(&a[k], &d));
        OK(cuMemcpyHtoA_v2(a[k], 0, image[k], sizeof(image[k])));
    }
    OK(cuArray3DCreate_v2(&s, &ds));
    OK(cuArray3DGetDescriptor_v2(&described, s));
    if (described.w != W || described.h != H || described.d || described.format != FLOAT ||
        described.flags != SURFACE)
        return work_fail(WORK, "an array's description");
    OK(drv.memcpy_htod(d_table + 512, table, sizeof(table)));
    GIVES(cuModuleGetTexRef(&got, m, "nothing"), 500);
    GIVES(cuModuleGetTexRef(&got, m, "plain"), 500);
    GIVES(cuModuleGetTexRef(&got, m, "result"), 500);
    OK(cuModuleGetTexRef(&image_ref, m, "image"));
    OK(cuModuleGetTexRef(&table_ref, m, "table"));
    OK(cuModuleGetSurfRef(&result_ref, m, "result"));
    OK(cuModuleGetTexRef(&got, m, "image"));
    if (got != image_ref)
        return work_fail(WORK, "a reference has two handles");
    GIVES(cuTexRefSetArray(image_ref, (void *)image, 1), 1);
    GIVES(cuTexRefSetFilterMode(image_ref, 7), 1);
    GIVES(cuSurfRefSetArray(result_ref, a[0], 0), 1); /* made without the flag */
    OK(cuSurfRefSetArray(result_ref, s, 0));
    OK(cuTexRefSetAddressMode(image_ref, 0, 1));
    OK(cuTexRefSetFlags(table_ref, 1));
    OK(cuTexRefSetFormat(table_ref, U32, 1));
    OK(cuTexRefSetAddress_v2(&offset, table_ref, d_table + 512, sizeof(table)));
    if (offset)
        return work_fail(WORK, "an aligned address has an offset");
    OK(cuParamSetTexRef(read, -1, image_ref));
    void *args[] = {&d_out, &w, &dx};
    for (long i = 0; i < iterations && !bad; i++) {
        for (int k = 0; k < 4 && !bad; k++) {
            dx = k < 2 ? 0.5f : 0.8f;
            OK(cuTexRefSetFilterMode(image_ref, k >> 1));
            OK(cuTexRefSetArray(image_ref, a[1 - k % 2], 1));
            OK(drv.launch_kernel(read, H, 1, 1, W, 1, 1, 0, NULL, args, NULL));
            OK(cuTexRefSetArray(image_ref, a[k % 2], 1));
            OK(drv.launch_kernel(read, H, 1, 1, W, 1, 1, 0, NULL, args, NULL));
            OK(cuTexRefSetArray(image_ref, a[1 - k % 2], 1)); /* not for that launch any more */
            OK(drv.memcpy_dtoh(out, d_out, sizeof(out)));
            OK(cuMemcpyAtoH_v2(surface, s, 0, sizeof(surface)));
            bad = check("array", k % 2, dx, k >> 1);
        }
        OK(cuTexRefGetArray(&got, image_ref));
        OK(cuTexRefGetFilterMode(&filter, image_ref));
        OK(cuTexRefGetFormat(&format, &channels, table_ref));
        if (got != a[0] || filter != 1 || format != U32 || channels != 1)
            bad = work_fail(WORK, "what a reference tells of itself");
        /* pitched memory in the array's place */
        for (int y = 0; y < H; y++)
            OK(drv.memcpy_htod(d_pitched + 128 * y, image[1] + y * W, W * 4));
        OK(cuTexRefSetAddress2D_v3(image_ref, &d, d_pitched, 128));
        OK(drv.launch_kernel(read, H, 1, 1, W, 1, 1, 0, NULL, args, NULL));
        OK(drv.memcpy_dtoh(out, d_out, sizeof(out)));
        OK(cuMemcpyAtoH_v2(surface, s, 0, sizeof(surface)));
        bad = bad || check("pitched memory", 1, dx, 1);
    }
    /* an object of a 1-D array, filled from the device and from another array */
    struct resource r = {0};
    struct texture t = {.flags = 0};
    void *one;
    OK(cuArrayCreate_v2(&one, &d1));
    OK(drv.memcpy_htod(d_out, image[0], sizeof(image[0])));
    OK(cuMemcpyDtoA_v2(one, 0, d_out, 32));
    OK(cuMemcpyAtoA_v2(one, 32, a[0], 32, W * 4 - 32));
    GIVES(cuMemcpyAtoA_v2(one, 32, a[0], 32, W * 4), 1);
    r.res.array = one;
    OK(cuTexObjectCreate(&object, &r, &t, NULL));
    GIVES(cuTexObjectCreate(NULL, &r, &t, NULL), 1);
    r.res.array = &r;
    GIVES(cuTexObjectCreate(&none, &r, &t, NULL), 1);
    void *object_args[] = {&object, &d_out};
    OK(drv.launch_kernel(read_object, 1, 1, 1, W, 1, 1, 0, NULL, object_args, NULL));
    OK(drv.memcpy_dtoh(out, d_out, sizeof(out)));
    if (memcmp(out, image[0], W * 4))
        bad = work_fail(WORK, "a texture object");
    OK(cuTexObjectDestroy(object));
    GIVES(cuTexObjectDestroy(object), 1);
    OK(cuMemcpyAtoD_v2(d_out, a[1], 4, 400));
    OK(drv.memcpy_dtoh(out, d_out, 400));
    if (memcmp(out, image[1] + 1, 400))
        bad = work_fail(WORK, "cuMemcpyAtoD");
    bad = bad || boxes(a[0], d_pitched);
    OK(cuArrayDestroy(one));
    GIVES(cuArrayDestroy(one), 400);
    OK(drv.module_unload(m));
    GIVES(cuTexRefSetFilterMode(image_ref, 0), 1);
    for (int k = 0; k < 2; k++)
        OK(cuArrayDestroy(a[k]));
    OK(cuArrayDestroy(s));
    OK(drv.mem_free(d_out));
    OK(drv.mem_free(d_table));
    OK(drv.mem_free(d_pitched));
    drv_end();
    return bad ? 1 : work_pass("drv_" WORK);
}
