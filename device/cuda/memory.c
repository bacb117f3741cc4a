// SPDX-License-Identifier: Apache-2.0
/* Device memory by the driver's virtual memory management: a client's allocation lies at the
 * address that the daemon chooses.
 *
 * Physical memory comes in granules of 2 MiB (piece.c). An allocation of at least 2 MiB has a piece
 * of its own for its whole granules, made when it is allocated, and mapped at multiples of 2 MiB.
 * The rest of it, and small allocations, are packed memory, which shares granules. The first packed
 * memory that is mapped into a granule of addresses brings physical memory for it, which is
 * released with the last that has a share of it. So packed memory gets its place in a granule when
 * it is first mapped.
 *
 * Packed memory can be mapped at other addresses as well, as IPC does: at the same place in a
 * granule. The whole physical granule is then mapped there, so nothing else can lie in that granule
 * of addresses (ws_memory_place()). Fences keep kernels from the other memory in the granule, and
 * the space's table keeps copies from it. A place in a granule is free again when the memory is
 * released, not when it is unmapped from its first address.
 *
 * Addresses are reserved with the driver when first needed, 16 GiB at a time as the daemon gives
 * them out, and are kept. One range serves all GPUs of the process. An allocation fails if the
 * driver refuses its address.
 *
 * Host memory that a client has mapped for kernels lies at the client's address, which differs from
 * the daemon's. The pages are mapped there a second time, and pinned. This works for shared
 * mappings only.
 *
 * Memory is cleared before a client gets it. The driver fills memory by kernels, which would wait
 * for a kernel that has all of the GPU. So memory is filled only while nothing else runs; otherwise
 * zeros are copied there, since copies need no SM.
 *
 * A call may make the driver wait for the GPU, so free granules are kept for the next
 * allocation. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "base/table.h"
#include "device/cuda/cuda_private.h"

#define RESERVE_BYTES (UINT64_C(16) << 30)
#define PAGE_BYTES    UINT64_C(4096)

/* A granule of addresses that packed memory is at. */
struct ws_cuda_place {
    uint64_t va;
    struct ws_cuda_piece *piece;
    uint32_t n_mappings;
    uint32_t readers, writers; /* of everything that is mapped here; fences tell it apart */
    UT_hash_handle hh;
};
/* Pinned host memory. */
struct ws_cuda_region {
    struct ws_cuda_region *next;
    uint8_t *host;
    uint64_t bytes;
};
/* What packed memory has of one granule. */
struct granule_share {
    struct ws_list node; /* in piece->shares */
    struct ws_cuda_piece *piece;
    uint64_t at, bytes; /* in the granule */
};
enum { SHARES = 2 }; /* packed memory is smaller than a granule, so it is in two at most */
/* What ws_backing.arg is. */
struct cuda_memory {
    struct ws_cuda *device;
    uint64_t bytes;
    uint64_t whole_bytes; /* of whole granules, which have a piece of their own */
    struct ws_cuda_piece *whole;
    struct granule_share shares[SHARES]; /* from when it is first mapped */
    uint64_t cleared_bytes;
    bool adopted; /* it has shares of granules that another process made */
};

/* ---- addresses, of the process ---- */

static pthread_mutex_t reserve_lock = PTHREAD_MUTEX_INITIALIZER;
struct reserved_range {
    uint64_t va, bytes;
};
static struct reserved_range *reserved;
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

/* Reservations of several clients may adjoin: a range must lie in one reservation or meet none. */
static int reserve_locked(struct ws_cuda *d, uint64_t va, uint64_t bytes)
{
    if (is_reserved(va, bytes))
        return 0;
    uint64_t from = va & ~(RESERVE_BYTES - 1), to = WS_ALIGN_UP(va + bytes, RESERVE_BYTES);
    if (meets_reserved(from, to - from))
        return ws_raise(-ENOMEM);
    int r = ws_grow((void **)&reserved, &cap_reserved, n_reserved + 1, sizeof(*reserved));
    if (r)
        return ws_forward(r);
    ws_cu_ptr got = 0;
    /* The address is a multiple of RESERVE_BYTES. A driver need not accept to be asked for that. */
    if (WS_CU(d, cuMemAddressReserve, &got, to - from, RESERVE_BYTES, from, 0) != WS_CU_SUCCESS &&
        WS_CU(d, cuMemAddressReserve, &got, to - from, 0, from, 0) != WS_CU_SUCCESS)
        return ws_raise(-ENOMEM);
    if (got != from) {
        (void)WS_CU(d, cuMemAddressFree, got, to - from);
        ws_log(WS_ERROR, "cuda: the driver refused the addresses from 0x%llx",
               (unsigned long long)from);
        return ws_raise(-ENOMEM);
    }
    reserved[n_reserved++] = (struct reserved_range){from, to - from};
    return 0;
}

static int reserve(struct ws_cuda *d, uint64_t va, uint64_t bytes)
{
    pthread_mutex_lock(&reserve_lock);
    int r = reserve_locked(d, va, bytes);
    pthread_mutex_unlock(&reserve_lock);
    return r;
}

/* ---- mappings ---- */

/* Whether kernels of @who can reach memory of @d. */
static bool reaches(struct ws_cuda *d, const struct ws_cuda *who)
{
    int can = 0;
    return who == d ||
           (who && WS_CU(d, cuDeviceCanAccessPeer, &can, who->device, d->device) == WS_CU_SUCCESS &&
            can);
}

uint32_t ws_cuda_peers(struct ws_device *dev)
{
    struct ws_cuda *d = ws_cuda_of(dev);
    uint32_t mask = 0;
    pthread_mutex_lock(&reserve_lock);
    for (unsigned i = 0; i < WS_ACCESS_DEVICES; i++) {
        uint32_t bit = UINT32_C(1) << i;
        if (devices[i] && !(d->peers_known & bit)) {
            d->peers_known |= bit;
            d->peers |= reaches(d, devices[i]) ? bit : 0;
        }
        if (devices[i])
            mask |= d->peers & bit;
    }
    pthread_mutex_unlock(&reserve_lock);
    return mask;
}

/* Tells the driver which GPUs may read and write a mapping. */
static ws_cu_result allow(struct ws_cuda *d, uint64_t va, uint64_t bytes, uint32_t readers,
                          uint32_t writers)
{
    struct ws_cu_access a[WS_ACCESS_DEVICES];
    size_t n = 0;
    for (unsigned i = 0; i < WS_ACCESS_DEVICES; i++) {
        const struct ws_cuda *who = i == d->base.index ? d : devices[i];
        bool own = i == d->base.index; /* the daemon's copies need it, whatever kernels may do */
        if (who && (own || readers >> i & 1))
            a[n++] = (struct ws_cu_access){{WS_CU_MEM_LOCATION_TYPE_DEVICE, who->device},
                                           writers >> i & 1 || own
                                               ? WS_CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                                               : WS_CU_MEM_ACCESS_FLAGS_PROT_READ};
    }
    return WS_CU(d, cuMemSetAccess, va, bytes, a, n);
}

static ws_cu_result map_piece(struct ws_cuda *d, uint64_t va, uint64_t bytes,
                              const struct ws_cuda_piece *p, uint32_t readers, uint32_t writers)
{
    ws_cu_result r = WS_CU(d, cuMemMap, va, bytes, 0, p->handle, 0);
    if (r != WS_CU_SUCCESS)
        return r;
    r = allow(d, va, bytes, readers, writers);
    if (r != WS_CU_SUCCESS)
        (void)WS_CU(d, cuMemUnmap, va, bytes);
    return r;
}

/* ---- packed memory. memory_lock held ---- */

static struct ws_cuda_place *place_find(const struct ws_cuda *d, uint64_t va)
{
    struct ws_cuda_place *g;
    HASH_FIND(hh, d->places, &va, sizeof(va), g);
    return g;
}

static void place_free(struct ws_cuda *d, struct ws_cuda_place *g)
{
    ws_cuda_piece_gone(d, g->piece, g->va);
    (void)WS_CU(d, cuMemUnmap, g->va, WS_CUDA_GRANULE_BYTES);
    ws_cuda_piece_unref(d, g->piece);
    HASH_DEL(d->places, g);
    free(g);
}

/* Maps @p at @va, where nothing is mapped. */
static ws_cu_result place_new(struct ws_cuda *d, uint64_t va, struct ws_cuda_piece *p,
                              uint32_t readers, uint32_t writers, struct ws_cuda_place **ret)
{
    struct ws_cuda_place *g = ws_alloc(sizeof(*g));
    if (!g)
        return WS_CU_OUT_OF_MEMORY;
    ws_cu_result r = map_piece(d, va, WS_CUDA_GRANULE_BYTES, p, readers, writers);
    if (r != WS_CU_SUCCESS) {
        free(g);
        return r;
    }
    *g = (struct ws_cuda_place){.va = va, .piece = p, .readers = readers, .writers = writers};
    p->n_refs++;
    HASH_ADD(hh, d->places, va, sizeof(g->va), g);
    *ret = g;
    return WS_CU_SUCCESS;
}

static void place_put(struct ws_cuda *d, uint64_t va)
{
    struct ws_cuda_place *g = place_find(d, va);
    if (g && !--g->n_mappings)
        place_free(d, g);
}

/* The driver knows whole granules only, so a granule allows what any memory in it allows. */
static ws_cu_result place_allow(struct ws_cuda *d, struct ws_cuda_place *g, uint32_t readers,
                                uint32_t writers)
{
    if (!(readers & ~g->readers) && !(writers & ~g->writers))
        return WS_CU_SUCCESS;
    ws_cu_result r =
        allow(d, g->va, WS_CUDA_GRANULE_BYTES, g->readers | readers, g->writers | writers);
    if (r == WS_CU_SUCCESS) {
        g->readers |= readers;
        g->writers |= writers;
    }
    return r;
}

/* Whether other memory has a share in [at, at + bytes): it may be unmapped here and mapped
 * elsewhere. */
static bool is_taken(const struct ws_cuda_piece *p, uint64_t at, uint64_t bytes)
{
    ws_list_for_each (n, &p->shares) {
        const struct granule_share *t = ws_list_entry(n, struct granule_share, node);
        if (at < t->at + t->bytes && t->at < at + bytes)
            return true;
    }
    return false;
}

static void share_give(struct ws_cuda *d, struct granule_share *t)
{
    if (!t->piece)
        return;
    ws_list_remove(&t->node);
    t->piece = ws_cuda_piece_unref(d, t->piece);
}

/* Maps one granule's share of @m at offset @at in the granule of addresses @va. *ret_e: the error
 * if it is not one of the driver. */
static ws_cu_result share_map(struct ws_cuda *d, const struct cuda_memory *m,
                              struct granule_share *t, uint64_t va, uint64_t at, uint64_t bytes,
                              uint32_t readers, uint32_t writers, int *ret_e)
{
    struct ws_cuda_place *g = place_find(d, va);
    struct ws_cuda_piece *fresh = NULL;
    ws_cu_result r = WS_CU_SUCCESS;
    if (g && (t->piece ? t->piece != g->piece : is_taken(g->piece, at, bytes)))
        *ret_e = -EEXIST;
    else if (t->piece ? t->at != at || t->bytes != bytes : m->adopted && !g)
        *ret_e = -EINVAL;
    if (*ret_e)
        return WS_CU_INVALID_VALUE;
    if (!g && !t->piece)
        r = ws_cuda_piece_new(d, WS_CUDA_GRANULE_BYTES, &fresh);
    if (r == WS_CU_SUCCESS && !g) {
        struct ws_cuda_piece *p = fresh ? fresh : t->piece;
        r = place_new(d, va, p, readers, writers, &g);
        if (r == WS_CU_SUCCESS)
            ws_cuda_piece_made(d, p, va);
        ws_cuda_piece_unref(d, fresh); /* the place has a reference of its own */
    } else if (r == WS_CU_SUCCESS) {
        r = place_allow(d, g, readers, writers);
    }
    if (r != WS_CU_SUCCESS)
        return r;
    g->n_mappings++;
    if (!t->piece) {
        *t = (struct granule_share){.piece = g->piece, .at = at, .bytes = bytes};
        g->piece->n_refs++;
        ws_list_append(&g->piece->shares, &t->node);
    }
    return WS_CU_SUCCESS;
}

static void packed_unmap(struct ws_cuda *d, uint64_t va, uint64_t bytes)
{
    for (uint64_t g = va & ~(WS_CUDA_GRANULE_BYTES - 1); bytes && g < va + bytes;
         g += WS_CUDA_GRANULE_BYTES)
        place_put(d, g);
}

static ws_cu_result packed_map(struct ws_cuda *d, struct cuda_memory *m, uint64_t va,
                               uint64_t bytes, uint32_t readers, uint32_t writers, int *ret_e)
{
    ws_cu_result r = WS_CU_SUCCESS;
    uint64_t done = 0;
    for (int k = 0; r == WS_CU_SUCCESS && done < bytes; k++) {
        uint64_t at = (va + done) % WS_CUDA_GRANULE_BYTES;
        uint64_t n = WS_MIN(bytes - done, WS_CUDA_GRANULE_BYTES - at);
        r = share_map(d, m, &m->shares[k], va + done - at, at, n, readers, writers, ret_e);
        done += r == WS_CU_SUCCESS ? n : 0;
    }
    if (r != WS_CU_SUCCESS)
        packed_unmap(d, va, done);
    return r;
}

/* ---- clearing. No lock held ---- */

static ws_cu_result copy_zeros(struct ws_cuda *d, uint64_t va, uint64_t bytes)
{
    ws_cu_result r = WS_CU_SUCCESS;
    for (uint64_t at = 0, n; r == WS_CU_SUCCESS && at < bytes; at += n) {
        n = WS_MIN(bytes - at, (uint64_t)WS_CUDA_ZEROS_BYTES);
        r = WS_CU(d, cuMemcpyHtoDAsync, va + at, d->zeros, n, d->memory_stream);
    }
    return r;
}

ws_cu_result ws_cuda_clear(struct ws_cuda *d, uint64_t va, uint64_t bytes)
{
    /* Either nothing is submitted while the GPU fills memory (ws_cuda_awaits_clearing()), or what
     * runs is seen here. */
    d->n_clearing++;
    bool idle = !d->n_running;
    ws_cu_result r = WS_CU_SUCCESS;
    if (idle) {
        r = WS_CU(d, cuMemsetD8Async, va, 0, bytes, d->memory_stream);
        r = r == WS_CU_SUCCESS ? ws_cuda_drain(d, d->memory_stream) : r;
    }
    pthread_mutex_lock(&d->clearing_lock);
    d->n_clearing--;
    pthread_cond_broadcast(&d->cleared);
    pthread_mutex_unlock(&d->clearing_lock);
    if (idle)
        return r;
    r = copy_zeros(d, va, bytes);
    ws_cu_result e = ws_cuda_drain(d, d->memory_stream);
    return r == WS_CU_SUCCESS ? e : r;
}

bool ws_cuda_awaits_clearing(struct ws_cuda *d, bool may_block)
{
    if (may_block && d->n_clearing) {
        pthread_mutex_lock(&d->clearing_lock);
        while (d->n_clearing)
            pthread_cond_wait(&d->cleared, &d->clearing_lock);
        pthread_mutex_unlock(&d->clearing_lock);
    }
    return d->n_clearing;
}

/* ---- device.h ---- */

static void release(void *arg, uint8_t *host, uint64_t bytes)
{
    struct cuda_memory *m = arg;
    struct ws_cuda *d = m->device;
    (void)ws_cuda_enter(d);
    pthread_mutex_lock(&d->memory_lock);
    for (int k = 0; k < SHARES; k++)
        share_give(d, &m->shares[k]);
    if (m->whole)
        ws_cuda_piece_gone(d, m->whole, 0);
    ws_cuda_piece_unref(d, m->whole);
    pthread_mutex_unlock(&d->memory_lock);
    d->memory_used -= m->bytes;
    free(m);
}

static struct cuda_memory *memory_of(struct ws_cuda *d, uint64_t bytes)
{
    struct cuda_memory *m = ws_alloc(sizeof(*m));
    if (m)
        *m = (struct cuda_memory){
            .device = d, .bytes = bytes, .whole_bytes = bytes & ~(WS_CUDA_GRANULE_BYTES - 1)};
    return m;
}

/* Counts @bytes as used. Return: false: there is no room, and nothing is counted. */
static bool take(struct ws_cuda *d, uint64_t bytes)
{
    uint64_t used = atomic_fetch_add(&d->memory_used, bytes) + bytes;
    if (used <= d->memory_limit && !d->lost && ws_cuda_enter(d) == WS_CU_SUCCESS)
        return true;
    d->memory_used -= bytes;
    return false;
}

uint64_t ws_device_cuda_free_bytes(struct ws_device *dev)
{
    struct ws_cuda *d = ws_cuda_of(dev);
    size_t free_bytes = 0, total = 0;
    if (d->lost || ws_cuda_enter(d) != WS_CU_SUCCESS ||
        WS_CU(d, cuMemGetInfo, &free_bytes, &total) != WS_CU_SUCCESS)
        return 0;
    uint64_t used = d->memory_used, left = used < d->memory_limit ? d->memory_limit - used : 0;
    return WS_MIN((uint64_t)free_bytes, left);
}

int ws_cuda_mem_alloc(struct ws_device *dev, uint64_t bytes, struct ws_backing *ret)
{
    struct ws_cuda *d = ws_cuda_of(dev);
    struct cuda_memory *m = memory_of(d, bytes);
    if (!m)
        return ws_raise(-ENOMEM);
    bool room = take(d, bytes);
    if (!room ||
        (m->whole_bytes && ws_cuda_piece_new(d, m->whole_bytes, &m->whole) != WS_CU_SUCCESS)) {
        d->memory_used -= room ? bytes : 0;
        free(m);
        return WS_DEV_E_NO_MEMORY;
    }
    if (m->whole)
        ws_cuda_piece_made(d, m->whole, 0);
    *ret = (struct ws_backing){.release = release, .arg = m};
    return 0;
}

/* Whole granules come first, and begin at a granule. */
void ws_cuda_place(struct ws_device *dev, void *arg, uint64_t *ret_granule, uint64_t *ret_offset)
{
    const struct cuda_memory *m = arg;
    *ret_granule = WS_CUDA_GRANULE_BYTES;
    *ret_offset = m->whole ? 0 : m->shares[0].at;
}

/* How many of the first @bytes lie in whole granules; the rest is packed. */
static uint64_t whole_of(const struct cuda_memory *m, uint64_t bytes)
{
    return WS_MIN(m->whole_bytes, bytes);
}

int ws_cuda_map(struct ws_device *dev, void *arg, struct ws_space *s, uint64_t va, uint64_t bytes,
                uint64_t offset, uint32_t readers, uint32_t writers)
{
    struct ws_cuda *d = ws_cuda_of(dev);
    struct cuda_memory *m = arg;
    uint64_t whole = whole_of(m, bytes);
    /* The driver maps a handle from its beginning only; packed memory is mapped as it was the first
     * time. */
    if (offset || (whole && va % WS_CUDA_GRANULE_BYTES) || va + bytes < va ||
        (bytes > whole && bytes != m->bytes))
        return ws_raise(-EINVAL);
    int e = reserve(d, va, bytes);
    if (e)
        return ws_forward(e);
    pthread_mutex_lock(&d->memory_lock);
    ws_cu_result r = d->lost ? WS_CU_CONTEXT_IS_DESTROYED : ws_cuda_enter(d);
    bool mapped = false, packed = false;
    if (r == WS_CU_SUCCESS && whole) {
        r = map_piece(d, va, whole, m->whole, readers, writers);
        mapped = r == WS_CU_SUCCESS;
    }
    if (r == WS_CU_SUCCESS) {
        r = packed_map(d, m, va + whole, bytes - whole, readers, writers, &e);
        packed = r == WS_CU_SUCCESS;
    }
    pthread_mutex_unlock(&d->memory_lock);
    if (r == WS_CU_SUCCESS && m->cleared_bytes < bytes)
        r = ws_cuda_clear(d, va + m->cleared_bytes, bytes - m->cleared_bytes);
    pthread_mutex_lock(&d->memory_lock);
    if (r == WS_CU_SUCCESS) {
        m->cleared_bytes = WS_MAX(m->cleared_bytes, bytes);
    } else {
        if (packed)
            packed_unmap(d, va + whole, bytes - whole);
        if (mapped)
            (void)WS_CU(d, cuMemUnmap, va, whole);
    }
    pthread_mutex_unlock(&d->memory_lock);
    if (e)
        return ws_raise(e);
    return r == WS_CU_SUCCESS ? 0 : ws_raise(-ENOMEM);
}

void ws_cuda_unmap(struct ws_device *dev, void *arg, struct ws_space *s, uint64_t va,
                   uint64_t bytes)
{
    struct ws_cuda *d = ws_cuda_of(dev);
    uint64_t whole = whole_of(arg, bytes);
    pthread_mutex_lock(&d->memory_lock);
    (void)ws_cuda_enter(d);
    if (whole)
        (void)WS_CU(d, cuMemUnmap, va, whole);
    packed_unmap(d, va + whole, bytes - whole);
    pthread_mutex_unlock(&d->memory_lock);
}

/* Packed memory is found by its granule; the other granules are whole ones. */
void ws_cuda_set_access(struct ws_device *dev, struct ws_space *s, uint64_t va, uint64_t bytes,
                        uint32_t readers, uint32_t writers)
{
    struct ws_cuda *d = ws_cuda_of(dev);
    uint64_t from = va & ~(WS_CUDA_GRANULE_BYTES - 1), end = va + bytes, whole = 0;
    pthread_mutex_lock(&d->memory_lock);
    ws_cu_result r = ws_cuda_enter(d);
    for (uint64_t g = from; r == WS_CU_SUCCESS && g < end; g += WS_CUDA_GRANULE_BYTES) {
        struct ws_cuda_place *p = place_find(d, g);
        if (p)
            r = place_allow(d, p, readers, writers);
        else
            whole += WS_CUDA_GRANULE_BYTES; /* they come first */
    }
    if (r == WS_CU_SUCCESS && whole)
        r = allow(d, from, whole, readers, writers);
    if (r != WS_CU_SUCCESS)
        ws_log(WS_ERROR, "cuda: gpu=%u access to 0x%llx was not changed", d->base.index,
               (unsigned long long)va);
    pthread_mutex_unlock(&d->memory_lock);
}

/* ---- memory that another process made (keep.h) ---- */

int ws_cuda_adopt_memory(struct ws_device *dev, uint64_t bytes, const struct ws_cuda_kept *whole,
                         int fd, struct ws_memory **ret)
{
    struct ws_cuda *d = ws_cuda_of(dev);
    if (!ws_cuda_is(dev) || !bytes || bytes % WS_DEVICE_PAGE_BYTES ||
        (bytes & ~(WS_CUDA_GRANULE_BYTES - 1)) != (whole ? whole->bytes : 0) ||
        (whole && (!whole->id || whole->va)))
        return ws_raise(-EINVAL);
    struct cuda_memory *m = memory_of(d, bytes);
    if (!m)
        return ws_raise(-ENOMEM);
    m->cleared_bytes = bytes;
    m->adopted = true;
    bool room = take(d, bytes);
    if (!room || (whole && ws_cuda_piece_import(d, whole->id, whole->bytes, fd, &m->whole) !=
                               WS_CU_SUCCESS)) {
        d->memory_used -= room ? bytes : 0;
        free(m);
        return WS_DEV_E_NO_MEMORY;
    }
    int r = ws_memory_wrap(dev, bytes, &(struct ws_backing){.release = release, .arg = m}, ret);
    if (r)
        release(m, NULL, bytes);
    return r ? ws_forward(r) : 0;
}

/* The piece @id if it is mapped at another address already. */
static struct ws_cuda_piece *known_piece(const struct ws_cuda *d, uint64_t id)
{
    struct ws_cuda_place *g, *next;
    HASH_ITER (hh, d->places, g, next)
        if (g->piece->id == id)
            return g->piece;
    return NULL;
}

int ws_cuda_adopt_granule(struct ws_device *dev, const struct ws_cuda_kept *k, int fd)
{
    struct ws_cuda *d = ws_cuda_of(dev);
    if (!ws_cuda_is(dev) || !k->id || !k->va || k->va % WS_CUDA_GRANULE_BYTES ||
        k->bytes != WS_CUDA_GRANULE_BYTES)
        return ws_raise(-EINVAL);
    int e = reserve(d, k->va, k->bytes);
    if (e)
        return ws_forward(e);
    struct ws_cuda_place *g;
    pthread_mutex_lock(&d->memory_lock);
    ws_cu_result r = d->lost ? WS_CU_CONTEXT_IS_DESTROYED : ws_cuda_enter(d);
    if (place_find(d, k->va)) {
        e = -EEXIST;
    } else if (r == WS_CU_SUCCESS) {
        struct ws_cuda_piece *known = known_piece(d, k->id), *fresh = NULL;
        if (!known)
            r = ws_cuda_piece_import(d, k->id, k->bytes, fd, &fresh);
        if (r == WS_CU_SUCCESS)
            r = place_new(d, k->va, known ? known : fresh, 0, 0, &g);
        ws_cuda_piece_unref(d, fresh);
    }
    pthread_mutex_unlock(&d->memory_lock);
    if (e)
        return ws_raise(e);
    return r == WS_CU_SUCCESS ? 0 : WS_DEV_E_NO_MEMORY;
}

void ws_cuda_adopt_end(struct ws_device *dev)
{
    struct ws_cuda *d = ws_cuda_of(dev);
    struct ws_cuda_place *g, *next;
    if (!ws_cuda_is(dev))
        return;
    (void)ws_cuda_enter(d);
    pthread_mutex_lock(&d->memory_lock);
    HASH_ITER (hh, d->places, g, next)
        if (!g->n_mappings)
            place_free(d, g);
    pthread_mutex_unlock(&d->memory_lock);
}

/* ---- host memory ---- */

void ws_cuda_host_register(struct ws_device *dev, void *host, uint64_t bytes, int fd)
{
    struct ws_cuda *d = ws_cuda_of(dev);
    struct ws_cuda_region *g = d->can_register ? ws_alloc(sizeof(*g)) : NULL;
    if (!g || d->lost || ws_cuda_enter(d) != WS_CU_SUCCESS ||
        WS_CU(d, cuMemHostRegister, host, bytes, WS_CU_MEMHOSTREGISTER_PORTABLE) != WS_CU_SUCCESS) {
        free(g); /* the driver then stages copies itself */
        return;
    }
    g->host = host;
    g->bytes = bytes;
    pthread_mutex_lock(&d->registered_lock);
    g->next = d->registered;
    d->registered = g;
    pthread_mutex_unlock(&d->registered_lock);
}

void ws_cuda_host_unregister(struct ws_device *dev, void *host, uint64_t bytes)
{
    struct ws_cuda *d = ws_cuda_of(dev);
    pthread_mutex_lock(&d->registered_lock);
    struct ws_cuda_region **p = &d->registered, *g;
    while ((g = *p) && g->host != host)
        p = &g->next;
    if (g)
        *p = g->next;
    pthread_mutex_unlock(&d->registered_lock);
    if (!g)
        return;
    if (ws_cuda_enter(d) == WS_CU_SUCCESS)
        (void)WS_CU(d, cuMemHostUnregister, host);
    free(g);
}

bool ws_cuda_is_pinned(struct ws_cuda *d, const void *host, uint64_t bytes)
{
    const uint8_t *p = host;
    pthread_mutex_lock(&d->registered_lock);
    const struct ws_cuda_region *g = d->registered;
    while (g && !(p >= g->host && (uint64_t)(p - g->host) < g->bytes &&
                  bytes <= g->bytes - (uint64_t)(p - g->host)))
        g = g->next;
    pthread_mutex_unlock(&d->registered_lock);
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

static bool all_map_host(void)
{
    for (unsigned i = 0; i < WS_ACCESS_DEVICES; i++)
        if (devices[i] && !devices[i]->maps_host)
            return false;
    return true;
}

/* Whether [va, va + bytes) is kept free for host memory. */
static bool is_kept_free(const struct ws_cuda *d, uint64_t va, uint64_t bytes)
{
    const struct ws_cuda_options *o = &d->options;
    return va >= o->host_va && bytes <= o->host_bytes && va - o->host_va <= o->host_bytes - bytes;
}

/* Return: whether nothing else is there. */
static bool place_take(const struct ws_cuda *d, void *at, uint64_t bytes)
{
    if (is_kept_free(d, (uintptr_t)at, bytes))
        return true;
    void *p = mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (p != at && p != MAP_FAILED)
        munmap(p, bytes);
    return p == at;
}

static void place_give(const struct ws_cuda *d, void *at, uint64_t bytes)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    if (!d || !is_kept_free(d, (uintptr_t)at, bytes) ||
        mmap(at, bytes, PROT_NONE, flags, -1, 0) == MAP_FAILED)
        munmap(at, bytes);
}

/* Maps @host's pages at @va, too. It has no @soon: the driver is asked at once. */
static int host_map(struct ws_space *s, uint64_t va, uint64_t bytes, void *host, bool soon)
{
    uint64_t whole = WS_ALIGN_UP(bytes, PAGE_BYTES);
    void *at = (void *)(uintptr_t)va, *p;
    if (va % PAGE_BYTES || (uintptr_t)host % PAGE_BYTES)
        return -EINVAL;
    pthread_mutex_lock(&reserve_lock);
    struct ws_cuda *d = any_device();
    int r = 0;
    if (!d || ws_cuda_enter(d) != WS_CU_SUCCESS)
        r = -ENOMEM;
    else if (!all_map_host())
        r = -ENOTSUP;
    else if (!place_take(d, at, whole)) /* the process has something there */
        r = -EEXIST;
    if (!r) { /* a length of 0 makes a second mapping of the same pages */
        p = mremap(host, 0, whole, MREMAP_MAYMOVE | MREMAP_FIXED, at);
        if (p != at || WS_CU(d, cuMemHostRegister, at, whole,
                             WS_CU_MEMHOSTREGISTER_PORTABLE | WS_CU_MEMHOSTREGISTER_DEVICEMAP) !=
                           WS_CU_SUCCESS) {
            place_give(d, at, whole);
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
    place_give(d, at, WS_ALIGN_UP(bytes, PAGE_BYTES));
    pthread_mutex_unlock(&reserve_lock);
}

static const struct ws_host_hook hook = {host_map, host_unmap, NULL};

/* ---- opening and closing ---- */

int ws_cuda_memory_open(struct ws_cuda *d, struct ws_diags *diags)
{
    struct ws_cu_alloc_prop p = {.type = WS_CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {WS_CU_MEM_LOCATION_TYPE_DEVICE, d->device}};
    size_t granule = 0, free_bytes = 0, total = 0;
    int least = 0, greatest = 0;
    ws_cu_result r =
        WS_CU(d, cuMemGetAllocationGranularity, &granule, &p, WS_CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    if (r == WS_CU_SUCCESS)
        r = WS_CU(d, cuMemGetInfo, &free_bytes, &total);
    if (r == WS_CU_SUCCESS)
        r = WS_CU(d, cuCtxGetStreamPriorityRange, &least, &greatest);
    if (r == WS_CU_SUCCESS)
        r = WS_CU(d, cuStreamCreateWithPriority, &d->memory_stream, WS_CU_STREAM_NON_BLOCKING,
                  greatest);
    if (r != WS_CU_SUCCESS)
        return WS_CUDA_E_MISSING;
    if (!granule || WS_CUDA_GRANULE_BYTES % granule) {
        ws_diags_add(diags, NULL, 0, 0,
                     "cuda:%d: the driver's granules of %zu bytes do not divide 2 MiB", d->ordinal,
                     granule);
        return WS_CUDA_E_MISSING;
    }
    d->memory_limit = d->base.spec.memory_bytes;
    ws_cuda_say(d, "memory at fixed addresses", true, "granules of %zu KiB; %zu of %zu MiB free",
                granule >> 10, free_bytes >> 20, total >> 20);
    int shares = 0, same = 0;
    d->maps_host =
        WS_CU(d, cuDeviceGetAttribute, &same, WS_CU_ATTR_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM,
              d->device) == WS_CU_SUCCESS &&
        same;
    ws_cuda_say(d, WS_CUDA_MAPS_HOST, d->maps_host, "%s",
                d->maps_host ? "kernels use it at the program's addresses"
                             : "the GPU has other addresses for it than the program");
    d->can_export =
        d->cu.cuMemExportToShareableHandle && d->cu.cuMemImportFromShareableHandle &&
        WS_CU(d, cuDeviceGetAttribute, &shares,
              WS_CU_ATTR_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, d->device) == WS_CU_SUCCESS &&
        shares;
    ws_cuda_say(d, "memory kept", d->can_export, "%s",
                d->can_export
                    ? "it outlives a fault and a process, by file descriptors"
                    : "the GPU cannot export memory as file descriptors, so a fault loses it");
    ws_cuda_say(d, "pinned staging", d->can_register, "%s",
                d->can_register
                    ? "segments are registered with the driver"
                    : "the GPU cannot register host memory, so copies are staged twice");
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
        ws_cuda_pieces_close(d);
        pthread_mutex_destroy(&d->memory_lock);
        pthread_mutex_destroy(&d->registered_lock);
        return;
    }
    ws_cuda_adopt_end(&d->base);
    ws_cuda_pieces_close(d);
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
    pthread_mutex_destroy(&d->registered_lock);
}
