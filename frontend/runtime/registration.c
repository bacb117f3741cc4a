// SPDX-License-Identifier: Apache-2.0
/* What nvcc's start-up code calls, and the three calls that a <<<…>>> becomes.
 *
 * Each translation unit registers its fatbin and gets a handle, then its kernels and variables by (handle, host address, device
 * name). Launches and symbol copies name the host address only. The same name may come from several fatbins (templates), so the
 * host address is the key, and the latest registration of one counts: a library that is unloaded and loaded again may have its
 * code elsewhere, or another's in its place. None of this talks to the daemon. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/alloc.h"
#include "base/log.h"
#include "frontend/facade.h"
#include "frontend/module/registry.h"

struct symbol {
    const void *host; /* key */
    struct registration *of;
    struct ws_kernel *kernel; /* NULL: a variable */
    const char *name;
    bool managed;        /* host is where the program keeps the variable's address */
    struct symbol *next; /* of the registration */
    UT_hash_handle hh;
};
struct registration { /* its address is the handle that nvcc's code keeps */
    struct ws_slot slot;
    struct ws_library *library;
    struct symbol *symbols;
};
static struct ws_slab registrations = WS_SLAB(struct registration);
static struct symbol *symbols;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

/* ---- registration ---- */

WS_RT_TYPED_API(__cudaRegisterFatBinary, void **, (void *wrapper))
{
    struct registration *r = ws_slab_new(&registrations);
    if (r && ws_library_new(wrapper, 0, false, &r->library)) {
        ws_slab_free(&registrations, r);
        r = NULL;
    }
    if (!r)
        ws_log(WS_ERROR, "registration: out of memory");
    return (void **)r;
}

WS_RT_TYPED_API(__cudaRegisterFatBinaryEnd, void, (void **handle))
{
}

WS_RT_TYPED_API(__cudaUnregisterFatBinary, void, (void **handle))
{
    struct registration *r = (struct registration *)handle;
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

static struct symbol *add(void **handle, const void *host, const char *name, bool is_kernel)
{
    struct registration *r = (struct registration *)handle;
    if (!host || !name || !ws_slab_has(&registrations, r))
        return NULL;
    struct symbol *s = ws_alloc(sizeof(*s)), *old;
    if (s && is_kernel)
        s->kernel = ws_library_kernel(r->library, name);
    if (!s || (is_kernel && !s->kernel)) {
        ws_log(WS_ERROR, "registration: out of memory name=%s", name);
        free(s);
        return NULL;
    }
    s->host = host;
    s->of = r;
    s->name = name;
    pthread_rwlock_wrlock(&lock);
    s->next = r->symbols;
    r->symbols = s;
    HASH_FIND_PTR(symbols, &host, old);
    if (old)
        HASH_DEL(symbols, old); /* still in its registration's list */
    HASH_ADD_PTR(symbols, host, s);
    pthread_rwlock_unlock(&lock);
    return s;
}

WS_RT_TYPED_API(__cudaRegisterFunction, void,
                (void **handle, const char *host, char *device, const char *name, int thread_limit,
                 void *tid, void *bid, void *block, void *grid, int *warp_size))
{
    add(handle, host, name, true);
}

WS_RT_TYPED_API(__cudaRegisterVar, void,
                (void **handle, char *host, char *address, const char *name, int external,
                 size_t bytes, int constant, int global))
{
    add(handle, host, name, false);
}

/* The program reads the variable's address from *@host, after __cudaInitModule(). */
WS_RT_TYPED_API(__cudaRegisterManagedVar, void,
                (void **handle, void **host, char *address, const char *name, int external,
                 size_t bytes, int constant, int global))
{
    struct symbol *s = add(handle, host, name, false);
    if (s)
        s->managed = true;
}

WS_RT_TYPED_API(__cudaRegisterHostVar, void,
                (void **handle, const char *name, char *host, size_t bytes))
{
    ws_session_unsupported("__cudaRegisterHostVar");
}

WS_RT_TYPED_API(__cudaRegisterUnifiedTable, void, (void **handle, void *table))
{
    ws_session_unsupported("__cudaRegisterUnifiedTable");
}

/* Called before the program first touches a managed variable of this image. */
WS_RT_TYPED_API(__cudaInitModule, char, (void **handle))
{
    struct registration *r = (struct registration *)handle;
    struct ws_mod *m;
    int device;
    if (!ws_slab_has(&registrations, r) || ws_rt_enter(&device) ||
        ws_library_load(r->library, device, &m, NULL))
        return 0;
    for (struct symbol *s = r->symbols; s; s = s->next) {
        uint64_t address;
        if (s->managed && !ws_session_module_variable(m->module, s->name, &address, NULL))
            *(void **)(uintptr_t)s->host = (void *)(uintptr_t)address;
    }
    return 1;
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
        l->v[l->n++] = ((struct registration *)registration)->library;
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

/* ---- <<<…>>> ---- */

enum { PUSHED_MAX = 16 }; /* a launch inside of another's arguments inside of … */
struct pushed {
    struct cuda_dim3 grid, block;
    size_t shared_bytes;
    void *stream;
};
static __thread struct {
    int n;
    struct pushed v[PUSHED_MAX];
} pushed __attribute__((tls_model("initial-exec")));

WS_RT_TYPED_API(__cudaPushCallConfiguration, unsigned,
                (struct cuda_dim3 grid, struct cuda_dim3 block, size_t shared_bytes, void *stream))
{
    if (pushed.n == PUSHED_MAX)
        return (unsigned)ws_rt_record(CUDA_MISSING_CONFIGURATION);
    pushed.v[pushed.n++] = (struct pushed){grid, block, shared_bytes, stream};
    return CUDA_OK;
}

WS_RT_API(__cudaPopCallConfiguration,
          (struct cuda_dim3 * grid, struct cuda_dim3 *block, size_t *shared_bytes, void *stream))
{
    if (!pushed.n)
        return ws_rt_record(CUDA_MISSING_CONFIGURATION);
    const struct pushed *p = &pushed.v[--pushed.n];
    *grid = p->grid;
    *block = p->block;
    *shared_bytes = p->shared_bytes;
    *(void **)stream = p->stream;
    return CUDA_OK;
}

/* A host address that nobody registered is handed back as it is: launching it says what is wrong. */
WS_RT_API(__cudaGetKernel, (void **kernel, const void *host))
{
    struct ws_kernel *k = ws_registry_kernel(host);
    *kernel = k ? (void *)k : (void *)host;
    return k ? CUDA_OK : CUDA_INVALID_DEVICE_FUNCTION;
}
