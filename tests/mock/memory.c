// SPDX-License-Identifier: Apache-2.0
/* Memory. Physical memory is a memfd. Kernels and copies see a mapping through a second mapping
 * elsewhere, while the address itself stays inaccessible to the host, as with a real GPU. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "tests/mock/mock.h"

#define GRANULE (UINT64_C(2) << 20)

struct physical {
    struct mock_object o;
    uint64_t bytes;
    int fd;
    bool exportable;
    uint32_t n_mapped;
};
struct reservation {
    uint64_t va, bytes;
};
struct mapping {
    uint64_t va, bytes;
    uint8_t *host;
    struct physical *of;
    bool visible;
};
struct pinned { /* host memory: registered, or given out */
    uint8_t *p;
    uint64_t bytes;
    bool ours, unmapped;
    struct mock_gpu *gpu; /* whose context was current */
};
struct plain { /* cuMemAlloc */
    uint64_t va, bytes;
    uint8_t *host;
    struct mock_gpu *gpu;
};

/* All under mock_lock. */
static struct reservation *reservations;
static size_t n_reservations, cap_reservations;
static struct mapping *mappings;
static size_t n_mappings, cap_mappings;
static struct pinned *pinned;
static size_t n_pinned, cap_pinned;
static struct plain *plain;
static size_t n_plain, cap_plain;
static uint64_t next_plain = UINT64_C(0x700000000000) / 8;

#define GROW(v) ws_grow((void **)&(v), &cap_##v, n_##v + 1, sizeof(*(v)))

static int wrong(const char *call, const char *what, uint64_t va, uint64_t bytes)
{
    mock_violation("%s: %s: 0x%llx, %llu bytes", call, what, (unsigned long long)va,
                   (unsigned long long)bytes);
    return WS_CU_INVALID_VALUE;
}

static bool take(struct mock_gpu *g, uint64_t bytes)
{
    if (g->used_bytes + bytes > g->total_bytes)
        return false;
    g->used_bytes += bytes;
    return true;
}

ws_cu_result cuMemGetInfo(size_t *free_bytes, size_t *total)
{
    ENTER(MOCK_CTX);
    struct mock_gpu *g = mock_current();
    *total = g->total_bytes;
    *free_bytes = g->total_bytes - g->used_bytes;
    return WS_CU_SUCCESS;
}

ws_cu_result cuMemGetAllocationGranularity(size_t *bytes, const struct ws_cu_alloc_prop *prop,
                                           int option)
{
    ENTER(MOCK_ANY);
    *bytes = GRANULE;
    return prop->type == WS_CU_MEM_ALLOCATION_TYPE_PINNED ? WS_CU_SUCCESS : WS_CU_INVALID_VALUE;
}

/* ---- addresses ---- */

ws_cu_result cuMemAddressReserve(ws_cu_ptr *va, size_t bytes, size_t align, ws_cu_ptr hint,
                                 unsigned long long flags)
{
    ENTER(MOCK_ANY);
    if (align > GRANULE && mock_named("WS_MOCK_REFUSES", "alignment"))
        return WS_CU_INVALID_VALUE;
    if (!bytes || bytes % GRANULE || flags)
        return wrong("cuMemAddressReserve", "no whole granules", hint, bytes);
    void *want = (void *)(uintptr_t)hint;
    void *p = mmap(want, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return WS_CU_OUT_OF_MEMORY;
    pthread_mutex_lock(&mock_lock);
    int r = GROW(reservations) ? WS_CU_OUT_OF_MEMORY : WS_CU_SUCCESS;
    if (!r)
        reservations[n_reservations++] = (struct reservation){(uintptr_t)p, bytes};
    pthread_mutex_unlock(&mock_lock);
    if (r)
        munmap(p, bytes);
    *va = (uintptr_t)p;
    return r;
}

ws_cu_result cuMemAddressFree(ws_cu_ptr va, size_t bytes)
{
    ENTER(MOCK_ANY);
    pthread_mutex_lock(&mock_lock);
    size_t k = 0;
    while (k < n_reservations && (reservations[k].va != va || reservations[k].bytes != bytes))
        k++;
    bool found = k < n_reservations, used = false;
    for (size_t i = 0; i < n_mappings; i++)
        used |= mappings[i].va >= va && mappings[i].va < va + bytes;
    if (found && !used) {
        munmap((void *)(uintptr_t)va, bytes);
        reservations[k] = reservations[--n_reservations];
    }
    pthread_mutex_unlock(&mock_lock);
    if (!found)
        return wrong(__func__, "was not reserved", va, bytes);
    return used ? wrong(__func__, "something is mapped there", va, bytes) : WS_CU_SUCCESS;
}

/* ---- physical memory ---- */

/* By its name a descriptor that comes back is known, and whose memory it is. */
static void name_of(const struct mock_gpu *g, char *buf, size_t size)
{
    snprintf(buf, size, "mock-memory-%d", g->ordinal);
}

static struct mock_gpu *gpu_of_fd(int fd)
{
    char path[64], link[64] = "";
    int ordinal = -1;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (readlink(path, link, sizeof(link) - 1) < 0 ||
        sscanf(link, "/memfd:mock-memory-%d", &ordinal) != 1)
        return NULL;
    return mock_gpu_of(ordinal);
}

ws_cu_result cuMemCreate(ws_cu_handle *h, size_t bytes, const struct ws_cu_alloc_prop *prop,
                         unsigned long long flags)
{
    ENTER(MOCK_ANY);
    struct mock_gpu *g = mock_gpu_of(prop->location.id);
    if (!g || prop->location.type != WS_CU_MEM_LOCATION_TYPE_DEVICE ||
        prop->type != WS_CU_MEM_ALLOCATION_TYPE_PINNED || flags || !bytes || bytes % GRANULE ||
        prop->handle_types & ~WS_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return wrong("cuMemCreate", "wrong properties or size", 0, bytes);
    if (prop->handle_types && getenv("WS_MOCK_REFUSE_EXPORT"))
        return WS_CU_NOT_SUPPORTED;
    struct physical *p = ws_alloc(sizeof(*p));
    if (!p || !take(g, bytes)) {
        free(p);
        return WS_CU_OUT_OF_MEMORY;
    }
    char name[32];
    name_of(g, name, sizeof(name));
    p->bytes = bytes;
    p->exportable = prop->handle_types;
    p->fd = memfd_create(name, MFD_CLOEXEC);
    if (p->fd < 0 || ftruncate(p->fd, (off_t)bytes)) {
        g->used_bytes -= bytes;
        free(p);
        return WS_CU_OUT_OF_MEMORY;
    }
    /* Not zero, as memory that others have used before. */
    uint64_t dirt = UINT64_C(0xdeadbeefdeadbeef);
    for (uint64_t k = 0; k < bytes; k += GRANULE / 2)
        if (pwrite(p->fd, &dirt, sizeof(dirt), (off_t)k) < 0)
            break;
    pthread_mutex_lock(&mock_lock);
    mock_object_add(&p->o, MOCK_MEMORY, g);
    pthread_mutex_unlock(&mock_lock);
    *h = (uintptr_t)p;
    return WS_CU_SUCCESS;
}

ws_cu_result cuMemExportToShareableHandle(void *shareable, ws_cu_handle h, int type,
                                          unsigned long long flags)
{
    ENTER(MOCK_ANY);
    struct physical *p = mock_object_of((void *)(uintptr_t)h, MOCK_MEMORY, __func__);
    if (!p)
        return WS_CU_INVALID_VALUE;
    if (!p->exportable || type != WS_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || flags)
        return wrong(__func__, "was not made to be exported so", 0, p->bytes);
    int fd = fcntl(p->fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        return WS_CU_OPERATING_SYSTEM;
    memcpy(shareable, &fd, sizeof(fd));
    return WS_CU_SUCCESS;
}

ws_cu_result cuMemImportFromShareableHandle(ws_cu_handle *h, void *shareable, int type)
{
    ENTER(MOCK_CTX);
    int fd = (int)(intptr_t)shareable;
    struct stat st;
    struct mock_gpu *g = gpu_of_fd(fd);
    if (!g || type != WS_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || fstat(fd, &st))
        return WS_CU_INVALID_VALUE;
    struct physical *p = ws_alloc(sizeof(*p));
    if (!p || !take(g, (uint64_t)st.st_size)) {
        free(p);
        return WS_CU_OUT_OF_MEMORY;
    }
    p->bytes = (uint64_t)st.st_size;
    p->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (p->fd < 0) {
        g->used_bytes -= p->bytes;
        free(p);
        return WS_CU_OPERATING_SYSTEM;
    }
    pthread_mutex_lock(&mock_lock);
    mock_object_add(&p->o, MOCK_MEMORY, g);
    pthread_mutex_unlock(&mock_lock);
    *h = (uintptr_t)p;
    return WS_CU_SUCCESS;
}

static void physical_end(struct physical *p)
{
    if (p->o.alive || p->n_mapped)
        return;
    close(p->fd);
    p->o.gpu->used_bytes -= p->bytes;
}

ws_cu_result cuMemRelease(ws_cu_handle h)
{
    ENTER(MOCK_ANY);
    struct physical *p = mock_object_of((void *)(uintptr_t)h, MOCK_MEMORY, __func__);
    if (!p)
        return WS_CU_INVALID_VALUE;
    pthread_mutex_lock(&mock_lock);
    p->o.alive = false;
    physical_end(p);
    pthread_mutex_unlock(&mock_lock);
    return WS_CU_SUCCESS;
}

/* ---- mappings. (locked) ---- */

static bool meets(uint64_t va, uint64_t bytes)
{
    for (size_t i = 0; i < n_mappings; i++)
        if (va < mappings[i].va + mappings[i].bytes && mappings[i].va < va + bytes)
            return true;
    return false;
}

static bool in_reservation(uint64_t va, uint64_t bytes)
{
    for (size_t i = 0; i < n_reservations; i++)
        if (va >= reservations[i].va && bytes <= reservations[i].bytes &&
            va - reservations[i].va <= reservations[i].bytes - bytes)
            return true;
    return false;
}

ws_cu_result cuMemMap(ws_cu_ptr va, size_t bytes, size_t offset, ws_cu_handle h,
                      unsigned long long flags)
{
    ENTER(MOCK_ANY);
    struct physical *p = mock_object_of((void *)(uintptr_t)h, MOCK_MEMORY, __func__);
    if (!p)
        return WS_CU_INVALID_VALUE;
    if (offset || flags || !bytes || bytes % GRANULE || va % GRANULE || bytes > p->bytes)
        return wrong(__func__, "offset, address and size must be whole granules of the handle", va,
                     bytes);
    void *host = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, p->fd, 0);
    if (host == MAP_FAILED)
        return WS_CU_OUT_OF_MEMORY;
    pthread_mutex_lock(&mock_lock);
    const char *what = !in_reservation(va, bytes) ? "not reserved"
                       : meets(va, bytes)         ? "something is mapped there"
                                                  : NULL;
    int r = !what && GROW(mappings) ? WS_CU_OUT_OF_MEMORY : WS_CU_SUCCESS;
    if (!what && !r) {
        mappings[n_mappings++] = (struct mapping){va, bytes, host, p, false};
        p->n_mapped++;
    }
    pthread_mutex_unlock(&mock_lock);
    if (what || r)
        munmap(host, bytes);
    return what ? wrong(__func__, what, va, bytes) : r;
}

ws_cu_result cuMemUnmap(ws_cu_ptr va, size_t bytes)
{
    ENTER(MOCK_ANY);
    pthread_mutex_lock(&mock_lock);
    size_t k = 0;
    while (k < n_mappings && (mappings[k].va != va || mappings[k].bytes != bytes))
        k++;
    bool found = k < n_mappings;
    if (found) {
        struct mapping m = mappings[k];
        mappings[k] = mappings[--n_mappings];
        if (m.visible && ws_space_unmap(mock_space, va))
            found = false;
        munmap(m.host, m.bytes);
        m.of->n_mapped--;
        physical_end(m.of);
    }
    pthread_mutex_unlock(&mock_lock);
    return found ? WS_CU_SUCCESS : wrong(__func__, "is not one mapping", va, bytes);
}

ws_cu_result cuMemSetAccess(ws_cu_ptr va, size_t bytes, const struct ws_cu_access *access, size_t n)
{
    ENTER(MOCK_ANY);
    uint64_t at = va, end = va + bytes;
    bool no_peer = false;
    pthread_mutex_lock(&mock_lock);
    while (at < end) {
        size_t k = 0;
        while (k < n_mappings && mappings[k].va != at)
            k++;
        if (k == n_mappings || !n)
            break;
        struct mapping *m = &mappings[k];
        if (!m->visible && ws_space_map_host(mock_space, m->va, m->bytes, m->host))
            break;
        m->visible = true;
        uint32_t readers = 0, writers = 0;
        for (size_t i = 0; i < n; i++) {
            readers |= access[i].flags ? UINT32_C(1) << access[i].location.id : 0;
            writers |= access[i].flags == WS_CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                           ? UINT32_C(1) << access[i].location.id
                           : 0;
            if (access[i].location.id != m->of->o.gpu->ordinal && getenv("WS_MOCK_NO_PEERS"))
                no_peer = true;
        }
        if (no_peer || ws_space_set_access(mock_space, m->va, readers, writers))
            break;
        at += m->bytes;
    }
    pthread_mutex_unlock(&mock_lock);
    if (no_peer)
        return wrong(__func__, "a GPU that can't reach it is given access", va, bytes);
    return at == end ? WS_CU_SUCCESS : wrong(__func__, "is not a run of whole mappings", va, bytes);
}

/* ---- plain device memory ---- */

uint64_t mock_alloc(struct mock_gpu *g, size_t bytes)
{
    uint64_t whole = WS_ALIGN_UP(WS_MAX(bytes, (size_t)1), (size_t)512);
    uint8_t *host = calloc(1, whole);
    uint64_t va = 0;
    pthread_mutex_lock(&mock_lock);
    if (host && !GROW(plain) && take(g, whole)) {
        va = next_plain;
        next_plain += whole + 65536;
        if (ws_space_map_host(mock_space, va, whole, host)) {
            g->used_bytes -= whole;
            va = 0;
        } else {
            if (ws_space_set_access(mock_space, va, UINT32_C(1) << g->ordinal,
                                    UINT32_C(1) << g->ordinal))
                abort();
            plain[n_plain++] = (struct plain){va, whole, host, g};
        }
    }
    pthread_mutex_unlock(&mock_lock);
    if (!va)
        free(host);
    return va;
}

bool mock_free(uint64_t va)
{
    pthread_mutex_lock(&mock_lock);
    size_t k = 0;
    while (k < n_plain && plain[k].va != va)
        k++;
    bool found = k < n_plain && !ws_space_unmap(mock_space, va);
    if (found) {
        plain[k].gpu->used_bytes -= plain[k].bytes;
        free(plain[k].host);
        plain[k] = plain[--n_plain];
    }
    pthread_mutex_unlock(&mock_lock);
    return found;
}

ws_cu_result cuMemAlloc(ws_cu_ptr *va, size_t bytes)
{
    ENTER(MOCK_CTX);
    *va = mock_alloc(mock_current(), bytes);
    return *va ? WS_CU_SUCCESS : WS_CU_OUT_OF_MEMORY;
}

ws_cu_result cuMemFree(ws_cu_ptr va)
{
    ENTER(MOCK_CTX);
    return mock_free(va) ? WS_CU_SUCCESS : wrong(__func__, "was not allocated", va, 0);
}

uint8_t *mock_host_of(uint64_t va, uint64_t bytes)
{
    struct ws_mapping m;
    return ws_space_find(mock_space, va, bytes, &m) ? m.host + (va - m.va) : NULL;
}

/* Whether the GPU's own copies and kernels may use it: its first and its last byte. */
bool mock_reaches(const struct mock_gpu *g, uint64_t va, uint64_t bytes)
{
    struct ws_mapping m;
    uint32_t who = UINT32_C(1) << g->ordinal;
    return ws_space_find_as(mock_space, who, va, 1, &m) &&
           ws_space_find_as(mock_space, who, va + bytes - 1, 1, &m);
}

/* ---- host memory ---- */

static ws_cu_result pin(void *p, uint64_t bytes, bool ours)
{
    pthread_mutex_lock(&mock_lock);
    int r = GROW(pinned) ? WS_CU_OUT_OF_MEMORY : WS_CU_SUCCESS;
    for (size_t k = 0; k < n_pinned; k++)
        if ((uint8_t *)p < pinned[k].p + pinned[k].bytes && pinned[k].p < (uint8_t *)p + bytes)
            r = WS_CU_HOST_MEMORY_ALREADY_REGISTERED;
    if (!r && ws_space_map_host(mock_space, (uintptr_t)p, bytes, p))
        r = WS_CU_INVALID_VALUE;
    if (!r)
        pinned[n_pinned++] = (struct pinned){p, bytes, ours, false, mock_current()};
    pthread_mutex_unlock(&mock_lock);
    return r;
}

static bool unpin(void *p, bool ours)
{
    pthread_mutex_lock(&mock_lock);
    size_t k = 0;
    while (k < n_pinned && (pinned[k].p != p || pinned[k].ours != ours))
        k++;
    bool found = k < n_pinned;
    if (found) {
        pinned[k] = pinned[--n_pinned];
        found = !ws_space_unmap(mock_space, (uintptr_t)p);
    }
    pthread_mutex_unlock(&mock_lock);
    return found;
}

bool mock_is_pinned(const void *p, uint64_t bytes)
{
    const uint8_t *q = p;
    bool yes = false;
    pthread_mutex_lock(&mock_lock);
    for (size_t k = 0; k < n_pinned; k++)
        yes |= q >= pinned[k].p && (uint64_t)(q - pinned[k].p) < pinned[k].bytes &&
               bytes <= pinned[k].bytes - (uint64_t)(q - pinned[k].p);
    pthread_mutex_unlock(&mock_lock);
    return yes;
}

ws_cu_result cuMemHostAlloc(void **p, size_t bytes, unsigned flags)
{
    ENTER(MOCK_CTX);
    *p = NULL;
    if (posix_memalign(p, 4096, WS_ALIGN_UP(bytes, (size_t)4096)))
        return WS_CU_OUT_OF_MEMORY;
    int r = pin(*p, WS_ALIGN_UP(bytes, (size_t)4096), true);
    if (r)
        free(*p);
    return r;
}

ws_cu_result cuMemFreeHost(void *p)
{
    ENTER(MOCK_CTX);
    if (!unpin(p, true))
        return wrong(__func__, "was not allocated", (uintptr_t)p, 0);
    free(p);
    return WS_CU_SUCCESS;
}

ws_cu_result cuMemHostRegister(void *p, size_t bytes, unsigned flags)
{
    ENTER(MOCK_CTX);
    return pin(p, bytes, false);
}

ws_cu_result cuMemHostUnregister(void *p)
{
    ENTER(MOCK_CTX);
    if (unpin(p, false))
        return WS_CU_SUCCESS;
    mock_violation("cuMemHostUnregister: %p was not registered", p);
    return WS_CU_HOST_MEMORY_NOT_REGISTERED;
}

void mock_memory_leaks(const struct mock_gpu *g)
{
    size_t n[3] = {0};
    pthread_mutex_lock(&mock_lock);
    for (size_t k = 0; k < n_mappings; k++)
        n[0] += mappings[k].of->o.gpu == g;
    for (size_t k = 0; k < n_plain; k++)
        n[1] += plain[k].gpu == g;
    for (size_t k = 0; k < n_pinned; k++)
        n[2] += pinned[k].gpu == g;
    pthread_mutex_unlock(&mock_lock);
    static const char *const what[] = {"mappings", "device allocations", "pinned host ranges"};
    for (int k = 0; k < 3; k++)
        if (n[k])
            mock_violation("%zu %s left when the context was released", n[k], what[k]);
}

void mock_memory_reset(void)
{
    pthread_mutex_lock(&mock_lock);
    for (; n_mappings; n_mappings--) {
        struct mapping *m = &mappings[n_mappings - 1];
        if (m->visible && ws_space_unmap(mock_space, m->va))
            abort();
        munmap(m->host, m->bytes);
    }
    for (; n_plain; n_plain--) {
        if (ws_space_unmap(mock_space, plain[n_plain - 1].va))
            abort();
        free(plain[n_plain - 1].host);
    }
    for (; n_pinned; n_pinned--) {
        if (ws_space_unmap(mock_space, (uintptr_t)pinned[n_pinned - 1].p))
            abort();
        if (pinned[n_pinned - 1].ours)
            free(pinned[n_pinned - 1].p);
    }
    for (; n_reservations; n_reservations--)
        munmap((void *)(uintptr_t)reservations[n_reservations - 1].va,
               reservations[n_reservations - 1].bytes);
    pthread_mutex_unlock(&mock_lock);
}
