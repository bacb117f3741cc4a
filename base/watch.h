/* SPDX-License-Identifier: Apache-2.0 */
/* base/watch.h - the end of a descriptor that an epoll watches. Threads: any. */
#ifndef WS_BASE_WATCH_H
#define WS_BASE_WATCH_H

#include <sys/epoll.h>
#include <unistd.h>

/* Closes @fd, of which @epoll_fd tells nothing from then on. close() alone is not enough: the epoll
 * watches as long as any process has the file open, and a process that another thread is starting
 * has all files open until it executes its program (epoll(7), questions and answers). */
static inline void ws_watch_close(int epoll_fd, int fd)
{
    epoll_ctl(epoll_fd, EPOLL_CTL_DEL, fd, NULL);
    close(fd);
}

#endif
