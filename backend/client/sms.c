// SPDX-License-Identifier: Apache-2.0
/* Which SMs a client's kernels may use: those of its task and of its batch job, and of these no
 * more than it asked for itself. */
#include "backend/client/sms.h"

#include "backend/backend.h"
#include "backend/client/stream.h"

static void count(const struct ws_sm_set *set, uint32_t *users)
{
    for (unsigned sm = 0; set->n && sm < WS_SM_MAX; sm++)
        users[sm] += ws_sm_set_has(set, sm);
}

/* The set that was allotted to the client's batch job on the GPU; NULL: none, it may use all. */
static const struct ws_sm_set *allotted(const struct ws_client *c, const struct ws_gpu *g)
{
    const struct ws_batch_job *b = c->step ? c->step->batch : NULL;
    return b && b->sms[g->device->index].n ? &b->sms[g->device->index] : NULL;
}

/* How many sets have each SM of the GPU: those of clients other than @but, and, once for all its
 * clients, that of each batch job. */
static void count_users(const struct ws_gpu *g, const struct ws_client *but, uint32_t *ret)
{
    struct ws_server *s = g->server;
    ws_list_for_each (n, &s->clients.all) {
        const struct ws_client *c = ws_list_entry(n, struct ws_client, node);
        for (uint32_t i = 0; c != but && !allotted(c, g) && i < c->n_contexts; i++)
            if (c->contexts[i].gpu == g)
                count(&c->contexts[i].sms, ret);
    }
    ws_list_for_each (n, &s->steps.batches) {
        const struct ws_batch_job *b = ws_list_entry(n, struct ws_batch_job, node);
        if (!ws_list_empty(&b->steps))
            count(&b->sms[g->device->index], ret);
    }
}

/* The @n SMs that the fewest others than @but have. */
static void least_used(const struct ws_gpu *g, const struct ws_client *but, unsigned n,
                       struct ws_sm_set *ret)
{
    uint32_t users[WS_SM_MAX] = {0}, n_sms = WS_MIN(g->device->spec.n_sms, (uint32_t)WS_SM_MAX);
    count_users(g, but, users);
    while (ret->n < n && ret->n < n_sms) {
        unsigned best = WS_SM_MAX;
        for (unsigned sm = 0; sm < n_sms; sm++)
            if (!ws_sm_set_has(ret, sm) && (best == WS_SM_MAX || users[sm] < users[best]))
                best = sm;
        ws_sm_set_add(ret, best);
    }
}

/* The @n lowest of @from; of all, if that is empty. What a program asks for itself never gives
 * it more than its task may have. */
static void first_of(const struct ws_sm_set *from, unsigned n, struct ws_sm_set *ret)
{
    *ret = (struct ws_sm_set){0};
    for (unsigned sm = 0; sm < WS_SM_MAX && ret->n < n; sm++)
        if (!from->n || ws_sm_set_has(from, sm))
            ws_sm_set_add(ret, sm);
}

void ws_batch_job_choose_sms(struct ws_server *s, struct ws_batch_job *b)
{
    for (uint32_t i = 0; b->may.n_sms && i < s->n_visible; i++)
        if (b->may.gpus >> i & 1 && b->may.n_sms < s->gpus[i].device->spec.n_sms)
            least_used(&s->gpus[i], NULL, b->may.n_sms, &b->sms[i]);
}

void ws_context_limit_sms(struct ws_context *x)
{
    const struct ws_task *t = &x->client->work;
    const struct ws_sm_set *of_batch = allotted(x->client, x->gpu);
    uint32_t n_sms = x->gpu->device->spec.n_sms;
    x->sms = (struct ws_sm_set){0};
    x->no_sms = false;
    x->sms_of = x->gpu;
    if (t->sms.n) {
        for (unsigned sm = 0; sm < n_sms && sm < WS_SM_MAX; sm++)
            if (ws_sm_set_has(&t->sms, sm) && (!of_batch || ws_sm_set_has(of_batch, sm)))
                ws_sm_set_add(&x->sms, sm);
        x->no_sms = !x->sms.n;
    } else if (of_batch) {
        first_of(of_batch, t->n_sm_max ? t->n_sm_max : of_batch->n, &x->sms);
    } else if (t->n_sm_max && t->n_sm_max < n_sms) {
        least_used(x->gpu, x->client, t->n_sm_max, &x->sms);
    }
    x->task_sms = x->sms;
    uint32_t first = x->client->who.sm_limit;
    if (first && first < (x->sms.n ? x->sms.n : n_sms) && !x->no_sms)
        first_of(&x->task_sms, first, &x->sms);
}

void ws_context_sms(struct ws_context *x)
{
    if (WS_UNLIKELY(x->sms_of != x->gpu))
        ws_context_limit_sms(x);
}

void ws_context_choose_sms(struct ws_context *x, const struct ws_sm_set *wanted,
                           struct ws_sm_set *ret)
{
    const struct ws_task *t = &x->client->work;
    ws_context_sms(x);
    *ret = x->sms;
    if (!wanted->n)
        return;
    if (!x->sms.n) {
        *ret = *wanted;
        return;
    }
    /* how many counts, not which */
    bool any = !t->sms.n && !x->client->who.sm_limit && !allotted(x->client, x->gpu);
    struct ws_sm_set s = {0};
    for (unsigned sm = 0; sm < WS_SM_MAX && s.n < x->sms.n; sm++)
        if (ws_sm_set_has(wanted, sm) && (any || ws_sm_set_has(&x->sms, sm)))
            ws_sm_set_add(&s, sm);
    if (s.n)
        *ret = s;
}
