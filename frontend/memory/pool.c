// SPDX-License-Identifier: Apache-2.0
/* Stream-ordered allocation. A pool keeps the blocks that it has from the daemon; freeing puts a block back into its pool, behind
 * an event recorded in the stream that freed it. Allocating takes the smallest block that fits without much waste:
 *   1. one freed in the same stream: stream order is all it takes;
 *   2. one whose event is done (attribute "reuse allow opportunistic");
 *   3. any, the stream waiting for its event ("reuse allow internal dependencies"), before new memory is asked for.
 * Waits that the program has put between streams need no case of their own ("follow event dependencies"): they make the third
 * free of charge. At the next wait of the program's for a stream, an event or a device the pool gives back what it has beyond its
 * release threshold. Blocks are not divided: one is as large as the allocation it was first made for.
 *
 * A pool that was destroyed with memory in use lives on, unnamed, until the last of it is freed. */
#include "frontend/memory/pool.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>
#include <uthash.h>

#include "base/alloc.h"
#include "frontend/errors.h"
#include "frontend/stream/work.h"

enum { /* attributes */
       REUSE_FOLLOW_EVENTS = 1,
       REUSE_OPPORTUNISTIC = 2,
       REUSE_INTERNAL = 3,
       RELEASE_THRESHOLD = 4,
       RESERVED_CURRENT = 5,
       RESERVED_HIGH = 6,
       USED_CURRENT = 7,
       USED_HIGH = 8,
};
enum { ALIGN_BYTES = 512, ID_BYTES = 16, MARK_BYTES = 8, UUID_BYTES = 16 };
#define WASTE_MAX_BYTES (UINT64_C(2) << 20)

struct block {
    uint64_t address, bytes;
    struct pool *pool;
    bool live, imported;
    uint64_t stream; /* free: where it was freed; 0: it may be used at once */
    uint64_t event;  /* free: recorded there; 0: none was made yet */
    int event_device;
    struct block *next; /* of the pool's free ones, oldest first */
    UT_hash_handle hh;
};
struct pool {
    struct ws_slot slot;
    int device, types; /* WS_CUDA_HANDLE_… */
    bool is_default, imported, destroyed;
    int reuse[REUSE_INTERNAL + 1];
    uint64_t threshold_bytes, max_bytes; /* max: 0: none */
    uint64_t used_bytes, used_high_bytes, reserved_bytes, reserved_high_bytes;
    uint32_t readers, writers; /* devices that were given access */
    size_t n_blocks;
    struct block *free, **last;
    uint8_t id[ID_BYTES];
};
static struct ws_slab pools = WS_SLAB(struct pool);
static struct block *blocks; /* of all pools, by address */
static struct pool *defaults[WS_MAX_DEVICES], *currents[WS_MAX_DEVICES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- pools. Lock held where nothing else is said ---- */

static struct pool *pool_new(int device)
{
    struct pool *p = ws_slab_new(&pools);
    if (!p)
        return NULL;
    p->device = device;
    p->last = &p->free;
    p->reuse[REUSE_FOLLOW_EVENTS] = p->reuse[REUSE_OPPORTUNISTIC] = p->reuse[REUSE_INTERNAL] = 1;
    return p;
}

static struct pool *default_of(int device)
{
    if (!defaults[device]) {
        defaults[device] = pool_new(device);
        if (defaults[device])
            defaults[device]->is_default = true;
    }
    return defaults[device];
}

static struct pool *current_of(int device)
{
    return currents[device] ? currents[device] : default_of(device);
}

/* The program's pointer, checked. */
static struct pool *pool_of(void *pool)
{
    struct pool *p = pool;
    return ws_slab_has(&pools, p) && !p->destroyed ? p : NULL;
}

static int device_pool(int device, void **ret, struct pool *(*which)(int device))
{
    if (!ws_session_device(device))
        return CUDA_INVALID_DEVICE;
    if (!ret)
        return CUDA_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    *ret = which(device);
    pthread_mutex_unlock(&lock);
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
    pthread_mutex_lock(&lock);
    struct pool *p = pool_of(pool);
    bool good = p && p->device == device && !p->imported;
    if (good)
        currents[device] = p;
    pthread_mutex_unlock(&lock);
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
    pthread_mutex_lock(&lock);
    struct pool *p = pool_new(props->location.id);
    if (p) {
        p->types = props->handleTypes;
        p->max_bytes = props->maxSize;
    }
    pthread_mutex_unlock(&lock);
    *ret = p;
    return p ? CUDA_OK : CUDA_OUT_OF_MEMORY;
}

/* ---- blocks. Lock held ---- */

static void block_forget(struct block *b)
{
    struct pool *p = b->pool;
    p->reserved_bytes -= b->bytes;
    p->n_blocks--;
    HASH_DEL(blocks, b);
    if (b->event)
        (void)ws_session_event_destroy(b->event);
    free(b);
    if (p->destroyed && !p->n_blocks)
        ws_slab_free(&pools, p);
}

static struct block *take_free(struct pool *p, struct block **at)
{
    struct block *b = *at;
    *at = b->next;
    if (!*at)
        p->last = at;
    b->next = NULL;
    return b;
}

/* Gives free blocks back until the pool has no more than @keep_bytes. @wait: until the daemon has them. */
static bool shrink(struct pool *p, uint64_t keep_bytes, bool wait)
{
    bool any = false;
    while (p->free && p->reserved_bytes > keep_bytes) {
        struct block *b = take_free(p, &p->free);
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
    struct pool *p = object;
    shrink(p, p->threshold_bytes, false);
}

/* The program has waited for something. */
static void synced(void)
{
    pthread_mutex_lock(&lock);
    ws_session_synced = NULL;
    ws_slab_each(&pools, shrink_one, NULL);
    pthread_mutex_unlock(&lock);
}

static void give_back_one(void *object, void *arg)
{
    int *device_and_any = arg;
    struct pool *p = object;
    if (p->device == device_and_any[0])
        device_and_any[1] |= shrink(p, 0, true);
}

bool ws_pool_give_back(int device)
{
    int device_and_any[2] = {device, 0};
    if (!blocks)
        return false;
    pthread_mutex_lock(&lock);
    ws_slab_each(&pools, give_back_one, device_and_any);
    pthread_mutex_unlock(&lock);
    return device_and_any[1];
}

static struct block *block_add(struct pool *p, uint64_t address, uint64_t bytes)
{
    struct block *b = ws_alloc(sizeof(*b));
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

static struct block *block_find(uint64_t address)
{
    struct block *b;
    HASH_FIND(hh, blocks, &address, sizeof(address), b);
    return b;
}

static void set_live(struct block *b, bool live)
{
    struct pool *p = b->pool;
    b->live = live;
    p->used_bytes += live ? b->bytes : -b->bytes;
    p->used_high_bytes = WS_MAX(p->used_high_bytes, p->used_bytes);
}

static bool fits(const struct block *b, uint64_t need)
{
    return b->bytes >= need && b->bytes - need <= WS_MAX(need, WASTE_MAX_BYTES);
}

/* Return: whether @b may be used by what follows in @stream. */
static bool usable(const struct block *b, uint64_t stream, int how)
{
    if (!b->stream || b->stream == stream)
        return true;
    if (how >= REUSE_OPPORTUNISTIC && b->pool->reuse[REUSE_OPPORTUNISTIC] &&
        !ws_session_event_query(b->event))
        return true;
    return how >= REUSE_INTERNAL && b->pool->reuse[REUSE_INTERNAL] &&
           !ws_session_stream_wait(stream, b->event);
}

static struct block *reuse(struct pool *p, uint64_t need, uint64_t stream)
{
    for (int how = REUSE_FOLLOW_EVENTS; how <= REUSE_INTERNAL; how++) {
        struct block **best = NULL;
        for (struct block **at = &p->free; *at; at = &(*at)->next) {
            bool same = !(*at)->stream || (*at)->stream == stream;
            if (fits(*at, need) && (same || how > REUSE_FOLLOW_EVENTS) &&
                (!best || (*at)->bytes < (*best)->bytes))
                best = at;
        }
        if (best && usable(*best, stream, how))
            return take_free(p, best);
    }
    return NULL;
}

static ws_err grant(const struct pool *p, const struct block *b)
{
    ws_err r = WS__ERROR__OK;
    for (int d = 0; !r && d < WS_MAX_DEVICES; d++)
        if (p->readers >> d & 1)
            r = ws_session_access(b->address, b->bytes, d, true, p->writers >> d & 1);
    return r;
}

static void shrink_device(void *object, void *arg)
{
    struct pool *p = object;
    if (p->device == *(const int *)arg)
        shrink(p, 0, true);
}

static int block_new(struct pool *p, uint64_t need, struct block **ret)
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
    struct block *b = r ? NULL : block_add(p, address, need);
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
    pthread_mutex_lock(&lock);
    struct pool *p = pool ? pool_of(pool) : current_of(device);
    if (!p || p->imported || !bytes || ws_work_capturing(stream)) {
        int of = p ? p->device : -1;
        bool imported = p && p->imported;
        pthread_mutex_unlock(&lock);
        if (of < 0 || imported)
            return CUDA_INVALID_VALUE;
        if (!bytes) {
            *ret_address = 0;
            return CUDA_OK;
        }
        struct ws_work w = {.kind = WS_WORK_ALLOC,
                            .memory = {.bytes = bytes, .device = of, .ret_address = ret_address}};
        return ws_drv_error(ws_work_put(stream, &w, true));
    }
    uint64_t need = WS_ALIGN_UP(bytes, (uint64_t)ALIGN_BYTES);
    struct block *b = reuse(p, need, stream);
    int code = b ? CUDA_OK : block_new(p, need, &b);
    if (!code) {
        set_live(b, true);
        *ret_address = b->address;
    }
    pthread_mutex_unlock(&lock);
    return code;
}

/* The event that says from when on other streams may have the block. */
static ws_err mark(struct block *b, uint64_t stream)
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
static int free_and_unlock(struct block *b, uint64_t stream)
{
    struct pool *p = b->pool;
    uint64_t address = b->address;
    int code = CUDA_OK;
    set_live(b, false);
    if (b->imported) {
        block_forget(b);
        pthread_mutex_unlock(&lock);
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
    pthread_mutex_unlock(&lock);
    return code;
}

int ws_pool_free(uint64_t address, uint64_t stream)
{
    ws_err r = ws_session_stream_info(stream, NULL, NULL, NULL);
    if (r || !address)
        return ws_drv_error(r);
    if (ws_work_capturing(stream)) {
        struct ws_work w = {.kind = WS_WORK_FREE, .memory = {.address = address}};
        return ws_drv_error(ws_work_put(stream, &w, true));
    }
    int code = ws_block_free_outside(address);
    if (code >= 0)
        return code;
    pthread_mutex_lock(&lock);
    struct block *b = block_find(address);
    if (b && b->live)
        return free_and_unlock(b, stream);
    pthread_mutex_unlock(&lock);
    if (b)
        return CUDA_INVALID_VALUE;
    ws_ctx_disown(WS_OWNED_MEMORY, address);
    return ws_drv_error(ws_session_mem_free_async(address));
}

int ws_pool_free_now(uint64_t address)
{
    if (!blocks)
        return -1;
    pthread_mutex_lock(&lock);
    struct block *b = block_find(address);
    int device = b ? b->pool->device : 0;
    bool live = b && b->live;
    pthread_mutex_unlock(&lock);
    if (!live)
        return b ? CUDA_INVALID_VALUE : -1;
    ws_err r = ws_session_device_sync(device);
    if (r)
        return ws_drv_error(r);
    pthread_mutex_lock(&lock);
    b = block_find(address);
    if (b && b->live)
        return free_and_unlock(b, 0);
    pthread_mutex_unlock(&lock);
    return CUDA_INVALID_VALUE;
}

void *ws_pool_of(uint64_t address)
{
    if (!blocks)
        return NULL;
    pthread_mutex_lock(&lock);
    struct block *b = block_find(address);
    struct pool *p = b && b->live ? b->pool : NULL;
    pthread_mutex_unlock(&lock);
    return p;
}

int ws_pool_destroy(void *pool)
{
    pthread_mutex_lock(&lock);
    struct pool *p = pool_of(pool);
    int code = p && !p->is_default ? CUDA_OK : CUDA_INVALID_VALUE;
    if (!code) {
        if (currents[p->device] == p)
            currents[p->device] = NULL;
        shrink(p, 0, false);
        p->destroyed = true;
        if (!p->n_blocks)
            ws_slab_free(&pools, p);
    }
    pthread_mutex_unlock(&lock);
    return code;
}

int ws_pool_trim(void *pool, uint64_t keep_bytes)
{
    pthread_mutex_lock(&lock);
    struct pool *p = pool_of(pool);
    if (p)
        shrink(p, keep_bytes, true);
    pthread_mutex_unlock(&lock);
    return p ? CUDA_OK : CUDA_INVALID_VALUE;
}

/* ---- attributes ---- */

int ws_pool_set(void *pool, int attribute, const void *value)
{
    pthread_mutex_lock(&lock);
    struct pool *p = pool_of(pool);
    int code = p && value ? CUDA_OK : CUDA_INVALID_VALUE;
    if (code)
        ;
    else if (attribute >= REUSE_FOLLOW_EVENTS && attribute <= REUSE_INTERNAL)
        p->reuse[attribute] = *(const int *)value != 0;
    else if (attribute == RELEASE_THRESHOLD)
        p->threshold_bytes = *(const uint64_t *)value;
    else if (attribute == USED_HIGH && !*(const uint64_t *)value) /* only 0: start anew */
        p->used_high_bytes = p->used_bytes;
    else if (attribute == RESERVED_HIGH && !*(const uint64_t *)value)
        p->reserved_high_bytes = p->reserved_bytes;
    else
        code = CUDA_INVALID_VALUE;
    pthread_mutex_unlock(&lock);
    return code;
}

int ws_pool_get(void *pool, int attribute, void *ret)
{
    pthread_mutex_lock(&lock);
    const struct pool *p = pool_of(pool);
    int code = p && ret && attribute >= REUSE_FOLLOW_EVENTS && attribute <= USED_HIGH
                   ? CUDA_OK
                   : CUDA_INVALID_VALUE;
    if (!code && attribute <= REUSE_INTERNAL) {
        *(int *)ret = p->reuse[attribute];
    } else if (!code) {
        const uint64_t values[] = {p->threshold_bytes, p->reserved_bytes, p->reserved_high_bytes,
                                   p->used_bytes, p->used_high_bytes};
        *(uint64_t *)ret = values[attribute - RELEASE_THRESHOLD];
    }
    pthread_mutex_unlock(&lock);
    return code;
}

/* ---- access ---- */

static int check_access(const struct pool *p, const struct cuda_mem_access_desc *d)
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

static int set_access(struct pool *p, const struct cuda_mem_access_desc *d)
{
    struct block *b, *next;
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
    pthread_mutex_lock(&lock);
    struct pool *p = pool_of(pool);
    int code = p && (d || !n) ? CUDA_OK : CUDA_INVALID_VALUE;
    for (size_t i = 0; !code && i < n; i++)
        code = check_access(p, &d[i]);
    for (size_t i = 0; !code && i < n; i++)
        code = set_access(p, &d[i]);
    pthread_mutex_unlock(&lock);
    return code;
}

int ws_pool_get_access(void *pool, const struct cuda_mem_location *l, int *ret_flags)
{
    if (!l || !ret_flags || l->type != WS_CUDA_LOCATION_DEVICE)
        return CUDA_INVALID_VALUE;
    if (!ws_session_device(l->id))
        return CUDA_INVALID_DEVICE;
    pthread_mutex_lock(&lock);
    const struct pool *p = pool_of(pool);
    if (p)
        *ret_flags = l->id == p->device || p->writers >> l->id & 1 ? WS_CUDA_PROT_READWRITE
                     : p->readers >> l->id & 1                     ? WS_CUDA_PROT_READ
                                                                   : WS_CUDA_PROT_NONE;
    pthread_mutex_unlock(&lock);
    return p ? CUDA_OK : CUDA_INVALID_VALUE;
}

/* ---- between processes ---- */

/* What the descriptor of a pool holds. It gives no right to any memory: each pointer has a handle of its own for that. */
struct pool_file {
    char mark[MARK_BYTES];
    uint8_t id[ID_BYTES], gpu[UUID_BYTES];
};
static const char pool_mark[MARK_BYTES] = "ws-pool1", pointer_mark[MARK_BYTES] = "ws-ptr-1";
struct pointer {
    char mark[MARK_BYTES];
    uint8_t handle[WS_SHARE_BYTES], pool[ID_BYTES];
    uint8_t reserved[8];
};
_Static_assert(sizeof(struct pointer) == sizeof(struct cuda_ipc_handle), "ABI");

static int file_with(const struct pool_file *f)
{
    int fd = memfd_create("wattshare-pool", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd >= 0 &&
        (pwrite(fd, f, sizeof(*f), 0) != sizeof(*f) ||
         fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL))) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static int check_type(int type, unsigned long long flags)
{
    if (flags ||
        (type != WS_CUDA_HANDLE_FD && type != 2 && type != 4 && type != WS_CUDA_HANDLE_FABRIC))
        return CUDA_INVALID_VALUE;
    if (type == WS_CUDA_HANDLE_FD && ws_session_maps_host())
        return CUDA_OK;
    ws_session_unsupported("shareable handles of memory pools other than POSIX file descriptors");
    return CUDA_NOT_SUPPORTED;
}

int ws_pool_export(void *pool, int type, unsigned long long flags, int *ret_fd)
{
    struct pool_file f;
    int code = ret_fd ? check_type(type, flags) : CUDA_INVALID_VALUE;
    if (code)
        return code;
    pthread_mutex_lock(&lock);
    struct pool *p = pool_of(pool);
    const uint8_t none[ID_BYTES] = {0};
    bool good = p && p->types & type && !p->imported;
    if (good && !memcmp(p->id, none, sizeof(none)))
        good = getrandom(p->id, sizeof(p->id), 0) == sizeof(p->id);
    if (good) {
        const Ws__Device *d = ws_session_device(p->device);
        memset(&f, 0, sizeof(f));
        memcpy(f.mark, pool_mark, sizeof(f.mark));
        memcpy(f.id, p->id, sizeof(f.id));
        if (d && d->uuid.len == UUID_BYTES)
            memcpy(f.gpu, d->uuid.data, UUID_BYTES);
    }
    pthread_mutex_unlock(&lock);
    if (!good)
        return CUDA_INVALID_VALUE;
    *ret_fd = file_with(&f);
    return *ret_fd < 0 ? CUDA_OUT_OF_MEMORY : CUDA_OK;
}

int ws_pool_import(void **ret, int fd, int type, unsigned long long flags)
{
    struct pool_file f;
    int code = ret ? check_type(type, flags) : CUDA_INVALID_VALUE, n, device = -1;
    if (code)
        return code;
    if (pread(fd, &f, sizeof(f), 0) != sizeof(f) || memcmp(f.mark, pool_mark, sizeof(f.mark)) ||
        ws_session_device_count(&n))
        return CUDA_INVALID_VALUE;
    for (int i = 0; i < n; i++) {
        const Ws__Device *d = ws_session_device(i);
        if (d && d->uuid.len == UUID_BYTES && !memcmp(d->uuid.data, f.gpu, UUID_BYTES))
            device = i;
    }
    if (device < 0)
        return CUDA_INVALID_DEVICE;
    pthread_mutex_lock(&lock);
    struct pool *p = pool_new(device);
    if (p) {
        p->imported = true;
        memcpy(p->id, f.id, sizeof(p->id));
    }
    pthread_mutex_unlock(&lock);
    *ret = p;
    return p ? CUDA_OK : CUDA_OUT_OF_MEMORY;
}

int ws_pool_export_pointer(struct cuda_ipc_handle *ret, uint64_t address)
{
    struct pointer t = {.reserved = {0}};
    uint64_t base;
    pthread_mutex_lock(&lock);
    struct block *b = block_find(address);
    const uint8_t none[ID_BYTES] = {0};
    bool good = ret && b && b->live && !b->imported && b->pool->types & WS_CUDA_HANDLE_FD &&
                memcmp(b->pool->id, none, sizeof(none));
    if (good)
        memcpy(t.pool, b->pool->id, sizeof(t.pool));
    pthread_mutex_unlock(&lock);
    if (!good)
        return CUDA_INVALID_VALUE;
    int code = ws_drv_error(ws_session_memory_share(address, t.handle, &base));
    memcpy(t.mark, pointer_mark, sizeof(t.mark));
    if (!code)
        memcpy(ret, &t, sizeof(t));
    return code;
}

int ws_pool_import_pointer(void *pool, const struct cuda_ipc_handle *h, uint64_t *ret_address)
{
    struct pointer t;
    uint64_t address, bytes;
    if (!h || !ret_address)
        return CUDA_INVALID_VALUE;
    memcpy(&t, h, sizeof(t));
    pthread_mutex_lock(&lock);
    struct pool *p = pool_of(pool);
    int code = p && p->imported && !memcmp(t.mark, pointer_mark, sizeof(t.mark)) &&
                       !memcmp(t.pool, p->id, sizeof(t.pool))
                   ? CUDA_OK
                   : CUDA_INVALID_VALUE;
    if (!code)
        code = ws_drv_error(ws_session_memory_open(t.handle, &address, &bytes));
    struct block *b = code ? NULL : block_add(p, address, bytes);
    if (b) {
        b->imported = true;
        set_live(b, true);
        *ret_address = address;
    } else if (!code) {
        (void)ws_session_memory_close(address);
        code = CUDA_OUT_OF_MEMORY;
    }
    pthread_mutex_unlock(&lock);
    return code;
}

/* ---- reset ---- */

static void pool_lost(void *object, void *arg)
{
    struct pool *p = object;
    if (p->device == *(const int *)arg)
        ws_slab_free(&pools, p);
}

void ws_pool_reset_device(int device)
{
    struct block *b, *next;
    pthread_mutex_lock(&lock);
    HASH_ITER (hh, blocks, b, next)
        if (b->pool->device == device) {
            HASH_DEL(blocks, b);
            free(b);
        }
    ws_slab_each(&pools, pool_lost, &device);
    defaults[device] = currents[device] = NULL;
    pthread_mutex_unlock(&lock);
}
