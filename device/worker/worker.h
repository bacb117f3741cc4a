// SPDX-License-Identifier: Apache-2.0
/* device/worker/worker.h - a real GPU in a process of its own, as a device (device/device.h).
 *
 * A fault that destroys the GPU's context, or a crash of the driver, ends that process and not the
 * daemon. A new worker is then started and gets all that the old one had: spaces, memory with its
 * contents, modules, instances. Only launches that were on the GPU end with an error; clients that
 * had none notice a delay. If workers are restarted too often, the GPU counts as lost.
 *
 * Differences from device/cuda: kernels of one GPU cannot reach the memory of another; merged
 * launches (ws_op.launch.parts) are refused if their code does not check its accesses
 * (ws_ptx_module.fenced); host memory that kernels use must have been registered with its
 * descriptor. */
#ifndef WS_DEVICE_WORKER_WORKER_H
#define WS_DEVICE_WORKER_WORKER_H

#include "device/cuda/cuda.h"

/* As ws_device_open_cuda(), in a process of its own: the program wattshare-gpu-worker. Return: as
 * that function; WS_CUDA_E_MISSING also if the program is missing or is of another build (diags say
 * so). */
WS_MUST_CHECK int ws_device_open_worker(struct ws_device **ret, int ordinal, uint32_t index,
                                        const struct ws_cuda_options *options,
                                        struct ws_diags *diags);
/* As ws_cuda_count(), in a process of its own. */
uint32_t ws_worker_count(const struct ws_cuda_options *options, struct ws_diags *diags);

struct ws_worker_status {
    int pid;             /* 0: there is no worker now */
    uint64_t n_restarts; /* since the device was opened */
    char last[192];      /* why it was restarted last; "": it was not */
    /* How long that took, from the end of the old worker until the new one was ready. */
    uint64_t last_ns;
    /* The longest that a call of device.h, other than opening and closing the device, has kept the
     * thread that opened it: the daemon's loop. */
    uint64_t longest_wait_ns;
    /* From when ws_device_preempt() was called until the worker had asked the GPU to stop the
     * launch: the last time, and the longest since this worker was started. 0: there was none. */
    uint64_t preempt_ns, longest_preempt_ns;
};
/* Any thread. Return: false: @d is not such a device. */
bool ws_device_worker_status(struct ws_device *d, struct ws_worker_status *ret);

#endif
