/* SPDX-License-Identifier: Apache-2.0 */
/* tests/attack/people.h - the processes around an attack: bystanders, programs that come during it,
 * the attackers, and one that measures the machine itself. Threads: none. */
#ifndef WS_TESTS_ATTACK_PEOPLE_H
#define WS_TESTS_ATTACK_PEOPLE_H

#include "tests/attack/attack.h"

/* A bystander program that runs. */
struct bystander {
    pid_t pid;
    int in, out; /* its standard input, and output; -1: closed */
    uint64_t since_ns;
};
struct report {
    bool well; /* it ended, and all its results were right */
    bool told; /* it ended as it was told that a launch failed, and not for a wrong result */
    unsigned calls;
    double p50_ms, p99_ms, max_ms;
    char text[160]; /* what it said if not @well */
};
/* @calls: 0: until bystander_end(). @period_us: from call to call. */
void bystander_start(struct bystander *b, const struct target *t, const char *place, uid_t uid,
                     unsigned calls, unsigned period_us);
/* Waits until it computes. Return: false: not within @ms. */
bool bystander_ready(struct bystander *b, unsigned ms);
/* Tells it to end and waits for at most @ms; kills it then. */
void bystander_end(struct bystander *b, unsigned ms, struct report *ret);

/* Two processes that wake each other at the bystanders' pace: what the machine takes for that is no
 * delay of the daemon's. */
struct control {
    pid_t pid;
    int in, out;
};
void control_start(struct control *c);
/* Return: the 99th percentile in ms. */
double control_end(struct control *c);

/* The attack's processes. */
enum { MOST_ATTACKERS = 16 };
struct attackers {
    pid_t pids[MOST_ATTACKERS];
    unsigned n;
    struct won {
        _Atomic int done; /* run() has returned */
        char text[160];   /* what it has won, or "" */
    } * won;              /* in memory that they share with the harness */
};
void attackers_start(struct attackers *x, const struct attack *a, const struct target *t);
bool attackers_done(const struct attackers *x);
/* Kills them, stopped or not. */
void attackers_end(struct attackers *x);

#endif
