// SPDX-License-Identifier: Apache-2.0
/* Announcements of a batch scheduler. They say whose programs may have what, so they are taken from
 * root and the daemon's user only. What a user may ask for is checked here too: the scheduler's
 * plugin passes it on as it is. */
#include "backend/process/announce.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "backend/backend.h"
#include "backend/client/sms.h"
#include "backend/client/step.h"
#include "backend/client/viewer.h"
#include "backend/scheduling/recognise.h"
#include "backend/wire/out.h"

static const double most_ms = 1e12; /* some thirty years */

struct outcome {
    Ws__StepReply *reply;
    char *text;
    size_t size;
};

WS_PRINTF(3, 4) static void refuse(struct outcome *a, Ws__Error e, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(a->text, a->size, fmt, args);
    va_end(args);
    a->reply->error = e;
}

/* The mask of the GPUs. Return: false: one of them is not here, as the answer says. */
static bool gpus_of(const struct ws_server *s, const Ws__StepRequest *q, struct outcome *a,
                    uint32_t *ret)
{
    *ret = q->all_gpus ? UINT32_MAX : 0;
    for (size_t i = 0; i < q->n_gpus; i++) {
        if (q->gpus[i] >= s->n_visible) {
            refuse(a, WS__ERROR__INVALID_VALUE,
                   "the scheduler allotted GPU %u, but this daemon has GPUs 0 to %u: `gpus` of "
                   "wattshared.conf and gres.conf must list the same GPUs in the same order",
                   q->gpus[i], s->n_visible - 1);
            return false;
        }
        *ret |= UINT32_C(1) << q->gpus[i];
    }
    if (!*ret)
        refuse(a, WS__ERROR__INVALID_VALUE,
               "the job has no GPU here: submit it with --gres=shard:N, or with --gres=gpu:N");
    return *ret;
}

static bool wishes_are_right(const struct ws_server *s, const Ws__StepRequest *q, struct outcome *a)
{
    int64_t most = s->config->step_priority;
    if (q->has_priority && q->priority > most) {
        refuse(a, WS__ERROR__DENIED,
               "--watt-priority=%d is more than users may ask for here, which is %lld "
               "(step_priority of wattshared.conf)",
               q->priority, (long long)most);
        return false;
    }
    if (!(q->period_ms >= 0 && q->period_ms <= most_ms && q->deadline_ms >= 0 &&
          q->deadline_ms <= most_ms)) {
        refuse(a, WS__ERROR__INVALID_VALUE, "a period or a deadline that is no time");
        return false;
    }
    bool clocks = q->volt > 0 && q->volt < 10 && q->core > 0 && q->core < 10 && q->memory > 0 &&
                  q->memory < 10;
    if (q->volt != 0 && (!clocks || q->shards)) {
        refuse(a, WS__ERROR__INVALID_VALUE,
               q->shards ? "a job with a part of a GPU cannot choose its clocks"
                         : "clocks are shares of the default, above 0 and below 10");
        return false;
    }
    return true;
}

static struct ws_allotment allotment(const struct ws_server *s, const Ws__StepRequest *q,
                                     uint32_t gpus)
{
    uint64_t sms = (uint64_t)q->shards * s->config->shard_sms;
    return (struct ws_allotment){.gpus = gpus,
                                 .n_sms = (uint32_t)WS_MIN(sms, (uint64_t)WS_SM_MAX),
                                 .memory_bytes = q->shards * s->config->shard_memory_bytes};
}

static void begin(struct ws_server *s, const Ws__StepRequest *q, struct outcome *a)
{
    uint32_t gpus;
    struct ws_batch_step *t;
    char text[48], why[256];
    if (!gpus_of(s, q, a, &gpus) || !wishes_are_right(s, q, a))
        return;
    const struct ws_step_info info = {.job = q->job,
                                      .number = q->step,
                                      .uid = q->uid,
                                      .pid = q->pid,
                                      .may = allotment(s, q, gpus),
                                      .wishes = {.period_ms = q->period_ms,
                                                 .deadline_ms = q->deadline_ms,
                                                 .has_priority = q->has_priority,
                                                 .priority = q->priority,
                                                 .n_sms = q->sms,
                                                 .memory_bytes = q->memory_bytes,
                                                 .volt = q->volt,
                                                 .core = q->core,
                                                 .memory = q->memory},
                                      .account = ws_account_of_user(s->accounts, q->uid)};
    if (!info.account) {
        refuse(a, WS__ERROR__INTERNAL, "the daemon is out of memory");
        return;
    }
    int r = ws_steps_begin(&s->steps, &info, &t);
    if (r < 0)
        refuse(a, WS__ERROR__INTERNAL, "%s", strerror(-r));
    else if (r == WS_STEPS_E_GONE)
        refuse(a, WS__ERROR__NOT_FOUND, "there is no process %u", q->pid);
    else if (r == WS_STEPS_E_USER)
        refuse(a, WS__ERROR__DENIED, "job %llu is another user's", (unsigned long long)q->job);
    else if (r == WS_STEPS_E_FULL)
        refuse(a, WS__ERROR__LIMIT_EXCEEDED, "%d jobs are under way here", WS_STEPS_BATCHES);
    else if (r == WS_STEPS_E_SHARE)
        refuse(a, WS__ERROR__LIMIT_EXCEEDED, "%s",
               ws_account_refusal(info.account, WS_RESOURCE_DESCRIPTORS, 1, why, sizeof(why)));
    ws_account_unref(info.account); /* the step has one of its own */
    if (r)
        return;
    if (t->batch->n_steps == 1)
        ws_batch_job_choose_sms(s, t->batch);
    ws_log(WS_INFO, "step: begun step=%s user=%u pid=%u gpus=0x%x sms=%u memory_bytes=%llu",
           ws_step_text(t, text, sizeof(text)), q->uid, q->pid, t->batch->may.gpus,
           t->batch->may.n_sms, (unsigned long long)t->batch->may.memory_bytes);
}

/* The programs that the step has. */
static uint32_t n_programs_of(const struct ws_batch_job *b, uint32_t number)
{
    uint32_t n = 0;
    ws_list_for_each (m, &b->steps) {
        const struct ws_batch_step *t = ws_list_entry(m, struct ws_batch_step, node);
        n += t->number == number ? t->n_programs : 0;
    }
    return n;
}

static void collect(struct ws_server *s, const Ws__StepRequest *q, struct outcome *a)
{
    struct ws_batch_job *b = ws_steps_find(&s->steps, q->job);
    Ws__StepReply *r = a->reply;
    if (!b) {
        refuse(a, WS__ERROR__NOT_FOUND, "no step of job %llu was announced",
               (unsigned long long)q->job);
        return;
    }
    r->n_here = q->look ? n_programs_of(b, q->step) : b->n_programs;
    r->n_steps = b->n_steps;
    r->n_programs = b->use.n_programs;
    r->n_kernels = b->use.n_kernels;
    r->device_ns = b->use.device_ns;
    r->busy_uj = b->use.busy_uj;
    r->idle_uj = b->use.idle_uj;
    r->n_jobs = b->use.n_jobs;
    r->n_late = b->use.n_late;
    if (!q->look && !b->n_programs)
        ws_steps_forget(&s->steps, b);
}

void ws_announce_step(struct ws_server *s, const struct ws_message *msg, struct ws_bytes bytes)
{
    char text[256] = "";
    Ws__ServerMessage m = WS__SERVER_MESSAGE__INIT;
    Ws__StepReply reply = WS__STEP_REPLY__INIT;
    struct outcome a = {&reply, text, sizeof(text)};
    struct ws_viewer viewer;
    Ws__StepRequest *q = ws_decode_step(bytes, &s->arena);
    ws_viewer_of(s, msg, &viewer);
    if (!q)
        refuse(&a, WS__ERROR__MALFORMED, "a request that can't be read");
    else if (!viewer.known || !ws_is_trusted(viewer.uid))
        refuse(&a, WS__ERROR__DENIED, "only root and the daemon's user may announce steps");
    else if (q->collect)
        collect(s, q, &a);
    else
        begin(s, q, &a);
    reply.version = WS_PROTOCOL_VERSION;
    reply.text = text;
    m.step = &reply;
    (void)ws_server_send(s, msg->peer, &m); /* a peer that does not fetch its answer has none */
}
