// SPDX-License-Identifier: Apache-2.0
// The program of blackscholes.cu with the driver API: the same kernel from ptx/blackscholes.ptx.
#include "blackscholes.h"
#include "drv.h"

int main(int argc, char **argv)
{
    long n = work_arg(argc, argv, 1, BS_SIZE_KI, BS_MAX_KI) * 1024,
         iterations = work_arg(argc, argv, 2, 1, 1000000);
    size_t bytes = sizeof(float) * (size_t)n;
    float *h[5], rate = BS_RATE, volatility = BS_VOLATILITY;
    int count = (int)n;
    CUdeviceptr d[5];
    drv_begin();
    CUmodule m = drv_module(WORK);
    CUfunction f = drv_function(m, "blackscholes");
    for (int i = 0; i < 5; i++) {
        h[i] = work_alloc(bytes);
        DRV(mem_alloc(&d[i], bytes));
    }
    bs_fill(h[0], h[1], h[2], n);
    for (long it = 0; it < iterations; it++) {
        for (int i = 0; i < 3; i++)
            DRV(memcpy_htod(d[i], h[i], bytes));
        drv_launch(f, 480, BS_BLOCK, 0, NULL, &d[0], &d[1], &d[2], &d[3], &d[4], &rate, &volatility,
                   &count);
        for (int i = 3; i < 5; i++)
            DRV(memcpy_dtoh(h[i], d[i], bytes));
        if (bs_check(h[0], h[1], h[2], h[3], h[4], n))
            return 1;
    }
    for (int i = 0; i < 5; i++)
        DRV(mem_free(d[i]));
    DRV(module_unload(m));
    drv_end();
    return work_pass("drv_" WORK);
}
