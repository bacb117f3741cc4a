// SPDX-License-Identifier: Apache-2.0
/* papers/verbs/input.h - files named on the command line, or standard input. Threads: none. */
#ifndef WS_PAPERS_VERBS_INPUT_H
#define WS_PAPERS_VERBS_INPUT_H

#include <stdio.h>
#include "base/macros.h"

/* Calls @read for each of @names (until NULL; none at all: standard input; "-" too). Files that can't be opened are said.
 * Return: 0, 1 where one could not be opened, or the first negative of @read. */
WS_MUST_CHECK int ws_cli_each_input(char **names, int (*read)(void *arg, FILE *f, const char *name),
                                    void *arg);

/* A list of numbers "1,2,4" in [@min, @max], at most @cap. Return: how many; 0: said, by @option's name. */
int ws_cli_numbers(const char *option, const char *text, double min, double max, double *ret,
                   int cap);
/* One number. Return: 0 or -EINVAL: said. */
WS_MUST_CHECK int ws_cli_number(const char *option, const char *text, double min, double max,
                                double *ret);

#endif
