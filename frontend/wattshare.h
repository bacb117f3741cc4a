/* SPDX-License-Identifier: Apache-2.0 */
/* wattshare.h - for CUDA programs that want to say more of themselves than their CUDA calls do:
 * where a job begins and ends, what its deadline is, that they wait for their next period; and to
 * hear what a job took.
 *
 *     for (;;) {
 *         wattshare_wait_period(0);
 *         wattshare_job_begin(20000000);          // 20 ms
 *         … cudaMemcpyAsync, kernels, …
 *         wattshare_job_end();
 *     }
 *
 * Nothing need be linked: the functions look for libwattshare.so, which `wattshare run` preloads,
 * when they are called. Where a program runs without it they do nothing and say so
 * (WATTSHARE_ABSENT). C99 or C++11; on C libraries older than glibc 2.34 link with -ldl. Threads:
 * any; a process has one job at a time. Times are in ns of the clock of the GPU that the process's
 * device 0 is on, energy in uJ. */
#ifndef WATTSHARE_H
#define WATTSHARE_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

enum {
    WATTSHARE_OK = 0,
    WATTSHARE_ABSENT = 1, /* the program doesn't run under wattshare, or the daemon is gone */
    /* A job has begun already; another thread waits; or GPU work is under way (set_task). */
    WATTSHARE_OPEN = 2,
    WATTSHARE_NONE = 3,    /* no job has begun; the task has no period; no job has ended yet */
    WATTSHARE_UNKNOWN = 4, /* the daemon's configuration has no such task */
    WATTSHARE_DENIED = 5,  /* the task is for other users */
    WATTSHARE_FAILED = 6   /* anything else: the reason is on the log (stderr) */
};

struct wattshare_job {
    /* That of wattshare_wait_period() if it was called right before, else the job's beginning. */
    uint64_t release_ns;
    uint64_t end_ns;      /* of the last of its operations */
    uint64_t response_ns; /* from release to end */
    uint64_t deadline_ns; /* after the release; 0: none */
    uint64_t energy_uj;   /* what its operations took */
    uint64_t met;         /* 1: it kept its deadline, or has none */
};

/* What the library exports under these names; programs call the functions below. */
#ifdef WATTSHARE_LIBRARY
#pragma GCC visibility push(default)
int wattshare_job_begin(uint64_t deadline_ns);
int wattshare_job_end(void);
/* The names of these two in earlier versions of this header. */
int wattshare_segment_begin(uint64_t deadline_ns);
int wattshare_segment_end(void);
int wattshare_set_task(const char *name);
int wattshare_wait_period(uint64_t *ret_release_ns);
uint64_t wattshare_now_ns(void);
int wattshare_job_stats(struct wattshare_job *ret, size_t bytes);
#pragma GCC visibility pop
#else

#if defined(__GNUC__)
#define WATTSHARE_INLINE static inline __attribute__((unused))
#else
#define WATTSHARE_INLINE static inline
#endif

/* Of the function @name in libwattshare.so, where the program has it. */
WATTSHARE_INLINE void *wattshare_find_(const char *name)
{
    return dlsym((void *)0 /* RTLD_DEFAULT, which not every setting declares */, name);
}

/* From here to wattshare_job_end() is one job, to be done @deadline_ns after its release; 0:
 * the deadline of the task. */
WATTSHARE_INLINE int wattshare_job_begin(uint64_t deadline_ns)
{
    union {
        void *p;
        int (*f)(uint64_t);
    } u;
    u.p = wattshare_find_("wattshare_job_begin");
    return u.p ? u.f(deadline_ns) : WATTSHARE_ABSENT;
}

/* The job ends here: waits until all GPU work that the process has given is done. */
WATTSHARE_INLINE int wattshare_job_end(void)
{
    union {
        void *p;
        int (*f)(void);
    } u;
    u.p = wattshare_find_("wattshare_job_end");
    return u.p ? u.f() : WATTSHARE_ABSENT;
}

/* The names of these two in earlier versions of this header. */
#define wattshare_segment_begin wattshare_job_begin
#define wattshare_segment_end   wattshare_job_end

/* This process is of task @name of the daemon's configuration from now on; not while its GPU work
 * is under way. GPUs that the task is confined to count only for a task that is known when the
 * program starts. */
WATTSHARE_INLINE int wattshare_set_task(const char *name)
{
    union {
        void *p;
        int (*f)(const char *);
    } u;
    u.p = wattshare_find_("wattshare_set_task");
    return u.p ? u.f(name) : WATTSHARE_ABSENT;
}

/* Waits for the release of the task's next job. The first call returns at once; the k-th after it k
 * periods later, or at once if that time has passed. @ret_release_ns: that time; or 0.
 * WATTSHARE_ABSENT: returns at once, the program keeps time itself. */
WATTSHARE_INLINE int wattshare_wait_period(uint64_t *ret_release_ns)
{
    union {
        void *p;
        int (*f)(uint64_t *);
    } u;
    u.p = wattshare_find_("wattshare_wait_period");
    return u.p ? u.f(ret_release_ns) : WATTSHARE_ABSENT;
}

/* The GPU's clock; without wattshare CLOCK_MONOTONIC. */
WATTSHARE_INLINE uint64_t wattshare_now_ns(void)
{
    union {
        void *p;
        uint64_t (*f)(void);
    } u;
    struct timespec t = {0, 0};
    uint64_t now;
    u.p = wattshare_find_("wattshare_now_ns");
    now = u.p ? u.f() : 0;
    if (now)
        return now;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Of the job that ended last. */
WATTSHARE_INLINE int wattshare_job_stats(struct wattshare_job *ret)
{
    union {
        void *p;
        int (*f)(struct wattshare_job *, size_t);
    } u;
    u.p = wattshare_find_("wattshare_job_stats");
    return u.p ? u.f(ret, sizeof(*ret)) : WATTSHARE_ABSENT;
}

#endif
#endif
