// SPDX-License-Identifier: Apache-2.0
/* PTX text of any kind, decoded and run for a while: a client's kernel may fault but must not hurt
 * the daemon. */
#include <stdlib.h>
#include <string.h>

#include "device/soft/exec/exec.h"

enum { BUF_BYTES = 1 << 16, STEPS = 3, STEP_INSNS = 3000 };
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void run_kernel(const struct ws_code *code, uint32_t kernel,
                       const struct ws_kernel_info *info, struct ws_space *space, uint64_t *var_va,
                       uint64_t va)
{
    uint32_t words = info->param_bytes / 8 + 1;
    uint64_t *params = calloc(words, 8);
    struct ws_grid g = {.code = code,
                        .kernel = kernel,
                        .grid = {2, 1, 1},
                        .block = {40, 1, 1},
                        .params = (const uint8_t *)params,
                        .space = space,
                        .var_va = var_va,
                        .n_sms = 1,
                        .sm = 75,
                        .dyn_shared_bytes = 256,
                        .local_bytes_max = 4096};
    struct ws_blockrun *b = NULL;
    struct ws_exec_work work = {.n_thread_insns = 0};
    if (!params)
        return;
    for (uint32_t k = 0; k < words; k++)
        params[k] = k % 3 ? va + 256 * k : 5;
    if (info->local_bytes <= 1 << 16 && info->static_shared_bytes <= 1 << 20 &&
        ws_blockrun_new(&b, &g) == 0) {
        ws_blockrun_start(b, 1, 0, 0);
        for (int k = 0; k < STEPS && ws_blockrun_step(b, STEP_INSNS, &work) == WS_STEP_MORE; k++)
            ;
        ws_blockrun_free(b);
    }
    free(params);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t buf[BUF_BYTES];
    struct ws_ptx_module *m = NULL;
    struct ws_code *code = NULL;
    struct ws_space *space = NULL;
    struct ws_diags diags = WS_DIAGS_NULL;
    uint64_t va = UINT64_C(0x7f0000000000), *var_va = NULL;
    uint32_t n;
    if (ws_ptx_parse(&m, (const char *)data, size, NULL, &diags) != 0)
        goto out;
    int r = ws_code_new(&code, m, 0, &diags);
    if (r != 0 || ws_space_new(&space) != 0 || ws_space_map_host(space, va, BUF_BYTES, buf) != 0)
        goto out;
    var_va = calloc(m->n_vars + 1, sizeof(*var_va));
    for (uint32_t k = 0; var_va && k < m->n_vars; k++)
        var_va[k] = va + 512 * (k % 64);
    const struct ws_kernel_info *info = ws_code_kernels(code, &n);
    for (uint32_t k = 0; var_va && k < n; k++)
        if (!info[k].unsupported)
            run_kernel(code, k, &info[k], space, var_va, va);
        else if (!info[k].unsupported[0] || diags.n == 0)
            abort(); /* refused without a word */
out:
    free(var_va);
    if (space)
        ws_space_free(space);
    ws_code_free(code);
    ws_ptx_module_free(m);
    ws_diags_deinit(&diags);
    return 0;
}
