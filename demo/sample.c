// SPDX-License-Identifier: Apache-2.0
/* A small CUDA program to try wattshare with, as the tutorial does. It does JOBS jobs (30), each of
 * which copies numbers to the GPU, runs a kernel on them for STEPS steps (200), copies them back
 * and compares them with what the processor computes. Where its task has a period, a job begins
 * with each period; the last line says how long the jobs took and how many met their deadline.
 *
 * A job's deadline is DEADLINE_MS (30; 0: that of the task). It needs no toolkit: it opens NVIDIA's
 * driver library, and brings its kernel as PTX.
 *
 * Usage: sample [JOBS [STEPS [DEADLINE_MS]]] */
#include <dlfcn.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "frontend/wattshare.h"

enum { N = 1 << 14, BLOCK = 128 };

static const char ptx[] =
    ".version 7.0\n.target sm_50\n.address_size 64\n"
    ".visible .entry steps(.param .u64 p, .param .u32 n) {\n"
    ".reg .pred %q; .reg .u32 %i, %b, %t, %n; .reg .u64 %a, %o; .reg .f32 %x;\n"
    "mov.u32 %b, %ctaid.x; mov.u32 %t, %ntid.x; mov.u32 %i, %tid.x; mad.lo.u32 %i, %b, %t, %i;\n"
    "ld.param.u64 %a, [p]; ld.param.u32 %n, [n]; cvta.to.global.u64 %a, %a;\n"
    "mul.wide.u32 %o, %i, 4; add.u64 %a, %a, %o; ld.global.f32 %x, [%a];\n"
    "AGAIN: setp.eq.u32 %q, %n, 0; @%q bra DONE;\n"
    "fma.rn.f32 %x, %x, 0f3F7FBE77, 0f3F800000; sub.u32 %n, %n, 1; bra AGAIN;\n" /* 0.999, 1 */
    "DONE: st.global.f32 [%a], %x; ret; }\n";

static float step_on_cpu(float x, int n)
{
    while (n--)
        x = fmaf(x, 0x1.ff7ceep-1F, 1);
    return x;
}

/* A function of the driver. Exits where there is no driver. */
static void *driver(const char *name)
{
    static void *lib;
    if (!lib && !(lib = dlopen("libcuda.so.1", RTLD_NOW))) {
        fprintf(stderr,
                "sample: there is no CUDA driver here; start it with: wattshare run -- sample\n");
        exit(1);
    }
    void *f = dlsym(lib, name);
    if (!f) {
        fprintf(stderr, "sample: the driver has no %s\n", name);
        exit(1);
    }
    return f;
}

static void check(int result, const char *name)
{
    if (result) {
        fprintf(stderr, "sample: %s failed with CUDA's error %d\n", name, result);
        exit(1);
    }
}
#define CALL(name, types, ...) check(((int(*) types)driver(#name))(__VA_ARGS__), #name)

typedef unsigned long long dev_ptr;

static dev_ptr data;
static void *kernel;

static void open_gpu(void)
{
    void *context, *module;
    int device;
    CALL(cuInit, (unsigned), 0);
    CALL(cuDeviceGet, (int *, int), &device, 0);
    CALL(cuDevicePrimaryCtxRetain, (void **, int), &context, device);
    CALL(cuCtxSetCurrent, (void *), context);
    CALL(cuModuleLoadData, (void **, const void *), &module, ptx);
    CALL(cuModuleGetFunction, (void **, void *, const char *), &kernel, module, "steps");
    CALL(cuMemAlloc_v2, (dev_ptr *, size_t), &data, N * sizeof(float));
}

/* One job; the numbers of wrong elements. */
static int do_job(int job, int n_steps)
{
    static float in[N], out[N];
    unsigned steps = (unsigned)n_steps;
    void *args[] = {&data, &steps};
    int n_wrong = 0;
    for (int i = 0; i < N; i++)
        in[i] = (float)((i + job) % 1000);
    CALL(cuMemcpyHtoD_v2, (dev_ptr, const void *, size_t), data, in, sizeof(in));
    CALL(cuLaunchKernel,
         (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
          void **, void **),
         kernel, N / BLOCK, 1, 1, BLOCK, 1, 1, 0, NULL, args, NULL);
    CALL(cuMemcpyDtoH_v2, (void *, dev_ptr, size_t), out, data, sizeof(out));
    for (int i = 0; i < N; i += 97)
        n_wrong += out[i] != step_on_cpu(in[i], n_steps);
    return n_wrong;
}

int main(int argc, char **argv)
{
    int n_jobs = argc > 1 ? atoi(argv[1]) : 30, n_steps = argc > 2 ? atoi(argv[2]) : 200;
    int deadline_ms = argc > 3 ? atoi(argv[3]) : 30;
    int n_wrong = 0, n_told = 0, n_met = 0;
    double sum_ms = 0, worst_ms = 0, sum_mj = 0;
    if (argc > 4 || n_jobs < 1 || n_steps < 0 || deadline_ms < 0) {
        fprintf(stderr, "usage: sample [JOBS [STEPS [DEADLINE_MS]]]\n");
        return 2;
    }
    open_gpu();
    for (int i = 0; i < n_jobs; i++) {
        struct wattshare_job job;
        wattshare_wait_period(NULL); /* returns at once where the task has none */
        wattshare_job_begin((uint64_t)deadline_ms * 1000000);
        n_wrong += do_job(i, n_steps);
        if (wattshare_job_end() || wattshare_job_stats(&job))
            continue; /* not under wattshare: nobody tells */
        double ms = (double)job.response_ns / 1e6;
        n_told++;
        n_met += job.met != 0;
        sum_ms += ms;
        worst_ms = ms > worst_ms ? ms : worst_ms;
        sum_mj += (double)job.energy_uj / 1e3;
    }
    printf("sample: %d jobs, %s", n_jobs, n_wrong ? "WRONG RESULTS" : "all results right");
    if (n_told)
        printf("; response %.3f ms on average, %.3f ms at most; %d of %d met their deadline; %.3f "
               "mJ each",
               sum_ms / n_told, worst_ms, n_met, n_told, sum_mj / n_told);
    putchar('\n');
    return n_wrong != 0;
}
