/* SPDX-License-Identifier: Apache-2.0 */
/* The device's time, and jobs, for programs of the live experiments: by wattshare.h where
 * libwattshare is there, otherwise by the host's clock, so that the programs run without it too. */
#ifndef WS_BENCH_LIVE_CLOCK_H
#define WS_BENCH_LIVE_CLOCK_H

#include <stdint.h>

uint64_t live_now_ns(void);
/* Returns at or after @at_ns, the device's time. */
void live_wait_until(uint64_t at_ns);
/* A segment, whose work is to be done @deadline_ns after now (0: by the task's deadline). Nothing
 * without libwattshare. */
void live_job_begin(uint64_t deadline_ns);
/* Return: when the last of the segment's operations ended, by the device; without libwattshare:
 * now. */
uint64_t live_job_end(void);
#endif
