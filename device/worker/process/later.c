// SPDX-License-Identifier: Apache-2.0
/* What is released later, by a thread for it, in the order in which it was given: instances,
 * modules and spaces. Code that is still being compiled cannot be released, and other clients'
 * calls must not wait for a compiler. */
#include "base/alloc.h"
#include "base/list.h"
#include "device/worker/process/process.h"

struct later {
    struct ws_list node;
    struct worker_object what;
    void (*release)(struct worker_object *o);
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static struct ws_list given = {&given, &given};
static bool ends;

void worker_release_later(const struct worker_object *o, void (*release)(struct worker_object *o))
{
    struct later *l = ws_alloc(sizeof(*l));
    if (!l)
        return; /* it stays until the process ends */
    l->what = *o;
    l->release = release;
    pthread_mutex_lock(&lock);
    ws_list_append(&given, &l->node);
    pthread_cond_signal(&wake);
    pthread_mutex_unlock(&lock);
}

void worker_later_end(void)
{
    pthread_mutex_lock(&lock);
    ends = true;
    pthread_cond_signal(&wake);
    pthread_mutex_unlock(&lock);
}

void *worker_later_main(void *arg)
{
    pthread_mutex_lock(&lock);
    for (;;) {
        struct ws_list *n = ws_list_pop(&given);
        if (!n && ends)
            break;
        if (!n) {
            pthread_cond_wait(&wake, &lock);
            continue;
        }
        struct later *l = ws_list_entry(n, struct later, node);
        pthread_mutex_unlock(&lock);
        l->release(&l->what);
        free(l);
        pthread_mutex_lock(&lock);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}
