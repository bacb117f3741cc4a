// SPDX-License-Identifier: Apache-2.0
/* Loader threads: extracting, parsing, linking and decoding an image takes milliseconds, which other clients need not wait for.
 *
 * A task is one image for one kind of device; everybody who asks for the same while it is under way waits for the same task. The
 * loop owns tasks and waiters; a thread sees a task from the moment it takes it off the queue until it puts it on the list of
 * those done, and touches nothing else but the cache's codes, which have a lock. So a client that dies meanwhile only takes its
 * waiters away, and the work is not lost for the next. With no threads configured (tests) the loop does the work itself.
 *
 * Order: a ModuleLoad is answered when it is done; nothing of the client can depend on the module before. A reset of the device
 * meanwhile answers it with an error. */
#include "backend/backend.h"

#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/alloc.h"

enum { MAX_THREADS = 8 };

struct task {
    struct ws_loader_work job; /* work and done below */
    struct ws_list node;       /* loader->under_way */
    struct ws_image *image;    /* reference */
    struct ws_device *device;
    char *name;
    struct ws_list waiters;
    /* out */
    int r;
    struct ws_code_entry *code; /* reference */
    struct ws_diags diags;
};

struct waiter {
    struct ws_list of_task, of_client;
    struct ws_context *context;
    uint64_t seq, module;
};

struct ws_loader {
    struct ws_server *server;
    struct ws_list under_way;
    pthread_t threads[MAX_THREADS];
    unsigned n_threads;
    pthread_mutex_t lock; /* the rest */
    pthread_cond_t more;
    struct ws_loader_work *queue, **queue_end, *done, **done_end;
    uint32_t n_jobs; /* given and not handed back; the loop's */
    bool stop;
};

static void work(struct ws_loader_work *job)
{
    struct task *t = WS_CONTAINER_OF(job, struct task, job);
    t->r =
        ws_image_code_make(t->image, t->device, t->name[0] ? t->name : NULL, &t->code, &t->diags);
}

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
        struct ws_loader_work *t = l->queue;
        l->queue = t->next;
        if (!l->queue)
            l->queue_end = &l->queue;
        pthread_mutex_unlock(&l->lock);
        t->work(t);
        pthread_mutex_lock(&l->lock);
        t->next = NULL;
        *l->done_end = t;
        l->done_end = &t->next;
        uint64_t one = 1;
        ssize_t ignored = write(l->server->wake_fd, &one, sizeof one);
        (void)ignored; /* full means that it is readable already */
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

int ws_loader_new(struct ws_server *s)
{
    struct ws_loader *l = ws_alloc(sizeof *l);
    if (!l)
        return ws_raise(-ENOMEM);
    l->server = s;
    l->queue_end = &l->queue;
    l->done_end = &l->done;
    ws_list_init(&l->under_way);
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->more, NULL);
    s->loader = l;
    return 0;
}

/* Threads start with the first image: a fork between the daemon's start and its first client would lose them. */
static void start_threads(struct ws_loader *l)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); /* signals are the loop's */
    while (l->n_threads < WS_MIN(l->server->config->n_loaders, (uint32_t)MAX_THREADS) &&
           pthread_create(&l->threads[l->n_threads], NULL, thread_main, l) == 0)
        l->n_threads++;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* ---- tasks, on the loop's thread ---- */

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
    struct task *t = ws_alloc(sizeof *t);
    char *copy = t ? ws_strdup(name) : NULL;
    if (!copy) {
        free(t);
        return NULL;
    }
    t->r = -ECANCELED; /* unless it is taken up */
    t->image = ws_image_ref(image);
    t->device = d;
    t->name = copy;
    ws_list_init(&t->waiters);
    ws_list_append(&l->under_way, &t->node);
    *ret_fresh = true;
    return t;
}

static void waiter_free(struct waiter *w)
{
    ws_list_remove(&w->of_task);
    ws_list_remove(&w->of_client);
    free(w);
}

static void task_finish(struct ws_loader_work *job)
{
    struct task *t = WS_CONTAINER_OF(job, struct task, job);
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
    while (!ws_list_empty(&t->waiters)) {
        struct waiter *w = ws_list_entry(t->waiters.next, struct waiter, of_task);
        struct ws_load_answer a = {w->context, w->seq, w->module, t->image,
                                   t->code,    t->r,   &t->diags};
        waiter_free(w);
        ws_module_loaded(&a);
    }
    ws_image_unref(t->image);
    ws_diags_deinit(&t->diags);
    free(t->name);
    free(t);
}

void ws_loader_run(struct ws_loader *l, struct ws_loader_work *t)
{
    if (!l->n_threads)
        start_threads(l);
    if (!l->n_threads) {
        t->work(t);
        t->done(t);
        return;
    }
    l->n_jobs++;
    pthread_mutex_lock(&l->lock);
    t->next = NULL;
    *l->queue_end = t;
    l->queue_end = &t->next;
    pthread_cond_signal(&l->more);
    pthread_mutex_unlock(&l->lock);
}

bool ws_loader_start(struct ws_context *x, struct ws_image *image, const char *name, uint64_t seq,
                     uint64_t module)
{
    struct ws_loader *l = x->client->server->loader;
    struct waiter *w = ws_alloc(sizeof *w);
    bool fresh = false;
    struct task *t = w ? task_of(l, image, x->gpu->device, name, &fresh) : NULL;
    if (!t) {
        free(w);
        return false;
    }
    *w = (struct waiter){.context = x, .seq = seq, .module = module};
    ws_list_append(&t->waiters, &w->of_task);
    ws_list_append(&x->client->loads, &w->of_client);
    if (fresh) {
        t->job = (struct ws_loader_work){.work = work, .done = task_finish};
        ws_loader_run(l, &t->job);
    }
    return true;
}

bool ws_loader_has(struct ws_client *c, uint64_t module)
{
    ws_list_for_each (n, &c->loads)
        if (ws_list_entry(n, struct waiter, of_client)->module == module)
            return true;
    return false;
}

void ws_loader_forget(struct ws_client *c, struct ws_context *x)
{
    ws_list_for_each_safe (n, &c->loads) {
        struct waiter *w = ws_list_entry(n, struct waiter, of_client);
        if (x && w->context != x)
            continue;
        uint64_t seq = w->seq;
        waiter_free(w);
        if (x) {
            ws_client_reply_error(c, seq, WS__ERROR__INVALID_HANDLE,
                                  "the device was reset while the module was loading");
            ws_client_retire(c, 1);
        }
    }
}

void ws_loader_take_done(struct ws_server *s)
{
    struct ws_loader *l = s->loader;
    if (!l || !l->n_jobs)
        return;
    pthread_mutex_lock(&l->lock);
    struct ws_loader_work *t = l->done;
    l->done = NULL;
    l->done_end = &l->done;
    pthread_mutex_unlock(&l->lock);
    while (t) {
        struct ws_loader_work *next = t->next;
        l->n_jobs--;
        t->done(t);
        t = next;
    }
}

void ws_loader_free(struct ws_server *s)
{
    struct ws_loader *l = s->loader;
    if (!l)
        return;
    pthread_mutex_lock(&l->lock);
    l->stop = true;
    pthread_cond_broadcast(&l->more);
    pthread_mutex_unlock(&l->lock);
    for (unsigned k = 0; k < l->n_threads; k++)
        pthread_join(l->threads[k], NULL);
    ws_loader_take_done(s);
    while (l->queue) { /* nobody took them off the queue */
        struct ws_loader_work *t = l->queue;
        l->queue = t->next;
        t->done(t);
    }
    pthread_mutex_destroy(&l->lock);
    pthread_cond_destroy(&l->more);
    free(l);
    s->loader = NULL;
}
