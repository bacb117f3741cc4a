// SPDX-License-Identifier: Apache-2.0
/* device/soft/jit/pages.c - where compiled code lies.
 *
 * LLVM asks for sections, writes to them, and says when it has finished. No page is ever writable
 * and executable at once, and none becomes executable by mprotect(), which the sandbox of the
 * packaged daemon does not allow (MemoryDenyWriteExecute= in systemd.exec(5)). So a section is a
 * file in memory. LLVM writes to a mapping of it, which in the end is replaced, at the same
 * address, by one that can be read and executed. Then nothing can write to the file any more: it
 * is sealed, and closed.
 *
 * LLVM ends the process if it gets no memory for a section. So a section that can't be had as a
 * file is memory of another kind, which never becomes executable, and the kernel is interpreted. */
#include "device/soft/jit/pages.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/list.h"

struct jit_section {
    struct ws_list node;
    uint8_t *at;
    size_t bytes;
    int fd;         /* until it is finished; -1: it has no file */
    int protection; /* when it is finished */
    bool ready;     /* it has that protection, and cannot change */
};

struct ws_jit_pages {
    struct ws_list sections;
    bool ready;
};

static int file_of(size_t bytes)
{
    int fd = memfd_create("wattshare-code", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd >= 0 && ftruncate(fd, (off_t)bytes)) {
        close(fd);
        return -1;
    }
    return fd;
}

static uint8_t *section_new(struct ws_jit_pages *p, uintptr_t bytes, int protection)
{
    struct jit_section *s = ws_alloc(sizeof(*s));
    if (!s)
        return NULL;
    *s = (struct jit_section){.bytes = WS_ALIGN_UP(bytes ? bytes : 1, (size_t)getpagesize()),
                              .protection = protection};
    s->fd = file_of(s->bytes);
    int kind = s->fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
    s->at = mmap(NULL, s->bytes, PROT_READ | PROT_WRITE, kind, s->fd, 0);
    if (s->at == MAP_FAILED) {
        if (s->fd >= 0)
            close(s->fd);
        free(s);
        return NULL;
    }
    ws_list_append(&p->sections, &s->node);
    return s->at;
}

static bool section_finish(struct jit_section *s)
{
    if (s->fd < 0)
        return s->ready;
    bool ok = mmap(s->at, s->bytes, s->protection, MAP_PRIVATE | MAP_FIXED, s->fd, 0) == s->at;
    /* A section that LLVM's code may write to is its own copy of the file from now on. */
    ok = ok && !fcntl(s->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
    close(s->fd);
    s->fd = -1;
    return s->ready = ok;
}

/* ---- called by LLVM ---- */

/* Whole pages have every alignment that sections ask for. */
static uint8_t *code_section(void *pages, uintptr_t bytes, unsigned alignment, unsigned id,
                             const char *name)
{
    (void)alignment, (void)id, (void)name;
    return section_new(pages, bytes, PROT_READ | PROT_EXEC);
}

static uint8_t *data_section(void *pages, uintptr_t bytes, unsigned alignment, unsigned id,
                             const char *name, llvm_bool read_only)
{
    (void)alignment, (void)id, (void)name;
    return section_new(pages, bytes, read_only ? PROT_READ : PROT_READ | PROT_WRITE);
}

static llvm_bool finish(void *pages, char **ret_text)
{
    struct ws_jit_pages *p = pages;
    (void)ret_text; /* LLVM does not read it */
    p->ready = true;
    ws_list_for_each (n, &p->sections)
        p->ready &= section_finish(ws_list_entry(n, struct jit_section, node));
    return !p->ready;
}

/* The engine ends. */
static void destroy(void *pages)
{
    (void)pages;
}

struct ws_jit_pages *ws_jit_pages_new(void **ret_manager)
{
    struct ws_jit_pages *p = ws_alloc(sizeof(*p));
    if (!p)
        return NULL;
    ws_list_init(&p->sections);
    *ret_manager =
        ws_llvm.CreateSimpleMCJITMemoryManager(p, code_section, data_section, finish, destroy);
    if (*ret_manager)
        return p;
    free(p);
    return NULL;
}

bool ws_jit_pages_are_ready(const struct ws_jit_pages *p)
{
    return p->ready;
}

uint64_t ws_jit_pages_bytes(const struct ws_jit_pages *p)
{
    uint64_t bytes = 0;
    ws_list_for_each (n, &p->sections)
        bytes += ws_list_entry(n, struct jit_section, node)->bytes;
    return bytes;
}

struct ws_jit_pages *ws_jit_pages_free(struct ws_jit_pages *p)
{
    if (!p)
        return NULL;
    ws_list_for_each_safe (n, &p->sections) {
        struct jit_section *s = ws_list_entry(n, struct jit_section, node);
        munmap(s->at, s->bytes);
        if (s->fd >= 0)
            close(s->fd);
        free(s);
    }
    free(p);
    return NULL;
}
