// SPDX-License-Identifier: Apache-2.0
/* Host memory: segments that the worker maps, too, by their descriptors, and the parts of them that
 * clients map for kernels. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "device/worker/proxy.h"

static pthread_mutex_t hosts_lock = PTHREAD_MUTEX_INITIALIZER;
static struct ws_proxy *open_proxies;

static void region_make(struct ws_proxy *p, struct ws_proxy_post *post)
{
    struct ws_proxy_region *g = post->what;
    if (ws_proxy_calls_begin(p))
        return;
    int64_t r = ws_proxy_call(p, ws_wire_head_of(WS_WIRE_REGION_NEW, g->id), WS_PART(g->bytes),
                              WS_PART_NONE, g->fd);
    ws_wire_done_with(p->answer);
    if (!r) {
        pthread_mutex_lock(&p->regions_lock);
        ws_list_remove(&g->node);
        ws_list_append(&p->regions, &g->node);
        pthread_mutex_unlock(&p->regions_lock);
    }
    ws_proxy_calls_end(p);
}

void ws_proxy_host_register(struct ws_device *d, void *host, uint64_t bytes, int fd)
{
    struct ws_proxy *p = ws_proxy_of(d);
    WS_PROXY_MEASURE(p);
    struct ws_proxy_region *g = fd < 0 ? NULL : ws_alloc(sizeof(*g));
    struct ws_proxy_post *post = g ? ws_proxy_post_new(p, region_make, 0, g) : NULL;
    int own = post ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    if (own < 0) {
        free(post);
        free(g);
        return; /* copies then send the bytes themselves */
    }
    *g = (struct ws_proxy_region){.id = ws_proxy_number(), .host = host, .bytes = bytes, .fd = own};
    pthread_mutex_lock(&p->regions_lock);
    ws_list_append(&p->posted_regions, &g->node);
    pthread_mutex_unlock(&p->regions_lock);
    ws_proxy_post(p, post);
}

/* calls_lock: the list is not replayed meanwhile. */
static void region_gone(struct ws_proxy *p, struct ws_proxy_post *post)
{
    struct ws_proxy_region *g = post->what;
    pthread_mutex_lock(&p->calls_lock);
    pthread_mutex_lock(&p->regions_lock);
    ws_list_remove(&g->node);
    pthread_mutex_unlock(&p->regions_lock);
    pthread_mutex_unlock(&p->calls_lock);
    ws_proxy_tell_now(p, ws_wire_head_of(WS_WIRE_REGION_FREE, g->id), NULL);
    close(g->fd);
    free(g);
}

/* regions_lock held. */
static struct ws_proxy_region *registered(const struct ws_list *regions, const void *host)
{
    ws_list_for_each (it, regions) {
        struct ws_proxy_region *g = ws_list_entry(it, struct ws_proxy_region, node);
        if (g->host == host && !g->gone)
            return g;
    }
    return NULL;
}

void ws_proxy_host_unregister(struct ws_device *d, void *host, uint64_t bytes)
{
    struct ws_proxy *p = ws_proxy_of(d);
    WS_PROXY_MEASURE(p);
    pthread_mutex_lock(&p->regions_lock);
    struct ws_proxy_region *g = registered(&p->regions, host);
    if (!g)
        g = registered(&p->posted_regions, host);
    if (g)
        g->gone = true;
    pthread_mutex_unlock(&p->regions_lock);
    struct ws_proxy_post *post = g ? ws_proxy_post_new(p, region_gone, 0, g) : NULL;
    if (post)
        ws_proxy_post(p, post);
}

/* regions_lock held. */
static const struct ws_proxy_region *region_with(const struct ws_list *regions, const void *host,
                                                 uint64_t bytes)
{
    const uint8_t *h = host;
    ws_list_for_each (it, regions) {
        const struct ws_proxy_region *g = ws_list_entry(it, struct ws_proxy_region, node);
        if (!g->gone && h >= g->host && (uint64_t)(h - g->host) <= g->bytes &&
            bytes <= g->bytes - (uint64_t)(h - g->host))
            return g;
    }
    return NULL;
}

/* @posted: the worker may not have it yet. */
static bool region_find(struct ws_proxy *p, const void *host, uint64_t bytes, bool posted,
                        uint64_t *ret_id, uint64_t *ret_offset)
{
    pthread_mutex_lock(&p->regions_lock);
    const struct ws_proxy_region *g = region_with(&p->regions, host, bytes);
    if (!g && posted)
        g = region_with(&p->posted_regions, host, bytes);
    if (g) {
        *ret_id = g->id;
        *ret_offset = (uint64_t)((const uint8_t *)host - g->host);
    }
    pthread_mutex_unlock(&p->regions_lock);
    return g != NULL;
}

bool ws_proxy_region_find(struct ws_proxy *p, const void *host, uint64_t bytes, uint64_t *ret_id,
                          uint64_t *ret_offset)
{
    return region_find(p, host, bytes, false, ret_id, ret_offset);
}

/* ---- what is mapped for kernels, on all GPUs ---- */

/* Whether the worker has nothing else there, as far as it has said. */
static bool is_sure(const struct ws_proxy *p, uint64_t va)
{
    const struct ws_wire_config *c = &p->config;
    return p->hello.has_host_va && va >= c->host_va && va - c->host_va < c->host_bytes;
}

static bool maps_host(const struct ws_proxy *p)
{
    for (uint32_t k = 0; k < p->capabilities.n; k++)
        if (!strcmp(p->capabilities.v[k].name, WS_CUDA_MAPS_HOST))
            return p->capabilities.v[k].yes;
    return false;
}

/* Not under hosts_lock, which the loop takes: the worker may take long to answer unless @soon, when
 * the mapping is posted. No GPU is closed while a client is there. */
static int host_map(struct ws_space *s, uint64_t va, uint64_t bytes, void *host, bool soon)
{
    int r = 0;
    struct ws_proxy *from = __atomic_load_n(&open_proxies, __ATOMIC_ACQUIRE), *p, *q;
    for (p = from; p && !r; p = p->next_open) {
        uint64_t region, offset;
        if (!maps_host(p))
            r = -ENOTSUP;
        else if (!region_find(p, host, bytes, true, &region, &offset))
            r = -EINVAL;
        else
            r = ws_proxy_map_region(p, ws_space_id(s), va, bytes, region, offset,
                                    soon && is_sure(p, va));
        if (r)
            break;
    }
    for (q = from; r && q != p; q = q->next_open)
        ws_proxy_unmap_region(q, ws_space_id(s), va);
    return r;
}

/* Also on the reader's thread, when the last operation that might use the mapping ends. */
static void host_unmap(struct ws_space *s, uint64_t va, uint64_t bytes)
{
    for (struct ws_proxy *p = __atomic_load_n(&open_proxies, __ATOMIC_ACQUIRE); p; p = p->next_open)
        ws_proxy_unmap_region(p, ws_space_id(s), va);
}

static void gone(struct ws_space *s)
{
    for (struct ws_proxy *p = __atomic_load_n(&open_proxies, __ATOMIC_ACQUIRE); p; p = p->next_open)
        ws_proxy_tell(p, ws_wire_head_of(WS_WIRE_SPACE_GONE, ws_space_id(s)), NULL);
}

static const struct ws_host_hook hook = {host_map, host_unmap, gone};

void ws_proxy_tell_open(const struct ws_proxy *which, struct ws_wire_head head)
{
    pthread_mutex_lock(&hosts_lock);
    struct ws_proxy *p = open_proxies;
    while (p && p != which)
        p = p->next_open;
    if (p)
        ws_proxy_tell(p, head, NULL);
    pthread_mutex_unlock(&hosts_lock);
}

void ws_proxy_hosts_open(struct ws_proxy *p)
{
    pthread_mutex_lock(&hosts_lock);
    p->next_open = open_proxies;
    __atomic_store_n(&open_proxies, p, __ATOMIC_RELEASE);
    if (!p->next_open)
        ws_space_set_host_hook(&hook);
    pthread_mutex_unlock(&hosts_lock);
}

static void regions_free(struct ws_list *regions)
{
    struct ws_list *n;
    while ((n = ws_list_pop(regions))) {
        close(ws_list_entry(n, struct ws_proxy_region, node)->fd);
        free(ws_list_entry(n, struct ws_proxy_region, node));
    }
}

void ws_proxy_hosts_close(struct ws_proxy *p)
{
    pthread_mutex_lock(&hosts_lock);
    struct ws_proxy **at = &open_proxies;
    while (*at && *at != p)
        at = &(*at)->next_open;
    if (*at)
        __atomic_store_n(at, p->next_open, __ATOMIC_RELEASE);
    if (!open_proxies)
        ws_space_set_host_hook(NULL);
    pthread_mutex_unlock(&hosts_lock);
    regions_free(&p->regions);
    regions_free(&p->posted_regions);
}
