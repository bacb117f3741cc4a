// SPDX-License-Identifier: Apache-2.0
/* models/lsq.h - ordinary linear least squares, small and careful. Threads: any. */
#ifndef WS_MODELS_LSQ_H
#define WS_MODELS_LSQ_H

#include <stddef.h>
#include <stdint.h>
#include "base/diag.h"
#include "base/macros.h"

enum { WS_LSQ_MAX_COLUMNS = 16 };
/**
 * ws_lsq_solve() - x that minimises |rows·x - y|²
 * @rows: [n][n_columns], row by row; destroyed. @y: [n]; destroyed
 * @names: of the columns, for messages; @what: "power fit"
 * @ret_x: [n_columns], @ret_rss: the least sum of squares (may be NULL); untouched unless 0 is
 * returned Return: 0, or -EINVAL with a diagnostic: fewer rows than columns, a value that is not
 * finite, or a singular system (a column is zero or, to 1e-10 of its length, a combination of those
 * before it; both are named).
 */
WS_MUST_CHECK int ws_lsq_solve(double *rows, double *y, size_t n, uint32_t n_columns,
                               const char *const *names, const char *what, double *ret_x,
                               double *ret_rss, struct ws_diags *diags);

#endif
