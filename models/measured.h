// SPDX-License-Identifier: Apache-2.0
/* models/measured.h - measured kernels that ship with wattshare (measured.def says whose figures
 * they are). Threads: any. */
#ifndef WS_MODELS_MEASURED_H
#define WS_MODELS_MEASURED_H

#include "models/energy.h"

struct ws_measured_gpu {
    const char *name; /* "rtx3070" */
    struct ws_energy_gpu power;
};
struct ws_measured_kernel {
    const char *gpu, *name; /* "rtx3070", "mmul" */
    int app;                /* its number in the authors' task sets, from 0 */
    struct ws_energy_kernel cost;
    const double *mean_ms, *min_ms; /* as cost.wcet, which is the longest */
};
enum { WS_MEASURED_GPUS = 2, WS_MEASURED_APPS = 8 };

const struct ws_measured_gpu *ws_measured_gpu(int i);                 /* NULL: i is too large */
const struct ws_measured_gpu *ws_measured_gpu_find(const char *name); /* NULL: not measured */
/* By name, or by the authors' number. NULL: not measured. */
const struct ws_measured_kernel *ws_measured_find(const char *gpu, const char *kernel);
const struct ws_measured_kernel *ws_measured_app(const char *gpu, int app);

#endif
