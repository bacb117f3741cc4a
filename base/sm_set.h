// SPDX-License-Identifier: Apache-2.0
/* base/sm_set.h - a set of SMs, as a launch may use them. A launch without a set (n == 0) may use
 * all. Threads: any. */
#ifndef WS_BASE_SM_SET_H
#define WS_BASE_SM_SET_H

#include <stdbool.h>
#include <stdint.h>

enum { WS_SM_MAX = 256 };
struct ws_sm_set {
    uint32_t n; /* how many are in it */
    uint64_t bits[WS_SM_MAX / 64];
};

static inline bool ws_sm_set_has(const struct ws_sm_set *s, unsigned sm)
{
    return s->bits[sm / 64] >> (sm % 64) & 1;
}

static inline void ws_sm_set_add(struct ws_sm_set *s, unsigned sm)
{
    s->n += !ws_sm_set_has(s, sm);
    s->bits[sm / 64] |= UINT64_C(1) << (sm % 64);
}

/* Whether they share an SM. */
static inline bool ws_sm_set_meet(const struct ws_sm_set *a, const struct ws_sm_set *b)
{
    uint64_t common = 0;
    for (unsigned i = 0; i < WS_SM_MAX / 64; i++)
        common |= a->bits[i] & b->bits[i];
    return common != 0;
}

/* Adds all of @b to @a. */
static inline void ws_sm_set_join(struct ws_sm_set *a, const struct ws_sm_set *b)
{
    a->n = 0;
    for (unsigned i = 0; i < WS_SM_MAX / 64; i++) {
        a->bits[i] |= b->bits[i];
        a->n += (uint32_t)__builtin_popcountll(a->bits[i]);
    }
}

/* Takes all of @b out of @a. */
static inline void ws_sm_set_leave(struct ws_sm_set *a, const struct ws_sm_set *b)
{
    a->n = 0;
    for (unsigned i = 0; i < WS_SM_MAX / 64; i++) {
        a->bits[i] &= ~b->bits[i];
        a->n += (uint32_t)__builtin_popcountll(a->bits[i]);
    }
}

static inline unsigned ws_sm_set_count(const struct ws_sm_set *s)
{
    return s->n;
}

/* Adds the @n lowest of 0…@n_sm-1 that are not in @taken to @ret. Return: how many there were (≤
 * @n). */
static inline unsigned ws_sm_set_take(struct ws_sm_set *ret, const struct ws_sm_set *taken,
                                      unsigned n_sm, unsigned n)
{
    unsigned got = 0;
    n_sm = n_sm < WS_SM_MAX ? n_sm : WS_SM_MAX;
    for (unsigned w = 0; w * 64 < n_sm && got < n; w++) {
        uint64_t free = ~taken->bits[w];
        if (n_sm - w * 64 < 64)
            free &= (UINT64_C(1) << (n_sm - w * 64)) - 1;
        for (; free && got < n; got++, free &= free - 1) {
            uint64_t lowest = free & -free;
            ret->n += !(ret->bits[w] & lowest);
            ret->bits[w] |= lowest;
        }
    }
    return got;
}

#endif
