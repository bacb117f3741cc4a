// SPDX-License-Identifier: Apache-2.0
// Uses NVRTC as most programs do: compiles for the device's own architecture, takes the cubin and
// loads it by the driver API; and the same by PTX, with a lowered name and a constant. Fails if a
// step fails or a result is wrong.
#include <cuda.h>
#include <nvrtc.h>
#include "work.cuh"
#define WORK "nvrtc"

#define DRIVER(call)                                                                               \
    do {                                                                                           \
        CUresult r_ = (call);                                                                      \
        if (r_) {                                                                                  \
            const char *name_ = "?";                                                               \
            cuGetErrorName(r_, &name_);                                                            \
            exit(work_fail(WORK, "%s gave %d %s", #call, r_, name_));                              \
        }                                                                                          \
    } while (0)
#define NVRTC(call)                                                                                \
    do {                                                                                           \
        nvrtcResult r_ = (call);                                                                   \
        if (r_)                                                                                    \
            exit(work_fail(WORK, "%s gave %s", #call, nvrtcGetErrorString(r_)));                   \
    } while (0)

static const char source[] = "__constant__ float shift[2];\n"
                             "extern \"C\" __global__ void vectorAdd(const float *a, const float *b,"
                             " float *c, int n)\n"
                             "{ int i = blockDim.x * blockIdx.x + threadIdx.x;\n"
                             "  if (i < n) c[i] = a[i] + b[i] + shift[i & 1]; }\n"
                             "template <class T> __global__ void twice(T *x, int n)\n"
                             "{ int i = threadIdx.x; if (i < n) x[i] *= 2; }\n";

static char *compile(const char *arch, bool cubin, char *lowered, size_t room)
{
    nvrtcProgram p;
    char option[64], *image;
    size_t bytes;
    const char *name, *options[] = {option, "--std=c++17"};
    snprintf(option, sizeof option, "--gpu-architecture=%s", arch);
    NVRTC(nvrtcCreateProgram(&p, source, "program.cu", 0, NULL, NULL));
    NVRTC(nvrtcAddNameExpression(p, "twice<float>"));
    if (nvrtcCompileProgram(p, 2, options)) {
        char log[4096];
        nvrtcGetProgramLog(p, log);
        exit(work_fail(WORK, "%s", log));
    }
    NVRTC(nvrtcGetLoweredName(p, "twice<float>", &name));
    snprintf(lowered, room, "%s", name);
    NVRTC(cubin ? nvrtcGetCUBINSize(p, &bytes) : nvrtcGetPTXSize(p, &bytes));
    image = (char *)work_alloc(bytes);
    NVRTC(cubin ? nvrtcGetCUBIN(p, image) : nvrtcGetPTX(p, image));
    NVRTC(nvrtcDestroyProgram(&p));
    return image;
}

static int run(const char *image, const char *lowered, int n)
{
    CUmodule m;
    CUfunction add, twice;
    CUdeviceptr a, b, c, shift;
    size_t bytes = n * sizeof(float), shift_bytes;
    float *host = (float *)work_alloc(bytes), *other = (float *)work_alloc(bytes),
          *out = (float *)work_alloc(bytes), shifts[2] = {0.5f, 0.25f};
    DRIVER(cuModuleLoadData(&m, image));
    DRIVER(cuModuleGetFunction(&add, m, "vectorAdd"));
    DRIVER(cuModuleGetFunction(&twice, m, lowered));
    DRIVER(cuModuleGetGlobal(&shift, &shift_bytes, m, "shift"));
    if (shift_bytes != sizeof shifts)
        return work_fail(WORK, "shift has %zu bytes", shift_bytes);
    DRIVER(cuMemcpyHtoD(shift, shifts, sizeof shifts));
    DRIVER(cuMemAlloc(&a, bytes));
    DRIVER(cuMemAlloc(&b, bytes));
    DRIVER(cuMemAlloc(&c, bytes));
    for (int i = 0; i < n; i++) {
        host[i] = (float)(work_random(i) % 1000);
        other[i] = (float)(work_random(i + n) % 1000);
    }
    DRIVER(cuMemcpyHtoD(a, host, bytes));
    DRIVER(cuMemcpyHtoD(b, other, bytes));
    void *args[] = {&a, &b, &c, &n}, *args2[] = {&c, &n};
    DRIVER(cuLaunchKernel(add, (n + 255) / 256, 1, 1, 256, 1, 1, 0, 0, args, 0));
    DRIVER(cuLaunchKernel(twice, 1, 1, 1, 256, 1, 1, 0, 0, args2, 0));
    DRIVER(cuCtxSynchronize());
    DRIVER(cuMemcpyDtoH(out, c, bytes));
    for (int i = 0; i < n; i++) {
        float want = host[i] + other[i] + shifts[i & 1];
        if (i < 256)
            want *= 2;
        if (out[i] != want)
            return work_fail(WORK, "c[%d] is %g, not %g", i, out[i], want);
    }
    CUfunction none;
    if (cuModuleGetFunction(&none, m, "gone") != CUDA_ERROR_NOT_FOUND)
        return work_fail(WORK, "a function that is not there is found");
    DRIVER(cuMemFree(a));
    DRIVER(cuMemFree(b));
    DRIVER(cuMemFree(c));
    DRIVER(cuModuleUnload(m));
    free(host);
    free(other);
    free(out);
    return 0;
}

int main(int argc, char **argv)
{
    int n = (int)work_arg(argc, argv, 1, 10, 4096) * 1024, major, minor, version[2];
    CUdevice d;
    CUcontext ctx;
    char arch[32], lowered[256];
    DRIVER(cuInit(0));
    DRIVER(cuDeviceGet(&d, 0));
    DRIVER(cuDevicePrimaryCtxRetain(&ctx, d));
    DRIVER(cuCtxSetCurrent(ctx));
    DRIVER(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, d));
    DRIVER(cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, d));
    NVRTC(nvrtcVersion(&version[0], &version[1]));
    for (int cubin = 0; cubin < 2; cubin++) {
        snprintf(arch, sizeof arch, "%s_%d%d", cubin ? "sm" : "compute", major, minor);
        char *image = compile(arch, cubin, lowered, sizeof lowered);
        if (run(image, lowered, n))
            return 1;
        free(image);
    }
    DRIVER(cuDevicePrimaryCtxRelease(d));
    return work_pass(WORK);
}
