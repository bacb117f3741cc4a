/* SPDX-License-Identifier: Apache-2.0 */
/* backend/process/real.h - the real GPUs that the configuration names: "cuda", all that the
 * driver has, or "cuda:0". They are opened when first asked for, since only the driver knows
 * what they are, and stay open; asked for again (reload), the same are found. Threads: the main
 * one. */
#ifndef WS_BACKEND_PROCESS_REAL_H
#define WS_BACKEND_PROCESS_REAL_H

#include "device/device.h"

/* Whether @name is of this form. */
bool ws_real_is(const char *name);
struct ws_real_choice {
    bool worker;        /* each in a process of its own (gpu_worker) */
    bool preemptible;   /* so that a policy can stop their launches */
    bool unfenced;      /* kernels go as they are (isolation = none) */
    uint64_t cancel_ns; /* struct ws_cuda_options */
};
/* The GPUs that @name stands for. Opened ones get the numbers from @first on.
 * Return: how many were put to @ret[max]; 0: none, diags say why. */
uint32_t ws_real_open(const char *name, uint32_t first, const struct ws_real_choice *choice,
                      struct ws_device **ret, uint32_t max, struct ws_diags *diags);
void ws_real_close(void);
/* Adds to a GPU's status what only real ones have; texts live in the server's arena. Return:
 * false: no memory. */
struct ws_server;
struct Ws__GpuStatus;
bool ws_real_status(struct ws_server *s, struct ws_device *d, struct Ws__GpuStatus *o);

#endif
