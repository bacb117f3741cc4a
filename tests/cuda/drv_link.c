// SPDX-License-Identifier: Apache-2.0
// Uses the driver's linker as programs with just-in-time compilation do: two PTX texts and as many
// options as a library gives. Fails if what is wrong is not in the error log with its file and
// line, or if the result does not load as a cubin would.
#include <dlfcn.h>
#include "drv.h"
#define WORK "drv_link"

typedef struct CUlinkState_st *CUlinkState;
enum { CU_JIT_INPUT_CUBIN, CU_JIT_INPUT_PTX };
enum { NUM_REGS = 4 }; /* CUfunction_attribute */
enum {
    MAX_REGISTERS = 0,
    WALL_TIME = 2,
    INFO_LOG,
    INFO_LOG_BYTES,
    ERROR_LOG,
    ERROR_LOG_BYTES,
    LOG_VERBOSE = 12
};
#define CHECK(call) drv_check(call, #call, __FILE__, __LINE__)
static CUresult (*link_create)(unsigned, int *, void **, CUlinkState *);
static CUresult (*link_add_data)(CUlinkState, int, void *, size_t, const char *, unsigned, int *,
                                 void **);
static CUresult (*link_complete)(CUlinkState, void **, size_t *);
static CUresult (*link_destroy)(CUlinkState);
static CUresult (*module_load_data)(CUmodule *, const void *);
static CUresult (*func_get_attribute)(int *, int, CUfunction);
static CUresult (*launch_cooperative)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned,
                                      unsigned, unsigned, CUstream, void **);

#define HEAD ".version 8.0\n.target sm_75\n.address_size 64\n"
static const char kernel[] = HEAD
    ".extern .func (.param .b32 r) weigh(.param .b32 a);\n"
    ".extern .global .align 4 .u32 base;\n"
    ".global .u32 local_one = 100;\n"
    ".visible .entry run(.param .u64 out)\n"
    "{\n"
    "    .reg .b32 %r<6>; .reg .b64 %rd<4>;\n"
    "    mov.u32 %r1, %tid.x;\n"
    "    { .param .b32 a; .param .b32 r; st.param.b32 [a], %r1; call.uni (r), weigh, (a);\n"
    "      ld.param.b32 %r2, [r]; }\n"
    "    ld.global.u32 %r3, [base]; add.s32 %r2, %r2, %r3;\n"
    "    ld.global.u32 %r4, [local_one]; add.s32 %r2, %r2, %r4;\n"
    "    ld.param.u64 %rd1, [out]; cvta.to.global.u64 %rd1, %rd1;\n"
    "    mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2; st.global.u32 [%rd1], %r2; ret;\n"
    "}\n";
static const char function[] =
    HEAD ".visible .global .align 4 .u32 base = 1000;\n.global .u32 local_one = 3;\n"
         ".visible .func (.param .b32 r) weigh(.param .b32 a)\n"
         "{\n"
         "    .reg .b32 %r<4>; ld.param.b32 %r1, [a]; ld.global.u32 %r2, [local_one];\n"
         "    mul.lo.s32 %r3, %r1, %r2; st.param.b32 [r], %r3; ret;\n"
         "}\n";

/* What numba and others call of the device runtime, as the documentation of cooperative groups has
 * it: block b adds b + 1, and after the barrier all blocks see the sum. */
static const char together[] = HEAD
    ".extern .func (.param .b64 r) cudaCGGetIntrinsicHandle(.param .b32 scope);\n"
    ".extern .func (.param .b32 r) cudaCGSynchronize(.param .b64 handle, .param .b32 flags);\n"
    ".visible .entry together(.param .u64 out)\n"
    "{\n"
    "    .reg .b32 %r<6>; .reg .b64 %rd<4>; .reg .pred %p;\n"
    "    ld.param.u64 %rd1, [out]; mov.u32 %r1, %ctaid.x; add.u32 %r2, %r1, 1;\n"
    "    mov.u32 %r5, %tid.x; setp.ne.u32 %p, %r5, 0;\n"
    "    @!%p red.global.add.u32 [%rd1], %r2;\n"
    "    { .param .b32 s; .param .b64 r; st.param.b32 [s], 1;\n"
    "      call.uni (r), cudaCGGetIntrinsicHandle, (s); ld.param.b64 %rd2, [r]; }\n"
    "    { .param .b64 h; .param .b32 f; .param .b32 r; st.param.b64 [h], %rd2; st.param.b32 [f], "
    "0;\n"
    "      call.uni (r), cudaCGSynchronize, (h, f); ld.param.b32 %r3, [r]; }\n"
    "    ld.volatile.global.u32 %r4, [%rd1]; add.u32 %r4, %r4, %r3;\n"
    "    mul.wide.u32 %rd3, %r2, 4; add.u64 %rd3, %rd1, %rd3; @!%p st.global.u32 [%rd3], %r4;\n"
    "    ret;\n"
    "}\n";

static char error_log[4096], info_log[4096];
static float wall_ms;

static CUlinkState begin(void)
{
    static int options[] = {WALL_TIME, INFO_LOG,        INFO_LOG_BYTES,
                            ERROR_LOG, ERROR_LOG_BYTES, LOG_VERBOSE};
    static void *values[6];
    CUlinkState s;
    void *all[] = {
        &wall_ms, info_log, (void *)sizeof(info_log), error_log, (void *)sizeof(error_log),
        (void *)1};
    memcpy(values, all, sizeof(all));
    error_log[0] = 0;
    CHECK(link_create(6, options, values, &s));
    return s;
}

static int refused(const char *a, const char *b, const char *want)
{
    void *image;
    size_t bytes;
    CUlinkState s = begin();
    CHECK(link_add_data(s, CU_JIT_INPUT_PTX, (void *)a, strlen(a) + 1, "a.ptx", 0, NULL, NULL));
    if (b)
        CHECK(link_add_data(s, CU_JIT_INPUT_PTX, (void *)b, strlen(b) + 1, "b.ptx", 0, NULL, NULL));
    CUresult r = link_complete(s, &image, &bytes);
    CHECK(link_destroy(s));
    if (!r || !strstr(error_log, want))
        return work_fail(WORK, "gave %d; '%s' is not in the log: %s", r, want, error_log);
    return 0;
}

static int grid_barrier(void)
{
    enum { BLOCKS = 12 };
    uint32_t host[1 + BLOCKS];
    CUlinkState s = begin();
    CUmodule m;
    CUdeviceptr out;
    void *image;
    size_t bytes;
    CHECK(link_add_data(s, CU_JIT_INPUT_PTX, (void *)together, sizeof(together), "together.ptx", 0,
                        NULL, NULL));
    CHECK(link_complete(s, &image, &bytes));
    CHECK(module_load_data(&m, image));
    CHECK(link_destroy(s));
    DRV(mem_alloc(&out, sizeof(host)));
    DRV(memset_d8(out, 0, sizeof(host)));
    for (uint32_t it = 1; it <= 3; it++) {
        CHECK(launch_cooperative(drv_function(m, "together"), BLOCKS, 1, 1, 64, 1, 1, 0, NULL,
                                 (void *[]){&out}));
        DRV(memcpy_dtoh(host, out, sizeof(host)));
        for (uint32_t b = 0; b < BLOCKS; b++)
            if (host[1 + b] != it * BLOCKS * (BLOCKS + 1) / 2)
                return work_fail(WORK, "block %u saw %u after the barrier", b, host[1 + b]);
    }
    DRV(mem_free(out));
    DRV(module_unload(m));
    return 0;
}

static int register_limit(void)
{
    int option = MAX_REGISTERS, regs[2];
    void *image, *limit = (void *)16;
    size_t bytes;
    CUlinkState s;
    CUmodule m;
    for (unsigned n = 0; n < 2; n++) {
        char text[4096] = HEAD ".visible .entry many(.param .u64 out)\n{\n.reg .b32 %r<40>;\n"
                               ".reg .b64 %x;\nld.param.u64 %x, [out];\n";
        for (int i = 0; i < 40; i++)
            sprintf(text + strlen(text), "ld.volatile.global.u32 %%r%d, [%%x+%d];\n", i, 4 * i);
        for (int i = 0; i < 40; i++)
            sprintf(text + strlen(text), "st.global.u32 [%%x+%d], %%r%d;\n", 4 * i, i);
        strcat(text, "ret;\n}\n");
        CHECK(link_create(n, &option, &limit, &s));
        CHECK(
            link_add_data(s, CU_JIT_INPUT_PTX, text, strlen(text) + 1, "many.ptx", 0, NULL, NULL));
        CHECK(link_complete(s, &image, &bytes));
        CHECK(module_load_data(&m, image));
        CHECK(link_destroy(s));
        CHECK(func_get_attribute(&regs[n], NUM_REGS, drv_function(m, "many")));
        DRV(module_unload(m));
    }
    if (regs[0] <= 40 || regs[1] > 16)
        return work_fail(WORK, "%d registers, %d with a limit of 16", regs[0], regs[1]);
    return 0;
}

int main(void)
{
    void *lib, *image;
    size_t bytes;
    uint32_t host[32];
    CUdeviceptr out;
    CUmodule m;
    drv_begin();
    lib = dlopen("libcuda.so.1", RTLD_NOW);
    *(void **)&link_create = dlsym(lib, "cuLinkCreate_v2");
    *(void **)&link_add_data = dlsym(lib, "cuLinkAddData_v2");
    *(void **)&link_complete = dlsym(lib, "cuLinkComplete");
    *(void **)&link_destroy = dlsym(lib, "cuLinkDestroy");
    *(void **)&module_load_data = dlsym(lib, "cuModuleLoadData");
    *(void **)&func_get_attribute = dlsym(lib, "cuFuncGetAttribute");
    *(void **)&launch_cooperative = dlsym(lib, "cuLaunchCooperativeKernel");
    if (!func_get_attribute || !launch_cooperative || !link_create || !link_add_data ||
        !link_complete || !link_destroy || !module_load_data)
        return work_fail(WORK, "an entry point is not there");
    CUlinkState s = begin();
    CHECK(link_add_data(s, CU_JIT_INPUT_PTX, (void *)kernel, sizeof(kernel), "kernel.ptx", 0, NULL,
                        NULL));
    CHECK(link_add_data(s, CU_JIT_INPUT_PTX, (void *)function, sizeof(function), "function.ptx", 0,
                        NULL, NULL));
    CHECK(link_complete(s, &image, &bytes));
    CHECK(module_load_data(&m, image));
    CHECK(link_destroy(s)); /* the image is gone, the module is not */
    DRV(mem_alloc(&out, sizeof(host)));
    drv_launch(drv_function(m, "run"), 1, 32, 0, NULL, &out);
    DRV(memcpy_dtoh(host, out, sizeof(host)));
    for (uint32_t i = 0; i < 32; i++)
        if (host[i] != 3 * i + 1000 + 100)
            return work_fail(WORK, "out[%u] is %u", i, host[i]);
    DRV(mem_free(out));
    DRV(module_unload(m));
    if (refused(kernel, NULL, "a.ptx:11: unresolved external function 'weigh', first used here") ||
        refused(kernel, NULL, "unresolved external variable 'base'") ||
        refused(function, function, "b.ptx:4: 'base' is defined twice (first in a.ptx:4)") ||
        refused(kernel, HEAD "nonsense\n", "b.ptx:4"))
        return 1;
    if (grid_barrier() || register_limit())
        return 1;
    s = begin();
    if (link_add_data(s, 77, (void *)kernel, sizeof(kernel), NULL, 0, NULL, NULL) != 1 ||
        link_complete(s, &image, &bytes) != 1)
        return work_fail(WORK, "a type of 77, or nothing at all, is linked");
    CHECK(link_destroy(s));
    if (link_destroy(s) == 0)
        return work_fail(WORK, "a linker is destroyed twice");
    drv_end();
    return work_pass(WORK);
}
