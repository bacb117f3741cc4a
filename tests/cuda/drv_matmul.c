// SPDX-License-Identifier: Apache-2.0
// The program of matmul.cu with the driver API: the same kernel from ptx/matmul.ptx.
#include "drv.h"
#include "matmul.h"

int main(int argc, char **argv)
{
    int n = (int)work_arg(argc, argv, 1, MATMUL_SIZE, MATMUL_MAX);
    long iterations = work_arg(argc, argv, 2, 1, 1000000);
    size_t bytes = sizeof(float) * (size_t)n * (size_t)n;
    unsigned grid = (unsigned)(n + MATMUL_TILE - 1) / MATMUL_TILE;
    float *a = work_alloc(bytes), *b = work_alloc(bytes), *c = work_alloc(bytes),
          *want = work_alloc(bytes), ms;
    CUdeviceptr da, db, dc;
    CUevent start, end;
    matmul_fill(a, b, n);
    matmul_cpu(a, b, want, n);
    drv_begin();
    CUmodule m = drv_module(WORK);
    CUfunction f = drv_function(m, "matmul");
    DRV(event_create(&start, 0));
    DRV(event_create(&end, 0));
    DRV(mem_alloc(&da, bytes));
    DRV(mem_alloc(&db, bytes));
    DRV(mem_alloc(&dc, bytes));
    for (long it = 0; it < iterations; it++) {
        DRV(memcpy_htod(da, a, bytes));
        DRV(memcpy_htod(db, b, bytes));
        DRV(memset_d8(dc, 0xff, bytes));
        DRV(event_record(start, NULL));
        DRV(launch_kernel(f, grid, grid, 1, MATMUL_TILE, MATMUL_TILE, 1, 0, NULL,
                          (void *[]){&da, &db, &dc, &n}, NULL));
        DRV(event_record(end, NULL));
        DRV(memcpy_dtoh(c, dc, bytes));
        DRV(event_synchronize(end));
        DRV(event_elapsed_time(&ms, start, end));
        if (!(ms > 0))
            return work_fail(WORK, "the kernel took %g ms by its events", ms);
        if (matmul_check(c, want, n))
            return 1;
    }
    DRV(mem_free(da));
    DRV(mem_free(db));
    DRV(mem_free(dc));
    DRV(module_unload(m));
    drv_end();
    return work_pass("drv_" WORK);
}
