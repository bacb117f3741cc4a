// SPDX-License-Identifier: Apache-2.0
/* Turns a set of tasks into sections of a configuration, into programs, into a system for
 * papers/sim/machine.h, and into a set for papers/sim/rtsim.h. */
#include "config.h"

#include "papers/live/set.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/cli.h"
#include "models/measured.h"
#include "papers/sets/sbeet_set.h"

enum { RTSIM_PER_MS = 10000 };
#define TIMEOUT_S    600.0
#define LATE_PERCENT 10.0

/* ---- the kernel's time ---- */

static int measure_gpu(const char *gpu, double *ret_step_ms, double *ret_start_ms)
{
    enum { SHORT = 320, LONG = 32000 };
    double ms[2];
    for (int i = 0; i < 2; i++) {
        struct ws_live l;
        struct ws_live_wish wish = {.gpus = gpu};
        int r = ws_live_start(&l, &wish);
        if (!r)
            r = ws_live_addf(&l, "steps", "steps --blocks 1 --jobs 1 --length %d",
                             i ? LONG : SHORT) < 0;
        if (!r)
            r = ws_live_run(&l, 60);
        ms[i] = l.after[0].busy_ms - l.before[0].busy_ms;
        ws_live_stop(&l);
        if (r)
            return -1;
    }
    *ret_step_ms = (ms[1] - ms[0]) / (LONG - SHORT);
    *ret_start_ms = ms[0] - SHORT * *ret_step_ms;
    return 0;
}

int ws_live_set_measure(struct ws_live_set *s)
{
    enum { UNROLL = 32 }; /* lengths are multiples (bench/live/live.h) */
    char names[128], *save = NULL;
    bool steps = false;
    for (int i = 0; i < s->n_tasks; i++)
        steps |= !s->tasks[i].as;
    snprintf(names, sizeof(names), "%s", s->gpus);
    s->n_gpus = 0;
    for (char *p = strtok_r(names, ",", &save); p && s->n_gpus < WS_LIVE_SET_GPUS;
         p = strtok_r(NULL, ",", &save), s->n_gpus++)
        if (ws_live_gpu(p, &s->specs[s->n_gpus]) ||
            (steps && measure_gpu(p, &s->step_ms[s->n_gpus], &s->start_ms[s->n_gpus])))
            return -1;
    for (int i = 0; i < s->n_tasks; i++) {
        if (s->tasks[i].as) { /* what its blocks execute takes no time */
            s->length[i] = UNROLL;
            continue;
        }
        double n = (s->tasks[i].block_ms - s->start_ms[0]) / s->step_ms[0] / UNROLL;
        s->length[i] = UNROLL * WS_MAX((int)lround(n), 1);
        s->tasks[i].block_ms = s->start_ms[0] + s->length[i] * s->step_ms[0];
    }
    return 0;
}

/* Kernel time of task @i on @n_sm SMs of GPU @gpu. */
static double kernel_ms(const struct ws_live_set *s, int i, int gpu, int n_sm)
{
    if (s->tasks[i].as) {
        const struct ws_measured_kernel *k = ws_measured_find(s->specs[gpu].name, s->tasks[i].as);
        return k->mean_ms[WS_MIN(WS_MAX(n_sm, 1), k->cost.n_sm) - 1];
    }
    int n = WS_MAX(n_sm, 1), waves = (s->tasks[i].n_blocks + n - 1) / n;
    return waves * (s->start_ms[gpu] + s->length[i] * s->step_ms[gpu]) +
           s->specs[gpu].launch_overhead_ns / 1e6;
}

/* ---- live ---- */

static int conf_text(const struct ws_live_set *s, char *ret, size_t size)
{
    size_t n = 0;
    ret[0] = 0;
    if (s->n_slots)
        n += (size_t)snprintf(ret, size, "slots = %d\n", s->n_slots);
    for (int i = 0; i < s->n_tasks && n < size; i++) {
        const struct ws_live_task *t = &s->tasks[i];
        n += (size_t)snprintf(ret + n, size - n, "task %s {\n  priority = %d\n  wcet_ms = %g\n",
                              t->name, t->priority, kernel_ms(s, i, 0, (int)s->specs[0].n_sms));
        if (t->period_ms > 0 && n < size)
            n += (size_t)snprintf(ret + n, size - n, "  period_ms = %g\n", t->period_ms);
        if (t->deadline_ms > 0 && n < size)
            n += (size_t)snprintf(ret + n, size - n, "  deadline_ms = %g\n", t->deadline_ms);
        if (t->n_sms > 0 && n < size)
            n += (size_t)snprintf(ret + n, size - n, "  sms = \"%d-%d\"\n", t->first_sm,
                                  t->first_sm + t->n_sms - 1);
        if (n < size)
            n += (size_t)snprintf(ret + n, size - n, "}\n");
    }
    return n < size ? 0 : -1;
}

static int add_task(struct ws_live *l, const struct ws_live_set *s, int i)
{
    const struct ws_live_task *t = &s->tasks[i];
    return ws_live_addf(l, t->name,
                        "steps%s%s%s%s --blocks %d --length %d --seed %d --period-ms %g "
                        "--deadline-ms %g --offset-ms %g --before-ms %g --for-ms %g --warm 1",
                        t->as ? " --as " : "", t->as ? t->as : "",
                        t->percents ? " --percents " : "", t->percents ? t->percents : "",
                        t->n_blocks, s->length[i], i + 1, t->period_ms, t->deadline_ms,
                        t->offset_ms, t->cpu_ms, s->duration_ms) < 0
               ? -1
               : 0;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int take_task(const struct ws_live_program *p, struct ws_live_task_result *ret)
{
    double *runs = ws_alloc_array((size_t)WS_MAX(p->n_jobs, 1), sizeof(*runs)), sum = 0;
    int n = 0;
    if (!runs)
        return -1;
    *ret = (struct ws_live_task_result){.released = p->released, .missed = p->missed};
    for (int k = 0; k < p->n_jobs; k++) {
        const struct ws_live_job *j = &p->jobs[k];
        if (j->end_ms <= 0) /* skipped */
            continue;
        ret->worst_ms = WS_MAX(ret->worst_ms, j->end_ms - j->release_ms);
        sum += j->end_ms - j->release_ms;
        runs[n++] = j->end_ms - j->start_ms;
    }
    if (n) {
        qsort(runs, (size_t)n, sizeof(*runs), by_size);
        ret->mean_ms = sum / n;
        ret->worst_run_ms = runs[n - 1];
        ret->most_run_ms = runs[(n - 1) * 95 / 100];
    }
    free(runs);
    return 0;
}

static int take_results(const struct ws_live *l, const struct ws_live_set *s,
                        struct ws_live_set_result *ret)
{
    *ret = (struct ws_live_set_result){.energy_mj = ws_live_energy_mj(l, s->duration_ms),
                                       .late_percent = 100.0 * l->n_late / WS_MAX(l->n_wakes, 1)};
    for (int i = 0; i < s->n_tasks; i++) {
        if (take_task(&l->programs[i], &ret->tasks[i]))
            return -1;
        if (s->tasks[i].deadline_ms > 0) {
            ret->released += ret->tasks[i].released;
            ret->missed += ret->tasks[i].missed;
        }
    }
    return 0;
}

static int run_once(struct ws_experiment_run *x, const struct ws_live_set *s, const char *policy,
                    const char *options, struct ws_live_set_result *ret)
{
    struct ws_live l;
    char conf[4096], log[4096];
    snprintf(log, sizeof(log), "%s/%s.log", x->folder, x->name);
    struct ws_live_wish wish = {.gpus = s->gpus,
                                .policy = policy,
                                .options = options,
                                .tasks = conf,
                                .time_scale = s->time_scale,
                                .follow = s->follow,
                                .log = log};
    if (conf_text(s, conf, sizeof(conf))) {
        ws_cli_error("%s: too many tasks", x->name);
        return -1;
    }
    int r = ws_live_start(&l, &wish);
    for (int i = 0; i < s->n_tasks && !r; i++)
        r = add_task(&l, s, i);
    if (s->first_dies)
        l.dies_after_s = s->duration_ms / 2 * s->time_scale / 1e3;
    if (!r)
        r = ws_live_run(&l, TIMEOUT_S);
    if (!r)
        r = take_results(&l, s, ret);
    ws_live_stop(&l);
    return r;
}

int ws_live_set_run(struct ws_experiment_run *x, const struct ws_live_set *s, const char *policy,
                    const char *options, struct ws_live_set_result *ret)
{
    int n = 0;
    do {
        struct ws_live_set_result one;
        if (run_once(x, s, policy, options, &one))
            return -1;
        if (!n || one.late_percent < ret->late_percent)
            *ret = one;
        ret->n_left_out = n;
    } while (ret->late_percent > LATE_PERCENT && n++ < s->n_again);
    return 0;
}

/* ---- sim/machine ---- */

static int add_kernel(const struct ws_live_set *s, struct ws_gpus *g, int i, int gpu)
{
    struct ws_gpu_kernel *k = &g->kernels[g->n_kernels];
    int n = (int)s->specs[gpu].n_sms;
    double *wcet = ws_alloc_array((size_t)n, sizeof(*wcet));
    *k = (struct ws_gpu_kernel){.gpu = ws_strdup(s->specs[gpu].name),
                                .name = ws_strdup(s->tasks[i].name)};
    if (!wcet || !k->gpu || !k->name) {
        free(wcet);
        free(k->gpu);
        free(k->name);
        return -1;
    }
    for (int m = 1; m <= n; m++)
        wcet[m - 1] = kernel_ms(s, i, gpu, m);
    k->cost = (struct ws_policy_cost){.n_sm = n,
                                      .wcet = wcet,
                                      .dyn_w_per_sm = s->specs[gpu].dynamic_mw_per_sm / 1e3,
                                      .n_blocks = s->tasks[i].n_blocks,
                                      .n_stops = s->tasks[i].n_blocks};
    if (s->tasks[i].as)
        k->cost.dyn_w_per_sm =
            ws_measured_find(s->specs[gpu].name, s->tasks[i].as)->cost.dyn_w_per_sm;
    g->n_kernels++;
    return 0;
}

static int make_gpus(const struct ws_live_set *s, struct ws_gpus *g)
{
    *g = (struct ws_gpus){0};
    g->kernels = ws_alloc_array((size_t)(s->n_tasks * s->n_gpus), sizeof(*g->kernels));
    if (!g->kernels)
        return -1;
    for (int i = 0; i < s->n_gpus; i++) {
        const struct ws_gpu_spec *spec = &s->specs[i];
        g->types[g->n_types++] =
            (struct ws_policy_gpu_type){.name = spec->name,
                                        .n_sm = (int)spec->n_sms,
                                        .static_w = spec->static_mw / 1e3,
                                        .idle_w_per_sm = spec->idle_mw_per_sm / 1e3,
                                        .preempts = true};
        g->gpus[g->n_gpus++] = (struct ws_policy_gpu){.type = i,
                                                      .sm_limit = (int)spec->n_sms,
                                                      .n_slots = s->n_slots ? s->n_slots : 2,
                                                      .server = -1};
        for (int k = 0; k < s->n_tasks; k++)
            if (add_kernel(s, g, k, i))
                return -1;
    }
    return 0;
}

static int take_machine(const struct ws_live_set *s, const struct ws_sbeet_set *set,
                        const struct ws_machine_result *m, struct ws_live_set_result *ret)
{
    *ret = (struct ws_live_set_result){.energy_mj = m->energy};
    for (int k = 0; k < set->system.n_tasks; k++) /* sorted by period */
        for (int i = 0; i < s->n_tasks; i++)
            if (!strcmp(s->tasks[i].name, set->system.tasks[k].name))
                ret->tasks[i] = (struct ws_live_task_result){.released = (int)m->released[k],
                                                             .missed = (int)m->missed[k],
                                                             .worst_ms = m->worst_response[k],
                                                             .mean_ms = NAN};
    for (int i = 0; i < s->n_tasks; i++)
        if (s->tasks[i].deadline_ms > 0) {
            ret->released += ret->tasks[i].released;
            ret->missed += ret->tasks[i].missed;
        }
    return 0;
}

int ws_live_set_machine(const struct ws_live_set *s, const char *policy, const char *const *options,
                        struct ws_live_set_result *ret)
{
    struct ws_gpus g;
    struct ws_sbeet_set set = {0};
    struct ws_sbeet_task tasks[WS_LIVE_TASKS];
    struct ws_sbeet_outcome out = {0};
    char error[160] = "out of memory";
    const struct ws_policy_ops *ops = ws_policy_find(policy);
    struct ws_machine_options o = {.duration = s->duration_ms};
    for (int i = 0; i < s->n_tasks; i++)
        tasks[i] = (struct ws_sbeet_task){
            .kernel = s->tasks[i].name,
            .period = s->tasks[i].period_ms,
            .deadline = s->tasks[i].deadline_ms,
            .offset = s->tasks[i].offset_ms,
        };
    int r = ops ? make_gpus(s, &g) : -1;
    if (!r)
        r = ws_sbeet_set_make(&set, &g, tasks, s->n_tasks, false, error, sizeof(error));
    if (!r) {
        r = ws_sbeet_set_run(&out, &set, ops, options, &o);
        snprintf(error, sizeof(error), "%s", out.note);
    }
    if (!r)
        r = take_machine(s, &set, &out.r, ret);
    else
        ws_cli_error("simulating %s: %s", policy, error);
    ws_sbeet_outcome_deinit(&out);
    ws_sbeet_set_deinit(&set);
    if (ops)
        ws_gpus_deinit(&g);
    return r ? -1 : 0;
}

/* ---- sim/rtsim ---- */

static int64_t units(double ms)
{
    return llround(ms * RTSIM_PER_MS);
}

static int fill_rtsim(const struct ws_live_set *s, struct ws_rtsim_set *set, const int *order)
{
    for (int k = 0; k < s->n_tasks; k++) {
        const struct ws_live_task *t = &s->tasks[order[k]];
        struct ws_rtsim_task *to = &set->tasks[k];
        struct ws_sm_set sms = {0};
        int n_sm = t->n_sms ? t->n_sms : (int)s->specs[0].n_sms;
        for (int i = 0; i < n_sm; i++)
            ws_sm_set_add(&sms, (unsigned)(t->first_sm + i));
        *to = (struct ws_rtsim_task){.id = order[k],
                                     .core = k,
                                     .priority = t->priority,
                                     .best_effort = !t->priority,
                                     .period = units(t->period_ms),
                                     .deadline =
                                         units(t->deadline_ms > 0 ? t->deadline_ms : t->period_ms),
                                     .offset = units(t->offset_ms),
                                     .sms = sms};
        int r = ws_rtsim_set_segments(set, k, 1);
        if (r)
            return r;
        to->cpu[0] = units(t->cpu_ms);
        to->segments[0].kernel = units(kernel_ms(s, order[k], 0, n_sm));
    }
    return 0;
}

int ws_live_set_rtsim(const struct ws_live_set *s, enum ws_rtsim_policy policy, double slice_ms,
                      struct ws_live_set_result *ret)
{
    struct ws_rtsim_set set = WS_RTSIM_SET_NULL;
    struct ws_rtsim *rt = NULL;
    struct ws_rtsim_result result;
    struct ws_rtsim_config config = {.policy = policy, .hold = WS_RTSIM_HOLD_WORK};
    struct ws_rtsim_scenario scenario = {.horizon = units(s->duration_ms), .exec_permille = 1000};
    int order[WS_LIVE_TASKS];
    for (int i = 0; i < s->n_tasks; i++) { /* by decreasing priority */
        int k = i;
        for (; k > 0 && s->tasks[order[k - 1]].priority < s->tasks[i].priority; k--)
            order[k] = order[k - 1];
        order[k] = i;
    }
    int r = ws_rtsim_set_init(&set, s->n_tasks);
    if (!r) {
        set.n_cores = s->n_tasks;
        set.n_sms = (int)s->specs[0].n_sms;
        set.per_ms = RTSIM_PER_MS;
        set.slice = units(slice_ms);
        r = fill_rtsim(s, &set, order);
    }
    if (!r)
        r = ws_rtsim_new(&rt, &set, &config);
    if (!r)
        r = ws_rtsim_run(rt, &scenario, NULL, &result);
    *ret = (struct ws_live_set_result){.energy_mj = NAN};
    for (int k = 0; k < s->n_tasks && !r; k++) {
        const struct ws_rtsim_task_result *from = &result.tasks[k];
        struct ws_live_task_result *to = &ret->tasks[order[k]];
        *to = (struct ws_live_task_result){.released = (int)from->n_jobs,
                                           .missed = (int)from->n_missed,
                                           .worst_ms = (double)from->worst / RTSIM_PER_MS,
                                           .mean_ms = (double)from->sum / RTSIM_PER_MS /
                                                      (double)WS_MAX(from->n_finished, 1u)};
        if (s->tasks[order[k]].deadline_ms > 0) {
            ret->released += to->released;
            ret->missed += to->missed;
        }
    }
    if (r) {
        char buf[160];
        const char *why = ws_rtsim_check(&set, buf, sizeof(buf));
        ws_cli_error("simulating: %s", why ? why : strerror(-r));
    }
    ws_rtsim_free(rt);
    ws_rtsim_set_deinit(&set);
    return r ? -1 : 0;
}
