// SPDX-License-Identifier: Apache-2.0
/* Starting a worker, waiting for its end, and starting the next one. The reader's thread does all
 * of it and outlives every worker, since the kernel ends a worker with the thread that started it.
 *
 * When the connection ends, the worker has ended or is killed. The operations that it had begun end
 * (ops.c). The next worker is started with calls_lock held, so that no call to the old one is under
 * way. It is told all state (tables.c), and then work continues. */
#include <config.h>

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "device/worker/proxy.h"

extern char **environ;

enum {
    /* How long the first worker has to answer: a driver may be slow with its first context. */
    HELLO_MS = 120000,
    AGAIN_MS = 20000,   /* the same when the daemon's loop may be waiting */
    GOODBYE_MS = 20000, /* until a worker whose connections were closed is killed */
    TRIES = 4,          /* to start the next worker */
};

/* ---- the program ---- */

static int open_program(const char *path)
{
    int fd = access(path, X_OK) ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    int high = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, WS_PROXY_HIGH_FD);
    if (fd >= 0)
        close(fd);
    return high;
}

/* The worker beside a program that runs from the build folder. */
static int open_in_build(void)
{
    static const char *const from[] = {"/../device/worker/", "/../../device/worker/"};
    char self[PATH_MAX], path[PATH_MAX + 64];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    int fd = -1;
    if (n <= 0)
        return -1;
    self[n] = 0;
    char *slash = strrchr(self, '/');
    if (slash)
        *slash = 0;
    if (!strcmp(self, WS_SBINDIR))
        return -1;
    for (size_t k = 0; k < WS_ARRAY_SIZE(from) && fd < 0; k++) {
        snprintf(path, sizeof(path), "%s%swattshare-gpu-worker", self, from[k]);
        fd = open_program(path);
    }
    return fd;
}

int ws_proxy_find_program(struct ws_diags *diags)
{
    const char *named = getenv("WATTSHARE_GPU_WORKER");
    int fd = named ? open_program(named) : open_in_build();
    if (fd < 0 && !named)
        fd = open_program(WS_PKGLIBEXECDIR "/wattshare-gpu-worker");
    if (fd < 0)
        ws_diags_add(diags, NULL, 0, 0,
                     "%s cannot be run (%s); the setting gpu_worker = no does without it",
                     named ? named : WS_PKGLIBEXECDIR "/wattshare-gpu-worker", strerror(errno));
    return fd;
}

/* ---- starting ---- */

static int pair(int ret[2])
{
    int s[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s))
        return ws_raise(-errno);
    ret[0] = s[0];
    ret[1] = fcntl(s[1], F_DUPFD_CLOEXEC, WS_PROXY_HIGH_FD);
    close(s[1]);
    if (ret[1] >= 0)
        return 0;
    close(s[0]);
    return ws_raise(-EMFILE);
}

static int run(int program, int ops, int calls, int page, pid_t *ret)
{
    char path[32], name[] = "wattshare-gpu-worker";
    char *argv[] = {name, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t none, usual;
    sigemptyset(&none);
    sigemptyset(&usual);
    sigaddset(&usual, SIGPIPE);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", program);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attr);
    int r = posix_spawn_file_actions_adddup2(&files, ops, WS_WIRE_FD_OPS);
    if (!r)
        r = posix_spawn_file_actions_adddup2(&files, calls, WS_WIRE_FD_CALLS);
    if (!r && page >= 0)
        r = posix_spawn_file_actions_adddup2(&files, page, WS_WIRE_FD_PAGE);
    if (!r)
        r = posix_spawnattr_setsigmask(&attr, &none);
    if (!r)
        r = posix_spawnattr_setsigdefault(&attr, &usual);
    if (!r)
        r = posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    if (!r)
        r = posix_spawn(ret, path, &files, &attr, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attr);
    return r ? ws_raise(-r) : 0;
}

static int hear(int fd, int ms, struct ws_wire_message *hello)
{
    struct pollfd f = {fd, POLLIN, 0};
    int n;
    do
        n = poll(&f, 1, ms);
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        return -ETIMEDOUT;
    int r = ws_wire_recv(fd, hello);
    if (r)
        return r;
    if (hello->head.type == WS_WIRE_HELLO && hello->head.bytes >= sizeof(struct ws_wire_hello))
        return 0;
    ws_wire_done_with(hello);
    return -EPROTO;
}

int ws_proxy_spawn(int program, const struct ws_wire_config *c, int page_fd, bool again, int ret[2],
                   struct ws_wire_message *hello)
{
    int ops[2], calls[2];
    pid_t pid = 0;
    int r = pair(ops);
    if (r)
        return r;
    r = pair(calls);
    if (r) {
        close(ops[0]);
        close(ops[1]);
        return r;
    }
    r = run(program, ops[1], calls[1], page_fd, &pid);
    close(ops[1]);
    close(calls[1]);
    if (!r)
        r = ws_wire_send(ops[0], ws_wire_head_of(WS_WIRE_HELLO, 0),
                         (struct ws_wire_part){c, sizeof(*c)}, WS_PART_NONE, -1, 0);
    if (!r)
        r = hear(ops[0], again ? AGAIN_MS : HELLO_MS, hello);
    if (!r) {
        ret[0] = ops[0];
        ret[1] = calls[0];
        return pid;
    }
    close(ops[0]);
    close(calls[0]);
    if (pid) {
        kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
    }
    return r;
}

/* ---- ending ---- */

/* Waits for the worker's end, and kills it after GOODBYE_MS. Return: its status. */
static int reap(pid_t pid)
{
    int status = 0;
    for (int ms = 0; ms < GOODBYE_MS; ms += ms < 20 ? 1 : 20) {
        pid_t r = waitpid(pid, &status, WNOHANG);
        if (r == pid)
            return status;
        if (r < 0 && errno != EINTR)
            return 0;
        usleep(ms < 20 ? 1000 : 20000);
    }
    kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

static void describe_end(struct ws_proxy *p, int status, char *ret, size_t size)
{
    char lost[sizeof(p->page->lost_text)];
    memcpy(lost, p->page->lost_text, sizeof(lost));
    lost[sizeof(lost) - 1] = 0;
    if (p->page->lost && lost[0])
        snprintf(ret, size, "%.*s", (int)size - 1, lost);
    else if (WIFSIGNALED(status))
        snprintf(ret, size, "it was ended by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(ret, size, "it ended with status %d", WEXITSTATUS(status));
}

/* ---- the reader ---- */

static void set_state(struct ws_proxy *p, enum ws_proxy_state s)
{
    pthread_mutex_lock(&p->ops_lock);
    p->state = s;
    pthread_cond_broadcast(&p->changed);
    pthread_cond_broadcast(&p->sender_wake);
    pthread_mutex_unlock(&p->ops_lock);
}

/* ops_lock held. */
static void hang_up(const struct ws_proxy *p)
{
    if (p->ops_fd >= 0)
        shutdown(p->ops_fd, SHUT_WR);
    if (p->calls_fd >= 0)
        shutdown(p->calls_fd, SHUT_RDWR);
}

static void set_worker(struct ws_proxy *p, int pid, const int fd[2])
{
    pthread_mutex_lock(&p->ops_lock);
    p->pid = pid;
    p->status.pid = 0; /* until it is told all state */
    p->ops_fd = fd[0];
    p->calls_fd = fd[1];
    /* ws_proxy_stop() has shut the connections of the worker before */
    if (p->closing && fd[0] >= 0)
        hang_up(p);
    pthread_mutex_unlock(&p->ops_lock);
}

static void close_worker(struct ws_proxy *p)
{
    static const int none[2] = {-1, -1};
    int fd[2] = {p->ops_fd, p->calls_fd};
    ws_proxy_question_close(p);
    set_worker(p, 0, none);
    for (int k = 0; k < 2; k++)
        if (fd[k] >= 0)
            close(fd[k]);
}

static bool is_closing(struct ws_proxy *p)
{
    pthread_mutex_lock(&p->ops_lock);
    bool yes = p->closing;
    pthread_mutex_unlock(&p->ops_lock);
    return yes;
}

/* Relates the new worker's clock to the device's, which continues over all workers. */
static void set_clock(struct ws_proxy *p, const struct ws_wire_hello *h, bool first)
{
    pthread_mutex_lock(&p->ops_lock);
    p->worker_ns = h->host_ns - h->now_ns;
    if (first) { /* time 0 is the same for all GPUs */
        static _Atomic uint64_t epoch_ns;
        uint64_t none = 0;
        p->epoch_ns =
            atomic_compare_exchange_strong(&epoch_ns, &none, p->worker_ns) ? p->worker_ns : none;
    }
    pthread_mutex_unlock(&p->ops_lock);
}

/* calls_lock held. Return: 0; WS_CUDA_E_MISSING or negative errno: the worker does not start. */
static int start(struct ws_proxy *p, bool first)
{
    int fd[2] = {-1, -1};
    struct ws_wire_hello h;
    uint64_t free_bytes = atomic_load(&p->page->free_bytes); /* until the new worker says */
    memset(p->page, 0, sizeof(*p->page));
    atomic_store(&p->page->free_bytes, free_bytes);
    int pid = ws_proxy_spawn(p->program, &p->config, p->page_fd, !first, fd, p->answer);
    if (pid < 0) {
        if (first)
            ws_diags_add(p->open_diags, NULL, 0, 0, "cuda:%d: the GPU's worker does not start: %s",
                         p->config.ordinal, strerror(-pid));
        return WS_CUDA_E_MISSING;
    }
    set_worker(p, pid, fd);
    memcpy(&h, p->answer->body, sizeof(h));
    int r = (int)p->answer->head.value;
    if (first)
        ws_wire_get_diags(p->answer->body + sizeof(h), p->answer->head.bytes - sizeof(h),
                          p->open_diags);
    ws_wire_done_with(p->answer);
    if (!r) {
        set_clock(p, &h, first);
        if (first)
            p->hello = h;
        else
            r = ws_proxy_restore(p);
        ws_proxy_question_open(p);
    }
    if (r) {
        close_worker(p);
        (void)reap(pid);
    }
    return r;
}

static void open_done(struct ws_proxy *p, int r)
{
    pthread_mutex_lock(&p->ops_lock);
    p->open_result = r;
    p->opened = true;
    p->open_diags = NULL;
    if (!r) {
        p->generation++;
        p->status.pid = p->pid;
        p->state = WS_PROXY_RUNNING;
    }
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->ops_lock);
}

typedef void listener(struct ws_proxy *p, struct ws_wire_message *m);
#define FOR_START(NAME, name)
#define FOR_OPS(NAME, name)
#define FOR_LOADER(NAME, name)
#define FOR_CALLS(NAME, name)
#define FOR_READER(NAME, name)                   [WS_WIRE_##NAME] = ws_proxy_on_##name,
#define CALL(NAME, name, thread, out, back, end) FOR_##thread(NAME, name)
#define NOTICE(NAME, name, thread, out, end)     FOR_##thread(NAME, name)
static listener *const listeners[_WS_WIRE_TYPES] = {
#include "device/worker/calls.def"
};
#undef CALL
#undef NOTICE

static void read_all(struct ws_proxy *p, struct ws_wire_message *m)
{
    while (!ws_wire_recv(p->ops_fd, m)) {
        if (ws_wire_is_for(m, WS_WIRE_BY_READER))
            listeners[m->head.type](p, m);
        else
            ws_log(WS_ERROR, "worker: gpu=%u sent a wrong message: type=%u (%s) bytes=%llu",
                   p->base.index, m->head.type, ws_wire_name(m->head.type),
                   (unsigned long long)m->head.bytes);
        ws_wire_done_with(m);
    }
}

/* Adds the telemetry of the worker that has ended to that of the ones before. */
static void keep_telemetry(struct ws_proxy *p)
{
    struct ws_device_telemetry t = p->page->telemetry;
    pthread_mutex_lock(&p->ops_lock);
    p->before.busy_ns += t.busy_ns;
    p->before.sm_busy_ns += t.sm_busy_ns;
    p->before.energy_uj += t.energy_uj;
    p->before.n_kernels += t.n_kernels;
    p->before.n_copies += t.n_copies;
    p->before.copied_bytes += t.copied_bytes;
    p->before.n_thread_insns += t.n_thread_insns;
    p->before.idle_energy_uj += t.idle_energy_uj;
    p->before.power_mw = t.power_mw;
    memset(&p->page->telemetry, 0, sizeof(p->page->telemetry));
    pthread_mutex_unlock(&p->ops_lock);
}

/* Whether another restart is within the limit; counts it. One that a client brought about by a
 * kernel that others waited for does not count: it must not cost them the GPU. */
static bool may_restart(struct ws_proxy *p)
{
    uint64_t now = ws_proxy_host_ns();
    uint32_t slot = p->status.n_restarts % p->max_restarts;
    bool ok =
        p->status.n_restarts < p->max_restarts || now - p->restarts_ns[slot] > WS_PROXY_WINDOW_NS;
    bool urged = p->urged;
    p->urged = false;
    p->restarts_ns[slot] = urged ? 0 : now;
    return ok || urged;
}

static void give_up(struct ws_proxy *p, const char *why)
{
    pthread_mutex_lock(&p->ops_lock);
    snprintf(p->lost_text, sizeof(p->lost_text), "%s", why);
    pthread_mutex_unlock(&p->ops_lock);
    if (!is_closing(p))
        ws_log(WS_ERROR, "worker: gpu=%u is given up: %s", p->base.index, why);
    set_state(p, WS_PROXY_LOST);
    ws_proxy_ops_lost(p);
}

/* Nobody takes what a worker was told that did not start for told to the next one. */
static void next_generation(struct ws_proxy *p)
{
    pthread_mutex_lock(&p->ops_lock);
    p->generation++;
    pthread_mutex_unlock(&p->ops_lock);
}

/* Return: whether there is a worker again. */
static bool start_again(struct ws_proxy *p, const char *why)
{
    static const unsigned pause_ms[TRIES] = {0, 100, 500, 2000};
    char text[192];
    uint64_t begin = ws_proxy_host_ns();
    int r = -1;
    pthread_mutex_lock(&p->ops_lock);
    snprintf(p->status.last, sizeof(p->status.last), "%s", why);
    bool may = may_restart(p);
    p->status.n_restarts++;
    pthread_mutex_unlock(&p->ops_lock);
    if (!may) {
        snprintf(text, sizeof(text), "restarted %u times within a minute; last: %.120s",
                 p->max_restarts, why);
        give_up(p, text);
        return false;
    }
    pthread_mutex_lock(&p->calls_lock);
    for (int k = 0; r && k < TRIES && !is_closing(p) &&
                    ws_proxy_host_ns() - begin < AGAIN_MS * UINT64_C(1000000);
         k++) {
        usleep(pause_ms[k] * 1000);
        r = start(p, false);
        if (r)
            next_generation(p);
    }
    if (!r) {
        uint64_t ns = ws_proxy_host_ns() - begin;
        pthread_mutex_lock(&p->ops_lock);
        p->status.last_ns = ns;
        p->status.pid = p->pid;
        p->generation++;
        pthread_mutex_unlock(&p->ops_lock);
        set_state(p, WS_PROXY_RUNNING);
        ws_log(WS_WARN, "worker: gpu=%u restarted in %llu ms: %s", p->base.index,
               (unsigned long long)(ns / 1000000), why);
    }
    ws_proxy_calls_end(p);
    if (r) {
        snprintf(text, sizeof(text), "its worker cannot be restarted; the last one's end: %.120s",
                 why);
        give_up(p, text);
    }
    return !r;
}

void *ws_proxy_reader_main(void *arg)
{
    struct ws_proxy *p = arg;
    struct ws_wire_message *m = ws_alloc(sizeof(*m));
    pthread_mutex_lock(&p->calls_lock);
    int r = m ? start(p, true) : -ENOMEM;
    pthread_mutex_unlock(&p->calls_lock);
    open_done(p, r);
    for (bool on = !r; on;) {
        char why[192];
        read_all(p, m);
        set_state(p, WS_PROXY_STARTING);
        int pid = p->pid;
        if (!is_closing(p))
            kill(pid, SIGKILL); /* a process without its connection is of no use */
        int status = reap(pid);
        if (is_closing(p))
            break;
        describe_end(p, status, why, sizeof(why));
        pthread_mutex_lock(&p->calls_lock);
        close_worker(p);
        pthread_mutex_unlock(&p->calls_lock);
        keep_telemetry(p);
        ws_proxy_ops_worker_ended(p, why);
        on = start_again(p, why);
    }
    set_state(p, is_closing(p) ? WS_PROXY_CLOSED : WS_PROXY_LOST);
    close_worker(p);
    free(m);
    return NULL;
}

void ws_proxy_stop(struct ws_proxy *p)
{
    pthread_mutex_lock(&p->ops_lock);
    p->closing = true;
    hang_up(p);
    pthread_cond_broadcast(&p->sender_wake);
    pthread_mutex_unlock(&p->ops_lock);
    if (p->reader_on)
        pthread_join(p->reader, NULL);
    if (p->sender_on)
        pthread_join(p->sender, NULL);
}
