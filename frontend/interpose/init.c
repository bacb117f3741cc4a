// SPDX-License-Identifier: Apache-2.0
/* Start and end of the library in a process. The constructor runs in every program that inherits
 * LD_PRELOAD, and nearly all of them never call CUDA. So it opens no socket, starts no thread and
 * loads nothing: it reads the configuration, and looks in the loaded files for CUDA runtimes to
 * redirect. It runs before libc's own initialisation (initfirst), so the environment comes as an
 * argument. */
#include "frontend/config.h"
#include "frontend/interpose/redirect.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "frontend/session/session.h"

enum { TIMEOUT_MS_DEFAULT = 2000, TIMEOUT_MS_MAX = 600 * 1000, SMS_MAX = 1 << 16 };
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

static void read_config(char **envp)
{
    const char *s;
    set(config.socket, sizeof(config.socket), env(envp, WS_ENV_SOCKET));
    set(config.task, sizeof(config.task), env(envp, WS_ENV_TASK));
    set(config.log, sizeof(config.log), env(envp, "WATTSHARE_LOG"));
    s = env(envp, "CUDA_VISIBLE_DEVICES");
    config.has_visible_devices = s && strlen(s) < sizeof(config.visible_devices);
    if (config.has_visible_devices)
        set(config.visible_devices, sizeof(config.visible_devices), s);
    s = env(envp, "WATTSHARE_RING");
    config.ring = !s || strcmp(s, "off") != 0;
    set_number(&config.timeout_ms, TIMEOUT_MS_MAX, env(envp, "WATTSHARE_TIMEOUT_MS"));
    set_number(&config.sms, SMS_MAX, env(envp, WS_ENV_SMS));
}

__attribute__((constructor)) static void begin(int argc, char **argv, char **envp)
{
    if (!environ)
        environ = envp; /* what libc is about to do; getenv() is used from here on */
    read_config(envp);
    ws_redirect_begin();
}

__attribute__((destructor)) static void end(void)
{
    ws_session_shutdown();
}
