// SPDX-License-Identifier: Apache-2.0
// Uses the driver's linker as programs with just-in-time compilation do: two PTX texts and as many
// options as a library gives. Fails if what is wrong is not in the error log with its file and
// line, or if the result does not load as a cubin would.
#include <dlfcn.h>
#include "drv.h"
#define WORK "drv_link"

typedef struct CUlinkState_st *CUlinkState;
enum { CU_JIT_INPUT_CUBIN, CU_JIT_INPUT_PTX };
enum { WALL_TIME = 2, INFO_LOG, INFO_LOG_BYTES, ERROR_LOG, ERROR_LOG_BYTES, LOG_VERBOSE = 12 };
#define CHECK(call) drv_check(call, #call, __FILE__, __LINE__)
static CUresult (*link_create)(unsigned, int *, void **, CUlinkState *);
static CUresult (*link_add_data)(CUlinkState, int, void *, size_t, const char *, unsigned, int *,
                                 void **);
static CUresult (*link_complete)(CUlinkState, void **, size_t *);
static CUresult (*link_destroy)(CUlinkState);
static CUresult (*module_load_data)(CUmodule *, const void *);

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
    if (!link_create || !link_add_data || !link_complete || !link_destroy || !module_load_data)
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
