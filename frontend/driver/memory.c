// SPDX-License-Identifier: Apache-2.0
/* Chapters "Memory Management" (linear memory; arrays are in array.c) and "Unified Addressing". */
#include <string.h>

#include "frontend/texture/array.h"
#include "frontend/context/attributes.h"
#include "frontend/memory/copy.h"
#include "frontend/memory/copy_params.h"
#include "frontend/facade.h"
#include "frontend/memory/hostmem.h"
#include "frontend/memory/pool.h"
#include "frontend/session/findings.h"
#include "frontend/stream/work.h"

/* ---- allocation ---- */

static int alloc(struct ws_cuda_context *c, uint64_t *ret, size_t bytes)
{
    if (!ret || !bytes)
        return CUDA_INVALID_VALUE;
    int code = ws_work_unsafe();
    if (code)
        return code;
    ws_err e = ws_session_mem_alloc(c->device, bytes, ret);
    if (e == WS__ERROR__OUT_OF_MEMORY && ws_pool_give_back(c->device))
        e = ws_session_mem_alloc(c->device, bytes, ret);
    if (!e) {
        ws_ctx_own(c, WS_OWNED_MEMORY, *ret);
        ws_findings_allocated(*ret, bytes);
    }
    return ws_drv_error(e);
}

static int release(uint64_t address)
{
    if (!address)
        return CUDA_OK;
    int code = ws_work_unsafe();
    if (!code && (code = ws_block_free_outside(address)) < 0 &&
        (code = ws_pool_free_now(address)) < 0)
        code = ws_hostmem_free(WS_HOSTMEM_MANAGED, (void *)(uintptr_t)address);
    if (code != CUDA_INVALID_VALUE)
        return code;
    ws_ctx_disown(WS_OWNED_MEMORY, address);
    return ws_drv_error(ws_session_mem_free(address));
}

WS_DRV_API(cuMemAlloc_v2, (uint64_t * ret, size_t bytes))
{
    WS_DRV_ENTER(c);
    return alloc(c, ret, bytes);
}

WS_DRV_API(cuMemAllocPitch_v2,
           (uint64_t * ret, size_t *pitch, size_t width, size_t height, unsigned element))
{
    WS_DRV_ENTER(c);
    if (!pitch || !width || !height || width > INT32_MAX ||
        (element != 4 && element != 8 && element != 16))
        return CUDA_INVALID_VALUE;
    size_t p = WS_ALIGN_UP(width, (size_t)WS_PITCH_ALIGNMENT), bytes;
    if (__builtin_mul_overflow(p, height, &bytes))
        return CUDA_OUT_OF_MEMORY;
    int code = alloc(c, ret, bytes);
    if (!code)
        *pitch = p;
    return code;
}

WS_DRV_API(cuMemFree_v2, (uint64_t address))
{
    WS_DRV_ENTER(c);
    return release(address);
}

WS_DRV_API(cuMemGetInfo_v2, (size_t * ret_free, size_t *ret_total))
{
    uint64_t n_free, n_total;
    WS_DRV_ENTER(c);
    if (!ret_free || !ret_total)
        return CUDA_INVALID_VALUE;
    ws_err e = ws_session_mem_info(c->device, &n_free, &n_total);
    if (e)
        return ws_drv_error(e);
    *ret_free = n_free;
    *ret_total = n_total;
    return CUDA_OK;
}

WS_DRV_API(cuMemGetAddressRange_v2, (uint64_t * base, size_t *bytes, uint64_t address))
{
    struct ws_mem_info m;
    WS_DRV_ENTER(c);
    ws_session_mem_find(address, &m);
    if (m.kind == WS_MEM_NONE)
        return CUDA_INVALID_VALUE;
    if (base)
        *base = m.base;
    if (bytes)
        *bytes = m.bytes;
    return CUDA_OK;
}

/* ---- host memory ---- */

enum { HOSTALLOC_FLAGS = 7, HOSTREGISTER_FLAGS = 15 };

WS_DRV_API(cuMemHostAlloc, (void **ret, size_t bytes, unsigned flags))
{
    WS_DRV_ENTER(c);
    if (!ret || !bytes || flags & ~(unsigned)HOSTALLOC_FLAGS)
        return CUDA_INVALID_VALUE;
    int code = ws_work_unsafe();
    if (!code)
        code = ws_hostmem_alloc(WS_HOSTMEM_PINNED, c->device, bytes, flags, ret);
    if (!code)
        ws_ctx_own(c, WS_OWNED_HOST, (uintptr_t)*ret);
    return code;
}

WS_DRV_API(cuMemAllocHost_v2, (void **ret, size_t bytes))
{
    return cuMemHostAlloc(ret, bytes, 0);
}

WS_DRV_API(cuMemFreeHost, (void *p))
{
    WS_DRV_ENTER(c);
    ws_ctx_disown(WS_OWNED_HOST, (uintptr_t)p);
    return ws_hostmem_free(WS_HOSTMEM_PINNED, p);
}

WS_DRV_API(cuMemAllocManaged, (uint64_t * ret, size_t bytes, unsigned flags))
{
    enum { ATTACH_GLOBAL = 1, ATTACH_HOST = 2 };
    void *p;
    WS_DRV_ENTER(c);
    if (!ret || !bytes || (flags != ATTACH_GLOBAL && flags != ATTACH_HOST))
        return CUDA_INVALID_VALUE;
    if (!ws_session_maps_host()) {
        ws_session_unsupported("cuMemAllocManaged with a remote daemon");
        return CUDA_NOT_SUPPORTED;
    }
    int code = ws_hostmem_alloc(WS_HOSTMEM_MANAGED, c->device, bytes, flags, &p);
    if (code)
        return code;
    *ret = (uintptr_t)p;
    ws_findings_allocated(*ret, bytes);
    return CUDA_OK;
}

WS_DRV_API(cuMemHostRegister_v2, (void *p, size_t bytes, unsigned flags))
{
    enum { PORTABLE = 1, DEVICEMAP = 2 };
    WS_DRV_ENTER(c);
    if (!p || !bytes || flags & ~(unsigned)HOSTREGISTER_FLAGS)
        return CUDA_INVALID_VALUE;
    if (flags & ~(unsigned)(PORTABLE | DEVICEMAP)) {
        ws_session_unsupported("cuMemHostRegister with CU_MEMHOSTREGISTER_IOMEMORY or READ_ONLY");
        return CUDA_NOT_SUPPORTED;
    }
    return ws_hostmem_register(p, bytes, flags, c->device, flags & DEVICEMAP);
}
WS_DRV_ALIAS(cuMemHostRegister, cuMemHostRegister_v2)

WS_DRV_API(cuMemHostUnregister, (void *p))
{
    WS_DRV_ENTER(c);
    ws_err e = ws_session_device_sync(c->device);
    return e ? ws_drv_error(e) : ws_hostmem_unregister(p);
}

static int find_host(void *p, struct ws_hostmem *h)
{
    WS_DRV_ENTER(c);
    ws_hostmem_find((uintptr_t)p, h);
    return h->kind == WS_HOSTMEM_NONE ? CUDA_INVALID_VALUE : CUDA_OK;
}

WS_DRV_API(cuMemHostGetDevicePointer_v2, (uint64_t * ret, void *p, unsigned flags))
{
    struct ws_hostmem h;
    int code = find_host(p, &h);
    if (code || !ret || flags || !h.mapped)
        return code ? code : CUDA_INVALID_VALUE;
    *ret = (uintptr_t)p; /* unified addressing */
    return CUDA_OK;
}

WS_DRV_API(cuMemHostGetFlags, (unsigned *ret, void *p))
{
    struct ws_hostmem h;
    int code = find_host(p, &h);
    if (code || !ret)
        return code ? code : CUDA_INVALID_VALUE;
    *ret = h.flags;
    return CUDA_OK;
}

/* ---- copies ---- */

/* Body of a copy: @id is the stream's. */
#define COPY_STREAM(id, stream, per_thread)                                                        \
    WS_DRV_ENTER(c_);                                                                              \
    WS_DRV_STREAM(id, stream, per_thread, c_->device)
#define PTR(address) ((void *)(uintptr_t)(address))

#define WS_DRV_COPY_API(name, suffix, dst_t, src_t, dir)                                           \
    WS_DRV_STREAM_API(name, suffix, (dst_t dst, src_t src, size_t bytes), (dst, src, bytes))       \
    {                                                                                              \
        COPY_STREAM(id, NULL, per_thread);                                                         \
        return ws_drv_error(ws_work_copy(id, PTR(dst), PTR(src), bytes, dir, false));              \
    }
#define WS_DRV_COPY_ASYNC_API(name, suffix, dst_t, src_t, dir)                                     \
    WS_DRV_STREAM_API(name, suffix, (dst_t dst, src_t src, size_t bytes, void *stream),            \
                      (dst, src, bytes, stream))                                                   \
    {                                                                                              \
        COPY_STREAM(id, stream, per_thread);                                                       \
        return ws_drv_error(ws_work_copy(id, PTR(dst), PTR(src), bytes, dir, true));               \
    }
WS_DRV_COPY_API(cuMemcpyHtoD_v2, _ptds, uint64_t, const void *, WS_COPY_H2D)
WS_DRV_COPY_ASYNC_API(cuMemcpyHtoDAsync_v2, _ptsz, uint64_t, const void *, WS_COPY_H2D)
WS_DRV_COPY_API(cuMemcpyDtoH_v2, _ptds, void *, uint64_t, WS_COPY_D2H)
WS_DRV_COPY_ASYNC_API(cuMemcpyDtoHAsync_v2, _ptsz, void *, uint64_t, WS_COPY_D2H)
WS_DRV_COPY_API(cuMemcpyDtoD_v2, _ptds, uint64_t, uint64_t, WS_COPY_D2D)
WS_DRV_COPY_ASYNC_API(cuMemcpyDtoDAsync_v2, _ptsz, uint64_t, uint64_t, WS_COPY_D2D)

WS_DRV_STREAM_API(cuMemcpy, _ptds, (uint64_t dst, uint64_t src, size_t bytes), (dst, src, bytes))
{
    COPY_STREAM(id, NULL, per_thread);
    return ws_drv_error(ws_work_copy(id, PTR(dst), PTR(src), bytes, WS_COPY_AUTO, false));
}

WS_DRV_STREAM_API(cuMemcpyAsync, _ptsz, (uint64_t dst, uint64_t src, size_t bytes, void *stream),
                  (dst, src, bytes, stream))
{
    COPY_STREAM(id, stream, per_thread);
    return ws_drv_error(ws_work_copy(id, PTR(dst), PTR(src), bytes, WS_COPY_AUTO, true));
}

static int check_peers(const struct ws_cuda_context *a, const struct ws_cuda_context *b)
{
    return ws_ctx_valid(a) && ws_ctx_valid(b) ? CUDA_OK : CUDA_INVALID_CONTEXT;
}

WS_DRV_STREAM_API(cuMemcpyPeer, _ptds,
                  (uint64_t dst, struct ws_cuda_context *dst_ctx, uint64_t src,
                   struct ws_cuda_context *src_ctx, size_t bytes),
                  (dst, dst_ctx, src, src_ctx, bytes))
{
    COPY_STREAM(id, NULL, per_thread);
    int code = check_peers(dst_ctx, src_ctx);
    return code ? code
                : ws_drv_error(ws_work_copy(id, PTR(dst), PTR(src), bytes, WS_COPY_D2D, false));
}

WS_DRV_STREAM_API(cuMemcpyPeerAsync, _ptsz,
                  (uint64_t dst, struct ws_cuda_context *dst_ctx, uint64_t src,
                   struct ws_cuda_context *src_ctx, size_t bytes, void *stream),
                  (dst, dst_ctx, src, src_ctx, bytes, stream))
{
    COPY_STREAM(id, stream, per_thread);
    int code = check_peers(dst_ctx, src_ctx);
    return code ? code
                : ws_drv_error(ws_work_copy(id, PTR(dst), PTR(src), bytes, WS_COPY_D2D, true));
}

static int copy_3d(uint64_t stream, const struct cu_memcpy_3d *m, bool async)
{
    struct ws_copy_side dst, src;
    struct ws_copy_box box;
    enum ws_copy_dir dir;
    int code = ws_copy_sides_drv(m, &dst, &src, &box, &dir);
    if (code || !box.width_bytes || !box.height || !box.depth)
        return code;
    return ws_drv_error(ws_work_copy_box(stream, &dst, &src, &box, dir, async));
}

/* A pitch of 0 means rows without a gap. */
static int copy_2d(uint64_t stream, const struct cu_memcpy_2d *m, bool async)
{
    struct cu_memcpy_3d t = {
        .srcXInBytes = m->srcXInBytes,
        .srcY = m->srcY,
        .srcMemoryType = m->srcMemoryType,
        .srcHost = m->srcHost,
        .srcDevice = m->srcDevice,
        .srcArray = m->srcArray,
        .srcPitch = m->srcPitch ? m->srcPitch : m->WidthInBytes,
        .srcHeight = m->srcY + m->Height,
        .dstXInBytes = m->dstXInBytes,
        .dstY = m->dstY,
        .dstMemoryType = m->dstMemoryType,
        .dstHost = m->dstHost,
        .dstDevice = m->dstDevice,
        .dstArray = m->dstArray,
        .dstPitch = m->dstPitch ? m->dstPitch : m->WidthInBytes,
        .dstHeight = m->dstY + m->Height,
        .WidthInBytes = m->WidthInBytes,
        .Height = m->Height,
        .Depth = 1,
    };
    return copy_3d(stream, &t, async);
}

/* The contexts that the devices are found by say nothing more than the addresses do. */
static int copy_3d_peer(uint64_t stream, const struct cu_memcpy_3d *m, bool async)
{
    int code = check_peers(m->dstContext, m->srcContext);
    return code ? code : copy_3d(stream, m, async);
}

#define WS_DRV_BOX_API(name, suffix, type, fn, async)                                              \
    WS_DRV_STREAM_API(name, suffix, (const struct type *m), (m))                                   \
    {                                                                                              \
        COPY_STREAM(id, NULL, per_thread);                                                         \
        return m ? fn(id, m, async) : CUDA_INVALID_VALUE;                                          \
    }
#define WS_DRV_BOX_ASYNC_API(name, suffix, type, fn)                                               \
    WS_DRV_STREAM_API(name, suffix, (const struct type *m, void *stream), (m, stream))             \
    {                                                                                              \
        COPY_STREAM(id, stream, per_thread);                                                       \
        return m ? fn(id, m, true) : CUDA_INVALID_VALUE;                                           \
    }
WS_DRV_BOX_API(cuMemcpy2D_v2, _ptds, cu_memcpy_2d, copy_2d, false)
WS_DRV_BOX_API(cuMemcpy2DUnaligned_v2, _ptds, cu_memcpy_2d, copy_2d, false)
WS_DRV_BOX_ASYNC_API(cuMemcpy2DAsync_v2, _ptsz, cu_memcpy_2d, copy_2d)
WS_DRV_BOX_API(cuMemcpy3D_v2, _ptds, cu_memcpy_3d, copy_3d, false)
WS_DRV_BOX_ASYNC_API(cuMemcpy3DAsync_v2, _ptsz, cu_memcpy_3d, copy_3d)
WS_DRV_BOX_API(cuMemcpy3DPeer, _ptds, cu_memcpy_3d, copy_3d_peer, false)
WS_DRV_BOX_ASYNC_API(cuMemcpy3DPeerAsync, _ptsz, cu_memcpy_3d, copy_3d_peer)

/* ---- fills ---- */

static int fill(uint64_t stream, uint64_t dst, uint32_t value, uint32_t value_bytes, size_t n,
                size_t height, size_t pitch, bool async)
{
    size_t width;
    if (__builtin_mul_overflow(n, (size_t)value_bytes, &width) || dst % value_bytes ||
        (height > 1 && pitch < width))
        return CUDA_INVALID_VALUE;
    if (!width || !height)
        return CUDA_OK;
    return ws_drv_error(ws_work_fill(stream, dst, value, value_bytes, width, height, pitch, async));
}

#define WS_DRV_FILL_API(name, suffix, type)                                                        \
    WS_DRV_STREAM_API(name, suffix, (uint64_t dst, type value, size_t n), (dst, value, n))         \
    {                                                                                              \
        COPY_STREAM(id, NULL, per_thread);                                                         \
        return fill(id, dst, value, sizeof(type), n, 1, 0, false);                                 \
    }
#define WS_DRV_FILL_ASYNC_API(name, suffix, type)                                                  \
    WS_DRV_STREAM_API(name, suffix, (uint64_t dst, type value, size_t n, void *stream),            \
                      (dst, value, n, stream))                                                     \
    {                                                                                              \
        COPY_STREAM(id, stream, per_thread);                                                       \
        return fill(id, dst, value, sizeof(type), n, 1, 0, true);                                  \
    }
#define WS_DRV_FILL2_API(name, suffix, type)                                                       \
    WS_DRV_STREAM_API(name, suffix,                                                                \
                      (uint64_t dst, size_t pitch, type value, size_t width, size_t height),       \
                      (dst, pitch, value, width, height))                                          \
    {                                                                                              \
        COPY_STREAM(id, NULL, per_thread);                                                         \
        return fill(id, dst, value, sizeof(type), width, height, pitch, false);                    \
    }
#define WS_DRV_FILL2_ASYNC_API(name, suffix, type)                                                 \
    WS_DRV_STREAM_API(                                                                             \
        name, suffix,                                                                              \
        (uint64_t dst, size_t pitch, type value, size_t width, size_t height, void *stream),       \
        (dst, pitch, value, width, height, stream))                                                \
    {                                                                                              \
        COPY_STREAM(id, stream, per_thread);                                                       \
        return fill(id, dst, value, sizeof(type), width, height, pitch, true);                     \
    }
WS_DRV_FILL_API(cuMemsetD8_v2, _ptds, uint8_t)
WS_DRV_FILL_ASYNC_API(cuMemsetD8Async, _ptsz, uint8_t)
WS_DRV_FILL2_API(cuMemsetD2D8_v2, _ptds, uint8_t)
WS_DRV_FILL2_ASYNC_API(cuMemsetD2D8Async, _ptsz, uint8_t)
WS_DRV_FILL_API(cuMemsetD16_v2, _ptds, uint16_t)
WS_DRV_FILL_ASYNC_API(cuMemsetD16Async, _ptsz, uint16_t)
WS_DRV_FILL2_API(cuMemsetD2D16_v2, _ptds, uint16_t)
WS_DRV_FILL2_ASYNC_API(cuMemsetD2D16Async, _ptsz, uint16_t)
WS_DRV_FILL_API(cuMemsetD32_v2, _ptds, uint32_t)
WS_DRV_FILL_ASYNC_API(cuMemsetD32Async, _ptsz, uint32_t)
WS_DRV_FILL2_API(cuMemsetD2D32_v2, _ptds, uint32_t)
WS_DRV_FILL2_ASYNC_API(cuMemsetD2D32Async, _ptsz, uint32_t)

/* ---- what an address is ---- */

enum { /* CUpointer_attribute */
       PTR_CONTEXT = 1,
       PTR_MEMORY_TYPE = 2,
       PTR_DEVICE_POINTER = 3,
       PTR_HOST_POINTER = 4,
       PTR_BUFFER_ID = 7,
       PTR_IS_MANAGED = 8,
       PTR_DEVICE_ORDINAL = 9,
       PTR_IS_IPC_CAPABLE = 10,
       PTR_RANGE_START = 11,
       PTR_RANGE_SIZE = 12,
       PTR_MAPPED = 13,
       PTR_IS_RDMA_CAPABLE = 15,
       PTR_SYNC_MEMOPS = 6,
       PTR_MEMPOOL_HANDLE = 17,
};

static int pointer_attribute(void *ret, int attribute, uint64_t address)
{
    struct ws_mem_info m;
    struct ws_hostmem h;
    ws_session_mem_find(address, &m);
    ws_hostmem_find(address, &h);
    bool device = ws_mem_on_device(m.kind), host = h.kind != WS_HOSTMEM_NONE;
    if (!device && !host)
        return CUDA_INVALID_VALUE;
    int ordinal = device ? m.device : h.device;
    switch (attribute) {
    case PTR_CONTEXT:
        *(struct ws_cuda_context **)ret = ws_ctx_owner(device ? WS_OWNED_MEMORY : WS_OWNED_HOST,
                                                       device ? m.base : h.base, ordinal);
        return CUDA_OK;
    case PTR_MEMORY_TYPE: /* managed memory counts as the device's */
        *(unsigned *)ret =
            device || h.kind == WS_HOSTMEM_MANAGED ? WS_CU_MEMORY_DEVICE : WS_CU_MEMORY_HOST;
        return CUDA_OK;
    case PTR_DEVICE_POINTER:
        if (host && !h.mapped)
            return CUDA_INVALID_VALUE;
        *(uint64_t *)ret = address;
        return CUDA_OK;
    case PTR_HOST_POINTER:
        if (!host)
            return CUDA_INVALID_VALUE;
        *(uint64_t *)ret = address;
        return CUDA_OK;
    case PTR_BUFFER_ID: /* unique while the allocation lives, as its address is */
    case PTR_RANGE_START:
        *(uint64_t *)ret = device ? m.base : h.base;
        return CUDA_OK;
    case PTR_IS_MANAGED:
        *(unsigned *)ret = h.kind == WS_HOSTMEM_MANAGED;
        return CUDA_OK;
    case PTR_DEVICE_ORDINAL:
        *(int *)ret = ordinal;
        return CUDA_OK;
    case PTR_RANGE_SIZE:
        *(size_t *)ret = device ? m.bytes : h.bytes;
        return CUDA_OK;
    case PTR_IS_IPC_CAPABLE:
        *(unsigned *)ret = m.kind == WS_MEM_DEVICE && !ws_pool_has(m.base);
        return CUDA_OK;
    case PTR_SYNC_MEMOPS:
    case PTR_IS_RDMA_CAPABLE:
        *(unsigned *)ret = 0;
        return CUDA_OK;
    case PTR_MEMPOOL_HANDLE:
        *(void **)ret = ws_pool_of(m.base);
        return CUDA_OK;
    case PTR_MAPPED:
        *(unsigned *)ret = device || h.mapped;
        return CUDA_OK;
    default:
        return CUDA_NOT_SUPPORTED;
    }
}

WS_DRV_API(cuPointerGetAttribute, (void *ret, int attribute, uint64_t address))
{
    int code = ws_drv_check_init();
    if (code || !ret)
        return code ? code : CUDA_INVALID_VALUE;
    return pointer_attribute(ret, attribute, address);
}

static size_t pointer_attribute_bytes(int attribute)
{
    switch (attribute) {
    case PTR_MEMORY_TYPE:
    case PTR_SYNC_MEMOPS:
    case PTR_IS_MANAGED:
    case PTR_DEVICE_ORDINAL:
    case PTR_IS_IPC_CAPABLE:
    case PTR_MAPPED:
    case PTR_IS_RDMA_CAPABLE:
        return sizeof(int);
    default:
        return sizeof(uint64_t);
    }
}

/* Whether copies of this memory are synchronous: they are as synchronous as can be seen. */
WS_DRV_API(cuPointerSetAttribute, (const void *value, int attribute, uint64_t address))
{
    struct ws_mem_info m;
    int code = ws_drv_check_init();
    if (code)
        return code;
    ws_session_mem_find(address, &m);
    return value && attribute == PTR_SYNC_MEMOPS && m.kind != WS_MEM_NONE ? CUDA_OK
                                                                          : CUDA_INVALID_VALUE;
}

/* For an address that CUDA doesn't know every value is its type's null, and that is no error. */
WS_DRV_API(cuPointerGetAttributes,
           (unsigned n, const int *attributes, void **data, uint64_t address))
{
    int code = ws_drv_check_init();
    if (code || !attributes || !data)
        return code ? code : CUDA_INVALID_VALUE;
    for (unsigned i = 0; i < n; i++) {
        int a = attributes[i];
        if (pointer_attribute(data[i], a, address))
            memset(data[i], 0, pointer_attribute_bytes(a));
    }
    return CUDA_OK;
}
