// SPDX-License-Identifier: Apache-2.0
/* Threads take the next index from a counter. Lines are read in batches, so that memory does not
 * grow with the input. */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "papers/common/parallel.h"

enum { MAX_JOBS = 256, BATCH = 512 };

/* The number of cores that this process may use, at least 1. */
static int n_cores(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof(set), &set) ? 1 : WS_MAX(CPU_COUNT(&set), 1);
}

struct thread_pool {
    _Atomic size_t next;
    size_t n;
    void (*work)(void *arg, size_t i);
    void *arg;
    struct ws_progress_bar *progress;
};

static void *pool_run(void *p)
{
    struct thread_pool *pool = p;
    for (size_t i; (i = atomic_fetch_add(&pool->next, 1)) < pool->n;) {
        pool->work(pool->arg, i);
        if (pool->progress)
            ws_progress_bar_step(pool->progress, 1);
    }
    return NULL;
}

void ws_parallel_for(size_t n, int n_jobs, void (*work)(void *arg, size_t i), void *arg,
                     struct ws_progress_bar *progress)
{
    struct thread_pool pool = {.n = n, .work = work, .arg = arg, .progress = progress};
    pthread_t threads[MAX_JOBS];
    size_t want = n_jobs > 0 ? (size_t)n_jobs : (size_t)n_cores(), started = 0;
    want = WS_MIN(WS_MIN(want, n), (size_t)MAX_JOBS);
    /* This thread is one of them. It does the share of threads that cannot be started. */
    while (started + 1 < want && !pthread_create(&threads[started], NULL, pool_run, &pool))
        started++;
    pool_run(&pool);
    while (started)
        pthread_join(threads[--started], NULL);
}

struct batch {
    struct ws_json_line lines[BATCH];
    char *texts[BATCH];
    char *(*work)(void *arg, struct ws_json_line *l);
    void *arg;
};

static void batch_work(void *arg, size_t i)
{
    struct batch *b = arg;
    if (!b->lines[i].bad)
        b->texts[i] = b->work(b->arg, &b->lines[i]);
}

int ws_parallel_lines(struct ws_jsonl *r, int n_jobs,
                      char *(*work)(void *arg, struct ws_json_line *l),
                      void (*sink)(void *arg, struct ws_json_line *l, const char *text), void *arg,
                      struct ws_progress_bar *progress)
{
    struct batch *b = ws_alloc(sizeof(*b));
    if (!b)
        return ws_raise(-ENOMEM);
    b->work = work;
    b->arg = arg;
    int e = 0;
    while (!e) {
        size_t n = 0;
        while (n < BATCH && !(e = ws_jsonl_next(r, &b->lines[n])))
            b->texts[n++] = NULL;
        ws_parallel_for(n, n_jobs, batch_work, b, progress);
        for (size_t i = 0; i < n; i++) {
            sink(arg, &b->lines[i], b->texts[i]);
            free(b->texts[i]);
            ws_json_line_deinit(&b->lines[i]);
        }
    }
    free(b);
    return e == WS_JSONL_END ? 0 : ws_forward(e);
}
