// SPDX-License-Identifier: Apache-2.0
/* papers/analysis/rta.h - is a task set schedulable, and how late may each task be?
 * Response-time analyses, in exact integers, of tasks that share one GPU and run on cores with
 * partitioned fixed priorities.
 *
 * Sources: GCAPS and the default driver's round robin are from Wang, Liu, Wong, Kim, "GCAPS",
 * ECRTS 2024, and from the analysis that its authors released. MPCP and FMLP+ are as in that
 * release, and in forms of our own. STGM has its own header (stgm.h), since it also allocates
 * cores and SMs. doc/analysis.md gives each equation.
 *
 * Forms: a method's plain name is the form to use. `_ref` is the authors' program with its
 * slips, for reproducing its figures. `_fix` is the paper with slips repaired, and `_lit` the
 * paper to the letter. `_safe` is a form that none of our simulations exceeded, where they
 * exceeded the published one. ws_rta_methods() says for each method what it gives.
 *
 * Units: any one unit of time, in whole numbers; the readers use 0.1 us for GCAPS sets
 * (unit_per_ms 10000) and 1 us for STGM sets (1000). Every bound is the least fixed point from
 * 0, and a task fails once the bound exceeds its deadline. Every analysis ends: after
 * WS_RTA_STEPS_MAX evaluations of a term the set counts as not schedulable, and `gave_up` is
 * set.
 *
 * Threads: one for each ws_rta_work; sets are only read. Errors: base/error.h. Only
 * ws_rta_work_reserve() allocates. */
#ifndef WS_PAPERS_ANALYSIS_RTA_H
#define WS_PAPERS_ANALYSIS_RTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/macros.h"

/* Limits of the input, which keep all sums within int64 (products saturate). ws_rta_set_check()
 * checks them. */
#define WS_RTA_TIME_MAX  (INT64_C(1) << 44)
#define WS_RTA_STEPS_MAX (INT64_C(1) << 26)
enum { WS_RTA_TASKS_MAX = 4096, WS_RTA_SEGMENTS_MAX = 64, WS_RTA_CPUS_MAX = 1024 };

/* One GPU segment. */
struct ws_rta_segment {
    int64_t g;  /* as a whole */
    int64_t gm; /* work on the CPU in it: launch, copies, driver */
    int64_t ge; /* pure GPU work */
};

/* A task's place in the set is its priority: the first one's is the highest. Best-effort tasks
 * are last. */
struct ws_rta_task {
    int64_t period, deadline;
    int64_t c;      /* CPU segments, sum */
    int64_t g;      /* GPU segments, sum (may differ from that of its segments by rounding) */
    int64_t gm, ge; /* sums over the segments */
    int cpu;
    bool best_effort;
    int n_segments, first_segment; /* into ws_rta_set.segments */
    /* into ws_rta_set.cpu_segments; analyses do not need them */
    int n_cpu_segments, first_cpu_segment;
};

struct ws_rta_set {
    struct ws_rta_task *tasks;
    struct ws_rta_segment *segments;
    int64_t *cpu_segments; /* NULL: unknown */
    int n_tasks, n_segments, n_cpu_segments, n_cpus;
    int64_t slice;   /* L: a time-sliced group's turn */
    int64_t theta;   /* a context switch of the GPU */
    int64_t epsilon; /* an update of the run list, as its caller feels it */
    int64_t unit_per_ms;
};

/* Checks that @s can be analysed. Return: NULL, or what is wrong, as text; *ret_task: the
 * position of the task (-1: the whole set). */
const char *ws_rta_set_check(const struct ws_rta_set *s, int *ret_task);

struct ws_rta_result {
    bool ok;      /* all real-time tasks meet their deadlines */
    bool gave_up; /* too many steps; ok is false */
    /* [n_tasks]: > 0 bound; -1: the first that misses; 0: not analysed (best effort, or after
     * it) */
    int64_t *bound;
    /* [n_tasks], larger is higher, 0 best effort; NULL: as the CPU's, or none found */
    int *gpu_priority;
};

/* Memory for one thread; it grows to what the largest set needs. */
struct ws_rta_work {
    struct ws_rta_term *terms;
    int64_t *bound, *second; /* bounds of the set; of a first try */
    int *gpu_priority, *order;
    struct ws_rta_request *requests;
    int64_t *values;
    int n_tasks, n_segments; /* reserved */
    int64_t steps;           /* left to this analysis */
};
#define WS_RTA_WORK_NULL ((struct ws_rta_work){0})
/* Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_rta_work_reserve(struct ws_rta_work *w, int n_tasks, int n_segments);
void ws_rta_work_deinit(struct ws_rta_work *w);

/* One way of analysing. */
struct ws_rta_method {
    const char *name;  /* "gcaps_busy_ref" */
    const char *form;  /* "ref", "fix", "safe", "lit" */
    const char *gives; /* which bound or figure */
    bool is_bound;     /* no simulation exceeded it where its assumptions hold */
    bool stgm;         /* needs a ws_stgm_set: stgm.h */
    /* NULL for stgm. @s has passed ws_rta_set_check(). Results lie in @w until its next use.
     * Return: 0 or -ENOMEM. */
    int (*run)(const struct ws_rta_set *s, struct ws_rta_work *w, struct ws_rta_result *ret);
    int variant; /* for stgm: enum ws_stgm_mode | form */
};
/* The table of methods, @ret_n rows in the order in which they are listed. */
const struct ws_rta_method *ws_rta_methods(size_t *ret_n);
/* Finds a method by its name or plain name. NULL: there is none. */
const struct ws_rta_method *ws_rta_method_find(const char *name);
/* The plain name of row @i ("gcaps_busy"), and in @ret_target the method it stands for
 * ("gcaps_busy_fix"); NULL after the last. */
const char *ws_rta_alias(size_t i, const char **ret_target);

#endif
