// SPDX-License-Identifier: Apache-2.0
/* wattshare-gpu-worker: the process that has a GPU, for a daemon that would outlive its faults (device/worker/worker.h).
 *
 * It knows what the daemon told it by numbers that the daemon gives: spaces, memories, modules, instances, regions of host memory. One
 * thread takes submissions, one calls, one for each loader modules; ends are sent by the device's own threads. Once the context is lost
 * nothing more is taken; what was begun ends with its error, and then the process does. It ends without asking when the daemon does. */
#include <config.h>

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uthash.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "base/packet.h"
#include "device/space.h"
#include "device/worker/wire.h"
#include "ptx/images/cubin.h"

/* Something that a number stands for. */
struct thing {
    uint64_t id;
    union {
        struct ws_space *space;
        struct ws_memory *memory;
        struct ws_dinstance *instance;
        struct {
            struct ws_dmodule *code;
            struct ws_ptx_module *ptx;
        } module;
        struct {
            uint8_t *map;
            uint64_t bytes;
        } region;
        struct operation *op;
    };
    UT_hash_handle hh;
};

struct operation {
    struct thing known;
    struct ws_op op;
    uint8_t *blob; /* a copy's own bytes: allocated, or mapped */
    uint64_t blob_bytes, blob_out;
    bool blob_is_memory;
    uint8_t params[]; /* of a launch */
};

static struct {
    struct ws_device *device;
    struct ws_wire_page *page;
    pthread_mutex_t lock; /* the tables; held by nobody who waits for anything */
    struct thing *spaces, *memories, *modules, *instances, *regions, *ops;
    pthread_cond_t submitted_more;
    uint64_t submitted; /* the last that the device knows */
    _Atomic uint32_t n_running;
    pthread_mutex_t page_lock, send_lock;
} w = {.lock = PTHREAD_MUTEX_INITIALIZER,
       .page_lock = PTHREAD_MUTEX_INITIALIZER,
       .send_lock = PTHREAD_MUTEX_INITIALIZER,
       .submitted_more = PTHREAD_COND_INITIALIZER};
static _Thread_local struct ws_cuda_kept made_whole; /* inside ws_device_memory_new() */
static _Thread_local int made_fd = -1;

#define PART(x) ((struct ws_wire_part){&(x), sizeof(x)})
#define NONE    ((struct ws_wire_part){NULL, 0})

/* ---- tables. Lock held ---- */

static struct thing *find(struct thing *table, uint64_t id)
{
    struct thing *t;
    HASH_FIND(hh, table, &id, sizeof(id), t);
    return t;
}

static struct thing *add(struct thing **table, uint64_t id)
{
    struct thing *t = find(*table, id) ? NULL : ws_alloc(sizeof(*t));
    if (t) {
        t->id = id;
        HASH_ADD(hh, *table, id, sizeof(t->id), t);
    }
    return t;
}

static bool take(struct thing **table, uint64_t id, struct thing *ret)
{
    struct thing *t = find(*table, id);
    if (!t)
        return false;
    *ret = *t;
    HASH_DEL(*table, t);
    free(t);
    return true;
}

/* Takes the lock itself, as those below. */
static bool known(struct thing *const *table, uint64_t id, struct thing *ret)
{
    pthread_mutex_lock(&w.lock);
    const struct thing *t = find(*table, id);
    if (t)
        *ret = *t;
    pthread_mutex_unlock(&w.lock);
    return t != NULL;
}

static bool gone(struct thing **table, uint64_t id, struct thing *ret)
{
    pthread_mutex_lock(&w.lock);
    bool there = take(table, id, ret);
    pthread_mutex_unlock(&w.lock);
    return there;
}

static int remember(struct thing **table, const struct thing *what)
{
    pthread_mutex_lock(&w.lock);
    struct thing *t = add(table, what->id);
    if (t) {
        UT_hash_handle hh = t->hh;
        *t = *what;
        t->hh = hh;
    }
    pthread_mutex_unlock(&w.lock);
    return t ? 0 : ws_raise(-ENOMEM);
}

static void print(void *arg, enum ws_output to, const char *text, size_t n);

/* Made when first named. 0 is none. */
static struct ws_space *space_of(uint64_t id)
{
    struct ws_space *s = NULL;
    struct thing *t = NULL;
    if (!id)
        return NULL;
    pthread_mutex_lock(&w.lock);
    t = find(w.spaces, id);
    if (!t && !ws_space_new(&s)) {
        t = add(&w.spaces, id);
        if (!t)
            s = ws_space_free(s);
        else
            t->space = s;
        if (s)
            ws_space_set_print(s, print, (void *)(uintptr_t)id);
    }
    s = t ? t->space : NULL;
    pthread_mutex_unlock(&w.lock);
    return s;
}

/* ---- to the daemon ---- */

static void send_op(struct ws_wire_head head, struct ws_wire_part body, struct ws_wire_part more,
                    int fd)
{
    pthread_mutex_lock(&w.send_lock);
    int r = ws_wire_send(WS_WIRE_FD_OPS, head, body, more, fd, 0);
    pthread_mutex_unlock(&w.send_lock);
    if (r && r != -EPIPE && r != -ECONNRESET) {
        ws_log(WS_ERROR, "worker: the daemon was not told: %s", strerror(-r));
        _exit(1); /* it would wait for ever */
    }
}

static void print(void *arg, enum ws_output to, const char *text, size_t n)
{
    send_op((struct ws_wire_head){.type = WS_WIRE_PRINT, .id = (uintptr_t)arg, .value = to},
            (struct ws_wire_part){text, n}, NONE, -1);
}

static void on_made(void *arg, const struct ws_cuda_kept *k, int fd)
{
    if (!k->va) { /* goes with the answer */
        made_whole = *k;
        made_fd = fd;
        return;
    }
    send_op((struct ws_wire_head){.type = WS_WIRE_MADE}, PART(*k), NONE, fd);
    if (fd >= 0)
        close(fd);
}

static void on_gone(void *arg, const struct ws_cuda_kept *k)
{
    send_op((struct ws_wire_head){.type = WS_WIRE_GONE}, PART(*k), NONE, -1);
}

static void write_page(void)
{
    struct ws_device_telemetry t;
    ws_device_telemetry(w.device, &t);
    pthread_mutex_lock(&w.page_lock);
    atomic_fetch_add(&w.page->seq, 1);
    w.page->telemetry = t;
    atomic_fetch_add(&w.page->seq, 1);
    pthread_mutex_unlock(&w.page_lock);
}

/* What the meter has seen, for whoever asks while nothing ends. */
static void *page_main(void *arg)
{
    for (;;) {
        usleep(w.n_running ? 50000 : 500000);
        write_page();
    }
    return NULL;
}

/* Nothing runs on a lost context; once all that did has been told, this process is of no more use. */
static void end_if_lost(void)
{
    const char *text = ws_device_cuda_lost(w.device);
    if (!text)
        return;
    pthread_mutex_lock(&w.page_lock);
    if (!w.page->lost) {
        snprintf(w.page->lost_text, sizeof(w.page->lost_text), "%s", text);
        w.page->lost = 1;
    }
    pthread_mutex_unlock(&w.page_lock);
    if (!w.n_running)
        _exit(WS_WIRE_EXIT_LOST);
}

/* ---- operations ---- */

static void operation_free(struct operation *o)
{
    if (o->blob && o->blob_is_memory)
        munmap(o->blob, o->blob_bytes);
    else
        free(o->blob);
    free(o);
}

static void on_done(struct ws_op *op)
{
    struct operation *o = op->owner;
    struct ws_wire_done d = {.error = op->error,
                             .preempted = op->preempted,
                             .start_ns = op->start_ns,
                             .end_ns = op->end_ns,
                             .energy_uj = op->energy_uj,
                             .n_thread_insns = op->n_thread_insns,
                             .counts = op->counts};
    struct ws_wire_part back = NONE;
    const char *lost = ws_device_cuda_lost(w.device);
    snprintf(d.text, sizeof(d.text), "%s", op->text);
    d.in_loss = lost && op->error;
    d.untouched = ws_cuda_untouched(op);
    if (op->kind == WS_OPK_LAUNCH && op->launch.progress) {
        d.has_progress = 1;
        d.progress = ws_cuda_progress_read(op->launch.progress);
        op->launch.progress = ws_progress_free(op->launch.progress);
    }
    if (o->blob && !o->blob_is_memory && !op->error)
        back = (struct ws_wire_part){o->blob + o->blob_out, o->blob_bytes - o->blob_out};
    uint64_t id = o->known.id;
    pthread_mutex_lock(&w.lock); /* from here on nobody preempts it */
    struct thing *t = find(w.ops, id);
    if (t)
        HASH_DEL(w.ops, t);
    pthread_mutex_unlock(&w.lock);
    write_page();
    send_op((struct ws_wire_head){.type = WS_WIRE_DONE, .id = id}, PART(d), back, -1);
    operation_free(o);
    w.n_running--;
    end_if_lost();
}

/* Where one side of a copy is; false: nowhere. */
static bool place(struct operation *o, const struct ws_wire_place *p, uint64_t reach,
                  uint64_t *ret_va, uint8_t **ret_host, struct ws_pitches *ret_pitch)
{
    struct thing t;
    *ret_pitch = p->pitch;
    *ret_va = 0;
    *ret_host = NULL;
    switch (p->side) {
    case WS_WIRE_VA:
        *ret_va = p->at;
        return true;
    case WS_WIRE_REGION:
        if (!known(&w.regions, p->region, &t) || p->at > t.region.bytes ||
            reach > t.region.bytes - p->at)
            return false;
        *ret_host = t.region.map + p->at;
        return true;
    default:
        if (!o->blob || p->at > o->blob_bytes || reach > o->blob_bytes - p->at)
            return false;
        *ret_host = o->blob + p->at;
        return true;
    }
}

static uint64_t reach_of(const struct ws_wire_submit *s, const struct ws_pitches *p)
{
    return s->copy.bytes + (s->copy.height > 1 ? (s->copy.height - 1) * p->row : 0) +
           (s->copy.depth > 1 ? (s->copy.depth - 1) * p->slice : 0);
}

static bool set_copy(struct operation *o, const struct ws_wire_submit *s, struct ws_wire_message *m)
{
    struct ws_op *op = &o->op;
    uint8_t *to, *from;
    o->blob_bytes = s->copy.blob_bytes;
    o->blob_out = WS_MIN(s->copy.blob_out, s->copy.blob_bytes);
    o->blob_is_memory = s->blob_is_memory;
    if (o->blob_is_memory) {
        if (!ws_packet_memfd_ok(m->fd, o->blob_bytes))
            return false;
        void *p = mmap(NULL, o->blob_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, 0);
        o->blob = p == MAP_FAILED ? NULL : p;
    } else if (o->blob_bytes) {
        o->blob = malloc(o->blob_bytes);
        if (o->blob && m->head.bytes - sizeof(*s) >= o->blob_out && o->blob_out)
            memcpy(o->blob, m->body + sizeof(*s), o->blob_out);
    }
    op->copy.bytes = s->copy.bytes;
    op->copy.height = s->copy.height;
    op->copy.depth = s->copy.depth;
    bool ok = (!o->blob_bytes || o->blob) &&
              place(o, &s->copy.dst, reach_of(s, &s->copy.dst.pitch), &op->copy.dst_va, &to,
                    &op->copy.dst) &&
              place(o, &s->copy.src, reach_of(s, &s->copy.src.pitch), &op->copy.src_va, &from,
                    &op->copy.src);
    op->copy.dst_host = ok ? to : NULL;
    op->copy.src_host = ok ? from : NULL;
    return ok;
}

static bool set_launch(struct operation *o, const struct ws_wire_submit *s,
                       const struct ws_wire_message *m)
{
    struct ws_op *op = &o->op;
    struct thing t = {0};
    if (m->head.bytes - sizeof(*s) < s->launch.param_bytes ||
        !known(&w.instances, s->launch.instance, &t))
        return false;
    if (s->launch.param_bytes)
        memcpy(o->params, m->body + sizeof(*s), s->launch.param_bytes);
    op->launch.instance = t.instance;
    op->launch.kernel = s->launch.kernel;
    memcpy(op->launch.grid, s->launch.grid, sizeof(op->launch.grid));
    memcpy(op->launch.block, s->launch.block, sizeof(op->launch.block));
    op->launch.shared_bytes = s->launch.shared_bytes;
    op->launch.flags = s->launch.flags;
    op->launch.params = o->params;
    op->launch.param_bytes = s->launch.param_bytes;
    op->launch.sms = s->launch.sms;
    if (!op->space || (s->launch.heap_va &&
                       ws_space_tell_heap(op->space, s->launch.heap_va, s->launch.heap_bytes)))
        return false;
    ws_space_set_print_bytes(op->space, s->launch.print_bytes);
    if (s->launch.has_progress)
        op->launch.progress = ws_cuda_progress_new(s->launch.progress);
    return !s->launch.has_progress || op->launch.progress;
}

static void on_submit(struct ws_wire_message *m)
{
    struct ws_wire_submit s;
    uint64_t id = m->head.id;
    if (!ws_wire_take(m, &s, sizeof(s))) {
        ws_log(WS_ERROR, "worker: a submission of %llu bytes", (unsigned long long)m->head.bytes);
        _exit(1);
    }
    uint64_t params = s.kind == WS_OPK_LAUNCH ? s.launch.param_bytes : 0;
    struct operation *o = ws_alloc(sizeof(*o) + params);
    if (!o) {
        ws_log(WS_ERROR, "worker: out of memory");
        _exit(1);
    }
    o->known.id = id;
    o->known.op = o;
    o->op = (struct ws_op){.kind = (enum ws_op_kind)s.kind,
                           .space = space_of(s.space),
                           .ready_ns = s.ready_ns,
                           .done = on_done,
                           .owner = o};
    bool ok = true;
    if (s.kind == WS_OPK_COPY) {
        ok = set_copy(o, &s, m);
    } else if (s.kind == WS_OPK_FILL) {
        o->op.fill.va = s.fill.va;
        o->op.fill.width_bytes = s.fill.width_bytes;
        o->op.fill.height = s.fill.height;
        o->op.fill.pitch_bytes = s.fill.pitch_bytes;
        o->op.fill.value = s.fill.value;
        o->op.fill.value_bytes = s.fill.value_bytes;
    } else {
        ok = set_launch(o, &s, m);
    }
    w.n_running++;
    pthread_mutex_lock(&w.lock);
    HASH_ADD(hh, w.ops, id, sizeof(id), &o->known);
    pthread_mutex_unlock(&w.lock);
    atomic_store(&w.page->taken, id);
    if (ok) {
        ws_device_submit(w.device, &o->op);
    } else {
        snprintf(o->op.text, sizeof(o->op.text),
                 "the GPU's worker does not know what it needs, or has no memory");
        o->op.error = WS_DEV_E_LAUNCH_FAILURE;
        on_done(&o->op);
    }
    pthread_mutex_lock(&w.lock);
    w.submitted = id;
    pthread_cond_broadcast(&w.submitted_more);
    pthread_mutex_unlock(&w.lock);
}

/* Until the device knows submission @id, or nothing comes any more; not for ever: it may have been another worker's. */
static void wait_for_submission(uint64_t id)
{
    struct timespec t;
    pthread_mutex_lock(&w.lock);
    for (int tries = 0; w.submitted < id && !w.page->lost && tries < 100; tries++) {
        clock_gettime(CLOCK_REALTIME, &t);
        t.tv_nsec += 50000000;
        if (t.tv_nsec >= 1000000000) {
            t.tv_sec++;
            t.tv_nsec -= 1000000000;
        }
        (void)pthread_cond_timedwait(&w.submitted_more, &w.lock, &t);
    }
    pthread_mutex_unlock(&w.lock);
}

/* ---- calls ---- */

static int64_t on_memory(struct ws_wire_message *m, bool adopt, struct ws_wire_memory *io)
{
    struct thing t = {.id = m->head.id};
    if (!ws_wire_take(m, io, sizeof(*io)))
        return -EPROTO;
    int r = adopt ? ws_cuda_adopt_memory(w.device, io->bytes, io->kept.id ? &io->kept : NULL, m->fd,
                                         &t.memory)
                  : ws_device_memory_new(w.device, io->bytes, &t.memory);
    if (!adopt)
        io->kept = made_whole;
    if (!r && (r = remember(&w.memories, &t)))
        ws_memory_unref(t.memory);
    return r;
}

static int64_t on_map(const struct ws_wire_message *m)
{
    struct ws_wire_map q;
    struct thing t;
    if (!ws_wire_take(m, &q, sizeof(q)))
        return -EPROTO;
    struct ws_space *s = space_of(q.space);
    if (!s || !known(&w.memories, q.memory, &t))
        return -ENOMEM;
    return ws_space_map_memory(s, q.va, q.bytes, t.memory, q.offset, q.readers, q.writers);
}

static int64_t on_host_map(const struct ws_wire_message *m)
{
    struct ws_wire_map q;
    struct thing t;
    if (!ws_wire_take(m, &q, sizeof(q)))
        return -EPROTO;
    struct ws_space *s = space_of(q.space);
    if (!s || !known(&w.regions, q.memory, &t) || q.offset > t.region.bytes ||
        q.bytes > t.region.bytes - q.offset)
        return -EINVAL;
    return ws_space_map_host(s, q.va, q.bytes, t.region.map + q.offset);
}

static int64_t on_region(struct ws_wire_message *m)
{
    struct thing t = {.id = m->head.id};
    struct stat st;
    if (!ws_wire_take(m, &t.region.bytes, sizeof(t.region.bytes)) || m->fd < 0 ||
        fstat(m->fd, &st) || (uint64_t)st.st_size < t.region.bytes)
        return -EINVAL;
    void *p = mmap(NULL, t.region.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, 0);
    if (p == MAP_FAILED)
        return -ENOMEM;
    t.region.map = p;
    int r = remember(&w.regions, &t);
    if (r)
        munmap(p, t.region.bytes);
    else
        ws_device_host_register(w.device, p, t.region.bytes, m->fd);
    return r;
}

/* *ret_va: where its variables are, if it has them where it wants; to be freed. */
static int64_t on_instance(const struct ws_wire_message *m, uint64_t **ret_va, uint32_t *ret_n)
{
    struct ws_wire_instance q;
    struct thing module, t = {.id = m->head.id};
    if (!ws_wire_take(m, &q, sizeof(q)) || m->head.bytes - sizeof(q) < q.n_vars * sizeof(uint64_t))
        return -EPROTO;
    struct ws_space *s = space_of(q.space);
    uint64_t *va = ws_alloc_array(q.n_vars + (size_t)1, sizeof(*va));
    int r = !s || !va || !known(&w.modules, q.module, &module) ? -ENOMEM : 0;
    if (!r && ws_dmodule_info(module.module.code)->n_vars != q.n_vars)
        r = -EINVAL;
    if (!r && q.n_vars)
        memcpy(va, m->body + sizeof(q), q.n_vars * sizeof(*va));
    if (!r)
        r = q.write ? ws_device_instance_new(w.device, module.module.code, s, va, &t.instance)
                    : ws_device_instance_borrow(w.device, module.module.code, s, va, &t.instance);
    if (!r && (r = remember(&w.instances, &t)))
        ws_device_instance_free(w.device, t.instance);
    if (!r && ws_dmodule_info(module.module.code)->own_vars) {
        ws_device_instance_vars(w.device, t.instance, va);
        *ret_va = va;
        *ret_n = q.n_vars;
    } else {
        free(va);
    }
    return r;
}

static int64_t on_occupancy(const struct ws_wire_message *m, struct ws_wire_occupancy *io)
{
    struct ws_occupancy fits;
    struct thing t;
    if (!ws_wire_take(m, io, sizeof(*io)) || !known(&w.modules, m->head.id, &t))
        return -EINVAL;
    int r = ws_device_occupancy(w.device, t.module.code, io->kernel, io->threads, io->shared_bytes,
                                &fits);
    if (r)
        return r;
    io->blocks_per_sm = fits.blocks_per_sm;
    for (uint32_t k = 0; k < WS_ARRAY_SIZE(ws_wire_limits); k++)
        if (!strcmp(fits.limit, ws_wire_limits[k]))
            io->limit = k;
    return 0;
}

static int64_t on_preempt(uint64_t id)
{
    int r = -ENOTSUP;
    wait_for_submission(id);
    pthread_mutex_lock(&w.lock); /* done can't free it meanwhile */
    const struct thing *t = find(w.ops, id);
    if (t)
        r = ws_device_preempt(w.device, &t->op->op);
    pthread_mutex_unlock(&w.lock);
    return r;
}

/* ---- modules, on threads of their own ---- */

static int load(const struct ws_wire_message *m, FILE *f)
{
    struct thing t = {.id = m->head.id};
    struct ws_diags diags = WS_DIAGS_NULL;
    struct ws_wire_loaded l = {0};
    int r = m->head.value == WS_WIRE_CODE_MACHINE
                ? ws_cubin_module(&t.module.ptx, m->body, m->head.bytes, NULL, &diags)
                : ws_ptx_parse(&t.module.ptx, (const char *)m->body, m->head.bytes, NULL, &diags);
    if (!r) {
        t.module.ptx->fenced = m->head.value == WS_WIRE_CODE_FENCED;
        r = ws_device_module_load(w.device, t.module.ptx, &t.module.code, &diags);
    }
    const struct ws_dmodule_info *info = r ? NULL : ws_dmodule_info(t.module.code);
    l.n_kernels = info ? info->n_kernels : 0;
    fwrite(&l, sizeof(l), 1, f);
    for (uint32_t k = 0; k < l.n_kernels; k++) {
        const struct ws_kernel_info *i = &info->kernels[k];
        struct ws_wire_kernel q = {.static_shared_bytes = i->static_shared_bytes,
                                   .local_bytes = i->local_bytes,
                                   .n_regs = i->n_regs,
                                   .max_threads_per_block = i->max_threads_per_block,
                                   .const_bytes = i->const_bytes,
                                   .uses_heap = i->uses_heap,
                                   .supported = !i->unsupported,
                                   .why_bytes =
                                       i->unsupported ? (uint32_t)strlen(i->unsupported) : 0,
                                   .unsupported_code = i->unsupported_code};
        fwrite(&q, sizeof(q), 1, f);
        fwrite(i->unsupported ? i->unsupported : "", 1, q.why_bytes, f);
    }
    ws_wire_put_diags(f, &diags);
    ws_diags_deinit(&diags);
    if (!r && (r = remember(&w.modules, &t)))
        ws_device_module_unload(w.device, t.module.code);
    if (r)
        ws_ptx_module_free(t.module.ptx);
    return r;
}

static void *loader_main(void *arg)
{
    int fd = (int)(intptr_t)arg;
    struct ws_wire_message *m = ws_alloc(sizeof(*m));
    while (m && !ws_wire_recv(fd, m)) {
        char *text = NULL;
        size_t n = 0;
        FILE *f = open_memstream(&text, &n);
        int r = f ? load(m, f) : -ENOMEM;
        if (f)
            fclose(f);
        struct ws_wire_head head = {.type = WS_WIRE_LOAD,
                                    .id = m->head.id,
                                    .value = r > 0 && !m->head.value ? ws_fold(r) : r};
        ws_wire_done_with(m);
        r = ws_wire_send(fd, head, (struct ws_wire_part){text, n}, NONE, -1, 0);
        free(text);
        end_if_lost();
        if (r)
            break;
    }
    free(m);
    close(fd);
    return NULL;
}

static void on_loader(struct ws_wire_message *m)
{
    pthread_t t;
    if (m->fd < 0 || pthread_create(&t, NULL, loader_main, (void *)(intptr_t)m->fd))
        return; /* it is closed, which is an answer */
    pthread_detach(t);
    m->fd = -1;
}

/* ---- notices ---- */

static void on_notice(struct ws_wire_message *m)
{
    struct ws_wire_map q = {0};
    struct thing t;
    (void)ws_wire_take(m, &q, sizeof(q));
    switch (m->head.type) {
    case WS_WIRE_UNMAP:
    case WS_WIRE_HOST_UNMAP:
        if (known(&w.spaces, q.space, &t) && ws_space_unmap(t.space, q.va))
            ws_log(WS_WARN, "worker: nothing is mapped at 0x%llx", (unsigned long long)q.va);
        break;
    case WS_WIRE_MEMORY_FREE:
        if (gone(&w.memories, m->head.id, &t))
            ws_memory_unref(t.memory);
        break;
    case WS_WIRE_REGION_FREE:
        if (gone(&w.regions, m->head.id, &t)) {
            ws_device_host_unregister(w.device, t.region.map, t.region.bytes);
            munmap(t.region.map, t.region.bytes);
        }
        break;
    case WS_WIRE_INSTANCE_FREE:
        if (gone(&w.instances, m->head.id, &t))
            ws_device_instance_free(w.device, t.instance);
        break;
    case WS_WIRE_MODULE_FREE:
        if (gone(&w.modules, m->head.id, &t)) {
            ws_device_module_unload(w.device, t.module.code);
            ws_ptx_module_free(t.module.ptx);
        }
        break;
    case WS_WIRE_SPACE_GONE:
        if (gone(&w.spaces, m->head.id, &t))
            ws_space_free(t.space);
        break;
    case WS_WIRE_CANCEL: /* id: the last submission before it */
        wait_for_submission(m->head.id);
        if (known(&w.spaces, q.space, &t))
            ws_device_cancel(w.device, t.space);
        break;
    case WS_WIRE_LOADER:
        on_loader(m);
        break;
    default:
        ws_log(WS_ERROR, "worker: a call of type %u", m->head.type);
        _exit(1);
    }
}

static bool on_call(struct ws_wire_message *m)
{
    struct ws_wire_head head = {.type = m->head.type, .id = m->head.id};
    struct ws_wire_part body = NONE;
    struct ws_wire_memory memory;
    struct ws_wire_occupancy fits;
    struct ws_cuda_kept kept;
    struct ws_wire_map map;
    struct thing t;
    uint64_t number = 0, placed[2] = {0}, *vars = NULL;
    uint32_t n_vars = 0;
    int fd = -1;
    switch (m->head.type) {
    case WS_WIRE_MEMORY_NEW:
    case WS_WIRE_ADOPT_MEMORY:
        made_whole = (struct ws_cuda_kept){0};
        made_fd = -1;
        head.value = on_memory(m, m->head.type == WS_WIRE_ADOPT_MEMORY, &memory);
        body = PART(memory);
        fd = made_fd;
        break;
    case WS_WIRE_ADOPT_GRANULE:
        head.value = ws_wire_take(m, &kept, sizeof(kept))
                         ? ws_cuda_adopt_granule(w.device, &kept, m->fd)
                         : -EPROTO;
        break;
    case WS_WIRE_ADOPT_END:
        ws_cuda_adopt_end(w.device);
        break;
    case WS_WIRE_MAP:
        head.value = on_map(m);
        break;
    case WS_WIRE_ACCESS:
        head.value = ws_wire_take(m, &map, sizeof(map)) && known(&w.spaces, map.space, &t)
                         ? ws_space_set_access(t.space, map.va, map.readers, map.writers)
                         : -ENOENT;
        break;
    case WS_WIRE_REGION_NEW:
        head.value = on_region(m);
        break;
    case WS_WIRE_HOST_MAP:
        head.value = on_host_map(m);
        break;
    case WS_WIRE_INSTANCE_NEW:
        head.value = on_instance(m, &vars, &n_vars);
        if (vars)
            body = (struct ws_wire_part){vars, n_vars * sizeof(*vars)};
        break;
    case WS_WIRE_OCCUPANCY:
        head.value = on_occupancy(m, &fits);
        body = PART(fits);
        break;
    case WS_WIRE_PREEMPT:
        head.value = on_preempt(m->head.id);
        break;
    case WS_WIRE_PLACE:
        head.value = known(&w.memories, m->head.id, &t) ? 0 : -EINVAL;
        if (!head.value)
            ws_memory_place(t.memory, &placed[0], &placed[1]);
        body = PART(placed);
        break;
    case WS_WIRE_CHARGE:
        head.value = ws_device_cuda_charge(w.device, m->head.id, &number);
        body = PART(number);
        break;
    default:
        on_notice(m);
        return true;
    }
    int r = ws_wire_send(WS_WIRE_FD_CALLS, head, body, NONE, fd, 0);
    free(vars);
    if (fd >= 0)
        close(fd);
    return !r;
}

static void *calls_main(void *arg)
{
    struct ws_wire_message *m = ws_alloc(sizeof(*m));
    bool on = m != NULL;
    while (on && !ws_wire_recv(WS_WIRE_FD_CALLS, m)) {
        on = on_call(m);
        ws_wire_done_with(m);
        write_page();
        end_if_lost();
    }
    free(m);
    return NULL;
}

/* ---- opening, closing ---- */

static int say_hello(int r, struct ws_wire_hello *h, const struct ws_diags *diags)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    if (!f)
        return -ENOMEM;
    ws_wire_put_diags(f, diags);
    fclose(f);
    r = ws_wire_send(WS_WIRE_FD_OPS, (struct ws_wire_head){.type = WS_WIRE_HELLO, .value = r},
                     PART(*h), (struct ws_wire_part){text, n}, -1, 0);
    free(text);
    return r;
}

static void describe(struct ws_wire_hello *h)
{
    struct timespec t;
    h->spec = w.device->spec;
    (void)ws_device_cuda_uuid(w.device, h->uuid);
    h->capabilities = *ws_device_cuda_capabilities(w.device);
    for (uint32_t k = 0; k < h->capabilities.n; k++) {
        snprintf(h->names[k], sizeof(h->names[k]), "%s", h->capabilities.v[k].name);
        h->capabilities.v[k].name = NULL;
    }
    h->now_ns = ws_device_now_ns(w.device);
    clock_gettime(CLOCK_MONOTONIC, &t);
    h->host_ns = (uint64_t)t.tv_sec * WS_NS_PER_S + (uint64_t)t.tv_nsec;
}

/* Return: 0 to go on; else the exit status. */
static int begin(const struct ws_wire_config *c)
{
    static const struct ws_cuda_keep keep = {on_made, on_gone, NULL};
    struct ws_cuda_options o = {.driver_library = c->driver_library[0] ? c->driver_library : NULL,
                                .nvml_library = c->nvml_library[0] ? c->nvml_library : NULL,
                                .max_running = c->max_running,
                                .preemptible = c->preemptible,
                                .unfenced = c->unfenced,
                                .spin_ns = c->spin_ns};
    struct ws_wire_hello h = {0};
    struct ws_diags diags = WS_DIAGS_NULL;
    char build[sizeof(h.build)];
    ws_wire_build(h.build);
    ws_wire_build(build);
    int r = 0;
    if (strncmp(build, c->build, sizeof(build)) != 0) {
        r = WS_CUDA_E_MISSING;
        ws_diags_add(&diags, NULL, 0, 0, "the GPU's worker is of another build than the daemon");
    } else if (c->ordinal < 0) {
        h.count = ws_cuda_count(&o, &diags);
    } else {
        r = ws_device_open_cuda(&w.device, c->ordinal, c->index, &o, &diags);
    }
    if (w.device) {
        h.keeps = ws_device_cuda_keep(w.device, &keep);
        describe(&h);
    }
    int sent = say_hello(r, &h, &diags);
    ws_diags_deinit(&diags);
    return sent || r || c->ordinal < 0 ? 1 : 0;
}

static void free_all(void)
{
    struct thing *t, *next;
    HASH_ITER (hh, w.instances, t, next) {
        ws_device_instance_free(w.device, t->instance);
        HASH_DEL(w.instances, t);
        free(t);
    }
    HASH_ITER (hh, w.spaces, t, next) {
        ws_space_free(t->space);
        HASH_DEL(w.spaces, t);
        free(t);
    }
    HASH_ITER (hh, w.memories, t, next) {
        ws_memory_unref(t->memory);
        HASH_DEL(w.memories, t);
        free(t);
    }
    HASH_ITER (hh, w.modules, t, next) {
        ws_device_module_unload(w.device, t->module.code);
        ws_ptx_module_free(t->module.ptx);
        HASH_DEL(w.modules, t);
        free(t);
    }
    HASH_ITER (hh, w.regions, t, next) {
        ws_device_host_unregister(w.device, t->region.map, t->region.bytes);
        munmap(t->region.map, t->region.bytes);
        HASH_DEL(w.regions, t);
        free(t);
    }
}

static void serve(struct ws_wire_message *m)
{
    pthread_t calls, page;
    if (pthread_create(&calls, NULL, calls_main, NULL) ||
        pthread_create(&page, NULL, page_main, NULL))
        _exit(1);
    while (!ws_wire_recv(WS_WIRE_FD_OPS, m)) {
        if (m->head.type != WS_WIRE_SUBMIT)
            _exit(1);
        end_if_lost();
        while (w.page->lost) /* what comes now is the next one's; the last to end ends this one */
            pause();
        on_submit(m);
        ws_wire_done_with(m);
    }
    /* The daemon closes both ends; what it left is given back, so that a driver that counts finds nothing. */
    pthread_join(calls, NULL);
    pthread_cancel(page);
    pthread_join(page, NULL);
    free_all();
    ws_device_close(w.device);
}

int main(int argc, char **argv)
{
    struct ws_wire_message *m = ws_alloc(sizeof(*m));
    struct ws_wire_config c;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) || !m)
        return 1;
    (void)close_range(WS_WIRE_FD_PAGE + 1, ~0U, 0); /* what the daemon had from others */
    (void)prctl(PR_SET_NAME, "ws-gpu-worker");
    /* A service manager's or a terminal's signal is for the daemon, which ends us when it is done. */
    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    ws_log_set_output(2, "wattshare-gpu-worker");
    struct stat st;
    if (fstat(WS_WIRE_FD_OPS, &st) || !S_ISSOCK(st.st_mode)) {
        fputs("wattshare-gpu-worker: is started by wattshared(8)\n", stderr);
        return 2;
    }
    if (ws_wire_recv(WS_WIRE_FD_OPS, m) || m->head.type != WS_WIRE_HELLO ||
        !ws_wire_take(m, &c, sizeof(c)))
        return 1;
    c.driver_library[sizeof(c.driver_library) - 1] = 0;
    c.nvml_library[sizeof(c.nvml_library) - 1] = 0;
    ws_wire_done_with(m);
    ws_log_set_level((enum ws_log_level)c.log_level);
    void *page =
        mmap(NULL, sizeof(*w.page), PROT_READ | PROT_WRITE, MAP_SHARED, WS_WIRE_FD_PAGE, 0);
    if (page == MAP_FAILED)
        return 1;
    w.page = page;
    int status = begin(&c);
    if (!status)
        serve(m);
    free(m);
    return status;
}
