// SPDX-License-Identifier: Apache-2.0
/* pocl beside bench_interp: see peer.h. Types, numbers and prototypes are those of the
 * OpenCL 1.2 specification. */
#include "bench/opencl/peer.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__asm__(".section .rodata\n.globl bench_cl\nbench_cl:\n.incbin \"" WS_SRCDIR
        "/bench/opencl/kernels.cl\"\n.byte 0\n.previous\n");
extern const char bench_cl[];

typedef struct cl_object *object; /* platform, device, context, queue, program, kernel, buffer */
enum { CL_DEVICE_TYPE_CPU = 2, CL_MEM_USE_HOST_PTR = 1 << 3, MAX_BUFFERS = 16 };
enum { CL_PLATFORM_NAME = 0x0902, CL_PROGRAM_BUILD_LOG = 0x1183 };

#define FUNCTIONS(X)                                                                               \
    X(int, GetPlatformIDs, (unsigned n, object *ret, unsigned *ret_n))                             \
    X(int, GetPlatformInfo, (object p, unsigned what, size_t n, void *ret, size_t *ret_n))         \
    X(int, GetDeviceIDs, (object p, uint64_t type, unsigned n, object *ret, unsigned *ret_n))      \
    X(object, CreateContext,                                                                       \
      (const void *how, unsigned n, const object *devices, void *told, void *arg, int *ret))       \
    X(object, CreateCommandQueue, (object context, object device, uint64_t how, int *ret))         \
    X(object, CreateProgramWithSource,                                                             \
      (object context, unsigned n, const char **text, const size_t *bytes, int *ret))              \
    X(int, BuildProgram,                                                                           \
      (object program, unsigned n, const object *devices, const char *options, void *told,         \
       void *arg))                                                                                 \
    X(int, GetProgramBuildInfo,                                                                    \
      (object program, object device, unsigned what, size_t n, void *ret, size_t *ret_n))          \
    X(object, CreateKernel, (object program, const char *name, int *ret))                          \
    X(int, ReleaseKernel, (object kernel))                                                         \
    X(object, CreateBuffer, (object context, uint64_t how, size_t bytes, void *host, int *ret))    \
    X(int, SetKernelArg, (object kernel, unsigned k, size_t bytes, const void *value))             \
    X(int, EnqueueNDRangeKernel,                                                                   \
      (object queue, object kernel, unsigned dims, const size_t *offset, const size_t *threads,    \
       const size_t *block, unsigned n, const object *after, object *ret))                         \
    X(int, Finish, (object queue))

static struct {
#define X(ret, name, params) ret(*name) params;
    FUNCTIONS(X)
#undef X
} cl;
static object device, context, queue, program, kernel;
static size_t threads[2], block_size[2];
static struct {
    const void *host;
    object buffer;
} buffers[MAX_BUFFERS];
static size_t n_buffers;

/* b: a buffer, i: an int, f: a float. Two names in CUDA and OpenCL where the latter has a function
 * of that name. */
static const struct {
    const char *name, *params, *cl_name;
} kernels[] = {
    {"matmul_naive", "bbbi", NULL},
    {"matmul_tiled", "bbbi", NULL},
    {"alu", "bi", NULL},
    {"saxpy", "bbfi", NULL},
    {"gather", "bbbi", NULL},
    {"divergent", "bi", NULL},
    {"collatz", "bi", NULL},
    {"one_arm", "bii", NULL},
    {"two_arms", "bii", NULL},
    {"scatter", "bbi", NULL},
    {"strided", "bbii", NULL},
    {"bytes", "bbi", NULL},
    {"local_array", "bbi", NULL},
    {"histogram", "bbi", NULL},
    {"histogram_shared", "bbi", NULL},
    {"one_address", "bbi", NULL},
    {"atomic_max", "bbi", "atomic_max_"},
    {"doubles", "bi", NULL},
    {"divisions", "bi", NULL},
    {"longs", "bi", NULL},
    {"accurate", "bbi", NULL},
    {"tree", "bb", NULL},
    {"tiny", "bb", NULL},
};

static bool find_functions(void)
{
    void *lib = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    bool ok = lib != NULL;
#define X(ret, name, params)                                                                       \
    if (ok) {                                                                                      \
        void *f = dlsym(lib, "cl" #name);                                                          \
        memcpy(&cl.name, &f, sizeof(f));                                                           \
        ok = f != NULL;                                                                            \
    }
    FUNCTIONS(X)
#undef X
    return ok;
}

static bool find_device(void)
{
    object platforms[8];
    unsigned n = 0, n_devices = 0;
    if (cl.GetPlatformIDs(8, platforms, &n))
        return false;
    for (unsigned k = 0; k < n && k < 8; k++) {
        char name[128] = "";
        if (cl.GetPlatformInfo(platforms[k], CL_PLATFORM_NAME, sizeof(name) - 1, name, NULL) ||
            !strstr(name, "Portable Computing Language"))
            continue;
        return !cl.GetDeviceIDs(platforms[k], CL_DEVICE_TYPE_CPU, 1, &device, &n_devices) &&
               n_devices > 0;
    }
    return false;
}

const char *cl_open(void *const *memory, size_t n, size_t bytes)
{
    int r;
    setenv("POCL_DEVICES", "basic", 0); /* computes on the thread that asks */
    if (!find_functions())
        return "libOpenCL is not installed";
    if (!find_device())
        return "pocl is not installed";
    context = cl.CreateContext(NULL, 1, &device, NULL, NULL, &r);
    queue = context ? cl.CreateCommandQueue(context, device, 0, &r) : NULL;
    const char *text = bench_cl;
    program = queue ? cl.CreateProgramWithSource(context, 1, &text, NULL, &r) : NULL;
    if (!program)
        return "pocl has no memory";
    if (cl.BuildProgram(program, 1, &device, "-cl-std=CL1.2", NULL, NULL)) {
        char log[4096] = "";
        (void)cl.GetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, sizeof(log) - 1, log,
                                     NULL);
        fputs(log, stderr);
        return "pocl does not compile kernels.cl";
    }
    for (n_buffers = 0; n_buffers < n && n_buffers < MAX_BUFFERS; n_buffers++) {
        buffers[n_buffers].host = memory[n_buffers];
        buffers[n_buffers].buffer =
            cl.CreateBuffer(context, CL_MEM_USE_HOST_PTR, bytes, memory[n_buffers], &r);
    }
    return NULL;
}

static bool set_buffer(unsigned k, uint64_t address)
{
    for (size_t i = 0; i < n_buffers; i++)
        if ((uint64_t)(uintptr_t)buffers[i].host == address)
            return !cl.SetKernelArg(kernel, k, sizeof(object), &buffers[i].buffer);
    return false;
}

static bool set_params(const char *kinds, const uint8_t *params)
{
    size_t at = 0;
    for (unsigned k = 0; kinds[k]; k++) {
        size_t bytes = kinds[k] == 'b' ? 8 : 4;
        uint64_t address;
        at = (at + bytes - 1) / bytes * bytes;
        memcpy(&address, params + at, sizeof(address));
        if (bytes == 8 ? !set_buffer(k, address) : cl.SetKernelArg(kernel, k, 4, params + at) != 0)
            return false;
        at += bytes;
    }
    return true;
}

bool cl_prepare(const char *name, const void *params, const uint32_t grid[2],
                const uint32_t block[2])
{
    size_t n = sizeof(kernels) / sizeof(kernels[0]), k = 0;
    int r;
    while (k < n && strcmp(kernels[k].name, name) != 0)
        k++;
    if (!program || k == n)
        return false;
    if (kernel)
        cl.ReleaseKernel(kernel);
    kernel = cl.CreateKernel(program, kernels[k].cl_name ? kernels[k].cl_name : name, &r);
    for (int d = 0; d < 2; d++) {
        block_size[d] = block[d];
        threads[d] = (size_t)grid[d] * block[d];
    }
    return kernel && set_params(kernels[k].params, params);
}

bool cl_launch(void)
{
    return !cl.EnqueueNDRangeKernel(queue, kernel, 2, NULL, threads, block_size, 0, NULL, NULL) &&
           !cl.Finish(queue);
}
