// SPDX-License-Identifier: Apache-2.0
/* A plain C program as the samples *_nvrtc are written: it compiles CUDA C++ for the device it
 * finds, asks for the machine code, loads it with the driver API and launches a template instance
 * by its lowered name. With "ptx" as argument it asks for PTX; with "link" it links two programs
 * with nvJitLink; with "lto" it does so with link-time optimisation. */
#include <cuda.h>
#include <nvJitLink.h>
#include <nvrtc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DRV(call)                                                                                  \
    do {                                                                                           \
        CUresult r_ = (call);                                                                      \
        const char *s_ = "?";                                                                      \
        if (r_ != CUDA_SUCCESS) {                                                                  \
            cuGetErrorName(r_, &s_);                                                               \
            printf("FAIL nvrtc: %s gave %d %s\n", #call, r_, s_);                                  \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
#define OK(call)                                                                                   \
    do {                                                                                           \
        int r_ = (int)(call);                                                                      \
        if (r_ != 0) {                                                                             \
            printf("FAIL nvrtc: %s gave %d\n", #call, r_);                                         \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static const char source[] =
    "template <typename T> __global__ void polynomial(const T *x, T *y, int n) {\n"
    "    __shared__ T c[4];\n"
    "    if (threadIdx.x < 4) c[threadIdx.x] = T(threadIdx.x + 1);\n"
    "    __syncthreads();\n"
    "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (i < n) y[i] = ((c[3] * x[i] + c[2]) * x[i] + c[1]) * x[i] + c[0];\n"
    "}\n";
static const char caller[] =
    "extern __device__ double twice(double);\n"
    "extern \"C\" __global__ void call(const double *x, double *y, int n) {\n"
    "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (i < n) y[i] = twice(x[i]) + 1;\n"
    "}\n";
static const char callee[] = "__device__ double twice(double x) { return 2 * x; }\n";

struct code {
    char *data;
    size_t bytes;
    char name[256];
};

enum want { CUBIN, PTX, LTO };

static struct code compile(const char *text, const char *expression, const char *arch, int rdc,
                           enum want want)
{
    const char *options[] = {arch, "--std=c++17", rdc ? "-rdc=true" : "-rdc=false", "-dlto"};
    struct code c = {0};
    nvrtcProgram p;
    OK(nvrtcCreateProgram(&p, text, "program.cu", 0, NULL, NULL));
    if (expression)
        OK(nvrtcAddNameExpression(p, expression));
    nvrtcResult r = nvrtcCompileProgram(p, want == LTO ? 4 : 3, options);
    if (r != NVRTC_SUCCESS) {
        size_t n;
        OK(nvrtcGetProgramLogSize(p, &n));
        char *log = malloc(n);
        OK(nvrtcGetProgramLog(p, log));
        printf("FAIL nvrtc: %s\n%s", nvrtcGetErrorString(r), log);
        exit(1);
    }
    if (want == LTO) {
        OK(nvrtcGetLTOIRSize(p, &c.bytes));
        OK(nvrtcGetLTOIR(p, c.data = malloc(c.bytes)));
    } else if (want == PTX) {
        OK(nvrtcGetPTXSize(p, &c.bytes));
        OK(nvrtcGetPTX(p, c.data = malloc(c.bytes)));
    } else {
        OK(nvrtcGetCUBINSize(p, &c.bytes));
        OK(nvrtcGetCUBIN(p, c.data = malloc(c.bytes)));
    }
    if (expression) {
        const char *lowered;
        OK(nvrtcGetLoweredName(p, expression, &lowered));
        snprintf(c.name, sizeof(c.name), "%s", lowered);
    }
    OK(nvrtcDestroyProgram(&p));
    return c;
}

static struct code join(const struct code *a, const struct code *b, const char *arch, int lto)
{
    const char *options[] = {arch, "-lto"};
    nvJitLinkInputType type = lto ? NVJITLINK_INPUT_LTOIR : NVJITLINK_INPUT_CUBIN;
    struct code c = {0};
    nvJitLinkHandle h;
    OK(nvJitLinkCreate(&h, lto ? 2 : 1, options));
    OK(nvJitLinkAddData(h, type, a->data, a->bytes, "a"));
    OK(nvJitLinkAddData(h, type, b->data, b->bytes, "b"));
    OK(nvJitLinkComplete(h));
    OK(nvJitLinkGetLinkedCubinSize(h, &c.bytes));
    OK(nvJitLinkGetLinkedCubin(h, c.data = malloc(c.bytes)));
    OK(nvJitLinkDestroy(&h));
    strcpy(c.name, "call");
    return c;
}

int main(int argc, char **argv)
{
    enum { N = 1000 };
    const char *mode = argc > 1 ? argv[1] : "cubin";
    int linked = !strcmp(mode, "link") || !strcmp(mode, "lto"), lto = !strcmp(mode, "lto");
    int major, minor, n = N;
    char arch[64], link_arch[64];
    double x[N], y[N];
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUfunction function;
    CUdeviceptr dx, dy;
    struct code c;
    DRV(cuInit(0));
    DRV(cuDeviceGet(&device, 0));
    DRV(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
    DRV(cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device));
    snprintf(arch, sizeof(arch), "--gpu-architecture=sm_%d%d", major, minor);
    snprintf(link_arch, sizeof(link_arch), "-arch=sm_%d%d", major, minor);
    if (linked) {
        struct code a = compile(caller, NULL, arch, 1, lto ? LTO : CUBIN),
                    b = compile(callee, NULL, arch, 1, lto ? LTO : CUBIN);
        c = join(&a, &b, link_arch, lto);
        free(a.data);
        free(b.data);
    } else {
        c = compile(source, "polynomial<double>", arch, 0, !strcmp(mode, "ptx") ? PTX : CUBIN);
    }
    DRV(cuCtxCreate(&context, NULL, 0, device));
    DRV(cuModuleLoadData(&module, c.data));
    DRV(cuModuleGetFunction(&function, module, c.name));
    for (int i = 0; i < N; i++)
        x[i] = (i - 500) / 64.0;
    DRV(cuMemAlloc(&dx, sizeof(x)));
    DRV(cuMemAlloc(&dy, sizeof(y)));
    DRV(cuMemcpyHtoD(dx, x, sizeof(x)));
    void *args[] = {&dx, &dy, &n};
    DRV(cuLaunchKernel(function, (N + 127) / 128, 1, 1, 128, 1, 1, 0, NULL, args, NULL));
    DRV(cuMemcpyDtoH(y, dy, sizeof(y)));
    for (int i = 0; i < N; i++) {
        double want = linked ? 2 * x[i] + 1 : ((4 * x[i] + 3) * x[i] + 2) * x[i] + 1;
        if (y[i] != want) { /* all of it is exact */
            printf("FAIL nvrtc: %s: y[%d] is %g, not %g\n", mode, i, y[i], want);
            return 1;
        }
    }
    DRV(cuMemFree(dx));
    DRV(cuMemFree(dy));
    DRV(cuModuleUnload(module));
    DRV(cuCtxDestroy(context));
    free(c.data);
    printf("PASS nvrtc %s\n", mode);
    return 0;
}
