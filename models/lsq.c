// SPDX-License-Identifier: Apache-2.0
/* models/lsq.c - least squares by Householder reflections.
 *
 * The normal equations would square the condition of the system; reflections work on it as it is.
 * Before, each column is divided by its length, so that one number tells whether a column is new:
 * what is left of it after the columns before it were taken out, of 1. */
#include "models/lsq.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>
#include "base/error.h"

#define SINGULAR 1e-10

static double column_length(const double *rows, size_t n, uint32_t n_columns, uint32_t c,
                            size_t first)
{
    double sum = 0;
    for (size_t i = first; i < n; i++)
        sum += rows[i * n_columns + c] * rows[i * n_columns + c];
    return sqrt(sum);
}

static bool finite_input(const double *rows, const double *y, size_t n, uint32_t n_columns,
                         const char *const *names, const char *what, struct ws_diags *diags)
{
    for (size_t i = 0; i < n; i++) {
        for (uint32_t c = 0; c < n_columns; c++)
            if (!isfinite(rows[i * n_columns + c])) {
                ws_diags_add(diags, NULL, 0, 0, "%s: sample %zu: %s is not a finite number", what,
                             i + 1, names[c]);
                return false;
            }
        if (!isfinite(y[i])) {
            ws_diags_add(diags, NULL, 0, 0,
                         "%s: sample %zu: the measured value is not a finite number", what, i + 1);
            return false;
        }
    }
    return true;
}

/* Reflects rows [c, n) so that column c is zero below its diagonal. */
static void reflect(double *rows, double *y, size_t n, uint32_t n_columns, uint32_t c,
                    double length)
{
    double alpha = rows[c * (size_t)n_columns + c] > 0 ? -length : length;
    double head = rows[c * (size_t)n_columns + c] - alpha;
    double scale = -1 / (alpha * head); /* 2 / v·v for v = column - alpha·e */
    rows[c * (size_t)n_columns + c] = head;
    for (uint32_t k = c + 1; k <= n_columns; k++) { /* k == n_columns: y */
        double dot = 0;
        for (size_t i = c; i < n; i++)
            dot += rows[i * n_columns + c] * (k < n_columns ? rows[i * n_columns + k] : y[i]);
        dot *= scale;
        for (size_t i = c; i < n; i++) {
            double d = dot * rows[i * n_columns + c];
            if (k < n_columns)
                rows[i * n_columns + k] -= d;
            else
                y[i] -= d;
        }
    }
    rows[c * (size_t)n_columns + c] = alpha;
}

int ws_lsq_solve(double *rows, double *y, size_t n, uint32_t n_columns, const char *const *names,
                 const char *what, double *ret_x, double *ret_rss, struct ws_diags *diags)
{
    double length[WS_LSQ_MAX_COLUMNS], x[WS_LSQ_MAX_COLUMNS];
    if (!n_columns || n_columns > WS_LSQ_MAX_COLUMNS)
        return ws_raise(-EINVAL);
    if (n < n_columns) {
        ws_diags_add(diags, NULL, 0, 0, "%s: %zu samples can't determine %u unknowns", what, n,
                     n_columns);
        return ws_raise(-EINVAL);
    }
    if (!finite_input(rows, y, n, n_columns, names, what, diags))
        return ws_raise(-EINVAL);
    for (uint32_t c = 0; c < n_columns; c++) {
        length[c] = column_length(rows, n, n_columns, c, 0);
        if (!(length[c] > 0) || !isfinite(length[c])) {
            ws_diags_add(diags, NULL, 0, 0,
                         "%s is singular: %s is %s in all samples; drop it or vary it", what,
                         names[c], length[c] > 0 ? "huge" : "0");
            return ws_raise(-EINVAL);
        }
        for (size_t i = 0; i < n; i++)
            rows[i * n_columns + c] /= length[c];
    }
    for (uint32_t c = 0; c < n_columns; c++) {
        double left = column_length(rows, n, n_columns, c, c);
        if (left < SINGULAR) {
            ws_diags_add(diags, NULL, 0, 0,
                         "%s is singular: %s follows from the columns before it (%s%s) in all "
                         "samples; drop it or vary it",
                         what, names[c], names[0], c > 1 ? ", …" : "");
            return ws_raise(-EINVAL);
        }
        reflect(rows, y, n, n_columns, c, left);
    }
    for (uint32_t c = n_columns; c-- > 0;) {
        double sum = y[c];
        for (uint32_t k = c + 1; k < n_columns; k++)
            sum -= rows[c * (size_t)n_columns + k] * x[k];
        x[c] = sum / rows[c * (size_t)n_columns + c];
    }
    double rss = 0;
    for (size_t i = n_columns; i < n; i++)
        rss += y[i] * y[i];
    for (uint32_t c = 0; c < n_columns; c++)
        ret_x[c] = x[c] / length[c];
    if (ret_rss)
        *ret_rss = rss;
    return 0;
}
