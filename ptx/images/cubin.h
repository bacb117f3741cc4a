/* SPDX-License-Identifier: Apache-2.0 */
/* ptx/images/cubin.h - machine code as nvcc and ptxas write it (ELF for NVIDIA's machine, "cubin"):
 * what it holds, by name. The code itself is the driver's business; nothing here looks into it.
 *
 * Source: files that nvcc 13.0 and ptxas 12.9 write for several architectures, readelf. Threads:
 * none. */
#ifndef WS_PTX_IMAGES_CUBIN_H
#define WS_PTX_IMAGES_CUBIN_H

#include "ptx/ptx.h"

struct ws_cubin_param {
    uint32_t offset, bytes; /* from the start of the parameters */
};
struct ws_cubin_kernel {
    const char *name;
    uint32_t n_params, param_bytes;
    struct ws_cubin_param *params; /* in their order */
    uint32_t n_regs;               /* per thread */
    uint32_t shared_bytes;         /* static; from sm_90 on with what the system takes */
    uint32_t local_bytes;          /* of a thread's frame */
    uint32_t max_threads[3];       /* __launch_bounds__, or 0 */
    uint32_t required_block[3];    /* .reqntid, or 0 */
};
struct ws_cubin_var {
    const char *name;
    bool constant, managed;
    uint64_t bytes;
    const uint8_t *init; /* [bytes], in the image; NULL: zeros */
};
struct ws_cubin {
    struct ws_arena arena;
    uint32_t sm;          /* 90 */
    uint32_t abi_version; /* 8; 7 before CUDA 13 */
    uint32_t n_kernels, n_vars, n_calls;
    struct ws_cubin_kernel *kernels;
    struct ws_cubin_var *vars;
    const char **calls; /* functions that it leaves to the driver: "vprintf" */
};

/* Reads [@image, @image + @len), which must outlive what is read where an initial value is looked
 * at. @name: for messages.
 * Return: 0, WS_PTX_E_FORMAT (damaged: what, and where), WS_PTX_E_UNSUPPORTED (named), -ENOMEM. */
WS_MUST_CHECK int ws_cubin_read(struct ws_cubin *ret, const void *image, size_t len,
                                const char *name, struct ws_diags *diags);
void ws_cubin_deinit(struct ws_cubin *c);

/* A module that stands for the machine code: its kernels and variables, without instructions, and a
 * copy of the image as m->code. Freed with ws_ptx_module_free(). Return: as ws_cubin_read(). */
WS_MUST_CHECK int ws_cubin_module(struct ws_ptx_module **ret, const void *image, size_t len,
                                  const char *name, struct ws_diags *diags);

#endif
