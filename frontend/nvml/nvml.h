/* SPDX-License-Identifier: Apache-2.0 */
/* frontend/nvml/nvml.h - what the files of this room share: NVML's codes and layouts, as far as the
 * functions here use them, and the daemon's status as it is now. The numbers and the layouts are
 * those that programs were compiled with. Threads: any. */
#ifndef WS_FRONTEND_NVML_NVML_H
#define WS_FRONTEND_NVML_NVML_H

#include <stdbool.h>
#include <stdint.h>
#include "base/macros.h"
#include "protocol/monitor.h"
#include "protocol/protocol.h"

#define WS_NVML_API __attribute__((visibility("default")))

enum ws_nvml_code {
    WS_NVML_SUCCESS = 0,
    WS_NVML_UNINITIALIZED = 1,
    WS_NVML_INVALID_ARGUMENT = 2,
    WS_NVML_NOT_SUPPORTED = 3,
    WS_NVML_NO_PERMISSION = 4,
    WS_NVML_NOT_FOUND = 6,
    WS_NVML_INSUFFICIENT_SIZE = 7,
    WS_NVML_DRIVER_NOT_LOADED = 9,
    WS_NVML_TIMEOUT = 10,
    WS_NVML_GPU_IS_LOST = 15,
    WS_NVML_VERSION_MISMATCH = 18,
    WS_NVML_MEMORY = 20,
    WS_NVML_ARGUMENT_VERSION = 25,
    WS_NVML_UNKNOWN = 999,
};

/* "not available", in a process's memory */
#define WS_NVML_NO_VALUE UINT64_MAX

/* What a handle of a device points to. It has no content; its place says which GPU it is. */
struct ws_nvml_device {
    char place;
};

/* ---- asking the daemon (ask.c) ---- */

/**
 * ws_nvml_ask() - one status request to the daemon at @endpoint, an "ipc://…"
 * @ret: freed with ws__server_message__free_unpacked(); its status field is set
 * Return: 0; -EPROTONOSUPPORT: not our version of the protocol; -ETIMEDOUT; -EAFNOSUPPORT: no
 * Unix socket; or what connect() says.
 */
WS_MUST_CHECK int ws_nvml_ask(const char *endpoint, Ws__ServerMessage **ret);

/* ---- the status (state.c) ---- */

/* What a call reads. Between hold and release no other call goes on. */
struct ws_nvml_view {
    const Ws__StatusReply *status;
    const Ws__GpuStatus *gpu; /* of the handle, where there was one */
};

/* At most 5 ms old. Return: a code; nothing is held unless it is WS_NVML_SUCCESS. */
WS_MUST_CHECK int ws_nvml_hold(struct ws_nvml_view *ret);
/* The same, for a device. @result: where the caller's answer goes; NULL is refused. */
WS_MUST_CHECK int ws_nvml_hold_gpu(const struct ws_nvml_device *d, const void *result,
                                   struct ws_nvml_view *ret);
/* Also an earlier status of the same daemon, for means: at least 0.1 s old, and about a second, or
 * as old as the program's last call if that was longer ago. Where there is none yet, this waits for
 * 0.1 s. */
WS_MUST_CHECK int ws_nvml_hold_two(const struct ws_nvml_device *d, const void *result,
                                   struct ws_nvml_view *ret, struct ws_nvml_view *before);
/* The two as monitor.h's functions take them. */
struct ws_monitored ws_nvml_two(const struct ws_nvml_view *now, const struct ws_nvml_view *before);
void ws_nvml_release(void);

/* GPUs that programs see; of the daemon's they are the first. */
uint32_t ws_nvml_n_gpus(const Ws__StatusReply *s);
struct ws_nvml_device *ws_nvml_handle(uint32_t gpu);

/* ws_monitor_energy_uj(), and never less than it was in this process. */
uint64_t ws_nvml_energy_uj(const struct ws_nvml_view *v);

/* The next client of the status that is connected and has used the GPU. @i: starts at 0. NULL:
 * there is none. */
const Ws__ClientStatus *ws_nvml_next_client(const struct ws_nvml_view *v, size_t *i);

/* @text into a caller's buffer. Return: a code. */
WS_MUST_CHECK int ws_nvml_put_text(const char *text, char *buf, unsigned size);

#endif
