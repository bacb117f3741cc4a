// SPDX-License-Identifier: Apache-2.0
/* backend/scheduling/dispatch_private.h - what the files of the dispatcher share. Times that end
 * in _ms are of the devices' common clock, as policies have them. */
#ifndef WS_BACKEND_SCHEDULING_DISPATCH_PRIVATE_H
#define WS_BACKEND_SCHEDULING_DISPATCH_PRIVATE_H

#include "backend/scheduling/alarms.h"
#include "backend/backend.h"
#include "backend/scheduling/dispatch.h"
#include "backend/scheduling/rapl.h"
#include "base/table.h"
#include "models/dvfs.h"
#include "policy/policy.h"

enum { WS_GPU_MAX_TYPES = WS_MAX_GPUS_CONFIGURED };

/* What is known of the jobs of one task, whoever runs them; by name. */
struct ws_task_history {
    char name[WS_TASK_NAME_BYTES];
    uint64_t n_jobs;
    uint32_t n_blocks;                       /* of the newest job's largest launch */
    uint64_t n_all_blocks;                   /* of all its launches */
    uint32_t side_by_side[WS_GPU_MAX_TYPES]; /* blocks on an SM; 0: not known */
    double *seen_ms
        [WS_GPU_MAX_TYPES]; /* [n_sm + 1]: kernel time of a job on so many SMs; 0: not seen yet */
    double *cold_ms[WS_GPU_MAX_TYPES];  /* [n_sm + 1]: of its first launch, as predicted */
    bool is_profiled[WS_GPU_MAX_TYPES]; /* …from runs of the same launch on that type */
    double *wcet_ms[WS_GPU_MAX_TYPES];  /* [n_sm]: what the policy is told */
    /* Its power above idle, as a multiple of what the catalog has, and its relative standard error.
     * 0: not predicted yet */
    double power_factor[WS_GPU_MAX_TYPES], energy_error[WS_GPU_MAX_TYPES];
    double cpu_ms, cpu_mj; /* on the host's processor; 0: not known */
    bool cpu_measured;     /* cpu_mj is its own counters' */
    struct ws_dvfs_task dvfs[WS_GPU_MAX_TYPES];
    struct ws_policy_cost cost[WS_GPU_MAX_TYPES];
    bool costs_made; /* of all that is known */
    UT_hash_handle hh;
};

/* A client as policies see it. */
struct ws_gpu_task {
    struct ws_list node;
    struct ws_client *client;
    struct ws_task_history *history;
    int index; /* in system.tasks */
    int priority;
    uint64_t id;
    uint64_t newest_job;
};

struct ws_gpu_job {
    struct ws_list node; /* dispatch->open, by seq */
    /* what each snapshot looks at, of each job, stands together */
    enum ws_job_state state;
    enum ws_job_part part; /* KERNEL: all there is, where the policy doesn't want parts */
    bool booked;           /* its place and time are fixed: see booking */
    bool given_up;         /* the policy dropped it: it runs when nothing else does */
    bool is_priced;        /* moves says what its launches that wait name */
    bool stopping;         /* preempted, but something of it is still on the device */
    bool gated;            /* it needs its GPU as a whole, and can't be stopped (dispatch_gate.c) */
    bool due;              /* …the policy gave it one that is not free yet */
    bool refused;          /* a decision on it made no sense */
    bool cooperative; /* blocks of its launches must be there together, so it runs on all SMs of
                            * its task */
    bool aside;       /* others waited for it too long (dispatch_urge.c): policies don't see it */
    int index;        /* of its task, in system.tasks */
    uint64_t id, seq;
    double release_ms, deadline_ms; /* absolute; deadline INFINITY: none */
    double start_ms, predicted_ms;  /* of this start; end of it all as predicted */
    double part_done;               /* of the work that was stopped */
    double stretch; /* by what factor it takes longer at the clocks with which it started */
    uint32_t gpu;   /* if it has started */
    int n_sm;
    int next_on_gpu;              /* by number of job, in the snapshot; -1: the last */
    struct ws_policy_move *moves; /* [n_visible]; NULL: not asked for, there is one GPU only */
    struct ws_sm_set sms;         /* n == 0: all */

    struct ws_list idle_node; /* dispatch->idle, if it is there */
    struct ws_gpu_task *task;
    struct ws_context *context;
    struct ws_rapl rapl; /* when it began on the host's processor; n == 0: nobody counts */
    struct ws_policy_decision booking;
    uint64_t due_seq;
    uint32_t n_in_flight; /* operations the device has */
    struct ws_list held;  /* streams whose head waits for its turn */
    uint64_t n_launches, busy_ns, first_start_ns, last_end_ns, energy_uj;
    uint32_t n_blocks; /* of its largest launch */
    uint64_t n_all_blocks;
    /* Predicted for its launches when they had ended: with what was learned from them, and without
     * what ran beside them. The error is in uJ. */
    double learned_ns, learned_uj, learned_error_uj;
    /* dispatch_urge.c */
    uint32_t n_yields;         /* how often it was put aside */
    uint64_t waited_ns;        /* it has had its GPU, since it last began, while others waited */
    uint64_t waited_from_ns;   /* host clock at the last look; 0: nobody waited then */
    uint64_t waited_device_ns; /* …the device's */
    uint64_t company_ns;       /* host clock at the last look that saw other clients at work */
};

enum { WS_EXPLAINED_MOVES = 8 };
struct ws_explained { /* a decision, for later questions */
    uint64_t job;
    uint32_t uid; /* of the job's client */
    double at_ms;
    enum ws_decision_kind kind;
    int gpu, n_sm;
    double end_ms, energy_mj; /* predicted; NAN: not */
    double energy_error;      /* relative standard error of what the task takes; 0: not known */
    char task[WS_TASK_NAME_BYTES], why[WS_POLICY_WHY];
    struct ws_policy_move moves[WS_EXPLAINED_MOVES];
    uint32_t n_moves; /* 0: not looked at */
};
enum { WS_EXPLAINED_MAX = 1024 };

struct ws_pending_event {
    enum ws_policy_event_kind kind;
    uint64_t job;
    int task, gpu;
};

struct ws_dispatch {
    struct ws_server *server;
    const struct ws_policy_ops *ops;
    struct ws_policy *policy;
    struct ws_list open, tasks; /* jobs; the clients that have or had some */
    struct ws_list idle; /* jobs that the device has nothing of since they were last looked at */
    size_t n_open, n_running; /* jobs; of those, RUNNING ones */
    struct ws_list unused;    /* free ones (node) */
    void **blocks;            /* [n_blocks]: of them, which keep them close together */
    size_t n_blocks, cap_blocks;
    struct ws_task_history *histories;
    uint64_t n_due; /* ever */
    uint64_t last_seq;
    uint64_t urge_next_ns; /* host clock: the next look at who waits for whom */
    uint64_t urge_seen;    /* the newest job at the last one */
    bool urging;           /* somebody did at the last one, or a job was to stop */
    uint64_t n_jobs, n_asked, n_refused, n_starts, n_preemptions, n_fused, n_migrations, n_rescued,
        n_failed, n_cpu;
    char unprepared[256]; /* what prepare() said last */
    uint64_t decide_ns_max, decide_ns_sum, foresee_ns_max;

    /* what the policy sees (dispatch_system.c) */
    bool stale; /* tasks or costs have changed since prepare() */
    struct ws_policy_system system;
    struct ws_policy_gpu_type types[WS_GPU_MAX_TYPES];
    int cpu_type; /* behind system.types; -1: none */
    struct ws_policy_gpu gpus[WS_MAX_GPUS_CONFIGURED];
    struct ws_policy_task *policy_tasks;
    struct ws_policy_template template;
    int *template_tasks, *template_max;
    struct ws_policy_gpu_state gpu_states[WS_MAX_GPUS_CONFIGURED];
    struct ws_policy_run *runs;
    struct ws_policy_job *jobs;
    struct ws_gpu_job **by_job;   /* [n_jobs] */
    struct ws_allocation **named; /* [n_named], see dispatch_move.c */
    size_t n_named, cap_named;
    uint64_t n_notings;
    size_t cap_tasks, cap_runs, cap_jobs, cap_by_job;
    struct ws_policy_decisions decisions;

    char options[512]; /* of the policy, as given */
    bool off;          /* the policy is "none" now: nothing is held, no job begins */
    bool asking;
    struct ws_pending_event *events;
    size_t n_events, cap_events;
    struct ws_alarm_queue *timer;
    double timer_ms;                /* asked for last; NAN: it has rung */
    struct ws_explained *explained; /* ring */
    uint64_t n_explained;
};

static inline double ws_dispatch_now_ms(const struct ws_dispatch *d)
{
    return (double)ws_device_now_ns(d->server->gpus[0].device) / 1e6;
}

/* dispatch.c */
void ws_dispatch_jobs_free(struct ws_dispatch *d); /* all, when the dispatcher ends */

/* dispatch_decide.c */
/* Something has happened that the policy is to be asked about: by the next
 * ws_dispatch_work_off(). */
void ws_dispatch_event(struct ws_dispatch *d, enum ws_policy_event_kind kind, uint64_t job,
                       int task, int gpu);
/* Asks about all events and carries out what is decided. Does nothing where that is being done. */
void ws_dispatch_work_off(struct ws_dispatch *d);
void ws_dispatch_set_state(struct ws_dispatch *d, struct ws_gpu_job *g, enum ws_job_state state);
void ws_dispatch_wake_held(struct ws_gpu_job *g); /* the streams that wait for the job's turn */
void ws_dispatch_preempt(struct ws_dispatch *d, struct ws_gpu_job *g); /* asks it to stop */
/* The first cooperative launch of a job that runs: all SMs of its task count as its own from now
 * on, although others may have some of them until they end. */
void ws_dispatch_widen(struct ws_dispatch *d, struct ws_gpu_job *g);
void ws_dispatch_set_clocks(struct ws_dispatch *d, const struct ws_policy_decision *p);

/* dispatch_system.c */
WS_MUST_CHECK int ws_dispatch_system_init(struct ws_dispatch *d);
void ws_dispatch_system_deinit(struct ws_dispatch *d);
/* Makes system anew if tasks or costs have changed, and has the policy prepare. Return: 0 or
 * -ENOMEM. */
WS_MUST_CHECK int ws_dispatch_refresh(struct ws_dispatch *d);
/* Fills d->jobs, by_job, gpu_states. Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_dispatch_snapshot(struct ws_dispatch *d, struct ws_policy_snapshot *ret);
/* The client's task, made at its first job. NULL: no memory. */
struct ws_gpu_task *ws_gpu_task_of(struct ws_dispatch *d, struct ws_client *c);
void ws_gpu_task_free(struct ws_dispatch *d, struct ws_gpu_task *t);
/* A job begins with launch @j: predicts what it takes, where no job of the task has ended yet. */
void ws_dispatch_foresee(struct ws_dispatch *d, struct ws_gpu_job *g, const struct ws_command *j);
/* Takes in what a finished job took. */
void ws_dispatch_learn(struct ws_dispatch *d, const struct ws_gpu_job *g);
/* A launch of the job has ended. */
void ws_dispatch_learn_launch(struct ws_dispatch *d, struct ws_gpu_job *g,
                              const struct ws_command *j);

/* dispatch_check.c: between the policy and what is carried out */
/* Why @p can't be carried out, as text that stays good; NULL: it can. @taken: the SMs given out so
 * far on each GPU: those of running jobs and of decisions before @p; an accepted start is added. */
const char *ws_dispatch_nonsense(const struct ws_policy_snapshot *snap,
                                 const struct ws_policy_decision *p, struct ws_sm_set *taken);

/* dispatch_explain.c */
void ws_dispatch_note(struct ws_dispatch *d, const struct ws_gpu_job *g,
                      const struct ws_policy_decision *p);

/* dispatch_gate.c: whether @p, which makes sense, has to wait: because it is about a gated job,
 * or because one has the GPU or is about to have it. */
bool ws_dispatch_gate_holds(struct ws_dispatch *d, struct ws_policy_decision *p);
/* The gated job that is to start now; NULL: none. */
struct ws_gpu_job *ws_dispatch_gate_next(struct ws_dispatch *d);

/* dispatch_urge.c: jobs that others wait for */
/* Looks who waits for whom, if it is time. */
void ws_dispatch_urge_turn(struct ws_dispatch *d);
/* A job that was put aside has stopped, and has more to do. */
void ws_dispatch_come_back(struct ws_dispatch *d, struct ws_gpu_job *g);

/* dispatch_fuse.c: one launch, on @p's GPU and SMs, of what stands at the heads of streams of
 * @members, which are about to start.
 * Return: false: they run by themselves. */
bool ws_dispatch_fuse(struct ws_dispatch *d, struct ws_gpu_job *const *members, uint32_t n,
                      const struct ws_policy_decision *p);
/* dispatch_move.c: moves a context to another GPU. Return: false: it can't be, and stays. */
bool ws_context_move(struct ws_context *x, uint32_t gpu);
/* Fills @g->moves: what each GPU would take, as its waiting launches are now. Nothing where
 * there is one GPU only, or no memory. */
void ws_dispatch_price(struct ws_dispatch *d, struct ws_gpu_job *g);

#endif
