// SPDX-License-Identifier: Apache-2.0
/* wattshare status: what the daemon says of itself, its GPUs and its clients; tables for people, JSON for machines. */
#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/verbs/text.h"

/* What the GPU and its driver can and can't do. */
static void print_real(const Ws__GpuStatus *g)
{
    char text[400];
    if (g->driver[0])
        printf("GPU %u: %s, driver %s\n", g->gpu, g->product,
               ws_cli_clean(g->driver, text, sizeof text));
    if (g->lost[0])
        printf("GPU %u: LOST: %s\n", g->gpu, ws_cli_clean(g->lost, text, sizeof text));
    if (g->worker_pid || g->worker_restarts)
        printf("GPU %u: worker: pid %u, restarted %" PRIu64 " time%s", g->gpu, g->worker_pid,
               g->worker_restarts, g->worker_restarts == 1 ? "" : "s");
    if (g->worker_restarts)
        printf(", last in %" PRIu64 " ms: %s", g->worker_last_ns / 1000000,
               ws_cli_clean(g->worker_last, text, sizeof text));
    if (g->worker_pid || g->worker_restarts)
        putchar('\n');
    for (size_t k = 0; k < g->n_capabilities; k++)
        printf("GPU %u: %s\n", g->gpu, ws_cli_clean(g->capabilities[k], text, sizeof text));
}

static void print_gpus(const Ws__StatusReply *s)
{
    char used[24], total[24];
    printf("\n%-4s %-12s %4s %8s %22s %9s %9s %13s %11s %9s\n", "GPU", "NAME", "SMS", "CLIENTS",
           "MEMORY", "KERNELS", "COPIES", "DEVICE MS", "JOULES", "WATTS");
    for (size_t i = 0; i < s->n_gpus; i++) {
        const Ws__GpuStatus *g = s->gpus[i];
        char memory[56];
        snprintf(memory, sizeof memory, "%s / %s", ws_cli_bytes_text(g->memory_used_bytes, used),
                 ws_cli_bytes_text(g->memory_bytes, total));
        printf("%-4u %-12s %4u %8u %22s %9" PRIu64 " %9" PRIu64 " %13.3f %11.4f %9.1f\n", g->gpu,
               g->name, g->n_sms, g->n_clients, memory, g->n_kernels, g->n_copies,
               (double)g->busy_ns / 1e6, (double)g->energy_uj / 1e6, (double)g->power_mw / 1e3);
    }
    for (size_t i = 0; i < s->n_gpus; i++)
        print_real(s->gpus[i]);
}

/* "run", "ended", or where a gated client stands. */
static const char *state_of(const Ws__ClientStatus *c)
{
    static const char *const gated[] = {
        [WS__CLIENT_STATUS__GATE__GATE_IDLE] = "gated",
        [WS__CLIENT_STATUS__GATE__GATE_WAITS] = "gate-waits",
        [WS__CLIENT_STATUS__GATE__GATE_HOLDS] = "gate-holds",
        [WS__CLIENT_STATUS__GATE__GATE_OVER_LEASE] = "gate-over",
    };
    if (!c->connected)
        return "ended";
    return c->gate > 0 && (size_t)c->gate < WS_ARRAY_SIZE(gated) ? gated[c->gate] : "run";
}

/* What is particular about gated clients. */
static void print_gated(const Ws__StatusReply *s)
{
    for (size_t i = 0; i < s->n_clients; i++) {
        const Ws__ClientStatus *c = s->clients[i];
        if (c->gate && (c->n_over_lease || c->n_unmeasured || c->energy_unknown))
            printf("client %u (gated): over its lease %" PRIu64 " times; %" PRIu64
                   " jobs not measured%s\n",
                   c->client, c->n_over_lease, c->n_unmeasured,
                   c->energy_unknown ? "; energy not known: no telemetry of its GPU" : "");
    }
}

static void print_clients(const Ws__StatusReply *s)
{
    char memory[24], in[24], out[24], name[33], gpus[32], error[256];
    printf("\n%-6s %7s %-32s %-10s %-6s %10s %9s %10s %10s %11s %10s  %s\n", "CLIENT", "PID",
           "TASK", "STATE", "GPU", "MEMORY", "KERNELS", "IN", "OUT", "DEVICE MS", "JOULES",
           "ERROR");
    for (size_t i = 0; i < s->n_clients; i++) {
        const Ws__ClientStatus *c = s->clients[i];
        size_t n = 0;
        gpus[0] = 0;
        for (size_t k = 0; k < c->n_gpus && n + 12 < sizeof gpus; k++)
            n += (size_t)snprintf(gpus + n, sizeof gpus - n, k ? ",%u" : "%u", c->gpus[k]);
        ws_cli_clean(*c->work ? c->work : ws_cli_base_name(c->exe), name, sizeof name);
        ws_cli_clean(c->error_text, error, sizeof error);
        printf("%-6u %7u %-32s %-10s %-6s %10s %9" PRIu64 " %10s %10s %11.3f %10.4f  %s\n",
               c->client, c->pid, name, state_of(c), *gpus ? gpus : "-",
               ws_cli_bytes_text(c->memory_bytes, memory), c->n_kernels,
               ws_cli_bytes_text(c->bytes_in, in), ws_cli_bytes_text(c->bytes_out, out),
               (double)c->device_ns / 1e6, (double)(c->busy_uj + c->idle_uj) / 1e6, error);
    }
}

/* What programs called and were told is not supported. */
static void print_not_supported(const Ws__StatusReply *s)
{
    char name[256];
    if (!s->n_not_supported)
        return;
    printf("\n%9s  %s\n", "TIMES", "NOT SUPPORTED");
    for (size_t i = 0; i < s->n_not_supported; i++)
        printf("%9" PRIu64 "  %s\n", s->not_supported[i]->count,
               ws_cli_clean(s->not_supported[i]->name, name, sizeof name));
    for (size_t i = 0; i < s->n_clients; i++) {
        const Ws__ClientStatus *c = s->clients[i];
        for (size_t k = 0; k < c->n_not_supported; k++)
            printf("%9" PRIu64 "  %s (client %u)\n", c->not_supported[k]->count,
                   ws_cli_clean(c->not_supported[k]->name, name, sizeof name), c->client);
    }
}

/* What is known of the kernels that ran last, and how well their times are predicted. */
static void print_learned(const Ws__StatusReply *s)
{
    char name[41], shape[64], error[48], cold[24], watts[24];
    if (!s->n_learned)
        return;
    printf("\n%-40s %-12s %-24s %8s %4s %11s %8s %18s %9s\n", "KERNEL", "GPU", "SHAPE", "RUNS",
           "SMS", "DEVICE MS", "WATTS", "PREDICTION ERROR", "AT FIRST");
    for (size_t i = 0; i < s->n_learned; i++) {
        const Ws__LearnedKernel *k = s->learned[i];
        snprintf(error, sizeof error, k->n_errors ? "%+.1f ± %.1f %%" : "-", 100 * k->error_mean,
                 100 * k->error_deviation);
        snprintf(cold, sizeof cold, k->has_cold_error ? "%+.0f %%" : "-", 100 * k->cold_error);
        snprintf(watts, sizeof watts, k->has_power ? "%.1f" : "-", k->power_w);
        printf("%-40s %-12s %-24s %8" PRIu64 " %4u %11.4f %8s %18s %9s\n",
               ws_cli_clean(k->name, name, sizeof name), k->gpu,
               ws_cli_clean(k->shape, shape, sizeof shape), k->n_runs, k->n_sms, k->time_ms, watts,
               error, cold);
    }
}

static void print_tables(const Ws__StatusReply *s)
{
    printf("wattshared pid %u on %s, up %.1f s: policy %s, %u modules, %" PRIu64
           " messages, %" PRIu64 " commands\n",
           s->pid, s->socket, (double)s->uptime_ns / 1e9, *s->policy ? s->policy : "none",
           s->n_modules, s->n_messages, s->n_commands);
    if (s->n_jobs)
        printf("policy %s: %" PRIu64 " jobs, %" PRIu64 " preemptions, %" PRIu64
               " merged launches, %" PRIu64 " moves between GPUs\n",
               s->policy, s->n_jobs, s->n_preemptions, s->n_merged, s->n_moves);
    print_gpus(s);
    print_clients(s);
    print_gated(s);
    print_not_supported(s);
    print_learned(s);
}

static void add_u64(struct json_object *o, const char *key, uint64_t v)
{
    json_object_object_add(o, key, json_object_new_uint64(v));
}

static void add_string(struct json_object *o, const char *key, const char *v)
{
    char buf[1024];
    json_object_object_add(o, key, json_object_new_string(ws_cli_clean(v, buf, sizeof buf)));
}

/* Of each SM, whose kernel may use it: 0: nobody's; -1: those of several clients. */
static void add_sms(struct json_object *o, const Ws__GpuStatus *g)
{
    struct json_object *sms = json_object_new_array();
    for (size_t i = 0; i < g->n_sm_clients; i++)
        json_object_array_add(
            sms,
            json_object_new_int64(g->sm_clients[i] == UINT32_MAX ? -1 : (int64_t)g->sm_clients[i]));
    json_object_object_add(o, "sm_clients", sms);
}

static struct json_object *gpu_json(const Ws__GpuStatus *g)
{
    struct json_object *o = json_object_new_object();
    add_u64(o, "gpu", g->gpu);
    add_string(o, "name", g->name);
    add_string(o, "product", g->product);
    add_string(o, "kind", g->kind);
    add_u64(o, "n_sms", g->n_sms);
    add_u64(o, "n_clients", g->n_clients);
    add_sms(o, g);
    add_u64(o, "memory_bytes", g->memory_bytes);
    add_u64(o, "memory_used_bytes", g->memory_used_bytes);
    add_u64(o, "n_kernels", g->n_kernels);
    add_u64(o, "n_copies", g->n_copies);
    add_u64(o, "copied_bytes", g->copied_bytes);
    add_u64(o, "device_ns", g->device_ns);
    add_u64(o, "busy_ns", g->busy_ns);
    add_u64(o, "sm_busy_ns", g->sm_busy_ns);
    add_u64(o, "energy_uj", g->energy_uj);
    add_u64(o, "power_mw", g->power_mw);
    if (g->driver[0]) {
        struct json_object *can = json_object_new_array();
        for (size_t k = 0; k < g->n_capabilities; k++)
            json_object_array_add(can, json_object_new_string(g->capabilities[k]));
        add_string(o, "driver", g->driver);
        add_string(o, "lost", g->lost);
        add_u64(o, "worker_pid", g->worker_pid);
        add_u64(o, "worker_restarts", g->worker_restarts);
        add_string(o, "worker_last", g->worker_last);
        add_u64(o, "worker_last_ns", g->worker_last_ns);
        json_object_object_add(o, "capabilities", can);
    }
    add_u64(o, "idle_uj", g->idle_uj);
    add_u64(o, "clients_uj", g->clients_uj);
    add_u64(o, "system_uj", g->system_uj);
    add_u64(o, "under_way_uj", g->under_way_uj);
    return o;
}

static struct json_object *not_supported_json(Ws__NotSupported *const *v, size_t n)
{
    struct json_object *o = json_object_new_object();
    for (size_t i = 0; i < n; i++) {
        char name[256];
        add_u64(o, ws_cli_clean(v[i]->name, name, sizeof name), v[i]->count);
    }
    return o;
}

static struct json_object *client_json(const Ws__ClientStatus *c)
{
    struct json_object *o = json_object_new_object(), *gpus = json_object_new_array();
    add_u64(o, "client", c->client);
    add_u64(o, "pid", c->pid);
    add_u64(o, "uid", c->uid);
    add_string(o, "exe", c->exe);
    add_string(o, "task", c->work);
    json_object_object_add(o, "period_ms", json_object_new_double(c->period_ms));
    json_object_object_add(o, "deadline_ms", json_object_new_double(c->deadline_ms));
    json_object_object_add(o, "priority", json_object_new_int(c->priority));
    json_object_object_add(o, "weight", json_object_new_double(c->weight));
    add_string(o, "sms", c->sms);
    json_object_object_add(o, "connected", json_object_new_boolean(c->connected));
    for (size_t k = 0; k < c->n_gpus; k++)
        json_object_array_add(gpus, json_object_new_int64(c->gpus[k]));
    json_object_object_add(o, "gpus", gpus);
    add_u64(o, "memory_bytes", c->memory_bytes);
    add_u64(o, "peak_memory_bytes", c->peak_memory_bytes);
    add_u64(o, "n_kernels", c->n_kernels);
    add_u64(o, "n_copies", c->n_copies);
    add_u64(o, "bytes_in", c->bytes_in);
    add_u64(o, "bytes_out", c->bytes_out);
    add_u64(o, "device_ns", c->device_ns);
    add_u64(o, "span_ns", c->span_ns);
    add_u64(o, "energy_uj", c->energy_uj);
    add_u64(o, "busy_uj", c->busy_uj);
    add_u64(o, "idle_uj", c->idle_uj);
    add_u64(o, "n_commands", c->n_commands);
    add_u64(o, "n_outstanding", c->n_outstanding);
    add_u64(o, "n_jobs", c->n_jobs);
    add_u64(o, "n_late", c->n_late);
    if (c->gate) {
        add_string(o, "gate", state_of(c));
        add_u64(o, "n_over_lease", c->n_over_lease);
        add_u64(o, "n_unmeasured", c->n_unmeasured);
        json_object_object_add(o, "energy_known", json_object_new_boolean(!c->energy_unknown));
    }
    if (c->has_job)
        json_object_object_add(o, "deadline_left_ms", json_object_new_double(c->deadline_left_ms));
    add_u64(o, "age_ns", c->age_ns);
    add_u64(o, "error", (uint64_t)c->error);
    add_string(o, "error_text", c->error_text);
    json_object_object_add(o, "not_supported",
                           not_supported_json(c->not_supported, c->n_not_supported));
    return o;
}

static void add_double(struct json_object *o, const char *key, double v)
{
    json_object_object_add(o, key, json_object_new_double(v));
}

/* What isn't known is null. */
static struct json_object *learned_json(const Ws__LearnedKernel *k)
{
    struct json_object *o = json_object_new_object();
    add_string(o, "kernel", k->name);
    add_string(o, "gpu", k->gpu);
    add_string(o, "shape", k->shape);
    add_u64(o, "n_runs", k->n_runs);
    add_u64(o, "n_sm_counts", k->n_points);
    add_u64(o, "n_sms", k->n_sms);
    add_double(o, "time_ms", k->time_ms);
    json_object_object_add(o, "power_w", k->has_power ? json_object_new_double(k->power_w) : NULL);
    add_u64(o, "n_errors", k->n_errors);
    add_double(o, "error_mean", k->error_mean);
    add_double(o, "error_deviation", k->error_deviation);
    json_object_object_add(o, "cold_error",
                           k->has_cold_error ? json_object_new_double(k->cold_error) : NULL);
    return o;
}

static void print_json(const Ws__StatusReply *s)
{
    struct json_object *o = json_object_new_object(), *gpus = json_object_new_array(),
                       *clients = json_object_new_array(), *learned = json_object_new_array();
    add_u64(o, "version", s->version);
    add_u64(o, "pid", s->pid);
    add_string(o, "socket", s->socket);
    add_u64(o, "uptime_ns", s->uptime_ns);
    add_string(o, "policy", *s->policy ? s->policy : "none");
    add_u64(o, "n_jobs", s->n_jobs);
    add_u64(o, "n_preemptions", s->n_preemptions);
    add_u64(o, "n_merged", s->n_merged);
    add_u64(o, "n_moves", s->n_moves);
    add_u64(o, "n_modules", s->n_modules);
    add_u64(o, "n_messages", s->n_messages);
    add_u64(o, "n_commands", s->n_commands);
    for (size_t i = 0; i < s->n_gpus; i++)
        json_object_array_add(gpus, gpu_json(s->gpus[i]));
    for (size_t i = 0; i < s->n_clients; i++)
        json_object_array_add(clients, client_json(s->clients[i]));
    for (size_t i = 0; i < s->n_learned; i++)
        json_object_array_add(learned, learned_json(s->learned[i]));
    json_object_object_add(o, "gpus", gpus);
    json_object_object_add(o, "clients", clients);
    json_object_object_add(o, "learned", learned);
    json_object_object_add(o, "not_supported",
                           not_supported_json(s->not_supported, s->n_not_supported));
    puts(json_object_to_json_string_ext(o,
                                        JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(o);
}

int ws_cli_status(int argc, char **argv)
{
    static const struct option options[] = {
        {"json", no_argument, NULL, 'j'}, {"socket", required_argument, NULL, 's'}, {0}};
    const char *socket = NULL;
    bool json = false;
    Ws__ServerMessage *m = NULL;
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (c == 'j')
            json = true;
        else if (c == 's')
            socket = optarg;
        else
            return WS_EXIT_USAGE;
    }
    if (optind < argc) {
        ws_cli_error("status takes no '%s'; usage: wattshare status [--json] [--socket ENDPOINT]",
                     argv[optind]);
        return WS_EXIT_USAGE;
    }
    const char *endpoint = ws_cli_endpoint(socket);
    int r = ws_cli_ask_status(endpoint, 2000, &m);
    if (r) {
        ws_cli_error("no answer from a daemon at %s (%s); start one: systemctl start wattshared, "
                     "or wattshared --socket %s",
                     endpoint, strerror(-r), endpoint);
        return WS_EXIT_UNAVAILABLE;
    }
    json ? print_json(m->status) : print_tables(m->status);
    ws__server_message__free_unpacked(m, NULL);
    return 0;
}
