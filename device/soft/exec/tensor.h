/* SPDX-License-Identifier: Apache-2.0 */
/* device/soft/exec/tensor.h - the boxes of tensors that cp.async.bulk.tensor copies, row by row.
 * Private to the interpreter. Source: PTX ISA 9.0, 5.5 "Tensors", 9.7.9.27. */
#ifndef WS_DEVICE_SOFT_EXEC_TENSOR_H
#define WS_DEVICE_SOFT_EXEC_TENSOR_H

#include "base/texture.h"
#include "device/soft/exec/async.h"

/* A box at the coordinates that a lane gives. */
struct ws_tensor_box {
    struct ws_tensor_map map;
    int64_t at[WS_TENSOR_DIMS];
    uint32_t n[WS_TENSOR_DIMS]; /* elements of it */
    uint32_t each, row_bytes;   /* bytes of an element; of a row */
    uint32_t pitch;             /* from row to row in shared memory */
    uint64_t n_rows, done;
};
/* A row of it: what there is of the row in the tensor begins at @skip and has @bytes, at @va. */
struct ws_tensor_row {
    uint64_t va, shared; /* shared: from where the box begins there */
    uint32_t skip, bytes;
};

/* Return: false: what the address names is no map that is supported, or of other dimensions. */
bool ws_tensor_box(struct ws_core_ctx *c, const struct ws_asyncop *o, unsigned lane,
                   struct ws_tensor_box *ret);
/* Return: false: there are no more. */
bool ws_tensor_next(struct ws_tensor_box *b, struct ws_tensor_row *ret);
/* One lane's copy or reduction. Return: false if the kernel was faulted. */
bool ws_exec_tensor(struct ws_core_ctx *c, const struct ws_uop *u, const struct ws_asyncop *o,
                    unsigned lane);
/* tensormap.replace and tensormap.cp_fenceproxy of one lane. */
bool ws_exec_tensor_map(struct ws_core_ctx *c, const struct ws_uop *u, const struct ws_asyncop *o,
                        unsigned lane);

#endif
