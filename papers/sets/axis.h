// SPDX-License-Identifier: Apache-2.0
/* papers/sets/axis.h - what the generators' axes share: a value of an axis is checked and
 * becomes both ends of a range. Only for this folder. Threads: any. */
#ifndef WS_PAPERS_SETS_AXIS_H
#define WS_PAPERS_SETS_AXIS_H

#include <errno.h>
#include <math.h>

/* Takes a whole number from 1 to @max. Return: 0 or -ERANGE, and then nothing is set. */
static inline int ws_axis_count(double x, int max, int *low, int *high)
{
    if (!(x >= 1 && x <= max) || x != floor(x))
        return -ERANGE;
    *low = *high = (int)x;
    return 0;
}

/* Takes a number from 0 to @max. Return: 0 or -ERANGE, and then nothing is set. */
static inline int ws_axis_share(double x, double max, double *low, double *high)
{
    if (!(x >= 0 && x <= max))
        return -ERANGE;
    *low = *high = x;
    return 0;
}

#endif
