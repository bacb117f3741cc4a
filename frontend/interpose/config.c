// SPDX-License-Identifier: Apache-2.0
/* Reads the configuration from the environment, which comes as an argument because libc may not
 * have it yet. */
#include "frontend/config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/protocol.h"

enum { TIMEOUT_MS_DEFAULT = 10000, TIMEOUT_MS_MAX = 600 * 1000, SMS_MAX = 1 << 16 };
static struct ws_frontend_config config = {
    .socket = WS_DEFAULT_SOCKET, .timeout_ms = TIMEOUT_MS_DEFAULT, .ring = true};

const struct ws_frontend_config *ws_frontend_config(void)
{
    return &config;
}

static const char *env(char **envp, const char *name)
{
    size_t n = strlen(name);
    for (; envp && *envp; envp++)
        if (!strncmp(*envp, name, n) && (*envp)[n] == '=')
            return *envp + n + 1;
    return NULL;
}

/* What doesn't fit is left out rather than cut. */
static void set(char *to, size_t room, const char *value)
{
    size_t n = value ? strlen(value) : 0;
    if (n && n < room)
        memcpy(to, value, n + 1);
}

/* What is no number from 1 to @max changes nothing. */
static void set_number(int *to, long max, const char *value)
{
    char *end;
    errno = 0;
    long v = value ? strtol(value, &end, 10) : 0;
    if (value && !errno && end != value && !*end && v > 0 && v <= max)
        *to = (int)v;
}

void ws_frontend_config_read(char **envp)
{
    const char *s;
    set(config.socket, sizeof(config.socket), env(envp, WS_ENV_SOCKET));
    set(config.task, sizeof(config.task), env(envp, WS_ENV_TASK));
    set(config.log, sizeof(config.log), env(envp, "WATTSHARE_LOG"));
    set(config.check, sizeof(config.check), env(envp, WS_ENV_CHECK));
    s = env(envp, WS_ENV_CHECK_LEAKS);
    config.check_leaks = s && !strcmp(s, "1");
    s = env(envp, "CUDA_VISIBLE_DEVICES");
    config.has_visible_devices = s && strlen(s) < sizeof(config.visible_devices);
    if (config.has_visible_devices)
        set(config.visible_devices, sizeof(config.visible_devices), s);
    s = env(envp, "WATTSHARE_RING");
    config.ring = !s || strcmp(s, "off") != 0;
    set_number(&config.timeout_ms, TIMEOUT_MS_MAX, env(envp, "WATTSHARE_TIMEOUT_MS"));
    set_number(&config.sms, SMS_MAX, env(envp, WS_ENV_SMS));
}
