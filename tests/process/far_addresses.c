// SPDX-License-Identifier: Apache-2.0
/* far_addresses DRIVER - reserves 3 TiB of addresses and gives them back at its end, so that a
 * daemon, which gives addresses out in ascending order, goes on behind them (nested.sh). */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static void *get(void *driver, const char *name)
{
    void *p = dlsym(driver, name);
    if (!p)
        fprintf(stderr, "no %s\n", name);
    return p;
}

int main(int argc, char **argv)
{
    int (*init)(unsigned), (*retain)(void **, int), (*set)(void *);
    int (*reserve)(uint64_t *, size_t, size_t, uint64_t, unsigned long long);
    void *driver = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL, *ctx = NULL, *f[4];
    uint64_t va = 0;
    if (!driver) {
        fprintf(stderr, "%s\n", argc == 2 ? dlerror() : "usage: far_addresses DRIVER");
        return 2;
    }
    f[0] = get(driver, "cuInit");
    f[1] = get(driver, "cuDevicePrimaryCtxRetain");
    f[2] = get(driver, "cuCtxSetCurrent");
    f[3] = get(driver, "cuMemAddressReserve");
    if (!f[0] || !f[1] || !f[2] || !f[3])
        return 1;
    memcpy(&init, &f[0], sizeof(init));
    memcpy(&retain, &f[1], sizeof(retain));
    memcpy(&set, &f[2], sizeof(set));
    memcpy(&reserve, &f[3], sizeof(reserve));
    int r = init(0);
    if (!r)
        r = retain(&ctx, 0);
    if (!r)
        r = set(ctx);
    if (!r)
        r = reserve(&va, (size_t)3 << 40, 0, 0, 0);
    if (r)
        fprintf(stderr, "the driver says %d\n", r);
    return r != 0;
}
