/* SPDX-License-Identifier: Apache-2.0 */
/* policy/stop.h - when a kernel leaves its GPU that is taken off. The blocks that run end first.
 * They are taken to run in rounds of equal length.
 *
 * ws_policy_cost.n_stops counts what one SM would run one after another: blocks, or sets of blocks
 * that an SM runs side by side. 0: the kernel can be taken off at once. Threads: any. */
#ifndef WS_POLICY_STOP_H
#define WS_POLICY_STOP_H

/* When a kernel has left its GPU that is to be taken off at @now, from @start to @end of which
 * @n_sm SMs run @n_stops blocks (cost.n_stops, as far as they are left). */
double ws_policy_stop_at(double n_stops, int n_sm, double start, double end, double now);

#endif
