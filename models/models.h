// SPDX-License-Identifier: Apache-2.0
/* models/models.h - words that all models share. Units: times in the unit of the inputs (ms unless said), W, J, MHz, GB/s.
 * Functions here are pure. */
#ifndef WS_MODELS_MODELS_H
#define WS_MODELS_MODELS_H

/* The mean absolute error of @ours against @measured, in percent of each measured value. NAN where @n is 0 or a measured value is. */
double ws_mape(const double *ours, const double *measured, int n);

#endif
