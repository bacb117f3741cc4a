// SPDX-License-Identifier: Apache-2.0
// The program of montecarlo.cu with the driver API: the same kernel from ptx/montecarlo.ptx.
#include "drv.h"
#include "montecarlo.h"

int main(int argc, char **argv)
{
    uint64_t points = (uint64_t)work_arg(argc, argv, 1, MC_SIZE_MI, MC_MAX_MI) << 20;
    long iterations = work_arg(argc, argv, 2, 1, 1000000);
    uint32_t each = (uint32_t)(points / MC_THREADS);
    uint64_t want = mc_cpu(each), count;
    CUdeviceptr d;
    drv_begin();
    CUmodule m = drv_module(WORK);
    CUfunction f = drv_function(m, "montecarlo");
    DRV(mem_alloc(&d, sizeof(count)));
    for (long it = 0; it < iterations; it++) {
        DRV(memset_d8(d, 0, sizeof(count)));
        drv_launch(f, MC_GRID, MC_BLOCK, MC_BLOCK * sizeof(uint32_t), NULL, &each, &d);
        DRV(memcpy_dtoh(&count, d, sizeof(count)));
        if (mc_check(count, want, points))
            return 1;
    }
    DRV(mem_free(d));
    DRV(module_unload(m));
    drv_end();
    return work_pass("drv_" WORK);
}
