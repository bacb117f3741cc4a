// SPDX-License-Identifier: Apache-2.0
#include "tests/process/lookalike.h"

#include <dlfcn.h>

__attribute__((visibility("default"))) int library_call(void);
int library_call(void)
{
    int n;
    volatile int code = cudaGetDeviceCount(&n); /* no jump: the return address tells who called */
    return code;
}

__attribute__((visibility("default"))) int library_error(void);
int library_error(void)
{
    volatile int code = cudaGetLastError();
    return code;
}

/* What a runtime does at its first call. */
__attribute__((visibility("default"))) int library_opens_driver(void);
int library_opens_driver(void)
{
    return dlopen("libcuda.so.1", RTLD_NOW) != NULL;
}
