// SPDX-License-Identifier: Apache-2.0
/* With three unknowns there are eight sets of unknowns that are not 0. For each set the normal
 * equations give one candidate, and the best candidate without negative parts is the solution:
 * the problem is convex, and its solution is the unconstrained one of its own set. A penalty on
 * the sum (the positive lasso) only changes the right-hand side. */
#include "config.h"

#include <math.h>

#include "papers/fit/nnls.h"

/* A pivot below this share of its diagonal element is rounding, not information. */
#define PIVOT_MIN 1e-12L

void ws_nnls_add(struct ws_nnls *q, const double x[WS_NNLS_N], double y, double weight)
{
    for (int i = 0; i < WS_NNLS_N; i++) {
        for (int k = 0; k < WS_NNLS_N; k++)
            q->xx[i][k] += (long double)weight * x[i] * x[k];
        q->xy[i] += (long double)weight * x[i] * y;
    }
    q->yy += (long double)weight * y * y;
    q->n++;
}

/* Cholesky on the unknowns in @set. */
static bool solve_set(const struct ws_nnls *q, unsigned set, double penalty,
                      long double w[WS_NNLS_N])
{
    long double l[WS_NNLS_N][WS_NNLS_N], z[WS_NNLS_N];
    int at[WS_NNLS_N] = {0}, n = 0;
    for (int i = 0; i < WS_NNLS_N; i++) {
        w[i] = 0;
        if (set >> i & 1)
            at[n++] = i;
    }
    for (int i = 0; i < n; i++) {
        for (int k = 0; k <= i; k++) {
            long double sum = q->xx[at[i]][at[k]];
            for (int m = 0; m < k; m++)
                sum -= l[i][m] * l[k][m];
            if (k < i)
                l[i][k] = sum / l[k][k];
            else if (sum > PIVOT_MIN * q->xx[at[i]][at[i]])
                l[i][i] = sqrtl(sum);
            else
                return false;
        }
        z[i] = q->xy[at[i]] - penalty;
        for (int m = 0; m < i; m++)
            z[i] -= l[i][m] * z[m];
        z[i] /= l[i][i];
    }
    for (int i = n - 1; i >= 0; i--) {
        for (int m = i + 1; m < n; m++)
            z[i] -= l[m][i] * z[m];
        z[i] /= l[i][i];
        w[at[i]] = z[i];
    }
    return true;
}

static long double objective(const struct ws_nnls *q, double penalty,
                             const long double w[WS_NNLS_N])
{
    long double sum = q->yy / 2;
    for (int i = 0; i < WS_NNLS_N; i++) {
        for (int k = 0; k < WS_NNLS_N; k++)
            sum += w[i] * q->xx[i][k] * w[k] / 2;
        sum += (penalty - q->xy[i]) * w[i];
    }
    return sum;
}

int ws_nnls_solve(const struct ws_nnls *q, bool positive, double penalty, double ret_w[WS_NNLS_N])
{
    enum { ALL = (1 << WS_NNLS_N) - 1 };
    long double best = INFINITY, w[WS_NNLS_N];
    if (q->n < WS_NNLS_N || !solve_set(q, ALL, penalty, w))
        return WS_NNLS_E_SINGULAR;
    for (unsigned set = ALL + 1; set-- > (positive ? 0 : ALL);) {
        if (!solve_set(q, set, penalty, w))
            continue; /* can't be: a part of independent columns is independent */
        bool fits = true;
        for (int i = 0; positive && i < WS_NNLS_N; i++)
            fits = fits && w[i] >= 0;
        long double now = objective(q, penalty, w);
        if (!fits || now >= best)
            continue;
        best = now;
        for (int i = 0; i < WS_NNLS_N; i++)
            ret_w[i] = (double)w[i];
    }
    return 0;
}
