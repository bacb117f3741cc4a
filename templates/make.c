// SPDX-License-Identifier: Apache-2.0
/* How a template is made: copy each member under names of its own, link the copies, fence each,
 * fuse all, and drop the rest.
 *
 * Names of member k begin with "m<k>$", so that linking merges only the functions of the system.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "templates/template_private.h"

static void prefix_of(uint32_t k, char *buf, size_t size)
{
    snprintf(buf, size, "m%u$", k);
}

/* All members' copies in one module. */
static int link_copies(struct ws_ptx_module **ret, const struct ws_template_kernel *kernels,
                       uint32_t n, char *why, size_t why_bytes)
{
    struct ws_ptx_link_part parts[WS_FUSE_MAX];
    struct ws_diags diags = WS_DIAGS_NULL;
    int r = 0;
    uint32_t k = 0;
    for (; !r && k < n; k++) {
        char prefix[16];
        prefix_of(k, prefix, sizeof(prefix));
        parts[k] = (struct ws_ptx_link_part){.name = kernels[k].m->funcs[kernels[k].func].name};
        r = ws_template_copy(&parts[k].m, kernels[k].m, kernels[k].func, prefix);
    }
    if (r) {
        while (k-- > 1)
            ws_ptx_module_free(parts[k - 1].m);
        return ws_forward(r);
    }
    r = ws_ptx_link(ret, parts, n, 0, &diags);
    if (r > 0) { /* the system's functions, declared in two ways */
        char *text = ws_diags_text(&diags);
        snprintf(why, why_bytes, "%.180s", text ? text : "can't be linked");
        free(text);
        r = WS_PTX_E_UNSUPPORTED;
    }
    ws_diags_deinit(&diags);
    return r;
}

/* Index of member @k's function or variable that is called @name in its own module; -1: it isn't
 * there. */
int32_t ws_template_find_func(const struct ws_ptx_module *m, uint32_t k, const char *name)
{
    char prefix[16];
    prefix_of(k, prefix, sizeof(prefix));
    size_t n = strlen(prefix);
    for (uint32_t i = 0; i < m->n_funcs; i++)
        if (!strncmp(m->funcs[i].name, prefix, n) && !strcmp(m->funcs[i].name + n, name))
            return (int32_t)i;
    return -1;
}

static int32_t find_var(const struct ws_ptx_module *m, uint32_t k, const char *name)
{
    char prefix[16];
    prefix_of(k, prefix, sizeof(prefix));
    size_t n = strlen(prefix);
    for (uint32_t i = 0; i < m->n_vars; i++)
        if (!strncmp(m->vars[i].name, prefix, n) && !strcmp(m->vars[i].name + n, name))
            return (int32_t)i;
    return -1;
}

void ws_template_plain_constants(struct ws_ptx_module *m)
{
    for (uint32_t k = 0; k < m->n_vars; k++)
        if (m->vars[k].space == WS_SP_CONST)
            m->vars[k].space = WS_SP_GLOBAL;
    for (uint32_t k = 0; k < m->n_funcs; k++)
        for (uint32_t n = 0; n < m->funcs[k].n_insns; n++)
            if (m->funcs[k].insns[n].space == WS_SP_CONST)
                m->funcs[k].insns[n].space = WS_SP_GLOBAL;
}

static int fence_all(struct ws_template *t, const struct ws_template_kernel *kernels, uint32_t n,
                     uint32_t *ret_funcs, char *why, size_t why_bytes)
{
    for (uint32_t k = 0; k < n; k++) {
        const struct ws_ptx_func *own = &kernels[k].m->funcs[kernels[k].func];
        int32_t f = ws_template_find_func(t->ptx, k, own->name);
        if (f < 0)
            return ws_raise(-EIO);
        int r = ws_ptx_fence_refused(t->ptx, (uint32_t)f, why, why_bytes);
        if (r)
            return r < 0 ? ws_forward(r) : r;
        r = ws_ptx_fence(t->ptx, (uint32_t)f, &ret_funcs[k]);
        if (r)
            return ws_forward(r);
        r = ws_ptx_fuse_refused(t->ptx, ret_funcs[k], why, why_bytes);
        if (r)
            return r < 0 ? ws_forward(r) : r;
        const struct ws_ptx_func *made = &t->ptx->funcs[ret_funcs[k]];
        t->member[k].own_bytes = own->param_bytes;
        t->member[k].fence = made->params[made->n_params - 1].param_offset;
    }
    return 0;
}

int ws_template_place_vars(struct ws_template *t, const struct ws_template_kernel *kernels,
                           uint32_t n)
{
    for (uint32_t k = 0; k < n; k++) {
        const struct ws_ptx_module *m = kernels[k].m;
        t->member[k].n_vars = m->n_vars;
        t->member[k].var = ws_alloc_array((size_t)m->n_vars + 1, sizeof(int32_t));
        if (!t->member[k].var)
            return ws_raise(-ENOMEM);
        for (uint32_t v = 0; v < m->n_vars; v++)
            t->member[k].var[v] = find_var(t->ptx, k, m->vars[v].name);
    }
    return 0;
}

static int make(struct ws_template *t, const struct ws_template_kernel *kernels, uint32_t n,
                bool same_block, bool plain, char *why, size_t why_bytes)
{
    uint32_t funcs[WS_FUSE_MAX];
    int r = link_copies(&t->ptx, kernels, n, why, why_bytes);
    if (!r && plain) {
        ws_template_plain_constants(t->ptx);
        r = ws_ptx_texture(t->ptx);
    }
    if (!r)
        r = fence_all(t, kernels, n, funcs, why, why_bytes);
    if (!r) {
        r = ws_ptx_fuse_make(t->ptx, funcs, n, same_block, "ws$fused", &t->fused);
        if (r > 0)
            snprintf(why, why_bytes, "their parameters are too many for one launch");
    }
    if (!r)
        r = ws_template_prune(t->ptx, t->fused.func, &t->fused.func);
    if (!r)
        r = ws_template_place_vars(t, kernels, n);
    if (!r)
        t->ptx->fenced = true;
    return r < 0 ? ws_forward(r) : r;
}

int ws_template_make(struct ws_template **ret, const struct ws_template_kernel *kernels, uint32_t n,
                     bool same_block, bool plain, char *ret_why, size_t why_bytes)
{
    if (!n || n > WS_FUSE_MAX) {
        snprintf(ret_why, why_bytes, "%u members; 1 to %d go into a launch", n, WS_FUSE_MAX);
        return WS_PTX_E_UNSUPPORTED;
    }
    for (uint32_t k = 0; k < n; k++) {
        int r = ws_template_refused(kernels[k].m, kernels[k].func, ret_why, why_bytes);
        if (r)
            return r < 0 ? ws_forward(r) : r;
    }
    struct ws_template *t = ws_alloc(sizeof(*t));
    if (!t)
        return ws_raise(-ENOMEM);
    int r = make(t, kernels, n, same_block, plain, ret_why, why_bytes);
    if (r) {
        ws_template_free(t);
        return r < 0 ? ws_forward(r) : r;
    }
    *ret = t;
    return 0;
}

struct ws_template *ws_template_free(struct ws_template *t)
{
    if (!t)
        return NULL;
    for (uint32_t k = 0; k < WS_FUSE_MAX; k++)
        free(t->member[k].var);
    ws_ptx_module_free(t->ptx);
    free(t);
    return NULL;
}

int ws_template_launch(const struct ws_template *t, const struct ws_template_work *work,
                       uint8_t *params, struct ws_ptx_fuse_launch *ret)
{
    struct ws_ptx_fuse_work w[WS_FUSE_MAX];
    uint64_t bytes = 0;
    for (uint32_t k = 0; k < t->fused.n; k++)
        bytes += t->fused.member[k].param_bytes;
    uint8_t *all = ws_alloc(bytes + 1), *p = all;
    if (!all)
        return ws_raise(-ENOMEM);
    for (uint32_t k = 0; k < t->fused.n; k++) {
        if (!work[k].params) {
            w[k] = (struct ws_ptx_fuse_work){0};
            continue;
        }
        w[k] = (struct ws_ptx_fuse_work){.shared_bytes = work[k].shared_bytes, .params = p};
        memcpy(w[k].grid, work[k].grid, sizeof(w[k].grid));
        memcpy(w[k].block, work[k].block, sizeof(w[k].block));
        if (t->member[k].own_bytes)
            memcpy(p, work[k].params, t->member[k].own_bytes);
        memcpy(p + t->member[k].fence, &work[k].fence, sizeof(work[k].fence));
        p += t->fused.member[k].param_bytes;
    }
    int r = ws_ptx_fuse_launch(&t->fused, w, params, ret);
    free(all);
    return r < 0 ? ws_forward(r) : r;
}
