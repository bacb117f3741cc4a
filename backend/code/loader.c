// SPDX-License-Identifier: Apache-2.0
/* Loader threads: extracting, parsing, linking and decoding an image takes milliseconds, which
 * other clients need not wait for.
 *
 * A task is one image for one kind of device; everybody who asks for the same while it is under
 * way waits for the same task. The loop owns tasks and loads; a thread sees a task from the
 * moment it takes it off the queue until it puts it on the list of those done, and touches
 * nothing else but the cache's codes, which have a lock. So a client that ends meanwhile only
 * takes its loads away, and the work is not lost for the next. With no threads configured
 * (tests) the loop does the work itself. */
#include "backend/code/loader.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"

enum { MAX_THREADS = 8 };

struct task {
    struct ws_loader_work work; /* make and finish below */
    struct ws_list node;        /* loader->under_way */
    struct ws_image *image;     /* reference */
    struct ws_device *device;
    char *name;
    struct ws_list loads;
    /* out */
    int r;
    struct ws_code_entry *code; /* reference */
    struct ws_diags diags;
};

struct ws_loader {
    int wake_fd;
    const uint32_t *max_threads;
    uint32_t n_threads;
    struct ws_list under_way;
    pthread_t threads[MAX_THREADS];
    uint32_t n_given;     /* work given and not handed back; the loop's */
    pthread_mutex_t lock; /* the rest */
    pthread_cond_t more;
    struct ws_loader_work *queue, **queue_end, *done, **done_end;
    bool stop;
};

/* ---- threads ---- */

static void *thread_main(void *arg)
{
    struct ws_loader *l = arg;
    prctl(PR_SET_NAME, "ws-load");
    pthread_mutex_lock(&l->lock);
    for (;;) {
        while (!l->queue && !l->stop)
            pthread_cond_wait(&l->more, &l->lock);
        if (l->stop)
            break;
        struct ws_loader_work *w = l->queue;
        l->queue = w->next;
        if (!l->queue)
            l->queue_end = &l->queue;
        pthread_mutex_unlock(&l->lock);
        w->work(w);
        pthread_mutex_lock(&l->lock);
        w->next = NULL;
        *l->done_end = w;
        l->done_end = &w->next;
        uint64_t one = 1;
        ssize_t ignored = write(l->wake_fd, &one, sizeof(one));
        (void)ignored; /* full means that it is readable already */
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* Threads start with the first work: a fork between the daemon's start and its first client
 * would lose them. */
static void start_threads(struct ws_loader *l)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); /* signals are the loop's */
    while (l->n_threads < WS_MIN(*l->max_threads, (uint32_t)MAX_THREADS) &&
           pthread_create(&l->threads[l->n_threads], NULL, thread_main, l) == 0)
        l->n_threads++;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

int ws_loader_new(struct ws_loader **ret, const uint32_t *n_threads, int wake_fd)
{
    struct ws_loader *l = ws_alloc(sizeof(*l));
    if (!l)
        return ws_raise(-ENOMEM);
    l->max_threads = n_threads;
    l->wake_fd = wake_fd;
    l->queue_end = &l->queue;
    l->done_end = &l->done;
    ws_list_init(&l->under_way);
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->more, NULL);
    *ret = l;
    return 0;
}

void ws_loader_run(struct ws_loader *l, struct ws_loader_work *w)
{
    if (!l->n_threads)
        start_threads(l);
    if (!l->n_threads) {
        w->work(w);
        w->done(w);
        return;
    }
    l->n_given++;
    pthread_mutex_lock(&l->lock);
    w->next = NULL;
    *l->queue_end = w;
    l->queue_end = &w->next;
    pthread_cond_signal(&l->more);
    pthread_mutex_unlock(&l->lock);
}

void ws_loader_take_done(struct ws_loader *l)
{
    if (!l || !l->n_given)
        return;
    pthread_mutex_lock(&l->lock);
    struct ws_loader_work *w = l->done;
    l->done = NULL;
    l->done_end = &l->done;
    pthread_mutex_unlock(&l->lock);
    while (w) {
        struct ws_loader_work *next = w->next;
        l->n_given--;
        w->done(w);
        w = next;
    }
}

struct ws_loader *ws_loader_free(struct ws_loader *l)
{
    if (!l)
        return NULL;
    pthread_mutex_lock(&l->lock);
    l->stop = true;
    pthread_cond_broadcast(&l->more);
    pthread_mutex_unlock(&l->lock);
    for (unsigned k = 0; k < l->n_threads; k++)
        pthread_join(l->threads[k], NULL);
    ws_loader_take_done(l);
    while (l->queue) { /* nobody took it off the queue */
        struct ws_loader_work *w = l->queue;
        l->queue = w->next;
        w->done(w);
    }
    pthread_mutex_destroy(&l->lock);
    pthread_cond_destroy(&l->more);
    free(l);
    return NULL;
}

/* ---- tasks, on the loop's thread but for make() ---- */

static void make(struct ws_loader_work *w)
{
    struct task *t = WS_CONTAINER_OF(w, struct task, work);
    t->r =
        ws_image_code_make(t->image, t->device, t->name[0] ? t->name : NULL, &t->code, &t->diags);
}

static void finish(struct ws_loader_work *w)
{
    struct task *t = WS_CONTAINER_OF(w, struct task, work);
    struct ws_list *n;
    ws_list_remove(&t->node);
    if (!t->r) {
        struct ws_code_entry *known = ws_image_code_known(t->image, t->device);
        if (known) {
            ws_code_unref(t->image->cache, t->code);
            t->code = known;
        } else {
            t->r = ws_image_code_adopt(t->image, t->device, t->code);
        }
    }
    while ((n = ws_list_pop(&t->loads))) {
        struct ws_module_load *load = ws_list_entry(n, struct ws_module_load, node);
        load->done(load, t->image, t->code, t->r, &t->diags);
    }
    ws_image_unref(t->image);
    ws_diags_deinit(&t->diags);
    free(t->name);
    free(t);
}

static struct task *task_of(struct ws_loader *l, struct ws_image *image, struct ws_device *d,
                            const char *name, bool *ret_fresh)
{
    *ret_fresh = false;
    ws_list_for_each (n, &l->under_way) {
        struct task *t = ws_list_entry(n, struct task, node);
        if (t->image == image && t->device->spec.cc_major == d->spec.cc_major &&
            t->device->spec.cc_minor == d->spec.cc_minor)
            return t;
    }
    struct task *t = ws_alloc(sizeof(*t));
    char *copy = t ? ws_strdup(name) : NULL;
    if (!copy) {
        free(t);
        return NULL;
    }
    t->r = -ECANCELED; /* unless it is taken up */
    t->image = ws_image_ref(image);
    t->device = d;
    t->name = copy;
    t->work = (struct ws_loader_work){.work = make, .done = finish};
    ws_list_init(&t->loads);
    ws_list_append(&l->under_way, &t->node);
    *ret_fresh = true;
    return t;
}

int ws_loader_start(struct ws_loader *l, struct ws_module_load *load, struct ws_image *image,
                    struct ws_device *device, const char *name)
{
    bool fresh = false;
    struct task *t = task_of(l, image, device, name, &fresh);
    if (!t)
        return ws_raise(-ENOMEM);
    ws_list_append(&t->loads, &load->node);
    if (fresh)
        ws_loader_run(l, &t->work);
    return 0;
}
