// SPDX-License-Identifier: Apache-2.0
/* frontend/blas/missing.c - the rest of cuBLAS. NVIDIA's own functions would be given a handle of
 * ours. A row of missing.def for a function that is done does not link. */
#include "frontend/blas/blas.h"

/* A function that looks at no argument can be called with any (System V ABI). */
#define BLAS_NONE(name)                                                                            \
    BLAS_API(name, (void))                                                                         \
    {                                                                                              \
        return ws_blas_not_supported(#name);                                                       \
    }
#include "frontend/blas/missing.def"
