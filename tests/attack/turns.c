/* SPDX-License-Identifier: Apache-2.0 */
/* tests/attack/turns.c - a library for LD_PRELOAD that measures how much processor time the
 * daemon's loop takes from one poll() to the next. Unlike what a bystander waits, this does not
 * depend on what else the machine does. */
#include <dlfcn.h>
#include <fcntl.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "tests/attack/turns.h"

static struct turns *turns;
static uint64_t begun_ns;

static uint64_t thread_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void open_turns(void)
{
    /* Programs that the daemon starts get the library, too. */
    bool is_daemon = !strcmp(program_invocation_short_name, "wattshared");
    const char *path = is_daemon ? getenv("ATTACK_TURNS") : NULL;
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *p =
        fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*turns), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    turns = p == MAP_FAILED ? NULL : p;
}

static int in_poll(struct pollfd *p, nfds_t n, int ms)
{
    static int (*real)(struct pollfd *, nfds_t, int);
    if (!real) {
        *(void **)&real = dlsym(RTLD_NEXT, "poll");
        open_turns();
    }
    if (!turns || gettid() != getpid())
        return real(p, n, ms);
    uint64_t ns = begun_ns ? thread_ns() - begun_ns : 0;
    if (ns > turns->longest_ns)
        turns->longest_ns = ns;
    int r = real(p, n, ms);
    begun_ns = thread_ns();
    return r;
}

int poll(struct pollfd *p, nfds_t n, int ms)
{
    return in_poll(p, n, ms);
}

int __poll_chk(struct pollfd *p, nfds_t n, int ms, size_t size);
int __poll_chk(struct pollfd *p, nfds_t n, int ms, size_t size)
{
    (void)size;
    return in_poll(p, n, ms);
}
