// SPDX-License-Identifier: Apache-2.0
/* cli/common/table.h - prints tables for people: columns are as wide as they need to be, and
 * numbers are aligned right. Threads: none. */
#ifndef WS_CLI_COMMON_TABLE_H
#define WS_CLI_COMMON_TABLE_H

#include <stddef.h>
#include <stdio.h>
#include "base/macros.h"

struct ws_table {
    char **cells;
    size_t n, cap, n_columns;
    int failed; /* out of memory */
};
#define WS_TABLE_NULL ((struct ws_table){0})

/* @heads: NULL-terminated names of the columns. */
void ws_table_init(struct ws_table *t, const char *const *heads);
/* The next cell, row by row. */
void ws_table_add(struct ws_table *t, const char *fmt, ...) WS_PRINTF(2, 3);
/* Completes the row with empty cells. A column whose cells below the head are all numbers, "-"
 * or empty is aligned right. */
void ws_table_end_row(struct ws_table *t);
/* Return: 0, or -ENOMEM if memory for a cell was missing. */
int ws_table_print(const struct ws_table *t, FILE *f);
void ws_table_deinit(struct ws_table *t);

#endif
