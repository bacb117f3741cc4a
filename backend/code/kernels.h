/* SPDX-License-Identifier: Apache-2.0 */
/* backend/code/kernels.h - what clients are told of the kernels and variables of a module. */
#ifndef WS_BACKEND_CODE_KERNELS_H
#define WS_BACKEND_CODE_KERNELS_H

#include "backend/code/cache.h"

/* The error of a launch of a kernel that can't run. */
Ws__Error ws_error_of_kernel(const struct ws_kernel_info *k);
/* Makes @code->packed and @code->variables. Any thread that has the code alone. Return: 0 or
 * -ENOMEM. */
WS_MUST_CHECK int ws_kernels_pack(struct ws_code_entry *code);
/* Of both in the packed ModuleInfo. */
enum { WS_KERNELS_FIELD = 1, WS_VARIABLES_FIELD = 2, WS_KERNELS_TAG_BYTES = 1 };

/* Whether a variable has a place in the memory of the GPU, of which the program is told. */
bool ws_variable_has_address(const struct ws_ptx_var *v);
enum { WS_PACKED_ADDRESS_BYTES = 10 };
/* Copies @code->variables to @to, which has room for variables.n_bytes, with the addresses
 * @var_va[] by index; those without one are left out. Return: how many bytes. */
size_t ws_variables_tell(const struct ws_code_entry *code, const uint64_t *var_va, uint8_t *to);

#endif
