// SPDX-License-Identifier: Apache-2.0
/* backend/process/config_task.h - the sections `task NAME { … }` while a file is read: for
 * config.c only. Threads: as there. */
#ifndef WS_BACKEND_PROCESS_CONFIG_TASK_H
#define WS_BACKEND_PROCESS_CONFIG_TASK_H

#include "backend/process/config.h"
#include "backend/process/config_key.h"

/* ---- what config_task.c offers ---- */

/* Checks the section that ends here and adds it to the tasks of the file at @path. Return: 0, or
 * -1 after cfg_error(). */
int ws_config_task_add(cfg_t *cfg, cfg_t *section, const char *path);
/* Puts the file's tasks, in its order, in place of those in @c, if the file has any. */
void ws_config_task_take(struct ws_config *c);
/* Forgets the tasks that were read and not taken. */
void ws_config_task_end(void);

/* ---- what config.c offers ---- */

/* Stores the values of a section, with the defaults of what it leaves out. Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_config_take_task(struct ws_task_rule *to, cfg_t *section);
/* The line of the key's last value in the section being read; 0: it has none. */
uint32_t ws_config_line(enum ws_config_section section, const char *name);
/* The first line of a value in the section being read; 0: it has none. */
uint32_t ws_config_first_line(enum ws_config_section section);

#endif
