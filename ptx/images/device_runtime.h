/* SPDX-License-Identifier: Apache-2.0 */
/* ptx/images/device_runtime.h - NVIDIA's device runtime (libcudadevrt) among images that are to be
 * linked. Its own code drives hardware. Threads: any. */
#ifndef WS_PTX_IMAGES_DEVICE_RUNTIME_H
#define WS_PTX_IMAGES_DEVICE_RUNTIME_H

#include "ptx/ptx.h"

/* Whether a part is that, by the name of the member of its archive. */
bool ws_device_runtime_is(const char *name);
/* Whether we offer the function of this name. */
bool ws_device_runtime_has(const char *name);
/* A module with what we offer of it, if one of the @n parts calls that and none has it; else *ret
 * is NULL. Return: as ws_ptx_parse(). */
WS_MUST_CHECK int ws_device_runtime_for(struct ws_ptx_module **ret, struct ws_ptx_link_part *parts,
                                        size_t n, struct ws_diags *diags);

#endif
