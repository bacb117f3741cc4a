// SPDX-License-Identifier: Apache-2.0
/* cli/sim_rt.h - the part of `wattshare sim` for real-time task sets on CPU cores with one GPU (GCAPS and STGM lines). */
#ifndef WS_CLI_SIM_RT_H
#define WS_CLI_SIM_RT_H

#include <stdbool.h>

/* Whether the arguments of `wattshare sim` ask for this part: --policy gcaps, stgm, mpcp, fmlp+ or rr with lines of these kinds. */
bool ws_sim_rt_knows(const char *policy);
/* The verb with these arguments. Return: exit status. */
int ws_cli_sim_rt(int argc, char **argv);

#endif
