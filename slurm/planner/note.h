/* SPDX-License-Identifier: Apache-2.0 */
/* slurm/planner/note.h - a plan as it stands in a job's AdminComment, which slurmctld keeps: there
 * the planner finds it again, and so does the plugin on the node. Threads: any. */
#ifndef WS_SLURM_PLANNER_NOTE_H
#define WS_SLURM_PLANNER_NOTE_H

#include <stdbool.h>
#include <stddef.h>

/* Times are seconds since 1970. */
struct ws_plan_note {
    double made;   /* when the job was planned; no two plans have the same */
    double length; /* of the job, in seconds, at the clocks below */
    double end, deadline;
    double volt, core, memory; /* shares of the GPU's default */
    double energy;             /* J */
    bool waits;                /* it begins when the planner says that its node is up */
};

/* Writes the entry "plan: …". Return: false: it is longer than @size - 1. */
bool ws_plan_note_write(char *buf, size_t size, const struct ws_plan_note *note);
/* Finds the entry in @comment, which may be NULL. Return: false: there is none. */
bool ws_plan_note_read(const char *comment, struct ws_plan_note *ret);

#endif
