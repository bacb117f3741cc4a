// SPDX-License-Identifier: Apache-2.0
// Loads a module with a kernel that calls a function that is nowhere defined. Fails if the module
// does not load, if its other kernels do not work, or if that kernel is handed out.
#include "drv.h"
#define WORK "drv_partial"

static const char text[] =
    ".version 8.0\n.target sm_75\n.address_size 64\n"
    ".extern .func gone();\n.extern .global .u32 lost;\n"
    ".extern .func __cudaCDP2DeviceSynchronize();\n"
    ".visible .entry good(.param .u64 out)\n"
    "{ .reg .b32 %r<2>; .reg .b64 %rd<2>; ld.param.u64 %rd1, [out]; mov.u32 %r1, 42;\n"
    "  st.global.u32 [%rd1], %r1; ret; }\n"
    ".visible .entry calls_gone() { call gone; ret; }\n"
    ".visible .entry reads_lost(.param .u64 out)\n"
    "{ .reg .b32 %r<2>; .reg .b64 %rd<2>; ld.global.u32 %r1, [lost]; ld.param.u64 %rd1, [out];\n"
    "  st.global.u32 [%rd1], %r1; ret; }\n"
    ".visible .entry starts_kernels() { call __cudaCDP2DeviceSynchronize; ret; }\n";

int main(void)
{
    enum { NOT_FOUND = 500, NOT_SUPPORTED = 801 };
    static const struct {
        const char *name;
        CUresult want;
    } others[] = {{"calls_gone", NOT_FOUND},
                  {"reads_lost", NOT_FOUND},
                  {"starts_kernels", NOT_SUPPORTED},
                  {"nowhere", NOT_FOUND}};
    CUmodule m;
    CUfunction f;
    CUdeviceptr out;
    uint32_t host = 0;
    drv_begin();
    DRV(module_load_data_ex(&m, text, 0, NULL, NULL));
    DRV(mem_alloc(&out, 4));
    drv_launch(drv_function(m, "good"), 1, 1, 0, NULL, &out);
    DRV(memcpy_dtoh(&host, out, 4));
    if (host != 42)
        return work_fail(WORK, "the good kernel made %u", host);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        CUresult r = drv.module_get_function(&f, m, others[i].name);
        if (r != others[i].want)
            return work_fail(WORK, "%s gave %d, not %d", others[i].name, r, others[i].want);
    }
    DRV(ctx_synchronize());
    DRV(mem_free(out));
    DRV(module_unload(m));
    drv_end();
    return work_pass(WORK);
}
