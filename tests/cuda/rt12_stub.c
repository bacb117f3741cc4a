// SPDX-License-Identifier: Apache-2.0
/* The names of a runtime before CUDA 13 that rt12.c calls: as libcudart.so.12 to link with, and as
 * a static runtime, to be redirected. None of these functions may ever run: each says so and fails.
 */
#include <stdio.h>

int rt12_stub_ran(const char *name);
int __attribute__((noinline)) rt12_stub_ran(const char *name)
{
    printf("%s was not redirected\n", name);
    return 999;
}

#define STUB(name)                                                                                 \
    int name(void);                                                                                \
    int name(void)                                                                                 \
    {                                                                                              \
        return rt12_stub_ran(#name);                                                               \
    }
void **__cudaRegisterFatBinary(void *fatbin);
void **__cudaRegisterFatBinary(void *fatbin)
{
    return rt12_stub_ran("__cudaRegisterFatBinary") ? fatbin : NULL;
}
STUB(cudaThreadSynchronize)
STUB(cudaMalloc)
STUB(cudaMallocManaged)
STUB(cudaMemcpy)
STUB(cudaDeviceSynchronize)
STUB(cudaStreamCreate)
STUB(cudaStreamSynchronize)
STUB(cudaGraphCreate)
STUB(cudaGraphAddEmptyNode)
STUB(cudaGraphInstantiate)
STUB(cudaGraphLaunch)
STUB(cudaStreamBeginCapture)
STUB(cudaStreamEndCapture)
STUB(cudaMemsetAsync)
STUB(cudaGraphAddDependencies)
STUB(cudaGraphRemoveDependencies)
STUB(cudaGraphGetEdges)
STUB(cudaGraphNodeGetDependencies)
STUB(cudaGraphNodeGetDependentNodes)
STUB(cudaGraphAddNode)
STUB(cudaStreamGetCaptureInfo)
STUB(cudaStreamUpdateCaptureDependencies)
STUB(cudaMemAdvise)
STUB(cudaMemPrefetchAsync)
STUB(cudaMemcpyBatchAsync)
STUB(cudaPointerGetAttributes)
STUB(cudaMallocArray)
STUB(cudaCreateTextureObject)
STUB(cudaGetTextureObjectResourceDesc)
STUB(cudaGetTextureObjectResourceViewDesc)
STUB(cudaGetDeviceProperties_v2)
