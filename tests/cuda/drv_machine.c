// SPDX-License-Identifier: Apache-2.0
/* Loads a cubin with the driver API. The cubin is made here (tests/device/cubin_make.c), so it has
 * names but no code: only the mock driver runs it, by PTX that stands for it.
 *
 * Usage: drv_machine [SIZE [ROUNDS]] runs it, drv_machine ptx FILE writes that PTX, and drv_machine
 * refused TEXT fails unless it is refused with TEXT. */
#include "drv.h"
#include "../device/cubin_make.h"
#define WORK "drv_machine"

enum { N = 1000, BLOCK = 128, BLOCKS = (N + BLOCK - 1) / BLOCK };

static int write_ptx(const char *path)
{
    FILE *f = fopen(path, "w");
    return f && fputs(cubin_make_step_ptx, f) >= 0 && !fclose(f)
               ? 0
               : work_fail(WORK, "%s can't be written", path);
}

static int refused(const void *cubin, const char *want)
{
    char log[4096] = "";
    int options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)sizeof(log)};
    CUmodule m;
    drv_begin();
    CUresult r = drv.module_load_data_ex(&m, cubin, 2, options, values);
    if (r != 209) /* CUDA_ERROR_NO_BINARY_FOR_GPU */
        return work_fail(WORK, "loading gave %d, not 209; log: %s", r, log);
    if (!strstr(log, want))
        return work_fail(WORK, "'%s' is not in the log: %s", want, log);
    drv_end();
    return work_pass(WORK);
}

static int use(const void *cubin, int rounds)
{
    static const uint32_t fresh[4] = {1, 2, 3, 5};
    static uint32_t v[N], got[N];
    uint32_t calls = 0, n = N;
    CUmodule m;
    CUdeviceptr d, table, d_calls, other;
    size_t bytes;
    drv_begin();
    DRV(module_load_data_ex(&m, cubin, 0, NULL, NULL));
    CUfunction f = drv_function(m, "step");
    DRV(module_get_global(&table, &bytes, m, "table"));
    if (bytes != sizeof(fresh))
        return work_fail(WORK, "table has %zu bytes", bytes);
    DRV(module_get_global(&d_calls, &bytes, m, "calls"));
    if (!drv.module_get_global(&other, &bytes, m, "no such"))
        return work_fail(WORK, "a variable that is not there was found");
    for (int i = 0; i < N; i++)
        v[i] = (uint32_t)i * 3;
    DRV(mem_alloc(&d, sizeof(v)));
    DRV(memcpy_htod(d, v, sizeof(v)));
    DRV(memcpy_htod(table, fresh, sizeof(fresh)));
    for (int r = 0; r < rounds; r++)
        drv_launch(f, BLOCKS, BLOCK, 0, NULL, &d, &n);
    DRV(memcpy_dtoh(got, d, sizeof(got)));
    for (uint32_t i = 0; i < N; i++)
        if (got[i] != v[i] + (uint32_t)rounds * 3 * fresh[i % 4])
            return work_fail(WORK, "element %u is %u", i, got[i]);
    DRV(memcpy_dtoh(&calls, d_calls, sizeof(calls)));
    if (calls != (uint32_t)rounds * BLOCKS)
        return work_fail(WORK, "%u blocks were counted, not %d", calls, rounds * BLOCKS);
    DRV(module_unload(m));
    if (!drv.memcpy_dtoh(&calls, d_calls, sizeof(calls)))
        return work_fail(WORK, "a variable of an unloaded module can be read");
    DRV(mem_free(d));
    drv_end();
    return work_pass(WORK);
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "ptx"))
        return write_ptx(argv[2]);
    size_t len;
    void *cubin = cubin_make(&cubin_make_step, &len);
    int r = argc == 3 && !strcmp(argv[1], "refused") ? refused(cubin, argv[2])
                                                     : use(cubin, argc > 2 ? atoi(argv[2]) : 2);
    free(cubin);
    return r;
}
