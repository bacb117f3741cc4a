// SPDX-License-Identifier: Apache-2.0
/* models/kernel_hash.h - the name under which a kernel's profile is kept: a hash of what it
 * executes. Threads: any. */
#ifndef WS_MODELS_KERNEL_HASH_H
#define WS_MODELS_KERNEL_HASH_H

#include "models/store.h"
#include "ptx/analysis/reach.h"
#include "ptx/ptx.h"

/**
 * ws_kernel_hash() - SHA-256 of a kernel's code, in hexadecimal
 * @f: with a body
 *
 * Over the kernel and all functions that it may come to, as they stand in the IR: parameters,
 * launch bounds, labels, instructions, and the sizes and spaces (not the contents) of the variables
 * they name. So the same code has the same hash in whatever module it stands and whatever the data;
 * where it was written (lines) and what else the module holds don't count. Return: 0, -EINVAL (no
 * body), -ENOMEM.
 */
WS_MUST_CHECK int ws_kernel_hash(const struct ws_ptx_module *m, const struct ws_ptx_func *f,
                                 char ret[static WS_PROFILE_HASH_BYTES]);
/* The same for many kernels of one module. @reach: of that module; its last search is forgotten. */
WS_MUST_CHECK int ws_kernel_hash_of(struct ws_ptx_reach *reach, const struct ws_ptx_func *f,
                                    char ret[static WS_PROFILE_HASH_BYTES]);

#endif
