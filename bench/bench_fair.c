// SPDX-License-Identifier: Apache-2.0
/* What a bystander has to wait while another client does its worst.
 *
 * The bystander launches a small kernel and waits for it, again and again. Beside it a client of
 * another process sends messages that take the daemon long: many commands in one message, large
 * allocations, modules with large variables, what the daemon keeps books of, questions with long
 * answers. A row for each: the bystander's wait in the middle, at the 99th percentile and at the
 * longest. The first row is the bystander alone.
 *
 * Usage: bench_fair [SECONDS [NAME]]: seconds for each row, 3; NAME: only this row. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/lib/wsclient.h"

enum { MAX_WAITS = 1 << 20 };

/* ---- attackers: each runs until it is killed ---- */

static struct wst_client a;

static void open_attacker(const struct wst_daemon *d)
{
    wst_open(&a, NULL, d->ipc, true);
}

static uint64_t post_alloc(uint64_t bytes)
{
    Ws__MemAlloc m = WS__MEM_ALLOC__INIT;
    m.bytes = bytes;
    return wst_post(&a, WS__COMMAND__C_MEM_ALLOC, &m);
}

static void post_free(uint64_t va)
{
    Ws__MemFree m = WS__MEM_FREE__INIT;
    m.address = va;
    wst_post(&a, WS__COMMAND__C_MEM_FREE, &m);
}

/* Return: what the reply to @seq says, 0 if there is none. Who was dropped comes again. */
static uint64_t flush_and_wait(const struct wst_daemon *d, uint64_t seq)
{
    wst_flush(&a);
    const Ws__Reply *r = wst_wait(&a, seq, 60000);
    uint64_t value = r ? r->value : 0;
    if (a.dropped) {
        wst_close(&a, false);
        open_attacker(d);
    }
    return value;
}

/* One message of 2,000 × (allocate @bytes, free it). The daemon gives out addresses in ascending
 * order, each at the same distance from the one before, so the attacker knows them beforehand. */
static void churn(const struct wst_daemon *d, uint64_t bytes)
{
    uint64_t first = 0, second = 0;
    for (;;) {
        if (wst_alloc(&a, 0, bytes, &first) || wst_alloc(&a, 0, bytes, &second) ||
            wst_free(&a, first)) {
            wst_close(&a, false);
            open_attacker(d);
            continue;
        }
        uint64_t seq = 0, va = second;
        for (int i = 0; i < 2000; i++, va += second - first) {
            post_free(va);
            seq = post_alloc(bytes);
        }
        if (!(va = flush_and_wait(d, seq)) || wst_free(&a, va)) {
            wst_close(&a, false);
            open_attacker(d);
        }
    }
}

static void attack_churn_32m(const struct wst_daemon *d)
{
    churn(d, UINT64_C(32) << 20);
}

static void attack_churn_64k(const struct wst_daemon *d)
{
    churn(d, UINT64_C(64) << 10);
}

/* Each of 4,000 commands allocates and nothing is freed, then the client goes. */
static void attack_many_allocations(const struct wst_daemon *d)
{
    for (;;) {
        for (int n = 0; n < 25; n++) {
            uint64_t seq = 0;
            for (int i = 0; i < 4000; i++)
                seq = post_alloc(512);
            flush_and_wait(d, seq);
        }
        wst_close(&a, true);
        open_attacker(d);
    }
}

static void attack_many_events(const struct wst_daemon *d)
{
    for (;;) {
        uint64_t id = 1;
        for (int n = 0; n < 15; n++) {
            for (int i = 0; i < 4000; i++) {
                Ws__EventRecord m = WS__EVENT_RECORD__INIT;
                m.event = id++;
                m.stream = 1;
                wst_post(&a, WS__COMMAND__C_EVENT_RECORD, &m);
            }
            wst_flush(&a);
            if (wst_sync_device(&a, 0))
                break;
        }
        wst_close(&a, true);
        open_attacker(d);
    }
}

/* A module whose text is short and whose variable is large. */
static void attack_large_variable(const struct wst_daemon *d)
{
    static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                              ".visible .global .align 4 .b8 big[1000000000];\n"
                              ".visible .entry k() { ret; }\n";
    for (uint64_t id = 1;; id++) {
        if (wst_load_ptx(&a, id, 0, ptx) > 0 && a.dropped)
            open_attacker(d);
        wst_post(&a, WS__COMMAND__C_MODULE_UNLOAD, &id);
        wst_flush(&a);
    }
}

/* A module of many kernels, loaded again and again: it is compiled once, but each reply names all
 * its kernels. */
static void attack_many_kernels(const struct wst_daemon *d)
{
    enum { KERNELS = 20000 };
    char *ptx = malloc(KERNELS * 48 + 100), *p = ptx;
    p += sprintf(p, ".version 7.0\n.target sm_70\n.address_size 64\n");
    for (int i = 0; i < KERNELS; i++)
        p += sprintf(p, ".visible .entry kernel_%d() { ret; }\n", i);
    for (uint64_t id = 1;; id++) {
        if (wst_load_ptx(&a, id, 0, ptx) && a.dropped)
            open_attacker(d);
        wst_post(&a, WS__COMMAND__C_MODULE_UNLOAD, &id);
        wst_flush(&a);
    }
}

static void attack_not_supported(const struct wst_daemon *d)
{
    for (unsigned n = 0;;) {
        char name[32];
        Ws__NotSupported m = WS__NOT_SUPPORTED__INIT;
        m.name = name;
        m.count = 1;
        for (int i = 0; i < 4000; i++) {
            snprintf(name, sizeof(name), "cuNobodyHas%u", n++);
            wst_post(&a, WS__COMMAND__C_NOT_SUPPORTED, &m);
        }
        wst_flush(&a);
        if (wst_sync_device(&a, 0))
            return;
    }
}

static void attack_queries(const struct wst_daemon *d)
{
    for (;;) {
        uint64_t seq = 0;
        for (int i = 0; i < 4000; i++) {
            Ws__Query m = WS__QUERY__INIT;
            m.what_case = WS__QUERY__WHAT_STREAM;
            m.stream = 1;
            seq = wst_post(&a, WS__COMMAND__C_QUERY, &m);
        }
        flush_and_wait(d, seq);
    }
}

static void attack_launches(const struct wst_daemon *d)
{
    if (wst_load_ptx(&a, 1, 0, wst_ptx))
        abort();
    uint64_t va;
    if (wst_alloc(&a, 0, 4096, &va))
        abort();
    struct {
        uint64_t p;
        uint32_t v;
    } params = {va, 1};
    for (;;) {
        for (int i = 0; i < 4000; i++)
            wst_launch(&a, 1, 1, (uint32_t)wst_kernel_index(&a, "fill"), 1, 32, &params, 12);
        wst_flush(&a);
        if (wst_sync_device(&a, 0))
            return;
    }
}

/* Asks the same again and again, and fetches what has been answered. */
static void ask_on(Ws__ClientMessage *m)
{
    for (;;) {
        for (int i = 0; i < 50; i++)
            wst_send_message(&a, m);
        wst_pump(&a, 1);
    }
}

static void attack_status(const struct wst_daemon *d)
{
    Ws__ClientMessage m = WS__CLIENT_MESSAGE__INIT;
    Ws__StatusRequest q = WS__STATUS_REQUEST__INIT;
    m.status = &q;
    ask_on(&m);
}

static void attack_trace(const struct wst_daemon *d)
{
    Ws__ClientMessage m = WS__CLIENT_MESSAGE__INIT;
    Ws__TraceRequest q = WS__TRACE_REQUEST__INIT;
    m.trace = &q;
    ask_on(&m);
}

static const struct attack {
    const char *name;
    void (*run)(const struct wst_daemon *d);
    int n; /* processes */
} attacks[] = {
    {"alone", NULL, 0},
    {"free, allocate 32 MiB", attack_churn_32m, 1},
    {"free, allocate 64 KiB", attack_churn_64k, 1},
    {"100,000 allocations, end", attack_many_allocations, 1},
    {"60,000 events, end", attack_many_events, 1},
    {"module with 1 GB variable", attack_large_variable, 1},
    {"module of 20,000 kernels", attack_many_kernels, 1},
    {"calls not supported", attack_not_supported, 1},
    {"questions", attack_queries, 1},
    {"launches", attack_launches, 1},
    {"status", attack_status, 1},
    {"trace", attack_trace, 1},
    {"questions of 8 clients", attack_queries, 8},
    {"allocations of 8 clients", attack_churn_32m, 8},
};

/* ---- the bystander ---- */

static int by_time(const void *x, const void *y)
{
    uint64_t p = *(const uint64_t *)x, q = *(const uint64_t *)y;
    return p < q ? -1 : p > q;
}

static void bystander(const struct wst_daemon *d, double seconds, const char *name)
{
    static struct wst_client c;
    static uint64_t waits[MAX_WAITS];
    wst_open(&c, NULL, d->ipc, true);
    uint64_t va, n = 0;
    if (wst_alloc(&c, 0, 4096, &va) || wst_load_ptx(&c, 1, 0, wst_ptx) || wst_ring_open(&c))
        abort();
    uint32_t fill = (uint32_t)wst_kernel_index(&c, "fill");
    struct {
        uint64_t p;
        uint32_t v;
    } params = {va, 1};
    uint64_t end = ws_clock_ns() + (uint64_t)(seconds * 1e9);
    while (n < MAX_WAITS && (n < 3 || ws_clock_ns() < end)) {
        uint64_t from = ws_clock_ns();
        wst_launch(&c, 1, 1, fill, 1, 32, &params, 12);
        if (wst_sync_device(&c, 0)) {
            printf("%-28s the bystander's call failed\n", name);
            return;
        }
        waits[n++] = ws_clock_ns() - from;
        usleep(200);
    }
    qsort(waits, n, sizeof(waits[0]), by_time);
    printf("%-28s %8.3f %8.3f %8.3f %8llu\n", name, (double)waits[n / 2] / 1e6,
           (double)waits[n * 99 / 100] / 1e6, (double)waits[n - 1] / 1e6, (unsigned long long)n);
    fflush(stdout);
    wst_close(&c, true);
}

static pid_t attacker(const struct wst_daemon *d, const struct attack *w)
{
    pid_t pid = fork();
    if (pid)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    open_attacker(d);
    w->run(d);
    _exit(0);
}

static void row(const struct attack *w, double seconds)
{
    struct wst_daemon d;
    pid_t pids[8];
    const char *const args[] = {"--gpus", "rtx3070", NULL};
    wst_daemon_start(&d, NULL, args);
    for (int i = 0; i < w->n; i++)
        pids[i] = attacker(&d, w);
    usleep(200000);
    bystander(&d, seconds, w->name);
    for (int i = 0; i < w->n; i++) {
        kill(pids[i], SIGKILL);
        waitpid(pids[i], NULL, 0);
    }
    if (wst_daemon_stop(&d))
        printf("%-28s the daemon did not end well\n", w->name);
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 3;
    printf("%-28s %8s %8s %8s %8s\n", "beside it", "median", "99 %", "longest", "calls");
    printf("%-28s %8s %8s %8s\n", "", "ms", "ms", "ms");
    for (size_t i = 0; i < WS_ARRAY_SIZE(attacks); i++)
        if (argc < 3 || strstr(attacks[i].name, argv[2]))
            row(&attacks[i], seconds);
    return 0;
}
