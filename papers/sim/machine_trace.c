// SPDX-License-Identifier: Apache-2.0
/* The trace of a machine. Process 1 has the tasks, process 2 + 2k the slots of GPU k, and
 * process 3 + 2k its SMs. A job is written when it leaves its slot, because the times of its
 * parts are known then. A job that still runs at the end of the trace is cut there. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "papers/sim/machine_trace.h"

enum { TASKS = 1, FIRST_GPU = 2 };

static void task_text(const struct ws_machine_trace *m, int task, char *ret, size_t n)
{
    const struct ws_policy_task *t = &m->sys->tasks[task];
    snprintf(ret, n, "%d %s", t->id, t->name ? t->name : "");
}

static void name_tracks(struct ws_machine_trace *m)
{
    char process[80], thread[80];
    ws_trace_name(m->t, TASKS, 0, "tasks", NULL);
    for (int i = 0; i < m->sys->n_tasks; i++) {
        task_text(m, i, thread, sizeof(thread));
        ws_trace_name(m->t, TASKS, i + 1, NULL, thread);
    }
    for (int k = 0; k < m->sys->n_gpus; k++) {
        const struct ws_policy_gpu *g = &m->sys->gpus[k];
        snprintf(process, sizeof(process), "GPU %d %s", k, m->sys->types[g->type].name);
        ws_trace_name(m->t, FIRST_GPU + 2 * k, 0, process, NULL);
        for (int s = 0; s < g->n_slots; s++) {
            snprintf(thread, sizeof(thread), "slot %d", s);
            ws_trace_name(m->t, FIRST_GPU + 2 * k, s + 1, NULL, thread);
        }
        snprintf(process, sizeof(process), "GPU %d SMs (%d of %d)", k, g->sm_limit,
                 m->sys->types[g->type].n_sm);
        ws_trace_name(m->t, FIRST_GPU + 2 * k + 1, 0, process, NULL);
        for (int s = 0; s < g->sm_limit; s++) {
            snprintf(thread, sizeof(thread), "SM %d", s);
            ws_trace_name(m->t, FIRST_GPU + 2 * k + 1, s + 1, NULL, thread);
        }
    }
}

int ws_machine_trace_init(struct ws_machine_trace *m, struct ws_trace *t,
                          const struct ws_policy_system *sys)
{
    size_t n = 1;
    *m = (struct ws_machine_trace){.t = t, .sys = sys};
    m->first = ws_alloc_array((size_t)sys->n_gpus + 1, sizeof(*m->first));
    if (!m->first)
        return ws_raise(-ENOMEM);
    for (int k = 0; k < sys->n_gpus; k++) {
        m->first[k] = (int)n - 1;
        n += (size_t)sys->gpus[k].n_slots;
    }
    m->first[sys->n_gpus] = (int)n - 1;
    m->why = ws_alloc_array(n, sizeof(*m->why));
    m->runs = ws_alloc_array(n, sizeof(*m->runs));
    m->starts = ws_alloc_array(n, sizeof(*m->starts));
    if (!m->why || !m->runs || !m->starts) {
        ws_machine_trace_deinit(m, 0);
        return ws_raise(-ENOMEM);
    }
    for (size_t i = 0; i < n; i++)
        m->starts[i].task = -1;
    name_tracks(m);
    return 0;
}

/* A part of a job, as far as it lies before @cut. */
static void part(struct ws_machine_trace *m, int process, int thread, const char *name, double from,
                 double to, double cut)
{
    to = fmin(to, cut);
    if (to > from)
        ws_trace_slice(m->t, process, thread, name, from, to, NULL);
}

static void write_job(struct ws_machine_trace *m, int s, const struct ws_policy_run *r, double end,
                      const char *how)
{
    const struct ws_machine_event *e = &m->starts[s];
    int process = FIRST_GPU + 2 * e->gpu, thread = e->slot + 1;
    char name[80], *args = NULL;
    size_t n;
    FILE *f = open_memstream(&args, &n);
    if (!f)
        return;
    task_text(m, e->task, name, sizeof(name));
    fprintf(f, "\"job\":%" PRIu64 ",\"sms\":%d,\"release_ms\":%.6g,\"how\":\"%s\"", e->job, r->n_sm,
            e->release, how);
    if (e->deadline < INFINITY)
        fprintf(f, ",\"deadline_ms\":%.6g", e->deadline);
    if (*m->why[s]) {
        fputs(",\"why\":", f);
        ws_trace_quote(f, m->why[s]);
    }
    if (!fclose(f)) {
        ws_trace_slice(m->t, process, thread, name, r->start, fmin(r->end, end), args);
        part(m, process, thread, "copy in", r->start, r->gpu_start, end);
        part(m, process, thread, "kernel", r->gpu_start, r->gpu_end, end);
        part(m, process, thread, "copy out", r->gpu_end, r->end, end);
        for (unsigned sm = 0; sm < WS_SM_MAX; sm++)
            if (ws_sm_set_has(&r->sms, sm))
                part(m, process + 1, (int)sm + 1, name, r->gpu_start, r->gpu_end, end);
    }
    free(args);
    m->starts[s].task = -1;
}

void ws_machine_trace_event(void *arg, const struct ws_machine_event *e)
{
    struct ws_machine_trace *m = arg;
    int s = e->gpu >= 0 && e->slot >= 0 ? m->first[e->gpu] + e->slot : -1;
    switch (e->kind) {
    case WS_MACHINE_RELEASE:
        ws_trace_mark(m->t, TASKS, e->task + 1, "release", e->t, NULL);
        ws_trace_flow(m->t, TASKS, e->task + 1, "job", e->t, e->job, false);
        break;
    case WS_MACHINE_START:
    case WS_MACHINE_RESUME:
        m->starts[s] = *e;
        m->runs[s] = *e->run;
        snprintf(m->why[s], sizeof(m->why[s]), "%s", e->why ? e->why : "");
        ws_trace_flow(m->t, FIRST_GPU + 2 * e->gpu, e->slot + 1, "job", e->t, e->job, true);
        break;
    case WS_MACHINE_SKIP:
        ws_trace_mark(m->t, TASKS, e->task + 1, "MISS: never started", e->t, NULL);
        break;
    case WS_MACHINE_LATE:
        ws_trace_mark(m->t, TASKS, e->task + 1, "MISS: late", e->t, NULL);
        if (s >= 0 && m->starts[s].task >= 0)
            write_job(m, s, e->run, e->run->end, "late");
        break;
    case WS_MACHINE_DONE:
        if (s >= 0 && m->starts[s].task >= 0)
            write_job(m, s, e->run, e->run->end, "in time");
        break;
    case WS_MACHINE_PREEMPT:
        if (s >= 0 && m->starts[s].task >= 0)
            write_job(m, s, e->run, e->run->end, "preempted");
        break;
    case WS_MACHINE_CPU:
        ws_trace_slice(m->t, TASKS, e->task + 1, "on the processor", e->run->gpu_start, e->run->end,
                       NULL);
        break;
    default: {
        char name[32];
        snprintf(name, sizeof(name), "GPU %d power, W", e->gpu);
        ws_trace_counter(m->t, FIRST_GPU + 2 * e->gpu, name, e->t, e->power_w);
    }
    }
}

void ws_machine_trace_deinit(struct ws_machine_trace *m, double end)
{
    for (int s = 0; m->starts && m->runs && s < m->first[m->sys->n_gpus]; s++)
        if (m->starts[s].task >= 0)
            write_job(m, s, &m->runs[s], end, "still running at the end");
    free(m->first);
    free(m->why);
    free(m->runs);
    free(m->starts);
    *m = (struct ws_machine_trace){0};
}
