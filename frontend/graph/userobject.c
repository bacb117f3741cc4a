// SPDX-License-Identifier: Apache-2.0
/* User objects: something of the program that lives as long as the program or a graph holds a
 * reference to it. Its destructor runs in the thread that gives up the last reference, and may not
 * call CUDA. */
#include "frontend/context/context.h"
#include "frontend/graph/graph.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

struct ws_user_object {
    struct ws_slot slot;
    void *ptr;
    void (*destroy)(void *);
    _Atomic unsigned refs;
};
static struct ws_slab objects = WS_SLAB(struct ws_user_object);
enum { NO_DESTRUCTOR_SYNC = 1, REFS_MAX = INT32_MAX };

static bool is_valid(const void *o)
{
    return o && ws_slab_has(&objects, o);
}

int ws_user_object_new(void *ptr, void (*destroy)(void *), unsigned refs, unsigned flags,
                       struct ws_user_object **ret)
{
    if (!ret || !destroy || !refs || refs > REFS_MAX || flags != NO_DESTRUCTOR_SYNC)
        return CUDA_INVALID_VALUE;
    struct ws_user_object *o = ws_slab_new(&objects);
    if (!o)
        return CUDA_OUT_OF_MEMORY;
    o->ptr = ptr;
    o->destroy = destroy;
    o->refs = refs;
    *ret = o;
    return CUDA_OK;
}

int ws_user_object_retain(struct ws_user_object *o, unsigned n)
{
    if (!is_valid(o) || !n || n > REFS_MAX)
        return CUDA_INVALID_VALUE;
    o->refs += n;
    return CUDA_OK;
}

int ws_user_object_release(struct ws_user_object *o, unsigned n)
{
    if (!is_valid(o) || !n || n > o->refs)
        return CUDA_INVALID_VALUE;
    if (atomic_fetch_sub(&o->refs, n) != n)
        return CUDA_OK;
    void (*destroy)(void *) = o->destroy;
    void *ptr = o->ptr;
    ws_slab_free(&objects, o);
    bool before = ws_thread.in_callback;
    ws_thread.in_callback = true;
    destroy(ptr);
    ws_thread.in_callback = before;
    return CUDA_OK;
}

int ws_graph_retain_user(struct ws_graph *g, struct ws_user_object *o, unsigned n, unsigned flags)
{
    enum { MOVE = 1 };
    if (!is_valid(o) || !n || n > REFS_MAX || flags & ~(unsigned)MOVE)
        return CUDA_INVALID_VALUE;
    struct ws_user_ref *u = NULL;
    for (size_t i = 0; i < g->n_users && !u; i++)
        u = g->users[i].object == o ? &g->users[i] : NULL;
    if (!u) {
        if (ws_grow((void **)&g->users, &g->cap_users, g->n_users + 1, sizeof(*g->users)))
            return CUDA_OUT_OF_MEMORY;
        u = &g->users[g->n_users++];
        *u = (struct ws_user_ref){o, 0};
    }
    u->count += n;
    return flags & MOVE ? CUDA_OK : ws_user_object_retain(o, n);
}

int ws_graph_release_user(struct ws_graph *g, struct ws_user_object *o, unsigned n)
{
    for (size_t i = 0; i < g->n_users; i++) {
        struct ws_user_ref *u = &g->users[i];
        if (u->object != o)
            continue;
        if (!n || n > u->count)
            return CUDA_INVALID_VALUE;
        u->count -= n;
        if (!u->count)
            *u = g->users[--g->n_users];
        return ws_user_object_release(o, n);
    }
    return CUDA_INVALID_VALUE;
}
