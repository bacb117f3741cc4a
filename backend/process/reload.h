// SPDX-License-Identifier: Apache-2.0
/* backend/process/reload.h - a new configuration for a daemon that runs. Threads: the loop. */
#ifndef WS_BACKEND_PROCESS_RELOAD_H
#define WS_BACKEND_PROCESS_RELOAD_H

#include "backend/process/config.h"

/* Moves the values that may change while clients are connected from @fresh to @live; what @live
 * had is in @fresh afterwards. Writes the names of keys that differ and wait for the next start
 * to @ret_later, separated by commas ("": none). Return: whether the policy or its options have
 * changed. */
bool ws_reload_apply(struct ws_config *live, struct ws_config *fresh, char *ret_later, size_t size);

#endif
