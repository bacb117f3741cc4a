/* SPDX-License-Identifier: Apache-2.0 */
/* policy/lookahead/rollout.h - what will happen if a job is started here and now: a simulation of
 * the next moments, short enough to be run several times for each decision.
 *
 * A rollout begins with what runs now and with the jobs that are ready. It releases the jobs that
 * are to come within a horizon, places each by a greedy rule, and goes on until the last job has
 * ended. Its outcome is the number of jobs that miss their deadlines, each counted as the weight of
 * its task, and the energy above the static power of all GPUs. In both, a job that is yet to come
 * counts less, and the less, the later it comes: the more will be decided before, and the less a
 * rollout knows about it.
 *
 * The greedy rule. Ready jobs are taken by earliest deadline. Each goes to a GPU with a free slot,
 * and to a number of free SMs, with which it ends by its deadline. Of these places the cheapest is
 * taken. A job that would be late everywhere is not started. A job that must wait keeps nothing
 * from others. Cheap means little energy, if the base says nothing else:
 *     E = W(m)·m·(pd - pi) + max(0, end - awake_until(k))·M·pi
 * where W(m) is the time of its kernel on m SMs, pd and pi are the power of a busy and of an idle
 * SM, M is the number of SMs of the GPU, and awake_until(k) is when the last job there ends. This
 * is what the job adds to Eq. 2 of sBEET-mg (RTSS 2022), by which a GPU on which nothing runs draws
 * static power only.
 *
 * In overload, a base of a rollout may say more than what is cheap: jobs of the tasks that take
 * most of the GPUs are given up, so that those of the others are in time; the smallest job is taken
 * first, whatever its deadline; each task has one GPU, such that the load is even. What a job takes
 * is its SMs, and a share of all SMs of its GPU, times its time, divided by the task's weight
 * (sizes.c).
 *
 * Clocks. If the policy may change them, a place has clocks, too. On a GPU where nothing runs these
 * are the default ones, or some that are worth considering for the job (clocks.h). Where a job
 * runs they are those of the GPU, or higher. Clocks are not lowered there, so that jobs that have
 * started end when predicted, or earlier.
 *
 * The work is counted in evaluations: a place that is priced, or a job that is looked at or copied.
 * A rollout ends without an outcome when its limit is reached.
 *
 * Units: as policy.h. Threads: one at a time for each object. Only for files of policy/. */
#ifndef WS_POLICY_ROLLOUT_H
#define WS_POLICY_ROLLOUT_H

#include "policy/clocks.h"
#include "policy/policy.h"

/* What a job takes of a GPU's SMs beside its own, in overload and in sizes. */
#define WS_ROLLOUT_ALL_SMS 0.3

/* By which an end may come after the deadline, and two counts of misses may differ: rounding in
 * sums. */
#define WS_ROLLOUT_SLIP 1e-9

enum {
    WS_ROLLOUT_COUNTS_MAX = 32,    /* of SMs, that are considered for a task on a GPU */
    WS_ROLLOUT_RELEASES_MAX = 128, /* that are foreseen */
    WS_ROLLOUT_TAIL = 30           /* lengths of kernels, by how often they were exceeded */
};

/* By what all jobs of a rollout are placed, but the first. */
struct ws_rollout_base {
    /* 0: the place of least energy is cheap; else that of the least (SMs + share·all SMs of the
     * GPU) times the time for which they are taken */
    double share;
    bool by_size; /* the smallest ready job is taken first, not the one of the earliest deadline */
    bool at_home; /* each job goes to the GPU of its task */
    bool waits;   /* a job waits for the end of a run, if its place is cheaper then */
    int n_given_up; /* so many tasks, those of the largest jobs, whose jobs are not started */
};

/* Where a job may be started. */
struct ws_rollout_place {
    int gpu; /* -1: nowhere now */
    int n_sm;
    int off;                        /* 1 + which of the runs is taken off its GPU before; 0: none */
    double gpu_start, gpu_end, end; /* as ws_policy_run */
    double hold;                    /* if nowhere: until when it is not to be started */
    int awaited; /* if nowhere: 1 + the GPU with a cheaper place later, until `end`; 0: none */
    double energy;
    struct ws_policy_clocks clocks;
};
struct ws_rollout_outcome {
    double missed, energy;
    bool own; /* the job that the rollout is about is among the missed */
};

/* A number of SMs worth giving to a task: fewer take longer. */
struct ws_rollout_count {
    double kernel, dyn; /* time, and energy above that of idle SMs */
    int n_sm;
};
struct ws_rollout_item {                                   /* what a task costs on a type of GPU */
    struct ws_rollout_count counts[WS_ROLLOUT_COUNTS_MAX]; /* by rising n_sm */
    int n_counts;                                          /* 0: unknown */
    int8_t most[WS_SM_MAX + 1]; /* by free SMs: the last of counts that fits; -1: none */
    double in, out;
    double shrink; /* of kernels, at the clocks at which they are shortest */
    const struct ws_policy_cost *cost;
    struct ws_policy_clocks clocks[WS_POLICY_CLOCKS_MAX]; /* beside those that are there */
    int n_clocks;
};
struct ws_rollout_gpu {
    int n_slots, n_sm; /* free ones */
    int n_running;
    double awake_until;
    double open_at; /* from when on jobs can be started, since one is being taken off */
    /* Only if the base says that jobs wait: until when those that wait for it keep it, when the
     * first of its runs ends, and how many SMs are given back then. */
    double kept_until, first_end;
    int n_sm_back;
    struct ws_policy_clocks clocks; /* while a job runs there */
};
struct ws_rollout_run {
    double end;
    int gpu, n_sm;
};
struct ws_rollout_job {
    const struct ws_policy_move *moves; /* [n_gpus]; NULL: nothing to move */
    double deadline;                    /* INFINITY: none, or passed */
    double order;                       /* by which it is taken: its deadline, or its size */
    double left;                        /* share of its kernel work that is left */
    double weight;                      /* in the outcome */
    double importance;                  /* of a miss: the task's weight */
    double hold;                        /* it is not started before, nor at once */
    double margin;                      /* so many times the predicted kernel is allowed for */
    int task, job;                      /* index into the snapshot's jobs; -1: is yet to come */
    bool preempted;
    bool blocked; /* nothing has become free since no place was found for it */
    bool own;     /* the rollout is about it */
};
/* What must be known of a run, beside the above, to take it off. */
struct ws_rollout_kernel {
    struct ws_rollout_job job; /* as it was when it was started */
    double start, end;
};
/* All that changes in a rollout. */
struct ws_rollout_state {
    double now;
    struct ws_rollout_gpu *gpus;
    struct ws_rollout_run *runs;
    struct ws_rollout_kernel *kernels; /* of the runs, if jobs can be taken off */
    struct ws_rollout_job *ready;      /* by their order */
    int n_runs, n_ready;
    size_t cap_runs, cap_kernels, cap_ready;
    struct ws_rollout_base base;
    struct ws_rollout_outcome outcome;
};
/* Puts @job among the ready jobs, by its order. Return: where. */
static inline int ws_rollout_insert(struct ws_rollout_state *s, const struct ws_rollout_job *job)
{
    int i = s->n_ready++;
    for (; i > 0 && s->ready[i - 1].order > job->order; i--)
        s->ready[i] = s->ready[i - 1];
    s->ready[i] = *job;
    return i;
}
/* What the kernels of a task took, in predicted times (margin.c). */
struct ws_rollout_margin {
    double most;                  /* of late; ≥ 1 */
    double tail[WS_ROLLOUT_TAIL]; /* share of those that took longer than 1.0, 1.1, 1.2, … */
    int n;                        /* were seen */
};
#define WS_ROLLOUT_MARGIN_NONE ((struct ws_rollout_margin){.most = 1})

struct ws_rollout_release {
    double at, weight;
    int task;
};

struct ws_rollout {
    const struct ws_policy_system *sys;
    const struct ws_dvfs_interval *interval; /* set by the caller; NULL: clocks are not changed */
    bool preempts;                           /* set by the caller: jobs can be taken off all GPUs */
    bool stops;                              /* …but some only when blocks have ended */
    double put_back_ms;                      /* the least that it takes to put one back */
    struct ws_rollout_item *items;           /* [n_tasks][n_types] */
    double *awake_w;                         /* [n_types]: M·pi */
    double *shortest;                 /* [n_tasks]: in, kernel and out, on the best empty GPU */
    double mean_shortest;             /* of tasks with a deadline; 0: there are none */
    struct ws_rollout_margin *margin; /* [n_tasks]: none after preparing, until one is learned */
    double *size;                     /* [n_tasks]: what a job takes where that is least */
    int *rank; /* [n_tasks]: by size, 0: the largest. Those without deadlines stand last */
    int *home; /* [n_tasks]: the GPU of the task, if each has one; -1: any */
    int *twin; /* [n_gpus]: an equivalent GPU before it; -1: none */
    struct ws_rollout_release releases[WS_ROLLOUT_RELEASES_MAX]; /* that are to come, by time */
    int n_releases;
    struct ws_rollout_release *coming; /* [n_tasks]: heap of next releases, while foreseeing */
    uint64_t n_evaluated;
    struct ws_rollout_state state, scratch;
};

/* For @s, which is borrowed. All but r->interval is zero before the first call. Return: 0 or
 * -ENOMEM. */
WS_MUST_CHECK int ws_rollout_prepare(struct ws_rollout *r, const struct ws_policy_system *s);
void ws_rollout_deinit(struct ws_rollout *r);

/* Makes r->state from the snapshot: what runs, and who is ready. Jobs of unknown cost are left out.
 * Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_rollout_load(struct ws_rollout *r, const struct ws_policy_snapshot *snap);
/* Makes r->releases: the first WS_ROLLOUT_RELEASES_MAX of all within @horizon, from @next[task] on
 * (INFINITY: none is foreseen), each @every[task] after the one before (NULL: its period). Weights
 * fall to 1/e within @fade. */
void ws_rollout_foresee(struct ws_rollout *r, const double *next, const double *every,
                        double horizon, double fade);

/* Of a miss: the task's weight, 1 if nothing else is said. */
static inline double ws_rollout_importance(const struct ws_rollout *r, int task)
{
    double weight = r->sys->tasks[task].weight;
    return weight > 0 ? weight : 1;
}
/* Makes r->size, r->rank and r->home from the items (sizes.c). For ws_rollout_prepare(). Return: 0
 * or -ENOMEM. */
WS_MUST_CHECK int ws_rollout_measure(struct ws_rollout *r);
static inline const struct ws_rollout_item *ws_rollout_item(const struct ws_rollout *r, int task,
                                                            int gpu)
{
    return &r->items[(size_t)task * (size_t)r->sys->n_types + (size_t)r->sys->gpus[gpu].type];
}
/* Whether an equivalent GPU that is empty, too, stands before @gpu, so that @j need not look at
 * @gpu. */
bool ws_rollout_is_double(const struct ws_rollout *r, const struct ws_rollout_state *s,
                          const struct ws_rollout_job *j, int gpu);
/* The largest number of SMs that is free on @gpu now, as an index into the item's counts; -1:
 * none. */
int ws_rollout_most(const struct ws_rollout *r, const struct ws_rollout_state *s,
                    const struct ws_rollout_job *j, int gpu);
/* The clocks with which @j may be started on @gpu: which = 0 are those that are there, or the
 * default where nothing runs, and which = 1…n_clocks of the item are others. Return: false: they
 * are the same as those that are there. */
bool ws_rollout_clocks(const struct ws_rollout *r, const struct ws_rollout_state *s,
                       const struct ws_rollout_job *j, int gpu, int which,
                       struct ws_policy_clocks *ret);
/* The place of @j on @gpu at @clocks with counts[@count] of the item. Return: whether it is in time
 * there. */
bool ws_rollout_place(struct ws_rollout *r, const struct ws_rollout_state *s,
                      const struct ws_rollout_job *j, int gpu,
                      const struct ws_policy_clocks *clocks, int count,
                      struct ws_rollout_place *ret);
/* The place that s->base takes; ret->gpu is -1 if there is none. */
void ws_rollout_greedy(struct ws_rollout *r, const struct ws_rollout_state *s,
                       const struct ws_rollout_job *j, struct ws_rollout_place *ret);
/* Lowers the margin of @j to the largest with which there is a place in time for it now. Return:
 * whether there is one. */
bool ws_rollout_cut_margin(struct ws_rollout *r, const struct ws_rollout_state *s,
                           struct ws_rollout_job *j);
/* Starts ready job @i of r->state at @p, or holds it if p->gpu is -1. */
void ws_rollout_commit(struct ws_rollout *r, int i, const struct ws_rollout_place *p);

/* ---- margins (margin.c) ---- */

/* A kernel of @task took so many times its predicted time. Tasks of which few kernels were seen
 * have the mean margin of all that were: what makes predictions wrong is seldom one task's. */
void ws_rollout_learn(struct ws_rollout *r, int task, double took);
/* The margin with which a job of @task is placed that has @ms until its deadline: not more than
 * leaves a place in which it is in time. */
double ws_rollout_margin_within(const struct ws_rollout *r, int task, double ms);
/* How likely @j is to take longer than its margin allows for. */
double ws_rollout_risk(const struct ws_rollout *r, const struct ws_rollout_job *j);

/* ---- taking off (taking_off.c), if r->preempts ---- */

/* Of the runs with a later deadline than @j, those without which @j would be in time on their GPU;
 * of these the one of the latest deadline, or, if @last is not -1, of the latest before that of
 * @last. @spared: only those that are in time themselves if they go on after @j. Return: which of
 * the runs; -1: there is none. */
int ws_rollout_victim(struct ws_rollout *r, const struct ws_rollout_state *s,
                      const struct ws_rollout_job *j, int last, bool spared);
/* When the GPU of @run is open to others, if it is taken off now. */
double ws_rollout_open_at(const struct ws_rollout *r, const struct ws_rollout_state *s, int run);
/* Takes @run off its GPU. Its job is ready again, and held until its blocks have ended. Return:
 * where it stands among the ready jobs. */
int ws_rollout_take_off(struct ws_rollout *r, struct ws_rollout_state *s, int run);
/* The place that the greedy rule takes for ready job @i of r->state on the GPU of @run, if that is
 * taken off. ret->gpu is -1 if there is none. */
void ws_rollout_place_instead(struct ws_rollout *r, int i, int run, struct ws_rollout_place *ret);

/* A job on one GPU: all that does not depend on the number of SMs. */
struct ws_rollout_site {
    const struct ws_rollout_count *counts;
    double from;
    int n_sm;
    double out, awake_until, awake_w, move_mj;
    struct ws_policy_clocks clocks;
    double stretch, extra_w_per_sm; /* at these clocks */
};
struct ws_rollout_site ws_rollout_site(const struct ws_rollout *r, const struct ws_rollout_state *s,
                                       const struct ws_rollout_job *j, int gpu,
                                       const struct ws_policy_clocks *clocks);
/**
 * ws_rollout_try() - what will have happened if ready job @i of r->state is started at @p (held
 * until p->hold if p->gpu is -1) and all goes on by the greedy rule
 * @base: of the jobs after it
 * @bound: of interest are only outcomes that are better: fewer misses, or as many and less energy
 * @limit: r->n_evaluated at which to stop
 * r->state does not change. Return: whether @ret is the outcome; false: it would be no better than
 * @bound, the limit was reached, or memory was short.
 */
bool ws_rollout_try(struct ws_rollout *r, int i, const struct ws_rollout_place *p,
                    const struct ws_rollout_base *base, const struct ws_rollout_outcome *bound,
                    uint64_t limit, struct ws_rollout_outcome *ret);

#endif
