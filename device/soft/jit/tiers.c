// SPDX-License-Identifier: Apache-2.0
/* device/soft/jit/tiers.c - which kernels are compiled, and whether they stay so.
 *
 * A kernel begins in the interpreter. Once it has taken some time there it is compiled, on a thread
 * of its own which the process has while there is something to compile: a launch never waits for
 * it. Users take turns on that thread, with a kernel each. Not every kernel gains, so the next
 * blocks run both ways in turn, and the way in which the best of them took less time for each
 * instruction is kept. The best one is compared, and not the mean, because whatever else the
 * machine does only ever makes a block slower.
 *
 * The loop takes the lock, so nothing is done under it that takes long. The first step reads code
 * of a module, which may be unloaded meanwhile: it has a reference to that, and is told to stop. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/budget.h"
#include "base/log.h"
#include "device/payer.h"
#include "device/soft/jit/code.h"

enum {
    HOT_TICKS = 300 * 1000 * 1000, /* about a tenth of a second: as long as compiling takes */
    TRIED_BLOCKS = 8,              /* in each way, before they are compared */
    QUEUED = 64,                   /* kernels of one user that wait */
    NICENESS = 5,                  /* of the thread that compiles */
};
/* Of a kernel's first step: a thousand times what most take, and so little that others can wait. */
#define FIRST_STEP_NS    (500 * WS_NS_PER_MS)
#define FIRST_STEP_BYTES (UINT64_C(64) << 20)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ws_jit_code *queue, **queue_end = &queue; /* this and below: under the lock */
static struct ws_jit_code *current;                     /* is compiled */
static struct ws_budget first_step;                     /* of @current */
static uint64_t n_turns;
static struct ws_payer nobody = {.n_refs = 1};
static bool runs;
static bool failed;              /* LLVM gave up, or is missing: nothing is compiled any more */
static __thread bool is_in_llvm; /* this thread compiles, and holds no lock */

static void unqueue(struct ws_jit_code **at)
{
    struct ws_jit_code *j = *at;
    *at = j->next_queued;
    if (!*at)
        queue_end = at;
    j->payer->n_queued--;
}

/* Where the next one stands: of the payers who wait, the first kernel of the one whose turn is the
 * longest ago. */
static struct ws_jit_code **next_turn(void)
{
    struct ws_jit_code **best = &queue;
    for (struct ws_jit_code **at = best; *at; at = &(*at)->next_queued)
        if ((*at)->payer->turn < (*best)->payer->turn)
            best = at;
    return best;
}

static void pay(struct ws_jit_code *j)
{
    atomic_fetch_add(&j->payer->work_ns, j->compile_ns);
    j->payer = ws_payer_unref(j->payer);
}

/* The kernel waits no more, and nobody pays for it. */
static struct ws_jit_code *withdraw(struct ws_jit_code **at)
{
    struct ws_jit_code *j = *at;
    unqueue(at);
    j->payer = ws_payer_unref(j->payer);
    return j;
}

/* LLVM is not there for the kernel. */
static void refuse(struct ws_jit_code *j)
{
    j->why_not = WS_NOT_COMPILER;
    ws_jit_set_tier(j, WS_JIT_INTERPRETED);
}

/* Nothing is compiled any more. */
static void refuse_all(void)
{
    pthread_mutex_lock(&lock);
    failed = true;
    while (queue)
        refuse(withdraw(&queue));
    pthread_mutex_unlock(&lock);
}

void ws_jit_failed(const char *why)
{
    ws_log(WS_ERROR, "jit: LLVM failed: %s", why);
    if (!is_in_llvm)
        abort();
    refuse_all();
    ws_log(WS_ERROR, "jit: from now on kernels are interpreted that are not compiled yet");
    for (;;)
        pause();
}

/* Takes the next kernel to compile, with a reference to its code. */
static struct ws_jit_code *take(void)
{
    if (!queue)
        return NULL;
    struct ws_jit_code **at = next_turn(), *j = *at;
    unqueue(at);
    j->payer->turn = ++n_turns;
    first_step = (struct ws_budget){.max_ns = FIRST_STEP_NS, .max_bytes = FIRST_STEP_BYTES};
    ws_code_ref(j->of);
    return j;
}

/* No lock held. Return: 0: there is code. */
static int compile(struct ws_jit_code *j)
{
    struct ws_code *of = j->of;
    is_in_llvm = true;
    struct ws_budget *before = ws_budget_enter(&first_step);
    int r = ws_jit_compile_begin(j);
    ws_budget_leave(before);
    ws_code_put(of);
    r = r ? r : ws_jit_compile_finish(j);
    is_in_llvm = false;
    return r;
}

/* Nobody waits for a kernel that a client chose. */
void ws_compiled_end(int status)
{
    pthread_mutex_lock(&lock);
    if (runs) {
        fflush(NULL);
        _exit(status);
    }
    pthread_mutex_unlock(&lock);
}

/* For programs that do not say when they end. What is registered last comes first, and the library
 * registers clean-ups of its own, some when it is opened and some in its first use: so this is
 * registered before it is opened and behind that; what its first use adds comes before this. */
static void end_at_once(int status, void *arg)
{
    (void)arg;
    ws_compiled_end(status);
}

static void at_first(void)
{
    (void)on_exit(end_at_once, NULL);
}

static void *compiler_main(void *arg)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)arg;
    setpriority(PRIO_PROCESS, (id_t)gettid(), NICENESS);
    if (!ws_llvm_open()) /* here: it takes time, and memory that few programs need */
        refuse_all();
    pthread_once(&once, at_first);
    pthread_mutex_lock(&lock);
    while ((current = take())) {
        struct ws_jit_code *j = current;
        pthread_mutex_unlock(&lock);
        int r = compile(j);
        if (r)
            ws_jit_code_drop(j);
        pthread_mutex_lock(&lock);
        pay(j);
        if (j->orphaned)
            ws_jit_code_free(j);
        else
            ws_jit_set_tier(j, !r && ws_jit_keep(j) ? WS_JIT_TRIED : WS_JIT_INTERPRETED);
    }
    runs = false;
    pthread_mutex_unlock(&lock);
    return NULL;
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

static void enqueue(struct ws_jit_code *j, struct ws_payer *payer)
{
    pthread_mutex_lock(&lock);
    if (failed && atomic_load(&j->tier) == WS_JIT_COLD) {
        refuse(j);
    } else if (atomic_load(&j->tier) == WS_JIT_COLD && payer->n_queued < QUEUED &&
               (runs || start_thread())) {
        runs = true;
        ws_jit_set_tier(j, WS_JIT_QUEUED);
        payer->n_queued++;
        j->payer = ws_payer_ref(payer);
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
        j->why_not = WS_NOT_FASTER;
        ws_jit_set_tier(j, b->best < a->best ? WS_JIT_COMPILED : WS_JIT_INTERPRETED);
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

bool ws_jit_is_settled(const struct ws_jit_code *j)
{
    int tier = atomic_load_explicit(&j->tier, memory_order_acquire);
    return tier == WS_JIT_COMPILED || tier == WS_JIT_INTERPRETED;
}

bool ws_jit_is_open(const struct ws_jit_code *j)
{
    int tier = atomic_load_explicit(&j->tier, memory_order_relaxed);
    return tier == WS_JIT_COLD || tier == WS_JIT_TRIED;
}

void ws_jit_ran(struct ws_jit_code *j, struct ws_payer *payer, bool compiled, uint64_t n_insns,
                uint64_t ticks)
{
    int tier = atomic_load_explicit(&j->tier, memory_order_relaxed);
    if (tier == WS_JIT_COLD && atomic_fetch_add(&j->cold_ticks, ticks) + ticks >= HOT_TICKS)
        enqueue(j, payer ? payer : &nobody);
    else if (tier == WS_JIT_TRIED && n_insns)
        judge(j, compiled, n_insns, ticks);
}

bool ws_jit_tiers_leave(struct ws_jit_code *j)
{
    pthread_mutex_lock(&lock);
    ws_jit_count(j, false);
    struct ws_jit_code **at = &queue;
    while (*at && *at != j)
        at = &(*at)->next_queued;
    if (*at)
        (void)withdraw(at);
    j->orphaned = j == current;
    if (j->orphaned)
        ws_budget_stop(&first_step);
    pthread_mutex_unlock(&lock);
    return !j->orphaned;
}
