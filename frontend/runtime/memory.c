// SPDX-License-Identifier: Apache-2.0
/* Chapters "Memory Management" (linear memory; arrays are in array.c) and "Unified Addressing". */
#include <string.h>

#include "frontend/texture/array.h"
#include "frontend/context/attributes.h"
#include "frontend/memory/advice.h"
#include "frontend/memory/copy.h"
#include "frontend/memory/copy_params.h"
#include "frontend/facade.h"
#include "frontend/memory/hostmem.h"
#include "frontend/memory/pool.h"
#include "frontend/runtime/before13.h"
#include "frontend/session/findings.h"
#include "frontend/stream/work.h"

enum { NO_DEVICE_ID = -2 };
enum { HOST_ALLOC_FLAGS = 7, REGISTER_PORTABLE = 1, REGISTER_MAPPED = 2, REGISTER_FLAGS = 15 };
enum { ATTACH_GLOBAL = 1, ATTACH_HOST = 2 };

/* ---- allocation ---- */

static int device_alloc(void **p, uint64_t bytes)
{
    uint64_t address = 0;
    WS_RT_ENTER(device);
    if (!p)
        return ws_rt_record(CUDA_INVALID_VALUE);
    if (!bytes) {
        *p = NULL;
        return CUDA_OK;
    }
    int unsafe = ws_work_unsafe();
    if (unsafe)
        return ws_rt_record(unsafe);
    ws_err r = ws_session_mem_alloc(device, bytes, &address);
    if (r == WS__ERROR__OUT_OF_MEMORY && ws_pool_give_back(device))
        r = ws_session_mem_alloc(device, bytes, &address);
    if (r)
        return WS_RT_DONE(r);
    ws_ctx_own(ws_ctx_current(), WS_OWNED_MEMORY, address);
    ws_findings_allocated(address, bytes);
    *p = (void *)(uintptr_t)address;
    return CUDA_OK;
}

WS_RT_API(cudaMalloc, (void **p, size_t bytes))
{
    return device_alloc(p, bytes);
}

WS_RT_API(cudaMallocPitch, (void **p, size_t *pitch, size_t width, size_t height))
{
    size_t row = WS_ALIGN_UP(width, (size_t)WS_PITCH_ALIGNMENT), bytes;
    if (!p || !pitch || row < width || __builtin_mul_overflow(row, height, &bytes))
        return ws_rt_record(CUDA_INVALID_VALUE);
    int code = device_alloc(p, bytes);
    if (!code)
        *pitch = row;
    return code;
}

WS_RT_API(cudaMalloc3D, (struct cuda_pitched_ptr * p, struct cuda_extent extent))
{
    size_t row = WS_ALIGN_UP(extent.width, (size_t)WS_PITCH_ALIGNMENT), bytes;
    void *address;
    if (!p || row < extent.width || __builtin_mul_overflow(row, extent.height, &bytes) ||
        __builtin_mul_overflow(bytes, extent.depth, &bytes))
        return ws_rt_record(CUDA_INVALID_VALUE);
    int code = device_alloc(&address, bytes);
    if (!code)
        *p = (struct cuda_pitched_ptr){address, row, extent.width, extent.height};
    return code;
}

WS_RT_API(cudaFree, (void *p))
{
    WS_RT_ENTER(device);
    if (!p)
        return CUDA_OK;
    int code = ws_work_unsafe();
    if (!code && (code = ws_block_free_outside((uintptr_t)p)) < 0 &&
        (code = ws_pool_free_now((uintptr_t)p)) < 0)
        code = ws_hostmem_free(WS_HOSTMEM_MANAGED, p);
    if (code != CUDA_INVALID_VALUE)
        return ws_rt_record(code);
    ws_ctx_disown(WS_OWNED_MEMORY, (uintptr_t)p);
    return WS_RT_DONE(ws_session_mem_free((uintptr_t)p));
}

static int host_alloc(void **p, size_t bytes, unsigned flags)
{
    WS_RT_ENTER(device);
    if (!p || flags > HOST_ALLOC_FLAGS)
        return ws_rt_record(CUDA_INVALID_VALUE);
    if (!bytes) {
        *p = NULL;
        return CUDA_OK;
    }
    int code = ws_work_unsafe();
    return ws_rt_record(code ? code : ws_hostmem_alloc(WS_HOSTMEM_PINNED, device, bytes, flags, p));
}

WS_RT_API(cudaMallocHost, (void **p, size_t bytes))
{
    return host_alloc(p, bytes, 0);
}
WS_RT_API(cudaHostAlloc, (void **p, size_t bytes, unsigned flags))
{
    return host_alloc(p, bytes, flags);
}

WS_RT_API(cudaFreeHost, (void *p))
{
    WS_RT_ENTER(device);
    int code = ws_work_unsafe();
    return ws_rt_record(code ? code : p ? ws_hostmem_free(WS_HOSTMEM_PINNED, p) : CUDA_OK);
}

WS_RT_API(cudaMallocManaged, (void **p, size_t bytes, unsigned flags))
{
    WS_RT_ENTER(device);
    if (!p || !bytes || (flags != ATTACH_GLOBAL && flags != ATTACH_HOST))
        return ws_rt_record(CUDA_INVALID_VALUE);
    if (!ws_session_maps_host()) {
        ws_session_unsupported("cudaMallocManaged with a remote daemon");
        return ws_rt_record(CUDA_NOT_SUPPORTED);
    }
    int code = ws_hostmem_alloc(WS_HOSTMEM_MANAGED, device, bytes, flags, p);
    if (!code)
        ws_findings_allocated((uintptr_t)*p, bytes);
    return ws_rt_record(code);
}

WS_RT_API(cudaMemGetInfo, (size_t * available, size_t *total))
{
    uint64_t f, t;
    WS_RT_ENTER(device);
    ws_err r = ws_session_mem_info(device, &f, &t);
    if (r)
        return WS_RT_DONE(r);
    if (available)
        *available = f;
    if (total)
        *total = t;
    return CUDA_OK;
}

/* ---- host memory of the program ---- */

WS_RT_API(cudaHostRegister, (void *p, size_t bytes, unsigned flags))
{
    WS_RT_ENTER(device);
    if (!p || !bytes || flags > REGISTER_FLAGS)
        return ws_rt_record(CUDA_INVALID_VALUE);
    if (flags & ~(unsigned)(REGISTER_PORTABLE | REGISTER_MAPPED)) {
        ws_session_unsupported("cudaHostRegister with cudaHostRegisterIoMemory or ReadOnly");
        return ws_rt_record(CUDA_NOT_SUPPORTED);
    }
    int code = ws_work_unsafe();
    return ws_rt_record(
        code ? code : ws_hostmem_register(p, bytes, flags, device, flags & REGISTER_MAPPED));
}

WS_RT_API(cudaHostUnregister, (void *p))
{
    WS_RT_ENTER(device);
    if (!p)
        return ws_rt_record(CUDA_INVALID_VALUE);
    ws_err r = ws_session_device_sync(device);
    return r ? WS_RT_DONE(r) : ws_rt_record(ws_hostmem_unregister(p));
}

WS_RT_API(cudaHostGetDevicePointer, (void **dev, void *host, unsigned flags))
{
    struct ws_hostmem m;
    WS_RT_ENTER(device);
    if (!dev || flags)
        return ws_rt_record(CUDA_INVALID_VALUE);
    ws_hostmem_find((uintptr_t)host, &m);
    if (m.kind == WS_HOSTMEM_NONE || !m.mapped)
        return ws_rt_record(CUDA_INVALID_VALUE);
    *dev = host; /* unified addressing */
    return CUDA_OK;
}

WS_RT_API(cudaHostGetFlags, (unsigned *flags, void *host))
{
    struct ws_hostmem m;
    WS_RT_ENTER(device);
    ws_hostmem_find((uintptr_t)host, &m);
    if (!flags || (m.kind != WS_HOSTMEM_PINNED && m.kind != WS_HOSTMEM_REGISTERED))
        return ws_rt_record(CUDA_INVALID_VALUE);
    *flags = m.flags;
    return CUDA_OK;
}

/* ---- copies ---- */

static int copy(void *dst, const void *src, size_t bytes, int kind, void *stream, bool per_thread,
                bool async)
{
    enum ws_copy_dir dir;
    WS_RT_ENTER(device);
    WS_RT_STREAM(id, stream, per_thread, device);
    int code = ws_copy_direction(kind, &dir);
    if (code)
        return ws_rt_record(code);
    return WS_RT_DONE(ws_work_copy(id, dst, src, bytes, dir, async));
}

WS_RT_STREAM_API(cudaMemcpy, _ptds, (void *dst, const void *src, size_t bytes, int kind),
                 (dst, src, bytes, kind))
{
    return copy(dst, src, bytes, kind, NULL, per_thread, false);
}
WS_RT_STREAM_API(cudaMemcpyAsync, _ptsz,
                 (void *dst, const void *src, size_t bytes, int kind, void *stream),
                 (dst, src, bytes, kind, stream))
{
    return copy(dst, src, bytes, kind, stream, per_thread, true);
}

static int check_peers(int a, int b)
{
    return ws_session_device(a) && ws_session_device(b) ? CUDA_OK : CUDA_INVALID_DEVICE;
}

WS_RT_API(cudaMemcpyPeer,
          (void *dst, int dst_device, const void *src, int src_device, size_t bytes))
{
    WS_RT_ENTER(device);
    int code = check_peers(dst_device, src_device);
    if (code)
        return ws_rt_record(code);
    return WS_RT_DONE(ws_work_copy(ws_stream_legacy(device), dst, src, bytes, WS_COPY_D2D, false));
}
WS_RT_API(cudaMemcpyPeerAsync,
          (void *dst, int dst_device, const void *src, int src_device, size_t bytes, void *stream))
{
    WS_RT_ENTER(device);
    WS_RT_STREAM(id, stream, false, device);
    int code = check_peers(dst_device, src_device);
    if (code)
        return ws_rt_record(code);
    return WS_RT_DONE(ws_work_copy(id, dst, src, bytes, WS_COPY_D2D, true));
}

static int copy_2d(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
                   size_t height, int kind, void *stream, bool per_thread, bool async)
{
    struct ws_copy_side d = {(uintptr_t)dst, dpitch, 0}, s = {(uintptr_t)src, spitch, 0};
    struct ws_copy_box box = {width, height, 1};
    enum ws_copy_dir dir;
    WS_RT_ENTER(device);
    WS_RT_STREAM(id, stream, per_thread, device);
    int code = ws_copy_direction(kind, &dir);
    if (!code && (width > dpitch || width > spitch))
        code = CUDA_INVALID_PITCH;
    if (code)
        return ws_rt_record(code);
    return WS_RT_DONE(ws_work_copy_box(id, &d, &s, &box, dir, async));
}

WS_RT_STREAM_API(cudaMemcpy2D, _ptds,
                 (void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
                  size_t height, int kind),
                 (dst, dpitch, src, spitch, width, height, kind))
{
    return copy_2d(dst, dpitch, src, spitch, width, height, kind, NULL, per_thread, false);
}
WS_RT_STREAM_API(cudaMemcpy2DAsync, _ptsz,
                 (void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
                  size_t height, int kind, void *stream),
                 (dst, dpitch, src, spitch, width, height, kind, stream))
{
    return copy_2d(dst, dpitch, src, spitch, width, height, kind, stream, per_thread, true);
}

static int copy_3d(const struct cuda_memcpy_3d_parms *p, void *stream, bool per_thread, bool async)
{
    struct ws_copy_side d, s;
    struct ws_copy_box box;
    enum ws_copy_dir dir;
    WS_RT_ENTER(device);
    WS_RT_STREAM(id, stream, per_thread, device);
    int code = ws_copy_sides_rt(p, &d, &s, &box, &dir);
    if (code)
        return ws_rt_record(code);
    return WS_RT_DONE(ws_work_copy_box(id, &d, &s, &box, dir, async));
}

WS_RT_STREAM_API(cudaMemcpy3D, _ptds, (const struct cuda_memcpy_3d_parms *p), (p))
{
    if (!p)
        return ws_rt_record(CUDA_INVALID_VALUE);
    return copy_3d(p, NULL, per_thread, false);
}
WS_RT_STREAM_API(cudaMemcpy3DAsync, _ptsz, (const struct cuda_memcpy_3d_parms *p, void *stream),
                 (p, stream))
{
    if (!p)
        return ws_rt_record(CUDA_INVALID_VALUE);
    return copy_3d(p, stream, per_thread, true);
}

enum { KIND_DEVICE_TO_DEVICE = 3 };

static int copy_3d_peer(const struct cuda_memcpy_3d_peer_parms *p, void *stream, bool per_thread,
                        bool async)
{
    if (!p)
        return ws_rt_record(CUDA_INVALID_VALUE);
    WS_RT_ENTER(device);
    int code = check_peers(p->srcDevice, p->dstDevice);
    if (code)
        return ws_rt_record(code);
    return copy_3d(&(struct cuda_memcpy_3d_parms){.srcArray = p->srcArray,
                                                  .srcPos = p->srcPos,
                                                  .srcPtr = p->srcPtr,
                                                  .dstArray = p->dstArray,
                                                  .dstPos = p->dstPos,
                                                  .dstPtr = p->dstPtr,
                                                  .extent = p->extent,
                                                  .kind = KIND_DEVICE_TO_DEVICE},
                   stream, per_thread, async);
}
WS_RT_STREAM_API(cudaMemcpy3DPeer, _ptds, (const struct cuda_memcpy_3d_peer_parms *p), (p))
{
    return copy_3d_peer(p, NULL, per_thread, false);
}
WS_RT_STREAM_API(cudaMemcpy3DPeerAsync, _ptsz,
                 (const struct cuda_memcpy_3d_peer_parms *p, void *stream), (p, stream))
{
    return copy_3d_peer(p, stream, per_thread, true);
}

/* ---- fills ---- */

static int fill(void *dst, size_t pitch, int value, size_t width, size_t height, size_t depth,
                size_t slice, void *stream, bool per_thread, bool async)
{
    struct ws_copy_side d = {(uintptr_t)dst, pitch, slice};
    struct ws_copy_box box = {width, height, depth};
    WS_RT_ENTER(device);
    WS_RT_STREAM(id, stream, per_thread, device);
    return WS_RT_DONE(ws_work_fill_box(id, &d, (uint8_t)value, 1, &box, async));
}

WS_RT_STREAM_API(cudaMemset, _ptds, (void *dst, int value, size_t bytes), (dst, value, bytes))
{
    return fill(dst, bytes, value, bytes, 1, 1, 0, NULL, per_thread, false);
}
WS_RT_STREAM_API(cudaMemsetAsync, _ptsz, (void *dst, int value, size_t bytes, void *stream),
                 (dst, value, bytes, stream))
{
    return fill(dst, bytes, value, bytes, 1, 1, 0, stream, per_thread, true);
}
WS_RT_STREAM_API(cudaMemset2D, _ptds,
                 (void *dst, size_t pitch, int value, size_t width, size_t height),
                 (dst, pitch, value, width, height))
{
    return fill(dst, pitch, value, width, height, 1, 0, NULL, per_thread, false);
}
WS_RT_STREAM_API(cudaMemset2DAsync, _ptsz,
                 (void *dst, size_t pitch, int value, size_t width, size_t height, void *stream),
                 (dst, pitch, value, width, height, stream))
{
    return fill(dst, pitch, value, width, height, 1, 0, stream, per_thread, true);
}
WS_RT_STREAM_API(cudaMemset3D, _ptds, (struct cuda_pitched_ptr p, int value, struct cuda_extent e),
                 (p, value, e))
{
    return fill(p.ptr, p.pitch, value, e.width, e.height, e.depth, p.pitch * p.ysize, NULL,
                per_thread, false);
}
WS_RT_STREAM_API(cudaMemset3DAsync, _ptsz,
                 (struct cuda_pitched_ptr p, int value, struct cuda_extent e, void *stream),
                 (p, value, e, stream))
{
    return fill(p.ptr, p.pitch, value, e.width, e.height, e.depth, p.pitch * p.ysize, stream,
                per_thread, true);
}

/* ---- managed memory: see also both/advice.c ---- */

WS_RT_STREAM_API(cudaMemPrefetchAsync_v2, _ptsz,
                 (const void *p, size_t bytes, struct cuda_mem_location l, unsigned flags,
                  void *stream),
                 (p, bytes, l, flags, stream))
{
    WS_RT_ENTER(device);
    WS_RT_STREAM(id, stream, per_thread, device);
    (void)id;
    return ws_rt_record(flags ? CUDA_INVALID_VALUE : ws_advice_prefetch((uintptr_t)p, bytes, &l));
}

/* ---- what is at an address ---- */

WS_RT_API(cudaPointerGetAttributes, (struct cuda_pointer_attributes * a, const void *p))
{
    size_t bytes = WS_RT_SIZEOF(*a, WS_RT_OLDER_POINTER_ATTRIBUTES);
    struct ws_hostmem h;
    struct ws_mem_info m;
    WS_RT_ENTER(device);
    if (!a)
        return ws_rt_record(CUDA_INVALID_VALUE);
    memset(a, 0, bytes);
    ws_hostmem_find((uintptr_t)p, &h);
    ws_session_mem_find((uintptr_t)p, &m);
    if (h.kind != WS_HOSTMEM_NONE) {
        a->type = h.kind == WS_HOSTMEM_MANAGED ? WS_CUDA_MEMORY_MANAGED : WS_CUDA_MEMORY_HOST;
        a->device = h.device;
        a->hostPointer = (void *)p;
        if (h.mapped)
            a->devicePointer = (void *)p;
    } else if (ws_mem_on_device(m.kind)) {
        a->type = WS_CUDA_MEMORY_DEVICE;
        a->device = m.device;
        a->devicePointer = (void *)p;
    } else {
        a->type = WS_CUDA_MEMORY_UNREGISTERED;
        a->device = NO_DEVICE_ID;
        a->hostPointer = (void *)p;
    }
    return CUDA_OK;
}

/* ---- descriptions: no device needed ---- */

WS_RT_TYPED_API(cudaCreateChannelDesc, struct cuda_channel_desc,
                (int x, int y, int z, int w, int format))
{
    return (struct cuda_channel_desc){x, y, z, w, format};
}
