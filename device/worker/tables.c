// SPDX-License-Identifier: Apache-2.0
/* State that is replayed to a new worker: memory, its mappings, and instances.
 *
 * The loop posts all changes (post.c); what they do runs on the poster's thread. A record is made
 * before the worker is asked, and is put into its table while calls_lock is still held. So
 * ws_proxy_restore(), which needs calls_lock, finds all that the worker which ended had answered
 * for. When a record is removed, a notice tells the worker, and a worker that never had the object
 * ignores it.
 *
 * The contents of memory outlive a worker, because the daemon holds descriptors of its pieces
 * (device/cuda/keep.h). Memory that cannot be brought back is replaced by cleared memory, so that
 * addresses stay valid, and its spaces are marked as broken: every operation that they submit ends
 * with an error. */
#include <assert.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "device/worker/proxy.h"

#define GRANULE_BYTES (UINT64_C(2) << 20)
#define LET_GO_NS     (UINT64_C(2) * WS_NS_PER_S)

enum { MAP_KEY_BYTES = 2 * sizeof(uint64_t) };

/* ---- memory ---- */

static void kept_close(int fd)
{
    if (fd >= 0)
        close(fd);
}

static void memory_gone(struct ws_proxy *p, struct ws_proxy_post *post)
{
    struct ws_proxy_memory *m = post->what;
    pthread_mutex_lock(&p->tables_lock);
    ws_list_remove(&m->node);
    pthread_mutex_unlock(&p->tables_lock);
    ws_proxy_tell_now(p, ws_wire_head_of(WS_WIRE_MEMORY_FREE, m->id), NULL);
    kept_close(m->fd);
    free(m);
}

static void release(void *arg, uint8_t *host, uint64_t bytes)
{
    struct ws_proxy_memory *m = arg;
    struct ws_proxy *p = m->proxy;
    WS_PROXY_MEASURE(p);
    struct ws_proxy_post *post = ws_proxy_post_new(p, memory_gone, 0, m);
    p->memory_used -= m->bytes;
    if (post)
        ws_proxy_post(p, post);
}

/* Keeps what the answer to MEMORY_NEW says of the piece, and its descriptor. @r: the call's
 * result. */
static void take_piece(struct ws_proxy *p, struct ws_proxy_memory *m, int64_t r)
{
    struct ws_wire_memory w;
    if (!r && ws_wire_take(p->answer, &w, sizeof(w))) {
        kept_close(m->fd);
        m->whole = w.kept;
        m->fd = p->answer->fd;
        p->answer->fd = -1;
    }
    ws_wire_done_with(p->answer);
}

static int64_t memory_ask(struct ws_proxy *p, struct ws_proxy_memory *m)
{
    struct ws_wire_memory w = {.bytes = m->bytes};
    if (ws_proxy_calls_begin(p))
        return -EIO;
    int64_t r =
        ws_proxy_call(p, ws_wire_head_of(WS_WIRE_MEMORY_NEW, m->id), WS_PART(w), WS_PART_NONE, -1);
    take_piece(p, m, r);
    if (!r) {
        pthread_mutex_lock(&p->tables_lock);
        ws_list_append(&p->memories, &m->node);
        pthread_mutex_unlock(&p->tables_lock);
    }
    ws_proxy_calls_end(p);
    return r;
}

/* If the driver refuses it, its mappings fail, too. Without a worker (-EIO) all operations fail. */
static void memory_make(struct ws_proxy *p, struct ws_proxy_post *post)
{
    struct ws_proxy_memory *m = post->what;
    int64_t r = memory_ask(p, m);
    if (r && r != -EIO)
        ws_log(WS_ERROR, "worker: gpu=%u promised memory was refused: bytes=%llu", p->base.index,
               (unsigned long long)m->bytes);
}

int ws_proxy_mem_alloc(struct ws_device *d, uint64_t bytes, struct ws_backing *ret)
{
    struct ws_proxy *p = ws_proxy_of(d);
    WS_PROXY_MEASURE(p);
    struct ws_proxy_memory *m = ws_alloc(sizeof(*m));
    if (!m)
        return ws_raise(-ENOMEM);
    *m = (struct ws_proxy_memory){.proxy = p, .id = ws_proxy_number(), .bytes = bytes, .fd = -1};
    ws_list_init(&m->node);
    m->is_sure = ws_proxy_promise(p, bytes);
    struct ws_proxy_post *post = m->is_sure ? ws_proxy_post_new(p, memory_make, 0, m) : NULL;
    int64_t r = m->is_sure && !post ? -ENOMEM : 0;
    if (post) {
        ws_proxy_post(p, post);
    } else if (!r) {
        ws_proxy_settle(p); /* what was released before may be what it gets */
        r = memory_ask(p, m);
    }
    if (r) {
        free(m);
        return r == -EIO ? WS_DEV_E_NO_MEMORY : (int)r;
    }
    p->memory_used += bytes;
    *ret = (struct ws_backing){.release = release, .arg = m};
    return 0;
}

/* ---- mappings ---- */

/* tables_lock held. */
static struct ws_proxy_map *map_find(struct ws_proxy *p, uint64_t space, uint64_t va)
{
    const uint64_t key[2] = {space, va};
    struct ws_proxy_map *m;
    HASH_FIND(hh, p->maps, key, MAP_KEY_BYTES, m);
    return m;
}

static struct ws_proxy_map *map_new(const struct ws_wire_map *is, bool host)
{
    struct ws_proxy_map *m = ws_alloc(sizeof(*m));
    if (!m)
        return NULL;
    m->is = *is;
    m->host = host;
    m->key[0] = is->space;
    m->key[1] = is->va;
    return m;
}

/* @m: taken. @memory: what is mapped, or NULL: host memory. Return: 0, -EIO (there is no worker any
 * more), or the worker's error. */
static int64_t map_ask(struct ws_proxy *p, struct ws_proxy_map *m, struct ws_proxy_memory *memory)
{
    int64_t r = ws_proxy_calls_begin(p);
    if (!r) {
        r = ws_proxy_call(p, ws_wire_head_of(m->host ? WS_WIRE_HOST_MAP : WS_WIRE_MAP, 0),
                          WS_PART(m->is), WS_PART_NONE, -1);
        ws_wire_done_with(p->answer);
        if (!r) {
            pthread_mutex_lock(&p->tables_lock);
            HASH_ADD(hh, p->maps, key, MAP_KEY_BYTES, m);
            if (memory)
                memory->used = true;
            pthread_mutex_unlock(&p->tables_lock);
        }
        ws_proxy_calls_end(p);
    }
    if (r)
        free(m);
    return r;
}

/* Operations of the space end with an error from now on. */
static void break_space(struct ws_proxy *p, uint64_t space, bool in_restart)
{
    pthread_mutex_lock(&p->ops_lock);
    size_t k = 0;
    while (k < p->n_broken && p->broken[k].space != space)
        k++;
    if (k == p->n_broken &&
        !ws_grow((void **)&p->broken, &p->cap_broken, p->n_broken + 1, sizeof(*p->broken)))
        p->broken[p->n_broken++] = (struct ws_proxy_broken){space, in_restart};
    pthread_mutex_unlock(&p->ops_lock);
}

/* A mapping that is posted. */
struct map_posted {
    struct ws_proxy_map *map;
    struct ws_proxy_memory *memory;
};

static void map_make(struct ws_proxy *p, struct ws_proxy_post *post)
{
    struct map_posted *x = post->what;
    uint64_t va = x->map->is.va;
    int64_t r = map_ask(p, x->map, x->memory);
    free(x);
    if (!r || r == -EIO)
        return;
    ws_log(WS_ERROR, "worker: gpu=%u promised memory was not mapped at 0x%llx (%lld)",
           p->base.index, (unsigned long long)va, (long long)r);
    break_space(p, post->space, false);
}

static int map_post(struct ws_proxy *p, struct ws_proxy_map *map, struct ws_proxy_memory *memory)
{
    struct map_posted *x = ws_alloc(sizeof(*x));
    struct ws_proxy_post *post = x ? ws_proxy_post_new(p, map_make, map->is.space, x) : NULL;
    if (!post) {
        free(x);
        free(map);
        return ws_raise(-ENOMEM);
    }
    *x = (struct map_posted){map, memory};
    ws_proxy_post(p, post);
    return 0;
}

static void map_gone(struct ws_proxy *p, struct ws_proxy_post *post)
{
    pthread_mutex_lock(&p->tables_lock);
    struct ws_proxy_map *m = map_find(p, post->map.space, post->map.va);
    if (m)
        HASH_DEL(p->maps, m);
    pthread_mutex_unlock(&p->tables_lock);
    if (m && !ws_proxy_calls_begin(p)) {
        /* A worker that has ended keeps nothing. */
        (void)!ws_proxy_call_now(p,
                                 ws_wire_head_of(m->host ? WS_WIRE_HOST_UNMAP : WS_WIRE_UNMAP, 0),
                                 WS_PART(m->is), WS_PART_NONE, -1);
        ws_wire_done_with(p->answer);
        ws_proxy_calls_end(p);
    }
    free(m);
}

static void map_end(struct ws_proxy *p, uint64_t space, uint64_t va)
{
    WS_PROXY_MEASURE(p);
    /* Later operations of the space must not see it. */
    struct ws_proxy_post *post = ws_proxy_post_new(p, map_gone, space, NULL);
    if (!post)
        return;
    post->map = (struct ws_wire_map){.space = space, .va = va};
    ws_proxy_post(p, post);
}

/* As ws_cuda_map() has it. */
static bool can_map(const struct ws_proxy_memory *m, uint64_t va, uint64_t bytes, uint64_t offset)
{
    uint64_t whole = WS_MIN(m->bytes & ~(GRANULE_BYTES - 1), bytes);
    return va && !offset && (!whole || va % GRANULE_BYTES == 0) && va + bytes >= va &&
           (bytes <= whole || bytes == m->bytes);
}

int ws_proxy_map_memory(struct ws_device *d, void *arg, struct ws_space *s, uint64_t va,
                        uint64_t bytes, uint64_t offset, uint32_t readers, uint32_t writers)
{
    struct ws_proxy *p = ws_proxy_of(d);
    WS_PROXY_MEASURE(p);
    struct ws_proxy_memory *m = arg;
    struct ws_wire_map is = {.space = ws_space_id(s),
                             .memory = m->id,
                             .va = va,
                             .bytes = bytes,
                             .offset = offset,
                             .readers = readers,
                             .writers = writers};
    if (!can_map(m, va, bytes, offset))
        return ws_raise(-EINVAL);
    if (ws_space_meets(s, va, bytes))
        return -EEXIST;
    struct ws_proxy_map *map = map_new(&is, false);
    if (!map)
        return ws_raise(-ENOMEM);
    int64_t r;
    if (m->is_sure) {
        r = map_post(p, map, m);
    } else {
        ws_proxy_settle(p);
        r = map_ask(p, map, m);
    }
    if (!r && !m->has_place)
        m->at = va % GRANULE_BYTES;
    m->has_place |= !r;
    return r == -EIO ? ws_raise(-ENOMEM) : (int)r;
}

void ws_proxy_unmap_memory(struct ws_device *d, void *arg, struct ws_space *s, uint64_t va,
                           uint64_t bytes)
{
    map_end(ws_proxy_of(d), ws_space_id(s), va);
}

int ws_proxy_map_region(struct ws_proxy *p, uint64_t space, uint64_t va, uint64_t bytes,
                        uint64_t region, uint64_t offset, bool is_sure)
{
    WS_PROXY_MEASURE(p);
    struct ws_wire_map is = {
        .space = space, .memory = region, .va = va, .bytes = bytes, .offset = offset};
    struct ws_proxy_map *map = map_new(&is, true);
    if (!map)
        return ws_raise(-ENOMEM);
    if (is_sure)
        return map_post(p, map, NULL);
    ws_proxy_settle(p); /* the region may be posted */
    int64_t r = map_ask(p, map, NULL);
    return r == -EIO ? ws_raise(-ENOMEM) : (int)r;
}

void ws_proxy_unmap_region(struct ws_proxy *p, uint64_t space, uint64_t va)
{
    map_end(p, space, va);
}

/* A worker that is being started gets the change with the table. */
static void access_set(struct ws_proxy *p, struct ws_proxy_post *post)
{
    struct ws_wire_map is = {0};
    pthread_mutex_lock(&p->tables_lock);
    struct ws_proxy_map *m = map_find(p, post->map.space, post->map.va);
    if (m) {
        m->is.readers = post->map.readers;
        m->is.writers = post->map.writers;
        is = m->is;
    }
    pthread_mutex_unlock(&p->tables_lock);
    if (!m || ws_proxy_calls_begin(p))
        return;
    (void)!ws_proxy_call_now(p, ws_wire_head_of(WS_WIRE_ACCESS, 0), WS_PART(is), WS_PART_NONE, -1);
    ws_wire_done_with(p->answer);
    ws_proxy_calls_end(p);
}

void ws_proxy_set_access(struct ws_device *d, struct ws_space *s, uint64_t va, uint64_t bytes,
                         uint32_t readers, uint32_t writers)
{
    struct ws_proxy *p = ws_proxy_of(d);
    WS_PROXY_MEASURE(p);
    struct ws_proxy_post *post = ws_proxy_post_new(p, access_set, ws_space_id(s), NULL);
    if (!post)
        return;
    post->map = (struct ws_wire_map){
        .space = ws_space_id(s), .va = va, .readers = readers, .writers = writers};
    ws_proxy_post(p, post);
}

/* As ws_cuda_place(), without asking the worker, which may be waiting for the GPU: whole granules
 * come first, and other memory keeps the place in a granule at which it was first mapped. */
void ws_proxy_place(struct ws_device *d, void *arg, uint64_t *ret_granule, uint64_t *ret_offset)
{
    const struct ws_proxy_memory *m = arg;
    *ret_granule = GRANULE_BYTES;
    *ret_offset = m->bytes < GRANULE_BYTES ? m->at : 0;
}

/* ---- instances ---- */

/* calls_lock held; the worker may be one that is being started. */
static int64_t instance_ask(struct ws_proxy *p, const struct ws_dinstance *i,
                            enum ws_instance_write write)
{
    struct ws_wire_instance q = {.module = i->module->id,
                                 .space = i->space,
                                 .write = write,
                                 .n_vars = i->module->info.n_vars};
    struct ws_wire_part vars = {i->var_va, i->module->info.n_vars * sizeof(*i->var_va)};
    int64_t r =
        ws_proxy_call_now(p, ws_wire_head_of(WS_WIRE_INSTANCE_NEW, i->id), WS_PART(q), vars, -1);
    if (!r && i->module->info.own_vars && !ws_wire_take(p->answer, i->var_va, vars.bytes))
        r = -EPROTO;
    ws_wire_done_with(p->answer);
    return r;
}

static void instance_forget(struct ws_dinstance *i)
{
    ws_proxy_vars_unmap(i);
    ws_proxy_module_unref(i->module);
    free(i->var_va);
    free(i);
}

/* Has the instance made by the worker, or by the next one if it ends. */
static int64_t instance_make(struct ws_proxy *p, struct ws_dinstance *i,
                             enum ws_instance_write write)
{
    int64_t r = WS_PROXY_ENDED;
    while (r == WS_PROXY_ENDED) {
        r = ws_proxy_module_here(p, i->module);
        if (r || (r = ws_proxy_calls_begin(p)))
            break;
        uint32_t generation = p->generation;
        /* A worker that was started since then does not have the module. */
        bool here = ws_proxy_module_is_here(p, i->module);
        r = here ? instance_ask(p, i, write) : WS_PROXY_ENDED;
        if (!r) {
            pthread_mutex_lock(&p->tables_lock);
            ws_list_append(&p->instances, &i->node);
            pthread_mutex_unlock(&p->tables_lock);
        }
        ws_proxy_calls_end(p);
        if (here && r == WS_PROXY_ENDED && !ws_proxy_await(p, generation))
            r = -EIO;
    }
    return r;
}

static void instance_borrow(struct ws_proxy *p, struct ws_proxy_post *post)
{
    struct ws_dinstance *i = post->what;
    int64_t r = instance_make(p, i, WS_WRITE_NONE);
    if (!r || r == -EIO)
        return;
    ws_log(WS_ERROR, "worker: gpu=%u the driver has no room for code (%lld)", p->base.index,
           (long long)r);
    break_space(p, i->space, false);
}

static struct ws_dinstance *instance_of(struct ws_proxy *p, struct ws_dmodule *m,
                                        struct ws_space *s, const uint64_t *var_va)
{
    struct ws_dinstance *i = ws_alloc(sizeof(*i));
    uint64_t *va = ws_alloc_array(m->info.n_vars + (size_t)1, sizeof(*va));
    if (!i || !va) {
        free(i);
        free(va);
        return NULL;
    }
    *i = (struct ws_dinstance){.proxy = p,
                               .module = m,
                               .id = ws_proxy_number(),
                               .space = ws_space_id(s),
                               .var_va = va,
                               .of = s};
    ws_list_init(&i->node);
    m->n_refs++;
    if (m->info.n_vars && !m->info.own_vars)
        memcpy(va, var_va, m->info.n_vars * sizeof(*va));
    return i;
}

int ws_proxy_instance_new(struct ws_device *d, struct ws_dmodule *m, struct ws_space *s,
                          const uint64_t *var_va, enum ws_instance_write write,
                          struct ws_dinstance **ret)
{
    struct ws_proxy *p = ws_proxy_of(d);
    WS_PROXY_MEASURE(p);
    struct ws_dinstance *i = instance_of(p, m, s, var_va);
    struct ws_proxy_post *post =
        i && write == WS_WRITE_NONE ? ws_proxy_post_new(p, instance_borrow, i->space, i) : NULL;
    int64_t r = 0;
    if (!i)
        return ws_raise(-ENOMEM);
    if (post) {
        ws_proxy_post(p, post);
    } else {
        ws_proxy_settle(p); /* initial values go into memory that may be posted */
        r = instance_make(p, i, write);
    }
    if (r) {
        instance_forget(i);
        return r == -EIO ? ws_raise(-ENOMEM) : (int)r;
    }
    if (m->info.own_vars && (r = ws_proxy_vars_map(i))) {
        ws_proxy_instance_free(i);
        return (int)r;
    }
    *ret = i;
    return 0;
}

static void instance_gone(struct ws_proxy *p, struct ws_proxy_post *post)
{
    struct ws_dinstance *i = post->what;
    pthread_mutex_lock(&p->tables_lock);
    ws_list_remove(&i->node);
    pthread_mutex_unlock(&p->tables_lock);
    ws_proxy_tell_now(p, ws_wire_head_of(WS_WIRE_INSTANCE_FREE, i->id), NULL);
    instance_forget(i);
}

void ws_proxy_instance_free(struct ws_dinstance *i)
{
    struct ws_proxy *p = i->proxy;
    WS_PROXY_MEASURE(p);
    struct ws_proxy_post *post = ws_proxy_post_new(p, instance_gone, 0, i);
    ws_proxy_vars_unmap(i);
    if (post)
        ws_proxy_post(p, post);
}

/* ---- granules ---- */

static struct ws_proxy_kept *kept_find(struct ws_proxy *p, const struct ws_cuda_kept *k)
{
    struct ws_proxy_kept *g;
    HASH_FIND(hh, p->kept, k, sizeof(*k), g);
    return g;
}

void ws_proxy_on_made(struct ws_proxy *p, struct ws_wire_message *m)
{
    struct ws_proxy_kept *g = ws_alloc(sizeof(*g));
    if (!g || !ws_wire_take(m, &g->is, sizeof(g->is))) {
        free(g);
        return;
    }
    g->fd = m->fd;
    m->fd = -1;
    pthread_mutex_lock(&p->tables_lock);
    struct ws_proxy_kept *old = kept_find(p, &g->is);
    if (old)
        HASH_DEL(p->kept, old);
    HASH_ADD(hh, p->kept, is, sizeof(g->is), g);
    pthread_mutex_unlock(&p->tables_lock);
    if (old) {
        kept_close(old->fd);
        free(old);
    }
}

void ws_proxy_on_gone(struct ws_proxy *p, struct ws_wire_message *m)
{
    struct ws_cuda_kept k;
    if (!ws_wire_take(m, &k, sizeof(k)))
        return;
    pthread_mutex_lock(&p->tables_lock);
    struct ws_proxy_kept *g = kept_find(p, &k);
    if (g)
        HASH_DEL(p->kept, g);
    pthread_mutex_unlock(&p->tables_lock);
    if (g) {
        kept_close(g->fd);
        free(g);
    }
}

/* ---- restoring. calls_lock and tables_lock held ---- */

static int64_t ask(struct ws_proxy *p, struct ws_wire_head head, struct ws_wire_part body, int fd)
{
    enum ws_wire_end end = ws_wire_rows[head.type].end;
    assert(end == WS_WIRE_REPLAYED || end == WS_WIRE_STARTING);
    int64_t r = ws_proxy_call_now(p, head, body, WS_PART_NONE, fd);
    if (r != WS_PROXY_ENDED && head.type != WS_WIRE_MEMORY_NEW)
        ws_wire_done_with(p->answer);
    return r;
}

/* As ask(), again while it fails, until @until_ns (host clock): a driver may take a moment to let
 * go of what the worker before had, whose addresses are asked for. */
static int64_t ask_again(struct ws_proxy *p, struct ws_wire_head head, struct ws_wire_part body,
                         int fd, uint64_t until_ns)
{
    int64_t r = ask(p, head, body, fd);
    while (r && r != WS_PROXY_ENDED && ws_proxy_host_ns() < until_ns) {
        usleep(10000);
        r = ask(p, head, body, fd);
    }
    return r;
}

static int64_t restore_granule(struct ws_proxy *p, const struct ws_proxy_kept *g, uint64_t until_ns,
                               bool *ret_lost)
{
    int64_t r = g->fd < 0 ? -EIO
                          : ask_again(p, ws_wire_head_of(WS_WIRE_ADOPT_GRANULE, 0), WS_PART(g->is),
                                      g->fd, until_ns);
    *ret_lost = r != 0;
    if (r != WS_PROXY_ENDED && r)
        for (struct ws_proxy_map *m = p->maps; m; m = m->hh.next)
            if (!m->host && m->is.va < g->is.va + GRANULE_BYTES &&
                g->is.va < m->is.va + m->is.bytes)
                break_space(p, m->is.space, true);
    return r == WS_PROXY_ENDED ? r : 0;
}

static int64_t restore_granules(struct ws_proxy *p, uint64_t until_ns)
{
    int64_t r = 0;
    for (struct ws_proxy_kept *g = p->kept, *next; g; g = next) {
        bool lost;
        next = g->hh.next;
        r = restore_granule(p, g, until_ns, &lost);
        if (r == WS_PROXY_ENDED)
            return r;
        if (lost) {
            HASH_DEL(p->kept, g);
            kept_close(g->fd);
            free(g);
        }
    }
    return r;
}

static int64_t restore_memory(struct ws_proxy *p, struct ws_proxy_memory *m)
{
    struct ws_wire_memory w = {.bytes = m->bytes, .kept = m->whole};
    /* What was not mapped yet was not cleared: nobody gets it as it is. */
    bool can = m->used && p->hello.keeps && (!m->whole.id || m->fd >= 0),
         packed = m->bytes % GRANULE_BYTES, mapped = false;
    for (struct ws_proxy_map *x = p->maps; x && !mapped; x = x->hh.next)
        mapped = !x->host && x->is.memory == m->id;
    if (packed && !mapped) { /* its share of a granule is at no address */
        can = false;
        if (m->used)
            ws_log(WS_WARN,
                   "worker: gpu=%u memory that was not mapped lost its contents: bytes=%llu",
                   p->base.index, (unsigned long long)m->bytes);
    }
    int64_t r =
        can ? ask(p, ws_wire_head_of(WS_WIRE_ADOPT_MEMORY, m->id), WS_PART(w), m->fd) : -EIO;
    if (!r || r == WS_PROXY_ENDED)
        return r;
    for (struct ws_proxy_map *x = p->maps; x; x = x->hh.next)
        if (!x->host && x->is.memory == m->id)
            break_space(p, x->is.space, true);
    w.kept = (struct ws_cuda_kept){0};
    r = ask(p, ws_wire_head_of(WS_WIRE_MEMORY_NEW, m->id), WS_PART(w), -1);
    take_piece(p, m, r);
    return r == WS_PROXY_ENDED ? r : 0;
}

static int64_t restore_map(struct ws_proxy *p, const struct ws_proxy_map *m, uint64_t until_ns)
{
    int64_t r = ask_again(p, ws_wire_head_of(m->host ? WS_WIRE_HOST_MAP : WS_WIRE_MAP, 0),
                          WS_PART(m->is), -1, until_ns);
    if (r == WS_PROXY_ENDED || !r)
        return r;
    ws_log(WS_ERROR, "worker: gpu=%u memory at 0x%llx was not restored (%lld)", p->base.index,
           (unsigned long long)m->is.va, (long long)r);
    break_space(p, m->is.space, true);
    return 0;
}

static int64_t restore_instances(struct ws_proxy *p)
{
    int64_t r = 0;
    for (struct ws_list *it = p->instances.next; it != &p->instances && r != WS_PROXY_ENDED;
         it = it->next) {
        struct ws_dinstance *i = ws_list_entry(it, struct ws_dinstance, node);
        if (i->module->info.own_vars) { /* they ended with the driver that had placed them */
            break_space(p, i->space, true);
            continue;
        }
        i->is_restored = true;
        r = ws_proxy_module_restore(p, i->module) ? WS_PROXY_ENDED : instance_ask(p, i, false);
        if (r && r != WS_PROXY_ENDED) {
            ws_log(WS_ERROR, "worker: gpu=%u a module was not restored (%lld)", p->base.index,
                   (long long)r);
            break_space(p, i->space, true);
        }
    }
    return r;
}

static int64_t restore_all(struct ws_proxy *p)
{
    uint64_t until_ns = ws_proxy_host_ns() + LET_GO_NS;
    int64_t r = restore_granules(p, until_ns);
    for (struct ws_list *it = p->memories.next; it != &p->memories && r != WS_PROXY_ENDED;
         it = it->next)
        r = restore_memory(p, ws_list_entry(it, struct ws_proxy_memory, node));
    for (struct ws_list *it = p->regions.next; it != &p->regions && r != WS_PROXY_ENDED;
         it = it->next) {
        const struct ws_proxy_region *g = ws_list_entry(it, struct ws_proxy_region, node);
        r = ask(p, ws_wire_head_of(WS_WIRE_REGION_NEW, g->id), WS_PART(g->bytes), g->fd);
    }
    for (struct ws_proxy_map *m = p->maps; m && r != WS_PROXY_ENDED; m = m->hh.next)
        r = restore_map(p, m, until_ns);
    if (r != WS_PROXY_ENDED && p->hello.keeps)
        r = ask(p, ws_wire_head_of(WS_WIRE_ADOPT_END, 0), WS_PART_NONE, -1);
    return r == WS_PROXY_ENDED ? r : restore_instances(p);
}

int ws_proxy_restore(struct ws_proxy *p)
{
    pthread_mutex_lock(&p->tables_lock);
    int64_t r = restore_all(p);
    pthread_mutex_unlock(&p->tables_lock);
    return r == WS_PROXY_ENDED ? -EPIPE : 0;
}

/* Clients have released what was theirs; what is left is the device's own. */
void ws_proxy_tables_free(struct ws_proxy *p)
{
    struct ws_proxy_kept *g, *next;
    HASH_ITER (hh, p->kept, g, next) {
        HASH_DEL(p->kept, g);
        kept_close(g->fd);
        free(g);
    }
    struct ws_proxy_map *m, *after;
    HASH_ITER (hh, p->maps, m, after) {
        HASH_DEL(p->maps, m);
        free(m);
    }
    free(p->broken);
}
