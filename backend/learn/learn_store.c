// SPDX-License-Identifier: Apache-2.0
/* The thread that writes what was learned. It sleeps until something is dirty, waits a moment so
 * that much goes in one transaction, copies the dirty profiles under the table's lock and writes
 * them without it. A profile that can't be written now is tried again as soon as its kernel runs
 * again. The thread begins with the first profile to write: a daemon forks before that, if it
 * does.
 *
 * The store is read whole at the start; what others write into it meanwhile is not seen, and
 * gives way to ours where it is of the same key. */
#include "backend/learn/learn_private.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"

enum { PAUSE_S = 1 };

struct ws_learn_writer {
    struct ws_store *store;
    pthread_t thread;
    pthread_cond_t more; /* with learn->lock */
    bool started, stop, failed;
};

static void put_all(struct ws_learn_writer *w, struct ws_profile *v, uint32_t n)
{
    int r = ws_store_begin(w->store);
    for (uint32_t i = 0; i < n && !r; i++)
        r = ws_store_put(w->store, &v[i]);
    if (!r)
        r = ws_store_commit(w->store, true);
    else
        (void)!ws_store_commit(w->store, false);
    if (r && !w->failed)
        ws_log(WS_ERROR, "learn: profiles can't be written: %s",
               *ws_store_error(w->store) ? ws_store_error(w->store) : strerror(r < 0 ? -r : EIO));
    w->failed = r;
    for (uint32_t i = 0; i < n; i++)
        ws_profile_deinit(&v[i]);
}

static void write_dirty(struct ws_learn *l)
{
    struct ws_profile v[WS_LEARN_BATCH];
    uint32_t n;
    do { /* a batch that isn't full was all there was */
        n = ws_learn_take_dirty(l, v, WS_LEARN_BATCH);
        if (n)
            put_all(l->writer, v, n);
    } while (n == WS_LEARN_BATCH);
}

static void *thread_main(void *arg)
{
    struct ws_learn *l = arg;
    struct ws_learn_writer *w = l->writer;
    prctl(PR_SET_NAME, "ws-learn");
    pthread_mutex_lock(&l->lock);
    while (!w->stop) {
        struct timespec until;
        if (ws_list_empty(&l->dirty)) {
            pthread_cond_wait(&w->more, &l->lock);
            continue;
        }
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += PAUSE_S;
        while (!w->stop && pthread_cond_timedwait(&w->more, &l->lock, &until) != ETIMEDOUT)
            ;
        pthread_mutex_unlock(&l->lock);
        write_dirty(l);
        pthread_mutex_lock(&l->lock);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

void ws_learn_writer_wake(struct ws_learn *l)
{
    struct ws_learn_writer *w = l->writer;
    if (w->started) {
        if (l->dirty.next == l->dirty.prev) /* the first: it may be asleep */
            pthread_cond_signal(&w->more);
        return;
    }
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); /* signals are the loop's */
    w->started = pthread_create(&w->thread, NULL, thread_main, l) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static int adopt(void *arg, const struct ws_profile *p)
{
    struct ws_profile copy = *p;
    copy.points = ws_alloc_array(p->n_points ? p->n_points : 1, sizeof(*copy.points));
    if (!copy.points)
        return ws_raise(-ENOMEM);
    memcpy(copy.points, p->points, p->n_points * sizeof(*copy.points));
    copy.cap_points = p->n_points;
    ws_learn_adopt(arg, &copy);
    ws_profile_deinit(&copy);
    return 0;
}

int ws_learn_writer_new(struct ws_learn *l, const char *path, struct ws_diags *diags)
{
    struct ws_learn_writer *w = ws_alloc(sizeof(*w));
    if (!w)
        return ws_raise(-ENOMEM);
    int r = ws_store_open(&w->store, path, WS_STORE_WRITE, diags);
    if (!r)
        r = ws_store_each(w->store, adopt, l);
    if (r) {
        ws_store_close(w->store);
        free(w);
        return r;
    }
    pthread_cond_init(&w->more, NULL);
    l->writer = w;
    return 0;
}

void ws_learn_writer_free(struct ws_learn *l)
{
    struct ws_learn_writer *w = l->writer;
    if (!w)
        return;
    pthread_mutex_lock(&l->lock);
    w->stop = true;
    pthread_cond_signal(&w->more);
    pthread_mutex_unlock(&l->lock);
    if (w->started)
        pthread_join(w->thread, NULL);
    write_dirty(l);
    ws_store_close(w->store);
    pthread_cond_destroy(&w->more);
    free(w);
    l->writer = NULL;
}
