// SPDX-License-Identifier: Apache-2.0
/* Measures the daemon as a service:
 *
 *     1,000 idle clients, connected as the library connects (handoff socket, ring): resident memory
 *     of the daemon, in all, and the share of a core that it uses while nobody does anything;
 *     a scrape of the metrics with all of them there, in tasks of ten: median and slowest of 50;
 *     reloading under load: clients that call without pause while the configuration is reloaded
 *     100 times; no call may fail.
 *
 * Usage: bench_service [CLIENTS]. Each figure is printed beside its bound; exits with 1 if one is
 * missed. */
#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zmq.h>

#include "base/clock.h"
#include "tests/lib/wsclient.h"

static int n_missed;

static void result(const char *what, double value, const char *unit, double bound)
{
    bool ok = value <= bound;
    printf("%-52s %10.3f %-8s (<= %g) %s\n", what, value, unit, bound, ok ? "ok" : "MISSED");
    n_missed += !ok;
}

static _Noreturn void die(const char *what)
{
    perror(what);
    exit(2);
}

/* Processor time of a process, s. */
static double cpu_s(pid_t pid)
{
    char path[64], text[1024];
    unsigned long user, system;
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
    if (!n)
        die(path);
    fclose(f);
    text[n] = 0;
    if (sscanf(strrchr(text, ')') + 1, "%*s%*d%*d%*d%*d%*d%*u%*u%*u%*u%*u%lu%lu", &user, &system) !=
        2)
        die(path);
    return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

/* ---- idle clients ---- */

static void connect_all(struct wst_client *v, int n, void *ctx, const struct wst_daemon *d)
{
    char task[16];
    wst_task = task;
    for (int i = 0; i < n; i++) {
        snprintf(task, sizeof(task), "task %d", i / 10);
        wst_open(&v[i], ctx, d->ipc, true);
        if (wst_ring_open(&v[i]))
            die("ring");
    }
    wst_task = "";
}

/* ---- metrics ---- */

static double scrape_ms(uint16_t port, size_t *ret_bytes)
{
    static char page[8 << 20];
    static const char request[] = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    size_t n = 0;
    uint64_t start = ws_clock_ns();
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)) ||
        send(fd, request, strlen(request), 0) < 0)
        die("metrics");
    for (ssize_t k; (k = recv(fd, page + n, sizeof(page) - n, 0)) > 0;)
        n += (size_t)k;
    double ms = (double)(ws_clock_ns() - start) / 1e6;
    close(fd);
    if (strncmp(page, "HTTP/1.1 200", 12)) {
        fputs("bench_service: no page of metrics\n", stderr);
        exit(2);
    }
    *ret_bytes = n;
    return ms;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void bench_scrape(uint16_t port)
{
    enum { N = 50 };
    double ms[N];
    size_t bytes = 0;
    for (int i = 0; i < N; i++)
        ms[i] = scrape_ms(port, &bytes);
    qsort(ms, N, sizeof(*ms), compare);
    printf("a page of %zu bytes\n", bytes);
    result("scrape, median", ms[N / 2], "ms", 5);
    printf("%-52s %10.3f ms\n", "scrape, slowest of 50", ms[N - 1]);
}

/* ---- reloading ---- */

enum { CALLERS = 8, RELOADS = 100 };
static _Atomic uint64_t n_calls, n_failed;
static _Atomic bool stop;

static void *caller(void *arg)
{
    const struct wst_daemon *d = arg;
    struct wst_client *c = calloc(1, sizeof(*c));
    uint64_t va;
    wst_open(c, NULL, d->ipc, true);
    while (!stop) {
        bool ok = !wst_alloc(c, 0, 4096, &va) && !wst_sync_device(c, 0) && !wst_free(c, va);
        n_calls += 3;
        n_failed += !ok;
        if (c->dropped)
            break;
    }
    wst_close(c, true);
    free(c);
    return NULL;
}

static uint64_t n_reloaded(const struct wst_daemon *d)
{
    char line[512];
    uint64_t n = 0;
    FILE *f = fopen(d->log, "r");
    if (!f)
        die(d->log);
    while (fgets(line, sizeof(line), f))
        n += strstr(line, "config: reloaded") != NULL;
    fclose(f);
    return n;
}

static void bench_reload(struct wst_daemon *d)
{
    pthread_t t[CALLERS];
    for (int i = 0; i < CALLERS; i++)
        pthread_create(&t[i], NULL, caller, d);
    uint64_t start = ws_clock_ns();
    for (uint64_t i = 1; i <= RELOADS; i++) {
        kill(d->pid, SIGHUP);
        for (int k = 0; n_reloaded(d) < i && k < 2000; k++)
            usleep(1000);
    }
    double s = (double)(ws_clock_ns() - start) / 1e9;
    stop = true;
    for (int i = 0; i < CALLERS; i++)
        pthread_join(t[i], NULL);
    printf("%d clients, %llu reloads in %.1f s, %llu calls meanwhile\n", CALLERS,
           (unsigned long long)n_reloaded(d), s, (unsigned long long)n_calls);
    result("calls lost by reloading", (double)n_failed, "calls", 0);
    result("reloads that did not happen", (double)(RELOADS - n_reloaded(d)), "", 0);
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 1000;
    struct wst_daemon d;
    struct rlimit files;
    uint16_t port = (uint16_t)(20000 + getpid() % 20000);
    char metrics[32];
    snprintf(metrics, sizeof(metrics), "127.0.0.1:%d", port);
    const char *const extra[] = {"--metrics", metrics, "--log-level", "info", NULL};
    struct wst_client *v = calloc((size_t)n, sizeof(*v));
    void *ctx = zmq_ctx_new();
    if (n < 1 || !v || !ctx || getrlimit(RLIMIT_NOFILE, &files))
        return 2;
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    zmq_ctx_set(ctx, ZMQ_MAX_SOCKETS, n + 16);
    wst_daemon_start(&d,
                     "endpoints = {\"%IPC%\"}\ngpus = {\"rtx3070\"}\nlimits {\n    max_clients = "
                     "100000\n}\n",
                     extra);
    double before = (double)wst_daemon_rss_kib(&d) / 1024;
    connect_all(v, n, ctx, &d);
    usleep(500000);
    printf("%d idle clients (the daemon alone: %.1f MiB; then %d descriptors)\n", n, before,
           wst_daemon_n_fds(&d));
    result("resident memory of the daemon", (double)wst_daemon_rss_kib(&d) / 1024, "MiB", 300);
    double cpu = cpu_s(d.pid);
    sleep(10);
    result("its processor time while all are idle", 10 * (cpu_s(d.pid) - cpu), "% of a core", 1);
    bench_scrape(port);
    for (int i = 0; i < n; i++)
        wst_close(&v[i], true);
    zmq_ctx_term(ctx);
    free(v);
    bench_reload(&d);
    if (n_missed)
        printf("%d figure(s) miss their bound\n", n_missed);
    return wst_daemon_stop(&d) ? 1 : 0;
}
