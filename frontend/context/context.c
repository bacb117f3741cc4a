// SPDX-License-Identifier: Apache-2.0
/* Contexts. The daemon knows a client's devices, not contexts. A device's primary context is the
 * client's state on that device. Other contexts of the driver API share the device, the order of
 * its streams and its memory; what such a context adds is ownership: what was created in it is
 * freed with it. So only those contexts keep a list of what they own.
 *
 * The state is OPEN from the first successful connection on. In a forked child of an open process
 * it is FORKED for good. */
#include "frontend/context/context.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/table.h"
#include "frontend/texture/array.h"
#include "frontend/errors.h"
#include "frontend/memory/ipc.h"
#include "frontend/memory/vmm.h"
#include "frontend/context/limits.h"
#include "frontend/module/module.h"
#include "frontend/memory/pool.h"
#include "frontend/stream/work.h"
#include "frontend/module/registry.h"

__thread struct ws_thread ws_thread;

static _Atomic enum ws_facade_state state;
static _Atomic int n_devices;
static struct ws_cuda_context primaries[WS_MAX_DEVICES];
static struct ws_slab contexts = WS_SLAB(struct ws_cuda_context);
static _Atomic uint64_t next_id = 1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- state ---- */

enum ws_facade_state ws_facade_state(void)
{
    return state;
}

static void forked(void)
{
    if (state == WS_FACADE_OPEN)
        state = WS_FACADE_FORKED;
}
static void lock_for_fork(void)
{
    pthread_mutex_lock(&lock);
}
static void unlock_parent(void)
{
    pthread_mutex_unlock(&lock);
}
static void unlock_child(void)
{
    pthread_mutex_init(&lock, NULL);
    forked();
}
static void watch_forks(void)
{
    pthread_atfork(lock_for_fork, unlock_parent, unlock_child);
}

static void ctx_init(struct ws_cuda_context *c, int device, bool primary, unsigned flags,
                     unsigned version)
{
    c->device = device;
    c->primary = primary;
    c->flags = flags;
    c->version = version;
    c->n_refs = primary ? 0 : 1;
    c->id = next_id++;
    for (int i = 0; i < WS_CTX_LIMITS; i++)
        c->limits[i] = ws_limits_default[i];
}

int ws_facade_open(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int n = 0;
    if (WS_LIKELY(state == WS_FACADE_OPEN))
        return n_devices ? CUDA_OK : CUDA_NO_DEVICE;
    pthread_once(&once, watch_forks);
    ws_err r = ws_session_device_count(&n);
    if (r)
        return ws_drv_error(r);
    pthread_mutex_lock(&lock);
    if (state == WS_FACADE_NEW) {
        n_devices = n;
        for (int d = 0; d < WS_MAX_DEVICES; d++)
            ctx_init(&primaries[d], d, true, 0, 3020);
        state = WS_FACADE_OPEN;
    }
    pthread_mutex_unlock(&lock);
    return n ? CUDA_OK : CUDA_NO_DEVICE;
}

int ws_drv_check_init(void)
{
    return WS_LIKELY(state == WS_FACADE_OPEN && n_devices) ? CUDA_OK : CUDA_NOT_INITIALIZED;
}

int ws_rt_enter(int *ret_device)
{
    if (WS_UNLIKELY(ws_thread.in_callback))
        return CUDA_NOT_PERMITTED;
    if (WS_UNLIKELY(state != WS_FACADE_OPEN || !n_devices)) {
        int r = ws_facade_open();
        if (r)
            return r;
    }
    struct ws_cuda_context *c = ws_ctx_current();
    if (WS_UNLIKELY(!c)) {
        c = &primaries[ws_thread.device];
        ws_thread.stack[0] = c;
        ws_thread.depth = 1;
    }
    if (WS_UNLIKELY(!c->primary && !c->slot.live))
        return CUDA_CONTEXT_IS_DESTROYED;
    if (WS_UNLIKELY(c->primary && !c->of_runtime)) {
        c->of_runtime = true;
        ws_ctx_activate(c);
    }
    *ret_device = c->device;
    return CUDA_OK;
}

int ws_drv_enter(struct ws_cuda_context **ret)
{
    int r = ws_drv_check_init();
    if (WS_UNLIKELY(r))
        return r;
    struct ws_cuda_context *c = ws_ctx_current();
    if (WS_UNLIKELY(ws_thread.in_callback))
        return CUDA_NOT_PERMITTED;
    if (WS_UNLIKELY(!c))
        return CUDA_INVALID_CONTEXT;
    if (WS_UNLIKELY(c->primary ? !c->active : !c->slot.live))
        return CUDA_CONTEXT_IS_DESTROYED;
    *ret = c;
    return CUDA_OK;
}

/* ---- contexts ---- */

struct ws_cuda_context *ws_ctx_primary(int device)
{
    return &primaries[device];
}

struct ws_cuda_context *ws_ctx_new(int device, unsigned flags, unsigned version)
{
    struct ws_cuda_context *c = ws_slab_new(&contexts);
    if (c)
        ctx_init(c, device, false, flags, version);
    return c;
}

bool ws_ctx_valid(const struct ws_cuda_context *c)
{
    size_t at = (uintptr_t)c - (uintptr_t)primaries;
    if (at < sizeof(primaries))
        return at % sizeof(primaries[0]) == 0 && at / sizeof(primaries[0]) < (size_t)n_devices;
    return ws_slab_has(&contexts, c);
}

void ws_ctx_activate(struct ws_cuda_context *primary)
{
    bool fresh = !primary->active;
    primary->active = true;
    if (fresh && ws_registry_eager())
        ws_registry_load_all(primary->device);
}

int ws_ctx_push(struct ws_cuda_context *c)
{
    if (ws_thread.depth == WS_CTX_STACK)
        return CUDA_OUT_OF_MEMORY;
    ws_thread.stack[ws_thread.depth++] = c;
    ws_thread.device = c->device;
    return CUDA_OK;
}

int ws_ctx_set_current(struct ws_cuda_context *c)
{
    if (ws_thread.depth)
        ws_thread.depth--;
    return c ? ws_ctx_push(c) : CUDA_OK;
}

/* ---- ownership ---- */

struct owned {
    struct owned_key {
        uint64_t id, kind;
    } key;
    struct ws_cuda_context *ctx;
    UT_hash_handle hh;
};
static struct owned *owned;

void ws_ctx_own(struct ws_cuda_context *c, enum ws_owned kind, uint64_t id)
{
    if (c->primary)
        return;
    struct owned *o = ws_alloc(sizeof(*o));
    if (!o)
        return; /* it outlives its context, until the process ends */
    o->key = (struct owned_key){id, kind};
    o->ctx = c;
    pthread_mutex_lock(&lock);
    struct owned *old;
    HASH_FIND(hh, owned, &o->key, sizeof(o->key), old);
    if (old) {
        HASH_DELETE(hh, owned, old);
        free(old);
    }
    HASH_ADD(hh, owned, key, sizeof(o->key), o);
    pthread_mutex_unlock(&lock);
}

void ws_ctx_disown(enum ws_owned kind, uint64_t id)
{
    struct owned_key key = {id, kind};
    struct owned *o;
    if (!owned)
        return;
    pthread_mutex_lock(&lock);
    HASH_FIND(hh, owned, &key, sizeof(key), o);
    if (o)
        HASH_DELETE(hh, owned, o);
    pthread_mutex_unlock(&lock);
    free(o);
}

struct ws_cuda_context *ws_ctx_owner(enum ws_owned kind, uint64_t id, int device)
{
    struct owned_key key = {id, kind};
    struct owned *o;
    pthread_mutex_lock(&lock);
    HASH_FIND(hh, owned, &key, sizeof(key), o);
    struct ws_cuda_context *c = o ? o->ctx : ws_ctx_primary(device);
    pthread_mutex_unlock(&lock);
    return c;
}

static void release(enum ws_owned kind, uint64_t id)
{
    switch (kind) {
    case WS_OWNED_MEMORY:
        ws_session_mem_free(id);
        break;
    case WS_OWNED_HOST:
        ws_session_host_free((void *)(uintptr_t)id);
        break;
    case WS_OWNED_STREAM:
        ws_session_stream_destroy(id);
        break;
    case WS_OWNED_EVENT:
        ws_session_event_destroy(id);
        break;
    case WS_OWNED_MODULE:
        ws_mod_unload((struct ws_mod *)(uintptr_t)id);
        break;
    }
}

/* Takes those of @c (NULL: of all contexts on @device) out of the table, and gives them back unless
 * the daemon has done so. */
static void release_all(struct ws_cuda_context *c, int device, bool gone)
{
    struct owned *o, *next, *mine = NULL;
    pthread_mutex_lock(&lock);
    HASH_ITER (hh, owned, o, next) {
        if (c ? o->ctx == c : o->ctx->device == device && o->key.kind != WS_OWNED_HOST) {
            HASH_DELETE(hh, owned, o);
            o->hh.next = mine;
            mine = o;
        }
    }
    pthread_mutex_unlock(&lock);
    for (; mine; mine = next) {
        next = mine->hh.next;
        if (!gone || mine->key.kind == WS_OWNED_MODULE)
            release(mine->key.kind, mine->key.id);
        free(mine);
    }
}

int ws_ctx_destroy(struct ws_cuda_context *c)
{
    ws_err r = ws_session_device_sync(c->device);
    if (ws_ctx_current() == c)
        ws_thread.depth--;
    ws_array_drop(c, c->device, false);
    release_all(c, c->device, false);
    ws_slab_free(&contexts, c);
    return ws_drv_error(r);
}

int ws_ctx_reset_device(int device)
{
    ws_err r = ws_session_reset(device);
    if (r == WS__ERROR__DISCONNECTED)
        return ws_drv_error(r);
    ws_array_drop(NULL, device, true);
    release_all(NULL, device, true);
    ws_work_forget_device(device);
    ws_module_reset_device(device);
    ws_vmm_reset_device(device);
    ws_pool_reset_device(device);
    ws_ipc_reset_device(device);
    ws_peer_reset_device(device);
    primaries[device].active = false;
    primaries[device].of_runtime = false;
    ws_ctx_reset_limits(&primaries[device]);
    return ws_drv_error(r);
}

static void count_others(void *object, void *arg)
{
    const struct ws_cuda_context *c = object;
    int *device_and_n = arg;
    device_and_n[1] += c->device == device_and_n[0];
}

/* What the primary context owns is freed. The session can only reset a whole device, so this is
 * done only if no other context is on it. */
int ws_ctx_release_primary(struct ws_cuda_context *primary)
{
    int device_and_n[2] = {primary->device, 0};
    if (primary->of_runtime)
        return CUDA_OK;
    ws_slab_each(&contexts, count_others, device_and_n);
    if (!device_and_n[1])
        return ws_ctx_reset_device(primary->device);
    primary->active = false;
    return CUDA_OK;
}

/* ---- streams ---- */

enum { HANDLE_NULL, HANDLE_LEGACY, HANDLE_PER_THREAD }; /* cudaStreamLegacy, cudaStreamPerThread */

int ws_stream_of(const void *handle, bool per_thread, int device, uint64_t *ret)
{
    uint64_t h = (uintptr_t)handle;
    if (h >= WS_STREAM_FIRST) {
        *ret = h;
        return CUDA_OK;
    }
    if (h > HANDLE_PER_THREAD)
        return CUDA_INVALID_HANDLE;
    bool own = h == HANDLE_PER_THREAD || (h == HANDLE_NULL && per_thread);
    *ret = own ? ws_stream_per_thread(device) : ws_stream_legacy(device);
    return CUDA_OK;
}
