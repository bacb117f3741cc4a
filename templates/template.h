/* SPDX-License-Identifier: Apache-2.0 */
/* templates/template.h - one module, with one kernel, that does the work of several clients'
 * kernels in one launch.
 *
 * Each member's kernel is copied with the functions and variables it uses, under names of its own;
 * fenced (ws_ptx_fence()), so that it reaches nothing but its client's memory; and fused with the
 * others (ws_ptx_fuse_make()). What a kernel does that neither a fence nor a part of a launch keeps
 * to one client is refused, with the PTX line. The variables of the new module are the clients'
 * own: whoever launches it says where they are, and nothing is loaded again.
 * Threads: any; a template is immutable. Source: section V of Li, Byna, Chakradhar, "Energy-Aware
 * Workload Consolidation on GPU" (2011). */
#ifndef WS_TEMPLATES_TEMPLATE_H
#define WS_TEMPLATES_TEMPLATE_H

#include "ptx/passes/pass.h"

/* One to be a member. */
struct ws_template_kernel {
    const struct ws_ptx_module *m; /* borrowed while the template is made */
    uint32_t func;                 /* an .entry with a body */
};

struct ws_template {
    struct ws_ptx_module *ptx; /* its only kernel is the fused one */
    struct ws_ptx_fused fused; /* fused.func counts in ptx */
    struct ws_template_member {
        uint64_t own_bytes; /* of its kernel's parameters */
        uint64_t fence;     /* where among the member's parameters struct ws_ptx_fence stands */
        uint32_t n_vars;
        /* [n_vars]: by number in the kernel's own module: its number in ptx, or -1: not used.
         * malloc'ed. */
        int32_t *var;
    } member[WS_FUSE_MAX];
    /* One kernel for many instances (leader.c): fused.func, fused.param_bytes and member[0] count.
     */
    bool leader;
    uint64_t record_bytes; /* of one instance */
    uint64_t vars_at; /* where the addresses of its variables are in a record, by number in ptx */
};

/* Why a kernel can't share a launch with other clients'. Return: 0: it can; WS_PTX_E_UNSUPPORTED
 * with @ret_why; -ENOMEM. */
WS_MUST_CHECK int ws_template_refused(const struct ws_ptx_module *m, uint32_t func, char *ret_why,
                                      size_t why_bytes);
/**
 * ws_template_make() - fuse
 * @ret: out; untouched unless 0 is returned
 * @kernels: [@n], borrowed; the same one may stand there several times
 * @n: 1…WS_FUSE_MAX
 * @same_block: only for launches in which all members' blocks have one shape
 * @plain: for a device to whose kernels textures and constants are plain memory
 *   (ws_device.plain_memory): they become that first, so that each member's fence is before these
 *   accesses, too
 * @ret_why: where WS_PTX_E_UNSUPPORTED is returned, the reason
 *
 * Return: 0; WS_PTX_E_UNSUPPORTED; -ENOMEM.
 */
WS_MUST_CHECK int ws_template_make(struct ws_template **ret,
                                   const struct ws_template_kernel *kernels, uint32_t n,
                                   bool same_block, bool plain, char *ret_why, size_t why_bytes);
/* The same for any number of launches of one kernel with one grid and one block shape. */
WS_MUST_CHECK int ws_template_make_leader(struct ws_template **ret,
                                          const struct ws_template_kernel *kernel, bool plain,
                                          char *ret_why, size_t why_bytes);
struct ws_template *ws_template_free(struct ws_template *t); /* NULL ok; returns NULL */

/* One member's launch. */
struct ws_template_work {
    uint32_t grid[3], block[3], shared_bytes; /* dynamic */
    /* own_bytes of them, borrowed; NULL: this member has no work (not for a leader). */
    const void *params;
    struct ws_ptx_fence fence;
};
/* What the one launch is given. @work: [t->fused.n]; @params: gets t->fused.param_bytes.
 * Return: 0; WS_PTX_E_UNSUPPORTED (shapes that don't go together); -ENOMEM. */
WS_MUST_CHECK int ws_template_launch(const struct ws_template *t,
                                     const struct ws_template_work *work, uint8_t *params,
                                     struct ws_ptx_fuse_launch *ret);
/* The same of a leader: blocks of instance k are [k, k + 1) times those of one. @var_va: [@n]:
 * addresses of each instance's variables, by number in the kernel's own module. @table: gets @n
 * records; the kernel finds them at @table_va, where no client may write. */
WS_MUST_CHECK int ws_template_lead(const struct ws_template *t, const struct ws_template_work *work,
                                   const uint64_t *const *var_va, uint32_t n, uint8_t *table,
                                   uint64_t table_va, uint8_t *params,
                                   struct ws_ptx_fuse_launch *ret);

#endif
