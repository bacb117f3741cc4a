// SPDX-License-Identifier: Apache-2.0
/* What a software GPU with fitted numbers draws: kernels of the same time that do different things
 * draw differently, by as much as the model says for counts known by hand; each launch pays for
 * what it does, and the sum stays exact. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <cmocka.h>

#include "device/catalog.h"
#include "device/device.h"
#include "device/mapping.h"
#include "device/soft/timeline/meter.h"
#include "device/soft/timeline/power.h"
#include "device/soft/timeline/timing.h"
#include "models/event_limit.h"
#include "ptx/ptx.h"

enum { BLOCKS = 320, THREADS = 256, FMAS = 160, LOADS = 8 };
#define BYTES ((uint64_t)BLOCKS * THREADS * LOADS * 4)

/* fma: FMAS times 4 instructions of each thread: fma, add, setp, bra. copy: each thread loads LOADS
 * words and stores them again, each warp 128 bytes at a time. */
static const char ptx[] =
    ".version 7.0\n.target sm_75\n.address_size 64\n"
    ".visible .entry fma(.param .u64 data)\n{\n"
    ".reg .f32 %f<4>; .reg .b32 %r<4>; .reg .pred %p;\n mov.u32 %r1, 0;\n"
    "AGAIN: fma.rn.f32 %f0, %f1, %f2, %f0; add.u32 %r1, %r1, 1; setp.lt.u32 %p, %r1, 160;\n"
    "@%p bra AGAIN; ret;\n}\n"
    ".visible .entry copy(.param .u64 data)\n{\n"
    ".reg .f32 %f<4>; .reg .b32 %r<8>; .reg .b64 %x<4>; .reg .pred %p;\n"
    "ld.param.u64 %x0, [data]; mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x;\n"
    "mad.lo.u32 %r2, %r1, 256, %r0; mul.wide.u32 %x1, %r2, 4; add.u64 %x0, %x0, %x1;\n"
    "mov.u32 %r1, 0;\n"
    "AGAIN: ld.global.f32 %f0, [%x0]; st.global.f32 [%x0], %f0; add.u64 %x0, %x0, 327680;\n"
    "add.u32 %r1, %r1, 1; setp.lt.u32 %p, %r1, 8; @%p bra AGAIN; ret;\n}\n";

struct draw_test {
    struct ws_catalog catalog;
    struct ws_gpu_spec spec;
    struct ws_fitted fitted;
    struct ws_device *device;
    struct ws_ptx_module *ptx;
    struct ws_dmodule *module;
    struct ws_space *space;
    struct ws_dinstance *instance;
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool done;
    struct ws_sm_set sms; /* of the next launch; empty: all */
};

static int setup(void **state)
{
    static struct draw_test f;
    f = (struct draw_test){.done = false};
    struct ws_diags diags = WS_DIAGS_NULL;
    struct ws_device_options o = {.clock = WS_CLOCK_FUNCTIONAL};
    uint64_t none;
    *state = &f;
    pthread_mutex_init(&f.lock, NULL);
    pthread_cond_init(&f.cond, NULL);
    if (ws_catalog_load(&f.catalog, WS_SRCDIR "/conf/gpu.d", &diags))
        return -1;
    f.spec = *ws_catalog_find(&f.catalog, "v100");
    ws_fitted_of(&f.spec, &f.fitted);
    return ws_ptx_parse(&f.ptx, ptx, strlen(ptx), "draw.ptx", &diags) ||
           ws_device_open_soft(&f.device, &f.spec, 0, &o, &diags) ||
           ws_device_module_load(f.device, f.ptx, &f.module, &diags) || ws_space_new(&f.space) ||
           ws_device_instance_new(f.device, f.module, f.space, &none, &f.instance) ||
           ws_device_mem_alloc(f.device, f.space, UINT64_C(1) << 32, BYTES);
}

static int teardown(void **state)
{
    struct draw_test *f = *state;
    ws_device_instance_free(f->device, f->instance);
    ws_space_free(f->space);
    ws_device_module_unload(f->device, f->module);
    ws_device_close(f->device);
    ws_ptx_module_free(f->ptx);
    ws_catalog_deinit(&f->catalog);
    pthread_mutex_destroy(&f->lock);
    pthread_cond_destroy(&f->cond);
    return 0;
}

static void on_done(struct ws_op *op)
{
    struct draw_test *f = op->owner;
    pthread_mutex_lock(&f->lock);
    f->done = true;
    pthread_cond_signal(&f->cond);
    pthread_mutex_unlock(&f->lock);
}

static struct ws_op launch(struct draw_test *f, uint32_t kernel)
{
    uint64_t data = UINT64_C(1) << 32;
    struct ws_op op = {.kind = WS_OPK_LAUNCH,
                       .space = f->space,
                       .done = on_done,
                       .owner = f,
                       .launch = {.instance = f->instance,
                                  .kernel = kernel,
                                  .grid = {BLOCKS, 1, 1},
                                  .block = {THREADS, 1, 1},
                                  .params = &data,
                                  .param_bytes = sizeof(data),
                                  .sms = f->sms}};
    op.ready_ns = ws_device_now_ns(f->device);
    f->done = false;
    ws_device_submit(f->device, &op);
    pthread_mutex_lock(&f->lock);
    while (!f->done)
        pthread_cond_wait(&f->cond, &f->lock);
    pthread_mutex_unlock(&f->lock);
    assert_int_equal(op.error, WS_DEV_OK);
    return op;
}

static double seconds(const struct ws_op *op)
{
    return (double)(op->end_ns - op->start_ns) / 1e9;
}
static double watts(const struct ws_op *op)
{
    return (double)op->energy_uj / 1e6 / seconds(op);
}

static double model_w(const struct draw_test *f, struct ws_events e, const struct ws_op *op)
{
    e.active = 1;
    return ws_event_power_w(&f->fitted.power, &f->fitted.gpu, &e, &f->fitted.gpu.reference,
                            seconds(op));
}

static struct ws_events fma_events(void)
{
    double threads = (double)BLOCKS * THREADS;
    return (struct ws_events){.warp_instructions = threads / 32 * (4 * FMAS + 1), /* and ret */
                              .fp32_ops = threads * FMAS,
                              .int_ops = threads * 2 * FMAS};
}
static struct ws_events copy_events(void)
{
    double threads = (double)BLOCKS * THREADS, sectors = 2.0 * BYTES / 32;
    /* before the loop two special registers and three operations, in it six instructions */
    return (struct ws_events){.warp_instructions = threads / 32 * (6 * LOADS + 6),
                              .int_ops = threads * (3 * LOADS + 3),
                              .load_requests = threads / 32 * LOADS,
                              .l1_sectors = sectors,
                              .l2_sectors = sectors,
                              .dram_sectors = sectors};
}

static void test_power_is_the_models(void **state)
{
    struct draw_test *f = *state;
    assert_true(f->fitted.has_power);
    struct ws_op fma = launch(f, 0), copy = launch(f, 1);
    double fma_w = model_w(f, fma_events(), &fma), copy_w = model_w(f, copy_events(), &copy);
    assert_true(fabs(watts(&fma) / fma_w - 1) < 0.01);
    assert_true(fabs(watts(&copy) / copy_w - 1) < 0.06); /* its DRAM sectors are estimated */
    /* of about the same time, and what differs is what the events say */
    assert_true(fabs(seconds(&fma) / seconds(&copy) - 1) < 0.15);
    assert_true(watts(&fma) - watts(&copy) > 20);
    assert_true(fabs((watts(&fma) - watts(&copy)) / (fma_w - copy_w) - 1) < 0.2);
}

/* As models/event_time.h has it, less the launch, for the counts known by hand. */
static double model_s(const struct draw_test *f, struct ws_events e, double core)
{
    struct ws_event_clocks clocks = f->fitted.gpu.reference;
    clocks.core_mhz *= core;
    e.blocks = BLOCKS;
    e.warps_per_sm = (double)BLOCKS / f->spec.n_sms * THREADS / 32;
    e.l2_share = e.dram_share = 1;
    return ws_event_time_s(&f->fitted.time, &f->fitted.gpu, &e, &clocks) -
           f->fitted.time.v[WS_EVENT_TIME_LAUNCH] / 1e6;
}

static void test_time_is_the_models(void **state)
{
    struct draw_test *f = *state;
    struct ws_op fma = launch(f, 0), copy = launch(f, 1), half;
    assert_true(fabs(seconds(&fma) / model_s(f, fma_events(), 1) - 1) < 0.03);
    assert_true(fabs(seconds(&copy) / model_s(f, copy_events(), 1) - 1) < 0.1);
    /* on half of the SMs: twice as long for what SMs do, not for what the memory does */
    f->sms = (struct ws_sm_set){.n = f->spec.n_sms / 2, .bits = {0xffffffffff}};
    half = launch(f, 0);
    assert_true(fabs(seconds(&half) / seconds(&fma) - 2) < 0.05);
    half = launch(f, 1);
    assert_true(fabs(seconds(&half) / seconds(&copy) - 1) < 0.2);
}

static void test_idle_and_clocks(void **state)
{
    struct draw_test *f = *state;
    const double *w = f->fitted.power.w;
    double idle = w[WS_EVENT_POWER_STATIC] + w[WS_EVENT_POWER_MEMORY_CLOCK];
    struct ws_gpu_spec spec = f->spec;
    ws_power_at(&f->fitted, &(struct ws_power_clocks){1, 1, 1}, &spec);
    assert_true(fabs(spec.static_mw - 1e3 * (idle + w[WS_EVENT_POWER_CLOCK])) < 2);
    /* half the clock at 0.8 of the voltage */
    ws_power_at(&f->fitted, &(struct ws_power_clocks){0.5, 1, 0.8}, &spec);
    assert_true(fabs(spec.static_mw - 1e3 * (idle + 0.32 * w[WS_EVENT_POWER_CLOCK])) < 2);
    struct ws_op fast = launch(f, 0), slow;
    struct ws_device_clocks clocks = {.core = 0.5, .memory = 1, .volt = 0.8}, got;
    assert_int_equal(ws_device_set_clocks(f->device, &clocks, &got), 0);
    slow = launch(f, 0);
    assert_true(fabs(seconds(&slow) / seconds(&fast) - 2) < 0.1);
    /* What the memory does not wait for at full clock, the slices of L2 pass on more slowly now. */
    struct ws_op copy = launch(f, 1);
    assert_true(model_s(f, copy_events(), 0.5) / model_s(f, copy_events(), 1) > 1.2);
    assert_true(fabs(seconds(&copy) / model_s(f, copy_events(), 0.5) - 1) < 0.1);
    double above = watts(&fast) - idle;
    assert_true(fabs((watts(&slow) - idle) / above - 0.32) < 0.02);
}

/* Without fitted numbers the catalog's three powers are all. */
static void test_not_fitted(void **state)
{
    struct draw_test *f = *state;
    const struct ws_gpu_spec *spec = ws_catalog_find(&f->catalog, "rtx2070s");
    struct ws_fitted fitted;
    ws_fitted_of(spec, &fitted);
    struct ws_draw draw = {.fitted = &fitted, .clocks = {1, 1, 1}, .events = fma_events()};
    struct ws_gpu_spec drawn = *spec;
    ws_power_at(&fitted, &draw.clocks, &drawn);
    struct ws_issue issue;
    assert_int_equal(ws_draw_mw(&draw, 1000000, spec->n_sms, &issue), 0);
    assert_true(issue.mw_per_sm == 0);
    assert_memory_equal(&drawn, spec, sizeof(drawn));
}

/* A board whose limit is below what the launch would draw lowers its clock: the launch takes
 * longer, as the model has it, and draws what the limit allows. */
static void test_limit_lowers_the_clock(void **state)
{
    struct draw_test *f = *state;
    struct ws_op free_op = launch(f, 0), op;
    struct ws_device *unlimited = f->device;
    struct ws_dmodule *module = f->module;
    struct ws_dinstance *instance = f->instance;
    struct ws_diags diags = WS_DIAGS_NULL;
    struct ws_device_options o = {.clock = WS_CLOCK_FUNCTIONAL};
    struct ws_gpu_spec spec = f->spec;
    uint64_t none;
    spec.limit_mw = (uint32_t)(800 * watts(&free_op));
    assert_int_equal(ws_device_open_soft(&f->device, &spec, 1, &o, &diags), 0);
    assert_int_equal(ws_device_module_load(f->device, f->ptx, &f->module, &diags), 0);
    assert_int_equal(ws_device_instance_new(f->device, f->module, f->space, &none, &f->instance),
                     0);
    op = launch(f, 0);
    assert_true(fabs(watts(&op) / watts(&free_op) - 0.8) < 0.02);
    double slower = seconds(&op) / seconds(&free_op);
    assert_true(slower > 1.05);
    struct ws_fitted fitted;
    ws_fitted_of(&spec, &fitted);
    struct ws_events e = fma_events();
    struct ws_event_run run;
    e.active = 1;
    e.blocks = BLOCKS;
    e.warps_per_sm = (double)BLOCKS / f->spec.n_sms * THREADS / 32;
    fitted.time.v[WS_EVENT_TIME_LAUNCH] = 0;
    ws_event_run(&fitted.power, &fitted.time, &fitted.gpu, &e, &fitted.gpu.reference, 1, &run);
    double alone = ws_event_time_s(&fitted.time, &fitted.gpu, &e, &fitted.gpu.reference);
    assert_true(run.power_w <= spec.limit_mw / 1e3 * (1 + 1e-9));
    assert_true(fabs(run.time_s / alone / slower - 1) < 0.05);
    /* On some of the SMs it draws less, and keeps its clock. */
    f->sms = (struct ws_sm_set){.n = f->spec.n_sms / 2, .bits = {0xffffffffff}};
    struct ws_op half = launch(f, 0);
    assert_true(watts(&half) < spec.limit_mw / 1e3);
    assert_true(fabs(seconds(&half) / seconds(&free_op) - 2) < 0.05);
    ws_device_instance_free(f->device, f->instance);
    ws_device_module_unload(f->device, f->module);
    ws_device_close(f->device);
    f->device = unlimited;
    f->module = module;
    f->instance = instance;
}

/* ---- the books ---- */

/* Two kernels beside each other, of which one does something: it pays that alone. */
static void test_timing_charges_own(void **state)
{
    struct draw_test *f = *state;
    struct ws_timing *t;
    struct ws_timed a, b;
    struct ws_timing_totals sum;
    struct ws_gpu_spec spec = f->spec;
    struct ws_draw draw = {.fitted = &f->fitted, .clocks = {1, 1, 1}, .events = fma_events()};
    struct ws_cost cost[2] = {{.latency_ns = 1e6, .issue_ns = 1},
                              {.latency_ns = 1e6, .issue_ns = 1}};
    ws_power_at(&f->fitted, &draw.clocks, &spec);
    assert_int_equal(ws_timing_new(&t, &spec), 0);
    struct ws_timing_kernel k = {.owner = 1,
                                 .need = {.warps = 1},
                                 .blocks_per_sm = 1,
                                 .n_blocks = 2,
                                 .blocks = cost,
                                 .dram_share = 1};
    ws_timing_kernel(t, &k, &a);
    k.owner = 2;
    k.draw = &draw;
    ws_timing_kernel(t, &k, &b);
    ws_timing_totals(t, &sum);
    uint64_t ns = b.end_ns - b.start_ns;
    assert_int_equal(a.end_ns - a.start_ns, ns);
    struct ws_issue issue;
    double own = ws_draw_mw(&draw, ns, 2, &issue) * (double)ns / 1e6;
    own += ws_issue_mw(&issue, 2) * (double)ns / 1e6;
    assert_true(own > 100);
    double shared = (double)ws_power_mw(&spec, 4) * (double)ns / 1e6;
    /* the first was charged as if alone; the second makes up for it */
    assert_true(fabs((double)sum.energy_uj - shared - own) < 3);
    assert_true(fabs((double)b.energy_uj - own - shared / 2) < 3);
    ws_timing_free(t);
}

/* What @n launches like fma(), beside each other on all SMs for @ns, draw in W: each kind of event
 * counts @n times, and so do the warp instructions of a clock, of whose sum the share of clocks
 * with an instruction follows: f V^2 a (1 - exp(-2 i / a)), here with f = V = a = 1. */
static double beside_w(const struct draw_test *f, int n, uint64_t ns)
{
    const double *w = f->fitted.power.w;
    struct ws_events e = fma_events();
    double s = (double)ns / 1e9;
    double clocks = s * f->fitted.gpu.reference.core_mhz * 1e6 * f->spec.n_sms;
    double events = e.warp_instructions * w[WS_EVENT_POWER_ISSUE] +
                    e.fp32_ops * w[WS_EVENT_POWER_FP32] + e.int_ops * w[WS_EVENT_POWER_INT];
    return w[WS_EVENT_POWER_STATIC] + w[WS_EVENT_POWER_MEMORY_CLOCK] + w[WS_EVENT_POWER_CLOCK] +
           w[WS_EVENT_POWER_ACTIVE] +
           w[WS_EVENT_POWER_BUSY] * (1 - exp(-2 * n * e.warp_instructions / clocks)) +
           n * events * 1e-9 / s;
}

enum { MIX = 3, MIX_NS = 120000 };

/* Launches beside each other draw what the model says for the sum of what they do, whether the
 * clock runs or not; like launches pay like shares. */
static void test_mixes_issue_together(void **state)
{
    struct draw_test *f = *state;
    struct ws_draw draw = {.fitted = &f->fitted, .clocks = {1, 1, 1}, .events = fma_events()};
    struct ws_gpu_spec spec = f->spec;
    struct ws_meter_load loads[MIX];
    struct ws_meter *m;
    struct ws_meter_totals sum;
    uint64_t alone, paid = 0;
    ws_power_at(&f->fitted, &draw.clocks, &spec);
    assert_int_equal(ws_meter_new(&m, &spec, &(struct ws_device_options){0}, 0), 0);
    for (int i = 0; i < MIX; i++) {
        loads[i] = (struct ws_meter_load){
            .owner = i + 1, .end_ns = MIX_NS, .dynamic_mw_per_sm = spec.dynamic_mw_per_sm};
        for (uint32_t sm = 0; sm < spec.n_sms; sm++)
            ws_sm_set_add(&loads[i].sms, sm);
        loads[i].own_mw = (int32_t)ws_draw_mw(&draw, MIX_NS, spec.n_sms, &loads[i].issue);
        ws_meter_begin(m, 0, &loads[i]);
        ws_meter_totals(m, 0, &sum);
        assert_true(fabs(sum.power_mw / 1e3 / beside_w(f, i + 1, MIX_NS) - 1) < 1e-3);
    }
    for (int i = 0; i < MIX; i++) {
        uint64_t uj = ws_meter_end(m, &loads[i], &alone);
        assert_true(fabs((double)uj * MIX / 1e6 / (beside_w(f, MIX, MIX_NS) * MIX_NS / 1e9) - 1) <
                    1e-3);
        paid += uj;
    }
    ws_meter_totals(m, MIX_NS, &sum);
    assert_int_equal(sum.energy_uj, paid);
    ws_meter_free(m);

    struct ws_timing *t;
    struct ws_timing_totals totals;
    struct ws_timed timed;
    struct ws_cost cost[WS_SM_MAX];
    for (int i = 0; i < WS_SM_MAX; i++)
        cost[i] = (struct ws_cost){.latency_ns = MIX_NS, .issue_ns = 1};
    assert_int_equal(ws_timing_new(&t, &spec), 0);
    struct ws_timing_kernel k = {.need = {.warps = 1},
                                 .blocks_per_sm = 1,
                                 .n_blocks = spec.n_sms,
                                 .blocks = cost,
                                 .dram_share = 1,
                                 .draw = &draw};
    for (int i = 0; i < MIX; i++) {
        k.owner = (uint64_t)i + 1;
        ws_timing_kernel(t, &k, &timed);
        ws_timing_totals(t, &totals);
        double joules = beside_w(f, i + 1, MIX_NS) * MIX_NS / 1e9;
        assert_true(fabs((double)totals.energy_uj / 1e6 / joules - 1) < 1e-3);
    }
    ws_timing_free(t);
}

/* The pace at which a launch like fma() draws @less_w less: it takes as many clocks, so that all it
 * draws, and the clock and the SMs with a warp, go with the clock and the square of the voltage. */
static double slower(const struct draw_test *f, double less_w)
{
    const double *w = f->fitted.power.w;
    double all = beside_w(f, 1, MIX_NS) - w[WS_EVENT_POWER_STATIC] - w[WS_EVENT_POWER_MEMORY_CLOCK];
    double low = 0, high = 1;
    for (int i = 0; i < 40; i++) {
        double x = (low + high) / 2,
               v = ws_event_voltage(f->fitted.power.knee, f->fitted.power.slope, x);
        *(x * v * v > 1 - less_w / all ? &high : &low) = x;
    }
    return low;
}

/* A board that can power two of three launches beside each other: it draws its limit as long as
 * they all run, the last one is so much slower and pays so much less, and what they are
 * charged is what the board took; whether the clock runs or not. */
static void test_limit_holds_for_the_sum(void **state)
{
    struct draw_test *f = *state;
    struct ws_gpu_spec spec = f->spec;
    double limit_w = beside_w(f, 2, MIX_NS) + 0.01;
    double pace = slower(f, beside_w(f, 3, MIX_NS) - limit_w);
    uint64_t end_ns = (uint64_t)(MIX_NS * (2 - pace)); /* what is left after the others: at full */
    double joules = (limit_w * MIX_NS + beside_w(f, 1, MIX_NS) * (1 - pace) * MIX_NS) / 1e9;
    struct ws_draw draw = {.fitted = &f->fitted, .clocks = {1, 1, 1}, .events = fma_events()};
    struct ws_cost cost[WS_SM_MAX];
    assert_in_range(100 * pace, 40, 96);
    for (int i = 0; i < WS_SM_MAX; i++)
        cost[i] = (struct ws_cost){.latency_ns = MIX_NS, .issue_ns = 1};
    spec.launch_overhead_ns = 0;
    spec.limit_mw = (uint32_t)lround(1e3 * limit_w);
    ws_power_at(&f->fitted, &draw.clocks, &spec);
    struct ws_timing_kernel k = {.need = {.warps = 1},
                                 .blocks_per_sm = 1,
                                 .n_blocks = spec.n_sms,
                                 .blocks = cost,
                                 .dram_share = 1,
                                 .draw = &draw};
    struct ws_timing *t;
    struct ws_timing_totals totals;
    struct ws_timed timed;
    uint64_t paid = 0;
    assert_int_equal(ws_timing_new(&t, &spec), 0);
    for (int i = 0; i < MIX; i++) {
        k.owner = (uint64_t)i + 1;
        ws_timing_kernel(t, &k, &timed);
        paid += timed.energy_uj;
        assert_in_range(timed.end_ns, i < 2 ? MIX_NS : end_ns - end_ns / 300,
                        i < 2 ? MIX_NS : end_ns + end_ns / 300);
    }
    ws_timing_totals(t, &totals);
    assert_true(fabs((double)totals.energy_uj / 1e6 / joules - 1) < 3e-3);
    assert_in_range((int64_t)paid - totals.stored_uj - (int64_t)totals.energy_uj + 3, 0, 6);
    ws_timing_free(t);

    struct ws_meter *m;
    struct ws_meter_load loads[MIX];
    struct ws_meter_totals sum;
    struct ws_reserved r;
    uint64_t alone, uj[MIX];
    assert_int_equal(ws_timing_new(&t, &spec), 0);
    assert_int_equal(ws_meter_new(&m, &spec, &(struct ws_device_options){0}, 0), 0);
    for (int i = 0; i < MIX; i++) {
        assert_int_equal(ws_timing_reserve_kernel(t, &k, &r), 0);
        loads[i] = (struct ws_meter_load){.owner = i + 1,
                                          .start_ns = r.start_ns,
                                          .end_ns = r.end_ns,
                                          .sms = r.sms,
                                          .dynamic_mw_per_sm = spec.dynamic_mw_per_sm,
                                          .own_mw = (int32_t)r.own_mw,
                                          .issue = r.issue};
        ws_meter_begin(m, 0, &loads[i]);
    }
    assert_int_equal(r.end_ns, timed.end_ns);
    ws_meter_totals(m, 0, &sum);
    assert_int_equal(sum.power_mw, spec.limit_mw);
    paid = 0;
    for (int i = 0; i < MIX; i++)
        paid += uj[i] = ws_meter_end(m, &loads[i], &alone);
    ws_meter_totals(m, r.end_ns, &sum);
    assert_int_equal(sum.energy_uj, paid);
    assert_in_range(sum.energy_uj - totals.energy_uj + 3, 0, 6);
    /* The last one pays for all it did, and its part of what all draw, for longer. */
    assert_in_range(uj[0], uj[1] - 1, uj[1] + 1);
    assert_true(uj[2] < uj[0] + (uint64_t)(beside_w(f, 1, MIX_NS) * (1 - pace) * MIX_NS / 1e3));
    ws_meter_free(m);
    ws_timing_free(t);
}

static void test_meter_charges_own(void **state)
{
    struct draw_test *f = *state;
    struct ws_meter *m;
    struct ws_meter_totals sum;
    struct ws_gpu_spec spec = f->spec;
    ws_power_at(&f->fitted, &(struct ws_power_clocks){1, 1, 1}, &spec);
    assert_int_equal(ws_meter_new(&m, &spec, &(struct ws_device_options){0}, 0), 0);
    struct ws_meter_load a = {.owner = 1,
                              .start_ns = 0,
                              .end_ns = 2000000,
                              .dynamic_mw_per_sm = 100,
                              .sms = {.n = 1, .bits = {1}},
                              .own_mw = 5000};
    struct ws_meter_load b = {.owner = 2,
                              .start_ns = 1000000,
                              .end_ns = 3000000,
                              .dynamic_mw_per_sm = 100,
                              .sms = {.n = 1, .bits = {1}}};
    ws_meter_begin(m, 0, &a);
    ws_meter_begin(m, 0, &b);
    uint64_t alone[2], a_uj = ws_meter_end(m, &a, &alone[0]), b_uj = ws_meter_end(m, &b, &alone[1]);
    assert_true(!alone[0] && !alone[1]);
    ws_meter_totals(m, 3000000, &sum);
    uint64_t shared = spec.static_mw + 100; /* both are on one SM */
    assert_int_equal(sum.energy_uj, 3 * shared + 2 * 5000);
    assert_int_equal(sum.energy_uj, a_uj + b_uj);
    assert_in_range(b_uj, shared + shared / 2, shared + shared / 2 + 1);
    ws_meter_free(m);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)
    const struct CMUnitTest tests[] = {T(power_is_the_models),  T(time_is_the_models),
                                       T(idle_and_clocks),      T(limit_lowers_the_clock),
                                       T(not_fitted),           T(timing_charges_own),
                                       T(mixes_issue_together), T(limit_holds_for_the_sum),
                                       T(meter_charges_own)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
