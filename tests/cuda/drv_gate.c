// SPDX-License-Identifier: Apache-2.0
// Bursts of launches with waits between them, as a frame loop has them, for the gate's tests and
// for measuring what a gated launch costs. Prints ns per launch. Usage:
//
//     drv_gate BURSTS LAUNCHES [hold | own | quiet | paced | threads]
//
// hold: the last burst is never waited for, and the program sleeps. own: two streams, waited for by
// events. quiet: the program never waits but only looks whether the work has ended. paced: 20 ms
// between launches. threads: four threads, each with a stream of its own, while children are
// forked.
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <sys/wait.h>
#include <unistd.h>
#include "drv.h"
#include "matmul.h"

enum { N = 16 };

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* ---- threads ---- */

static struct work {
    CUfunction f;
    CUdeviceptr a, b;
    const float *want;
    long bursts, launches;
    int wrong;
} work;

static void *thread_main(void *arg)
{
    int n = N;
    float c[N * N];
    CUcontext ctx;
    CUstream s;
    CUdeviceptr dc;
    DRV(ctx_retain(&ctx, 0));
    DRV(ctx_set_current(ctx));
    DRV(stream_create(&s, CU_STREAM_NON_BLOCKING));
    DRV(mem_alloc(&dc, sizeof(c)));
    for (long it = 0; it < work.bursts; it++) {
        DRV(memset_d8_async(dc, 0xff, sizeof(c), s));
        for (long k = 0; k < work.launches; k++)
            DRV(launch_kernel(work.f, 1, 1, 1, MATMUL_TILE, MATMUL_TILE, 1, 0, s,
                              (void *[]){&work.a, &work.b, &dc, &n}, NULL));
        DRV(memcpy_dtoh_async(c, dc, sizeof(c), s));
        DRV(stream_synchronize(s));
        if (matmul_check(c, work.want, N))
            __atomic_store_n(&work.wrong, 1, __ATOMIC_RELAXED);
    }
    DRV(mem_free(dc));
    DRV(stream_destroy(s));
    DRV(ctx_release(0));
    return arg;
}

static int threads(void)
{
    pthread_t t[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&t[i], NULL, thread_main, NULL);
    for (int i = 0; i < 3; i++) {
        int status = 1;
        pid_t child = fork();
        if (!child)
            exit(0);
        usleep(1000);
        if (waitpid(child, &status, 0) != child || status)
            work.wrong = 1;
    }
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    return work.wrong;
}

int main(int argc, char **argv)
{
    long bursts = work_arg(argc, argv, 1, 3, 1000000),
         launches = work_arg(argc, argv, 2, 4, 1000000);
    const char *mode = argc > 3 ? argv[3] : "";
    int n = N, own = !strcmp(mode, "own"), quiet = !strcmp(mode, "quiet");
    unsigned grid = (N + MATMUL_TILE - 1) / MATMUL_TILE;
    float a[N * N], b[N * N], c[2][N * N], want[N * N];
    CUdeviceptr da, db, dc[2];
    CUstream s[2] = {NULL, NULL};
    CUevent done[2];
    double spent = 0, all = 0;
    matmul_fill(a, b, N);
    matmul_cpu(a, b, want, N);
    drv_begin();
    CUmodule m = drv_module("matmul");
    CUfunction f = drv_function(m, "matmul");
    DRV(mem_alloc(&da, sizeof(a)));
    DRV(mem_alloc(&db, sizeof(b)));
    DRV(memcpy_htod(da, a, sizeof(a)));
    DRV(memcpy_htod(db, b, sizeof(b)));
    for (int i = 0; i < 2; i++) {
        DRV(mem_alloc(&dc[i], sizeof(c[i])));
        DRV(memset_d8(dc[i], 0xff, sizeof(c[i])));
        DRV(event_create(&done[i], 0));
        if (own)
            DRV(stream_create(&s[i], CU_STREAM_NON_BLOCKING));
    }
    DRV(ctx_synchronize());
    work = (struct work){f, da, db, want, bursts, launches, 0};
    if (!strcmp(mode, "threads") && threads())
        return 1;
    for (long it = 0; it < bursts; it++) {
        double begin = now_ns();
        for (long k = 0; k < launches; k++) {
            if (!strcmp(mode, "paced"))
                usleep(20000);
            DRV(launch_kernel(f, grid, grid, 1, MATMUL_TILE, MATMUL_TILE, 1, 0, s[k % 2],
                              (void *[]){&da, &db, &dc[k % 2], &n}, NULL));
        }
        spent += it || bursts == 1 ? now_ns() - begin : 0; /* the first one connects */
        for (int i = 0; i < 2; i++)
            DRV(event_record(done[i], s[i]));
        if (!strcmp(mode, "hold") && it == bursts - 1) {
            printf("holding\n");
            fflush(stdout);
            for (;;)
                pause();
        }
        for (int i = 0; i < 2 && own; i++)
            DRV(event_synchronize(done[i]));
        if (!own && !quiet)
            DRV(ctx_synchronize());
        all += it || bursts == 1 ? now_ns() - begin : 0;
    }
    for (int i = 0; i < 2 && i < launches; i++) {
        DRV(memcpy_dtoh(c[i], dc[i], sizeof(c[i])));
        if (matmul_check(c[i], want, N))
            return 1;
    }
    for (int i = 0; i < 2; i++) {
        DRV(mem_free(dc[i]));
        DRV(event_destroy(done[i]));
        if (own)
            DRV(stream_destroy(s[i]));
    }
    DRV(mem_free(da));
    DRV(mem_free(db));
    DRV(module_unload(m));
    drv_end();
    long n_timed = bursts > 1 ? bursts - 1 : 1;
    printf("%.0f ns for each of %ld launches, %.0f for each burst\n",
           spent / (double)(n_timed * launches), n_timed * launches, all / (double)n_timed);
    return work_pass("drv_gate");
}
