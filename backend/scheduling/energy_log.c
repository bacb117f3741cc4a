// SPDX-License-Identifier: Apache-2.0
/* The log of energy: at each interval a line for every client, for those that are gone together,
 * for the system, for what is under way, and the GPUs' counters, so that whoever reads it can
 * see that the lines of one time add up to "counter". CSV, appended to, each interval in one
 * write. A write that fails is told once; the log goes on when there is room again. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "backend/backend.h"
#include "base/alloc.h"
#include "base/clock.h"

struct ws_energy_log {
    int fd;
    bool failed; /* told */
    uint64_t every_ns, next_ns;
    char *buf;
    size_t n, cap;
};

static const char head[] = "unix_ms,who,client,pid,uid,task,busy_uj,idle_uj,total_uj\n";

int ws_energy_log_open(struct ws_energy_log **ret, const struct ws_config *c)
{
    struct stat st;
    *ret = NULL;
    if (!c->energy_log)
        return 0;
    struct ws_energy_log *l = ws_alloc(sizeof(*l));
    if (!l)
        return ws_raise(-ENOMEM);
    l->every_ns = c->energy_log_ms * WS_NS_PER_MS;
    l->next_ns = ws_clock_ns() + l->every_ns;
    l->fd = open(c->energy_log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0640);
    int r = l->fd < 0 || fstat(l->fd, &st) ? -errno : 0;
    if (!r && !S_ISREG(st.st_mode))
        r = -EINVAL;
    if (!r && !st.st_size && write(l->fd, head, sizeof(head) - 1) != sizeof(head) - 1)
        r = errno ? -errno : -EIO;
    if (r) {
        if (l->fd >= 0)
            close(l->fd);
        free(l);
        return r;
    }
    *ret = l;
    return 0;
}

static void line(struct ws_energy_log *l, const char *fmt, ...) WS_PRINTF(2, 3);
static void line(struct ws_energy_log *l, const char *fmt, ...)
{
    enum { LINE_MAX_BYTES = 512 };
    void *v = l->buf;
    va_list ap;
    if (ws_grow(&v, &l->cap, l->n + LINE_MAX_BYTES, 1))
        return; /* that line is missing, which the sum shows */
    l->buf = v;
    va_start(ap, fmt);
    int n = vsnprintf(l->buf + l->n, LINE_MAX_BYTES, fmt, ap);
    va_end(ap);
    l->n += n > 0 ? (size_t)WS_MIN(n, LINE_MAX_BYTES - 1) : 0;
}

/* Names of tasks have no commas where a conf gives them; programs' own may have anything
 * printable. */
static const char *plain(const char *text, char *buf, size_t size)
{
    size_t n = 0;
    for (; *text && n + 1 < size; text++)
        buf[n++] = strchr(",\"\n\r", *text) ? '_' : *text;
    buf[n] = 0;
    return buf;
}

static void client_line(struct ws_energy_log *l, uint64_t ms, const struct ws_client *c)
{
    char task[WS_TASK_NAME_BYTES];
    struct ws_energy_sum e = ws_energy_of_client(c);
    line(l, "%" PRIu64 ",client,%u,%u,%d,%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", ms, c->id,
         c->who.pid, (int)c->who.uid, plain(c->work.name, task, sizeof(task)), e.busy_uj, e.idle_uj,
         e.busy_uj + e.idle_uj);
}

static void write_entry(struct ws_energy_log *l, struct ws_server *s)
{
    struct timespec t;
    struct ws_gpu_energy sum = {0};
    clock_gettime(CLOCK_REALTIME, &t);
    uint64_t ms = (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / WS_NS_PER_MS;
    ws_energy_settle(s);
    l->n = 0;
    ws_list_for_each (n, &s->clients.all)
        client_line(l, ms, ws_list_entry(n, struct ws_client, node));
    ws_list_for_each (n, &s->clients.dying)
        client_line(l, ms, ws_list_entry(n, struct ws_client, node));
    for (uint32_t g = 0; g < s->n_gpus; g++) {
        const struct ws_gpu_energy *e = &s->gpus[g].energy;
        sum.former_uj += e->former_uj;
        sum.system_uj += e->system_uj;
        sum.unmatched_uj += ws_gpu_energy_under_way(e);
        sum.counter_uj += e->counter_uj;
    }
    line(l, "%" PRIu64 ",former,,,,,,,%" PRIu64 "\n", ms, sum.former_uj);
    line(l, "%" PRIu64 ",system,,,,,,%" PRIu64 ",%" PRIu64 "\n", ms, sum.system_uj, sum.system_uj);
    line(l, "%" PRIu64 ",under_way,,,,,,,%" PRIu64 "\n", ms, sum.unmatched_uj);
    line(l, "%" PRIu64 ",counter,,,,,,,%" PRIu64 "\n", ms, sum.counter_uj);
    ssize_t r = write(l->fd, l->buf, l->n);
    if (r != (ssize_t)l->n && !l->failed)
        ws_log(WS_ERROR, "energy_log: not written: %s", r < 0 ? strerror(errno) : "no room");
    l->failed = r != (ssize_t)l->n;
}

int ws_energy_log_turn(struct ws_energy_log *l, struct ws_server *s)
{
    if (!l)
        return -1;
    uint64_t now = ws_clock_ns();
    if (now >= l->next_ns) {
        write_entry(l, s);
        l->next_ns = now + l->every_ns;
    }
    return (int)((l->next_ns - now) / WS_NS_PER_MS) + 1;
}

void ws_energy_log_close(struct ws_energy_log *l, struct ws_server *s)
{
    if (!l)
        return;
    write_entry(l, s);
    close(l->fd);
    free(l->buf);
    free(l);
}
