// SPDX-License-Identifier: Apache-2.0
/* PTX text of any kind, all of whose kernels are rewritten by each pass that allows it, in the
 * order in which the daemon applies them: what comes out is valid, and prints to text that
 * parses. */
#include <stdlib.h>

#include "ptx/passes/devlib.h"
#include "ptx/passes/pass.h"

enum { MAX_KERNELS = 3 };
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct ws_ptx_module *m, const char *pass)
{
    struct ws_diags d = WS_DIAGS_NULL;
    if (ws_ptx_validate(m, pass, &d)) {
        char *t = ws_diags_text(&d);
        fprintf(stderr, "after %s:\n%s", pass, t);
        (void)!ws_ptx_print(m, stderr);
        abort();
    }
    ws_diags_deinit(&d);
}

static void check_printed(const struct ws_ptx_module *m)
{
    struct ws_ptx_module *again = NULL;
    struct ws_diags d = WS_DIAGS_NULL;
    size_t len;
    char *text = ws_ptx_print_text(m, &len);
    if (!text || ws_ptx_parse(&again, text, len, "printed", &d)) {
        char *t = ws_diags_text(&d);
        fprintf(stderr, "%s%s", t, text ? text : "");
        abort();
    }
    free(text);
    ws_ptx_module_free(again);
    ws_diags_deinit(&d);
}

/* Each pass is given what the one before has made. */
static void rewrite(struct ws_ptx_module *m, uint32_t func)
{
    char why[160];
    uint32_t uses, fenced, made;
    struct ws_ptx_fused fused;
    bool flat;
    if (ws_ptx_lib_uses(m, func, &uses))
        abort();
    if (uses && !ws_ptx_lib_refused(m, func, why, sizeof(why))) {
        if (ws_ptx_lib(m, func, &func))
            abort();
        check(m, "lib");
    }
    fenced = func;
    if (!ws_ptx_fence_refused(m, func, why, sizeof(why))) {
        if (ws_ptx_fence(m, func, &fenced))
            abort();
        check(m, "fence");
    }
    for (enum ws_ptx_rewrite kind = WS_REWRITE_SLICE; kind < _WS_REWRITE_N; kind++) {
        if (ws_ptx_rewrite_refused(m, fenced, kind, &flat, why, sizeof(why)))
            continue;
        if (ws_ptx_rewrite(m, fenced, kind, &made))
            abort();
        check(m, ws_ptx_rewrite_name(kind));
    }
    if (!ws_ptx_fuse_refused(m, fenced, why, sizeof(why))) {
        if (ws_ptx_fuse_make(m, (uint32_t[]){fenced, fenced}, 2, false, "fused$", &fused) < 0)
            abort();
        check(m, "fuse");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ws_ptx_module *m = NULL;
    struct ws_diags d = WS_DIAGS_NULL;
    if (!ws_ptx_parse(&m, (const char *)data, size, "fuzz", &d)) {
        uint32_t n = m->n_funcs;
        unsigned n_kernels = 0;
        if (ws_ptx_texture(m))
            abort();
        check(m, "texture");
        for (uint32_t k = 0; k < n && n_kernels < MAX_KERNELS; k++)
            if (m->funcs[k].is_entry && !m->funcs[k].is_decl) {
                rewrite(m, k);
                n_kernels++;
            }
        if (n_kernels)
            check_printed(m);
    }
    ws_ptx_module_free(m);
    ws_diags_deinit(&d);
    return 0;
}
