// SPDX-License-Identifier: Apache-2.0
/* The software GPU: device.h on top of the interpreter (exec/exec.h), the workers (sched/), the
 * timeline (timeline/) and plain memory (mem.c).
 *
 * Completion. op->done may submit the next operation, which may complete at once and submit
 * another, and so on. So a thread that is inside op->done only queues what is submitted, and the
 * outermost call empties the queue. The stack stays flat, however long the chain is. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "device/catalog.h"
#include "device/soft/inspect/inspect.h"
#include "device/soft/jit/jit.h"
#include "device/soft/soft_private.h"
#include "device/soft/timeline/events.h"

static struct ws_soft *soft_of(struct ws_device *d)
{
    return WS_CONTAINER_OF(d, struct ws_soft, base);
}

/* ---- operations ---- */

void ws_soft_fail(struct ws_op *op, enum ws_dev_error e, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(op->text, sizeof(op->text), fmt, ap);
    va_end(ap);
    op->error = e;
}

static _Thread_local struct {
    bool inside; /* op->done is running on this thread */
    struct ws_op *first, **last;
} pending;

static void start(struct ws_soft *d, struct ws_op *op)
{
    if (d->vclock && !ws_flight_begin(d, op)) {
        ws_soft_fail(op, WS_DEV_E_NO_MEMORY, "the host has no memory for an operation");
        ws_soft_done(d, op);
        return;
    }
    if (op->kind == WS_OPK_LAUNCH)
        ws_soft_launch(d, op);
    else
        ws_soft_copy(d, op);
}

void ws_soft_done(struct ws_soft *d, struct ws_op *op)
{
    if (d->vclock && op->priv)
        ws_flight_drop(op);
    atomic_fetch_sub_explicit(&d->n_running, 1, memory_order_relaxed);
    if (op->n_thread_insns)
        atomic_fetch_add_explicit(&d->n_thread_insns, op->n_thread_insns, memory_order_relaxed);
    if (pending.inside) {
        op->done(op);
        return;
    }
    pending.inside = true;
    pending.first = NULL;
    pending.last = &pending.first;
    op->done(op);
    while (pending.first) {
        struct ws_op *next = pending.first;
        pending.first = next->next;
        if (!pending.first)
            pending.last = &pending.first;
        next->next = NULL;
        start(next->queued, next);
    }
    pending.inside = false;
}

static void soft_submit(struct ws_device *dev, struct ws_op *op)
{
    struct ws_soft *d = soft_of(dev);
    atomic_fetch_add_explicit(&d->n_running, 1, memory_order_relaxed);
    if (!pending.inside) {
        start(d, op);
        return;
    }
    op->queued = d;
    *pending.last = op;
    pending.last = &op->next;
}

/* Only says so: how much a client has to cancel is up to the client. */
static void soft_cancel(struct ws_device *dev, struct ws_space *space)
{
    struct ws_soft *d = soft_of(dev);
    if (d->vclock)
        ws_flight_cancel(d, space);
    pthread_mutex_lock(&d->sched->lock);
    ws_launch_cancel_parts_locked(d, space);
    for (struct ws_tenant *t = d->tenants; t; t = t->next)
        if (t->space == space)
            ws_tenant_cancel_locked(d->sched, t);
    pthread_mutex_unlock(&d->sched->lock);
}

static int soft_preempt(struct ws_device *dev, struct ws_op *op)
{
    struct ws_soft *d = soft_of(dev);
    if (op->launch.flags & WS_LAUNCH_COOPERATIVE)
        return -ENOTSUP;
    if (d->vclock) /* the time first: it is now */
        ws_flight_preempt(d, op);
    pthread_mutex_lock(&d->sched->lock);
    ws_launch_preempt_locked(d->sched, op);
    pthread_mutex_unlock(&d->sched->lock);
    return 0;
}

static int soft_urge(struct ws_device *dev, struct ws_op *op, uint64_t limit_ns)
{
    struct ws_soft *d = soft_of(dev);
    pthread_mutex_lock(&d->sched->lock);
    bool runs = ws_launch_urge_locked(d->sched, op, limit_ns);
    pthread_mutex_unlock(&d->sched->lock);
    return runs ? 0 : WS_DEVICE_EXECUTED;
}

/* ---- clocks, power, alarms ---- */

#define CLOCK_MIN 0.3
#define CLOCK_MAX 1.5

static bool clock_ok(double x)
{
    return x >= CLOCK_MIN && x <= CLOCK_MAX;
}

static int soft_set_clocks(struct ws_device *dev, const struct ws_device_clocks *want,
                           struct ws_device_clocks *ret)
{
    struct ws_soft *d = soft_of(dev);
    if (!clock_ok(want->volt) || !clock_ok(want->core) || !clock_ok(want->memory))
        return ws_raise(-EINVAL);
    struct ws_gpu_spec spec = dev->spec;
    spec.core_mhz = (uint32_t)WS_MAX(lround(spec.core_mhz * want->core), 1);
    spec.memory_bytes_per_s = (uint64_t)((double)spec.memory_bytes_per_s * want->memory);
    spec.memory_latency_ns = (uint32_t)lround(spec.memory_latency_ns / want->memory);
    struct ws_power_clocks clocks = {want->core, want->memory, want->volt};
    ws_power_at(&d->fitted, &clocks, &spec);
    pthread_mutex_lock(&d->clocks_lock);
    d->clocks = clocks;
    pthread_mutex_unlock(&d->clocks_lock);
    ws_timing_set_spec(d->timing, &spec);
    if (d->vclock)
        ws_meter_set_static(d->meter, ws_vclock_now_ns(d->vclock), spec.static_mw);
    atomic_store_explicit(&d->clocks_changed, true, memory_order_release);
    *ret = *want;
    return 0;
}

void ws_soft_price(struct ws_soft *d, const struct ws_gpu_spec *spec, const struct ws_op *op,
                   const struct ws_fit *fit, const struct ws_unit *units, uint32_t n_units,
                   struct ws_cost *ret_costs, struct ws_priced *ret)
{
    const struct ws_fitted *f = &d->fitted;
    *ret = (struct ws_priced){.dram_share = 1, .draw = {.fitted = f}};
    pthread_mutex_lock(&d->clocks_lock);
    ret->draw.clocks = d->clocks;
    pthread_mutex_unlock(&d->clocks_lock);
    if (f->has_power)
        ws_units_events(&d->base.spec, &fit->need, fit->blocks_per_sm, units, n_units,
                        &ret->draw.events);
    if (d->options.ret_events)
        *d->options.ret_events = ret->draw.events;
    if (f->has_power && f->has_time) {
        ws_units_fitted_cost(f, &ret->draw.clocks, &d->base.spec, &fit->need, fit->blocks_per_sm,
                             units, n_units, ret_costs);
        return;
    }
    double bytes = ws_units_cost(spec, fit->need.warps, units, n_units, ret_costs);
    ret->dram_share = ws_cost_dram_share(spec, bytes, (double)ws_space_device_bytes(op->space));
}

static int soft_set_power(struct ws_device *dev, bool on)
{
    struct ws_soft *d = soft_of(dev);
    if (!on && d->n_running)
        return -EBUSY;
    if (!d->vclock) /* idle time is not counted */
        return 0;
    pthread_mutex_lock(&d->flights_lock);
    if (d->on != on)
        ws_meter_set_on(d->meter, ws_vclock_now_ns(d->vclock), on);
    d->on = on;
    pthread_mutex_unlock(&d->flights_lock);
    return 0;
}

struct bell {
    struct ws_vevent event;
    struct ws_alarm *alarm;
};

static void bell_ring(struct ws_vevent *e)
{
    struct bell *b = WS_CONTAINER_OF(e, struct bell, event);
    struct ws_alarm *a = b->alarm;
    free(b);
    a->ring(a);
}

static int soft_alarm(struct ws_device *dev, struct ws_alarm *a)
{
    struct ws_soft *d = soft_of(dev);
    if (!d->vclock) {
        ws_timing_touch(d->timing, a->at_ns);
        a->ring(a);
        return 0;
    }
    if (a->at_ns <= ws_vclock_now_ns(d->vclock)) {
        a->ring(a);
        return 0;
    }
    struct bell *b = ws_alloc(sizeof(*b));
    if (!b)
        return ws_raise(-ENOMEM);
    b->alarm = a;
    b->event = (struct ws_vevent){
        .at_ns = a->at_ns, .seq = ws_vclock_seq(d->vclock), .fire = bell_ring, .owner = d};
    (void)ws_vclock_add(d->vclock, &b->event, NULL);
    return 0;
}

static uint64_t soft_now_ns(struct ws_device *dev)
{
    struct ws_soft *d = soft_of(dev);
    return d->vclock ? ws_vclock_now_ns(d->vclock) : ws_timing_now_ns(d->timing);
}

static void soft_telemetry(struct ws_device *dev, struct ws_device_telemetry *ret)
{
    struct ws_soft *d = soft_of(dev);
    struct ws_timing_totals t;
    ws_timing_totals(d->timing, &t);
    *ret = (struct ws_device_telemetry){
        .now_ns = t.now_ns,
        .busy_ns = t.busy_ns,
        .sm_busy_ns = t.sm_busy_ns,
        .energy_uj = t.energy_uj,
        .power_mw = t.power_mw,
        .memory_used_bytes = ws_mem_used_bytes(d->mem),
        .n_kernels = d->n_kernels,
        .n_copies = d->n_copies,
        .copied_bytes = d->copied_bytes,
        .n_thread_insns = d->n_thread_insns,
        .n_running = d->n_running,
    };
    if (!d->vclock)
        return;
    struct ws_meter_totals m;
    ret->now_ns = ws_vclock_now_ns(d->vclock);
    ws_meter_totals(d->meter, ret->now_ns, &m);
    ret->busy_ns = m.busy_ns;
    ret->sm_busy_ns = m.sm_busy_ns;
    ret->energy_uj = m.energy_uj;
    ret->idle_energy_uj = m.idle_energy_uj;
    ret->power_mw = m.power_mw;
    ret->stalled_host_ns = ws_vclock_stalled_host_ns(d->vclock);
    pthread_mutex_lock(&d->flights_lock);
    ret->n_overruns = d->n_overruns;
    pthread_mutex_unlock(&d->flights_lock);
}

/* ---- memory ---- */

static void inspected_release(void *mem, uint8_t *host, uint64_t bytes)
{
    ws_inspect_memory_free(host);
    ws_mem_release(mem, host, bytes);
}

static int soft_mem_alloc(struct ws_device *dev, uint64_t bytes, struct ws_backing *ret)
{
    struct ws_soft *d = soft_of(dev);
    bool unwritten = ws_inspect_has(d->inspect, WS_INSPECT_UNWRITTEN);
    *ret = (struct ws_backing){.release = unwritten ? inspected_release : ws_mem_release,
                               .arg = d->mem};
    int r = ws_mem_alloc(d->mem, bytes, &ret->host);
    if (!r && unwritten)
        ws_inspect_memory_new(ret->host, bytes);
    return r;
}

/* ---- modules ---- */

static void soft_module_unload(struct ws_dmodule *m)
{
    if (m->code)
        ws_code_free(m->code);
    free(m->kernels);
    free(m);
}

static int soft_module_load(struct ws_device *dev, const struct ws_ptx_module *ptx,
                            struct ws_dmodule **ret, struct ws_diags *diags)
{
    struct ws_dmodule *m = ws_alloc(sizeof(*m));
    if (!m)
        return ws_raise(-ENOMEM);
    m->ptx = ptx;
    int r = ws_code_new(&m->code, ptx, dev->spec.hardware_cc, diags);
    if (!r && soft_of(dev)->inspect)
        r = ws_code_inspect(m->code);
    if (r) {
        soft_module_unload(m);
        return r;
    }
    m->info.kernels = ws_code_kernels(m->code, &m->info.n_kernels);
    m->info.later_bytes = ws_code_later_bytes(m->code);
    m->info.n_vars = ptx->n_vars;
    m->info.vars = ptx->vars;
    m->kernels = ws_alloc_array(WS_MAX(m->info.n_kernels, 1), sizeof(m->kernels[0]));
    if (!m->kernels) {
        soft_module_unload(m);
        return ws_raise(-ENOMEM);
    }
    *ret = m;
    return 0;
}

static bool var_in_memory(const struct ws_ptx_var *v)
{
    return v->size_bytes && (v->space == WS_SP_GLOBAL || v->space == WS_SP_CONST);
}

static int write_bytes(const struct ws_dinstance *inst, uint64_t va, const void *bytes, uint64_t n)
{
    const uint8_t *from = bytes;
    while (n) {
        uint8_t *host;
        uint64_t len;
        uint32_t flags;
        struct ws_device *device;
        if (!ws_space_resolve(inst->space, va, &host, &len, &flags, &device))
            return ws_raise(-EINVAL);
        len = WS_MIN(len, n);
        if (inst->inspect)
            ws_inspect_memory_written(host, len);
        if (from) {
            memcpy(host, from, len);
            from += len;
        } else {
            ws_mem_clear(host, len, device != NULL);
        }
        va += len;
        n -= len;
    }
    return 0;
}

/* Value of an address in an initialiser. Functions have the addresses by which the interpreter
 * calls them. */
static int init_sym_value(const struct ws_ptx_module *ptx, const uint64_t *var_va,
                          const struct ws_ptx_init_sym *s, uint64_t *ret)
{
    uint32_t i = (uint32_t)WS_PTX_SYM_INDEX(s->sym);
    if (s->sym < 0)
        return ws_raise(-EINVAL);
    if (WS_PTX_SYM_KIND(s->sym) == WS_PTX_SYM_FUNC && i < ptx->n_funcs)
        *ret = ws_exec_func_va(i) + (uint64_t)s->addend;
    else if (WS_PTX_SYM_KIND(s->sym) == WS_PTX_SYM_VAR && i < ptx->n_vars &&
             (var_va[i] || ptx->vars[i].link == WS_LINK_EXTERN))
        *ret = var_va[i] + (uint64_t)s->addend; /* near 0 if nobody defines it: a fault when used */
    else
        return ws_raise(-EINVAL);
    return 0;
}

static int var_init(const struct ws_dinstance *inst, uint32_t index)
{
    const struct ws_ptx_module *ptx = inst->module->ptx;
    const struct ws_ptx_var *v = &ptx->vars[index];
    if (!var_in_memory(v) || v->link == WS_LINK_EXTERN)
        return 0;
    if (!inst->var_va[index])
        return ws_raise(-EINVAL);
    /* The initial values may end before the variable does: the rest is zero. */
    int r = write_bytes(inst, inst->var_va[index], v->init, v->init_bytes);
    if (!r)
        r = write_bytes(inst, inst->var_va[index] + v->init_bytes, NULL,
                        v->size_bytes - v->init_bytes);
    for (uint32_t i = 0; !r && i < v->n_init_syms; i++) {
        const struct ws_ptx_init_sym *s = &v->init_syms[i];
        uint64_t value = 0;
        if (s->bytes > sizeof(value) || s->offset > v->size_bytes ||
            s->bytes > v->size_bytes - s->offset)
            return ws_raise(-EINVAL);
        r = init_sym_value(ptx, inst->var_va, s, &value);
        if (s->masked) /* one byte of the address */
            value >>= s->shift;
        if (!r)
            r = write_bytes(inst, inst->var_va[index] + s->offset, &value, s->bytes);
    }
    return r;
}

static void soft_instance_free(struct ws_dinstance *i)
{
    free(i->var_va);
    free(i);
}

static int soft_instance_new(struct ws_device *dev, struct ws_dmodule *m, struct ws_space *s,
                             const uint64_t *var_va, enum ws_instance_write write,
                             struct ws_dinstance **ret)
{
    struct ws_dinstance *i = ws_alloc(sizeof(*i));
    uint64_t *va = ws_alloc_array(WS_MAX(m->info.n_vars, 1), sizeof(*va));
    if (!i || !va) {
        free(i);
        free(va);
        return ws_raise(-ENOMEM);
    }
    *i = (struct ws_dinstance){m, s, va, soft_of(dev)->inspect};
    if (m->info.n_vars)
        memcpy(va, var_va, m->info.n_vars * sizeof(*va));
    unsigned epoch = ws_space_enter(s);
    int r = 0;
    for (uint32_t v = 0; write && !r && v < m->info.n_vars; v++)
        if (write == WS_WRITE_ALL || !m->info.vars[v].managed)
            r = var_init(i, v);
    ws_space_leave(s, epoch);
    if (r) {
        soft_instance_free(i);
        return r;
    }
    *ret = i;
    return 0;
}

static int soft_occupancy(struct ws_device *dev, const struct ws_dmodule *m, uint32_t kernel,
                          uint32_t block_threads, uint32_t shared_bytes, struct ws_occupancy *ret)
{
    const struct ws_kernel_info *k = &m->info.kernels[kernel];
    uint64_t shared = (uint64_t)shared_bytes + k->static_shared_bytes;
    struct ws_fit fit;
    if (block_threads > dev->spec.max_threads_per_block ||
        (k->max_threads_per_block && block_threads > k->max_threads_per_block)) {
        *ret = (struct ws_occupancy){.limit = "threads"};
        return 0;
    }
    if (shared > dev->spec.shared_bytes_per_block_optin) {
        *ret = (struct ws_occupancy){.limit = "shared"};
        return 0;
    }
    ws_occupancy_fit(&dev->spec, block_threads, k->n_regs, (uint32_t)shared, &fit);
    *ret = (struct ws_occupancy){
        .blocks_per_sm = fit.blocks_per_sm,
        .limit = fit.limit,
        .block_bytes = ws_code_block_bytes(m->code, kernel, block_threads, shared_bytes,
                                           dev->spec.cc_major * 10 + dev->spec.cc_minor,
                                           soft_of(dev)->options.local_bytes_per_thread_max),
    };
    return 0;
}

/* ---- opening and closing ---- */

static void soft_close(struct ws_device *dev)
{
    struct ws_soft *d = soft_of(dev);
    struct ws_vevent *e;
    while (d->vclock && (e = ws_vclock_take_any(d->vclock, d)))
        e->fire(e);
    ws_flight_quiesce(d);
    if (d->vclock)
        ws_vclock_leave(d->vclock);
    if (d->sched)
        ws_sched_leave(d->sched);
    while (d->free_tenants) {
        struct ws_tenant *next = d->free_tenants->next;
        free(d->free_tenants);
        d->free_tenants = next;
    }
    ws_mem_unref(d->mem);
    ws_inspect_leave(d->inspect);
    ws_timing_free(d->timing);
    ws_meter_free(d->meter);
    pthread_mutex_destroy(&d->flights_lock);
    pthread_mutex_destroy(&d->clocks_lock);
    pthread_cond_destroy(&d->left);
    free(d);
}

static const struct ws_device_ops soft_ops = {
    .name = "soft",
    .close = soft_close,
    .mem_alloc = soft_mem_alloc,
    .module_load = soft_module_load,
    .module_unload = soft_module_unload,
    .instance_new = soft_instance_new,
    .instance_free = soft_instance_free,
    .submit = soft_submit,
    .cancel = soft_cancel,
    .telemetry = soft_telemetry,
    .now_ns = soft_now_ns,
    .occupancy = soft_occupancy,
    .preempt = soft_preempt,
    .urge = soft_urge,
    .set_clocks = soft_set_clocks,
    .set_power = soft_set_power,
    .alarm = soft_alarm,
};

enum { SCALE_DEFAULT = 20, SCALE_MAX = 100000 };
#define METER_NOISE_MAX 0.2

int ws_device_open_soft(struct ws_device **ret, const struct ws_gpu_spec *spec, uint32_t index,
                        const struct ws_device_options *options, struct ws_diags *diags)
{
    if (ws_gpu_spec_check(spec, NULL, 0, diags))
        return ws_raise(-EINVAL);
    if (options->n_workers > 1024) {
        ws_diags_add(diags, NULL, 0, 0, "gpu %s: %u worker threads; use 0 (host cores) to 1024",
                     spec->name, options->n_workers);
        return ws_raise(-EINVAL);
    }
    double scale = options->scale != 0 ? options->scale : SCALE_DEFAULT;
    if (options->clock == WS_CLOCK_SCALED && !(scale >= 1 && scale <= SCALE_MAX)) {
        ws_diags_add(diags, NULL, 0, 0, "gpu %s: time scale %g; use 1 to %d", spec->name, scale,
                     SCALE_MAX);
        return ws_raise(-EINVAL);
    }
    bool reads = options->meter == WS_METER_NVML;
    if (reads && (options->clock != WS_CLOCK_SCALED || !options->meter_update_ns ||
                  !(options->meter_noise >= 0 && options->meter_noise <= METER_NOISE_MAX))) {
        ws_diags_add(
            diags, NULL, 0, 0,
            "gpu %s: meter = nvml needs clock = scaled, an interval, and noise of at most %g",
            spec->name, METER_NOISE_MAX);
        return ws_raise(-EINVAL);
    }
    struct ws_soft *d = ws_alloc(sizeof(*d));
    if (!d)
        return ws_raise(-ENOMEM);
    pthread_mutex_init(&d->flights_lock, NULL);
    pthread_cond_init(&d->left, NULL);
    pthread_mutex_init(&d->clocks_lock, NULL);
    d->clocks = (struct ws_power_clocks){1, 1, 1};
    ws_fitted_of(spec, &d->fitted);
    struct ws_gpu_spec drawn = *spec; /* what it draws beside launches */
    ws_power_at(&d->fitted, &d->clocks, &drawn);
    ws_list_init(&d->parted);
    ws_list_init(&d->flights);
    ws_list_init(&d->unpriced);
    d->on = true;
    d->base = (struct ws_device){
        .ops = &soft_ops,
        .spec = *spec,
        .index = index,
        .meter_update_ns = options->meter == WS_METER_NVML ? options->meter_update_ns : 0,
        .no_machine_code = "a software GPU runs PTX alone: build with PTX (nvcc -gencode "
                           "arch=compute_XX,code=compute_XX)"};
    d->options = *options;
    ws_jit_set_mode(options->compile);
    int r = ws_mem_new(&d->mem, spec->memory_bytes);
    if (!r)
        r = ws_timing_new(&d->timing, &drawn);
    if (!r)
        r = ws_sched_join(&d->sched, options->n_workers);
    if (!r && options->inspect)
        r = ws_inspect_join(&d->inspect, options->inspect);
    if (!r && options->clock == WS_CLOCK_SCALED)
        r = ws_meter_new(&d->meter, &drawn, options, index);
    if (!r && options->clock == WS_CLOCK_SCALED)
        r = ws_vclock_join(&d->vclock, scale, options->stall_host_ns);
    if (r) {
        soft_close(&d->base);
        return r;
    }
    *ret = &d->base;
    return 0;
}
