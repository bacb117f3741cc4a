// SPDX-License-Identifier: Apache-2.0
/* device/soft/jit/pages.c - where compiled code lies.
 *
 * No page is ever writable and executable at once, and none becomes executable by mprotect(), which
 * the sandbox of the packaged daemon does not allow (MemoryDenyWriteExecute= in systemd.exec(5)).
 * So the pages are a file in memory. What is written goes to a mapping of it, which in the end is
 * replaced, at the same address, by ones that can be executed or only read. Then nothing can write
 * to the file any more: it is sealed, and closed. */
#include "device/soft/jit/pages.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"

static int file_of(uint64_t bytes)
{
    int fd = memfd_create("wattshare-code", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd >= 0 && ftruncate(fd, (off_t)bytes)) {
        close(fd);
        return -1;
    }
    return fd;
}

struct ws_jit_pages *ws_jit_pages_new(uint64_t code_bytes, uint64_t data_bytes)
{
    struct ws_jit_pages *p = ws_alloc(sizeof(*p));
    if (!p)
        return NULL;
    uint64_t page = (uint64_t)getpagesize();
    p->code_bytes = WS_ALIGN_UP(code_bytes, page);
    p->data_bytes = WS_ALIGN_UP(data_bytes, page);
    p->fd = file_of(p->code_bytes + p->data_bytes);
    if (p->fd < 0)
        return ws_jit_pages_free(p);
    void *at =
        mmap(NULL, p->code_bytes + p->data_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, p->fd, 0);
    if (at == MAP_FAILED)
        return ws_jit_pages_free(p);
    p->code = at;
    p->data = p->data_bytes ? p->code + p->code_bytes : NULL;
    return p;
}

/* Puts a mapping of the file in the place of the one that is there. */
static bool replace(struct ws_jit_pages *p, uint8_t *at, uint64_t bytes, int protection)
{
    return !bytes ||
           mmap(at, bytes, protection, MAP_PRIVATE | MAP_FIXED, p->fd, (off_t)(at - p->code)) == at;
}

bool ws_jit_pages_finish(struct ws_jit_pages *p)
{
    bool ok = replace(p, p->code, p->code_bytes, PROT_READ | PROT_EXEC) &&
              replace(p, p->data, p->data_bytes, PROT_READ) &&
              !fcntl(p->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
    close(p->fd);
    p->fd = -1;
    return ok;
}

struct ws_jit_pages *ws_jit_pages_free(struct ws_jit_pages *p)
{
    if (!p)
        return NULL;
    if (p->code)
        munmap(p->code, p->code_bytes + p->data_bytes);
    if (p->fd >= 0)
        close(p->fd);
    free(p);
    return NULL;
}
