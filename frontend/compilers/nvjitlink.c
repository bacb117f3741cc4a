// SPDX-License-Identifier: Apache-2.0
/* nvJitLink. NVIDIA's own libnvJitLink links, which needs no GPU, and reports what is wrong with
 * the inputs. It returns machine code, and the devices here execute PTX. So a copy of the inputs is
 * kept, and the question for the machine code is answered with a container of them, which the
 * daemon links when it is loaded (session/link_image.h).
 *
 * Link-time optimisation (-lto) is different: only the library can read NVVM's code. It can return
 * PTX, and is asked to (-ptx). It then links NVVM's code only, so all other inputs are kept
 * here. If there are any, its PTX becomes one more part of the container. Such parts may define
 * what NVVM's code calls, but not the other way round: the library drops what it sees no call of.
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
    void *handle;                 /* the library's */
    struct ws_link_inputs inputs; /* with -lto: those that the library does not take */
    uint32_t max_regs;            /* 0: no limit */
    void *image;
    uint64_t bytes;
    bool lto, ptx; /* -lto and -ptx, as the program said */
    bool nvvm;     /* with -lto: the library has taken some */
    bool only_we;  /* there is something that the library cannot link */
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

/* The number in "-maxrregcount=38"; 0: another option. */
static uint32_t register_limit(const char *option)
{
    static const char limit[] = "-maxrregcount=";
    if (strncmp(option, limit, sizeof(limit) - 1))
        return 0;
    return (uint32_t)strtoul(option + sizeof(limit) - 1, NULL, 10);
}

static int create(const char *name, void **ret, uint32_t n, const char *const *options)
{
    REAL(int (*real)(void **, uint32_t, const char *const *), real, name);
    const char **longer = ws_alloc_array(n + 1u, sizeof(*longer));
    struct kept *k = ws_alloc(sizeof(*k));
    if (!longer || !k || !ret || (n && !options)) {
        free(longer);
        free(k);
        return real(ret, n, options);
    }
    for (uint32_t i = 0; i < n; i++) {
        longer[i] = options[i];
        if (!options[i])
            continue;
        k->lto |= !strcmp(options[i], "-lto");
        k->ptx |= !strcmp(options[i], "-ptx");
        k->max_regs = WS_MAX(k->max_regs, register_limit(options[i]));
    }
    if (k->lto && !k->ptx)
        longer[n++] = "-ptx";
    int r = real(ret, n, longer);
    free(longer);
    if (r) {
        free(k);
        return r;
    }
    k->handle = *ret;
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

/* Keeps a copy. Return: a result. */
static int keep(struct kept *k, const void *data, size_t bytes, const char *name)
{
    return data && bytes && ws_link_inputs_add(&k->inputs, data, bytes, name) ? RESULT_INVALID_INPUT
                                                                              : RESULT_OK;
}

/* Whether the library can't have an input, and we must link it. */
static bool is_for_us(const struct kept *k, const void *data, size_t bytes)
{
    return is_container(data, bytes) || (k->lto && !k->ptx && !ws_link_input_is_nvvm(data, bytes));
}

/* What the library is given too. */
static void note(struct kept *k, const void *data, size_t bytes, const char *name)
{
    if (k->lto)
        k->nvvm = true;
    else
        (void)!keep(k, data, bytes, name); /* what we can't read, the library refuses */
}

static int add_data(const char *fn, void *handle, int type, const void *data, size_t bytes,
                    const char *name)
{
    REAL(int (*real)(void *, int, const void *, size_t, const char *), real, fn);
    struct kept *k = find(handle);
    if (k && data && is_for_us(k, data, bytes)) {
        k->only_we = true;
        return keep(k, data, bytes, name);
    }
    if (k && data)
        note(k, data, bytes, name);
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
    int r;
    if (k && path && !ws_image_read_file(path, &data, &bytes) && is_for_us(k, data, bytes)) {
        k->only_we = true;
        r = keep(k, data, bytes, path);
    } else {
        if (data)
            note(k, data, bytes, path);
        r = real(handle, type, path);
    }
    free(data);
    return r;
}

/* Whether the library links anything. */
static bool library_links(const struct kept *k)
{
    return !k || (k->lto ? k->nvvm || !k->inputs.n : !k->only_we);
}

static int complete(const char *fn, void *handle)
{
    REAL(int (*real)(void *), real, fn);
    return library_links(find(handle)) ? real(handle) : RESULT_OK;
}

/* ---- what comes out ---- */

/* The names of the library's functions for the machine code and the PTX. */
struct getters {
    const char *code_size, *code, *ptx_size, *ptx;
};

/* Whether the program gets a container, not what the library made. */
static bool is_ours(const struct kept *k)
{
    return k && (!k->lto || k->inputs.n || k->max_regs);
}

/* Adds the PTX that the library made to the inputs. */
static int keep_ptx(struct kept *k, const struct getters *g)
{
    size_t bytes = 0;
    REAL(int (*real_size)(void *, size_t *), real_size, g->ptx_size);
    REAL(int (*real_ptx)(void *, char *), real_ptx, g->ptx);
    int r = real_size(k->handle, &bytes);
    if (r)
        return r;
    char *ptx = ws_alloc(bytes + 1);
    if (!ptx)
        return RESULT_INTERNAL;
    r = real_ptx(k->handle, ptx);
    if (!r)
        r = keep(k, ptx, bytes, "code that was optimised while it was linked");
    free(ptx);
    return r;
}

static int make_image(struct kept *k, const struct getters *g)
{
    if (k->image)
        return RESULT_OK;
    int r = k->lto && k->nvvm ? keep_ptx(k, g) : RESULT_OK;
    if (r)
        return r;
    if (!k->inputs.n)
        return RESULT_INVALID_INPUT;
    return ws_link_image_make(k->inputs.v, k->inputs.n, WS_LINK_IMAGE_STRICT, k->max_regs,
                              &k->image, &k->bytes)
               ? RESULT_INTERNAL
               : RESULT_OK;
}

static int image_bytes(const struct getters *g, void *handle, size_t *bytes)
{
    struct kept *k = find(handle);
    bool lto = k && k->lto;
    REAL(int (*real)(void *, size_t *), real, lto ? g->ptx_size : g->code_size);
    int r = library_links(k) ? real(handle, bytes) : RESULT_OK; /* it tells whether all went well */
    if (r || !is_ours(k) || !bytes)
        return r;
    r = make_image(k, g);
    if (!r)
        *bytes = k->bytes;
    return r;
}

static int image(const struct getters *g, void *handle, void *out)
{
    struct kept *k = find(handle);
    bool lto = k && k->lto;
    REAL(int (*real)(void *, void *), real, lto ? g->ptx : g->code);
    if (!is_ours(k) || !out)
        return real(handle, out);
    int r = make_image(k, g);
    if (!r)
        memcpy(out, k->image, k->bytes);
    return r;
}

#define GETTERS(p, s)                                                                              \
    &(const struct getters)                                                                        \
    {                                                                                              \
#p "nvJitLinkGetLinkedCubinSize" #s, #p "nvJitLinkGetLinkedCubin" #s,                      \
            #p "nvJitLinkGetLinkedPtxSize" #s, #p "nvJitLinkGetLinkedPtx" #s                       \
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
        return image_bytes(GETTERS(p, s), handle, bytes);                                          \
    }                                                                                              \
    WS_NVRTC_API(p##nvJitLinkGetLinkedCubin##s, (void *handle, void *out))                         \
    {                                                                                              \
        return image(GETTERS(p, s), handle, out);                                                  \
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
