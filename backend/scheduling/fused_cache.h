// SPDX-License-Identifier: Apache-2.0
/* backend/scheduling/fused_cache.h - templates of merged launches, found by content: which
 * kernels (by the hash of their PTX text), how often each, and for which kind of GPU. Loader
 * threads make them. Their number is bounded. That a template can't be made is kept as well.
 * Threads: the loop's. */
#ifndef WS_BACKEND_SCHEDULING_FUSED_CACHE_H
#define WS_BACKEND_SCHEDULING_FUSED_CACHE_H

#include "backend/backend.h"
#include "templates/template.h"

/* Where a variable of a replacement (templates/manifest.h) is. */
struct ws_fused_bind {
    int32_t own; /* the program's of that number, or -1: */
    uint64_t at; /* in the constants that all share */
};
struct ws_fused_code {
    struct ws_template *template;
    /* by number in the replacement's module; NULL: the member's kernel is the program's own */
    struct ws_fused_bind *bind[WS_FUSE_MAX];
    uint8_t *constants;
    uint64_t constants_bytes;
    struct ws_dmodule *dmodule;
    uint32_t kernel;
    struct ws_fused_instance *instance; /* of the last launch */
    /* private */
    struct ws_fused_entry *entry;
};
struct ws_fused_kernel {
    const struct ws_module *module;
    uint32_t kernel; /* its number in module->code->info */
};
/* The order in which kernels stand in a template: the same for the same kernels. */
int ws_fused_kernel_cmp(const struct ws_fused_kernel *a, const struct ws_fused_kernel *b);
enum ws_fused_how {
    WS_FUSED_ANY,
    WS_FUSED_SAME_BLOCK, /* all blocks have one shape */
    WS_FUSED_LEADER      /* all are the same kernel, grid and block, given once */
};
/* @kernels: [@n] in that order. Return: 0 with a reference in *ret; WS_FUSED_E_REFUSED with
 *   *ret_why, valid until the next call; -EAGAIN: under way; -ENOMEM. */
WS_MUST_CHECK int ws_fused_cache_get(struct ws_server *s, struct ws_device *d,
                                     const struct ws_fused_kernel *kernels, uint32_t n,
                                     enum ws_fused_how how, const struct ws_fused_code **ret,
                                     const char **ret_why);
/* Where kernels see the constants of @c. Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_fused_cache_constants(struct ws_server *s, const struct ws_fused_code *c,
                                           uint64_t *ret_va);
/* The code with its variables at @var_va[variables of the template's module]: that of the last
 * launch, if they are where they were, since a real GPU's driver compiles code for its
 * addresses. Return: 0 with a reference, or negative. */
struct ws_fused_instance {
    struct ws_dinstance *instance;
    uint64_t *var_va;
    uint32_t n_refs;
};
WS_MUST_CHECK int ws_fused_cache_instance(struct ws_server *s, const struct ws_fused_code *c,
                                          const uint64_t *var_va, struct ws_fused_instance **ret);
void ws_fused_cache_instance_put(const struct ws_fused_code *c, struct ws_fused_instance *i);
void ws_fused_cache_counts(const struct ws_server *s, struct ws_fused_counts *ret);
void ws_fused_cache_put(const struct ws_fused_code *c);

#endif
