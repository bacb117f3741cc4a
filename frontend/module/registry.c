// SPDX-License-Identifier: Apache-2.0
/* What a program has registered. The same name may come from several images (templates), so the
 * address in the program is the key, and its latest registration counts: a library that is unloaded
 * and loaded again may have its code elsewhere, or another library's code in its place. None of
 * this talks to the daemon. */
#include "frontend/module/registry.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/table.h"
#include "frontend/errors.h"

struct symbol {
    const void *host; /* key */
    struct ws_registration *of;
    struct ws_kernel *kernel; /* NULL: a variable */
    const char *name;
    bool managed;        /* host is where the program keeps the variable's address */
    struct symbol *next; /* of the registration */
    UT_hash_handle hh;
};
struct ws_registration {
    struct ws_slot slot;
    struct ws_library *library;
    struct symbol *symbols;
};
static struct ws_slab registrations = WS_SLAB(struct ws_registration);
static struct symbol *symbols;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

/* ---- registration ---- */

struct ws_registration *ws_registry_open(const void *wrapper)
{
    struct ws_registration *r = ws_slab_new(&registrations);
    if (r && ws_library_new(wrapper, 0, false, &r->library)) {
        ws_slab_free(&registrations, r);
        r = NULL;
    }
    if (!r)
        ws_log(WS_ERROR, "registration: out of memory");
    return r;
}

void ws_registry_close(struct ws_registration *r)
{
    if (!ws_slab_has(&registrations, r))
        return;
    pthread_rwlock_wrlock(&lock);
    for (struct symbol *s = r->symbols, *next; s; s = next) {
        next = s->next;
        struct symbol *known;
        HASH_FIND_PTR(symbols, &s->host, known);
        if (known == s)
            HASH_DEL(symbols, s);
        free(s);
    }
    pthread_rwlock_unlock(&lock);
    ws_library_free(r->library);
    ws_slab_free(&registrations, r);
}

void ws_registry_add(struct ws_registration *r, const void *host, const char *name,
                     enum ws_registered kind)
{
    bool is_kernel = kind == WS_REGISTERED_KERNEL;
    if (!host || !name || !ws_slab_has(&registrations, r))
        return;
    struct symbol *s = ws_alloc(sizeof(*s)), *old;
    if (s && is_kernel)
        s->kernel = ws_library_kernel(r->library, name);
    if (!s || (is_kernel && !s->kernel)) {
        ws_log(WS_ERROR, "registration: out of memory name=%s", name);
        free(s);
        return;
    }
    s->host = host;
    s->of = r;
    s->name = name;
    s->managed = kind == WS_REGISTERED_MANAGED;
    pthread_rwlock_wrlock(&lock);
    s->next = r->symbols;
    r->symbols = s;
    HASH_FIND_PTR(symbols, &host, old);
    if (old)
        HASH_DEL(symbols, old); /* still in its registration's list */
    HASH_ADD_PTR(symbols, host, s);
    pthread_rwlock_unlock(&lock);
}

bool ws_registry_init_managed(struct ws_registration *r, int device)
{
    struct ws_mod *m;
    if (!ws_slab_has(&registrations, r) || ws_library_load(r->library, device, &m, NULL))
        return false;
    for (struct symbol *s = r->symbols; s; s = s->next) {
        uint64_t address;
        if (s->managed && !ws_session_module_variable(m->module, s->name, &address, NULL))
            *(void **)(uintptr_t)s->host = (void *)(uintptr_t)address;
    }
    return true;
}

/* ---- look-up ---- */

struct ws_kernel *ws_registry_kernel(const void *function)
{
    struct symbol *s;
    if (ws_kernel_valid(function))
        return (struct ws_kernel *)function;
    pthread_rwlock_rdlock(&lock);
    HASH_FIND_PTR(symbols, &function, s);
    struct ws_kernel *k = s ? s->kernel : NULL;
    pthread_rwlock_unlock(&lock);
    return k;
}

const void *ws_registry_host(const struct ws_kernel *k)
{
    struct symbol *s, *next;
    const void *found = NULL;
    pthread_rwlock_rdlock(&lock);
    HASH_ITER (hh, symbols, s, next)
        if (k && s->kernel == k)
            found = s->host;
    pthread_rwlock_unlock(&lock);
    return found;
}

int ws_registry_fn(const void *function, int device, struct ws_fn **ret)
{
    struct ws_kernel *k = ws_registry_kernel(function);
    if (WS_UNLIKELY(!k)) {
        if (!ws_fn_valid(function) || ((struct ws_fn *)function)->mod->device != device)
            return CUDA_INVALID_DEVICE_FUNCTION;
        *ret = (struct ws_fn *)function;
        return CUDA_OK;
    }
    int code = ws_kernel_fn(k, device, ret);
    return code == CUDA_NOT_FOUND && !ws_kernel_exists(k, device) ? CUDA_INVALID_DEVICE_FUNCTION
                                                                  : code;
}

int ws_registry_variable(const void *symbol, int device, uint64_t *ret_address, uint64_t *ret_bytes)
{
    struct symbol *s;
    struct ws_library *library = NULL;
    const char *name = NULL;
    struct ws_mod *m;
    pthread_rwlock_rdlock(&lock);
    HASH_FIND_PTR(symbols, &symbol, s);
    if (!s) /* a managed variable's name stands for the variable itself */
        for (s = symbols; s && !(s->managed && *(void **)(uintptr_t)s->host == symbol);)
            s = s->hh.next;
    if (s && !s->kernel) {
        library = s->of->library;
        name = s->name;
    }
    pthread_rwlock_unlock(&lock);
    if (!library)
        return CUDA_INVALID_SYMBOL;
    int code = ws_library_load(library, device, &m, NULL);
    if (code)
        return code;
    ws_err r = ws_session_module_variable(m->module, name, ret_address, ret_bytes);
    return r == WS__ERROR__NOT_FOUND ? CUDA_INVALID_SYMBOL : ws_rt_error(r);
}

/* ---- eager loading ---- */

bool ws_registry_eager(void)
{
    const char *mode = getenv("CUDA_MODULE_LOADING");
    return mode && !strcmp(mode, "EAGER");
}

struct to_load {
    struct ws_library **v;
    size_t n, cap;
};

static void note_library(void *registration, void *list)
{
    struct to_load *l = list;
    if (!ws_grow((void **)&l->v, &l->cap, l->n + 1, sizeof(*l->v)))
        l->v[l->n++] = ((struct ws_registration *)registration)->library;
}

/* What is wrong with an image is said on stderr, and again by what uses it. */
void ws_registry_load_all(int device)
{
    struct to_load l = {0};
    struct ws_mod *m;
    ws_slab_each(&registrations, note_library, &l);
    for (size_t i = 0; i < l.n; i++)
        (void)ws_library_load(l.v[i], device, &m, NULL);
    free(l.v);
}
