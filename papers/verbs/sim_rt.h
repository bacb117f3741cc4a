// SPDX-License-Identifier: Apache-2.0
/* papers/verbs/sim_rt.h - options of `wattshare sim` for real-time task sets on CPU cores with one GPU (GCAPS and STGM lines).
 * Threads: read only once parsed. */
#ifndef WS_PAPERS_VERBS_SIM_RT_H
#define WS_PAPERS_VERBS_SIM_RT_H

#include "papers/analysis/rta.h"
#include "papers/sim/rtsim.h"
#include "papers/sim/rtsim_hunt.h"

struct ws_sim_rt_options {
    bool busy;
    enum ws_rtsim_hold hold;
    const struct ws_rta_method *bounds, *allocation; /* NULL: none given */
    const char *bounds_name;
    struct ws_rtsim_hunt hunt;
};
#define WS_SIM_RT_OPTIONS_DEFAULT                                                                  \
    ((struct ws_sim_rt_options){.hunt = {.n_runs = 1, .seed = 1, .n_periods = 4}})

/* Long options for getopt_long(), and how each is taken: @c is the option's value, from WS_SIM_RT_FIRST on. Return: 0, or negative
 * with a message printed. */
enum { WS_SIM_RT_FIRST = 0x1000, WS_SIM_RT_N = 7 };
#define WS_SIM_RT_OPTIONS                                                                          \
    {"mode", required_argument, NULL, WS_SIM_RT_FIRST},                                            \
        {"hold", required_argument, NULL, WS_SIM_RT_FIRST + 1},                                    \
        {"bounds", required_argument, NULL, WS_SIM_RT_FIRST + 2},                                  \
        {"allocation", required_argument, NULL, WS_SIM_RT_FIRST + 3},                              \
        {"hunt", required_argument, NULL, WS_SIM_RT_FIRST + 4},                                    \
        {"periods", required_argument, NULL, WS_SIM_RT_FIRST + 5},                                 \
    {                                                                                              \
        "seed", required_argument, NULL, WS_SIM_RT_FIRST + 6                                       \
    }
WS_MUST_CHECK int ws_sim_rt_option(struct ws_sim_rt_options *o, int c, const char *text);

#define WS_SIM_RT_HELP                                                                             \
    "Real-time task sets on CPU cores with one GPU (lines of `wattshare gen --paper "              \
    "gcaps|stgm`),\n"                                                                              \
    "policies gcaps, rr, stgm, mpcp, fmlp+:\n"                                                     \
    "  --mode suspend|busy    how a job waits for the GPU (suspend)\n"                             \
    "  --hold work|command|calls  gcaps: a segment is open while it has GPU work (work), from "    \
    "its\n"                                                                                        \
    "                    first command to its end call (command), from begin to end (calls)\n"     \
    "  --bounds METHOD   compare with these bounds; see wattshare analyze --list\n"                \
    "  --allocation METHOD  whose cores and SMs, for STGM sets (that of --bounds, else "           \
    "stgm_MODE_safe)\n"                                                                            \
    "  --hunt N          N runs with other releases and execution times, for long responses (1)\n" \
    "  --periods N       each run lasts N of the longest period (4)\n"                             \
    "  --seed N          1\n"

#endif
