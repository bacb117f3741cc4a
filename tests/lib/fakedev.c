// SPDX-License-Identifier: Apache-2.0
#include "tests/lib/fakedev.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "device/cuda/cuda.h"
#include "device/progress.h"
#include "device/space.h"

struct ws_dmodule {
    struct ws_dmodule_info info;
    struct ws_kernel_info *kernels;
    struct fakedev *f;
};
struct ws_dinstance {
    struct fakedev *f;
};

static void release(void *arg, uint8_t *host, uint64_t bytes)
{
    struct fakedev *f = arg;
    f->used_bytes -= bytes;
    free(host);
}

static int fake_mem_alloc(struct ws_device *d, uint64_t bytes, struct ws_backing *ret)
{
    struct fakedev *f = WS_CONTAINER_OF(d, struct fakedev, base);
    if (bytes > d->spec.memory_bytes - f->used_bytes)
        return WS_DEV_E_NO_MEMORY;
    *ret = (struct ws_backing){ws_alloc(bytes), release, f};
    if (!ret->host)
        return -ENOMEM;
    f->used_bytes += bytes;
    return 0;
}

static int fake_module_load(struct ws_device *d, const struct ws_ptx_module *m,
                            struct ws_dmodule **ret, struct ws_diags *diags)
{
    struct ws_dmodule *o = ws_alloc(sizeof(*o));
    o->f = WS_CONTAINER_OF(d, struct fakedev, base);
    o->f->n_module_loads++;
    if (o->f->gate) {
        pthread_mutex_lock(o->f->gate);
        pthread_mutex_unlock(o->f->gate);
    }
    o->kernels = ws_alloc_array(m->n_funcs, sizeof(*o->kernels));
    for (uint32_t i = 0; i < m->n_funcs; i++)
        if (m->funcs[i].is_entry)
            o->kernels[o->info.n_kernels++] = (struct ws_kernel_info){
                .name = m->funcs[i].name,
                .n_params = m->funcs[i].n_params,
                .param_bytes = (uint32_t)m->funcs[i].param_bytes,
                .params = m->funcs[i].params,
            };
    o->info.kernels = o->kernels;
    o->info.vars = m->vars;
    o->info.n_vars = m->n_vars;
    o->f->n_modules++;
    *ret = o;
    return 0;
}

/* Instead of the software GPU's, which is not linked. */
static void fake_module_unload(struct ws_dmodule *m)
{
    m->f->n_modules--;
    free(m->kernels);
    free(m);
}

static int fake_instance_new(struct ws_device *d, struct ws_dmodule *m, struct ws_space *s,
                             const uint64_t *var_va, enum ws_instance_write write,
                             struct ws_dinstance **ret)
{
    (void)write;
    struct ws_dinstance *i = ws_alloc(sizeof(*i));
    i->f = WS_CONTAINER_OF(d, struct fakedev, base);
    i->f->n_instances++;
    *ret = i;
    return 0;
}

static void fake_instance_free(struct ws_dinstance *i)
{
    i->f->n_instances--;
    free(i);
}

static uint8_t *at(const struct ws_space *s, uint64_t va, uint64_t bytes)
{
    struct ws_mapping m;
    return ws_space_find(s, va, bytes, &m) ? m.host + (va - m.va) : NULL;
}

static enum ws_dev_error move(const struct ws_op *op)
{
    if (op->kind == WS_OPK_COPY) {
        uint64_t height = op->copy.height ? op->copy.height : 1;
        for (uint64_t i = 0; i < height * (op->copy.depth ? op->copy.depth : 1); i++) {
            uint64_t d = i / height * op->copy.dst.slice + i % height * op->copy.dst.row;
            uint64_t s = i / height * op->copy.src.slice + i % height * op->copy.src.row;
            void *dst = op->copy.dst_host ? (uint8_t *)op->copy.dst_host + d
                                          : at(op->space, op->copy.dst_va + d, op->copy.bytes);
            const void *src = op->copy.src_host
                                  ? (const uint8_t *)op->copy.src_host + s
                                  : at(op->space, op->copy.src_va + s, op->copy.bytes);
            if (!dst || !src)
                return WS_DEV_E_ILLEGAL_ADDRESS;
            memmove(dst, src, op->copy.bytes);
        }
    } else if (op->kind == WS_OPK_FILL) {
        for (uint64_t y = 0; y < op->fill.height; y++) {
            uint8_t *p =
                at(op->space, op->fill.va + y * op->fill.pitch_bytes, op->fill.width_bytes);
            if (!p)
                return WS_DEV_E_ILLEGAL_ADDRESS;
            for (uint64_t x = 0; x < op->fill.width_bytes; x++)
                p[x] = (uint8_t)(op->fill.value >> x % op->fill.value_bytes * 8);
        }
    }
    return WS_DEV_OK;
}

static void finish(struct fakedev *f, struct ws_op *op, uint64_t start_ns, uint64_t end_ns,
                   enum ws_dev_error e)
{
    if (op->kind == WS_OPK_LAUNCH && !op->preempted)
        op->launch.progress = ws_progress_free(op->launch.progress); /* the device takes it */
    op->error = e ? e : move(op);
    if (op->error)
        snprintf(op->text, sizeof(op->text), "fake: %s", ws_dev_error_name(op->error));
    op->start_ns = start_ns;
    op->end_ns = end_ns;
    f->now_ns = WS_MAX(f->now_ns, end_ns);
    op->done(op);
}

static void fake_submit(struct ws_device *d, struct ws_op *op)
{
    struct fakedev *f = WS_CONTAINER_OF(d, struct fakedev, base);
    f->n_submitted++;
    op->energy_uj = 1; /* a test may say another before it ends */
    if (f->inline_completion) {
        finish(f, op, op->ready_ns, op->ready_ns + 1000, WS_DEV_OK);
        return;
    }
    if (f->n_ops == FAKEDEV_MAX_OPS)
        abort();
    f->ops[f->n_ops++] = op;
}

static struct ws_op *take(struct fakedev *f, unsigned i)
{
    struct ws_op *op = f->ops[i];
    memmove(f->ops + i, f->ops + i + 1, (f->n_ops - i - 1) * sizeof(f->ops[0]));
    f->n_ops--;
    return op;
}

static void fake_cancel(struct ws_device *d, struct ws_space *s)
{
    struct fakedev *f = WS_CONTAINER_OF(d, struct fakedev, base);
    f->n_cancels++;
    for (unsigned i = 0; i < f->n_ops;)
        if (f->ops[i]->space == s)
            finish(f, take(f, i), 0, 0, WS_DEV_E_CANCELLED);
        else
            i++;
}

static void fake_telemetry(struct ws_device *d, struct ws_device_telemetry *ret)
{
    struct fakedev *f = WS_CONTAINER_OF(d, struct fakedev, base);
    ret->now_ns = f->now_ns;
    ret->energy_uj = f->energy_uj;
    ret->idle_energy_uj = f->idle_uj;
    ret->memory_used_bytes = f->used_bytes;
}

static int fake_occupancy(struct ws_device *d, const struct ws_dmodule *m, uint32_t kernel,
                          uint32_t block_threads, uint32_t shared_bytes, struct ws_occupancy *ret)
{
    *ret = (struct ws_occupancy){.blocks_per_sm = 2048 / block_threads, .limit = "threads"};
    return 0;
}

static void fake_close(struct ws_device *d)
{
}

struct fake_progress {
    struct ws_progress base;
    struct fakedev *f;
};

static void progress_free(struct ws_progress *p)
{
    struct fake_progress *fp = WS_CONTAINER_OF(p, struct fake_progress, base);
    fp->f->free_progresses--;
    free(fp);
}

static int fake_preempt(struct ws_device *d, struct ws_op *op)
{
    (void)op;
    WS_CONTAINER_OF(d, struct fakedev, base)->n_preempts++;
    return 0;
}

void fakedev_stop(struct fakedev *f, unsigned i, uint64_t start_ns, uint64_t end_ns, double part)
{
    struct ws_op *op = f->ops[i];
    struct fake_progress *p = ws_alloc(sizeof(*p));
    if (!p)
        abort();
    ws_progress_free(op->launch.progress);
    p->base.free = progress_free;
    p->base.part = part;
    p->f = f;
    f->free_progresses++;
    op->launch.progress = &p->base;
    op->preempted = true;
    fakedev_complete(f, i, start_ns, end_ns, WS_DEV_OK);
}

static int fake_alarm(struct ws_device *d, struct ws_alarm *a)
{
    struct fakedev *f = WS_CONTAINER_OF(d, struct fakedev, base);
    if (f->alarm)
        f->alarm->ring(f->alarm); /* one is enough for tests; an early ring does no harm */
    f->alarm = a;
    return 0;
}

void fakedev_pass(struct fakedev *f, uint64_t now_ns)
{
    struct ws_alarm *a = f->alarm;
    f->now_ns = now_ns;
    if (a && a->at_ns <= now_ns) {
        f->alarm = NULL;
        a->ring(a);
    }
}

static const struct ws_device_ops fake_ops = {
    .name = "fake",
    .preempt = fake_preempt,
    .alarm = fake_alarm,
    .close = fake_close,
    .mem_alloc = fake_mem_alloc,
    .module_load = fake_module_load,
    .module_unload = fake_module_unload,
    .instance_new = fake_instance_new,
    .instance_free = fake_instance_free,
    .submit = fake_submit,
    .cancel = fake_cancel,
    .telemetry = fake_telemetry,
    .occupancy = fake_occupancy,
};

static int far_map(struct ws_device *d, void *arg, struct ws_space *s, uint64_t va, uint64_t bytes,
                   uint64_t offset, uint32_t readers, uint32_t writers)
{
    return 0;
}

static void far_unmap(struct ws_device *d, void *arg, struct ws_space *s, uint64_t va,
                      uint64_t bytes)
{
}

void fakedev_set_far(struct fakedev *f)
{
    static struct ws_device_ops far_ops;
    far_ops = fake_ops;
    far_ops.map = far_map;
    far_ops.unmap = far_unmap;
    f->base.ops = &far_ops;
}

static const struct ws_cuda_capabilities *real_capabilities(const struct ws_device *d)
{
    return NULL;
}

static void real_uuid(const struct ws_device *d, uint8_t ret[16])
{
    memset(ret, 0, 16);
}

static bool real_charge(struct ws_device *d, uint64_t ns, uint64_t *ret_uj)
{
    return false;
}

static const char *real_lost(const struct ws_device *d)
{
    return NULL;
}

static int real_urge(struct ws_device *d, struct ws_op *op, uint64_t limit_ns)
{
    struct fakedev *f = WS_CONTAINER_OF(d, struct fakedev, base);
    f->urged = limit_ns ? op : NULL;
    f->urged_ns = limit_ns;
    return 0;
}

void fakedev_set_real(struct fakedev *f)
{
    static const struct ws_real_ops real = {real_capabilities, real_uuid, real_charge, real_lost};
    static struct ws_device_ops real_ops;
    real_ops = fake_ops;
    real_ops.real = &real;
    real_ops.urge = real_urge;
    f->base.ops = &real_ops;
}

void fakedev_init(struct fakedev *f, uint32_t index, const char *name, uint64_t memory_bytes)
{
    *f = (struct fakedev){.base.ops = &fake_ops,
                          .base.index = index,
                          .base.no_machine_code = "a fake runs nothing",
                          .now_ns = 1000000};
    snprintf(f->base.spec.name, sizeof(f->base.spec.name), "%s", name);
    snprintf(f->base.spec.product, sizeof(f->base.spec.product), "Fake %s", name);
    f->base.spec.cc_major = 7;
    f->base.spec.cc_minor = 5;
    f->base.spec.n_sms = 4;
    f->base.spec.core_mhz = 1000;
    f->base.spec.static_mw = 10000;
    f->base.spec.idle_mw_per_sm = 500;
    f->base.spec.dynamic_mw_per_sm = 2000;
    f->base.spec.memory_bytes = memory_bytes;
}

void fakedev_complete(struct fakedev *f, unsigned i, uint64_t start_ns, uint64_t end_ns,
                      enum ws_dev_error e)
{
    if (i >= f->n_ops)
        abort();
    finish(f, take(f, i), start_ns, end_ns, e);
}

void fakedev_complete_all(struct fakedev *f)
{
    while (f->n_ops)
        fakedev_complete(f, 0, f->ops[0]->ready_ns, f->ops[0]->ready_ns + 1000, WS_DEV_OK);
}
