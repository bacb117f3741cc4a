// SPDX-License-Identifier: Apache-2.0
/* device/cuda/cuda.h - a real NVIDIA GPU as a device (device/device.h).
 *
 * All clients of a GPU share one context, and so one range of addresses: spaces on such a device must not map different things at one
 * address. What a GPU and its driver can't do is said, with the reason, by ws_device_cuda_capabilities(). */
#ifndef WS_DEVICE_CUDA_CUDA_H
#define WS_DEVICE_CUDA_CUDA_H

#include "device/device.h"

struct ws_cuda_options {
    const char *driver_library; /* NULL: libcuda.so.1 */
    const char *nvml_library;   /* NULL: libnvidia-ml.so.1 */
    uint32_t max_running;       /* operations on the GPU at once; 0: 64 */
    bool
        preemptible; /* launches take their blocks from a counter where they can, so that ws_device_preempt() works */
    bool unfenced; /* clients' kernels run as they are, and reach each other's memory */
    uint64_t
        epoch_ns; /* the host's CLOCK_MONOTONIC at device time 0; 0: when the process opened its first GPU */
    uint64_t
        spin_ns; /* waits for an operation that is younger than this without sleeping; 0: 100 us */
    uint64_t
        cancel_ns; /* of a worker: what was cancelled and has not ended after it costs a restart; 0: never */
    uint32_t
        max_restarts; /* of a worker (device/worker) within a minute: then the GPU is given up; 0: 5 */
};

enum { WS_CUDA_MAX_CAPABILITIES = 24 };
struct ws_cuda_capability {
    const char *name; /* "SM sets" */
    bool yes;
    char how[144]; /* how, or why not */
};
struct ws_cuda_capabilities {
    int cuda_version; /* of the driver: 13000 */
    char driver[80];  /* "580.159", or "" */
    char product[64];
    uint32_t n;
    struct ws_cuda_capability v[WS_CUDA_MAX_CAPABILITIES];
};

/* Opens the GPU with number @ordinal of the driver; its spec is what the driver says of it. @options: may be NULL; copied.
 * Return: 0, WS_CUDA_E_MISSING (diags say what: no driver, no such GPU, a GPU without virtual memory management), -ENOMEM, -EAGAIN. */
enum { WS_CUDA_E_MISSING = 1 };
WS_MUST_CHECK int ws_device_open_cuda(struct ws_device **ret, int ordinal, uint32_t index,
                                      const struct ws_cuda_options *options,
                                      struct ws_diags *diags);
/* Why a device with isolation doesn't take machine code: ws_device.no_machine_code. */
extern const char ws_cuda_no_machine_code[];
/* How many GPUs the driver has; 0 without a driver (diags say why). */
uint32_t ws_cuda_count(const struct ws_cuda_options *options, struct ws_diags *diags);
/* What is asked of a real GPU, in this process or in another (device/worker); struct ws_device_ops.real. As the functions below. */
struct ws_real_ops {
    const struct ws_cuda_capabilities *(*capabilities)(const struct ws_device *d);
    void (*uuid)(const struct ws_device *d, uint8_t ret[16]);
    bool (*charge)(struct ws_device *d, uint64_t ns, uint64_t *ret_uj);
    const char *(*lost)(const struct ws_device *d);
};
/* NULL: not a CUDA device. Lives as long as @d. */
const struct ws_cuda_capabilities *ws_device_cuda_capabilities(const struct ws_device *d);
/* The driver's name of the GPU. Return: false: not a CUDA device. */
bool ws_device_cuda_uuid(const struct ws_device *d, uint8_t ret[16]);
/* What @ns of work that somebody else's context did, alone on the GPU, took by its counter: nobody else is given that any more. Return: false: the
 * device has no such counter. */
bool ws_device_cuda_charge(struct ws_device *d, uint64_t ns, uint64_t *ret_uj);
/* NULL: the context is well; else what destroyed it, and which kernel is suspected. */
const char *ws_device_cuda_lost(const struct ws_device *d);
/* In op->done, after an error: whether the context was lost before the operation began, so that it has done nothing. */
bool ws_cuda_untouched(const struct ws_op *op);
/* How far a preempted launch of a CUDA device came, in blocks, and the opposite: for another process. NULL: no memory. */
struct ws_cuda_progress {
    uint32_t done, total;
};
struct ws_cuda_progress ws_cuda_progress_read(const struct ws_progress *p);
struct ws_progress *ws_cuda_progress_new(struct ws_cuda_progress p);

#endif
