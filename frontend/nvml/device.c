// SPDX-License-Identifier: Apache-2.0
/* What a GPU is and does: functions that answer with a number or a text of the status. What the
 * daemon does not know (temperature, fans, ECC) is not supported (not_supported.def). */
#include <stdio.h>
#include <string.h>

#include "base/macros.h"
#include "frontend/nvml/nvml.h"

/* A function that answers with one number. @value: made of `v.gpu`. */
#define NUMBER(function, type, value)                                                              \
    WS_NVML_API int function(struct ws_nvml_device *d, type *ret)                                  \
    {                                                                                              \
        struct ws_nvml_view v;                                                                     \
        int r = ws_nvml_hold_gpu(d, ret, &v);                                                      \
        if (r)                                                                                     \
            return r;                                                                              \
        *ret = (type)(value);                                                                      \
        ws_nvml_release();                                                                         \
        return WS_NVML_SUCCESS;                                                                    \
    }

/* A function that answers with one value of two statuses. @value: of m. */
#define OF_TWO(function, type, value)                                                              \
    WS_NVML_API int function(struct ws_nvml_device *d, type *ret)                                  \
    {                                                                                              \
        struct ws_nvml_view now, before;                                                           \
        int r = ws_nvml_hold_two(d, ret, &now, &before);                                           \
        if (r)                                                                                     \
            return r;                                                                              \
        struct ws_monitored m = ws_nvml_two(&now, &before);                                        \
        *ret = (value);                                                                            \
        ws_nvml_release();                                                                         \
        return WS_NVML_SUCCESS;                                                                    \
    }

/* As NUMBER, for a number that may be unknown, which is 0 in the status. */
#define NUMBER_IF_KNOWN(function, value)                                                           \
    WS_NVML_API int function(struct ws_nvml_device *d, unsigned *ret)                              \
    {                                                                                              \
        struct ws_nvml_view v;                                                                     \
        int r = ws_nvml_hold_gpu(d, ret, &v);                                                      \
        if (r)                                                                                     \
            return r;                                                                              \
        unsigned known = (value);                                                                  \
        ws_nvml_release();                                                                         \
        if (!known)                                                                                \
            return WS_NVML_NOT_SUPPORTED;                                                          \
        *ret = known;                                                                              \
        return WS_NVML_SUCCESS;                                                                    \
    }

/* ---- which GPUs there are ---- */

WS_NVML_API int nvmlDeviceGetCount_v2(unsigned *ret)
{
    struct ws_nvml_view v;
    int r = ret ? ws_nvml_hold(&v) : WS_NVML_INVALID_ARGUMENT;
    if (r)
        return r;
    *ret = ws_nvml_n_gpus(v.status);
    ws_nvml_release();
    return WS_NVML_SUCCESS;
}

WS_NVML_API int nvmlDeviceGetCount(unsigned *ret)
{
    return nvmlDeviceGetCount_v2(ret);
}

/* The first GPU of which @is says so. */
static int find(bool (*is)(const Ws__GpuStatus *g, const void *wanted), const void *wanted,
                struct ws_nvml_device **ret)
{
    struct ws_nvml_view v;
    int r = ret && wanted ? ws_nvml_hold(&v) : WS_NVML_INVALID_ARGUMENT;
    if (r)
        return r;
    uint32_t n = ws_nvml_n_gpus(v.status), i = 0;
    while (i < n && !is(v.status->gpus[i], wanted))
        i++;
    ws_nvml_release();
    if (i == n)
        return WS_NVML_NOT_FOUND;
    *ret = ws_nvml_handle(i);
    return WS_NVML_SUCCESS;
}

static bool has_number(const Ws__GpuStatus *g, const void *wanted)
{
    return g->gpu == *(const unsigned *)wanted;
}

WS_NVML_API int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct ws_nvml_device **ret)
{
    int r = find(has_number, &index, ret);
    return r == WS_NVML_NOT_FOUND ? WS_NVML_INVALID_ARGUMENT : r;
}

WS_NVML_API int nvmlDeviceGetHandleByIndex(unsigned index, struct ws_nvml_device **ret)
{
    return nvmlDeviceGetHandleByIndex_v2(index, ret);
}

static bool has_uuid(const Ws__GpuStatus *g, const void *wanted)
{
    return !strcmp(g->uuid, wanted);
}

WS_NVML_API int nvmlDeviceGetHandleByUUID(const char *uuid, struct ws_nvml_device **ret)
{
    return find(has_uuid, uuid, ret);
}

/* The GPU's place on the bus as CUDA programs see it: the bus is the GPU's number plus 1. */
static bool has_bus(const Ws__GpuStatus *g, const void *wanted)
{
    unsigned domain = 0, bus, device;
    const char *text = wanted;
    return (sscanf(text, "%x:%x:%x", &domain, &bus, &device) == 3 ||
            (domain = 0, sscanf(text, "%x:%x", &bus, &device) == 2)) &&
           domain == 0 && bus == g->gpu + 1 && device == 0;
}

WS_NVML_API int nvmlDeviceGetHandleByPciBusId_v2(const char *id, struct ws_nvml_device **ret)
{
    return find(has_bus, id, ret);
}

WS_NVML_API int nvmlDeviceGetHandleByPciBusId(const char *id, struct ws_nvml_device **ret)
{
    return find(has_bus, id, ret);
}

/* ---- what it is ---- */

static int put_text(struct ws_nvml_device *d, size_t at, char *buf, unsigned size)
{
    struct ws_nvml_view v;
    int r = ws_nvml_hold_gpu(d, buf, &v);
    if (r)
        return r;
    r = ws_nvml_put_text(*(char *const *)((const char *)v.gpu + at), buf, size);
    ws_nvml_release();
    return r;
}

WS_NVML_API int nvmlDeviceGetName(struct ws_nvml_device *d, char *buf, unsigned size)
{
    return put_text(d, offsetof(Ws__GpuStatus, product), buf, size);
}

WS_NVML_API int nvmlDeviceGetUUID(struct ws_nvml_device *d, char *buf, unsigned size)
{
    return put_text(d, offsetof(Ws__GpuStatus, uuid), buf, size);
}

struct pci_info {
    char short_id[16];
    unsigned domain, bus, device, pci_device_id, subsystem_id;
    char id[32];
};

/* The maker's number alone is known: 0x10de is NVIDIA. */
WS_NVML_API int nvmlDeviceGetPciInfo_v3(struct ws_nvml_device *d, struct pci_info *ret)
{
    struct ws_nvml_view v;
    int r = ws_nvml_hold_gpu(d, ret, &v);
    if (r)
        return r;
    *ret = (struct pci_info){.bus = v.gpu->gpu + 1, .pci_device_id = 0x10de};
    ws_nvml_release();
    snprintf(ret->short_id, sizeof(ret->short_id), "0000:%02X:00.0", ret->bus);
    snprintf(ret->id, sizeof(ret->id), "00000000:%02X:00.0", ret->bus);
    return WS_NVML_SUCCESS;
}

/* Earlier versions have four reserved words in the place of the long text, which is longer. */
WS_NVML_API int nvmlDeviceGetPciInfo_v2(struct ws_nvml_device *d, struct pci_info *ret)
{
    struct pci_info all;
    int r = nvmlDeviceGetPciInfo_v3(d, ret ? &all : NULL);
    if (!r)
        memcpy(ret, &all, offsetof(struct pci_info, id));
    return r;
}

WS_NVML_API int nvmlDeviceGetPciInfo(struct ws_nvml_device *d, struct pci_info *ret)
{
    return nvmlDeviceGetPciInfo_v2(d, ret);
}

WS_NVML_API int nvmlDeviceGetCudaComputeCapability(struct ws_nvml_device *d, int *major, int *minor)
{
    struct ws_nvml_view v;
    int r = ws_nvml_hold_gpu(d, major && minor ? major : NULL, &v);
    if (r)
        return r;
    *major = (int)v.gpu->cc_major;
    *minor = (int)v.gpu->cc_minor;
    ws_nvml_release();
    return WS_NVML_SUCCESS;
}

/* NVML's number of an architecture, from Kepler (2) to Blackwell (10). */
static unsigned architecture(const Ws__GpuStatus *g)
{
    static const struct {
        unsigned from, number;
    } table[] = {{30, 2}, {50, 3}, {60, 4}, {70, 5}, {75, 6}, {80, 7}, {89, 8}, {90, 9}, {100, 10}};
    unsigned cc = g->cc_major * 10 + g->cc_minor, number = UINT32_MAX;
    for (size_t i = 0; i < WS_ARRAY_SIZE(table); i++)
        if (cc >= table[i].from)
            number = table[i].number;
    return number;
}

static unsigned brand(const Ws__GpuStatus *g)
{
    static const struct {
        const char *word;
        unsigned number;
    } table[] = {{"GeForce", 5}, {"Quadro", 1}, {"Tesla", 2}, {"TITAN", 6}};
    for (size_t i = 0; i < WS_ARRAY_SIZE(table); i++)
        if (strstr(g->product, table[i].word))
            return table[i].number;
    return 0;
}

NUMBER(nvmlDeviceGetIndex, unsigned, v.gpu->gpu)
NUMBER(nvmlDeviceGetMinorNumber, unsigned, v.gpu->gpu)
NUMBER(nvmlDeviceGetArchitecture, unsigned, architecture(v.gpu))
NUMBER(nvmlDeviceGetBrand, unsigned, brand(v.gpu))
NUMBER(nvmlDeviceGetNumGpuCores, unsigned, v.gpu->n_cores)
NUMBER_IF_KNOWN(nvmlDeviceGetMemoryBusWidth, v.gpu->memory_bus_bits)
/* No screen, any number of programs, no parts of a GPU that are GPUs themselves. */
NUMBER(nvmlDeviceGetDisplayMode, unsigned, 0)
NUMBER(nvmlDeviceGetDisplayActive, unsigned, 0)
NUMBER(nvmlDeviceGetComputeMode, unsigned, 0)
NUMBER(nvmlDeviceIsMigDeviceHandle, unsigned, 0)
NUMBER(nvmlDeviceGetMaxMigDeviceCount, unsigned, 0)
/* The accounts of programs are always kept; no events are told of. */
NUMBER(nvmlDeviceGetAccountingMode, unsigned, 1)
NUMBER(nvmlDeviceGetSupportedEventTypes, uint64_t, 0)

/* ---- the link to the host ---- */

enum { BUS_PCIE = 2 };

/* What a link of a generation moves, in MT/s on a lane. */
static unsigned transfers(const Ws__GpuStatus *g)
{
    static const unsigned mt[] = {0, 2500, 5000, 8000, 16000, 32000, 64000, 128000};
    return g->pcie_generation < WS_ARRAY_SIZE(mt) ? mt[g->pcie_generation] : 0;
}

/* A software GPU's link is always as fast as the catalog says; of a real one nothing is said. */
NUMBER_IF_KNOWN(nvmlDeviceGetBusType, v.gpu->pcie_generation ? BUS_PCIE : 0)
NUMBER_IF_KNOWN(nvmlDeviceGetMaxPcieLinkGeneration, v.gpu->pcie_generation)
NUMBER_IF_KNOWN(nvmlDeviceGetGpuMaxPcieLinkGeneration, v.gpu->pcie_generation)
NUMBER_IF_KNOWN(nvmlDeviceGetCurrPcieLinkGeneration, v.gpu->pcie_generation)
NUMBER_IF_KNOWN(nvmlDeviceGetMaxPcieLinkWidth, v.gpu->pcie_lanes)
NUMBER_IF_KNOWN(nvmlDeviceGetCurrPcieLinkWidth, v.gpu->pcie_lanes)
NUMBER_IF_KNOWN(nvmlDeviceGetPcieSpeed, transfers(v.gpu))
/* The numbers of its answers are those of the generations. */
NUMBER_IF_KNOWN(nvmlDeviceGetPcieLinkMaxSpeed, v.gpu->pcie_generation)

enum pcie_counter { PCIE_SENT, PCIE_RECEIVED };

/* In KB/s, as the GPU sees it. */
WS_NVML_API int nvmlDeviceGetPcieThroughput(struct ws_nvml_device *d, int counter, unsigned *ret)
{
    struct ws_nvml_view now, before;
    int r = counter == PCIE_SENT || counter == PCIE_RECEIVED
                ? ws_nvml_hold_two(d, ret, &now, &before)
                : WS_NVML_INVALID_ARGUMENT;
    if (r)
        return r;
    struct ws_monitored m = ws_nvml_two(&now, &before);
    bool has_link = now.gpu->pcie_generation != 0;
    if (has_link)
        *ret = (unsigned)(ws_monitor_link_bytes_per_s(&m, counter == PCIE_SENT) / 1000);
    ws_nvml_release();
    return has_link ? WS_NVML_SUCCESS : WS_NVML_NOT_SUPPORTED;
}

/* ---- memory ---- */

struct memory_info {
    uint64_t total, free, used;
};

WS_NVML_API int nvmlDeviceGetMemoryInfo(struct ws_nvml_device *d, struct memory_info *ret)
{
    struct ws_nvml_view v;
    int r = ws_nvml_hold_gpu(d, ret, &v);
    if (r)
        return r;
    uint64_t total = v.gpu->memory_bytes, used = WS_MIN(v.gpu->memory_used_bytes, total);
    ws_nvml_release();
    *ret = (struct memory_info){total, total - used, used};
    return WS_NVML_SUCCESS;
}

struct memory_info_v2 {
    unsigned version;
    uint64_t total, reserved, free, used;
};

WS_NVML_API int nvmlDeviceGetMemoryInfo_v2(struct ws_nvml_device *d, struct memory_info_v2 *ret)
{
    const unsigned version = sizeof(*ret) | 2U << 24;
    struct memory_info m;
    if (ret && ret->version != version)
        return WS_NVML_ARGUMENT_VERSION;
    int r = nvmlDeviceGetMemoryInfo(d, ret ? &m : NULL);
    if (!r)
        *ret = (struct memory_info_v2){version, m.total, 0, m.free, m.used};
    return r;
}

/* ---- what it does now ---- */

struct utilization {
    unsigned gpu, memory;
};

/* How busy the memory is, is not known; the interface has no place for saying so. */
OF_TWO(nvmlDeviceGetUtilizationRates, struct utilization,
       ((struct utilization){ws_monitor_busy_percent(&m), 0}))

OF_TWO(nvmlDeviceGetPowerUsage, unsigned, ws_monitor_power_mw(&m))
NUMBER(nvmlDeviceGetTotalEnergyConsumption, uint64_t, ws_nvml_energy_uj(&v) / 1000)
NUMBER_IF_KNOWN(nvmlDeviceGetPowerManagementLimit, v.gpu->limit_mw)
NUMBER_IF_KNOWN(nvmlDeviceGetPowerManagementDefaultLimit, v.gpu->limit_mw)
NUMBER_IF_KNOWN(nvmlDeviceGetEnforcedPowerLimit, v.gpu->limit_mw)

/* ---- clocks ---- */

enum clock { CLOCK_GRAPHICS, CLOCK_SM, CLOCK_MEMORY };

static int clock_mhz(struct ws_nvml_device *d, int which, bool as_set, unsigned *ret)
{
    struct ws_nvml_view v;
    int r = ws_nvml_hold_gpu(d, ret, &v);
    if (r)
        return r;
    unsigned core = as_set ? v.gpu->core_mhz : v.gpu->default_core_mhz;
    unsigned memory = as_set ? v.gpu->memory_mhz : v.gpu->default_memory_mhz;
    ws_nvml_release();
    unsigned mhz = which == CLOCK_MEMORY ? memory : which <= CLOCK_SM && which >= 0 ? core : 0;
    if (!mhz)
        return WS_NVML_NOT_SUPPORTED;
    *ret = mhz;
    return WS_NVML_SUCCESS;
}

WS_NVML_API int nvmlDeviceGetClockInfo(struct ws_nvml_device *d, int which, unsigned *ret)
{
    return clock_mhz(d, which, true, ret);
}

WS_NVML_API int nvmlDeviceGetApplicationsClock(struct ws_nvml_device *d, int which, unsigned *ret)
{
    return clock_mhz(d, which, true, ret);
}

WS_NVML_API int nvmlDeviceGetMaxClockInfo(struct ws_nvml_device *d, int which, unsigned *ret)
{
    return clock_mhz(d, which, false, ret);
}

WS_NVML_API int nvmlDeviceGetDefaultApplicationsClock(struct ws_nvml_device *d, int which,
                                                      unsigned *ret)
{
    return clock_mhz(d, which, false, ret);
}

/* @id: that of now, that which the program wants, the default, the highest of the boost. */
WS_NVML_API int nvmlDeviceGetClock(struct ws_nvml_device *d, int which, int id, unsigned *ret)
{
    return clock_mhz(d, which, id < 2, ret);
}
