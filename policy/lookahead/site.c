// SPDX-License-Identifier: Apache-2.0
/* What a job takes on one GPU now, on whatever number of SMs. */
#include "config.h"

#include "base/minmax.h"
#include "policy/lookahead/rollout.h"

struct ws_rollout_site ws_rollout_site(const struct ws_rollout *r, const struct ws_rollout_state *s,
                                       const struct ws_rollout_job *j, int gpu,
                                       const struct ws_policy_clocks *clocks)
{
    const struct ws_rollout_item *it = ws_rollout_item(r, j->task, gpu);
    const struct ws_policy_gpu_type *t = &r->sys->types[r->sys->gpus[gpu].type];
    double in = j->preempted ? t->switch_ms + t->update_ms : it->in;
    bool scaled = r->interval;
    return (struct ws_rollout_site){
        .counts = it->counts,
        .clocks = *clocks,
        .stretch = j->margin * (scaled ? ws_policy_clocks_stretch(it->cost, clocks) : 1),
        .extra_w_per_sm = scaled ? ws_policy_clocks_extra_w(it->cost, t->n_sm, clocks) : 0,
        .from = ws_greater(s->now, s->gpus[gpu].open_at) + in + (j->moves ? j->moves[gpu].ms : 0),
        .out = it->out,
        .n_sm = r->sys->gpus[gpu].sm_limit,
        .awake_until = ws_greater(s->gpus[gpu].awake_until, s->now),
        .awake_w = r->awake_w[r->sys->gpus[gpu].type],
        .move_mj = j->moves ? j->moves[gpu].mj : 0};
}
