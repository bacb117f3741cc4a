/* SPDX-License-Identifier: Apache-2.0 */
/* tests/attack/turns.h - what turns.c tells of the daemon that it is loaded into, in the file
 * ATTACK_TURNS, which both map. */
#ifndef WS_TESTS_ATTACK_TURNS_H
#define WS_TESTS_ATTACK_TURNS_H

#include <stdint.h>

struct turns {
    _Atomic uint64_t longest_ns; /* of the processor; the harness sets it to 0 */
};

#endif
