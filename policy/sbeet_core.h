// SPDX-License-Identifier: Apache-2.0
/* policy/sbeet_core.h - what the policies of the sBEET family share.
 *
 * Each decision is one pass over the ready jobs in order of priority (policy/sbeet_core.c). A
 * policy is a rule that chooses a configuration for one job: a GPU, a number of SMs and a start. It
 * chooses by price, the energy of all GPUs in a window of time.
 *
 * Source: sBEET-mg (RTSS 2022) and the program that its authors released. The rules here are those
 * that the program follows in effect. Where the printed algorithm differs, an option selects the
 * printed form (struct ws_sbeet_forms). Only for files of policy/. */
#ifndef WS_POLICY_SBEET_CORE_H
#define WS_POLICY_SBEET_CORE_H

#include <math.h>
#include "models/energy.h"
#include "policy/move.h"
#include "policy/policy.h"

enum ws_sbeet_assign {
    WS_SBEET_ASSIGN_NONE,
    WS_SBEET_ASSIGN_ALG1, /* Alg. 1: energy-preferred GPUs first */
    WS_SBEET_ASSIGN_WFD,  /* bins of capacity 1, by stated utilisation, largest task first */
    WS_SBEET_ASSIGN_BFD,
    WS_SBEET_ASSIGN_FFD,
};

/* Which form of the algorithms runs. The default is the released scheduler with one slip corrected:
 * its candidates share one object. (Its other slip, the T400's copy times, is in the data.) */
struct ws_sbeet_forms {
    /* Released: all candidates of one decision share one object, which the GPU that was looked at
     * last has configured */
    bool shared_objects;
    bool own_deadline; /* paper: a job on a whole idle GPU must meet its own deadline, too */
    /* Paper: a job on a whole idle GPU is priced like the others; released: as if the GPU stayed
     * idle */
    bool price_whole;
    /* Paper: waiting for a full GPU is one candidate, compared by energy; released: it is chosen
     * whenever it is in time */
    bool compare_waiting;
    /* Also schedule the jobs to come beside a job that has a part of a GPU; in the released
     * program this code is never reached */
    bool lookahead;
    bool by_task;     /* released C++: coming jobs one task after another; else by release */
    double sample;    /* 1: power is summed at whole times, both ends included; 0: integrated */
    double step;      /* between SM counts tried on an idle GPU */
    double tolerance; /* by which a job beside another may outlast it */
};

struct ws_sbeet_slot {
    int task; /* -1: free */
    int n_sm;
    double ge, fin;
    double dyn_w;
};
struct ws_sbeet_gpu {
    struct ws_energy_gpu power;
    int type, limit;
    int first, n_slots; /* in ws_policy.slots */
    int n_running, used;
    bool usable;            /* on */
    struct ws_sm_set taken; /* its count is not kept */
};
/* A job of @task on @gpu with @n_sm SMs from @start. */
struct ws_sbeet_config {
    int task, gpu, n_sm;
    double start, gs, ge, fin;
    double deadline;
    double move_ms, move_mj; /* before gs; 0: the data is there, or nowhere */
};
struct ws_sbeet_choice {
    struct ws_sbeet_config c;
    double energy;
    const char *reason;  /* static */
    double other_energy; /* of the best that lost; NAN: there was none */
    int n_candidates;
};
/* What is known of a task on a GPU. */
struct ws_sbeet_item {
    const struct ws_policy_cost *cost; /* NULL: unknown */
    int m_opt;
};
struct ws_sbeet_future { /* the next job of a task that is still to come */
    double release;
    int task;
};

struct ws_sbeet {
    const struct ws_sbeet_rule *rule;
    struct ws_sbeet_forms forms;
    const struct ws_policy_system *sys;
    struct ws_sbeet_gpu *gpus;
    struct ws_sbeet_slot *slots;
    size_t cap_slots;
    struct ws_sbeet_item *items; /* [n_tasks][n_gpus] */
    int *rank; /* [n_tasks][n_gpus]: GPUs with a known cost, the one with the least energy first */
    int *n_rank;        /* [n_tasks] */
    int *home;          /* [n_tasks]: where the offline part put it; -1: nowhere */
    int *at, *at_first; /* tasks of each GPU: at[at_first[k]…at_first[k+1]-1], in order */
    int *by_size;       /* GPUs, the largest first */
    bool *running;      /* [n_tasks], only inside decide() */
    struct ws_sbeet_future *future; /* [n_tasks], a heap */
    double now;
    const struct ws_policy_job *job; /* for which a place is looked for; only inside decide() */
    /* Whether every answer of this pass stays the same until the next event */
    bool steady;
    /* ready jobs, a heap by priority and arrival */
    int *ready;
    size_t cap_ready;
    struct ws_sbeet_config object; /* forms.shared_objects: the one object */
};

struct ws_sbeet_rule {
    enum ws_sbeet_assign assign;
    /* Where @task's job goes now; false: it waits (@ret->reason says why). */
    bool (*choose)(struct ws_sbeet *p, int task, double deadline, struct ws_sbeet_choice *ret);
};

/* ---- the ops, each with a rule ---- */
int ws_sbeet_make(struct ws_policy **ret, const struct ws_sbeet_rule *rule,
                  const struct ws_policy_option *table, const char *const *options, char *ret_error,
                  size_t error_bytes);
void ws_sbeet_free(struct ws_policy *policy);
int ws_sbeet_prepare(struct ws_policy *policy, const struct ws_policy_system *system,
                     char *ret_error, size_t error_bytes);
int ws_sbeet_decide(struct ws_policy *policy, const struct ws_policy_snapshot *snap,
                    const struct ws_policy_event *event, struct ws_policy_decisions *ret);
extern const struct ws_policy_option ws_sbeet_options[];

/* ---- pieces (sbeet_core.c) ---- */
static inline const struct ws_sbeet_item *ws_sbeet_item(const struct ws_sbeet *p, int task, int gpu)
{
    return &p->items[(size_t)task * (size_t)p->sys->n_gpus + (size_t)gpu];
}
static inline bool ws_sbeet_full(const struct ws_sbeet_gpu *g)
{
    return !g->usable || g->n_running >= g->n_slots || g->used >= g->limit;
}
static inline bool ws_sbeet_idle(const struct ws_sbeet_gpu *g)
{
    return g->usable && !g->n_running;
}
/* The GPU to which the offline part assigned the task. -1: none. Our extension (the paper's jobs
 * keep no data on a GPU): an equivalent GPU that is nearer to the job's data, if it serves the job
 * as well. */
int ws_sbeet_own_gpu(const struct ws_sbeet *p, int task, double deadline);
/* When @m_opt SMs of GPU @x will be free, as the jobs there end one after another. */
double ws_sbeet_free_again(const struct ws_sbeet *p, int x, int m_opt);
/* Whether the job cannot be moved to @gpu. */
static inline bool ws_sbeet_barred(const struct ws_sbeet *p, int gpu)
{
    return p->job && !ws_policy_can_run(p->job, gpu);
}
/* The configuration with the times that follow from it. The task's cost on @gpu must be known. */
struct ws_sbeet_config ws_sbeet_configure(const struct ws_sbeet *p, int task, double deadline,
                                          int gpu, int n_sm, double start);
/* The energy of all GPUs in [@from, @to] with what runs there and, unless NULL, @c beside it. A job
 * counts from the beginning of the window until its kernel ends. If @c's data must be moved first,
 * the window is shortened by the time of the move, and the energy of the move is added. */
double ws_sbeet_price(const struct ws_sbeet *p, double from, double to,
                      const struct ws_sbeet_config *c);
/* Whether the configuration leaves enough time for the jobs to come, and meets the deadlines that
 * the form asks for. */
bool ws_sbeet_feasible(const struct ws_sbeet *p, const struct ws_sbeet_config *c);
/* sBEET (Alg. 3 of RTSS 2021) for one GPU that is not full. @ret_found: whether there is a
 * configuration at all. @ret_own: whether it is the one object that the released form shares.
 * Return: whether the configuration is in time. */
bool ws_sbeet_on_gpu(struct ws_sbeet *p, int task, double deadline, int gpu,
                     struct ws_sbeet_choice *ret, bool *ret_found, bool *ret_own);
/* For the baselines: as many SMs as are best for energy, or as are left. Return: false if the cost
 * there is unknown. */
bool ws_sbeet_choose_there(struct ws_sbeet *p, int task, double deadline, int gpu,
                           struct ws_sbeet_choice *ret);
/* The same on @gpu, or on an equivalent GPU that is no busier and nearer to the job's data. Return:
 * false also if @gpu is full. */
bool ws_sbeet_choose_near(struct ws_sbeet *p, int task, double deadline, int gpu,
                          struct ws_sbeet_choice *ret);

/* ---- the offline part (sbeet_assign.c): fills p->home. Return: 0 or WS_POLICY_E_UNFIT. ---- */
int ws_sbeet_assign(struct ws_sbeet *p, char *ret_error, size_t error_bytes);

#define WS_SBEET_OPS(symbol, name_, summary_, table_, rule_)                                       \
    static int symbol##_make(struct ws_policy **ret, const char *const *options, char *ret_error,  \
                             size_t error_bytes)                                                   \
    {                                                                                              \
        return ws_sbeet_make(ret, &(rule_), table_, options, ret_error, error_bytes);              \
    }                                                                                              \
    const struct ws_policy_ops ws_policy_##symbol = {                                              \
        .name = name_,                                                                             \
        .summary = summary_,                                                                       \
        .options = table_,                                                                         \
        .make = symbol##_make,                                                                     \
        .free = ws_sbeet_free,                                                                     \
        .prepare = ws_sbeet_prepare,                                                               \
        .decide = ws_sbeet_decide,                                                                 \
    }

#endif
