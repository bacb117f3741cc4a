// SPDX-License-Identifier: Apache-2.0
/* The names of a runtime before CUDA 12 that rt11.c calls, as a static runtime, to be redirected.
 * As in rt12_stub.c none of these functions may ever run. */
#include "tests/cuda/rt_older_stub.h"

STUB(cudaGetDeviceProperties)
STUB(cudaFuncGetAttributes)
STUB(cudaLibraryLoadData)
STUB(cudaLibraryGetKernel)
STUB(cudaMallocArray)
STUB(cudaCreateTextureObject)
STUB(cudaGetTextureObjectTextureDesc)
STUB(cudaGraphCreate)
STUB(cudaGraphAddEmptyNode)
STUB(cudaGraphInstantiate)
STUB(cudaGraphExecUpdate)
STUB(cudaGetDriverEntryPoint)
