// SPDX-License-Identifier: Apache-2.0
/* backend/process/loop.h - the daemon's sockets, signals and its one loop around the server
 * (server.h). */
#ifndef WS_BACKEND_PROCESS_LOOP_H
#define WS_BACKEND_PROCESS_LOOP_H

#include "backend/process/config.h"

struct ws_loop_options {
    int ready_fd;              /* gets one byte when clients can connect, and is closed; -1: none */
    bool exit_when_idle;       /* when the last client is gone */
    bool (*reload)(void *arg); /* SIGHUP: on the loop's thread. Return: the policy changed */
    void *reload_arg;
};
enum {
    _WS_LOOP_OK,
    WS_LOOP_E_REFUSED /* said why in the log: another daemon, an address in use, … */
};

/* Serves until SIGTERM or SIGINT. Those, SIGHUP and SIGPIPE must be blocked in all threads.
 * @devices: borrowed.
 * Return: 0 after an orderly end, WS_LOOP_E_REFUSED, or a negative error. */
WS_MUST_CHECK int ws_loop_run(const struct ws_config *config, struct ws_device **devices,
                              uint32_t n_devices, const struct ws_loop_options *options);

#endif
