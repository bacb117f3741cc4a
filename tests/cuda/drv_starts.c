// SPDX-License-Identifier: Apache-2.0
/* Kernels that start kernels, in PTX. Four threads of "fan" each count, and start "fan" again with
 * one level less; "old" starts it in the way of CUDA before 12.0. Fails if there are not as many
 * counts as threads, if starting "bad" gives no illegal address to the host, or if a kernel that
 * spoils what stands before the parameters, or has too little room for them, gets anything but an
 * error. */
#include "drv.h"
#define WORK "drv_starts"

/* The buffer for the parameters of kernel NAME, of a block of N threads: %rd5 */
#define BUFFER(name, n)                                                                            \
    "{ .param .b64 f; mov.u64 %rd4, " name ";\n"                                                   \
    "  st.param.b64 [f], %rd4; .param .align 4 .b8 g[12];\n"                                       \
    "  st.param.b32 [g+0], 1; st.param.b32 [g+4], 1; st.param.b32 [g+8], 1;\n"                     \
    "  .param .align 4 .b8 b[12];\n"                                                               \
    "  st.param.b32 [b+0], " n "; st.param.b32 [b+4], 1; st.param.b32 [b+8], 1;\n"                 \
    "  .param .b32 s; st.param.b32 [s], 0; .param .b64 r;\n"                                       \
    "  call.uni (r), __cudaCDP2GetParameterBufferV2, (f, g, b, s); ld.param.b64 %rd5, [r]; }\n"
/* Starts it: %r5 */
#define LAUNCH                                                                                     \
    "{ .param .b64 p; st.param.b64 [p], %rd5; .param .b64 t; st.param.b64 [t], 0;\n"               \
    "  .param .b32 e; call.uni (e), __cudaCDP2LaunchDeviceV2, (p, t); ld.param.b32 %r5, [e]; }\n"
/* The buffer of N bytes for the parameters of any kernel, before CUDA 12.0: %rd5 */
#define BUFFER_OF(n)                                                                               \
    "{ .param .b64 a; st.param.b64 [a], 8; .param .b64 s; st.param.b64 [s], " n ";\n"              \
    "  .param .b64 r; call.uni (r), cudaGetParameterBuffer, (a, s); ld.param.b64 %rd5, [r]; }\n"
/* Starts kernel NAME with it, in a block of four threads: %r5 */
#define LAUNCH_OF(name)                                                                            \
    "{ .param .b64 f; mov.u64 %rd4, " name "; st.param.b64 [f], %rd4;\n"                           \
    "  .param .b64 p; st.param.b64 [p], %rd5; .param .align 4 .b8 g[12];\n"                        \
    "  st.param.b32 [g+0], 1; st.param.b32 [g+4], 1; st.param.b32 [g+8], 1;\n"                     \
    "  .param .align 4 .b8 b[12];\n"                                                               \
    "  st.param.b32 [b+0], 4; st.param.b32 [b+4], 1; st.param.b32 [b+8], 1;\n"                     \
    "  .param .b32 s; st.param.b32 [s], 0; .param .b64 t; st.param.b64 [t], 0;\n"                  \
    "  .param .b32 e; call.uni (e), cudaLaunchDevice, (f, p, g, b, s, t);\n"                       \
    "  ld.param.b32 %r5, [e]; }\n"
#define REGS ".reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .pred %p<2>;\n"

static const char text[] =
    ".version 8.0\n.target sm_75\n.address_size 64\n"
    ".extern .func (.param .b64 r) __cudaCDP2GetParameterBufferV2\n"
    "(.param .b64 f, .param .align 4 .b8 g[12], .param .align 4 .b8 b[12], .param .b32 s);\n"
    ".extern .func (.param .b32 r) __cudaCDP2LaunchDeviceV2(.param .b64 p, .param .b64 t);\n"
    ".extern .func (.param .b64 r) cudaGetParameterBuffer(.param .b64 a, .param .b64 s);\n"
    ".extern .func (.param .b32 r) cudaLaunchDevice(.param .b64 f, .param .b64 p,\n"
    ".param .align 4 .b8 g[12], .param .align 4 .b8 b[12], .param .b32 s, .param .b64 t);\n"
    ".visible .entry fan(.param .u64 out, .param .u32 level)\n"
    "{ " REGS "ld.param.u64 %rd1, [out]; ld.param.u32 %r1, [level];\n"
    "  atom.global.add.u32 %r2, [%rd1], 1;\n"
    "  setp.eq.u32 %p1, %r1, 0;\n"
    "  @%p1 ret;\n" BUFFER(
        "fan",
        "4") "  st.u64 [%rd5], %rd1; sub.u32 %r3, %r1, 1;\n"
             "  st.u32 [%rd5+8], %r3;\n" LAUNCH "  ret; }\n"
             ".visible .entry bad(.param .u64 out)\n"
             "{ .reg .b64 %rd<2>; mov.u64 %rd1, 64; st.u32 [%rd1], 1; ret; }\n"
             ".visible .entry starts_bad(.param .u64 out)\n"
             "{ " REGS "ld.param.u64 %rd1, [out];\n" BUFFER("bad", "1")
                 LAUNCH "  ret; }\n"
                        ".visible .entry old(.param .u64 out, .param .u64 errors)\n"
                        "{ " REGS
                        "ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [errors];\n" BUFFER_OF("12") "  st.u64 [%rd5], %rd1; st.u32 [%rd5+8], 2;\n" LAUNCH_OF(
                            "fan") "st.global.u32 [%rd2], %r5;\n" BUFFER_OF("11")
                            LAUNCH_OF(
                                "fan") "  st.global.u32 [%rd2+4], %r5;\n"
                                       "  mov.u64 %rd5, 0;\n" LAUNCH_OF(
                                           "fan") "  st.global.u32 [%rd2+8], %r5; ret; }\n"
                                                  ".visible .entry spoils(.param .u64 out)\n"
                                                  "{ " REGS "ld.param.u64 %rd1, [out];\n" BUFFER(
                                                      "fan",
                                                      "1") "  mov.u32 %r1, 0xffffffff; mov.u32 "
                                                           "%r2, 0; sub.u64 %rd6, %rd5, 64;\n"
                                                           "next: st.u32 [%rd6], %r1; add.u64 "
                                                           "%rd6, %rd6, 4; setp.lt.u64 %p1, %rd6, "
                                                           "%rd5;\n"
                                                           "  @%p1 bra next;\n" LAUNCH
                                                           "  st.global.u32 [%rd1], %r5;\n"
                                                           "  mov.u64 %rd5, 8;\n" LAUNCH
                                                           "  st.global.u32 [%rd1+4], %r5;\n"
                                                           "  mov.u64 %rd5, 0;\n" LAUNCH
                                                           "  st.global.u32 [%rd1+8], %r5; ret; "
                                                           "}\n";

int main(void)
{
    enum { INVALID_VALUE = 1, ILLEGAL_ADDRESS = 700, LEVELS = 5 };
    CUmodule m;
    CUdeviceptr out, errors;
    uint32_t got[3], level = LEVELS, want = 0;
    for (uint32_t k = 0, threads = 4; k <= LEVELS; k++, threads *= 4)
        want += threads;
    drv_begin();
    DRV(module_load_data_ex(&m, text, 0, NULL, NULL));
    DRV(mem_alloc(&out, sizeof(got)));
    DRV(memset_d8(out, 0, sizeof(got)));
    drv_launch(drv_function(m, "fan"), 1, 4, 0, NULL, &out, &level);
    DRV(memcpy_dtoh(got, out, 4));
    if (got[0] != want)
        return work_fail(WORK, "%u threads counted, not %u", got[0], want);
    DRV(memset_d8(out, 0, 4));
    DRV(mem_alloc(&errors, sizeof(got)));
    DRV(memset_d8(errors, 0xff, sizeof(got)));
    drv_launch(drv_function(m, "old"), 1, 1, 0, NULL, &out, &errors);
    DRV(memcpy_dtoh(got, out, 4));
    if (got[0] != 4 + 16 + 64)
        return work_fail(WORK, "started in the old way: %u threads counted, not 84", got[0]);
    DRV(memcpy_dtoh(got, errors, sizeof(got)));
    if (got[0] || got[1] != INVALID_VALUE || got[2] != INVALID_VALUE)
        return work_fail(WORK, "started in the old way: %u %u %u", got[0], got[1], got[2]);
    drv_launch(drv_function(m, "spoils"), 1, 1, 0, NULL, &out);
    DRV(memcpy_dtoh(got, out, sizeof(got)));
    for (int k = 0; k < 3; k++)
        if (got[k] != INVALID_VALUE)
            return work_fail(WORK, "spoiled: error %u, not %d", got[k], INVALID_VALUE);
    drv_launch(drv_function(m, "starts_bad"), 1, 1, 0, NULL, &out);
    CUresult r = drv.ctx_synchronize();
    if (r != ILLEGAL_ADDRESS)
        return work_fail(WORK, "the kernel that was started wrongly gave %d", r);
    return work_pass(WORK);
}
