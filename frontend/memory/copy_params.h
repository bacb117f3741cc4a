// SPDX-License-Identifier: Apache-2.0
/* frontend/memory/copy_params.h - what a program writes about a copy, as the session knows it.
 * Threads: any. All return a CUDA code. */
#ifndef WS_FRONTEND_MEMORY_COPY_PARAMS_H
#define WS_FRONTEND_MEMORY_COPY_PARAMS_H

#include "frontend/cuda_types.h"
#include "frontend/session/session.h"

/* The direction that a cudaMemcpyKind stands for. INVALID_DIRECTION: it is none. */
int ws_copy_direction(int kind, enum ws_copy_dir *ret);
/* Sides, box and direction of a copy of a box. INVALID_HANDLE: an array that is none.
 * INVALID_VALUE: what CUDA does not allow. */
int ws_copy_sides_rt(const struct cuda_memcpy_3d_parms *p, struct ws_copy_side *dst,
                     struct ws_copy_side *src, struct ws_copy_box *box, enum ws_copy_dir *dir);
int ws_copy_sides_drv(const struct cu_memcpy_3d *m, struct ws_copy_side *dst,
                      struct ws_copy_side *src, struct ws_copy_box *box, enum ws_copy_dir *dir);

#endif
