// SPDX-License-Identifier: Apache-2.0
/* What the daemon has made in this process: spaces, memories, modules, instances and regions of
 * host memory. */
#include <sys/mman.h>

#include "base/alloc.h"
#include "base/error.h"
#include "device/worker/process/process.h"

struct worker_object *worker_find(struct worker_object *table, uint64_t id)
{
    struct worker_object *o;
    HASH_FIND(hh, table, &id, sizeof(id), o);
    return o;
}

bool worker_known(struct worker_object *const *table, uint64_t id, struct worker_object *ret)
{
    pthread_mutex_lock(&worker.lock);
    const struct worker_object *o = worker_find(*table, id);
    if (o)
        *ret = *o;
    pthread_mutex_unlock(&worker.lock);
    return o != NULL;
}

bool worker_remove(struct worker_object **table, uint64_t id, struct worker_object *ret)
{
    pthread_mutex_lock(&worker.lock);
    struct worker_object *o = worker_find(*table, id);
    if (o) {
        *ret = *o;
        HASH_DEL(*table, o);
        free(o);
    }
    pthread_mutex_unlock(&worker.lock);
    return o != NULL;
}

/* Lock held. */
static int add_locked(struct worker_object **table, const struct worker_object *what)
{
    struct worker_object *o = worker_find(*table, what->id) ? NULL : ws_alloc(sizeof(*o));
    if (!o)
        return ws_raise(-ENOMEM);
    *o = *what;
    HASH_ADD(hh, *table, id, sizeof(o->id), o);
    return 0;
}

int worker_add(struct worker_object **table, const struct worker_object *what)
{
    pthread_mutex_lock(&worker.lock);
    int r = add_locked(table, what);
    pthread_mutex_unlock(&worker.lock);
    return r;
}

/* Lock held. Return: NULL: no memory. */
static struct ws_space *space_new(uint64_t id)
{
    struct worker_object o = {.id = id};
    if (ws_space_new(&o.space))
        return NULL;
    if (add_locked(&worker.spaces, &o))
        return ws_space_free(o.space);
    ws_space_set_print(o.space, worker_print, (void *)(uintptr_t)id);
    return o.space;
}

struct ws_space *worker_space(uint64_t id)
{
    if (!id)
        return NULL;
    pthread_mutex_lock(&worker.lock);
    const struct worker_object *o = worker_find(worker.spaces, id);
    struct ws_space *s = o ? o->space : space_new(id);
    pthread_mutex_unlock(&worker.lock);
    return s;
}

/* ---- releasing ---- */

void worker_release_instance(struct worker_object *o)
{
    ws_device_instance_free(worker.device, o->instance);
}

void worker_release_space(struct worker_object *o)
{
    ws_space_free(o->space);
}

void worker_release_memory(struct worker_object *o)
{
    ws_memory_unref(o->memory);
}

void worker_release_module(struct worker_object *o)
{
    ws_device_module_unload(worker.device, o->module.code);
    ws_ptx_module_free(o->module.ptx);
}

void worker_release_region(struct worker_object *o)
{
    ws_device_host_unregister(worker.device, o->region.map, o->region.bytes);
    munmap(o->region.map, o->region.bytes);
}

static void release_table(struct worker_object **table, void (*release)(struct worker_object *o))
{
    struct worker_object *o, *next;
    HASH_ITER (hh, *table, o, next) {
        release(o);
        HASH_DEL(*table, o);
        free(o);
    }
}

void worker_release_all(void)
{
    release_table(&worker.instances, worker_release_instance);
    release_table(&worker.spaces, worker_release_space);
    release_table(&worker.memories, worker_release_memory);
    release_table(&worker.modules, worker_release_module);
    release_table(&worker.regions, worker_release_region);
}
