// SPDX-License-Identifier: Apache-2.0
/* xoshiro256** and MT19937, from their authors' descriptions. */
#include "config.h"

#include <math.h>

#include "papers/sets/random.h"

static uint64_t splitmix(uint64_t *x)
{
    uint64_t z = (*x += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

void ws_random_init(struct ws_random *r, uint64_t seed)
{
    for (int i = 0; i < 4; i++)
        r->s[i] = splitmix(&seed);
}

void ws_random_init_part(struct ws_random *r, uint64_t seed, uint64_t i)
{
    uint64_t mixed = splitmix(&seed) ^ (i + 1) * UINT64_C(0xd1342543de82ef95);
    ws_random_init(r, mixed);
}

static uint64_t rotl(uint64_t x, int k)
{
    return x << k | x >> (64 - k);
}

uint64_t ws_random_next(struct ws_random *r)
{
    uint64_t *s = r->s, result = rotl(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl(s[3], 45);
    return result;
}

double ws_random_unit(struct ws_random *r)
{
    return (double)(ws_random_next(r) >> 11) * 0x1p-53;
}

double ws_random_uniform(struct ws_random *r, double low, double high)
{
    return low + (high - low) * ws_random_unit(r);
}

int64_t ws_random_integer(struct ws_random *r, int64_t low, int64_t high)
{
    uint64_t n = (uint64_t)high - (uint64_t)low + 1;
    if (!n)
        return (int64_t)ws_random_next(r);
    /* What is left over above the last whole multiple of n would make small results likelier. */
    uint64_t over = -n % n, x;
    do
        x = ws_random_next(r);
    while (x < over);
    return (int64_t)((uint64_t)low + x % n);
}

double ws_random_exponential(struct ws_random *r)
{
    return -log1p(-ws_random_unit(r));
}

int64_t ws_random_poisson(struct ws_random *r, double mean)
{
    /* Arrivals of a unit-rate process before `mean`: exact for any mean, in time proportional to
     * it. */
    int64_t n = 0;
    double t = ws_random_exponential(r);
    while (t <= mean) {
        t += ws_random_exponential(r);
        n++;
    }
    return n;
}

enum { MT_N = 624, MT_M = 397 };

static void mt_init(struct ws_pyrandom *r, uint32_t seed)
{
    r->mt[0] = seed;
    for (uint32_t i = 1; i < MT_N; i++)
        r->mt[i] = UINT32_C(1812433253) * (r->mt[i - 1] ^ r->mt[i - 1] >> 30) + i;
    r->i = MT_N;
}

void ws_pyrandom_init(struct ws_pyrandom *r, uint64_t seed)
{
    uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    uint32_t n_key = key[1] ? 2 : 1;
    mt_init(r, 19650218);
    uint32_t i = 1, j = 0;
    for (uint32_t k = MT_N; k; k--) {
        r->mt[i] =
            (r->mt[i] ^ (r->mt[i - 1] ^ r->mt[i - 1] >> 30) * UINT32_C(1664525)) + key[j] + j;
        if (++i == MT_N) {
            r->mt[0] = r->mt[MT_N - 1];
            i = 1;
        }
        if (++j == n_key)
            j = 0;
    }
    for (uint32_t k = MT_N - 1; k; k--) {
        r->mt[i] = (r->mt[i] ^ (r->mt[i - 1] ^ r->mt[i - 1] >> 30) * UINT32_C(1566083941)) - i;
        if (++i == MT_N) {
            r->mt[0] = r->mt[MT_N - 1];
            i = 1;
        }
    }
    r->mt[0] = UINT32_C(0x80000000);
}

static uint32_t pyrandom_word(struct ws_pyrandom *r)
{
    if (r->i >= MT_N) {
        for (int k = 0; k < MT_N; k++) {
            uint32_t y = (r->mt[k] & UINT32_C(0x80000000)) | (r->mt[(k + 1) % MT_N] & INT32_MAX);
            r->mt[k] = r->mt[(k + MT_M) % MT_N] ^ y >> 1 ^ (y & 1 ? UINT32_C(0x9908b0df) : 0);
        }
        r->i = 0;
    }
    uint32_t y = r->mt[r->i++];
    y ^= y >> 11;
    y ^= y << 7 & UINT32_C(0x9d2c5680);
    y ^= y << 15 & UINT32_C(0xefc60000);
    return y ^ y >> 18;
}

double ws_pyrandom_random(struct ws_pyrandom *r)
{
    uint32_t a = pyrandom_word(r) >> 5, b = pyrandom_word(r) >> 6;
    return ((double)a * 67108864.0 + (double)b) * (1.0 / 9007199254740992.0);
}

/* getrandbits(@k), 1 ≤ k ≤ 64: the low word is drawn first. */
static uint64_t mt_bits(struct ws_pyrandom *r, int k)
{
    if (k <= 32)
        return pyrandom_word(r) >> (32 - k);
    uint64_t low = pyrandom_word(r);
    return low | (uint64_t)(pyrandom_word(r) >> (64 - k)) << 32;
}

uint64_t ws_pyrandom_below(struct ws_pyrandom *r, uint64_t n)
{
    int k = 64 - __builtin_clzll(n);
    uint64_t v;
    do
        v = mt_bits(r, k);
    while (v >= n);
    return v;
}

void ws_uunifast(double total, int n, double *ret, double (*unit)(void *arg), void *arg)
{
    double sum = total;
    for (int i = 1; i < n; i++) {
        double next = sum * pow(unit(arg), 1.0 / (n - i));
        ret[i - 1] = sum - next;
        sum = next;
    }
    ret[n - 1] = sum;
}
