// SPDX-License-Identifier: Apache-2.0
/* Handles, reservations and mappings as the program sees them. A handle has references from the
 * program (create, import, retain) and from its mappings; without any, it is given up to the
 * daemon. Mappings are kept sorted by address, and a call names one or several whole ones. The
 * session is told what copies can reach. */
#include "frontend/memory/vmm.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "frontend/errors.h"

struct handle {
    struct ws_slot slot;
    uint64_t object, bytes;
    int device, types; /* WS_CUDA_HANDLE_… that it may be exported as */
    unsigned n_refs, n_maps;
};
static struct ws_slab handles = WS_SLAB(struct handle);

struct map {
    uint64_t base, bytes;
    struct handle *handle;
    uint32_t readers, writers; /* devices as the client numbers them */
};
static struct map *maps;
static size_t n_maps, cap_maps;

struct reservation {
    uint64_t base, bytes;
    struct reservation *next;
};
static struct reservation *reservations;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- handles. Lock held in all of them ---- */

static struct handle *handle_of(uint64_t h)
{
    struct handle *x = (struct handle *)(uintptr_t)h;
    return ws_slab_has(&handles, x) && x->n_refs ? x : NULL;
}

static int handle_new(uint64_t object, uint64_t bytes, int device, int types, uint64_t *ret)
{
    struct handle *h = ws_slab_new(&handles);
    if (!h) {
        (void)ws_session_memory_release(object);
        return CUDA_OUT_OF_MEMORY;
    }
    h->object = object;
    h->bytes = bytes;
    h->device = device;
    h->types = types;
    h->n_refs = 1;
    h->n_maps = 0;
    *ret = (uintptr_t)h;
    return CUDA_OK;
}

static ws_err settle(struct handle *h)
{
    if (h->n_refs || h->n_maps)
        return WS__ERROR__OK;
    ws_err r = h->object ? ws_session_memory_release(h->object) : WS__ERROR__OK;
    ws_slab_free(&handles, h);
    return r;
}

static int check_prop(const struct cu_mem_allocation_prop *p)
{
    if (!p || p->requestedHandleTypes & ~WS_CUDA_HANDLES)
        return CUDA_INVALID_VALUE;
    if (p->type == WS_CUDA_ALLOCATION_MANAGED || p->location.type == WS_CUDA_LOCATION_HOST ||
        p->location.type == WS_CUDA_LOCATION_HOST_NUMA ||
        p->location.type == WS_CUDA_LOCATION_HOST_NUMA_CURRENT) {
        ws_session_unsupported("cuMemCreate of memory that is not on a device");
        return CUDA_NOT_SUPPORTED;
    }
    if (p->type != WS_CUDA_ALLOCATION_PINNED || p->location.type != WS_CUDA_LOCATION_DEVICE)
        return CUDA_INVALID_VALUE;
    if (!ws_session_device(p->location.id))
        return CUDA_INVALID_DEVICE;
    if (p->requestedHandleTypes & ~WS_CUDA_HANDLE_FD ||
        (p->requestedHandleTypes && !ws_session_maps_host())) {
        ws_session_unsupported("shareable memory handles other than POSIX file descriptors");
        return CUDA_NOT_SUPPORTED;
    }
    return CUDA_OK;
}

int ws_vmm_create(uint64_t *ret_handle, uint64_t bytes, const struct cu_mem_allocation_prop *prop)
{
    uint64_t object;
    int code = check_prop(prop);
    if (!code && (!ret_handle || !bytes || bytes % WS_MEM_GRANULE_BYTES))
        code = CUDA_INVALID_VALUE;
    if (!code)
        code = ws_drv_error(ws_session_memory_create(prop->location.id, bytes, &object));
    if (code)
        return code;
    pthread_mutex_lock(&lock);
    code = handle_new(object, bytes, prop->location.id, prop->requestedHandleTypes, ret_handle);
    pthread_mutex_unlock(&lock);
    return code;
}

int ws_vmm_release(uint64_t handle)
{
    pthread_mutex_lock(&lock);
    struct handle *h = handle_of(handle);
    int code = h ? CUDA_OK : CUDA_INVALID_VALUE;
    if (h) {
        h->n_refs--;
        code = ws_drv_error(settle(h));
    }
    pthread_mutex_unlock(&lock);
    return code;
}

int ws_vmm_properties(struct cu_mem_allocation_prop *ret, uint64_t handle)
{
    pthread_mutex_lock(&lock);
    struct handle *h = handle_of(handle);
    if (h && ret)
        *ret = (struct cu_mem_allocation_prop){.type = WS_CUDA_ALLOCATION_PINNED,
                                               .requestedHandleTypes = h->types,
                                               .location = {WS_CUDA_LOCATION_DEVICE, h->device}};
    pthread_mutex_unlock(&lock);
    return h && ret ? CUDA_OK : CUDA_INVALID_VALUE;
}

int ws_vmm_export(int *ret_fd, uint64_t handle)
{
    uint64_t object = 0;
    pthread_mutex_lock(&lock);
    struct handle *h = handle_of(handle);
    if (h && h->types & WS_CUDA_HANDLE_FD)
        object = h->object;
    pthread_mutex_unlock(&lock);
    if (!object || !ret_fd)
        return CUDA_INVALID_VALUE;
    return ws_drv_error(ws_session_memory_export(object, ret_fd));
}

int ws_vmm_import(uint64_t *ret_handle, int fd)
{
    uint64_t object, bytes;
    int device;
    if (!ret_handle)
        return CUDA_INVALID_VALUE;
    int code = ws_drv_error(ws_session_memory_import(fd, &object, &device, &bytes));
    if (code)
        return code;
    pthread_mutex_lock(&lock);
    code = handle_new(object, bytes, device, WS_CUDA_HANDLE_FD, ret_handle);
    pthread_mutex_unlock(&lock);
    return code;
}

/* ---- addresses ---- */

int ws_vmm_reserve(uint64_t *ret_address, uint64_t bytes, uint64_t alignment, uint64_t wanted)
{
    uint64_t base;
    if (!ret_address || !bytes || bytes % WS_MEM_GRANULE_BYTES || alignment & (alignment - 1))
        return CUDA_INVALID_VALUE;
    struct reservation *r = ws_alloc(sizeof(*r));
    if (!r)
        return CUDA_OUT_OF_MEMORY;
    int code = ws_drv_error(ws_session_va_reserve(bytes, alignment, wanted, &base));
    if (code) {
        free(r);
        return code;
    }
    pthread_mutex_lock(&lock);
    *r = (struct reservation){base, bytes, reservations};
    reservations = r;
    pthread_mutex_unlock(&lock);
    *ret_address = base;
    return CUDA_OK;
}

/* Index of the first mapping with base > @address. */
static size_t upper(uint64_t address)
{
    size_t lo = 0, hi = n_maps;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (maps[mid].base <= address)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static struct map *map_at(uint64_t address)
{
    size_t i = upper(address);
    return i && address - maps[i - 1].base < maps[i - 1].bytes ? &maps[i - 1] : NULL;
}

int ws_vmm_unreserve(uint64_t address, uint64_t bytes)
{
    pthread_mutex_lock(&lock);
    struct reservation **at = &reservations, *r = NULL;
    while (*at && (*at)->base != address)
        at = &(*at)->next;
    size_t i = upper(address);
    bool empty = !map_at(address) && (i == n_maps || maps[i].base - address >= bytes);
    int code = CUDA_INVALID_VALUE;
    if (*at && (*at)->bytes == bytes && empty) {
        r = *at;
        *at = r->next;
        code = ws_drv_error(ws_session_va_free(address));
    }
    pthread_mutex_unlock(&lock);
    free(r);
    return code;
}

/* ---- mappings ---- */

int ws_vmm_map(uint64_t address, uint64_t bytes, uint64_t handle)
{
    pthread_mutex_lock(&lock);
    struct handle *h = handle_of(handle);
    int code = h && h->object && bytes <= h->bytes ? CUDA_OK : CUDA_INVALID_VALUE;
    if (!code && ws_grow((void **)&maps, &cap_maps, n_maps + 1, sizeof(*maps)))
        code = CUDA_OUT_OF_MEMORY;
    if (!code)
        code = ws_drv_error(ws_session_map(address, bytes, h->object, 0));
    if (!code) {
        size_t i = upper(address);
        memmove(maps + i + 1, maps + i, (n_maps - i) * sizeof(*maps));
        maps[i] = (struct map){address, bytes, h, 0, 0};
        n_maps++;
        h->n_maps++;
    }
    pthread_mutex_unlock(&lock);
    return code;
}

/* The mappings that make up [address, address + bytes). Return: how many; 0: it does not consist of
 * whole mappings. Lock held. */
static size_t run(uint64_t address, uint64_t bytes, size_t *ret_from)
{
    size_t i = upper(address), from = i - 1;
    if (!i || !bytes)
        return 0;
    for (i = from; i < n_maps && bytes; i++) {
        if (maps[i].base != address || maps[i].bytes > bytes)
            return 0;
        address += maps[i].bytes;
        bytes -= maps[i].bytes;
    }
    *ret_from = from;
    return bytes ? 0 : i - from;
}

static void forget(size_t from, size_t n)
{
    for (size_t i = from; i < from + n; i++) {
        if (maps[i].readers)
            ws_session_virtual_remove(maps[i].base);
        maps[i].handle->n_maps--;
        (void)settle(maps[i].handle);
    }
    memmove(maps + from, maps + from + n, (n_maps - from - n) * sizeof(*maps));
    n_maps -= n;
}

int ws_vmm_unmap(uint64_t address, uint64_t bytes)
{
    size_t from, n;
    pthread_mutex_lock(&lock);
    n = run(address, bytes, &from);
    int code = n ? ws_drv_error(ws_session_unmap(address, bytes)) : CUDA_INVALID_VALUE;
    if (!code)
        forget(from, n);
    pthread_mutex_unlock(&lock);
    return code;
}

static int set_access(struct map *m, int device, int flags)
{
    uint32_t bit = UINT32_C(1) << device;
    bool had = m->readers, was_readonly = !m->writers;
    m->readers = flags & WS_CUDA_PROT_READ ? m->readers | bit : m->readers & ~bit;
    m->writers = flags == WS_CUDA_PROT_READWRITE ? m->writers | bit : m->writers & ~bit;
    if (had && (!m->readers || was_readonly != !m->writers))
        ws_session_virtual_remove(m->base);
    else if (had)
        return CUDA_OK;
    return m->readers ? ws_drv_error(ws_session_virtual_add(m->base, m->bytes, m->handle->device,
                                                            !m->writers))
                      : CUDA_OK;
}

int ws_vmm_set_access(uint64_t address, uint64_t bytes, int device, int flags)
{
    size_t from = 0, n;
    if (flags != WS_CUDA_PROT_NONE && flags != WS_CUDA_PROT_READ && flags != WS_CUDA_PROT_READWRITE)
        return CUDA_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    n = run(address, bytes, &from);
    int code = n ? ws_drv_error(ws_session_access(address, bytes, device, flags != 0,
                                                  flags == WS_CUDA_PROT_READWRITE))
                 : CUDA_INVALID_VALUE;
    for (size_t i = from; !code && i < from + n; i++)
        code = set_access(&maps[i], device, flags);
    pthread_mutex_unlock(&lock);
    return code;
}

int ws_vmm_get_access(uint64_t address, int device, int *ret_flags)
{
    pthread_mutex_lock(&lock);
    const struct map *m = map_at(address);
    if (m)
        *ret_flags = m->writers >> device & 1   ? WS_CUDA_PROT_READWRITE
                     : m->readers >> device & 1 ? WS_CUDA_PROT_READ
                                                : WS_CUDA_PROT_NONE;
    pthread_mutex_unlock(&lock);
    return m ? CUDA_OK : CUDA_INVALID_VALUE;
}

int ws_vmm_retain(uint64_t *ret_handle, uint64_t address)
{
    pthread_mutex_lock(&lock);
    struct map *m = map_at(address);
    if (m && ret_handle) {
        m->handle->n_refs++;
        *ret_handle = (uintptr_t)m->handle;
    }
    pthread_mutex_unlock(&lock);
    return m && ret_handle ? CUDA_OK : CUDA_INVALID_VALUE;
}

static void handle_lost(void *object, void *arg)
{
    struct handle *h = object;
    if (h->device == *(const int *)arg)
        ws_slab_free(&handles, h);
}

void ws_vmm_reset_device(int device)
{
    size_t n = 0;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < n_maps; i++)
        if (maps[i].handle->device != device)
            maps[n++] = maps[i];
    n_maps = n;
    ws_slab_each(&handles, handle_lost, &device);
    pthread_mutex_unlock(&lock);
}
