// SPDX-License-Identifier: Apache-2.0
/* cli/common/program.h - starting programs with libwattshare.so before them. Statuses are exit statuses; errors have been printed. */
#ifndef WS_CLI_COMMON_PROGRAM_H
#define WS_CLI_COMMON_PROGRAM_H

#include "base/macros.h"

/* Whether @name (as execvp() would find it) can be preloaded. Return: 0, WS_EXIT_NOT_FOUND, WS_EXIT_CANNOT_RUN. */
WS_MUST_CHECK int ws_program_check(const char *name);
/* Sets this process' environment for programs to come: LD_PRELOAD, LD_LIBRARY_PATH, the daemon's endpoint, the task (NULL: as it is).
 * Return: 0 or WS_EXIT_CANNOT_RUN. */
WS_MUST_CHECK int ws_program_environment(const char *endpoint, const char *task);
/* The same with the gate (libwattshare-gate.so) before the real driver. */
WS_MUST_CHECK int ws_program_gate(const char *endpoint, const char *task);
/* After execvp(): says why. Return: WS_EXIT_NOT_FOUND or WS_EXIT_CANNOT_RUN. */
int ws_program_exec_failed(const char *name);
/* Runs it below us until it ends; signals that are sent to us go on to it. @out: descriptor for its standard output; -1: ours.
 * Return: its status; 128 + the signal that ended it. One at a time. */
int ws_program_run(char **argv, int out);

#endif
