// SPDX-License-Identifier: Apache-2.0
/* Measures what a GPU and its driver do. It runs one section and prints lines
 * "section,what,value,unit" to standard output. Native figures come from the driver's own calls in
 * the same process, beside those of the device (device/cuda), which makes the same calls for
 * clients.
 *
 * It never sets clocks, limits or modes. With the mock driver all sections run, and their numbers
 * mean nothing.
 *
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
#include "tests/gpu/probe.h"

const char probe_ptx[] =
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
    "[%rd3], %f1;\nret;\n}\n"
    /* reads n times 16 bytes a thread, all threads side by side; p[0] changes only if what it reads
     * isn't 0 */
    ".visible .entry stream(.param .u64 p, .param .u32 n)\n{\n.reg .pred %q; .reg .b32 %r<16>; "
    ".reg .b64 %rd<6>;\n"
    "ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [n]; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; "
    "mov.u32 %r4, %tid.x; mad.lo.u32 %r5, %r2, %r3, %r4; mov.u32 %r6, %nctaid.x; mul.lo.u32 %r7, "
    "%r6, %r3; mul.wide.u32 %rd2, %r5, 16; add.s64 %rd3, %rd1, %rd2; mul.wide.u32 %rd4, %r7, 16; "
    "mov.u32 %r8, 0; mov.u32 %r9, 0;\n"
    "L: ld.global.v4.u32 {%r10, %r11, %r12, %r13}, [%rd3]; or.b32 %r10, %r10, %r11; or.b32 %r12, "
    "%r12, %r13; or.b32 %r10, %r10, %r12; or.b32 %r9, %r9, %r10;\n"
    "add.s64 %rd3, %rd3, %rd4; add.u32 %r8, %r8, 1; setp.lt.u32 %q, %r8, %r1;\n@%q bra L;\n"
    "setp.eq.u32 %q, %r9, 0;\n@%q bra E;\nst.global.u32 [%rd1], %r9;\nE: ret;\n}\n";

struct suite probe_suite;
static struct ws_ptx_module *ptx;
static struct ws_dmodule *code;
struct ws_dinstance *probe_instance;
const char *probe_section;
double probe_seconds;

uint64_t probe_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * WS_NS_PER_S + (uint64_t)t.tv_nsec;
}

void probe_line(const char *unit, double value, const char *fmt, ...)
{
    va_list ap;
    printf("%s,", probe_section);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    printf(",%.6g,%s\n", value, unit);
}

void probe_skip(const char *text)
{
    fflush(stdout);
    fprintf(stderr, "probe: %s: %s\n", probe_section, text);
    exit(PROBE_SKIPPED);
}

void probe_must(bool ok, const char *text)
{
    if (!ok) {
        fprintf(stderr, "probe: %s: %s\n", probe_section, text);
        exit(1);
    }
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}
double probe_quantile(double *v, int n, double q)
{
    qsort(v, (size_t)n, sizeof(*v), compare);
    return v[WS_MIN((int)(q * n), n - 1)];
}

void probe_begin(bool preemptible)
{
    struct ws_diags d = WS_DIAGS_NULL;
    suite_target.options.preemptible = preemptible;
    probe_must(!suite_begin(&probe_suite), "the device can't be opened");
    probe_must(!ws_ptx_parse(&ptx, probe_ptx, strlen(probe_ptx), "probe.ptx", &d) &&
                   !ws_device_module_load(probe_suite.device, ptx, &code, &d) &&
                   !ws_device_instance_new(probe_suite.device, code, probe_suite.space[0], NULL,
                                           &probe_instance),
               d.n ? d.v[0].text : "the probe's kernels can't be loaded");
    ws_diags_deinit(&d);
}

struct ws_dinstance *probe_instance_of(int c)
{
    struct ws_dinstance *i = NULL;
    probe_must(!ws_device_instance_new(probe_suite.device, code, probe_suite.space[c], NULL, &i),
               "no instance");
    return i;
}

int probe_occupancy(uint32_t kernel, uint32_t threads, struct ws_occupancy *ret)
{
    return ws_device_occupancy(probe_suite.device, code, kernel, threads, 0, ret);
}

const struct ws_ptx_module *probe_module(void)
{
    return ptx;
}

void probe_end(void)
{
    ws_device_instance_free(probe_suite.device, probe_instance);
    ws_device_module_unload(probe_suite.device, code);
    ws_ptx_module_free(ptx);
    suite_end(&probe_suite);
}

struct suite_op probe_launch(uint32_t kernel, uint32_t blocks, uint32_t threads, uint64_t p0,
                             uint64_t p1)
{
    struct suite_op o = suite_launch(&probe_suite, 0, K_COUNT, blocks, threads, p0, p1, 0, 0);
    o.op.launch.instance = probe_instance;
    o.op.launch.kernel = kernel;
    return o;
}

void probe_run(struct suite_op *o)
{
    suite_submit(&probe_suite, o);
    suite_wait(o);
    probe_must(!o->op.error, o->op.text);
}

/* ---- the driver itself ---- */

static struct probe_native native;
static ws_cu_module module;

void probe_native_begin(struct probe_native *n)
{
    *n = (struct probe_native){0};
    probe_must(!ws_cu_open(&n->cu, suite_target.options.driver_library, NULL), "no driver");
    probe_must(!n->cu.cuDeviceGet(&n->gpu, 0) && !n->cu.cuDevicePrimaryCtxRetain(&n->ctx, n->gpu) &&
                   !n->cu.cuCtxSetCurrent(n->ctx) &&
                   !n->cu.cuStreamCreateWithPriority(&n->stream, WS_CU_STREAM_NON_BLOCKING, 0) &&
                   !n->cu.cuDeviceGetAttribute(&n->n_sms, WS_CU_ATTR_MULTIPROCESSOR_COUNT, n->gpu),
               "the driver's own calls fail");
}

void probe_native_end(struct probe_native *n)
{
    (void)n->cu.cuStreamDestroy(n->stream);
    (void)n->cu.cuCtxSetCurrent(NULL);
    (void)n->cu.cuDevicePrimaryCtxRelease(n->gpu);
    ws_cu_close(&n->cu);
}

void probe_native_launch(struct probe_native *n, ws_cu_stream s, ws_cu_function f,
                         const uint32_t grid[3], const uint32_t block[3], const void *params,
                         size_t bytes)
{
    struct ws_cu_launch_config c = {
        .grid = {grid[0], grid[1], grid[2]}, .block = {block[0], block[1], block[2]}, .stream = s};
    void *extra[] = {WS_CU_LAUNCH_PARAM_BUFFER_POINTER, (void *)params,
                     WS_CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, WS_CU_LAUNCH_PARAM_END};
    probe_must(!n->cu.cuLaunchKernelEx(&c, f, NULL, bytes ? extra : NULL), "launch");
}

static void native_begin(void)
{
    probe_native_begin(&native);
    probe_must(!native.cu.cuModuleLoadDataEx(&module, probe_ptx, 0, NULL, NULL),
               "the driver's own calls fail");
}

static void native_end(void)
{
    (void)native.cu.cuModuleUnload(module);
    probe_native_end(&native);
}

/* Median and 99th percentile of single launches with waits, and the rate of launches in a row. */
static void section_launch(void)
{
    enum { N = 500 };
    static double v[N], own[N];
    native_begin();
    ws_cu_function f;
    probe_must(!native.cu.cuModuleGetFunction(&f, module, "nothing"), "no function");
    struct ws_cu_launch_config c = {
        .grid = {1, 1, 1}, .block = {32, 1, 1}, .stream = native.stream};
    for (int k = 0; k < N; k++) {
        uint64_t t = probe_now_ns();
        probe_must(!native.cu.cuLaunchKernelEx(&c, f, NULL, NULL) &&
                       !native.cu.cuStreamSynchronize(native.stream),
                   "launch");
        v[k] = (double)(probe_now_ns() - t) / 1e3;
    }
    uint64_t t = probe_now_ns();
    for (int k = 0; k < N; k++)
        probe_must(!native.cu.cuLaunchKernelEx(&c, f, NULL, NULL), "launch");
    probe_must(!native.cu.cuStreamSynchronize(native.stream), "wait");
    probe_line("us", (double)(probe_now_ns() - t) / 1e3 / N, "native launches in a row");
    native_end();
    probe_begin(false);
    for (int k = 0; k < N; k++) {
        struct suite_op o = probe_launch(P_NOTHING, 1, 32, 0, 0);
        t = probe_now_ns();
        probe_run(&o);
        own[k] = (double)(probe_now_ns() - t) / 1e3;
    }
    double a = probe_quantile(v, N, 0.5), b = probe_quantile(own, N, 0.5);
    probe_line("us", a, "native launch and wait: median");
    probe_line("us", probe_quantile(v, N, 0.99), "native launch and wait: p99");
    probe_line("us", b, "device launch and wait: median");
    probe_line("us", probe_quantile(own, N, 0.99), "device launch and wait: p99");
    probe_line("ratio", b / a, "device / native launch and wait");
    probe_end();
}

static double copy_us(uint64_t va, void *host, uint64_t bytes, int rounds)
{
    static double v[64];
    for (int k = 0; k < rounds; k++) {
        struct suite_op o = {.op = {.kind = WS_OPK_COPY,
                                    .space = probe_suite.space[0],
                                    .copy = {.dst_va = va, .src_host = host, .bytes = bytes}}};
        uint64_t t = probe_now_ns();
        probe_run(&o);
        v[k] = (double)(probe_now_ns() - t) / 1e3;
    }
    return probe_quantile(v, rounds, 0.5);
}

static void section_copy(void)
{
    enum { MOST = 64 << 20 };
    static const uint32_t sizes[] = {4, 4096, 65536, 1 << 20, 16 << 20, MOST};
    static double plain[WS_ARRAY_SIZE(sizes)], v[16];
    native_begin();
    void *pinned = NULL;
    ws_cu_ptr va = 0;
    probe_must(!native.cu.cuMemHostAlloc(&pinned, MOST, 0) && !native.cu.cuMemAlloc(&va, MOST),
               "no memory");
    memset(pinned, 3, MOST);
    for (size_t k = 0; k < WS_ARRAY_SIZE(sizes); k++) {
        for (int i = 0; i < 16; i++) {
            uint64_t t = probe_now_ns();
            probe_must(!native.cu.cuMemcpyHtoDAsync(va, pinned, sizes[k], native.stream) &&
                           !native.cu.cuStreamSynchronize(native.stream),
                       "copy");
            v[i] = (double)(probe_now_ns() - t) / 1e3;
        }
        plain[k] = probe_quantile(v, 16, 0.5);
        probe_line("us", plain[k], "native pinned to device: %u bytes", sizes[k]);
    }
    probe_must(!native.cu.cuMemFree(va) && !native.cu.cuMemFreeHost(pinned), "free");
    native_end();
    probe_begin(false);
    uint64_t to = suite_alloc(&probe_suite, 0, MOST);
    void *host = aligned_alloc(4096, MOST);
    probe_must(host != NULL, "no memory");
    memset(host, 5, MOST);
    for (size_t k = 0; k < WS_ARRAY_SIZE(sizes); k++)
        probe_line("us", copy_us(to, host, sizes[k], 16), "device from pageable: %u bytes",
                   sizes[k]);
    ws_device_host_register(probe_suite.device, host, MOST, -1);
    for (size_t k = 0; k < WS_ARRAY_SIZE(sizes); k++) {
        double us = copy_us(to, host, sizes[k], 16);
        probe_line("us", us, "device from registered: %u bytes", sizes[k]);
        probe_line("ratio", us / plain[k], "device / native: %u bytes", sizes[k]);
    }
    ws_device_host_unregister(probe_suite.device, host, MOST);
    free(host);
    probe_end();
}

/* ---- what the GPU and its driver are ---- */

static void section_environment(void)
{
    probe_begin(false);
    const struct ws_gpu_spec *s = &probe_suite.device->spec;
    const struct ws_cuda_capabilities *c = ws_device_cuda_capabilities(probe_suite.device);
    probe_must(c != NULL, "not a CUDA device");
    printf("%s,product,\"%s\",text\n%s,driver,\"%s\",text\n", probe_section, c->product,
           probe_section, c->driver);
    probe_line("version", c->cuda_version, "CUDA of the driver");
    for (uint32_t k = 0; k < c->n; k++)
        printf("%s,%s,%d,\"%s\"\n", probe_section, c->v[k].name, c->v[k].yes, c->v[k].how);
    probe_line("SMs", s->n_sms, "SMs");
    probe_line("cc", s->cc_major * 10 + s->cc_minor, "compute capability");
    probe_line("bytes", (double)s->memory_bytes, "memory");
    probe_line("bytes", s->shared_bytes_per_block_optin, "shared memory of a block");
    probe_line("MHz", s->core_mhz, "core clock, highest");
    probe_line("mW", s->static_mw, "power when opened");
    /* which SMs there are, as kernels see them */
    uint32_t n = s->n_sms * 64, *v = malloc(n * 4), most = 0;
    uint64_t where = suite_alloc(&probe_suite, 0, n * 4),
             times = suite_alloc(&probe_suite, 0, n * 4);
    struct suite_op o = suite_launch(&probe_suite, 0, K_SMID, n, 64, where, times, 0, 0);
    struct ws_sm_set seen = {0};
    probe_run(&o);
    suite_get(&probe_suite, 0, v, where, n * 4);
    for (uint32_t i = 0; i < n; i++) {
        most = WS_MAX(most, v[i]);
        if (v[i] < WS_SM_MAX)
            ws_sm_set_add(&seen, v[i]);
    }
    probe_line("SMs", seen.n, "different %%smid seen");
    probe_line("number", most, "highest %%smid");
    free(v);
    probe_end();
}

/* ---- SM sets ---- */

static void one_set(const char *name, const struct ws_sm_set *set)
{
    uint32_t n = 2000, *v = malloc(n * 4), outside = 0, wrong = 0;
    uint64_t where = suite_alloc(&probe_suite, 0, n * 4),
             times = suite_alloc(&probe_suite, 0, n * 4);
    struct ws_sm_set used = {0};
    struct suite_op o = suite_launch(&probe_suite, 0, K_SMID, n, 64, where, times, 0, 0);
    o.op.launch.sms = *set;
    probe_run(&o);
    suite_get(&probe_suite, 0, v, times, n * 4);
    for (uint32_t i = 0; i < n; i++)
        wrong += v[i] != 1;
    suite_get(&probe_suite, 0, v, where, n * 4);
    for (uint32_t i = 0; i < n; i++) {
        outside += v[i] >= WS_SM_MAX || !ws_sm_set_has(set, v[i]);
        if (v[i] < WS_SM_MAX)
            ws_sm_set_add(&used, v[i]);
    }
    probe_line("SMs", used.n, "%s: SMs used of %u", name, set->n);
    probe_line("blocks", outside, "%s: blocks outside the set", name);
    probe_line("blocks", wrong, "%s: blocks that did not run just once", name);
    probe_must(!outside && !wrong, "a set of SMs was not kept to");
    free(v);
}

static void section_sms(void)
{
    probe_begin(false);
    uint32_t n = probe_suite.device->spec.n_sms,
             sizes[] = {1, WS_MAX(n / 16, 1u), n / 4, n / 2, n - 1};
    for (size_t k = 0; k < WS_ARRAY_SIZE(sizes); k++) {
        struct ws_sm_set low = {0};
        char name[32];
        for (uint32_t i = 0; i < sizes[k]; i++)
            ws_sm_set_add(&low, i);
        snprintf(name, sizeof(name), "lowest %u", sizes[k]);
        one_set(name, &low);
    }
    struct ws_sm_set odd = {0};
    for (uint32_t i = 1; i < n; i += 2)
        ws_sm_set_add(&odd, i);
    one_set("odd", &odd);
    probe_end();
}

/* ---- rewritten kernels against the originals ---- */

static double kernel_us(uint32_t kernel, uint32_t blocks, uint32_t threads, uint64_t p0,
                        uint64_t p1)
{
    double v[15];
    for (int k = 0; k < 15; k++) {
        struct suite_op o = probe_launch(kernel, blocks, threads, p0, p1);
        probe_run(&o);
        v[k] = (double)(o.op.end_ns - o.op.start_ns) / 1e3;
    }
    return probe_quantile(v, 15, 0.5);
}

static void section_forms(void)
{
    static const uint32_t rounds[] = {0, 64, 1024};
    double whole[WS_ARRAY_SIZE(rounds)];
    for (int tickets = 0; tickets < 2; tickets++) {
        probe_begin(tickets);
        uint64_t p = suite_alloc(&probe_suite, 0, 1 << 18);
        uint32_t blocks = probe_suite.device->spec.n_sms * 40;
        for (size_t k = 0; k < WS_ARRAY_SIZE(rounds); k++) {
            double us = kernel_us(P_MULTIPLY, blocks, 128, p, rounds[k]);
            if (!tickets)
                whole[k] = us;
            probe_line("us", us, "%s: %u blocks of %u rounds", tickets ? "by tickets" : "whole",
                       blocks, rounds[k]);
            if (tickets)
                probe_line("ratio", us / whole[k], "by tickets / whole: %u rounds", rounds[k]);
        }
        probe_end();
    }
}

static void section_preempt(void)
{
    enum { N = 60 };
    static const uint32_t block_us[] = {5, 20, 100, 1000};
    probe_begin(true);
    for (size_t b = 0; b < WS_ARRAY_SIZE(block_us); b++) {
        double v[N];
        int n = 0;
        for (int k = 0; k < N; k++) {
            uint64_t cycles = (uint64_t)block_us[b] * probe_suite.device->spec.core_mhz;
            struct suite_op o =
                probe_launch(P_SPIN, probe_suite.device->spec.n_sms * 200, 64, cycles, 0);
            suite_submit(&probe_suite, &o);
            usleep(500);
            uint64_t t = probe_now_ns();
            int r = suite_preempt(&probe_suite, &o);
            suite_wait(&o);
            probe_must(!o.op.error, o.op.text);
            if (!r && o.op.preempted)
                v[n++] = (double)(probe_now_ns() - t) / 1e3;
            ws_progress_free(o.op.launch.progress);
            o.op.launch.progress = NULL;
        }
        probe_line("launches", n, "blocks of %u us: stopped of %d", block_us[b], N);
        if (n) {
            probe_line("us", probe_quantile(v, n, 0.5),
                       "blocks of %u us: from asking to the end, median", block_us[b]);
            probe_line("us", probe_quantile(v, n, 0.99),
                       "blocks of %u us: from asking to the end, p99", block_us[b]);
        }
    }
    probe_end();
}

/* ---- energy ---- */

uint64_t probe_edge(struct ws_nvml *n, uint64_t *ret_ns)
{
    uint64_t first = 0, v = 0, begin_ns = probe_now_ns();
    *ret_ns = begin_ns;
    if (!ws_nvml_read(n, WS_NVML_ENERGY, &first))
        return 0;
    do
        probe_must(ws_nvml_read(n, WS_NVML_ENERGY, &v), "the energy counter fails");
    while (v == first && probe_now_ns() - begin_ns < 3 * WS_NS_PER_S);
    *ret_ns = probe_now_ns();
    return v == first ? 0 : v;
}

struct ws_nvml *probe_nvml(char *why, size_t why_bytes)
{
    struct ws_cu_uuid uuid;
    struct ws_cu plain;
    probe_must(!ws_cu_open(&plain, suite_target.options.driver_library, NULL) &&
                   !plain.cuDeviceGetUuid(&uuid, 0),
               "no driver");
    struct ws_nvml *n = ws_nvml_open(suite_target.options.nvml_library, uuid.bytes, why, why_bytes);
    ws_cu_close(&plain);
    return n;
}

static void section_memory(void)
{
    static const uint32_t mib[] = {2, 64, 512};
    probe_begin(false);
    for (size_t k = 0; k < WS_ARRAY_SIZE(mib); k++) {
        uint64_t va = SUITE_VA(0) + (UINT64_C(4) << 30), bytes = (uint64_t)mib[k] << 20;
        uint64_t t = probe_now_ns();
        probe_must(!ws_device_mem_alloc(probe_suite.device, probe_suite.space[0], va, bytes),
                   "no memory");
        probe_line("us", (double)(probe_now_ns() - t) / 1e3, "allocate, map and clear %u MiB",
                   mib[k]);
        t = probe_now_ns();
        probe_must(!ws_space_unmap(probe_suite.space[0], va), "unmap");
        probe_line("us", (double)(probe_now_ns() - t) / 1e3, "unmap and release %u MiB", mib[k]);
    }
    probe_end();
}

/* What another section has measured, as tests/gpu/run hands it on; else @otherwise. */
static uint64_t measured(const char *name, uint64_t otherwise)
{
    const char *e = getenv(name);
    uint64_t v = e ? strtoull(e, NULL, 10) : 0;
    return v ? v : otherwise;
}

/* The GPU as an entry of the catalog (conf/gpu.d), with the powers that section power has fitted:
 * WS_STATIC_MW, WS_DYNAMIC_MW. */
static void section_catalog(void)
{
    probe_begin(false);
    const struct ws_gpu_spec *s = &probe_suite.device->spec;
    const char *fixed = getenv("WS_STATIC_MW");
    printf("# Made by tests/gpu/run from what the driver says. Powers: %s.\n"
           "# Latency and bandwidth of memory: %s. Estimates: copy_*, launch_overhead_ns; lanes "
           "are from "
           "tables.\n"
           "gpu %s {\n    product = \"%s\"\n    cc = \"%u.%u\"\n",
           fixed ? "fitted by multiply-add on SM sets" : "guessed",
           getenv("WS_MEMORY_NS") ? "measured" : "estimated", s->name, s->product, s->cc_major,
           s->cc_minor);
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
             {"memory_mb_per_s", measured("WS_MEMORY_MB_PER_S", s->memory_bytes_per_s / 1000000)},
             {"copy_mb_per_s", s->copy_bytes_per_s / 1000000},
             {"copy_latency_ns", s->copy_latency_ns},
             {"launch_overhead_ns", s->launch_overhead_ns},
             {"memory_latency_ns", measured("WS_MEMORY_NS", s->memory_latency_ns)},
             {"schedulers_per_sm", s->schedulers_per_sm},
             {"fp32_lanes_per_sm", s->fp32_lanes_per_sm},
             {"int_lanes_per_sm", s->int_lanes_per_sm},
             {"fp64_lanes_per_sm", s->fp64_lanes_per_sm},
             {"sfu_lanes_per_sm", s->sfu_lanes_per_sm},
             {"ldst_lanes_per_sm", s->ldst_lanes_per_sm},
             {"static_mw", measured("WS_STATIC_MW", s->static_mw)},
             {"idle_mw_per_sm", measured("WS_IDLE_MW", s->idle_mw_per_sm)},
             {"dynamic_mw_per_sm", measured("WS_DYNAMIC_MW", s->dynamic_mw_per_sm)}};
    for (size_t k = 0; k < WS_ARRAY_SIZE(v); k++)
        printf("    %s = %llu\n", v[k].name, (unsigned long long)v[k].value);
    printf("}\n");
    probe_end();
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
                    {"power", probe_section_power},
                    {"green", probe_section_green},
                    {"fused", probe_section_fused},
                    {"energy", probe_section_energy},
                    {"mwp", probe_section_mwp},
                    {"profiles", probe_section_profiles},
                    {"calibrate", probe_section_calibrate},
                    {"catalog", section_catalog},
                    {"memory", section_memory}};
    const char *args[] = {"probe", "cuda", argc == 5 ? argv[3] : NULL, argc == 5 ? argv[4] : NULL};
    if ((argc != 3 && argc != 5) || !suite_target_parse(argc == 5 ? 4 : 2, (char **)args)) {
        fprintf(stderr, "usage: probe SECTION SECONDS [DRIVER NVML]\n");
        return 2;
    }
    probe_section = argv[1];
    probe_seconds = atof(argv[2]);
    for (size_t k = 0; k < WS_ARRAY_SIZE(sections); k++)
        if (!strcmp(sections[k].name, probe_section)) {
            sections[k].run();
            return 0;
        }
    fprintf(stderr, "probe: no section \"%s\"\n", probe_section);
    return 2;
}
