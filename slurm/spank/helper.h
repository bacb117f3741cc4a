/* SPDX-License-Identifier: Apache-2.0 */
/* slurm/spank/helper.h - runs `wattshare step`, as root. Threads: one. */
#ifndef WS_SLURM_SPANK_HELPER_H
#define WS_SLURM_SPANK_HELPER_H

#include <stddef.h>

/* Runs argv[0], with nothing of anybody's environment, until it ends. @out gets what it prints, cut
 * to @size - 1 and with a 0 behind it; errors are printed there too. @ret_n: bytes. Return: its
 * exit status, or -1. */
int ws_helper_run(char *const *argv, char *out, size_t size, size_t *ret_n);

#endif
