// SPDX-License-Identifier: Apache-2.0
/* device/soft/jit/tiers.c - which kernels are compiled, and whether they stay so.
 *
 * A kernel begins in the interpreter. Once it has taken some time there it is compiled, on a thread
 * of its own which the process has while there is something to compile: a launch never waits for
 * it. Not every kernel gains, so the next blocks run both ways in turn, and the way in which the
 * best of them took less time for each instruction is kept. The best one is compared, and not the
 * mean, because whatever else the machine does only ever makes a block slower. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "device/soft/jit/code.h"

enum {
    HOT_TICKS = 300 * 1000 * 1000, /* about a tenth of a second: as long as compiling takes */
    TRIED_BLOCKS = 8,              /* in each way, before they are compared */
    NICENESS = 5,                  /* of the thread that compiles */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;
static struct ws_jit_code *queue, **queue_end = &queue; /* this and below: under the lock */
static struct ws_jit_code *current;                     /* in the second step of compiling */
static bool runs;

/* Takes the first of the queue through the first step, which needs its module and so the lock. */
static struct ws_jit_code *take(void)
{
    struct ws_jit_code *j;
    while ((j = queue)) {
        queue = j->next_queued;
        if (!queue)
            queue_end = &queue;
        if (ws_jit_compile_begin(j) == 0)
            return j;
        atomic_store(&j->tier, WS_JIT_INTERPRETED);
    }
    return NULL;
}

static void *compiler_main(void *arg)
{
    (void)arg;
    setpriority(PRIO_PROCESS, (id_t)gettid(), NICENESS);
    pthread_mutex_lock(&lock);
    while ((current = take())) {
        struct ws_jit_code *j = current;
        pthread_mutex_unlock(&lock);
        int r = ws_jit_compile_finish(j);
        pthread_mutex_lock(&lock);
        if (j->orphaned)
            ws_jit_code_free(j);
        else
            atomic_store_explicit(&j->tier, r ? WS_JIT_INTERPRETED : WS_JIT_TRIED,
                                  memory_order_release);
    }
    runs = false;
    pthread_cond_broadcast(&ended);
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* The library's own clean-up at the process's end must not come while it compiles. */
static void wait_at_exit(void)
{
    pthread_mutex_lock(&lock);
    queue = NULL;
    queue_end = &queue;
    while (runs)
        pthread_cond_wait(&ended, &lock);
    pthread_mutex_unlock(&lock);
}

static void at_first(void)
{
    (void)atexit(wait_at_exit);
}

/* Signals are for the process's other threads. Lock held. */
static bool start_thread(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    sigset_t all, before;
    pthread_attr_t attr;
    pthread_t t;
    pthread_once(&once, at_first);
    if (pthread_attr_init(&attr))
        return false;
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool ok = pthread_create(&t, &attr, compiler_main, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return ok;
}

static void enqueue(struct ws_jit_code *j)
{
    pthread_mutex_lock(&lock);
    if (atomic_load(&j->tier) == WS_JIT_COLD && (runs || start_thread())) {
        runs = true;
        atomic_store(&j->tier, WS_JIT_QUEUED);
        j->next_queued = NULL;
        *queue_end = j;
        queue_end = &j->next_queued;
    }
    pthread_mutex_unlock(&lock);
}

static void judge(struct ws_jit_code *j, bool compiled, uint64_t n_insns, uint64_t ticks)
{
    double each = (double)ticks / (double)n_insns;
    pthread_mutex_lock(&lock);
    struct ws_jit_score *s = &j->score[compiled], *a = &j->score[0], *b = &j->score[1];
    s->best = s->n == 0 || each < s->best ? each : s->best;
    s->n++;
    if (a->n >= TRIED_BLOCKS && b->n >= TRIED_BLOCKS) {
        atomic_store(&j->tier, b->best < a->best ? WS_JIT_COMPILED : WS_JIT_INTERPRETED);
        if (getenv("WS_SOFT_JIT_SAY"))
            fprintf(stderr, "jit: %s: takes %.2f of the interpreter's time\n", j->name,
                    b->best / a->best);
    }
    pthread_mutex_unlock(&lock);
}

bool ws_jit_choose(struct ws_jit_code *j, uint64_t block)
{
    int tier = atomic_load_explicit(&j->tier, memory_order_acquire);
    return tier == WS_JIT_COMPILED || (tier == WS_JIT_TRIED && block % 2);
}

bool ws_jit_is_open(const struct ws_jit_code *j)
{
    int tier = atomic_load_explicit(&j->tier, memory_order_relaxed);
    return tier == WS_JIT_COLD || tier == WS_JIT_TRIED;
}

void ws_jit_ran(struct ws_jit_code *j, bool compiled, uint64_t n_insns, uint64_t ticks)
{
    int tier = atomic_load_explicit(&j->tier, memory_order_relaxed);
    if (tier == WS_JIT_COLD && atomic_fetch_add(&j->cold_ticks, ticks) + ticks >= HOT_TICKS)
        enqueue(j);
    else if (tier == WS_JIT_TRIED && n_insns)
        judge(j, compiled, n_insns, ticks);
}

bool ws_jit_tiers_leave(struct ws_jit_code *j)
{
    pthread_mutex_lock(&lock);
    struct ws_jit_code **at = &queue;
    while (*at && *at != j)
        at = &(*at)->next_queued;
    if (*at) {
        *at = j->next_queued;
        if (!*at)
            queue_end = at;
    }
    j->orphaned = j == current;
    pthread_mutex_unlock(&lock);
    return !j->orphaned;
}
