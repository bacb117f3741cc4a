// SPDX-License-Identifier: Apache-2.0
/* device/worker/worker.h - a real GPU in a process of its own, as a device (device/device.h).
 *
 * A fault that destroys the GPU's context, or the driver's own crash, ends that process, not ours. A new one is started then, gets back
 * what the old one had (spaces, memory with its contents, modules, instances), and goes on; only launches that were on the GPU end with an
 * error. Who had none notices a delay. Restarted too often, the GPU counts as lost.
 *
 * What differs from device/cuda: memory of one GPU can't be reached by kernels of another; launches of several clients
 * (ws_op.launch.parts) are refused if their code does not keep these apart (ws_ptx_module.fenced); host memory that kernels see must have been registered with its descriptor. */
#ifndef WS_DEVICE_WORKER_WORKER_H
#define WS_DEVICE_WORKER_WORKER_H

#include "device/cuda/cuda.h"

/* As ws_device_open_cuda(), in a process of its own, program wattshare-gpu-worker.
 * Return: as that; WS_CUDA_E_MISSING also without the program, or if it is of another build (diags say so). */
WS_MUST_CHECK int ws_device_open_worker(struct ws_device **ret, int ordinal, uint32_t index,
                                        const struct ws_cuda_options *options,
                                        struct ws_diags *diags);
/* As ws_cuda_count(): asked in a process of its own. */
uint32_t ws_worker_count(const struct ws_cuda_options *options, struct ws_diags *diags);

struct ws_worker_status {
    int pid;             /* 0: there is none now */
    uint64_t n_restarts; /* since opened */
    char last[192];      /* why it was restarted last; "" */
    uint64_t last_ns; /* how long that took, from the end of the old one until the new one worked */
};
/* Return: false: no worker's device. Any thread. */
bool ws_device_worker_status(struct ws_device *d, struct ws_worker_status *ret);

#endif
