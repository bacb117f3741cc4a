/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA Runtime side of the workloads: every call is checked. */
#ifndef WS_TESTS_CUDA_WORK_CUH
#define WS_TESTS_CUDA_WORK_CUH

#include <cuda_runtime.h>
#include "work.h"

#define CHECK(call)                                                                                \
    do {                                                                                           \
        cudaError_t check_error = (call);                                                          \
        if (check_error != cudaSuccess) {                                                          \
            work_fail(WORK, "%s:%d: %s gave %d %s", __FILE__, __LINE__, #call, (int)check_error,   \
                      cudaGetErrorName(check_error));                                              \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#define CHECK_LAUNCH() CHECK(cudaGetLastError())

#endif
