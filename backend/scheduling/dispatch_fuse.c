// SPDX-License-Identifier: Apache-2.0
/* Launches that a policy wants as one. Each member gives the launch at the head of one of its
 * streams; what else it has runs by itself, as does all of a member whose memory is on another
 * GPU. Where there is no template for the mix, or it is still being made, all run by themselves,
 * side by side. */
#include "backend/scheduling/dispatch_private.h"
#include "backend/scheduling/fused.h"

static struct ws_command *head_launch(const struct ws_gpu_job *g)
{
    ws_list_for_each (n, &g->held) {
        struct ws_command *j = ws_list_entry(n, struct ws_stream, blocked)->head;
        if (j && j->kind == WS_COMMAND_OP && j->op.kind == WS_OPK_LAUNCH &&
            !j->op.launch.progress && !j->relaunch)
            return j;
    }
    return NULL;
}

bool ws_dispatch_fuse(struct ws_dispatch *d, struct ws_gpu_job *const *members, uint32_t n,
                      const struct ws_policy_decision *p)
{
    struct ws_gpu *gpu = &d->server->gpus[p->gpu];
    struct ws_command *jobs[WS_FUSE_MAX];
    uint32_t n_jobs = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct ws_command *j = members[i]->context->gpu == gpu ? head_launch(members[i]) : NULL;
        if (j)
            jobs[n_jobs++] = j;
    }
    char why[160] = "";
    if (n_jobs < 2)
        return false;
    int r = ws_fused_start(d->server, gpu, &p->sms, jobs, n_jobs, why, sizeof(why));
    if (r) {
        ws_log(WS_DEBUG, "dispatch: %u launches don't go together: %s", n_jobs,
               r == -EAGAIN ? "their template is being made" : why);
        return false;
    }
    for (uint32_t i = 0; i < n_jobs; i++) {
        struct ws_gpu_job *g = jobs[i]->stream->context->job;
        jobs[i]->in_job = true;
        g->n_in_flight++;
    }
    return true;
}
