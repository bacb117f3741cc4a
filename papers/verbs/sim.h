// SPDX-License-Identifier: Apache-2.0
/* papers/verbs/sim.h - the kinds of task sets that `wattshare sim` runs. The fields of a line
 * say of which kind it is. A kind is a struct ws_sim_kind with a row in papers/verbs/sim.c.
 * Threads: run() is called on any thread, several at once. */
#ifndef WS_PAPERS_VERBS_SIM_H
#define WS_PAPERS_VERBS_SIM_H

#include "policy/policy.h"
#include "papers/sets/gpus.h"
#include "papers/sets/jsonl.h"

struct ws_sim_rt_options; /* papers/verbs/sim_rt.h */

struct ws_sim_run {
    const char *policy;         /* as the user wrote it */
    const char *const *options; /* of the policy, NULL at the end; NULL: none */
    const struct ws_gpus *gpus; /* NULL: none given */
    double duration_ms;         /* 0: of the line, or 15 s */
    bool compat, copies_asis;
    const struct ws_sim_rt_options *rt;
    FILE *trace; /* NULL: none is wanted of this run */
};
struct ws_sim_kind {
    const char *name;  /* "sBEET-mg" */
    const char *takes; /* the policies that run it, for a message */
    bool (*is)(struct ws_json_line *l);
    /* Runs one policy on one line. @ret: gets the results. Its numbers become columns of the
     * table: sums if the name begins with "n_", maxima if it begins with "max_", else means.
     * Return: 0, or negative with the error in the line or printed. */
    int (*run)(const struct ws_sim_run *run, struct ws_json_line *l, struct json_object *ret);
    /* Whether the kind has the policy. */
    bool (*knows)(const char *policy);
};
extern const struct ws_sim_kind ws_sim_kind_gpus; /* sim_gpus.c: sBEET-mg's task sets */
extern const struct ws_sim_kind ws_sim_kind_rt;   /* sim_rt.c: real-time tasks on cores, one GPU */

#endif
