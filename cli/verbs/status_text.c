// SPDX-License-Identifier: Apache-2.0
/* The status as text. A table is an array of columns; a column shows a field of the message, in
 * the unit that the end of the field's name says, or what its function makes of the message. */
#include "config.h"

#include <inttypes.h>
#include <string.h>

#include "base/macros.h"
#include "cli/common/message.h"
#include "cli/verbs/status.h"
#include "cli/common/text.h"

enum { CELL_BYTES = 256 };

struct column {
    const char *title;
    int width; /* negative: flush left; 0: the last one, as wide as its text */
    const char *field;
    void (*text)(const ProtobufCMessage *m, char *buf, size_t size); /* NULL: the field's value */
};

/* ---- cells ---- */

static bool has_word(const char *name, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = name; (p = strstr(p, word)); p++)
        if ((p == name || p[-1] == '_') && (!p[n] || p[n] == '_'))
            return true;
    return false;
}

static void number_cell(const char *name, uint64_t v, char *buf, size_t size)
{
    char bytes[24];
    if (has_word(name, "bytes"))
        snprintf(buf, size, "%s", ws_cli_bytes_text(v, bytes));
    else if (has_word(name, "ns")) /* milliseconds */
        snprintf(buf, size, "%.3f", (double)v / 1e6);
    else if (has_word(name, "uj")) /* joules */
        snprintf(buf, size, "%.4f", (double)v / 1e6);
    else if (has_word(name, "mw")) /* watts */
        snprintf(buf, size, "%.1f", (double)v / 1e3);
    else
        snprintf(buf, size, "%" PRIu64, v);
}

static void cell(const struct column *c, const ProtobufCMessage *m, char *buf, size_t size)
{
    if (c->text)
        c->text(m, buf, size);
    else if (ws_message_field(m, c->field)->type == PROTOBUF_C_TYPE_STRING)
        ws_cli_clean(ws_message_string(m, c->field), buf, size);
    else
        number_cell(c->field, ws_message_uint(m, c->field), buf, size);
}

static void put_cell(FILE *f, const struct column *c, bool first, const char *text)
{
    if (c->width)
        fprintf(f, "%s%*s", first ? "" : " ", c->width, text);
    else
        fprintf(f, "  %s", text);
}

/* A blank line, the titles, and a line for each of the messages. */
static void put_table(FILE *f, const struct column *columns, size_t n_columns,
                      ProtobufCMessage *const *messages, size_t n)
{
    fputc('\n', f);
    for (size_t i = 0; i < n_columns; i++)
        put_cell(f, &columns[i], i == 0, columns[i].title);
    fputc('\n', f);
    for (size_t k = 0; k < n; k++) {
        for (size_t i = 0; i < n_columns; i++) {
            char text[CELL_BYTES];
            cell(&columns[i], messages[k], text, sizeof(text));
            put_cell(f, &columns[i], i == 0, text);
        }
        fputc('\n', f);
    }
}

/* ---- GPUs ---- */

static void gpu_memory(const ProtobufCMessage *m, char *buf, size_t size)
{
    const Ws__GpuStatus *g = (const Ws__GpuStatus *)m;
    char used[24], total[24];
    snprintf(buf, size, "%s / %s", ws_cli_bytes_text(g->memory_used_bytes, used),
             ws_cli_bytes_text(g->memory_bytes, total));
}

static const struct column gpu_columns[] = {
    {"GPU", -4, "gpu", NULL},          {"NAME", -12, "name", NULL},
    {"SMS", 4, "n_sms", NULL},         {"CLIENTS", 8, "n_clients", NULL},
    {"MEMORY", 22, NULL, gpu_memory},  {"KERNELS", 9, "n_kernels", NULL},
    {"COPIES", 9, "n_copies", NULL},   {"DEVICE MS", 13, "busy_ns", NULL},
    {"JOULES", 11, "energy_uj", NULL}, {"WATTS", 9, "power_mw", NULL},
};

/* How far the time and the energy of a software GPU can be trusted. */
static void put_calibrated(FILE *f, const Ws__GpuStatus *g)
{
    char text[400];
    if (g->calibrated[0])
        fprintf(f, "GPU %u: catalog entry %s: %s\n", g->gpu, g->name,
                ws_cli_clean(g->calibrated, text, sizeof(text)));
}

/* What a real GPU and its driver support, and what became of its process. */
static void put_real(FILE *f, const Ws__GpuStatus *g)
{
    char text[400];
    if (g->driver[0])
        fprintf(f, "GPU %u: %s, driver %s\n", g->gpu, g->product,
                ws_cli_clean(g->driver, text, sizeof(text)));
    if (g->lost[0])
        fprintf(f, "GPU %u: LOST: %s\n", g->gpu, ws_cli_clean(g->lost, text, sizeof(text)));
    if (g->worker_pid || g->worker_restarts)
        fprintf(f, "GPU %u: worker: pid %u, restarted %" PRIu64 " time%s", g->gpu, g->worker_pid,
                g->worker_restarts, g->worker_restarts == 1 ? "" : "s");
    if (g->worker_restarts)
        fprintf(f, ", last in %" PRIu64 " ms: %s", g->worker_last_ns / 1000000,
                ws_cli_clean(g->worker_last, text, sizeof(text)));
    if (g->worker_pid || g->worker_restarts)
        fputc('\n', f);
    for (size_t k = 0; k < g->n_capabilities; k++)
        fprintf(f, "GPU %u: %s\n", g->gpu, ws_cli_clean(g->capabilities[k], text, sizeof(text)));
}

/* ---- clients ---- */

const char *ws_cli_client_state(const Ws__ClientStatus *c)
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

static void client_task(const ProtobufCMessage *m, char *buf, size_t size)
{
    enum { WIDTH = 32 };
    const Ws__ClientStatus *c = (const Ws__ClientStatus *)m;
    ws_cli_clean(*c->work ? c->work : ws_cli_base_name(c->exe), buf, WS_MIN(size, WIDTH + 1));
}

static void client_state(const ProtobufCMessage *m, char *buf, size_t size)
{
    snprintf(buf, size, "%s", ws_cli_client_state((const Ws__ClientStatus *)m));
}

static void client_gpus(const ProtobufCMessage *m, char *buf, size_t size)
{
    enum { LONGEST = 12, WIDTH = 32 }; /* of one number; of them all */
    const Ws__ClientStatus *c = (const Ws__ClientStatus *)m;
    size_t n = 0;
    snprintf(buf, size, "-");
    for (size_t k = 0; k < c->n_gpus && n + LONGEST < WIDTH; k++)
        n += (size_t)snprintf(buf + n, size - n, k ? ",%u" : "%u", c->gpus[k]);
}

static void client_joules(const ProtobufCMessage *m, char *buf, size_t size)
{
    const Ws__ClientStatus *c = (const Ws__ClientStatus *)m;
    number_cell("busy_uj", c->busy_uj + c->idle_uj, buf, size);
}

static const struct column client_columns[] = {
    {"CLIENT", -6, "client", NULL},      {"PID", 7, "pid", NULL},
    {"TASK", -32, NULL, client_task},    {"STATE", -10, NULL, client_state},
    {"GPU", -6, NULL, client_gpus},      {"MEMORY", 10, "memory_bytes", NULL},
    {"KERNELS", 9, "n_kernels", NULL},   {"IN", 10, "bytes_in", NULL},
    {"OUT", 10, "bytes_out", NULL},      {"DEVICE MS", 11, "device_ns", NULL},
    {"JOULES", 10, NULL, client_joules}, {"ERROR", 0, "error_text", NULL},
};

/* What is particular about a gated client. */
static void put_gated(FILE *f, const Ws__ClientStatus *c)
{
    if (c->gate && (c->n_over_lease || c->n_unmeasured || c->energy_unknown))
        fprintf(f,
                "client %u (gated): over its lease %" PRIu64 " times; %" PRIu64
                " jobs not measured%s\n",
                c->client, c->n_over_lease, c->n_unmeasured,
                c->energy_unknown ? "; energy not known: no telemetry of its GPU" : "");
}

/* What programs called and were told is not supported. */
static void put_not_supported(FILE *f, const Ws__StatusReply *s)
{
    char name[256];
    if (!s->n_not_supported)
        return;
    fprintf(f, "\n%9s  %s\n", "TIMES", "NOT SUPPORTED");
    for (size_t i = 0; i < s->n_not_supported; i++)
        fprintf(f, "%9" PRIu64 "  %s\n", s->not_supported[i]->count,
                ws_cli_clean(s->not_supported[i]->name, name, sizeof(name)));
    for (size_t i = 0; i < s->n_clients; i++) {
        const Ws__ClientStatus *c = s->clients[i];
        for (size_t k = 0; k < c->n_not_supported; k++)
            fprintf(f, "%9" PRIu64 "  %s (client %u)\n", c->not_supported[k]->count,
                    ws_cli_clean(c->not_supported[k]->name, name, sizeof(name)), c->client);
    }
}

/* ---- what was learned ---- */

static void learned_name(const ProtobufCMessage *m, char *buf, size_t size)
{
    enum { WIDTH = 40 };
    ws_cli_clean(((const Ws__LearnedKernel *)m)->name, buf, WS_MIN(size, WIDTH + 1));
}

static void learned_time(const ProtobufCMessage *m, char *buf, size_t size)
{
    snprintf(buf, size, "%.4f", ((const Ws__LearnedKernel *)m)->time_ms);
}

static void learned_watts(const ProtobufCMessage *m, char *buf, size_t size)
{
    const Ws__LearnedKernel *k = (const Ws__LearnedKernel *)m;
    snprintf(buf, size, k->has_power ? "%.1f" : "-", k->power_w);
}

static void learned_error(const ProtobufCMessage *m, char *buf, size_t size)
{
    const Ws__LearnedKernel *k = (const Ws__LearnedKernel *)m;
    snprintf(buf, size, k->n_errors ? "%+.1f ± %.1f %%" : "-", 100 * k->error_mean,
             100 * k->error_deviation);
}

static void learned_first_error(const ProtobufCMessage *m, char *buf, size_t size)
{
    const Ws__LearnedKernel *k = (const Ws__LearnedKernel *)m;
    snprintf(buf, size, k->has_cold_error ? "%+.0f %%" : "-", 100 * k->cold_error);
}

static const struct column learned_columns[] = {
    {"KERNEL", -40, NULL, learned_name},
    {"GPU", -12, "gpu", NULL},
    {"SHAPE", -24, "shape", NULL},
    {"RUNS", 8, "n_runs", NULL},
    {"SMS", 4, "n_sms", NULL},
    {"DEVICE MS", 11, NULL, learned_time},
    {"WATTS", 8, NULL, learned_watts},
    {"PREDICTION ERROR", 18, NULL, learned_error},
    {"AT FIRST", 9, NULL, learned_first_error},
};

/* ---- accounts ---- */

static void account_may(const ProtobufCMessage *m, char *buf, size_t size)
{
    const Ws__AccountStatus *a = (const Ws__AccountStatus *)m;
    snprintf(buf, size, a->limited ? "%" PRIu64 : "-", a->may_hold);
}

static const struct column account_columns[] = {
    {"ACCOUNT", -24, "account", NULL}, {"RESOURCE", -16, "resource", NULL},
    {"HAS", 14, "used", NULL},         {"MAY HAVE", 14, NULL, account_may},
    {"REFUSED", 9, "n_refused", NULL},
};

static void put_others(FILE *f, const Ws__OtherClients *o)
{
    if (o && o->n_clients)
        fprintf(f,
                "clients of other users: %u, with %" PRIu64 " bytes of memory, %" PRIu64
                " kernels, %.3f ms of device time\n",
                o->n_clients, o->memory_bytes, o->n_kernels, (double)o->device_ns / 1e6);
}

/* ---- all of it ---- */

/* Counters in a sentence: "3 modules, 12 messages". */
struct counter {
    const char *field, *words;
};
static const struct counter daemon_counters[] = {
    {"n_modules", "modules"},
    {"n_messages", "messages"},
    {"n_commands", "commands"},
};
static const struct counter policy_counters[] = {
    {"n_jobs", "jobs"},
    {"n_preemptions", "preemptions"},
    {"n_merged", "merged launches"},
    {"n_moves", "moves between GPUs"},
};

static const struct counter kernel_counters[] = {
    {"n_kernels_compiled", "compiled"},
    {"n_kernels_waiting", "being compiled"},
    {"n_kernels_cold", "interpreted until they have run for long"},
    {"n_kernels_unsupported", "with operations that have no code"},
    {"n_kernels_large", "too large"},
    {"n_kernels_no_room", "with no room for their code"},
    {"n_kernels_no_compiler", "without a compiler"},
    {"n_kernels_not_faster", "faster when interpreted"},
};
static const struct counter code_counters[] = {
    {"n_codes_made", "compiled"},
    {"n_codes_found", "found on disk"},
    {"n_codes_damaged", "damaged there"},
};

static void put_counters(FILE *f, const Ws__StatusReply *s, const struct counter *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        fprintf(f, "%s%" PRIu64 " %s", i ? ", " : "", ws_message_uint(&s->base, v[i].field),
                v[i].words);
    fputc('\n', f);
}

/* Return: whether there is any. */
static bool put_those_above_zero(FILE *f, const char *what, const Ws__StatusReply *s,
                                 const struct counter *v, size_t n)
{
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        uint64_t count = ws_message_uint(&s->base, v[i].field);
        if (count)
            fprintf(f, "%s%s%" PRIu64 " %s", any ? "" : what, any ? ", " : ": ", count, v[i].words);
        any |= count != 0;
    }
    if (any)
        fputc('\n', f);
    return any;
}

#define PUT_TABLE(f, columns, messages, n)                                                         \
    put_table(f, columns, WS_ARRAY_SIZE(columns), (ProtobufCMessage *const *)(messages), n)

void ws_cli_status_text(FILE *f, const Ws__StatusReply *s)
{
    fprintf(f, "wattshared pid %u on %s, up %.1f s: policy %s, ", s->pid, s->socket,
            (double)s->uptime_ns / 1e9, *s->policy ? s->policy : "none");
    put_counters(f, s, daemon_counters, WS_ARRAY_SIZE(daemon_counters));
    if (s->n_jobs) {
        fprintf(f, "policy %s: ", s->policy);
        put_counters(f, s, policy_counters, WS_ARRAY_SIZE(policy_counters));
    }
    if (put_those_above_zero(f, "kernels", s, kernel_counters, WS_ARRAY_SIZE(kernel_counters)))
        put_those_above_zero(f, "machine code since the start", s, code_counters,
                             WS_ARRAY_SIZE(code_counters));
    PUT_TABLE(f, gpu_columns, s->gpus, s->n_gpus);
    for (size_t i = 0; i < s->n_gpus; i++) {
        put_calibrated(f, s->gpus[i]);
        put_real(f, s->gpus[i]);
    }
    PUT_TABLE(f, client_columns, s->clients, s->n_clients);
    put_others(f, s->others);
    for (size_t i = 0; i < s->n_clients; i++)
        put_gated(f, s->clients[i]);
    if (s->n_accounts)
        PUT_TABLE(f, account_columns, s->accounts, s->n_accounts);
    put_not_supported(f, s);
    if (s->n_learned)
        PUT_TABLE(f, learned_columns, s->learned, s->n_learned);
}
