// SPDX-License-Identifier: Apache-2.0
/* Measures the daemon's own cost, seen from a raw client, with kernels skipped:
 *
 *     launches per second end to end, in batches as the frontend sends them;
 *     a synchronising call against a bare ZeroMQ DEALER/ROUTER ping-pong of the same sizes, in
 *     turns; 100 clients that connect, run a kernel and go; memory of the daemon for each idle
 *     client.
 *
 * The call is measured once with threads placed by the kernel's scheduler and once with all on one
 * core. Where the scheduler puts the eight threads involved changes either figure by a factor of
 * two; only on one core is the ratio that of the work done.
 *
 * Usage: bench_server [SECONDS]. Each figure is printed beside its bound. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.h>

#include "base/clock.h"
#include "tests/lib/wsclient.h"

static int n_missed;

static void result(const char *what, double value, const char *unit, double bound, bool at_least)
{
    bool ok = at_least ? value >= bound : value <= bound;
    printf("%-44s %12.3f %-12s (%s %g) %s\n", what, value, unit, at_least ? ">=" : "<=", bound,
           ok ? "ok" : "MISSED");
    n_missed += !ok;
}

/* ---- launches ---- */

enum { BATCH = 256 };

static void bench_launches(const struct wst_daemon *d, double seconds)
{
    static struct wst_client c;
    wst_open(&c, NULL, d->ipc, true);
    uint64_t va;
    if (wst_alloc(&c, 0, 4096, &va) || wst_load_ptx(&c, 1, 0, wst_ptx))
        abort();
    int fill = wst_kernel_index(&c, "fill");
    struct {
        uint64_t p;
        uint32_t v;
    } params = {va, 1};
    uint64_t sent = c.next_seq - 1, n = 0, start = ws_clock_ns(),
             end = start + (uint64_t)(seconds * 1e9);
    while (ws_clock_ns() < end) {
        while (sent + BATCH - c.retired > c.hello->limits->max_outstanding)
            wst_pump_some(&c);
        for (int i = 0; i < BATCH; i++)
            wst_launch(&c, 1, 1, (uint32_t)fill, 1, 32, &params, 12);
        wst_flush(&c);
        sent += BATCH;
        n += BATCH;
    }
    if (wst_sync_device(&c, 0))
        abort();
    result("launches, one client", (double)n / (double)(ws_clock_ns() - start) * 1e9 / 1e6, "M/s",
           1.0, true);
    wst_close(&c, true);
}

/* ---- synchronising call against ping-pong ---- */

/* In a process of its own, as the daemon is. */
static pid_t echo_start(const char *endpoint, size_t reply_bytes)
{
    pid_t pid = fork();
    if (pid)
        return pid;
    char id[256], buf[256];
    void *ctx = zmq_ctx_new(), *s = zmq_socket(ctx, ZMQ_ROUTER);
    if (zmq_bind(s, endpoint))
        _exit(1);
    for (;;) {
        int n = zmq_recv(s, id, sizeof(id), 0);
        int m = zmq_recv(s, buf, sizeof(buf), 0);
        if (n < 0 || m <= 1)
            _exit(0);
        zmq_send(s, id, (size_t)n, ZMQ_SNDMORE);
        zmq_send(s, buf, reply_bytes, 0);
    }
}

static double ping_pong(void *s, const void *p, size_t n, int rounds)
{
    char buf[256];
    uint64_t t = ws_clock_ns();
    for (int i = 0; i < rounds; i++) {
        zmq_send(s, p, n, 0);
        zmq_recv(s, buf, sizeof(buf), 0);
    }
    return (double)(ws_clock_ns() - t) / rounds;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof(*v), by_value);
    return v[n / 2];
}

static void bench_sync(const struct wst_daemon *d, const char *where, double bound)
{
    char what[64];
    enum { TURNS = 15, ROUNDS = 400 };
    static struct wst_client c;
    char endpoint[128];
    double bare[TURNS], call[TURNS], ratio[TURNS];
    snprintf(endpoint, sizeof(endpoint), "%s.echo", d->ipc);
    pid_t echo = echo_start(endpoint, 12);
    void *ctx = zmq_ctx_new(), *s = zmq_socket(ctx, ZMQ_DEALER);
    zmq_connect(s, endpoint);
    wst_open(&c, NULL, d->ipc, true);
    Ws__Command cmd = WS__COMMAND__INIT;
    Ws__Sync sync = WS__SYNC__INIT;
    Ws__ClientMessage m = WS__CLIENT_MESSAGE__INIT;
    Ws__Command *cmds[] = {&cmd};
    sync.what_case = WS__SYNC__WHAT_STREAM;
    sync.stream = 1;
    cmd.c_case = WS__COMMAND__C_SYNC;
    cmd.sync = &sync;
    m.commands = cmds;
    m.n_commands = 1;
    m.first_seq = 1000;
    uint8_t buf[64];
    size_t n = ws__client_message__pack(&m, buf);
    ping_pong(s, buf, n, ROUNDS);
    uint64_t seq = 1;
    for (int i = -1; i < TURNS; i++) {
        uint64_t start = ws_clock_ns();
        for (int k = 0; k < ROUNDS;
             k++) { /* the same calls of ZeroMQ, and no more, as ping_pong() */
            char reply[256];
            m.first_seq = seq++;
            n = ws__client_message__pack(&m, buf);
            zmq_send(c.sock, buf, n, 0);
            zmq_recv(c.sock, reply, sizeof(reply), 0);
        }
        double ns = (double)(ws_clock_ns() - start) / ROUNDS;
        double p = ping_pong(s, buf, n, ROUNDS);
        if (i >= 0) {
            call[i] = ns;
            bare[i] = p;
            ratio[i] = ns / p;
        }
    }
    printf("%-44s %12.3f us, synchronising call %.3f us\n", "bare ping-pong",
           median(bare, TURNS) / 1000, median(call, TURNS) / 1000);
    snprintf(what, sizeof(what), "synchronising call / bare, %s", where);
    result(what, median(ratio, TURNS), "x", bound, false);
    zmq_send(s, "q", 1, 0);
    waitpid(echo, NULL, 0);
    zmq_close(s);
    zmq_ctx_term(ctx);
    unlink(endpoint + strlen("ipc://"));
    wst_close(&c, true);
}

/* ---- many clients ---- */

static void bench_clients(const struct wst_daemon *d)
{
    enum { N = 100 };
    struct wst_client *c = calloc(N, sizeof(*c));
    void *ctx = zmq_ctx_new();
    uint64_t va, start = ws_clock_ns();
    for (int i = 0; i < N; i++) {
        wst_open(&c[i], ctx, d->ipc, true);
        if (wst_alloc(&c[i], 0, 4096, &va) || wst_load_ptx(&c[i], 1, 0, wst_ptx))
            abort();
        struct {
            uint64_t p;
            uint32_t v;
        } params = {va, 1};
        wst_launch(&c[i], 1, 1, (uint32_t)wst_kernel_index(&c[i], "fill"), 1, 32, &params, 12);
        if (wst_sync_device(&c[i], 0))
            abort();
    }
    for (int i = 0; i < N; i++)
        wst_close(&c[i], false);
    for (;;) {
        Ws__StatusReply *s = wst_status(d->ipc);
        size_t left = 0;
        for (size_t i = 0; i < s->n_clients; i++)
            left += s->clients[i]->connected;
        wst_status_free(s);
        if (!left)
            break;
        usleep(1000);
    }
    result("100 clients come, run a kernel and are gone", (double)(ws_clock_ns() - start) / 1e9,
           "s", 5, false);
    long before = wst_daemon_rss_kib(d);
    for (int i = 0; i < N; i++)
        wst_open(&c[i], ctx, d->ipc, true);
    result("daemon memory for each idle client", (double)(wst_daemon_rss_kib(d) - before) / N,
           "KiB", 1024, false);
    for (int i = 0; i < N; i++)
        wst_close(&c[i], true);
    zmq_ctx_term(ctx);
    free(c);
}

int main(int argc, char **argv)
{
    static const char *const skip[] = {"--clock", "skip", "--log-level", "warning", NULL};
    struct wst_daemon d;
    double seconds = argc > 1 ? atof(argv[1]) : 2;
    wst_daemon_start(&d, NULL, skip);
    bench_launches(&d, seconds);
    bench_sync(&d, "any core", 1.5);
    bench_clients(&d);
    if (wst_daemon_stop(&d))
        return 1;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof(one), &one);
    wst_daemon_start(&d, NULL, skip);
    bench_sync(&d, "one core", 1.5);
    if (wst_daemon_stop(&d))
        return 1;
    if (n_missed)
        printf("%d figure(s) miss their bound\n", n_missed);
    return 0;
}
