// SPDX-License-Identifier: Apache-2.0
/* The table of edl_apps.def. */
#include "config.h"

#include "papers/sets/edl_apps.h"

const struct ws_edl_app ws_edl_apps[] = {
#define WS_EDL_APP(gpu, name, p0, gamma, c, t0, d, delta)                                          \
    {WS_EDL_##gpu, name, {p0, gamma, c, t0, d, delta}},
#include "papers/sets/edl_apps.def"
#undef WS_EDL_APP
};
const int ws_edl_n_apps = WS_ARRAY_SIZE(ws_edl_apps);
