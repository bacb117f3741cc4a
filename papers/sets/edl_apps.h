// SPDX-License-Identifier: Apache-2.0
/* papers/sets/edl_apps.h - the measured applications of Mei et al., as fitted parameters
 * (papers/sets/edl_apps.def).
 * Threads: any; constant data. */
#ifndef WS_PAPERS_SETS_EDL_APPS_H
#define WS_PAPERS_SETS_EDL_APPS_H

#include "models/dvfs.h"

enum ws_edl_gpu { WS_EDL_GTX1080TI, WS_EDL_RTX2070S };
struct ws_edl_app {
    enum ws_edl_gpu gpu;
    const char *name;
    struct ws_dvfs_task dvfs; /* W, ms */
};
extern const struct ws_edl_app ws_edl_apps[];
extern const int ws_edl_n_apps;

#endif
