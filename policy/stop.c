// SPDX-License-Identifier: Apache-2.0
#include "policy/stop.h"

#include <math.h>

#define ROUNDING 1e-9 /* in rounds */

double ws_policy_stop_at(double n_stops, int n_sm, double start, double end, double now)
{
    if (!(n_stops > 0) || !(now > start) || !(end > now))
        return now;
    const double rounds = fmax(1, ceil(n_stops / fmax(n_sm, 1) - ROUNDING)),
                 round = (end - start) / rounds;
    return fmin(end, start + ceil((now - start) / round - ROUNDING) * round);
}
