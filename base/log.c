// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static enum ws_log_level log_level = WS_INFO;
static int log_fd = 2;
static char log_prefix[32] = "wattshare";
static char debug_list[256];
static pthread_once_t debug_once = PTHREAD_ONCE_INIT;

static void (*_Atomic log_tap)(enum ws_log_level level, const char *text, size_t n);

void ws_log_set_tap(void (*tap)(enum ws_log_level level, const char *text, size_t n))
{
    log_tap = tap;
}

static bool (*_Atomic log_writer)(enum ws_log_level level, const char *text, size_t n);

void ws_log_set_writer(bool (*writer)(enum ws_log_level level, const char *text, size_t n))
{
    log_writer = writer;
}

void ws_log_set_level(enum ws_log_level level)
{
    log_level = level;
}

void ws_log_set_output(int fd, const char *prefix)
{
    log_fd = fd;
    snprintf(log_prefix, sizeof(log_prefix), "%s", prefix);
}

static void debug_read(void)
{
    const char *s = getenv("WS_DEBUG");
    if (s)
        snprintf(debug_list, sizeof(debug_list), ",%s,", s);
}

bool ws_debug_on(const char *module)
{
    char key[64];
    pthread_once(&debug_once, debug_read);
    if (!debug_list[0])
        return false;
    snprintf(key, sizeof(key), ",%s,", module);
    return strstr(debug_list, key) || strstr(debug_list, ",all,");
}

void ws_log(enum ws_log_level level, const char *fmt, ...)
{
    static const char *const names[] = {"error", "warning", "info", "debug"};
    char line[1024];
    va_list ap;
    if (level > log_level && level != WS_DEBUG)
        return;
    int n = snprintf(line, sizeof(line), "%s: %s: ", log_prefix, names[level]);
    va_start(ap, fmt);
    int m = vsnprintf(line + n, sizeof(line) - n - 1, fmt, ap);
    va_end(ap);
    if (m < 0)
        return;
    int head = n;
    n = WS_MIN(n + m, (int)sizeof(line) - 2);
    void (*tap)(enum ws_log_level, const char *, size_t) = log_tap;
    if (tap)
        tap(level, line + head, (size_t)(n - head));
    bool (*writer)(enum ws_log_level, const char *, size_t) = log_writer;
    if (writer && writer(level, line + head, (size_t)(n - head)))
        return;
    line[n++] = '\n';
    ssize_t ignored = write(log_fd, line, n);
    (void)ignored;
}
