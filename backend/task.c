// SPDX-License-Identifier: Apache-2.0
#include "backend/task.h"

#include <stdio.h>
#include <string.h>

void ws_task_default(struct ws_task *ret, const char *exe)
{
    const char *slash = strrchr(exe, '/');
    *ret = (struct ws_task){.weight = 1};
    snprintf(ret->name, sizeof ret->name, "%.*s", WS_TASK_NAME_BYTES - 1,
             slash    ? slash + 1
             : exe[0] ? exe
                      : "unknown");
}
