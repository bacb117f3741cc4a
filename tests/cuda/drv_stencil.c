// SPDX-License-Identifier: Apache-2.0
// The program of stencil.cu with the driver API: the same kernel from ptx/stencil.ptx.
#include "drv.h"
#include "stencil.h"

int main(int argc, char **argv)
{
    int n = (int)work_arg(argc, argv, 1, STENCIL_SIZE, STENCIL_MAX), half = n / 2;
    long iterations = work_arg(argc, argv, 2, 1, 1000000);
    size_t bytes = sizeof(uint32_t) * (size_t)n * (size_t)n;
    uint32_t *v = work_alloc(bytes), *other = work_alloc(bytes), *out, *want;
    CUdeviceptr d[2];
    CUstream s[2];
    CUevent done[2];
    drv_begin();
    CUmodule m = drv_module(WORK);
    CUfunction f = drv_function(m, "stencil");
    DRV(mem_alloc_host((void **)&out, bytes));
    for (int i = 0; i < 2; i++) {
        DRV(stream_create(&s[i], 0));
        DRV(event_create(&done[i], CU_EVENT_DISABLE_TIMING));
        DRV(mem_alloc(&d[i], bytes));
    }
    for (long it = 0; it < iterations; it++) {
        stencil_fill(v, n);
        DRV(memcpy_htod(d[0], v, bytes));
        for (int step = 0; step < STENCIL_STEPS; step++) {
            for (int i = 0; i < 2; i++) {
                int first = i ? half : 0, last = i ? n : half;
                unsigned gx = (unsigned)(n + STENCIL_X - 1) / STENCIL_X,
                         gy = (unsigned)(last - first + STENCIL_Y - 1) / STENCIL_Y;
                void *args[] = {&d[step & 1], &d[~step & 1], &n, &first, &last};
                if (gy)
                    DRV(launch_kernel(f, gx, gy, 1, STENCIL_X, STENCIL_Y, 1, 0, s[i], args, NULL));
                DRV(event_record(done[i], s[i]));
            }
            DRV(stream_wait_event(s[0], done[1], 0));
            DRV(stream_wait_event(s[1], done[0], 0));
        }
        DRV(memcpy_dtoh_async(out, d[STENCIL_STEPS & 1], bytes, s[0]));
        want = stencil_cpu(v, other, n);
        DRV(stream_synchronize(s[0]));
        if (stencil_check(out, want, n))
            return 1;
    }
    for (int i = 0; i < 2; i++) {
        DRV(stream_destroy(s[i]));
        DRV(event_destroy(done[i]));
        DRV(mem_free(d[i]));
    }
    DRV(mem_free_host(out));
    DRV(module_unload(m));
    drv_end();
    return work_pass("drv_" WORK);
}
