/* SPDX-License-Identifier: Apache-2.0 */
/* backend/steps/steps.h - batch jobs and their steps, as the machine's batch scheduler announced
 * them.
 *
 * A step is a process of the scheduler and everything that it starts. A program is of the step if
 * that process is among its ancestors, which the kernel tells and the program cannot choose. The
 * step ends with the process, however that ends. A batch job keeps the sums of its steps until the
 * scheduler has collected them. Threads: the loop. */
#ifndef WS_BACKEND_STEPS_STEPS_H
#define WS_BACKEND_STEPS_STEPS_H

#include <stdbool.h>
#include <stdint.h>
#include "base/list.h"
#include "base/macros.h"
#include "base/sm_set.h"
#include "base/table.h"

struct ws_account;

/* _TURN: steps whose ends are handled at a time. */
enum { WS_STEPS_GPUS = 32, WS_STEPS_BATCHES = 4096, WS_STEPS_TURN = 64 };

/* What a batch job may have on this machine, all its programs together. */
struct ws_allotment {
    uint32_t gpus;         /* a bit for each GPU that its programs see */
    uint32_t n_sms;        /* on each of them; 0: all */
    uint64_t memory_bytes; /* on all of them together; 0: no limit of its own */
};

/* What the user asked for when he submitted the step; 0: nothing was asked. */
struct ws_step_wishes {
    double period_ms, deadline_ms;
    bool has_priority;
    int priority;
    uint32_t n_sms;        /* of each program */
    uint64_t memory_bytes; /* of each program */
    /* Of its GPUs while it works, 1 = default; volt 0: the policy decides. */
    double volt, core, memory;
};

/* What programs that have ended used. */
struct ws_step_use {
    uint64_t n_programs, n_kernels, device_ns, busy_uj, idle_uj, n_jobs, n_late;
};

struct ws_batch_job {
    struct ws_list node; /* ws_steps.batches */
    struct ws_list steps;
    uint64_t job;
    uint32_t uid;
    struct ws_allotment may;
    struct ws_sm_set sms[WS_STEPS_GPUS]; /* which SMs, where may.n_sms says how many */
    struct ws_step_use use;
    uint32_t n_programs; /* not gone yet */
    uint32_t n_steps;    /* ever */
};

struct ws_batch_step {
    struct ws_list node; /* ws_batch_job.steps */
    struct ws_batch_job *batch;
    struct ws_steps *all;
    struct ws_account *account; /* its user's; reference */
    uint32_t number, pid;
    int pidfd;   /* of the process; -1: it has ended */
    bool closed; /* its end has been handled: the last program that leaves frees it */
    struct ws_step_wishes wishes;
    uint32_t n_programs; /* not gone yet */
    UT_hash_handle hh;   /* ws_steps.by_pid, until its process has ended */
};

struct ws_steps {
    struct ws_list batches; /* oldest first */
    struct ws_batch_step *by_pid;
    uint32_t n;
    int epoll_fd; /* readable when a step's process has ended; -1: there is none */
};

struct ws_step_info { /* an announcement */
    uint64_t job;
    uint32_t number, uid, pid;
    struct ws_allotment may;
    struct ws_step_wishes wishes;
    struct ws_account *account; /* of the user: is charged for the step */
};

enum {
    _WS_STEPS_OK,
    WS_STEPS_E_GONE,  /* there is no such process */
    WS_STEPS_E_USER,  /* the batch job is another user's */
    WS_STEPS_E_FULL,  /* WS_STEPS_BATCHES batch jobs are here, and each has programs or a step */
    WS_STEPS_E_SHARE, /* the user may have no more steps: WS_RESOURCE_DESCRIPTORS */
};

void ws_steps_init(struct ws_steps *s);
void ws_steps_deinit(struct ws_steps *s);

/**
 * ws_steps_begin() - a step has begun
 * @ret: the step; *ret->batch is new if n_steps is 1 there, and then its SMs are yet to be chosen
 *
 * The allotment is the batch job's: what its first step said holds for all. Where there are too
 * many batch jobs, the oldest one of those that are over goes, uncollected.
 *
 * Return: 0, WS_STEPS_E_…, or a negative errno.
 */
WS_MUST_CHECK int ws_steps_begin(struct ws_steps *s, const struct ws_step_info *info,
                                 struct ws_batch_step **ret);
/* The step of a program of user @uid, whose own process number and its ancestors' are pids[n].
 * NULL: none. */
struct ws_batch_step *ws_steps_of(const struct ws_steps *s, const uint32_t *pids, uint32_t n,
                                  uint32_t uid);
/* A step whose process has ended since the last call; it gets no more programs. Those that it has
 * are the caller's to end. NULL: none. */
struct ws_batch_step *ws_steps_ended(struct ws_steps *s);
struct ws_batch_job *ws_steps_find(const struct ws_steps *s, uint64_t job); /* NULL: none */
/* The batch job has been collected. It has no programs; steps that have not ended go with it. */
void ws_steps_forget(struct ws_steps *s, struct ws_batch_job *b);

void ws_step_enter(struct ws_batch_step *t); /* a program has come */
/* One is gone, and used @use. Frees the step if it is closed and this was its last. */
void ws_step_leave(struct ws_batch_step *t, const struct ws_step_use *use);
/* The step has ended, and whoever is still in it goes. Frees the step if nobody is. */
void ws_step_close(struct ws_batch_step *t);

#endif
