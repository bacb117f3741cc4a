// SPDX-License-Identifier: Apache-2.0
/* tests/process/waited.h - what libwaited.so measures, in a file that both of its processes map.
 *
 * Three things make a thread late. It uses a processor; it waits for something, such as a lock or a
 * call of the driver; or it is ready and the machine gives it no processor. The last one says
 * nothing of this project, so it is counted by itself. */
#ifndef WS_TESTS_WAITED_H
#define WS_TESTS_WAITED_H

#include <stdint.h>

struct waited_time {
    uint64_t whole_ns, processor_ns, waited_ns; /* the rest: the machine's */
};
/* Of one kind of work. One thread writes it. */
struct waited_kind {
    uint64_t n;
    uint64_t within[32]; /* how many used a processor and waited for less than 2^k us together */
    struct waited_time longest; /* of which these two are longest together */
    struct waited_time most_whole;
};
enum { WAITED_ASKED = 256 };
struct waited {
    struct waited_kind turns;    /* of the daemon's loop, from one poll() to the next */
    struct waited_kind preempts; /* from the daemon's sending until the worker has asked the GPU */
    struct waited_asked {
        uint64_t id, ns;
    } asked[WAITED_ASKED]; /* by the id of the operation */
};

#endif
