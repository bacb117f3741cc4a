// SPDX-License-Identifier: Apache-2.0
/* A handle has 64 bytes: a mark that says what it is for, and a random handle of the daemon's.
 * Memory that is opened twice has the same address both times, and must be closed twice. A process
 * may not open a handle of its own. Only events that were created for it have handles. */
#include "frontend/memory/ipc.h"

#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "base/table.h"
#include "frontend/errors.h"
#include "frontend/memory/pool.h"

enum { LAZY_ENABLE_PEER_ACCESS = 1, MARK_BYTES = 8 };
static const char memory_mark[MARK_BYTES] = "ws-mem-1", event_mark[MARK_BYTES] = "ws-evt-1";

struct own { /* memory that this process has made a handle of */
    uint8_t handle[WS_SHARE_BYTES];
    UT_hash_handle hh;
};
struct opened_share {
    uint64_t address;
    uint8_t handle[WS_SHARE_BYTES];
    int device;
    unsigned n_opens;
    UT_hash_handle hh;
};
struct interprocess {
    uint64_t event;
    UT_hash_handle hh;
};
static struct own *own;
static struct opened_share *opened; /* by address */
static struct interprocess *events;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void put(struct cuda_ipc_handle *ret, const char *mark, const uint8_t *handle)
{
    memset(ret, 0, sizeof(*ret));
    memcpy(ret->bytes, mark, MARK_BYTES);
    memcpy(ret->bytes + MARK_BYTES, handle, WS_SHARE_BYTES);
}

static const uint8_t *get(const struct cuda_ipc_handle *h, const char *mark)
{
    return memcmp(h->bytes, mark, MARK_BYTES) ? NULL : (const uint8_t *)h->bytes + MARK_BYTES;
}

/* ---- memory ---- */

int ws_ipc_memory_handle(struct cuda_ipc_handle *ret, uint64_t address)
{
    uint8_t handle[WS_SHARE_BYTES];
    struct ws_mem_info m;
    struct own *o;
    uint64_t base;
    ws_session_mem_find(address, &m);
    if (!ret || m.kind != WS_MEM_DEVICE || ws_pool_has(m.base))
        return CUDA_INVALID_VALUE;
    int code = ws_drv_error(ws_session_memory_share(address, handle, &base));
    if (code)
        return code;
    pthread_mutex_lock(&lock);
    HASH_FIND(hh, own, handle, sizeof(handle), o);
    if (!o && (o = ws_alloc(sizeof(*o)))) {
        memcpy(o->handle, handle, sizeof(handle));
        HASH_ADD(hh, own, handle, sizeof(o->handle), o);
    }
    pthread_mutex_unlock(&lock);
    put(ret, memory_mark, handle);
    return o ? CUDA_OK : CUDA_OUT_OF_MEMORY;
}

static struct opened_share *find_opened(const uint8_t *handle)
{
    struct opened_share *o, *next;
    HASH_ITER (hh, opened, o, next)
        if (!memcmp(o->handle, handle, WS_SHARE_BYTES))
            return o;
    return NULL;
}

/* Lock held. */
static int open_new(const uint8_t *handle, struct opened_share **ret)
{
    uint64_t bytes;
    struct ws_mem_info m;
    struct opened_share *o = ws_alloc(sizeof(*o));
    if (!o)
        return CUDA_OUT_OF_MEMORY;
    int code = ws_drv_error(ws_session_memory_open(handle, &o->address, &bytes));
    if (code) {
        free(o);
        return code;
    }
    ws_session_mem_find(o->address, &m);
    o->device = m.device;
    memcpy(o->handle, handle, sizeof(o->handle));
    HASH_ADD(hh, opened, address, sizeof(o->address), o);
    *ret = o;
    return CUDA_OK;
}

int ws_ipc_memory_open(int device, uint64_t *ret_address, const struct cuda_ipc_handle *h,
                       unsigned flags)
{
    const uint8_t *handle = get(h, memory_mark);
    struct own *mine;
    if (!ret_address || flags != LAZY_ENABLE_PEER_ACCESS || !handle)
        return CUDA_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    HASH_FIND(hh, own, handle, WS_SHARE_BYTES, mine);
    struct opened_share *o = find_opened(handle);
    int code = mine ? CUDA_INVALID_CONTEXT : o ? CUDA_OK : open_new(handle, &o);
    if (!code) {
        o->n_opens++;
        *ret_address = o->address;
    }
    bool far = !code && !ws_peer_reaches(device, o->device);
    pthread_mutex_unlock(&lock);
    return far ? ws_ipc_memory_close(*ret_address), CUDA_PEER_UNSUPPORTED : code;
}

int ws_ipc_memory_close(uint64_t address)
{
    struct opened_share *o;
    pthread_mutex_lock(&lock);
    HASH_FIND(hh, opened, &address, sizeof(address), o);
    bool last = o && !--o->n_opens;
    if (last)
        HASH_DEL(opened, o);
    pthread_mutex_unlock(&lock);
    if (last)
        free(o);
    return !o     ? CUDA_INVALID_VALUE
           : last ? ws_drv_error(ws_session_memory_close(address))
                  : CUDA_OK;
}

/* ---- events ---- */

int ws_ipc_event_check(bool timing)
{
    if (timing)
        return CUDA_INVALID_VALUE;
    if (ws_session_maps_host())
        return CUDA_OK;
    ws_session_unsupported("interprocess events with a remote daemon");
    return CUDA_NOT_SUPPORTED;
}

void ws_ipc_event_note(uint64_t event)
{
    struct interprocess *e = ws_alloc(sizeof(*e));
    if (!e)
        return; /* it has no handle then */
    e->event = event;
    pthread_mutex_lock(&lock);
    HASH_ADD(hh, events, event, sizeof(e->event), e);
    pthread_mutex_unlock(&lock);
}

void ws_ipc_event_forget(uint64_t event)
{
    struct interprocess *e;
    if (!events)
        return;
    pthread_mutex_lock(&lock);
    HASH_FIND(hh, events, &event, sizeof(event), e);
    if (e)
        HASH_DEL(events, e);
    pthread_mutex_unlock(&lock);
    free(e);
}

int ws_ipc_event_handle(struct cuda_ipc_handle *ret, uint64_t event)
{
    uint8_t handle[WS_SHARE_BYTES];
    struct interprocess *e;
    pthread_mutex_lock(&lock);
    HASH_FIND(hh, events, &event, sizeof(event), e);
    pthread_mutex_unlock(&lock);
    if (ws_session_event_device(event) < 0)
        return CUDA_INVALID_HANDLE;
    if (!ret || !e)
        return CUDA_INVALID_VALUE;
    int code = ws_drv_error(ws_session_event_share(event, handle));
    if (!code)
        put(ret, event_mark, handle);
    return code;
}

int ws_ipc_event_open(uint64_t *ret_event, const struct cuda_ipc_handle *h, int device)
{
    const uint8_t *handle = get(h, event_mark);
    if (!ret_event || !handle)
        return CUDA_INVALID_VALUE;
    return ws_drv_error(ws_session_event_open(handle, device, ret_event));
}

void ws_ipc_reset_device(int device)
{
    struct opened_share *o, *next;
    pthread_mutex_lock(&lock);
    HASH_ITER (hh, opened, o, next)
        if (o->device == device) {
            HASH_DEL(opened, o);
            free(o);
        }
    pthread_mutex_unlock(&lock);
}
