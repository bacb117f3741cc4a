// SPDX-License-Identifier: Apache-2.0
/* The virtual clock: a pair (virtual time, host time) from which time passes at 1 / scale of the
 * host's, and whether it stands still.
 *
 * Events lie in a list sorted by time, then by seq; most are added near its end. One thread fires
 * them. The clock stands at an event's time while the event is fired. A stall, which makes the
 * clock stand still, has a limit, and a shorter one while all stalls are idle; and so have all of a
 * user together (standing.h). The next thread that looks at the clock forgets stalls over their
 * limit, as of the moment when they reached it; so the time does not depend on who looks and when.
 *
 * Invariants: base_ns never falls; while the clock stands, it is the time. No waiting event is
 * earlier than the time, except events that were added late, which fire at once. */
#include "device/soft/timeline/vclock.h"

#include <pthread.h>
#include <signal.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "device/soft/timeline/standing.h"

struct ws_vclock {
    pthread_mutex_t lock; /* all below */
    pthread_cond_t wake, fired;
    pthread_t thread;
    uint32_t n_users; /* the_lock */
    double scale;
    uint64_t stall_ns; /* host: the limit of a stall */
    bool stop, holds;  /* holds: an event is being fired */
    const void *firing;
    struct ws_list events, stalls;
    struct ws_list idle; /* those of the stalls that are idle, the one that is so for least last */
    uint32_t n_busy;     /* stalls that are not idle */
    struct ws_standing standing;
    struct ws_list of_user[WS_STANDING_USERS]; /* stalls of each */
    uint64_t sleeps_until_ns;                  /* host: the thread */
    struct ws_list over;            /* stalls over their limit, whose owners are not told yet */
    uint64_t base_ns, base_host_ns; /* the time at a host time; if it stands: the time */
    uint64_t stalled_since_ns, stalled_ns; /* host */
    uint64_t busy_host_ns;                 /* when a stall was last ended by its owner */
    uint64_t seq;
};

static pthread_mutex_t the_lock = PTHREAD_MUTEX_INITIALIZER;
static struct ws_vclock *the_clock; /* the_lock */

static struct ws_vevent *first_event(const struct ws_vclock *v)
{
    return ws_list_empty(&v->events) ? NULL : ws_list_entry(v->events.next, struct ws_vevent, link);
}

static bool stands(const struct ws_vclock *v)
{
    return v->holds || !ws_list_empty(&v->stalls);
}

/* Whether it is its user's doing that the clock stands. */
static void set_charged(struct ws_vclock *v, struct ws_vstall *s, bool charged)
{
    v->standing.user[s->user].n_stalls += charged;
    v->standing.user[s->user].n_stalls -= s->charged;
    s->charged = charged;
}

static void stall_remove(struct ws_vclock *v, struct ws_vstall *s, uint64_t host_ns)
{
    ws_list_remove(&s->link);
    ws_list_remove(&s->others);
    set_charged(v, s, false);
    v->n_busy -= !s->idle_since_host_ns;
    ws_list_remove(&s->idle);
    s->on = false;
    s->stalled_host_ns += host_ns - s->since_host_ns;
    if (!ws_list_empty(&v->stalls))
        return;
    v->stalled_ns += host_ns - v->stalled_since_ns;
    v->base_host_ns =
        host_ns; /* of no interest while an event holds the clock: set again after it */
}

/* Host time when the first stall is over its limit. There are some. *ret_user: if it is that of a
 * user, for all of its stalls; else 0. */
static uint64_t first_over(const struct ws_vclock *v, uint32_t *ret_user)
{
    uint64_t limit = ws_list_entry(v->stalls.next, struct ws_vstall, link)->until_host_ns,
             of_user = ws_standing_over(&v->standing, ret_user);
    if (of_user <= limit)
        return of_user;
    *ret_user = 0;
    if (v->n_busy)
        return limit;
    uint64_t idle = ws_list_entry(v->idle.prev, struct ws_vstall, idle)->idle_since_host_ns;
    idle = WS_MAX(idle, v->busy_host_ns);
    return WS_MIN(limit, idle + WS_VCLOCK_IDLE_NS);
}

static void forget(struct ws_vclock *v, struct ws_vstall *s, uint64_t host_ns)
{
    stall_remove(v, s, host_ns);
    ws_list_append(&v->over, &s->link);
    pthread_cond_signal(&v->wake);
}

/* Until @host_ns nothing has changed. While an event holds the clock that is nobody's doing. */
static void count(struct ws_vclock *v, uint64_t host_ns)
{
    if (v->holds)
        v->standing.counted_ns = host_ns;
    else
        ws_standing_count(&v->standing, host_ns, stands(v));
}

/* The time. Lock held; stalls over their limit are gone afterwards. */
static uint64_t now_locked(struct ws_vclock *v)
{
    uint64_t host = ws_clock_ns(), over;
    uint32_t user = 0;
    if (v->holds)
        count(v, host);
    while (!ws_list_empty(&v->stalls) && (over = first_over(v, &user)) <= host) {
        count(v, over);
        if (user)
            ws_list_for_each_safe (l, &v->of_user[user])
                forget(v, ws_list_entry(l, struct ws_vstall, others), over);
        else
            forget(v, ws_list_entry(v->stalls.next, struct ws_vstall, link), over);
    }
    count(v, host);
    if (stands(v) || host <= v->base_host_ns)
        return v->base_ns;
    uint64_t now = v->base_ns + (uint64_t)((double)(host - v->base_host_ns) / v->scale);
    const struct ws_vevent *e = first_event(v);
    if (e && e->at_ns < now)
        now = WS_MAX(e->at_ns, v->base_ns);
    return now;
}

/* Before the events change: the time that they held back, or let pass, stands. */
static uint64_t settle(struct ws_vclock *v)
{
    uint64_t now = now_locked(v);
    if (!stands(v)) {
        v->base_ns = now;
        v->base_host_ns = ws_clock_ns();
    }
    return now;
}

static void stall_locked(struct ws_vclock *v, struct ws_vstall *s, uint64_t now)
{
    uint64_t host = ws_clock_ns();
    uint32_t user;
    v->base_ns = now;
    v->base_host_ns = host;
    if (ws_list_empty(&v->stalls))
        v->stalled_since_ns = host;
    s->since_host_ns = host;
    s->until_host_ns = host + v->stall_ns - WS_MIN(s->stalled_host_ns, v->stall_ns);
    s->idle_since_host_ns = 0;
    ws_list_init(&s->idle);
    v->n_busy++;
    set_charged(v, s, true);
    ws_list_append(&v->of_user[s->user], &s->others);
    s->on = true;
    struct ws_list *at = v->stalls.prev;
    while (at != &v->stalls &&
           ws_list_entry(at, struct ws_vstall, link)->until_host_ns > s->until_host_ns)
        at = at->prev;
    ws_list_append(at->next, &s->link);
    if (first_over(v, &user) < v->sleeps_until_ns)
        pthread_cond_signal(&v->wake);
}

static void unstall_locked(struct ws_vclock *v, struct ws_vstall *s)
{
    if (s->on)
        stall_remove(v, s, v->busy_host_ns = ws_clock_ns());
    else if (s->until_host_ns)
        ws_list_remove(&s->link);
}

static void idle_locked(struct ws_vclock *v, struct ws_vstall *s, bool idle)
{
    if (s->on) { /* if not, it is in no list */
        v->n_busy += !idle;
        v->n_busy -= !s->idle_since_host_ns;
        ws_list_remove(&s->idle);
    }
    s->idle_since_host_ns = idle ? ws_clock_ns() : 0;
    if (idle && s->on) {
        ws_list_append(&v->idle, &s->idle);
        pthread_cond_signal(&v->wake); /* it sleeps for longer */
    }
}

void ws_vclock_idle(struct ws_vclock *v, struct ws_vstall *s, bool idle)
{
    pthread_mutex_lock(&v->lock);
    (void)now_locked(v);
    idle_locked(v, s, idle);
    pthread_mutex_unlock(&v->lock);
}

void ws_vclock_executed(struct ws_vclock *v, struct ws_vstall *s)
{
    pthread_mutex_lock(&v->lock);
    (void)now_locked(v);
    idle_locked(v, s, true);
    set_charged(v, s, false);
    pthread_mutex_unlock(&v->lock);
}

bool ws_vclock_stalls(struct ws_vclock *v, const struct ws_vstall *s)
{
    pthread_mutex_lock(&v->lock);
    (void)now_locked(v);
    bool on = s->on;
    pthread_mutex_unlock(&v->lock);
    return on;
}

uint64_t ws_vclock_now_ns(struct ws_vclock *v)
{
    pthread_mutex_lock(&v->lock);
    uint64_t now = now_locked(v);
    pthread_mutex_unlock(&v->lock);
    return now;
}

uint64_t ws_vclock_stalled_host_ns(struct ws_vclock *v)
{
    pthread_mutex_lock(&v->lock);
    (void)now_locked(v);
    uint64_t ns = v->stalled_ns;
    if (!ws_list_empty(&v->stalls))
        ns += ws_clock_ns() - v->stalled_since_ns;
    pthread_mutex_unlock(&v->lock);
    return ns;
}

uint64_t ws_vclock_seq(struct ws_vclock *v)
{
    pthread_mutex_lock(&v->lock);
    uint64_t seq = ++v->seq;
    pthread_mutex_unlock(&v->lock);
    return seq;
}

uint32_t ws_vclock_enter(struct ws_vclock *v, const void *who)
{
    pthread_mutex_lock(&v->lock);
    (void)now_locked(v);
    uint32_t user = ws_standing_enter(&v->standing, who);
    pthread_mutex_unlock(&v->lock);
    return user;
}

void ws_vclock_exit(struct ws_vclock *v, uint32_t user)
{
    pthread_mutex_lock(&v->lock);
    (void)now_locked(v);
    ws_standing_leave(&v->standing, user);
    pthread_mutex_unlock(&v->lock);
}

uint64_t ws_vclock_stall(struct ws_vclock *v, struct ws_vstall *s)
{
    pthread_mutex_lock(&v->lock);
    uint64_t now = now_locked(v);
    stall_locked(v, s, now);
    pthread_mutex_unlock(&v->lock);
    return now;
}

void ws_vclock_unstall(struct ws_vclock *v, struct ws_vstall *s)
{
    pthread_mutex_lock(&v->lock);
    (void)now_locked(v);
    unstall_locked(v, s);
    if (!stands(v))
        pthread_cond_signal(&v->wake);
    pthread_mutex_unlock(&v->lock);
}

uint64_t ws_vclock_add(struct ws_vclock *v, struct ws_vevent *e, struct ws_vstall *s)
{
    pthread_mutex_lock(&v->lock);
    uint64_t now = settle(v);
    struct ws_list *at = v->events.prev;
    while (at != &v->events) {
        const struct ws_vevent *o = ws_list_entry(at, struct ws_vevent, link);
        if (o->at_ns < e->at_ns || (o->at_ns == e->at_ns && o->seq < e->seq))
            break;
        at = at->prev;
    }
    ws_list_append(at->next, &e->link);
    e->waiting = true;
    if (s)
        unstall_locked(v, s);
    if (!stands(v) || e->at_ns <= v->base_ns) /* one that is late fires while the clock stands */
        pthread_cond_signal(&v->wake);
    pthread_mutex_unlock(&v->lock);
    return now;
}

static void take_locked(struct ws_vevent *e)
{
    ws_list_remove(&e->link);
    e->waiting = false;
}

bool ws_vclock_take(struct ws_vclock *v, struct ws_vevent *e, struct ws_vstall *s,
                    uint64_t *ret_now_ns)
{
    pthread_mutex_lock(&v->lock);
    uint64_t now = settle(v);
    bool ok = e->waiting;
    if (ok) {
        take_locked(e);
        if (s)
            stall_locked(v, s, now);
    }
    pthread_mutex_unlock(&v->lock);
    *ret_now_ns = now;
    return ok;
}

struct ws_vevent *ws_vclock_take_any(struct ws_vclock *v, const void *owner)
{
    pthread_mutex_lock(&v->lock);
    struct ws_vevent *found = NULL;
    while (v->firing == owner)
        pthread_cond_wait(&v->fired, &v->lock);
    (void)settle(v);
    ws_list_for_each (it, &v->events) {
        struct ws_vevent *e = ws_list_entry(it, struct ws_vevent, link);
        if (e->owner == owner) {
            found = e;
            break;
        }
    }
    if (found)
        take_locked(found);
    pthread_mutex_unlock(&v->lock);
    return found;
}

/* ---- the thread ---- */

static void fire(struct ws_vclock *v, struct ws_vevent *e)
{
    take_locked(e);
    v->base_ns = WS_MAX(v->base_ns, e->at_ns);
    v->holds = true;
    v->firing = e->owner;
    pthread_mutex_unlock(&v->lock);
    e->fire(e);
    pthread_mutex_lock(&v->lock);
    count(v, ws_clock_ns());
    v->holds = false;
    v->firing = NULL;
    v->base_host_ns = ws_clock_ns();
    pthread_cond_broadcast(&v->fired);
}

static void tell_over(struct ws_vclock *v)
{
    struct ws_vstall *s = ws_list_entry(ws_list_pop(&v->over), struct ws_vstall, link);
    void (*over)(const void *owner) = s->over;
    const void *owner = v->firing = s->owner;
    pthread_mutex_unlock(&v->lock); /* from here on s may be gone */
    over(owner);
    pthread_mutex_lock(&v->lock);
    v->firing = NULL;
    pthread_cond_broadcast(&v->fired);
}

/* Host time until which there is nothing to do; UINT64_MAX: until somebody signals. */
static uint64_t sleep_until(const struct ws_vclock *v)
{
    const struct ws_vevent *e = first_event(v);
    uint32_t user;
    if (!ws_list_empty(&v->stalls))
        return first_over(v, &user);
    if (!e)
        return UINT64_MAX;
    double ns = (double)(e->at_ns - v->base_ns) * v->scale;
    return ns > 1e18 ? UINT64_MAX : v->base_host_ns + (uint64_t)ns + 1;
}

static void *clock_thread(void *arg)
{
    struct ws_vclock *v = arg;
    pthread_mutex_lock(&v->lock);
    while (!v->stop) {
        uint64_t now = now_locked(v);
        struct ws_vevent *e = first_event(v);
        if (!ws_list_empty(&v->over)) {
            tell_over(v);
            continue;
        }
        if (e && e->at_ns <= now && (!stands(v) || e->at_ns <= v->base_ns)) {
            fire(v, e);
            continue;
        }
        uint64_t until = v->sleeps_until_ns = sleep_until(v);
        struct timespec ts = {.tv_sec = (time_t)(until / 1000000000),
                              .tv_nsec = (long)(until % 1000000000)};
        if (until == UINT64_MAX)
            pthread_cond_wait(&v->wake, &v->lock);
        else
            pthread_cond_timedwait(&v->wake, &v->lock, &ts);
    }
    pthread_mutex_unlock(&v->lock);
    return NULL;
}

static void clock_free(struct ws_vclock *v)
{
    pthread_cond_destroy(&v->wake);
    pthread_cond_destroy(&v->fired);
    pthread_mutex_destroy(&v->lock);
    free(v);
}

static int clock_start(struct ws_vclock **ret, double scale, uint64_t stall_ns)
{
    struct ws_vclock *v = ws_alloc(sizeof(*v));
    if (!v)
        return ws_raise(-ENOMEM);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&v->lock, NULL);
    pthread_cond_init(&v->wake, &monotonic);
    pthread_cond_init(&v->fired, NULL);
    pthread_condattr_destroy(&monotonic);
    ws_list_init(&v->events);
    ws_list_init(&v->stalls);
    ws_list_init(&v->idle);
    ws_list_init(&v->over);
    for (uint32_t i = 0; i < WS_STANDING_USERS; i++)
        ws_list_init(&v->of_user[i]);
    v->scale = scale;
    v->stall_ns = stall_ns ? stall_ns : WS_VCLOCK_STALL_NS;
    v->base_host_ns = ws_clock_ns();
    sigset_t all, old; /* signals are the daemon loop's */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int r = pthread_create(&v->thread, NULL, clock_thread, v);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (r) {
        clock_free(v);
        return ws_raise(-EAGAIN);
    }
    *ret = v;
    return 0;
}

int ws_vclock_join(struct ws_vclock **ret, double scale, uint64_t stall_host_ns)
{
    pthread_mutex_lock(&the_lock);
    int r = the_clock ? 0 : clock_start(&the_clock, scale, stall_host_ns);
    if (!r) {
        the_clock->n_users++;
        *ret = the_clock;
    }
    pthread_mutex_unlock(&the_lock);
    return r;
}

void ws_vclock_leave(struct ws_vclock *v)
{
    pthread_mutex_lock(&the_lock);
    bool last = !--v->n_users;
    if (last)
        the_clock = NULL;
    pthread_mutex_unlock(&the_lock);
    if (!last)
        return;
    pthread_mutex_lock(&v->lock);
    v->stop = true;
    pthread_cond_signal(&v->wake);
    pthread_mutex_unlock(&v->lock);
    pthread_join(v->thread, NULL);
    clock_free(v);
}
