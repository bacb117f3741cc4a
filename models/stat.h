// SPDX-License-Identifier: Apache-2.0
/* models/stat.h - mean and variance of a stream of numbers, without keeping them (Welford 1962).
 * Threads: none. */
#ifndef WS_MODELS_STAT_H
#define WS_MODELS_STAT_H

#include <math.h>
#include <stdint.h>

struct ws_stat {
    uint64_t n;
    double mean, m2; /* m2: sum of squared distances from the mean */
};

static inline void ws_stat_add(struct ws_stat *s, double v)
{
    double d = v - s->mean;
    s->n++;
    s->mean += d / (double)s->n;
    s->m2 += d * (v - s->mean);
}
/* Of the sample; 0 for fewer than two. */
static inline double ws_stat_variance(const struct ws_stat *s)
{
    return s->n > 1 ? s->m2 / (double)(s->n - 1) : 0;
}
/* How sure the mean is: its standard error; INFINITY for fewer than two. */
static inline double ws_stat_error(const struct ws_stat *s)
{
    return s->n > 1 ? sqrt(ws_stat_variance(s) / (double)s->n) : INFINITY;
}

/* For qsort() of double: the smallest first. */
static inline int ws_stat_by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

#endif
