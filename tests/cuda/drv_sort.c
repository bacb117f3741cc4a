// SPDX-License-Identifier: Apache-2.0
// The program of sort.cu with the driver API: the same kernels from ptx/sort.ptx.
#include "drv.h"
#include "sort.h"

int main(int argc, char **argv)
{
    long size = work_arg(argc, argv, 1, SORT_SIZE, SORT_MAX), n = 1l << (size < 10 ? 10 : size);
    long iterations = work_arg(argc, argv, 2, 1, 1000000);
    size_t bytes = sizeof(uint32_t) * (size_t)n;
    uint32_t *v = work_alloc(bytes), *want = work_alloc(bytes), *out = work_alloc(bytes);
    unsigned tiles = (unsigned)(n / SORT_TILE);
    CUdeviceptr d;
    sort_fill(v, n);
    memcpy(want, v, bytes);
    qsort(want, (size_t)n, sizeof(*want), sort_compare);
    drv_begin();
    CUmodule m = drv_module(WORK);
    CUfunction f_tiles = drv_function(m, "sort_tiles"), f_step = drv_function(m, "sort_step"),
               f_merge = drv_function(m, "sort_merge");
    DRV(mem_alloc(&d, bytes));
    for (long it = 0; it < iterations; it++) {
        DRV(memcpy_htod(d, v, bytes));
        drv_launch(f_tiles, tiles, SORT_BLOCK, 0, NULL, &d);
        for (unsigned s = 2 * SORT_TILE; s <= n; s <<= 1) {
            for (unsigned stride = s / 2; stride >= SORT_TILE; stride >>= 1)
                drv_launch(f_step, tiles, SORT_BLOCK, 0, NULL, &d, &s, &stride);
            drv_launch(f_merge, tiles, SORT_BLOCK, 0, NULL, &d, &s);
        }
        DRV(ctx_synchronize());
        DRV(memcpy_dtoh(out, d, bytes));
        if (sort_check(out, want, n))
            return 1;
    }
    DRV(mem_free(d));
    DRV(module_unload(m));
    drv_end();
    return work_pass("drv_" WORK);
}
