// SPDX-License-Identifier: Apache-2.0
/* device/cuda/nvml.h - power, energy and clocks of one GPU, read from NVML where there is one. The
 * daemon sets nothing: ws_nvml_lock_clocks() is for wattshare-clocks. A value that the GPU or the
 * container does not support is asked for once only.
 *
 * Threads: one at a time. Source: NVML API reference; sampling limits: doc/gpu.md. */
#ifndef WS_DEVICE_CUDA_NVML_H
#define WS_DEVICE_CUDA_NVML_H

#include <stdbool.h>
#include <stdint.h>
#include "base/macros.h"

enum ws_nvml_call {
    WS_NVML_ENERGY,
    WS_NVML_POWER,
    WS_NVML_POWER_LIMIT,
    WS_NVML_SM_CLOCK,
    WS_NVML_MEMORY_CLOCK,
    WS_NVML_TEMPERATURE,
    _WS_NVML_N
};
struct ws_nvml;
/* @uuid: 16 bytes, of the GPU. Return: the handle, or NULL with the reason in @why. */
struct ws_nvml *ws_nvml_open(const char *library, const char *uuid, char *why, size_t why_bytes);
struct ws_nvml *ws_nvml_close(struct ws_nvml *n);
/* *ret in mJ since the driver was loaded, mW, mW, MHz, MHz, degrees C. @n may be NULL. Return:
 * false: it cannot be read. */
bool ws_nvml_read(struct ws_nvml *n, enum ws_nvml_call call, uint64_t *ret);
/* Why a value cannot be read: "not supported (3)". NULL: it can, or was not asked for yet. */
const char *ws_nvml_why_not(const struct ws_nvml *n, enum ws_nvml_call call);
/* Locks the clocks to the lowest of the GPU's steps that is not below what is wanted, or to the
 * highest. 0: the GPU's own clocks again. *ret_…: what they are locked to. If anything fails both
 * are the GPU's own again. Needs root (CAP_SYS_ADMIN). Return: 0, -EPERM, -ENOTSUP (the GPU, or
 * this NVML), -EIO. */
WS_MUST_CHECK int ws_nvml_lock_clocks(struct ws_nvml *n, uint32_t core_mhz, uint32_t memory_mhz,
                                      uint32_t *ret_core_mhz, uint32_t *ret_memory_mhz);
const char *ws_nvml_driver(const struct ws_nvml *n); /* "580.159", or "" */

#endif
