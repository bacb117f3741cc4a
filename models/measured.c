// SPDX-License-Identifier: Apache-2.0
/* The rows of measured.def, column by column: rows of one kernel stand together, one for each SM
 * count from 1, so that a kernel is a place in the columns. */
#include "config.h"

#include <string.h>

#include "base/macros.h"
#include "models/measured.h"

static const struct ws_measured_gpu gpus[] = {
#define WS_MEASURED_GPU(name, sms, static_w, idle_w) {#name, {sms, static_w, idle_w}},
#include "models/measured.def"
#undef WS_MEASURED_GPU
};

#define WS_MEASURED(gpu, kernel, sms, longest, mean, shortest, w) longest,
static const double longest_ms[] = {
#include "models/measured.def"
};
#undef WS_MEASURED
#define WS_MEASURED(gpu, kernel, sms, longest, mean, shortest, w) mean,
static const double mean_ms[] = {
#include "models/measured.def"
};
#undef WS_MEASURED
#define WS_MEASURED(gpu, kernel, sms, longest, mean, shortest, w) shortest,
static const double shortest_ms[] = {
#include "models/measured.def"
};
#undef WS_MEASURED
#define WS_MEASURED(gpu, kernel, sms, longest, mean, shortest, w) w,
static const double power_w[] = {
#include "models/measured.def"
};
#undef WS_MEASURED

/* Where a kernel's rows begin: the last row number with 1 SM of it. */
#define WS_MEASURED(gpu, kernel, sms, longest, mean, shortest, w) ROW_##gpu##_##kernel##_##sms,
enum {
#include "models/measured.def"
    N_ROWS
};
#undef WS_MEASURED
enum { sms_rtx3070 = 46, sms_t400 = 6 };

#define WS_MEASURED_KERNEL(gpu, kernel, app, in, out, dyn_w)                                       \
    {#gpu,                                                                                         \
     #kernel,                                                                                      \
     app,                                                                                          \
     {sms_##gpu, longest_ms + ROW_##gpu##_##kernel##_1, power_w + ROW_##gpu##_##kernel##_1, in,    \
      out, dyn_w},                                                                                 \
     mean_ms + ROW_##gpu##_##kernel##_1,                                                           \
     shortest_ms + ROW_##gpu##_##kernel##_1},
static const struct ws_measured_kernel kernels[] = {
#include "models/measured.def"
};
#undef WS_MEASURED_KERNEL
_Static_assert(N_ROWS == WS_ARRAY_SIZE(longest_ms), "a row for each");

const struct ws_measured_gpu *ws_measured_gpu(int i)
{
    return i >= 0 && i < (int)WS_ARRAY_SIZE(gpus) ? &gpus[i] : NULL;
}

const struct ws_measured_gpu *ws_measured_gpu_find(const char *name)
{
    for (size_t i = 0; i < WS_ARRAY_SIZE(gpus); i++)
        if (!strcmp(gpus[i].name, name))
            return &gpus[i];
    return NULL;
}

const struct ws_measured_kernel *ws_measured_find(const char *gpu, const char *kernel)
{
    for (size_t i = 0; i < WS_ARRAY_SIZE(kernels); i++)
        if (!strcmp(kernels[i].gpu, gpu) && !strcmp(kernels[i].name, kernel))
            return &kernels[i];
    return NULL;
}

const struct ws_measured_kernel *ws_measured_app(const char *gpu, int app)
{
    for (size_t i = 0; i < WS_ARRAY_SIZE(kernels); i++)
        if (!strcmp(kernels[i].gpu, gpu) && kernels[i].app == app)
            return &kernels[i];
    return NULL;
}
