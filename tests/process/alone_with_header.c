// SPDX-License-Identifier: Apache-2.0
/* A program that uses wattshare.h, run without wattshare. It fails if one of the functions does not
 * answer WATTSHARE_ABSENT, or if the clock runs backwards. */
#include "wattshare.h"

#include <stdio.h>

int main(void)
{
    struct wattshare_job job;
    uint64_t a = wattshare_now_ns(), at = 7;
    int ok = wattshare_job_begin(1) == WATTSHARE_ABSENT &&
             wattshare_job_end() == WATTSHARE_ABSENT &&
             wattshare_set_task("x") == WATTSHARE_ABSENT &&
             wattshare_wait_period(&at) == WATTSHARE_ABSENT && at == 7 &&
             wattshare_job_stats(&job) == WATTSHARE_ABSENT && a && wattshare_now_ns() >= a;
    puts(ok ? "PASS alone" : "FAIL alone");
    return !ok;
}
