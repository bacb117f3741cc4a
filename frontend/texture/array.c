// SPDX-License-Identifier: Apache-2.0
/* Arrays. A mipmapped array is one allocation with its levels one after the other, each of them a
 * struct ws_array.
 *
 * Rows have no gaps between them. So a copy of a whole array is a copy of one range, and so are the
 * copies that CUDA defines by a number of bytes that run from row to row (cudaMemcpyToArray,
 * cuMemcpyHtoA). */
#include "frontend/texture/array.h"

#include "frontend/context/attributes.h"
#include "frontend/errors.h"
#include "frontend/texture/texture.h"
#include "frontend/stream/work.h"

enum { LEVEL_ALIGNMENT = 512 };
enum {
    KNOWN_FLAGS = WS_ARRAY_LAYERED | WS_ARRAY_SURFACE | WS_ARRAY_CUBEMAP | WS_ARRAY_GATHER |
                  WS_ARRAY_COLOR_ATTACHMENT,
    OTHER_FLAGS = WS_ARRAY_DEPTH_TEXTURE | WS_ARRAY_SPARSE | WS_ARRAY_DEFERRED | WS_ARRAY_VIDEO,
};
static struct ws_slab arrays = WS_SLAB(struct ws_array);
static struct ws_slab mipmaps = WS_SLAB(struct ws_mipmap);

static uint64_t limit(int device, int attribute)
{
    int v = 0;
    ws_device_attribute(ws_session_device(device), attribute, &v);
    return (uint64_t)v;
}

/* By attributes of the device; @depth 0: no such dimension. */
static bool within(int device, const struct ws_array_desc *d, int width, int height, int depth)
{
    return d->width <= limit(device, width) && (!height || d->height <= limit(device, height)) &&
           (!depth || d->depth <= limit(device, depth));
}

static bool cube_fits(int device, const struct ws_array_desc *d)
{
    bool layered = d->flags & WS_ARRAY_LAYERED, surface = d->flags & WS_ARRAY_SURFACE;
    if (d->width != d->height || !d->depth || d->depth % 6 || (!layered && d->depth != 6))
        return false;
    if (!layered)
        return d->width <= limit(device, surface ? 66 : 52);
    return within(device, d, surface ? 67 : 53, 0, surface ? 68 : 54);
}

/* CUDA's table of extents (cudaMalloc3DArray, cuArray3DCreate), and which shape it is. */
static bool extents_fit(int device, const struct ws_array_desc *d, bool mipmapped,
                        enum ws_texture_shape *ret)
{
    bool surface = d->flags & WS_ARRAY_SURFACE;
    if (!d->width)
        return false;
    if (d->flags & WS_ARRAY_CUBEMAP) {
        *ret = WS_TEX_CUBE;
        return cube_fits(device, d) && !(d->flags & WS_ARRAY_GATHER);
    }
    *ret = d->height ? WS_TEX_2D : WS_TEX_1D;
    if (d->flags & WS_ARRAY_GATHER &&
        (*ret != WS_TEX_2D || d->depth || !within(device, d, 45, 46, 0)))
        return false;
    if (d->flags & WS_ARRAY_LAYERED) {
        if (!d->depth)
            return false;
        return d->height
                   ? within(device, d, 27, 28, 29) && (!surface || within(device, d, 63, 64, 65))
                   : within(device, d, 42, 0, 43) && (!surface || within(device, d, 61, 0, 62));
    }
    if (d->depth) {
        *ret = WS_TEX_3D;
        return d->height && (within(device, d, 24, 25, 26) || within(device, d, 47, 48, 49)) &&
               (!surface || within(device, d, 58, 59, 60));
    }
    if (d->height)
        return within(device, d, mipmapped ? 73 : 22, mipmapped ? 74 : 23, 0) &&
               (!surface || within(device, d, 56, 57, 0));
    return within(device, d, mipmapped ? 77 : 21, 0, 0) &&
           (!surface || within(device, d, 55, 0, 0));
}

static int check(int device, const struct ws_array_desc *d, bool mipmapped,
                 enum ws_texture_shape *ret)
{
    if (d->flags & ~(unsigned)(KNOWN_FLAGS | OTHER_FLAGS))
        return CUDA_INVALID_VALUE;
    if (d->flags & OTHER_FLAGS) {
        ws_session_unsupported("sparse, deferred, depth and video arrays");
        return CUDA_NOT_SUPPORTED;
    }
    return extents_fit(device, d, mipmapped, ret) ? CUDA_OK : CUDA_INVALID_VALUE;
}

/* The memory of an array of these extents; no address yet. The limits keep it far below 2^64. */
static struct ws_texture_level layout(const struct ws_array_desc *d)
{
    struct ws_texture_level l = {.width = (uint32_t)d->width,
                                 .height = (uint32_t)WS_MAX(d->height, UINT64_C(1)),
                                 .depth = (uint32_t)WS_MAX(d->depth, UINT64_C(1))};
    l.row_bytes = d->width * d->texel.bytes;
    l.slice_bytes = l.row_bytes * l.height;
    return l;
}

uint64_t ws_array_bytes(const struct ws_array *a)
{
    return a->memory.slice_bytes * a->memory.depth;
}

static struct ws_array *array_object(struct ws_cuda_context *c, const struct ws_array_desc *d,
                                     enum ws_texture_shape shape)
{
    struct ws_array *a = ws_slab_new(&arrays);
    if (!a)
        return NULL;
    a->ctx = c;
    a->device = c->device;
    a->shape = shape;
    a->desc = *d;
    a->memory = layout(d);
    return a;
}

int ws_array_new(struct ws_cuda_context *c, const struct ws_array_desc *d, struct ws_array **ret)
{
    enum ws_texture_shape shape;
    int code = check(c->device, d, false, &shape);
    if (!code)
        code = ws_work_unsafe();
    if (code)
        return code;
    struct ws_array *a = array_object(c, d, shape);
    if (!a)
        return CUDA_OUT_OF_MEMORY;
    ws_err e = ws_session_mem_alloc(c->device, ws_array_bytes(a), &a->memory.address);
    if (e) {
        ws_slab_free(&arrays, a);
        return ws_drv_error(e);
    }
    *ret = a;
    return CUDA_OK;
}

static uint64_t halved(uint64_t n, unsigned level)
{
    return n ? WS_MAX(n >> level, UINT64_C(1)) : 0;
}

static unsigned levels_of(const struct ws_array_desc *d)
{
    uint64_t n = WS_MAX(d->width, d->height);
    unsigned levels = 1;
    if (!(d->flags & (WS_ARRAY_LAYERED | WS_ARRAY_CUBEMAP)))
        n = WS_MAX(n, d->depth);
    while (n >>= 1)
        levels++;
    return WS_MIN(levels, (unsigned)WS_TEXTURE_LEVELS);
}

static void mipmap_drop(struct ws_mipmap *m)
{
    for (unsigned i = 0; i < m->n_levels; i++)
        ws_slab_free(&arrays, m->level[i]);
    ws_slab_free(&mipmaps, m);
}

int ws_mipmap_new(struct ws_cuda_context *c, const struct ws_array_desc *d, unsigned n_levels,
                  struct ws_mipmap **ret)
{
    enum ws_texture_shape shape;
    int code = check(c->device, d, true, &shape);
    if (!code)
        code = ws_work_unsafe();
    if (code)
        return code;
    struct ws_mipmap *m = ws_slab_new(&mipmaps);
    if (!m)
        return CUDA_OUT_OF_MEMORY;
    m->ctx = c;
    m->device = c->device;
    n_levels = WS_MIN(WS_MAX(n_levels, 1u), levels_of(d));
    for (; m->n_levels < n_levels; m->n_levels++) {
        struct ws_array_desc level = *d;
        level.width = halved(d->width, m->n_levels);
        level.height = halved(d->height, m->n_levels);
        if (shape == WS_TEX_3D)
            level.depth = halved(d->depth, m->n_levels);
        struct ws_array *a = m->level[m->n_levels] = array_object(c, &level, shape);
        if (!a) {
            mipmap_drop(m);
            return CUDA_OUT_OF_MEMORY;
        }
        a->mipmap = m;
        a->memory.address = m->bytes; /* made an address below */
        m->bytes += WS_ALIGN_UP(ws_array_bytes(a), (uint64_t)LEVEL_ALIGNMENT);
    }
    ws_err e = ws_session_mem_alloc(c->device, m->bytes, &m->address);
    if (e) {
        mipmap_drop(m);
        return ws_drv_error(e);
    }
    for (unsigned i = 0; i < n_levels; i++)
        m->level[i]->memory.address += m->address;
    *ret = m;
    return CUDA_OK;
}

bool ws_array_valid(const struct ws_array *a)
{
    return ws_slab_has(&arrays, a);
}
bool ws_mipmap_valid(const struct ws_mipmap *m)
{
    return ws_slab_has(&mipmaps, m);
}

static int array_release(struct ws_array *a)
{
    uint64_t address = a->memory.address;
    ws_slab_free(&arrays, a);
    return ws_drv_error(ws_session_mem_free(address));
}

static int mipmap_release(struct ws_mipmap *m)
{
    uint64_t address = m->address;
    mipmap_drop(m);
    return ws_drv_error(ws_session_mem_free(address));
}

int ws_array_free(struct ws_array *a)
{
    if (a->mipmap)
        return CUDA_INVALID_VALUE;
    int code = ws_work_unsafe();
    return code ? code : array_release(a);
}

int ws_mipmap_free(struct ws_mipmap *m)
{
    int code = ws_work_unsafe();
    return code ? code : mipmap_release(m);
}

bool ws_array_side(const struct ws_array *a, uint64_t x_bytes, uint64_t y, uint64_t z,
                   const struct ws_copy_box *box, struct ws_copy_side *ret)
{
    const struct ws_texture_level *m = &a->memory;
    uint64_t row = (uint64_t)m->width * a->desc.texel.bytes;
    if (x_bytes > row || box->width_bytes > row - x_bytes || x_bytes % a->desc.texel.bytes ||
        y > m->height || box->height > m->height - y || z > m->depth || box->depth > m->depth - z)
        return false;
    *ret = (struct ws_copy_side){m->address + z * m->slice_bytes + y * m->row_bytes + x_bytes,
                                 m->row_bytes, m->slice_bytes};
    return true;
}

uint64_t ws_array_stretch(const struct ws_array *a, uint64_t offset, uint64_t bytes)
{
    uint64_t all = ws_array_bytes(a);
    return offset <= all && bytes <= all - offset ? a->memory.address + offset : 0;
}

struct array_owner {
    const struct ws_cuda_context *ctx;
    int device;
    bool gone;
};

static bool is_theirs(const struct ws_cuda_context *ctx, int device, const struct array_owner *w)
{
    return w->ctx ? ctx == w->ctx : device == w->device;
}

static void drop_mipmap(void *object, void *arg)
{
    struct ws_mipmap *m = object;
    const struct array_owner *w = arg;
    if (!is_theirs(m->ctx, m->device, w))
        return;
    if (w->gone)
        mipmap_drop(m);
    else
        mipmap_release(m);
}

static void drop_array(void *object, void *arg)
{
    struct ws_array *a = object;
    const struct array_owner *w = arg;
    if (a->mipmap || !is_theirs(a->ctx, a->device, w))
        return;
    if (w->gone)
        ws_slab_free(&arrays, a);
    else
        array_release(a);
}

void ws_array_drop(const struct ws_cuda_context *c, int device, bool gone)
{
    struct array_owner w = {c, device, gone};
    ws_texture_drop(c, device, gone);
    ws_slab_each(&mipmaps, drop_mipmap, &w);
    ws_slab_each(&arrays, drop_array, &w);
}
