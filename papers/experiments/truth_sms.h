// SPDX-License-Identifier: Apache-2.0
/* papers/experiments/truth_sms.h - time and power by the number of SMs, of the kernels that the
 * authors of sBEET-mg measured (models/measured.h), predicted from the other kernels.
 *
 *     t(m) = t(M) · g(m)        P(m) = P_static + m·w + (M - m)·P_idle
 *
 * M all SMs of the GPU; g the geometric mean of t(m) / t(M) over the kernels of other families; w
 * their mean power for each SM in use. Of the kernel itself only t(M) is known. The form is ours.
 * Threads: any; pure. */
#ifndef WS_PAPERS_EXPERIMENTS_TRUTH_SMS_H
#define WS_PAPERS_EXPERIMENTS_TRUTH_SMS_H

#include "models/measured.h"

/* Mean time on @m SMs as measured, in s, and power of the board in W. */
double ws_truth_sms_time_s(const struct ws_measured_kernel *k, int m);
double ws_truth_sms_power_w(const struct ws_measured_kernel *k, int m);
/* The same as predicted. */
double ws_truth_sms_predict_s(const struct ws_measured_kernel *k, int m);
double ws_truth_sms_predict_w(const struct ws_measured_kernel *k, int m);
/* With w of the kernel itself, from its power on all SMs. */
double ws_truth_sms_own_w(const struct ws_measured_kernel *k, int m);
/* The line in 1/m through the kernel's times on one SM and on all. */
double ws_truth_sms_line_s(const struct ws_measured_kernel *k, int m);

#endif
