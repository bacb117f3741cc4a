/* SPDX-License-Identifier: Apache-2.0 */
/* device/soft/timeline/vclock.h - device time that passes: the one clock of all soft devices in
 * WS_CLOCK_SCALED.
 *
 * Host time divided by a scale, but for two things. It stands still while anybody stalls it (an
 * operation is being executed, which takes the host other time than the device). And it never
 * passes an event before that has fired: how soon the host wakes the thread that fires does not
 * show either. Threads: any; one lock, taken last. */
#ifndef WS_DEVICE_SOFT_TIMELINE_VCLOCK_H
#define WS_DEVICE_SOFT_TIMELINE_VCLOCK_H

#include "base/list.h"
#include "device/device.h"

struct ws_vclock;

/* Something to happen at a time. Zeroed and with at_ns, seq and fire set before it is added. */
struct ws_vevent {
    struct ws_list link; /* the clock's, sorted */
    uint64_t at_ns;
    uint64_t seq;                      /* among those of one time */
    void (*fire)(struct ws_vevent *e); /* on the clock's thread, the clock stands, no locks held */
    const void *owner;
    bool waiting;
};

struct ws_vstall {
    struct ws_list link;      /* the clock's, sorted by until_host_ns */
    struct ws_list idle;      /* the clock's while it is on and idle, sorted by since when */
    struct ws_list others;    /* its user's, while it is on */
    uint32_t user;            /* in: of ws_vclock_enter(); 0: nobody's */
    bool charged;             /* to the user */
    uint64_t stalled_host_ns; /* in and out: for how long it was on before */
    uint64_t since_host_ns, until_host_ns;
    uint64_t idle_since_host_ns; /* 0: it isn't idle */
    bool on;
    /* The limit was reached; on the clock's thread, no locks held. */
    void (*over)(const void *owner);
    const void *owner;
};

/* Host time after which a stall is no longer minded, all the times that it was on together: an
 * endless kernel must not stop everybody's time. */
#define WS_VCLOCK_STALL_NS UINT64_C(2000000000)

/* The same once all stalls there are have been idle: kernels that wait for what only the passing of
 * time, or a program, can bring. */
#define WS_VCLOCK_IDLE_NS UINT64_C(50000000)

/* The process's clock, started with @scale by the first, ended when the last one left.
 * @stall_host_ns: the limit of a stall, of the first; 0: WS_VCLOCK_STALL_NS. Return: 0, -ENOMEM,
 * -EAGAIN. */
WS_MUST_CHECK int ws_vclock_join(struct ws_vclock **ret, double scale, uint64_t stall_host_ns);
void ws_vclock_leave(struct ws_vclock *v);

uint64_t ws_vclock_now_ns(struct ws_vclock *v);
uint64_t ws_vclock_stalled_host_ns(struct ws_vclock *v);
uint64_t ws_vclock_seq(struct ws_vclock *v); /* counts up */
/* Something of @who is in flight, for which it may stop the time; NULL: of no single user. A user's
 * stalls are no longer minded once it has stopped the time of others for too long (standing.h).
 * Return: the user. */
uint32_t ws_vclock_enter(struct ws_vclock *v, const void *who);
void ws_vclock_exit(struct ws_vclock *v, uint32_t user);
/* Stops the time. Return: now. */
uint64_t ws_vclock_stall(struct ws_vclock *v, struct ws_vstall *s);
void ws_vclock_unstall(struct ws_vclock *v, struct ws_vstall *s);
/* Whether who stalls is idle: does nothing but look whether something has happened. */
void ws_vclock_idle(struct ws_vclock *v, struct ws_vstall *s, bool idle);
/* Who stalls has been executed, and waits for others: it is idle, and not its user's doing. */
void ws_vclock_executed(struct ws_vclock *v, struct ws_vstall *s);
bool ws_vclock_stalls(struct ws_vclock *v, const struct ws_vstall *s); /* whether it still does */
/* Adds @e, and ends @s, if not NULL, in the same moment. Once it returns, @e and @s may be gone.
 * Return: now. */
uint64_t ws_vclock_add(struct ws_vclock *v, struct ws_vevent *e, struct ws_vstall *s);
/* Takes @e back, and stops the time with @s, if not NULL. Return: false if it fires or has fired;
 * then @s is not on. */
bool ws_vclock_take(struct ws_vclock *v, struct ws_vevent *e, struct ws_vstall *s,
                    uint64_t *ret_now_ns);
/* Any event of @owner, taken back; NULL: there is none, and none of its is firing. Not from fire().
 */
struct ws_vevent *ws_vclock_take_any(struct ws_vclock *v, const void *owner);

#endif
