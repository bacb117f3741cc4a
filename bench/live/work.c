// SPDX-License-Identifier: Apache-2.0
// The workloads: what goes in, the launch, and what must come out. Where possible, the CPU's
// answers are computed by other means than the kernels': AES byte by byte as FIPS 197 describes it,
// the library's qsort(), the normal distribution from erfc() in double precision.
#include "aes.h"
#include "live_work.h"

#include <math.h>

#include "live.h"

// ---- encryption ----
static struct aes_tables tables;

static void encryption_make(struct live_data *w)
{
    uint8_t key[16];
    for (int i = 0; i < 16; i++)
        key[i] = (uint8_t)work_random(1000 + (uint64_t)i);
    aes_make_tables(&tables, key);
    w->constant = &tables; // as struct live_aes has them
    w->constant_bytes = sizeof(tables);
    w->constant_name = "live_aes";
    memcpy(w->want, w->in, w->in_bytes);
}

static void encryption_cpu(const struct live_data *w, uint32_t block)
{
    for (uint32_t i = 0; i < LIVE_THREADS; i++) {
        uint8_t *p = (uint8_t *)w->want + (block * LIVE_THREADS + i) * 16;
        for (uint32_t k = 0; k < w->length; k++)
            aes_cpu_block(&tables, p, p);
    }
}

// ---- sorting ----
static int order(const void *a, const void *b)
{
    uint32_t x, y;
    memcpy(&x, a, 4);
    memcpy(&y, b, 4);
    return (x > y) - (x < y);
}

static void copy_make(struct live_data *w)
{
    memcpy(w->want, w->in, w->in_bytes);
}

static void sorting_cpu(const struct live_data *w, uint32_t block)
{
    uint32_t *part = (uint32_t *)w->want + (size_t)block * 2 * LIVE_THREADS;
    for (uint32_t k = 0; k < w->length; k++) {
        for (int i = 0; i < 2 * LIVE_THREADS; i++)
            part[i] ^= live_mix(k);
        qsort(part, 2 * LIVE_THREADS, sizeof(*part), order);
    }
}

// ---- search ----
static void search_make(struct live_data *w)
{
    uint8_t *text = w->in;
    for (size_t i = 0; i < w->in_bytes; i++)
        text[i] = 'a' + (text[i] & 3);
}

static void search_cpu(const struct live_data *w, uint32_t block)
{
    const uint8_t *part = (const uint8_t *)w->in + (size_t)block * LIVE_TEXT_BYTES;
    uint32_t *found = (uint32_t *)w->want + block;
    *found = 0;
    for (uint32_t k = 0; k < w->length; k++) {
        uint32_t word = live_word(k);
        for (uint32_t i = 0; i + 4 <= LIVE_TEXT_BYTES; i++)
            *found += !memcmp(part + i, &word, 4);
    }
}

// ---- BlackScholes ----
static void blackscholes_make(struct live_data *w)
{
    float *v = w->in;
    for (size_t i = 0; i < w->in_bytes / 8; i++) {
        uint64_t r = work_random(w->seed * 100000 + i);
        v[2 * i] = 5.0f + (float)(r & 0xffff) * (25.0f / 65536);
        v[2 * i + 1] = 1.0f + (float)(r >> 16 & 0xffff) * (99.0f / 65536);
    }
}

static void blackscholes_cpu(const struct live_data *w, uint32_t block)
{
    const float *v = w->in;
    for (size_t i = (size_t)block * LIVE_THREADS; i < (size_t)(block + 1) * LIVE_THREADS; i++) {
        double s = v[2 * i], x = v[2 * i + 1], prices[16], sum = 0, root = sqrt(0.5);
        for (uint32_t k = 0; k < 16; k++) { // the years repeat
            double t = live_years(k), sigma = (double)LIVE_VOLATILITY * sqrt(t);
            double d1 = (log(s / x) + ((double)LIVE_RATE +
                                       0.5 * (double)LIVE_VOLATILITY * (double)LIVE_VOLATILITY) *
                                          t) /
                        sigma,
                   d2 = d1 - sigma;
            prices[k] = s * 0.5 * erfc(-d1 * root) -
                        x * exp(-(double)LIVE_RATE * t) * 0.5 * erfc(-d2 * root);
        }
        for (uint32_t k = 0; k < w->length; k++)
            sum += prices[k & 15];
        ((float *)w->want)[i] = (float)(sum / w->length);
    }
}

static bool blackscholes_same(const struct live_data *w)
{
    const float *a = w->out, *b = w->want;
    for (size_t i = 0; i < w->out_bytes / 4; i++)
        if (!(fabsf(a[i] - b[i]) < 1e-2f))
            return false;
    return true;
}

// ---- Monte Carlo ----
static void montecarlo_make(struct live_data *w)
{
    uint32_t *v = w->in;
    for (size_t i = 0; i < w->in_bytes / 4; i++)
        v[i] |= 1;
}

static void montecarlo_cpu(const struct live_data *w, uint32_t block)
{
    for (size_t i = (size_t)block * LIVE_THREADS; i < (size_t)(block + 1) * LIVE_THREADS; i++)
        ((uint32_t *)w->want)[i] = live_points(((const uint32_t *)w->in)[i], w->length);
}

// ---- steps ----
static uint32_t place[LIVE_RING], at[LIVE_RING]; // of a node in the ring; and the other way round

static void steps_make(struct live_data *w)
{
    uint64_t *next = w->in;
    for (uint32_t i = 0; i < LIVE_RING; i++)
        at[i] = i;
    for (uint32_t i = LIVE_RING - 1; i; i--) {
        uint32_t k = (uint32_t)(work_random(w->seed * 100000 + i) % (i + 1)), t = at[i];
        at[i] = at[k];
        at[k] = t;
    }
    for (uint32_t i = 0; i < LIVE_RING; i++)
        place[at[i]] = i;
    for (uint32_t i = 0; i < LIVE_RING; i++)
        next[at[i]] = at[(i + 1) % LIVE_RING]; // addresses once there is memory: steps_place()
}

static void steps_place(struct live_data *w, uint64_t address)
{
    uint64_t *next = w->in;
    for (uint32_t i = 0; i < LIVE_RING; i++)
        next[i] = address + 8 * next[i];
}

static void steps_cpu(const struct live_data *w, uint32_t block)
{
    ((uint64_t *)w->want)[block] =
        at[(place[(w->start + block) % LIVE_RING] + w->length) % LIVE_RING];
}

const struct live_kind live_kinds[] = {
    {"encryption", "live_encryption", LIVE_THREADS, 3, 100, 16 * LIVE_THREADS, 0, false,
     encryption_make, encryption_cpu, NULL, NULL},
    {"sorting", "live_sorting", LIVE_THREADS, 6, 100, 8 * LIVE_THREADS, 0, false, copy_make,
     sorting_cpu, NULL, NULL},
    {"search", "live_search", LIVE_THREADS, 10, 100, LIVE_TEXT_BYTES, 4, true, search_make,
     search_cpu, NULL, NULL},
    {"blackscholes", "live_blackscholes", LIVE_THREADS, 1, 1000, 8 * LIVE_THREADS, 4 * LIVE_THREADS,
     false, blackscholes_make, blackscholes_cpu, blackscholes_same, NULL},
    {"montecarlo", "live_montecarlo", LIVE_THREADS, 1, 1000, 4 * LIVE_THREADS, 4 * LIVE_THREADS,
     false, montecarlo_make, montecarlo_cpu, NULL, NULL},
    {"steps", "live_steps", 1, 16, 3200, 0, 8, false, steps_make, steps_cpu, NULL, steps_place},
    {0}};
