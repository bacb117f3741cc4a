// SPDX-License-Identifier: Apache-2.0
/* base/minmax.h - the lesser and the greater of two numbers, like fmin() and fmax() but without
 * their care for NAN, so that they are inlined. Unlike WS_MIN() and WS_MAX() they compute each
 * argument once. Threads: any. */
#ifndef WS_BASE_MINMAX_H
#define WS_BASE_MINMAX_H

static inline double ws_lesser(double a, double b)
{
    return a < b ? a : b;
}

static inline double ws_greater(double a, double b)
{
    return a > b ? a : b;
}

#endif
