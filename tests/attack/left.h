/* SPDX-License-Identifier: Apache-2.0 */
/* tests/attack/left.h - what an attack and the programs beside it must not leave behind. Threads:
 * none. */
#ifndef WS_TESTS_ATTACK_LEFT_H
#define WS_TESTS_ATTACK_LEFT_H

#include "tests/attack/daemon.h"

/* The daemon's descriptors. */
unsigned left_descriptors(const struct daemon *d);
/* Waits for at most @ms until the daemon has forgotten everybody: no user is charged with anything,
 * and it has not more than @n_descriptors. @text says what is left otherwise. Return: nothing
 * is. */
bool left_nothing_inside(const struct daemon *d, unsigned n_descriptors, unsigned ms, char *text,
                         size_t size);
/* The same for processes of the daemon's user and files in /dev/shm, when the daemon has ended. */
bool left_nothing_outside(char *text, size_t size);

#endif
