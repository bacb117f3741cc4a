// SPDX-License-Identifier: Apache-2.0
/* papers/sets/csv.h - reads tables as text with a first row of column names. Between cells are
 * commas; or semicolons or tabs, if the first row has no comma. Cells may be quoted; blanks around
 * them do not count. Errors name file, line and column. Threads: one for each reader. Errors:
 * base/error.h. */
#ifndef WS_PAPERS_SETS_CSV_H
#define WS_PAPERS_SETS_CSV_H

#include <stdio.h>
#include "base/diag.h"
#include "base/macros.h"

enum { WS_CSV_COLUMNS_MAX = 128 };
struct ws_csv {
    FILE *f;          /* borrowed */
    const char *file; /* its name in messages; borrowed */
    uint32_t number;  /* of the line read last */
    char separator;
    char *text, *head;
    size_t cap;
    char *names[WS_CSV_COLUMNS_MAX], *cells[WS_CSV_COLUMNS_MAX];
    int n_columns;
};

enum { _WS_CSV_OK, WS_CSV_END, WS_CSV_E_ROW };
/* Reads the names of the columns. Return: 0, WS_CSV_E_ROW (there are none or too many, or two have
 * the same; see @diags), or negative (-ENOMEM, -EIO). */
WS_MUST_CHECK int ws_csv_open(struct ws_csv *c, FILE *f, const char *file, struct ws_diags *diags);
/* Reads the next row that is not empty. Return: 0, WS_CSV_END, WS_CSV_E_ROW (it has another
 * number of cells, see @diags; the next row can be read), or negative. */
WS_MUST_CHECK int ws_csv_next(struct ws_csv *c, struct ws_diags *diags);
void ws_csv_deinit(struct ws_csv *c);

/* The column that has the first of @names (NULL at the end) that exists; capital letters are taken
 * for small ones where no name is the same otherwise. -1: there is none. */
int ws_csv_column(const struct ws_csv *c, const char *const *names);
/* The number in @column of this row, in [@min, @max]; NAN if it is not such a number, with an
 * entry in @diags (may be NULL). */
double ws_csv_number(const struct ws_csv *c, int column, double min, double max,
                     struct ws_diags *diags);

#endif
