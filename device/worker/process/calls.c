// SPDX-License-Identifier: Apache-2.0
/* Calls and notices: one function for each row of calls.def that the CALLS thread serves. serve()
 * has checked that the structure which the row names is there, sends the answer, and owns what the
 * answer holds. */
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "device/worker/process/process.h"

struct answer {
    union {
        struct ws_wire_memory memory;
    } body;         /* as large as the row says */
    uint64_t *more; /* n_more numbers behind it; allocated */
    uint32_t n_more;
    int fd; /* goes with it; -1: none */
    /* Memory that is unmapped stays until the answer is sent: the driver may wait for the GPU. */
    struct ws_space *space; /* NULL: none was unmapped */
    unsigned epoch;
};

/* ---- memory ---- */

/* What on_made() was told inside ws_device_memory_new(), on the same thread. */
static _Thread_local struct ws_cuda_kept made_whole;
static _Thread_local int made_fd = -1;

static void on_made(void *arg, const struct ws_cuda_kept *k, int fd)
{
    if (!k->va) { /* goes with the answer */
        made_whole = *k;
        made_fd = fd;
        return;
    }
    worker_send(ws_wire_head_of(WS_WIRE_MADE, 0), WS_PART(*k), WS_PART_NONE, fd);
    if (fd >= 0)
        close(fd);
}

static void on_gone(void *arg, const struct ws_cuda_kept *k)
{
    worker_send(ws_wire_head_of(WS_WIRE_GONE, 0), WS_PART(*k), WS_PART_NONE, -1);
}

const struct ws_cuda_keep worker_keep = {on_made, on_gone, NULL};

static int64_t add_memory(struct worker_object *o, int r)
{
    if (!r && (r = worker_add(&worker.memories, o)))
        ws_memory_unref(o->memory);
    return r;
}

static int64_t on_memory_new(struct ws_wire_message *m, const void *body, struct answer *ret)
{
    const struct ws_wire_memory *q = body;
    struct worker_object o = {.id = m->head.id};
    made_whole = (struct ws_cuda_kept){0};
    made_fd = -1;
    int64_t r = add_memory(&o, ws_device_memory_new(worker.device, q->bytes, &o.memory));
    ret->body.memory = (struct ws_wire_memory){.bytes = q->bytes, .kept = made_whole};
    ret->fd = made_fd;
    return r;
}

static int64_t on_adopt_memory(struct ws_wire_message *m, const void *body, struct answer *ret)
{
    const struct ws_wire_memory *q = body;
    struct worker_object o = {.id = m->head.id};
    return add_memory(&o, ws_cuda_adopt_memory(worker.device, q->bytes,
                                               q->kept.id ? &q->kept : NULL, m->fd, &o.memory));
}

static int64_t on_adopt_granule(struct ws_wire_message *m, const void *body, struct answer *ret)
{
    return ws_cuda_adopt_granule(worker.device, body, m->fd);
}

static int64_t on_adopt_end(struct ws_wire_message *m, const void *body, struct answer *ret)
{
    ws_cuda_adopt_end(worker.device);
    return 0;
}

static int64_t on_memory_free(struct ws_wire_message *m, const void *body, struct answer *ret)
{
    struct worker_object o;
    if (worker_remove(&worker.memories, m->head.id, &o))
        worker_release_memory(&o);
    return 0;
}

/* ---- mappings ---- */

static int64_t on_map(struct ws_wire_message *m, const void *body, struct answer *ret)
{
    const struct ws_wire_map *q = body;
    struct worker_object o;
    struct ws_space *s = worker_space(q->space);
    if (!s || !worker_known(&worker.memories, q->memory, &o))
        return -ENOMEM;
    return ws_space_map_memory(s, q->va, q->bytes, o.memory, q->offset, q->readers, q->writers);
}

static int64_t on_host_map(struct ws_wire_message *m, const void *body, struct answer *ret)
{
    const struct ws_wire_map *q = body;
    struct worker_object o;
    struct ws_space *s = worker_space(q->space);
    if (!s || !worker_known(&worker.regions, q->memory, &o) || q->offset > o.region.bytes ||
        q->bytes > o.region.bytes - q->offset)
        return -EINVAL;
    return ws_space_map_host(s, q->va, q->bytes, o.region.map + q->offset);
}

static int64_t on_unmap(struct ws_wire_message *m, const void *body, struct answer *ret)
{
    const struct ws_wire_map *q = body;
    struct worker_object o;
    if (!worker_known(&worker.spaces, q->space, &o))
        return 0;
    ret->space = o.space;
    ret->epoch = ws_space_enter(o.space);
    if (ws_space_unmap(o.space, q->va))
        ws_log(WS_WARN, "worker: nothing is mapped at 0x%llx", (unsigned long long)q->va);
    return 0;
}

static int64_t on_host_unmap(struct ws_wire_message *m, const void *body, struct answer *ret)
{
    return on_unmap(m, body, ret);
}

static int64_t on_access(struct ws_wire_message *m, const void *body, struct answer *ret)
{
    const struct ws_wire_map *q = body;
    struct worker_object o;
    if (!worker_known(&worker.spaces, q->space, &o))
        return -ENOENT;
    return ws_space_set_access(o.space, q->va, q->readers, q->writers);
}

static int64_t on_space_gone(struct ws_wire_message *m, const void *body, struct answer *ret)
{
    struct worker_object o;
    if (worker_remove(&worker.spaces, m->head.id, &o))
        worker_release_later(&o, worker_release_space);
    return 0;
}

/* ---- host memory ---- */

static int64_t on_region_new(struct ws_wire_message *m, const void *body, struct answer *ret)
{
    struct worker_object o = {.id = m->head.id};
    struct stat st;
    memcpy(&o.region.bytes, body, sizeof(o.region.bytes));
    if (m->fd < 0 || fstat(m->fd, &st) || (uint64_t)st.st_size < o.region.bytes)
        return -EINVAL;
    void *p = mmap(NULL, o.region.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, 0);
    if (p == MAP_FAILED)
        return -ENOMEM;
    o.region.map = p;
    int r = worker_add(&worker.regions, &o);
    if (r)
        munmap(p, o.region.bytes);
    else
        ws_device_host_register(worker.device, p, o.region.bytes, m->fd);
    return r;
}

static int64_t on_region_free(struct ws_wire_message *m, const void *body, struct answer *ret)
{
    struct worker_object o;
    if (worker_remove(&worker.regions, m->head.id, &o))
        worker_release_region(&o);
    return 0;
}

/* ---- code ---- */

static int64_t on_instance_new(struct ws_wire_message *m, const void *body, struct answer *ret)
{
    const struct ws_wire_instance *q = body;
    struct worker_object module, o = {.id = m->head.id};
    if (m->head.bytes - sizeof(*q) < q->n_vars * sizeof(uint64_t))
        return -EPROTO;
    struct ws_space *s = worker_space(q->space);
    uint64_t *va = ws_alloc_array(q->n_vars + (size_t)1, sizeof(*va));
    int r = !s || !va || !worker_known(&worker.modules, q->module, &module) ? -ENOMEM : 0;
    if (!r && ws_dmodule_info(module.module.code)->n_vars != q->n_vars)
        r = -EINVAL;
    if (!r && q->n_vars)
        memcpy(va, q + 1, q->n_vars * sizeof(*va));
    if (!r && q->write == WS_WRITE_ALL)
        r = ws_device_instance_new(worker.device, module.module.code, s, va, &o.instance);
    else if (!r && q->write == WS_WRITE_UNMANAGED)
        r = ws_device_instance_again(worker.device, module.module.code, s, va, &o.instance);
    else if (!r)
        r = ws_device_instance_borrow(worker.device, module.module.code, s, va, &o.instance);
    if (!r && (r = worker_add(&worker.instances, &o)))
        ws_device_instance_free(worker.device, o.instance);
    if (!r && ws_dmodule_info(module.module.code)->own_vars) {
        ws_device_instance_vars(worker.device, o.instance, va);
        ret->more = va;
        ret->n_more = q->n_vars;
    } else {
        free(va);
    }
    return r;
}

static int64_t on_instance_free(struct ws_wire_message *m, const void *body, struct answer *ret)
{
    struct worker_object o;
    if (worker_remove(&worker.instances, m->head.id, &o))
        worker_release_later(&o, worker_release_instance);
    return 0;
}

static int64_t on_module_free(struct ws_wire_message *m, const void *body, struct answer *ret)
{
    struct worker_object o;
    if (worker_remove(&worker.modules, m->head.id, &o))
        worker_release_later(&o, worker_release_module);
    return 0;
}

static int64_t on_loader(struct ws_wire_message *m, const void *body, struct answer *ret)
{
    pthread_t t;
    if (m->fd < 0 || pthread_create(&t, NULL, worker_loader_main, (void *)(intptr_t)m->fd))
        return 0; /* the connection is closed, and so the daemon sees it */
    pthread_detach(t);
    m->fd = -1;
    return 0;
}

/* ---- dispatch ---- */

typedef int64_t handler(struct ws_wire_message *m, const void *body, struct answer *ret);
#define FOR_START(NAME, name)
#define FOR_OPS(NAME, name)
#define FOR_LOADER(NAME, name)
#define FOR_READER(NAME, name)
#define FOR_CALLS(NAME, name)                    [WS_WIRE_##NAME] = on_##name,
#define CALL(NAME, name, thread, out, back, end) FOR_##thread(NAME, name)
#define NOTICE(NAME, name, thread, out, end)     FOR_##thread(NAME, name)
static handler *const handlers[_WS_WIRE_TYPES] = {
#include "device/worker/calls.def"
};
#undef CALL
#undef NOTICE

static bool changes_memory(uint32_t type)
{
    return type == WS_WIRE_MEMORY_NEW || type == WS_WIRE_MEMORY_FREE || type == WS_WIRE_MAP;
}

/* Return: whether the daemon is still there. */
static bool answer(struct ws_wire_head head, struct answer *a)
{
    struct ws_wire_part body = {&a->body, ws_wire_rows[head.type].back_bytes},
                        more = {a->more, a->n_more * sizeof(*a->more)};
    int r = ws_wire_send(WS_WIRE_FD_CALLS, head, body, more, a->fd, 0);
    free(a->more);
    if (a->fd >= 0)
        close(a->fd);
    return !r;
}

/* The daemon promises memory by what is free, so that is known before the answer is. Return:
 * whether the daemon is still there. */
static bool serve(struct ws_wire_message *m)
{
    struct answer a = {.fd = -1};
    uint32_t type = m->head.type;
    if (!ws_wire_is_for(m, WS_WIRE_BY_CALLS)) {
        ws_log(WS_ERROR, "worker: the daemon sent a wrong call: type=%u (%s) bytes=%llu", type,
               ws_wire_name(type), (unsigned long long)m->head.bytes);
        _exit(1);
    }
    struct ws_wire_head head = ws_wire_head_of((enum ws_wire_type)type, m->head.id);
    head.value = handlers[type](m, m->body, &a);
    worker_no_answer_if_lost(type, head.value);
    if (changes_memory(type))
        worker_write_free();
    bool sent = !ws_wire_rows[type].answered || answer(head, &a);
    if (a.space) {
        ws_space_leave(a.space, a.epoch);
        worker_write_free();
    }
    return sent;
}

void *worker_calls_main(void *arg)
{
    struct ws_wire_message *m = ws_alloc(sizeof(*m));
    bool on = m != NULL;
    while (on && !ws_wire_recv(WS_WIRE_FD_CALLS, m)) {
        on = serve(m);
        ws_wire_done_with(m);
        worker_write_page();
        worker_end_if_lost();
    }
    free(m);
    return NULL;
}
