/* SPDX-License-Identifier: Apache-2.0 */
/* backend/code/kernels.h - what clients are told of the kernels of a module. */
#ifndef WS_BACKEND_CODE_KERNELS_H
#define WS_BACKEND_CODE_KERNELS_H

#include "backend/code/cache.h"

/* The error of a launch of a kernel that can't run. */
Ws__Error ws_error_of_kernel(const struct ws_kernel_info *k);
/* Makes @code->packed. Any thread that has the code alone. Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_kernels_pack(struct ws_code_entry *code);
enum { WS_KERNELS_FIELD = 1, WS_KERNELS_TAG_BYTES = 1 }; /* of them in the packed ModuleInfo */

#endif
