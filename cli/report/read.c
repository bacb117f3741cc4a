// SPDX-License-Identifier: Apache-2.0
/* Reads a trace in the Trace Event Format as `wattshare trace` writes it: processes are GPUs,
 * threads are streams of clients, slices are operations. Names of threads come before the first
 * slice of the thread, so one look at each event is enough. */
#include "config.h"

#include "cli/report/report.h"

#include <errno.h>
#include <json-c/json.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/cli.h"

enum { FIRST_CLIENT = 1000 }; /* the process that has what client 0 waits for, as trace.c has it */

struct thread {
    int pid, tid;
    char name[WS_REPORT_NAME];
};
struct reader {
    struct ws_report *r;
    struct thread *threads;
    size_t n_threads, cap_threads;
};

static const char *text_of(struct json_object *o, const char *key)
{
    struct json_object *v;
    return json_object_object_get_ex(o, key, &v) ? json_object_get_string(v) : "";
}

static double number_of(struct json_object *o, const char *key)
{
    struct json_object *v;
    return json_object_object_get_ex(o, key, &v) ? json_object_get_double(v) : 0;
}

/* The array with room for one more. Return: -ENOMEM: no memory. */
static int grow(void *v, size_t n, size_t *cap, size_t size)
{
    void **array = v;
    if (n < *cap)
        return 0;
    size_t more = *cap ? 2 * *cap : 64;
    void *new = reallocarray(*array, more, size);
    if (!new)
        return -ENOMEM;
    *array = new;
    *cap = more;
    return 0;
}

/* The place of the sum with this key, or with this name if @key is 0. Return: negative: no memory.
 */
static int64_t place_of(struct ws_report_list *l, uint64_t key, const char *name)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->v[i].key == key && (key || !strcmp(l->v[i].name, name)))
            return (int64_t)i;
    if (grow(&l->v, l->n, &l->cap, sizeof(*l->v)))
        return -ENOMEM;
    struct ws_report_sum *s = &l->v[l->n++];
    *s = (struct ws_report_sum){.key = key};
    snprintf(s->name, sizeof(s->name), "%s", name);
    return (int64_t)(l->n - 1);
}

static const char *thread_name(const struct reader *x, int pid, int tid)
{
    for (size_t i = 0; i < x->n_threads; i++)
        if (x->threads[i].pid == pid && x->threads[i].tid == tid)
            return x->threads[i].name;
    return "?";
}

static int read_promise(struct ws_report *r, int client, struct json_object *args)
{
    if (grow(&r->promises, r->n_promises, &r->cap_promises, sizeof(*r->promises)))
        return -ENOMEM;
    r->promises[r->n_promises++] =
        (struct ws_report_promise){.client = (uint64_t)client,
                                   .priority = (int)number_of(args, "priority"),
                                   .period_ms = number_of(args, "period_ms"),
                                   .deadline_ms = number_of(args, "deadline_ms")};
    return 0;
}

static int read_name(struct reader *x, struct json_object *e)
{
    struct json_object *args;
    int pid = (int)number_of(e, "pid"), tid = (int)number_of(e, "tid");
    const char *what = text_of(e, "name");
    if (!json_object_object_get_ex(e, "args", &args))
        return 0;
    if (!strcmp(what, "client") && pid >= FIRST_CLIENT)
        return read_promise(x->r, pid - FIRST_CLIENT, args);
    bool of_gpu = pid >= 0 && pid < WS_REPORT_GPUS;
    if (!strcmp(what, "process_name") && of_gpu) {
        snprintf(x->r->gpus[pid].name, WS_REPORT_NAME, "%s", text_of(args, "name"));
    } else if (!strcmp(what, "gpu") && of_gpu) {
        x->r->gpus[pid].n_sms = (int)number_of(args, "sms");
        x->r->gpus[pid].idle_w = number_of(args, "idle_w");
        x->r->gpus[pid].core_mhz = number_of(args, "core_mhz");
    } else if (!strcmp(what, "thread_name")) {
        if (grow(&x->threads, x->n_threads, &x->cap_threads, sizeof(*x->threads)))
            return -ENOMEM;
        struct thread *t = &x->threads[x->n_threads++];
        t->pid = pid;
        t->tid = tid;
        snprintf(t->name, sizeof(t->name), "%s", text_of(args, "name"));
    }
    return 0;
}

/* A client's name is its thread's without the stream: "camera, client 3, pid 17". */
static int64_t client_of(struct reader *x, struct json_object *args, int pid, int tid)
{
    char name[WS_REPORT_NAME];
    snprintf(name, sizeof(name), "%s", thread_name(x, pid, tid));
    char *stream = strstr(name, ", stream"), *initial = strstr(name, ", default stream");
    if (initial)
        *initial = 0;
    else if (stream)
        *stream = 0;
    return place_of(&x->r->clients, (uint64_t)number_of(args, "client"), name);
}

static void charge(struct ws_report_sum *s, const struct ws_report_slice *p)
{
    s->n++;
    s->energy_uj += p->energy_uj;
    s->busy_us += p->end_us - p->start_us;
    s->waited_us += p->waited_us;
}

static int read_slice(struct reader *x, struct json_object *e)
{
    struct ws_report *r = x->r;
    struct json_object *args, *unused;
    char kind[WS_REPORT_NAME];
    int pid = (int)number_of(e, "pid");
    if (!json_object_object_get_ex(e, "args", &args) || pid < 0 || pid >= WS_REPORT_GPUS)
        return 0;
    bool is_kernel = !json_object_object_get_ex(args, "bytes", &unused);
    snprintf(kind, sizeof(kind), "%s", text_of(e, "name"));
    if (!is_kernel) /* "copy 4.0 KiB" */
        kind[strcspn(kind, " ")] = 0;
    int64_t client = client_of(x, args, pid, (int)number_of(e, "tid"));
    int64_t kernel = place_of(&r->kernels, 0, kind);
    if (client < 0 || kernel < 0 || grow(&r->slices, r->n, &r->cap, sizeof(*r->slices)))
        return -ENOMEM;
    struct ws_report_slice *p = &r->slices[r->n++];
    double start = number_of(e, "ts");
    *p = (struct ws_report_slice){.start_us = start,
                                  .end_us = start + number_of(e, "dur"),
                                  .waited_us = number_of(args, "waited_us"),
                                  .energy_uj = (uint64_t)number_of(args, "energy_uj"),
                                  .n_blocks = (uint64_t)number_of(args, "blocks"),
                                  .n_sms = (uint32_t)number_of(args, "sms"),
                                  .job = (uint64_t)number_of(args, "job"),
                                  .gpu = (uint32_t)pid,
                                  .client = (uint32_t)client,
                                  .kernel = (uint32_t)kernel,
                                  .is_kernel = is_kernel};
    charge(&r->clients.v[client], p);
    charge(&r->kernels.v[kernel], p);
    r->start_us = r->n == 1 ? p->start_us : fmin(r->start_us, p->start_us);
    r->end_us = fmax(r->end_us, p->end_us);
    return 0;
}

static int by_start(const void *a, const void *b)
{
    const struct ws_report_slice *x = a, *y = b;
    if (x->gpu != y->gpu)
        return x->gpu < y->gpu ? -1 : 1;
    return (x->start_us > y->start_us) - (x->start_us < y->start_us);
}

/* Charges the time that @p waited to whose operations were on its GPU then. @latest: of each slice,
 * the latest end of it and those before it on its GPU; it says when to look no further back. */
static void charge_wait(struct ws_report *r, const struct ws_report_slice *p, const double *latest)
{
    double from = p->start_us - p->waited_us;
    size_t i = (size_t)(p - r->slices);
    while (i-- > 0 && r->slices[i].gpu == p->gpu && latest[i] > from) {
        const struct ws_report_slice *q = &r->slices[i];
        double both = fmin(q->end_us, p->start_us) - fmax(q->start_us, from);
        if (both > 0 && q->client != p->client)
            r->blocked_us[p->client * r->clients.n + q->client] += both;
    }
}

static int charge_waits(struct ws_report *r)
{
    double *latest = ws_alloc_array(r->n + 1, sizeof(*latest));
    r->blocked_us = ws_alloc_array(r->clients.n * r->clients.n + 1, sizeof(*r->blocked_us));
    if (!latest || !r->blocked_us) {
        free(latest);
        return -ENOMEM;
    }
    for (size_t i = 0; i < r->n; i++) {
        bool first = !i || r->slices[i - 1].gpu != r->slices[i].gpu;
        latest[i] = first ? r->slices[i].end_us : fmax(latest[i - 1], r->slices[i].end_us);
    }
    for (size_t i = 0; i < r->n; i++)
        if (r->slices[i].waited_us > 0)
            charge_wait(r, &r->slices[i], latest);
    free(latest);
    return 0;
}

static int read_events(struct reader *x, struct json_object *events)
{
    int e = 0;
    for (size_t i = 0; !e && i < json_object_array_length(events); i++) {
        struct json_object *o = json_object_array_get_idx(events, i);
        const char *kind = text_of(o, "ph");
        if (!strcmp(kind, "M"))
            e = read_name(x, o);
        else if (!strcmp(kind, "X"))
            e = read_slice(x, o);
    }
    return e;
}

int ws_report_read(struct ws_report *ret, const char *path)
{
    struct reader x = {.r = ret};
    struct json_object *events, *all = json_object_from_file(path);
    *ret = (struct ws_report){0};
    if (!all || !json_object_object_get_ex(all, "traceEvents", &events) ||
        !json_object_is_type(events, json_type_array)) {
        ws_cli_error("'%s' is no trace; wattshare trace --out FILE writes one", path);
        json_object_put(all);
        return -EINVAL;
    }
    int e = read_events(&x, events);
    if (!e && ret->n) {
        qsort(ret->slices, ret->n, sizeof(*ret->slices), by_start);
        e = charge_waits(ret);
    }
    json_object_put(all);
    free(x.threads);
    if (e)
        ws_cli_error("out of memory");
    return e;
}

void ws_report_deinit(struct ws_report *r)
{
    free(r->slices);
    free(r->clients.v);
    free(r->kernels.v);
    free(r->blocked_us);
    free(r->promises);
    *r = (struct ws_report){0};
}
