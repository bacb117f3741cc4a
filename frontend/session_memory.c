// SPDX-License-Identifier: Apache-2.0
/* Memory: the table of what the program's addresses mean, allocation, copies and fills.
 *
 * The table is an array sorted by address: look-ups on every copy, changes only at allocation and free. Device addresses lie in
 * a range of their own (WS_VA_FIRST), so an address there that no entry holds is an error, and any other unknown one is the
 * program's pageable memory.
 *
 * Copies choose their road by what the two addresses are, not by the direction that was said; that one is only checked. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/alloc.h"
#include "frontend/session_private.h"

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
    int r = ws_grow((void **)&regions, &cap_regions, n_regions + 1, sizeof *regions);
    if (!r) {
        size_t i = upper(base);
        memmove(regions + i + 1, regions + i, (n_regions - i) * sizeof *regions);
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
        memmove(regions + i - 1, regions + i, (n_regions - i) * sizeof *regions);
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
                                    .device = regions[i - 1].device};
    pthread_mutex_unlock(&lock);
}

/* ---- allocation ---- */

ws_err ws_session_mem_alloc(int device, uint64_t bytes, uint64_t *ret_address)
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

ws_err ws_session_mem_free(uint64_t address)
{
    struct ws_channel *c;
    Ws__MemFree m = WS__MEM_FREE__INIT;
    if (ws_session_ended())
        return WS__ERROR__OK;
    ws_err r = ws_session_enter(&c);
    if (r)
        return r;
    if (!ws_memtab_remove(WS_MEM_DEVICE, address, NULL, NULL))
        return WS__ERROR__INVALID_VALUE;
    m.address = address;
    return ws_channel_call(c, WS_COMMAND(MEM_FREE, mem_free, &m), NULL);
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

ws_err ws_session_host_alloc(uint64_t bytes, void **ret)
{
    struct ws_channel *c;
    struct ws_segment s;
    Ws__HostMap map = WS__HOST_MAP__INIT;
    ws_err r = ws_session_enter(&c);
    if (!r && (!bytes || bytes > WS_VA_LAST))
        r = WS__ERROR__INVALID_VALUE;
    if (r)
        return r;
    if (!ws_session_local())
        return host_alloc_plain(bytes, ret);
    r = ws_channel_segment_new(c, WS_SIDE_PINNED, WS_ALIGN_UP(bytes, HOST_PAGE), 0, &s);
    if (r)
        return r;
    map.segment = s.id;
    map.address = (uintptr_t)s.data;
    r = ws_channel_call(c, WS_COMMAND(HOST_MAP, host_map, &map), NULL);
    if (!r)
        r = ws_memtab_add(WS_MEM_PINNED, (uintptr_t)s.data, WS_ALIGN_UP(bytes, HOST_PAGE), 0,
                          (uint64_t)s.id + 1);
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
    /* The daemon keeps its own mapping until what was submitted before is done. Ours starts at the first data byte, which is the
     * start of a page. */
    r = ws_channel_post(c, WS_COMMAND(HOST_UNMAP, host_unmap, tag - 1));
    munmap(p, bytes);
    return r;
}

/* ---- copies ---- */

enum side { SIDE_BAD, SIDE_HOST, SIDE_PINNED, SIDE_DEVICE };

static enum side side_of(uint64_t address, uint64_t bytes)
{
    struct ws_mem_info m;
    ws_session_mem_find(address, &m);
    bool inside = m.kind != WS_MEM_NONE && bytes <= m.bytes - (address - m.base);
    if (m.kind == WS_MEM_PINNED)
        return inside ? SIDE_PINNED : SIDE_HOST;
    if (m.kind != WS_MEM_NONE)
        return inside ? SIDE_DEVICE : SIDE_BAD;
    return address >= WS_VA_FIRST && address < WS_VA_LAST ? SIDE_BAD : SIDE_HOST;
}

static bool direction_fits(enum ws_copy_dir dir, enum side dst, enum side src)
{
    switch (dir) {
    case WS_COPY_AUTO:
        return true;
    case WS_COPY_H2H:
        return dst != SIDE_DEVICE && src != SIDE_DEVICE;
    case WS_COPY_H2D:
        return dst != SIDE_HOST && src != SIDE_DEVICE;
    case WS_COPY_D2H:
        return dst != SIDE_DEVICE && src != SIDE_HOST;
    case WS_COPY_D2D:
        return dst != SIDE_HOST && src != SIDE_HOST;
    }
    return false;
}

/* Both addresses are known to the daemon. */
static ws_err copy_plain(struct ws_channel *c, uint64_t stream, uint64_t dst, uint64_t src,
                         uint64_t bytes, bool wait)
{
    Ws__Copy copy = WS__COPY__INIT;
    copy.stream = stream;
    copy.dst = dst;
    copy.src = src;
    copy.bytes = bytes;
    if (wait)
        return ws_channel_call(c, WS_COMMAND(COPY_SYNC, copy_sync, &copy), NULL);
    return ws_channel_post(c, WS_COMMAND(COPY, copy, &copy));
}

static ws_err copy_inline(struct ws_channel *c, uint64_t stream, uint64_t dst, const uint8_t *src,
                          uint64_t bytes)
{
    Ws__Copy copy = WS__COPY__INIT;
    copy.stream = stream;
    copy.dst = dst;
    copy.bytes = bytes;
    copy.bulk = WS__COPY__BULK__INLINE;
    copy.data = (ProtobufCBinaryData){.len = bytes, .data = (uint8_t *)src};
    return ws_channel_post(c, WS_COMMAND(COPY, copy, &copy));
}

enum { FRAME_BYTES = 1024 * 1024, FRAMES_AHEAD = 16 };

static uint64_t frame_bytes(void)
{
    uint32_t limit = ws_session_limits()->max_message_bytes;
    return limit > 2 * FRAME_BYTES ? FRAME_BYTES : WS_MAX(limit / 2, 2048u);
}

static ws_err frames_write(struct ws_channel *c, uint64_t stream, uint64_t dst, const uint8_t *src,
                           uint64_t bytes)
{
    uint64_t part = frame_bytes();
    unsigned n_sent = 0;
    for (uint64_t at = 0; at < bytes; at += part) {
        Ws__Copy copy = WS__COPY__INIT;
        copy.stream = stream;
        copy.dst = dst + at;
        copy.bytes = WS_MIN(part, bytes - at);
        copy.bulk = WS__COPY__BULK__FRAME_SRC;
        ws_err r = ws_channel_post_bulk(c, WS_COMMAND(COPY, copy, &copy), src + at, copy.bytes);
        if (!r &&
            ++n_sent % FRAMES_AHEAD ==
                0) { /* an answer shows that they have arrived: bounds what lies in our memory */
            r = ws_session_stream_query(stream);
            if (r == WS__ERROR__NOT_READY)
                r = WS__ERROR__OK;
        }
        if (r)
            return r;
    }
    return WS__ERROR__OK;
}

static ws_err frames_read(struct ws_channel *c, uint64_t stream, uint8_t *dst, uint64_t src,
                          uint64_t bytes)
{
    uint64_t part = frame_bytes();
    for (uint64_t at = 0; at < bytes; at += part) {
        Ws__Copy copy = WS__COPY__INIT;
        Ws__Reply *reply = NULL;
        copy.stream = stream;
        copy.src = src + at;
        copy.bytes = WS_MIN(part, bytes - at);
        copy.bulk = WS__COPY__BULK__REPLY_DST;
        ws_err r = ws_channel_call(c, WS_COMMAND(COPY_SYNC, copy_sync, &copy), &reply);
        if (!r && reply->data.len != copy.bytes)
            r = WS__ERROR__INTERNAL;
        if (!r)
            memcpy(dst + at, reply->data.data, copy.bytes);
        ws_channel_reply_free(reply);
        if (r)
            return r;
    }
    return WS__ERROR__OK;
}

static ws_err copy_to_device(struct ws_channel *c, uint64_t stream, uint64_t dst,
                             const uint8_t *src, uint64_t bytes)
{
    if (bytes <= ws_session_limits()->max_inline_bytes)
        return copy_inline(c, stream, dst, src, bytes);
    return (ws_session_local() ? ws_staging_write : frames_write)(c, stream, dst, src, bytes);
}

static ws_err copy_on_host(struct ws_channel *c, uint64_t stream, void *dst, const void *src,
                           uint64_t bytes)
{
    ws_err r = ws_session_stream_sync(stream);
    if (!r)
        memmove(dst, src, bytes);
    return r;
}

static ws_err copy(uint64_t stream, void *dst, const void *src, uint64_t bytes,
                   enum ws_copy_dir dir, bool async)
{
    struct ws_channel *c;
    uint64_t d = (uintptr_t)dst, s = (uintptr_t)src;
    ws_err r = ws_session_enter(&c);
    if (r)
        return r;
    if (ws_stream_device(stream) < 0)
        return WS__ERROR__INVALID_HANDLE;
    if (!bytes)
        return WS__ERROR__OK;
    if (!dst || !src || bytes > UINT64_MAX - d || bytes > UINT64_MAX - s)
        return WS__ERROR__INVALID_VALUE;
    enum side ds = side_of(d, bytes), ss = side_of(s, bytes);
    if (ds == SIDE_BAD || ss == SIDE_BAD || !direction_fits(dir, ds, ss))
        return WS__ERROR__INVALID_VALUE;
    if (ds == SIDE_DEVICE && ss == SIDE_DEVICE)
        return copy_plain(c, stream, d, s, bytes, false);
    /* Pinned memory that the daemon has mapped too; over tcp it has not. */
    bool shared = ws_session_local() && ds != SIDE_HOST && ss != SIDE_HOST;
    if (shared && (ds == SIDE_DEVICE || ss == SIDE_DEVICE || async))
        return copy_plain(c, stream, d, s, bytes, !async);
    if (ds == SIDE_DEVICE)
        return copy_to_device(c, stream, d, src, bytes);
    if (ss == SIDE_DEVICE)
        return (ws_session_local() ? ws_staging_read : frames_read)(c, stream, dst, s, bytes);
    return copy_on_host(c, stream, dst, src, bytes);
}

ws_err ws_session_copy(uint64_t stream, void *dst, const void *src, uint64_t bytes,
                       enum ws_copy_dir dir, bool async)
{
    ws_err r = copy(stream, dst, src, bytes, dir, async);
    if (!async)
        ws_session_output();
    return r;
}

ws_err ws_session_fill(uint64_t stream, uint64_t dst, uint32_t value, uint32_t value_bytes,
                       uint64_t width_bytes, uint64_t height, uint64_t pitch_bytes, bool async)
{
    struct ws_channel *c;
    Ws__Fill f = WS__FILL__INIT;
    uint64_t span = width_bytes;
    ws_err r = ws_session_enter(&c);
    if (r)
        return r;
    if (ws_stream_device(stream) < 0)
        return WS__ERROR__INVALID_HANDLE;
    if ((value_bytes != 1 && value_bytes != 2 && value_bytes != 4) || width_bytes % value_bytes ||
        dst % value_bytes)
        return WS__ERROR__INVALID_VALUE;
    if (!width_bytes || !height)
        return WS__ERROR__OK;
    if (height > 1 &&
        (pitch_bytes < width_bytes || __builtin_mul_overflow(pitch_bytes, height - 1, &span) ||
         __builtin_add_overflow(span, width_bytes, &span)))
        return WS__ERROR__INVALID_VALUE;
    enum side side = dst && span <= UINT64_MAX - dst ? side_of(dst, span) : SIDE_BAD;
    if (side == SIDE_BAD || side == SIDE_HOST)
        return WS__ERROR__INVALID_VALUE;
    if (side == SIDE_PINNED && !ws_session_local())
        return WS__ERROR__NOT_SUPPORTED;
    f.stream = stream;
    f.dst = dst;
    f.value = value;
    f.value_bytes = value_bytes;
    f.width_bytes = width_bytes;
    f.height = height;
    f.pitch_bytes = height > 1 ? pitch_bytes : width_bytes;
    r = ws_channel_post(c, WS_COMMAND(FILL, fill, &f));
    /* Filling device memory is asynchronous in CUDA, filling host memory is not. */
    if (!r && !async && side == SIDE_PINNED)
        r = ws_session_stream_sync(stream);
    return r;
}
