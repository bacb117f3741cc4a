// SPDX-License-Identifier: Apache-2.0
/* Threads and turns.
 *
 * Work waits in three places. waiting (of a user): the loop has not admitted it, because the user
 * has enough in hand, or its memory can't be reserved yet. queue (of a user): admitted; a thread
 * may begin it. to_begin (of the loader): a thread will. From then on the work stays on its thread.
 * It runs, or it is paused and stands in the list of its user's paused work.
 *
 * At most n_slots pieces run at a time. A slot that gets free goes to the user who has taken the
 * least time (deal()). A piece that has run for SLICE_NS looks whether another user who waits has
 * taken less than its own user, and pauses if so (pause_for_others()). Who comes new begins with as
 * much time taken as the least of those who are there, so that having been away is no advantage.
 *
 * With no threads configured (tests) the loop does the work itself. */
#include "backend/code/loader.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"

enum { MAX_SLOTS = 8, MAX_THREADS = 64 };
#define SLICE_NS  (10 * WS_NS_PER_MS)
#define MAX_BYTES (UINT64_C(1) << 30) /* of one piece of work, whatever the account allows */
#define MIN_BYTES (UINT64_C(1) << 24) /* with less nothing can be made */

struct ws_loader_user {
    struct ws_list node;        /* loader->users */
    struct ws_account *account; /* reference; NULL: nobody's */
    struct ws_list waiting;     /* the loop's */
    uint32_t n_admitted;        /* the loop's: admitted and not done */
    struct ws_list queue, paused;
    uint64_t taken_ns;
};

struct ws_loader {
    int wake_fd;
    struct ws_loader_limits limits;
    uint32_t n_given, n_admitted; /* the loop's: work not handed back; of all users */
    pthread_t threads[MAX_THREADS];
    pthread_mutex_t lock; /* the rest, and what of users is not the loop's */
    pthread_cond_t changed;
    struct ws_list users, to_begin, begun, done;
    uint32_t n_threads, n_busy, n_to_begin, n_running, n_slots;
    bool stop;
};

/* ---- turns: the lock is held ---- */

static void *thread_main(void *arg);

/* Threads start with the first work: a fork between the daemon's start and its first client would
 * lose them. */
static bool start_thread(struct ws_loader *l)
{
    sigset_t all, old;
    if (l->n_threads == MAX_THREADS)
        return false;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); /* signals are the loop's */
    int r = pthread_create(&l->threads[l->n_threads], NULL, thread_main, l);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    l->n_threads += !r;
    return !r;
}

static bool has_idle_thread(const struct ws_loader *l)
{
    return l->n_threads - l->n_busy > l->n_to_begin;
}

/* The user whose turn is next; @begin: also one whose work is not begun. NULL: nobody waits. */
static struct ws_loader_user *next_user(const struct ws_loader *l, bool begin)
{
    struct ws_loader_user *best = NULL;
    ws_list_for_each (n, &l->users) {
        struct ws_loader_user *u = ws_list_entry(n, struct ws_loader_user, node);
        bool has = !ws_list_empty(&u->paused) || (begin && !ws_list_empty(&u->queue));
        if (has && (!best || u->taken_ns < best->taken_ns))
            best = u;
    }
    return best;
}

/* Gives free slots away. */
static void deal(struct ws_loader *l)
{
    bool begin = !l->stop;
    while (l->n_running < l->n_slots) {
        struct ws_loader_user *u = next_user(l, begin);
        if (!u)
            return;
        if (ws_list_empty(&u->paused)) {
            if (!has_idle_thread(l) && !start_thread(l)) {
                begin = false;
                continue;
            }
            ws_list_append(&l->to_begin, ws_list_pop(&u->queue));
            l->n_to_begin++;
        } else {
            struct ws_list *n = ws_list_pop(&u->paused);
            ws_list_entry(n, struct ws_loader_work, node)->paused = false;
            ws_list_append(&l->begun, n);
        }
        l->n_running++;
        pthread_cond_broadcast(&l->changed);
    }
}

static void count_time(struct ws_loader_work *w)
{
    w->user->taken_ns += w->budget.ns - w->counted_ns;
    w->counted_ns = w->budget.ns;
}

/* Called by the work itself: budget.pause. */
static void pause_for_others(struct ws_budget *b)
{
    struct ws_loader_work *w = WS_CONTAINER_OF(b, struct ws_loader_work, budget);
    struct ws_loader *l = w->loader;
    if (b->ns - w->slice_ns < SLICE_NS)
        return;
    w->slice_ns = b->ns;
    pthread_mutex_lock(&l->lock);
    count_time(w);
    struct ws_loader_user *next = next_user(l, has_idle_thread(l) || l->n_threads < MAX_THREADS);
    if (next && next->taken_ns < w->user->taken_ns && !l->stop) {
        w->paused = true;
        ws_list_remove(&w->node);
        ws_list_append(&w->user->paused, &w->node);
        l->n_running--;
        deal(l);
        while (w->paused && !l->stop)
            pthread_cond_wait(&l->changed, &l->lock);
    }
    pthread_mutex_unlock(&l->lock);
}

static void *thread_main(void *arg)
{
    struct ws_loader *l = arg;
    prctl(PR_SET_NAME, "ws-load");
    pthread_mutex_lock(&l->lock);
    for (;;) {
        while (!l->n_to_begin && !l->stop)
            pthread_cond_wait(&l->changed, &l->lock);
        if (l->stop)
            break;
        struct ws_loader_work *w =
            ws_list_entry(ws_list_pop(&l->to_begin), struct ws_loader_work, node);
        ws_list_append(&l->begun, &w->node);
        l->n_to_begin--;
        l->n_busy++;
        pthread_mutex_unlock(&l->lock);
        struct ws_budget *before = ws_budget_enter(&w->budget);
        w->work(w);
        ws_budget_leave(before);
        pthread_mutex_lock(&l->lock);
        count_time(w);
        ws_list_remove(&w->node);
        ws_list_append(&l->done, &w->node);
        l->n_busy--;
        l->n_running--;
        uint64_t one = 1;
        ssize_t ignored = write(l->wake_fd, &one, sizeof(one));
        (void)ignored; /* full means that it is readable already */
        deal(l);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* ---- users and their memory: on the loop's thread ---- */

/* NULL: no memory. */
static struct ws_loader_user *user_of(struct ws_loader *l, struct ws_account *account)
{
    uint64_t least_ns = UINT64_MAX;
    pthread_mutex_lock(&l->lock);
    ws_list_for_each (n, &l->users) {
        struct ws_loader_user *u = ws_list_entry(n, struct ws_loader_user, node);
        least_ns = WS_MIN(least_ns, u->taken_ns);
        if (u->account == account) {
            pthread_mutex_unlock(&l->lock);
            return u;
        }
    }
    pthread_mutex_unlock(&l->lock);
    struct ws_loader_user *u = ws_alloc(sizeof(*u));
    if (!u)
        return NULL;
    u->account = account ? ws_account_ref(account) : NULL;
    ws_list_init(&u->waiting);
    ws_list_init(&u->queue);
    ws_list_init(&u->paused);
    pthread_mutex_lock(&l->lock);
    u->taken_ns = least_ns == UINT64_MAX ? 0 : least_ns;
    ws_list_append(&l->users, &u->node);
    pthread_mutex_unlock(&l->lock);
    return u;
}

static void user_rest(struct ws_loader *l, struct ws_loader_user *u)
{
    if (u->n_admitted || !ws_list_empty(&u->waiting))
        return;
    pthread_mutex_lock(&l->lock);
    ws_list_remove(&u->node);
    pthread_mutex_unlock(&l->lock);
    if (u->account)
        ws_account_unref(u->account);
    free(u);
}

/* Reserves what the work may take. Return: false: not now. */
static bool reserve(const struct ws_loader *l, struct ws_loader_work *w)
{
    w->budget.max_bytes = MAX_BYTES;
    if (!w->account)
        return true;
    uint64_t may = ws_account_may_hold(w->account, WS_RESOURCE_COMPILE_BYTES);
    uint64_t want = WS_MAX(WS_MIN(may / l->n_slots, MAX_BYTES), MIN_BYTES);
    if (!ws_account_charge(w->account, WS_RESOURCE_COMPILE_BYTES, want))
        w->reserved_bytes = want;
    else if (l->n_admitted)
        return false; /* somebody will give something back */
    else
        want = MIN_BYTES; /* what fits is made; the rest is told that it doesn't */
    w->budget.max_bytes = want;
    return true;
}

static void admit(struct ws_loader *l)
{
    pthread_mutex_lock(&l->lock);
    l->n_slots = WS_MIN(*l->limits.n_threads, (uint32_t)MAX_SLOTS);
    ws_list_for_each (n, &l->users) {
        struct ws_loader_user *u = ws_list_entry(n, struct ws_loader_user, node);
        while (u->n_admitted < l->n_slots && !ws_list_empty(&u->waiting)) {
            struct ws_loader_work *w = ws_list_entry(u->waiting.next, struct ws_loader_work, node);
            if (!reserve(l, w))
                break;
            ws_list_remove(&w->node);
            ws_list_append(&u->queue, &w->node);
            u->n_admitted++;
            l->n_admitted++;
        }
    }
    deal(l);
    pthread_mutex_unlock(&l->lock);
}

/* ---- work ---- */

int ws_loader_new(struct ws_loader **ret, const struct ws_loader_limits *limits, int wake_fd)
{
    struct ws_loader *l = ws_alloc(sizeof(*l));
    if (!l)
        return ws_raise(-ENOMEM);
    l->limits = *limits;
    l->wake_fd = wake_fd;
    ws_list_init(&l->users);
    ws_list_init(&l->to_begin);
    ws_list_init(&l->begun);
    ws_list_init(&l->done);
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->changed, NULL);
    *ret = l;
    return 0;
}

static void do_it_here(struct ws_loader_work *w)
{
    w->budget.max_bytes = MAX_BYTES;
    struct ws_budget *before = ws_budget_enter(&w->budget);
    w->work(w);
    ws_budget_leave(before);
    w->done(w);
}

void ws_loader_run(struct ws_loader *l, struct ws_loader_work *w)
{
    w->loader = l;
    w->budget = (struct ws_budget){.max_ns = *l->limits.max_ms * WS_NS_PER_MS};
    ws_list_init(&w->node);
    w->user = *l->limits.n_threads ? user_of(l, w->account) : NULL;
    if (!w->user) {
        if (*l->limits.n_threads)
            w->done(w); /* no memory for a user */
        else
            do_it_here(w);
        return;
    }
    w->budget.pause = pause_for_others;
    l->n_given++;
    ws_list_append(&w->user->waiting, &w->node);
    admit(l);
}

/* The work has ended, or nobody will begin it. */
static void hand_back(struct ws_loader *l, struct ws_loader_work *w, bool admitted)
{
    struct ws_loader_user *u = w->user;
    u->n_admitted -= admitted;
    l->n_admitted -= admitted;
    if (w->reserved_bytes)
        ws_account_release(w->account, WS_RESOURCE_COMPILE_BYTES, w->reserved_bytes);
    if (w->account)
        ws_account_add_time(w->account, WS_ACCOUNT_COMPILE, w->budget.ns, ws_clock_ns());
    l->n_given--;
    w->done(w);
    user_rest(l, u);
}

void ws_loader_take_done(struct ws_loader *l)
{
    struct ws_list *n;
    if (!l || !l->n_given)
        return;
    struct ws_list done;
    ws_list_init(&done);
    pthread_mutex_lock(&l->lock);
    while ((n = ws_list_pop(&l->done)))
        ws_list_append(&done, n);
    pthread_mutex_unlock(&l->lock);
    bool any = !ws_list_empty(&done);
    while ((n = ws_list_pop(&done))) {
        struct ws_loader_work *w = ws_list_entry(n, struct ws_loader_work, node);
        hand_back(l, w, true);
    }
    if (any)
        admit(l);
}

static void hand_back_all(struct ws_loader *l, struct ws_list *list, bool admitted)
{
    struct ws_list *n;
    while ((n = ws_list_pop(list))) {
        struct ws_loader_work *w = ws_list_entry(n, struct ws_loader_work, node);
        hand_back(l, w, admitted);
    }
}

struct ws_loader *ws_loader_free(struct ws_loader *l)
{
    if (!l)
        return NULL;
    pthread_mutex_lock(&l->lock);
    l->stop = true;
    ws_list_for_each (n, &l->begun)
        ws_budget_stop(&ws_list_entry(n, struct ws_loader_work, node)->budget);
    ws_list_for_each (u, &l->users)
        ws_list_for_each (n, &ws_list_entry(u, struct ws_loader_user, node)->paused)
            ws_budget_stop(&ws_list_entry(n, struct ws_loader_work, node)->budget);
    pthread_cond_broadcast(&l->changed);
    uint32_t n_threads = l->n_threads;
    pthread_mutex_unlock(&l->lock);
    for (unsigned k = 0; k < n_threads; k++)
        pthread_join(l->threads[k], NULL);
    hand_back_all(l, &l->done, true);
    hand_back_all(l, &l->to_begin, true);
    while (!ws_list_empty(&l->users)) { /* nobody took it up; the last one takes the user away */
        struct ws_loader_user *u = ws_list_entry(l->users.next, struct ws_loader_user, node);
        bool admitted = !ws_list_empty(&u->queue);
        struct ws_list one;
        ws_list_init(&one);
        ws_list_append(&one, ws_list_pop(admitted ? &u->queue : &u->waiting));
        hand_back_all(l, &one, admitted);
    }
    pthread_mutex_destroy(&l->lock);
    pthread_cond_destroy(&l->changed);
    free(l);
    return NULL;
}

const char *ws_loader_limit_text(const struct ws_loader_work *w, char *buf, size_t size)
{
    if (w->budget.end == WS_BUDGET_TIME)
        snprintf(buf, size,
                 "takes more than %llu ms of processor time to compile (max_compile_ms in the "
                 "daemon's limits)",
                 (unsigned long long)(w->budget.max_ns / WS_NS_PER_MS));
    else if (w->budget.end == WS_BUDGET_BYTES)
        snprintf(buf, size,
                 "takes more than %llu MiB of memory to compile (max_compile_bytes in the "
                 "daemon's limits)",
                 (unsigned long long)(w->budget.max_bytes >> 20));
    else
        *buf = 0;
    return buf;
}
