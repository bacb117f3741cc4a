// SPDX-License-Identifier: Apache-2.0
/* The page of metrics, and an HTTP server that knows one path. Most series are rows of a table: a
 * field of a message of `wattshare status`, and the series' name and help. A name that ends in
 * _total is a counter, any other a gauge.
 *
 * Clients come and go, so a series for each client would never end: what clients used is summed
 * for each user and task, and the sums stay when clients leave (accounts). The values of
 * connected clients are added on each scrape.
 *
 * The server shares the loop's thread, so nothing here waits for a peer. A connection brings one
 * request, gets one answer and is closed. There are few connections at a time, and a slow one is
 * closed to make room for the next. */
#include <config.h> /* the build's; "config.h" would be ours */

#include "backend/backend.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "backend/process/metrics.h"

#include "backend/process/endpoint.h"
#include "backend/process/status.h"
#include "backend/wire/accept.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/watch.h"
#include "device/worker/worker.h"

/* ---- series ---- */

struct series {
    const char *name, *help;
    size_t offset, bytes; /* of the field in the message */
    size_t also;          /* another field of that size, to be added; 0: none */
};
#define SERIES(message, field, name, help)                                                         \
    {                                                                                              \
        name, help, offsetof(message, field), sizeof((message *)0)->field, 0                       \
    }
#define DAEMON(field, name, help) SERIES(Ws__StatusReply, field, name, help)
#define GPU(field, name, help)    SERIES(Ws__GpuStatus, field, name, help)
#define TASK(field, name, help)   SERIES(Ws__ClientStatus, field, name, help)

static const struct series daemon_series[] = {
    DAEMON(n_messages, "wattshare_messages_total", "Messages taken from clients."),
    DAEMON(n_commands, "wattshare_commands_total", "Commands taken from clients."),
    DAEMON(n_jobs, "wattshare_policy_jobs_total", "Jobs that the policy decided on."),
    DAEMON(n_preemptions, "wattshare_policy_preemptions_total", "Jobs that it stopped for others."),
    DAEMON(n_merged, "wattshare_policy_merged_launches_total",
           "Launches made of several clients' ones."),
    DAEMON(n_moves, "wattshare_policy_moves_total",
           "Times a client's memory was moved to another GPU."),
    DAEMON(n_modules, "wattshare_modules", "Modules in memory."),
    DAEMON(n_kernels_cold, "wattshare_kernels_cold",
           "Kernels that software GPUs interpret because they have not run for long."),
    DAEMON(n_kernels_waiting, "wattshare_kernels_waiting",
           "Kernels that software GPUs will compile now or soon."),
    DAEMON(n_kernels_compiled, "wattshare_kernels_compiled",
           "Kernels that software GPUs have compiled."),
    DAEMON(n_kernels_unsupported, "wattshare_kernels_unsupported",
           "Kernels that stay interpreted: operations without machine code."),
    DAEMON(n_kernels_large, "wattshare_kernels_large",
           "Kernels that stay interpreted: compiling them would take too long."),
    DAEMON(n_kernels_no_room, "wattshare_kernels_no_room",
           "Kernels that stay interpreted: no room for their code."),
    DAEMON(n_kernels_no_compiler, "wattshare_kernels_no_compiler",
           "Kernels that stay interpreted: no library that compiles."),
    DAEMON(n_kernels_not_faster, "wattshare_kernels_not_faster",
           "Kernels that stay interpreted: they were faster so."),
    DAEMON(n_codes_made, "wattshare_codes_made_total", "Kernels compiled."),
    DAEMON(n_codes_found, "wattshare_codes_found_total", "Compiled kernels found on disk."),
    DAEMON(n_codes_damaged, "wattshare_codes_damaged_total",
           "Compiled kernels on disk that were damaged, and removed."),
};
static const struct series gpu_sizes[] = {
    GPU(n_sms, "wattshare_gpu_sms", "Streaming multiprocessors."),
    GPU(memory_bytes, "wattshare_gpu_memory_bytes", "Memory of the GPU."),
};
static const struct series gpu_series[] = {
    GPU(memory_used_bytes, "wattshare_gpu_memory_used_bytes", "Memory in use."),
    GPU(energy_uj, "wattshare_gpu_energy_joules_total", "Energy used since the daemon's start."),
    GPU(idle_uj, "wattshare_gpu_idle_energy_joules_total", "Of that, while no work ran."),
    GPU(system_uj, "wattshare_gpu_system_energy_joules_total",
        "Of that, nobody's: idle with no client connected."),
    GPU(power_mw, "wattshare_gpu_power_watts", "Power over the last busy stretch."),
    GPU(busy_ns, "wattshare_gpu_busy_seconds_total", "Device time with at least one SM at work."),
    GPU(sm_busy_ns, "wattshare_gpu_sm_busy_seconds_total", "Device time at work, summed over SMs."),
    GPU(n_kernels, "wattshare_gpu_kernels_total", "Kernels run."),
    GPU(n_copies, "wattshare_gpu_copies_total", "Copies and fills done."),
    GPU(copied_bytes, "wattshare_gpu_copied_bytes_total", "Bytes copied and filled."),
    GPU(bytes_in, "wattshare_gpu_from_host_bytes_total", "Bytes copied from the host."),
    GPU(bytes_out, "wattshare_gpu_to_host_bytes_total", "Bytes copied to the host."),
};
static const struct series task_series[] = {
    /* gauges are of connected clients only */
    TASK(connected, "wattshare_task_clients", "Clients of the task connected now."),
    TASK(memory_bytes, "wattshare_task_memory_bytes", "Device memory of its clients."),
    {"wattshare_task_energy_joules_total",
     "Energy of its kernels and copies, ended clients included.",
     offsetof(Ws__ClientStatus, busy_uj), sizeof(uint64_t), offsetof(Ws__ClientStatus, idle_uj)},
    TASK(device_ns, "wattshare_task_device_seconds_total",
         "Device time of its kernels and copies, summed."),
    TASK(n_kernels, "wattshare_task_kernels_total", "Kernels."),
    TASK(n_copies, "wattshare_task_copies_total", "Copies and fills."),
    TASK(bytes_in, "wattshare_task_to_device_bytes_total", "Bytes copied to devices."),
    TASK(bytes_out, "wattshare_task_from_device_bytes_total", "Bytes copied from devices."),
};

static uint64_t field_value(const void *message, size_t offset, size_t bytes)
{
    const char *at = (const char *)message + offset;
    return bytes == sizeof(uint32_t) ? *(const uint32_t *)at : *(const uint64_t *)at;
}

static uint64_t series_value(const struct series *x, const void *message)
{
    uint64_t v = field_value(message, x->offset, x->bytes);
    return x->also ? v + field_value(message, x->also, x->bytes) : v;
}

static bool is_counter(const char *name)
{
    size_t n = strlen(name), end = strlen("_total");
    return n > end && !strcmp(name + n - end, "_total");
}

/* ---- sums for each user and task ---- */

struct ws_task_sum {
    struct {
        uint32_t uid;
        char task[64];
    } key;
    uint64_t ended[WS_ARRAY_SIZE(task_series)], live[WS_ARRAY_SIZE(task_series)]; /* live: now */
    UT_hash_handle hh;
};

static void add_client(uint64_t sums[], const struct ws_client *c, bool connected)
{
    Ws__ClientStatus used = WS__CLIENT_STATUS__INIT;
    struct ws_energy_sum e = ws_energy_of_client(c);
    ws_status_used(&c->stats, &e, &used);
    used.connected = connected;
    for (size_t i = 0; i < WS_ARRAY_SIZE(task_series); i++)
        if (connected || is_counter(task_series[i].name))
            sums[i] += series_value(&task_series[i], &used);
}

static struct ws_task_sum *task_sum_get(struct ws_server *s, uint32_t uid, const char *task)
{
    struct ws_task_sum probe, *a;
    memset(&probe.key, 0, sizeof(probe.key));
    probe.key.uid = uid;
    snprintf(probe.key.task, sizeof(probe.key.task), "%s", task);
    HASH_FIND(hh, s->stats.task_sums, &probe.key, sizeof(probe.key), a);
    if (a)
        return a;
    if (HASH_COUNT(s->stats.task_sums) >= WS_TASK_SUMS_MAX && strcmp(task, "other"))
        return task_sum_get(s, UINT32_MAX, "other");
    a = ws_alloc(sizeof(*a));
    if (!a)
        return NULL;
    a->key = probe.key;
    HASH_ADD(hh, s->stats.task_sums, key, sizeof(a->key), a);
    return a;
}

static struct ws_task_sum *task_sum_of(struct ws_client *c)
{
    const char *slash = strrchr(c->who.exe, '/');
    return task_sum_get(c->server, c->who.uid,
                        c->who.task[0] ? c->who.task
                        : slash        ? slash + 1
                                       : c->who.exe);
}

void ws_task_sums_ended(struct ws_client *c)
{
    struct ws_task_sum *a = task_sum_of(c);
    if (a)
        add_client(a->ended, c, false);
}

void ws_task_sums_free(struct ws_server *s)
{
    struct ws_task_sum *a, *next;
    HASH_ITER (hh, s->stats.task_sums, a, next) {
        HASH_DEL(s->stats.task_sums, a);
        free(a);
    }
}

static void sum_live(struct ws_server *s)
{
    for (struct ws_task_sum *a = s->stats.task_sums; a; a = a->hh.next)
        memcpy(a->live, a->ended, sizeof(a->live));
    ws_list_for_each (n, &s->clients.all) {
        struct ws_client *c = ws_list_entry(n, struct ws_client, node);
        struct ws_task_sum *a = task_sum_of(c);
        if (a)
            add_client(a->live, c, true);
    }
    ws_list_for_each (n, &s->clients.dying) { /* its work may still take energy */
        struct ws_client *c = ws_list_entry(n, struct ws_client, node);
        struct ws_task_sum *a = task_sum_of(c);
        if (a)
            add_client(a->live, c, false);
    }
}

/* ---- the page ---- */

static void head(FILE *f, const char *name, const char *help)
{
    fprintf(f, "# HELP %s %s\n# TYPE %s %s\n", name, help, name,
            is_counter(name) ? "counter" : "gauge");
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

/* The value in the unit of the series' name, exactly: 1500000 uJ are 1.500000 joules. */
static void value(FILE *f, const char *name, uint64_t v)
{
    static const struct {
        const char *unit;
        uint64_t parts; /* the value counts so many of them in one */
        int digits;
    } units[] = {{"_joules", 1000000, 6}, {"_watts", 1000, 3}, {"_seconds", 1000000000, 9}};
    for (size_t i = 0; i < WS_ARRAY_SIZE(units); i++)
        if (strstr(name, units[i].unit)) {
            fprintf(f, " %" PRIu64 ".%0*" PRIu64 "\n", v / units[i].parts, units[i].digits,
                    v % units[i].parts);
            return;
        }
    fprintf(f, " %" PRIu64 "\n", v);
}

static void one(FILE *f, const char *name, const char *help, uint64_t v)
{
    head(f, name, help);
    fputs(name, f);
    value(f, name, v);
}

static void daemon_page(struct ws_server *s, FILE *f)
{
    Ws__StatusReply r = WS__STATUS_REPLY__INIT;
    struct timespec now;
    head(f, "wattshare_build_info", "Version of the daemon; always 1.");
    fputs("wattshare_build_info{version=\"" VERSION "\"} 1\n", f);
    head(f, "wattshare_start_time_seconds", "When the daemon started, in seconds since the epoch.");
    clock_gettime(CLOCK_REALTIME, &now);
    fprintf(f, "wattshare_start_time_seconds %.3f\n",
            (double)now.tv_sec + (double)now.tv_nsec / 1e9 -
                (double)(ws_clock_ns() - s->stats.start_ns) / 1e9);
    one(f, "wattshare_clients", "Clients connected now.", s->clients.n);
    one(f, "wattshare_client_connections_total", "Clients that have said hello.",
        s->clients.next_id);
    ws_status_daemon(s, &r);
    for (size_t k = 0; k < WS_ARRAY_SIZE(daemon_series); k++)
        one(f, daemon_series[k].name, daemon_series[k].help, series_value(&daemon_series[k], &r));
    one(f, "wattshare_not_supported_total", "Calls that were answered with \"not supported\".",
        ws_ledger_total(&s->stats.not_supported));
}

/* A series with a value for each GPU. */
static void gpus_value(FILE *f, const char *name, uint32_t gpu, uint64_t v)
{
    fprintf(f, "%s{gpu=\"%u\"}", name, gpu);
    value(f, name, v);
}

static void gpu_tables(FILE *f, const struct series *v, size_t n, const Ws__GpuStatus *gpus,
                       uint32_t n_gpus)
{
    for (size_t k = 0; k < n; k++) {
        head(f, v[k].name, v[k].help);
        for (uint32_t i = 0; i < n_gpus; i++)
            gpus_value(f, v[k].name, i, series_value(&v[k], &gpus[i]));
    }
}

/* Of those GPUs that are in a process of their own. */
static void workers_page(struct ws_server *s, FILE *f)
{
    static const char *const names[][2] = {
        {"wattshare_gpu_worker_restarts_total", "Restarts of the process that has the GPU."},
        {"wattshare_gpu_worker_longest_wait_seconds",
         "The longest that the daemon waited for that process while it served clients."},
        {"wattshare_gpu_worker_longest_preempt_seconds",
         "The longest from when it was told to stop a kernel until it had asked the GPU to."},
    };
    for (size_t k = 0; k < WS_ARRAY_SIZE(names); k++) {
        bool told = false;
        for (uint32_t i = 0; i < s->n_gpus; i++) {
            struct ws_worker_status w;
            if (!ws_device_worker_status(s->gpus[i].device, &w))
                continue;
            const uint64_t n[] = {w.n_restarts, w.longest_wait_ns, w.longest_preempt_ns};
            if (!told)
                head(f, names[k][0], names[k][1]);
            told = true;
            gpus_value(f, names[k][0], i, n[k]);
        }
    }
}

/* What the status has no field for. */
static void running_page(struct ws_server *s, FILE *f)
{
    static const char name[] = "wattshare_gpu_running_operations";
    head(f, name, "Operations submitted and not done.");
    for (uint32_t i = 0; i < s->n_gpus; i++) {
        struct ws_device_telemetry t;
        ws_device_telemetry(s->gpus[i].device, &t);
        gpus_value(f, name, i, t.n_running);
    }
}

static void gpu_page(struct ws_server *s, FILE *f)
{
    Ws__GpuStatus gpus[WS_MAX_GPUS_CONFIGURED];
    head(f, "wattshare_gpu_info", "What the GPU is; always 1.");
    for (uint32_t i = 0; i < s->n_gpus; i++) {
        ws_status_gpu(&s->gpus[i], i, &gpus[i]);
        fprintf(f, "wattshare_gpu_info{gpu=\"%u\",name=\"", i);
        label(f, gpus[i].name);
        fputs("\",product=\"", f);
        label(f, gpus[i].product);
        fprintf(f, "\",kind=\"%s\"} 1\n", gpus[i].kind);
    }
    gpu_tables(f, gpu_sizes, WS_ARRAY_SIZE(gpu_sizes), gpus, s->n_gpus);
    workers_page(s, f);
    gpu_tables(f, gpu_series, WS_ARRAY_SIZE(gpu_series), gpus, s->n_gpus);
    running_page(s, f);
}

static void task_page(struct ws_server *s, FILE *f)
{
    sum_live(s);
    for (size_t k = 0; s->stats.task_sums && k < WS_ARRAY_SIZE(task_series); k++) {
        const struct series *t = &task_series[k];
        head(f, t->name, t->help);
        for (struct ws_task_sum *a = s->stats.task_sums; a; a = a->hh.next) {
            fprintf(f, "%s{user=\"", t->name);
            if (a->key.uid != UINT32_MAX)
                fprintf(f, "%u", a->key.uid);
            fputs("\",task=\"", f);
            label(f, a->key.task);
            fputs("\"}", f);
            value(f, t->name, a->live[k]);
        }
    }
}

/* ---- what users hold ---- */

typedef uint64_t (*account_value)(const struct ws_account *a, enum ws_resource r);

/* The page has heads of series that have values only. */
static void account_sample(FILE *f, const char *name, const char *help, bool *told,
                           enum ws_resource r, const uint32_t *uid, uint64_t v)
{
    if (!*told)
        head(f, name, help);
    *told = true;
    fprintf(f, "%s{user=\"", name);
    if (uid)
        fprintf(f, "%" PRIu32, *uid);
    else
        fputs("other", f);
    fprintf(f, "\",resource=\"%s\"} %" PRIu64 "\n", ws_resource_info[r].name, v);
}

/* Of the first users each, and of others and addresses together. */
static void account_series(struct ws_server *s, FILE *f, const char *name, const char *help,
                           account_value get)
{
    bool told = false;
    for (unsigned r = 0; r < _WS_RESOURCE_N; r++) {
        unsigned n = 0;
        uint64_t rest = 0;
        for (struct ws_account *a = NULL; (a = ws_accounts_next(s->accounts, a));) {
            uint64_t v = get(a, r);
            uint32_t uid;
            if (v && ws_account_uid(a, &uid) && n++ < WS_METRICS_USERS_MAX)
                account_sample(f, name, help, &told, r, &uid, v);
            else
                rest += v;
        }
        if (rest)
            account_sample(f, name, help, &told, r, NULL, rest);
    }
}

static void pool_series(struct ws_server *s, FILE *f)
{
    static const char limit[] = "wattshare_pool_limit", used[] = "wattshare_pool_used";
    head(f, limit, "What all users may have together.");
    for (unsigned r = 0; r < _WS_RESOURCE_N; r++)
        if (ws_accounts_pool(s->accounts, r) != WS_ACCOUNT_UNLIMITED)
            fprintf(f, "%s{resource=\"%s\"} %" PRIu64 "\n", limit, ws_resource_info[r].name,
                    ws_accounts_pool(s->accounts, r));
    head(f, used, "What all users have together.");
    for (unsigned r = 0; r < _WS_RESOURCE_N; r++)
        fprintf(f, "%s{resource=\"%s\"} %" PRIu64 "\n", used, ws_resource_info[r].name,
                ws_accounts_used(s->accounts, r));
}

static void accounts_page(struct ws_server *s, FILE *f)
{
    pool_series(s, f);
    account_series(s, f, "wattshare_user_used", "What the user has of the resource.",
                   ws_account_used);
    account_series(s, f, "wattshare_user_refused_total",
                   "How often the user was refused more of the resource.", ws_account_n_refused);
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
    accounts_page(s, f);
    if (fclose(f)) {
        free(buf);
        return ws_raise(-ENOMEM);
    }
    *ret = buf;
    *ret_n = n;
    return 0;
}

/* ---- HTTP ---- */

/* Pages take no more than one REST'th of the loop's time. */
enum { CONNS_MAX = 16, REQUEST_BYTES = 4096, REST = 20 };

struct conn {
    int fd;
    struct ws_account *account; /* of its address, charged with it */
    size_t n_in;
    char in[REQUEST_BYTES];
    char *out;
    size_t n_out, sent;
    struct ws_list node; /* oldest first */
};
struct ws_metrics {
    int epoll_fd;
    struct ws_accept accept;
    struct ws_list conns;
    unsigned n_conns;
    uint64_t rests_until_ns; /* nobody is served before; 0: it does not rest */
};

static void conn_close(struct ws_metrics *m, struct conn *k)
{
    ws_list_remove(&k->node);
    m->n_conns--;
    ws_watch_close(m->epoll_fd, k->fd);
    ws_account_release(k->account, WS_RESOURCE_CONNECTIONS, 1);
    ws_account_unref(k->account);
    free(k->out);
    free(k);
}

static bool make_room(void *arg, const struct ws_account *a)
{
    struct ws_metrics *m = arg;
    struct conn *found = NULL;
    uint64_t most = 0;
    ws_list_for_each (n, &m->conns) {
        struct conn *k = ws_list_entry(n, struct conn, node);
        if (ws_accept_lets_go(a, k->account, &most))
            found = k;
    }
    if (found)
        conn_close(m, found);
    return found != NULL;
}

static void enter(void *arg, const struct ws_newly_accepted *n)
{
    struct ws_metrics *m = arg;
    if (m->n_conns >= CONNS_MAX)
        (void)make_room(m, NULL);
    struct conn *k = ws_alloc(sizeof(*k));
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = k};
    if (!k || epoll_ctl(m->epoll_fd, EPOLL_CTL_ADD, n->fd, &e)) {
        close(n->fd);
        ws_account_release(n->account, WS_RESOURCE_CONNECTIONS, 1);
        ws_account_unref(n->account);
        free(k);
        return;
    }
    k->fd = n->fd;
    k->account = n->account;
    m->n_conns++;
    ws_list_append(&m->conns, &k->node);
}

int ws_metrics_open(struct ws_metrics **ret, struct ws_server *s, const char *address)
{
    const char *why;
    int fd = ws_endpoint_listen_tcp(address, &why);
    if (fd < 0)
        return fd;
    struct ws_metrics *m = ws_alloc(sizeof(*m));
    struct epoll_event e = {.events = EPOLLIN | EPOLLET, .data.ptr = NULL};
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
    ws_accept_init(&m->accept, fd, false,
                   &(struct ws_accept_ops){m, s->accounts, NULL, enter, make_room});
    *ret = m;
    return 0;
}

void ws_metrics_close(struct ws_metrics *m)
{
    if (!m)
        return;
    while (!ws_list_empty(&m->conns))
        conn_close(m, ws_list_entry(m->conns.next, struct conn, node));
    ws_accept_deinit(&m->accept);
    close(m->epoll_fd);
    free(m);
}

int ws_metrics_fd(struct ws_metrics *m)
{
    if (m && m->rests_until_ns && ws_clock_ns() >= m->rests_until_ns)
        m->rests_until_ns = 0;
    return m && !m->rests_until_ns ? m->epoll_fd : -1;
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
        ssize_t n = recv(k->fd, k->in + k->n_in, sizeof(k->in) - 1 - k->n_in, 0);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return true;
        if (n <= 0)
            return false;
        k->n_in += (size_t)n;
        k->in[k->n_in] = 0;
        if (strstr(k->in, "\r\n\r\n") || strstr(k->in, "\n\n")) {
            if (!respond(s, k))
                return false;
        } else if (k->n_in == sizeof(k->in) - 1) {
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
    struct epoll_event e;
    uint64_t begin = ws_clock_ns();
    if (epoll_wait(m->epoll_fd, &e, 1, 0) == 1) {
        struct conn *k = e.data.ptr;
        if (!k)
            m->accept.more = true;
        else if (!conn_turn(m, s, k)) /* a page takes its time: one in a turn */
            conn_close(m, k);
    }
    ws_accept_turn(&m->accept);
    uint64_t now = ws_clock_ns();
    m->rests_until_ns = now + (now - begin) * REST;
}

int ws_metrics_timeout_ms(const struct ws_metrics *m)
{
    return !m                  ? -1
           : m->rests_until_ns ? ws_timeout_until(m->rests_until_ns)
                               : ws_accept_timeout_ms(&m->accept);
}
