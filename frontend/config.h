// SPDX-License-Identifier: Apache-2.0
/* frontend/config.h - what a user sets for one program. The constructor (interpose/init.c) reads it
 * once from the environment; it is constant from then on. */
#ifndef WS_FRONTEND_CONFIG_H
#define WS_FRONTEND_CONFIG_H

#include <stdbool.h>

struct ws_frontend_config {
    char socket[256];          /* WATTSHARE_SOCKET: endpoint of the daemon */
    char task[128];            /* WATTSHARE_TASK: "" if none */
    char visible_devices[512]; /* CUDA_VISIBLE_DEVICES */
    bool has_visible_devices;
    char log[256];  /* WATTSHARE_LOG: file that lines go to instead of stderr; "": stderr */
    bool ring;      /* WATTSHARE_RING: "off": small messages go through ZeroMQ like the others */
    int timeout_ms; /* WATTSHARE_TIMEOUT_MS: to connect */
    /* WATTSHARE_CHECK: the file in which findings are counted; "": nothing is checked */
    char check[256];
    bool check_leaks; /* WATTSHARE_CHECK_LEAKS: "1": what was not freed is a finding, too */
    int sms;          /* WATTSHARE_SMS: kernels use the first so many SMs; 0: all */
};
const struct ws_frontend_config *ws_frontend_config(void);
/* For the constructor, and for programs that are linked with the sessions alone. */
void ws_frontend_config_read(char **envp);

#endif
