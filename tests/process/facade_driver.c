// SPDX-License-Identifier: Apache-2.0
/* Checks what the driver façade promises, from a C program that finds the driver as most programs
 * do: by dlopen(), dlsym() and cuGetProcAddress(). Prints a line for each check that fails, and the
 * number of checks. Error codes are CUDA's. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int n_checks, n_failed;
#define CHECK(x)                                                                                   \
    do {                                                                                           \
        n_checks++;                                                                                \
        if (!(x)) {                                                                                \
            n_failed++;                                                                            \
            printf("%s:%d: %s\n", __FILE__, __LINE__, #x);                                         \
        }                                                                                          \
    } while (0)
#define IS(code, x)                                                                                \
    do {                                                                                           \
        int r_ = (x);                                                                              \
        n_checks++;                                                                                \
        if (r_ != (code)) {                                                                        \
            n_failed++;                                                                            \
            printf("%s:%d: %s: %d, expected %d\n", __FILE__, __LINE__, #x, r_, (code));            \
        }                                                                                          \
    } while (0)
#define OK(x) IS(0, x)

typedef void *handle;
typedef uint64_t dptr;
#define FUNCTIONS(F)                                                                               \
    F(cuInit, (unsigned))                                                                          \
    F(cuDriverGetVersion, (int *))                                                                 \
    F(cuGetErrorName, (int, const char **))                                                        \
    F(cuGetErrorString, (int, const char **))                                                      \
    F(cuGetProcAddress, (const char *, void **, int, uint64_t))                                    \
    F(cuGetProcAddress_v2, (const char *, void **, int, uint64_t, int *))                          \
    F(cuGetExportTable, (const void **, const void *))                                             \
    F(cuDeviceGetCount, (int *))                                                                   \
    F(cuDeviceGet, (int *, int))                                                                   \
    F(cuDeviceGetName, (char *, int, int))                                                         \
    F(cuDeviceGetAttribute, (int *, int, int))                                                     \
    F(cuDeviceTotalMem_v2, (size_t *, int))                                                        \
    F(cuDevicePrimaryCtxRetain, (handle *, int))                                                   \
    F(cuDevicePrimaryCtxRelease_v2, (int))                                                         \
    F(cuDevicePrimaryCtxGetState, (int, unsigned *, int *))                                        \
    F(cuCtxCreate_v4, (handle *, void *, unsigned, int))                                           \
    F(cuCtxDestroy_v2, (handle))                                                                   \
    F(cuCtxGetCurrent, (handle *))                                                                 \
    F(cuCtxSetCurrent, (handle))                                                                   \
    F(cuCtxPushCurrent_v2, (handle))                                                               \
    F(cuCtxPopCurrent_v2, (handle *))                                                              \
    F(cuCtxGetDevice, (int *))                                                                     \
    F(cuCtxSynchronize, (void))                                                                    \
    F(cuCtxGetApiVersion, (handle, unsigned *))                                                    \
    F(cuModuleLoadData, (handle *, const void *))                                                  \
    F(cuModuleLoadDataEx, (handle *, const void *, unsigned, int *, void **))                      \
    F(cuModuleLoad, (handle *, const char *))                                                      \
    F(cuModuleUnload, (handle))                                                                    \
    F(cuModuleGetFunction, (handle *, handle, const char *))                                       \
    F(cuModuleGetGlobal_v2, (dptr *, size_t *, handle, const char *))                              \
    F(cuModuleGetFunctionCount, (unsigned *, handle))                                              \
    F(cuLibraryLoadData,                                                                           \
      (handle *, const void *, int *, void **, unsigned, int *, void **, unsigned))                \
    F(cuLibraryGetKernel, (handle *, handle, const char *))                                        \
    F(cuLibraryUnload, (handle))                                                                   \
    F(cuKernelGetFunction, (handle *, handle))                                                     \
    F(cuLinkCreate_v2, (unsigned, int *, void **, handle *))                                       \
    F(cuLinkAddData_v2, (handle, int, void *, size_t, const char *, unsigned, int *, void **))     \
    F(cuLinkComplete, (handle, void **, size_t *))                                                 \
    F(cuLinkDestroy, (handle))                                                                     \
    F(cuFuncGetAttribute, (int *, int, handle))                                                    \
    F(cuFuncGetParamInfo, (handle, size_t, size_t *, size_t *))                                    \
    F(cuFuncGetParamCount, (handle, size_t *))                                                     \
    F(cuLaunchHostFunc_v2, (handle, void (*)(void *), void *, unsigned))                           \
    F(cuFuncSetBlockShape, (handle, int, int, int))                                                \
    F(cuParamSetv, (handle, int, void *, unsigned))                                                \
    F(cuParamSetSize, (handle, unsigned))                                                          \
    F(cuLaunchGrid, (handle, int, int))                                                            \
    F(cuLaunchKernel, (handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,         \
                       unsigned, handle, void **, void **))                                        \
    F(cuOccupancyMaxPotentialBlockSize, (int *, int *, handle, size_t (*)(int), size_t, int))      \
    F(cuMemAlloc_v2, (dptr *, size_t))                                                             \
    F(cuMemFree_v2, (dptr))                                                                        \
    F(cuMemGetInfo_v2, (size_t *, size_t *))                                                       \
    F(cuMemGetAddressRange_v2, (dptr *, size_t *, dptr))                                           \
    F(cuMemHostAlloc, (void **, size_t, unsigned))                                                 \
    F(cuMemFreeHost, (void *))                                                                     \
    F(cuTensorMapEncodeTiled, (void *, int, unsigned, void *, const uint64_t *, const uint64_t *,  \
                               const unsigned *, const unsigned *, int, int, int, int))            \
    F(cuTensorMapReplaceAddress, (void *, void *))                                                 \
    F(cuMemcpyHtoD_v2, (dptr, const void *, size_t))                                               \
    F(cuMemcpyDtoH_v2, (void *, dptr, size_t))                                                     \
    F(cuMemcpyDtoHAsync_v2, (void *, dptr, size_t, handle))                                        \
    F(cuMemsetD32_v2, (dptr, unsigned, size_t))                                                    \
    F(cuMemsetD2D16_v2, (dptr, size_t, unsigned short, size_t, size_t))                            \
    F(cuMemcpy2D_v2, (const void *))                                                               \
    F(cuPointerGetAttribute, (void *, int, dptr))                                                  \
    F(cuStreamCreate, (handle *, unsigned))                                                        \
    F(cuStreamDestroy_v2, (handle))                                                                \
    F(cuStreamSynchronize, (handle))                                                               \
    F(cuStreamGetCtx, (handle, handle *))                                                          \
    F(cuStreamGetGreenCtx, (handle, handle *))                                                     \
    F(cuEventCreate, (handle *, unsigned))                                                         \
    F(cuEventRecord, (handle, handle))                                                             \
    F(cuEventSynchronize, (handle))                                                                \
    F(cuEventElapsedTime, (float *, handle, handle))                                               \
    F(cuEventDestroy_v2, (handle))                                                                 \
    F(cuImportExternalMemory, (handle *, const void *))
#define DECLARE(name, params) static int(*name) params;
FUNCTIONS(DECLARE)

static const char ptx[] =
    ".version 6.0\n.target sm_50\n.address_size 64\n"
    ".visible .global .align 4 .u32 number = 5;\n"
    ".visible .entry add(.param .u64 p, .param .u32 by, .param .u32 n)\n{\n"
    ".reg .pred %p1; .reg .b32 %r<8>; .reg .b64 %rd<4>;\n"
    "ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [by]; ld.param.u32 %r2, [n];\n"
    "mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mov.u32 %r5, %tid.x; mad.lo.s32 %r6, %r3, %r4, "
    "%r5;\n"
    "setp.ge.s32 %p1, %r6, %r2; @%p1 bra END;\n"
    "mul.wide.s32 %rd2, %r6, 4; add.s64 %rd3, %rd1, %rd2;\n"
    "ld.global.u32 %r7, [%rd3]; add.s32 %r7, %r7, %r1; st.global.u32 [%rd3], %r7;\n"
    "END: ret;\n}\n"
    ".visible .entry nothing()\n{\nret;\n}\n";
static const char bad_ptx[] = ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry "
                              "x()\n{\n  frobnicate.u32 %r1;\n ret;\n}\n";

enum { N = 1000 };
static int data[N], result[N];

static int all_are(int value)
{
    for (int i = 0; i < N; i++)
        if (result[i] != value)
            return 0;
    return 1;
}

static void before_init(void)
{
    int v = 0;
    handle h;
    dptr p;
    OK(cuDriverGetVersion(&v));
    CHECK(v >= 13050);
    IS(3, cuDeviceGetCount(&v));
    IS(3, cuMemAlloc_v2(&p, 4));
    IS(3, cuCtxGetCurrent(&h));
    IS(1, cuInit(1));
    OK(cuInit(0));
    IS(201, cuMemAlloc_v2(&p, 4)); /* no context yet */
}

static void names(void)
{
    const char *s = "";
    void *fn = NULL, *newer = NULL, *per_thread = NULL;
    int status = -1;
    OK(cuGetErrorName(2, &s));
    CHECK(!strcmp(s, "CUDA_ERROR_OUT_OF_MEMORY"));
    OK(cuGetErrorString(0, &s));
    CHECK(!strcmp(s, "no error"));
    IS(1, cuGetErrorName(54321, &s));
    CHECK(s == NULL);
    OK(cuGetProcAddress("cuMemAlloc", &fn, 12000, 0));
    CHECK(fn == (void *)cuMemAlloc_v2);
    OK(cuGetProcAddress_v2("cuCtxCreate", &fn, 11000, 0, &status));
    OK(cuGetProcAddress_v2("cuCtxCreate", &newer, 13000, 0, &status));
    CHECK(status == 0 && fn != newer && newer == (void *)cuCtxCreate_v4);
    OK(cuGetProcAddress_v2("cuStreamSynchronize", &per_thread, 12000, 2, &status));
    OK(cuGetProcAddress_v2("cuStreamSynchronize", &fn, 12000, 1, &status));
    CHECK(fn == (void *)cuStreamSynchronize && per_thread != fn);
    IS(500, cuGetProcAddress_v2("cuMemAllocAsync", &fn, 11000, 0, &status));
    CHECK(status == 2 && fn == NULL);
    IS(500, cuGetProcAddress_v2("cuNoSuchThing", &fn, 13000, 0, &status));
    CHECK(status == 1);
    const void *table;
    CHECK(cuGetExportTable(&table, "0123456789abcdef") != 0);
}

static void devices(void)
{
    int n = 0, d = -1, v = 0;
    char name[64] = "";
    size_t bytes = 0;
    OK(cuDeviceGetCount(&n));
    CHECK(n > 0);
    OK(cuDeviceGet(&d, 0));
    IS(101, cuDeviceGet(&d, n));
    OK(cuDeviceGetName(name, sizeof(name), 0));
    CHECK(name[0]);
    OK(cuDeviceTotalMem_v2(&bytes, 0));
    CHECK(bytes > 0);
    OK(cuDeviceGetAttribute(&v, 16, 0));
    CHECK(v > 0);
    IS(1, cuDeviceGetAttribute(&v, 9999, 0));
    IS(101, cuDeviceGetAttribute(&v, 16, 99));
}

static void contexts(void)
{
    handle a = NULL, b = NULL, c = NULL, s = NULL;
    dptr p = 0;
    int v = -1;
    unsigned u = 0, version = 0;
    OK(cuCtxCreate_v4(&a, NULL, 0, 0));
    OK(cuCtxGetApiVersion(a, &version));
    CHECK(version > 0);
    OK(cuCtxCreate_v4(&b, NULL, 0, 0));
    OK(cuCtxGetCurrent(&c));
    CHECK(c == b && a != b);
    OK(cuCtxGetDevice(&v));
    CHECK(v == 0);
    OK(cuMemAlloc_v2(&p, 100));
    OK(cuStreamCreate(&s, 0));
    OK(cuStreamGetCtx(s, &c));
    CHECK(c == b);
    OK(cuStreamGetGreenCtx(s, &c));
    CHECK(!c);
    IS(1, cuStreamGetGreenCtx(s, NULL));
    IS(400, cuStreamGetGreenCtx((handle)0x1234, &c));
    OK(cuCtxPopCurrent_v2(&c));
    CHECK(c == b);
    OK(cuCtxDestroy_v2(b));
    IS(1, cuMemFree_v2(p)); /* went with its context */
    IS(400, cuStreamSynchronize(s));
    IS(201, cuCtxSetCurrent(b));
    IS(201, cuCtxDestroy_v2(b));
    IS(201, cuCtxPushCurrent_v2((handle)0x1234));
    OK(cuCtxDestroy_v2(a));
    IS(201, cuCtxSynchronize());
    OK(cuDevicePrimaryCtxRetain(&a, 0));
    OK(cuCtxPushCurrent_v2(a));
    OK(cuDevicePrimaryCtxGetState(0, &u, &v));
    CHECK(v == 1);
}

static void modules(void)
{
    char log[400] = "";
    int options[] = {5, 6};
    void *values[] = {log, (void *)(uintptr_t)sizeof(log)};
    handle m = NULL, f = NULL, l = NULL, k = NULL, link = NULL;
    dptr p = 0;
    size_t n = 0, offset = 0, bytes = 0;
    unsigned count = 0;
    int v = 0;
    int r = cuModuleLoadDataEx(&m, bad_ptx, 2, options, values);
    CHECK(r == 218 || r == 222);
    CHECK(strstr(log, "6:3") && strstr(log, "frobnicate")); /* line and column */
    IS(200, cuModuleLoadData(&m, "this is no image"));
    IS(301, cuModuleLoad(&m, "/nonexistent/file.ptx"));
    OK(cuModuleLoadData(&m, ptx));
    OK(cuModuleGetFunctionCount(&count, m));
    CHECK(count == 2);
    OK(cuModuleGetFunction(&f, m, "add"));
    IS(500, cuModuleGetFunction(&f, m, "no_such"));
    OK(cuModuleGetGlobal_v2(&p, &n, m, "number"));
    OK(cuMemcpyDtoH_v2(&v, p, 4));
    CHECK(n == 4 && v == 5);
    OK(cuModuleGetFunction(&f, m, "add"));
    OK(cuFuncGetParamInfo(f, 2, &offset, &bytes));
    CHECK(offset == 12 && bytes == 4);
    IS(1, cuFuncGetParamInfo(f, 3, &offset, &bytes));
    OK(cuFuncGetParamCount(f, &bytes));
    CHECK(bytes == 3);
    IS(1, cuFuncGetParamCount(f, NULL));
    OK(cuFuncGetAttribute(&v, 0, f));
    CHECK(v > 0);
    OK(cuModuleUnload(m));
    IS(400, cuModuleUnload(m));
    IS(400, cuFuncGetAttribute(&v, 0, f));

    char *copy = strdup(ptx); /* a library keeps a copy of its own */
    OK(cuLibraryLoadData(&l, copy, NULL, NULL, 0, NULL, NULL, 0));
    free(copy);
    OK(cuLibraryGetKernel(&k, l, "nothing"));
    IS(500, cuLibraryGetKernel(&k, l, "no_such"));
    OK(cuLibraryGetKernel(&k, l, "nothing"));
    OK(cuKernelGetFunction(&f, k));
    OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    OK(cuLaunchKernel(k, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    OK(cuCtxSynchronize());
    OK(cuLibraryUnload(l));
    IS(400, cuLaunchKernel(k, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));

    void *image = NULL;
    OK(cuLinkCreate_v2(0, NULL, NULL, &link));
    OK(cuLinkAddData_v2(link, 1, (void *)ptx, sizeof(ptx), "a", 0, NULL, NULL));
    OK(cuLinkComplete(link, &image, &n));
    OK(cuModuleLoadData(&m, image));
    OK(cuLinkDestroy(link));
    OK(cuModuleUnload(m));
}

static void count_up(void *n)
{
    ++*(int *)n;
}

static void host_functions(void)
{
    handle s = NULL;
    int n = 0;
    OK(cuStreamCreate(&s, 1));
    OK(cuLaunchHostFunc_v2(s, count_up, &n, 0));
    OK(cuLaunchHostFunc_v2(s, count_up, &n, 1));
    IS(1, cuLaunchHostFunc_v2(s, count_up, &n, 2));
    IS(1, cuLaunchHostFunc_v2(s, NULL, &n, 0));
    OK(cuStreamSynchronize(s));
    CHECK(n == 2);
    OK(cuStreamDestroy_v2(s));
}

static void launches(void)
{
    handle m = NULL, f = NULL, s = NULL, e0 = NULL, e1 = NULL;
    dptr p = 0;
    unsigned by = 3, n = N;
    float ms = -1;
    int grid = 0, block = 0;
    OK(cuModuleLoadData(&m, ptx));
    OK(cuModuleGetFunction(&f, m, "add"));
    OK(cuStreamCreate(&s, 1));
    OK(cuEventCreate(&e0, 0));
    OK(cuEventCreate(&e1, 0));
    OK(cuMemAlloc_v2(&p, sizeof(data)));
    OK(cuMemcpyHtoD_v2(p, data, sizeof(data)));
    void *args[] = {&p, &by, &n};
    OK(cuEventRecord(e0, s));
    OK(cuLaunchKernel(f, 8, 1, 1, 128, 1, 1, 0, s, args, NULL));
    OK(cuEventRecord(e1, s));
    OK(cuMemcpyDtoHAsync_v2(result, p, sizeof(result), s));
    OK(cuStreamSynchronize(s));
    CHECK(all_are(3));
    OK(cuEventSynchronize(e1));
    OK(cuEventElapsedTime(&ms, e0, e1));
    CHECK(ms > 0);
    struct {
        dptr p;
        unsigned by, n;
    } packed = {p, 4, N};
    size_t bytes = sizeof(packed);
    void *extra[] = {(void *)1, &packed, (void *)2, &bytes, NULL};
    OK(cuLaunchKernel(f, 8, 1, 1, 128, 1, 1, 0, NULL, NULL, extra));
    OK(cuMemcpyDtoH_v2(result, p, sizeof(result)));
    CHECK(all_are(7));
    packed.by = 5;
    OK(cuFuncSetBlockShape(f, 125, 1, 1));
    OK(cuParamSetv(f, 0, &packed, sizeof(packed)));
    OK(cuParamSetSize(f, sizeof(packed)));
    OK(cuLaunchGrid(f, 4, 2)); /* the second row of blocks adds again: ctaid.y is not looked at */
    OK(cuMemcpyDtoH_v2(result, p, sizeof(result)));
    CHECK(result[0] == 12 || result[0] == 17);
    IS(1, cuLaunchKernel(f, 8, 1, 1, 128, 1, 1, 0, NULL, args, extra));
    IS(1, cuLaunchKernel(f, 8, 1, 1, 2048, 1, 1, 0, NULL, args, NULL));
    IS(1, cuLaunchKernel(f, 0, 1, 1, 1, 1, 1, 0, NULL, args, NULL));
    IS(1, cuLaunchKernel(f, 8, 1, 1, 32, 1, 1, 1 << 20, NULL, args, NULL));
    IS(400, cuLaunchKernel((handle)0x5678, 8, 1, 1, 32, 1, 1, 0, NULL, args, NULL));
    IS(400, cuLaunchKernel(f, 8, 1, 1, 32, 1, 1, 0, (handle)0x56789a, args, NULL));
    OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, f, NULL, 0, 0));
    CHECK(grid > 0 && block > 0 && block % 32 == 0);
    OK(cuMemFree_v2(p));
    OK(cuEventDestroy_v2(e0));
    IS(400, cuEventRecord(e0, s));
    OK(cuEventDestroy_v2(e1));
    OK(cuStreamDestroy_v2(s));
    OK(cuModuleUnload(m));
}

static void memory(void)
{
    dptr p = 0, base = 0;
    size_t bytes = 0, available = 0, total = 0;
    void *h = NULL;
    int v = 0;
    OK(cuMemGetInfo_v2(&available, &total));
    CHECK(available > 0 && available <= total);
    IS(1, cuMemAlloc_v2(&p, 0));
    IS(2, cuMemAlloc_v2(&p, (size_t)1 << 45));
    OK(cuMemAlloc_v2(&p, 4096));
    OK(cuMemGetAddressRange_v2(&base, &bytes, p + 100));
    CHECK(base == p && bytes == 4096);
    OK(cuMemsetD32_v2(p, 0x01020304, 1024));
    OK(cuMemsetD2D16_v2(p, 64, 0xffff, 2, 3)); /* two halves in each of three rows of 64 bytes */
    OK(cuMemcpyDtoH_v2(result, p, 4000));
    CHECK(result[0] == -1 && result[1] == 0x01020304 && result[16] == -1 && result[32] == -1 &&
          result[48] == 0x01020304);
    OK(cuMemsetD2D16_v2(p + 192, 2, 0x0506, 4, 1)); /* of one row the pitch is not used */
    IS(1, cuMemsetD2D16_v2(p + 192, 2, 0, 4, 2));
    OK(cuMemcpyDtoH_v2(result, p, 4000));
    CHECK(result[47] == 0x01020304 && result[48] == 0x05060506 && result[49] == 0x05060506 &&
          result[50] == 0x01020304);
    struct {
        size_t sx, sy;
        int st;
        const void *sh;
        dptr sd;
        void *sa;
        size_t sp, dx, dy;
        int dt;
        void *dh;
        dptr dd;
        void *da;
        size_t dp, width, height;
    } m = {.st = 2, .sd = p, .sp = 64, .dt = 1, .dh = data, .dp = 4, .width = 4, .height = 3};
    OK(cuMemcpy2D_v2(&m));
    CHECK(data[0] == -1 && data[1] == -1 && data[2] == -1 && data[3] == 0);
    OK(cuPointerGetAttribute(&v, 2, p));
    CHECK(v == 2);
    IS(1, cuPointerGetAttribute(&v, 2, (uintptr_t)&v));
    OK(cuMemHostAlloc(&h, 4096, 0));
    OK(cuMemcpyDtoH_v2(h, p, 4096));
    CHECK(((int *)h)[1000] == 0x01020304);
    OK(cuMemFreeHost(h));
    IS(1, cuMemFreeHost(h));
    IS(1, cuMemcpyHtoD_v2(p + 4000, data, 400)); /* past the end */
    OK(cuMemFree_v2(p));
    IS(1, cuMemFree_v2(p));
    OK(cuMemFree_v2(0));
}

/* What CUDA forbids of a map's numbers, one at a time. */
static void tensor_maps(void)
{
    struct tensor {
        int type;
        unsigned rank;
        uintptr_t address;
        uint64_t dims[5], strides[4];
        unsigned box[5], steps[5];
        int interleave, swizzle, promotion, fill;
    } good = {.type = 7,
              .rank = 2,
              .address = 0x10000,
              .dims = {100, 50},
              .strides = {400},
              .box = {16, 8},
              .steps = {1, 1},
              .swizzle = 2},
      t;
    _Alignas(64) char map[128 + 64];
#define ENCODE                                                                                     \
    cuTensorMapEncodeTiled(map, t.type, t.rank, (void *)t.address, t.dims, t.strides, t.box,       \
                           t.steps, t.interleave, t.swizzle, t.promotion, t.fill)
#define WRONG(code, what)                                                                          \
    t = good;                                                                                      \
    t.what;                                                                                        \
    IS(code, ENCODE)
    t = good;
    OK(ENCODE);
    WRONG(0, fill = 1);
    WRONG(0, dims[1] = UINT64_C(1) << 32);
    WRONG(1, rank = 0);
    WRONG(1, rank = 6);
    WRONG(1, address = 0x10008);
    WRONG(1, dims[0] = 0);
    WRONG(1, dims[1] = (UINT64_C(1) << 32) + 1);
    WRONG(1, strides[0] = 404);
    WRONG(1, strides[0] = UINT64_C(1) << 40);
    WRONG(1, box[1] = 0);
    WRONG(1, box[1] = 257);
    WRONG(1, box[0] = 3);  /* 12 bytes */
    WRONG(1, box[0] = 32); /* more than the 64 bytes of the swizzle */
    WRONG(1, steps[1] = 0);
    WRONG(1, steps[1] = 9);
    WRONG(801, interleave = 1);
    WRONG(801, swizzle = 5);
    WRONG(801, type = 14);
    t = good;
    t.type = 2;
    t.fill = 1; /* there is no NaN of integers */
    IS(1, ENCODE);
    t = good;
    IS(1, cuTensorMapEncodeTiled(map + 8, t.type, t.rank, (void *)t.address, t.dims, t.strides,
                                 t.box, t.steps, 0, 0, 0, 0));
    OK(ENCODE);
    OK(cuTensorMapReplaceAddress(map, (void *)0x20000));
    IS(1, cuTensorMapReplaceAddress(map, (void *)0x20008));
    memset(map, 0, sizeof(map));
    IS(1, cuTensorMapReplaceAddress(map, (void *)0x20000));
}

int main(void)
{
    void *lib = dlopen("libcuda.so.1", RTLD_NOW);
    if (!lib) {
        printf("%s\n", dlerror());
        return 1;
    }
#define FIND(name, params)                                                                         \
    *(void **)&name = dlsym(lib, #name);                                                           \
    CHECK(name != NULL);
    FUNCTIONS(FIND)
    if (n_failed)
        return 1;
    before_init();
    names();
    devices();
    contexts();
    modules();
    memory();
    tensor_maps();
    memset(data, 0, sizeof(data));
    host_functions();
    launches();
    handle g;
    IS(801, cuImportExternalMemory(&g, NULL));
    handle c;
    OK(cuCtxPopCurrent_v2(&c));
    OK(cuDevicePrimaryCtxRelease_v2(0));
    printf("checks=%d failed=%d\n", n_checks, n_failed);
    return n_failed ? 1 : 0;
}
