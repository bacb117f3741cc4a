// SPDX-License-Identifier: Apache-2.0
/* CUDA Driver API: texture and surface references (deprecated). A module's .texref or .surfref is a variable of eight bytes that
 * holds the address of a header; what the program sets here is collected, and the header follows at every change.
 *
 * CUDA takes a reference's state at each launch, so launches under way must still see the old one: a change waits for the device.
 * A state from which no header can be made (a filter set before the format that allows it) leaves the reference unbound until
 * another call completes it; the calls that bind memory say what is wrong. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "frontend/facade.h"
#include "frontend/texture/texture.h"

enum { OVERRIDE_FORMAT = 1, PARAM_TR_DEFAULT = -1, ALIGNMENT = 512 };

struct ws_texref {
    struct ws_slot slot;
    struct ws_ctx *ctx;
    struct ws_mod *mod; /* NULL: made by cuTexRefCreate(), which no kernel can read */
    uint64_t variable;  /* of the module */
    uint64_t header;    /* 0: none yet */
    int device;
    bool surface, bound;
    struct cu_resource_desc resource;
    struct cu_texture_desc texture;
    int format;
    unsigned n_channels;
};
static struct ws_slab refs = WS_SLAB(struct ws_texref);
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* one reference for each variable */

/* ---- headers ---- */

static int write_variable(struct ws_texref *t, const struct ws_texture *header)
{
    if (!t->variable)
        return CUDA_OK;
    int code = ws_drv_error(ws_session_device_sync(t->device));
    if (!code && !t->header) {
        code = ws_header_new(t->device, &t->header);
        if (!code)
            code = ws_header_write(t->device, t->variable, &t->header, sizeof(t->header));
    }
    return code ? code : ws_header_write(t->device, t->header, header, sizeof(*header));
}

/* Linear memory and pitched memory are read in the reference's format. */
static void set_format(const struct ws_texref *t, struct cu_resource_desc *r)
{
    if (r->resType == WS_RES_LINEAR) {
        r->res.linear.format = t->format;
        r->res.linear.numChannels = t->n_channels;
    } else if (r->resType == WS_RES_PITCH2D) {
        r->res.pitch2D.format = t->format;
        r->res.pitch2D.numChannels = t->n_channels;
    }
}

/* Brings the header up to date. @strict: a state that makes none is an error. */
static int update(struct ws_texref *t, bool strict)
{
    struct ws_texture header;
    struct cu_resource_desc r = t->resource;
    if (!t->bound)
        return CUDA_OK;
    set_format(t, &r);
    int code = t->surface ? ws_surface_describe(t->device, &r, &header)
                          : ws_texture_describe(t->device, &r, &t->texture, NULL, &header);
    if (code && strict)
        return code == CUDA_NOT_SUPPORTED ? code : CUDA_INVALID_VALUE;
    if (code)
        memset(&header, 0, sizeof(header));
    return write_variable(t, &header);
}

static int bind(struct ws_texref *t, const struct cu_resource_desc *r)
{
    struct cu_resource_desc old = t->resource;
    bool was_bound = t->bound;
    t->resource = *r;
    t->bound = true;
    int code = update(t, true);
    if (code) {
        t->resource = old;
        t->bound = was_bound;
    }
    return code;
}

/* ---- references ---- */

static struct ws_texref *reference(struct ws_ctx *c, bool surface)
{
    struct ws_texref *t = ws_slab_new(&refs);
    if (!t)
        return NULL;
    t->ctx = c;
    t->device = c->device;
    t->surface = surface;
    t->format = 0x20;
    t->n_channels = 1;
    t->texture.maxAnisotropy = 1;
    return t;
}

struct wanted {
    const struct ws_mod *mod;
    uint64_t variable;
    struct ws_texref *found;
};
static void match(void *object, void *arg)
{
    struct ws_texref *t = object;
    struct wanted *w = arg;
    if (t->mod == w->mod && t->variable == w->variable)
        w->found = t;
}

static int of_module(bool surface, struct ws_texref **ret, struct ws_mod *m, const char *name)
{
    struct wanted w = {.mod = m};
    uint64_t bytes;
    int kind = surface ? WS__VARIABLE__KIND__SURFREF : WS__VARIABLE__KIND__TEXREF;
    WS_DRV_ENTER(c);
    if (!ws_mod_valid(m))
        return CUDA_INVALID_HANDLE;
    if (!ret || !name)
        return CUDA_INVALID_VALUE;
    ws_err e = ws_session_module_variable(m->module, name, &w.variable, &bytes);
    if (e)
        return ws_drv_error(e);
    if (ws_session_module_variable_kind(m->module, name) != kind)
        return CUDA_NOT_FOUND;
    pthread_mutex_lock(&lock);
    ws_slab_each(&refs, match, &w);
    if (!w.found && (w.found = reference(c, surface))) {
        w.found->mod = m;
        w.found->variable = w.variable;
        w.found->device = m->device;
    }
    pthread_mutex_unlock(&lock);
    if (!w.found)
        return CUDA_OUT_OF_MEMORY;
    *ret = w.found;
    return CUDA_OK;
}

WS_DRV_API(cuModuleGetTexRef, (struct ws_texref * *ret, struct ws_mod *m, const char *name))
{
    return of_module(false, ret, m, name);
}
WS_DRV_API(cuModuleGetSurfRef, (struct ws_texref * *ret, struct ws_mod *m, const char *name))
{
    return of_module(true, ret, m, name);
}

WS_DRV_API(cuTexRefCreate, (struct ws_texref * *ret))
{
    WS_DRV_ENTER(c);
    if (!ret)
        return CUDA_INVALID_VALUE;
    struct ws_texref *t = reference(c, false);
    if (!t)
        return CUDA_OUT_OF_MEMORY;
    *ret = t;
    return CUDA_OK;
}

static void drop(struct ws_texref *t)
{
    if (t->header)
        ws_header_free(t->device, t->header);
    ws_slab_free(&refs, t);
}

/* Body of the calls: @t is a live texture reference, or the call returns. */
#define NEED_REF(t)                                                                                \
    WS_DRV_ENTER(c_);                                                                              \
    (void)c_;                                                                                      \
    if (!ws_slab_has(&refs, t) || (t)->surface)                                                    \
    return CUDA_INVALID_VALUE

WS_DRV_API(cuTexRefDestroy, (struct ws_texref * t))
{
    NEED_REF(t);
    if (t->mod)
        return CUDA_INVALID_VALUE;
    drop(t);
    return CUDA_OK;
}

static void drop_of_module(void *object, void *arg)
{
    struct ws_texref *t = object;
    if (t->mod == arg)
        drop(t);
}
void ws_texref_drop_module(const struct ws_mod *m)
{
    ws_slab_each(&refs, drop_of_module, (void *)m);
}

struct whose {
    const struct ws_ctx *ctx;
    int device;
};
static void drop_of_context(void *object, void *arg)
{
    struct ws_texref *t = object;
    const struct whose *w = arg;
    if (w->ctx ? t->ctx == w->ctx : t->device == w->device)
        drop(t);
}
void ws_texref_drop(const struct ws_ctx *c, int device)
{
    struct whose w = {c, device};
    ws_slab_each(&refs, drop_of_context, &w);
}

/* ---- what it reads ---- */

static int bind_array(struct ws_texref *t, int type, void *handle, const struct ws_texel *texel,
                      unsigned flags)
{
    if (!(flags & OVERRIDE_FORMAT))
        return CUDA_INVALID_VALUE;
    t->format = ws_texel_format(texel);
    t->n_channels = texel->n_channels;
    return bind(t, &(struct cu_resource_desc){.resType = type, .res.array = handle});
}

WS_DRV_API(cuTexRefSetArray, (struct ws_texref * t, struct ws_array *a, unsigned flags))
{
    NEED_REF(t);
    if (!ws_array_valid(a))
        return CUDA_INVALID_VALUE;
    return bind_array(t, WS_RES_ARRAY, a, &a->desc.texel, flags);
}
WS_DRV_API(cuTexRefSetMipmappedArray, (struct ws_texref * t, struct ws_mipmap *m, unsigned flags))
{
    NEED_REF(t);
    if (!ws_mipmap_valid(m))
        return CUDA_INVALID_VALUE;
    return bind_array(t, WS_RES_MIPMAP, m, &m->level[0]->desc.texel, flags);
}

/* An address between two that a texture may start at is rounded down, and the program told by how much, if it asks. */
WS_DRV_API(cuTexRefSetAddress_v2,
           (size_t * ret_offset, struct ws_texref *t, uint64_t address, size_t bytes))
{
    NEED_REF(t);
    uint64_t offset = address % ALIGNMENT;
    if (!ret_offset && offset)
        return CUDA_INVALID_VALUE;
    if (ret_offset)
        *ret_offset = offset;
    if (!address) { /* CUDA's way to unbind */
        t->bound = false;
        return CUDA_OK;
    }
    return bind(t, &(struct cu_resource_desc){
                       .resType = WS_RES_LINEAR,
                       .res.linear = {.devPtr = address - offset, .sizeInBytes = bytes + offset}});
}

WS_DRV_API(cuTexRefSetAddress2D_v3,
           (struct ws_texref * t, const struct cu_array_desc *d, uint64_t address, size_t pitch))
{
    NEED_REF(t);
    if (!d)
        return CUDA_INVALID_VALUE;
    t->format = d->Format;
    t->n_channels = d->NumChannels;
    return bind(t, &(struct cu_resource_desc){.resType = WS_RES_PITCH2D,
                                              .res.pitch2D = {.devPtr = address,
                                                              .width = d->Width,
                                                              .height = d->Height,
                                                              .pitchInBytes = pitch}});
}
WS_DRV_ALIAS(cuTexRefSetAddress2D_v2, cuTexRefSetAddress2D_v3)

WS_DRV_API(cuTexRefSetFormat, (struct ws_texref * t, int format, int n_channels))
{
    struct ws_texel texel;
    NEED_REF(t);
    if (n_channels < 1 || ws_texel_of_format(format, (unsigned)n_channels, &texel))
        return CUDA_INVALID_VALUE;
    t->format = format;
    t->n_channels = (unsigned)n_channels;
    return update(t, false);
}

/* ---- how it is read ---- */

WS_DRV_API(cuTexRefSetAddressMode, (struct ws_texref * t, int dim, int mode))
{
    NEED_REF(t);
    if (dim < 0 || dim > 2 || mode < 0 || mode > 3)
        return CUDA_INVALID_VALUE;
    t->texture.addressMode[dim] = mode;
    return update(t, false);
}
WS_DRV_API(cuTexRefSetFilterMode, (struct ws_texref * t, int mode))
{
    NEED_REF(t);
    if (mode < 0 || mode > 1)
        return CUDA_INVALID_VALUE;
    t->texture.filterMode = mode;
    return update(t, false);
}
WS_DRV_API(cuTexRefSetMipmapFilterMode, (struct ws_texref * t, int mode))
{
    NEED_REF(t);
    if (mode < 0 || mode > 1)
        return CUDA_INVALID_VALUE;
    t->texture.mipmapFilterMode = mode;
    return update(t, false);
}
WS_DRV_API(cuTexRefSetMipmapLevelBias, (struct ws_texref * t, float bias))
{
    NEED_REF(t);
    t->texture.mipmapLevelBias = bias;
    return update(t, false);
}
WS_DRV_API(cuTexRefSetMipmapLevelClamp, (struct ws_texref * t, float low, float high))
{
    NEED_REF(t);
    t->texture.minMipmapLevelClamp = low;
    t->texture.maxMipmapLevelClamp = high;
    return update(t, false);
}
WS_DRV_API(cuTexRefSetMaxAnisotropy, (struct ws_texref * t, unsigned n))
{
    NEED_REF(t);
    t->texture.maxAnisotropy = n;
    return update(t, false);
}
WS_DRV_API(cuTexRefSetBorderColor, (struct ws_texref * t, const float *color))
{
    NEED_REF(t);
    if (!color)
        return CUDA_INVALID_VALUE;
    memcpy(t->texture.borderColor, color, sizeof(t->texture.borderColor));
    return update(t, false);
}
WS_DRV_API(cuTexRefSetFlags, (struct ws_texref * t, unsigned flags))
{
    NEED_REF(t);
    if (flags & ~(unsigned)WS_TRSF_ALL)
        return CUDA_INVALID_VALUE;
    t->texture.flags = flags;
    return update(t, false);
}

/* ---- questions ---- */

#define NEED_ANSWER(ret, t)                                                                        \
    NEED_REF(t);                                                                                   \
    if (!(ret))                                                                                    \
    return CUDA_INVALID_VALUE

WS_DRV_API(cuTexRefGetAddress_v2, (uint64_t * ret, struct ws_texref *t))
{
    NEED_ANSWER(ret, t);
    if (!t->bound ||
        (t->resource.resType != WS_RES_LINEAR && t->resource.resType != WS_RES_PITCH2D))
        return CUDA_INVALID_VALUE;
    *ret = t->resource.res.linear.devPtr;
    return CUDA_OK;
}
WS_DRV_API(cuTexRefGetArray, (void **ret, struct ws_texref *t))
{
    NEED_ANSWER(ret, t);
    if (!t->bound || t->resource.resType != WS_RES_ARRAY)
        return CUDA_INVALID_VALUE;
    *ret = t->resource.res.array;
    return CUDA_OK;
}
WS_DRV_API(cuTexRefGetMipmappedArray, (void **ret, struct ws_texref *t))
{
    NEED_ANSWER(ret, t);
    if (!t->bound || t->resource.resType != WS_RES_MIPMAP)
        return CUDA_INVALID_VALUE;
    *ret = t->resource.res.mipmap;
    return CUDA_OK;
}
WS_DRV_API(cuTexRefGetAddressMode, (int *ret, struct ws_texref *t, int dim))
{
    NEED_ANSWER(ret, t);
    if (dim < 0 || dim > 2)
        return CUDA_INVALID_VALUE;
    *ret = t->texture.addressMode[dim];
    return CUDA_OK;
}
WS_DRV_API(cuTexRefGetFilterMode, (int *ret, struct ws_texref *t))
{
    NEED_ANSWER(ret, t);
    *ret = t->texture.filterMode;
    return CUDA_OK;
}
WS_DRV_API(cuTexRefGetFormat, (int *ret_format, int *ret_channels, struct ws_texref *t))
{
    NEED_REF(t);
    if (ret_format)
        *ret_format = t->format;
    if (ret_channels)
        *ret_channels = (int)t->n_channels;
    return CUDA_OK;
}
WS_DRV_API(cuTexRefGetMipmapFilterMode, (int *ret, struct ws_texref *t))
{
    NEED_ANSWER(ret, t);
    *ret = t->texture.mipmapFilterMode;
    return CUDA_OK;
}
WS_DRV_API(cuTexRefGetMipmapLevelBias, (float *ret, struct ws_texref *t))
{
    NEED_ANSWER(ret, t);
    *ret = t->texture.mipmapLevelBias;
    return CUDA_OK;
}
WS_DRV_API(cuTexRefGetMipmapLevelClamp, (float *low, float *high, struct ws_texref *t))
{
    NEED_REF(t);
    if (low)
        *low = t->texture.minMipmapLevelClamp;
    if (high)
        *high = t->texture.maxMipmapLevelClamp;
    return CUDA_OK;
}
WS_DRV_API(cuTexRefGetMaxAnisotropy, (int *ret, struct ws_texref *t))
{
    NEED_ANSWER(ret, t);
    *ret = (int)t->texture.maxAnisotropy;
    return CUDA_OK;
}
WS_DRV_API(cuTexRefGetBorderColor, (float *ret, struct ws_texref *t))
{
    NEED_ANSWER(ret, t);
    memcpy(ret, t->texture.borderColor, sizeof(t->texture.borderColor));
    return CUDA_OK;
}
WS_DRV_API(cuTexRefGetFlags, (unsigned *ret, struct ws_texref *t))
{
    NEED_ANSWER(ret, t);
    *ret = t->texture.flags;
    return CUDA_OK;
}

/* The kernel finds its references by itself; this only checks. */
WS_DRV_API(cuParamSetTexRef, (struct ws_fn * f, int unit, struct ws_texref *t))
{
    NEED_REF(t);
    if (!ws_fn_valid(f))
        return CUDA_INVALID_HANDLE;
    return unit == PARAM_TR_DEFAULT ? CUDA_OK : CUDA_INVALID_VALUE;
}

/* ---- surface references ---- */

#define NEED_SURFACE(t)                                                                            \
    WS_DRV_ENTER(c_);                                                                              \
    (void)c_;                                                                                      \
    if (!ws_slab_has(&refs, t) || !(t)->surface)                                                   \
    return CUDA_INVALID_VALUE

WS_DRV_API(cuSurfRefSetArray, (struct ws_texref * t, struct ws_array *a, unsigned flags))
{
    NEED_SURFACE(t);
    if (flags || !ws_array_valid(a))
        return CUDA_INVALID_VALUE;
    return bind(t, &(struct cu_resource_desc){.resType = WS_RES_ARRAY, .res.array = a});
}
WS_DRV_API(cuSurfRefGetArray, (void **ret, struct ws_texref *t))
{
    NEED_SURFACE(t);
    if (!ret || !t->bound)
        return CUDA_INVALID_VALUE;
    *ret = t->resource.res.array;
    return CUDA_OK;
}
