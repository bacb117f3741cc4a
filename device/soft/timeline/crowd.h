/* SPDX-License-Identifier: Apache-2.0 */
/* device/soft/timeline/crowd.h - the power of SMs that issue, where launches share SMs.
 *
 * An SM that issues i warp instructions a clock takes its power of issuing for the share
 * 1 - exp(-2i) of the clocks (models/event_power.h). Launches beside each other on it issue the sum
 * of what each issues, so that together they take less than if each had the SM to itself: the share
 * of clocks without an instruction is the product of those of the launches.
 *
 * What each pays of an SM is its Shapley value: what it adds to what others take, on average over
 * all orders in which they may have come. In Owen's form (Management Science, 1972) that is an
 * integral over the probability t with which each other launch came before,
 *
 *     (1 - q_l) * integral from 0 to 1 of product over k != l of (1 - t (1 - q_k)) dt,
 *
 * of a polynomial; eight points are exact for 16 launches, and nearly so for more.
 * Units: mW. Threads: one at a time. */
#ifndef WS_DEVICE_SOFT_TIMELINE_CROWD_H
#define WS_DEVICE_SOFT_TIMELINE_CROWD_H

#include <stdint.h>

#include "base/sm_set.h"

enum { WS_CROWD_POINTS = 8 };

/* What runs beside each other is looked at very often, and most of it has few SMs: a loop over the
 * bits that are set. @bits: as in struct ws_sm_set. Return: the first SM from @from on, or
 * WS_SM_MAX. */
static inline uint32_t ws_sm_bits_next(const uint64_t *bits, uint32_t from)
{
    while (from < WS_SM_MAX) {
        uint64_t left = bits[from / 64] >> (from % 64);
        if (left)
            return from + (uint32_t)__builtin_ctzll(left);
        from = (from / 64 + 1) * 64;
    }
    return WS_SM_MAX;
}
#define WS_SM_BITS_EACH(sm, bits)                                                                  \
    for (uint32_t sm = ws_sm_bits_next(bits, 0); sm < WS_SM_MAX; sm = ws_sm_bits_next(bits, sm + 1))

/* Of a launch, on each of its SMs. */
struct ws_issue {
    double mw_per_sm; /* what an SM takes more that issues in each clock; 0: nothing is known */
    double quiet;     /* exp(-2i): the share of clocks in which the launch issues nothing there */
};
struct ws_crowd {
    uint32_t n_sms;
    double mw_per_sm;                             /* the highest of those that joined */
    double quiet[WS_SM_MAX][WS_CROWD_POINTS + 1]; /* the products at each point, and at t = 1 */
};

/* What a launch that has @n_sms to itself takes. */
static inline double ws_issue_mw(const struct ws_issue *issue, uint32_t n_sms)
{
    return n_sms * issue->mw_per_sm * (1 - issue->quiet);
}
/* Nobody is there. @n_sms: of the GPU. */
void ws_crowd_init(struct ws_crowd *c, uint32_t n_sms);
/* @sms: bits, as in struct ws_sm_set. */
void ws_crowd_join(struct ws_crowd *c, const uint64_t *sms, const struct ws_issue *issue);
/* What all that joined take. */
double ws_crowd_mw(const struct ws_crowd *c);
/* Of it, the share of one that joined. The shares of all add up to the whole, but for rounding. */
double ws_crowd_share_mw(const struct ws_crowd *c, const uint64_t *sms,
                         const struct ws_issue *issue);

#endif
