// SPDX-License-Identifier: Apache-2.0
/* Measures what models/mwp_cwp.h must know of a GPU: the latency of memory, by a chain of pointers;
 * the delay between two warps' accesses, by how long a round of loads takes with more and more
 * warps of one SM (the slope of a least-squares line through these points); the issue time, by
 * multiply-adds that do not wait for each other; and bandwidth, by reading with sets of SMs. Cycles
 * are those of the SM's own clock.
 *
 * It also makes profiles of the probe's kernels on sets of SMs for the store: times, powers where
 * the counter moves, and what the kernels execute, which is known because they are ours. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "models/kernel_hash.h"
#include "models/lsq.h"
#include "models/store.h"
#include "tests/gpu/probe.h"

#define SUITE probe_suite

static const char mwp_ptx[] =
    ".version 7.5\n.target sm_75\n.address_size 64\n"
    /* one thread: n steps from p through the pointers there; out[0] = cycles, out[1] = where it
     * came to */
    ".visible .entry chase(.param .u64 p, .param .u64 out, .param .u32 n)\n{\n"
    ".reg .pred %q; .reg .b32 %r<4>; .reg .b64 %rd<8>;\n"
    "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [out]; ld.param.u32 %r1, [n]; mov.u32 %r2, 0;\n"
    "mov.u64 %rd3, %clock64;\n"
    "L: ld.global.cg.u64 %rd1, [%rd1]; ld.global.cg.u64 %rd1, [%rd1]; ld.global.cg.u64 %rd1, "
    "[%rd1]; "
    "ld.global.cg.u64 %rd1, [%rd1];\n"
    "add.u32 %r2, %r2, 4; setp.lt.u32 %q, %r2, %r1;\n@%q bra L;\n"
    "st.global.u64 [%rd2+8], %rd1;\nmov.u64 %rd4, %clock64; sub.u64 %rd5, %rd4, %rd3; "
    "st.global.u64 "
    "[%rd2], %rd5;\nret;\n}\n"
    /* one block: each thread n loads, @lane bytes beside its neighbour's, each at an address that
     * the one before gives (memory of zeros); out[2w], out[2w + 1]: when warp w began and ended */
    ".visible .entry wide(.param .u64 p, .param .u64 out, .param .u32 n, .param .u32 lane)\n{\n"
    ".reg .pred %q; .reg .b32 %r<12>; .reg .b64 %rd<14>;\n"
    "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [out]; ld.param.u32 %r1, [n]; ld.param.u32 %r2, "
    "[lane];\n"
    "mov.u32 %r3, %tid.x; mov.u32 %r4, %ntid.x; mul.wide.u32 %rd3, %r3, %r2; add.s64 %rd4, %rd1, "
    "%rd3; mul.wide.u32 %rd5, %r4, %r2; mov.u32 %r5, 0;\nbar.sync 0;\nmov.u64 %rd6, %clock64;\n"
    "L: ld.global.cg.u32 %r6, [%rd4]; cvt.u64.u32 %rd7, %r6; add.s64 %rd4, %rd4, %rd5; add.s64 "
    "%rd4, %rd4, %rd7;\n"
    "add.u32 %r5, %r5, 1; setp.lt.u32 %q, %r5, %r1;\n@%q bra L;\n"
    "add.u64 %rd8, %rd7, %rd6; mov.u64 %rd9, %clock64; shr.u32 %r7, %r3, 5; mul.wide.u32 %rd10, "
    "%r7, "
    "16; add.s64 %rd11, %rd2, %rd10; and.b32 %r8, %r3, 31; setp.ne.u32 %q, %r8, 0;\n@%q bra E;\n"
    "st.global.u64 [%rd11], %rd8; st.global.u64 [%rd11+8], %rd9;\nE: ret;\n}\n"
    /* one block: 8 n multiply-adds in four chains a thread; out as above */
    ".visible .entry issue(.param .u64 p, .param .u64 out, .param .u32 n)\n{\n"
    ".reg .pred %q; .reg .b32 %r<12>; .reg .b64 %rd<14>; .reg .f32 %f<8>;\n"
    "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [out]; ld.param.u32 %r1, [n]; mov.u32 %r3, %tid.x; "
    "cvt.rn.f32.u32 %f1, %r3; mov.f32 %f2, %f1; mov.f32 %f3, %f1; mov.f32 %f4, %f1; mov.f32 %f5, "
    "0f3F7FFFFE; mov.u32 %r5, 0;\nbar.sync 0;\nmov.u64 %rd6, %clock64;\n"
    "L: fma.rn.f32 %f1, %f1, %f5, %f5; fma.rn.f32 %f2, %f2, %f5, %f5; fma.rn.f32 %f3, %f3, %f5, "
    "%f5; "
    "fma.rn.f32 %f4, %f4, %f5, %f5; fma.rn.f32 %f1, %f1, %f5, %f5; fma.rn.f32 %f2, %f2, %f5, %f5; "
    "fma.rn.f32 %f3, %f3, %f5, %f5; fma.rn.f32 %f4, %f4, %f5, %f5;\n"
    "add.u32 %r5, %r5, 1; setp.lt.u32 %q, %r5, %r1;\n@%q bra L;\n"
    "mov.u64 %rd9, %clock64; add.f32 %f1, %f1, %f2; add.f32 %f3, %f3, %f4; add.f32 %f1, %f1, %f3; "
    "mul.wide.u32 %rd3, %r3, 4; add.s64 %rd4, %rd1, %rd3; st.global.f32 [%rd4], %f1;\n"
    "shr.u32 %r7, %r3, 5; mul.wide.u32 %rd10, %r7, 16; add.s64 %rd11, %rd2, %rd10; and.b32 %r8, "
    "%r3, 31; setp.ne.u32 %q, %r8, 0;\n@%q bra E;\n"
    "st.global.u64 [%rd11], %rd6; st.global.u64 [%rd11+8], %rd9;\nE: ret;\n}\n";

enum { MAX_WARPS = 32, LINE = 128, OUT_BYTES = MAX_WARPS * 16 };

struct bench {
    struct probe_native n;
    ws_cu_module module;
    ws_cu_ptr p, out;
    uint64_t bytes;
};

static ws_cu_function function(struct bench *b, const char *name)
{
    ws_cu_function f = NULL;
    probe_must(!b->n.cu.cuModuleGetFunction(&f, b->module, name), "no function");
    return f;
}

static void once(struct bench *b, const char *name, uint32_t threads, const void *params,
                 size_t bytes, uint64_t *out)
{
    const uint32_t grid[3] = {1, 1, 1}, block[3] = {threads, 1, 1};
    probe_native_launch(&b->n, b->n.stream, function(b, name), grid, block, params, bytes);
    probe_must(!b->n.cu.cuStreamSynchronize(b->n.stream) &&
                   !b->n.cu.cuMemcpyDtoH(out, b->out, OUT_BYTES),
               "a measuring kernel failed");
}

/* From the first warp's begin to the last one's end. */
static double span(const uint64_t *out, uint32_t warps)
{
    uint64_t first = UINT64_MAX, last = 0;
    for (uint32_t w = 0; w < warps; w++) {
        first = WS_MIN(first, out[2 * w]);
        last = WS_MAX(last, out[2 * w + 1]);
    }
    return last > first ? (double)(last - first) : 0;
}

/* A ring through @bytes in an order that no prefetcher follows. */
static double latency(struct bench *b, uint64_t bytes)
{
    uint64_t n = bytes / LINE, steps = suite_target.mock ? 64 : 4096, out[OUT_BYTES / 8];
    uint64_t *host = ws_alloc(bytes);
    uint32_t *order = ws_alloc_array(n, sizeof(*order));
    uint64_t random = 88172645463325252u;
    probe_must(host && order, "no memory");
    for (uint32_t k = 0; k < n; k++)
        order[k] = k;
    for (uint64_t k = n - 1; k; k--) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        uint64_t at = random % (k + 1);
        uint32_t t = order[k];
        order[k] = order[at];
        order[at] = t;
    }
    for (uint64_t k = 0; k < n; k++)
        host[(uint64_t)order[k] * LINE / 8] = b->p + (uint64_t)order[(k + 1) % n] * LINE;
    probe_must(!b->n.cu.cuMemcpyHtoD(b->p, host, bytes), "copy");
    double v[7];
    for (int k = 0; k < 7; k++) {
        struct {
            uint64_t p, out;
            uint32_t n;
        } params = {b->p + (uint64_t)order[(uint64_t)k * 997 % n] * LINE, b->out, (uint32_t)steps};
        once(b, "chase", 1, &params, 20, out);
        v[k] = (double)out[0] / (double)steps;
        uint64_t at = host[(params.p - b->p) / 8];
        for (uint64_t s = 1; s < steps; s++)
            at = host[(at - b->p) / 8];
        probe_must(out[1] == at, "the chain of pointers led elsewhere");
    }
    free(host);
    free(order);
    return probe_quantile(v, 7, 0.5);
}

/* Cycles of a round of loads with 1…32 warps of one SM, and the line through them. */
static void departure(struct bench *b, uint32_t lane, double *ret_first, double *ret_each)
{
    static const char *const names[] = {"first warp", "each more"};
    static const uint32_t warps[] = {1, 2, 4, 8, 12, 16, 20, 24, 28, 32};
    enum { N = WS_ARRAY_SIZE(warps) };
    const uint32_t rounds = suite_target.mock ? 4 : 32;
    double rows[2 * N], y[N], x[2] = {0}, rss = 0;
    uint64_t out[OUT_BYTES / 8];
    struct ws_diags d = WS_DIAGS_NULL;
    for (size_t k = 0; k < N; k++) {
        double v[5];
        for (int i = 0; i < 5; i++) {
            /* zeros, and what was there has left the caches */
            probe_must(!b->n.cu.cuMemsetD8Async(b->p, 0, b->bytes, b->n.stream), "fill");
            struct {
                uint64_t p, out;
                uint32_t n, lane;
            } params = {b->p, b->out, rounds, lane};
            once(b, "wide", warps[k] * 32, &params, sizeof(params), out);
            v[i] = span(out, warps[k]) / rounds;
        }
        y[k] = probe_quantile(v, 5, 0.5);
        rows[2 * k] = 1;
        rows[2 * k + 1] = warps[k] - 1.0;
        probe_line("cycles", y[k], "a round of loads %u bytes apart, %u warps", lane, warps[k]);
    }
    double mean = 0, total = 0;
    for (size_t k = 0; k < N; k++)
        mean += y[k] / N;
    for (size_t k = 0; k < N; k++)
        total += (y[k] - mean) * (y[k] - mean);
    int r = ws_lsq_solve(rows, y, N, 2, names, "departure fit", x, &rss, &d);
    probe_must(!r, d.n ? d.v[0].text : "the fit fails");
    ws_diags_deinit(&d);
    probe_line("1", total > 0 ? 1 - rss / total : 0, "loads %u bytes apart: fit: R2", lane);
    *ret_first = x[0];
    *ret_each = WS_MAX(x[1], 0.0);
}

static double issue(struct bench *b)
{
    const uint32_t n = suite_target.mock ? 8 : 2000;
    uint64_t out[OUT_BYTES / 8];
    struct {
        uint64_t p, out;
        uint32_t n;
    } params = {b->p, b->out, n};
    double v[5];
    for (int k = 0; k < 5; k++) {
        once(b, "issue", MAX_WARPS * 32, &params, 20, out);
        v[k] = span(out, MAX_WARPS) / (8.0 * n * MAX_WARPS);
    }
    return probe_quantile(v, 5, 0.5);
}

/* ---- bandwidth against active SMs, through the device ---- */

static double read_seconds(const struct ws_sm_set *set, uint64_t p, uint64_t bytes)
{
    uint32_t n = SUITE.device->spec.n_sms, blocks = n * 8, threads = 256;
    uint32_t each = (uint32_t)(bytes / 16 / ((uint64_t)blocks * threads));
    double v[5];
    for (int k = 0; k < 5; k++) {
        struct suite_op o = probe_launch(P_STREAM, blocks, threads, p, each);
        o.op.launch.sms = *set;
        probe_run(&o);
        v[k] = (double)(o.op.end_ns - o.op.start_ns) / 1e9;
    }
    return probe_quantile(v, 5, 0.5);
}

static double bandwidth(void)
{
    probe_begin(false);
    uint32_t n = SUITE.device->spec.n_sms,
             sizes[] = {1, WS_MAX(n / 8, 1u), n / 4, n / 2, n * 3 / 4, n};
    uint64_t unit = (uint64_t)n * 8 * 256 * 16, bytes = (suite_target.mock ? 1 : 64) * unit,
             p = suite_alloc(&SUITE, 0, bytes);
    double best = 0;
    for (size_t k = 0; k < WS_ARRAY_SIZE(sizes); k++) {
        struct ws_sm_set set = {0};
        for (uint32_t i = 0; i < sizes[k] && sizes[k] < n; i++)
            ws_sm_set_add(&set, i);
        double s = read_seconds(&set, p, bytes);
        probe_line("GB/s", (double)bytes / WS_MAX(s, 1e-9) / 1e9, "reading %llu MiB with %u SMs",
                   (unsigned long long)bytes >> 20, sizes[k]);
        best = WS_MAX(best, (double)bytes / WS_MAX(s, 1e-9));
    }
    probe_end();
    return best;
}

void probe_section_mwp(void)
{
    struct bench b = {.bytes = (suite_target.mock ? 1 : 256) << 20};
    double coal = 0, uncoal = 0, first_coal = 0, first_uncoal = 0;
    int khz = 0;
    probe_native_begin(&b.n);
    probe_must(!b.n.cu.cuModuleLoadDataEx(&b.module, mwp_ptx, 0, NULL, NULL) &&
                   !b.n.cu.cuMemAlloc(&b.p, b.bytes) && !b.n.cu.cuMemAlloc(&b.out, OUT_BYTES) &&
                   !b.n.cu.cuDeviceGetAttribute(&khz, WS_CU_ATTR_CLOCK_RATE, b.n.gpu),
               "no memory");
    double near = latency(&b, suite_target.mock ? 1 << 16 : 4 << 20), far = latency(&b, b.bytes);
    departure(&b, 4, &first_coal, &coal);
    departure(&b, LINE, &first_uncoal, &uncoal);
    double issues = issue(&b);
    (void)b.n.cu.cuMemFree(b.p);
    (void)b.n.cu.cuMemFree(b.out);
    (void)b.n.cu.cuModuleUnload(b.module);
    int n_sms = b.n.n_sms;
    probe_native_end(&b.n);
    double bytes_per_s = bandwidth();
    probe_line("cycles", near, "latency of L2");
    probe_line("cycles", far, "mem_latency_cycles");
    probe_line("cycles", coal, "depart_coal_cycles");
    probe_line("cycles", uncoal / 32, "depart_uncoal_cycles");
    probe_line("cycles", issues, "issue_cycles");
    probe_line("GB/s", bytes_per_s / 1e9, "bandwidth_gb_per_s");
    probe_line("SMs", n_sms, "n_sms");
    probe_line("GHz", khz / 1e6, "freq_ghz");
    probe_line("ns", khz ? far / (khz / 1e6) : 0, "catalog: memory_latency_ns");
    probe_line("MB/s", bytes_per_s / 1e6, "catalog: memory_mb_per_s");
}

/* ---- profiles ---- */

struct subject {
    const char *name;
    uint32_t kernel, threads, arg;
    double comp_insts, coal_insts; /* per thread */
};

static void profile_one(struct ws_store *store, const struct subject *k, struct ws_nvml *nvml)
{
    struct ws_profile f = WS_PROFILE_NULL;
    char hash[WS_PROFILE_HASH_BYTES], shape[WS_PROFILE_SHAPE_BYTES];
    const struct ws_ptx_module *m = probe_module();
    uint32_t n = SUITE.device->spec.n_sms, blocks = n * 8,
             sizes[] = {WS_MAX(n / 8, 1u), n / 4, n / 2, n};
    struct ws_occupancy fit;
    uint64_t p = suite_alloc(&SUITE, 0, (uint64_t)blocks * k->threads * 16 * k->arg);
    snprintf(shape, sizeof(shape), "%ux1x1/%ux1x1", blocks, k->threads);
    probe_must(!ws_kernel_hash(m, ws_ptx_find_func(m, k->name), hash) &&
                   !ws_profile_key_set(&f.key, hash, SUITE.device->spec.name, shape) &&
                   !probe_occupancy(k->kernel, k->threads, &fit),
               "a profile's key");
    snprintf(f.name, sizeof(f.name), "%s", k->name);
    f.has = WS_PROFILE_MODEL;
    f.kernel = (struct ws_mwp_kernel){.threads_per_block = k->threads,
                                      .n_blocks = blocks,
                                      .active_blocks_per_sm = fit.blocks_per_sm,
                                      .comp_insts = k->comp_insts,
                                      .coal_insts = k->coal_insts,
                                      .uncoal_per_mw = 1};
    for (size_t s = 0; s < WS_ARRAY_SIZE(sizes); s++) {
        struct ws_sm_set set = {0};
        uint64_t t0 = probe_now_ns(), t1, e0 = 0, e1 = 0, n_runs = 0;
        double ms[64];
        for (uint32_t i = 0; i < sizes[s] && sizes[s] < n; i++)
            ws_sm_set_add(&set, i);
        e0 = nvml ? probe_edge(nvml, &t0) : 0;
        do {
            struct suite_op o = probe_launch(k->kernel, blocks, k->threads, p, k->arg);
            o.op.launch.sms = set;
            probe_run(&o);
            ms[n_runs++ % 64] = (double)WS_MAX(o.op.end_ns - o.op.start_ns, (uint64_t)1) / 1e6;
        } while (probe_now_ns() - t0 < (uint64_t)(probe_seconds * 0.5e9));
        e1 = nvml ? probe_edge(nvml, &t1) : 0;
        double w = e0 && e1 ? (double)(e1 - e0) * 1e6 / (double)(t1 - t0) : NAN;
        for (uint64_t i = 0; i < WS_MIN(n_runs, (uint64_t)64); i++)
            probe_must(!ws_profile_add_run(&f, sizes[s], ms[i], w), "a profile's run");
    }
    probe_must(!ws_store_put(store, &f), ws_store_error(store));
    ws_profile_deinit(&f);
}

void probe_section_profiles(void)
{
    /* Per thread, by reading the kernels: what each round of their loops has, and what is before
     * and behind. */
    const uint32_t r = suite_target.mock ? 4 : 2000;
    const struct subject subjects[] = {
        {"multiply", P_MULTIPLY, 256, r, 7.0 * r + 14, 1},
        {"stream", P_STREAM, 256, 4, 8.0 * 4 + 17, 4},
    };
    char path[] = "/tmp/wattshare-probe.XXXXXX", why[160];
    struct ws_store *store = NULL;
    uint64_t ns;
    int fd = mkstemp(path);
    probe_must(fd >= 0, "no temporary file");
    close(fd);
    unlink(path);
    probe_begin(false);
    struct ws_nvml *nvml = probe_nvml(why, sizeof(why));
    if (nvml && !probe_edge(nvml, &ns))
        nvml = ws_nvml_close(nvml); /* powers stay unknown */
    probe_must(!ws_store_open(&store, path, WS_STORE_WRITE, NULL), "no store of profiles");
    for (size_t k = 0; k < WS_ARRAY_SIZE(subjects); k++)
        profile_one(store, &subjects[k], nvml);
    probe_must(!ws_store_export(store, stdout), "the profiles can't be written");
    ws_store_close(store);
    unlink(path);
    ws_nvml_close(nvml);
    probe_end();
}
