// SPDX-License-Identifier: Apache-2.0
/* Measures what a policy adds to a launch: the same raw client with a daemon that has no policy and
 * with daemons that have one, in turns, all on one core, where the difference is the work done.
 * Kernels are skipped, so a launch with a wait is nothing but the way there and back. With a policy
 * it is also a job of its own: the policy is asked on its arrival, starts it, and is asked again
 * when it is done. In rows with a number, as many jobs of other programs are open and running
 * meanwhile, which the policy has to look at each time.
 *
 * Usage: bench_dispatch [ROUNDS] */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/macros.h"
#include "tests/lib/wsclient.h"

enum { ROUNDS = 2000, BATCH = 64, OTHERS = 7 };
#define BOUND_US 15.0

static const struct {
    const char *policy;
    int n_open;
} rows[] = {{"none", 0},     {"fifo", 0},   {"rr", 0},          {"gcaps", 0},
            {"sbeet-mg", 0}, {"stgm", 0},   {"consolidate", 0}, {"none", 8},
            {"gcaps", 8},    {"none", 200}, {"gcaps", 200}};
enum { N = WS_ARRAY_SIZE(rows) };

struct side { /* a daemon with its clients */
    struct wst_daemon d;
    struct wst_client c,
        *others; /* they have launched once: tasks that the policy has to look at */
    int n_others, fill;
    uint64_t va;
    double *waited, *batched;
};
static struct side sides[N];

static void launch(struct side *s, struct wst_client *c)
{
    struct {
        uint64_t p;
        uint32_t v;
    } params = {s->va, 1};
    wst_launch(c, 1, 1, (uint32_t)s->fill, 1, 32, &params, 12);
}

static void must(int r)
{
    if (r) {
        fprintf(stderr, "bench_dispatch: can't measure\n");
        exit(1);
    }
}

static void client_open(struct side *s, struct wst_client *c)
{
    wst_open(c, NULL, s->d.ipc, true);
    must(wst_alloc(c, 0, 4096, &s->va));
    must(wst_load_ptx(c, 1, 0, wst_ptx));
    s->fill = wst_kernel_index(c, "fill");
    launch(s, c);
    must(wst_sync_device(c, 0));
}

static void segment_keep_open(struct side *s, struct wst_client *c)
{
    Ws__JobBegin begin = WS__JOB_BEGIN__INIT;
    const Ws__Reply *r = wst_call(c, WS__COMMAND__C_JOB_BEGIN, &begin);
    must(!r || r->error);
    launch(s, c);
    must(wst_sync_device(c, 0));
}

static void side_open(struct side *s, const char *policy, int n_open, size_t rounds)
{
    char conf[256];
    snprintf(conf, sizeof(conf),
             "endpoints = {\"%%IPC%%\"}\ngpus = {\"rtx3070\"}\nclock = skip\nlog_level = "
             "error\npolicy = %s\n",
             policy);
    wst_daemon_start(&s->d, conf, NULL);
    s->n_others = n_open ? n_open : OTHERS;
    s->others = calloc((size_t)s->n_others, sizeof(*s->others));
    must(!s->others);
    for (int i = 0; i < s->n_others; i++) {
        client_open(s, &s->others[i]);
        if (n_open)
            segment_keep_open(s, &s->others[i]);
    }
    client_open(s, &s->c);
    s->waited = calloc(rounds, sizeof(*s->waited));
    s->batched = calloc(rounds, sizeof(*s->batched));
    must(!s->waited || !s->batched);
}

static double timed_us(struct side *s, int n)
{
    uint64_t t = ws_clock_ns();
    for (int i = 0; i < n; i++)
        launch(s, &s->c);
    must(wst_sync_device(&s->c, 0));
    return (double)(ws_clock_ns() - t) / 1e3 / n;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(double *v, size_t n, double q)
{
    qsort(v, n, sizeof(*v), compare);
    return v[(size_t)(q * (double)(n - 1))];
}

int main(int argc, char **argv)
{
    size_t rounds = argc > 1 ? (size_t)strtoul(argv[1], NULL, 10) : ROUNDS;
    cpu_set_t one;
    int n_missed = 0;
    must(!rounds);
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    sched_setaffinity(0, sizeof(one), &one);
    for (size_t i = 0; i < N; i++)
        side_open(&sides[i], rows[i].policy, rows[i].n_open, rounds);
    for (size_t k = 0; k < rounds; k++)
        for (size_t i = 0; i < N; i++) {
            sides[i].waited[k] = timed_us(&sides[i], 1);
            sides[i].batched[k] = k % 8 ? sides[i].waited[k] : timed_us(&sides[i], BATCH);
        }
    size_t n_batched = (rounds + 7) / 8;
    for (size_t i = 0; i < N; i++)
        for (size_t k = 0; k < n_batched; k++)
            sides[i].batched[k] = sides[i].batched[8 * k];
    double base = 0, base_batched = 0;
    printf("%-12s %5s %22s %12s %10s %26s\n", "policy", "open", "launch and wait (us)", "99 %",
           "added", "of 64 in a segment, each");
    for (size_t i = 0; i < N; i++) {
        double each = quantile(sides[i].batched, n_batched, 0.5),
               late = quantile(sides[i].waited, rounds, 0.99),
               us = quantile(sides[i].waited, rounds, 0.5);
        if (!strcmp(rows[i].policy, "none")) { /* what follows is measured against it */
            base = us;
            base_batched = each;
        }
        printf("%-12s %5d %22.1f %12.1f %10.1f %17.2f %+8.2f  %s\n", rows[i].policy, rows[i].n_open,
               us, late, us - base, each, each - base_batched,
               us - base <= BOUND_US ? "ok" : "MISSED (bound: 15 us added)");
        n_missed += us - base > BOUND_US;
        wst_close(&sides[i].c, true);
        for (int k = 0; k < sides[i].n_others; k++)
            wst_close(&sides[i].others[k], true);
        free(sides[i].others);
        must(wst_daemon_stop(&sides[i].d));
    }
    if (n_missed)
        printf("%d figure(s) miss their bound\n", n_missed);
    return 0;
}
