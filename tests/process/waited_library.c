/* SPDX-License-Identifier: Apache-2.0 */
/* tests/process/waited_library.c - for LD_PRELOAD: measures the turns of the daemon's loop, and how
 * long it takes until a GPU's worker has asked the GPU to stop a kernel. The file that WAITED names
 * gets the figures (waited.h); waited.c prints them.
 *
 * The loop is the daemon's first thread, which sleeps in poll(). A worker takes what it is asked in
 * its first thread, by recvmsg(). The kernel tells what a thread used of a processor, how long it
 * was ready without one (schedstat), and how often it has slept. Without a sleep nothing was waited
 * for, whatever the clock says: a hypervisor may have stopped the machine. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "device/worker/wire.h"
#include "tests/process/waited.h"

static struct waited *waited;
static bool is_worker;
static int schedstat = -1; /* of the first thread */

static void open_file(void)
{
    const char *path = getenv("WAITED");
    bool is_daemon = !strcmp(program_invocation_short_name, "wattshared");
    is_worker = !strcmp(program_invocation_short_name, "wattshare-gpu-worker");
    int fd = path && (is_daemon || is_worker) ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *p = fd < 0 ? MAP_FAILED
                     : mmap(NULL, sizeof(*waited), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    waited = p == MAP_FAILED ? NULL : p;
}

/* Whether the calling thread is one whose time is measured. */
static bool is_measured(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_file);
    return waited && gettid() == getpid();
}

static uint64_t clock_ns(clockid_t which)
{
    struct timespec t;
    clock_gettime(which, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* What the first thread has had until now. */
struct had {
    uint64_t whole_ns, processor_ns, ready_ns, n_sleeps;
};

static struct had now(void)
{
    struct had h;
    struct rusage u;
    char text[96];
    if (schedstat < 0) /* above what a worker closes at its start */
        schedstat = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    ssize_t n = pread(schedstat, text, sizeof(text) - 1, 0);
    if (n < 0) { /* the process has closed what it did not know */
        schedstat = -1;
        n = 0;
    }
    text[n] = 0;
    const char *second = strchr(text, ' ');
    h.ready_ns = second ? strtoull(second, NULL, 10) : 0;
    getrusage(RUSAGE_THREAD, &u);
    h.n_sleeps = (uint64_t)u.ru_nvcsw;
    h.processor_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    h.whole_ns = clock_ns(CLOCK_MONOTONIC);
    return h;
}

static struct waited_time between(const struct had *from, const struct had *to)
{
    struct waited_time t = {to->whole_ns - from->whole_ns, to->processor_ns - from->processor_ns,
                            0};
    uint64_t known = t.processor_ns + (to->ready_ns - from->ready_ns);
    if (to->n_sleeps != from->n_sleeps && t.whole_ns > known)
        t.waited_ns = t.whole_ns - known;
    return t;
}

static void count(struct waited_kind *k, const struct waited_time *t)
{
    uint64_t own = t->processor_ns + t->waited_ns;
    unsigned bits = 0;
    while (bits < 31 && own >> bits >= 1000)
        bits++;
    k->within[bits]++;
    if (own > k->longest.processor_ns + k->longest.waited_ns)
        k->longest = *t;
    if (t->whole_ns > k->most_whole.whole_ns)
        k->most_whole = *t;
    k->n++;
}

/* ---- the loop ---- */

enum { LOOPS_FDS = 3 }; /* it has more than whoever waits for one connection, before it begins */

static int in_poll(struct pollfd *p, nfds_t n, int ms)
{
    static int (*real)(struct pollfd *, nfds_t, int);
    static struct had begun;
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "poll");
    if (!is_measured() || is_worker || n < LOOPS_FDS)
        return real(p, n, ms);
    struct had end = now();
    if (begun.whole_ns) {
        struct waited_time t = between(&begun, &end);
        count(&waited->turns, &t);
    }
    int r = real(p, n, ms);
    begun = now();
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

/* ---- from the daemon to the worker ---- */

static bool is_preempt(const struct msghdr *m, size_t n, struct ws_wire_head *ret)
{
    if (m->msg_iovlen != 1 || n != sizeof(*ret))
        return false;
    memcpy(ret, m->msg_iov[0].iov_base, sizeof(*ret));
    return ret->type == WS_WIRE_PREEMPT && !ret->bytes;
}

ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
    static ssize_t (*real)(int, const struct msghdr *, int);
    struct ws_wire_head head;
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "sendmsg");
    (void)is_measured();
    if (waited && !is_worker && m->msg_iovlen == 1 && is_preempt(m, m->msg_iov[0].iov_len, &head)) {
        struct waited_asked *a = &waited->asked[head.id % WAITED_ASKED];
        a->ns = clock_ns(CLOCK_MONOTONIC);
        __atomic_store_n(&a->id, head.id, __ATOMIC_RELEASE);
    }
    return real(fd, m, flags);
}

/* ---- the worker ---- */

enum { SERVED = 64 };
static struct { /* what was served last, by the end */
    uint64_t end_ns;
    struct waited_time time;
} served[SERVED];
static unsigned n_served;
static struct had begun;
static uint64_t asked_ns; /* of what is served; 0: it is no preemption */

static void serve_begin(const struct msghdr *m, size_t n)
{
    struct ws_wire_head head;
    asked_ns = 0;
    if (is_preempt(m, n, &head)) {
        const struct waited_asked *a = &waited->asked[head.id % WAITED_ASKED];
        if (__atomic_load_n(&a->id, __ATOMIC_ACQUIRE) == head.id)
            asked_ns = a->ns;
    }
    begun = now();
}

/* What the thread did and waited for since it was asked counts, be it for a message before. */
static void serve_end(void)
{
    struct had end = now();
    struct waited_time t = between(&begun, &end);
    served[n_served % SERVED].end_ns = end.whole_ns;
    served[n_served++ % SERVED].time = t;
    if (!asked_ns)
        return;
    struct waited_time all = {end.whole_ns - asked_ns, 0, 0};
    for (unsigned k = 0; k < SERVED; k++)
        if (served[k].end_ns > asked_ns) {
            all.processor_ns += served[k].time.processor_ns;
            all.waited_ns += served[k].time.waited_ns;
        }
    /* of a message before, what was before it was asked does not count */
    all.processor_ns = WS_MIN(all.processor_ns, all.whole_ns);
    all.waited_ns = WS_MIN(all.waited_ns, all.whole_ns - all.processor_ns);
    count(&waited->preempts, &all);
}

ssize_t recvmsg(int fd, struct msghdr *m, int flags)
{
    static ssize_t (*real)(int, struct msghdr *, int);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "recvmsg");
    if (fd != WS_WIRE_FD_OPS || !is_measured() || !is_worker)
        return real(fd, m, flags);
    if (begun.whole_ns)
        serve_end();
    ssize_t n = real(fd, m, flags);
    serve_begin(m, n > 0 ? (size_t)n : 0);
    return n;
}
