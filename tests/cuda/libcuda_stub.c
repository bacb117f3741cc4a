// SPDX-License-Identifier: Apache-2.0
// The driver's symbols for linking, like the stub of a toolkit.
#include "drv.h"

#define DRV_STUB(member, symbol, args)                                                             \
    CUresult symbol args;                                                                          \
    CUresult symbol args                                                                           \
    {                                                                                              \
        return 34; /* CUDA_ERROR_STUB_LIBRARY */                                                   \
    }
#pragma GCC diagnostic ignored "-Wpedantic"
DRV_FUNCTIONS(DRV_STUB)
