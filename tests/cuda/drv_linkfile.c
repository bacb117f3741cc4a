// SPDX-License-Identifier: Apache-2.0
// Gives files to the driver's linker. Argument 1 is an object or archive of nvcc -dc with the
// function mix() of rdc_part.cu; a PTX text calls it and has the constant that it reads. Fails if
// linking fails or a result is wrong.
#include <dlfcn.h>
#include <unistd.h>
#include "drv.h"
#define WORK "drv_linkfile"

typedef struct CUlinkState_st *CUlinkState;
enum { CU_JIT_INPUT_PTX = 1, CU_JIT_INPUT_OBJECT = 3, CU_JIT_INPUT_LIBRARY = 4 };
#define CHECK(call) drv_check(call, #call, __FILE__, __LINE__)
static CUresult (*link_create)(unsigned, int *, void **, CUlinkState *);
static CUresult (*link_add_data)(CUlinkState, int, void *, size_t, const char *, unsigned, int *,
                                 void **);
static CUresult (*link_add_file)(CUlinkState, int, const char *, unsigned, int *, void **);
static CUresult (*link_complete)(CUlinkState, void **, size_t *);
static CUresult (*link_destroy)(CUlinkState);
static CUresult (*module_load)(CUmodule *, const char *);

static const char kernel[] =
    ".version 8.0\n.target sm_75\n.address_size 64\n"
    ".extern .func (.param .b32 r) _Z3mixfi(.param .b32 a, .param .b32 b);\n"
    ".visible .const .align 4 .f32 scale[4] = {1.0, 2.0, 3.0, 4.0};\n"
    ".visible .entry run(.param .u64 out)\n"
    "{\n"
    "    .reg .b32 %r<3>; .reg .f32 %f<3>; .reg .b64 %rd<4>;\n"
    "    mov.u32 %r1, %tid.x; cvt.rn.f32.u32 %f1, %r1;\n"
    "    { .param .b32 a; .param .b32 b; .param .b32 r; st.param.f32 [a], %f1; st.param.b32 [b], "
    "%r1;\n"
    "      call.uni (r), _Z3mixfi, (a, b); ld.param.f32 %f2, [r]; }\n"
    "    ld.param.u64 %rd1, [out]; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2;\n"
    "    st.global.f32 [%rd1], %f2; ret;\n"
    "}\n";

int main(int argc, char **argv)
{
    void *lib, *image;
    size_t bytes;
    float host[32];
    CUdeviceptr out;
    CUmodule m;
    CUlinkState s;
    const char *path = argc > 1 ? argv[1] : "";
    size_t n = strlen(path);
    drv_begin();
    lib = dlopen("libcuda.so.1", RTLD_NOW);
    *(void **)&link_create = dlsym(lib, "cuLinkCreate_v2");
    *(void **)&link_add_data = dlsym(lib, "cuLinkAddData_v2");
    *(void **)&link_add_file = dlsym(lib, "cuLinkAddFile_v2");
    *(void **)&link_complete = dlsym(lib, "cuLinkComplete");
    *(void **)&link_destroy = dlsym(lib, "cuLinkDestroy");
    *(void **)&module_load = dlsym(lib, "cuModuleLoad");
    CHECK(link_create(0, NULL, NULL, &s));
    if (link_add_file(s, CU_JIT_INPUT_OBJECT, "/nonexistent", 0, NULL, NULL) != 301)
        return work_fail(WORK, "a file that is not there");
    CHECK(link_add_file(
        s, n > 2 && !strcmp(path + n - 2, ".a") ? CU_JIT_INPUT_LIBRARY : CU_JIT_INPUT_OBJECT, path,
        0, NULL, NULL));
    CHECK(link_add_data(s, CU_JIT_INPUT_PTX, (void *)kernel, sizeof(kernel), "kernel", 0, NULL,
                        NULL));
    CHECK(link_complete(s, &image, &bytes));
    char file[] = "/tmp/wattshare-linked.XXXXXX"; /* programs keep what they linked */
    int fd = mkstemp(file);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    if (!f || fwrite(image, 1, bytes, f) != bytes || fclose(f))
        return work_fail(WORK, "can't write %s", file);
    CHECK(link_destroy(s));
    CUresult r = module_load(&m, file);
    unlink(file);
    CHECK(r);
    DRV(mem_alloc(&out, sizeof(host)));
    drv_launch(drv_function(m, "run"), 1, 32, 0, NULL, &out);
    DRV(memcpy_dtoh(host, out, sizeof(host)));
    for (int i = 0; i < 32; i++)
        if (host[i] != (float)i * (float)(1 + (i & 3)) + 22)
            return work_fail(WORK, "out[%d] is %g", i, host[i]);
    DRV(mem_free(out));
    DRV(module_unload(m));
    drv_end();
    return work_pass(WORK);
}
