// SPDX-License-Identifier: Apache-2.0
/* A process number says who somebody is only as long as the process lives: when it has ended,
 * another program can get the number. So we hold a descriptor of the process while we read /proc,
 * and believe what we have read if the process is alive afterwards.
 *
 * Since Linux 6.5 the socket itself gives that descriptor (SO_PEERPIDFD), of the very process that
 * connected. Before, we open it by the number; the process that had the number when it connected
 * may be gone by then, so we also compare the user. A program of the same user can then still pass
 * for the one that connected, which is no more than that user may do anyway. */
#include "backend/client/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif

/* Return: bytes, without the 0 at the end. */
static size_t read_text(uint32_t pid, const char *name, char *buf, size_t size)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%u/%s", pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, buf, size - 1);
    buf[n > 0 ? n : 0] = 0;
    if (fd >= 0)
        close(fd);
    return n > 0 ? (size_t)n : 0;
}

/* The descriptor of a process says its number in /proc/self/fdinfo. */
static bool is_of_process(int pidfd, uint32_t pid)
{
    char name[32], text[512];
    snprintf(name, sizeof(name), "fdinfo/%d", pidfd);
    (void)read_text((uint32_t)getpid(), name, text, sizeof(text));
    const char *at = strstr(text, "\nPid:");
    return at && strtol(at + strlen("\nPid:"), NULL, 10) == (long)pid;
}

/* The effective user, which is the one that a socket tells. */
static bool is_of_user(uint32_t pid, uint32_t uid)
{
    char text[4096];
    unsigned real, effective;
    if (!read_text(pid, "status", text, sizeof(text)))
        return false;
    const char *at = strstr(text, "\nUid:");
    return at && sscanf(at, "\nUid: %u %u", &real, &effective) == 2 && effective == uid;
}

static bool is_of_peer(int fd, uint32_t pid, uint32_t uid)
{
    struct ucred cred;
    socklen_t n = sizeof(cred);
    return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &n) && (uint32_t)cred.pid == pid &&
           cred.uid == uid;
}

/* Return: -1: the process is not there any more, or it is another one. */
static int process_open(int fd, uint32_t pid, uint32_t uid)
{
    int pidfd = -1;
    socklen_t n = sizeof(pidfd);
    bool peer = fd >= 0 && is_of_peer(fd, pid, uid);
    if (!peer || getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &n)) {
        pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
        if (pidfd < 0 || is_of_user(pid, uid))
            return pidfd;
    } else {
        /* the number in another PID namespace would be another one */
        (void)fcntl(pidfd, F_SETFD, FD_CLOEXEC);
        if (is_of_process(pidfd, pid))
            return pidfd;
    }
    close(pidfd);
    return -1;
}

static bool is_alive(int pidfd)
{
    return !syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0) || errno == EPERM;
}

/* Which file it is, as far as the kernel knows without asking the file system's server. */
static int look(int dir, const char *path, int flags, struct statx *ret)
{
    return statx(dir, path, flags | AT_STATX_DONT_SYNC, STATX_INO, ret);
}

/* The same for the file that has the path here. The kernel has in memory where a program that runs
 * lies, unless the path is another file's, or a server's that wants to be asked again. The latter
 * is done only where the configuration @names the path, so that nobody can choose which server. */
static int look_here(const char *path, bool (*names)(const void *arg, const char *path),
                     const void *arg, struct statx *ret)
{
    struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_CACHED};
    int fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
    if (fd < 0 && errno != ENOENT && names(arg, path))
        fd = open(path, O_PATH | O_CLOEXEC);
    int r = fd < 0 ? -1 : look(fd, "", AT_EMPTY_PATH, ret);
    if (fd >= 0)
        close(fd);
    return r;
}

/* The path, if this file has it here too. */
static void read_exe(uint32_t pid, bool (*names)(const void *arg, const char *path),
                     const void *arg, char *buf, size_t size)
{
    char link[64];
    struct statx there, here;
    snprintf(link, sizeof(link), "/proc/%u/exe", pid);
    ssize_t n = readlink(link, buf, size - 1);
    buf[n > 0 ? n : 0] = 0;
    if (n <= 0 || (size_t)n >= size - 1 || look(AT_FDCWD, link, 0, &there) ||
        look_here(buf, names, arg, &here) || there.stx_ino != here.stx_ino ||
        there.stx_dev_major != here.stx_dev_major || there.stx_dev_minor != here.stx_dev_minor)
        buf[0] = 0;
}

void ws_identity_read(int fd, uint32_t pid, uint32_t uid,
                      bool (*names)(const void *arg, const char *path), const void *arg,
                      struct ws_identity *ret)
{
    ret->exe[0] = ret->cgroups[0] = 0;
    int pidfd = process_open(fd, pid, uid);
    if (pidfd < 0)
        return;
    read_exe(pid, names, arg, ret->exe, sizeof(ret->exe));
    read_text(pid, "cgroup", ret->cgroups, sizeof(ret->cgroups));
    if (!is_alive(pidfd))
        ret->exe[0] = ret->cgroups[0] = 0;
    close(pidfd);
}

/* 0: the process is gone. */
static uint32_t parent_of(uint32_t pid)
{
    char text[512];
    unsigned parent;
    if (!read_text(pid, "stat", text, sizeof(text)))
        return 0;
    const char *at = strrchr(text, ')'); /* the name before it may have any character */
    return at && sscanf(at, ") %*c %u", &parent) == 1 ? parent : 0;
}

uint32_t ws_identity_line(int fd, uint32_t pid, uint32_t uid, uint32_t *ret, uint32_t max)
{
    uint32_t n = 0;
    int pidfd = process_open(fd, pid, uid);
    if (pidfd < 0)
        return 0;
    for (uint32_t p = pid; p && n < max; p = parent_of(p))
        ret[n++] = p;
    if (!is_alive(pidfd))
        n = 0;
    close(pidfd);
    return n;
}
