// SPDX-License-Identifier: Apache-2.0
/* wattshare trace: writes what runs on each GPU to a file that Perfetto (ui.perfetto.dev) opens.
 * The daemon keeps what its GPUs have done while somebody asks for it
 * (backend/process/tracing.c), and this file asks ten times a second. A process of the trace is
 * a GPU, and a thread of it a client's stream, in which operations never overlap. A client that
 * has waited for a GPU is a process, too: its slices say how long which operation waited, and an
 * arrow leads from each to the operation on the GPU. What the policy decides is a process with a
 * mark for each decision. What `wattshare report` needs to know of GPUs and clients besides is told
 * with ws_trace_about(). Times are those of the GPUs' common clock. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/sm_set.h"
#include "base/table.h"
#include "base/trace_file.h"
#include "cli/common/demangle.h"
#include "cli/common/options.h"
#include "cli/common/link.h"
#include "cli/common/text.h"

enum { ASK_EVERY_MS = 100, FETCH_MS = 4000, TRACKS_MAX = 1000000 };
/* Numbers of processes: cli/report takes those below WS_REPORT_GPUS for GPUs, no others. */
enum { FIRST_GPU = 1, POLICY = 999, FIRST_CLIENT = 1000 };

#define FROM_NOW UINT64_MAX

struct track { /* a client's stream on a GPU */
    struct {
        uint64_t stream;
        uint32_t gpu, client;
    } key;
    int number;
    bool has_waited;
    UT_hash_handle hh;
};
struct told { /* a client of which it has been said what it was promised */
    uint32_t client;
    UT_hash_handle hh;
};
struct counted { /* of a GPU, when its counters were written last */
    uint64_t device_ns, energy_uj, sm_busy_ns;
};
struct recording {
    struct counted counted[WS_MAX_DEVICES];
    struct ws_trace t;
    struct track *tracks;
    struct told *told;
    uint64_t after, decisions_after, n_spans, n_decisions, n_waits, n_lost;
};

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
    stop = 1;
}

static bool is_trace(const Ws__ServerMessage *m)
{
    return m->trace != NULL;
}

/* Returns the name's length. */
static size_t name_client(const Ws__TraceSpan *p, char *buf, size_t size)
{
    char task[64];
    return (size_t)snprintf(buf, size, "%s, client %u, pid %u",
                            ws_cli_clean(p->task, task, sizeof(task)), p->client, p->pid);
}

static const char *name_stream(const Ws__TraceSpan *p, char *buf, size_t size)
{
    if (p->stream <= WS_MAX_DEVICES)
        return "default stream";
    snprintf(buf, size, "stream %" PRIu64, p->stream);
    return buf;
}

/* The track, named at its first use. NULL: no memory, or no daemon has so many. */
static struct track *track_of(struct recording *r, const Ws__TraceSpan *p)
{
    struct track probe, *k;
    char name[160], stream[40];
    memset(&probe.key, 0, sizeof(probe.key));
    probe.key.stream = p->stream;
    probe.key.gpu = p->gpu;
    probe.key.client = p->client;
    HASH_FIND(hh, r->tracks, &probe.key, sizeof(probe.key), k);
    if (k)
        return k;
    k = HASH_COUNT(r->tracks) < TRACKS_MAX ? ws_alloc(sizeof(*k)) : NULL;
    if (!k)
        return NULL;
    k->key = probe.key;
    k->number = (int)HASH_COUNT(r->tracks) + 1;
    HASH_ADD(hh, r->tracks, key, sizeof(k->key), k);
    size_t n = name_client(p, name, sizeof(name));
    snprintf(name + n, sizeof(name) - n, ", %s", name_stream(p, stream, sizeof(stream)));
    ws_trace_name(&r->t, FIRST_GPU + (int)p->gpu, k->number, NULL, name);
    return k;
}

static void name_gpus(struct recording *r, const Ws__StatusReply *s)
{
    char text[96], name[40];
    for (size_t i = 0; i < s->n_gpus; i++) {
        const Ws__GpuStatus *g = s->gpus[i];
        snprintf(text, sizeof(text), "GPU %u %s", g->gpu,
                 ws_cli_clean(g->name, name, sizeof(name)));
        ws_trace_name(&r->t, FIRST_GPU + (int)g->gpu, 0, text, NULL);
        snprintf(text, sizeof(text), "\"sms\":%u,\"core_mhz\":%u,\"idle_w\":%.3f", g->n_sms,
                 g->default_core_mhz, g->idle_mw / 1e3);
        ws_trace_about(&r->t, FIRST_GPU + (int)g->gpu, "gpu", text);
    }
}

/* Priorities and times of clients that have any. */
static void tell_clients(struct recording *r, const Ws__StatusReply *s)
{
    char text[160];
    for (size_t i = 0; i < s->n_clients; i++) {
        const Ws__ClientStatus *c = s->clients[i];
        struct told *t;
        HASH_FIND(hh, r->told, &c->client, sizeof(c->client), t);
        if (t || (!c->priority && !(c->period_ms > 0) && !(c->deadline_ms > 0)) ||
            HASH_COUNT(r->told) >= TRACKS_MAX || !(t = ws_alloc(sizeof(*t))))
            continue;
        t->client = c->client;
        HASH_ADD(hh, r->told, client, sizeof(t->client), t);
        snprintf(text, sizeof(text), "\"priority\":%d,\"period_ms\":%.6g,\"deadline_ms\":%.6g",
                 c->priority, c->period_ms, c->deadline_ms);
        ws_trace_about(&r->t, FIRST_CLIENT + (int)c->client, "client", text);
    }
}

static void write_decision(struct recording *r, const Ws__TraceDecision *d)
{
    char name[160], task[64], *args = NULL;
    size_t n;
    FILE *f = open_memstream(&args, &n);
    if (!f)
        return;
    fprintf(f, "\"job\":%" PRIu64 ",\"why\":", d->job);
    ws_trace_quote(f, d->why);
    if (d->somewhere)
        fprintf(f, ",\"gpu\":%u,\"sms\":%u", d->gpu, d->n_sms);
    if (!r->n_decisions++)
        ws_trace_name(&r->t, POLICY, 1, "policy", "decisions");
    snprintf(name, sizeof(name), "%s job %" PRIu64 " (%s)", d->what, d->job,
             ws_cli_clean(d->task, task, sizeof(task)));
    if (!fclose(f))
        ws_trace_mark(&r->t, POLICY, 1, name, d->at_ms, args);
    free(args);
}

static void span_name(const Ws__TraceSpan *p, char *buf, size_t size)
{
    char bytes[24];
    if (p->kind == WS__TRACE_SPAN__KIND__KERNEL)
        ws_demangle(p->name, buf, size);
    else
        snprintf(buf, size, "%s %s", p->kind == WS__TRACE_SPAN__KIND__COPY ? "copy" : "fill",
                 ws_cli_bytes_text(p->bytes, bytes));
}

/* In the client's process, the time in which an operation waited for its GPU. */
static void write_wait(struct recording *r, struct track *k, const Ws__TraceSpan *p,
                       const char *operation)
{
    int client = FIRST_CLIENT + (int)p->client;
    double from = (double)p->ready_ns / 1e6, to = (double)p->start_ns / 1e6;
    char name[120], stream[40], text[200];
    if (!k->has_waited) {
        k->has_waited = true;
        name_client(p, name, sizeof(name));
        ws_trace_name(&r->t, client, 0, name, NULL);
        snprintf(text, sizeof(text), "%s waits for GPU %u", name_stream(p, stream, sizeof(stream)),
                 p->gpu);
        ws_trace_name(&r->t, client, k->number, NULL, text);
    }
    snprintf(text, sizeof(text), "%s waits", operation);
    ws_trace_slice(&r->t, client, k->number, text, from, to, NULL);
    ws_trace_flow(&r->t, client, k->number, "begins", from, ++r->n_waits, false);
    ws_trace_flow(&r->t, FIRST_GPU + (int)p->gpu, k->number, "begins", to, r->n_waits, true);
}

/* The fields of the SM set, which has as many words as SMs there may be, or fewer. */
static size_t put_sms(const ProtobufCBinaryData *sms, char *buf, size_t size)
{
    size_t n = (size_t)snprintf(buf, size, ",\"sm_set\":\"");
    for (size_t i = sms->len / sizeof(uint64_t); i-- > 0;) {
        uint64_t word;
        memcpy(&word, sms->data + sizeof(word) * i, sizeof(word));
        n += (size_t)snprintf(buf + n, size - n, "%016" PRIx64, word);
    }
    return n + (size_t)snprintf(buf + n, size - n, "\"");
}

static void write_span(struct recording *r, const Ws__TraceSpan *p)
{
    char name[160], args[440];
    struct track *track = track_of(r, p);
    if (!track)
        return;
    size_t n = (size_t)snprintf(args, sizeof(args), "\"client\":%u,\"energy_uj\":%" PRIu64,
                                p->client, p->energy_uj);
    if (p->kind == WS__TRACE_SPAN__KIND__KERNEL)
        n += (size_t)snprintf(args + n, sizeof(args) - n, ",\"sms\":%u,\"blocks\":%" PRIu64,
                              p->n_sms, p->n_blocks);
    else
        n += (size_t)snprintf(args + n, sizeof(args) - n, ",\"bytes\":%" PRIu64, p->bytes);
    if (p->sms.len >= sizeof(uint64_t) && p->sms.len <= WS_SM_MAX / 8)
        n += put_sms(&p->sms, args + n, sizeof(args) - n);
    if (p->ready_ns && p->ready_ns < p->start_ns)
        n += (size_t)snprintf(args + n, sizeof(args) - n, ",\"waited_us\":%.3f",
                              (double)(p->start_ns - p->ready_ns) / 1e3);
    if (p->job)
        n += (size_t)snprintf(args + n, sizeof(args) - n, ",\"job\":%" PRIu64, p->job);
    if (p->stopped)
        n += (size_t)snprintf(args + n, sizeof(args) - n, ",\"stopped\":true");
    if (p->error)
        snprintf(args + n, sizeof(args) - n, ",\"error\":%d", (int)p->error);
    span_name(p, name, sizeof(name));
    ws_trace_slice(&r->t, FIRST_GPU + (int)p->gpu, track->number, name, (double)p->start_ns / 1e6,
                   (double)p->end_ns / 1e6, args);
    if (p->ready_ns && p->ready_ns < p->start_ns)
        write_wait(r, track, p, name);
    r->n_spans++;
}

/* Power, memory and SMs of each GPU as the status says them, at the time of the GPU's clock. A GPU
 * whose clock did not move since it was looked at last has no new values. */
static int count(struct ws_cli_link *l, struct recording *r)
{
    Ws__ServerMessage *m;
    int e = ws_cli_link_status(l, WS_CLI_NEXT_TIMEOUT_MS, &m);
    if (e)
        return e;
    tell_clients(r, m->status);
    for (size_t i = 0; i < m->status->n_gpus && i < WS_MAX_DEVICES; i++) {
        const Ws__GpuStatus *g = m->status->gpus[i];
        struct counted *b = &r->counted[i];
        if (b->device_ns && g->device_ns > b->device_ns) {
            double ns = (double)(g->device_ns - b->device_ns), at = (double)b->device_ns / 1e6;
            int process = FIRST_GPU + (int)g->gpu;
            ws_trace_counter(&r->t, process, "power (W)", at,
                             (double)(g->energy_uj - b->energy_uj) * 1e3 / ns);
            ws_trace_counter(&r->t, process, "SMs", at,
                             (double)(g->sm_busy_ns - b->sm_busy_ns) / ns);
            ws_trace_counter(&r->t, process, "memory (MiB)", at,
                             (double)g->memory_used_bytes / (1 << 20));
        }
        *b = (struct counted){g->device_ns, g->energy_uj, g->sm_busy_ns};
    }
    ws__server_message__free_unpacked(m, NULL);
    return 0;
}

/* Return: whether there are more. */
static bool take_decisions(struct recording *r, const Ws__TraceReply *a)
{
    bool other_policy = r->decisions_after != FROM_NOW && a->decisions_last < r->decisions_after;
    for (size_t i = 0; i < a->n_decisions; i++)
        write_decision(r, a->decisions[i]);
    r->decisions_after = other_policy ? 0 : a->decisions_seen;
    return r->decisions_after < a->decisions_last;
}

/* Fetches what there is; not for ever, if more comes than can be fetched. Return: 0 or negative. */
static int fetch(struct ws_cli_link *l, struct recording *r)
{
    uint64_t end_ns = ws_clock_ns() + FETCH_MS * WS_NS_PER_MS;
    Ws__ClientMessage q = WS__CLIENT_MESSAGE__INIT;
    Ws__TraceRequest t = WS__TRACE_REQUEST__INIT;
    bool more = true;
    t.version = WS_PROTOCOL_VERSION;
    q.trace = &t;
    while (more) {
        Ws__ServerMessage *m;
        t.after = r->after;
        t.decisions_after = r->decisions_after;
        int e = ws_cli_link_ask(l, &q, is_trace, WS_CLI_NEXT_TIMEOUT_MS, &m);
        if (e)
            return e;
        const Ws__TraceReply *a = m->trace;
        for (size_t i = 0; i < a->n_spans; i++)
            write_span(r, a->spans[i]);
        struct track *k = a->lost && a->n_spans ? track_of(r, a->spans[0]) : NULL;
        if (k)
            ws_trace_mark(&r->t, FIRST_GPU + (int)a->spans[0]->gpu, k->number,
                          "operations before this were lost", (double)a->spans[0]->start_ns / 1e6,
                          NULL);
        r->n_lost += a->lost;
        bool moved = a->seen > r->after || (a->seen && r->after == FROM_NOW);
        if (moved)
            r->after = a->seen;
        else if (
            a->last <
            r->after) /* the first answer; later: the daemon had ended our trace, this is another */
            r->after = r->after == FROM_NOW ? a->last : 0;
        more = moved && r->after < a->last;
        more |= take_decisions(r, a);
        more = more && ws_clock_ns() < end_ns;
        ws__server_message__free_unpacked(m, NULL);
    }
    return 0;
}

static int record(struct ws_cli_link *l, struct recording *r, double seconds)
{
    uint64_t end_ns =
        seconds > 0 ? ws_clock_ns() + (uint64_t)(seconds * (double)WS_NS_PER_S) : UINT64_MAX;
    int e = 0;
    while (!e) {
        struct timespec pause = {0, (long)ASK_EVERY_MS * (long)WS_NS_PER_MS};
        bool last = stop || ws_clock_ns() >= end_ns;
        e = fetch(l, r);
        if (!e)
            e = count(l, r);
        fflush(r->t.f); /* so that a reader of the file sees how far the trace is */
        if (last)
            break;
        nanosleep(&pause, NULL);
    }
    return e;
}

static void forget(struct recording *r)
{
    struct track *k, *next;
    struct told *t, *after;
    HASH_ITER (hh, r->tracks, k, next) {
        HASH_DEL(r->tracks, k);
        free(k);
    }
    HASH_ITER (hh, r->told, t, after) {
        HASH_DEL(r->told, t);
        free(t);
    }
}

static int trace_to(FILE *f, const char *endpoint, double seconds)
{
    struct ws_cli_link *l = NULL;
    struct recording r = {.after = FROM_NOW, .decisions_after = FROM_NOW};
    Ws__ServerMessage *status = NULL;
    int e = ws_cli_link_open(&l, endpoint);
    if (!e)
        e = ws_cli_link_status(l, WS_CLI_TIMEOUT_MS, &status);
    if (e) {
        ws_cli_link_close(l);
        return ws_cli_no_daemon(endpoint, e, NULL);
    }
    ws_trace_begin(&r.t, f);
    name_gpus(&r, status->status);
    ws__server_message__free_unpacked(status, NULL);
    e = record(l, &r, seconds);
    if (e)
        ws_cli_error("the daemon at %s stopped answering (%s); the trace ends there", endpoint,
                     strerror(-e));
    int w = ws_trace_end(&r.t);
    if (w)
        ws_cli_error("the trace cannot be written: %s", strerror(errno));
    fprintf(stderr, "wattshare: %" PRIu64 " operations%s", r.n_spans, r.n_lost ? ", " : "\n");
    if (r.n_lost)
        fprintf(stderr, "%" PRIu64 " lost: they came faster than they were fetched\n", r.n_lost);
    forget(&r);
    ws_cli_link_close(l);
    return e || w;
}

struct trace_options {
    const char *out, *socket;
    double seconds;
};

static const struct ws_option options[] = {
    {"out", "FILE", "The file to write; without it standard output.",
     WS_TEXT(struct trace_options, out)},
    {"duration", "S", "Stop after so many seconds; without it when interrupted.",
     WS_NUMBER(struct trace_options, seconds, 0.001, 1e6)},
    WS_OPTION_SOCKET(struct trace_options, socket),
    {0}};
static const char *const examples[] = {"wattshare trace --out trace.json --duration 5", NULL};

static int trace(int argc, char **argv);

const struct ws_verb ws_verb_trace = {
    .name = "trace",
    .purpose = "record what runs on each GPU, for Perfetto",
    .about = "The file is opened by https://ui.perfetto.dev and chrome://tracing.",
    .options = options,
    .examples = examples,
    .run = trace,
};

static int trace(int argc, char **argv)
{
    struct sigaction sa = {.sa_handler = on_signal};
    struct trace_options o = {.out = "-"};
    char **rest;
    int r = ws_verb_parse(&ws_verb_trace, argc, argv, &o, &rest);
    if (r >= 0)
        return r;
    sigaction(SIGINT, &sa, NULL);
    sigaction(SIGTERM, &sa, NULL);
    FILE *f = strcmp(o.out, "-") ? fopen(o.out, "we") : stdout;
    if (!f) {
        ws_cli_error("cannot write '%s': %s", o.out, strerror(errno));
        return 1;
    }
    r = trace_to(f, ws_cli_endpoint(o.socket), o.seconds);
    if (f != stdout && fclose(f) && !r) {
        ws_cli_error("cannot write '%s': %s", o.out, strerror(errno));
        r = 1;
    }
    return r;
}
