// SPDX-License-Identifier: Apache-2.0
#include "frontend/module/jit.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/macros.h"
#include "frontend/errors.h"

enum { SAID_MAX = 32 };
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

/* Whether a failure has been said before, or enough of them. Programs try images one after the
 * other, and again. */
static bool said_before(int code, const char *text)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static uint64_t said[SAID_MAX];
    static size_t n;
    uint64_t now = ws_hash(text, strlen(text)) ^ (uint64_t)code;
    bool found = false;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < n && !found; i++)
        found = said[i] == now;
    if (!found && n < SAID_MAX)
        said[n++] = now;
    else
        found = true;
    pthread_mutex_unlock(&lock);
    return found;
}

void ws_jit_report(const struct ws_jit *j, int code, const char *text)
{
    bool unusable = code && !ws_cuda_sticky(code) && code != CUDA_OUT_OF_MEMORY;
    if (unusable && !j->error_log && !said_before(code, text ? text : ""))
        ws_log(WS_ERROR, "module: %s%s%s", ws_drv_error_name(code), text ? ": " : "",
               text ? text : "");
    write_log(j->info_log, j->info_bytes, j->info_bytes_slot, "");
    write_log(j->error_log, j->error_bytes, j->error_bytes_slot, text ? text : "");
}
