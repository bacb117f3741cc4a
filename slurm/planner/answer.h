/* SPDX-License-Identifier: Apache-2.0 */
/* slurm/planner/answer.h - one question of job_submit.lua, and the answer to it. Threads: one. */
#ifndef WS_SLURM_PLANNER_ANSWER_H
#define WS_SLURM_PLANNER_ANSWER_H

#include "slurm/planner/jobs.h"

/* @question: "TASK LENGTH FINISH": a task's name or "-", its length in seconds at the default
 * clocks or 0, and how many seconds from now it must have ended. @answer gets a line without its
 * end:
 *   "yes NODE MINUTES plan: …"   it is to run there, with this time limit and this AdminComment
 *   "no TEXT"                    no plan meets the deadline, or the question is wrong
 *   "unknown TEXT"               nothing can be said now */
void ws_planner_answer(struct ws_planner_jobs *jobs, const char *question, char *answer,
                       size_t size);

#endif
