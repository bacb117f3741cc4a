/* SPDX-License-Identifier: Apache-2.0 */
/* device/soft/timeline/standing.h - for how long each user makes the virtual clock stand while
 * others have something in flight.
 *
 * All that a user executes makes the clock stand (vclock.h), and others wait for it to pass. So a
 * user who begins the next thing before the last one has ended would stop everybody's time for
 * ever. Hence each has an account: the host's time for which it made the clock stand while somebody
 * else had something in flight. It is given back nine times as fast while the clock passes. Whoever
 * has used up its limit is not minded until some is given back: others have at least a tenth of
 * their time. What a user does alone is not counted.
 * Units: ns of the host. Threads: one at a time. */
#ifndef WS_DEVICE_SOFT_TIMELINE_STANDING_H
#define WS_DEVICE_SOFT_TIMELINE_STANDING_H

#include <stdbool.h>
#include <stdint.h>

#define WS_STANDING_MOST_NS UINT64_C(200000000)
enum { WS_STANDING_USERS = 64, WS_STANDING_GIVEN_BACK = 9 };

struct ws_standing {
    uint64_t counted_ns; /* up to here */
    uint32_t n_in_flight, n_users;
    struct ws_standing_user {
        const void *who;
        uint32_t n_in_flight, n_stalls; /* n_stalls: of those that make the clock stand */
        uint64_t used_ns;
    } user[WS_STANDING_USERS]; /* [n_users]; the first is nobody, who is not counted */
};

/* Something of @who is in flight; NULL: it is no single user's. Where very many users have
 * something, one who comes counts as nobody. Return: its number. */
uint32_t ws_standing_enter(struct ws_standing *s, const void *who);
void ws_standing_leave(struct ws_standing *s, uint32_t user);
/* Counts until @now_ns; since the last time the clock has stood, or has passed. */
void ws_standing_count(struct ws_standing *s, uint64_t now_ns, bool stood);
/* When somebody's limit will be reached if the clock stands: *ret_user's. UINT64_MAX: never. */
uint64_t ws_standing_over(const struct ws_standing *s, uint32_t *ret_user);

#endif
