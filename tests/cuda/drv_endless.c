// SPDX-License-Identifier: Apache-2.0
// Usage: drv_endless KIND. Launches work that has no end, and waits for it.
//   block   one block that computes
//   blocks  as many such blocks as a GPU can hold
//   wait    blocks that wait for a word in memory, which nobody writes
//   twice   as block, while another stream of this program waits behind it
//   grid    short blocks, more of them than can be executed in days
//   jobs    short kernels, one after another, without waiting for them
// Passes if it gets CUDA's error for a launch timeout. The last two never get it: they run until
// they are killed.
#include "drv.h"

#define WORK "endless"

static const char ptx[] = ".version 7.0\n.target sm_52\n.address_size 64\n"
                          ".visible .entry compute(.param .u64 p)\n{\n"
                          ".reg .f32 %f; .reg .b64 %rd;\nld.param.u64 %rd, [p];\n"
                          "mov.f32 %f, 0f3F800000;\nL: fma.rn.f32 %f, %f, %f, %f;\n"
                          "st.global.f32 [%rd], %f;\nbra L;\n}\n"
                          ".visible .entry wait(.param .u64 p)\n{\n"
                          ".reg .pred %p; .reg .b32 %r; .reg .b64 %rd;\nld.param.u64 %rd, [p];\n"
                          "L: ld.volatile.global.u32 %r, [%rd]; setp.eq.u32 %p, %r, 0; @%p bra L;\n"
                          "ret;\n}\n"
                          ".visible .entry count(.param .u64 p)\n{\n"
                          ".reg .b64 %rd;\nld.param.u64 %rd, [p];\nred.global.add.u32 [%rd], 1;\n"
                          "ret;\n}\n";

static const struct kind {
    const char *name, *kernel;
    unsigned blocks, threads;
} kinds[] = {
    {"block", "compute", 1, 32}, {"blocks", "compute", 4096, 128},  {"wait", "wait", 64, 32},
    {"twice", "compute", 1, 32}, {"grid", "count", 0x7fffffff, 32}, {"jobs", "count", 64, 32},
};

static const struct kind *kind_of(const char *name)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (!strcmp(kinds[i].name, name))
            return &kinds[i];
    fprintf(stderr, "endless: no kind '%s'\n", name);
    exit(2);
}

int main(int argc, char **argv)
{
    const struct kind *k = kind_of(argc > 1 ? argv[1] : "block");
    CUdeviceptr v;
    CUmodule m;
    CUstream other;
    uint32_t word;
    drv_begin();
    DRV(module_load_data_ex(&m, ptx, 0, NULL, NULL));
    DRV(mem_alloc(&v, 4096));
    DRV(memset_d8(v, 0, 4096));
    DRV(stream_create(&other, CU_STREAM_NON_BLOCKING));
    CUfunction f = drv_function(m, k->kernel);
    do
        drv_launch(f, k->blocks, k->threads, 0, NULL, &v);
    while (!strcmp(k->name, "jobs"));
    if (!strcmp(k->name, "twice"))
        drv_launch(drv_function(m, "count"), 1, 32, 0, other, &v);
    CUresult r = drv.ctx_synchronize();
    if (r != 702)
        return work_fail(WORK, "%s gave %d, not 702", k->name, r);
    r = drv.memcpy_dtoh(&word, v, 4);
    if (r != 702)
        return work_fail(WORK, "after %s a copy gave %d", k->name, r);
    return work_pass("drv_" WORK);
}
