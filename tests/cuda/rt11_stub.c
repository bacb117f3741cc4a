// SPDX-License-Identifier: Apache-2.0
/* The names of a runtime before CUDA 12 that rt11.c calls, as a static runtime, to be redirected.
 * As in rt12_stub.c none of these functions may ever run. */
#include <stdio.h>

int rt11_stub_ran(const char *name);
int __attribute__((noinline)) rt11_stub_ran(const char *name)
{
    printf("%s was not redirected\n", name);
    return 999;
}

#define STUB(name)                                                                                 \
    int name(void);                                                                                \
    int name(void)                                                                                 \
    {                                                                                              \
        return rt11_stub_ran(#name);                                                               \
    }
void **__cudaRegisterFatBinary(void *fatbin);
void **__cudaRegisterFatBinary(void *fatbin)
{
    return rt11_stub_ran("__cudaRegisterFatBinary") ? fatbin : NULL;
}
STUB(cudaThreadSynchronize)
STUB(cudaMalloc)
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
