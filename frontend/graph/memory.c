// SPDX-License-Identifier: Apache-2.0
/* Memory of graphs. An alloc node has its memory from the time it is made, for its address must be
 * known then. The memory is given back when no graph and no exec has the node any more, and the
 * memory is not allocated. It counts as allocated from the launch of its graph until a free node of
 * any graph, cudaFreeAsync() or cudaFree() frees it. The words of conditional handles lie in pinned
 * memory, one page at a time, which kernels write and the host reads. */
#include <pthread.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/table.h"
#include "frontend/context/context.h"
#include "frontend/graph/graph.h"
#include "frontend/stream/host.h"

struct ws_graph_block {
    uint64_t address, bytes;
    int device;
    unsigned refs;
    bool live;
    UT_hash_handle hh;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ws_graph_block *blocks;
static struct {
    uint64_t now[2], high[2]; /* used, reserved */
} sums[WS_MAX_DEVICES];
enum { USED, RESERVED };

/* Lock held. */
static void count(int device, int which, int64_t bytes)
{
    uint64_t *now = &sums[device].now[which], *high = &sums[device].high[which];
    *now += (uint64_t)bytes;
    *high = WS_MAX(*high, *now);
}

int ws_block_new(int device, uint64_t bytes, struct ws_graph_block **ret)
{
    struct ws_graph_block *b = ws_alloc(sizeof(*b));
    if (!b)
        return CUDA_OUT_OF_MEMORY;
    ws_err e = ws_session_mem_alloc(device, bytes, &b->address);
    if (e) {
        free(b);
        return ws_drv_error(e);
    }
    b->bytes = bytes;
    b->device = device;
    b->refs = 1;
    pthread_mutex_lock(&lock);
    HASH_ADD(hh, blocks, address, sizeof(b->address), b);
    count(device, RESERVED, (int64_t)bytes);
    pthread_mutex_unlock(&lock);
    *ret = b;
    return CUDA_OK;
}

struct ws_graph_block *ws_block_ref(struct ws_graph_block *b)
{
    pthread_mutex_lock(&lock);
    b->refs++;
    pthread_mutex_unlock(&lock);
    return b;
}

/* Gives the lock up. */
static void free_if_unused(struct ws_graph_block *b)
{
    bool unused = !b->refs && !b->live;
    if (unused) {
        HASH_DEL(blocks, b);
        count(b->device, RESERVED, -(int64_t)b->bytes);
    }
    pthread_mutex_unlock(&lock);
    if (unused) {
        (void)ws_session_mem_free(b->address);
        free(b);
    }
}

void ws_block_unref(struct ws_graph_block *b)
{
    if (!b)
        return;
    pthread_mutex_lock(&lock);
    b->refs--;
    free_if_unused(b);
}

struct ws_graph_block *ws_block_find(uint64_t address)
{
    struct ws_graph_block *b;
    pthread_mutex_lock(&lock);
    HASH_FIND(hh, blocks, &address, sizeof(address), b);
    pthread_mutex_unlock(&lock);
    return b;
}

bool ws_block_fits(const struct ws_graph_block *b, int device, uint64_t bytes)
{
    return b->device == device && b->bytes >= bytes && b->bytes / 2 <= bytes;
}

uint64_t ws_block_address(const struct ws_graph_block *b)
{
    return b->address;
}

bool ws_block_live(const struct ws_graph_block *b)
{
    return b->live;
}

static void set_live(struct ws_graph_block *b, bool live)
{
    if (b->live != live)
        count(b->device, USED, live ? (int64_t)b->bytes : -(int64_t)b->bytes);
    b->live = live;
}

void ws_block_set_live(struct ws_graph_block *b, bool live)
{
    pthread_mutex_lock(&lock);
    set_live(b, live);
    free_if_unused(b);
}

int ws_block_free_outside(uint64_t address)
{
    struct ws_graph_block *b;
    if (!blocks)
        return -1;
    pthread_mutex_lock(&lock);
    HASH_FIND(hh, blocks, &address, sizeof(address), b);
    if (!b || !b->live) {
        pthread_mutex_unlock(&lock);
        return b ? CUDA_INVALID_VALUE : -1;
    }
    set_live(b, false);
    free_if_unused(b);
    return CUDA_OK;
}

int ws_graphmem_get(int device, int attribute, uint64_t *ret)
{
    if (!ws_session_device(device))
        return CUDA_INVALID_DEVICE;
    if (!ret || attribute < WS_GRAPHMEM_USED || attribute > WS_GRAPHMEM_RESERVED_HIGH)
        return CUDA_INVALID_VALUE;
    int which = attribute >= WS_GRAPHMEM_RESERVED ? RESERVED : USED;
    pthread_mutex_lock(&lock);
    *ret = (attribute & 1 ? sums[device].high : sums[device].now)[which];
    pthread_mutex_unlock(&lock);
    return CUDA_OK;
}

int ws_graphmem_reset_high(int device, int attribute)
{
    if (!ws_session_device(device))
        return CUDA_INVALID_DEVICE;
    if (attribute != WS_GRAPHMEM_USED_HIGH && attribute != WS_GRAPHMEM_RESERVED_HIGH)
        return CUDA_INVALID_VALUE;
    int which = attribute == WS_GRAPHMEM_RESERVED_HIGH ? RESERVED : USED;
    pthread_mutex_lock(&lock);
    sums[device].high[which] = sums[device].now[which];
    pthread_mutex_unlock(&lock);
    return CUDA_OK;
}

/* ---- words of conditional handles ---- */

enum { PAGE_BYTES = 4096, WORDS = PAGE_BYTES / sizeof(uint64_t) };
static struct page {
    struct page *next;
    uint64_t *words;
    uint32_t refs[WORDS];
} * pages;

static struct page *page_of(uint64_t handle, size_t *ret_index)
{
    for (struct page *p = pages; p; p = p->next) {
        uint64_t at = handle - (uintptr_t)p->words;
        if (at < PAGE_BYTES && at % sizeof(*p->words) == 0) {
            *ret_index = at / sizeof(*p->words);
            return p->refs[*ret_index] ? p : NULL;
        }
    }
    return NULL;
}

int ws_handle_new(uint64_t *ret)
{
    if (!ws_session_maps_host()) {
        ws_session_unsupported("conditional graph nodes with a remote daemon");
        return CUDA_NOT_SUPPORTED;
    }
    pthread_mutex_lock(&lock);
    struct page *p = pages;
    size_t i = 0;
    for (; p; p = p->next) {
        for (i = 0; i < WORDS && p->refs[i]; i++)
            ;
        if (i < WORDS)
            break;
    }
    int code = CUDA_OK;
    if (!p) {
        void *words;
        p = ws_alloc(sizeof(*p));
        ws_err e = p ? ws_session_host_alloc(PAGE_BYTES, &words) : WS__ERROR__OUT_OF_MEMORY;
        code = ws_drv_error(e);
        if (e) {
            free(p);
        } else {
            p->words = words;
            p->next = pages;
            pages = p;
            i = 0;
        }
    }
    if (!code) {
        p->refs[i] = 1;
        p->words[i] = 0;
        *ret = (uintptr_t)&p->words[i];
    }
    pthread_mutex_unlock(&lock);
    return code;
}

static void change_refs(uint64_t handle, int by)
{
    size_t i;
    pthread_mutex_lock(&lock);
    struct page *p = page_of(handle, &i);
    if (p)
        p->refs[i] += (uint32_t)by;
    pthread_mutex_unlock(&lock);
}

void ws_handle_ref(uint64_t handle)
{
    change_refs(handle, 1);
}
void ws_handle_unref(uint64_t handle)
{
    change_refs(handle, -1);
}

bool ws_handle_valid(uint64_t handle)
{
    size_t i;
    pthread_mutex_lock(&lock);
    bool valid = page_of(handle, &i) != NULL;
    pthread_mutex_unlock(&lock);
    return valid;
}

uint32_t ws_handle_read(uint64_t handle)
{
    return __atomic_load_n((const uint32_t *)(uintptr_t)handle, __ATOMIC_ACQUIRE);
}
