// SPDX-License-Identifier: Apache-2.0
/* Physical memory. A piece is one handle of the driver: the whole granules of one memory, or one
 * granule that several memories share. Whoever keeps memory beyond the process (keep.h) is told of
 * each piece and gets a descriptor of it. Free granules are kept for the next allocation, since
 * creating and releasing them may make the driver wait for the GPU. */
#include <stdint.h>

#include "base/alloc.h"
#include "base/log.h"
#include "device/cuda/cuda_private.h"

static ws_cu_result create(struct ws_cuda *d, uint64_t bytes, ws_cu_handle *ret)
{
    struct ws_cu_alloc_prop p = {
        .type = WS_CU_MEM_ALLOCATION_TYPE_PINNED,
        .handle_types = d->can_export ? WS_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : 0,
        .location = {WS_CU_MEM_LOCATION_TYPE_DEVICE, d->device}};
    char text[64];
    ws_cu_result r = WS_CU(d, cuMemCreate, ret, bytes, &p, 0);
    if (r == WS_CU_SUCCESS || r == WS_CU_OUT_OF_MEMORY || ws_cuda_is_sticky(r) || !d->can_export)
        return r;
    /* a sandbox, for one, may not pass such descriptors on although the GPU can */
    p.handle_types = 0;
    ws_cu_result without = WS_CU(d, cuMemCreate, ret, bytes, &p, 0);
    if (without == WS_CU_SUCCESS && d->can_export) {
        d->can_export = false;
        ws_log(WS_WARN,
               "cuda: gpu=%u memory cannot be exported (%s): it is lost when the process ends",
               d->base.index, ws_cu_result_name(r, text, sizeof(text)));
    }
    return without;
}

static ws_cu_handle spare_take(struct ws_cuda *d)
{
    pthread_mutex_lock(&d->spare_lock);
    ws_cu_handle h = d->n_spare ? d->spare[--d->n_spare] : 0;
    pthread_mutex_unlock(&d->spare_lock);
    return h;
}

/* Releases the free granules. Return: whether there were any. */
static bool spares_release(struct ws_cuda *d)
{
    ws_cu_handle h;
    bool any = false;
    for (; (h = spare_take(d)); any = true)
        (void)WS_CU(d, cuMemRelease, h);
    return any;
}

static struct ws_cuda_piece *piece_of(uint64_t id, uint64_t bytes)
{
    struct ws_cuda_piece *p = ws_alloc(sizeof(*p));
    if (p) {
        p->id = id;
        p->bytes = bytes;
        p->n_refs = 1;
        ws_list_init(&p->shares);
    }
    return p;
}

ws_cu_result ws_cuda_piece_new(struct ws_cuda *d, uint64_t bytes, struct ws_cuda_piece **ret)
{
    struct ws_cuda_piece *p = piece_of(++d->n_pieces, bytes);
    if (!p)
        return WS_CU_OUT_OF_MEMORY;
    ws_cu_result r = WS_CU_SUCCESS;
    if (bytes == WS_CUDA_GRANULE_BYTES)
        p->handle = spare_take(d);
    if (!p->handle)
        r = create(d, bytes, &p->handle);
    if (r == WS_CU_OUT_OF_MEMORY && spares_release(d))
        r = create(d, bytes, &p->handle);
    if (r != WS_CU_SUCCESS) {
        free(p);
        return r;
    }
    *ret = p;
    return WS_CU_SUCCESS;
}

ws_cu_result ws_cuda_piece_import(struct ws_cuda *d, uint64_t id, uint64_t bytes, int fd,
                                  struct ws_cuda_piece **ret)
{
    struct ws_cuda_piece *p = piece_of(id, bytes);
    if (!p)
        return WS_CU_OUT_OF_MEMORY;
    ws_cu_result r = d->can_export
                         ? WS_CU(d, cuMemImportFromShareableHandle, &p->handle,
                                 (void *)(intptr_t)fd, WS_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
                         : WS_CU_NOT_SUPPORTED;
    if (r != WS_CU_SUCCESS) {
        free(p);
        return r;
    }
    p->adopted = true;
    uint64_t last = d->n_pieces;
    while (last < id && !atomic_compare_exchange_weak(&d->n_pieces, &last, id))
        ;
    *ret = p;
    return WS_CU_SUCCESS;
}

struct ws_cuda_piece *ws_cuda_piece_unref(struct ws_cuda *d, struct ws_cuda_piece *p)
{
    if (!p || --p->n_refs)
        return NULL;
    bool spared = false;
    /* Memory that was imported may not be exported again. */
    if (p->bytes == WS_CUDA_GRANULE_BYTES && !p->adopted && !d->lost) {
        pthread_mutex_lock(&d->spare_lock);
        spared = d->n_spare < WS_ARRAY_SIZE(d->spare);
        if (spared)
            d->spare[d->n_spare++] = p->handle;
        pthread_mutex_unlock(&d->spare_lock);
    }
    if (!spared)
        (void)WS_CU(d, cuMemRelease, p->handle);
    free(p);
    return NULL;
}

void ws_cuda_piece_made(struct ws_cuda *d, const struct ws_cuda_piece *p, uint64_t va)
{
    int fd = -1;
    if (!d->keep.made)
        return;
    if (d->can_export && WS_CU(d, cuMemExportToShareableHandle, &fd, p->handle,
                               WS_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) != WS_CU_SUCCESS) {
        ws_log(WS_WARN, "cuda: gpu=%u memory cannot be exported: it is lost when the process ends",
               d->base.index);
        fd = -1;
    }
    d->keep.made(d->keep.arg, &(struct ws_cuda_kept){p->id, p->bytes, va}, fd);
}

void ws_cuda_piece_gone(struct ws_cuda *d, const struct ws_cuda_piece *p, uint64_t va)
{
    if (d->keep.gone)
        d->keep.gone(d->keep.arg, &(struct ws_cuda_kept){p->id, p->bytes, va});
}

bool ws_device_cuda_keep(struct ws_device *dev, const struct ws_cuda_keep *k)
{
    struct ws_cuda *d = ws_cuda_of(dev);
    if (!ws_cuda_is(dev) || !d->can_export)
        return false;
    d->keep = *k;
    return true;
}

void ws_cuda_pieces_close(struct ws_cuda *d)
{
    (void)spares_release(d);
    pthread_mutex_destroy(&d->spare_lock);
}
