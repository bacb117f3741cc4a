/* SPDX-License-Identifier: Apache-2.0 */
/* backend/code/kernels.h - what clients are told of the kernels and variables of a module. */
#ifndef WS_BACKEND_CODE_KERNELS_H
#define WS_BACKEND_CODE_KERNELS_H

#include "backend/code/cache.h"

/* The error of a launch of a kernel that can't run. */
Ws__Error ws_error_of_kernel(const struct ws_kernel_info *k);
/* Makes @code->packed, @code->variables and @code->places. Any thread that has the code alone.
 * Return: 0, WS_PTX_E_LIMIT (see @diags) or -ENOMEM. */
WS_MUST_CHECK int ws_kernels_pack(struct ws_code_entry *code, struct ws_diags *diags);
/* What a client is told of a module may not be more: it is one message. */
enum { WS_KERNELS_MAX_BYTES = 8 << 20 };
/* Of both in the packed ModuleInfo. */
enum { WS_KERNELS_FIELD = 1, WS_VARIABLES_FIELD = 2, WS_KERNELS_TAG_BYTES = 1 };

enum { WS_PACKED_ADDRESS_BYTES = 10 };
/* Copies @code->variables to @to, which has room for variables.n_bytes, with the addresses
 * @var_va[] by index; those without one are left out. Return: how many bytes. */
size_t ws_variables_tell(const struct ws_code_entry *code, const uint64_t *var_va, uint8_t *to);

#endif
