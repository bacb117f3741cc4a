// SPDX-License-Identifier: Apache-2.0
/* Measures what the client's side costs: preloading, an asynchronous launch, a synchronising call
 * beside a bare ZeroMQ ping-pong, copies beside memcpy(), graphs beside launches by hand. First
 * with the tests' small daemon in a process of its own, so that the figures are the client's and
 * the transport's alone; then with wattshared of the same build and a device that skips execution
 * (or with the daemon at WATTSHARE_SOCKET).
 *
 * Usage: bench_client [waits]. With "waits" only the calls that wait. */
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.h>

#include "base/clock.h"
#include "base/macros.h"
#include "frontend/config.h"
#include "frontend/session/session.h"
#include "tests/unit/frontend/fake_daemon.h"

#define MUST(x)                                                                                    \
    do {                                                                                           \
        if (!(x)) {                                                                                \
            fprintf(stderr, "bench_client: can't measure: %s\n", #x);                              \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}
static double median(double *v, size_t n)
{
    qsort(v, n, sizeof(*v), compare);
    return v[n / 2];
}

/* ---- preloading ---- */

static double spawn_us(char **envp)
{
    char *argv[] = {"/bin/true", NULL};
    pid_t pid;
    int status;
    uint64_t t = ws_clock_ns();
    MUST(posix_spawn(&pid, argv[0], NULL, NULL, argv, envp) == 0);
    MUST(waitpid(pid, &status, 0) == pid && status == 0);
    return (double)(ws_clock_ns() - t) / 1e3;
}

static void bench_preload(const char *self)
{
    enum { N = 401 };
    static double plain[N], preloaded[N], deps[N];
    char lib[4200], both[4300];
    const char *slash = strrchr(self, '/');
    snprintf(lib, sizeof(lib), "LD_PRELOAD=%.*s/../frontend/libwattshare.so",
             (int)(slash ? slash - self : 1), slash ? self : ".");
    snprintf(both, sizeof(both), "LD_PRELOAD=libprotobuf-c.so.1:libmd.so.0");
    MUST(access(lib + strlen("LD_PRELOAD="), R_OK) == 0);
    char *none[] = {NULL}, *with[] = {lib, NULL}, *only[] = {both, NULL};
    for (int i = 0; i < N; i++) {
        plain[i] = spawn_us(none);
        preloaded[i] = spawn_us(with);
        deps[i] = spawn_us(only);
    }
    double a = median(plain, N), b = median(preloaded, N), c = median(deps, N);
    printf("preload of a program without CUDA  %8.1f us more (plain %.1f us, preloaded %.1f us; "
           "libprotobuf-c and libmd alone %.1f us more)\n",
           b - a, a, b, c - a);
}

/* ---- bare ZeroMQ ---- */

struct bare {
    char dir[32], endpoint[96];
    pid_t pid;
    void *ctx, *sock;
};

static void bare_start(struct bare *b)
{
    char buf[4096];
    strcpy(b->dir, "/tmp/wattshare-bench-XXXXXX");
    MUST(mkdtemp(b->dir));
    snprintf(b->endpoint, sizeof(b->endpoint), "ipc://%s/s", b->dir);
    b->pid = fork();
    if (b->pid == 0) {
        void *ctx = zmq_ctx_new(), *s = zmq_socket(ctx, ZMQ_ROUTER);
        MUST(zmq_bind(s, b->endpoint) == 0);
        for (;;) {
            char id[64];
            int n = zmq_recv(s, id, sizeof(id), 0), m = zmq_recv(s, buf, sizeof(buf), 0);
            zmq_send(s, id, n, ZMQ_SNDMORE);
            zmq_send(s, buf, m, 0);
        }
    }
    b->ctx = zmq_ctx_new();
    b->sock = zmq_socket(b->ctx, ZMQ_DEALER);
    MUST(zmq_connect(b->sock, b->endpoint) == 0);
}

static void bare_pingpong(struct bare *b, size_t bytes)
{
    char buf[4096] = {0};
    zmq_send(b->sock, buf, bytes, 0);
    zmq_recv(b->sock, buf, sizeof(buf), 0);
}

static void bare_stop(struct bare *b)
{
    kill(b->pid, SIGKILL);
    waitpid(b->pid, NULL, 0);
    zmq_close(b->sock);
    zmq_ctx_term(b->ctx);
    unlink(b->endpoint + strlen("ipc://"));
    rmdir(b->dir);
}

/* ---- with a daemon ---- */

static pid_t start_fake(void)
{
    int p[2];
    struct fake_daemon d = {.outstanding = 65536};
    char endpoint[256] = "";
    MUST(pipe(p) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        fake_daemon_start(&d);
        MUST(write(p[1], d.endpoint, strlen(d.endpoint) + 1) > 0);
        for (;;)
            pause();
    }
    MUST(read(p[0], endpoint, sizeof(endpoint) - 1) > 0);
    close(p[0]);
    close(p[1]);
    snprintf(((struct ws_frontend_config *)ws_frontend_config())->socket, 256, "%s", endpoint);
    return pid;
}

static void bench_launch(void)
{
    static const char ptx[] =
        ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry none()\n{\n\tret;\n}\n";
    enum { ROUNDS = 7, N = 300000 };
    double post[ROUNDS], total[ROUNDS];
    struct ws_session_module *m;
    struct ws_session_function *f;
    MUST(ws_session_module_load(0, ptx, 0, "bench", &m, NULL) == 0);
    MUST(ws_session_module_function(m, "none", &f) == 0);
    struct ws_launch l = {
        .function = f, .stream = ws_stream_legacy(0), .grid = {1, 1, 1}, .block = {32, 1, 1}};
    for (int r = 0; r < ROUNDS; r++) {
        uint64_t t = ws_clock_ns();
        for (int i = 0; i < N; i++)
            MUST(ws_session_launch(&l) == 0);
        post[r] = (double)(ws_clock_ns() - t) / N;
        MUST(ws_session_device_sync(0) == 0);
        total[r] = (double)(ws_clock_ns() - t) / N;
    }
    double p = median(post, ROUNDS), e = median(total, ROUNDS);
    printf("asynchronous launch, amortised      %8.1f ns; end to end %.1f ns = %.2f million "
           "launches/s\n",
           p, e, 1e3 / e);
    /* Without the window: bursts that fit in it. */
    enum { BURST = 200, BURSTS = 501 };
    static double burst[BURSTS];
    for (int r = 0; r < BURSTS; r++) {
        uint64_t t = ws_clock_ns();
        for (int i = 0; i < BURST; i++)
            MUST(ws_session_launch(&l) == 0);
        burst[r] = (double)(ws_clock_ns() - t) / BURST;
        MUST(ws_session_device_sync(0) == 0);
    }
    printf("  in bursts of %d                  %8.1f ns each\n", BURST, median(burst, BURSTS));
    MUST(ws_session_module_unload(m) == 0);
}

/* A waiting call, and an empty launch with one, beside a bare ping-pong. @ring: for the name. */
static void bench_sync(const char *ring)
{
    static const char ptx[] =
        ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry none()\n{\n\tret;\n}\n";
    enum { ROUNDS = 41, N = 100, BYTES = 20 };
    double v[ROUNDS], w[ROUNDS], x[ROUNDS];
    struct bare b;
    struct ws_session_module *m;
    struct ws_session_function *f;
    MUST(ws_session_module_load(0, ptx, 0, "bench", &m, NULL) == 0);
    MUST(ws_session_module_function(m, "none", &f) == 0);
    struct ws_launch l = {
        .function = f, .stream = ws_stream_legacy(0), .grid = {1, 1, 1}, .block = {32, 1, 1}};
    bare_start(&b);
    for (int i = 0; i < 200; i++)
        bare_pingpong(&b, BYTES);
    for (int r = 0; r < ROUNDS; r++) { /* in turns, so that other load on the machine meets all */
        uint64_t t = ws_clock_ns();
        for (int i = 0; i < N; i++)
            MUST(ws_session_device_sync(0) == 0);
        uint64_t u = ws_clock_ns();
        for (int i = 0; i < N; i++)
            bare_pingpong(&b, BYTES);
        uint64_t a = ws_clock_ns();
        for (int i = 0; i < N; i++) {
            MUST(ws_session_launch(&l) == 0);
            MUST(ws_session_device_sync(0) == 0);
        }
        x[r] = (double)(ws_clock_ns() - a) / 1e3 / N;
        v[r] = (double)(u - t) / 1e3 / N;
        w[r] = (double)(a - u) / 1e3 / N;
    }
    bare_stop(&b);
    MUST(ws_session_module_unload(m) == 0);
    double us = median(v, ROUNDS), bare_us = median(w, ROUNDS), launch_us = median(x, ROUNDS);
    printf("synchronising call, %-14s  %8.1f us = %.2f x a bare ping-pong (%.1f us)\n", ring, us,
           us / bare_us, bare_us);
    printf("empty launch and wait, %-11s  %8.1f us = %.2f x\n", ring, launch_us,
           launch_us / bare_us);
}

static void bench_copy(size_t bytes)
{
    enum { ROUNDS = 15 };
    enum { MEMCPY, H2D, H2D_CALL, D2H, PINNED_H2D, PINNED_D2H, KINDS };
    static const char *const names[] = {"memcpy",
                                        "pageable to device, to its end",
                                        "pageable to device, the call",
                                        "device to pageable",
                                        "pinned to device",
                                        "device to pinned"};
    double v[KINDS][ROUNDS];
    uint8_t *a = malloc(bytes), *b = malloc(bytes), *pinned;
    uint64_t d, s = ws_stream_legacy(0);
    memset(a, 1, bytes);
    memset(b, 2, bytes);
    MUST(ws_session_mem_alloc(0, bytes, &d) == 0);
    MUST(ws_session_host_alloc(bytes, (void **)&pinned) == 0);
    memset(pinned, 3, bytes);
    for (int r = -2; r < ROUNDS; r++) {
        for (int k = 0; k < KINDS; k++) {
            uint64_t t = ws_clock_ns();
            switch (k) {
            case MEMCPY:
                memcpy(b, a, bytes);
                __asm__ volatile("" ::: "memory");
                break;
            case H2D:
                MUST(ws_session_copy(s, (void *)d, a, bytes, WS_COPY_H2D, false) == 0);
                MUST(ws_session_stream_sync(s) == 0); /* to the end, not only into staging */
                break;
            case H2D_CALL: /* CUDA's call returns once the source may be changed */
                MUST(ws_session_copy(s, (void *)d, a, bytes, WS_COPY_H2D, false) == 0);
                break;
            case D2H:
                MUST(ws_session_copy(s, b, (void *)d, bytes, WS_COPY_D2H, false) == 0);
                break;
            case PINNED_H2D:
                MUST(ws_session_copy(s, (void *)d, pinned, bytes, WS_COPY_H2D, false) == 0);
                break;
            default:
                MUST(ws_session_copy(s, pinned, (void *)d, bytes, WS_COPY_D2H, false) == 0);
            }
            if (r >= 0)
                v[k][r] = (double)bytes / (double)(ws_clock_ns() - t);
            MUST(ws_session_stream_sync(s) == 0);
        }
    }
    double base = median(v[MEMCPY], ROUNDS);
    for (int k = 0; k < KINDS; k++) {
        double x = median(v[k], ROUNDS);
        printf("%4zu MiB %-31s %8.2f GB/s = %3.0f %% of memcpy\n", bytes >> 20, names[k], x,
               100 * x / base);
    }
    ws_session_mem_free(d);
    ws_session_host_free(pinned);
    free(a);
    free(b);
}

/* 1024 rows of 4 KiB, each with a gap on one side, beside the same bytes in one range. */
static void bench_copy_2d(void)
{
    enum { ROUNDS = 41, WIDTH = 4096, HEIGHT = 1024, PITCH = WIDTH + 128 };
    enum { LINEAR_H2D, BOX_H2D, LINEAR_D2H, BOX_D2H, KINDS };
    double v[KINDS][ROUNDS];
    uint8_t *host = malloc((size_t)PITCH * HEIGHT);
    uint64_t d, s = ws_stream_legacy(0);
    memset(host, 1, (size_t)PITCH * HEIGHT);
    MUST(ws_session_mem_alloc(0, (uint64_t)PITCH * HEIGHT, &d) == 0);
    struct ws_copy_side h = {(uintptr_t)host, PITCH, 0}, dev = {d, WIDTH, 0};
    struct ws_copy_box box = {WIDTH, HEIGHT, 1};
    for (int r = -2; r < ROUNDS; r++) {
        for (int k = 0; k < KINDS; k++) {
            uint64_t t = ws_clock_ns(), n = (uint64_t)WIDTH * HEIGHT;
            if (k == LINEAR_H2D)
                MUST(ws_session_copy(s, (void *)d, host, n, WS_COPY_H2D, false) == 0);
            else if (k == BOX_H2D)
                MUST(ws_session_copy_box(s, &dev, &h, &box, WS_COPY_H2D, false) == 0);
            else if (k == LINEAR_D2H)
                MUST(ws_session_copy(s, host, (void *)d, n, WS_COPY_D2H, false) == 0);
            else
                MUST(ws_session_copy_box(s, &h, &dev, &box, WS_COPY_D2H, false) == 0);
            MUST(ws_session_stream_sync(s) == 0);
            if (r >= 0)
                v[k][r] = (double)(ws_clock_ns() - t) / 1e3;
        }
    }
    for (int k = 0; k < KINDS; k += 2) {
        double linear = median(v[k], ROUNDS), rows = median(v[k + 1], ROUNDS);
        printf("1024 x 4 KiB 2-D, %-18s  %8.1f us = %.2f x linear (%.1f us)\n",
               k ? "device to pageable" : "pageable to device", rows, rows / linear, linear);
    }
    ws_session_mem_free(d);
    free(host);
}

/* ---- graphs: 1000 kernels by hand, and the same launched as one graph ---- */

/* The façade's, linked in. */
int cuInit(unsigned);
int cuDevicePrimaryCtxRetain(void **, int);
int cuCtxSetCurrent(void *);
int cuModuleLoadData(void **, const void *);
int cuModuleGetFunction(void **, void *, const char *);
int cuStreamCreate(void **, unsigned);
int cuStreamSynchronize(void *);
int cuStreamBeginCapture_v2(void *, int);
int cuStreamEndCapture(void *, void **);
int cuEventCreate(void **, unsigned);
int cuEventRecord(void *, void *);
int cuStreamWaitEvent(void *, void *, unsigned);
int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   void *, void **, void **);
int cuGraphInstantiateWithFlags(void **, void *, unsigned long long);
int cuGraphLaunch(void *, void *);

enum { GRAPH_KERNELS = 1000, GRAPH_ROUNDS = 51, GRAPH_STREAMS = 8 };

static void graph_by_hand(void *f, void **streams, void **events, int n_streams)
{
    uint64_t value = 1;
    void *args[] = {&value};
    if (n_streams > 1)
        MUST(cuEventRecord(events[0], streams[0]) == 0);
    for (int i = 1; i < n_streams; i++)
        MUST(cuStreamWaitEvent(streams[i], events[0], 0) == 0);
    for (int i = 0; i < GRAPH_KERNELS; i++)
        MUST(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, streams[i % n_streams], args, NULL) == 0);
    for (int i = 1; i < n_streams; i++)
        MUST(cuEventRecord(events[i], streams[i]) == 0 &&
             cuStreamWaitEvent(streams[0], events[i], 0) == 0);
}

static void graph_round(void *f, void **streams, void **events, int n_streams)
{
    static double hand_post[GRAPH_ROUNDS], hand[GRAPH_ROUNDS], post[GRAPH_ROUNDS],
        all[GRAPH_ROUNDS];
    void *g, *e;
    MUST(cuStreamBeginCapture_v2(streams[0], 0) == 0);
    graph_by_hand(f, streams, events, n_streams);
    MUST(cuStreamEndCapture(streams[0], &g) == 0);
    uint64_t t = ws_clock_ns();
    MUST(cuGraphInstantiateWithFlags(&e, g, 0) == 0);
    double instantiate_us = (double)(ws_clock_ns() - t) / 1e3;
    for (int r = 0; r < GRAPH_ROUNDS; r++) {
        t = ws_clock_ns();
        graph_by_hand(f, streams, events, n_streams);
        hand_post[r] = (double)(ws_clock_ns() - t) / GRAPH_KERNELS / 1e3;
        MUST(cuStreamSynchronize(streams[0]) == 0);
        hand[r] = (double)(ws_clock_ns() - t) / GRAPH_KERNELS / 1e3;
        t = ws_clock_ns();
        MUST(cuGraphLaunch(e, streams[0]) == 0);
        post[r] = (double)(ws_clock_ns() - t) / GRAPH_KERNELS / 1e3;
        MUST(cuStreamSynchronize(streams[0]) == 0);
        all[r] = (double)(ws_clock_ns() - t) / GRAPH_KERNELS / 1e3;
    }
    printf("graph of %d kernels, %d branch%-2s    %8.3f us a node posted, %.3f done; by hand %.3f "
           "and %.3f; instantiated in %.0f us\n",
           GRAPH_KERNELS, n_streams, n_streams > 1 ? "es" : "", median(post, GRAPH_ROUNDS),
           median(all, GRAPH_ROUNDS), median(hand_post, GRAPH_ROUNDS), median(hand, GRAPH_ROUNDS),
           instantiate_us);
}

static void bench_graph(void)
{
    static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                              ".visible .entry none(.param .u64 p)\n{\n\tret;\n}\n";
    void *ctx, *m, *f, *streams[GRAPH_STREAMS], *events[GRAPH_STREAMS];
    MUST(cuInit(0) == 0 && cuDevicePrimaryCtxRetain(&ctx, 0) == 0 && cuCtxSetCurrent(ctx) == 0);
    MUST(cuModuleLoadData(&m, ptx) == 0 && cuModuleGetFunction(&f, m, "none") == 0);
    for (int i = 0; i < GRAPH_STREAMS; i++)
        MUST(cuStreamCreate(&streams[i], 1) == 0 && cuEventCreate(&events[i], 2) == 0);
    graph_round(f, streams, events, 1);
    graph_round(f, streams, events, GRAPH_STREAMS);
}

enum { WAITS = 1, REST = 2 };

static void bench_session(int what, bool ring)
{
    pid_t pid = fork(); /* a process has one session */
    if (pid == 0) {
        ((struct ws_frontend_config *)ws_frontend_config())->ring = ring;
        MUST(ws_session_connect() == 0);
        if (what & WAITS)
            bench_sync(ring ? "with ring" : "ZeroMQ only");
        if (what & REST) {
            bench_launch();
            bench_graph();
            bench_copy(16u << 20);
            bench_copy_2d();
        }
        ws_session_shutdown();
        exit(0);
    }
    int status;
    MUST(waitpid(pid, &status, 0) == pid && status == 0);
}

static void bench_with_daemon(int what)
{
    if (what & WAITS)
        bench_session(WAITS, false);
    bench_session(what, true);
}

/* wattshared of this build, on a socket in @dir. */
static pid_t start_daemon(const char *self, const char *dir, const char *clock)
{
    char path[4200], byte;
    int p[2];
    const char *slash = strrchr(self, '/');
    struct ws_frontend_config *c = (struct ws_frontend_config *)ws_frontend_config();
    snprintf(path, sizeof(path), "%.*s/../backend/wattshared", (int)(slash ? slash - self : 1),
             slash ? self : ".");
    snprintf(c->socket, sizeof(c->socket), "ipc://%s/s", dir);
    MUST(access(path, X_OK) == 0 && pipe(p) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        close(p[0]);
        MUST(dup2(p[1], 9) == 9);
        execl(path, "wattshared", "--socket", c->socket, "--gpus", "rtx3070", "--clock", clock,
              "--ready-fd", "9", "--log-level", "warning", NULL);
        _exit(127);
    }
    close(p[1]);
    MUST(read(p[0], &byte, 1) == 1);
    close(p[0]);
    return pid;
}

static void stop(pid_t pid, int signal)
{
    kill(pid, signal);
    waitpid(pid, NULL, 0);
}

/* An argument: only the waiting calls. */
int main(int argc, char **argv)
{
    char dir[] = "/tmp/wattshare-bench-XXXXXX", path[64];
    int what = argc > 1 && !strcmp(argv[1], "waits") ? WAITS : WAITS | REST;
    setvbuf(stdout, NULL, _IOLBF, 0);
    MUST(mkdtemp(dir));
    if (what & REST) {
        bench_preload(argv[0]);
        printf("with the tests' daemon in miniature:\n");
        pid_t daemon = start_fake();
        bench_session(what, true);
        stop(daemon, SIGKILL);
    }
    if (getenv(WS_ENV_SOCKET)) {
        printf("with the daemon at %s:\n", getenv(WS_ENV_SOCKET));
        snprintf(((struct ws_frontend_config *)ws_frontend_config())->socket, 256, "%s",
                 getenv(WS_ENV_SOCKET));
        bench_with_daemon(what);
    } else {
        printf("with wattshared, execution skipped:\n");
        pid_t daemon = start_daemon(argv[0], dir, "skip");
        bench_with_daemon(what);
        stop(daemon, SIGTERM);
        printf("with wattshared, executing:\n");
        daemon = start_daemon(argv[0], dir, "functional");
        bench_with_daemon(WAITS);
        stop(daemon, SIGTERM);
    }
    snprintf(path, sizeof(path), "%s/s", dir);
    unlink(path);
    rmdir(dir);
    return 0;
}
