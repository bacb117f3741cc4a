// SPDX-License-Identifier: Apache-2.0
/* The process's one struct ws_inspect: which tools are wanted, and which findings were told. */
#include "device/soft/inspect/private.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

/* A program with more places that are wrong than that is told of so many of them. */
enum { TOLD_MAX = 1000 };

struct ws_inspect {
    uint32_t tools, n_refs;
    pthread_mutex_t lock;
    uint64_t told[TOLD_MAX]; /* keys of findings; under the lock, as n_told */
    uint32_t n_told;
};

static pthread_mutex_t join_lock = PTHREAD_MUTEX_INITIALIZER;
static struct ws_inspect *the_one; /* join_lock */

int ws_inspect_join(struct ws_inspect **ret, uint32_t tools)
{
    pthread_mutex_lock(&join_lock);
    if (!the_one && (the_one = ws_alloc(sizeof(*the_one)))) {
        the_one->tools = tools;
        pthread_mutex_init(&the_one->lock, NULL);
    }
    if (the_one)
        the_one->n_refs++;
    *ret = the_one;
    pthread_mutex_unlock(&join_lock);
    return *ret ? 0 : ws_raise(-ENOMEM);
}

void ws_inspect_leave(struct ws_inspect *s)
{
    pthread_mutex_lock(&join_lock);
    if (s && !--s->n_refs) {
        pthread_mutex_destroy(&s->lock);
        free(s);
        the_one = NULL;
    }
    pthread_mutex_unlock(&join_lock);
}

bool ws_inspect_has(const struct ws_inspect *s, enum ws_inspect_tool tool)
{
    return s && s->tools & tool;
}

bool ws_inspect_is_new(struct ws_inspect *s, uint64_t key)
{
    bool fresh = true;
    pthread_mutex_lock(&s->lock);
    for (uint32_t k = 0; k < s->n_told && fresh; k++)
        fresh = s->told[k] != key;
    fresh = fresh && s->n_told < TOLD_MAX;
    if (fresh)
        s->told[s->n_told++] = key;
    pthread_mutex_unlock(&s->lock);
    return fresh;
}
