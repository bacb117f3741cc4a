// SPDX-License-Identifier: Apache-2.0
/* A library that keeps the driver's functions in variables of their names, and exports them, as
 * code does that can do without a driver. */
#include <dlfcn.h>
#include <stddef.h>

__attribute__((visibility("default"))) int (*cuInit)(unsigned);
__attribute__((visibility("default"))) int (*cuDriverGetVersion)(int *);
__attribute__((visibility("default"))) int library_opens_driver(void);

/* 0: the driver could not be opened; 1: cuInit() fails; 2: it does not. */
int library_opens_driver(void)
{
    void *h = dlopen("libcuda.so.1", RTLD_NOW);
    if (!h)
        return 0;
    *(void **)&cuInit = dlsym(h, "cuInit");
    *(void **)&cuDriverGetVersion = dlsym(h, "cuDriverGetVersion");
    int version = 0;
    if (!cuInit || !cuDriverGetVersion || cuDriverGetVersion(&version) || version < 12000)
        return 0;
    return cuInit(0) ? 1 : 2;
}
