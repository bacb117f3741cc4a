// SPDX-License-Identifier: Apache-2.0
/* PTX text of any kind: no crash, no hang, memory in proportion; and what parses must print to the
 * same IR. */
#include <stdlib.h>

#include "ptx/ptx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_cfg(const struct ws_ptx_module *m)
{
    for (uint32_t k = 0; k < m->n_funcs; k++) {
        struct ws_arena a = WS_ARENA_NULL;
        struct ws_ptx_cfg c;
        if (ws_ptx_cfg_build(&c, &m->funcs[k], &a))
            abort();
        ws_arena_deinit(&a);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ws_ptx_module *m = NULL, *again = NULL;
    struct ws_diags d = WS_DIAGS_NULL;
    int r = ws_ptx_parse(&m, (const char *)data, size, "fuzz", &d);
    if ((r != 0) != (d.n > 0) || (r == 0) != (m != NULL) || r < 0)
        abort();
    if (!r) {
        char *out = NULL;
        size_t len = 0;
        FILE *f = open_memstream(&out, &len);
        if (m->arena.total_bytes > 64 * 1024 + 200 * size)
            abort();
        check_cfg(m);
        if (!f || ws_ptx_print(m, f))
            abort();
        fclose(f);
        if (ws_ptx_parse(&again, out, len, "printed", &d) || !ws_ptx_module_equal(m, again)) {
            char *t = ws_diags_text(&d);
            fprintf(stderr, "%s%s", t, out);
            abort();
        }
        free(out);
    }
    ws_ptx_module_free(m);
    ws_ptx_module_free(again);
    ws_diags_deinit(&d);
    return 0;
}
