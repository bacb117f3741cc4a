// SPDX-License-Identifier: Apache-2.0
/* Usage: gate_calls GATE DRIVER. Fails if a function that should go through the gate's library
 * unchanged does not, or if one that the gate handles does. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void *gate, *driver;
static int n_wrong;

static void check(int good, const char *what)
{
    printf("%s: %s\n", good ? "ok" : "FAIL", what);
    n_wrong += !good;
}

static void *asked(const char *name, int version, unsigned long long flags)
{
    int (*get)(const char *, void **, int, unsigned long long, int *) = (int (*)(
        const char *, void **, int, unsigned long long, int *))dlsym(gate, "cuGetProcAddress_v2");
    void *p = NULL;
    int status = 0;
    return get(name, &p, version, flags, &status) ? NULL : p;
}

int main(int argc, char **argv)
{
    gate = argc == 3 ? dlopen(argv[1], RTLD_NOW) : NULL;
    driver = gate ? dlopen(argv[2], RTLD_NOW) : NULL;
    if (!driver) {
        fprintf(stderr, "FAIL: %s\n", dlerror());
        return 1;
    }
    int (*init)(unsigned) = (int (*)(unsigned))dlsym(gate, "cuInit");
    int (*table)(const void **, const void *) =
        (int (*)(const void **, const void *))dlsym(gate, "cuGetExportTable");
    int (*missing)(int, double, double) =
        (int (*)(int, double, double))dlsym(gate, "cuGraphicsMapResources");
    int (*launch)(void) = (int (*)(void))dlsym(gate, "cuGraphLaunch");
    const void *t = NULL;
    char id[16];
    check((void *)init != dlsym(driver, "cuInit") && !init(0), "cuInit by the real one");
    check(!table(&t, id) && t == id, "cuGetExportTable is asked of the real one");
    check(missing(1, 2, 3) == 801 && launch() == 801, "what the driver lacks is not supported");
    check(asked("cuLaunchKernel", 12040, 0) == dlsym(gate, "cuLaunchKernel"), "launches are ours");
    check(asked("cuMemcpyDtoH", 12040, 0) == dlsym(gate, "cuMemcpyDtoH_v2"), "waits are ours");
    check(asked("cuCtxSynchronize", 12040, 0) == dlsym(gate, "cuCtxSynchronize"),
          "…of the version that was asked for");
    check(asked("cuMemAlloc", 12040, 0) == dlsym(driver, "cuMemAlloc_v2"),
          "the rest is the real one's");
    check(asked("cuGetExportTable", 12040, 0) == dlsym(driver, "cuGetExportTable"),
          "cuGetExportTable is, too");
    check(asked("cuLaunchKernel", 12040, 2) == dlsym(driver, "cuLaunchKernel"),
          "what it does not export itself we don't stand before");
    check(!asked("cuNothingOfThatName", 12040, 0), "what it does not know we don't");
    return n_wrong != 0;
}
