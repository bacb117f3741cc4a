// SPDX-License-Identifier: Apache-2.0
/* nvJitLink. NVIDIA's own libnvJitLink links, which needs no GPU, and reports what is wrong with
 * the inputs. It returns machine code, and the devices here execute PTX. With link-time
 * optimisation (-lto) the library can return PTX too, and is asked to (-ptx). Without it, a copy of
 * the inputs is kept, and the question for the machine code is answered with a container of them,
 * which the daemon links when it is loaded (session/link_image.h).
 *
 * The handles are the library's own; what is kept stands beside them. An input may be what was
 * returned in place of machine code earlier. If that was PTX, it is passed on as PTX. If it was a
 * container, the library cannot read it, and from then on only the daemon links.
 *
 * Each toolkit's header has inline functions that call names with its version
 * (__nvJitLinkCreate_13_0), and its library has the names of the toolkits before it. dlsym() is
 * asked for names without a version. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/link_image.h"
#include "frontend/compilers/compilers.h"
#include "frontend/facade.h"
#include "frontend/module/link_inputs.h"
#include "frontend/module/module.h"

enum { /* nvJitLinkResult */
       RESULT_OK = 0,
       RESULT_INVALID_INPUT = 4,
       RESULT_INTERNAL = 6,
};
enum { INPUT_CUBIN = 1, INPUT_PTX = 2 }; /* nvJitLinkInputType */

struct kept {
    struct kept *next;
    void *handle; /* the library's */
    struct ws_link_inputs inputs;
    void *image;
    uint64_t bytes;
    bool lto, only_we;
};
static struct kept *all; /* lock */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct kept *find(void *handle)
{
    pthread_mutex_lock(&lock);
    struct kept *k = all;
    while (k && k->handle != handle)
        k = k->next;
    pthread_mutex_unlock(&lock);
    return k;
}

#define REAL(type, fn, name)                                                                       \
    type;                                                                                          \
    *(void **)&fn = ws_compiler_function(name);                                                    \
    if (!fn)                                                                                       \
    return RESULT_INTERNAL

/* ---- the life of a handle ---- */
static int create(const char *name, void **ret, uint32_t n, const char *const *options)
{
    REAL(int (*real)(void **, uint32_t, const char *const *), real, name);
    bool lto = false, ptx = false;
    const char **longer = ws_alloc_array(n + 1u, sizeof(*longer));
    struct kept *k = ws_alloc(sizeof(*k));
    if (!longer || !k || !ret || (n && !options)) {
        free(longer);
        free(k);
        return real(ret, n, options);
    }
    for (uint32_t i = 0; i < n; i++) {
        longer[i] = options[i];
        lto |= options[i] && !strcmp(options[i], "-lto");
        ptx |= options[i] && !strcmp(options[i], "-ptx");
    }
    if (lto && !ptx)
        longer[n++] = "-ptx";
    int r = real(ret, n, longer);
    free(longer);
    if (r) {
        free(k);
        return r;
    }
    k->handle = *ret;
    k->lto = lto;
    pthread_mutex_lock(&lock);
    k->next = all;
    all = k;
    pthread_mutex_unlock(&lock);
    return RESULT_OK;
}

static int destroy(const char *name, void **handle)
{
    REAL(int (*real)(void **), real, name);
    struct kept *k = NULL;
    pthread_mutex_lock(&lock);
    for (struct kept **p = &all; handle && *p; p = &(*p)->next)
        if ((*p)->handle == *handle) {
            k = *p;
            *p = k->next;
            break;
        }
    pthread_mutex_unlock(&lock);
    if (k) {
        ws_link_inputs_deinit(&k->inputs);
        free(k->image);
        free(k);
    }
    return real(handle);
}

/* ---- inputs ---- */
static bool is_container(const void *data, size_t bytes)
{
    uint64_t n;
    return ws_link_image_is(data, bytes, &n);
}

static bool is_elf(const char *data, size_t bytes)
{
    return bytes >= 4 && !memcmp(data, "\177ELF", 4);
}

/* Keeps a copy. What we can't read is the library's to refuse. */
static void keep(struct kept *k, const void *data, size_t bytes, const char *name)
{
    if (k && !k->lto && data && bytes)
        (void)!ws_link_inputs_add(&k->inputs, data, bytes, name);
}

static int add_data(const char *fn, void *handle, int type, const void *data, size_t bytes,
                    const char *name)
{
    REAL(int (*real)(void *, int, const void *, size_t, const char *), real, fn);
    struct kept *k = find(handle);
    keep(k, data, bytes, name);
    if (k && data && is_container(data, bytes)) {
        k->only_we = true;
        return k->lto ? RESULT_INVALID_INPUT : RESULT_OK;
    }
    if (type == INPUT_CUBIN && data && !is_elf(data, bytes))
        type = INPUT_PTX; /* what nvrtcGetCUBIN() gave */
    return real(handle, type, data, bytes, name);
}

static int add_file(const char *fn, void *handle, int type, const char *path)
{
    REAL(int (*real)(void *, int, const char *), real, fn);
    struct kept *k = find(handle);
    char *data = NULL;
    uint64_t bytes = 0;
    if (k && path && !ws_image_read_file(path, &data, &bytes))
        keep(k, data, bytes, path);
    free(data);
    return real(handle, type, path);
}

static int complete(const char *fn, void *handle)
{
    REAL(int (*real)(void *), real, fn);
    struct kept *k = find(handle);
    return k && k->only_we ? RESULT_OK : real(handle);
}

/* ---- what comes out ---- */
static int make_image(struct kept *k)
{
    if (k->image)
        return RESULT_OK;
    if (!k->inputs.n)
        return RESULT_INVALID_INPUT;
    return ws_link_image_make(k->inputs.v, k->inputs.n, WS_LINK_IMAGE_STRICT, &k->image, &k->bytes)
               ? RESULT_INTERNAL
               : RESULT_OK;
}

/* @size: the library's function for the PTX's size; @own: that for the machine code's, which tells
 * whether all went well. */
static int image_bytes(const char *own, const char *size, void *handle, size_t *bytes)
{
    struct kept *k = find(handle);
    const char *name = k && k->lto ? size : own;
    REAL(int (*real)(void *, size_t *), real, name);
    int r = k && k->only_we ? RESULT_OK : real(handle, bytes);
    if (r || !k || k->lto || !bytes)
        return r;
    r = make_image(k);
    if (!r)
        *bytes = k->bytes;
    return r;
}

static int image(const char *own, const char *ptx, void *handle, void *out)
{
    struct kept *k = find(handle);
    REAL(int (*real)(void *, void *), real, k && k->lto ? ptx : own);
    if (!k || k->lto || !out)
        return real(handle, out);
    int r = make_image(k);
    if (!r)
        memcpy(out, k->image, k->bytes);
    return r;
}

#define VARIANT(p, s)                                                                              \
    WS_NVRTC_API(p##nvJitLinkCreate##s, (void **ret, uint32_t n, const char *const *options))      \
    {                                                                                              \
        return create(#p "nvJitLinkCreate" #s, ret, n, options);                                   \
    }                                                                                              \
    WS_NVRTC_API(p##nvJitLinkDestroy##s, (void **handle))                                          \
    {                                                                                              \
        return destroy(#p "nvJitLinkDestroy" #s, handle);                                          \
    }                                                                                              \
    WS_NVRTC_API(p##nvJitLinkAddData##s,                                                           \
                 (void *handle, int type, const void *data, size_t bytes, const char *name))       \
    {                                                                                              \
        return add_data(#p "nvJitLinkAddData" #s, handle, type, data, bytes, name);                \
    }                                                                                              \
    WS_NVRTC_API(p##nvJitLinkAddFile##s, (void *handle, int type, const char *path))               \
    {                                                                                              \
        return add_file(#p "nvJitLinkAddFile" #s, handle, type, path);                             \
    }                                                                                              \
    WS_NVRTC_API(p##nvJitLinkComplete##s, (void *handle))                                          \
    {                                                                                              \
        return complete(#p "nvJitLinkComplete" #s, handle);                                        \
    }                                                                                              \
    WS_NVRTC_API(p##nvJitLinkGetLinkedCubinSize##s, (void *handle, size_t *bytes))                 \
    {                                                                                              \
        return image_bytes(#p "nvJitLinkGetLinkedCubinSize" #s, #p "nvJitLinkGetLinkedPtxSize" #s, \
                           handle, bytes);                                                         \
    }                                                                                              \
    WS_NVRTC_API(p##nvJitLinkGetLinkedCubin##s, (void *handle, void *out))                         \
    {                                                                                              \
        return image(#p "nvJitLinkGetLinkedCubin" #s, #p "nvJitLinkGetLinkedPtx" #s, handle, out); \
    }
VARIANT(, )
VARIANT(__, _12_0)
VARIANT(__, _12_1)
VARIANT(__, _12_2)
VARIANT(__, _12_3)
VARIANT(__, _12_4)
VARIANT(__, _12_5)
VARIANT(__, _12_6)
VARIANT(__, _12_7)
VARIANT(__, _12_8)
VARIANT(__, _12_9)
VARIANT(__, _13_0)
VARIANT(__, _13_1)
VARIANT(__, _13_2)
VARIANT(__, _13_3)
