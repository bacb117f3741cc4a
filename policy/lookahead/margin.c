// SPDX-License-Identifier: Apache-2.0
/* Margins: kernels may take longer than predicted. Of each task it is known how long they took at
 * most, of late, and how often they took longer than how many times the predicted time. A job is
 * placed such that it is in time even if it takes as long as the longest. Where there is no such
 * place, it has the largest margin for which there is one; the share of its task's kernels that
 * took longer than that is the part of a missed deadline that it counts for. */
#include "config.h"

#include <math.h>

#include "base/minmax.h"
#include "policy/lookahead/rollout.h"

/* Kernels are not taken to be longer than so many times their predicted time. */
#define MOST 4
/* What a shorter one counts in the margin of its task: little, so that a margin lasts. */
#define FALL 0.003
/* So many kernels of a task say little of how long others take. */
#define FEW 20
/* What one counts at least in the shares of those that took longer. They begin with one that did
 * not, so that a job is never taken to be late for certain. */
#define LEARN 0.01
/* A share of a kernel's time that is rounding. */
#define PUNCTUAL 1e-6

static double step_of(int k)
{
    return 1 + k * (double)(MOST - 1) / WS_ROLLOUT_TAIL;
}

void ws_rollout_learn(struct ws_rollout *r, int task, double took)
{
    struct ws_rollout_margin *m = &r->margin[task];
    took = ws_lesser(took, MOST);
    m->most = took > m->most + PUNCTUAL ? took : m->most + (took - m->most) * FALL;
    m->most = ws_greater(m->most, 1);
    m->n = WS_MIN(m->n + 1, (int)(1 / LEARN));
    for (int k = 0; k < WS_ROLLOUT_TAIL; k++)
        m->tail[k] += ((took > step_of(k) + PUNCTUAL) - m->tail[k]) / (m->n + 1);
    double sum = 0;
    int n = 0;
    for (int i = 0; i < r->sys->n_tasks; i++)
        if (r->margin[i].n) {
            sum += r->margin[i].most;
            n++;
        }
    for (int i = 0; i < r->sys->n_tasks; i++)
        if (r->margin[i].n < FEW)
            r->margin[i].most = ws_greater(r->margin[i].most, sum / n);
}

double ws_rollout_margin_within(const struct ws_rollout *r, int task, double ms)
{
    return ws_greater(1, ws_lesser(r->margin[task].most, ms / r->shortest[task]));
}

double ws_rollout_risk(const struct ws_rollout *r, const struct ws_rollout_job *j)
{
    const struct ws_rollout_margin *m = &r->margin[j->task];
    if (isinf(j->deadline) || j->margin + PUNCTUAL >= m->most)
        return 0;
    double at = (j->margin - 1) * WS_ROLLOUT_TAIL / (MOST - 1);
    int k = WS_MIN((int)at, WS_ROLLOUT_TAIL - 1);
    double next = k + 1 < WS_ROLLOUT_TAIL ? m->tail[k + 1] : 0;
    return m->tail[k] + (next - m->tail[k]) * (at - k);
}
