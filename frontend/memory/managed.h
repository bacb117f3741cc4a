// SPDX-License-Identifier: Apache-2.0
/* frontend/memory/managed.h - __managed__ variables (.attribute(.managed) in PTX): host memory that
 * the devices see at the same address. A variable is one for all devices that its library is loaded
 * on. Threads: the caller holds a lock. */
#ifndef WS_FRONTEND_MEMORY_MANAGED_H
#define WS_FRONTEND_MEMORY_MANAGED_H

#include "frontend/session/session.h"

struct ws_managed; /* one variable; a list */
/* For a module that was just loaded: gives its managed variables memory, or that of *list where the
 * library has been loaded before, whose content then stays. Return: a CUDA code; on an error *list
 * is as it was. */
int ws_managed_place(struct ws_managed **list, struct ws_session_module *m, int device);
/* No module uses it any more. */
void ws_managed_free(struct ws_managed *list);

#endif
