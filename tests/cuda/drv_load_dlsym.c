// SPDX-License-Identifier: Apache-2.0
// The program opens libcuda.so.1 and looks its symbols up.
#include <dlfcn.h>
#include "drv.h"

void drv_load(void)
{
    void *lib = dlopen("libcuda.so.1", RTLD_NOW);
    if (!lib) {
        printf("FAIL driver: %s\n", dlerror());
        exit(1);
    }
#define DRV_LOOKUP(member, symbol, args)                                                           \
    if (!(*(void **)&drv.member = dlsym(lib, #symbol))) {                                          \
        printf("FAIL driver: libcuda.so.1 has no %s\n", #symbol);                                  \
        exit(1);                                                                                   \
    }
    DRV_FUNCTIONS(DRV_LOOKUP)
}
