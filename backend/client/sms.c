// SPDX-License-Identifier: Apache-2.0
/* Which SMs a client's kernels may use: those of its task, and of these no more than it asked
 * for itself. */
#include "backend/client/sms.h"

#include "backend/backend.h"
#include "backend/client/stream.h"

/* How many others' sets have each SM of the GPU. */
static void count_users(const struct ws_context *x, uint32_t *ret)
{
    ws_list_for_each (n, &x->client->server->clients.all) {
        const struct ws_client *c = ws_list_entry(n, struct ws_client, node);
        for (uint32_t i = 0; c != x->client && i < c->n_contexts; i++)
            for (unsigned sm = 0; c->contexts[i].gpu == x->gpu && sm < WS_SM_MAX; sm++)
                ret[sm] += ws_sm_set_has(&c->contexts[i].sms, sm);
    }
}

/* The @n SMs that the fewest others have. */
static void least_used(const struct ws_context *x, unsigned n, struct ws_sm_set *ret)
{
    uint32_t users[WS_SM_MAX] = {0},
             n_sms = WS_MIN(x->gpu->device->spec.n_sms, (uint32_t)WS_SM_MAX);
    count_users(x, users);
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

void ws_context_limit_sms(struct ws_context *x)
{
    const struct ws_task *t = &x->client->work;
    uint32_t n_sms = x->gpu->device->spec.n_sms;
    x->sms = (struct ws_sm_set){0};
    x->no_sms = false;
    x->sms_of = x->gpu;
    if (t->sms.n) {
        for (unsigned sm = 0; sm < n_sms && sm < WS_SM_MAX; sm++)
            if (ws_sm_set_has(&t->sms, sm))
                ws_sm_set_add(&x->sms, sm);
        x->no_sms = !x->sms.n;
    } else if (t->n_sm_max && t->n_sm_max < n_sms) {
        least_used(x, t->n_sm_max, &x->sms);
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
    bool any = !t->sms.n && !x->client->who.sm_limit; /* how many counts, not which */
    struct ws_sm_set s = {0};
    for (unsigned sm = 0; sm < WS_SM_MAX && s.n < x->sms.n; sm++)
        if (ws_sm_set_has(wanted, sm) && (any || ws_sm_set_has(&x->sms, sm)))
            ws_sm_set_add(&s, sm);
    if (s.n)
        *ret = s;
}
