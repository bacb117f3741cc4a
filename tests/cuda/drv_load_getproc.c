// SPDX-License-Identifier: Apache-2.0
// The program looks up one symbol and asks it for all others, by their names without version, as
// NVIDIA's header documents.
#include <dlfcn.h>
#include "drv.h"

static CUresult (*get_proc)(const char *, void **, int, uint64_t, int *);

static void *lookup(const char *symbol)
{
    char name[64];
    void *p = NULL;
    int status = -1;
    snprintf(name, sizeof(name), "%s", symbol);
    if (strlen(name) > 3 && !strcmp(name + strlen(name) - 3, "_v2"))
        name[strlen(name) - 3] = 0;
    CUresult r = get_proc(name, &p, 12000, 0, &status);
    if (r || !p || status) {
        printf("FAIL driver: cuGetProcAddress(%s) gave %d, status %d\n", name, r, status);
        exit(1);
    }
    return p;
}

void drv_load(void)
{
    void *lib = dlopen("libcuda.so.1", RTLD_NOW), *p = NULL;
    int status = 0;
    if (!lib || !(*(void **)&get_proc = dlsym(lib, "cuGetProcAddress_v2"))) {
        printf("FAIL driver: %s\n", dlerror());
        exit(1);
    }
#define DRV_ASK(member, symbol, args) *(void **)&drv.member = lookup(#symbol);
    DRV_FUNCTIONS(DRV_ASK)
    if (!get_proc("cuNoSuchFunction", &p, 12000, 0, &status) || p ||
        status != 1 /* symbol not found */) {
        printf("FAIL driver: cuGetProcAddress knows cuNoSuchFunction, status %d\n", status);
        exit(1);
    }
}
