/* SPDX-License-Identifier: Apache-2.0 */
/* slurm/planner/ctld.h - what slurmctld has, and what it is told, by Slurm's own commands squeue(1)
 * and scontrol(1). Slurm's library would do the same in less time, but it is under the GPL, and
 * wattshare links no such library. Threads: one at a time. */
#ifndef WS_SLURM_PLANNER_CTLD_H
#define WS_SLURM_PLANNER_CTLD_H

#include <stdbool.h>
#include "base/macros.h"

struct ws_ctld_node {
    const char *name, *features, *gres;
    const char *state; /* "IDLE+POWERED_DOWN", "MIXED*": words of sinfo(1), "NODE STATE CODES" */
};

struct ws_ctld_job {
    const char *id;
    const char *state;  /* a word of squeue(1), "JOB STATE CODES" */
    double start, end;  /* seconds since 1970; 0: not known. A job that waits: its first moment */
    const char *nodes;  /* those that it has, as slurm/hosts.h reads them; "": none */
    const char *wanted; /* the node that it must have; "": any */
    const char *admin_comment; /* its beginning */
};

/**
 * ws_ctld_nodes() - calls @f for each node
 * @f: gets texts that are gone when it returns; anything but 0 ends the walk and is returned
 *
 * Return: 0, what @f returned, or -EAGAIN: slurmctld does not answer.
 */
WS_MUST_CHECK int ws_ctld_nodes(int (*f)(const struct ws_ctld_node *node, void *arg), void *arg);
/* The same for jobs, also those that have ended and that slurmctld still knows. */
WS_MUST_CHECK int ws_ctld_jobs(int (*f)(const struct ws_ctld_job *job, void *arg), void *arg);

/* Has the node @name, which is switched off, switched on. Return: whether slurmctld agreed. */
bool ws_ctld_switch_on(const char *name);
/* Lets the job @id, which waits for a time, begin now. Return: whether slurmctld agreed. */
bool ws_ctld_begin(const char *id);

#endif
