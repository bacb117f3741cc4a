// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "slurm/planner/answer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "slurm/planner/note.h"

struct question {
    char task[64];
    double length, finish; /* seconds */
};

/* Return: NULL, or what is wrong. */
static const char *read_question(const char *text, struct question *q)
{
    int n = 0;
    if (sscanf(text, "%63s %lf %lf%n", q->task, &q->length, &q->finish, &n) != 3 || text[n])
        return "expected a task, its length and when it must have ended";
    if (!strcmp(q->task, "-"))
        q->task[0] = 0;
    if (!(q->length >= 0 && q->length <= 1e9))
        return "--watt-length: expected seconds, at most 1e9";
    if (!(q->finish > 0 && q->finish <= 1e9))
        return "--watt-finish: expected seconds, at most 1e9";
    return NULL;
}

static void accept(const struct ws_planner_config *c, const struct ws_plan_place *p, double made,
                   double deadline, const char *node, bool waits, char *answer, size_t size)
{
    char note[512];
    struct ws_plan_note n = {.made = made,
                             .length = p->point.t,
                             .end = p->end,
                             .deadline = deadline,
                             .volt = p->point.v,
                             .core = p->point.fc,
                             .memory = p->point.fm,
                             .energy = p->point.p * fmax(p->point.t - c->margin_s, 0),
                             .waits = waits};
    /* Slurm's limits are whole minutes; a job that takes twice as long as planned is not what was
     * planned. */
    int minutes = (int)ceil(2 * p->point.t / 60);
    if (ws_plan_note_write(note, sizeof(note), &n))
        snprintf(answer, size, "yes %s %d %.0f %s", node, minutes,
                 waits ? ws_planner_resume_timeout(c) : 0, note);
    else
        snprintf(answer, size, "no the plan has numbers that are too large");
}

static void refuse(const struct question *q, const struct ws_plan_place *p, double made,
                   char *answer, size_t size)
{
    if (isinf(p->end))
        snprintf(answer, size, "no the nodes that are up have no GPU for this job");
    else
        snprintf(answer, size,
                 "no --watt-finish=%g: no plan makes this job in time; as the cluster is now, it "
                 "takes --watt-finish=%.0f",
                 q->finish, ceil(p->end - made + 0.5));
}

void ws_planner_answer(struct ws_planner_jobs *jobs, const char *question, char *answer,
                       size_t size)
{
    static double last;
    const struct ws_planner_config *c = jobs->config;
    struct ws_dvfs_task models[WS_PLAN_KINDS];
    struct ws_plan_wish wish = {.deadline = 0};
    struct ws_plan_place place;
    struct question q;
    char node[64];
    bool any = false, waits;
    const char *wrong = read_question(question, &q);
    if (wrong) {
        snprintf(answer, size, "no %s", wrong);
        return;
    }
    for (int i = 0; i < c->n_kinds; i++)
        if (ws_planner_model_of(c, i, q.task, q.length, &models[i])) {
            wish.on[i] = &models[i];
            any = true;
        }
    if (!any) {
        snprintf(answer, size,
                 "no nothing is known of task '%s': give its length with --watt-length=SECONDS",
                 q.task);
        return;
    }
    double made = fmax(ws_planner_now(), last + 1e-6); /* no two plans have the same */
    last = made;
    wish.deadline = made + q.finish;
    int r = ws_planner_jobs_place(jobs, made, &wish, &place, node, &waits);
    if (r)
        snprintf(answer, size, "unknown %s",
                 r > 0 ? "slurmctld has shown no node with GPUs yet" : strerror(-r));
    else if (place.node < 0)
        refuse(&q, &place, made, answer, size);
    else
        accept(c, &place, made, wish.deadline, node, waits, answer, size);
}
