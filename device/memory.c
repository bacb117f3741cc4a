// SPDX-License-Identifier: Apache-2.0
/* Physical memory. It is counted by its creator and by each mapping. Whoever drops the last
 * reference, on any thread, gives it back to its device. Kernels and copies reach it through
 * mappings only (space.c). */
#include <stdatomic.h>

#include "base/alloc.h"
#include "base/error.h"
#include "device/space.h"

struct ws_memory {
    _Atomic uint32_t n_refs;
    struct ws_device *device;
    uint64_t bytes;
    struct ws_backing backing;
};

int ws_device_memory_new(struct ws_device *d, uint64_t bytes, struct ws_memory **ret)
{
    if (!bytes || bytes % WS_DEVICE_PAGE_BYTES)
        return ws_raise(-EINVAL);
    struct ws_memory *m = ws_alloc(sizeof(*m));
    if (!m)
        return ws_raise(-ENOMEM);
    int r = d->ops->mem_alloc(d, bytes, &m->backing);
    if (r) {
        free(m);
        return r;
    }
    m->n_refs = 1;
    m->device = d;
    m->bytes = bytes;
    *ret = m;
    return 0;
}

int ws_memory_wrap(struct ws_device *d, uint64_t bytes, const struct ws_backing *b,
                   struct ws_memory **ret)
{
    struct ws_memory *m = ws_alloc(sizeof(*m));
    if (!m)
        return ws_raise(-ENOMEM);
    *m = (struct ws_memory){.n_refs = 1, .device = d, .bytes = bytes, .backing = *b};
    *ret = m;
    return 0;
}

void ws_memory_place(const struct ws_memory *m, uint64_t *ret_granule, uint64_t *ret_offset)
{
    *ret_granule = WS_DEVICE_PAGE_BYTES;
    *ret_offset = 0;
    if (m->device->ops->place)
        m->device->ops->place(m->device, m->backing.arg, ret_granule, ret_offset);
}

static struct ws_memory *memory_ref(struct ws_memory *m)
{
    atomic_fetch_add_explicit(&m->n_refs, 1, memory_order_relaxed);
    return m;
}

struct ws_memory *ws_memory_unref(struct ws_memory *m)
{
    if (m && atomic_fetch_sub_explicit(&m->n_refs, 1, memory_order_acq_rel) == 1) {
        m->backing.release(m->backing.arg, m->backing.host, m->bytes);
        free(m);
    }
    return NULL;
}

/* Of one mapping. */
struct memory_place {
    struct ws_memory *m;
    struct ws_space *space;
    uint64_t va;
};

static void unmapped(void *arg, uint8_t *host, uint64_t bytes)
{
    struct memory_place *p = arg;
    if (p->m->device->ops->unmap)
        p->m->device->ops->unmap(p->m->device, p->m->backing.arg, p->space, p->va, bytes);
    ws_memory_unref(p->m);
    free(p);
}

int ws_space_map_memory(struct ws_space *s, uint64_t va, uint64_t bytes, struct ws_memory *m,
                        uint64_t offset, uint32_t readers, uint32_t writers)
{
    const struct ws_device_ops *ops = m->device->ops;
    if (offset > m->bytes || bytes > m->bytes - offset || !bytes)
        return ws_raise(-EINVAL);
    struct memory_place *p = ws_alloc(sizeof(*p));
    if (!p)
        return ws_raise(-ENOMEM);
    *p = (struct memory_place){m, s, va};
    readers &= ws_device_peers(m->device);
    writers &= ws_device_peers(m->device);
    int r =
        ops->map ? ops->map(m->device, m->backing.arg, s, va, bytes, offset, readers, writers) : 0;
    if (r) {
        free(p);
        return r;
    }
    /* Where the host can't reach it, its address there is the one that the driver takes: the
     * device's. */
    struct ws_mapping map = {.va = va,
                             .bytes = bytes,
                             .host = m->backing.host ? m->backing.host + offset
                                                     : (uint8_t *)(uintptr_t)va,
                             .readers = readers,
                             .writers = writers,
                             .device = m->device};
    r = ws_space_map(s, &map, unmapped, p);
    if (!r) {
        memory_ref(m);
        return 0;
    }
    if (ops->unmap)
        ops->unmap(m->device, m->backing.arg, s, va, bytes);
    free(p);
    return r;
}
