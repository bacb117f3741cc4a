// SPDX-License-Identifier: Apache-2.0
/* Which processes use a GPU, with their memory, their share of its time, and their accounts. A user
 * sees what `wattshare status` shows to that user: processes of other users are in no list. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/macros.h"
#include "frontend/nvml/nvml.h"

/* ---- the list ---- */

struct process_v1 {
    unsigned pid;
    uint64_t memory;
};
struct process_v2 {
    unsigned pid;
    uint64_t memory;
    unsigned gpu_instance, compute_instance;
};
enum { NO_INSTANCE = -1 };

/* A client's memory on the GPU. The status has the sum of all its GPUs, so it is known only of a
 * client that uses one. */
static uint64_t memory_of(const Ws__ClientStatus *c)
{
    return c->n_gpus == 1 ? c->memory_bytes : WS_NVML_NO_VALUE;
}

/* Puts the processes into @v1 or @v2; both NULL: counts them. A process may be several clients. */
static unsigned list(const struct ws_nvml_view *v, struct process_v1 *v1, struct process_v2 *v2,
                     unsigned max)
{
    const Ws__ClientStatus *c;
    unsigned n = 0;
    for (size_t i = 0; (c = ws_nvml_next_client(v, &i)); n++) {
        if (n < max && v1)
            v1[n] = (struct process_v1){c->pid, memory_of(c)};
        if (n < max && v2)
            v2[n] = (struct process_v2){c->pid, memory_of(c), NO_INSTANCE, NO_INSTANCE};
    }
    return n;
}

static int processes(struct ws_nvml_device *d, unsigned *count, struct process_v1 *v1,
                     struct process_v2 *v2)
{
    struct ws_nvml_view v;
    int r = ws_nvml_hold_gpu(d, count, &v);
    if (r)
        return r;
    unsigned max = v1 || v2 ? *count : 0;
    *count = list(&v, v1, v2, max);
    ws_nvml_release();
    return *count > max ? WS_NVML_INSUFFICIENT_SIZE : WS_NVML_SUCCESS;
}

WS_NVML_API int nvmlDeviceGetComputeRunningProcesses(struct ws_nvml_device *d, unsigned *count,
                                                     struct process_v1 *ret)
{
    return processes(d, count, ret, NULL);
}

WS_NVML_API int nvmlDeviceGetComputeRunningProcesses_v2(struct ws_nvml_device *d, unsigned *count,
                                                        struct process_v2 *ret)
{
    return processes(d, count, NULL, ret);
}

WS_NVML_API int nvmlDeviceGetComputeRunningProcesses_v3(struct ws_nvml_device *d, unsigned *count,
                                                        struct process_v2 *ret)
{
    return processes(d, count, NULL, ret);
}

/* Nobody draws pictures, and NVIDIA's own sharing (MPS) is not used. */
#define NOBODY(function)                                                                           \
    WS_NVML_API int function(struct ws_nvml_device *d, unsigned *count, void *ret)                 \
    {                                                                                              \
        struct ws_nvml_view v;                                                                     \
        int r = ws_nvml_hold_gpu(d, count, &v);                                                    \
        (void)ret;                                                                                 \
        if (r)                                                                                     \
            return r;                                                                              \
        ws_nvml_release();                                                                         \
        *count = 0;                                                                                \
        return WS_NVML_SUCCESS;                                                                    \
    }
NOBODY(nvmlDeviceGetGraphicsRunningProcesses)
NOBODY(nvmlDeviceGetGraphicsRunningProcesses_v2)
NOBODY(nvmlDeviceGetGraphicsRunningProcesses_v3)
NOBODY(nvmlDeviceGetMPSComputeRunningProcesses)
NOBODY(nvmlDeviceGetMPSComputeRunningProcesses_v2)
NOBODY(nvmlDeviceGetMPSComputeRunningProcesses_v3)

/* ---- shares of the GPU's time ---- */

struct process_sample {
    unsigned pid;
    uint64_t time_us;
    unsigned sm, memory, encoder, decoder;
};

static uint64_t device_ns_of(const Ws__StatusReply *s, uint32_t client)
{
    for (size_t i = 0; i < s->n_clients; i++)
        if (s->clients[i]->client == client)
            return s->clients[i]->device_ns;
    return 0;
}

/* The device time of the client's work between the two statuses. */
static uint64_t took_ns(const struct ws_nvml_view *before, const Ws__ClientStatus *c)
{
    uint64_t earlier_ns = device_ns_of(before->status, c->client);
    return c->device_ns > earlier_ns ? c->device_ns - earlier_ns : 0;
}

/* The client's part of the time in which the GPU computed, in % of all time. Its device time has
 * copies in it too, so it only says how the GPU's time is to be divided. */
static unsigned share_percent(const struct ws_nvml_view *now, const struct ws_nvml_view *before,
                              const Ws__ClientStatus *c)
{
    const Ws__ClientStatus *other;
    uint64_t all_ns = 0;
    for (size_t i = 0; (other = ws_nvml_next_client(now, &i));)
        all_ns += took_ns(before, other);
    struct ws_monitored m = ws_nvml_two(now, before);
    double part = all_ns ? (double)took_ns(before, c) / (double)all_ns : 0;
    return (unsigned)(part * ws_monitor_busy_percent(&m) + 0.5);
}

/* @since_us: samples that are newer than this; ours are of now. */
WS_NVML_API int nvmlDeviceGetProcessUtilization(struct ws_nvml_device *d,
                                                struct process_sample *ret, unsigned *count,
                                                uint64_t since_us)
{
    struct ws_nvml_view now, before;
    struct timespec t;
    const Ws__ClientStatus *c;
    unsigned n = 0;
    int r = ws_nvml_hold_two(d, count, &now, &before);
    if (r)
        return r;
    clock_gettime(CLOCK_REALTIME, &t);
    uint64_t us = (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
    for (size_t i = 0; us > since_us && (c = ws_nvml_next_client(&now, &i)); n++)
        if (ret && n < *count)
            ret[n] = (struct process_sample){
                .pid = c->pid, .time_us = us, .sm = share_percent(&now, &before, c)};
    ws_nvml_release();
    bool fits = ret && n <= *count;
    *count = n;
    return !n ? WS_NVML_NOT_FOUND : fits ? WS_NVML_SUCCESS : WS_NVML_INSUFFICIENT_SIZE;
}

/* ---- accounts ---- */

struct nvml_accounting {
    unsigned gpu_percent, memory_percent;
    uint64_t max_memory, time_ms, start_us;
    unsigned is_running;
    unsigned reserved[5];
};

static bool used_gpu(const Ws__ClientStatus *c, uint32_t gpu)
{
    bool uses = false;
    for (size_t k = 0; k < c->n_gpus; k++)
        uses |= c->gpus[k] == gpu;
    return uses;
}

/* Those that have ended last are in the status too. */
static const Ws__ClientStatus *client_of_pid(const struct ws_nvml_view *v, unsigned pid)
{
    for (size_t i = 0; i < v->status->n_clients; i++) {
        const Ws__ClientStatus *c = v->status->clients[i];
        if (c->pid == pid && used_gpu(c, v->gpu->gpu))
            return c;
    }
    return NULL;
}

WS_NVML_API int nvmlDeviceGetAccountingStats(struct ws_nvml_device *d, unsigned pid,
                                             struct nvml_accounting *ret)
{
    struct ws_nvml_view v;
    struct timespec t;
    int r = ws_nvml_hold_gpu(d, ret, &v);
    if (r)
        return r;
    const Ws__ClientStatus *c = client_of_pid(&v, pid);
    clock_gettime(CLOCK_REALTIME, &t);
    if (c)
        *ret = (struct nvml_accounting){
            .gpu_percent = c->age_ns ? (unsigned)WS_MIN(100 * c->device_ns / c->age_ns, 100) : 0,
            .memory_percent =
                (unsigned)WS_MIN(100 * c->peak_memory_bytes / WS_MAX(v.gpu->memory_bytes, 1), 100),
            .max_memory = c->peak_memory_bytes,
            .time_ms = c->connected ? 0 : c->age_ns / 1000000,
            .start_us =
                (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000 - c->age_ns / 1000,
            .is_running = c->connected};
    ws_nvml_release();
    return c ? WS_NVML_SUCCESS : WS_NVML_NOT_FOUND;
}

WS_NVML_API int nvmlDeviceGetAccountingPids(struct ws_nvml_device *d, unsigned *count,
                                            unsigned *ret)
{
    struct ws_nvml_view v;
    unsigned n = 0;
    int r = ws_nvml_hold_gpu(d, count, &v);
    if (r)
        return r;
    for (size_t i = 0; i < v.status->n_clients; i++) {
        const Ws__ClientStatus *c = v.status->clients[i];
        if (!used_gpu(c, v.gpu->gpu))
            continue;
        if (ret && n < *count)
            ret[n] = c->pid;
        n++;
    }
    ws_nvml_release();
    bool fits = n <= (ret ? *count : 0);
    *count = n;
    return fits ? WS_NVML_SUCCESS : WS_NVML_INSUFFICIENT_SIZE;
}

/* ---- names ---- */

WS_NVML_API int nvmlSystemGetProcessName(unsigned pid, char *buf, unsigned size)
{
    struct ws_nvml_view v;
    char path[64], exe[PATH_MAX] = "";
    int r = ws_nvml_hold(&v);
    if (r)
        return r;
    for (size_t i = 0; i < v.status->n_clients; i++)
        if (v.status->clients[i]->pid == pid)
            snprintf(exe, sizeof(exe), "%s", v.status->clients[i]->exe);
    ws_nvml_release();
    snprintf(path, sizeof(path), "/proc/%u/exe", pid);
    if (!*exe && readlink(path, exe, sizeof(exe) - 1) < 0)
        return WS_NVML_NOT_FOUND;
    if (!buf || !size)
        return WS_NVML_INVALID_ARGUMENT;
    snprintf(buf, size, "%s", exe); /* cut, as NVML does */
    return WS_NVML_SUCCESS;
}
