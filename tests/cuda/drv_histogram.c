// SPDX-License-Identifier: Apache-2.0
// The program of histogram.cu with the driver API: the same kernel from ptx/histogram.ptx.
#include "drv.h"
#include "histogram.h"

int main(int argc, char **argv)
{
    long n = work_arg(argc, argv, 1, HIST_SIZE_KIB, HIST_MAX_KIB) * 1024, piece = n / HIST_PIECES;
    long iterations = work_arg(argc, argv, 2, 1, 1000000);
    uint32_t *bins, want[HIST_BINS], words = (uint32_t)(piece / 4);
    uint8_t *v;
    CUdeviceptr d, d_bins;
    CUstream s[2];
    drv_begin();
    CUmodule m = drv_module(WORK);
    CUfunction f = drv_function(m, "histogram");
    DRV(mem_alloc_host((void **)&v, (size_t)n));
    DRV(mem_alloc_host((void **)&bins, sizeof(want)));
    DRV(mem_alloc(&d, (size_t)n));
    DRV(mem_alloc(&d_bins, sizeof(want)));
    for (int i = 0; i < 2; i++)
        DRV(stream_create(&s[i], CU_STREAM_NON_BLOCKING));
    hist_fill(v, n);
    hist_cpu(v, n, want);
    for (long it = 0; it < iterations; it++) {
        DRV(memset_d8_async(d_bins, 0, sizeof(want), s[0]));
        DRV(stream_synchronize(s[0]));
        for (int p = 0; p < HIST_PIECES; p++) {
            CUdeviceptr at = d + (CUdeviceptr)(p * piece);
            DRV(memcpy_htod_async(at, v + p * piece, (size_t)piece, s[p & 1]));
            drv_launch(f, HIST_GRID, HIST_BLOCK, 0, s[p & 1], &at, &words, &d_bins);
        }
        DRV(stream_synchronize(s[0]));
        DRV(stream_synchronize(s[1]));
        DRV(memcpy_dtoh_async(bins, d_bins, sizeof(want), s[1]));
        DRV(stream_synchronize(s[1]));
        if (hist_check(bins, want))
            return 1;
    }
    for (int i = 0; i < 2; i++)
        DRV(stream_destroy(s[i]));
    DRV(mem_free(d));
    DRV(mem_free(d_bins));
    DRV(mem_free_host(v));
    DRV(mem_free_host(bins));
    DRV(module_unload(m));
    drv_end();
    return work_pass("drv_" WORK);
}
