// SPDX-License-Identifier: Apache-2.0
/* Segments: memory that both the client and the daemon map. The daemon makes it, or makes sure that
 * it is sealed: so its size is certain. The daemon keeps every offset against its own record; what
 * the client writes into the control page is never believed. A segment is freed when the client has
 * released it (or has ended), no copy uses it, and it is not mapped into the client's space. */
#include "backend/backend.h"
#include "backend/client/segment.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "backend/client/reply.h"
#include "backend/client/user.h"
#include "backend/code/loader.h"
#include "base/alloc.h"
#include "base/packet.h"
#include "protocol/handoff.h"

enum { CONTROL_BYTES = 4096, PAGE_BYTES = 4096 };
_Static_assert(sizeof(struct ws_staging_control) <= CONTROL_BYTES, "control fits its page");

struct ws_segment *ws_segment_find(struct ws_client *c, uint32_t id)
{
    struct ws_segment *g;
    HASH_FIND(hh, c->segments.by_id, &id, sizeof(id), g);
    return g && !g->released ? g : NULL;
}

static Ws__Error check(struct ws_client *c, const struct ws_handoff_request *q)
{
    uint64_t max = c->limits.max_segment_bytes;
    if (!q->bytes)
        return WS__ERROR__INVALID_VALUE;
    if (q->kind == WS_HANDOFF_STAGING && (!q->chunk_bytes || q->bytes % q->chunk_bytes ||
                                          q->bytes / q->chunk_bytes > WS_STAGING_MAX_CHUNKS))
        return WS__ERROR__INVALID_VALUE;
    if (q->bytes > max || c->stats.segment_bytes > max - q->bytes)
        return WS__ERROR__OUT_OF_MEMORY;
    return WS__ERROR__OK;
}

/* Whether what one client has at an address keeps another from having something there. */
static bool shares_addresses(const struct ws_client *c)
{
    for (uint32_t i = 0; i < c->n_contexts; i++)
        if (c->contexts[i].gpu->device->ops->map)
            return true;
    return false;
}

/* A real GPU maps pinned memory once more, where its client sees it, among addresses that are kept
 * free. */
static uint64_t n_mappings(const struct ws_client *c)
{
    return shares_addresses(c) ? 3 : 1;
}

/* A segment is one mapping or two, a descriptor until it is settled, and as many bytes as its pages
 * have. */
static Ws__Error segment_charge(struct ws_client *c, uint64_t map_bytes)
{
    Ws__Error e = ws_client_charge(c, WS_RESOURCE_MAPPINGS, n_mappings(c));
    if (e)
        return e;
    e = ws_client_charge(c, WS_RESOURCE_DESCRIPTORS, 1);
    if (!e && (e = ws_client_charge(c, WS_RESOURCE_HOST_BYTES, map_bytes)))
        ws_client_release(c, WS_RESOURCE_DESCRIPTORS, 1);
    if (e)
        ws_client_release(c, WS_RESOURCE_MAPPINGS, n_mappings(c));
    return e;
}

static void segment_release(struct ws_client *c, uint64_t map_bytes)
{
    ws_client_release(c, WS_RESOURCE_MAPPINGS, n_mappings(c));
    ws_client_release(c, WS_RESOURCE_DESCRIPTORS, 1);
    ws_client_release(c, WS_RESOURCE_HOST_BYTES, map_bytes);
}

/* Memory that could shrink, or huge pages that could run out, would end the daemon when it reads
 * them. */
static bool stays(int fd, uint64_t bytes)
{
    struct statfs fs;
    return ws_packet_memfd_ok(fd, bytes) && !fstatfs(fd, &fs) && fs.f_type == TMPFS_MAGIC;
}

/* A GPU's worker maps memory when it comes to that, and again when it is started anew. */
static bool is_mapped_later(const struct ws_server *s)
{
    for (uint32_t i = 0; i < s->n_gpus; i++)
        if (s->gpus[i].device->ops->host_register)
            return true;
    return false;
}

static void close_fd(struct ws_client *c, struct ws_segment *g)
{
    if (g->fd < 0)
        return;
    close(g->fd);
    g->fd = -1;
    ws_client_release(c, WS_RESOURCE_DESCRIPTORS, 1);
}

bool ws_segment_settle(struct ws_client *c, struct ws_segment *g)
{
    if (g->fd < 0)
        return true;
    if (!is_mapped_later(c->server) && !ws_packet_memfd_seal_holes(g->fd))
        return false;
    close_fd(c, g);
    return true;
}

/* @came: the client's memory, or -1: new memory */
static Ws__Error segment_new(struct ws_client *c, const struct ws_handoff_request *q, int came,
                             struct ws_segment **ret)
{
    uint64_t control = q->kind == WS_HANDOFF_STAGING ? CONTROL_BYTES : 0;
    uint64_t map_bytes = WS_ALIGN_UP(control + q->bytes, UINT64_C(4096));
    Ws__Error e = check(c, q);
    if (!e && came >= 0 && !stays(came, map_bytes))
        e = WS__ERROR__NOT_SUPPORTED;
    if (!e)
        e = segment_charge(c, map_bytes);
    if (e)
        return e;
    struct ws_segment *g = ws_alloc(sizeof(*g));
    if (!g) {
        segment_release(c, map_bytes);
        return WS__ERROR__OUT_OF_MEMORY;
    }
    g->kind = q->kind;
    g->bytes = q->bytes;
    g->map_bytes = map_bytes;
    g->fd = came >= 0 ? fcntl(came, F_DUPFD_CLOEXEC, 0)
                      : ws_packet_memfd_for_two("wattshare-segment", g->map_bytes);
    g->map = g->fd < 0 ? MAP_FAILED
                       : mmap(NULL, g->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, g->fd, 0);
    if (g->map == MAP_FAILED) {
        if (g->fd >= 0)
            close(g->fd);
        segment_release(c, map_bytes);
        free(g);
        return WS__ERROR__OUT_OF_MEMORY;
    }
    g->data = g->map + control;
    if (control) {
        struct ws_staging_control *h = (struct ws_staging_control *)g->map;
        g->chunk_bytes = q->chunk_bytes;
        g->n_chunks = (uint32_t)(q->bytes / q->chunk_bytes);
        h->magic = WS_STAGING_MAGIC;
        h->n_chunks = g->n_chunks;
        h->chunk_bytes = g->chunk_bytes;
    }
    for (uint32_t i = 0; i < c->server->n_gpus; i++)
        ws_device_host_register(c->server->gpus[i].device, g->map, g->map_bytes, g->fd);
    if (came >= 0) /* not ours to seal: other processes may map it later */
        close_fd(c, g);
    g->id = ++c->segments.n_made;
    HASH_ADD(hh, c->segments.by_id, id, sizeof(g->id), g);
    c->stats.segment_bytes += g->bytes;
    *ret = g;
    return WS__ERROR__OK;
}

Ws__Error ws_segment_new(struct ws_client *c, const struct ws_handoff_request *q,
                         struct ws_segment **ret)
{
    return segment_new(c, q, -1, ret);
}

Ws__Error ws_segment_share(struct ws_client *c, const struct ws_handoff_request *q, int fd,
                           struct ws_segment **ret)
{
    return fd < 0 ? WS__ERROR__INVALID_VALUE : segment_new(c, q, fd, ret);
}

static void unmap(void *p, uint64_t bytes)
{
    munmap(p, bytes);
}

/* Its pages may have no other user left: then whoever gives them up last frees them, which takes
 * long. That is to be the thread that unmaps them, so the descriptor goes before. */
static void segment_free(struct ws_segment *g, struct ws_client *c)
{
    HASH_DEL(c->segments.by_id, g);
    c->stats.segment_bytes -= g->bytes;
    for (uint32_t i = 0; i < c->server->n_gpus; i++)
        ws_device_host_unregister(c->server->gpus[i].device, g->map, g->map_bytes);
    ws_client_release(c, WS_RESOURCE_MAPPINGS, n_mappings(c));
    close_fd(c, g);
    ws_discard(&c->server->discards, unmap, g->map, g->map_bytes,
               &(struct ws_discard_charge){c->who.account, WS_RESOURCE_HOST_BYTES, g->map_bytes});
    free(g);
}

static void maybe_free(struct ws_segment *g, struct ws_client *c)
{
    if (g->released && !g->n_copies && !g->mapped_at && !g->mapping)
        segment_free(g, c);
}

/* Takes addresses of the daemon's for @g on its client's account: some if *io_at is 0, else those
 * that begin there, where others could be given them. */
static int take_addresses(struct ws_client *c, struct ws_segment *g, uint64_t *io_at)
{
    struct ws_va *v = &c->memory.host_va;
    uint64_t at = *io_at;
    if (!at) {
        bool none = ws_va_alloc_at(v, g->map_bytes, PAGE_BYTES, io_at);
        g->taken_bytes = none ? 0 : g->map_bytes + WS_VA_GAP_BYTES;
        return none ? -ENOMEM : 0;
    }
    if (at >= WS_HOST_VA_LAST || at + g->map_bytes <= WS_HOST_VA_FIRST || !shares_addresses(c))
        return 0;
    return ws_va_alloc_fixed(v, at, g->map_bytes, &g->taken_bytes) ? -EEXIST : 0;
}

static void give_addresses(struct ws_client *c, struct ws_segment *g, uint64_t at)
{
    if (g->taken_bytes)
        ws_va_give(&c->memory.host_va, at, g->taken_bytes);
    g->taken_bytes = 0;
}

/* ---- mapped host memory ---- */

struct host_mapping {
    struct ws_loader_work work;
    struct ws_client *client;
    struct ws_segment *segment;
    uint64_t seq, at;
    int r;
};

static Ws__Error host_map_check(struct ws_client *c, struct ws_segment *g)
{
    if (!g)
        return WS__ERROR__INVALID_HANDLE;
    if (g->kind == WS_HANDOFF_STAGING || g->mapped_at || g->mapping)
        return WS__ERROR__INVALID_VALUE;
    return ws_segment_settle(c, g) ? WS__ERROR__OK : WS__ERROR__NOT_SUPPORTED;
}

/* @r: of mapping @g at @at. If it is 0, the client is told. */
static Ws__Error host_map_end(struct ws_client *c, struct ws_segment *g, uint64_t seq, uint64_t at,
                              int r)
{
    Ws__Reply reply = WS__REPLY__INIT;
    if (r) {
        give_addresses(c, g, at);
        return r == -ENOMEM   ? WS__ERROR__OUT_OF_MEMORY
               : r == -EEXIST ? WS__ERROR__NOT_SUPPORTED
                              : WS__ERROR__INVALID_VALUE;
    }
    g->mapped_at = at;
    reply.seq = seq;
    reply.value = at;
    ws_client_reply(c, &reply);
    ws_client_retire(c, 1);
    return WS__ERROR__OK;
}

static void host_map_work(struct ws_loader_work *work)
{
    struct host_mapping *w = WS_CONTAINER_OF(work, struct host_mapping, work);
    const struct ws_segment *g = w->segment;
    w->r = ws_space_map_host(w->client->memory.space, w->at, g->bytes, g->data);
}

static void host_map_worked(struct ws_loader_work *work)
{
    struct host_mapping *w = WS_CONTAINER_OF(work, struct host_mapping, work);
    struct ws_client *c = w->client;
    Ws__Error e = host_map_end(c, w->segment, w->seq, w->at, w->r);
    if (e) {
        ws_client_reply_error(c, w->seq, e, "");
        ws_client_retire(c, 1);
    }
    w->segment->mapping = false;
    maybe_free(w->segment, c);
    ws_client_landed(c);
    free(w);
}

/* On a thread, since a driver is asked whether it can. The client counts as at work meanwhile, so
 * it stays. */
static int host_map_later(struct ws_client *c, struct ws_segment *g, uint64_t seq, uint64_t at)
{
    struct host_mapping *w = ws_alloc(sizeof(*w));
    if (!w)
        return -ENOMEM;
    *w = (struct host_mapping){
        .work = {.work = host_map_work, .done = host_map_worked, .account = c->who.account},
        .client = c,
        .segment = g,
        .seq = seq,
        .at = at,
        .r = -ENOMEM /* unless it is taken up */};
    g->mapping = true;
    c->n_in_flight++;
    ws_loader_run(c->server->loader, &w->work);
    return 0;
}

/* The addresses that programs choose may be those of others, the same in each child of a fork, or
 * those of something that a driver has in its process. */
Ws__Error ws_segment_host_map(struct ws_client *c, uint64_t seq, uint32_t id, uint64_t at)
{
    struct ws_segment *g = ws_segment_find(c, id);
    Ws__Error e = host_map_check(c, g);
    if (e)
        return e;
    int r = take_addresses(c, g, &at);
    uint64_t last = at + g->bytes - 1;
    if (!r && (last < at || (at < WS_VA_LAST && last >= WS_VA_FIRST)))
        r = -EINVAL;
    if (!r && !g->taken_bytes && shares_addresses(c)) {
        r = host_map_later(c, g, seq, at);
        if (!r)
            return WS__ERROR__OK;
    }
    if (!r)
        r = ws_space_map_host_soon(c->memory.space, at, g->bytes, g->data);
    return host_map_end(c, g, seq, at, r);
}

static void host_unmap(struct ws_segment *g, struct ws_client *c)
{
    int r = ws_space_unmap(c->memory.space, g->mapped_at);
    if (r)
        ws_log(WS_ERROR, "segment: unmap failed client=%u segment=%u r=%d", c->id, g->id, r);
    give_addresses(c, g, g->mapped_at);
    g->mapped_at = 0;
}

void ws_segment_unmapped(struct ws_segment *g, struct ws_client *c)
{
    host_unmap(g, c);
    g->released = true;
    maybe_free(g, c);
}

void ws_segment_release(struct ws_segment *g, struct ws_client *c)
{
    g->released = true;
    maybe_free(g, c);
}

void ws_segment_put(struct ws_segment *g, struct ws_client *c)
{
    g->n_copies--;
    maybe_free(g, c);
}

void ws_segment_chunk_done(struct ws_segment *g, uint32_t chunk, uint32_t state)
{
    struct ws_staging_control *h = (struct ws_staging_control *)g->map;
    atomic_store(&h->state[chunk], state);
    if (atomic_load(&h->n_waiting))
        ws_futex_wake_all(&h->state[chunk]);
}

bool ws_segments_free_one(struct ws_client *c)
{
    struct ws_segment *g = c->segments.by_id;
    if (!g)
        return false;
    if (g->mapped_at)
        host_unmap(g, c);
    segment_free(g, c);
    return true;
}
