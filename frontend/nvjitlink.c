// SPDX-License-Identifier: Apache-2.0
/* nvJitLink: NVIDIA's own library links, which needs no GPU, but into machine code. What the devices here can use instead:
 *
 * - of LTO code (-lto) the library can also give PTX, if asked when the linker is created: it is, and the question for the
 *   machine code is answered with that PTX;
 * - of PTX, fatbins, objects and archives it was given, a container is made for the daemon to link, as cuLinkComplete() does.
 * The library still does its own work on the inputs, so that its errors and logs are as ever.
 *
 * Only calls that go through the dynamic linker come here; a program that looks the functions up in the library itself gets
 * NVIDIA's answers. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "frontend/facade.h"
#include "frontend/link_inputs.h"
#include "frontend/module.h"

enum { NVJITLINK_INVALID_INPUT = 4, NVJITLINK_INTERNAL = 6 };

struct jitlink {
    struct jitlink *next;
    void *handle; /* the library's */
    bool lto;
    struct ws_link_inputs inputs;
    void *image; /* the container, made when its size is asked for */
    uint64_t bytes;
};
static struct jitlink *all;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *real(const char *name)
{
    void *fn = dlsym(RTLD_NEXT, name);
    if (!fn)
        ws_session_unsupported(name);
    return fn;
}

/* Lock held. */
static struct jitlink *find(void *handle)
{
    struct jitlink *l = all;
    while (l && l->handle != handle)
        l = l->next;
    return l;
}

static int create(const char *name, void **handle, uint32_t n, const char **options)
{
    int (*fn)(void **, uint32_t, const char **);
    const char *own[n + 1];
    bool lto = false, ptx = false;
    for (uint32_t i = 0; i < n && options; i++) {
        own[i] = options[i];
        lto |= options[i] && (!strcmp(options[i], "-lto") || !strcmp(options[i], "-dlto"));
        ptx |= options[i] && !strcmp(options[i], "-ptx");
    }
    *(void **)&fn = real(name);
    if (!fn)
        return NVJITLINK_INTERNAL;
    own[n] = "-ptx";
    struct jitlink *l = ws_alloc(sizeof *l);
    if (!l)
        return NVJITLINK_INTERNAL;
    int r = lto && !ptx && options ? fn(handle, n + 1, own) : fn(handle, n, options);
    if (r) {
        free(l);
        return r;
    }
    pthread_mutex_lock(&lock);
    l->handle = *handle;
    l->lto = lto;
    l->next = all;
    all = l;
    pthread_mutex_unlock(&lock);
    return 0;
}

static void keep(void *handle, const void *data, uint64_t bytes, const char *name)
{
    pthread_mutex_lock(&lock);
    struct jitlink *l = find(handle);
    if (l && !l->lto && data && bytes)
        (void)ws_link_inputs_add(&l->inputs, data, bytes,
                                 name); /* what is missing is told when it is linked */
    pthread_mutex_unlock(&lock);
}

static int add_data(const char *name, void *handle, int type, const void *data, size_t bytes,
                    const char *label)
{
    int (*fn)(void *, int, const void *, size_t, const char *);
    *(void **)&fn = real(name);
    int r = fn ? fn(handle, type, data, bytes, label) : NVJITLINK_INTERNAL;
    if (!r)
        keep(handle, data, bytes, label);
    return r;
}

static int add_file(const char *name, void *handle, int type, const char *path)
{
    int (*fn)(void *, int, const char *);
    char *data;
    uint64_t bytes;
    *(void **)&fn = real(name);
    int r = fn ? fn(handle, type, path) : NVJITLINK_INTERNAL;
    if (!r && path && !ws_image_read_file(path, &data, &bytes)) {
        keep(handle, data, bytes, path);
        free(data);
    }
    return r;
}

/* Lock held. Return: whether there is a container. */
static bool make_image(struct jitlink *l)
{
    if (!l->image && l->inputs.n &&
        ws_link_image_make(l->inputs.v, l->inputs.n, 0, &l->image, &l->bytes))
        l->image = NULL;
    return l->image != NULL;
}

static int cubin_size(const char *ptx_name, void *handle, size_t *ret)
{
    int (*fn)(void *, size_t *), r = NVJITLINK_INVALID_INPUT;
    pthread_mutex_lock(&lock);
    struct jitlink *l = find(handle);
    bool lto = l && l->lto;
    if (l && !lto && ret && make_image(l)) {
        *ret = l->bytes;
        r = 0;
    }
    pthread_mutex_unlock(&lock);
    if (!lto)
        return r;
    *(void **)&fn = real(ptx_name);
    return fn ? fn(handle, ret) : NVJITLINK_INTERNAL;
}

static int cubin(const char *ptx_name, void *handle, void *image)
{
    int (*fn)(void *, char *), r = NVJITLINK_INVALID_INPUT;
    pthread_mutex_lock(&lock);
    struct jitlink *l = find(handle);
    bool lto = l && l->lto;
    if (l && !lto && image && make_image(l)) {
        memcpy(image, l->image, l->bytes);
        r = 0;
    }
    pthread_mutex_unlock(&lock);
    if (!lto)
        return r;
    *(void **)&fn = real(ptx_name);
    return fn ? fn(handle, image) : NVJITLINK_INTERNAL;
}

static int destroy(const char *name, void **handle)
{
    int (*fn)(void **);
    *(void **)&fn = real(name);
    pthread_mutex_lock(&lock);
    for (struct jitlink **at = &all; handle && *at; at = &(*at)->next)
        if ((*at)->handle == *handle) {
            struct jitlink *l = *at;
            *at = l->next;
            ws_link_inputs_deinit(&l->inputs);
            free(l->image);
            free(l);
            break;
        }
    pthread_mutex_unlock(&lock);
    return fn ? fn(handle) : NVJITLINK_INTERNAL;
}

/* The header's functions have the toolkit's version in their names; both spellings are exported. */
WS_NVRTC_API(nvJitLinkCreate, (void **handle, uint32_t n, const char **options))
{
    return create("nvJitLinkCreate", handle, n, options);
}
WS_NVRTC_API(__nvJitLinkCreate_13_0, (void **handle, uint32_t n, const char **options))
{
    return create("__nvJitLinkCreate_13_0", handle, n, options);
}
WS_NVRTC_API(nvJitLinkAddData,
             (void *handle, int type, const void *data, size_t bytes, const char *label))
{
    return add_data("nvJitLinkAddData", handle, type, data, bytes, label);
}
WS_NVRTC_API(__nvJitLinkAddData_13_0,
             (void *handle, int type, const void *data, size_t bytes, const char *label))
{
    return add_data("__nvJitLinkAddData_13_0", handle, type, data, bytes, label);
}
WS_NVRTC_API(nvJitLinkAddFile, (void *handle, int type, const char *path))
{
    return add_file("nvJitLinkAddFile", handle, type, path);
}
WS_NVRTC_API(__nvJitLinkAddFile_13_0, (void *handle, int type, const char *path))
{
    return add_file("__nvJitLinkAddFile_13_0", handle, type, path);
}
WS_NVRTC_API(nvJitLinkGetLinkedCubinSize, (void *handle, size_t *bytes))
{
    return cubin_size("nvJitLinkGetLinkedPtxSize", handle, bytes);
}
WS_NVRTC_API(__nvJitLinkGetLinkedCubinSize_13_0, (void *handle, size_t *bytes))
{
    return cubin_size("__nvJitLinkGetLinkedPtxSize_13_0", handle, bytes);
}
WS_NVRTC_API(nvJitLinkGetLinkedCubin, (void *handle, void *image))
{
    return cubin("nvJitLinkGetLinkedPtx", handle, image);
}
WS_NVRTC_API(__nvJitLinkGetLinkedCubin_13_0, (void *handle, void *image))
{
    return cubin("__nvJitLinkGetLinkedPtx_13_0", handle, image);
}
WS_NVRTC_API(nvJitLinkDestroy, (void **handle))
{
    return destroy("nvJitLinkDestroy", handle);
}
WS_NVRTC_API(__nvJitLinkDestroy_13_0, (void **handle))
{
    return destroy("__nvJitLinkDestroy_13_0", handle);
}
