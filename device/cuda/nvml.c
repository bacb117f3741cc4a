// SPDX-License-Identifier: Apache-2.0
/* NVML, opened at run time. A call that is not supported, not permitted or missing is never made
 * again; after other failures (a busy GPU, a wrong argument) it is. */
#include "device/cuda/nvml.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

enum { NVML_SUCCESS, NVML_NOT_SUPPORTED = 3, NVML_NO_PERMISSION = 4, NVML_FUNCTION_NOT_FOUND = 13 };
enum { CLOCK_SM = 1, CLOCK_MEMORY = 2, SENSOR_GPU = 0 };
typedef struct nvml_device_st *nvml_device;

struct ws_nvml {
    void *library;
    nvml_device device;
    int (*shutdown)(void);
    int (*energy)(nvml_device d, unsigned long long *mj);
    int (*power)(nvml_device d, unsigned *mw);
    int (*limit)(nvml_device d, unsigned *mw);
    int (*clock)(nvml_device d, int which, unsigned *mhz);
    int (*temperature)(nvml_device d, int sensor, unsigned *celsius);
    int (*memory_steps)(nvml_device d, unsigned *io_n, unsigned *mhz);
    int (*core_steps)(nvml_device d, unsigned memory_mhz, unsigned *io_n, unsigned *mhz);
    int (*lock_core)(nvml_device d, unsigned min_mhz, unsigned max_mhz);
    int (*lock_memory)(nvml_device d, unsigned min_mhz, unsigned max_mhz);
    int (*unlock_core)(nvml_device d);
    int (*unlock_memory)(nvml_device d);
    char why[_WS_NVML_N][48]; /* not empty: off */
    char driver[80];
};

static void *sym(void *library, const char *name)
{
    return dlsym(library, name);
}
#define FIND(n, field, name)                                                                       \
    do {                                                                                           \
        void *p_ = sym((n)->library, (name));                                                      \
        memcpy(&(n)->field, &p_, sizeof(p_));                                                      \
    } while (0)

static void uuid_text(const char *uuid, char *out, size_t size)
{
    size_t n = (size_t)snprintf(out, size, "GPU-");
    for (int i = 0; i < 16 && n < size; i++)
        n += (size_t)snprintf(out + n, size - n, "%s%02x",
                              i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                              (unsigned char)uuid[i]);
}

struct ws_nvml *ws_nvml_open(const char *library, const char *uuid, char *why, size_t why_bytes)
{
    int (*init)(void), (*by_uuid)(const char *, nvml_device *), (*version)(char *, unsigned);
    library = library ? library : "libnvidia-ml.so.1";
    struct ws_nvml *n = ws_alloc(sizeof(*n));
    if (!n) {
        snprintf(why, why_bytes, "out of memory");
        return NULL;
    }
    n->library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!n->library) {
        snprintf(why, why_bytes, "%s", dlerror());
        free(n);
        return NULL;
    }
    void *p[] = {sym(n->library, "nvmlInit_v2"), sym(n->library, "nvmlDeviceGetHandleByUUID"),
                 sym(n->library, "nvmlSystemGetDriverVersion")};
    memcpy(&init, &p[0], sizeof(init));
    memcpy(&by_uuid, &p[1], sizeof(by_uuid));
    memcpy(&version, &p[2], sizeof(version));
    FIND(n, shutdown, "nvmlShutdown");
    FIND(n, energy, "nvmlDeviceGetTotalEnergyConsumption");
    FIND(n, power, "nvmlDeviceGetPowerUsage");
    FIND(n, limit, "nvmlDeviceGetEnforcedPowerLimit");
    FIND(n, clock, "nvmlDeviceGetClockInfo");
    FIND(n, temperature, "nvmlDeviceGetTemperature");
    FIND(n, memory_steps, "nvmlDeviceGetSupportedMemoryClocks");
    FIND(n, core_steps, "nvmlDeviceGetSupportedGraphicsClocks");
    FIND(n, lock_core, "nvmlDeviceSetGpuLockedClocks");
    FIND(n, lock_memory, "nvmlDeviceSetMemoryLockedClocks");
    FIND(n, unlock_core, "nvmlDeviceResetGpuLockedClocks");
    FIND(n, unlock_memory, "nvmlDeviceResetMemoryLockedClocks");
    int r = init && by_uuid && n->shutdown ? init() : NVML_FUNCTION_NOT_FOUND;
    if (r) {
        snprintf(why, why_bytes, "NVML does not start (error %d)", r);
        dlclose(n->library);
        free(n);
        return NULL;
    }
    char name[64];
    uuid_text(uuid, name, sizeof(name));
    r = by_uuid(name, &n->device);
    if (r) {
        snprintf(why, why_bytes, "NVML does not know %s (error %d)", name, r);
        return ws_nvml_close(n);
    }
    if (!version || version(n->driver, sizeof(n->driver)))
        n->driver[0] = 0;
    return n;
}

struct ws_nvml *ws_nvml_close(struct ws_nvml *n)
{
    if (n) {
        n->shutdown();
        dlclose(n->library);
        free(n);
    }
    return NULL;
}

static int ask(struct ws_nvml *n, enum ws_nvml_call call, uint64_t *ret)
{
    unsigned long long mj = 0;
    unsigned v = 0;
    int r = NVML_FUNCTION_NOT_FOUND;
    switch (call) {
    case WS_NVML_ENERGY:
        r = n->energy ? n->energy(n->device, &mj) : r;
        *ret = mj;
        return r;
    case WS_NVML_POWER:
        r = n->power ? n->power(n->device, &v) : r;
        break;
    case WS_NVML_POWER_LIMIT:
        r = n->limit ? n->limit(n->device, &v) : r;
        break;
    case WS_NVML_SM_CLOCK:
    case WS_NVML_MEMORY_CLOCK:
        r = n->clock ? n->clock(n->device, call == WS_NVML_SM_CLOCK ? CLOCK_SM : CLOCK_MEMORY, &v)
                     : r;
        break;
    default:
        r = n->temperature ? n->temperature(n->device, SENSOR_GPU, &v) : r;
    }
    *ret = v;
    return r;
}

static const char *reason(int r)
{
    switch (r) {
    case NVML_NOT_SUPPORTED:
        return "not supported";
    case NVML_NO_PERMISSION:
        return "no permission";
    default:
        return "not in this NVML";
    }
}

bool ws_nvml_read(struct ws_nvml *n, enum ws_nvml_call call, uint64_t *ret)
{
    if (!n || n->why[call][0])
        return false;
    int r = ask(n, call, ret);
    if (r == NVML_NOT_SUPPORTED || r == NVML_NO_PERMISSION || r == NVML_FUNCTION_NOT_FOUND)
        snprintf(n->why[call], sizeof(n->why[call]), "%s (%d)", reason(r), r);
    return r == NVML_SUCCESS;
}

const char *ws_nvml_why_not(const struct ws_nvml *n, enum ws_nvml_call call)
{
    return n && n->why[call][0] ? n->why[call] : NULL;
}

const char *ws_nvml_driver(const struct ws_nvml *n)
{
    return n ? n->driver : "";
}

/* ---- setting ---- */

enum { STEPS_MAX = 1024 };

/* The lowest step that is not below @want, or the highest. */
static unsigned step_for(const unsigned *steps, unsigned n, unsigned want)
{
    unsigned above = 0, highest = 0;
    for (unsigned k = 0; k < n; k++) {
        highest = WS_MAX(highest, steps[k]);
        if (steps[k] >= want && (!above || steps[k] < above))
            above = steps[k];
    }
    return above ? above : highest;
}

static int lock_core(struct ws_nvml *n, unsigned want, unsigned memory_mhz, unsigned *ret)
{
    unsigned steps[STEPS_MAX], n_steps = STEPS_MAX;
    if (!n->core_steps || !n->lock_core)
        return NVML_FUNCTION_NOT_FOUND;
    int r = n->core_steps(n->device, memory_mhz, &n_steps, steps);
    *ret = r ? 0 : step_for(steps, WS_MIN(n_steps, (unsigned)STEPS_MAX), want);
    return r ? r : n->lock_core(n->device, *ret, *ret);
}

/* *ret: the clock that the memory runs at, locked or not; the possible core clocks depend on it. */
static int lock_memory(struct ws_nvml *n, unsigned want, unsigned *ret)
{
    unsigned steps[STEPS_MAX], n_steps = STEPS_MAX;
    int r = n->memory_steps ? n->memory_steps(n->device, &n_steps, steps) : NVML_FUNCTION_NOT_FOUND;
    if (r)
        return r;
    n_steps = WS_MIN(n_steps, (unsigned)STEPS_MAX);
    *ret = step_for(steps, n_steps, want ? want : UINT32_MAX);
    if (!want)
        return n->unlock_memory ? n->unlock_memory(n->device) : NVML_SUCCESS;
    if (n_steps == 1) /* the memory has no other clock */
        return NVML_SUCCESS;
    return n->lock_memory ? n->lock_memory(n->device, *ret, *ret) : NVML_FUNCTION_NOT_FOUND;
}

static int error_of(int r)
{
    switch (r) {
    case NVML_SUCCESS:
        return 0;
    case NVML_NO_PERMISSION:
        return -EPERM;
    case NVML_NOT_SUPPORTED:
    case NVML_FUNCTION_NOT_FOUND:
        return -ENOTSUP;
    default:
        return -EIO;
    }
}

int ws_nvml_lock_clocks(struct ws_nvml *n, uint32_t core_mhz, uint32_t memory_mhz,
                        uint32_t *ret_core_mhz, uint32_t *ret_memory_mhz)
{
    unsigned core = 0, memory = 0;
    int r = lock_memory(n, memory_mhz, &memory);
    if (r == NVML_NOT_SUPPORTED && !memory_mhz) /* there was nothing to do */
        r = NVML_SUCCESS;
    if (!r && core_mhz)
        r = lock_core(n, core_mhz, memory, &core);
    else if (!r)
        r = n->unlock_core ? n->unlock_core(n->device) : NVML_FUNCTION_NOT_FOUND;
    if (r) {
        if (n->unlock_memory)
            (void)n->unlock_memory(n->device);
        if (n->unlock_core)
            (void)n->unlock_core(n->device);
    }
    *ret_core_mhz = r ? 0 : core;
    *ret_memory_mhz = r || !memory_mhz ? 0 : memory;
    return error_of(r);
}
