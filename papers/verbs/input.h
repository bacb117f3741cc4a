// SPDX-License-Identifier: Apache-2.0
/* papers/verbs/input.h - the files and GPUs that a command line names, and lists of numbers.
 * Threads: none. */
#ifndef WS_PAPERS_VERBS_INPUT_H
#define WS_PAPERS_VERBS_INPUT_H

#include <stdio.h>
#include "base/macros.h"
#include "papers/sets/gpus.h"

/* Opens each of @names (NULL at the end) and calls @read with it. Without names, and for "-",
 * that is standard input. Prints an error for a file that cannot be opened. Return: 0, 1 where
 * one could not be opened, or the first negative that @read returned. */
WS_MUST_CHECK int ws_cli_each_input(char **names, int (*read)(void *arg, FILE *f, const char *name),
                                    void *arg);

/* Reads a list of numbers "1,2,4", each in [@min, @max], at most @cap. Return: how many; 0:
 * wrong, printed with @option's name. */
int ws_cli_numbers(const char *option, const char *text, double min, double max, double *ret,
                   int cap);

/* Reads the GPUs of --gpus: a list, or the name of a file (papers/sets/gpus.h). @line: of the file;
 * @ret borrows from it. Prints what is wrong. Both are deinited by the caller, whatever is
 * returned. Return: 0 or negative. */
WS_MUST_CHECK int ws_cli_gpus(struct ws_gpus *ret, struct ws_json_line *line, const char *text);

#endif
