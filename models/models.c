// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <math.h>

#include "models/models.h"

double ws_mape(const double *ours, const double *measured, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += measured[i] != 0 ? fabs(ours[i] - measured[i]) / fabs(measured[i]) : NAN;
    return n ? 100 * sum / n : NAN;
}
