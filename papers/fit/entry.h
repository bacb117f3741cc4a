// SPDX-License-Identifier: Apache-2.0
/* papers/fit/entry.h - the models of models/event_power.h and models/event_time.h in an entry of
 * the catalog (device/spec.h, conf/gpu.d). Threads: any; only ws_fit_entry_write() does I/O. */
#ifndef WS_PAPERS_FIT_ENTRY_H
#define WS_PAPERS_FIT_ENTRY_H

#include "base/macros.h"
#include "device/fitted.h"
#include "papers/fit/calibrate.h"

struct ws_event_gpu ws_fit_entry_gpu(const struct ws_gpu_spec *spec);
/* Return: false: the entry has no fitted numbers. Times that it lacks are those that are expected
 * (models/event_terms.def). */
bool ws_fit_entry_models(const struct ws_gpu_spec *spec, struct ws_event_power *ret_power,
                         struct ws_event_time *ret_time);

/* What the entry says of the GPU where single kernels are not looked at: Eq. 2 of sBEET-mg. */
struct ws_fit_plain {
    double static_w, dynamic_w_per_sm; /* an idle SM adds nothing */
};
/* Of the launches that @power was fitted to: nothing running, and what each SM at work adds on
 * average at the reference clocks. */
struct ws_fit_plain ws_fit_entry_plain(const struct ws_event_gpu *gpu,
                                       const struct ws_event_power *power,
                                       const struct ws_measured_launch *v, size_t n);

/* Puts the numbers into @path, a file of the catalog with the GPU @name, in place of those that it
 * has; all else stays. @time NULL: there are none of times. @calibrated: see
 * device/catalog_keys.def. Return: 0, -ENOENT (no such GPU in it), -EINVAL (its section has no end)
 * or another negative errno; then the file is as it was. */
WS_MUST_CHECK int ws_fit_entry_write(const char *path, const char *name,
                                     const struct ws_fit_plain *plain,
                                     const struct ws_event_power *power,
                                     const struct ws_event_time *time, const char *calibrated);

#endif
