// SPDX-License-Identifier: Apache-2.0
/* Pages are frozen with userfaultfd's write protection: a write faults, the thread sleeps until the
 * descriptor is closed, and then the write is tried again. Nobody ever reads the descriptor. Older
 * kernels do not protect pages that do not exist yet, so the pages are touched. */
#include "frontend/session/freeze.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096 };
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

static int open_fd(void)
{
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    return fd >= 0 ? fd : (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
}

/* Makes each page there and ours alone, and changes nothing, whoever writes beside. */
static void touch(uint64_t from, uint64_t to)
{
    for (; from < to; from += PAGE)
        __asm__ volatile("lock orb $0, %0" : "+m"(*(volatile uint8_t *)(uintptr_t)from));
}

int ws_freeze(uint64_t from, uint64_t to)
{
    struct uffdio_api api = {.api = UFFD_API, .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP};
    struct uffdio_range range = {.start = from, .len = to - from};
    struct uffdio_register reg = {.range = range, .mode = UFFDIO_REGISTER_MODE_WP};
    struct uffdio_writeprotect wp = {.range = range, .mode = UFFDIO_WRITEPROTECT_MODE_WP};
    int fd = open_fd();
    if (fd < 0)
        return -errno;
    touch(from, to);
    if (!ioctl(fd, UFFDIO_API, &api) && !ioctl(fd, UFFDIO_REGISTER, &reg) &&
        !ioctl(fd, UFFDIO_WRITEPROTECT, &wp))
        return fd;
    int e = errno;
    close(fd);
    return -e;
}

void ws_thaw(int freeze)
{
    if (freeze >= 0)
        close(freeze);
}
