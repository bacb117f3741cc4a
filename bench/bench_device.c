// SPDX-License-Identifier: Apache-2.0
/* Measures what the software GPU costs beside what it executes: launches that skip execution, the
 * time of an empty kernel from being submitted to being done, large copies against one memcpy() of
 * the same size, and short blocks. There is no daemon and no protocol. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "device/device.h"

static const char ptx[] =
    ".version 7.5\n.target sm_75\n.address_size 64\n"
    ".visible .entry empty()\n{\nret;\n}\n"
    ".visible .entry saxpy(.param .u64 x, .param .u64 y)\n{\n"
    ".reg .b32 %r<5>; .reg .b64 %rd<6>; .reg .f32 %f<4>;\n"
    "ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y];\n"
    "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.s32 %r4, %r1, %r2, "
    "%r3;\n"
    "and.b32 %r4, %r4, 1048575;\n"
    "mul.wide.s32 %rd3, %r4, 4; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;\n"
    "ld.global.f32 %f1, [%rd4]; ld.global.f32 %f2, [%rd5]; fma.rn.f32 %f3, %f1, 0f40000000, %f2;\n"
    "st.global.f32 [%rd5], %f3;\nret;\n}\n";

static const struct ws_gpu_spec spec = {
    .name = "rtx3070",
    .product = "bench",
    .cc_major = 8,
    .cc_minor = 6,
    .n_sms = 46,
    .max_threads_per_sm = 1536,
    .max_blocks_per_sm = 16,
    .regs_per_sm = 65536,
    .max_threads_per_block = 1024,
    .shared_bytes_per_sm = 102400,
    .shared_bytes_per_block = 49152,
    .shared_bytes_per_block_optin = 101376,
    .core_mhz = 1725,
    .memory_mhz = 7001,
    .memory_bus_bits = 256,
    .l2_bytes = 4 << 20,
    .memory_bytes = UINT64_C(8) << 30,
    .memory_bytes_per_s = 448000000000,
    .copy_bytes_per_s = 24000000000,
    .copy_latency_ns = 8000,
    .launch_overhead_ns = 3000,
    .memory_latency_ns = 330,
    .schedulers_per_sm = 4,
    .fp32_lanes_per_sm = 128,
    .int_lanes_per_sm = 64,
    .fp64_lanes_per_sm = 2,
    .sfu_lanes_per_sm = 16,
    .ldst_lanes_per_sm = 16,
    .static_mw = 46000,
    .idle_mw_per_sm = 445,
    .dynamic_mw_per_sm = 1795,
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int n_done;

static void on_done(struct ws_op *op)
{
    if (op->error) {
        fprintf(stderr, "bench_device: %s: %s\n", ws_dev_error_name(op->error), op->text);
        exit(1);
    }
    pthread_mutex_lock(&lock);
    n_done++;
    pthread_cond_signal(&cond);
    pthread_mutex_unlock(&lock);
}

static void on_done_inline(struct ws_op *op)
{
    n_done++;
}

static void wait_done(int n)
{
    pthread_mutex_lock(&lock);
    while (n_done < n)
        pthread_cond_wait(&cond, &lock);
    pthread_mutex_unlock(&lock);
}

static void must(int r, const char *what)
{
    if (!r)
        return;
    fprintf(stderr, "bench_device: %s failed: %d\n", what, r);
    exit(1);
}

struct bench {
    struct ws_ptx_module *ptx;
    struct ws_device *d;
    struct ws_dmodule *m;
    struct ws_space *s;
    struct ws_dinstance *i;
};

static void bench_open(struct bench *b, enum ws_device_clock clock)
{
    struct ws_device_options o = {.clock = clock};
    struct ws_diags diags = WS_DIAGS_NULL;
    uint64_t none;
    must(ws_ptx_parse(&b->ptx, ptx, sizeof(ptx) - 1, "bench", &diags), "parse");
    must(ws_device_open_soft(&b->d, &spec, 0, &o, NULL), "open");
    must(ws_device_module_load(b->d, b->ptx, &b->m, &diags), "module");
    must(ws_space_new(&b->s), "space");
    must(ws_device_instance_new(b->d, b->m, b->s, &none, &b->i), "instance");
}

static void bench_close(struct bench *b)
{
    ws_device_instance_free(b->d, b->i);
    ws_space_free(b->s);
    ws_device_module_unload(b->d, b->m);
    ws_device_close(b->d);
    ws_ptx_module_free(b->ptx);
}

static void launch(struct bench *b, struct ws_op *op, uint32_t kernel, uint32_t blocks,
                   const void *params, uint32_t param_bytes)
{
    *op = (struct ws_op){
        .kind = WS_OPK_LAUNCH,
        .space = b->s,
        .done = on_done,
        .launch = {.instance = b->i,
                   .kernel = kernel,
                   .grid = {blocks, 1, 1},
                   .block = {128, 1, 1},
                   .params = params,
                   .param_bytes = param_bytes},
    };
}

static void bench_skip(void)
{
    enum { N = 2000000 };
    struct bench b;
    struct ws_op op;
    bench_open(&b, WS_CLOCK_SKIP);
    launch(&b, &op, 0, 1000, NULL, 0);
    op.done = on_done_inline;
    uint64_t t = ws_clock_ns();
    for (int i = 0; i < N; i++)
        ws_device_submit(b.d, &op);
    t = ws_clock_ns() - t;
    printf("%-52s %8.1f ns  (%.1f million/s)\n", "launch, execution skipped", (double)t / N,
           N * 1e3 / (double)t);
    bench_close(&b);
}

/* @chain: each is ready when the one before ended, as in a stream; else all at time 0, the
 *         timeline's worst case. */
static void bench_latency(struct bench *b, uint32_t blocks, int n, bool chain)
{
    struct ws_op op;
    char text[64];
    launch(b, &op, 0, blocks, NULL, 0);
    n_done = 0;
    uint64_t t = 0;
    for (int i = -100; i < n; i++) {
        if (!i)
            t = ws_clock_ns();
        op.ready_ns = chain ? op.end_ns : 0;
        ws_device_submit(b->d, &op);
        wait_done(i + 101);
    }
    t = ws_clock_ns() - t;
    snprintf(text, sizeof(text), "empty kernel of %u block%s, submit to done%s", blocks,
             blocks > 1 ? "s" : "", chain ? "" : " (*)");
    printf("%-52s %8.2f us\n", text, (double)t / n / 1e3);
}

static void bench_blocks(struct bench *b, uint32_t kernel, const char *name, uint32_t blocks,
                         const void *params, uint32_t bytes)
{
    struct ws_op op;
    launch(b, &op, kernel, blocks, params, bytes);
    n_done = 0;
    ws_device_submit(b->d, &op);
    wait_done(1);
    uint64_t t = ws_clock_ns();
    ws_device_submit(b->d, &op);
    wait_done(2);
    t = ws_clock_ns() - t;
    printf("%-52s %8.2f million blocks/s, %.0f million thread instructions/s\n", name,
           blocks * 1e3 / (double)t, (double)op.n_thread_insns * 1e3 / (double)t);
}

static void bench_copy(struct bench *b, uint64_t bytes)
{
    enum { N = 40 };
    uint64_t va = UINT64_C(1) << 33;
    uint8_t *x = mmap(NULL, 2 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (x == MAP_FAILED)
        exit(1);
    memset(x, 1, 2 * bytes);
    must(ws_device_mem_alloc(b->d, b->s, va, bytes), "allocation");
    struct ws_op op = {.kind = WS_OPK_COPY,
                       .space = b->s,
                       .done = on_done,
                       .copy = {.dst_va = va, .bytes = bytes, .src_host = x}};
    uint64_t best_memcpy = UINT64_MAX, best = UINT64_MAX;
    n_done = 0;
    for (int i = 0; i < N; i++) {
        uint64_t t = ws_clock_ns();
        memcpy(x + bytes, x, bytes);
        __asm__ volatile("" ::: "memory");
        uint64_t t2 = ws_clock_ns();
        ws_device_submit(b->d, &op);
        wait_done(i + 1);
        uint64_t t3 = ws_clock_ns();
        best_memcpy = WS_MIN(best_memcpy, t2 - t);
        best = WS_MIN(best, t3 - t2);
    }
    char text[64];
    snprintf(text, sizeof(text), "copy of %llu KiB to the device", (unsigned long long)bytes >> 10);
    printf("%-52s %8.2f us  = %.0f %% of memcpy's speed (%.1f GB/s)\n", text, (double)best / 1e3,
           100.0 * (double)best_memcpy / (double)best, (double)bytes / (double)best_memcpy);
    must(ws_space_unmap(b->s, va), "unmap");
    munmap(x, 2 * bytes);
}

int main(void)
{
    bench_skip();
    struct bench b;
    bench_open(&b, WS_CLOCK_FUNCTIONAL);
    bench_latency(&b, 1, 100000, true);
    bench_latency(&b, 4, 100000, true);
    bench_latency(&b, 64, 5000, true);
    bench_latency(&b, 1, 100000, false);
    bench_copy(&b, 4 << 10);
    bench_copy(&b, 64 << 10);
    bench_copy(&b, 1 << 20);
    bench_copy(&b, 16 << 20);
    bench_copy(&b, 64 << 20);
    bench_blocks(&b, 0, "empty blocks", 1000000, NULL, 0);
    uint64_t params[2] = {UINT64_C(1) << 34, (UINT64_C(1) << 34) + (4 << 20)};
    must(ws_device_mem_alloc(b.d, b.s, params[0], 8 << 20), "allocation");
    bench_blocks(&b, 1, "saxpy blocks of 128 threads", 200000, params, sizeof(params));
    bench_close(&b);
    return 0;
}
