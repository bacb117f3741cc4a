// SPDX-License-Identifier: Apache-2.0
/* What a GPU and its driver do, in numbers: one section a run, lines "section,what,value,unit" to stdout. Native figures come from the
 * driver's own calls in the same process, beside those of the device (device/cuda) that makes the same calls for clients.
 *
 * Never sets clocks, limits or modes. With the mock driver all sections run, and their numbers mean nothing.
 * Usage: probe SECTION SECONDS [DRIVER NVML] */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "device/cuda/driver.h"
#include "device/cuda/nvml.h"
#include "tests/device/suite.h"

static const char probe_ptx[] =
    ".version 7.5\n.target sm_75\n.address_size 64\n"
    ".visible .entry nothing()\n{\nret;\n}\n"
    /* each block for so many cycles of its SM */
    ".visible .entry spin(.param .u64 cycles)\n{\n.reg .pred %p; .reg .b64 %rd<5>;\n"
    "ld.param.u64 %rd1, [cycles]; mov.u64 %rd2, %clock64;\n"
    "L: mov.u64 %rd3, %clock64; sub.u64 %rd4, %rd3, %rd2; setp.lt.u64 %p, %rd4, %rd1;\n"
    "@%p bra L;\nret;\n}\n"
    /* p[i] = n rounds of multiply-add on i */
    ".visible .entry multiply(.param .u64 p, .param .u32 n)\n{\n.reg .pred %q; .reg .b32 %r<8>; "
    ".reg .b64 %rd<4>; .reg .f32 %f<4>;\n"
    "ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [n]; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; "
    "mov.u32 %r4, %tid.x; mad.lo.u32 %r5, %r2, %r3, %r4; cvt.rn.f32.u32 %f1, %r5; mov.f32 %f2, "
    "0f3F7FFFFE; mov.f32 %f3, 0f3A83126F; mov.u32 %r6, 0;\n"
    "L: fma.rn.f32 %f1, %f1, %f2, %f3; fma.rn.f32 %f1, %f1, %f2, %f3; fma.rn.f32 %f1, %f1, %f2, "
    "%f3; fma.rn.f32 %f1, %f1, %f2, %f3;\n"
    "add.u32 %r6, %r6, 1; setp.lt.u32 %q, %r6, %r1;\n@%q bra L;\n"
    "and.b32 %r7, %r5, 65535; mul.wide.u32 %rd2, %r7, 4; add.s64 %rd3, %rd1, %rd2; st.global.f32 "
    "[%rd3], %f1;\nret;\n}\n";
enum { P_NOTHING, P_SPIN, P_MULTIPLY };

static struct suite S;
static struct ws_ptx_module *ptx;
static struct ws_dmodule *code;
static struct ws_dinstance *instance;
static const char *section;
static double seconds;

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * WS_NS_PER_S + (uint64_t)t.tv_nsec;
}

WS_PRINTF(3, 4) static void line(const char *unit, double value, const char *fmt, ...)
{
    va_list ap;
    printf("%s,", section);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    printf(",%.6g,%s\n", value, unit);
}

static void must(bool ok, const char *text)
{
    if (!ok) {
        fprintf(stderr, "probe: %s: %s\n", section, text);
        exit(1);
    }
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}
static double quantile(double *v, int n, double q)
{
    qsort(v, (size_t)n, sizeof *v, compare);
    return v[WS_MIN((int)(q * n), n - 1)];
}

static void begin(bool preemptible)
{
    struct ws_diags d = WS_DIAGS_NULL;
    suite_target.options.preemptible = preemptible;
    must(!suite_begin(&S), "the device can't be opened");
    must(!ws_ptx_parse(&ptx, probe_ptx, strlen(probe_ptx), "probe.ptx", &d) &&
             !ws_device_module_load(S.device, ptx, &code, &d) &&
             !ws_device_instance_new(S.device, code, S.space[0], NULL, &instance),
         d.n ? d.v[0].text : "the probe's kernels can't be loaded");
    ws_diags_deinit(&d);
}

static void end(void)
{
    ws_device_instance_free(S.device, instance);
    ws_device_module_unload(S.device, code);
    ws_ptx_module_free(ptx);
    suite_end(&S);
}

static struct suite_op launch(uint32_t kernel, uint32_t blocks, uint32_t threads, uint64_t p0,
                              uint64_t p1)
{
    struct suite_op o = suite_launch(&S, 0, K_COUNT, blocks, threads, p0, p1, 0, 0);
    o.op.launch.instance = instance;
    o.op.launch.kernel = kernel;
    return o;
}

static void run(struct suite_op *o)
{
    suite_submit(&S, o);
    suite_wait(o);
    must(!o->op.error, o->op.text);
}

/* ---- the driver itself ---- */

static struct ws_cu cu;
static ws_cu_ctx ctx;
static ws_cu_stream stream;
static ws_cu_module module;
static ws_cu_device gpu;

static void native_begin(void)
{
    must(!ws_cu_open(&cu, suite_target.options.driver_library, NULL), "no driver");
    must(!cu.cuDeviceGet(&gpu, 0) && !cu.cuDevicePrimaryCtxRetain(&ctx, gpu) &&
             !cu.cuCtxSetCurrent(ctx) && !cu.cuStreamCreateWithPriority(&stream, 1, 0) &&
             !cu.cuModuleLoadDataEx(&module, probe_ptx, 0, NULL, NULL),
         "the driver's own calls fail");
}

static void native_end(void)
{
    (void)cu.cuModuleUnload(module);
    (void)cu.cuStreamDestroy(stream);
    (void)cu.cuCtxSetCurrent(NULL);
    (void)cu.cuDevicePrimaryCtxRelease(gpu);
    ws_cu_close(&cu);
}

/* Median and 99th percentile of single launches with waits, and the rate of launches in a row. */
static void section_launch(void)
{
    enum { N = 500 };
    static double v[N], own[N];
    native_begin();
    ws_cu_function f;
    must(!cu.cuModuleGetFunction(&f, module, "nothing"), "no function");
    struct ws_cu_launch_config c = {.grid = {1, 1, 1}, .block = {32, 1, 1}, .stream = stream};
    for (int k = 0; k < N; k++) {
        uint64_t t = now_ns();
        must(!cu.cuLaunchKernelEx(&c, f, NULL, NULL) && !cu.cuStreamSynchronize(stream), "launch");
        v[k] = (double)(now_ns() - t) / 1e3;
    }
    uint64_t t = now_ns();
    for (int k = 0; k < N; k++)
        must(!cu.cuLaunchKernelEx(&c, f, NULL, NULL), "launch");
    must(!cu.cuStreamSynchronize(stream), "wait");
    line("us", (double)(now_ns() - t) / 1e3 / N, "native launches in a row");
    native_end();
    begin(false);
    for (int k = 0; k < N; k++) {
        struct suite_op o = launch(P_NOTHING, 1, 32, 0, 0);
        t = now_ns();
        run(&o);
        own[k] = (double)(now_ns() - t) / 1e3;
    }
    double a = quantile(v, N, 0.5), b = quantile(own, N, 0.5);
    line("us", a, "native launch and wait: median");
    line("us", quantile(v, N, 0.99), "native launch and wait: p99");
    line("us", b, "device launch and wait: median");
    line("us", quantile(own, N, 0.99), "device launch and wait: p99");
    line("ratio", b / a, "device / native launch and wait");
    end();
}

static double copy_us(uint64_t va, void *host, uint64_t bytes, int rounds)
{
    static double v[64];
    for (int k = 0; k < rounds; k++) {
        struct suite_op o = {.op = {.kind = WS_OPK_COPY,
                                    .space = S.space[0],
                                    .copy = {.dst_va = va, .src_host = host, .bytes = bytes}}};
        uint64_t t = now_ns();
        run(&o);
        v[k] = (double)(now_ns() - t) / 1e3;
    }
    return quantile(v, rounds, 0.5);
}

static void section_copy(void)
{
    enum { MOST = 64 << 20 };
    static const uint32_t sizes[] = {4, 4096, 65536, 1 << 20, 16 << 20, MOST};
    static double native[WS_ARRAY_SIZE(sizes)], v[16];
    native_begin();
    void *pinned = NULL;
    ws_cu_ptr va = 0;
    must(!cu.cuMemHostAlloc(&pinned, MOST, 0) && !cu.cuMemAlloc(&va, MOST), "no memory");
    memset(pinned, 3, MOST);
    for (size_t k = 0; k < WS_ARRAY_SIZE(sizes); k++) {
        for (int i = 0; i < 16; i++) {
            uint64_t t = now_ns();
            must(!cu.cuMemcpyHtoDAsync(va, pinned, sizes[k], stream) &&
                     !cu.cuStreamSynchronize(stream),
                 "copy");
            v[i] = (double)(now_ns() - t) / 1e3;
        }
        native[k] = quantile(v, 16, 0.5);
        line("us", native[k], "native pinned to device: %u bytes", sizes[k]);
    }
    must(!cu.cuMemFree(va) && !cu.cuMemFreeHost(pinned), "free");
    native_end();
    begin(false);
    uint64_t to = suite_alloc(&S, 0, MOST);
    void *host = aligned_alloc(4096, MOST);
    must(host != NULL, "no memory");
    memset(host, 5, MOST);
    for (size_t k = 0; k < WS_ARRAY_SIZE(sizes); k++)
        line("us", copy_us(to, host, sizes[k], 16), "device from pageable: %u bytes", sizes[k]);
    ws_device_host_register(S.device, host, MOST);
    for (size_t k = 0; k < WS_ARRAY_SIZE(sizes); k++) {
        double us = copy_us(to, host, sizes[k], 16);
        line("us", us, "device from registered: %u bytes", sizes[k]);
        line("ratio", us / native[k], "device / native: %u bytes", sizes[k]);
    }
    ws_device_host_unregister(S.device, host, MOST);
    free(host);
    end();
}

/* ---- what the GPU and its driver are ---- */

static void section_environment(void)
{
    begin(false);
    const struct ws_gpu_spec *s = &S.device->spec;
    const struct ws_cuda_capabilities *c = ws_device_cuda_capabilities(S.device);
    must(c != NULL, "not a CUDA device");
    printf("%s,product,\"%s\",text\n%s,driver,\"%s\",text\n", section, c->product, section,
           c->driver);
    line("version", c->cuda_version, "CUDA of the driver");
    for (uint32_t k = 0; k < c->n; k++)
        printf("%s,%s,%d,\"%s\"\n", section, c->v[k].name, c->v[k].yes, c->v[k].how);
    line("SMs", s->n_sms, "SMs");
    line("cc", s->cc_major * 10 + s->cc_minor, "compute capability");
    line("bytes", (double)s->memory_bytes, "memory");
    line("bytes", s->shared_bytes_per_block_optin, "shared memory of a block");
    line("MHz", s->core_mhz, "core clock, highest");
    line("mW", s->static_mw, "power when opened");
    /* which SMs there are, as kernels see them */
    uint32_t n = s->n_sms * 64, *v = malloc(n * 4), most = 0;
    uint64_t where = suite_alloc(&S, 0, n * 4), times = suite_alloc(&S, 0, n * 4);
    struct suite_op o = suite_launch(&S, 0, K_SMID, n, 64, where, times, 0, 0);
    struct ws_sm_set seen = {0};
    run(&o);
    suite_get(&S, 0, v, where, n * 4);
    for (uint32_t i = 0; i < n; i++) {
        most = WS_MAX(most, v[i]);
        if (v[i] < WS_SM_MAX)
            ws_sm_set_add(&seen, v[i]);
    }
    line("SMs", seen.n, "different %%smid seen");
    line("number", most, "highest %%smid");
    free(v);
    end();
}

/* ---- SM sets ---- */

static void one_set(const char *name, const struct ws_sm_set *set)
{
    uint32_t n = 2000, *v = malloc(n * 4), outside = 0, wrong = 0;
    uint64_t where = suite_alloc(&S, 0, n * 4), times = suite_alloc(&S, 0, n * 4);
    struct ws_sm_set used = {0};
    struct suite_op o = suite_launch(&S, 0, K_SMID, n, 64, where, times, 0, 0);
    o.op.launch.sms = *set;
    run(&o);
    suite_get(&S, 0, v, times, n * 4);
    for (uint32_t i = 0; i < n; i++)
        wrong += v[i] != 1;
    suite_get(&S, 0, v, where, n * 4);
    for (uint32_t i = 0; i < n; i++) {
        outside += v[i] >= WS_SM_MAX || !ws_sm_set_has(set, v[i]);
        if (v[i] < WS_SM_MAX)
            ws_sm_set_add(&used, v[i]);
    }
    line("SMs", used.n, "%s: SMs used of %u", name, set->n);
    line("blocks", outside, "%s: blocks outside the set", name);
    line("blocks", wrong, "%s: blocks that did not run just once", name);
    must(!outside && !wrong, "a set of SMs was not kept to");
    free(v);
}

static void section_sms(void)
{
    begin(false);
    uint32_t n = S.device->spec.n_sms, sizes[] = {1, WS_MAX(n / 16, 1u), n / 4, n / 2, n - 1};
    for (size_t k = 0; k < WS_ARRAY_SIZE(sizes); k++) {
        struct ws_sm_set low = {0};
        char name[32];
        for (uint32_t i = 0; i < sizes[k]; i++)
            ws_sm_set_add(&low, i);
        snprintf(name, sizeof name, "lowest %u", sizes[k]);
        one_set(name, &low);
    }
    struct ws_sm_set odd = {0};
    for (uint32_t i = 1; i < n; i += 2)
        ws_sm_set_add(&odd, i);
    one_set("odd", &odd);
    end();
}

/* ---- rewritten kernels against the originals ---- */

static double kernel_us(uint32_t kernel, uint32_t blocks, uint32_t threads, uint64_t p0,
                        uint64_t p1)
{
    double v[15];
    for (int k = 0; k < 15; k++) {
        struct suite_op o = launch(kernel, blocks, threads, p0, p1);
        run(&o);
        v[k] = (double)(o.op.end_ns - o.op.start_ns) / 1e3;
    }
    return quantile(v, 15, 0.5);
}

static void section_forms(void)
{
    static const uint32_t rounds[] = {0, 64, 1024};
    double whole[WS_ARRAY_SIZE(rounds)];
    for (int tickets = 0; tickets < 2; tickets++) {
        begin(tickets);
        uint64_t p = suite_alloc(&S, 0, 1 << 18);
        uint32_t blocks = S.device->spec.n_sms * 40;
        for (size_t k = 0; k < WS_ARRAY_SIZE(rounds); k++) {
            double us = kernel_us(P_MULTIPLY, blocks, 128, p, rounds[k]);
            if (!tickets)
                whole[k] = us;
            line("us", us, "%s: %u blocks of %u rounds", tickets ? "by tickets" : "whole", blocks,
                 rounds[k]);
            if (tickets)
                line("ratio", us / whole[k], "by tickets / whole: %u rounds", rounds[k]);
        }
        end();
    }
}

static void section_preempt(void)
{
    enum { N = 60 };
    static const uint32_t block_us[] = {5, 20, 100, 1000};
    begin(true);
    for (size_t b = 0; b < WS_ARRAY_SIZE(block_us); b++) {
        double v[N];
        int n = 0;
        for (int k = 0; k < N; k++) {
            uint64_t cycles = (uint64_t)block_us[b] * S.device->spec.core_mhz;
            struct suite_op o = launch(P_SPIN, S.device->spec.n_sms * 200, 64, cycles, 0);
            suite_submit(&S, &o);
            usleep(500);
            uint64_t t = now_ns();
            int r = suite_preempt(&S, &o);
            suite_wait(&o);
            must(!o.op.error, o.op.text);
            if (!r && o.op.preempted)
                v[n++] = (double)(now_ns() - t) / 1e3;
            ws_progress_free(o.op.launch.progress);
            o.op.launch.progress = NULL;
        }
        line("launches", n, "blocks of %u us: stopped of %d", block_us[b], N);
        if (n) {
            line("us", quantile(v, n, 0.5), "blocks of %u us: from asking to the end, median",
                 block_us[b]);
            line("us", quantile(v, n, 0.99), "blocks of %u us: from asking to the end, p99",
                 block_us[b]);
        }
    }
    end();
}

/* ---- power against active SMs ---- */

/* Waits until the counter steps. Return: mJ. */
static uint64_t edge(struct ws_nvml *n, uint64_t *ret_ns)
{
    uint64_t first = 0, v = 0, begin_ns = now_ns();
    must(ws_nvml_read(n, WS_NVML_ENERGY, &first), "no energy counter: no figures");
    do
        must(ws_nvml_read(n, WS_NVML_ENERGY, &v), "no energy counter");
    while (v == first && now_ns() - begin_ns < 3 * WS_NS_PER_S);
    *ret_ns = now_ns();
    return v;
}

static void section_power(void)
{
    char why[160] = "";
    begin(false);
    uint32_t n = S.device->spec.n_sms, sizes[] = {WS_MAX(n / 8, 1u), n / 4, n / 2, n * 3 / 4, n};
    double sx = 0, sy = 0, sxx = 0, sxy = 0;
    struct ws_cu_uuid uuid;
    struct ws_cu plain;
    must(!ws_cu_open(&plain, suite_target.options.driver_library, NULL) &&
             !plain.cuDeviceGetUuid(&uuid, 0),
         "no driver");
    struct ws_nvml *nvml =
        ws_nvml_open(suite_target.options.nvml_library, uuid.bytes, why, sizeof why);
    must(nvml != NULL, why);
    uint64_t p = suite_alloc(&S, 0, 1 << 18), t0, t1, e0, e1, mhz = 0;
    e0 = edge(nvml, &t0);
    usleep((useconds_t)(seconds * 2e5));
    e1 = edge(nvml, &t1);
    line("W", (double)(e1 - e0) * 1e6 / (double)(t1 - t0), "context idle");
    for (size_t k = 0; k < WS_ARRAY_SIZE(sizes); k++) {
        struct ws_sm_set set = {0};
        uint64_t given = 0, until = now_ns() + (uint64_t)(seconds * 1e9);
        for (uint32_t i = 0; i < sizes[k] && sizes[k] < n; i++)
            ws_sm_set_add(&set, i);
        e0 = edge(nvml, &t0);
        while (now_ns() < until) {
            struct suite_op o = launch(P_MULTIPLY, n * 8, 256, p, suite_target.mock ? 10 : 20000);
            o.op.launch.sms = set;
            run(&o);
            given += o.op.energy_uj;
        }
        ws_nvml_read(nvml, WS_NVML_SM_CLOCK, &mhz);
        e1 = edge(nvml, &t1);
        double w = (double)(e1 - e0) * 1e6 / (double)(t1 - t0);
        line("W", w, "multiply-add on %u SMs", sizes[k]);
        line("MHz", (double)mhz, "multiply-add on %u SMs: SM clock", sizes[k]);
        line("ratio", (double)given / 1e3 / WS_MAX((double)(e1 - e0), 1e-9),
             "multiply-add on %u SMs: given to the operations / board counter", sizes[k]);
        sx += sizes[k];
        sy += w;
        sxx += (double)sizes[k] * sizes[k];
        sxy += sizes[k] * w;
    }
    double m = WS_ARRAY_SIZE(sizes), slope = (m * sxy - sx * sy) / (m * sxx - sx * sx);
    line("W", (sy - slope * sx) / m, "fit: powered, nothing active");
    line("W", slope, "fit: each active SM");
    ws_nvml_close(nvml);
    ws_cu_close(&plain);
    end();
}

static void section_memory(void)
{
    static const uint32_t mib[] = {2, 64, 512};
    begin(false);
    for (size_t k = 0; k < WS_ARRAY_SIZE(mib); k++) {
        uint64_t va = SUITE_VA(0) + (UINT64_C(4) << 30), bytes = (uint64_t)mib[k] << 20;
        uint64_t t = now_ns();
        must(!ws_device_mem_alloc(S.device, S.space[0], va, bytes), "no memory");
        line("us", (double)(now_ns() - t) / 1e3, "allocate, map and clear %u MiB", mib[k]);
        t = now_ns();
        must(!ws_space_unmap(S.space[0], va), "unmap");
        line("us", (double)(now_ns() - t) / 1e3, "unmap and release %u MiB", mib[k]);
    }
    end();
}

/* The GPU as an entry of the catalog (conf/gpu.d), with the powers that section power has fitted: WS_STATIC_MW, WS_DYNAMIC_MW. */
static void section_catalog(void)
{
    begin(false);
    const struct ws_gpu_spec *s = &S.device->spec;
    const char *fixed = getenv("WS_STATIC_MW"), *per_sm = getenv("WS_DYNAMIC_MW");
    printf("# Made by tests/gpu/run from what the driver says. Powers: %s.\n"
           "# Estimates: copy_*, *_ns, idle_mw_per_sm; lanes are from tables.\n"
           "gpu %s {\n    product = \"%s\"\n    cc = \"%u.%u\"\n",
           fixed ? "fitted by multiply-add on SM sets" : "guessed", s->name, s->product,
           s->cc_major, s->cc_minor);
    const struct {
        const char *name;
        uint64_t value;
    } v[] = {{"sms", s->n_sms},
             {"threads_per_sm", s->max_threads_per_sm},
             {"blocks_per_sm", s->max_blocks_per_sm},
             {"regs_per_sm", s->regs_per_sm},
             {"threads_per_block", s->max_threads_per_block},
             {"shared_bytes_per_sm", s->shared_bytes_per_sm},
             {"shared_bytes_per_block", s->shared_bytes_per_block},
             {"shared_bytes_per_block_optin", s->shared_bytes_per_block_optin},
             {"core_mhz", s->core_mhz},
             {"memory_mhz", s->memory_mhz},
             {"memory_bus_bits", s->memory_bus_bits},
             {"l2_bytes", s->l2_bytes},
             {"memory_mib", s->memory_bytes >> 20},
             {"memory_mb_per_s", s->memory_bytes_per_s / 1000000},
             {"copy_mb_per_s", s->copy_bytes_per_s / 1000000},
             {"copy_latency_ns", s->copy_latency_ns},
             {"launch_overhead_ns", s->launch_overhead_ns},
             {"memory_latency_ns", s->memory_latency_ns},
             {"schedulers_per_sm", s->schedulers_per_sm},
             {"fp32_lanes_per_sm", s->fp32_lanes_per_sm},
             {"int_lanes_per_sm", s->int_lanes_per_sm},
             {"fp64_lanes_per_sm", s->fp64_lanes_per_sm},
             {"sfu_lanes_per_sm", s->sfu_lanes_per_sm},
             {"ldst_lanes_per_sm", s->ldst_lanes_per_sm},
             {"static_mw", fixed ? strtoull(fixed, NULL, 10) : s->static_mw},
             {"idle_mw_per_sm", s->idle_mw_per_sm},
             {"dynamic_mw_per_sm", per_sm ? strtoull(per_sm, NULL, 10) : s->dynamic_mw_per_sm}};
    for (size_t k = 0; k < WS_ARRAY_SIZE(v); k++)
        printf("    %s = %llu\n", v[k].name, (unsigned long long)v[k].value);
    printf("}\n");
    end();
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } sections[] = {{"environment", section_environment},
                    {"launch", section_launch},
                    {"copy", section_copy},
                    {"sms", section_sms},
                    {"forms", section_forms},
                    {"preempt", section_preempt},
                    {"power", section_power},
                    {"catalog", section_catalog},
                    {"memory", section_memory}};
    const char *args[] = {"probe", "cuda", argc == 5 ? argv[3] : NULL, argc == 5 ? argv[4] : NULL};
    if ((argc != 3 && argc != 5) || !suite_target_parse(argc == 5 ? 4 : 2, (char **)args)) {
        fprintf(stderr, "usage: probe SECTION SECONDS [DRIVER NVML]\n");
        return 2;
    }
    section = argv[1];
    seconds = atof(argv[2]);
    for (size_t k = 0; k < WS_ARRAY_SIZE(sections); k++)
        if (!strcmp(sections[k].name, section)) {
            sections[k].run();
            return 0;
        }
    fprintf(stderr, "probe: no section \"%s\"\n", section);
    return 2;
}
