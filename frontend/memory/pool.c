// SPDX-License-Identifier: Apache-2.0
/* Stream-ordered allocation. A pool keeps the blocks that it has from the daemon. Freeing puts a
 * block back into its pool, with an event recorded in the stream that freed it. Allocating takes
 * the smallest block that fits without much waste:
 *   1. one freed in the same stream: the stream's order is enough;
 *   2. one whose event is done (attribute "reuse allow opportunistic");
 *   3. any other: the stream waits for its event ("reuse allow internal dependencies"), before new
 *     memory is asked for.
 * Waits between streams that the program itself has made need no case of their own ("follow event
 * dependencies"): with them, the wait of the third case costs nothing. When the program next waits
 * for a stream, an event or a device, the pool gives back what it has beyond its release threshold.
 * Blocks are not divided: a block is as large as the allocation that it was first made for.
 *
 * A pool that is destroyed while memory of it is in use lives on without a handle until the last of
 * that memory is freed. */
#include "frontend/memory/pool_private.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "frontend/errors.h"
#include "frontend/session/findings.h"
#include "frontend/stream/work.h"

enum { ALIGN_BYTES = 512 };
#define WASTE_MAX_BYTES (UINT64_C(2) << 20)

static struct ws_slab pools = WS_SLAB(struct ws_memory_pool);
static struct ws_pool_block *blocks; /* of all pools, by address */
static struct ws_memory_pool *defaults[WS_MAX_DEVICES], *currents[WS_MAX_DEVICES];
pthread_mutex_t ws_pool_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- pools. Lock held where nothing else is said ---- */

struct ws_memory_pool *ws_pool_new(int device)
{
    struct ws_memory_pool *p = ws_slab_new(&pools);
    if (!p)
        return NULL;
    p->device = device;
    p->last = &p->free;
    p->reuse[WS_POOL_REUSE_FOLLOW_EVENTS] = p->reuse[WS_POOL_REUSE_OPPORTUNISTIC] =
        p->reuse[WS_POOL_REUSE_INTERNAL] = 1;
    return p;
}

static struct ws_memory_pool *default_of(int device)
{
    if (!defaults[device]) {
        defaults[device] = ws_pool_new(device);
        if (defaults[device])
            defaults[device]->is_default = true;
    }
    return defaults[device];
}

static struct ws_memory_pool *current_of(int device)
{
    return currents[device] ? currents[device] : default_of(device);
}

/* The program's pointer, checked. */
struct ws_memory_pool *ws_pool_checked(void *pool)
{
    struct ws_memory_pool *p = pool;
    return ws_slab_has(&pools, p) && !p->destroyed ? p : NULL;
}

static int device_pool(int device, void **ret, struct ws_memory_pool *(*which)(int device))
{
    if (!ws_session_device(device))
        return CUDA_INVALID_DEVICE;
    if (!ret)
        return CUDA_INVALID_VALUE;
    pthread_mutex_lock(&ws_pool_lock);
    *ret = which(device);
    pthread_mutex_unlock(&ws_pool_lock);
    return *ret ? CUDA_OK : CUDA_OUT_OF_MEMORY;
}

int ws_pool_default(int device, void **ret)
{
    return device_pool(device, ret, default_of);
}

int ws_pool_current(int device, void **ret)
{
    return device_pool(device, ret, current_of);
}

int ws_pool_set_current(int device, void *pool)
{
    if (!ws_session_device(device))
        return CUDA_INVALID_DEVICE;
    pthread_mutex_lock(&ws_pool_lock);
    struct ws_memory_pool *p = ws_pool_checked(pool);
    bool good = p && p->device == device && !p->imported;
    if (good)
        currents[device] = p;
    pthread_mutex_unlock(&ws_pool_lock);
    return good ? CUDA_OK : CUDA_INVALID_VALUE;
}

int ws_pool_at(const struct cuda_mem_location *l, int type, bool current, void **ret, void *set)
{
    if (!l || (type != WS_CUDA_ALLOCATION_PINNED && type != WS_CUDA_ALLOCATION_MANAGED))
        return CUDA_INVALID_VALUE;
    if (type == WS_CUDA_ALLOCATION_MANAGED || l->type != WS_CUDA_LOCATION_DEVICE) {
        ws_session_unsupported("memory pools that are not of a device");
        return CUDA_NOT_SUPPORTED;
    }
    if (set)
        return ws_pool_set_current(l->id, set);
    return current ? ws_pool_current(l->id, ret) : ws_pool_default(l->id, ret);
}

int ws_pool_create(void **ret, const struct cuda_mem_pool_props *props)
{
    if (!ret || !props || props->handleTypes & ~WS_CUDA_HANDLES ||
        (props->allocType != WS_CUDA_ALLOCATION_PINNED &&
         props->allocType != WS_CUDA_ALLOCATION_MANAGED) ||
        props->location.type == WS_CUDA_LOCATION_NONE)
        return CUDA_INVALID_VALUE;
    if (props->allocType != WS_CUDA_ALLOCATION_PINNED ||
        props->location.type != WS_CUDA_LOCATION_DEVICE ||
        props->handleTypes & ~WS_CUDA_HANDLE_FD ||
        (props->handleTypes && !ws_session_maps_host())) {
        ws_session_unsupported("memory pools that are not of a device, or with handles other than "
                               "POSIX file descriptors");
        return CUDA_NOT_SUPPORTED;
    }
    if (!ws_session_device(props->location.id))
        return CUDA_INVALID_DEVICE;
    pthread_mutex_lock(&ws_pool_lock);
    struct ws_memory_pool *p = ws_pool_new(props->location.id);
    if (p) {
        p->types = props->handleTypes;
        p->max_bytes = props->maxSize;
    }
    pthread_mutex_unlock(&ws_pool_lock);
    *ret = p;
    return p ? CUDA_OK : CUDA_OUT_OF_MEMORY;
}

/* ---- blocks. Lock held ---- */

static void block_forget(struct ws_pool_block *b)
{
    struct ws_memory_pool *p = b->pool;
    p->reserved_bytes -= b->bytes;
    p->n_blocks--;
    HASH_DEL(blocks, b);
    if (b->event)
        (void)ws_session_event_destroy(b->event);
    free(b);
    if (p->destroyed && !p->n_blocks)
        ws_slab_free(&pools, p);
}

static struct ws_pool_block *take_free(struct ws_memory_pool *p, struct ws_pool_block **at)
{
    struct ws_pool_block *b = *at;
    *at = b->next;
    if (!*at)
        p->last = at;
    b->next = NULL;
    return b;
}

/* Gives free blocks back until the pool has no more than @keep_bytes. @wait: until the daemon has
 * them. */
static bool shrink(struct ws_memory_pool *p, uint64_t keep_bytes, bool wait)
{
    bool any = false;
    while (p->free && p->reserved_bytes > keep_bytes) {
        struct ws_pool_block *b = take_free(p, &p->free);
        uint64_t address = b->address;
        bool last = p->destroyed && p->n_blocks == 1;
        block_forget(b);
        (void)(wait ? ws_session_mem_free : ws_session_mem_free_async)(address);
        any = true;
        if (last)
            break;
    }
    return any;
}

static void shrink_one(void *object, void *arg)
{
    struct ws_memory_pool *p = object;
    shrink(p, p->threshold_bytes, false);
}

/* The program has waited for something. */
static void synced(void)
{
    pthread_mutex_lock(&ws_pool_lock);
    ws_session_synced = NULL;
    ws_slab_each(&pools, shrink_one, NULL);
    pthread_mutex_unlock(&ws_pool_lock);
}

static void give_back_one(void *object, void *arg)
{
    int *device_and_any = arg;
    struct ws_memory_pool *p = object;
    if (p->device == device_and_any[0])
        device_and_any[1] |= shrink(p, 0, true);
}

bool ws_pool_give_back(int device)
{
    int device_and_any[2] = {device, 0};
    if (!blocks)
        return false;
    pthread_mutex_lock(&ws_pool_lock);
    ws_slab_each(&pools, give_back_one, device_and_any);
    pthread_mutex_unlock(&ws_pool_lock);
    return device_and_any[1];
}

struct ws_pool_block *ws_pool_block_add(struct ws_memory_pool *p, uint64_t address, uint64_t bytes)
{
    struct ws_pool_block *b = ws_alloc(sizeof(*b));
    if (!b)
        return NULL;
    b->address = address;
    b->bytes = bytes;
    b->pool = p;
    HASH_ADD(hh, blocks, address, sizeof(b->address), b);
    p->n_blocks++;
    p->reserved_bytes += bytes;
    p->reserved_high_bytes = WS_MAX(p->reserved_high_bytes, p->reserved_bytes);
    return b;
}

struct ws_pool_block *ws_pool_block_find(uint64_t address)
{
    struct ws_pool_block *b;
    HASH_FIND(hh, blocks, &address, sizeof(address), b);
    return b;
}

void ws_pool_block_set_live(struct ws_pool_block *b, bool live)
{
    struct ws_memory_pool *p = b->pool;
    b->live = live;
    p->used_bytes += live ? b->bytes : -b->bytes;
    p->used_high_bytes = WS_MAX(p->used_high_bytes, p->used_bytes);
}

static bool fits(const struct ws_pool_block *b, uint64_t need)
{
    return b->bytes >= need && b->bytes - need <= WS_MAX(need, WASTE_MAX_BYTES);
}

/* Return: whether @b may be used by what follows in @stream. */
static bool usable(const struct ws_pool_block *b, uint64_t stream, int how)
{
    if (!b->stream || b->stream == stream)
        return true;
    if (how >= WS_POOL_REUSE_OPPORTUNISTIC && b->pool->reuse[WS_POOL_REUSE_OPPORTUNISTIC] &&
        !ws_session_event_query(b->event))
        return true;
    return how >= WS_POOL_REUSE_INTERNAL && b->pool->reuse[WS_POOL_REUSE_INTERNAL] &&
           !ws_session_stream_wait(stream, b->event);
}

static struct ws_pool_block *reuse(struct ws_memory_pool *p, uint64_t need, uint64_t stream)
{
    for (int how = WS_POOL_REUSE_FOLLOW_EVENTS; how <= WS_POOL_REUSE_INTERNAL; how++) {
        struct ws_pool_block **best = NULL;
        for (struct ws_pool_block **at = &p->free; *at; at = &(*at)->next) {
            bool same = !(*at)->stream || (*at)->stream == stream;
            if (fits(*at, need) && (same || how > WS_POOL_REUSE_FOLLOW_EVENTS) &&
                (!best || (*at)->bytes < (*best)->bytes))
                best = at;
        }
        if (best && usable(*best, stream, how))
            return take_free(p, best);
    }
    return NULL;
}

static ws_err grant(const struct ws_memory_pool *p, const struct ws_pool_block *b)
{
    ws_err r = WS__ERROR__OK;
    for (int d = 0; !r && d < WS_MAX_DEVICES; d++)
        if (p->readers >> d & 1)
            r = ws_session_access(b->address, b->bytes, d, true, p->writers >> d & 1);
    return r;
}

static void shrink_device(void *object, void *arg)
{
    struct ws_memory_pool *p = object;
    if (p->device == *(const int *)arg)
        shrink(p, 0, true);
}

static int block_new(struct ws_memory_pool *p, uint64_t need, struct ws_pool_block **ret)
{
    uint64_t address;
    if (p->max_bytes && (need > p->max_bytes || p->reserved_bytes > p->max_bytes - need))
        shrink(p, need > p->max_bytes ? 0 : p->max_bytes - need, true);
    if (p->max_bytes && (need > p->max_bytes || p->reserved_bytes > p->max_bytes - need))
        return CUDA_OUT_OF_MEMORY;
    ws_err r = ws_session_mem_alloc_own(p->device, need, &address);
    if (r == WS__ERROR__OUT_OF_MEMORY) {
        int device = p->device;
        ws_slab_each(&pools, shrink_device, &device);
        r = ws_session_mem_alloc_own(device, need, &address);
    }
    struct ws_pool_block *b = r ? NULL : ws_pool_block_add(p, address, need);
    if (!r && !b) {
        (void)ws_session_mem_free(address);
        return CUDA_OUT_OF_MEMORY;
    }
    if (!r)
        r = grant(p, b);
    if (r && b) {
        block_forget(b);
        (void)ws_session_mem_free(address);
    }
    if (!r)
        *ret = b;
    return ws_drv_error(r);
}

int ws_pool_alloc(void *pool, int device, uint64_t bytes, uint64_t stream, uint64_t *ret_address)
{
    ws_err r = ws_session_stream_info(stream, NULL, NULL, NULL);
    if (r)
        return ws_drv_error(r);
    if (!ret_address || bytes > UINT64_MAX - ALIGN_BYTES)
        return CUDA_INVALID_VALUE;
    pthread_mutex_lock(&ws_pool_lock);
    struct ws_memory_pool *p = pool ? ws_pool_checked(pool) : current_of(device);
    if (!p || p->imported || !bytes || ws_work_capturing(stream)) {
        int of = p ? p->device : -1;
        bool imported = p && p->imported;
        pthread_mutex_unlock(&ws_pool_lock);
        if (of < 0 || imported)
            return CUDA_INVALID_VALUE;
        if (!bytes) {
            *ret_address = 0;
            return CUDA_OK;
        }
        struct ws_stream_work w = {
            .kind = WS_WORK_ALLOC,
            .memory = {.bytes = bytes, .device = of, .ret_address = ret_address}};
        return ws_drv_error(ws_work_put(stream, &w, true));
    }
    uint64_t need = WS_ALIGN_UP(bytes, (uint64_t)ALIGN_BYTES);
    struct ws_pool_block *b = reuse(p, need, stream);
    int code = b ? CUDA_OK : block_new(p, need, &b);
    if (!code) {
        ws_pool_block_set_live(b, true);
        *ret_address = b->address;
        ws_findings_allocated(b->address, bytes);
    }
    pthread_mutex_unlock(&ws_pool_lock);
    return code;
}

/* The event that says from when on other streams may have the block. */
static ws_err mark(struct ws_pool_block *b, uint64_t stream)
{
    int device;
    ws_err r = ws_session_stream_info(stream, &device, NULL, NULL);
    if (!r && b->event && b->event_device != device) {
        (void)ws_session_event_destroy(b->event);
        b->event = 0;
    }
    if (!r && !b->event) {
        r = ws_session_event_create(device, false, &b->event);
        b->event_device = device;
    }
    return r ? r : ws_session_event_record(b->event, stream);
}

/* @stream: 0: it may be used again at once. Lock held; given up. Return: a CUDA code. */
static int free_and_unlock(struct ws_pool_block *b, uint64_t stream)
{
    struct ws_memory_pool *p = b->pool;
    uint64_t address = b->address;
    int code = CUDA_OK;
    ws_pool_block_set_live(b, false);
    ws_findings_freed(address);
    if (b->imported) {
        block_forget(b);
        pthread_mutex_unlock(&ws_pool_lock);
        return ws_drv_error(ws_session_memory_close(address));
    }
    if (p->destroyed || (stream && (code = ws_drv_error(mark(b, stream))))) {
        block_forget(b);
        ws_err r = ws_session_mem_free_async(address);
        code = code ? code : ws_drv_error(r);
    } else {
        b->stream = stream;
        *p->last = b;
        p->last = &b->next;
        if (p->reserved_bytes > p->threshold_bytes)
            ws_session_synced = synced;
    }
    pthread_mutex_unlock(&ws_pool_lock);
    return code;
}

int ws_pool_free(uint64_t address, uint64_t stream)
{
    ws_err r = ws_session_stream_info(stream, NULL, NULL, NULL);
    if (r || !address)
        return ws_drv_error(r);
    if (ws_work_capturing(stream)) {
        struct ws_stream_work w = {.kind = WS_WORK_FREE, .memory = {.address = address}};
        return ws_drv_error(ws_work_put(stream, &w, true));
    }
    int code = ws_block_free_outside(address);
    if (code >= 0)
        return code;
    pthread_mutex_lock(&ws_pool_lock);
    struct ws_pool_block *b = ws_pool_block_find(address);
    if (b && b->live)
        return free_and_unlock(b, stream);
    pthread_mutex_unlock(&ws_pool_lock);
    if (b)
        return CUDA_INVALID_VALUE;
    ws_ctx_disown(WS_OWNED_MEMORY, address);
    return ws_drv_error(ws_session_mem_free_async(address));
}

int ws_pool_free_now(uint64_t address)
{
    if (!blocks)
        return -1;
    pthread_mutex_lock(&ws_pool_lock);
    struct ws_pool_block *b = ws_pool_block_find(address);
    int device = b ? b->pool->device : 0;
    bool live = b && b->live;
    pthread_mutex_unlock(&ws_pool_lock);
    if (!live)
        return b ? CUDA_INVALID_VALUE : -1;
    ws_err r = ws_session_device_sync(device);
    if (r)
        return ws_drv_error(r);
    pthread_mutex_lock(&ws_pool_lock);
    b = ws_pool_block_find(address);
    if (b && b->live)
        return free_and_unlock(b, 0);
    pthread_mutex_unlock(&ws_pool_lock);
    return CUDA_INVALID_VALUE;
}

void *ws_pool_of(uint64_t address)
{
    if (!blocks)
        return NULL;
    pthread_mutex_lock(&ws_pool_lock);
    struct ws_pool_block *b = ws_pool_block_find(address);
    struct ws_memory_pool *p = b && b->live ? b->pool : NULL;
    pthread_mutex_unlock(&ws_pool_lock);
    return p;
}

int ws_pool_destroy(void *pool)
{
    pthread_mutex_lock(&ws_pool_lock);
    struct ws_memory_pool *p = ws_pool_checked(pool);
    int code = p && !p->is_default ? CUDA_OK : CUDA_INVALID_VALUE;
    if (!code) {
        if (currents[p->device] == p)
            currents[p->device] = NULL;
        shrink(p, 0, false);
        p->destroyed = true;
        if (!p->n_blocks)
            ws_slab_free(&pools, p);
    }
    pthread_mutex_unlock(&ws_pool_lock);
    return code;
}

int ws_pool_trim(void *pool, uint64_t keep_bytes)
{
    pthread_mutex_lock(&ws_pool_lock);
    struct ws_memory_pool *p = ws_pool_checked(pool);
    if (p)
        shrink(p, keep_bytes, true);
    pthread_mutex_unlock(&ws_pool_lock);
    return p ? CUDA_OK : CUDA_INVALID_VALUE;
}

/* ---- attributes ---- */

int ws_pool_set(void *pool, int attribute, const void *value)
{
    pthread_mutex_lock(&ws_pool_lock);
    struct ws_memory_pool *p = ws_pool_checked(pool);
    int code = p && value ? CUDA_OK : CUDA_INVALID_VALUE;
    if (code)
        ;
    else if (attribute >= WS_POOL_REUSE_FOLLOW_EVENTS && attribute <= WS_POOL_REUSE_INTERNAL)
        p->reuse[attribute] = *(const int *)value != 0;
    else if (attribute == WS_POOL_RELEASE_THRESHOLD)
        p->threshold_bytes = *(const uint64_t *)value;
    else if (attribute == WS_POOL_USED_HIGH && !*(const uint64_t *)value) /* only 0: start anew */
        p->used_high_bytes = p->used_bytes;
    else if (attribute == WS_POOL_RESERVED_HIGH && !*(const uint64_t *)value)
        p->reserved_high_bytes = p->reserved_bytes;
    else
        code = CUDA_INVALID_VALUE;
    pthread_mutex_unlock(&ws_pool_lock);
    return code;
}

int ws_pool_get(void *pool, int attribute, void *ret)
{
    pthread_mutex_lock(&ws_pool_lock);
    const struct ws_memory_pool *p = ws_pool_checked(pool);
    int code =
        p && ret && attribute >= WS_POOL_REUSE_FOLLOW_EVENTS && attribute <= WS_POOL_USED_HIGH
            ? CUDA_OK
            : CUDA_INVALID_VALUE;
    if (!code && attribute <= WS_POOL_REUSE_INTERNAL) {
        *(int *)ret = p->reuse[attribute];
    } else if (!code) {
        const uint64_t values[] = {p->threshold_bytes, p->reserved_bytes, p->reserved_high_bytes,
                                   p->used_bytes, p->used_high_bytes};
        *(uint64_t *)ret = values[attribute - WS_POOL_RELEASE_THRESHOLD];
    }
    pthread_mutex_unlock(&ws_pool_lock);
    return code;
}

/* ---- access ---- */

static int check_access(const struct ws_memory_pool *p, const struct cuda_mem_access_desc *d)
{
    if (d->location.type != WS_CUDA_LOCATION_DEVICE ||
        (d->flags != WS_CUDA_PROT_NONE && d->flags != WS_CUDA_PROT_READ &&
         d->flags != WS_CUDA_PROT_READWRITE))
        return CUDA_INVALID_VALUE;
    if (!ws_session_device(d->location.id))
        return CUDA_INVALID_DEVICE;
    return d->location.id == p->device && d->flags != WS_CUDA_PROT_READWRITE ? CUDA_INVALID_VALUE
                                                                             : CUDA_OK;
}

static int set_access(struct ws_memory_pool *p, const struct cuda_mem_access_desc *d)
{
    struct ws_pool_block *b, *next;
    uint32_t bit = UINT32_C(1) << d->location.id;
    bool read = d->flags != WS_CUDA_PROT_NONE, write = d->flags == WS_CUDA_PROT_READWRITE;
    if (d->location.id == p->device)
        return CUDA_OK;
    p->readers = read ? p->readers | bit : p->readers & ~bit;
    p->writers = write ? p->writers | bit : p->writers & ~bit;
    HASH_ITER (hh, blocks, b, next) {
        ws_err r = b->pool == p && !b->imported
                       ? ws_session_access(b->address, b->bytes, d->location.id, read, write)
                       : WS__ERROR__OK;
        if (r)
            return ws_drv_error(r);
    }
    return CUDA_OK;
}

int ws_pool_set_access(void *pool, const struct cuda_mem_access_desc *d, size_t n)
{
    pthread_mutex_lock(&ws_pool_lock);
    struct ws_memory_pool *p = ws_pool_checked(pool);
    int code = p && (d || !n) ? CUDA_OK : CUDA_INVALID_VALUE;
    for (size_t i = 0; !code && i < n; i++)
        code = check_access(p, &d[i]);
    for (size_t i = 0; !code && i < n; i++)
        code = set_access(p, &d[i]);
    pthread_mutex_unlock(&ws_pool_lock);
    return code;
}

int ws_pool_get_access(void *pool, const struct cuda_mem_location *l, int *ret_flags)
{
    if (!l || !ret_flags || l->type != WS_CUDA_LOCATION_DEVICE)
        return CUDA_INVALID_VALUE;
    if (!ws_session_device(l->id))
        return CUDA_INVALID_DEVICE;
    pthread_mutex_lock(&ws_pool_lock);
    const struct ws_memory_pool *p = ws_pool_checked(pool);
    if (p)
        *ret_flags = l->id == p->device || p->writers >> l->id & 1 ? WS_CUDA_PROT_READWRITE
                     : p->readers >> l->id & 1                     ? WS_CUDA_PROT_READ
                                                                   : WS_CUDA_PROT_NONE;
    pthread_mutex_unlock(&ws_pool_lock);
    return p ? CUDA_OK : CUDA_INVALID_VALUE;
}

/* ---- reset ---- */

static void pool_lost(void *object, void *arg)
{
    struct ws_memory_pool *p = object;
    if (p->device == *(const int *)arg)
        ws_slab_free(&pools, p);
}

void ws_pool_reset_device(int device)
{
    struct ws_pool_block *b, *next;
    pthread_mutex_lock(&ws_pool_lock);
    HASH_ITER (hh, blocks, b, next)
        if (b->pool->device == device) {
            HASH_DEL(blocks, b);
            free(b);
        }
    ws_slab_each(&pools, pool_lost, &device);
    defaults[device] = currents[device] = NULL;
    pthread_mutex_unlock(&ws_pool_lock);
}
