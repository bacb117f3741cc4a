// SPDX-License-Identifier: Apache-2.0
/* Libraries, kernels, modules and functions. Loading is lazy: a registered image goes to a device
 * when its first kernel or variable is needed there. One lock covers all changes. A launch takes no
 * lock: what it reads (kernel->fn[device]) is set once, when it is complete.
 *
 * A reset of a device makes the modules on it invalid. The kernels' links to them are cut, and the
 * next use loads the module again. Functions and modules that the program holds by handle become
 * invalid. */
#include "frontend/module/module.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/log.h"
#include "frontend/context/attributes.h"
#include "frontend/errors.h"
#include "frontend/module/jit.h"
#include "frontend/session/image.h"
#include "frontend/session/link_image.h"
#include "frontend/memory/managed.h"
#include "frontend/stream/work.h"
#include "frontend/texture/texture.h"

struct ws_library {
    struct ws_slot slot;
    const void *image;
    uint64_t bytes;
    void *owned; /* the copy, if it is ours */
    struct ws_kernel *kernels;
    struct ws_managed *managed;          /* lock */
    struct ws_mod *mods[WS_MAX_DEVICES]; /* lock */
    int failed[WS_MAX_DEVICES];          /* the code that loading gave; not tried again */
};

static struct ws_slab libraries = WS_SLAB(struct ws_library);
static struct ws_slab kernels = WS_SLAB(struct ws_kernel);
static struct ws_slab mods = WS_SLAB(struct ws_mod);
static struct ws_slab fns = WS_SLAB(struct ws_fn);
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

enum { SAID_MAX = 32 }; /* failures that are said; then no more */
enum { DYNAMIC_BYTES_DEFAULT = 48 * 1024 };

/* ---- images ---- */

/* What nvcc puts around a fatbin, and __cudaRegisterFatBinary gets. Version 2 is that of
 * relocatable device code: the fatbins to be linked are in a list of their own. */
struct wrapper {
    uint32_t magic, version;
    const void *data;
    const void *const *parts;
};
#define WRAPPER_MAGIC UINT32_C(0x466243b1)
enum { WRAPPER_PLAIN = 1, WRAPPER_LINKED = 2 };

/* The fatbins of several translation units, as one image to be linked. Return: a CUDA code. */
static int join_parts(const void *const *parts, void **ret, uint64_t *ret_bytes)
{
    struct ws_link_input *v = NULL;
    size_t n = 0, cap = 0;
    int code = CUDA_OK;
    for (; !code && parts[n]; n++) {
        struct ws_image_place place;
        if (ws_grow((void **)&v, &cap, n + 1, sizeof(*v)))
            code = CUDA_OUT_OF_MEMORY;
        else if (ws_image_place(parts[n], 0, &place) ||
                 ws_image_length(parts[n], place.room_bytes, &v[n].bytes))
            code = CUDA_INVALID_IMAGE;
        else
            v[n].data = parts[n];
    }
    if (!code && ws_link_image_make(v, n, 0, 0, ret, ret_bytes))
        code = CUDA_OUT_OF_MEMORY;
    free(v);
    return code;
}

/* The image inside of a wrapper, or the image itself. *ret_owned: NULL, or malloc'ed: the image, to
 * be freed; then *ret_bytes is its length. Return: a CUDA code. */
static int unwrap(const void *image, const void **ret, void **ret_owned, uint64_t *ret_bytes)
{
    uint32_t magic;
    memcpy(&magic, image, sizeof(magic));
    *ret = image;
    *ret_owned = NULL;
    if (magic != WRAPPER_MAGIC)
        return CUDA_OK;
    const struct wrapper *w = image;
    if (w->version == WRAPPER_PLAIN) {
        *ret = w->data;
        return w->data ? CUDA_OK : CUDA_INVALID_IMAGE;
    }
    if (w->version != WRAPPER_LINKED)
        return CUDA_INVALID_IMAGE;
    if (!w->parts || !w->parts[0]) { /* linked machine code only */
        *ret = w->data;
        return w->data ? CUDA_OK : CUDA_INVALID_IMAGE;
    }
    int code = join_parts(w->parts, ret_owned, ret_bytes);
    *ret = *ret_owned;
    return code;
}

int ws_image_read_file(const char *path, char **ret, uint64_t *ret_bytes)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return CUDA_FILE_NOT_FOUND;
    size_t n = 0, size = !fstat(fd, &st) && S_ISREG(st.st_mode) ? (size_t)st.st_size : 0;
    char *data = size ? ws_alloc(size + 1) : NULL;
    while (data && n < size) {
        ssize_t r = read(fd, data + n, size - n);
        if (r <= 0)
            break;
        n += (size_t)r;
    }
    close(fd);
    if (!data || n < size) {
        free(data);
        return size ? CUDA_OUT_OF_MEMORY : CUDA_INVALID_IMAGE;
    }
    *ret = data;
    *ret_bytes = memchr(data, '\0', size)
                     ? size
                     : size + 1; /* fatbins and cubins hold zeros, PTX text needs its own */
    return CUDA_OK;
}

/* ---- what could not be loaded ---- */

/* Whether a failure has been said before, or enough of them. Programs try images one after the
 * other, and again. */
static bool said_before(int code, const char *text)
{
    static pthread_mutex_t said_lock = PTHREAD_MUTEX_INITIALIZER;
    static uint64_t said[SAID_MAX];
    static size_t n;
    uint64_t now = ws_hash(text, strlen(text)) ^ (uint64_t)code;
    bool found = false;
    pthread_mutex_lock(&said_lock);
    for (size_t i = 0; i < n && !found; i++)
        found = said[i] == now;
    if (!found && n < SAID_MAX)
        said[n++] = now;
    else
        found = true;
    pthread_mutex_unlock(&said_lock);
    return found;
}

void ws_mod_report(const struct ws_jit *j, int code, const char *text)
{
    bool unusable = code && !ws_cuda_sticky(code) && code != CUDA_OUT_OF_MEMORY;
    if (unusable && !j->error_log && !said_before(code, text ? text : ""))
        ws_log(WS_ERROR, "module: %s%s%s", ws_drv_error_name(code), text ? ": " : "",
               text ? text : "");
    ws_jit_report(j, text);
}

/* ---- modules ---- */

/* Lock held. */
static void mod_forget(struct ws_mod *m)
{
    for (struct ws_fn *f = m->fns, *next; f; f = next) {
        next = f->next;
        if (f->kernel)
            f->kernel->fn[m->device] = NULL;
        free(f->old);
        ws_slab_free(&fns, f);
    }
    m->fns = NULL;
    ws_texref_drop_module(m);
    ws_slab_free(&mods, m);
}

/* @managed: the library's, or NULL: the module has its own. */
static int mod_load(int device, const void *image, uint64_t bytes, const char *name,
                    struct ws_managed **managed, struct ws_mod **ret, char **ret_log)
{
    const void *inner;
    void *owned;
    uint64_t inner_bytes = 0;
    if (ret_log)
        *ret_log = NULL;
    int code = unwrap(image, &inner, &owned, &inner_bytes);
    if (code)
        return code;
    struct ws_mod *m = ws_slab_new(&mods);
    if (!m) {
        free(owned);
        return CUDA_OUT_OF_MEMORY;
    }
    m->device = device;
    ws_err r = ws_session_module_load(device, inner, inner == image ? bytes : inner_bytes, name,
                                      &m->module, ret_log);
    free(owned);
    if (r) {
        ws_slab_free(&mods, m);
        return ws_drv_error(r);
    }
    code = ws_managed_place(managed ? managed : &m->managed, m->module, device);
    if (code) {
        ws_session_module_unload(m->module);
        ws_slab_free(&mods, m);
        return code;
    }
    *ret = m;
    return CUDA_OK;
}

int ws_mod_load(int device, const void *image, uint64_t bytes, const char *name,
                struct ws_mod **ret, char **ret_log)
{
    return mod_load(device, image, bytes, name, NULL, ret, ret_log);
}

int ws_mod_unload(struct ws_mod *m)
{
    pthread_mutex_lock(&lock);
    struct ws_session_module *module = m->module;
    struct ws_managed *managed = m->managed;
    mod_forget(m);
    pthread_mutex_unlock(&lock);
    int code = ws_drv_error(ws_session_module_unload(module));
    ws_managed_free(managed);
    return code;
}

bool ws_mod_valid(const struct ws_mod *m)
{
    return ws_slab_has(&mods, m);
}

/* The error for a kernel that cannot run; it is reported by name. */
static int unsupported_fn(const Ws__Kernel *k)
{
    char text[512];
    snprintf(text, sizeof(text), "kernel %s: %s", k->name, k->unsupported);
    ws_session_unsupported(text);
    return k->unsupported_error == WS__ERROR__NOT_FOUND ? CUDA_NOT_FOUND : CUDA_NOT_SUPPORTED;
}

/* Lock held. */
static int fn_of(struct ws_mod *m, struct ws_session_function *function, struct ws_fn **ret)
{
    struct ws_fn *f = m->fns;
    while (f && f->function != function)
        f = f->next;
    if (!f) {
        f = ws_slab_new(&fns);
        if (!f)
            return CUDA_OUT_OF_MEMORY;
        const Ws__Kernel *k = ws_function_info(function);
        f->mod = m;
        f->function = function;
        f->max_dynamic_bytes = k->static_shared_bytes < DYNAMIC_BYTES_DEFAULT
                                   ? DYNAMIC_BYTES_DEFAULT - (int)k->static_shared_bytes
                                   : 0;
        f->carveout = -1;
        f->next = m->fns;
        m->fns = f;
    }
    *ret = f;
    return CUDA_OK;
}

/* Lock held. */
static int mod_fn(struct ws_mod *m, const char *name, struct ws_fn **ret)
{
    struct ws_session_function *function;
    ws_err r = ws_session_module_function(m->module, name, &function);
    if (r)
        return ws_drv_error(r);
    if (ws_function_info(function)->unsupported[0])
        return unsupported_fn(ws_function_info(function));
    return fn_of(m, function, ret);
}

int ws_mod_fn(struct ws_mod *m, const char *name, struct ws_fn **ret)
{
    pthread_mutex_lock(&lock);
    int code = mod_fn(m, name, ret);
    pthread_mutex_unlock(&lock);
    return code;
}

int ws_mod_n_fns(struct ws_mod *m)
{
    struct ws_session_function *function;
    int n = 0;
    while (!ws_session_module_function_at(m->module, (size_t)n, &function))
        n++;
    return n;
}

int ws_mod_fn_at(struct ws_mod *m, size_t index, struct ws_fn **ret)
{
    struct ws_session_function *function;
    ws_err r = ws_session_module_function_at(m->module, index, &function);
    if (r)
        return ws_drv_error(r);
    pthread_mutex_lock(&lock); /* listed even if it can't run: the launch says so */
    int code = fn_of(m, function, ret);
    pthread_mutex_unlock(&lock);
    return code;
}

bool ws_fn_valid(const struct ws_fn *f)
{
    return ws_slab_has(&fns, f);
}

/* ---- libraries ---- */

/* The program may give up its image. */
static int keep_copy(struct ws_library *l)
{
    struct ws_image_place place;
    const void *inner;
    uint64_t inner_bytes = 0;
    int code = unwrap(l->image, &inner, &l->owned, &inner_bytes);
    if (code)
        return code;
    if (inner != l->image)
        l->bytes = inner_bytes;
    if (l->owned) {
        l->image = l->owned;
        return CUDA_OK;
    }
    if (!l->bytes &&
        (ws_image_place(inner, 0, &place) || ws_image_length(inner, place.room_bytes, &l->bytes)))
        return CUDA_INVALID_IMAGE;
    l->owned = ws_alloc(l->bytes);
    if (!l->owned)
        return CUDA_OUT_OF_MEMORY;
    memcpy(l->owned, inner, l->bytes);
    l->image = l->owned;
    return CUDA_OK;
}

int ws_library_new(const void *image, uint64_t bytes, bool copy, struct ws_library **ret)
{
    struct ws_library *l = ws_slab_new(&libraries);
    if (!l)
        return CUDA_OUT_OF_MEMORY;
    l->image = image;
    l->bytes = bytes;
    int code = copy ? keep_copy(l) : CUDA_OK;
    if (code)
        ws_slab_free(&libraries, l);
    else
        *ret = l;
    return code;
}

int ws_library_open(const void *image, uint64_t bytes, bool copy, int device,
                    struct ws_library **ret, char **ret_log)
{
    struct ws_library *l;
    struct ws_mod *m;
    *ret_log = NULL;
    int code = ws_library_new(image, bytes, copy, &l);
    if (code)
        return code;
    code = ws_library_load(l, device, &m, ret_log);
    if (code)
        ws_library_free(l);
    else
        *ret = l;
    return code;
}

void ws_library_free(struct ws_library *l)
{
    pthread_mutex_lock(&lock);
    for (int d = 0; d < WS_MAX_DEVICES; d++) {
        if (l->mods[d]) {
            struct ws_session_module *module = l->mods[d]->module;
            mod_forget(l->mods[d]);
            ws_session_module_unload(module);
        }
    }
    struct ws_kernel *k, *next;
    HASH_ITER (hh, l->kernels, k, next) {
        HASH_DEL(l->kernels, k);
        free(k->name);
        ws_slab_free(&kernels, k);
    }
    ws_managed_free(l->managed);
    free(l->owned);
    ws_slab_free(&libraries, l);
    pthread_mutex_unlock(&lock);
}

bool ws_library_valid(const struct ws_library *l)
{
    return ws_slab_has(&libraries, l);
}

/* Lock held. */
static int library_load(struct ws_library *l, int device, struct ws_mod **ret, char **ret_log)
{
    char *text = NULL;
    if (l->mods[device]) {
        *ret = l->mods[device];
        return CUDA_OK;
    }
    if (l->failed[device])
        return l->failed[device];
    int code = mod_load(device, l->image, l->bytes, NULL, &l->managed, &l->mods[device], &text);
    if (code) {
        if (!ws_cuda_sticky(code) && code != CUDA_OUT_OF_MEMORY)
            l->failed[device] = code;
        if (!ret_log) /* nobody asked for the log, and it says what is wrong */
            ws_log(WS_ERROR, "module: %s on device %d%s%s", ws_rt_error_name(code), device,
                   text ? ": " : "", text ? text : "");
    } else {
        l->mods[device]->library = l;
        *ret = l->mods[device];
    }
    if (ret_log)
        *ret_log = text;
    else
        free(text);
    return code;
}

int ws_library_load(struct ws_library *l, int device, struct ws_mod **ret, char **ret_log)
{
    if (ret_log)
        *ret_log = NULL;
    pthread_mutex_lock(&lock);
    int code = library_load(l, device, ret, ret_log);
    pthread_mutex_unlock(&lock);
    return code;
}

struct ws_kernel *ws_library_kernel(struct ws_library *l, const char *name)
{
    pthread_mutex_lock(&lock);
    struct ws_kernel *k;
    HASH_FIND_STR(l->kernels, name, k);
    if (!k && (k = ws_slab_new(&kernels))) {
        k->name = ws_strdup(name);
        if (!k->name) {
            ws_slab_free(&kernels, k);
            k = NULL;
        } else {
            k->library = l;
            HASH_ADD_KEYPTR(hh, l->kernels, k->name, strlen(k->name), k);
        }
    }
    pthread_mutex_unlock(&lock);
    return k;
}

bool ws_kernel_exists(const struct ws_kernel *k, int device)
{
    struct ws_session_function *function;
    pthread_mutex_lock(&lock);
    struct ws_mod *m = k->library->mods[device];
    bool exists = m && !ws_session_module_function(m->module, k->name, &function);
    pthread_mutex_unlock(&lock);
    return exists;
}

bool ws_kernel_valid(const struct ws_kernel *k)
{
    return ws_slab_has(&kernels, k);
}

int ws_kernel_fn_slow(struct ws_kernel *k, int device, struct ws_fn **ret)
{
    struct ws_mod *m;
    pthread_mutex_lock(&lock);
    int code = library_load(k->library, device, &m, NULL);
    if (!code)
        code = mod_fn(m, k->name, ret);
    if (!code) {
        (*ret)->kernel = k;
        atomic_store_explicit(&k->fn[device], *ret, memory_order_release);
    }
    pthread_mutex_unlock(&lock);
    return code;
}

static void mod_reset(void *object, void *device)
{
    struct ws_mod *m = object;
    if (m->device != *(int *)device)
        return;
    if (m->library)
        m->library->mods[m->device] = NULL;
    ws_session_module_unload(m->module);
    mod_forget(m);
}

void ws_module_reset_device(int device)
{
    pthread_mutex_lock(&lock);
    ws_slab_each(&mods, mod_reset, &device);
    pthread_mutex_unlock(&lock);
}
