// SPDX-License-Identifier: Apache-2.0
/* papers/sim/rtsim_private.h - what the files of the real-time simulator share. rtsim.c explains
 * how it works, and in which order they are called.
 *
 *   rtsim_check.c   task sets and whether they make sense
 *   rtsim_policy.c  requests, and the policy object that answers them
 *   rtsim_steps.c   what a job does: its program, and the steps that take no time
 *   rtsim_list.c    the run list's lock and updates (gcaps)
 *   rtsim_cores.c   who has which core
 *   rtsim_gpu.c     what the GPU does
 *   rtsim.c         time */
#ifndef WS_PAPERS_SIM_RTSIM_PRIVATE_H
#define WS_PAPERS_SIM_RTSIM_PRIVATE_H

#include "policy/policy.h"
#include "papers/sets/random.h"
#include "papers/sim/rtsim.h"

enum ws_rtsim_step_kind {
    STEP_CPU,
    STEP_BEGIN, /* gcaps: open the segment */
    STEP_END,   /* gcaps: close it */
    STEP_LOCK,
    STEP_UNLOCK,
    STEP_BOOST,
    STEP_UNBOOST,
    STEP_COPY_IN, /* the copy engine and the core, both for its length */
    STEP_COPY_OUT,
    STEP_GPU
};
struct ws_rtsim_step {
    enum ws_rtsim_step_kind kind;
    int segment;
    int64_t length;
};

enum ws_rtsim_actor_state { IDLE, READY, ASLEEP, SPIN, UPDATE };
struct ws_rtsim_actor {
    struct ws_rtsim_step *steps;
    int n_steps;

    enum ws_rtsim_actor_state state;
    int step;
    bool entered; /* the step's effect has been had (requests sent, lock asked for) */
    bool boosted;
    uint64_t boost_seq;
    int64_t left; /* of the step, on the core */
    int64_t gpu_drawn, gpu_left;
    int64_t gpu_most;     /* what the kernel takes at most, of which gpu_drawn is a share */
    struct ws_sm_set sms; /* stgm: those of the kernel that runs */
    uint64_t copy_seq;    /* when it asked for the engine, if the policy does not give that out */
    bool on_gpu;          /* has work for the GPU */
    bool closing;         /* gcaps, hold work: done, but the run list does not know yet */
    bool wants_lock;
    int64_t release;      /* of the current job */
    int64_t next_release; /* nominal */
    int64_t next_ready;   /* with jitter */
    int64_t come, start;  /* of its open request */
};

struct ws_rtsim_core {
    int task; /* -1: idle */
    int64_t since;
    enum ws_rtsim_span what;
};

struct ws_rtsim_gpu {
    int current, last; /* whose context is on it; was last */
    int64_t slice_left, switch_left;
    int64_t stalled_until;
    bool free_switch; /* the next switch is part of the update that was just paid */
};

struct ws_rtsim {
    const struct ws_rtsim_set *set;
    struct ws_rtsim_config config;
    const struct ws_policy_ops *ops;
    struct ws_policy *policy;
    struct ws_policy_gpu_type type;
    struct ws_policy_gpu policy_gpu;
    struct ws_policy_system system;
    struct ws_policy_task *policy_tasks;
    struct ws_policy_cost *costs; /* [n_tasks]: all kernels of a job together */
    double *wcet;                 /* [n_tasks][n_sms] */
    struct ws_policy_job *jobs;   /* open requests */
    int n_requests;
    uint64_t seq;
    struct ws_policy_run *slots;
    struct ws_policy_gpu_state gpu_state;
    struct ws_policy_decisions decisions;

    struct ws_rtsim_actor *actors;
    struct ws_rtsim_core *cores;
    int *chosen; /* of each core, as it should be now */
    struct ws_rtsim_gpu gpu;
    int lock_holder; /* of the run list: task, -1 free, DAEMON */
    int64_t daemon_until;
    int64_t timer; /* of the policy; INT64_MAX: none */
    int64_t now;
    struct ws_random random;
    const struct ws_rtsim_scenario *scenario;
    const struct ws_rtsim_observer *observer;
    struct ws_rtsim_task_result *results;
    int64_t *core_busy;
    bool *listed;
    struct ws_rtsim_result total;
    int error;
};
enum { LOCK_FREE = -1, LOCK_DAEMON = -2 };

/* The place of @task's open request in rt->jobs; -1: it has none. */
static inline int request_of(const struct ws_rtsim *rt, int task)
{
    for (int j = 0; j < rt->n_requests; j++)
        if (rt->jobs[j].task == task)
            return j;
    return -1;
}

static inline bool is_listed(const struct ws_rtsim *rt, int task)
{
    int j = request_of(rt, task);
    return j >= 0 && rt->jobs[j].state == WS_JOB_RUNNING;
}

static inline const struct ws_rtsim_step *step_of(const struct ws_rtsim *rt, int i)
{
    return &rt->actors[i].steps[rt->actors[i].step];
}

/* rtsim_policy.c */
WS_MUST_CHECK int ws_rtsim_policy_make(struct ws_rtsim *rt);
void ws_rtsim_policy_describe(struct ws_rtsim *rt);
/* Asks the policy. Return: whether something changed. */
bool ws_rtsim_ask(struct ws_rtsim *rt, const struct ws_policy_event *event);
bool ws_rtsim_request_open(struct ws_rtsim *rt, int task, enum ws_job_part part);
bool ws_rtsim_request_close(struct ws_rtsim *rt, int task);

/* The copy engine: of the policy, if that is stgm, and else in order of arrival. */
void ws_rtsim_copy_open(struct ws_rtsim *rt, int task, enum ws_job_part part);
void ws_rtsim_copy_close(struct ws_rtsim *rt, int task);
bool ws_rtsim_may_copy(const struct ws_rtsim *rt, int task);

/* rtsim_steps.c */
WS_MUST_CHECK int ws_rtsim_program(struct ws_rtsim *rt, int i);
void ws_rtsim_job_start(struct ws_rtsim *rt, int i);
void ws_rtsim_step_next(struct ws_rtsim *rt, int i);
/* The GPU work of @i is done. */
void ws_rtsim_gpu_done(struct ws_rtsim *rt, int i);
/* Whether @i has something to do now that takes no time of its own; @on_core: it has its core. */
bool ws_rtsim_can_act(const struct ws_rtsim *rt, int i, bool on_core);
void ws_rtsim_act(struct ws_rtsim *rt, int i);
/* Requests that were granted: the lock, the copy engine; and kernels of no length. */
bool ws_rtsim_grant(struct ws_rtsim *rt, int i);

/* rtsim_list.c */
/* The run list changed, or not, by a call of task @i, which holds its lock. */
void ws_rtsim_list_update(struct ws_rtsim *rt, int i, bool changed);
/* The holder of the lock is done; the task that waits for it continues. */
void ws_rtsim_list_unlock(struct ws_rtsim *rt);
/* gcaps, hold work: the daemon sees that the work of task @i is done. */
void ws_rtsim_list_hand_on(struct ws_rtsim *rt, int i);

/* rtsim_cores.c */
/* Who should have each core: rt->chosen. */
void ws_rtsim_cores_choose(struct ws_rtsim *rt);
/* The cores are the chosen ones' from now on. */
void ws_rtsim_cores_dispatch(struct ws_rtsim *rt);
/* Reports what core @c did until now. */
void ws_rtsim_core_flush(struct ws_rtsim *rt, int c);

/* rtsim_gpu.c */
/* Whose turn it is. */
void ws_rtsim_gpu_choose(struct ws_rtsim *rt);
int64_t ws_rtsim_gpu_next(const struct ws_rtsim *rt);
void ws_rtsim_gpu_advance(struct ws_rtsim *rt, int64_t dt);

/* rtsim.c */
/* Counts a response of @i; of an unfinished job only once it is late. */
void ws_rtsim_count(struct ws_rtsim *rt, int i, int64_t response, bool finished);

#endif
