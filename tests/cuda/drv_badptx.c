// SPDX-License-Identifier: Apache-2.0
// Loads PTX with errors, and images that are no PTX. Fails if the driver's error code is wrong, or
// if the log of the just-in-time compiler does not say where the error is. Without a place for the
// log, the library says on stderr what is wrong, the same once (tests/process/faults.sh looks).
#include "drv.h"
#define WORK "drv_badptx"

#define HEAD ".version 8.0\n.target sm_75\n.address_size 64\n"
static const struct {
    const char *description, *text;
    CUresult
        want; /* 218 CUDA_ERROR_INVALID_PTX, 222 …UNSUPPORTED_PTX_VERSION, 200 …INVALID_IMAGE */
    const char *in_log; /* or NULL */
} cases[] = {
    {"unknown opcode", HEAD ".visible .entry k()\n{\n    frobnicate.u32 %r1, %r2;\n    ret;\n}\n",
     222, "6:5:"},
    {"unknown opcode is named",
     HEAD ".visible .entry k()\n{\n    frobnicate.u32 %r1, %r2;\n    ret;\n}\n", 222, "frobnicate"},
    {"undeclared register", HEAD ".visible .entry k()\n{\n    mov.u32 %r1, 1;\n    ret;\n}\n", 218,
     "%r1"},
    {"end in the middle", HEAD ".visible .entry k()\n{\n    .reg .b32 %r<2>;\n    mov.u32 %r1", 218,
     ":"},
    {"undefined label", HEAD ".visible .entry k()\n{\n    bra NOWHERE;\n}\n", 218, "NOWHERE"},
    {"text that is not PTX", "hello, world\n", 200, NULL},
};

int main(void)
{
    drv_begin();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char log[4096] = "";
        int options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
        void *values[] = {log, (void *)sizeof(log)};
        CUmodule m;
        CUresult r = drv.module_load_data_ex(&m, cases[i].text, 2, options, values);
        if (r != cases[i].want)
            return work_fail(WORK, "%s: gave %d, not %d; log: %s", cases[i].description, r,
                             cases[i].want, log);
        if (cases[i].in_log && !strstr(log, cases[i].in_log))
            return work_fail(WORK, "%s: '%s' is not in the log: %s", cases[i].description,
                             cases[i].in_log, log);
        log[5] = 'x';
        values[1] = (void *)5; /* a small buffer is not overrun, and ends */
        r = drv.module_load_data_ex(&m, cases[i].text, 2, options, values);
        if (r != cases[i].want || log[5] != 'x' || !memchr(log, 0, 5))
            return work_fail(WORK, "%s: a log buffer of 5 bytes gave %d '%.6s'",
                             cases[i].description, r, log);
    }
    for (int twice = 0; twice < 2; twice++) {
        CUmodule m;
        CUresult r = drv.module_load_data_ex(&m, cases[1].text, 0, NULL, NULL);
        if (r != cases[1].want)
            return work_fail(WORK, "without a log: gave %d, not %d", r, cases[1].want);
    }
    /* and the context still works */
    CUmodule m = drv_module("matmul");
    drv_function(m, "matmul");
    DRV(module_unload(m));
    drv_end();
    return work_pass(WORK);
}
