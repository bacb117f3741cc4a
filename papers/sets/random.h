// SPDX-License-Identifier: Apache-2.0
/* papers/sets/random.h - random numbers that are the same everywhere for the same seed. struct
 * ws_random is xoshiro256** (Blackman and Vigna), seeded through splitmix64; it is used for our
 * own sets. struct ws_pyrandom is the Mersenne Twister as Python's random.Random(seed) for a
 * whole seed ≥ 0; it is used for sets that were made with Python.
 * Threads: one for each object. */
#ifndef WS_PAPERS_SETS_RANDOM_H
#define WS_PAPERS_SETS_RANDOM_H

#include <stdint.h>
#include "base/macros.h"

struct ws_random {
    uint64_t s[4];
};
void ws_random_init(struct ws_random *r, uint64_t seed);
/* A generator of its own for part @i of a job seeded with @seed, so that parts may run in any
 * order. */
void ws_random_init_part(struct ws_random *r, uint64_t seed, uint64_t i);
uint64_t ws_random_next(struct ws_random *r);
/* [0, 1), 53 bits. */
double ws_random_unit(struct ws_random *r);
double ws_random_uniform(struct ws_random *r, double low, double high);
/* @low…@high, both included, all equally likely. */
int64_t ws_random_integer(struct ws_random *r, int64_t low, int64_t high);
/* Mean 1. */
double ws_random_exponential(struct ws_random *r);
/* Mean @mean ≥ 0. */
int64_t ws_random_poisson(struct ws_random *r, double mean);

struct ws_pyrandom {
    uint32_t mt[624];
    int i;
};
void ws_pyrandom_init(struct ws_pyrandom *r, uint64_t seed);
double ws_pyrandom_random(struct ws_pyrandom *r);              /* random() */
uint64_t ws_pyrandom_below(struct ws_pyrandom *r, uint64_t n); /* randrange(n), choice(): n > 0 */

/* UUniFast (Bini and Buttazzo): splits @total into @n parts, uniformly. @unit is called n-1
 * times for numbers in [0, 1). */
void ws_uunifast(double total, int n, double *ret, double (*unit)(void *arg), void *arg);

#endif
