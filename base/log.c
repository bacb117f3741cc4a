// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"

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

WS_PRINTF(2, 0) static void put(enum ws_log_level level, const char *fmt, va_list ap)
{
    static const char *const names[] = {"error", "warning", "info", "debug"};
    char line[1024];
    int n = snprintf(line, sizeof(line), "%s: %s: ", log_prefix, names[level]);
    int m = vsnprintf(line + n, sizeof(line) - n - 1, fmt, ap);
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

/* ---- floods ---- */

enum { KINDS = 256 };
static struct kind {
    const char *_Atomic fmt; /* NULL: free */
    _Atomic uint64_t due_ns; /* when the last line would have come if all had kept their distance */
    _Atomic uint64_t n_left_out;
} kinds[KINDS];
static _Atomic uint64_t distance_ns; /* of lines of one kind; 0: there is no limit */

void ws_log_set_limit(uint32_t per_s)
{
    distance_ns = per_s ? 1000000000 / per_s : 0;
}

/* Where there are too many kinds, the last ones share a place. */
static struct kind *kind_of(const char *fmt)
{
    unsigned at = (unsigned)ws_hash_word((uintptr_t)fmt) % KINDS;
    for (unsigned n = 0; n < KINDS; n++, at = (at + 1) % KINDS) {
        const char *has = NULL;
        if (atomic_compare_exchange_strong(&kinds[at].fmt, &has, fmt) || has == fmt)
            return &kinds[at];
    }
    return &kinds[0];
}

/* Return: false: the line is one of too many. *ret_left_out: those before it. */
static bool may_pass(const char *fmt, uint64_t *ret_left_out)
{
    struct kind *k = kind_of(fmt);
    uint64_t now_ns = ws_clock_ns(), due_ns = k->due_ns, next_ns, apart_ns = distance_ns;
    do {
        next_ns = WS_MAX(due_ns, now_ns) + apart_ns;
        if (next_ns > now_ns + WS_LOG_BURST * apart_ns) {
            k->n_left_out++;
            return false;
        }
    } while (!atomic_compare_exchange_weak(&k->due_ns, &due_ns, next_ns));
    *ret_left_out = atomic_exchange(&k->n_left_out, 0);
    return true;
}

void ws_log(enum ws_log_level level, const char *fmt, ...)
{
    uint64_t left_out = 0;
    va_list ap;
    if (level > log_level && level != WS_DEBUG)
        return;
    if (distance_ns && level != WS_DEBUG && !may_pass(fmt, &left_out))
        return;
    if (left_out)
        ws_log(level, "log: left out %llu lines like the next one", (unsigned long long)left_out);
    va_start(ap, fmt);
    put(level, fmt, ap);
    va_end(ap);
}
