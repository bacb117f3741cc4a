// SPDX-License-Identifier: Apache-2.0
/* Where a job's data is, as far as policies consider it.
 *
 * None of the papers moves data between GPUs: their jobs copy in what they need, wherever they run.
 * Programs keep their data on a GPU, so a job that goes to another one takes it along. The
 * consequences are our extension, and never contradict a paper's rule: among placements between
 * which the rule does not distinguish, the one without a move is taken. */
#include "config.h"

#include "policy/move.h"

#include <math.h>

struct ws_policy_move ws_policy_move(const struct ws_policy_job *j, int gpu)
{
    return j->moves ? j->moves[gpu] : (struct ws_policy_move){0};
}

bool ws_policy_can_run(const struct ws_policy_job *j, int gpu)
{
    return !isinf(ws_policy_move(j, gpu).ms);
}

bool ws_policy_nearer(const struct ws_policy_job *j, int a, int b)
{
    if (!j->moves)
        return false;
    const struct ws_policy_move *x = &j->moves[a], *y = &j->moves[b];
    return x->ms != y->ms ? x->ms < y->ms : x->here && !y->here;
}

bool ws_policy_alike(const struct ws_policy_system *s, int a, int b)
{
    return s->gpus[a].type == s->gpus[b].type && s->gpus[a].sm_limit == s->gpus[b].sm_limit;
}

int ws_policy_stay(const struct ws_policy_snapshot *s, const struct ws_policy_job *j, int gpu)
{
    for (int g = 0; j->moves && g < s->system->n_gpus; g++)
        if (j->moves[g].here && ws_policy_alike(s->system, g, gpu) &&
            s->gpus[g].power == WS_GPU_ON && s->gpus[g].n_running <= s->gpus[gpu].n_running)
            return g;
    return gpu;
}
