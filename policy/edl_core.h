// SPDX-License-Identifier: Apache-2.0
/* policy/edl_core.h - what the policies of policy/edl.h share; a policy is a rule of how to choose
 * a pair. Threads: as policies. */
#ifndef WS_POLICY_EDL_CORE_H
#define WS_POLICY_EDL_CORE_H

#include "models/dvfs.h"
#include "policy/edl.h"
#include "policy/edl_pairs.h"

/* A job on its way to a pair. */
struct ws_edl_job {
    int job; /* index into snapshot.jobs */
    uint64_t id;
    const struct ws_dvfs_task *task; /* NULL: fixed clocks; `best` says all */
    double deadline, room;           /* absolute; from now on */
    double tolerance;                /* below this two times are the same */
    struct ws_dvfs_point best;       /* Algorithm 1 */
    bool prior;                      /* deadline-prior */
    bool alone;                      /* gets a new pair, before all others */
    /* where it goes */
    int place; /* -1: dropped */
    bool readjusted;
    double at;
    struct ws_dvfs_point point;
};

struct ws_edl {
    const struct ws_edl_rule *rule;
    double theta;
    bool dvfs, whole_servers;
    struct ws_dvfs_interval interval;
    const struct ws_policy_system *system;
    struct ws_edl_pairs pairs;
    bool prepared, started;
    bool first;   /* the first batch is being placed */
    bool opening; /* and places are pairs as opened, which Algorithm 3 will order */
    int n_opened;
    double now, timer; /* the last WS_DECIDE_TIMER */
    struct ws_edl_counts counts;
    struct ws_edl_job *jobs; /* scratch, grown and kept */
    size_t n_jobs, cap_jobs;
    int *order; /* scratch of Algorithm 3 [pairs.n] */
};

struct ws_edl_rule {
    bool longest_first; /* else EDF */
    bool prior_alone;   /* in the first batch, each deadline-prior job has a pair of its own */
    /* Algorithm 3 makes servers of the pairs of the first batch; else servers are turned on as
     * needed */
    bool grouped;
    /* A pair that is on (or opened) to try, -1: none. The rule may shorten
     * j->best, so that the job fits there, and then sets j->readjusted. */
    int (*choose)(const struct ws_edl *p, struct ws_edl_job *j);
    /* Whether the tried pair must still be checked for room, and the job may be shortened to it. */
    bool may_readjust;
    /* Ours: pairs that are free by now are the same to the rule, so that of those the one nearest
     * to the job's data is taken. */
    bool free_are_equal;
};

/* The largest mu with which a pair still meets @j's deadline. */
double ws_edl_latest(const struct ws_edl *p, const struct ws_edl_job *j);

int ws_edl_make(struct ws_policy **ret, const struct ws_edl_rule *rule,
                const struct ws_policy_option *table, const char *const *options, char *ret_error,
                size_t bytes);
void ws_edl_free(struct ws_policy *policy);
int ws_edl_prepare(struct ws_policy *policy, const struct ws_policy_system *system, char *ret_error,
                   size_t bytes);
int ws_edl_decide(struct ws_policy *policy, const struct ws_policy_snapshot *snap,
                  const struct ws_policy_event *event, struct ws_policy_decisions *ret);

/* Defines ws_policy_@id: @rule, with the options of the table `options` of its file. */
#define WS_EDL_POLICY(id, rule, name_, summary_)                                                   \
    static int make_##id(struct ws_policy **ret, const char *const *o, char *ret_error,            \
                         size_t bytes)                                                             \
    {                                                                                              \
        return ws_edl_make(ret, &(rule), options, o, ret_error, bytes);                            \
    }                                                                                              \
    const struct ws_policy_ops ws_policy_##id = {.name = name_,                                    \
                                                 .summary = summary_,                              \
                                                 .options = options,                               \
                                                 .make = make_##id,                                \
                                                 .free = ws_edl_free,                              \
                                                 .prepare = ws_edl_prepare,                        \
                                                 .decide = ws_edl_decide,                          \
                                                 .once = true,                                     \
                                                 .books = true}

#define WS_EDL_OPTIONS                                                                             \
    {"dvfs", "yes", "choose voltage and clocks for each task; no: the factory default"},           \
        {"interval", "wide", "wide, narrow, or V_MIN:V_MAX,FC_MIN,FM_MIN:FM_MAX"},                 \
        {"servers", "grouped",                                                                     \
         "grouped: Algorithm 3 makes servers of the first batch's pairs; whole: as the released "  \
         "program, a server is turned on whole where no pair fits"},                               \
        {"rho", "2", "slots that all pairs of a server are idle before it is switched off"},       \
        {"slot", "1", "length of a slot; 0: no slots, rho is a time"},                             \
    {                                                                                              \
        NULL, NULL, NULL                                                                           \
    }

#endif
