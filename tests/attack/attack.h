/* SPDX-License-Identifier: Apache-2.0 */
/* tests/attack/attack.h - what an attack is, and what it may use. The harness (main.c) starts a
 * daemon and bystanders, runs the attack in processes of another user, and judges what became of
 * the daemon and of the bystanders. To add an attack: write its function into the file of its
 * family and add its row to the table at that file's end. */
#ifndef WS_TESTS_ATTACK_ATTACK_H
#define WS_TESTS_ATTACK_ATTACK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tests/attack/raw.h"

/* What is attacked. */
struct target {
    char dir[64]; /* of the daemon alone; for the attack's files too */
    char sock[96], side[104], conf[96];
    unsigned port;                             /* of tcp */
    char public_key[41];                       /* of the daemon, there */
    char friend_public[41], friend_secret[41]; /* of somebody whom it allows there */
    pid_t pid;
    pid_t bystander;
    uint64_t until_ns; /* when the attack is to end */
};

struct attack {
    const char *row;  /* of the table in doc/security.md */
    const char *name; /* one word for the command line, no blanks */
    const char *what; /* one line */
    /* Runs in a process of its own, as a user of its own, until attack_goes_on() says no.
     * @copy: 0 … copies - 1. Return: NULL, or what the attack has won, as a text. */
    const char *(*run)(const struct target *t, unsigned copy);
    unsigned copies; /* processes that attack at a time; 0: 1 */
    unsigned ms;     /* 0: 1500 */
    /* More lines of the configuration; %DIR% is the target's directory, %PORT% its port, which is
     * free unless @tcp. */
    const char *conf;
    unsigned n_files; /* the daemon's limit of open files; 0: what the harness has */
    unsigned max_mib; /* what the daemon's memory may be; 0: 512 */
    /* If not 0, kernels of the attacker may delay the bystander: each of its calls must end within
     * so many ms, instead of 99 of 100 within 5 ms. */
    unsigned max_call_ms;
    unsigned n_programs; /* bystanders that compute at the same time, at a tenth of the pace */
    bool first;          /* it begins before the first program comes */
    bool tcp;            /* the daemon listens there too */
    bool with_attackers; /* the daemon is told to end while the attackers still attack */
    bool owner;          /* the attack is the daemon's owner's mistake: it runs as root */
    bool full_disk;      /* the daemon's directory and /dev/shm are small file systems of its own */
    bool mock; /* its GPU is a real one, in a process of its own; the driver is the mock */
    /* The GPU may be lost to programs that compute meanwhile: they may end with an error that says
     * so. */
    bool may_be_told;
    bool clock_jumps; /* the daemon's time of day is ahead by what %DIR%/clock says */
};
extern const struct attack attacks_connect[], attacks_message[], attacks_code[], attacks_share[],
    attacks_host[], attacks_work[], attacks_walk[], attacks_gpu[], attacks_linger[],
    attacks_slowfile[], attacks_keys[], attacks_many[]; /* each up to a row without a name */

bool attack_goes_on(const struct target *t);
void attack_sleep_ms(unsigned ms);
/* What the users of whom the caller is told are charged with of a resource. */
uint64_t attack_charged(const struct target *t, const char *resource);
/* Connects and says hello, as soon as the daemon lets it in. Return: false: the attack is over. */
bool attack_open(struct raw *r, const struct target *t);

#endif
