// SPDX-License-Identifier: Apache-2.0
/* Pages, first fit: there are few launches at a time, and each takes a few pages. */
#include "backend/scheduling/fused_arena.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/packet.h"

/* Beyond the pages of rewritten launches (rewrite.c). */
#define ARENA_VA   (WS_OWN_VA + WS_RELAUNCH_PAGES * PAGE_BYTES)
#define PAGE_BYTES UINT64_C(4096)
enum { N_PAGES = 4096 };

struct ws_fused_arena {
    struct ws_space *space;
    uint8_t *map;
    int fd;
    bool used[N_PAGES];
};

static int make(struct ws_server *s, struct ws_fused_arena *a)
{
    const uint64_t bytes = N_PAGES * PAGE_BYTES;
    a->fd = ws_packet_memfd("wattshare-merged", bytes);
    if (a->fd < 0)
        return a->fd;
    void *m = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, a->fd, 0);
    if (m == MAP_FAILED)
        return -ENOMEM;
    a->map = m;
    for (uint32_t i = 0; i < s->n_gpus; i++)
        ws_device_host_register(s->gpus[i].device, a->map, bytes, a->fd);
    int r = ws_space_new(&a->space);
    return r ? r : ws_space_map_host_soon(a->space, ARENA_VA, bytes, a->map);
}

static struct ws_fused_arena *get(struct ws_server *s)
{
    if (s->fused.arena)
        return s->fused.arena;
    struct ws_fused_arena *a = ws_alloc(sizeof(*a));
    if (!a)
        return NULL;
    a->fd = -1;
    s->fused.arena = a;
    int r = make(s, a);
    if (r) {
        ws_log(WS_ERROR, "fused: no memory for merged launches that all GPUs reach: %s",
               strerror(-r));
        ws_fused_arena_free(s);
    }
    return s->fused.arena;
}

void ws_fused_arena_free(struct ws_server *s)
{
    struct ws_fused_arena *a = s->fused.arena;
    s->fused.arena = NULL;
    if (!a)
        return;
    ws_space_free(a->space);
    for (uint32_t i = 0; a->map && i < s->n_gpus; i++)
        ws_device_host_unregister(s->gpus[i].device, a->map, N_PAGES * PAGE_BYTES);
    if (a->map)
        munmap(a->map, N_PAGES * PAGE_BYTES);
    if (a->fd >= 0)
        close(a->fd);
    free(a);
}

struct ws_space *ws_fused_arena_space(struct ws_server *s)
{
    struct ws_fused_arena *a = get(s);
    return a ? a->space : NULL;
}

static size_t pages(uint64_t bytes)
{
    return (size_t)(WS_ALIGN_UP(WS_MAX(bytes, UINT64_C(1)), PAGE_BYTES) / PAGE_BYTES);
}

int ws_fused_arena_take(struct ws_server *s, uint64_t bytes, uint8_t **ret, uint64_t *ret_va)
{
    struct ws_fused_arena *a = get(s);
    if (!a || bytes > N_PAGES * PAGE_BYTES)
        return -ENOMEM;
    size_t n = pages(bytes), run = 0, k = 0;
    while (run < n && k < N_PAGES)
        run = a->used[k++] ? 0 : run + 1;
    if (run < n)
        return -ENOMEM;
    memset(&a->used[k - n], true, n);
    *ret = a->map + (k - n) * PAGE_BYTES;
    *ret_va = ARENA_VA + (k - n) * PAGE_BYTES;
    memset(*ret, 0, bytes);
    return 0;
}

void ws_fused_arena_give(struct ws_server *s, uint8_t *p, uint64_t bytes)
{
    struct ws_fused_arena *a = s->fused.arena;
    if (p && a)
        memset(&a->used[(size_t)(p - a->map) / PAGE_BYTES], false, pages(bytes));
}
