// SPDX-License-Identifier: Apache-2.0
/* policy/sbeet_core.h - what the policies of the sBEET family share: one pass over the ready jobs in priority order, a picture of the
 * GPUs that each decision of the pass changes, configurations of a job (GPU, SMs, start), prices of windows.
 *
 * Source: sBEET-mg (RTSS 2022) and its authors' scheduler, whose effective rules these are; where the printed algorithm differs, an
 * option selects it (struct ws_sbeet_forms). Only for files of policy/. */
#ifndef WS_POLICY_SBEET_CORE_H
#define WS_POLICY_SBEET_CORE_H

#include <math.h>
#include "models/energy.h"
#include "policy/policy.h"

enum ws_sbeet_assign {
    WS_SBEET_ASSIGN_NONE,
    WS_SBEET_ASSIGN_ALG1, /* Alg. 1: energy-preferred GPUs first */
    WS_SBEET_ASSIGN_WFD,  /* bins of capacity 1, by stated utilisation, largest task first */
    WS_SBEET_ASSIGN_BFD,
    WS_SBEET_ASSIGN_FFD,
};

/* Which form of the algorithms runs. The defaults are the released scheduler with its two slips put right (candidates that share
 * one object; the T400's copy times, which are data). */
struct ws_sbeet_forms {
    bool
        shared_objects; /* released: all candidates of one decision are one object, which the last GPU looked at configures */
    bool own_deadline;  /* paper: a job on a whole idle GPU must meet its own deadline, too */
    bool
        price_whole; /* paper: that candidate is priced like the others; released: as if the GPU stayed idle */
    bool
        compare_waiting; /* paper: waiting for a full GPU competes by energy; released: it wins where it is in time */
    bool
        lookahead; /* the schedule of coming jobs beside a job on part of a GPU; released: dead code */
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

struct ws_policy {
    const struct ws_sbeet_rule *rule;
    struct ws_sbeet_forms forms;
    const struct ws_policy_system *sys;
    struct ws_sbeet_gpu *gpus;
    struct ws_sbeet_slot *slots;
    size_t cap_slots;
    struct ws_sbeet_item *items; /* [n_tasks][n_gpus] */
    int *rank; /* [n_tasks][n_gpus]: GPUs, the energy-preferred first; unknown ones aren't in it */
    int *n_rank;        /* [n_tasks] */
    int *home;          /* [n_tasks]: where the offline part put it; -1: nowhere */
    int *at, *at_first; /* tasks of each GPU: at[at_first[k]…at_first[k+1]-1], in order */
    int *by_size;       /* GPUs, the largest first */
    bool *running;      /* [n_tasks], only inside decide() */
    struct ws_sbeet_future *future; /* [n_tasks], a heap */
    double now;
    const struct ws_policy_job *job; /* that a place is looked for, only inside decide() */
    bool
        steady; /* nothing that was asked in this pass may be answered otherwise later, without an event */
    /* ready jobs, a heap by priority and arrival */
    int *ready;
    size_t cap_ready;
    struct ws_sbeet_config object; /* forms.shared_objects: the one object */
};

struct ws_sbeet_rule {
    enum ws_sbeet_assign assign;
    /* Where @task's job goes now; false: it waits (@ret->reason says why). */
    bool (*choose)(struct ws_policy *p, int task, double deadline, struct ws_sbeet_choice *ret);
};

/* ---- the ops, each with a rule ---- */
int ws_sbeet_make(struct ws_policy **ret, const struct ws_sbeet_rule *rule,
                  const struct ws_policy_option *table, const char *const *options, char *ret_error,
                  size_t error_bytes);
void ws_sbeet_free(struct ws_policy *p);
int ws_sbeet_prepare(struct ws_policy *p, const struct ws_policy_system *system, char *ret_error,
                     size_t error_bytes);
int ws_sbeet_decide(struct ws_policy *p, const struct ws_policy_snapshot *snap,
                    const struct ws_policy_event *event, struct ws_policy_decisions *ret);
extern const struct ws_policy_option ws_sbeet_options[];

/* ---- pieces (sbeet_core.c) ---- */
static inline const struct ws_sbeet_item *ws_sbeet_item(const struct ws_policy *p, int task,
                                                        int gpu)
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
/* Where the offline part put the task; or, where that is no better (ours: the paper's jobs have no data that stays), a GPU alike that
 * the job's data is nearer to. -1: nowhere. */
int ws_sbeet_own_gpu(const struct ws_policy *p, int task, double deadline);
/* When enough of GPU @x is free for @m_opt SMs: the jobs there end one after another. */
double ws_sbeet_free_again(const struct ws_policy *p, int x, int m_opt);
/* The move is impossible. */
static inline bool ws_sbeet_barred(const struct ws_policy *p, int gpu)
{
    return p->job && isinf(ws_policy_move(p->job, gpu).ms);
}
/* The cost of the task there must be known. */
struct ws_sbeet_config ws_sbeet_configure(const struct ws_policy *p, int task, double deadline,
                                          int gpu, int n_sm, double start);
/* Energy of all GPUs in [@from, @to] with what runs, and @c beside it unless NULL: a job counts until its kernel ends, from the
 * beginning of the window on. Where @c's data must be moved first: as if it were there already, in a window that is shorter by as
 * much, and the move's energy. */
double ws_sbeet_price(const struct ws_policy *p, double from, double to,
                      const struct ws_sbeet_config *c);
/* Whether the configuration is one that the schedule of coming jobs allows. */
bool ws_sbeet_feasible(const struct ws_policy *p, const struct ws_sbeet_config *c);
/* sBEET (Alg. 3 of RTSS 2021) for one GPU that isn't full. @ret_found: whether there is a configuration at all; @ret_own: whether it
 * is the caller's one object, in the released form. Return: whether it is in time. */
bool ws_sbeet_on_gpu(struct ws_policy *p, int task, double deadline, int gpu,
                     struct ws_sbeet_choice *ret, bool *ret_found, bool *ret_own);
/* A job whose cost is known nowhere: on the first idle GPU, alone. */
bool ws_sbeet_choose_unknown(struct ws_policy *p, int task, double deadline,
                             struct ws_sbeet_choice *ret);
/* Baselines: as many SMs as are best for energy, or as are left. False: the cost there is unknown. */
bool ws_sbeet_choose_there(struct ws_policy *p, int task, double deadline, int gpu,
                           struct ws_sbeet_choice *ret);
/* The same on @gpu or, of those alike and no busier, on the nearest to the job's data. False: also where it is full. */
bool ws_sbeet_choose_near(struct ws_policy *p, int task, double deadline, int gpu,
                          struct ws_sbeet_choice *ret);

/* ---- the offline part (sbeet_assign.c): fills p->home. Return: 0 or WS_POLICY_E_UNFIT. ---- */
int ws_sbeet_assign(struct ws_policy *p, char *ret_error, size_t error_bytes);

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
