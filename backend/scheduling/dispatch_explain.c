// SPDX-License-Identifier: Apache-2.0
/* Why a job ran where it did: the policy's own words on each decision, of the newest
 * WS_EXPLAINED_MAX decisions. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/client/viewer.h"
#include "backend/scheduling/dispatch_private.h"

void ws_dispatch_note(struct ws_dispatch *d, const struct ws_gpu_job *g,
                      const struct ws_policy_decision *p)
{
    struct ws_explained *e = &d->explained[d->n_explained % WS_EXPLAINED_MAX];
    if (p->kind == WS_DECIDE_WAIT && d->n_explained) { /* said once, not at each asking */
        const struct ws_explained *last = &d->explained[(d->n_explained - 1) % WS_EXPLAINED_MAX];
        if (last->job == g->id && last->kind == WS_DECIDE_WAIT)
            return;
    }
    d->n_explained++;
    *e = (struct ws_explained){.job = g->id,
                               .uid = g->task->client->who.uid,
                               .at_ms = ws_dispatch_now_ms(d),
                               .kind = p->kind,
                               .gpu = p->gpu,
                               .n_sm = p->n_sm,
                               .end_ms = p->end > 0 ? p->end : NAN,
                               .energy_mj = p->energy};
    if (p->gpu >= 0 && (uint32_t)p->gpu < d->server->n_gpus)
        e->energy_error = g->task->history->energy_error[d->gpus[p->gpu].type];
    snprintf(e->task, sizeof(e->task), "%s", g->task->history->name);
    snprintf(e->why, sizeof(e->why), "%s", p->why);
    if (g->is_priced)
        e->n_moves = WS_MIN(d->server->n_visible, WS_EXPLAINED_MOVES);
    if (e->n_moves)
        memcpy(e->moves, g->moves, e->n_moves * sizeof(*e->moves));
}

/* "; GPU 0: 0.35 ms and 7.1 mJ to move 4096 bytes, GPU 1: it is there" */
static void moves(FILE *f, const struct ws_explained *e)
{
    for (uint32_t i = 0; i < e->n_moves; i++) {
        const struct ws_policy_move *m = &e->moves[i];
        fprintf(f, "%s GPU %u: ", i ? "," : "; places:", i);
        if (isinf(m->ms))
            fputs("it can't be moved there", f);
        else if (m->bytes > 0)
            fprintf(f, "%.6g ms and %.6g mJ to move %.0f bytes%s", m->ms, m->mj, m->bytes,
                    m->here ? " to where it is" : "");
        else
            fputs(m->here ? "it is there" : "nothing to move", f);
    }
}

static void line(FILE *f, const struct ws_dispatch *d, const struct ws_explained *e, bool hide)
{
    char why[WS_POLICY_WHY];
    snprintf(why, sizeof(why), "%s", e->why);
    ws_policy_unmark(why, hide);
    fprintf(f, "%12.3f ms  job %llu (%s): %s", e->at_ms, (unsigned long long)e->job, e->task,
            ws_decision_name(e->kind));
    if (e->gpu >= 0 && (uint32_t)e->gpu < d->server->n_gpus) {
        fprintf(f, " on GPU %d (%s)", e->gpu, d->server->gpus[e->gpu].device->spec.name);
        if (e->n_sm > 0)
            fprintf(f, ", %d SMs", e->n_sm);
    }
    if (!isnan(e->end_ms))
        fprintf(f, ", end predicted at %.3f ms", e->end_ms);
    if (!isnan(e->energy_mj))
        fprintf(f, ", %.3f mJ predicted", e->energy_mj);
    if (e->energy_error > 0)
        fprintf(f, ", energy of the task known to %.0f %%", 100 * e->energy_error);
    fprintf(f, "%s%s", why[0] ? ": " : "", why);
    moves(f, e);
    fputc('\n', f);
}

uint64_t ws_dispatch_job_of(const struct ws_context *x)
{
    return x->job ? x->job->id : 0;
}

static Ws__TraceDecision *decision_message(const struct ws_explained *e, bool hide,
                                           struct ws_arena *a)
{
    Ws__TraceDecision *m = ws_arena_alloc(a, sizeof(*m));
    char *why = ws_arena_alloc(a, WS_POLICY_WHY);
    if (!m || !why)
        return NULL;
    ws__trace_decision__init(m);
    snprintf(why, WS_POLICY_WHY, "%s", e->why);
    ws_policy_unmark(why, hide);
    m->job = e->job;
    m->task = (char *)e->task;
    m->what = (char *)ws_decision_name(e->kind);
    m->why = why;
    m->at_ms = e->at_ms;
    m->somewhere = e->gpu >= 0;
    m->gpu = e->gpu >= 0 ? (uint32_t)e->gpu : 0;
    m->n_sms = e->n_sm > 0 ? (uint32_t)e->n_sm : 0;
    return m;
}

int ws_dispatch_traced(struct ws_server *s, uint64_t after, const struct ws_viewer *viewer,
                       struct ws_traced_decisions *ret)
{
    const struct ws_dispatch *d = s->dispatch;
    uint64_t last = d ? d->n_explained : 0,
             oldest = last > WS_EXPLAINED_MAX ? last - WS_EXPLAINED_MAX : 0;
    ret->n = 0;
    ret->last = last;
    ret->seen = last; /* also where all that were asked for belong to a policy before this one */
    for (uint64_t i = WS_MAX(after, oldest); i < last; i++) {
        const struct ws_explained *e = &d->explained[i % WS_EXPLAINED_MAX];
        if (!ws_viewer_sees(viewer, e->uid))
            continue;
        if (ret->n == WS_TRACED_DECISIONS_MAX) {
            ret->seen = i;
            break;
        }
        if (!(ret->v[ret->n++] = decision_message(e, !viewer->admin, &s->arena)))
            return -ENOMEM;
    }
    return 0;
}

/* The newest job that @viewer may see; 0: there is none. */
static uint64_t newest(const struct ws_dispatch *d, uint64_t first, const struct ws_viewer *viewer)
{
    for (uint64_t i = d->n_explained; i > first; i--) {
        const struct ws_explained *e = &d->explained[(i - 1) % WS_EXPLAINED_MAX];
        if (ws_viewer_sees(viewer, e->uid))
            return e->job;
    }
    return 0;
}

char *ws_dispatch_explain(struct ws_server *s, uint64_t id, const struct ws_viewer *viewer)
{
    struct ws_dispatch *d = s->dispatch;
    if (!d || !d->n_explained)
        return NULL;
    uint64_t first = d->n_explained > WS_EXPLAINED_MAX ? d->n_explained - WS_EXPLAINED_MAX : 0;
    if (!id && !(id = newest(d, first, viewer)))
        return NULL;
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    if (!f)
        return NULL;
    for (uint64_t i = first; i < d->n_explained; i++)
        if (d->explained[i % WS_EXPLAINED_MAX].job == id &&
            ws_viewer_sees(viewer, d->explained[i % WS_EXPLAINED_MAX].uid))
            line(f, d, &d->explained[i % WS_EXPLAINED_MAX], !viewer->admin);
    if (fclose(f) || !n) {
        free(text);
        return NULL;
    }
    return text;
}
