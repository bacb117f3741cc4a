// SPDX-License-Identifier: Apache-2.0
/* papers/fit/measured.h - reads measured launches from CSV with a head, and what their events were
 * from the columns that the file has:
 *
 *   counters   inst_executed and its like (nvprof): each event is counted
 *   activity   sm_active, fp32_active and its like (DCGM): rates of some units only. The time
 *              cannot be predicted from them
 *   watts      elapsed_cycles, DRAM_Rd and its like (AccelWattch): events of memory are counted.
 *              Its estimate of the power of the instruction buffers (aw_ibp) stands for the
 *              instructions, at 0.15 nJ each, which are all taken for integer ones of whole warps
 *
 * Every file needs the column app (or another name of it, measured.c), and a time (time_s, or in
 * ms, us or ns) or a power (power_w, or in mw or kw; or energy_j, or in mj, uj or kj, beside a
 * time). core_mhz and mem_mhz (or in ghz, khz or hz) are the clocks; without them the launches ran
 * at the GPU's reference clocks. input says what they worked on. Shares are 0 to 1, or have a sign
 * of percent. Cells that are empty or say NA, nan or the like were not measured. For most columns a
 * value is assumed then, or a share of another column (measured.c); rows without one of the other
 * events are left out and counted. Columns that contain the time in another form (throughputs,
 * instructions per clock) are not read. Threads: none. */
#ifndef WS_PAPERS_FIT_MEASURED_H
#define WS_PAPERS_FIT_MEASURED_H

#include <stdio.h>
#include "base/diag.h"
#include "papers/fit/calibrate.h"

struct ws_measured_name {
    char *name;
    int family; /* of an application */
};
enum { WS_MEASURED_ASSUMED_MAX = 24, WS_MEASURED_VALUE_BYTES = 64 };
struct ws_measured_assumed {
    const char *column;
    char value[WS_MEASURED_VALUE_BYTES]; /* as people are told it */
    size_t n;                            /* launches */
};
struct ws_measured_set {
    struct ws_measured_launch *v;
    size_t n, cap;
    struct ws_measured_name *apps, *families;
    struct ws_measured_name *inputs; /* of column input */
    /* The GPU that is read, as column gpu names it: set by the caller (allocated), or else that of
     * the first row; NULL: no row names one. Rows of others are left out and counted. */
    char *gpu;
    size_t n_others;
    int n_apps, n_families, n_inputs;
    size_t apps_cap, families_cap, inputs_cap;
    size_t n_left_out; /* rows without events */
    /* The columns whose value was not measured in @n launches, so that one was assumed. */
    struct ws_measured_assumed assumed[WS_MEASURED_ASSUMED_MAX];
    size_t n_assumed;
    bool has_core_clock, has_memory_clock; /* some launch says it */
    /* Set by the caller: keeps launches whose power was measured and whose time was not; their
     * rate_time_s is NAN if events are counted. */
    bool keeps_untimed;
};

/* Reads CSV with columns app and family: launches read later belong to these families.
 * Applications that no file names are a family of their own. Return: 0, -EINVAL (see @diags),
 * -ENOMEM or -EIO. */
WS_MUST_CHECK int ws_measured_families(struct ws_measured_set *s, FILE *f, const char *name,
                                       struct ws_diags *diags);
/* Adds the launches of a file. Return: as above; bad rows are named in @diags, and the others are
 * read. */
WS_MUST_CHECK int ws_measured_read(struct ws_measured_set *s, FILE *f, const char *name,
                                   const struct ws_event_gpu *gpu, struct ws_diags *diags);
void ws_measured_deinit(struct ws_measured_set *s);

#endif
