// SPDX-License-Identifier: Apache-2.0
/* Measures what a worker process costs and what it saves: each row once with the GPU in this
 * process and once in a worker, in turns; then the time from a fault, or from the worker's end,
 * until another client's next result. The output is CSV.
 *
 * Usage: bench_worker [DRIVER NVML [SECONDS]]. Without arguments it uses the mock driver of the
 * build tree, whose own time is in all numbers. */
#include "tests/device/suite.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "device/worker/worker.h"

enum { TURNS = 3, BATCH = 64, BIG = 1 << 20, N_ROWS = 7 };
static struct suite S;
static double seconds = 0.2;
static uint64_t va;
static uint8_t *segment, *plain;
static sem_t done;

static void on_done(struct ws_op *op)
{
    if (op->error)
        fprintf(stderr, "bench_worker: %s\n", op->text);
    sem_post(&done);
}

static void go(struct ws_op *op)
{
    op->done = on_done;
    ws_device_submit(S.device, op);
}

static void run(struct ws_op *op)
{
    go(op);
    sem_wait(&done);
}

static struct ws_op launch(int c, enum suite_kernel k)
{
    return suite_launch(&S, c, k, 1, 32, 0, 0, 0, 0).op;
}

static struct ws_op copy(const void *from, void *to, uint64_t bytes)
{
    return (struct ws_op){.kind = WS_OPK_COPY,
                          .space = S.space[0],
                          .copy = {.src_host = from,
                                   .dst_host = to,
                                   .src_va = from ? 0 : va,
                                   .dst_va = to ? 0 : va,
                                   .bytes = bytes}};
}

/* ---- rows: one round of each; return: how many operations that was ---- */

static uint64_t params[8];
static unsigned launch_alone(void)
{
    struct ws_op op = launch(0, K_COUNT);
    op.launch.params = params;
    run(&op);
    return 1;
}

static unsigned launch_many(void)
{
    static struct ws_op op[BATCH];
    for (int k = 0; k < BATCH; k++) {
        op[k] = launch(0, K_COUNT);
        op[k].launch.params = params;
        go(&op[k]);
    }
    for (int k = 0; k < BATCH; k++)
        sem_wait(&done);
    return BATCH;
}

static unsigned copy_small_in(void)
{
    struct ws_op op = copy(plain, NULL, 64);
    run(&op);
    return 1;
}

static unsigned copy_small_out(void)
{
    struct ws_op op = copy(NULL, plain, 64);
    run(&op);
    return 1;
}

static unsigned copy_segment(void)
{
    struct ws_op op = copy(segment, NULL, BIG);
    run(&op);
    return 1;
}

static unsigned copy_plain(void)
{
    struct ws_op op = copy(plain, NULL, BIG);
    run(&op);
    return 1;
}

static unsigned memory(void)
{
    uint64_t at = SUITE_VA(0) + (UINT64_C(1) << 30);
    if (ws_device_mem_alloc(S.device, S.space[0], at, 4096) || ws_space_unmap(S.space[0], at))
        fputs("bench_worker: no memory\n", stderr);
    return 1;
}

static const struct {
    const char *name;
    unsigned (*round)(void);
} rows[N_ROWS] = {
    {"launch alone", launch_alone},
    {"launch with 63 others under way", launch_many},
    {"copy of 64 B to the GPU", copy_small_in},
    {"copy of 64 B from it", copy_small_out},
    {"copy of 1 MiB from a segment", copy_segment},
    {"copy of 1 MiB from other memory", copy_plain},
    {"4 KiB of memory made and freed", memory},
};

/* Microseconds an operation. */
static double measure(unsigned (*round)(void))
{
    uint64_t n = 0, begin, end;
    round();
    begin = ws_clock_ns();
    do {
        n += round();
        end = ws_clock_ns();
    } while ((double)(end - begin) < seconds * 1e9 / TURNS / N_ROWS);
    return (double)(end - begin) / 1e3 / (double)n;
}

static bool begin(bool worker)
{
    suite_target.worker = worker;
    if (suite_begin(&S))
        return false;
    va = suite_alloc(&S, 0, BIG);
    return true;
}

static void measure_rows(bool worker, double *best)
{
    int fd = memfd_create("bench", MFD_CLOEXEC);
    segment = fd < 0 || ftruncate(fd, BIG)
                  ? MAP_FAILED
                  : mmap(NULL, BIG, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (segment == MAP_FAILED || !begin(worker))
        exit(1);
    ws_device_host_register(S.device, segment, BIG, fd);
    for (int r = 0; r < N_ROWS; r++) {
        double us = measure(rows[r].round);
        best[r] = best[r] > 0 && best[r] < us ? best[r] : us;
    }
    ws_device_host_unregister(S.device, segment, BIG);
    suite_end(&S);
    munmap(segment, BIG);
    close(fd);
}

/* From @how until a kernel of client 1 has ended, with 8 MiB of its memory to be brought back. */
static double after(bool fault)
{
    struct ws_worker_status w;
    struct ws_op good = launch(1, K_COUNT), bad = launch(0, K_READ);
    uint64_t at = suite_alloc(&S, 1, 8 << 20), odd[8] = {va + 2};
    (void)at;
    good.launch.params = params;
    bad.launch.params = odd;
    run(&good); /* both are compiled */
    uint64_t begin_ns = ws_clock_ns();
    if (fault) {
        fflush(stderr);
        bad.done = on_done;
        ws_device_submit(S.device, &bad);
        sem_wait(&done);
    } else if (ws_device_worker_status(S.device, &w)) {
        kill(w.pid, SIGKILL);
    }
    do {
        good.error = WS_DEV_OK;
        run(&good);
    } while (good.error || !ws_device_worker_status(S.device, &w) || !w.n_restarts);
    return (double)(ws_clock_ns() - begin_ns) / 1e6;
}

int main(int argc, char **argv)
{
    static char driver[] = "tests/mock/libcuda.so.1", nvml[] = "tests/mock/libnvidia-ml.so.1",
                kind[] = "cuda";
    char *args[] = {argv[0], kind, argc > 1 ? argv[1] : driver, argc > 2 ? argv[2] : nvml};
    double best[2][N_ROWS] = {{0}};
    if (argc > 3)
        seconds = atof(argv[3]);
    else
        seconds = 3;
    if (!suite_target_parse(4, args))
        return 2;
    plain = calloc(1, BIG);
    sem_init(&done, 0, 0);
    for (int t = 0; t < TURNS; t++)
        for (int k = 0; k < 2; k++)
            measure_rows(k, best[k]);
    puts("section,name,value,unit,ratio");
    for (int r = 0; r < N_ROWS; r++) {
        printf("in the daemon,%s,%.2f,us,1\n", rows[r].name, best[0][r]);
        printf("by a worker,%s,%.2f,us,%.2f\n", rows[r].name, best[1][r], best[1][r] / best[0][r]);
    }
    for (int fault = 0; fault < 2; fault++) {
        if (!begin(true))
            return 1;
        double ms = after(fault);
        printf("by a worker,until another client's next result after %s,%.1f,ms,\n",
               fault ? "a fault" : "its end", ms);
        suite_end(&S);
    }
    free(plain);
    return 0;
}
