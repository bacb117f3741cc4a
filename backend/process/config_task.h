// SPDX-License-Identifier: Apache-2.0
/* backend/process/config_task.h - the part of the configuration's grammar that describes tasks: for config.c only. Threads: as there. */
#ifndef WS_BACKEND_PROCESS_CONFIG_TASK_H
#define WS_BACKEND_PROCESS_CONFIG_TASK_H

#include <confuse.h>
#include "backend/process/config.h"

enum { WS_CONFIG_TASK_KEYS = 20 };
/* The keys of a section `task NAME { … }`. */
void ws_config_task_keys(cfg_opt_t ret[WS_CONFIG_TASK_KEYS]);
/* Before and after a file is read: sets the checks, which call cfg_error(); forgets what was read and not taken. */
void ws_config_task_begin(cfg_t *cfg, const char *path);
void ws_config_task_end(void);
/* The file's tasks, in its order, in place of those in @c, if it has any. */
void ws_config_task_take(struct ws_config *c);

#endif
