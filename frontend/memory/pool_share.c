// SPDX-License-Identifier: Apache-2.0
/* Memory pools between processes. A pool goes to another process as a descriptor, whose file names
 * the pool; an address in it goes as a handle of its own, which alone gives the right to the
 * memory. */
#include "frontend/memory/pool_private.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "frontend/errors.h"

enum { MARK_BYTES = 8, UUID_BYTES = 16 };

/* What the descriptor of a pool holds. It gives no right to any memory: each pointer has a handle
 * of its own for that. */
struct pool_file {
    char mark[MARK_BYTES];
    uint8_t id[WS_POOL_ID_BYTES], gpu[UUID_BYTES];
};
static const char pool_mark[MARK_BYTES] = "ws-pool1", pointer_mark[MARK_BYTES] = "ws-ptr-1";
struct pointer_handle {
    char mark[MARK_BYTES];
    uint8_t handle[WS_SHARE_BYTES], pool[WS_POOL_ID_BYTES];
    uint8_t reserved[8];
};
_Static_assert(sizeof(struct pointer_handle) == sizeof(struct cuda_ipc_handle), "ABI");

static int file_with(const struct pool_file *f)
{
    int fd = memfd_create("wattshare-pool", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd >= 0 &&
        (pwrite(fd, f, sizeof(*f), 0) != sizeof(*f) ||
         fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL))) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static int check_type(int type, unsigned long long flags)
{
    if (flags || (type != WS_CUDA_HANDLE_FD && type != WS_CUDA_HANDLE_WIN32 &&
                  type != WS_CUDA_HANDLE_WIN32_KMT && type != WS_CUDA_HANDLE_FABRIC))
        return CUDA_INVALID_VALUE;
    if (type == WS_CUDA_HANDLE_FD && ws_session_maps_host())
        return CUDA_OK;
    ws_session_unsupported("shareable handles of memory pools other than POSIX file descriptors");
    return CUDA_NOT_SUPPORTED;
}

int ws_pool_export(void *pool, int type, unsigned long long flags, int *ret_fd)
{
    struct pool_file f;
    int code = ret_fd ? check_type(type, flags) : CUDA_INVALID_VALUE;
    if (code)
        return code;
    pthread_mutex_lock(&ws_pool_lock);
    struct ws_memory_pool *p = ws_pool_checked(pool);
    const uint8_t none[WS_POOL_ID_BYTES] = {0};
    bool good = p && p->types & type && !p->imported;
    if (good && !memcmp(p->id, none, sizeof(none)))
        good = getrandom(p->id, sizeof(p->id), 0) == sizeof(p->id);
    if (good) {
        const Ws__Device *d = ws_session_device(p->device);
        memset(&f, 0, sizeof(f));
        memcpy(f.mark, pool_mark, sizeof(f.mark));
        memcpy(f.id, p->id, sizeof(f.id));
        if (d && d->uuid.len == UUID_BYTES)
            memcpy(f.gpu, d->uuid.data, UUID_BYTES);
    }
    pthread_mutex_unlock(&ws_pool_lock);
    if (!good)
        return CUDA_INVALID_VALUE;
    *ret_fd = file_with(&f);
    return *ret_fd < 0 ? CUDA_OUT_OF_MEMORY : CUDA_OK;
}

int ws_pool_import(void **ret, int fd, int type, unsigned long long flags)
{
    struct pool_file f;
    int code = ret ? check_type(type, flags) : CUDA_INVALID_VALUE, n, device = -1;
    if (code)
        return code;
    if (pread(fd, &f, sizeof(f), 0) != sizeof(f) || memcmp(f.mark, pool_mark, sizeof(f.mark)) ||
        ws_session_device_count(&n))
        return CUDA_INVALID_VALUE;
    for (int i = 0; i < n; i++) {
        const Ws__Device *d = ws_session_device(i);
        if (d && d->uuid.len == UUID_BYTES && !memcmp(d->uuid.data, f.gpu, UUID_BYTES))
            device = i;
    }
    if (device < 0)
        return CUDA_INVALID_DEVICE;
    pthread_mutex_lock(&ws_pool_lock);
    struct ws_memory_pool *p = ws_pool_new(device);
    if (p) {
        p->imported = true;
        memcpy(p->id, f.id, sizeof(p->id));
    }
    pthread_mutex_unlock(&ws_pool_lock);
    *ret = p;
    return p ? CUDA_OK : CUDA_OUT_OF_MEMORY;
}

int ws_pool_export_pointer(struct cuda_ipc_handle *ret, uint64_t address)
{
    struct pointer_handle t = {.reserved = {0}};
    uint64_t base;
    pthread_mutex_lock(&ws_pool_lock);
    struct ws_pool_block *b = ws_pool_block_find(address);
    const uint8_t none[WS_POOL_ID_BYTES] = {0};
    bool good = ret && b && b->live && !b->imported && b->pool->types & WS_CUDA_HANDLE_FD &&
                memcmp(b->pool->id, none, sizeof(none));
    if (good)
        memcpy(t.pool, b->pool->id, sizeof(t.pool));
    pthread_mutex_unlock(&ws_pool_lock);
    if (!good)
        return CUDA_INVALID_VALUE;
    int code = ws_drv_error(ws_session_memory_share(address, t.handle, &base));
    memcpy(t.mark, pointer_mark, sizeof(t.mark));
    if (!code)
        memcpy(ret, &t, sizeof(t));
    return code;
}

int ws_pool_import_pointer(void *pool, const struct cuda_ipc_handle *h, uint64_t *ret_address)
{
    struct pointer_handle t;
    uint64_t address, bytes;
    if (!h || !ret_address)
        return CUDA_INVALID_VALUE;
    memcpy(&t, h, sizeof(t));
    pthread_mutex_lock(&ws_pool_lock);
    struct ws_memory_pool *p = ws_pool_checked(pool);
    int code = p && p->imported && !memcmp(t.mark, pointer_mark, sizeof(t.mark)) &&
                       !memcmp(t.pool, p->id, sizeof(t.pool))
                   ? CUDA_OK
                   : CUDA_INVALID_VALUE;
    if (!code)
        code = ws_drv_error(ws_session_memory_open(t.handle, &address, &bytes));
    struct ws_pool_block *b = code ? NULL : ws_pool_block_add(p, address, bytes);
    if (b) {
        b->imported = true;
        ws_pool_block_set_live(b, true);
        *ret_address = address;
    } else if (!code) {
        (void)ws_session_memory_close(address);
        code = CUDA_OUT_OF_MEMORY;
    }
    pthread_mutex_unlock(&ws_pool_lock);
    return code;
}
