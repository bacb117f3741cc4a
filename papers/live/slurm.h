// SPDX-License-Identifier: Apache-2.0
/* papers/live/slurm.h - experiments on a private Slurm cluster of this machine. A script of
 * slurm/cluster/ does each run; it needs root and Slurm, and a build tree. Threads: the
 * caller's. */
#ifndef WS_PAPERS_LIVE_SLURM_H
#define WS_PAPERS_LIVE_SLURM_H

#include <stdio.h>
#include "base/macros.h"

/**
 * ws_slurm_script() - start slurm/cluster/@name with these arguments
 * @fmt: the arguments, separated by blanks
 *
 * Return: what the script prints, to be closed with ws_slurm_script_end(); NULL: it cannot be
 * started, with a message printed.
 */
__attribute__((format(printf, 2, 3))) FILE *ws_slurm_script(const char *name, const char *fmt, ...);
/* Waits for the script's end. Return: 0, or -EIO: it failed, and has said why. */
WS_MUST_CHECK int ws_slurm_script_end(FILE *f);

#endif
