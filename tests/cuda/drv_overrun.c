// SPDX-License-Identifier: Apache-2.0
// Reads and writes a little before and behind an allocation. With the argument "strict" a read must
// be a fault, else it must give 0; one far away, and each write, must be a fault.
#include "drv.h"
#define WORK "drv_overrun"

static const char ptx[] = ".version 7.0\n.target sm_50\n.address_size 64\n"
                          ".visible .entry peek(.param .u64 from, .param .u64 to)\n{\n"
                          ".reg .b64 %rd<3>; .reg .b32 %r<2>;\n"
                          "ld.param.u64 %rd1, [from]; ld.param.u64 %rd2, [to];\n"
                          "ld.global.u32 %r1, [%rd1]; st.global.u32 [%rd2], %r1; ret;\n}\n";
enum { BYTES = 4096, NEAR = 30 << 10, FAR = 40 << 10, ILLEGAL_ADDRESS = 700 };

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    CUmodule m;
    CUdeviceptr p;
    uint32_t v[2] = {7, 7};
    drv_begin();
    DRV(module_load_data_ex(&m, ptx, 0, NULL, NULL));
    CUfunction peek = drv_function(m, "peek");
    DRV(mem_alloc(&p, BYTES));
    DRV(memset_d8(p, 7, BYTES));
    CUdeviceptr behind = p + BYTES + NEAR, before = p - NEAR, away = p + BYTES + FAR,
                second = p + 4;
    if (!strcmp(what, "far"))
        drv.launch_kernel(peek, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&away, &p}, NULL);
    else if (!strcmp(what, "write"))
        drv.launch_kernel(peek, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&p, &behind}, NULL);
    else
        drv.launch_kernel(peek, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&behind, &p}, NULL);
    CUresult r = drv.ctx_synchronize();
    if (*what) {
        if (r != ILLEGAL_ADDRESS)
            return work_fail(WORK, "%s gave %d, not %d", what, r, ILLEGAL_ADDRESS);
        return work_pass(WORK);
    }
    drv_check(r, "behind", __FILE__, __LINE__);
    drv_launch(peek, 1, 1, 0, NULL, &before, &second);
    DRV(memcpy_dtoh(v, p, sizeof(v)));
    if (v[0] || v[1])
        return work_fail(WORK, "read %u behind and %u before the allocation", v[0], v[1]);
    DRV(mem_free(p));
    DRV(module_unload(m));
    drv_end();
    return work_pass(WORK);
}
