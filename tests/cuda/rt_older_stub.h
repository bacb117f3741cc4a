/* SPDX-License-Identifier: Apache-2.0 */
/* tests/cuda/rt_older_stub.h - STUB(name) makes a function of a runtime that may never run: it says
 * so and fails. What every runtime has is here, too. */
#ifndef WS_TESTS_CUDA_RT_OLDER_STUB_H
#define WS_TESTS_CUDA_RT_OLDER_STUB_H

#include <stdio.h>

int rt_older_stub_ran(const char *name);
int __attribute__((noinline)) rt_older_stub_ran(const char *name)
{
    printf("%s was not redirected\n", name);
    return 999;
}

#define STUB(name)                                                                                 \
    int name(void);                                                                                \
    int name(void)                                                                                 \
    {                                                                                              \
        return rt_older_stub_ran(#name);                                                           \
    }
void **__cudaRegisterFatBinary(void *fatbin);
void **__cudaRegisterFatBinary(void *fatbin)
{
    return rt_older_stub_ran("__cudaRegisterFatBinary") ? fatbin : NULL;
}
STUB(cudaThreadSynchronize)
STUB(cudaMalloc)

#endif
