// SPDX-License-Identifier: Apache-2.0
/* frontend/frontend.h - what the files of the library's infrastructure share: configuration, life, redirect. */
#ifndef WS_FRONTEND_FRONTEND_H
#define WS_FRONTEND_FRONTEND_H

#include <stdbool.h>
#include <stddef.h>

/* ---- configuration: read once from the environment by the constructor, then constant ---- */
struct ws_config {
    char socket[256];            /* WATTSHARE_SOCKET: endpoint of the daemon */
    char task[128];              /* WATTSHARE_TASK: "" if none */
    char visible_devices[512];   /* CUDA_VISIBLE_DEVICES */
    bool has_visible_devices;
    int timeout_ms;              /* WATTSHARE_TIMEOUT_MS: to connect */
};
const struct ws_config *ws_config(void);

#endif
