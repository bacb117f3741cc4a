// SPDX-License-Identifier: Apache-2.0
#include "device/soft/timeline/standing.h"

#include "base/macros.h"

/* A place for another user: one who has nothing in flight and has used nothing, or a new one. 0:
 * there is none. */
static uint32_t place(struct ws_standing *s)
{
    for (uint32_t i = 1; i < s->n_users; i++)
        if (!s->user[i].n_in_flight && !s->user[i].used_ns)
            return i;
    return s->n_users < WS_STANDING_USERS ? s->n_users++ : 0;
}

uint32_t ws_standing_enter(struct ws_standing *s, const void *who)
{
    uint32_t i = 0;
    s->n_users = WS_MAX(s->n_users, UINT32_C(1));
    for (uint32_t k = 1; who && !i && k < s->n_users; k++)
        i = s->user[k].who == who ? k : 0;
    if (who && !i && (i = place(s)))
        s->user[i] = (struct ws_standing_user){.who = who};
    s->user[i].n_in_flight++;
    s->n_in_flight++;
    return i;
}

void ws_standing_leave(struct ws_standing *s, uint32_t user)
{
    s->user[user].n_in_flight--;
    s->n_in_flight--;
}

/* Whether the user makes others wait. */
static bool counts(const struct ws_standing *s, uint32_t i)
{
    return s->user[i].n_stalls && s->n_in_flight > s->user[i].n_in_flight;
}

void ws_standing_count(struct ws_standing *s, uint64_t now_ns, bool stood)
{
    uint64_t ns = now_ns - WS_MIN(s->counted_ns, now_ns);
    s->counted_ns = WS_MAX(s->counted_ns, now_ns);
    for (uint32_t i = 1; i < s->n_users; i++) {
        struct ws_standing_user *u = &s->user[i];
        if (!stood)
            u->used_ns -= WS_MIN(u->used_ns, ns * WS_STANDING_GIVEN_BACK);
        else if (counts(s, i))
            u->used_ns = WS_MIN(u->used_ns + ns, WS_STANDING_MOST_NS);
    }
}

uint64_t ws_standing_over(const struct ws_standing *s, uint32_t *ret_user)
{
    uint64_t first_ns = UINT64_MAX;
    for (uint32_t i = 1; i < s->n_users; i++) {
        uint64_t at_ns = s->counted_ns + WS_STANDING_MOST_NS - s->user[i].used_ns;
        if (counts(s, i) && at_ns < first_ns) {
            first_ns = at_ns;
            *ret_user = i;
        }
    }
    return first_ns;
}
