// SPDX-License-Identifier: Apache-2.0
/* cli/common/program.h - starts programs with libwattshare.so preloaded. The functions print
 * errors, and return exit statuses.
 * Threads: one. */
#ifndef WS_CLI_COMMON_PROGRAM_H
#define WS_CLI_COMMON_PROGRAM_H

#include "base/macros.h"

/* Whether @name (as execvp() would find it) can be preloaded. Return: 0, WS_EXIT_NOT_FOUND,
 * WS_EXIT_CANNOT_RUN. */
WS_MUST_CHECK int ws_program_check(const char *name);
/* Sets this process's environment for programs that it starts: LD_PRELOAD, LD_LIBRARY_PATH, the
 * daemon's endpoint, and the task (NULL: unchanged). Return: 0 or WS_EXIT_CANNOT_RUN. */
WS_MUST_CHECK int ws_program_environment(const char *endpoint, const char *task);
/* The same with libwattshare-gate.so, for a program that keeps its own driver. */
WS_MUST_CHECK int ws_program_gate(const char *endpoint, const char *task);
/* After execvp() has failed: prints why. Return: WS_EXIT_NOT_FOUND or WS_EXIT_CANNOT_RUN. */
int ws_program_exec_failed(const char *name);
/* Runs the program as a child until it ends, and passes signals on to it. @out: the descriptor
 * for its standard output; -1: ours.
 * Return: its exit status, or 128 plus the signal that ended it. One at a time. */
int ws_program_run(char **argv, int out);

#endif
