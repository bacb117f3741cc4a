// SPDX-License-Identifier: Apache-2.0
/* Measures what calibrates the models of models/event_power.h and event_time.h: time and power of
 * kernels that do one thing each, and of mixtures of two, at the clocks that the GPU has by itself,
 * as CSV that `wattshare fit --gpu` reads.
 *
 * Nothing counts events here. Each kernel is a loop of known instructions over memory of a known
 * size, and its counts are those of the text: what the driver's compiler makes of it may differ a
 * little. Loads of memory that fits into L2 are taken to be found there, and those of more to come
 * from DRAM; both go past L1. Power is the energy counter over a row of launches, time that row by
 * its launches. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "tests/gpu/probe.h"

enum { BODIES = 8, THREADS_PER_BLOCK = 256, WARP = 32, SECTORS_OF_LOAD = 4, TEXT_BYTES = 8192 };

/* What a thread does in one round of a body. */
static const struct body {
    const char *name, *text;
    int ints, fp32, fp64, sfu, shared, loads;
} bodies[] = {
    {"fp32", "fma.rn.f32 %f1, %f1, %f3, %f2; fma.rn.f32 %f2, %f2, %f3, %f1;", .fp32 = 2},
    {"int", "mad.lo.u32 %r6, %r6, %r7, %r5; xor.b32 %r7, %r7, %r6;", .ints = 2},
    {"fp64", "fma.rn.f64 %d1, %d1, %d3, %d2; fma.rn.f64 %d2, %d2, %d3, %d1;", .fp64 = 2},
    {"sfu", "ex2.approx.f32 %f1, %f1; rcp.approx.f32 %f2, %f2;", .sfu = 2},
    {"shared", "ld.volatile.shared.u32 %r6, [%r8]; st.volatile.shared.u32 [%r8], %r6;",
     .shared = 2},
    {"loads",
     "add.u32 %r4, %r4, %r9; and.b32 %r4, %r4, %r3; mul.wide.u32 %rd2, %r4, 4; add.s64 %rd3, %rd1, "
     "%rd2; ld.global.cg.f32 %f4, [%rd3]; add.f32 %f1, %f1, %f4;",
     .ints = 4, .fp32 = 1, .loads = 1},
};
enum { FP32, INT, FP64, SFU, SHARED, LOADS, N_BODIES };

/* A kernel: one or two bodies, on a share of the SMs, over memory that fits into L2 or does not. */
static const struct app {
    const char *name;
    int first, second; /* -1: none */
    bool beyond_l2;
    double share;    /* of the number of SMs: */
    uint32_t per_sm; /* so many blocks for each of these, which a GPU deals over all SMs */
} apps[] = {
    {"fp32", FP32, -1, false, 1, 8},
    {"fp32-half", FP32, -1, false, 0.5, 1},
    {"fp32-few-warps", FP32, -1, false, 1, 1},
    {"int", INT, -1, false, 1, 8},
    {"fp64", FP64, -1, false, 1, 8},
    {"sfu", SFU, -1, false, 1, 8},
    {"shared", SHARED, -1, false, 1, 8},
    {"shared-half", SHARED, -1, false, 0.5, 1},
    {"l2", LOADS, -1, false, 1, 8},
    {"dram", LOADS, -1, true, 1, 8},
    {"dram-half", LOADS, -1, true, 0.5, 1},
    {"fp32-int", FP32, INT, false, 1, 8},
    {"fp32-shared", FP32, SHARED, false, 1, 8},
    {"fp32-dram", FP32, LOADS, true, 1, 8},
    {"int-l2", INT, LOADS, false, 1, 8},
    {"one-block", FP32, -1, false, 0, 1},
};

struct calibrate {
    struct probe_native n;
    struct ws_nvml *nvml;
    const struct ws_gpu_spec *spec;
    ws_cu_ptr memory;
    uint64_t bytes;
};

/* ---- kernels ---- */

static void kernel_text(const struct app *a, char *ret)
{
    size_t n = (size_t)snprintf(
        ret, TEXT_BYTES,
        ".version 7.5\n.target sm_75\n.address_size 64\n"
        ".visible .entry run(.param .u64 p, .param .u32 rounds, .param .u32 mask)\n{\n"
        ".reg .pred %%q; .reg .b32 %%r<12>; .reg .b64 %%rd<6>; .reg .f32 %%f<6>; .reg .f64 "
        "%%d<4>;\n"
        ".shared .align 4 .b8 s[%d];\n"
        "ld.param.u64 %%rd1, [p]; ld.param.u32 %%r1, [rounds]; ld.param.u32 %%r3, [mask];\n"
        "mov.u32 %%r5, %%tid.x; mov.u32 %%r6, %%ctaid.x; mov.u32 %%r7, %%ntid.x; mov.u32 %%r9, "
        "%%nctaid.x; mad.lo.u32 %%r4, %%r6, %%r7, %%r5; mul.lo.u32 %%r9, %%r9, %%r7;\n"
        "mov.u32 %%r8, s; shl.b32 %%r10, %%r5, 2; add.u32 %%r8, %%r8, %%r10; st.shared.u32 [%%r8], "
        "%%r5;\n"
        "cvt.rn.f32.u32 %%f1, %%r5; mov.f32 %%f2, 0f3F000000; mov.f32 %%f3, 0f3F7FFFFE;\n"
        "cvt.f64.f32 %%d1, %%f1; cvt.f64.f32 %%d2, %%f2; cvt.f64.f32 %%d3, %%f3;\nL:\n",
        THREADS_PER_BLOCK * 4);
    for (int i = 0; i < BODIES; i++)
        n += (size_t)snprintf(ret + n, TEXT_BYTES - n, "%s\n%s\n", bodies[a->first].text,
                              a->second < 0 ? "" : bodies[a->second].text);
    /* All results are used, by a store that each thread makes once. */
    snprintf(ret + n, TEXT_BYTES - n,
             "sub.u32 %%r1, %%r1, 1; setp.ne.u32 %%q, %%r1, 0;\n@%%q bra L;\n"
             "cvt.rn.f32.f64 %%f5, %%d1; add.f32 %%f1, %%f1, %%f5; add.f32 %%f1, %%f1, %%f2; "
             "cvt.rn.f32.u32 %%f5, %%r6; add.f32 %%f1, %%f1, %%f5; cvt.rn.f32.u32 %%f5, %%r7; "
             "add.f32 %%f1, %%f1, %%f5; and.b32 %%r4, %%r4, %%r3; mul.wide.u32 %%rd2, %%r4, 4; "
             "add.s64 %%rd3, %%rd1, %%rd2; st.global.f32 [%%rd3], %%f1;\nret;\n}\n");
}

/* ---- a row ---- */

static uint32_t blocks_of(const struct calibrate *c, const struct app *a)
{
    uint32_t sms = WS_MAX((uint32_t)lround(a->share * c->spec->n_sms), 1u);
    return sms * a->per_sm;
}

/* A power of two floats: half of L2, or all that there is. */
static uint32_t mask_of(const struct calibrate *c, const struct app *a)
{
    uint64_t floats = c->bytes / 4, fit = WS_MAX(c->spec->l2_bytes / 2 / 4, 1024u);
    uint64_t n = 1024;
    while (n * 2 <= (a->beyond_l2 ? floats : WS_MIN(floats, fit)))
        n *= 2;
    return (uint32_t)(n - 1);
}

static void put_counts(const struct calibrate *c, const struct app *a, uint32_t rounds)
{
    struct body sum = {0};
    for (int i = 0; i < 2; i++) {
        int which = i ? a->second : a->first;
        if (which < 0)
            continue;
        const struct body *b = &bodies[which];
        sum.ints += BODIES * b->ints;
        sum.fp32 += BODIES * b->fp32;
        sum.fp64 += BODIES * b->fp64;
        sum.sfu += BODIES * b->sfu;
        sum.shared += BODIES * b->shared;
        sum.loads += BODIES * b->loads;
    }
    sum.ints += 2; /* the loop's counter and its comparison; its branch is control flow */
    double blocks = blocks_of(c, a), sms = WS_MIN(blocks, (double)c->spec->n_sms);
    double threads = blocks * THREADS_PER_BLOCK * rounds, warps = threads / WARP;
    double instructions =
        warps * (sum.ints + sum.fp32 + sum.fp64 + sum.sfu + sum.shared + sum.loads + 1);
    double sectors = warps * sum.loads * SECTORS_OF_LOAD;
    double resident = fmin(blocks / sms * THREADS_PER_BLOCK, c->spec->max_threads_per_sm);
    printf(",%.0f,%.0f,%.0f,%.0f,%.0f,%.0f,%.0f,%.0f,1,%.0f,%d,0,%.0f,0,%.0f,0,%.0f,%g,%g\n",
           instructions, warps, threads * sum.ints, threads * sum.fp32, threads * sum.fp64,
           threads * sum.sfu, warps * sum.shared / 2, warps * sum.shared / 2, sectors,
           SECTORS_OF_LOAD, sectors, a->beyond_l2 ? sectors : 0, blocks, sms / c->spec->n_sms,
           resident / c->spec->max_threads_per_sm);
}

struct params {
    uint64_t p;
    uint32_t rounds, mask;
};

static uint64_t run_once(struct calibrate *c, ws_cu_function f, const struct app *a,
                         const struct params *p, int n)
{
    const uint32_t grid[3] = {blocks_of(c, a), 1, 1}, block[3] = {THREADS_PER_BLOCK, 1, 1};
    uint64_t began = probe_now_ns();
    for (int i = 0; i < n; i++)
        probe_native_launch(&c->n, c->n.stream, f, grid, block, p, sizeof(*p));
    probe_must(!c->n.cu.cuStreamSynchronize(c->n.stream), "a measuring kernel failed");
    return probe_now_ns() - began;
}

static uint64_t read_mhz(struct calibrate *c, enum ws_nvml_call what, uint32_t otherwise)
{
    uint64_t v;
    return ws_nvml_read(c->nvml, what, &v) && v ? v : otherwise;
}

static void measure(struct calibrate *c, const struct app *a)
{
    enum { LAUNCHES = 8 };
    char text[TEXT_BYTES];
    ws_cu_module module;
    ws_cu_function f = NULL;
    struct params p = {c->memory, suite_target.mock ? 1 : 64, mask_of(c, a)};
    kernel_text(a, text);
    probe_must(!c->n.cu.cuModuleLoadDataEx(&module, text, 0, NULL, NULL) &&
                   !c->n.cu.cuModuleGetFunction(&f, module, "run"),
               "a measuring kernel is not compiled");
    /* About 2 ms each, so that launching takes no part of it. */
    uint64_t ns = run_once(c, f, a, &p, 1);
    while (!suite_target.mock && ns < 2 * WS_NS_PER_MS && p.rounds < 1u << 24) {
        p.rounds *= 2;
        ns = run_once(c, f, a, &p, 1);
    }
    uint64_t t0, t1, e0 = probe_edge(c->nvml, &t0), busy_ns = 0, n = 0;
    do {
        busy_ns += run_once(c, f, a, &p, LAUNCHES);
        n += LAUNCHES;
    } while (probe_now_ns() - t0 < (uint64_t)(probe_seconds * 0.5e9));
    uint64_t core = read_mhz(c, WS_NVML_SM_CLOCK, c->spec->core_mhz);
    uint64_t memory = read_mhz(c, WS_NVML_MEMORY_CLOCK, c->spec->memory_mhz);
    /* The counter steps now and then: what it counts until its next step is work, too. */
    uint64_t until = t0, e1 = e0;
    while (e1 == e0 && until - t0 < 10 * WS_NS_PER_S) {
        busy_ns += run_once(c, f, a, &p, LAUNCHES);
        n += LAUNCHES;
        probe_must(ws_nvml_read(c->nvml, WS_NVML_ENERGY, &e1), "the energy counter fails");
        until = probe_now_ns();
    }
    t1 = until;
    probe_must(e0 && e1 > e0, "the energy counter stopped moving");
    printf("%s,%s,%llu,%llu,%.9g,%.6g", c->spec->name, a->name, (unsigned long long)core,
           (unsigned long long)memory, (double)busy_ns / (double)n / 1e9,
           (double)(e1 - e0) * 1e6 / (double)(t1 - t0));
    put_counts(c, a, p.rounds);
    fflush(stdout);
    (void)c->n.cu.cuModuleUnload(module);
}

void probe_section_calibrate(void)
{
    struct calibrate c = {0};
    char why[160] = "no energy counter";
    uint64_t ns;
    c.nvml = probe_nvml(why, sizeof(why));
    if (!c.nvml)
        probe_skip(why);
    if (!probe_edge(c.nvml, &ns))
        probe_skip("the energy counter does not move");
    probe_begin(false);
    struct ws_gpu_spec spec = probe_suite.device->spec;
    probe_end();
    c.spec = &spec;
    probe_native_begin(&c.n);
    c.bytes = suite_target.mock ? 1 << 20 : UINT64_C(512) << 20;
    probe_must(!c.n.cu.cuMemAlloc(&c.memory, c.bytes), "no memory of the GPU");
    printf("gpu,app,core_mhz,mem_mhz,time_s,power_w,inst_executed,cf_executed,inst_integer,"
           "inst_fp_32,inst_fp_64,flop_count_sp_special,shared_load_transactions,"
           "shared_store_transactions,shared_load_transactions_per_request,gld_transactions,"
           "gld_transactions_per_request,gst_transactions,l2_read_transactions,"
           "l2_write_transactions,dram_read_transactions,dram_write_transactions,grid_blocks,"
           "sm_efficiency,achieved_occupancy\n");
    for (size_t i = 0; i < WS_ARRAY_SIZE(apps); i++)
        measure(&c, &apps[i]);
    (void)c.n.cu.cuMemFree(c.memory);
    probe_native_end(&c.n);
    ws_nvml_close(c.nvml);
}
