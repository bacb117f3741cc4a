// SPDX-License-Identifier: Apache-2.0
/* wattshare sim for task sets of sBEET-mg: periodic kernels on several GPUs. */
#include "config.h"

#include <errno.h>
#include <math.h>

#include "base/error.h"
#include "cli/cli.h"
#include "papers/verbs/sim.h"
#include "papers/verbs/sim_rt.h"
#include "papers/sets/sbeet_hunt.h"
#include "papers/sim/machine_trace.h"

#define DEFAULT_GPUS        "rtx3070@24,t400"
#define DEFAULT_DURATION_MS 15000

static bool knows(const char *policy)
{
    const struct ws_policy_ops *ops = ws_policy_find(policy);
    return ops && ws_sbeet_set_knows(ops);
}

static void add_count(struct json_object *o, const char *key, uint64_t v)
{
    json_object_object_add(o, key, json_object_new_uint64(v));
}

static void add_number(struct json_object *o, const char *key, double v)
{
    json_object_object_add(o, key, isfinite(v) ? json_object_new_double(v) : NULL);
}

static struct json_object *counts(const uint64_t *v, int n)
{
    struct json_object *a = json_object_new_array();
    for (int i = 0; i < n; i++)
        json_object_array_add(a, json_object_new_uint64(v[i]));
    return a;
}

static void report(struct json_object *ret, const struct ws_sbeet_outcome *o, double duration_ms)
{
    const struct ws_machine_result *r = &o->r;
    uint64_t missed = r->n_late + r->n_skipped, started[WS_GPUS_MAX] = {0};
    struct json_object *homes = json_object_new_array(), *worst = json_object_new_array();
    for (int i = 0; i < r->n_tasks; i++) {
        for (int k = 0; k < r->n_gpus; k++)
            started[k] += r->started[i * r->n_gpus + k];
        struct json_object *pair = json_object_new_array();
        json_object_array_add(pair, json_object_new_int(o->home[i]));
        json_object_array_add(pair, o->home[i] < 0 ? NULL : json_object_new_int(o->m_opt[i]));
        json_object_array_add(homes, pair);
        json_object_array_add(worst, json_object_new_double(r->worst_response[i]));
    }
    add_count(ret, "released", r->n_released);
    add_count(ret, "missed", missed);
    add_count(ret, "late", r->n_late);
    add_count(ret, "skipped", r->n_skipped);
    add_count(ret, "on_time", r->n_on_time);
    add_number(ret, "miss_ratio", r->n_released ? (double)missed / (double)r->n_released : 0);
    add_number(ret, "energy_J", r->energy / 1000);
    add_number(ret, "power_W", r->energy / duration_ms);
    add_number(ret, "mean_sms", r->n_started ? (double)r->sum_sm / (double)r->n_started : 0);
    add_count(ret, "migrated", o->n_migrated);
    add_count(ret, "preempted", r->n_preempted);
    json_object_object_add(ret, "started", counts(started, r->n_gpus));
    json_object_object_add(ret, "released_by_task", counts(r->released, r->n_tasks));
    json_object_object_add(ret, "missed_by_task", counts(r->missed, r->n_tasks));
    json_object_object_add(ret, "worst_response_ms", worst);
    json_object_object_add(ret, "alloc", homes);
    if (*o->note)
        json_object_object_add(ret, "note", json_object_new_string(o->note));
}

/* Its trace is whole JSON whatever happens in the run. */
static int run_traced(const struct ws_sim_run *run, const struct ws_sbeet_set *s,
                      const struct ws_policy_ops *ops, struct ws_machine_options *mo,
                      struct ws_sbeet_outcome *o)
{
    struct ws_trace t;
    struct ws_machine_trace mt;
    ws_trace_begin(&t, run->trace);
    int r = ws_machine_trace_init(&mt, &t, &s->system);
    if (r)
        return r;
    mo->explain = true;
    mo->event = ws_machine_trace_event;
    mo->arg = &mt;
    r = ws_sbeet_set_run(o, s, ops, run->options, mo);
    ws_machine_trace_deinit(&mt, mo->duration);
    int e = ws_trace_end(&t);
    if (e)
        ws_cli_error("the trace could not be written");
    return r ? r : e;
}

static double duration_of(const struct ws_sim_run *run, const struct ws_sbeet_set *s)
{
    if (run->duration_ms > 0)
        return run->duration_ms;
    if (run->rt->hunt.n_runs > 1)
        return run->rt->hunt.n_periods * ws_sbeet_hunt_period(s);
    return s->duration > 0 ? s->duration : DEFAULT_DURATION_MS;
}

static int run(const struct ws_sim_run *run, struct ws_json_line *l, struct json_object *ret)
{
    const struct ws_policy_ops *ops = ws_policy_find(run->policy);
    struct ws_gpus fallback;
    struct ws_sbeet_set s;
    struct ws_sbeet_outcome o = {0};
    char error[160];
    bool own = !run->gpus;
    if (own && ws_gpus_parse(&fallback, DEFAULT_GPUS, error, sizeof(error)))
        return -EINVAL;
    int r = ws_sbeet_set_read(&s, own ? &fallback : run->gpus, run->copies_asis, l);
    double duration = r ? 1 : duration_of(run, &s);
    struct ws_machine_options mo = {.duration = duration, .tick = run->compat ? 1 : 0};
    if (!r)
        r = run->trace ? run_traced(run, &s, ops, &mo, &o)
                       : ws_sbeet_set_run(&o, &s, ops, run->options, &mo);
    if (!r)
        r = ws_sbeet_hunt(&o, &s, ops, run->options, &mo, run->rt->hunt.seed + l->number,
                          run->rt->hunt.n_runs - 1);
    if (r > 0) {
        ws_json_bad(l, "", "%s: %s", run->policy, o.note);
        r = -EINVAL;
    } else if (!r) {
        report(ret, &o, duration * WS_MAX(run->rt->hunt.n_runs, 1));
    }
    ws_sbeet_outcome_deinit(&o);
    ws_sbeet_set_deinit(&s);
    if (own)
        ws_gpus_deinit(&fallback);
    return r;
}

const struct ws_sim_kind ws_sim_kind_gpus = {
    "sBEET-mg", "those that share out SMs of several GPUs, such as wattshare and sbeet-mg",
    ws_sbeet_set_is, run, knows};
