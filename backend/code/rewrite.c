// SPDX-License-Identifier: Apache-2.0
/* Rewriting the kernels of a module while it is loaded. client/relaunch.c launches them. */
#include "backend/code/rewrite.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"

/* What of @choice kernel @k allows. Return: 0; 1: it stays as it is, @why; -ENOMEM. */
static int rewrite_one(struct ws_ptx_module *m, uint32_t k, const struct ws_rewrite_choice *choice,
                       struct ws_rewritten *ret, char *why, size_t why_bytes)
{
    uint32_t from = k, made = 0;
    bool flat;
    int r = 0;
    if (choice->fuse) {
        char name[4200];
        snprintf(name, sizeof(name), "%.4100s$fuse", m->funcs[k].name);
        r = ws_ptx_fuse_refused(m, k, why, why_bytes);
        if (!r)
            r = ws_ptx_fuse_make(m, (uint32_t[]){k, k, k}, 3, choice->same_block, name,
                                 &ret->fused);
        ret->from = k;
        ret->made = r ? 0 : ret->fused.func;
        return r;
    }
    if (choice->fence)
        r = ws_ptx_fence_refused(m, k, why, why_bytes);
    if (!r && choice->fence)
        r = ws_ptx_fence(m, k, &made);
    if (!r && choice->fence && choice->kind != WS_REWRITE_NONE)
        from = made;
    if (!r && choice->kind != WS_REWRITE_NONE)
        r = ws_ptx_rewrite_refused(m, from, choice->kind, &flat, why, why_bytes);
    if (!r && choice->kind != WS_REWRITE_NONE)
        r = ws_ptx_rewrite(m, from, choice->kind, &made);
    ret->from = from;
    ret->made = r ? 0 : made;
    return r;
}

int ws_rewrite_module(struct ws_ptx_module *m, uint32_t n_own,
                      const struct ws_rewrite_choice *choice, struct ws_rewritten **ret)
{
    struct ws_rewritten *all = ws_alloc_array((size_t)n_own + 1, sizeof(*all));
    uint32_t n = m->n_funcs, own = 0;
    if (!all)
        return ws_raise(-ENOMEM);
    *ret = all;
    for (uint32_t k = 0; k < n; k++) {
        char why[160] = "too many parameters";
        if (!m->funcs[k].is_entry || m->funcs[k].is_decl)
            continue;
        all[own].kernel = -1;
        int r = rewrite_one(m, k, choice, &all[own], why, sizeof(why));
        own++;
        if (r < 0)
            return ws_forward(r);
        if (r)
            ws_log(WS_DEBUG, "rewrite: kernel=%s stays as it is: %s", m->funcs[k].name, why);
    }
    return 0;
}

static bool flat_only(const struct ws_ptx_module *m, uint32_t func, enum ws_ptx_rewrite kind)
{
    char why[160];
    bool flat = false;
    return ws_ptx_rewrite_refused(m, func, kind, &flat, why, sizeof(why)) || flat;
}

/* Of what may not even be sliced, that may be the reason. */
static bool may_wait(const struct ws_ptx_module *m, const char *name)
{
    char why[160];
    bool flat;
    const struct ws_ptx_func *f = ws_ptx_find_func(m, name);
    return !f || ws_ptx_rewrite_refused(m, (uint32_t)(f - m->funcs), WS_REWRITE_SLICE, &flat, why,
                                        sizeof(why)) != 0;
}

void ws_rewrite_find(const struct ws_dmodule *module, uint32_t n_own,
                     const struct ws_rewrite_choice *choice, const struct ws_ptx_module *m,
                     struct ws_rewritten *all)
{
    const struct ws_dmodule_info *info = ws_dmodule_info(module);
    bool kind = choice->kind != WS_REWRITE_NONE;
    for (uint32_t k = 0; k < n_own; k++)
        for (uint32_t i = n_own; all[k].made && i < info->n_kernels; i++) {
            const struct ws_kernel_info *made = &info->kernels[i];
            if (strcmp(made->name, m->funcs[all[k].made].name) || made->unsupported)
                continue;
            uint32_t own = info->kernels[k].n_params;
            all[k].kernel = (int32_t)i;
            all[k].flat = kind && flat_only(m, all[k].from, choice->kind);
            all[k].fence_at = choice->fence ? (uint32_t)made->params[own].param_offset : 0;
            all[k].ctl_at = (uint32_t)made->params[made->n_params - 1].param_offset;
            all[k].waits = may_wait(m, info->kernels[k].name);
            all[k].module = module;
            all[k].own_bytes = info->kernels[k].param_bytes;
        }
}
