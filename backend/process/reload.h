// SPDX-License-Identifier: Apache-2.0
/* backend/process/reload.h - a new configuration for a daemon that runs. Threads: the loop. */
#ifndef WS_BACKEND_PROCESS_RELOAD_H
#define WS_BACKEND_PROCESS_RELOAD_H

#include "backend/process/config.h"

/* Moves into @live what of @fresh may change while clients are there; writes the keys that differ and wait for the next start to
 * @ret_later, comma-separated ("": none). */
/* Return: the policy or its options are others now. */
bool ws_reload_apply(struct ws_config *live, struct ws_config *fresh, char *ret_later, size_t size);

#endif
