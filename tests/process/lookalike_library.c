// SPDX-License-Identifier: Apache-2.0
#include "tests/process/lookalike.h"

#include <dlfcn.h>

__attribute__((visibility("default"))) int library_call(void);
int library_call(void)
{
    int n;
    return cudaGetDeviceCount(&n);
}

/* What a runtime does at its first call. */
__attribute__((visibility("default"))) int library_opens_driver(void);
int library_opens_driver(void)
{
    return dlopen("libcuda.so.1", RTLD_NOW) != NULL;
}
