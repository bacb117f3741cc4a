// SPDX-License-Identifier: Apache-2.0
/* papers/verbs/sim.h - kinds of task sets that `wattshare sim` runs. The fields of a line say of which kind it is; a kind is a
 * struct ws_sim_kind with a row in papers/verbs/sim.c. Threads: run() runs on any thread, several at once. */
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
    const char *name; /* "sBEET-mg" */
    bool (*is)(struct ws_json_line *l);
    /* One policy on one line. @ret: gets the results; numbers in it become columns of the table: means, but sums where the name
     * begins with "n_" and the highest where it begins with "max_". Return: 0, or negative with what was
     * wrong in the line, or printed. */
    int (*run)(const struct ws_sim_run *run, struct ws_json_line *l, struct json_object *ret);
    /* Whether the kind has the policy. */
    bool (*knows)(const char *policy);
};
extern const struct ws_sim_kind
    ws_sim_kind_gpus, /* papers/verbs/sim_gpus.c: sBEET-mg's task sets on several GPUs */
    ws_sim_kind_rt;   /* papers/verbs/sim_rt.c: real-time tasks on CPU cores with one GPU */

#endif
