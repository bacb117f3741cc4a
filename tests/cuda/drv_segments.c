// SPDX-License-Identifier: Apache-2.0
/* A periodic program that uses wattshare.h. It fails if its jobs' deadlines, releases or costs are
 * not what they should be. It needs a daemon whose configuration has the task "periodic" with a
 * period of 5 ms and a deadline of 4 ms, and the task "others" of another user. */
#include "../../frontend/wattshare.h"

#include "drv.h"
#include "histogram.h"
#undef WORK
#define WORK      "segments"
#define FAIL(...) return work_fail("drv_" WORK, __VA_ARGS__)

enum { BYTES = 64 << 10, PERIOD_NS = 5000000, DEADLINE_NS = 4000000 };

static CUfunction f;
static CUdeviceptr d, d_bins;
static uint8_t v[BYTES];
static uint32_t want[HIST_BINS];

static int work(void)
{
    static uint32_t bins[HIST_BINS];
    uint32_t words = BYTES / 4;
    DRV(memset_d8(d_bins, 0, sizeof(want)));
    DRV(memcpy_htod(d, v, BYTES));
    drv_launch(f, HIST_GRID, HIST_BLOCK, 0, NULL, &d, &words, &d_bins);
    DRV(memcpy_dtoh(bins, d_bins, sizeof(want)));
    return hist_check(bins, want);
}

static int wrong_order(void)
{
    struct wattshare_job job;
    if (wattshare_job_stats(&job) != WATTSHARE_NONE)
        FAIL("statistics before any job");
    if (wattshare_job_end() != WATTSHARE_NONE)
        FAIL("ended what never began");
    if (wattshare_wait_period(NULL) != WATTSHARE_NONE)
        FAIL("waited for a period it doesn't have");
    if (wattshare_set_task("no-such-task") != WATTSHARE_UNKNOWN ||
        wattshare_set_task("") != WATTSHARE_UNKNOWN ||
        wattshare_set_task(NULL) != WATTSHARE_UNKNOWN)
        FAIL("took a task that isn't there");
    if (wattshare_set_task("others") != WATTSHARE_DENIED)
        FAIL("took another user's task");
    if (wattshare_set_task("periodic"))
        FAIL("didn't take its task");
    if (wattshare_job_begin(0) || wattshare_job_begin(0) != WATTSHARE_OPEN)
        FAIL("two segments at once");
    if (wattshare_set_task("periodic") != WATTSHARE_OPEN)
        FAIL("changed its task in a segment");
    return wattshare_job_end() ? work_fail(WORK, "an empty segment does not end") : 0;
}

static int one_job(uint64_t deadline_ns, uint64_t release_ns)
{
    struct wattshare_job job;
    if (wattshare_job_begin(deadline_ns))
        FAIL("a segment does not begin");
    if (work())
        return 1;
    if (wattshare_job_end() || wattshare_job_stats(&job))
        FAIL("a segment does not end");
    uint64_t deadline = deadline_ns ? deadline_ns : DEADLINE_NS;
    if (job.deadline_ns != deadline || job.response_ns != job.end_ns - job.release_ns ||
        job.met != (job.response_ns <= deadline) || !job.response_ns || !job.energy_uj ||
        (release_ns && job.release_ns != release_ns) || wattshare_now_ns() < job.end_ns)
        FAIL("release %llu, end %llu, response %llu, deadline %llu, met %d, %llu uJ",
             (unsigned long long)job.release_ns, (unsigned long long)job.end_ns,
             (unsigned long long)job.response_ns, (unsigned long long)job.deadline_ns, (int)job.met,
             (unsigned long long)job.energy_uj);
    return 0;
}

int main(int argc, char **argv)
{
    long n = work_arg(argc, argv, 1, 5, 100000);
    uint64_t first = 0, at;
    drv_begin();
    CUmodule m = drv_module("histogram");
    f = drv_function(m, "histogram");
    DRV(mem_alloc(&d, BYTES));
    DRV(mem_alloc(&d_bins, sizeof(want)));
    hist_fill(v, BYTES);
    hist_cpu(v, BYTES, want);
    if (wrong_order() || one_job(0, 0) || one_job(1, 0))
        return 1;
    for (long i = 0; i < n; i++) {
        if (wattshare_wait_period(&at))
            FAIL("no release");
        first = i ? first : at;
        if (at != first + (uint64_t)i * PERIOD_NS)
            FAIL("release %ld at %llu after %llu", i, (unsigned long long)at,
                 (unsigned long long)first);
        if (one_job(0, at))
            return 1;
    }
    DRV(mem_free(d));
    DRV(mem_free(d_bins));
    DRV(module_unload(m));
    drv_end();
    return work_pass("drv_" WORK);
}
