/* SPDX-License-Identifier: Apache-2.0 */
/* templates/manifest.h - kernels made by hand that stand for programs' own in fused launches.
 *
 * A directory holds PTX files and a file "manifest". Each of its lines names a kernel of programs,
 * by name and parameters, and perhaps by the image it comes in, and the kernel that does its work:
 *
 *     aes_ctr(u64,u64,u64,u32)                      encryption.ptx aes_ctr_shared
 *     _Z4sortPji(u64,u32) sha256:1f…(64 digits)     sorting.ptx    sort
 *
 * The replacement is fenced and fused as the program's own would be, so that a wrong one harms its
 * own client alone. Variables that it has under a name and of a size that the program's module has,
 * too, are the program's; other .const ones are the replacement's own, with their initial values,
 * once for all instances. Threads: any; immutable once read. */
#ifndef WS_TEMPLATES_MANIFEST_H
#define WS_TEMPLATES_MANIFEST_H

#include "base/diag.h"
#include "ptx/ptx.h"

struct ws_template_replacement {
    const char *kernel,
        *params; /* of the program's: "aes_ctr", "b64,b64,b64,b32": integers by their size */
    bool by_image;
    uint8_t sha256[32]; /* of the image, if by_image */
    const struct ws_ptx_module *m;
    uint32_t func;
};

struct ws_template_manifest;
/**
 * ws_template_manifest_read() - read the manifest of a directory, and all that it names
 * @ret: out; untouched unless 0 is returned
 * @diags: gets file:line of what is wrong, all of it
 *
 * Return: 0; WS_PTX_E_SYNTAX: something is wrong, nothing is used; -ENOMEM.
 */
WS_MUST_CHECK int ws_template_manifest_read(struct ws_template_manifest **ret, const char *dir,
                                            struct ws_diags *diags);
struct ws_template_manifest *
ws_template_manifest_free(struct ws_template_manifest *t); /* NULL ok */
/* What stands for kernel @func of @m, which came in the image of that hash; NULL: nothing. An entry
 * for the image wins over one for any.
 * @t may be NULL. */
const struct ws_template_replacement *
ws_template_manifest_find(const struct ws_template_manifest *t, const struct ws_ptx_module *m,
                          uint32_t func, const uint8_t *sha256);
size_t ws_template_manifest_n(const struct ws_template_manifest *t);

#endif
