// SPDX-License-Identifier: Apache-2.0
/* papers/fit/nnls.h - least squares with three unknowns that may not be negative, solved
 * exactly. Threads: any; pure. */
#ifndef WS_PAPERS_FIT_NNLS_H
#define WS_PAPERS_FIT_NNLS_H

#include <stdbool.h>
#include "base/macros.h"

enum { WS_NNLS_N = 3 };
enum { _WS_NNLS_OK, WS_NNLS_E_SINGULAR };

/* The normal equations of a least-squares problem: matrix XᵀX, vector Xᵀy, and yᵀy. */
struct ws_nnls {
    long double xx[WS_NNLS_N][WS_NNLS_N];
    long double xy[WS_NNLS_N];
    long double yy;
    int n;
};

/* Adds one row: @y ≈ @x·w, counted with @weight (1: plain). */
void ws_nnls_add(struct ws_nnls *q, const double x[WS_NNLS_N], double y, double weight);

/**
 * ws_nnls_solve() - w that makes |Xw - y|²/2 + penalty·(w0 + w1 + w2) least
 * @positive: w ≥ 0; else plain least squares (then @penalty must be 0)
 *
 * Return: 0, or WS_NNLS_E_SINGULAR: the columns are not independent (also: fewer rows than
 * unknowns), so w is not determined.
 */
WS_MUST_CHECK int ws_nnls_solve(const struct ws_nnls *q, bool positive, double penalty,
                                double ret_w[WS_NNLS_N]);

#endif
