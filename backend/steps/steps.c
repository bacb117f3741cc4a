// SPDX-License-Identifier: Apache-2.0
/* A step's process is watched by a descriptor of it (pidfd), which is readable once the process has
 * ended. So a step ends with its process even if nobody is left to say so, and its number is never
 * taken for that of a later process. */
#include "backend/steps/steps.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backend/accounts/account.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/watch.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

void ws_steps_init(struct ws_steps *s)
{
    *s = (struct ws_steps){.epoll_fd = -1};
    ws_list_init(&s->batches);
}

/* Its process has ended, or nobody wants to know any more. */
static void unwatch(struct ws_batch_step *t)
{
    if (t->pidfd < 0)
        return;
    ws_watch_close(t->all->epoll_fd, t->pidfd);
    t->pidfd = -1;
    HASH_DEL(t->all->by_pid, t);
    if (t->all->by_pid)
        return;
    close(t->all->epoll_fd);
    t->all->epoll_fd = -1;
}

static void step_free(struct ws_batch_step *t)
{
    ws_list_remove(&t->node);
    unwatch(t);
    ws_account_release(t->account, WS_RESOURCE_DESCRIPTORS, 1);
    ws_account_unref(t->account);
    free(t);
}

void ws_steps_forget(struct ws_steps *s, struct ws_batch_job *b)
{
    ws_list_for_each_safe (n, &b->steps)
        step_free(ws_list_entry(n, struct ws_batch_step, node));
    ws_list_remove(&b->node);
    free(b);
    s->n--;
}

void ws_steps_deinit(struct ws_steps *s)
{
    ws_list_for_each_safe (n, &s->batches)
        ws_steps_forget(s, ws_list_entry(n, struct ws_batch_job, node));
    if (s->epoll_fd >= 0)
        close(s->epoll_fd);
    s->epoll_fd = -1;
}

struct ws_batch_job *ws_steps_find(const struct ws_steps *s, uint64_t job)
{
    ws_list_for_each (n, &s->batches) {
        struct ws_batch_job *b = ws_list_entry(n, struct ws_batch_job, node);
        if (b->job == job)
            return b;
    }
    return NULL;
}

/* The oldest batch job that nothing belongs to any more. */
static struct ws_batch_job *oldest_over(const struct ws_steps *s)
{
    ws_list_for_each (n, &s->batches) {
        struct ws_batch_job *b = ws_list_entry(n, struct ws_batch_job, node);
        if (!b->n_programs && ws_list_empty(&b->steps))
            return b;
    }
    return NULL;
}

/* The batch job of the announcement, which may be a new one. */
static int batch_of(struct ws_steps *s, const struct ws_step_info *info, struct ws_batch_job **ret)
{
    struct ws_batch_job *b = ws_steps_find(s, info->job), *over;
    *ret = b;
    if (b)
        return b->uid == info->uid ? 0 : WS_STEPS_E_USER;
    if (s->n >= WS_STEPS_BATCHES) {
        over = oldest_over(s);
        if (!over)
            return WS_STEPS_E_FULL;
        ws_steps_forget(s, over);
    }
    b = ws_alloc(sizeof(*b));
    if (!b)
        return ws_raise(-ENOMEM);
    b->job = info->job;
    b->uid = info->uid;
    b->may = info->may;
    ws_list_init(&b->node);
    ws_list_init(&b->steps);
    ws_list_append(&s->batches, &b->node);
    s->n++;
    *ret = b;
    return 0;
}

/* Return: 0, WS_STEPS_E_GONE, or a negative errno. */
static int watch(struct ws_steps *s, struct ws_batch_step *t)
{
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = t};
    if (s->epoll_fd < 0)
        s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (s->epoll_fd < 0)
        return ws_raise(-errno);
    t->pidfd = (int)syscall(SYS_pidfd_open, t->pid, 0);
    if (t->pidfd < 0)
        return errno == ESRCH || errno == EINVAL ? WS_STEPS_E_GONE : ws_raise(-errno);
    if (epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, t->pidfd, &e)) {
        int r = -errno;
        close(t->pidfd);
        t->pidfd = -1;
        return ws_raise(r);
    }
    HASH_ADD(hh, s->by_pid, pid, sizeof(t->pid), t);
    return 0;
}

int ws_steps_begin(struct ws_steps *s, const struct ws_step_info *info, struct ws_batch_step **ret)
{
    struct ws_batch_step *t;
    struct ws_batch_job *b;
    if (ws_account_charge(info->account, WS_RESOURCE_DESCRIPTORS, 1))
        return WS_STEPS_E_SHARE;
    t = ws_alloc(sizeof(*t));
    if (!t) {
        ws_account_release(info->account, WS_RESOURCE_DESCRIPTORS, 1);
        return ws_raise(-ENOMEM);
    }
    ws_list_init(&t->node);
    t->all = s;
    t->account = ws_account_ref(info->account);
    t->number = info->number;
    t->pid = info->pid;
    t->pidfd = -1;
    t->wishes = info->wishes;
    int r = watch(s, t);
    if (!r)
        r = batch_of(s, info, &b);
    if (r) {
        step_free(t);
        return r;
    }
    t->batch = b;
    b->n_steps++;
    ws_list_append(&b->steps, &t->node);
    *ret = t;
    return 0;
}

struct ws_batch_step *ws_steps_of(const struct ws_steps *s, const uint32_t *pids, uint32_t n,
                                  uint32_t uid)
{
    for (uint32_t i = 0; i < n; i++) {
        struct ws_batch_step *t;
        HASH_FIND(hh, s->by_pid, &pids[i], sizeof(pids[i]), t);
        if (t)
            return t->batch->uid == uid ? t : NULL;
    }
    return NULL;
}

struct ws_batch_step *ws_steps_ended(struct ws_steps *s)
{
    struct epoll_event e;
    if (s->epoll_fd < 0 || epoll_wait(s->epoll_fd, &e, 1, 0) < 1)
        return NULL;
    struct ws_batch_step *t = e.data.ptr;
    unwatch(t);
    return t;
}

void ws_step_enter(struct ws_batch_step *t)
{
    t->n_programs++;
    t->batch->n_programs++;
}

void ws_step_leave(struct ws_batch_step *t, const struct ws_step_use *use)
{
    struct ws_step_use *sum = &t->batch->use;
    sum->n_programs++;
    sum->n_kernels += use->n_kernels;
    sum->device_ns += use->device_ns;
    sum->busy_uj += use->busy_uj;
    sum->idle_uj += use->idle_uj;
    sum->n_jobs += use->n_jobs;
    sum->n_late += use->n_late;
    t->batch->n_programs--;
    if (!--t->n_programs && t->closed)
        step_free(t);
}

void ws_step_close(struct ws_batch_step *t)
{
    t->closed = true;
    if (!t->n_programs)
        step_free(t);
}
