// SPDX-License-Identifier: Apache-2.0
/* Libraries, kernels, modules and functions. Loading is lazy: a registered image goes to a device when the first kernel or
 * variable of it is needed there. One lock covers all changes; a launch takes none: what it reads (kernel->fn[device]) is set
 * once, when it is complete.
 *
 * A reset of the device makes its modules worthless. The kernels' links to them are cut and the next use loads anew; functions
 * and modules that the program holds by handle become invalid. */
#include "frontend/module/module.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "frontend/context/attributes.h"
#include "frontend/errors.h"
#include "frontend/facade.h"
#include "frontend/module/image.h"
#include "frontend/module/link_image.h"
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

enum { DYNAMIC_BYTES_DEFAULT = 48 * 1024 };

/* ---- images ---- */

/* What nvcc puts around a fatbin, and __cudaRegisterFatBinary gets. Version 2 is that of relocatable device code: the fatbins to
 * be linked are in a list of their own. */
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
    if (!code && ws_link_image_make(v, n, 0, ret, ret_bytes))
        code = CUDA_OUT_OF_MEMORY;
    free(v);
    return code;
}

/* The image inside of a wrapper, or the image itself. *ret_owned: NULL, or malloc'ed: the image, to be freed; then *ret_bytes is
 * its length. Return: a CUDA code. */
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
    struct ws_module *module = m->module;
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

/* What asking for a kernel that can't run is answered with: said by name. */
static int unsupported_fn(const Ws__Kernel *k)
{
    char text[512];
    snprintf(text, sizeof(text), "kernel %s: %s", k->name, k->unsupported);
    ws_session_unsupported(text);
    return k->unsupported_error == WS__ERROR__NOT_FOUND ? CUDA_NOT_FOUND : CUDA_NOT_SUPPORTED;
}

/* Lock held. */
static int fn_of(struct ws_mod *m, struct ws_function *function, struct ws_fn **ret)
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
    struct ws_function *function;
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
    struct ws_function *function;
    int n = 0;
    while (!ws_session_module_function_at(m->module, (size_t)n, &function))
        n++;
    return n;
}

int ws_mod_fn_at(struct ws_mod *m, size_t index, struct ws_fn **ret)
{
    struct ws_function *function;
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
            struct ws_module *module = l->mods[d]->module;
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
    struct ws_function *function;
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

/* ---- launch ---- */

/* Whether all blocks of a cooperative launch can run at once: CUDA says so at the launch, so the daemon must be asked before. The
 * answer for a shape of block is kept, for the next launch mostly has the same. */
static ws_err fits_at_once(struct ws_fn *f, const struct ws_launch_request *r)
{
    const Ws__Device *d = ws_session_device(f->mod->device);
    uint64_t threads = (uint64_t)r->block[0] * r->block[1] * r->block[2],
             blocks = (uint64_t)r->grid[0] * r->grid[1] * r->grid[2];
    uint64_t shape = threads << 40 | (uint64_t)r->shared_bytes << 16, known = f->resident;
    if (!threads || threads > d->max_threads_per_block)
        return WS__ERROR__OK; /* the launch has another word for it */
    if (!known || known >> 16 != shape >> 16) {
        uint32_t per_sm;
        ws_err e = ws_session_occupancy(f->function, (uint32_t)threads, (uint32_t)r->shared_bytes,
                                        &per_sm);
        if (e)
            return e;
        f->resident = known = shape | WS_MIN(per_sm, (uint32_t)UINT16_MAX);
    }
    return blocks > (known & UINT16_MAX) * d->n_sms ? WS__ERROR__COOPERATIVE_TOO_LARGE
                                                    : WS__ERROR__OK;
}

/* CU_LAUNCH_PARAM_*, the keys in @extra */
enum { PARAM_END, PARAM_BUFFER_POINTER, PARAM_BUFFER_SIZE, PARAM_WORDS_MAX = 8 };

ws_err ws_launch_set_args(struct ws_launch_request *r, void **args, void **extra)
{
    const size_t *bytes = NULL;
    if (args && extra)
        return WS__ERROR__INVALID_VALUE;
    r->args = args;
    for (int i = 0; extra && (uintptr_t)extra[i] != PARAM_END; i += 2) {
        if (i >= PARAM_WORDS_MAX)
            return WS__ERROR__INVALID_VALUE;
        if ((uintptr_t)extra[i] == PARAM_BUFFER_POINTER)
            r->packed = extra[i + 1];
        else if ((uintptr_t)extra[i] == PARAM_BUFFER_SIZE)
            bytes = extra[i + 1];
        else
            return WS__ERROR__INVALID_VALUE;
    }
    if (extra && (!r->packed || !bytes))
        return WS__ERROR__INVALID_VALUE;
    r->packed_bytes = bytes ? *bytes : 0;
    return WS__ERROR__OK;
}

ws_err ws_fn_prepare(struct ws_fn *f, const struct ws_launch_request *r, struct ws_launch *ret)
{
    *ret = (struct ws_launch){
        .function = f->function,
        .grid = {r->grid[0], r->grid[1], r->grid[2]},
        .block = {r->block[0], r->block[1], r->block[2]},
        .shared_bytes = (uint32_t)r->shared_bytes,
        .flags = r->cooperative,
        .args = r->args,
        .packed = r->packed,
        .packed_bytes = (uint32_t)r->packed_bytes,
    };
    if (r->shared_bytes > (size_t)f->max_dynamic_bytes || r->packed_bytes > UINT32_MAX)
        return WS__ERROR__INVALID_VALUE;
    return r->cooperative ? fits_at_once(f, r) : WS__ERROR__OK;
}

ws_err ws_fn_launch(struct ws_fn *f, const struct ws_launch_request *r)
{
    struct ws_launch l;
    uint64_t stream;
    if (ws_stream_of(r->stream, r->per_thread, f->mod->device, &stream))
        return WS__ERROR__INVALID_HANDLE;
    ws_err e = ws_fn_prepare(f, r, &l);
    l.stream = stream;
    return e ? e : ws_work_launch(&l, f);
}

int ws_launch_attributes(const struct cuda_launch_attribute *v, unsigned n, bool *ret_cooperative)
{
    for (unsigned i = 0; i < n; i++) {
        const struct cuda_dim3 *c = &v[i].val.cluster;
        switch (v[i].id) {
        case WS_CUDA_ATTR_COOPERATIVE:
            *ret_cooperative = v[i].val.cooperative != 0;
            break;
        case WS_CUDA_ATTR_CLUSTER_DIMENSION:
            if (c->x == 1 && c->y == 1 && c->z == 1) /* a cluster of one block is no cluster */
                break;
            ws_session_unsupported("launch attribute: cluster dimension");
            return CUDA_NOT_SUPPORTED;
        case WS_CUDA_ATTR_PROGRAMMATIC_EVENT:
            ws_session_unsupported("launch attribute: programmatic event");
            return CUDA_NOT_SUPPORTED;
        case WS_CUDA_ATTR_LAUNCH_COMPLETION_EVENT:
            ws_session_unsupported("launch attribute: launch completion event");
            return CUDA_NOT_SUPPORTED;
        case WS_CUDA_ATTR_DEVICE_UPDATABLE_NODE:
            if (!v[i].val.cooperative) /* its first member says whether it is wanted */
                break;
            ws_session_unsupported("launch attribute: device updatable kernel node");
            return CUDA_NOT_SUPPORTED;
        case WS_CUDA_ATTR_IGNORE:
        case WS_CUDA_ATTR_ACCESS_POLICY_WINDOW:
        case WS_CUDA_ATTR_SYNCHRONIZATION_POLICY:
        case WS_CUDA_ATTR_CLUSTER_SCHEDULING:
        case WS_CUDA_ATTR_PROGRAMMATIC_SERIALIZATION: /* the kernel may begin early; it needn't */
        case WS_CUDA_ATTR_PRIORITY:
        case WS_CUDA_ATTR_MEM_SYNC_DOMAIN_MAP:
        case WS_CUDA_ATTR_MEM_SYNC_DOMAIN:
        case WS_CUDA_ATTR_PREFERRED_CLUSTER_DIMENSION:
        case WS_CUDA_ATTR_SHARED_CARVEOUT:
        case WS_CUDA_ATTR_NVLINK_SCHEDULING:
            break;
        default:
            return CUDA_INVALID_VALUE;
        }
    }
    return CUDA_OK;
}

/* ---- attributes ---- */

static int largest_block(const Ws__Kernel *k, const Ws__Device *d)
{
    return k->max_threads_per_block ? (int)k->max_threads_per_block : (int)d->max_threads_per_block;
}

int ws_fn_attribute(const struct ws_fn *f, int attribute, int *ret)
{
    const Ws__Kernel *k = ws_function_info(f->function);
    const Ws__Device *d = ws_session_device(f->mod->device);
    switch (attribute) {
    case WS_FUNC_MAX_THREADS_PER_BLOCK:
        *ret = largest_block(k, d);
        break;
    case WS_FUNC_SHARED_SIZE_BYTES:
        *ret = (int)k->static_shared_bytes;
        break;
    case WS_FUNC_CONST_SIZE_BYTES:
        *ret = (int)k->const_bytes;
        break;
    case WS_FUNC_LOCAL_SIZE_BYTES:
        *ret = (int)k->local_bytes;
        break;
    case WS_FUNC_NUM_REGS:
        /* An estimate, so it must agree with the largest block, which isn't. */
        *ret = (int)WS_MIN(k->n_regs, d->regs_per_sm / largest_block(k, d));
        break;
    case WS_FUNC_PTX_VERSION: /* CUDA's word for it: is the architecture that the PTX is for */
        *ret = (int)k->sm;
        break;
    case WS_FUNC_BINARY_VERSION: /* of the code that runs: made for the device */
        *ret = (int)(d->cc_major * 10 + d->cc_minor);
        break;
    case WS_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *ret = f->max_dynamic_bytes;
        break;
    case WS_FUNC_PREFERRED_SHARED_MEMORY_CARVEOUT:
        *ret = f->carveout;
        break;
    case WS_FUNC_CACHE_MODE_CA:
    case WS_FUNC_CLUSTER_SIZE_MUST_BE_SET:
    case WS_FUNC_REQUIRED_CLUSTER_WIDTH:
    case WS_FUNC_REQUIRED_CLUSTER_HEIGHT:
    case WS_FUNC_REQUIRED_CLUSTER_DEPTH:
    case WS_FUNC_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    case WS_FUNC_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        *ret = 0;
        break;
    default:
        return CUDA_INVALID_VALUE;
    }
    return CUDA_OK;
}

int ws_fn_set_attribute(struct ws_fn *f, int attribute, int value)
{
    const Ws__Kernel *k = ws_function_info(f->function);
    const Ws__Device *d = ws_session_device(f->mod->device);
    switch (attribute) {
    case WS_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        if (value < 0 || (uint64_t)value + k->static_shared_bytes > d->shared_bytes_per_block_optin)
            return CUDA_INVALID_VALUE;
        f->max_dynamic_bytes = value;
        return CUDA_OK;
    case WS_FUNC_PREFERRED_SHARED_MEMORY_CARVEOUT: /* a hint, in percent; -1: default */
        if (value < -1 || value > 100)
            return CUDA_INVALID_VALUE;
        f->carveout = value;
        return CUDA_OK;
    case WS_FUNC_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    case WS_FUNC_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        return CUDA_OK; /* without clusters nothing depends on it */
    case WS_FUNC_REQUIRED_CLUSTER_WIDTH:
    case WS_FUNC_REQUIRED_CLUSTER_HEIGHT:
    case WS_FUNC_REQUIRED_CLUSTER_DEPTH:
        if (value <= 1)
            return CUDA_OK;
        ws_session_unsupported("thread block clusters");
        return CUDA_NOT_SUPPORTED;
    default:
        return CUDA_INVALID_VALUE;
    }
}

int ws_fn_param(const struct ws_fn *f, size_t i, size_t *offset, size_t *bytes)
{
    const Ws__Kernel *k = ws_function_info(f->function);
    if (!offset || i >= k->n_param_offsets)
        return CUDA_INVALID_VALUE;
    *offset = k->param_offsets[i];
    if (bytes)
        *bytes = k->param_sizes[i];
    return CUDA_OK;
}

int ws_fn_max_blocks(const struct ws_fn *f, int block_threads, size_t shared_bytes, int *ret_blocks)
{
    uint32_t n;
    if (block_threads <= 0)
        return CUDA_INVALID_VALUE;
    if (shared_bytes > UINT32_MAX) {
        *ret_blocks = 0;
        return CUDA_OK;
    }
    ws_err r =
        ws_session_occupancy(f->function, (uint32_t)block_threads, (uint32_t)shared_bytes, &n);
    if (r)
        return ws_drv_error(r);
    *ret_blocks = (int)n;
    return CUDA_OK;
}

int ws_fn_max_clusters(const struct ws_fn *f, const struct ws_launch_shape *s, int *ret_size,
                       int *ret_clusters)
{
    bool cooperative = false;
    int per_sm = 0;
    if (s->n_attributes && !s->attributes)
        return CUDA_INVALID_VALUE;
    int code = ws_launch_attributes(s->attributes, s->n_attributes, &cooperative);
    if (code)
        return code;
    uint64_t threads = (uint64_t)s->block[0] * s->block[1] * s->block[2];
    if (!threads || threads > INT32_MAX)
        return CUDA_INVALID_CONFIGURATION;
    code = ws_fn_max_blocks(f, (int)threads, s->shared_bytes, &per_sm);
    if (code)
        return code;
    *ret_size = 1;
    *ret_clusters = per_sm * (int)ws_session_device(f->mod->device)->n_sms;
    return CUDA_OK;
}

int ws_fn_available_shared(const struct ws_fn *f, int n_blocks, int block_threads,
                           size_t *ret_bytes)
{
    enum { GRANULE_BYTES = 128 };
    const Ws__Kernel *k = ws_function_info(f->function);
    const Ws__Device *d = ws_session_device(f->mod->device);
    int n = 0;
    if (n_blocks <= 0)
        return CUDA_INVALID_VALUE;
    int code = ws_fn_max_blocks(f, block_threads, 0, &n);
    if (code)
        return code;
    size_t room = n < n_blocks
                      ? 0
                      : d->shared_bytes_per_sm / (size_t)n_blocks / GRANULE_BYTES * GRANULE_BYTES;
    int reserved = 0; /* the system's, in each block */
    ws_device_attribute(d, WS_ATTR_RESERVED_SHARED_MEMORY_PER_BLOCK, &reserved);
    room -= WS_MIN(room, (size_t)reserved);
    room = WS_MIN(room, (size_t)d->shared_bytes_per_block_optin);
    *ret_bytes = room > k->static_shared_bytes ? room - k->static_shared_bytes : 0;
    return CUDA_OK;
}
