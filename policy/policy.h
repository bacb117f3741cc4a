// SPDX-License-Identifier: Apache-2.0
/* policy/policy.h - who runs next, where, on which SMs, at which clocks. The daemon's dispatcher
 * and the simulators call the same object code, so what a simulation shows is evidence for the live
 * system.
 *
 * A policy is a function of a snapshot and an event to a list of decisions. It does no I/O, starts
 * no thread, reads no clock and keeps no global. What prepare() computed (an allocation,
 * priorities) and indexes that only save time may live in the policy's own object; given the same
 * prepare() and the same sequence of decide() calls, the decisions are the same.
 *
 * Units. Times are doubles in milliseconds on the caller's clock (the cluster simulator counts in
 * slots: policies only add and compare times, so any one unit will do, as long as costs use it
 * too). Power in W; energy in the product of the two (mJ for ms, W·slot for slots). SM counts are
 * whole SMs.
 *
 * Threads: one at a time for each policy object. Errors: base/error.h. */
#ifndef WS_POLICY_POLICY_H
#define WS_POLICY_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/macros.h"
#include "base/sm_set.h"

struct ws_dvfs_task;   /* models/dvfs.h: P0, gamma, c, t0, D, delta */
struct ws_mwp_gpu;     /* models/mwp_cwp.h: clocks, bandwidth, latencies */
struct ws_mwp_kernel;  /* models/mwp_cwp.h: instructions per thread, blocks, … */
struct ws_power_model; /* models/power.h: coefficients of a fit */

/* ---- what does not change while a policy runs ---- */

/* A kind of GPU. */
struct ws_policy_gpu_type {
    const char *name; /* of the catalog: "rtx3070" */
    int n_sm;         /* physical */
    double static_w;  /* while nothing runs (P_s of sBEET-mg, Eq. 2) */
    double idle_w_per_sm;
    double switch_ms; /* between two contexts (theta of GCAPS) */
    double update_ms; /* taking work off or putting it on (epsilon of GCAPS) */
    bool preempts;    /* a job that runs can be taken off between blocks, and put back later */
    double turn_on;   /* energy of switching it on, in clusters (Delta of EDL); 0: none */
    /* For policies that predict from what kernels execute; NULL, 0: not known. */
    const struct ws_mwp_gpu *mwp;       /* models/mwp_cwp.h */
    const struct ws_power_model *power; /* models/power.h: above static_w */
    double link_bytes_per_ms;           /* to and from the host, one direction */
};

/* One GPU (in a cluster: one CPU-GPU pair). */
struct ws_policy_gpu {
    int type;     /* index into ws_policy_system.types */
    int sm_limit; /* SMs that may be given out, 1…n_sm */
    int n_slots;  /* jobs that may run side by side (worker threads), ≥ 1 */
    int n_copy_engines;
    int server; /* the GPUs of one server are switched off together; -1: never off */
};

/* What a job of one task costs on one type of GPU. Arrays are indexed by SM count - 1. */
struct ws_policy_cost {
    int n_sm;              /* length of the arrays; 0: unknown on this type */
    const double *wcet;    /* kernel time by SM count */
    const double *power_w; /* measured power of the whole GPU by SM count; NULL: not measured */
    double h2d, d2h;       /* copies in and out */
    double dyn_w_per_sm;
    /* Relative standard error of energies predicted from these numbers; 0: they are taken for
     * exact. */
    double energy_error;
    const struct ws_dvfs_task *dvfs;   /* NULL: clocks are not scaled */
    const struct ws_mwp_kernel *model; /* NULL: no model inputs */
    int n_blocks, n_stops;             /* of the kernel; 0: unknown. n_stops: policy/stop.h */
};

/* Jobs of one program. Priorities: larger is higher; equal ones are served in order of arrival. */
struct ws_policy_task {
    int id;
    const char *name;
    double period, deadline, offset; /* deadline relative to release; 0: none */
    double jitter;    /* a release may be later than period and offset say, by up to this */
    int priority;     /* real-time ones > 0; best effort: 0 */
    int gpu_priority; /* of its GPU work, where a policy keeps that apart; else = priority */
    bool best_effort, busy_wait;
    double weight;                     /* share, 1 by default */
    double utilization;                /* as stated for bin packing; 0: not stated */
    struct ws_sm_set sms;              /* fixed SM set (stgm); empty: none */
    const struct ws_policy_cost *cost; /* [system.n_types] */
    double cpu_ms, cpu_mj;             /* the same work on the host's processor; 0: can't */
    double in_bytes, out_bytes;        /* copied */
};

/* Kernels that may become one launch: there is a template for any mix up to the limits. */
struct ws_policy_template {
    const int *tasks; /* indices into system.tasks */
    const int *n_max; /* instances of each */
    int n_tasks;
};

struct ws_policy_system {
    const struct ws_policy_gpu_type *types;
    const struct ws_policy_gpu *gpus;
    const struct ws_policy_task *tasks; /* by decreasing priority */
    const struct ws_policy_template *templates;
    int n_types, n_gpus, n_tasks, n_templates;
};

/* ---- what changes ---- */
enum ws_job_state { WS_JOB_WAITING, WS_JOB_RUNNING, WS_JOB_PREEMPTED };

/* What a job asks for now, where the caller gives its copies and kernels one by one (stgm); else
 * all of it counts as the kernel. */
enum ws_job_part { WS_PART_KERNEL, WS_PART_COPY_IN, WS_PART_COPY_OUT };

/* What must happen before a job can run on a GPU where its data is not. This is our extension; in
 * the papers each job copies its input again. */
struct ws_policy_move {
    double bytes; /* of the data that its launches use and that must be moved */
    double ms;    /* predicted time of the move; INFINITY: the job cannot run there */
    double mj;    /* predicted energy of the destination GPU during the move */
    bool here;    /* the job's program uses this GPU now */
};

/* A released job that is not finished. */
struct ws_policy_job {
    uint64_t id;
    uint64_t seq; /* order of arrival, unique */
    enum ws_job_part part;
    int task; /* index into system.tasks */
    enum ws_job_state state;
    double release, deadline; /* absolute; deadline INFINITY: none */
    int gpu;                  /* where it runs or ran; -1: nowhere yet */
    double done;  /* share of its kernel work that is done, or not asked for now, 0…1 */
    double after; /* what is to be done after it by the deadline takes so long; 0: not known */
    const struct ws_dvfs_task *dvfs;    /* of this job; NULL: the task's cost[].dvfs */
    const struct ws_policy_move *moves; /* [system.n_gpus]; NULL: it has no data anywhere yet */
};

/* A job on a GPU. A slot and its SMs are held until `end`. */
struct ws_policy_run {
    int job;  /* index into snapshot.jobs; -1: slot free */
    int task; /* index into system.tasks */
    struct ws_sm_set sms;
    int n_sm;
    /* Predicted: copy in from start, kernel gpu_start…gpu_end, copy out until end. */
    double start, gpu_start, gpu_end, end;
    bool leaves; /* it is being taken off, until `end`; gpu_end is what it would be otherwise */
};

enum ws_gpu_power { WS_GPU_ON, WS_GPU_OFF };
struct ws_policy_gpu_state {
    const struct ws_policy_run *slots;
    int n_slots; /* = gpus[].n_slots; more where work is time-sliced */
    int n_running;
    enum ws_gpu_power power;
    double free_at;             /* when all it has been given will be done (mu of EDL) */
    double volt, f_core, f_mem; /* 1 = default */
};

struct ws_policy_snapshot {
    const struct ws_policy_system *system;
    double now;
    const struct ws_policy_gpu_state *gpus; /* [system->n_gpus] */
    const struct ws_policy_job *jobs;       /* all that are released and not finished, by seq */
    int n_jobs;
    bool explain;     /* the caller wants ws_policy_decision.why */
    bool mark_others; /* …in which braces stand around what tells of another job */
};

enum ws_policy_event_kind {
    WS_EVENT_ARRIVAL,    /* .job was released, or its GPU segment opened */
    WS_EVENT_COMPLETION, /* .job_id, which is in the jobs no more, left .gpu; .task was its task */
    WS_EVENT_TIMER,      /* the time of an earlier WS_DECIDE_TIMER, or the caller's tick */
    WS_EVENT_CHANGED     /* GPUs or tasks came or went; prepare() has been called */
};
struct ws_policy_event {
    enum ws_policy_event_kind kind;
    int job;  /* index into snapshot.jobs; -1: none, or several */
    int task; /* index into system.tasks; -1: none */
    int gpu;  /* -1: none */
    uint64_t job_id;
};

/* ---- decisions ---- */
enum { WS_POLICY_WHY = 400 }; /* bytes of an explanation */
enum ws_decision_kind {
    /* .job on .gpu, SMs .sms (.n_sm of them), at .at (now if not later), clocks .volt… */
    WS_DECIDE_START,
    WS_DECIDE_FUSE,    /* like START; all jobs with the same .group become one launch */
    WS_DECIDE_WAIT,    /* .job stays where it is; says why */
    WS_DECIDE_PREEMPT, /* take .job off .gpu at the next block boundary */
    WS_DECIDE_RESUME,  /* put .job back on .gpu (another one than before: migrate) */
    WS_DECIDE_RUN_CPU, /* .job on the host's processor */
    WS_DECIDE_CLOCKS,  /* .gpu to .volt, .f_core, .f_mem */
    WS_DECIDE_POWER,   /* server .server (and all its GPUs) .on or off */
    WS_DECIDE_TIMER,   /* call again at .at with WS_EVENT_TIMER */
    WS_DECIDE_DROP,    /* .job can't meet its deadline and the policy gives it up */
    _WS_DECISION_KIND_N
};
struct ws_policy_decision {
    enum ws_decision_kind kind;
    int job; /* index into snapshot.jobs */
    int gpu, server, group;
    bool on;
    struct ws_sm_set sms;
    int n_sm;
    double at;
    double gpu_start, gpu_end, end; /* predicted, as ws_policy_run */
    double volt, f_core, f_mem;     /* 1 = default */
    double energy;                  /* predicted for this choice; NAN: not predicted */
    /* What was compared and why this won; "" unless snapshot.explain. The last member: only its
     * first byte is cleared. */
    char why[WS_POLICY_WHY];
};

/* A growing list, kept by the caller from call to call so that deciding does not allocate. */
struct ws_policy_decisions {
    struct ws_policy_decision *v;
    size_t n, cap;
    /* decide() sets this if it will decide nothing more until the next arrival or completion, so
     * that a caller which asks at every tick need not ask before. The caller clears it. */
    bool steady;
};
#define WS_POLICY_DECISIONS_NULL ((struct ws_policy_decisions){0})

/* Appends one, zeroed but for kind, job, gpu (server -1, clocks 1, energy NAN). NULL when out of
 * memory. Valid until the next. */
struct ws_policy_decision *ws_policy_decide(struct ws_policy_decisions *d,
                                            enum ws_decision_kind kind, int job, int gpu);
void ws_policy_decisions_deinit(struct ws_policy_decisions *d);
/* Writes @p->why if @snap wants explanations; cut where it is too long. What @fmt tells of a job
 * that is not @p's stands in braces, as in "waits: {task 4 (priority 7)} is higher". They are
 * taken out unless snap->mark_others. */
void ws_policy_explain(const struct ws_policy_snapshot *snap, struct ws_policy_decision *p,
                       const char *fmt, ...) WS_PRINTF(3, 4);
/* Takes the braces out of @why; with @hide, puts "another job" in the place of what they hold. */
void ws_policy_unmark(char *why, bool hide);
/* "start", "fuse", … */
const char *ws_decision_name(enum ws_decision_kind kind);

/* ---- policies ---- */
struct ws_policy; /* never defined: each policy converts it to a structure of its own */

/* One tunable of a policy, as it stands in policy.d and after `--option`. */
struct ws_policy_option {
    const char *name;     /* "theta" */
    const char *fallback; /* "0.9" */
    const char *help;     /* "shortest length after readjustment, …" */
};

struct ws_policy_ops {
    const char *name;                       /* "sbeet-mg" */
    const char *summary;                    /* one line, with the paper */
    const struct ws_policy_option *options; /* ends with a NULL name; NULL: none */

    /* @options: "name=value" strings, NULL at the end; NULL: all defaults. Return: 0;
     * WS_POLICY_E_OPTION, and @ret_error says what was wrong and what would be right; or
     * negative. */
    int (*make)(struct ws_policy **ret, const char *const *options, char *ret_error,
                size_t error_bytes);
    void (*free)(struct ws_policy *p); /* NULL ok */

    /* The offline part: allocation of tasks to GPUs, SM sets, priorities. Called before the first
     * decide() and whenever tasks or GPUs change; @system is borrowed until the next prepare() or
     * free(). Optional. Return: 0; WS_POLICY_E_UNFIT if a task fits on no GPU (@ret_error names it,
     * and decide() works all the same); WS_POLICY_E_COST if a cost is missing; or negative. */
    int (*prepare)(struct ws_policy *p, const struct ws_policy_system *system, char *ret_error,
                   size_t error_bytes);

    /* Appends to @ret what is to be done now, in order. Unless `once` is set, it may be called
     * again for the same snapshot and gives the same answer. Must not block. Return: 0 or
     * negative. */
    int (*decide)(struct ws_policy *p, const struct ws_policy_snapshot *snap,
                  const struct ws_policy_event *event, struct ws_policy_decisions *ret);
    bool once; /* keeps indexes that follow the events: each event must be given once, in order */
    /* A START for a later time is final. Without this, the policy is asked again at that time. */
    bool books;
    /* Decides WS_DECIDE_FUSE. It is asked about a job at its first launch; copies that come before
     * are carried out without asking. */
    bool fuses;
    bool parts; /* wants copies and kernels as requests of their own (ws_policy_job.part) */
};
enum { _WS_POLICY_OK, WS_POLICY_E_OPTION, WS_POLICY_E_UNFIT, WS_POLICY_E_COST };

/* By name; NULL: there is none. */
const struct ws_policy_ops *ws_policy_find(const char *name);
/* All, by name; @ret_n of them. */
const struct ws_policy_ops *const *ws_policy_all(size_t *ret_n);

/* For make(): the value of option @name: the last "name=value" of @options, else the fallback.
 * NULL: no such option. Borrowed. */
const char *ws_policy_option_text(const struct ws_policy_option *table, const char *const *options,
                                  const char *name);
/* For make(): all of @options are in the table. Return: 0 or WS_POLICY_E_OPTION with @ret_error. */
int ws_policy_options_check(const struct ws_policy_option *table, const char *const *options,
                            char *ret_error, size_t error_bytes);
/* For make(): the value as a number in [@min, @max]. Return: 0 or WS_POLICY_E_OPTION with
 * @ret_error. */
int ws_policy_option_number(const struct ws_policy_option *table, const char *const *options,
                            const char *name, double min, double max, double *ret, char *ret_error,
                            size_t error_bytes);

#endif
