// SPDX-License-Identifier: Apache-2.0
/* Who used what: this file copies the daemon's counters into the messages of `wattshare status`,
 * and nothing else does. The metrics are printed from the same messages. A request is answered at
 * once, without a Hello, to everybody whom the socket lets in. Who is no administrator
 * (client/viewer.h) sees his own clients, the others as a sum, and nothing of their kernels. */
#include "backend/process/status.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backend/backend.h"
#include "backend/client/step.h"
#include "backend/client/user.h"
#include "backend/client/viewer.h"
#include "backend/learn/learn.h"
#include "backend/process/metrics.h"
#include "backend/process/real.h"
#include "backend/scheduling/dispatch.h"
#include "backend/scheduling/gated.h"
#include "backend/wire/out.h"
#include "base/clock.h"
#include "device/compiled.h"

enum { LEARNED_MAX = 32, ACCOUNT_ROWS_MAX = 1024 };

/* The SMs that the operation may use: @client's now. */
static void mark_sms(Ws__GpuStatus *o, const struct ws_sm_set *sms, uint32_t client)
{
    for (uint32_t i = 0; i < o->n_sm_clients; i++)
        if (!sms->n || (i < WS_SM_MAX && ws_sm_set_has(sms, i)))
            o->sm_clients[i] = o->sm_clients[i] && o->sm_clients[i] != client ? UINT32_MAX : client;
}

/* Whose kernels are on which SMs. Return: false: no memory. */
static bool sm_map(struct ws_server *s, const struct ws_gpu *g, const struct ws_viewer *viewer,
                   Ws__GpuStatus *o)
{
    o->n_sm_clients = o->n_sms;
    o->sm_clients = ws_arena_array(&s->arena, o->n_sms, sizeof(*o->sm_clients));
    if (!o->sm_clients)
        return false;
    memset(o->sm_clients, 0, o->n_sms * sizeof(*o->sm_clients));
    ws_list_for_each (n, &s->clients.all) {
        const struct ws_client *c = ws_list_entry(n, struct ws_client, node);
        for (uint32_t i = 0; i < c->n_contexts && c->n_in_flight; i++) {
            if (c->contexts[i].gpu != g)
                continue;
            ws_list_for_each (m, &c->contexts[i].streams) {
                const struct ws_command *j = ws_list_entry(m, struct ws_stream, node)->running;
                if (j && j->op.kind == WS_OPK_LAUNCH)
                    mark_sms(o, &j->op.launch.sms,
                             ws_viewer_sees(viewer, c->who.uid) ? c->id : UINT32_MAX);
            }
        }
    }
    return true;
}

/* From the counter as it was when the accounts were settled. */
static void energy_status(const struct ws_gpu *g, Ws__GpuStatus *o)
{
    const struct ws_gpu_energy *e = &g->energy;
    o->energy_uj = e->counter_uj;
    o->idle_uj = e->idle_uj;
    o->system_uj = e->system_uj;
    o->under_way_uj = ws_gpu_energy_under_way(e);
    o->clients_uj = e->counter_uj - o->system_uj - o->under_way_uj;
}

/* What does not change while the GPU works, but for its clocks. */
static void spec_status(const struct ws_device *d, Ws__GpuStatus *o)
{
    const struct ws_gpu_spec *spec = &d->spec;
    o->cc_major = spec->cc_major;
    o->cc_minor = spec->cc_minor;
    o->default_core_mhz = spec->core_mhz;
    o->default_memory_mhz = spec->memory_mhz;
    o->core_mhz =
        d->clocked ? (uint32_t)lround(spec->core_mhz * d->clocks_now.core) : spec->core_mhz;
    o->memory_mhz =
        d->clocked ? (uint32_t)lround(spec->memory_mhz * d->clocks_now.memory) : spec->memory_mhz;
    o->memory_bus_bits = spec->memory_bus_bits;
    o->n_cores = spec->n_sms * spec->fp32_lanes_per_sm;
    o->limit_mw = spec->limit_mw;
    o->idle_mw = spec->static_mw;
    o->pcie_generation = spec->pcie_generation;
    o->pcie_lanes = spec->pcie_lanes;
}

/* As CUDA programs and NVML's users write it. Out of memory: "". */
static char *uuid_text(struct ws_server *s, const uint8_t uuid[16])
{
    enum { BYTES = 41 };
    char *text = ws_arena_alloc(&s->arena, BYTES), *p = text;
    if (!text)
        return (char *)"";
    p = stpcpy(p, "GPU-");
    for (int i = 0; i < 16; i++)
        p += sprintf(p, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", uuid[i]);
    return text;
}

void ws_status_gpu(struct ws_gpu *g, uint32_t index, Ws__GpuStatus *o)
{
    struct ws_device_telemetry t;
    const struct ws_gpu_spec *spec = &g->device->spec;
    ws_device_telemetry(g->device, &t);
    ws__gpu_status__init(o);
    o->gpu = index;
    o->name = (char *)spec->name;
    o->product = (char *)spec->product;
    o->kind = (char *)g->device->ops->name;
    if (!strcmp(o->kind, "soft")) /* its time and energy are modelled, not measured */
        o->calibrated = (char *)ws_gpu_spec_calibrated(spec);
    spec_status(g->device, o);
    o->n_sms = spec->n_sms;
    o->n_clients = g->n_home;
    o->memory_bytes = spec->memory_bytes;
    o->memory_used_bytes = t.memory_used_bytes;
    o->n_kernels = t.n_kernels;
    o->n_copies = t.n_copies;
    o->copied_bytes = t.copied_bytes;
    o->bytes_in = g->bytes_in;
    o->bytes_out = g->bytes_out;
    o->device_ns = t.now_ns;
    o->busy_ns = t.busy_ns;
    o->sm_busy_ns = t.sm_busy_ns;
    o->power_mw = t.power_mw;
    energy_status(g, o);
}

/* With its lists, in the arena. Return: NULL: no memory. */
static Ws__GpuStatus *gpu_status(struct ws_server *s, uint32_t i, const struct ws_viewer *viewer)
{
    struct ws_gpu *g = &s->gpus[i];
    Ws__GpuStatus *o = ws_arena_alloc(&s->arena, sizeof(*o));
    if (!o)
        return NULL;
    ws_status_gpu(g, i, o);
    o->uuid = uuid_text(s, g->uuid);
    return sm_map(s, g, viewer, o) && ws_real_status(s, g->device, o) ? o : NULL;
}

void ws_status_used(const struct ws_client_stats *t, const struct ws_energy_sum *e,
                    Ws__ClientStatus *o)
{
    o->memory_bytes = t->memory_bytes;
    o->peak_memory_bytes = t->peak_memory_bytes;
    o->n_kernels = t->n_kernels;
    o->n_copies = t->n_copies;
    o->bytes_in = t->bytes_in;
    o->bytes_out = t->bytes_out;
    o->device_ns = t->device_ns;
    o->span_ns = t->last_end_ns > t->first_start_ns ? t->last_end_ns - t->first_start_ns : 0;
    o->energy_uj = t->energy_uj;
    o->busy_uj = e->busy_uj;
    o->idle_uj = e->idle_uj;
    o->n_commands = t->n_commands;
    o->n_outstanding = t->n_commands - t->n_retired;
    o->n_jobs = t->n_jobs;
    o->n_late = t->n_missed;
    o->n_over_lease = t->n_over_lease;
    o->n_unmeasured = t->n_unmeasured;
    o->energy_unknown = t->energy_unknown;
}

static Ws__ClientStatus *client_status(struct ws_server *s, const struct ws_client_stats *t,
                                       const struct ws_energy_sum *e)
{
    Ws__ClientStatus *o = ws_arena_alloc(&s->arena, sizeof(*o));
    uint32_t *gpus = ws_arena_array(&s->arena, WS_MAX_DEVICES, sizeof(*gpus));
    if (!o || !gpus)
        return NULL;
    ws__client_status__init(o);
    ws_status_used(t, e, o);
    o->gpus = gpus;
    for (uint32_t i = 0; i < WS_MAX_DEVICES; i++)
        if (t->used_gpus >> i & 1)
            gpus[o->n_gpus++] = i;
    return o;
}

/* Out of memory: without the SMs. */
static void work_status(struct ws_server *s, Ws__ClientStatus *o, struct ws_task *t)
{
    enum { SMS_BYTES = 512 };
    char *sms = t->sms.n || t->n_sm_max ? ws_arena_alloc(&s->arena, SMS_BYTES) : NULL;
    o->work = t->name;
    o->period_ms = t->period_ms;
    o->deadline_ms = t->deadline_ms;
    o->priority = t->priority;
    o->weight = t->weight;
    if (!sms)
        return;
    if (t->sms.n)
        ws_sm_set_text(&t->sms, sms, SMS_BYTES);
    else
        snprintf(sms, SMS_BYTES, "<=%u", t->n_sm_max);
    o->sms = sms;
}

/* Out of memory: "". */
static char *step_text(struct ws_server *s, const struct ws_client *c)
{
    enum { BYTES = 48 };
    char *text = c->step ? ws_arena_alloc(&s->arena, BYTES) : NULL;
    return text ? (char *)ws_step_text(c->step, text, BYTES) : (char *)"";
}

static Ws__ClientStatus *live_status(struct ws_server *s, struct ws_client *c, uint64_t now)
{
    struct ws_energy_sum e = ws_energy_of_client(c);
    Ws__ClientStatus *o = client_status(s, &c->stats, &e);
    if (!o)
        return NULL;
    o->client = c->id;
    o->pid = c->who.pid;
    o->uid = c->who.uid;
    o->exe = c->who.exe;
    o->task = c->who.task;
    o->step = step_text(s, c);
    work_status(s, o, &c->work);
    o->connected = true;
    o->gate = ws_gated_state(c);
    o->has_job = ws_dispatch_deadline(c, &o->deadline_left_ms);
    o->error = c->errors.sticky ? c->errors.sticky : c->errors.async;
    o->error_text = o->error ? c->errors.text : (char *)"";
    o->age_ns = now - c->who.start_ns;
    ws_ledger_message(&c->not_supported, &s->arena, &o->not_supported, &o->n_not_supported);
    return o;
}

static Ws__ClientStatus *ended_status(struct ws_server *s, struct ws_ended *e, uint64_t now)
{
    Ws__ClientStatus *o = client_status(s, &e->stats, &e->energy);
    if (!o)
        return NULL;
    o->client = e->id;
    o->pid = e->pid;
    o->uid = e->uid;
    o->exe = e->exe;
    o->task = e->task;
    o->step = e->step;
    work_status(s, o, &e->work);
    o->gate = e->gated ? WS__CLIENT_STATUS__GATE__GATE_IDLE : WS__CLIENT_STATUS__GATE__NOT_GATED;
    o->error = e->error;
    o->error_text = e->error_text;
    o->age_ns = now - e->start_ns;
    ws_ledger_message(&e->not_supported, &s->arena, &o->not_supported, &o->n_not_supported);
    return o;
}

/* The kernels that ran last. None if there is no memory: the rest is worth more. */
static void learned_status(struct ws_server *s, Ws__StatusReply *r)
{
    struct ws_learn_shown *v;
    uint32_t n = s->learn ? ws_learn_show(s->learn, &s->arena, LEARNED_MAX, &v) : 0;
    r->learned = n ? ws_arena_array(&s->arena, n, sizeof(*r->learned)) : NULL;
    for (uint32_t i = 0; r->learned && i < n; i++) {
        Ws__LearnedKernel *o = ws_arena_alloc(&s->arena, sizeof(*o));
        if (!o)
            return;
        ws__learned_kernel__init(o);
        o->name = (char *)v[i].name;
        o->gpu = (char *)v[i].gpu;
        o->shape = (char *)v[i].shape;
        o->n_runs = v[i].n_runs;
        o->n_points = v[i].n_points;
        o->n_sms = v[i].n_sm;
        o->time_ms = v[i].time_ms;
        o->has_power = !isnan(v[i].power_w);
        o->power_w = o->has_power ? v[i].power_w : 0;
        o->n_errors = v[i].error.n;
        o->error_mean = v[i].error.mean;
        o->error_deviation = sqrt(ws_stat_variance(&v[i].error));
        o->has_cold_error = !isnan(v[i].cold_error);
        o->cold_error = o->has_cold_error ? v[i].cold_error : 0;
        r->learned[r->n_learned++] = o;
    }
}

static void compiled_status(Ws__StatusReply *r)
{
    struct ws_compiled_counts c = ws_compiled_counts();
    r->n_kernels_cold = c.n_cold;
    r->n_kernels_waiting = c.n_waiting;
    r->n_kernels_compiled = c.n_compiled;
    r->n_kernels_unsupported = c.n_not[WS_NOT_OPERATION];
    r->n_kernels_large = c.n_not[WS_NOT_SIZE];
    r->n_kernels_no_room = c.n_not[WS_NOT_ROOM];
    r->n_kernels_no_compiler = c.n_not[WS_NOT_COMPILER];
    r->n_kernels_not_faster = c.n_not[WS_NOT_FASTER];
    r->n_codes_made = c.n_made;
    r->n_codes_found = c.n_found;
    r->n_codes_damaged = c.n_damaged;
}

void ws_status_daemon(struct ws_server *s, Ws__StatusReply *r)
{
    struct ws_dispatch_counts counts = ws_dispatch_counts(s);
    r->n_jobs = counts.n_jobs;
    r->n_preemptions = counts.n_preemptions;
    r->n_merged = counts.n_merged;
    r->n_moves = counts.n_moves;
    r->n_modules = ws_cache_n_codes(&s->cache);
    r->n_messages = s->stats.n_messages;
    r->n_commands = s->stats.n_commands;
    compiled_status(r);
}

/* ---- what may be seen ---- */

/* Connected clients and those that have ended last. Return: false: no memory. */
static bool put_clients(struct ws_server *s, const struct ws_viewer *viewer, uint64_t now,
                        Ws__StatusReply *r)
{
    uint32_t n_ended = WS_MIN(s->stats.n_ended, (uint32_t)WS_ENDED_MAX);
    r->clients = ws_arena_array(&s->arena, s->clients.n + n_ended, sizeof(*r->clients));
    bool ok = r->clients;
    ws_list_for_each (n, &s->clients.all) {
        struct ws_client *c = ws_list_entry(n, struct ws_client, node);
        if (ok && ws_viewer_sees(viewer, c->who.uid))
            ok = (r->clients[r->n_clients++] = live_status(s, c, now));
    }
    for (uint32_t i = s->stats.n_ended - n_ended; ok && i < s->stats.n_ended; i++) {
        struct ws_ended *e = &s->stats.ended[i % WS_ENDED_MAX];
        if (ws_viewer_sees(viewer, e->uid))
            ok = (r->clients[r->n_clients++] = ended_status(s, e, now));
    }
    return ok;
}

static void add_others(struct ws_server *s, const struct ws_viewer *viewer, Ws__OtherClients *o)
{
    ws_list_for_each (n, &s->clients.all) {
        const struct ws_client *c = ws_list_entry(n, struct ws_client, node);
        if (ws_viewer_sees(viewer, c->who.uid))
            continue;
        o->n_clients++;
        o->memory_bytes += c->stats.memory_bytes;
        o->n_kernels += c->stats.n_kernels;
        o->device_ns += c->stats.device_ns;
        o->energy_uj += c->stats.energy_uj;
    }
}

static Ws__AccountStatus *add_account(struct ws_server *s, Ws__StatusReply *r,
                                      const struct ws_account *a, const char *resource)
{
    Ws__AccountStatus *o =
        r->n_accounts < ACCOUNT_ROWS_MAX ? ws_arena_alloc(&s->arena, sizeof(*o)) : NULL;
    if (!o)
        return NULL;
    ws__account_status__init(o);
    o->account = (char *)ws_account_name(a);
    o->resource = (char *)resource;
    r->accounts[r->n_accounts++] = o;
    return o;
}

/* What it has or was refused. */
static void put_account(struct ws_server *s, const struct ws_account *a, Ws__StatusReply *r)
{
    for (unsigned k = 0; k < _WS_RESOURCE_N; k++) {
        uint64_t used = ws_account_used(a, k), n_refused = ws_account_n_refused(a, k);
        Ws__AccountStatus *o =
            used || n_refused ? add_account(s, r, a, ws_resource_info[k].name) : NULL;
        if (!o)
            continue;
        o->used = used;
        o->n_refused = n_refused;
        o->may_hold = ws_account_may_hold(a, k);
        o->limited = o->may_hold != WS_ACCOUNT_UNLIMITED;
    }
    for (unsigned k = 0; k < _WS_ACCOUNT_TIME_N; k++) {
        uint64_t ns = ws_account_time_ns(a, k);
        Ws__AccountStatus *o = ns ? add_account(s, r, a, ws_account_time_name[k]) : NULL;
        if (o)
            o->used = ns;
    }
}

/* Addresses are nobody's: administrators see them. None if there is no memory: the rest is worth
 * more. */
static void put_accounts(struct ws_server *s, const struct ws_viewer *viewer, Ws__StatusReply *r)
{
    struct ws_account *a = NULL;
    uint32_t uid;
    r->accounts = ws_arena_array(&s->arena, ACCOUNT_ROWS_MAX, sizeof(*r->accounts));
    while (r->accounts && (a = ws_accounts_next(s->accounts, a)))
        if (viewer->admin || (ws_account_uid(a, &uid) && ws_viewer_sees(viewer, uid)))
            put_account(s, a, r);
}

void ws_status_reply(struct ws_server *s, const struct ws_message *msg)
{
    uint64_t now = ws_clock_ns();
    struct ws_viewer viewer;
    Ws__OtherClients others = WS__OTHER_CLIENTS__INIT;
    ws_viewer_of(s, msg, &viewer);
    Ws__ServerMessage m = WS__SERVER_MESSAGE__INIT;
    Ws__StatusReply r = WS__STATUS_REPLY__INIT;
    const char *options;
    r.version = WS_PROTOCOL_VERSION;
    r.pid = (uint32_t)getpid();
    r.uptime_ns = now - s->stats.start_ns;
    r.policy = (char *)ws_dispatch_policy(s, &options);
    r.policy_options = (char **)&options;
    r.n_policy_options = options[0] != 0;
    ws_status_daemon(s, &r);
    r.socket = s->config->endpoints[0] ? s->config->endpoints[0] : (char *)"";
    r.gpus = ws_arena_array(&s->arena, s->n_gpus, sizeof(*r.gpus));
    ws_ledger_message(&s->stats.not_supported, &s->arena, &r.not_supported, &r.n_not_supported);
    ws_energy_settle(s);
    bool ok = r.gpus && put_clients(s, &viewer, now, &r);
    for (uint32_t i = 0; ok && i < s->n_gpus; i++)
        ok = (r.gpus[r.n_gpus++] = gpu_status(s, i, &viewer));
    if (!ok)
        return;
    put_accounts(s, &viewer, &r);
    if (viewer.admin) { /* it is of everybody's kernels */
        learned_status(s, &r);
    } else {
        add_others(s, &viewer, &others);
        r.others = &others;
    }
    m.status = &r;
    (void)ws_server_send(s, msg->peer, &m); /* a peer that does not fetch its answer has none */
}

void ws_status_forget(struct ws_client *c)
{
    struct ws_server *s = c->server;
    ws_energy_settle(s);
    for (uint32_t i = 0; i < WS_ENDED_MAX && c->id; i++)
        if (s->stats.ended[i].id == c->id)
            s->stats.ended[i].energy = ws_energy_of_client(c);
    if (c->id)
        ws_task_sums_ended(c);
    ws_step_forget(c);
    ws_energy_forget(c);
}

void ws_status_ended(struct ws_client *c)
{
    struct ws_server *s = c->server;
    struct ws_ended *e = &s->stats.ended[s->stats.n_ended++ % WS_ENDED_MAX];
    ws_ledger_deinit(&e->not_supported);
    *e = (struct ws_ended){.id = c->id,
                           .pid = c->who.pid,
                           .uid = c->who.uid,
                           .start_ns = c->who.start_ns,
                           .stats = c->stats};
    e->error = c->errors.sticky ? c->errors.sticky : c->errors.async;
    snprintf(e->exe, sizeof(e->exe), "%s", c->who.exe);
    snprintf(e->task, sizeof(e->task), "%s", c->who.task);
    if (c->step)
        ws_step_text(c->step, e->step, sizeof(e->step));
    e->work = c->work;
    e->gated = c->jobs.gated;
    e->energy = ws_energy_of_client(c);
    snprintf(e->error_text, sizeof(e->error_text), "%s", e->error ? c->errors.text : "");
    e->stats.memory_bytes = 0;
    e->not_supported = c->not_supported; /* taken over */
    c->not_supported = (struct ws_ledger){0};
}
