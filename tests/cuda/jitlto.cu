// SPDX-License-Identifier: Apache-2.0
// Compiles two sources with NVRTC and links them with nvJitLink at run time: as LTO code, as PTX,
// and LTO code with PTX; the driver API loads the result. Fails if a step fails or the kernel's
// result is wrong.
#include <cuda.h>
#include <nvJitLink.h>
#include <nvrtc.h>
#include "work.cuh"
#define WORK "jitlto"

#define DRIVER(call)                                                                               \
    do {                                                                                           \
        CUresult r_ = (call);                                                                      \
        if (r_)                                                                                    \
            exit(work_fail(WORK, "%s gave %d", #call, r_));                                        \
    } while (0)
#define OTHER(call)                                                                                \
    do {                                                                                           \
        int r_ = (call);                                                                           \
        if (r_)                                                                                    \
            exit(work_fail(WORK, "%s gave %d", #call, r_));                                        \
    } while (0)

static const char saxpy[] = "extern __device__ float compute(float a, float x, float y);\n"
                            "extern \"C\" __global__ void saxpy(float a, float *x, float *y, float "
                            "*out, size_t n)\n"
                            "{ size_t i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                            "  if (i < n) out[i] = compute(a, x[i], y[i]); }\n";
static const char compute[] =
    "__device__ float compute(float a, float x, float y) { return a * x + y; }\n";

static char *compile(const char *source, bool lto, const char *arch, size_t *bytes)
{
    nvrtcProgram p;
    const char *options[] = {lto ? "-dlto" : "-default-device", "--relocatable-device-code=true",
                             arch};
    OTHER(nvrtcCreateProgram(&p, source, "source.cu", 0, NULL, NULL));
    OTHER(nvrtcCompileProgram(p, 3, options));
    OTHER(lto ? nvrtcGetLTOIRSize(p, bytes) : nvrtcGetPTXSize(p, bytes));
    char *image = (char *)work_alloc(*bytes);
    OTHER(lto ? nvrtcGetLTOIR(p, image) : nvrtcGetPTX(p, image));
    OTHER(nvrtcDestroyProgram(&p));
    return image;
}

static int run(bool lto, bool second_lto, int major, int minor)
{
    nvJitLinkHandle h;
    char compute_arch[32], link_arch[32];
    size_t bytes[2], size;
    snprintf(compute_arch, sizeof compute_arch, "-arch=compute_%d%d", major, minor);
    snprintf(link_arch, sizeof link_arch, "-arch=sm_%d%d", major, minor);
    const char *options[] = {link_arch, "-lto"};
    char *part[2] = {compile(saxpy, lto, compute_arch, &bytes[0]),
                     compile(compute, second_lto, compute_arch, &bytes[1])};
    OTHER(nvJitLinkCreate(&h, lto ? 2 : 1, options));
    for (int i = 0; i < 2; i++)
        OTHER(nvJitLinkAddData(h,
                               (i ? second_lto : lto) ? NVJITLINK_INPUT_LTOIR : NVJITLINK_INPUT_PTX,
                               part[i], bytes[i], i ? "compute" : "saxpy"));
    OTHER(nvJitLinkComplete(h));
    OTHER(nvJitLinkGetLinkedCubinSize(h, &size));
    void *cubin = work_alloc(size);
    OTHER(nvJitLinkGetLinkedCubin(h, cubin));
    OTHER(nvJitLinkDestroy(&h));

    CUmodule m;
    CUfunction f;
    CUdeviceptr x, y, out;
    enum { N = 4096 };
    static float hx[N], hy[N], hout[N];
    size_t n = N;
    float a = 5.5f;
    DRIVER(cuModuleLoadData(&m, cubin));
    DRIVER(cuModuleGetFunction(&f, m, "saxpy"));
    for (int i = 0; i < N; i++) {
        hx[i] = (float)i;
        hy[i] = (float)(i * 2);
    }
    DRIVER(cuMemAlloc(&x, sizeof hx));
    DRIVER(cuMemAlloc(&y, sizeof hx));
    DRIVER(cuMemAlloc(&out, sizeof hx));
    DRIVER(cuMemcpyHtoD(x, hx, sizeof hx));
    DRIVER(cuMemcpyHtoD(y, hy, sizeof hy));
    void *args[] = {&a, &x, &y, &out, &n};
    DRIVER(cuLaunchKernel(f, N / 128, 1, 1, 128, 1, 1, 0, NULL, args, NULL));
    DRIVER(cuMemcpyDtoH(hout, out, sizeof hout));
    for (int i = 0; i < N; i++)
        if (hout[i] != a * hx[i] + hy[i])
            return work_fail(WORK, "%s with %s: out[%d] is %g", lto ? "lto" : "ptx",
                             second_lto ? "lto" : "ptx", i, hout[i]);
    DRIVER(cuMemFree(x));
    DRIVER(cuMemFree(y));
    DRIVER(cuMemFree(out));
    DRIVER(cuModuleUnload(m));
    free(part[0]);
    free(part[1]);
    free(cubin);
    return 0;
}

int main(void)
{
    CUdevice d;
    CUcontext c;
    int major, minor;
    DRIVER(cuInit(0));
    DRIVER(cuDeviceGet(&d, 0));
    DRIVER(cuDevicePrimaryCtxRetain(&c, d));
    DRIVER(cuCtxSetCurrent(c));
    DRIVER(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, d));
    DRIVER(cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, d));
    if (run(true, true, major, minor) || run(false, false, major, minor) ||
        run(true, false, major, minor))
        return 1;
    DRIVER(cuDevicePrimaryCtxRelease(d));
    return work_pass(WORK);
}
