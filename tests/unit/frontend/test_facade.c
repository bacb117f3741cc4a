// SPDX-License-Identifier: Apache-2.0
/* façades: registration, handles, last errors, arguments of launches, contexts, what each call asks
 * of the session. Runtime and driver functions are declared as programs know them, by their
 * parameters. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "frontend/context/context.h"
#include "frontend/cuda_device_prop.h"
#include "frontend/cuda_types.h"
#include "frontend/interpose/entrypoints.h"
#include "frontend/errors.h"
#include "frontend/session/link_image.h"
#include "frontend/context/slab.h"
#include "tests/unit/frontend/fake_session.h"

typedef void *handle;
void **__cudaRegisterFatBinary(void *);
void __cudaRegisterFatBinaryEnd(void **);
void __cudaUnregisterFatBinary(void **);
void __cudaRegisterFunction(void **, const char *, char *, const char *, int, void *, void *,
                            void *, void *, int *);
void __cudaRegisterVar(void **, char *, char *, const char *, int, size_t, int, int);
unsigned __cudaPushCallConfiguration(struct cuda_dim3, struct cuda_dim3, size_t, handle);
int __cudaPopCallConfiguration(struct cuda_dim3 *, struct cuda_dim3 *, size_t *, void *);
int __cudaGetKernel(handle *, const void *);
int __cudaLaunchKernel(handle, struct cuda_dim3, struct cuda_dim3, void **, size_t, handle);
int cudaLaunchKernel(const void *, struct cuda_dim3, struct cuda_dim3, void **, size_t, handle);
int cudaLaunchKernel_ptsz(const void *, struct cuda_dim3, struct cuda_dim3, void **, size_t,
                          handle);
int cudaLaunchCooperativeKernel(const void *, struct cuda_dim3, struct cuda_dim3, void **, size_t,
                                handle);
int cudaLaunchKernelExC(const struct cuda_launch_config *, const void *, void **);
int cudaFuncSetAttribute(const void *, int, int);
int cudaFuncGetAttributes(struct cuda_func_attributes *, const void *);
int cudaOccupancyMaxActiveClusters(int *, const void *, const struct cuda_launch_config *);
int cudaOccupancyMaxPotentialClusterSize(int *, const void *, const struct cuda_launch_config *);
int cudaGetLastError(void);
int cudaPeekAtLastError(void);
const char *cudaGetErrorName(int);
int cudaSetDevice(int);
int cudaGetDevice(int *);
int cudaGetDeviceCount(int *);
int cudaGetDeviceProperties(struct cuda_device_prop *, int);
int cudaDeviceReset(void);
int cudaDeviceSynchronize(void);
int cudaMalloc(void **, size_t);
int cudaFree(void *);
int cudaFreeHost(void *);
int cudaMallocManaged(void **, size_t, unsigned);
int cudaHostRegister(void *, size_t, unsigned);
int cudaHostUnregister(void *);
int cudaMemcpy(void *, const void *, size_t, int);
int cudaMemcpy_ptds(void *, const void *, size_t, int);
int cudaMemcpyAsync(void *, const void *, size_t, int, handle);
int cudaMemcpy2D(void *, size_t, const void *, size_t, size_t, size_t, int);
int cudaMemcpyToSymbol(const void *, const void *, size_t, size_t, int);
int cudaMemset2DAsync(void *, size_t, int, size_t, size_t, handle);
int cudaGetSymbolAddress(void **, const void *);
int cudaStreamCreate(handle *);
int cudaStreamDestroy(handle);
int cudaStreamSynchronize(handle);
int cudaStreamQuery(handle);
int cudaEventCreate(handle *);
int cudaEventDestroy(handle);
int cudaEventQuery(handle);
int cudaImportExternalMemory(handle *, const void *);
int cudaGetDriverEntryPointByVersion(const char *, void **, unsigned, unsigned long long, int *);
int cuInit(unsigned);
int cuDeviceGetCount(int *);
int cuCtxCreate_v2(handle *, unsigned, int);
int cuCtxDestroy_v2(handle);
int cuCtxGetCurrent(handle *);
int cuCtxPopCurrent_v2(handle *);
int cuCtxSetCurrent(handle);
int cuCtxGetDevice(int *);
int cuDevicePrimaryCtxRetain(handle *, int);
int cuDevicePrimaryCtxRelease_v2(int);
int cuDevicePrimaryCtxGetState(int, unsigned *, int *);
int cuMemAlloc_v2(uint64_t *, size_t);
int cuMemFree_v2(uint64_t);
int cuModuleLoadDataEx(handle *, const void *, unsigned, int *, void **);
int cuModuleGetFunction(handle *, handle, const char *);
int cuModuleUnload(handle);
int cuLaunchKernel(handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   handle, void **, void **);

enum { H2D = 1, D2H = 2, D2D = 3 };
static const struct cuda_dim3 one = {1, 1, 1};
static struct {
    uint32_t magic, version;
    const void *data;
    const void *const *parts;
} wrapper = {0x466243b1, 1, "image", NULL};
static char host_k, host_empty, host_v,
    host_unknown; /* addresses that stand for kernels and a variable */

struct fixture {
    void **fatbin;
};

static int setup(void **state)
{
    static struct fixture f;
    fake_reset();
    assert_int_equal(cudaSetDevice(0), 0);
    f.fatbin = __cudaRegisterFatBinary(&wrapper);
    __cudaRegisterFunction(f.fatbin, &host_k, "k", "k", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterFunction(f.fatbin, &host_empty, "empty", "empty", -1, NULL, NULL, NULL, NULL,
                           NULL);
    __cudaRegisterVar(f.fatbin, &host_v, "v", "v", 0, 64, 0, 0);
    __cudaRegisterFatBinaryEnd(f.fatbin);
    cudaGetLastError();
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    if (f->fatbin)
        __cudaUnregisterFatBinary(f->fatbin);
    fake_reset();
    for (int d = FAKE_DEVICES - 1; d >= 0; d--) {
        cudaSetDevice(d);
        cudaDeviceReset();
    }
    cuCtxSetCurrent(NULL);
    ws_thread.depth = 0;
    cudaGetLastError();
    return 0;
}

/* ---- registration ---- */

static void test_nothing_is_loaded_before_it_is_used(void **state)
{
    void *p;
    assert_int_equal(cudaMalloc(&p, 100), 0);
    assert_int_equal(fake.n_loads, 0);
    assert_int_equal(cudaLaunchKernel(&host_empty, one, one, NULL, 0, NULL), 0);
    assert_int_equal(fake.n_loads, 1);
    assert_ptr_equal(fake.loaded_image, wrapper.data); /* not the wrapper */
    assert_string_equal(fake.launched, "empty");
    assert_int_equal(cudaMemcpyToSymbol(&host_v, &p, 8, 0, H2D), 0);
    assert_int_equal(fake.n_loads, 1);
    assert_int_equal(cudaSetDevice(1), 0);
    assert_int_equal(cudaLaunchKernel(&host_empty, one, one, NULL, 0, NULL), 0);
    assert_int_equal(fake.n_loads, 2);
    assert_int_equal(fake.loaded_device, 1);
}

static void test_launch_by_handle_and_by_host_address(void **state)
{
    handle h = NULL;
    assert_int_equal(__cudaGetKernel(&h, &host_k), 0);
    assert_ptr_not_equal(h, &host_k);
    char c = 'x';
    double d = 2.5;
    int i = 77;
    void *args[] = {&c, &d, &i};
    assert_int_equal(__cudaLaunchKernel(h, (struct cuda_dim3){2, 3, 4}, (struct cuda_dim3){5, 6, 7},
                                        args, 100, NULL),
                     0);
    assert_string_equal(fake.launched, "k");
    assert_memory_equal(fake.params, &c, 1);
    assert_memory_equal(fake.params + 8, &d, 8);
    assert_memory_equal(fake.params + 16, &i, 4);
    assert_int_equal(fake.launch.grid[0] * 100 + fake.launch.grid[1] * 10 + fake.launch.grid[2],
                     234);
    assert_int_equal(fake.launch.block[0] * 100 + fake.launch.block[1] * 10 + fake.launch.block[2],
                     567);
    assert_int_equal(fake.launch.shared_bytes, 100);
    assert_int_equal(fake.launch.stream, ws_stream_legacy(0));
    assert_int_equal(cudaLaunchKernel_ptsz(&host_k, one, one, args, 0, NULL), 0);
    assert_int_equal(fake.launch.stream, ws_stream_per_thread(0));
    assert_int_equal(__cudaGetKernel(&h, &host_unknown), CUDA_INVALID_DEVICE_FUNCTION);
    assert_ptr_equal(h, &host_unknown);
    assert_int_equal(__cudaLaunchKernel(h, one, one, args, 0, NULL), CUDA_INVALID_DEVICE_FUNCTION);
}

static void test_unregistered_code_is_gone(void **state)
{
    struct fixture *f = *state;
    handle k;
    void *p;
    assert_int_equal(__cudaGetKernel(&k, &host_empty), 0);
    assert_int_equal(cudaLaunchKernel(k, one, one, NULL, 0, NULL), 0);
    __cudaUnregisterFatBinary(f->fatbin);
    assert_int_equal(fake.n_unloads, 1);
    assert_int_equal(cudaLaunchKernel(k, one, one, NULL, 0, NULL), CUDA_INVALID_DEVICE_FUNCTION);
    assert_int_equal(cudaLaunchKernel(&host_empty, one, one, NULL, 0, NULL),
                     CUDA_INVALID_DEVICE_FUNCTION);
    assert_int_equal(cudaGetSymbolAddress(&p, &host_v), CUDA_INVALID_SYMBOL);
    __cudaUnregisterFatBinary(f->fatbin); /* twice is harmless */
    __cudaUnregisterFatBinary(NULL);
    f->fatbin = NULL;
}

/* A library loaded where another was: the later registration counts, and the first's end doesn't
 * take it away. */
static void test_same_host_address_twice(void **state)
{
    struct fixture *f = *state;
    void **second = __cudaRegisterFatBinary(&wrapper);
    __cudaRegisterFunction(second, &host_k, "empty", "empty", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterFatBinaryEnd(second);
    assert_int_equal(cudaLaunchKernel(&host_k, one, one, NULL, 0, NULL), 0);
    assert_string_equal(fake.launched, "empty");
    __cudaUnregisterFatBinary(f->fatbin);
    f->fatbin = NULL;
    assert_int_equal(cudaLaunchKernel(&host_k, one, one, NULL, 0, NULL), 0);
    __cudaUnregisterFatBinary(second);
    assert_int_equal(cudaLaunchKernel(&host_k, one, one, NULL, 0, NULL),
                     CUDA_INVALID_DEVICE_FUNCTION);
}

static void test_a_bad_image_fails_each_launch_but_is_tried_once(void **state)
{
    fake.load_result = WS__ERROR__NO_BINARY_FOR_GPU;
    assert_int_equal(cudaLaunchKernel(&host_empty, one, one, NULL, 0, NULL),
                     CUDA_NO_BINARY_FOR_GPU);
    assert_int_equal(cudaLaunchKernel(&host_k, one, one, NULL, 0, NULL), CUDA_NO_BINARY_FOR_GPU);
    assert_int_equal(fake.n_loads, 1);
}

static void test_relocatable_code_of_several_files_is_sent_as_one_image(void **state)
{
    static const void *const parts[] = {"first", "second", NULL};
    struct ws_link_input part;
    static struct {
        uint32_t magic, version;
        const void *data;
        const void *const *parts;
    } linked = {0x466243b1, 2, "sass", parts};
    void **h = __cudaRegisterFatBinary(&linked);
    __cudaRegisterFunction(h, &host_unknown, "k", "k", -1, NULL, NULL, NULL, NULL, NULL);
    assert_int_equal(cudaLaunchKernel(&host_unknown, one, one, NULL, 0, NULL), 0);
    assert_int_equal(fake.n_loads, 1);
    for (size_t i = 0; i < 2; i++) {
        assert_true(ws_link_image_part(fake.loaded, fake.loaded_bytes, i, &part));
        assert_int_equal(part.bytes, strlen(parts[i]) + 1);
        assert_string_equal(part.data, parts[i]);
    }
    assert_false(ws_link_image_part(fake.loaded, fake.loaded_bytes, 2, &part));
    __cudaUnregisterFatBinary(h);
}

/* ---- call configuration ---- */

static void test_configurations_nest(void **state)
{
    struct cuda_dim3 g, b;
    size_t shared;
    handle s;
    assert_int_equal(__cudaPushCallConfiguration((struct cuda_dim3){1, 2, 3},
                                                 (struct cuda_dim3){4, 5, 6}, 7, (handle)8),
                     0);
    assert_int_equal(__cudaPushCallConfiguration(one, one, 70, (handle)80), 0);
    assert_int_equal(__cudaPopCallConfiguration(&g, &b, &shared, &s), 0);
    assert_int_equal(shared, 70);
    assert_int_equal(__cudaPopCallConfiguration(&g, &b, &shared, &s), 0);
    assert_int_equal(g.x * 100 + g.y * 10 + g.z, 123);
    assert_int_equal(b.x * 100 + b.y * 10 + b.z, 456);
    assert_int_equal(shared, 7);
    assert_ptr_equal(s, (handle)8);
    assert_int_equal(__cudaPopCallConfiguration(&g, &b, &shared, &s), CUDA_MISSING_CONFIGURATION);
    for (int i = 0; i < 16; i++)
        assert_int_equal(__cudaPushCallConfiguration(one, one, 0, NULL), 0);
    assert_int_not_equal(__cudaPushCallConfiguration(one, one, 0, NULL), 0);
    for (int i = 0; i < 16; i++)
        __cudaPopCallConfiguration(&g, &b, &shared, &s);
}

/* ---- last error ---- */

static void *other_thread(void *unused)
{
    return (void *)(intptr_t)cudaGetLastError();
}

static void test_last_error_is_the_threads_and_is_cleared_by_get(void **state)
{
    pthread_t t;
    void *seen = (void *)1;
    assert_int_equal(cudaSetDevice(99), CUDA_INVALID_DEVICE);
    assert_int_equal(cudaDeviceSynchronize(), 0); /* a call that works doesn't clear it */
    assert_int_equal(cudaPeekAtLastError(), CUDA_INVALID_DEVICE);
    pthread_create(&t, NULL, other_thread, NULL);
    pthread_join(t, &seen);
    assert_null(seen);
    assert_int_equal(cudaGetLastError(), CUDA_INVALID_DEVICE);
    assert_int_equal(cudaGetLastError(), 0);
}

static void test_a_lost_context_stays_lost_until_reset(void **state)
{
    void *p;
    fake.lost = WS__ERROR__ILLEGAL_ADDRESS;
    assert_int_equal(cudaGetLastError(), CUDA_ILLEGAL_ADDRESS); /* seen without another call */
    assert_int_equal(cudaGetLastError(), CUDA_ILLEGAL_ADDRESS);
    assert_int_equal(cudaMalloc(&p, 4), CUDA_ILLEGAL_ADDRESS);
    assert_int_equal(cudaDeviceReset(), 0);
    assert_int_equal(cudaGetLastError(), 0);
    assert_int_equal(cudaMalloc(&p, 4), 0);
}

static void test_every_session_error_has_a_code(void **state)
{
    const ProtobufCEnumDescriptor *e = &ws__error__descriptor;
    for (unsigned i = 0; i < e->n_values; i++) {
        int v = e->values[i].value;
        int rt = ws_rt_error(v), drv = ws_drv_error(v);
        assert_true((v == 0) == (rt == 0) && (v == 0) == (drv == 0));
        assert_non_null(ws_rt_error_name(rt));
        assert_non_null(ws_drv_error_name(drv));
        if (v >= WS__ERROR__ILLEGAL_ADDRESS && v <= WS__ERROR__LAUNCH_FAILURE)
            assert_true(ws_cuda_sticky(rt));
    }
    assert_string_equal(cudaGetErrorName(CUDA_NOT_READY), "cudaErrorNotReady");
    assert_null(ws_drv_error_name(CUDA_INVALID_SYMBOL)); /* the driver doesn't know it */
}

/* ---- launches ---- */

static void test_dynamic_shared_memory_needs_leave(void **state)
{
    assert_int_equal(cudaLaunchKernel(&host_empty, one, one, NULL, 49152, NULL), 0);
    assert_int_equal(cudaLaunchKernel(&host_empty, one, one, NULL, 49153, NULL),
                     CUDA_INVALID_VALUE);
    assert_int_equal(cudaFuncSetAttribute(&host_empty, 8, 101377), CUDA_INVALID_VALUE);
    assert_int_equal(cudaFuncSetAttribute(&host_empty, 8, 101376), 0);
    assert_int_equal(cudaLaunchKernel(&host_empty, one, one, NULL, 101376, NULL), 0);
    assert_int_equal(cudaLaunchKernel(&host_k, one, one, NULL, 49152 - 1023, NULL),
                     CUDA_INVALID_VALUE); /* 1024 are static */
}

static void test_cooperative_launch_is_checked_at_once(void **state)
{
    fake.occupancy = 4; /* on 10 SMs */
    assert_int_equal(
        cudaLaunchCooperativeKernel(&host_empty, (struct cuda_dim3){40, 1, 1}, one, NULL, 0, NULL),
        0);
    assert_int_equal(fake.launch.flags, 1);
    assert_int_equal(
        cudaLaunchCooperativeKernel(&host_empty, (struct cuda_dim3){41, 1, 1}, one, NULL, 0, NULL),
        CUDA_COOPERATIVE_TOO_LARGE);
    assert_int_equal(
        cudaLaunchKernel(&host_empty, (struct cuda_dim3){41, 1, 1}, one, NULL, 0, NULL), 0);
    assert_int_equal(fake.launch.flags, 0);
}

static void test_launch_attributes(void **state)
{
    struct cuda_launch_attribute a[2] = {{.id = WS_CUDA_ATTR_PRIORITY, .val.priority = -3},
                                         {.id = WS_CUDA_ATTR_COOPERATIVE, .val.cooperative = 1}};
    struct cuda_launch_config c = {.gridDim = one, .blockDim = one, .attrs = a, .numAttrs = 2};
    assert_int_equal(cudaLaunchKernelExC(&c, &host_empty, NULL), 0);
    assert_int_equal(fake.launch.flags, 1);
    a[1] = (struct cuda_launch_attribute){.id = WS_CUDA_ATTR_CLUSTER_DIMENSION,
                                          .val.cluster = {2, 1, 1}};
    assert_int_equal(cudaLaunchKernelExC(&c, &host_empty, NULL), 0);
    assert_memory_equal(fake.launch.cluster, ((uint32_t[]){2, 1, 1}), sizeof(fake.launch.cluster));
    assert_false(fake.launch.non_portable);
    assert_int_equal(cudaLaunchKernel(&host_empty, one, one, NULL, 0, NULL), 0);
    assert_int_equal(fake.launch.cluster[0], 0);
    a[1].id = 999;
    assert_int_equal(cudaLaunchKernelExC(&c, &host_empty, NULL), CUDA_INVALID_VALUE);
    assert_int_equal(cudaLaunchKernelExC(NULL, &host_empty, NULL), CUDA_INVALID_VALUE);
}

/* On a GPU of compute capability 8, which has no clusters; the daemon asks that. */
static void test_clusters_of_a_function(void **state)
{
    enum { WIDTH = WS_FUNC_REQUIRED_CLUSTER_WIDTH, NON_PORTABLE = 14, SCHEDULING = 15 };
    struct cuda_launch_config c = {.gridDim = one, .blockDim = one};
    struct cuda_func_attributes a;
    int n = -1;
    fake.occupancy = 4; /* on 10 SMs */
    assert_int_equal(cudaFuncSetAttribute(&host_empty, WIDTH, -1), CUDA_INVALID_VALUE);
    for (int i = 0; i < 3; i++)
        assert_int_equal(cudaFuncSetAttribute(&host_empty, WIDTH + i, 4 - i), 0);
    assert_int_equal(cudaFuncSetAttribute(&host_empty, NON_PORTABLE, 1), 0);
    assert_int_equal(cudaFuncSetAttribute(&host_empty, SCHEDULING, 3), CUDA_INVALID_VALUE);
    assert_int_equal(cudaFuncSetAttribute(&host_empty, SCHEDULING, 2), 0);
    assert_int_equal(cudaLaunchKernel(&host_empty, one, one, NULL, 0, NULL), 0);
    assert_memory_equal(fake.launch.cluster, ((uint32_t[]){4, 3, 2}), sizeof(fake.launch.cluster));
    assert_true(fake.launch.non_portable);
    assert_int_equal(cudaFuncGetAttributes(&a, &host_empty), 0);
    assert_int_equal(
        a.requiredClusterWidth * 100 + a.requiredClusterHeight * 10 + a.requiredClusterDepth, 432);
    assert_int_equal(a.nonPortableClusterSizeAllowed, 1);
    assert_int_equal(a.clusterSchedulingPolicyPreference, 2);
    assert_int_equal(a.clusterDimMustBeSet, 0);
    assert_int_equal(cudaOccupancyMaxActiveClusters(&n, &host_empty, &c),
                     CUDA_INVALID_CLUSTER_SIZE);
    assert_int_equal(cudaOccupancyMaxPotentialClusterSize(&n, &host_empty, &c), 0);
    assert_int_equal(n, 1);
    for (int i = 0; i < 3; i++)
        assert_int_equal(cudaFuncSetAttribute(&host_empty, WIDTH + i, 0), 0);
    assert_int_equal(cudaFuncSetAttribute(&host_empty, NON_PORTABLE, 0), 0);
    assert_int_equal(cudaOccupancyMaxActiveClusters(&n, &host_empty, &c), 0);
    assert_int_equal(n, 40);
}

/* ---- handles ---- */

static void test_handles_of_the_dead_and_of_none(void **state)
{
    handle s = NULL, e = NULL;
    assert_int_equal(cudaStreamCreate(&s), 0);
    assert_int_equal(cudaStreamSynchronize(s), 0);
    assert_int_equal(cudaStreamDestroy(s), 0);
    assert_int_equal(cudaStreamSynchronize(s), CUDA_INVALID_HANDLE);
    assert_int_equal(cudaStreamDestroy(s), CUDA_INVALID_HANDLE);
    for (uintptr_t h = 0; h <= 2; h++) { /* names of default streams */
        assert_int_equal(cudaStreamSynchronize((handle)h), 0);
        assert_int_equal(cudaStreamDestroy((handle)h), CUDA_INVALID_HANDLE);
    }
    for (uintptr_t h = 3; h < WS_STREAM_FIRST; h++)
        assert_int_equal(cudaStreamQuery((handle)h), CUDA_INVALID_HANDLE);
    assert_int_equal(cudaStreamQuery(&s), CUDA_INVALID_HANDLE);
    assert_int_equal(cudaEventCreate(&e), 0);
    assert_int_equal(cudaEventDestroy(e), 0);
    assert_int_equal(cudaEventQuery(e), CUDA_INVALID_HANDLE);
    assert_int_equal(cudaEventQuery(NULL), CUDA_INVALID_HANDLE);
    assert_int_equal(cudaLaunchKernel(&host_empty, one, one, NULL, 0, s), CUDA_INVALID_HANDLE);
}

struct thing {
    struct ws_slot slot;
    int x[5];
};

static void test_slab_knows_its_own(void **state)
{
    static struct ws_slab slab = WS_SLAB(struct thing);
    struct thing *v[1000];
    for (int i = 0; i < 1000; i++) {
        v[i] = ws_slab_new(&slab);
        assert_non_null(v[i]);
        assert_int_equal(v[i]->x[4], 0);
        v[i]->x[0] = v[i]->x[4] = 1;
    }
    for (int i = 0; i < 1000; i++) {
        assert_true(ws_slab_has(&slab, v[i]));
        assert_false(ws_slab_has(&slab, (char *)v[i] + 1));
        assert_false(ws_slab_has(&slab, &v[i]->x[0]));
    }
    assert_false(ws_slab_has(&slab, NULL));
    assert_false(ws_slab_has(&slab, (void *)UINTPTR_MAX));
    ws_slab_free(&slab, v[7]);
    assert_false(ws_slab_has(&slab, v[7]));
    struct thing *again = ws_slab_new(&slab);
    assert_true(ws_slab_has(&slab, again));
    assert_int_equal(again->x[4], 0);
}

/* ---- devices and memory ---- */

static void test_current_device_is_the_threads(void **state)
{
    int d = -1;
    struct cuda_device_prop p;
    assert_int_equal(cudaSetDevice(1), 0);
    assert_int_equal(cudaGetDevice(&d), 0);
    assert_int_equal(d, 1);
    assert_int_equal(cudaSetDevice(FAKE_DEVICES), CUDA_INVALID_DEVICE);
    assert_int_equal(cudaGetDevice(&d), 0);
    assert_int_equal(d, 1);
    assert_int_equal(cudaGetDeviceProperties(&p, 1), 0);
    assert_string_equal(p.name, "Second GPU");
    assert_int_equal(p.major * 10 + p.minor, 85);
    assert_int_equal(p.sharedMemPerBlockOptin, 101376);
    assert_int_equal(cudaGetDeviceProperties(NULL, 1), CUDA_INVALID_VALUE);
}

static void test_copies_say_direction_and_stream(void **state)
{
    static const struct {
        const char *description;
        int kind;
        enum ws_copy_dir dir;
    } rows[] = {
        {"host to host", 0, WS_COPY_H2H},   {"host to device", 1, WS_COPY_H2D},
        {"device to host", 2, WS_COPY_D2H}, {"device to device", 3, WS_COPY_D2D},
        {"default", 4, WS_COPY_AUTO},
    };
    char a[8], b[8];
    for (size_t i = 0; i < WS_ARRAY_SIZE(rows); i++) {
        assert_int_equal(cudaMemcpy(a, b, 8, rows[i].kind), 0);
        assert_int_equal(fake.copy.dir, rows[i].dir);
        assert_false(fake.copy.async);
        assert_int_equal(fake.copy.stream, ws_stream_legacy(0));
    }
    assert_int_equal(cudaMemcpy_ptds(a, b, 8, 1), 0);
    assert_int_equal(fake.copy.stream, ws_stream_per_thread(0));
    assert_int_equal(cudaMemcpyAsync(a, b, 8, 1, (handle)2), 0);
    assert_true(fake.copy.async);
    assert_int_equal(fake.copy.stream, ws_stream_per_thread(0));
    int n = fake.n_copies;
    assert_int_equal(cudaMemcpy(a, b, 8, 5), CUDA_INVALID_DIRECTION);
    assert_int_equal(cudaMemcpy(a, b, 8, -1), CUDA_INVALID_DIRECTION);
    assert_int_equal(fake.n_copies, n);
}

static void test_pitched_copies_take_the_fewest_pieces(void **state)
{
    char host[400];
    void *d;
    assert_int_equal(cudaMalloc(&d, 4096), 0);
    assert_int_equal(cudaMemcpy2D(d, 100, host, 100, 100, 4, H2D), 0); /* contiguous */
    assert_int_equal(fake.n_copies, 1);
    assert_int_equal(fake.copy.bytes, 400);
    assert_int_equal(cudaMemcpy2D(d, 128, host, 100, 100, 4, H2D), 0);
    assert_int_equal(fake.n_copies, 2);
    assert_ptr_equal(fake.copy.dst, d);
    assert_ptr_equal(fake.copy.src, host);
    assert_int_equal(fake.box.dst.pitch_bytes * 1000 + fake.box.src.pitch_bytes, 128100);
    assert_int_equal(fake.box.box.width_bytes * 10 + fake.box.box.height, 1004);
    assert_int_equal(cudaMemcpy2D(host, 100, d, 128, 100, 4, D2H), 0);
    assert_int_equal(fake.n_copies, 3);
    assert_int_equal(fake.box.dst.pitch_bytes * 1000 + fake.box.src.pitch_bytes, 100128);
    assert_int_equal(cudaMemcpy2D(d, 99, host, 100, 100, 4, H2D), CUDA_INVALID_PITCH);
    assert_int_equal(cudaMemcpy2D(d, SIZE_MAX / 2, host, 100, 100, 4, H2D),
                     CUDA_INVALID_VALUE); /* would wrap */
    assert_int_equal(cudaMemset2DAsync(d, 64, 0x1ff, 10, 5, NULL), 0);
    assert_int_equal(fake.fill.value, 0xff);
    assert_int_equal(fake.fill.pitch * 1000 + fake.fill.width * 10 + fake.fill.height, 64105);
}

static void test_free_knows_what_is_whose(void **state)
{
    void *m, *d;
    char mine[64];
    assert_int_equal(cudaMallocManaged(&m, 100, 1), 0);
    assert_int_equal(cudaFreeHost(m), CUDA_INVALID_VALUE);
    assert_int_equal(cudaFree(m), 0);
    assert_int_equal(cudaFree(m), CUDA_INVALID_VALUE);
    assert_int_equal(cudaMallocManaged(&m, 100, 7), CUDA_INVALID_VALUE);
    assert_int_equal(cudaMalloc(&d, 100), 0);
    assert_int_equal(cudaFreeHost(d), CUDA_INVALID_VALUE);
    assert_int_equal(cudaHostRegister(mine, sizeof(mine), 0), 0);
    assert_int_equal(cudaHostRegister(mine + 63, 100, 0), CUDA_ALREADY_REGISTERED);
    assert_int_equal(cudaHostUnregister(mine + 1), CUDA_NOT_REGISTERED);
    assert_int_equal(cudaHostUnregister(mine), 0);
    assert_int_equal(cudaHostRegister(mine + 32, 16, 0), 0);
    assert_int_equal(cudaHostRegister(mine, 33, 0), CUDA_ALREADY_REGISTERED);
    assert_int_equal(cudaHostRegister(mine, 32, 0), 0);
    assert_int_equal(cudaHostUnregister(mine), 0);
    assert_int_equal(cudaHostUnregister(mine + 32), 0);
    assert_int_equal(cudaHostRegister(mine, sizeof(mine), 2), CUDA_NOT_SUPPORTED);
}

static void test_symbol_bounds(void **state)
{
    char b[100] = {0};
    void *p = NULL;
    assert_int_equal(cudaGetSymbolAddress(&p, &host_v), 0);
    assert_int_equal(cudaMemcpyToSymbol(&host_v, b, 4, 60, H2D), 0);
    assert_ptr_equal(fake.copy.dst, (char *)p + 60);
    assert_int_equal(cudaMemcpyToSymbol(&host_v, b, 5, 60, H2D), CUDA_INVALID_VALUE);
    assert_int_equal(cudaMemcpyToSymbol(&host_v, b, 1, SIZE_MAX, H2D), CUDA_INVALID_VALUE);
    assert_int_equal(cudaMemcpyToSymbol(&host_v, b, 4, 0, D2H), CUDA_INVALID_DIRECTION);
    assert_int_equal(cudaMemcpyToSymbol(&host_k, b, 4, 0, H2D), CUDA_INVALID_SYMBOL); /* a kernel */
}

static void test_reset_loads_code_anew(void **state)
{
    handle s;
    assert_int_equal(cudaLaunchKernel(&host_empty, one, one, NULL, 0, NULL), 0);
    assert_int_equal(cudaStreamCreate(&s), 0);
    assert_int_equal(cudaDeviceReset(), 0);
    assert_int_equal(fake.n_resets, 1);
    assert_int_equal(cudaLaunchKernel(&host_empty, one, one, NULL, 0, NULL), 0);
    assert_int_equal(fake.n_loads, 2);
    assert_int_equal(cudaStreamQuery(s), CUDA_INVALID_HANDLE);
}

/* ---- driver and runtime together ---- */

/* This test comes before those that call cuInit(). */
static void test_the_runtime_initialises_the_driver(void **state)
{
    int n = 0, d = -1;
    uint64_t v;
    assert_int_equal(cuDeviceGetCount(&n), 0);
    assert_int_equal(n, FAKE_DEVICES);
    assert_int_equal(cudaFree(NULL), 0); /* makes the primary context current */
    assert_int_equal(cuCtxGetDevice(&d), 0);
    assert_int_equal(d, 0);
    assert_int_equal(cuMemAlloc_v2(&v, 100), 0);
    assert_int_equal(cuMemFree_v2(v), 0);
}

static void test_runtime_works_in_the_drivers_context(void **state)
{
    handle a, c;
    void *p;
    int d = -1;
    uint64_t v;
    struct ws_mem_info m;
    assert_int_equal(cuInit(0), 0);
    assert_int_equal(cuCtxCreate_v2(&a, 0, 1), 0);
    assert_int_equal(cudaGetDevice(&d), 0);
    assert_int_equal(d, 1);
    assert_int_equal(cudaMalloc(&p, 100), 0);
    ws_session_mem_find((uintptr_t)p, &m);
    assert_int_equal(m.device, 1);
    assert_int_equal(cuMemAlloc_v2(&v, 100), 0);
    assert_int_equal(cuCtxDestroy_v2(a), 0); /* takes both with it */
    assert_int_equal(cudaSetDevice(0), 0);
    assert_int_equal(cudaFree(p), CUDA_INVALID_VALUE);
    assert_int_equal(cuMemFree_v2(v), CUDA_INVALID_VALUE);
    assert_int_equal(cuCtxGetCurrent(&c), 0);
    assert_int_equal(cuDevicePrimaryCtxRetain(&a, 0), 0);
    assert_ptr_equal(a, c); /* the runtime's context is the primary one */
    assert_int_equal(cuDevicePrimaryCtxRelease_v2(0), 0);
    assert_int_equal(cudaDeviceSynchronize(), 0); /* the runtime still holds it */
    assert_int_equal(fake.n_resets, 0);
}

static void test_last_release_of_a_primary_context_ends_it(void **state)
{
    handle a;
    int active = 1;
    uint64_t v;
    ws_thread.depth = 0;
    assert_int_equal(cudaDeviceReset(), 0); /* the runtime gives its own up */
    assert_int_equal(cuInit(0), 0);
    assert_int_equal(cuDevicePrimaryCtxRetain(&a, 1), 0);
    assert_int_equal(cuCtxSetCurrent(a), 0);
    assert_int_equal(cuMemAlloc_v2(&v, 100), 0);
    int n = fake.n_resets;
    assert_int_equal(cuDevicePrimaryCtxRelease_v2(1), 0);
    assert_int_equal(fake.n_resets, n + 1);
    assert_int_equal(cuDevicePrimaryCtxGetState(1, NULL, &active), 0);
    assert_int_equal(active, 0);
    assert_int_equal(cuMemAlloc_v2(&v, 100), CUDA_CONTEXT_IS_DESTROYED);
    assert_int_equal(cuDevicePrimaryCtxRelease_v2(1), CUDA_INVALID_CONTEXT);
    cuCtxPopCurrent_v2(NULL);
    assert_int_equal(cuCtxGetDevice(&active), CUDA_INVALID_CONTEXT);
}

static void test_jit_log_is_cut_to_its_buffer(void **state)
{
    char log[12];
    int options[] = {5, 6};
    void *values[] = {log, (void *)sizeof(log)};
    handle m = NULL, f, c;
    fake.load_result = WS__ERROR__INVALID_PTX;
    fake.load_log = "x.ptx:3:7: unknown instruction 'foo'";
    assert_int_equal(cuInit(0), 0);
    assert_int_equal(cuCtxCreate_v2(&c, 0, 0), 0);
    assert_int_equal(cuModuleLoadDataEx(&m, "text", 2, options, values), CUDA_INVALID_PTX);
    assert_string_equal(log, "x.ptx:3:7: ");
    assert_int_equal((uintptr_t)values[1], 11);
    assert_int_equal(cuModuleLoadDataEx(&m, "text", 2, NULL, values), CUDA_INVALID_VALUE);
    fake.load_result = WS__ERROR__OK;
    values[1] = (void *)sizeof(log);
    assert_int_equal(cuModuleLoadDataEx(&m, "text", 2, options, values), 0);
    assert_string_equal(log, "");
    assert_int_equal(cuModuleGetFunction(&f, m, "k"), 0);
    struct {
        char c;
        double d;
        int i;
    } packed = {'a', 1.5, 6};
    size_t bytes = 20;
    void *extra[] = {(void *)1, &packed, (void *)2, &bytes, NULL}, *repeated[13] = {NULL};
    assert_int_equal(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra), 0);
    assert_int_equal(fake.launch.packed_bytes, 20);
    assert_memory_equal(fake.params + 8, &packed.d, 8);
    for (int i = 0; i < 12; i++)
        repeated[i] = extra[i % 4];
    assert_int_equal(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, repeated),
                     CUDA_INVALID_VALUE);
    assert_int_equal(cuModuleUnload(m), 0);
    assert_int_equal(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra),
                     CUDA_INVALID_HANDLE);
    assert_int_equal(cuCtxDestroy_v2(c), 0);
}

static void test_a_context_takes_its_modules_along(void **state)
{
    handle c, m;
    assert_int_equal(cuInit(0), 0);
    assert_int_equal(cuCtxCreate_v2(&c, 0, 0), 0);
    assert_int_equal(cuModuleLoadDataEx(&m, "text", 0, NULL, NULL), 0);
    assert_int_equal(cuCtxDestroy_v2(c), 0);
    assert_int_equal(fake.n_unloads, 1);
    assert_int_equal(cuModuleUnload(m), CUDA_INVALID_HANDLE);
}

static void test_unsupported_says_its_name_and_touches_nothing(void **state)
{
    handle g = (handle)5;
    assert_int_equal(cudaImportExternalMemory(&g, NULL), CUDA_NOT_SUPPORTED);
    assert_string_equal(fake.unsupported, "cudaImportExternalMemory");
    assert_ptr_equal(g, (handle)5);
    assert_int_equal(cudaGetLastError(), CUDA_NOT_SUPPORTED);
}

/* ---- a child of a process that has used CUDA ---- */

static void test_forked_child_is_not_initialised(void **state)
{
    int status, n;
    pid_t pid = fork();
    if (pid == 0) {
        fake.lost = WS__ERROR__DISCONNECTED; /* as the session answers there */
        bool ok = cudaGetDeviceCount(&n) == CUDA_NOT_INITIALIZED &&
                  cudaGetLastError() == CUDA_NOT_INITIALIZED;
        _exit(ok ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    fake.lost = WS__ERROR__DISCONNECTED; /* here it means that the daemon has gone */
    assert_int_equal(cudaDeviceSynchronize(), CUDA_DEVICE_UNAVAILABLE);
}

int main(int argc, char **argv)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_the_runtime_initialises_the_driver),
        TEST(test_nothing_is_loaded_before_it_is_used),
        TEST(test_launch_by_handle_and_by_host_address),
        TEST(test_unregistered_code_is_gone),
        TEST(test_same_host_address_twice),
        TEST(test_a_bad_image_fails_each_launch_but_is_tried_once),
        TEST(test_relocatable_code_of_several_files_is_sent_as_one_image),
        TEST(test_configurations_nest),
        TEST(test_last_error_is_the_threads_and_is_cleared_by_get),
        TEST(test_a_lost_context_stays_lost_until_reset),
        TEST(test_every_session_error_has_a_code),
        TEST(test_dynamic_shared_memory_needs_leave),
        TEST(test_cooperative_launch_is_checked_at_once),
        TEST(test_clusters_of_a_function),
        TEST(test_launch_attributes),
        TEST(test_handles_of_the_dead_and_of_none),
        TEST(test_slab_knows_its_own),
        TEST(test_current_device_is_the_threads),
        TEST(test_copies_say_direction_and_stream),
        TEST(test_pitched_copies_take_the_fewest_pieces),
        TEST(test_free_knows_what_is_whose),
        TEST(test_symbol_bounds),
        TEST(test_reset_loads_code_anew),
        TEST(test_runtime_works_in_the_drivers_context),
        TEST(test_last_release_of_a_primary_context_ends_it),
        TEST(test_jit_log_is_cut_to_its_buffer),
        TEST(test_a_context_takes_its_modules_along),
        TEST(test_unsupported_says_its_name_and_touches_nothing),
        TEST(test_forked_child_is_not_initialised),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
