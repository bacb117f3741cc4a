// SPDX-License-Identifier: Apache-2.0
/* frontend/blas/copy.c - matrices and vectors between host and device, with gaps on either side. */
#include "frontend/blas/blas.h"

/* Of libwattshare.so. */
int cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                      size_t height, int kind, void *stream);
int cudaStreamSynchronize(void *stream);

enum { COPY_AUTO = 4 /* cudaMemcpyDefault */ };

/* @cols pieces of @rows elements. */
static int copy(int64_t rows, int64_t cols, int64_t bytes, const void *from, int64_t from_ld,
                void *to, int64_t to_ld, void *stream, bool waits)
{
    if (rows < 0 || cols < 0 || bytes <= 0 || from_ld < WS_MAX(1, rows) || to_ld < WS_MAX(1, rows))
        return BLAS_INVALID;
    if (!rows || !cols)
        return BLAS_OK;
    int code = cudaMemcpy2DAsync(to, (size_t)(to_ld * bytes), from, (size_t)(from_ld * bytes),
                                 (size_t)(rows * bytes), (size_t)cols, COPY_AUTO, stream);
    if (!code && waits)
        code = cudaStreamSynchronize(stream);
    return code ? 11 /* CUBLAS_STATUS_MAPPING_ERROR */ : BLAS_OK;
}

#define MATRIX(I) (I rows, I cols, I bytes, const void *from, I from_ld, void *to, I to_ld)
#define MATRIX_ASYNC(I)                                                                            \
    (I rows, I cols, I bytes, const void *from, I from_ld, void *to, I to_ld, void *stream)
#define VECTOR(I) (I n, I bytes, const void *from, I from_step, void *to, I to_step)
#define VECTOR_ASYNC(I)                                                                            \
    (I n, I bytes, const void *from, I from_step, void *to, I to_step, void *stream)
#define COPIES(matrix, matrix_async, vector, vector_async)                                         \
    BLAS_BOTH(matrix, MATRIX, copy(rows, cols, bytes, from, from_ld, to, to_ld, NULL, true))       \
    BLAS_BOTH(matrix_async, MATRIX_ASYNC,                                                          \
              copy(rows, cols, bytes, from, from_ld, to, to_ld, stream, false))                    \
    BLAS_BOTH(vector, VECTOR, copy(1, n, bytes, from, from_step, to, to_step, NULL, true))         \
    BLAS_BOTH(vector_async, VECTOR_ASYNC,                                                          \
              copy(1, n, bytes, from, from_step, to, to_step, stream, false))
COPIES(cublasSetMatrix, cublasSetMatrixAsync, cublasSetVector, cublasSetVectorAsync)
COPIES(cublasGetMatrix, cublasGetMatrixAsync, cublasGetVector, cublasGetVectorAsync)
