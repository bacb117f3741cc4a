// SPDX-License-Identifier: Apache-2.0
/* The server: its life and its turn. messages.c handles what comes in.
 *
 * Whatever wakes a stream or drops a client only puts it on a list. ws_clients_settle() empties
 * these lists; it is called when a message was handled, and after each part of the turn, so that
 * no function has to expect that what it calls ends a client or starts work. */
#include "backend/process/server.h"

#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>
#include <sha256.h>

#include "backend/backend.h"
#include "backend/client/command.h"
#include "backend/client/module.h"
#include "backend/client/object.h"
#include "backend/client/relaunch.h"
#include "backend/client/step.h"
#include "backend/client/user.h"
#include "backend/client/upload.h"
#include "backend/code/loader.h"
#include "backend/learn/learn.h"
#include "backend/scheduling/fused.h"
#include "backend/client/value.h"
#include "backend/process/clients.h"
#include "backend/process/messages.h"
#include "backend/process/metrics.h"
#include "backend/process/status.h"
#include "backend/process/tracing.h"
#include "backend/scheduling/alarms.h"
#include "backend/scheduling/finished.h"
#include "backend/scheduling/fused_arena.h"
#include "backend/scheduling/gated.h"
#include "backend/scheduling/run.h"
#include "backend/wire/commands.h"
#include "backend/wire/handoff.h"
#include "backend/wire/out.h"
#include "base/alloc.h"
#include "base/clock.h"

enum { CONGESTED_POLL_MS = 2 };

/* ---- life ---- */

/* The same on every start for the same machine, GPU and place. */
static void make_uuid(struct ws_gpu *g)
{
    char text[256], machine[64] = "";
    uint8_t digest[SHA256_DIGEST_LENGTH];
    SHA2_CTX sha;
    FILE *f = fopen("/etc/machine-id", "re");
    if (f) {
        if (!fgets(machine, sizeof(machine), f))
            machine[0] = 0;
        fclose(f);
    }
    int n = snprintf(text, sizeof(text), "wattshare %s %s %u", machine, g->device->spec.name,
                     g->device->index);
    SHA256Init(&sha);
    SHA256Update(&sha, (uint8_t *)text, (size_t)n);
    SHA256Final(digest, &sha);
    memcpy(g->uuid, digest, sizeof(g->uuid));
    g->uuid[6] = (g->uuid[6] & 0x0f) | 0x80; /* RFC 9562: version 8, variant */
    g->uuid[8] = (g->uuid[8] & 0x3f) | 0x80;
}

int ws_server_new(struct ws_server **ret, const struct ws_config *config,
                  struct ws_device **devices, uint32_t n_devices,
                  const struct ws_transport *transport)
{
    if (n_devices > WS_MAX_GPUS_CONFIGURED)
        return -EINVAL;
    struct ws_server *s = ws_alloc(sizeof(*s));
    if (!s)
        return ws_raise(-ENOMEM);
    s->config = config;
    s->transport = *transport;
    s->commands.thread = pthread_self();
    s->n_gpus = s->n_visible = n_devices;
    if (n_devices > 1 && devices[n_devices - 1]->spec.host)
        s->n_visible--;
    s->stats.start_ns = ws_clock_ns();
    s->handoff.epoll_fd = s->handoff.conns_fd = s->handoff.accept.fd =
        s->handoff.accept.reserve_fd = -1;
    s->arena.limit_bytes = WS_MESSAGE_ARENA_BYTES;
    ws_list_init(&s->clients.all);
    ws_list_init(&s->clients.dropped);
    ws_list_init(&s->clients.dying);
    ws_list_init(&s->clients.leaving);
    ws_list_init(&s->uploads);
    ws_steps_init(&s->steps);
    ws_messages_init(s);
    ws_list_init(&s->out.dirty);
    ws_list_init(&s->out.full);
    ws_list_init(&s->queues.ready);
    ws_list_init(&s->queues.records);
    ws_list_init(&s->queues.polling);
    ws_list_init(&s->queues.chores);
    ws_list_init(&s->queues.waiting);
    ws_list_init(&s->queues.gated_go);
    ws_list_init(&s->handoff.conns);
    ws_list_init(&s->handoff.unbound);
    ws_list_init(&s->handoff.rung);
    for (uint32_t i = 0; i < n_devices; i++) {
        s->gpus[i].server = s;
        s->gpus[i].device = devices[i];
        make_uuid(&s->gpus[i]);
    }
    ws_cache_init(&s->cache, config->limits.cache_bytes, config->limits.max_image_bytes);
    s->cache.discards = &s->discards;
    s->cache.rewrite = config->rewrite;
    s->cache.learn = config->learn && config->clock != WS_CLOCK_SKIP;
    s->log_launches = ws_debug_on("launch");
    ws_list_init(&s->relaunch.list);
    ws_loads_init(&s->loads);
    const struct ws_loader_limits loader_limits = {&config->n_loaders,
                                                   &config->limits.max_compile_ms};
    s->commands.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int r = s->commands.wake_fd < 0
                ? -errno
                : ws_va_pool_init(&s->memory.va_pool, WS_VA_FIRST, WS_VA_LAST, WS_VA_GRANULE_BYTES,
                                  WS_RESOURCE_ADDRESS_BYTES);
    if (!r)
        r = ws_va_pool_init(&s->memory.host_va_pool, WS_HOST_VA_FIRST, WS_OWN_VA,
                            WS_HOST_VA_GRANULE_BYTES, WS_RESOURCE_HOST_ADDRESS_BYTES);
    if (!r)
        r = ws_users_open(s);
    if (!r)
        r = ws_loader_new(&s->loader, &loader_limits, s->commands.wake_fd);
    s->discards.loader = s->loader;
    if (!r)
        r = ws_alarms_new(&s->periods, s->commands.wake_fd);
    if (!r && (r = ws_energy_log_open(&s->energy_log, config)) < 0)
        ws_log(WS_ERROR, "energy_log: cannot write %s: %s", config->energy_log, strerror(-r));
    if (!r)
        r = ws_fused_cache_new(s);
    if (!r && s->cache.learn)
        r = ws_learn_new(&s->learn, config->profiles);
    char error[256] = "";
    if (!r)
        r = ws_dispatch_new(&s->dispatch, s, error, sizeof(error));
    if (r > 0) {
        ws_log(WS_ERROR, "policy %s: %s", config->policy, error);
        r = -EINVAL;
    }
    if (r) {
        ws_server_free(s);
        return ws_raise(r);
    }
    *ret = s;
    return 0;
}

struct ws_server *ws_server_free(struct ws_server *s)
{
    if (!s)
        return NULL;
    if (s->relaunch.n)
        ws_log(WS_INFO, "rewrite: launches=%llu parts=%llu", (unsigned long long)s->relaunch.n,
               (unsigned long long)s->relaunch.n_parts);
    while (!ws_list_empty(&s->clients.all))
        ws_client_drop(ws_list_entry(s->clients.all.next, struct ws_client, node), WS__ERROR__OK,
                       "daemon ends");
    for (;;) {
        ws_loader_take_done(s->loader);
        ws_finished_deal(s);
        ws_clients_settle(s);
        (void)ws_clients_reap(s, WS_SLICE_UNLIMITED);
        ws_server_run_turn_ends(s);
        if (ws_list_empty(&s->clients.dying))
            break;
        usleep(200); /* devices were told to let go; they do so soon */
    }
    ws_records_forget(s);
    (void)ws_account_queue_pop(&s->queues.ready); /* accounts may outlive the server */
    while (atomic_load(&s->commands.n_waking))
        usleep(20);
    ws_energy_log_close(s->energy_log, s);
    s->dispatch = ws_dispatch_free(s->dispatch);
    ws_alarms_leave(s->periods);
    ws_exports_free(s);
    ws_handoff_end(s);
    s->discards.loader = NULL;
    s->loader = ws_loader_free(s->loader);
    ws_fused_cache_free(s);
    ws_fused_arena_free(s);
    s->learn = ws_learn_free(s->learn);
    ws_messages_deinit(s);
    ws_ledger_deinit(&s->stats.not_supported);
    for (size_t i = 0; i < WS_ARRAY_SIZE(s->stats.ended); i++)
        ws_ledger_deinit(&s->stats.ended[i].not_supported);
    ws_cache_deinit(&s->cache);
    ws_task_sums_free(s);
    ws_accounts_free(s->accounts);
    ws_steps_deinit(&s->steps);
    ws_tracing_free(s);
    ws_va_pool_deinit(&s->memory.va_pool);
    ws_va_pool_deinit(&s->memory.host_va_pool);
    ws_arena_deinit(&s->arena);
    ws_command_pool_free(s);
    if (s->commands.wake_fd >= 0)
        close(s->commands.wake_fd);
    free(s);
    return NULL;
}

/* ---- clients that leave ---- */

static struct ws_client *next_overdue(struct ws_server *s, uint64_t now_ns)
{
    ws_list_for_each (n, &s->clients.leaving) {
        struct ws_client *c = ws_list_entry(n, struct ws_client, leaving.node);
        if (now_ns >= c->leaving.until_ns && !ws_sender_waits(&c->sender))
            return c;
    }
    return NULL;
}

/* Nothing more can come from it but what lies in its ring. It is dropped when all is handled. */
static void end_leaving(struct ws_client *c)
{
    c->leaving.until_ns = 0;
    if (!ws_messages_left(c))
        ws_client_drop(c, WS__ERROR__OK, "%s", c->leaving.why);
}

bool ws_server_disconnected(struct ws_server *s, const struct ws_peer *peer)
{
    struct ws_client *c = ws_client_find(s, peer);
    if (!c) {
        ws_messages_forget_stranger(s, peer);
        return false;
    }
    ws_client_leave(c, "connection lost");
    end_leaving(c);
    ws_clients_settle(s);
    return true;
}

static void end_overdue(struct ws_server *s)
{
    struct ws_client *c;
    uint64_t now = ws_clock_ns();
    while ((c = next_overdue(s, now)))
        end_leaving(c);
    ws_clients_settle(s);
}

static int leaving_ms(const struct ws_server *s)
{
    int ms = -1;
    ws_list_for_each (n, &s->clients.leaving) {
        const struct ws_client *c = ws_list_entry(n, struct ws_client, leaving.node);
        ms = ws_timeout_sooner(ms, ws_timeout_until(c->leaving.until_ns));
    }
    return ms;
}

/* ---- the turn ---- */

int ws_server_turn(struct ws_server *s)
{
    ws_clients_settle(s);
    if (WS_UNLIKELY(!ws_list_empty(&s->clients.leaving)))
        end_overdue(s);
    ws_loader_take_done(s->loader);
    ws_finished_deal(s);
    ws_clients_settle(s);
    ws_periods_turn(s);
    if (s->dispatch)
        ws_dispatch_turn(s);
    if (WS_UNLIKELY(!ws_list_empty(&s->relaunch.list)))
        ws_relaunch_shake(s);
    ws_clients_settle(s);
    int gate_ms = s->gated.n ? ws_gated_turn(s) : -1;
    int poll_ms = ws_server_poll_values(s);
    ws_clients_settle(s);
    ws_server_flush(s);
    while (!ws_list_empty(&s->clients.dropped)) { /* peers that are gone or don't read */
        ws_clients_settle(s);
        ws_server_flush(s);
    }
    bool more = ws_messages_turn(s);
    if (WS_UNLIKELY(!ws_list_empty(&s->out.dirty)))
        ws_server_flush(s);
    more |= ws_clients_reap(s, s->messages.slice_ns);
    more |= ws_cache_evict_some(&s->cache);
    ws_messages_turn_ends(s);
    ws_server_run_turn_ends(s);
    int log_ms = ws_timeout_sooner(ws_energy_log_turn(s->energy_log, s), ws_meters_turn(s));
    if (s->dispatch)
        gate_ms = ws_timeout_sooner(gate_ms, ws_dispatch_left_ms(s));
    gate_ms = ws_timeout_sooner(gate_ms, ws_stuck_turn(s));
    poll_ms = poll_ms >= 0 ? poll_ms : s->out.n_congested ? CONGESTED_POLL_MS : -1;
    if (WS_UNLIKELY(!ws_list_empty(&s->clients.leaving)))
        poll_ms = ws_timeout_sooner(poll_ms, leaving_ms(s));
    poll_ms = ws_timeout_sooner(poll_ms, ws_uploads_turn(s));
    int trace_ms = ws_tracing_turn(s);
    more |= ws_server_has_ready(s) || s->out.more;
    return more ? 0
                : ws_timeout_sooner(ws_timeout_sooner(poll_ms, gate_ms),
                                    ws_timeout_sooner(log_ms, trace_ms));
}

int ws_server_steps_fd(const struct ws_server *s)
{
    return s->steps.epoll_fd;
}

void ws_server_steps_turn(struct ws_server *s)
{
    ws_steps_turn(s);
}

int ws_server_wake_fd(const struct ws_server *s)
{
    return s->commands.wake_fd;
}

void ws_server_policy_changed(struct ws_server *s)
{
    char error[256] = "";
    const char *name = s->config->policy ? s->config->policy : "none";
    if (ws_dispatch_set_policy(s, name, (const char *const *)s->config->policy_options, error,
                               sizeof(error)))
        ws_log(WS_ERROR, "server: policy %s waits for the next start: %s", name, error);
}

void ws_server_drain(struct ws_server *s)
{
    s->clients.draining = true;
}

bool ws_server_idle(const struct ws_server *s)
{
    if (!ws_list_empty(&s->messages.waiting))
        return false;
    ws_list_for_each (n, &s->clients.all) {
        const struct ws_client *c = ws_list_entry(n, struct ws_client, node);
        if (c->stats.n_commands != c->stats.n_retired || ws_client_out_bytes(c))
            return false;
    }
    return true;
}

struct ws_accounts *ws_server_accounts(struct ws_server *s)
{
    return s->accounts;
}

void ws_server_use_closer(struct ws_server *s, struct ws_closer *c)
{
    s->closer = c;
}

uint32_t ws_server_n_clients(const struct ws_server *s)
{
    return s->clients.n;
}

bool ws_server_had_client(const struct ws_server *s)
{
    return s->clients.had_any;
}

void ws_server_say_goodbye(struct ws_server *s)
{
    while (!ws_list_empty(&s->clients.all))
        ws_client_drop(ws_list_entry(s->clients.all.next, struct ws_client, node),
                       WS__ERROR__DRAINING, "the daemon is going down");
    ws_clients_settle(s);
}
