// SPDX-License-Identifier: Apache-2.0
/* Between clients and steps. When a step ends, its programs have ended too, or have escaped their
 * scheduler, which may give their part of the GPU to another job at once: so what they have sent is
 * handled, and they are dropped. */
#include "backend/client/step.h"

#include <stdio.h>

#include "backend/backend.h"
#include "backend/client/identity.h"

enum { ANCESTORS_MAX = 64 };
/* Slurm's numbers for steps that are not numbered. */
enum { STEP_BATCH = 0xfffffffb, STEP_EXTERN = 0xfffffffc, STEP_INTERACTIVE = 0xfffffffa };

struct ws_batch_step *ws_step_of_program(struct ws_server *s, int fd, uint32_t pid, uint32_t uid)
{
    uint32_t line[ANCESTORS_MAX];
    if (WS_LIKELY(ws_list_empty(&s->steps.batches)))
        return NULL;
    return ws_steps_of(&s->steps, line, ws_identity_line(fd, pid, uid, line, ANCESTORS_MAX), uid);
}

static uint64_t lower_limit(uint64_t a, uint64_t b) /* 0: none */
{
    return a && b ? WS_MIN(a, b) : a ? a : b;
}

void ws_step_apply(const struct ws_batch_step *t, struct ws_task *work)
{
    const struct ws_step_wishes *w = &t->wishes;
    if (w->period_ms > 0)
        work->period_ms = w->period_ms;
    if (w->deadline_ms > 0)
        work->deadline_ms = w->deadline_ms;
    if (w->has_priority)
        work->priority = w->priority;
    work->memory_bytes = lower_limit(work->memory_bytes, w->memory_bytes);
    work->n_sm_max = (unsigned)lower_limit(work->n_sm_max, w->n_sms);
    work->n_sm_max = (unsigned)lower_limit(work->n_sm_max, t->batch->may.n_sms);
}

uint32_t ws_step_gpus(const struct ws_server *s, const struct ws_batch_step *t, uint32_t *order,
                      uint32_t n)
{
    uint32_t kept = 0, mask = t->batch->may.gpus;
    for (uint32_t i = 0; i < n; i++)
        if (mask >> order[i] & 1)
            order[kept++] = order[i];
    bool other_numbers = n && !kept; /* as of a scheduler that numbers a job's GPUs from 0 */
    for (uint32_t i = 0; other_numbers && i < s->n_visible; i++)
        if (mask >> i & 1)
            order[kept++] = i;
    return kept;
}

uint64_t ws_step_memory_used(const struct ws_client *c)
{
    struct ws_list *lists[] = {&c->server->clients.all, &c->server->clients.dying};
    uint64_t sum = 0;
    for (size_t i = 0; i < WS_ARRAY_SIZE(lists); i++)
        ws_list_for_each (n, lists[i]) {
            const struct ws_client *o = ws_list_entry(n, struct ws_client, node);
            if (o->step && o->step->batch == c->step->batch)
                sum += o->stats.memory_bytes;
        }
    return sum;
}

const char *ws_step_text(const struct ws_batch_step *t, char *buf, size_t size)
{
    static const struct {
        uint32_t number;
        const char *name;
    } named[] = {{STEP_BATCH, "batch"}, {STEP_EXTERN, "extern"}, {STEP_INTERACTIVE, "interactive"}};
    const char *name = NULL;
    for (size_t i = 0; i < WS_ARRAY_SIZE(named); i++)
        if (named[i].number == t->number)
            name = named[i].name;
    if (name)
        snprintf(buf, size, "%llu.%s", (unsigned long long)t->batch->job, name);
    else
        snprintf(buf, size, "%llu.%u", (unsigned long long)t->batch->job, t->number);
    return buf;
}

void ws_step_forget(struct ws_client *c)
{
    if (!c->step)
        return;
    struct ws_energy_sum e = ws_energy_of_client(c);
    const struct ws_step_use use = {.n_kernels = c->stats.n_kernels,
                                    .device_ns = c->stats.device_ns,
                                    .busy_uj = e.busy_uj,
                                    .idle_uj = e.idle_uj,
                                    .n_jobs = c->stats.n_jobs,
                                    .n_late = c->stats.n_missed};
    ws_step_leave(c->step, &use);
    c->step = NULL;
}

void ws_steps_turn(struct ws_server *s)
{
    struct ws_batch_step *t;
    char text[48];
    for (unsigned n_ended = 0; n_ended < WS_STEPS_TURN && (t = ws_steps_ended(&s->steps));
         n_ended++) {
        ws_log(WS_INFO, "step: ended step=%s programs=%u", ws_step_text(t, text, sizeof(text)),
               t->n_programs);
        ws_list_for_each (n, &s->clients.all) {
            struct ws_client *c = ws_list_entry(n, struct ws_client, node);
            if (c->step == t)
                ws_client_leave(c, "end of its step");
        }
        ws_step_close(t);
    }
}
