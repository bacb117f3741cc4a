// SPDX-License-Identifier: Apache-2.0
/* device/cuda/cuda.h - a real NVIDIA GPU as a device (device/device.h).
 *
 * All clients of a GPU share one context, and so one range of addresses: two spaces on such a
 * device must not map different memory at the same address. ws_device_cuda_capabilities() says what
 * a GPU and its driver can do, and why they cannot do the rest. */
#ifndef WS_DEVICE_CUDA_CUDA_H
#define WS_DEVICE_CUDA_CUDA_H

#include "device/device.h"

struct ws_cuda_options {
    const char *driver_library; /* NULL: libcuda.so.1 */
    const char *nvml_library;   /* NULL: libnvidia-ml.so.1 */
    uint32_t max_running;       /* operations on the GPU at once; 0: 64 */
    /* Launches take their blocks from a counter where they can, so that ws_device_preempt()
     * works. */
    bool preemptible;
    bool unfenced; /* clients' kernels run as they are, and can reach each other's memory */
    /* The host's CLOCK_MONOTONIC at device time 0; 0: when the process opened its first GPU. */
    uint64_t epoch_ns;
    /* The device waits without sleeping for an operation that is younger than this; 0: 100 us. */
    uint64_t spin_ns;
    /* device/worker: a cancelled operation that has not ended after this restarts the worker; 0:
     * never. */
    uint64_t cancel_ns;
    /* Addresses at which the process of the device has nothing but mapped host memory.
     * device/worker: its process keeps them free for ws_space_map_host_soon(). device/cuda: the
     * caller has mapped them without access. 0, 0: none. */
    uint64_t host_va, host_bytes;
    /* device/worker: restarts within a minute; with one more the GPU is given up; 0: 5. */
    uint32_t max_restarts;
};

#define WS_CUDA_MAPS_HOST "mapped host memory" /* a capability's name */
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

/* Opens the GPU to which the driver gives the number @ordinal. @options: may be NULL; copied.
 * Return: 0, WS_CUDA_E_MISSING (diags say what: no driver, no such GPU, a GPU without virtual
 * memory management), -ENOMEM, -EAGAIN. */
enum { WS_CUDA_E_MISSING = 1 };
WS_MUST_CHECK int ws_device_open_cuda(struct ws_device **ret, int ordinal, uint32_t index,
                                      const struct ws_cuda_options *options,
                                      struct ws_diags *diags);
/* Why a device with isolation refuses machine code: ws_device.no_machine_code. */
extern const char ws_cuda_no_machine_code[];
/* How many GPUs the driver has; 0 without a driver (diags say why). */
uint32_t ws_cuda_count(const struct ws_cuda_options *options, struct ws_diags *diags);
/* The functions of a real GPU, in this process or in another (device/worker): struct
 * ws_device_ops.real. They are as those below. */
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
/* How much memory the driver has free; 0: it does not say. @d: of ws_device_open_cuda(). */
uint64_t ws_device_cuda_free_bytes(struct ws_device *d);
/* The energy of @ns of work that another context did alone on the GPU. That energy is then given to
 * no operation any more. Return: false: the device has no counter of energy. */
bool ws_device_cuda_charge(struct ws_device *d, uint64_t ns, uint64_t *ret_uj);
/* What destroyed the context, and which kernel is suspected; NULL: it is not destroyed. */
const char *ws_device_cuda_lost(const struct ws_device *d);
/* In op->done, after an error: whether the context was lost before the operation began, so that it
 * has done nothing. */
bool ws_cuda_untouched(const struct ws_op *op);
/* How many blocks of a preempted launch were done, to be passed to another process, and the record
 * made of that again. NULL: no memory. */
struct ws_cuda_progress {
    uint32_t done, total;
};
struct ws_cuda_progress ws_cuda_progress_read(const struct ws_progress *p);
struct ws_progress *ws_cuda_progress_new(struct ws_cuda_progress p);

#endif
