// SPDX-License-Identifier: Apache-2.0
#include "frontend/module/jit.h"

#include <stdint.h>
#include <string.h>

#include "base/macros.h"
#include "frontend/errors.h"

enum {
    MAX_REGISTERS = 0,
    WALL_TIME = 2,
    INFO_LOG = 3,
    INFO_LOG_BYTES = 4,
    ERROR_LOG = 5,
    ERROR_LOG_BYTES = 6
};

int ws_jit_read(struct ws_jit *j, unsigned n, const int *options, void **values)
{
    *j = (struct ws_jit){0};
    if (n && (!options || !values))
        return CUDA_INVALID_VALUE;
    for (unsigned i = 0; i < n; i++) { /* numbers are passed as the pointer itself */
        switch (options[i]) {
        case MAX_REGISTERS:
            j->max_regs = (unsigned)(uintptr_t)values[i];
            break;
        case INFO_LOG:
            j->info_log = values[i];
            break;
        case INFO_LOG_BYTES:
            j->info_bytes = (unsigned)(uintptr_t)values[i];
            j->info_bytes_slot = &values[i];
            break;
        case ERROR_LOG:
            j->error_log = values[i];
            break;
        case ERROR_LOG_BYTES:
            j->error_bytes = (unsigned)(uintptr_t)values[i];
            j->error_bytes_slot = &values[i];
            break;
        case WALL_TIME:
            j->wall_time_slot = &values[i];
            break;
        default: /* optimisation levels and the like: nothing depends on them */
            break;
        }
    }
    return CUDA_OK;
}

void ws_jit_wall_time(const struct ws_jit *j, double ms)
{
    float f = (float)ms;
    if (j->wall_time_slot)
        memcpy(j->wall_time_slot, &f, sizeof(f));
}

static void write_log(char *log, size_t room, void **slot, const char *text)
{
    size_t n = 0;
    if (log && room) {
        n = WS_MIN(strlen(text), room - 1);
        memcpy(log, text, n);
        log[n] = '\0';
    }
    if (slot)
        *slot = (void *)(uintptr_t)n;
}

void ws_jit_report(const struct ws_jit *j, const char *text)
{
    write_log(j->info_log, j->info_bytes, j->info_bytes_slot, "");
    write_log(j->error_log, j->error_bytes, j->error_bytes_slot, text ? text : "");
}
