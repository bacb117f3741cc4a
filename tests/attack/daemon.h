/* SPDX-License-Identifier: Apache-2.0 */
/* tests/attack/daemon.h - the daemon that is attacked, and the place where everybody finds the
 * programs. Threads: none. Failures of the harness itself end the program. */
#ifndef WS_TESTS_ATTACK_DAEMON_H
#define WS_TESTS_ATTACK_DAEMON_H

#include "tests/attack/attack.h"
#include "tests/attack/turns.h"

/* Users who take part. Nobody else has these numbers on an ordinary machine. */
enum { UID_DAEMON = 61000, UID_ATTACKER, UID_BYSTANDER, UID_NEWCOMER, UID_PROGRAM };

/* A new folder with copies of the programs, which other users can read, wherever the build tree is.
 * Return: its path. */
const char *place_make(void);
void place_remove(void);
/* Programs that this process becomes load @libraries ("a:b") first. */
void place_preload(const char *libraries);
/* The build tree of the daemon, its workers and the mock driver: this one, or another one that the
 * environment names (WS_DAEMON_BUILD), which was built with ThreadSanitizer. */
const char *place_daemon_build(void);
/* The runtime of the sanitizers, which has to be the first library of whatever has parts that were
 * built with them; "": this build has none. */
const char *place_sanitizer(void);
/* Becomes the user @uid for good, and dies with its parent. */
void place_become(uid_t uid);

struct daemon {
    struct target target;
    int status; /* of its end, once @ended */
    bool ended;
    long peak_kib; /* of its memory, as far as it was looked at */
    struct turns *turns;
};
/* Return: false: it does not start; its log says why. */
bool daemon_start(struct daemon *d, const struct attack *a);
/* Notes its memory, and whether it has ended. */
void daemon_look(struct daemon *d);
/* The most processor time that a turn of its loop has taken since daemon_turns_begin(). */
void daemon_turns_begin(struct daemon *d);
double daemon_longest_turn_ms(const struct daemon *d);
/* SIGTERM. Return: false: it did not end within @seconds and was killed. */
bool daemon_stop(struct daemon *d, unsigned seconds);
/* The last line of its log that says why it ended, or "". */
void daemon_last_words(const struct daemon *d, char *buf, size_t size);
/* Removes what it and the attack have left. */
void daemon_remove(struct daemon *d);

_Noreturn void die(const char *what);
uint64_t now_ns(void);

#endif
