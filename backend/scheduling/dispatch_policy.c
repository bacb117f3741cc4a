// SPDX-License-Identifier: Apache-2.0
/* Which policy the dispatcher asks: from the configuration at the start, and another one at any
 * time. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/scheduling/dispatch_private.h"
#include "base/alloc.h"

static int policy_make(const char *name, const char *const *options,
                       const struct ws_policy_ops **ret_ops, struct ws_policy **ret, char *error,
                       size_t bytes)
{
    const struct ws_policy_ops *ops = ws_policy_find(name);
    if (!ops) {
        snprintf(error, bytes, "there is no policy %s", name);
        return WS_CONFIG_E_INVALID;
    }
    int r = ops->make(ret, options, error, bytes);
    if (r)
        return r < 0 ? r : WS_CONFIG_E_INVALID;
    *ret_ops = ops;
    return 0;
}

static void options_note(struct ws_dispatch *d, const char *const *options)
{
    size_t n = 0;
    d->options[0] = 0;
    for (; options && *options && n < sizeof(d->options); options++)
        n += (size_t)snprintf(d->options + n, sizeof(d->options) - n, n ? " %s" : "%s", *options);
}

static int dispatch_make(struct ws_dispatch **ret, struct ws_server *s, const char *name,
                         const char *const *options, char *error, size_t bytes)
{
    struct ws_dispatch *d = ws_alloc(sizeof(*d));
    if (!d)
        return ws_raise(-ENOMEM);
    d->server = s;
    d->timer_ms = NAN;
    ws_list_init(&d->open);
    ws_list_init(&d->idle);
    ws_list_init(&d->unused);
    ws_list_init(&d->tasks);
    int r = policy_make(name, options, &d->ops, &d->policy, error, bytes);
    if (!r)
        r = ws_dispatch_system_init(d);
    if (!r)
        r = ws_alarms_new(&d->timer, s->commands.wake_fd);
    if (!r && !(d->explained = ws_alloc_array(WS_EXPLAINED_MAX, sizeof(*d->explained))))
        r = ws_raise(-ENOMEM);
    if (r) {
        ws_dispatch_free(d);
        return r;
    }
    options_note(d, options);
    *ret = d;
    return 0;
}

int ws_dispatch_new(struct ws_dispatch **ret, struct ws_server *s, char *error, size_t bytes)
{
    const char *name = s->config->policy;
    *ret = NULL;
    if (!name || !strcmp(name, "none") || !s->n_gpus)
        return 0;
    return dispatch_make(ret, s, name, (const char *const *)s->config->policy_options, error,
                         bytes);
}

const char *ws_dispatch_policy(const struct ws_server *s, const char **ret_options)
{
    const struct ws_dispatch *d = s->dispatch && !s->dispatch->off ? s->dispatch : NULL;
    *ret_options = d ? d->options : "";
    return d ? d->ops->name : "none";
}

struct ws_dispatch_counts ws_dispatch_counts(const struct ws_server *s)
{
    const struct ws_dispatch *d = s->dispatch;
    return d ? (struct ws_dispatch_counts){.n_jobs = d->n_jobs,
                                           .n_preemptions = d->n_preemptions,
                                           .n_merged = d->n_fused,
                                           .n_moves = d->n_migrations}
             : (struct ws_dispatch_counts){0};
}

struct ws_dispatch *ws_dispatch_free(struct ws_dispatch *d)
{
    if (!d)
        return NULL;
    if (d->n_asked)
        ws_log(
            WS_INFO,
            "dispatch: policy=%s jobs=%llu asked=%llu starts=%llu preemptions=%llu fused=%llu "
            "moves=%llu cpu=%llu refused=%llu rescued=%llu decide_ns_mean=%llu decide_ns_max=%llu "
            "foresee_ns_max=%llu",
            d->ops->name, (unsigned long long)d->n_jobs, (unsigned long long)d->n_asked,
            (unsigned long long)d->n_starts, (unsigned long long)d->n_preemptions,
            (unsigned long long)d->n_fused, (unsigned long long)d->n_migrations,
            (unsigned long long)d->n_cpu, (unsigned long long)d->n_refused,
            (unsigned long long)d->n_rescued, (unsigned long long)(d->decide_ns_sum / d->n_asked),
            (unsigned long long)d->decide_ns_max, (unsigned long long)d->foresee_ns_max);
    ws_dispatch_jobs_free(d);
    ws_dispatch_system_deinit(d);
    ws_alarms_leave(d->timer);
    if (d->policy)
        d->ops->free(d->policy);
    free(d->explained);
    free(d->events);
    free(d);
    return NULL;
}

static int policy_end(struct ws_dispatch *d, const char *const *options, char *error, size_t bytes)
{
    if (options && *options) {
        snprintf(error, bytes, "policy none has no options");
        return WS_CONFIG_E_INVALID;
    }
    if (!d || d->off)
        return 0;
    d->off = true;
    for (int g = 0; g < d->system.n_gpus; g++) {
        struct ws_policy_decision p = {.gpu = g, .volt = 1, .f_core = 1, .f_mem = 1};
        ws_dispatch_set_clocks(d, &p);
    }
    ws_log(WS_INFO, "dispatch: policy=none");
    ws_dispatch_work_off(d);
    return 0;
}

int ws_dispatch_set_policy(struct ws_server *s, const char *name, const char *const *options,
                           char *error, size_t bytes)
{
    struct ws_dispatch *d = s->dispatch;
    struct ws_policy *policy;
    const struct ws_policy_ops *ops;
    if (!strcmp(name, "none"))
        return policy_end(d, options, error, bytes);
    if (!s->n_gpus) {
        snprintf(error, bytes, "the daemon has no GPU");
        return WS_CONFIG_E_INVALID;
    }
    if (!d)
        return dispatch_make(&s->dispatch, s, name, options, error, bytes);
    int r = policy_make(name, options, &ops, &policy, error, bytes);
    if (r)
        return r;
    d->ops->free(d->policy);
    d->ops = ops;
    d->policy = policy;
    d->stale = true;
    d->off = false;
    options_note(d, options);
    ws_log(WS_INFO, "dispatch: policy=%s", ops->name);
    ws_dispatch_event(d, WS_EVENT_CHANGED, 0, -1, -1);
    ws_dispatch_work_off(d);
    return 0;
}

bool ws_dispatch_is_on(const struct ws_server *s)
{
    return s->dispatch && !s->dispatch->off;
}
