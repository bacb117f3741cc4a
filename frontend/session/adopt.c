// SPDX-License-Identifier: Apache-2.0
/* Host memory of the program's own, made usable by kernels (cudaHostRegister). The daemon can't map
 * what is private to another process, so the pages change their backing: a shared segment of the
 * same contents takes their place at the same address, in one step (mremap), and ordinary anonymous
 * memory takes it back when they are unregistered. Whole pages change, so what lies beside the
 * program's memory on its first and last page comes along; it stays where it was and keeps its
 * contents.
 *
 * A piece is a run of pages that one segment stands for. Memory registered in two parts may share a
 * page: then both count the piece it belongs to. Memory that others see (MAP_SHARED) keeps its
 * pages: the daemon maps the same ones, if they are a memfd's that is sealed against shrinking and
 * are mapped from its first byte on, and if the descriptor is still open (or was when the memory
 * was registered at another address). What else can't be exchanged (other files, stacks, read-only
 * memory) is refused.
 *
 * Other threads may write beside the program's memory, or into it, at any time. So the pages are
 * frozen while they change places (freeze.h). Where that can't be done, what a thread writes in
 * that moment could be lost: then memory that shares its first or last page with anything else is
 * exchanged only if the program asked for it to be mapped. Giving it back is always an exchange.
 *
 * Limit: a child of fork() sees the same pages, not a copy. */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/alloc.h"
#include "frontend/session/freeze.h"
#include "frontend/session/private.h"

enum { PAGE = 4096 };
struct piece {
    uint64_t from, to;
    uint32_t segment, n_uses;
    int fd;             /* of shared memory; -1: the pages were exchanged */
    struct piece *next; /* by address */
};
static struct piece *pieces;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

enum backing { BACKING_OTHER, BACKING_PRIVATE, BACKING_SEGMENT };

/* What kind of memory all of [from, to) is now; OTHER if it is of several kinds, or has holes. */
static enum backing backing_of(uint64_t from, uint64_t to)
{
    enum backing found = BACKING_OTHER;
    unsigned long first, last;
    char perms[5], name[64], *line = NULL;
    size_t cap = 0;
    bool any = false;
    FILE *f = fopen("/proc/self/maps", "re");
    while (f && from < to && getline(&line, &cap, f) > 0) {
        name[0] = 0;
        if (sscanf(line, "%lx-%lx %4s %*s %*s %*s %63s", &first, &last, perms, name) < 3 ||
            last <= from)
            continue;
        enum backing b = BACKING_OTHER;
        if (!strcmp(perms, "rw-p") && strcmp(name, "[stack]") && strncmp(name, "/dev/", 5))
            b = BACKING_PRIVATE;
        else if (!strncmp(name, "/memfd:wattshare", 16))
            b = BACKING_SEGMENT;
        if (first > from || (any && b != found)) {
            found = BACKING_OTHER;
            break;
        }
        any = true;
        found = b;
        from = last;
    }
    if (f)
        fclose(f);
    free(line);
    return from < to ? BACKING_OTHER : found;
}

static bool on_this_stack(uint64_t from, uint64_t to)
{
    uint64_t here = (uintptr_t)__builtin_frame_address(0);
    return here >= from - PAGE && here < to + PAGE;
}

/* Copies whole pages, with what lies beside the program's memory. So a sanitizer must not check
 * where objects end. */
static void copy_pages(void *to, uint64_t from, size_t bytes)
{
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}

/* The pages at @now take the place of those at @at, with their contents. @anyway: even if other
 * threads cannot be stopped meanwhile. A signal's handler must not run on this thread in between:
 * it could wait for the thaw. */
static ws_err exchange(uint64_t at, void *now, size_t bytes, bool anyway)
{
    ws_err r = WS__ERROR__OK;
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int freeze = ws_freeze(at, at + bytes);
    if (freeze < 0 && !anyway) {
        r = WS__ERROR__NOT_SUPPORTED;
    } else {
        copy_pages(now, at, bytes);
        if (mremap(now, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)(uintptr_t)at) ==
            MAP_FAILED)
            r = WS__ERROR__OUT_OF_MEMORY;
    }
    ws_thaw(freeze);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return r;
}

/* Which file is mapped for all to see at [from, to), in one piece and from its first byte on.
 * Return: false: none. */
static bool shared_file(uint64_t from, uint64_t to, dev_t *ret_device, ino_t *ret_inode)
{
    unsigned long first, last, offset, inode;
    unsigned major, minor;
    char perms[5], *line = NULL;
    size_t cap = 0;
    bool found = false;
    FILE *f = fopen("/proc/self/maps", "re");
    while (!found && f && getline(&line, &cap, f) > 0)
        found = sscanf(line, "%lx-%lx %4s %lx %x:%x %lu", &first, &last, perms, &offset, &major,
                       &minor, &inode) == 7 &&
                first <= from && last >= to && !strcmp(perms, "rw-s") && offset == 0 &&
                first == from;
    if (f)
        fclose(f);
    free(line);
    *ret_device = found ? makedev(major, minor) : 0;
    *ret_inode = found ? inode : 0;
    return found;
}

static bool is_file(int fd, dev_t device, ino_t inode)
{
    struct stat st;
    return fd >= 0 && !fstat(fd, &st) && st.st_dev == device && st.st_ino == inode &&
           (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDWR;
}

/* A new descriptor of a file that this process has open, or that a piece has kept; -1: none. */
static int find_descriptor(dev_t device, ino_t inode)
{
    int found = -1;
    for (struct piece *p = pieces; p && found < 0; p = p->next)
        found = is_file(p->fd, device, inode) ? fcntl(p->fd, F_DUPFD_CLOEXEC, 0) : -1;
    DIR *d = found < 0 ? opendir("/proc/self/fd") : NULL;
    for (struct dirent *e; d && found < 0 && (e = readdir(d));) {
        int fd = atoi(e->d_name);
        found =
            e->d_name[0] != '.' && is_file(fd, device, inode) ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    }
    if (d)
        closedir(d);
    return found;
}

/* Has the daemon map the pages of @p, too; frees it on an error. Lock held. */
static ws_err piece_share(struct ws_channel *c, struct piece *p)
{
    Ws__HostMap map = WS__HOST_MAP__INIT;
    dev_t device;
    ino_t inode;
    ws_err r = WS__ERROR__NOT_SUPPORTED;
    p->fd = shared_file(p->from, p->to, &device, &inode) ? find_descriptor(device, inode) : -1;
    if (p->fd >= 0)
        r = ws_channel_segment_share(c, p->fd, p->to - p->from, &p->segment);
    if (!r) {
        map.segment = p->segment;
        map.address = p->from;
        r = ws_channel_call(c, WS_COMMAND(HOST_MAP, host_map, &map), NULL);
        if (r)
            (void)ws_channel_post(c, WS_COMMAND(HOST_UNMAP, host_unmap, p->segment));
    }
    if (r && p->fd >= 0)
        close(p->fd);
    if (r)
        free(p);
    return r;
}

/* Exchanges [from, to), no page of which belongs to a piece. @anyway: even if the pages cannot be
 * frozen. Lock held. */
static ws_err piece_new(struct ws_channel *c, uint64_t from, uint64_t to, bool anyway,
                        struct piece **ret)
{
    struct ws_channel_segment s;
    Ws__HostMap map = WS__HOST_MAP__INIT;
    struct piece *p = ws_alloc(sizeof(*p));
    if (!p)
        return WS__ERROR__OUT_OF_MEMORY;
    if (backing_of(from, to) != BACKING_PRIVATE || on_this_stack(from, to)) {
        *p = (struct piece){.from = from, .to = to, .fd = -1};
        *ret = p;
        return piece_share(c, p);
    }
    ws_err r = ws_channel_segment_new(c, WS_HANDOFF_PINNED, to - from, 0, &s);
    if (r) {
        free(p);
        return r;
    }
    map.segment = s.id;
    map.address = from;
    r = ws_channel_call(c, WS_COMMAND(HOST_MAP, host_map, &map), NULL);
    if (!r) {
        r = exchange(from, s.data, to - from, anyway);
        if (r)
            (void)ws_channel_post(c, WS_COMMAND(HOST_UNMAP, host_unmap, s.id));
    }
    if (r) {
        munmap(s.map, s.map_bytes);
        free(p);
        return r;
    }
    *p = (struct piece){.from = from, .to = to, .segment = s.id, .fd = -1};
    *ret = p;
    return r;
}

/* Back to ordinary memory, unless the program has put something else there. */
static void piece_end(struct ws_channel *c, struct piece *p)
{
    size_t bytes = p->to - p->from;
    (void)ws_channel_post(c, WS_COMMAND(HOST_UNMAP, host_unmap, p->segment));
    if (p->fd >= 0) {
        close(p->fd);
    } else if (backing_of(p->from, p->to) == BACKING_SEGMENT) {
        void *plain = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        /* If not, it stays in the segment, which nobody else uses any more. */
        if (plain != MAP_FAILED && exchange(p->from, plain, bytes, true))
            munmap(plain, bytes);
    }
    free(p);
}

/* Counts the pieces in [from, to) up or down, and ends those that nobody uses. */
static void count(struct ws_channel *c, uint64_t from, uint64_t to, int by)
{
    for (struct piece **at = &pieces; *at && (*at)->from < to;) {
        struct piece *p = *at;
        if (p->to > from)
            p->n_uses += (uint32_t)by;
        if (p->n_uses) {
            at = &p->next;
            continue;
        }
        *at = p->next;
        piece_end(c, p);
    }
}

/* Makes pieces for all of [from, to) that has none yet. */
static ws_err fill_gaps(struct ws_channel *c, uint64_t from, uint64_t to, bool anyway)
{
    struct piece **at = &pieces;
    ws_err r = WS__ERROR__OK;
    while (!r && from < to) {
        while (*at && (*at)->to <= from)
            at = &(*at)->next;
        if (*at && (*at)->from <= from) {
            from = (*at)->to;
            continue;
        }
        uint64_t end = *at ? WS_MIN((*at)->from, to) : to;
        struct piece *p = NULL;
        r = piece_new(c, from, end, anyway, &p);
        if (r)
            break;
        p->next = *at;
        *at = p;
        from = end;
    }
    return r;
}

ws_err ws_session_host_adopt(void *p, uint64_t bytes, bool must_map)
{
    struct ws_channel *c;
    uint64_t base = (uintptr_t)p, from = base & -(uint64_t)PAGE, to;
    ws_err r = ws_session_enter(&c);
    if (!r && (!bytes || __builtin_add_overflow(base, bytes, &to) || to > UINT64_MAX - PAGE))
        r = WS__ERROR__INVALID_VALUE;
    if (!r && !ws_session_local())
        r = WS__ERROR__NOT_SUPPORTED;
    if (r)
        return r;
    to = WS_ALIGN_UP(to, (uint64_t)PAGE);
    pthread_mutex_lock(&lock);
    r = fill_gaps(c, from, to, must_map || (base == from && base + bytes == to));
    if (!r)
        r = ws_memtab_add(WS_MEM_PINNED, base, bytes, 0, 0);
    count(c, from, to, r ? 0 : 1); /* after an error: takes back what nobody counts */
    pthread_mutex_unlock(&lock);
    return r;
}

ws_err ws_session_host_disown(void *p)
{
    struct ws_channel *c;
    uint64_t base = (uintptr_t)p, bytes;
    if (ws_session_ended())
        return WS__ERROR__OK;
    ws_err r = ws_session_enter_anyway(&c);
    if (r)
        return r;
    if (!ws_memtab_remove(WS_MEM_PINNED, base, NULL, &bytes))
        return WS__ERROR__INVALID_VALUE;
    pthread_mutex_lock(&lock);
    count(c, base & -(uint64_t)PAGE, WS_ALIGN_UP(base + bytes, (uint64_t)PAGE), -1);
    pthread_mutex_unlock(&lock);
    return WS__ERROR__OK;
}
