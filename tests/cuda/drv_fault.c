// SPDX-License-Identifier: Apache-2.0
// Usage: drv_fault NAME. Runs the kernel of fault.cu that goes wrong in this way (fault.h) with the
// driver API. Fails if it does not give CUDA's error, or if a later call does not.
#include "drv.h"
#include "fault.h"

int main(int argc, char **argv)
{
    int what = fault_find(argc > 1 ? argv[1] : "none"), n = 1024;
    uint32_t *host = work_alloc(4096);
    CUdeviceptr v;
    drv_begin();
    CUmodule m = drv_module(WORK);
    CUfunction f = drv_function(m, "fault");
    DRV(mem_alloc(&v, 4096));
    drv_launch(f, 8, 128, 0, NULL, &what, &v, &n);
    CUresult r = drv.ctx_synchronize();
    if (r != faults[what].error)
        return work_fail(WORK, "%s gave %d, not %d", faults[what].name, r, faults[what].error);
    r = drv.memcpy_dtoh(host, v, 4096);
    if (r != faults[what].error)
        return work_fail(WORK, "after %s a copy gave %d", faults[what].name, r);
    for (uint32_t i = 0; i < 1024 && !what; i++)
        if (host[i] != i)
            return work_fail(WORK, "v[%u] is %u", i, host[i]);
    if (!what) {
        DRV(mem_free(v));
        DRV(module_unload(m));
        drv_end();
    }
    return work_pass("drv_" WORK);
}
