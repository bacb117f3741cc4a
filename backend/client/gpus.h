/* SPDX-License-Identifier: Apache-2.0 */
/* backend/client/gpus.h - which GPU a client sees under which number. Threads: the loop. */
#ifndef WS_BACKEND_CLIENT_GPUS_H
#define WS_BACKEND_CLIENT_GPUS_H

#include "protocol/protocol.h"

struct ws_server;
/* The client's devices in its order, as indices of server->gpus. @fixed: its numbers mean GPUs in
 * the order of the configuration, whatever `placement` says. Return: how many. */
uint32_t ws_gpus_order(const struct ws_server *s, const Ws__Hello *h, bool fixed,
                       uint32_t order[WS_MAX_DEVICES]);

#endif
