// SPDX-License-Identifier: Apache-2.0
/* The page, and a server of HTTP that knows one path. It shares the loop's thread: nothing here waits for a peer. A connection
 * brings one request, gets one answer and is closed; there are few at a time, and one that is slow makes room for the next.
 *
 * Clients come and go, so series for each would never end: what clients used is summed for each user and task, and stays when
 * they leave (accounts). The values of those that are connected are added anew on each scrape. */
#include <config.h> /* the build's; "config.h" would be ours */

#include "backend/backend.h"

#include <inttypes.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "backend/process/metrics.h"

#include "backend/process/real.h"
#include "base/alloc.h"
#include "base/clock.h"

/* ---- accounts ---- */

struct used {
    uint64_t device_ns, energy_uj, n_kernels, n_copies, bytes_in, bytes_out, memory_bytes;
    uint64_t n_clients;
};
struct ws_account {
    struct {
        uint32_t uid;
        char task[64];
    } key;
    struct used ended, live; /* live: of this scrape */
    UT_hash_handle hh;
};

static void add_client(struct used *u, const struct ws_client *c)
{
    const struct ws_client_stats *t = &c->stats;
    struct ws_energy_sum e = ws_energy_of_client(c);
    u->device_ns += t->device_ns;
    u->energy_uj += e.busy_uj + e.idle_uj;
    u->n_kernels += t->n_kernels;
    u->n_copies += t->n_copies;
    u->bytes_in += t->bytes_in;
    u->bytes_out += t->bytes_out;
}

static struct ws_account *account_get(struct ws_server *s, uint32_t uid, const char *task)
{
    struct ws_account probe, *a;
    memset(&probe.key, 0, sizeof probe.key);
    probe.key.uid = uid;
    snprintf(probe.key.task, sizeof probe.key.task, "%s", task);
    HASH_FIND(hh, s->accounts, &probe.key, sizeof probe.key, a);
    if (a)
        return a;
    if (HASH_COUNT(s->accounts) >= WS_ACCOUNTS_MAX && strcmp(task, "other"))
        return account_get(s, UINT32_MAX, "other");
    a = ws_alloc(sizeof *a);
    if (!a)
        return NULL;
    a->key = probe.key;
    HASH_ADD(hh, s->accounts, key, sizeof a->key, a);
    return a;
}

static struct ws_account *account_of(struct ws_client *c)
{
    const char *slash = strrchr(c->exe, '/');
    return account_get(c->server, c->uid, c->task[0] ? c->task : slash ? slash + 1 : c->exe);
}

void ws_accounts_ended(struct ws_client *c)
{
    struct ws_account *a = account_of(c);
    if (a)
        add_client(&a->ended, c);
}

void ws_accounts_free(struct ws_server *s)
{
    struct ws_account *a, *next;
    HASH_ITER (hh, s->accounts, a, next) {
        HASH_DEL(s->accounts, a);
        free(a);
    }
}

static void sum_live(struct ws_server *s)
{
    for (struct ws_account *a = s->accounts; a; a = a->hh.next)
        a->live = a->ended;
    ws_list_for_each (n, &s->clients) {
        struct ws_client *c = ws_list_entry(n, struct ws_client, node);
        struct ws_account *a = account_of(c);
        if (!a)
            continue;
        add_client(&a->live, c);
        a->live.memory_bytes += c->stats.memory_bytes;
        a->live.n_clients++;
    }
    ws_list_for_each (n, &s->dying) { /* its work may still take energy */
        struct ws_client *c = ws_list_entry(n, struct ws_client, node);
        struct ws_account *a = account_of(c);
        if (a)
            add_client(&a->live, c);
    }
}

/* ---- the page ---- */

static void head(FILE *f, const char *name, const char *type, const char *help)
{
    fprintf(f, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void label(FILE *f, const char *text)
{
    for (; *text; text++) {
        if (*text == '\\' || *text == '"')
            fputc('\\', f);
        if (*text == '\n')
            fputs("\\n", f);
        else
            fputc((unsigned char)*text < 0x80 ? *text : '?', f);
    }
}

/* A value of @unit parts in one, exactly: 1500000 of 1000000 is 1.500000. */
static void value(FILE *f, uint64_t v, uint64_t unit)
{
    static const int digits[] = {0, 3, 6, 9};
    int d = unit == 1 ? 0 : unit == 1000 ? 1 : unit == 1000000 ? 2 : 3;
    if (d)
        fprintf(f, " %" PRIu64 ".%0*" PRIu64 "\n", v / unit, digits[d], v % unit);
    else
        fprintf(f, " %" PRIu64 "\n", v);
}

static void one(FILE *f, const char *name, const char *type, const char *help, uint64_t v)
{
    head(f, name, type, help);
    fputs(name, f);
    value(f, v, 1);
}

static void daemon_page(struct ws_server *s, FILE *f)
{
    head(f, "wattshare_build_info", "gauge", "Version of the daemon; always 1.");
    fputs("wattshare_build_info{version=\"" VERSION "\"} 1\n", f);
    head(f, "wattshare_start_time_seconds", "gauge",
         "When the daemon started, in seconds since the epoch.");
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    fprintf(f, "wattshare_start_time_seconds %.3f\n",
            (double)now.tv_sec + (double)now.tv_nsec / 1e9 -
                (double)(ws_clock_ns() - s->start_ns) / 1e9);
    one(f, "wattshare_clients", "gauge", "Clients connected now.", s->n_clients);
    one(f, "wattshare_client_connections_total", "counter", "Clients that have said hello.",
        s->next_client);
    one(f, "wattshare_messages_total", "counter", "Messages taken from clients.", s->n_messages);
    one(f, "wattshare_commands_total", "counter", "Commands taken from clients.", s->n_commands);
    struct ws_dispatch_counts policy = ws_dispatch_counts(s);
    one(f, "wattshare_policy_jobs_total", "counter", "Jobs that the policy decided on.",
        policy.n_jobs);
    one(f, "wattshare_policy_preemptions_total", "counter", "Jobs that it stopped for others.",
        policy.n_preemptions);
    one(f, "wattshare_policy_merged_launches_total", "counter",
        "Launches made of several clients' ones.", policy.n_merged);
    one(f, "wattshare_policy_moves_total", "counter",
        "Times a client's memory was moved to another GPU.", policy.n_moves);
    one(f, "wattshare_modules", "gauge", "Modules in memory.", s->cache.n_codes);
    one(f, "wattshare_not_supported_total", "counter",
        "Calls that were answered with \"not supported\".", ws_ledger_total(&s->not_supported));
}

static const struct gpu_series {
    const char *name, *type, *help;
    uint64_t unit;
    enum { OF_TELEMETRY, OF_GPU } of;
    size_t offset;
    bool is_32;
} gpu_series[] = {
#define TELEMETRY(name, type, help, unit, field)                                                   \
    {                                                                                              \
        name, type, help, unit, OF_TELEMETRY, offsetof(struct ws_device_telemetry, field),         \
            sizeof((struct ws_device_telemetry *)0)->field == 4                                    \
    }
#define ACCOUNT(name, help, field)                                                                 \
    {                                                                                              \
        name, "counter", help, 1000000, OF_GPU, offsetof(struct ws_gpu_energy, field), false       \
    }
    TELEMETRY("wattshare_gpu_memory_used_bytes", "gauge", "Memory in use.", 1, memory_used_bytes),
    ACCOUNT("wattshare_gpu_energy_joules_total", "Energy used since the daemon's start.",
            counter_uj),
    ACCOUNT("wattshare_gpu_idle_energy_joules_total", "Of that, while no work ran.", idle_uj),
    ACCOUNT("wattshare_gpu_system_energy_joules_total",
            "Of that, nobody's: idle with no client connected.", system_uj),
    TELEMETRY("wattshare_gpu_power_watts", "gauge", "Power over the last busy stretch.", 1000,
              power_mw),
    TELEMETRY("wattshare_gpu_busy_seconds_total", "counter",
              "Device time with at least one SM at work.", 1000000000, busy_ns),
    TELEMETRY("wattshare_gpu_sm_busy_seconds_total", "counter",
              "Device time at work, summed over SMs.", 1000000000, sm_busy_ns),
    TELEMETRY("wattshare_gpu_kernels_total", "counter", "Kernels run.", 1, n_kernels),
    TELEMETRY("wattshare_gpu_copies_total", "counter", "Copies and fills done.", 1, n_copies),
    TELEMETRY("wattshare_gpu_copied_bytes_total", "counter", "Bytes copied and filled.", 1,
              copied_bytes),
    TELEMETRY("wattshare_gpu_running_operations", "gauge", "Operations submitted and not done.", 1,
              n_running),
#undef TELEMETRY
#undef ACCOUNT
};

static void gpu_page(struct ws_server *s, FILE *f)
{
    struct ws_device_telemetry t[WS_MAX_GPUS_CONFIGURED];
    head(f, "wattshare_gpu_info", "gauge", "What the GPU is; always 1.");
    for (uint32_t i = 0; i < s->n_gpus; i++) {
        const struct ws_device *d = s->gpus[i].device;
        ws_device_telemetry(s->gpus[i].device, &t[i]);
        fprintf(f, "wattshare_gpu_info{gpu=\"%u\",name=\"", i);
        label(f, d->spec.name);
        fputs("\",product=\"", f);
        label(f, d->spec.product);
        fprintf(f, "\",kind=\"%s\"} 1\n", d->ops->name);
    }
    head(f, "wattshare_gpu_sms", "gauge", "Streaming multiprocessors.");
    for (uint32_t i = 0; i < s->n_gpus; i++)
        fprintf(f, "wattshare_gpu_sms{gpu=\"%u\"} %u\n", i, s->gpus[i].device->spec.n_sms);
    head(f, "wattshare_gpu_memory_bytes", "gauge", "Memory of the GPU.");
    for (uint32_t i = 0; i < s->n_gpus; i++)
        fprintf(f, "wattshare_gpu_memory_bytes{gpu=\"%u\"} %" PRIu64 "\n", i,
                s->gpus[i].device->spec.memory_bytes);
    for (uint32_t i = 0, told = 0; i < s->n_gpus; i++) {
        uint64_t n;
        if (!ws_real_restarts(s->gpus[i].device, &n))
            continue;
        if (!told++)
            head(f, "wattshare_gpu_worker_restarts_total", "counter",
                 "Restarts of the process that has the GPU.");
        fprintf(f, "wattshare_gpu_worker_restarts_total{gpu=\"%u\"} %" PRIu64 "\n", i, n);
    }
    for (size_t k = 0; k < WS_ARRAY_SIZE(gpu_series); k++) {
        const struct gpu_series *g = &gpu_series[k];
        head(f, g->name, g->type, g->help);
        for (uint32_t i = 0; i < s->n_gpus; i++) {
            const char *from =
                g->of == OF_GPU ? (const char *)&s->gpus[i].energy : (const char *)&t[i];
            const char *field = from + g->offset;
            fprintf(f, "%s{gpu=\"%u\"}", g->name, i);
            value(f, g->is_32 ? *(const uint32_t *)field : *(const uint64_t *)field, g->unit);
        }
    }
}

static const struct task_series {
    const char *name, *type, *help;
    uint64_t unit;
    size_t offset;
} task_series[] = {
#define USED(name, type, help, unit, field)                                                        \
    {                                                                                              \
        name, type, help, unit, offsetof(struct used, field)                                       \
    }
    USED("wattshare_task_clients", "gauge", "Clients of the task connected now.", 1, n_clients),
    USED("wattshare_task_memory_bytes", "gauge", "Device memory of its clients.", 1, memory_bytes),
    USED("wattshare_task_energy_joules_total", "counter",
         "Energy of its kernels and copies, ended clients included.", 1000000, energy_uj),
    USED("wattshare_task_device_seconds_total", "counter",
         "Device time of its kernels and copies, summed.", 1000000000, device_ns),
    USED("wattshare_task_kernels_total", "counter", "Kernels.", 1, n_kernels),
    USED("wattshare_task_copies_total", "counter", "Copies and fills.", 1, n_copies),
    USED("wattshare_task_to_device_bytes_total", "counter", "Bytes copied to devices.", 1,
         bytes_in),
    USED("wattshare_task_from_device_bytes_total", "counter", "Bytes copied from devices.", 1,
         bytes_out),
#undef USED
};

static void task_page(struct ws_server *s, FILE *f)
{
    sum_live(s);
    for (size_t k = 0; s->accounts && k < WS_ARRAY_SIZE(task_series); k++) {
        const struct task_series *t = &task_series[k];
        head(f, t->name, t->type, t->help);
        for (struct ws_account *a = s->accounts; a; a = a->hh.next) {
            fprintf(f, "%s{user=\"", t->name);
            if (a->key.uid != UINT32_MAX)
                fprintf(f, "%u", a->key.uid);
            fputs("\",task=\"", f);
            label(f, a->key.task);
            fputs("\"}", f);
            value(f, *(const uint64_t *)((const char *)&a->live + t->offset), t->unit);
        }
    }
}

int ws_metrics_page(struct ws_server *s, char **ret, size_t *ret_n)
{
    char *buf = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&buf, &n);
    if (!f)
        return ws_raise(-ENOMEM);
    ws_energy_settle(s);
    daemon_page(s, f);
    gpu_page(s, f);
    task_page(s, f);
    if (fclose(f)) {
        free(buf);
        return ws_raise(-ENOMEM);
    }
    *ret = buf;
    *ret_n = n;
    return 0;
}

/* ---- HTTP ---- */

enum { CONNS_MAX = 16, REQUEST_BYTES = 4096, EVENTS = 8 };

struct conn {
    int fd;
    size_t n_in;
    char in[REQUEST_BYTES];
    char *out;
    size_t n_out, sent;
    struct ws_list node; /* oldest first */
};
struct ws_metrics {
    int epoll_fd, listen_fd;
    struct ws_list conns;
    unsigned n_conns;
};

static int listen_at(const char *host, const char *port)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_PASSIVE},
                    *a;
    int on = 1;
    if (getaddrinfo(host, port, &hints, &a))
        return -EINVAL;
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    int r = fd < 0 || bind(fd, a->ai_addr, a->ai_addrlen) || listen(fd, CONNS_MAX) ? -errno : 0;
    freeaddrinfo(a);
    if (r && fd >= 0)
        close(fd);
    return r ? r : fd;
}

int ws_metrics_open(struct ws_metrics **ret, const char *address)
{
    const char *colon = strrchr(address, ':');
    bool bracket = address[0] == '[';
    char host[64];
    if (!colon)
        return -EINVAL;
    snprintf(host, sizeof host, "%.*s", (int)(colon - address) - 2 * bracket, address + bracket);
    int fd = listen_at(host, colon + 1);
    if (fd < 0)
        return fd;
    struct ws_metrics *m = ws_alloc(sizeof *m);
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = NULL};
    int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (!m || epoll_fd < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &e)) {
        int r = m ? -errno : -ENOMEM;
        if (epoll_fd >= 0)
            close(epoll_fd);
        close(fd);
        free(m);
        return r;
    }
    ws_list_init(&m->conns);
    m->epoll_fd = epoll_fd;
    m->listen_fd = fd;
    *ret = m;
    return 0;
}

static void conn_close(struct ws_metrics *m, struct conn *k)
{
    ws_list_remove(&k->node);
    m->n_conns--;
    close(k->fd);
    free(k->out);
    free(k);
}

void ws_metrics_close(struct ws_metrics *m)
{
    if (!m)
        return;
    while (!ws_list_empty(&m->conns))
        conn_close(m, ws_list_entry(m->conns.next, struct conn, node));
    close(m->listen_fd);
    close(m->epoll_fd);
    free(m);
}

int ws_metrics_fd(const struct ws_metrics *m)
{
    return m ? m->epoll_fd : -1;
}

static void accept_all(struct ws_metrics *m)
{
    for (;;) {
        int fd = accept4(m->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            return;
        if (m->n_conns >= CONNS_MAX)
            conn_close(m, ws_list_entry(m->conns.next, struct conn, node));
        struct conn *k = ws_alloc(sizeof *k);
        struct epoll_event e = {.events = EPOLLIN, .data.ptr = k};
        if (!k || epoll_ctl(m->epoll_fd, EPOLL_CTL_ADD, fd, &e)) {
            close(fd);
            free(k);
            continue;
        }
        k->fd = fd;
        m->n_conns++;
        ws_list_append(&m->conns, &k->node);
    }
}

static bool answer(struct conn *k, const char *status, const char *body, size_t n, bool with_body)
{
    int head_bytes = asprintf(&k->out,
                              "HTTP/1.1 %s\r\nContent-Type: text/plain; version=0.0.4; "
                              "charset=utf-8\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
                              status, n);
    if (head_bytes < 0) {
        k->out = NULL;
        return false;
    }
    k->n_out = (size_t)head_bytes;
    if (!with_body)
        return true;
    char *all = realloc(k->out, k->n_out + n);
    if (!all)
        return false;
    k->out = all;
    memcpy(all + k->n_out, body, n);
    k->n_out += n;
    return true;
}

/* Return: false: nothing can be answered. */
static bool respond(struct ws_server *s, struct conn *k)
{
    char method[8], path[256];
    static const char lost[] = "The metrics are at /metrics.\n", wrong[] = "GET, please.\n";
    if (sscanf(k->in, "%7s %255s", method, path) != 2)
        return answer(k, "400 Bad Request", wrong, strlen(wrong), true);
    bool get = !strcmp(method, "GET");
    if (!get && strcmp(method, "HEAD"))
        return answer(k, "405 Method Not Allowed", wrong, strlen(wrong), true);
    path[strcspn(path, "?")] = 0;
    if (strcmp(path, "/metrics"))
        return answer(k, "404 Not Found", lost, strlen(lost), get);
    char *page;
    size_t n;
    if (ws_metrics_page(s, &page, &n))
        return false;
    bool ok = answer(k, "200 OK", page, n, get);
    free(page);
    return ok;
}

/* Return: false: it is over. */
static bool conn_turn(struct ws_metrics *m, struct ws_server *s, struct conn *k)
{
    while (!k->out) {
        ssize_t n = recv(k->fd, k->in + k->n_in, sizeof k->in - 1 - k->n_in, 0);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return true;
        if (n <= 0)
            return false;
        k->n_in += (size_t)n;
        k->in[k->n_in] = 0;
        if (strstr(k->in, "\r\n\r\n") || strstr(k->in, "\n\n")) {
            if (!respond(s, k))
                return false;
        } else if (k->n_in == sizeof k->in - 1) {
            return false;
        }
    }
    while (k->sent < k->n_out) {
        ssize_t n = send(k->fd, k->out + k->sent, k->n_out - k->sent, MSG_NOSIGNAL);
        struct epoll_event e = {.events = EPOLLOUT, .data.ptr = k};
        if (n < 0 && errno == EAGAIN)
            return !epoll_ctl(m->epoll_fd, EPOLL_CTL_MOD, k->fd, &e);
        if (n <= 0)
            return false;
        k->sent += (size_t)n;
    }
    return false;
}

void ws_metrics_turn(struct ws_metrics *m, struct ws_server *s)
{
    struct epoll_event events[EVENTS];
    int n = epoll_wait(m->epoll_fd, events, EVENTS, 0);
    bool newcomers = false;
    for (int i = 0; i < n; i++) {
        struct conn *k = events[i].data.ptr;
        if (!k)
            newcomers = true;
        else if (!conn_turn(m, s, k))
            conn_close(m, k);
    }
    if (newcomers) /* last: it may close connections */
        accept_all(m);
}
