// SPDX-License-Identifier: Apache-2.0
/* Memory: the table of what the program's addresses are, and allocation.
 *
 * The table is an array sorted by address: it is looked up at every copy, and changes only at
 * allocations and frees. Device addresses lie in a range of their own (WS_VA_FIRST). So an address
 * in that range which no entry holds is an error, and any other unknown address is the program's
 * pageable memory. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/alloc.h"
#include "frontend/session/findings.h"
#include "frontend/session/private.h"

struct region {
    uint64_t base, bytes, tag; /* tag: segment + 1 of pinned memory, 0: not shared */
    enum ws_mem_kind kind;
    int device;
};
static struct region *regions;
static size_t n_regions, cap_regions;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- the table ---- */

/* Index of the first region with base > @address. Lock held. */
static size_t upper(uint64_t address)
{
    size_t lo = 0, hi = n_regions;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (regions[mid].base <= address)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

ws_err ws_memtab_add(enum ws_mem_kind kind, uint64_t base, uint64_t bytes, int device, uint64_t tag)
{
    pthread_mutex_lock(&lock);
    int r = ws_grow((void **)&regions, &cap_regions, n_regions + 1, sizeof(*regions));
    if (!r) {
        size_t i = upper(base);
        memmove(regions + i + 1, regions + i, (n_regions - i) * sizeof(*regions));
        regions[i] = (struct region){
            .base = base, .bytes = bytes, .tag = tag, .kind = kind, .device = device};
        n_regions++;
    }
    pthread_mutex_unlock(&lock);
    return r ? WS__ERROR__INTERNAL : WS__ERROR__OK;
}

bool ws_memtab_remove(enum ws_mem_kind kind, uint64_t base, uint64_t *ret_tag, uint64_t *ret_bytes)
{
    pthread_mutex_lock(&lock);
    size_t i = upper(base);
    bool found = i > 0 && regions[i - 1].base == base && regions[i - 1].kind == kind;
    if (found) {
        if (ret_tag)
            *ret_tag = regions[i - 1].tag;
        if (ret_bytes)
            *ret_bytes = regions[i - 1].bytes;
        memmove(regions + i - 1, regions + i, (n_regions - i) * sizeof(*regions));
        n_regions--;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

void ws_memtab_remove_device(int device)
{
    pthread_mutex_lock(&lock);
    size_t n = 0;
    for (size_t i = 0; i < n_regions; i++)
        if (regions[i].kind == WS_MEM_PINNED || regions[i].device != device)
            regions[n++] = regions[i];
    n_regions = n;
    pthread_mutex_unlock(&lock);
}

void ws_session_mem_find(uint64_t address, struct ws_mem_info *ret)
{
    *ret = (struct ws_mem_info){.kind = WS_MEM_NONE};
    pthread_mutex_lock(&lock);
    size_t i = upper(address);
    if (i > 0 && address - regions[i - 1].base < regions[i - 1].bytes)
        *ret = (struct ws_mem_info){.kind = regions[i - 1].kind,
                                    .base = regions[i - 1].base,
                                    .bytes = regions[i - 1].bytes,
                                    .device = regions[i - 1].device,
                                    .readonly = ws_mem_on_device(regions[i - 1].kind) &&
                                                regions[i - 1].tag == WS_MEMTAB_READONLY};
    pthread_mutex_unlock(&lock);
}

/* ---- allocation ---- */

static ws_err mem_alloc(int device, uint64_t bytes, bool own_access, uint64_t *ret_address)
{
    struct ws_channel *c;
    Ws__MemAlloc m = WS__MEM_ALLOC__INIT;
    Ws__Reply *reply = NULL;
    ws_err r = ws_session_enter(&c);
    if (!r && (device < 0 || device >= ws_session_n_devices()))
        r = WS__ERROR__INVALID_DEVICE;
    if (!r && !bytes)
        r = WS__ERROR__INVALID_VALUE;
    if (r)
        return r;
    m.device = device;
    m.bytes = bytes;
    m.own_access = own_access;
    r = ws_channel_call(c, WS_COMMAND(MEM_ALLOC, mem_alloc, &m), &reply);
    if (!r) {
        uint64_t va = reply->value;
        if (va < WS_VA_FIRST || va >= WS_VA_LAST || bytes > WS_VA_LAST - va)
            r = WS__ERROR__INTERNAL;
        if (!r)
            r = ws_memtab_add(WS_MEM_DEVICE, va, bytes, device, 0);
        if (!r)
            *ret_address = va;
    }
    ws_channel_reply_free(reply);
    return r;
}

ws_err ws_session_mem_alloc(int device, uint64_t bytes, uint64_t *ret_address)
{
    return mem_alloc(device, bytes, false, ret_address);
}

ws_err ws_session_mem_alloc_own(int device, uint64_t bytes, uint64_t *ret_address)
{
    return mem_alloc(device, bytes, true, ret_address);
}

static ws_err mem_free(enum ws_mem_kind kind, uint64_t address, bool async)
{
    struct ws_channel *c;
    Ws__MemFree m = WS__MEM_FREE__INIT;
    if (ws_session_ended())
        return WS__ERROR__OK;
    ws_err r = ws_session_enter(&c);
    if (r)
        return r;
    if (!ws_memtab_remove(kind, address, NULL, NULL))
        return WS__ERROR__INVALID_VALUE;
    ws_findings_freed(address);
    m.address = address;
    return async ? ws_channel_post(c, WS_COMMAND(MEM_FREE_ASYNC, mem_free_async, address))
                 : ws_channel_call(c, WS_COMMAND(MEM_FREE, mem_free, &m), NULL);
}

ws_err ws_session_mem_free(uint64_t address)
{
    return mem_free(WS_MEM_DEVICE, address, false);
}

ws_err ws_session_mem_free_async(uint64_t address)
{
    return mem_free(WS_MEM_DEVICE, address, true);
}

ws_err ws_session_memory_close(uint64_t address)
{
    return mem_free(WS_MEM_IMPORTED, address, false);
}

enum { HOST_PAGE = 4096 };

/* Over tcp there is nothing to share: plain memory that is known as pinned (tag 0). */
static ws_err host_alloc_plain(uint64_t bytes, void **ret)
{
    void *p = NULL;
    if (posix_memalign(&p, HOST_PAGE, bytes))
        return WS__ERROR__OUT_OF_MEMORY;
    ws_err r = ws_memtab_add(WS_MEM_PINNED, (uintptr_t)p, bytes, 0, 0);
    if (r)
        free(p);
    else
        *ret = p;
    return r;
}

/* Moves the segment to @at, where the program has nothing. */
static bool segment_move(struct ws_channel_segment *s, uint64_t at)
{
    void *to = (void *)(uintptr_t)at;
    void *p = mmap(to, s->map_bytes, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (p != to) {
        if (p != MAP_FAILED)
            munmap(p, s->map_bytes);
        return false;
    }
    p = mremap(s->map, s->map_bytes, s->map_bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to);
    if (p == MAP_FAILED) {
        munmap(to, s->map_bytes);
        return false;
    }
    s->data = (uint8_t *)p + (s->data - (uint8_t *)s->map);
    s->map = p;
    return true;
}

/* A segment that kernels see where the program does. @chosen: at an address of the daemon's;
 * NOT_SUPPORTED: the program has something there. */
static ws_err segment_place(struct ws_channel *c, uint64_t bytes, bool chosen,
                            struct ws_channel_segment *ret)
{
    Ws__HostMap map = WS__HOST_MAP__INIT;
    Ws__Reply *reply = NULL;
    ws_err r = ws_channel_segment_new(c, WS_HANDOFF_PINNED, bytes, 0, ret);
    if (r)
        return r;
    map.segment = ret->id;
    map.address = chosen ? 0 : (uintptr_t)ret->data;
    r = ws_channel_call(c, WS_COMMAND(HOST_MAP, host_map, &map), &reply);
    if (!r && chosen && !segment_move(ret, reply->value)) {
        (void)ws_channel_post(c, WS_COMMAND(HOST_UNMAP, host_unmap, ret->id));
        munmap(ret->map, ret->map_bytes);
        r = WS__ERROR__NOT_SUPPORTED;
    } else if (r) {
        ws_channel_segment_free(c, ret);
    }
    ws_channel_reply_free(reply);
    return r;
}

ws_err ws_session_host_alloc(uint64_t bytes, void **ret)
{
    struct ws_channel *c;
    struct ws_channel_segment s;
    ws_err r = ws_session_enter(&c);
    if (!r && (!bytes || bytes > WS_VA_LAST))
        r = WS__ERROR__INVALID_VALUE;
    if (r)
        return r;
    if (!ws_session_local())
        return host_alloc_plain(bytes, ret);
    bytes = WS_ALIGN_UP(bytes, HOST_PAGE);
    r = segment_place(c, bytes, true, &s);
    if (r == WS__ERROR__NOT_SUPPORTED)
        r = segment_place(c, bytes, false, &s);
    if (r)
        return r;
    r = ws_memtab_add(WS_MEM_PINNED, (uintptr_t)s.data, bytes, 0, (uint64_t)s.id + 1);
    if (r)
        ws_channel_segment_free(c, &s);
    else
        *ret = s.data;
    return r;
}

bool ws_session_maps_host(void)
{
    struct ws_channel *c;
    return !ws_session_enter_anyway(&c) && ws_session_local();
}

ws_err ws_session_host_free(void *p)
{
    struct ws_channel *c;
    uint64_t tag, bytes;
    if (ws_session_ended())
        return WS__ERROR__OK;
    ws_err r = ws_session_enter(&c);
    if (r)
        return r;
    if (!ws_memtab_remove(WS_MEM_PINNED, (uintptr_t)p, &tag, &bytes))
        return WS__ERROR__INVALID_VALUE;
    if (!tag) {
        free(p);
        return WS__ERROR__OK;
    }
    /* The daemon keeps its own mapping until what was submitted before is done. Ours starts at the
     * first data byte, which is the start of a page. */
    r = ws_channel_post(c, WS_COMMAND(HOST_UNMAP, host_unmap, tag - 1));
    munmap(p, bytes);
    return r;
}
