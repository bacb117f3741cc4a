// SPDX-License-Identifier: Apache-2.0
/* NVML for tests: the energy of the software GPUs that the mock driver in this process runs.
 * WS_MOCK_NVML_FAIL="NAME:CODE" makes a function fail. Clocks that are set become lines in the file
 * WS_MOCK_NVML_CLOCKS: "core 1200 1200", "core own". WS_MOCK_PERSISTENCE=0, WS_MOCK_MIG=1 and
 * WS_MOCK_COMPUTE_MODE=N say which modes the GPU is in. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static int failed(const char *name)
{
    const char *e = getenv("WS_MOCK_NVML_FAIL");
    size_t n = strlen(name);
    return e && !strncmp(e, name, n) && e[n] == ':' ? atoi(e + n + 1) : 0;
}

static uint64_t energy_mj(uint32_t *ret_mw)
{
    static uint64_t (*ask)(uint32_t *);
    if (!ask) {
        void *lib = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
        void *p = lib ? dlsym(lib, "ws_mock_energy_mj") : NULL;
        memcpy(&ask, &p, sizeof(p));
        if (lib)
            dlclose(lib); /* whoever opened it first keeps it */
    }
    *ret_mw = 0;
    return ask ? ask(ret_mw) : 0;
}

EXPORT int nvmlInit_v2(void);
EXPORT int nvmlShutdown(void);
EXPORT int nvmlDeviceGetHandleByUUID(const char *uuid, void **ret);
EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **ret);
EXPORT int nvmlDeviceGetPersistenceMode(void *d, unsigned *on);
EXPORT int nvmlDeviceGetMigMode(void *d, unsigned *now, unsigned *next);
EXPORT int nvmlDeviceGetComputeMode(void *d, unsigned *mode);
EXPORT int nvmlSystemGetDriverVersion(char *text, unsigned n);
EXPORT int nvmlDeviceGetTotalEnergyConsumption(void *d, unsigned long long *mj);
EXPORT int nvmlDeviceGetPowerUsage(void *d, unsigned *mw);
EXPORT int nvmlDeviceGetEnforcedPowerLimit(void *d, unsigned *mw);
EXPORT int nvmlDeviceGetClockInfo(void *d, int which, unsigned *mhz);
EXPORT int nvmlDeviceGetTemperature(void *d, int sensor, unsigned *celsius);

int nvmlInit_v2(void)
{
    return failed(__func__);
}
int nvmlShutdown(void)
{
    return 0;
}
int nvmlDeviceGetHandleByUUID(const char *uuid, void **ret)
{
    *ret = (void *)1;
    return strncmp(uuid, "GPU-", 4) || strlen(uuid) != 40 ? 2 : failed(__func__);
}
int nvmlSystemGetDriverVersion(char *text, unsigned n)
{
    snprintf(text, n, "mock");
    return failed(__func__);
}
int nvmlDeviceGetTotalEnergyConsumption(void *d, unsigned long long *mj)
{
    uint32_t mw;
    *mj = energy_mj(&mw);
    return failed(__func__);
}
int nvmlDeviceGetPowerUsage(void *d, unsigned *mw)
{
    (void)energy_mj(mw);
    return failed(__func__);
}
int nvmlDeviceGetEnforcedPowerLimit(void *d, unsigned *mw)
{
    *mw = 40000;
    return failed(__func__);
}
int nvmlDeviceGetClockInfo(void *d, int which, unsigned *mhz)
{
    *mhz = which == 1 ? 1500 : 7001;
    return failed(__func__);
}
int nvmlDeviceGetTemperature(void *d, int sensor, unsigned *celsius)
{
    *celsius = 40;
    return failed(__func__);
}

/* ---- modes ---- */

static unsigned mode(const char *variable, unsigned otherwise)
{
    const char *e = getenv(variable);
    return e ? (unsigned)atoi(e) : otherwise;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **ret)
{
    *ret = (void *)1;
    return i ? 2 : failed(__func__);
}
int nvmlDeviceGetPersistenceMode(void *d, unsigned *on)
{
    *on = mode("WS_MOCK_PERSISTENCE", 1);
    return failed(__func__);
}
int nvmlDeviceGetMigMode(void *d, unsigned *now, unsigned *next)
{
    *now = *next = mode("WS_MOCK_MIG", 0);
    return failed(__func__);
}
int nvmlDeviceGetComputeMode(void *d, unsigned *ret)
{
    *ret = mode("WS_MOCK_COMPUTE_MODE", 0);
    return failed(__func__);
}

/* ---- clocks ---- */

EXPORT int nvmlDeviceGetSupportedMemoryClocks(void *d, unsigned *io_n, unsigned *mhz);
EXPORT int nvmlDeviceGetSupportedGraphicsClocks(void *d, unsigned memory_mhz, unsigned *io_n,
                                                unsigned *mhz);
EXPORT int nvmlDeviceSetGpuLockedClocks(void *d, unsigned min_mhz, unsigned max_mhz);
EXPORT int nvmlDeviceSetMemoryLockedClocks(void *d, unsigned min_mhz, unsigned max_mhz);
EXPORT int nvmlDeviceResetGpuLockedClocks(void *d);
EXPORT int nvmlDeviceResetMemoryLockedClocks(void *d);

static int list(const unsigned *steps, unsigned n, unsigned *io_n, unsigned *mhz)
{
    if (*io_n < n)
        return 7; /* insufficient size */
    memcpy(mhz, steps, n * sizeof(*steps));
    *io_n = n;
    return 0;
}

static int set(const char *what, unsigned min_mhz, unsigned max_mhz)
{
    const char *path = getenv("WS_MOCK_NVML_CLOCKS");
    FILE *f = path ? fopen(path, "a") : NULL;
    if (!f)
        return 4; /* no permission */
    if (max_mhz)
        fprintf(f, "%s %u %u\n", what, min_mhz, max_mhz);
    else
        fprintf(f, "%s own\n", what);
    return fclose(f) ? 999 : 0;
}

int nvmlDeviceGetSupportedMemoryClocks(void *d, unsigned *io_n, unsigned *mhz)
{
    static const unsigned steps[] = {7001, 5001, 810};
    int r = failed(__func__);
    return r ? r : list(steps, 3, io_n, mhz);
}
int nvmlDeviceGetSupportedGraphicsClocks(void *d, unsigned memory_mhz, unsigned *io_n,
                                         unsigned *mhz)
{
    static const unsigned steps[] = {1500, 1410, 1200, 1005, 900, 705, 300};
    int r = failed(__func__);
    return r ? r : memory_mhz == 810 ? list(steps + 6, 1, io_n, mhz) : list(steps, 7, io_n, mhz);
}
int nvmlDeviceSetGpuLockedClocks(void *d, unsigned min_mhz, unsigned max_mhz)
{
    int r = failed(__func__);
    return r ? r : set("core", min_mhz, max_mhz);
}
int nvmlDeviceSetMemoryLockedClocks(void *d, unsigned min_mhz, unsigned max_mhz)
{
    int r = failed(__func__);
    return r ? r : set("memory", min_mhz, max_mhz);
}
int nvmlDeviceResetGpuLockedClocks(void *d)
{
    int r = failed(__func__);
    return r ? r : set("core", 0, 0);
}
int nvmlDeviceResetMemoryLockedClocks(void *d)
{
    int r = failed(__func__);
    return r ? r : set("memory", 0, 0);
}
