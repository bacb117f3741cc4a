// SPDX-License-Identifier: Apache-2.0
/* From CUDA's descriptions of a resource, a texture and a view to one header; and the objects that
 * have a header.
 *
 * The resource and the view say which memory is read; the texture description says how. The
 * driver's descriptions are kept: the runtime's say the same, and runtime/texture.c translates
 * them. */
#include "frontend/texture/texture.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/table.h"
#include "frontend/context/attributes.h"
#include "frontend/errors.h"

enum { ADDRESS_MODES = 4, MAX_ANISOTROPY = 16, ALIGNMENT = 512, PITCH_ALIGNMENT = 32 };

static uint64_t limit(int device, int attribute)
{
    int v = 0;
    ws_device_attribute(ws_session_device(device), attribute, &v);
    return (uint64_t)v;
}

/* ---- resources ---- */

/* What the header is made from. */
struct source {
    struct ws_texel texel;
    const struct ws_array *levels[WS_TEXTURE_LEVELS]; /* of arrays */
    unsigned n_levels;
};

static bool memory_known(uint64_t address)
{
    struct ws_mem_info m;
    ws_session_mem_find(address, &m);
    return m.kind != WS_MEM_NONE;
}

static int linear(int device, const struct cu_resource_desc *r, struct ws_texel *texel,
                  struct ws_texture *ret)
{
    uint64_t bytes = r->res.linear.sizeInBytes, address = r->res.linear.devPtr;
    struct ws_mem_info m;
    int code = ws_texel_of_format(r->res.linear.format, r->res.linear.numChannels, texel);
    if (code)
        return code;
    if (!bytes || address % ALIGNMENT ||
        bytes / texel->bytes > limit(device, WS_ATTR_MAXIMUM_TEXTURE1D_LINEAR_WIDTH))
        return CUDA_INVALID_VALUE;
    ws_session_mem_find(address, &m);
    if (m.kind == WS_MEM_NONE)
        return CUDA_INVALID_VALUE;
    /* CUDA doesn't look how long the memory is: what lies behind its end reads as what lies behind
     * the texture's. */
    bytes = WS_MIN(bytes, m.bytes - (address - m.base));
    ret->shape = WS_TEX_LINEAR;
    ret->level[0] = (struct ws_texture_level){.address = address,
                                              .row_bytes = bytes,
                                              .slice_bytes = bytes,
                                              .width = (uint32_t)(bytes / texel->bytes),
                                              .height = 1,
                                              .depth = 1};
    return CUDA_OK;
}

static int pitched(int device, const struct cu_resource_desc *r, struct ws_texel *texel,
                   struct ws_texture *ret)
{
    uint64_t width = r->res.pitch2D.width, height = r->res.pitch2D.height,
             pitch = r->res.pitch2D.pitchInBytes, address = r->res.pitch2D.devPtr;
    int code = ws_texel_of_format(r->res.pitch2D.format, r->res.pitch2D.numChannels, texel);
    if (code)
        return code;
    if (!width || !height || width > limit(device, WS_ATTR_MAXIMUM_TEXTURE2D_LINEAR_WIDTH) ||
        height > limit(device, WS_ATTR_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT) ||
        pitch > limit(device, WS_ATTR_MAXIMUM_TEXTURE2D_LINEAR_PITCH) || pitch % PITCH_ALIGNMENT ||
        pitch < width * texel->bytes || address % ALIGNMENT || !memory_known(address))
        return CUDA_INVALID_VALUE;
    ret->shape = WS_TEX_2D;
    ret->level[0] = (struct ws_texture_level){.address = address,
                                              .row_bytes = pitch,
                                              .slice_bytes = pitch * height,
                                              .width = (uint32_t)width,
                                              .height = (uint32_t)height,
                                              .depth = 1};
    return CUDA_OK;
}

/* The memory of an array or of the levels of a mipmapped array. */
static int of_arrays(int device, const struct cu_resource_desc *r, struct source *s)
{
    if (r->resType == WS_RES_ARRAY) {
        const struct ws_array *a = r->res.array;
        if (!ws_array_valid(a))
            return CUDA_INVALID_HANDLE;
        s->levels[0] = a;
        s->n_levels = 1;
    } else {
        const struct ws_mipmap *m = r->res.mipmap;
        if (!ws_mipmap_valid(m))
            return CUDA_INVALID_HANDLE;
        for (; s->n_levels < m->n_levels; s->n_levels++)
            s->levels[s->n_levels] = m->level[s->n_levels];
    }
    s->texel = s->levels[0]->desc.texel;
    return s->levels[0]->device == device ? CUDA_OK : CUDA_INVALID_VALUE;
}

/* CUDA's rules for views of arrays: the same extents, texels of the same size, levels and layers
 * that there are. */
static int apply_view(const struct cuda_view_desc *v, struct source *s, uint32_t *ret_first_layer,
                      uint32_t *ret_layers)
{
    const struct ws_array_desc *d = &s->levels[0]->desc;
    struct ws_texel texel = d->texel;
    bool layered = d->flags & WS_ARRAY_LAYERED;
    int code = v->format ? ws_texel_of_view(v->format, &texel) : CUDA_OK;
    if (code)
        return code;
    if (texel.bytes != d->texel.bytes || v->width != d->width || v->height != d->height ||
        v->depth != d->depth || v->firstMipmapLevel > v->lastMipmapLevel ||
        v->lastMipmapLevel >= s->n_levels)
        return CUDA_INVALID_VALUE;
    if (!layered && (v->firstLayer || v->lastLayer))
        return CUDA_INVALID_VALUE;
    if (layered) {
        uint32_t n = v->lastLayer - v->firstLayer + 1;
        if (v->firstLayer > v->lastLayer || v->lastLayer >= d->depth ||
            (d->flags & WS_ARRAY_CUBEMAP && n % 6))
            return CUDA_INVALID_VALUE;
        *ret_first_layer = v->firstLayer;
        *ret_layers = n;
    }
    s->texel = texel;
    s->n_levels = v->lastMipmapLevel - v->firstMipmapLevel + 1;
    memmove(s->levels, s->levels + v->firstMipmapLevel, s->n_levels * sizeof(s->levels[0]));
    return CUDA_OK;
}

static void write_levels(const struct source *s, uint32_t first_layer, uint32_t n_layers,
                         struct ws_texture *ret)
{
    const struct ws_array *a = s->levels[0];
    ret->shape = (uint8_t)a->shape;
    ret->n_levels = (uint8_t)s->n_levels;
    if (a->desc.flags & WS_ARRAY_LAYERED)
        ret->flags |= WS_TEX_LAYERED;
    for (unsigned i = 0; i < s->n_levels; i++) {
        ret->level[i] = s->levels[i]->memory;
        ret->level[i].address += first_layer * ret->level[i].slice_bytes;
        if (n_layers)
            ret->level[i].depth = n_layers;
    }
}

/* ---- how it is read ---- */

static bool modes_known(const struct cu_texture_desc *t)
{
    for (int i = 0; i < 3; i++)
        if ((unsigned)t->addressMode[i] >= ADDRESS_MODES)
            return false;
    return (unsigned)t->filterMode <= 1 && (unsigned)t->mipmapFilterMode <= 1 &&
           !(t->flags & ~(unsigned)WS_TRSF_ALL);
}

static int sampling(const struct cu_texture_desc *t, const struct ws_texel *texel,
                    struct ws_texture *ret)
{
    bool is_float = texel->format >= WS_TEX_F16, is_linear = ret->shape == WS_TEX_LINEAR;
    bool normalized = t->flags & WS_TRSF_NORMALIZED_COORDINATES && !is_linear;
    bool narrow = !is_float && texel->format != WS_TEX_U32 && texel->format != WS_TEX_S32;
    bool promoted = narrow && (texel->normalized || !(t->flags & WS_TRSF_READ_AS_INTEGER));
    if (!modes_known(t))
        return CUDA_INVALID_VALUE;
    if (t->flags & WS_TRSF_SEAMLESS_CUBEMAP && ret->shape != WS_TEX_CUBE)
        return CUDA_INVALID_VALUE;
    if (!is_linear && (t->filterMode || (ret->n_levels > 1 && t->mipmapFilterMode)) && !is_float &&
        !promoted)
        return CUDA_INVALID_FILTER_SETTING;
    for (int i = 0; i < 3; i++) {
        int m = t->addressMode[i]; /* wrapping and mirroring need normalised coordinates */
        if (!normalized && (m == WS_TEX_WRAP || m == WS_TEX_MIRROR))
            m = WS_TEX_CLAMP;
        if (t->flags & WS_TRSF_SEAMLESS_CUBEMAP)
            m = WS_TEX_CLAMP;
        ret->address_mode[i] = (uint8_t)m;
    }
    ret->flags |=
        (normalized ? WS_TEX_NORMALIZED_COORDS : 0) | (promoted ? WS_TEX_NORMALIZED_FLOAT : 0) |
        (t->filterMode && !is_linear ? WS_TEX_FILTER_LINEAR : 0) |
        (t->mipmapFilterMode ? WS_TEX_MIPMAP_LINEAR : 0) |
        (t->flags & WS_TRSF_SRGB && promoted && texel->format == WS_TEX_U8 ? WS_TEX_SRGB : 0) |
        (t->flags & WS_TRSF_SEAMLESS_CUBEMAP ? WS_TEX_SEAMLESS_CUBE : 0);
    ret->max_anisotropy = (uint8_t)WS_MIN(WS_MAX(t->maxAnisotropy, 1u), (unsigned)MAX_ANISOTROPY);
    memcpy(ret->border, t->borderColor, sizeof(ret->border));
    ret->level_bias = t->mipmapLevelBias;
    ret->level_min = t->minMipmapLevelClamp;
    ret->level_max = t->maxMipmapLevelClamp;
    return CUDA_OK;
}

int ws_texture_describe(int device, const struct cu_resource_desc *r,
                        const struct cu_texture_desc *t, const struct cuda_view_desc *view,
                        struct ws_texture *ret)
{
    struct source s = {0};
    bool arrays = r->resType == WS_RES_ARRAY || r->resType == WS_RES_MIPMAP;
    uint32_t first_layer = 0, n_layers = 0;
    int code;
    memset(ret, 0, sizeof(*ret));
    ret->magic = WS_TEXTURE_MAGIC;
    ret->n_levels = 1;
    if (r->flags || (unsigned)r->resType > WS_RES_PITCH2D || (view && !arrays))
        return CUDA_INVALID_VALUE;
    if (r->resType == WS_RES_MIPMAP && !(t->flags & WS_TRSF_NORMALIZED_COORDINATES))
        return CUDA_INVALID_VALUE;
    if (r->resType == WS_RES_LINEAR)
        code = linear(device, r, &s.texel, ret);
    else if (r->resType == WS_RES_PITCH2D)
        code = pitched(device, r, &s.texel, ret);
    else
        code = of_arrays(device, r, &s);
    if (!code && view)
        code = apply_view(view, &s, &first_layer, &n_layers);
    if (code)
        return code;
    if (arrays)
        write_levels(&s, first_layer, n_layers, ret);
    ret->format = s.texel.format;
    ret->n_channels = s.texel.n_channels;
    return sampling(t, &s.texel, ret);
}

int ws_surface_describe(int device, const struct cu_resource_desc *r, struct ws_texture *ret)
{
    struct source s = {0};
    memset(ret, 0, sizeof(*ret));
    if (r->flags || r->resType != WS_RES_ARRAY)
        return CUDA_INVALID_VALUE;
    int code = of_arrays(device, r, &s);
    if (code)
        return code;
    if (!(s.levels[0]->desc.flags & WS_ARRAY_SURFACE))
        return CUDA_INVALID_VALUE;
    ret->magic = WS_SURFACE_MAGIC;
    ret->format = s.texel.format;
    ret->n_channels = s.texel.n_channels;
    write_levels(&s, 0, 0, ret);
    return CUDA_OK;
}

/* ---- objects ---- */

struct texture_entry {
    struct ws_texobj o;
    UT_hash_handle hh; /* by address */
};
static struct texture_entry *objects;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int ws_texobj_new(struct ws_cuda_context *c, bool surface, const struct cu_resource_desc *r,
                  const struct cu_texture_desc *t, const struct cuda_view_desc *view, uint64_t *ret)
{
    struct ws_texture header;
    int code = surface ? ws_surface_describe(c->device, r, &header)
                       : ws_texture_describe(c->device, r, t, view, &header);
    if (code)
        return code;
    struct texture_entry *n = ws_alloc(sizeof(*n));
    if (!n)
        return CUDA_OUT_OF_MEMORY;
    n->o = (struct ws_texobj){.ctx = c,
                              .device = c->device,
                              .surface = surface,
                              .has_view = view != NULL,
                              .resource = *r};
    if (t)
        n->o.texture = *t;
    if (view)
        n->o.view = *view;
    code = ws_header_new(c->device, &n->o.address);
    if (!code) {
        code = ws_header_write(c->device, n->o.address, &header, sizeof(header));
        if (code)
            ws_header_free(c->device, n->o.address);
    }
    if (code) {
        free(n);
        return code;
    }
    pthread_mutex_lock(&lock);
    HASH_ADD(hh, objects, o.address, sizeof(n->o.address), n);
    pthread_mutex_unlock(&lock);
    *ret = n->o.address;
    return CUDA_OK;
}

int ws_texobj_free(uint64_t address, bool surface)
{
    struct texture_entry *o;
    pthread_mutex_lock(&lock);
    HASH_FIND(hh, objects, &address, sizeof(address), o);
    if (o && o->o.surface == surface)
        HASH_DELETE(hh, objects, o);
    else
        o = NULL;
    pthread_mutex_unlock(&lock);
    if (!o)
        return CUDA_INVALID_VALUE;
    ws_header_free(o->o.device, address);
    free(o);
    return CUDA_OK;
}

int ws_texobj_get(uint64_t address, bool surface, struct ws_texobj *ret)
{
    struct texture_entry *o;
    pthread_mutex_lock(&lock);
    HASH_FIND(hh, objects, &address, sizeof(address), o);
    bool found = o && o->o.surface == surface;
    if (found)
        *ret = o->o;
    pthread_mutex_unlock(&lock);
    return found ? CUDA_OK : CUDA_INVALID_VALUE;
}

void ws_texture_drop(const struct ws_cuda_context *c, int device, bool gone)
{
    struct texture_entry *o, *next;
    pthread_mutex_lock(&lock);
    HASH_ITER (hh, objects, o, next) {
        if (c ? o->o.ctx != c : o->o.device != device)
            continue;
        HASH_DELETE(hh, objects, o);
        if (!gone)
            ws_header_free(o->o.device, o->o.address);
        free(o);
    }
    pthread_mutex_unlock(&lock);
    ws_texref_drop(c, device);
    if (gone)
        ws_header_reset_device(device);
}
