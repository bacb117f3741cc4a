// SPDX-License-Identifier: Apache-2.0
/* Host memory. To register memory, the session puts the program's pages into a shared segment at
 * the same addresses (session/adopt.c). Where that cannot be done (a remote daemon, memory that
 * other processes see, stacks), registering is only recorded, which is all that copies need. A
 * kernel cannot reach such memory, and a program that asks for its device address gets an error. */
#include "frontend/memory/hostmem.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "frontend/memory/advice.h"
#include "frontend/errors.h"
#include "frontend/session/findings.h"

static struct ws_hostmem *table; /* by base */
static size_t n_table, cap_table;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Index of the first with base > @address. Lock held. */
static size_t upper(uint64_t address)
{
    size_t lo = 0, hi = n_table;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (table[mid].base <= address)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static int add(const struct ws_hostmem *m)
{
    int code = CUDA_OK;
    pthread_mutex_lock(&lock);
    size_t i = upper(m->base);
    if ((i > 0 && m->base - table[i - 1].base < table[i - 1].bytes) ||
        (i < n_table && table[i].base - m->base < m->bytes))
        code = CUDA_ALREADY_REGISTERED;
    else if (ws_grow((void **)&table, &cap_table, n_table + 1, sizeof(*table)))
        code = CUDA_OUT_OF_MEMORY;
    if (!code) {
        memmove(table + i + 1, table + i, (n_table - i) * sizeof(*table));
        table[i] = *m;
        n_table++;
    }
    pthread_mutex_unlock(&lock);
    return code;
}

/* @ret_mapped may be NULL. */
static bool take(uint64_t base, enum ws_hostmem_kind kind, bool *ret_mapped)
{
    pthread_mutex_lock(&lock);
    size_t i = upper(base);
    bool found = i > 0 && table[i - 1].base == base && table[i - 1].kind == kind;
    if (found) {
        if (ret_mapped)
            *ret_mapped = table[i - 1].mapped;
        memmove(table + i - 1, table + i, (n_table - i) * sizeof(*table));
        n_table--;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

int ws_hostmem_alloc(enum ws_hostmem_kind kind, int device, uint64_t bytes, unsigned flags,
                     void **ret)
{
    void *p;
    ws_err r = ws_session_host_alloc(bytes, &p);
    if (r)
        return ws_drv_error(r);
    int code =
        add(&(struct ws_hostmem){(uintptr_t)p, bytes, kind, flags, device, ws_session_maps_host()});
    if (code) {
        ws_session_host_free(p);
        return code == CUDA_ALREADY_REGISTERED ? CUDA_UNKNOWN : code;
    }
    *ret = p;
    return CUDA_OK;
}

int ws_hostmem_free(enum ws_hostmem_kind kind, void *p)
{
    struct ws_hostmem m;
    ws_hostmem_find((uintptr_t)p, &m);
    if (!take((uintptr_t)p, kind, NULL))
        return CUDA_INVALID_VALUE;
    if (kind == WS_HOSTMEM_MANAGED) {
        ws_advice_forget(m.base, m.bytes);
        ws_findings_freed(m.base);
    }
    return ws_drv_error(ws_session_host_free(p));
}

int ws_hostmem_register(void *p, uint64_t bytes, unsigned flags, int device, bool must_map)
{
    uint64_t end;
    if (__builtin_add_overflow((uintptr_t)p, bytes, &end))
        return CUDA_INVALID_VALUE;
    struct ws_hostmem m = {(uintptr_t)p, bytes, WS_HOSTMEM_REGISTERED, flags, device, true};
    int code = add(&m);
    if (code)
        return code;
    ws_err r = ws_session_host_adopt(p, bytes, must_map);
    if (!r)
        return CUDA_OK;
    take(m.base, WS_HOSTMEM_REGISTERED, NULL);
    if (r != WS__ERROR__NOT_SUPPORTED)
        return ws_drv_error(r);
    if (must_map) {
        ws_session_unsupported(
            "mapping registered host memory that can't be shared (a mapped file, "
            "a stack, read-only memory, or a remote daemon)");
        return CUDA_NOT_SUPPORTED;
    }
    m.mapped = false;
    return add(&m);
}

int ws_hostmem_unregister(void *p)
{
    bool mapped;
    if (!take((uintptr_t)p, WS_HOSTMEM_REGISTERED, &mapped))
        return CUDA_NOT_REGISTERED;
    return mapped ? ws_drv_error(ws_session_host_disown(p)) : CUDA_OK;
}

void ws_hostmem_find(uint64_t address, struct ws_hostmem *ret)
{
    *ret = (struct ws_hostmem){.kind = WS_HOSTMEM_NONE};
    pthread_mutex_lock(&lock);
    size_t i = upper(address);
    if (i > 0 && address - table[i - 1].base < table[i - 1].bytes)
        *ret = table[i - 1];
    pthread_mutex_unlock(&lock);
}
