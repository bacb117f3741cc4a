// SPDX-License-Identifier: Apache-2.0
/* papers/sets/rt_sets.h - real-time task sets, one JSON object a line, as `wattshare gen --paper
 * gcaps|stgm` writes them and the reference data has them. A line whose tasks have "ges" (or
 * none has GPU work and there is no "nsm") is a GCAPS set: times in ms with at most 4 decimals,
 * kept in units of 0.1 us. A line with "nsm" is an STGM set: whole microseconds.
 *
 * GCAPS: overheads_ms {L, theta, epsilon} (1, 0.2, 1), ncpu (what the tasks need), tasks [{T, D
 * (T), C, G (sum of ges), ges [[G, Gm, Ge]…], ces [C…], cpu, prio (falling), be (prio < 0)}…],
 * best-effort ones last. Parts may exceed their total (ces that of C, Gm and Ge that of G, ges that
 * of the task's G) only by what rounding to 0.01 ms explains: analyses count the totals, and the
 * simulator takes the excess from the longest part. STGM: ncpu, nsm, tasks [{T, D (T), C, theta
 * (1), prio (falling), segs [{mhd, e, mdh, prof}…]}…]; e is the kernel's time on all SMs of a
 * profile that is built in, or an array of times on 1, 2, … nsm SMs. Tasks are ordered by priority,
 * the highest first.
 *
 * Threads: one for each set. Errors: base/error.h; what is wrong in a line is noted in the line
 * (ws_json_line.bad). */
#ifndef WS_PAPERS_SETS_RT_SETS_H
#define WS_PAPERS_SETS_RT_SETS_H

#include "papers/analysis/stgm.h"
#include "papers/sets/jsonl.h"

enum ws_rt_kind { WS_RT_GCAPS, WS_RT_STGM };
struct ws_rt_set {
    enum ws_rt_kind kind;
    int jittered;            /* 1 + the position of the first task with "jitter" above 0; 0: none */
    struct ws_rta_set gcaps; /* one of the two */
    struct ws_stgm_set stgm;
};

enum { WS_GCAPS_UNITS_PER_MS = 10000 };

/**
 * ws_rt_set_read() - the task set of a line
 * @ret: deinit with ws_rt_set_deinit(), also where the line is bad
 * Return: 0 (look at l->bad) or -ENOMEM.
 */
WS_MUST_CHECK int ws_rt_set_read(struct ws_json_line *l, struct ws_rt_set *ret);
/* The same of an object within a line. */
WS_MUST_CHECK int ws_rt_set_read_at(const struct ws_json_at *at, struct ws_rt_set *ret);
/* For analyses: if a task has "jitter", which bounds do not count, notes so in the line. */
void ws_rt_set_refuse_jitter(struct ws_json_line *l, const struct ws_rt_set *s);
void ws_rt_set_deinit(struct ws_rt_set *s);

/* Arrays of the given lengths, zeroed, with the paper's overheads. Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_rt_set_init_gcaps(struct ws_rt_set *s, int n_tasks, int n_segments,
                                       int n_cpu_segments);
WS_MUST_CHECK int ws_rt_set_init_stgm(struct ws_rt_set *s, int n_tasks, int n_segments, int n_sm);

/* The kernels of STGM's Fig. 3a. The paper does not print their numbers; these are curves of our
 * own that keep what the text says of them (kmeans and workzone gain nothing beyond 4 SMs, the
 * others gain less with each SM). */
enum { WS_STGM_PROFILES = 8 };
/* The profile of that name; -1: there is none. */
int ws_stgm_profile_find(const char *name);
/* Time on @n_sm SMs relative to one, in 1/10000. */
int64_t ws_stgm_profile_share(int profile, int n_sm);
/* Fills row @row of @s->kernels: a kernel of @profile that takes @e on all SMs of the set. */
void ws_stgm_profile_fill(struct ws_stgm_set *s, int row, int profile, int64_t e);

/* Writes a set as the fields of a line, "tasks" and what goes with it, without braces: the
 * caller writes its own fields before. */
void ws_rt_set_write(const struct ws_rt_set *s, FILE *f);

#endif
