// SPDX-License-Identifier: Apache-2.0
/* A thread closes what one user has sent, and ends when nothing of that user is left. So whoever
 * makes a thread wait makes only itself wait. There are MAX_THREADS at most; the descriptors of
 * more users than that wait for a thread, charged.
 *
 * A thread that waits in close() cannot be ended. When the daemon ends, it is left behind, with the
 * memory that it uses. */
#include "backend/wire/closer.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/list.h"

/* Memory whose last descriptor is closed at once; more of it takes the kernel long to free. */
#define QUICK_BYTES (4 << 20)
enum { MAX_THREADS = 32, MAX_WAITING = 256, END_MS = 200 };

struct item {
    struct ws_list node; /* user.waiting, or ws_closer.done */
    struct user *user;
    int fd;
    enum ws_resource charged;
    bool is_socket; /* of ours, by which others may have sent something */
};

struct user {
    struct ws_list node; /* ws_closer.users */
    struct ws_closer *closer;
    struct ws_account *account; /* reference */
    unsigned n;                 /* the loop's: items that are not released */
    struct ws_list waiting;     /* under the lock */
    bool has_thread;            /* the same */
};

struct ws_closer {
    int wake_fd;
    struct ws_list users; /* the loop's */
    pthread_mutex_t lock;
    struct ws_list done;
    unsigned n_threads;
    bool ended; /* nobody is left but the threads */
};

static void close_item(const struct item *i)
{
    if (i->is_socket) {
        ws_packet_discard(i->fd);
        close(i->fd);
    } else {
        ws_packet_drop_fd(i->fd);
    }
}

static void *thread_main(void *arg)
{
    struct user *u = arg;
    struct ws_closer *c = u->closer;
    struct ws_list *n;
    uint64_t one = 1;
    prctl(PR_SET_NAME, "ws-close");
    pthread_mutex_lock(&c->lock);
    while (!c->ended && (n = ws_list_pop(&u->waiting))) {
        struct item *i = ws_list_entry(n, struct item, node);
        pthread_mutex_unlock(&c->lock);
        close_item(i);
        pthread_mutex_lock(&c->lock);
        ws_list_append(&c->done, &i->node);
        if (!c->ended) {
            ssize_t ignored = write(c->wake_fd, &one, sizeof(one));
            (void)ignored; /* full means that it is readable already */
        }
    }
    u->has_thread = false;
    c->n_threads--;
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

/* The lock is held. */
static bool start_thread(struct user *u)
{
    sigset_t all, old;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); /* signals are the loop's */
    int r = pthread_create(&thread, NULL, thread_main, u);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (!r)
        pthread_detach(thread);
    return !r;
}

static void start_threads(struct ws_closer *c)
{
    pthread_mutex_lock(&c->lock);
    ws_list_for_each (n, &c->users) {
        struct user *u = ws_list_entry(n, struct user, node);
        if (c->n_threads < MAX_THREADS && !u->has_thread && !ws_list_empty(&u->waiting) &&
            start_thread(u)) {
            u->has_thread = true;
            c->n_threads++;
        }
    }
    pthread_mutex_unlock(&c->lock);
}

static struct user *find(const struct ws_closer *c, const struct ws_account *a)
{
    ws_list_for_each (n, &c->users) {
        struct user *u = ws_list_entry(n, struct user, node);
        if (u->account == a)
            return u;
    }
    return NULL;
}

static struct user *user_of(struct ws_closer *c, struct ws_account *a)
{
    struct user *u = find(c, a);
    if (u || !(u = ws_alloc(sizeof(*u))))
        return u;
    u->closer = c;
    u->account = ws_account_ref(a);
    ws_list_init(&u->waiting);
    ws_list_append(&c->users, &u->node);
    return u;
}

static void give(struct ws_closer *c, struct ws_account *a, const struct item *what)
{
    struct user *u = c ? user_of(c, a) : NULL;
    struct item *i = u ? ws_alloc(sizeof(*i)) : NULL;
    if (!i) {
        close_item(what);
        ws_account_release(a, what->charged, 1);
        return;
    }
    *i = *what;
    i->user = u;
    ws_list_init(&i->node);
    u->n++;
    pthread_mutex_lock(&c->lock);
    ws_list_append(&u->waiting, &i->node);
    pthread_mutex_unlock(&c->lock);
    start_threads(c);
}

bool ws_closer_has_room(const struct ws_closer *c, const struct ws_account *a)
{
    const struct user *u = c ? find(c, a) : NULL;
    return !u || u->n < MAX_WAITING;
}

/* A pipe, or little memory: what clients have reason to send. */
static bool closes_at_once(int fd)
{
    struct stat st;
    ino_t inode;
    if (fcntl(fd, F_GET_SEALS) >= 0) /* memory; asking for its size waits for nothing */
        return !fstat(fd, &st) && st.st_size <= QUICK_BYTES;
    return ws_packet_is_pipe(fd, &inode);
}

void ws_closer_drop(struct ws_closer *c, const struct ws_packet_fds *fds, struct ws_account *a)
{
    for (unsigned i = 0; i < fds->n; i++) {
        if (closes_at_once(fds->v[i])) {
            close(fds->v[i]);
        } else {
            ws_account_take_over(a, WS_RESOURCE_DESCRIPTORS, 1); /* it is here already */
            give(c, a, &(struct item){.fd = fds->v[i], .charged = WS_RESOURCE_DESCRIPTORS});
        }
    }
}

void ws_closer_end(struct ws_closer *c, int fd, struct ws_account *a, enum ws_resource r)
{
    if (ws_packet_unread(fd)) {
        give(c, a, &(struct item){.fd = fd, .charged = r, .is_socket = true});
    } else {
        close(fd);
        ws_account_release(a, r, 1);
    }
}

/* ---- life ---- */

int ws_closer_new(struct ws_closer **ret, int wake_fd)
{
    struct ws_closer *c = ws_alloc(sizeof(*c));
    if (!c)
        return ws_raise(-ENOMEM);
    c->wake_fd = fcntl(wake_fd, F_DUPFD_CLOEXEC, 0); /* a thread may outlive the other one */
    ws_list_init(&c->users);
    ws_list_init(&c->done);
    pthread_mutex_init(&c->lock, NULL);
    *ret = c;
    return 0;
}

static void forget_users(struct ws_closer *c)
{
    pthread_mutex_lock(&c->lock); /* a thread may be about to end */
    ws_list_for_each_safe (n, &c->users) {
        struct user *u = ws_list_entry(n, struct user, node);
        if (u->n || u->has_thread)
            continue;
        ws_list_remove(&u->node);
        ws_account_unref(u->account);
        free(u);
    }
    pthread_mutex_unlock(&c->lock);
}

void ws_closer_turn(struct ws_closer *c)
{
    struct ws_list done, *n;
    if (!c || ws_list_empty(&c->users))
        return;
    ws_list_init(&done);
    pthread_mutex_lock(&c->lock);
    while ((n = ws_list_pop(&c->done)))
        ws_list_append(&done, n);
    pthread_mutex_unlock(&c->lock);
    while ((n = ws_list_pop(&done))) {
        struct item *i = ws_list_entry(n, struct item, node);
        ws_account_release(i->user->account, i->charged, 1);
        i->user->n--;
        free(i);
    }
    forget_users(c);
    start_threads(c);
}

struct ws_closer *ws_closer_free(struct ws_closer *c)
{
    if (!c)
        return NULL;
    for (int i = 0; i < END_MS && !ws_list_empty(&c->users); i++) {
        ws_closer_turn(c);
        usleep(1000);
    }
    pthread_mutex_lock(&c->lock);
    c->ended = true;
    close(c->wake_fd);
    ws_list_for_each (n, &c->users) {
        struct user *u = ws_list_entry(n, struct user, node);
        ws_account_unref(u->account);
    }
    bool left = !ws_list_empty(&c->users);
    pthread_mutex_unlock(&c->lock);
    if (!left) {
        pthread_mutex_destroy(&c->lock);
        free(c);
    }
    return NULL;
}
