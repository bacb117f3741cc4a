// SPDX-License-Identifier: Apache-2.0
/* Device memory by the driver's virtual memory management: a client's allocation lies where the daemon says.
 *
 * Physical memory comes in granules of 2 MiB. What is at least as large has a handle of its own for its whole granules, made when it is
 * allocated, and mapped at multiples of 2 MiB. The rest of it, and small allocations, share granules: the first that is mapped into a
 * granule of addresses brings memory for it, the last one takes it away. So packed memory is where it is mapped, and can't be mapped
 * at a second place; memory with a handle can.
 *
 * Addresses are reserved with the driver in pieces of 16 GiB, the daemon's own granules of addresses, when first needed, and kept:
 * one range for all GPUs of the process. The driver may refuse an address; then so do we.
 *
 * Host memory that a client has mapped for kernels lies at the client's address, where the daemon's own view of it is not: the pages are
 * mapped there a second time and pinned. Only shared mappings can be.
 *
 * No memory is touched by other clients' work here, but a call may make the driver wait for the GPU: granules are kept for the next. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <uthash.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "device/cuda/cuda_private.h"

#define RESERVE_BYTES (UINT64_C(16) << 30)
#define PAGE_BYTES    UINT64_C(4096)

struct ws_cuda_granule {
    uint64_t va;
    ws_cu_handle handle;
    uint32_t n_mappings;
    UT_hash_handle hh;
};
struct ws_cuda_region { /* of host memory, pinned */
    struct ws_cuda_region *next;
    uint8_t *host;
    uint64_t bytes;
};
struct memory { /* what ws_backing.arg is */
    struct ws_cuda *device;
    uint64_t bytes, whole_bytes; /* whole granules with a handle */
    ws_cu_handle handle;
    bool cleared;
    bool packed; /* its packed part is mapped, which it can be once */
};

/* ---- addresses, of the process ---- */

static pthread_mutex_t reserve_lock = PTHREAD_MUTEX_INITIALIZER;
static struct reserved {
    uint64_t va, bytes;
} * reserved;
static size_t n_reserved, cap_reserved;
static struct ws_cuda *devices[WS_ACCESS_DEVICES]; /* open ones, by index */
static unsigned n_open;

static bool is_reserved(uint64_t va, uint64_t bytes)
{
    for (size_t i = 0; i < n_reserved; i++)
        if (va >= reserved[i].va && va - reserved[i].va < reserved[i].bytes)
            return bytes <= reserved[i].bytes - (va - reserved[i].va);
    return false;
}

static bool meets_reserved(uint64_t va, uint64_t bytes)
{
    for (size_t i = 0; i < n_reserved; i++)
        if (va < reserved[i].va + reserved[i].bytes && reserved[i].va < va + bytes)
            return true;
    return false;
}

/* Several clients' pieces may adjoin: what is asked for either is in one reservation or meets none. */
static int reserve_locked(struct ws_cuda *d, uint64_t va, uint64_t bytes)
{
    if (is_reserved(va, bytes))
        return 0;
    uint64_t from = va & ~(RESERVE_BYTES - 1), to = WS_ALIGN_UP(va + bytes, RESERVE_BYTES);
    if (meets_reserved(from, to - from))
        return ws_raise(-ENOMEM);
    int r = ws_grow((void **)&reserved, &cap_reserved, n_reserved + 1, sizeof *reserved);
    if (r)
        return ws_forward(r);
    ws_cu_ptr got = 0;
    if (WS_CU(d, cuMemAddressReserve, &got, to - from, RESERVE_BYTES, from, 0) != WS_CU_SUCCESS)
        return ws_raise(-ENOMEM);
    if (got != from) {
        (void)WS_CU(d, cuMemAddressFree, got, to - from);
        ws_log(WS_ERROR, "cuda: the driver does not give the addresses from 0x%llx",
               (unsigned long long)from);
        return ws_raise(-ENOMEM);
    }
    reserved[n_reserved++] = (struct reserved){from, to - from};
    return 0;
}

static int reserve(struct ws_cuda *d, uint64_t va, uint64_t bytes)
{
    pthread_mutex_lock(&reserve_lock);
    int r = reserve_locked(d, va, bytes);
    pthread_mutex_unlock(&reserve_lock);
    return r;
}

/* ---- physical memory ---- */

static ws_cu_result create(struct ws_cuda *d, uint64_t bytes, ws_cu_handle *ret)
{
    struct ws_cu_alloc_prop p = {.type = WS_CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {WS_CU_MEM_LOCATION_TYPE_DEVICE, d->device}};
    return WS_CU(d, cuMemCreate, ret, bytes, &p, 0);
}

static void give_back(struct ws_cuda *d, ws_cu_handle h)
{
    if (d->n_spare < WS_ARRAY_SIZE(d->spare) && !d->lost)
        d->spare[d->n_spare++] = h;
    else
        (void)WS_CU(d, cuMemRelease, h);
}

/* Who may touch a mapping, as the driver wants it told. */
static ws_cu_result allow(struct ws_cuda *d, uint64_t va, uint64_t bytes, uint32_t readers,
                          uint32_t writers)
{
    struct ws_cu_access a[WS_ACCESS_DEVICES];
    size_t n = 0;
    for (unsigned i = 0; i < WS_ACCESS_DEVICES; i++) {
        const struct ws_cuda *who = i == d->base.index ? d : devices[i];
        bool own = i == d->base.index; /* copies are the daemon's, whatever kernels may do */
        if (who && (own || readers >> i & 1))
            a[n++] = (struct ws_cu_access){{WS_CU_MEM_LOCATION_TYPE_DEVICE, who->device},
                                           writers >> i & 1 || own
                                               ? WS_CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                                               : WS_CU_MEM_ACCESS_FLAGS_PROT_READ};
    }
    return WS_CU(d, cuMemSetAccess, va, bytes, a, n);
}

static ws_cu_result map_handle(struct ws_cuda *d, uint64_t va, uint64_t bytes, ws_cu_handle h,
                               uint32_t readers, uint32_t writers)
{
    ws_cu_result r = WS_CU(d, cuMemMap, va, bytes, 0, h, 0);
    if (r != WS_CU_SUCCESS)
        return r;
    r = allow(d, va, bytes, readers, writers);
    if (r != WS_CU_SUCCESS)
        (void)WS_CU(d, cuMemUnmap, va, bytes);
    return r;
}

/* ---- granules shared by small allocations. memory_lock held ---- */

static void granule_put(struct ws_cuda *d, uint64_t va)
{
    struct ws_cuda_granule *g;
    HASH_FIND(hh, d->granules, &va, sizeof va, g);
    if (!g || --g->n_mappings)
        return;
    (void)WS_CU(d, cuMemUnmap, va, WS_CUDA_GRANULE_BYTES);
    give_back(d, g->handle);
    HASH_DEL(d->granules, g);
    free(g);
}

static ws_cu_result granule_get(struct ws_cuda *d, uint64_t va, uint32_t readers, uint32_t writers)
{
    struct ws_cuda_granule *g;
    HASH_FIND(hh, d->granules, &va, sizeof va, g);
    if (g) {
        g->n_mappings++;
        return WS_CU_SUCCESS;
    }
    g = ws_alloc(sizeof *g);
    if (!g)
        return WS_CU_OUT_OF_MEMORY;
    g->va = va;
    g->n_mappings = 1;
    ws_cu_result r = WS_CU_SUCCESS;
    if (d->n_spare)
        g->handle = d->spare[--d->n_spare];
    else
        r = create(d, WS_CUDA_GRANULE_BYTES, &g->handle);
    if (r == WS_CU_SUCCESS) {
        r = map_handle(d, va, WS_CUDA_GRANULE_BYTES, g->handle, readers, writers);
        if (r != WS_CU_SUCCESS)
            give_back(d, g->handle);
    }
    if (r != WS_CU_SUCCESS) {
        free(g);
        return r;
    }
    HASH_ADD(hh, d->granules, va, sizeof g->va, g);
    return WS_CU_SUCCESS;
}

static void granules_put(struct ws_cuda *d, uint64_t va, uint64_t bytes)
{
    for (uint64_t g = va & ~(WS_CUDA_GRANULE_BYTES - 1); bytes && g < va + bytes;
         g += WS_CUDA_GRANULE_BYTES)
        granule_put(d, g);
}

static ws_cu_result granules_get(struct ws_cuda *d, uint64_t va, uint64_t bytes, uint32_t readers,
                                 uint32_t writers)
{
    uint64_t first = va & ~(WS_CUDA_GRANULE_BYTES - 1);
    for (uint64_t g = first; bytes && g < va + bytes; g += WS_CUDA_GRANULE_BYTES) {
        ws_cu_result r = granule_get(d, g, readers, writers);
        if (r != WS_CU_SUCCESS) {
            for (; g > first; g -= WS_CUDA_GRANULE_BYTES)
                granule_put(d, g - WS_CUDA_GRANULE_BYTES);
            return r;
        }
    }
    return WS_CU_SUCCESS;
}

static ws_cu_result clear(struct ws_cuda *d, uint64_t va, uint64_t bytes)
{
    ws_cu_result r = WS_CU(d, cuMemsetD8Async, va, 0, bytes, d->memory_stream);
    return r == WS_CU_SUCCESS ? ws_cuda_drain(d, d->memory_stream) : r;
}

/* ---- device.h ---- */

static void release(void *arg, uint8_t *host, uint64_t bytes)
{
    struct memory *m = arg;
    (void)ws_cuda_enter(m->device);
    if (m->whole_bytes)
        (void)WS_CU(m->device, cuMemRelease, m->handle);
    m->device->memory_used -= m->bytes;
    free(m);
}

int ws_cuda_mem_alloc(struct ws_device *dev, uint64_t bytes, struct ws_backing *ret)
{
    struct ws_cuda *d = ws_cuda_of(dev);
    struct memory *m = ws_alloc(sizeof *m);
    if (!m)
        return ws_raise(-ENOMEM);
    *m = (struct memory){
        .device = d, .bytes = bytes, .whole_bytes = bytes & ~(WS_CUDA_GRANULE_BYTES - 1)};
    uint64_t used = atomic_fetch_add(&d->memory_used, bytes) + bytes;
    ws_cu_result r = used > d->memory_limit || d->lost ? WS_CU_OUT_OF_MEMORY : ws_cuda_enter(d);
    if (r == WS_CU_SUCCESS && m->whole_bytes)
        r = create(d, m->whole_bytes, &m->handle);
    if (r != WS_CU_SUCCESS) {
        d->memory_used -= bytes;
        free(m);
        return WS_DEV_E_NO_MEMORY;
    }
    *ret = (struct ws_backing){.release = release, .arg = m};
    return 0;
}

/* The part of a mapping that the handle backs; the rest is packed. */
static uint64_t whole_of(const struct memory *m, uint64_t bytes)
{
    return WS_MIN(m->whole_bytes, bytes);
}

int ws_cuda_map(struct ws_device *dev, void *arg, struct ws_space *s, uint64_t va, uint64_t bytes,
                uint64_t offset, uint32_t readers, uint32_t writers)
{
    struct ws_cuda *d = ws_cuda_of(dev);
    struct memory *m = arg;
    uint64_t whole = whole_of(m, bytes);
    /* The driver maps a handle from its beginning only. */
    if (offset || (whole && va % WS_CUDA_GRANULE_BYTES) || va + bytes < va ||
        (whole < m->whole_bytes && bytes > whole))
        return ws_raise(-EINVAL);
    int e = reserve(d, va, bytes);
    if (e)
        return ws_forward(e);
    pthread_mutex_lock(&d->memory_lock);
    if (bytes > whole && m->packed) {
        pthread_mutex_unlock(&d->memory_lock);
        ws_log(WS_INFO, "cuda: memory of %llu bytes is shared, which takes a multiple of 2 MiB",
               (unsigned long long)m->bytes);
        return ws_raise(-EINVAL);
    }
    ws_cu_result r = d->lost ? WS_CU_CONTEXT_IS_DESTROYED : ws_cuda_enter(d);
    bool mapped = false;
    if (r == WS_CU_SUCCESS && whole) {
        r = map_handle(d, va, whole, m->handle, readers, writers);
        mapped = r == WS_CU_SUCCESS;
    }
    if (r == WS_CU_SUCCESS)
        r = granules_get(d, va + whole, bytes - whole, readers, writers);
    bool packed = r == WS_CU_SUCCESS;
    if (r == WS_CU_SUCCESS && (!m->cleared || bytes > whole))
        r = m->cleared ? clear(d, va + whole, bytes - whole) : clear(d, va, bytes);
    if (r == WS_CU_SUCCESS) {
        m->cleared = true;
        m->packed = m->packed || bytes > whole;
    } else {
        if (packed)
            granules_put(d, va + whole, bytes - whole);
        if (mapped)
            (void)WS_CU(d, cuMemUnmap, va, whole);
    }
    pthread_mutex_unlock(&d->memory_lock);
    return r == WS_CU_SUCCESS ? 0 : ws_raise(-ENOMEM);
}

void ws_cuda_unmap(struct ws_device *dev, void *arg, struct ws_space *s, uint64_t va,
                   uint64_t bytes)
{
    struct ws_cuda *d = ws_cuda_of(dev);
    struct memory *m = arg;
    uint64_t whole = whole_of(m, bytes);
    pthread_mutex_lock(&d->memory_lock);
    (void)ws_cuda_enter(d);
    if (whole)
        (void)WS_CU(d, cuMemUnmap, va, whole);
    granules_put(d, va + whole, bytes - whole);
    m->packed = m->packed && bytes == whole;
    pthread_mutex_unlock(&d->memory_lock);
}

void ws_cuda_set_access(struct ws_device *dev, struct ws_space *s, uint64_t va, uint64_t bytes,
                        uint32_t readers, uint32_t writers)
{
    struct ws_cuda *d = ws_cuda_of(dev);
    uint64_t from = va & ~(WS_CUDA_GRANULE_BYTES - 1),
             to = WS_ALIGN_UP(va + bytes, WS_CUDA_GRANULE_BYTES);
    pthread_mutex_lock(&d->memory_lock);
    if (ws_cuda_enter(d) == WS_CU_SUCCESS && allow(d, from, to - from, readers, writers))
        ws_log(WS_ERROR, "cuda: access to 0x%llx not set", (unsigned long long)va);
    pthread_mutex_unlock(&d->memory_lock);
}

/* ---- host memory ---- */

void ws_cuda_host_register(struct ws_device *dev, void *host, uint64_t bytes, int fd)
{
    struct ws_cuda *d = ws_cuda_of(dev);
    struct ws_cuda_region *g = d->can_register ? ws_alloc(sizeof *g) : NULL;
    if (!g || d->lost || ws_cuda_enter(d) != WS_CU_SUCCESS ||
        WS_CU(d, cuMemHostRegister, host, bytes, WS_CU_MEMHOSTREGISTER_PORTABLE) != WS_CU_SUCCESS) {
        free(g); /* copies go by the driver's staging then */
        return;
    }
    g->host = host;
    g->bytes = bytes;
    pthread_mutex_lock(&d->memory_lock);
    g->next = d->registered;
    d->registered = g;
    pthread_mutex_unlock(&d->memory_lock);
}

void ws_cuda_host_unregister(struct ws_device *dev, void *host, uint64_t bytes)
{
    struct ws_cuda *d = ws_cuda_of(dev);
    pthread_mutex_lock(&d->memory_lock);
    struct ws_cuda_region **p = &d->registered, *g;
    while ((g = *p) && g->host != host)
        p = &g->next;
    if (g)
        *p = g->next;
    pthread_mutex_unlock(&d->memory_lock);
    if (!g)
        return;
    if (ws_cuda_enter(d) == WS_CU_SUCCESS)
        (void)WS_CU(d, cuMemHostUnregister, host);
    free(g);
}

bool ws_cuda_is_pinned(struct ws_cuda *d, const void *host, uint64_t bytes)
{
    const uint8_t *p = host;
    pthread_mutex_lock(&d->memory_lock);
    const struct ws_cuda_region *g = d->registered;
    while (g && !(p >= g->host && (uint64_t)(p - g->host) < g->bytes &&
                  bytes <= g->bytes - (uint64_t)(p - g->host)))
        g = g->next;
    pthread_mutex_unlock(&d->memory_lock);
    return g != NULL;
}

/* Any open device: registration is portable. reserve_lock held. */
static struct ws_cuda *any_device(void)
{
    for (unsigned i = 0; i < WS_ACCESS_DEVICES; i++)
        if (devices[i] && !devices[i]->lost)
            return devices[i];
    return NULL;
}

/* @host's pages once more at @va. */
static int host_map(struct ws_space *s, uint64_t va, uint64_t bytes, void *host)
{
    uint64_t whole = WS_ALIGN_UP(bytes, PAGE_BYTES);
    void *at = (void *)(uintptr_t)va, *p;
    if (va % PAGE_BYTES || (uintptr_t)host % PAGE_BYTES)
        return -EINVAL;
    pthread_mutex_lock(&reserve_lock);
    struct ws_cuda *d = any_device();
    int r = d && ws_cuda_enter(d) == WS_CU_SUCCESS ? 0 : -ENOMEM;
    if (!r) {
        p = mmap(at, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (p != at) { /* something of the daemon's is there */
            if (p != MAP_FAILED)
                munmap(p, whole);
            r = -EEXIST;
        }
    }
    if (!r) { /* length 0: a second mapping of the same pages */
        p = mremap(host, 0, whole, MREMAP_MAYMOVE | MREMAP_FIXED, at);
        if (p != at || WS_CU(d, cuMemHostRegister, at, whole,
                             WS_CU_MEMHOSTREGISTER_PORTABLE | WS_CU_MEMHOSTREGISTER_DEVICEMAP) !=
                           WS_CU_SUCCESS) {
            munmap(at, whole);
            r = -EINVAL;
        }
    }
    pthread_mutex_unlock(&reserve_lock);
    return r;
}

static void host_unmap(struct ws_space *s, uint64_t va, uint64_t bytes)
{
    void *at = (void *)(uintptr_t)va;
    pthread_mutex_lock(&reserve_lock);
    struct ws_cuda *d = any_device();
    if (d && ws_cuda_enter(d) == WS_CU_SUCCESS)
        (void)WS_CU(d, cuMemHostUnregister, at);
    munmap(at, WS_ALIGN_UP(bytes, PAGE_BYTES));
    pthread_mutex_unlock(&reserve_lock);
}

static const struct ws_host_hook hook = {host_map, host_unmap, NULL};

/* ---- opening and closing ---- */

int ws_cuda_memory_open(struct ws_cuda *d, struct ws_diags *diags)
{
    struct ws_cu_alloc_prop p = {.type = WS_CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {WS_CU_MEM_LOCATION_TYPE_DEVICE, d->device}};
    size_t granule = 0, free_bytes = 0, total = 0;
    ws_cu_result r =
        WS_CU(d, cuMemGetAllocationGranularity, &granule, &p, WS_CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    if (r == WS_CU_SUCCESS)
        r = WS_CU(d, cuMemGetInfo, &free_bytes, &total);
    if (r == WS_CU_SUCCESS)
        r = WS_CU(d, cuStreamCreateWithPriority, &d->memory_stream, WS_CU_STREAM_NON_BLOCKING, 0);
    if (r != WS_CU_SUCCESS)
        return WS_CUDA_E_MISSING;
    if (!granule || WS_CUDA_GRANULE_BYTES % granule) {
        ws_diags_add(diags, NULL, 0, 0,
                     "cuda:%d: memory comes in granules of %zu bytes; 2 MiB must be a multiple",
                     d->ordinal, granule);
        return WS_CUDA_E_MISSING;
    }
    d->memory_limit = d->base.spec.memory_bytes;
    ws_cuda_say(d, "memory at fixed addresses", true, "granules of %zu KiB; %zu of %zu MiB free",
                granule >> 10, free_bytes >> 20, total >> 20);
    ws_cuda_say(d, "pinned staging", d->can_register, "%s",
                d->can_register ? "segments are registered with the driver"
                                : "the GPU can't register host memory: copies are staged twice");
    pthread_mutex_lock(&reserve_lock);
    if (d->base.index < WS_ACCESS_DEVICES)
        devices[d->base.index] = d;
    if (!n_open++)
        ws_space_set_host_hook(&hook);
    pthread_mutex_unlock(&reserve_lock);
    return 0;
}

void ws_cuda_memory_close(struct ws_cuda *d)
{
    if (!d->memory_stream) {
        pthread_mutex_destroy(&d->memory_lock);
        return;
    }
    while (d->n_spare)
        (void)d->cu.cuMemRelease(d->spare[--d->n_spare]);
    (void)d->cu.cuStreamDestroy(d->memory_stream);
    pthread_mutex_lock(&reserve_lock);
    bool counted = d->base.index < WS_ACCESS_DEVICES && devices[d->base.index] == d;
    if (counted) {
        devices[d->base.index] = NULL;
        if (!--n_open) {
            ws_space_set_host_hook(NULL);
            for (size_t i = 0; i < n_reserved; i++)
                (void)d->cu.cuMemAddressFree(reserved[i].va, reserved[i].bytes);
            free(reserved);
            reserved = NULL;
            n_reserved = cap_reserved = 0;
        }
    }
    pthread_mutex_unlock(&reserve_lock);
    pthread_mutex_destroy(&d->memory_lock);
}
