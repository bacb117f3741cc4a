// SPDX-License-Identifier: Apache-2.0
/* frontend/module/link_inputs.h - the inputs of a linker. cuLink… and nvJitLink collect them here,
 * and get a container that the daemon links. Threads: not safe. */
#ifndef WS_FRONTEND_MODULE_LINK_INPUTS_H
#define WS_FRONTEND_MODULE_LINK_INPUTS_H

#include "frontend/session/link_image.h"

struct ws_link_inputs {
    struct ws_link_input *v; /* data and names are copies */
    size_t n, cap;
};
/* Takes PTX text, a fatbin, a cubin, a container (its parts), an object file of nvcc or an archive
 * of such: all relocatable fatbins of it. What it is, is seen from the bytes. Copies. Return: a
 * CUDA code: INVALID_IMAGE, NOT_SUPPORTED (said by name), OUT_OF_MEMORY. */
int ws_link_inputs_add(struct ws_link_inputs *l, const void *data, uint64_t bytes,
                       const char *name);
/* Whether an input's device code is NVVM's alone, which only nvJitLink can read. */
bool ws_link_input_is_nvvm(const void *data, uint64_t bytes);
void ws_link_inputs_deinit(struct ws_link_inputs *l);

#endif
