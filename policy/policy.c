// SPDX-License-Identifier: Apache-2.0
/* What all policies share: the table of them, lists of decisions, options. A new policy is a file
 * with one ws_policy_ops and a row in policy/policies.def. */
#include "config.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/macros.h"
#include "policy/policy.h"

#define WS_POLICY(symbol) extern const struct ws_policy_ops ws_policy_##symbol;
#include "policy/policies.def"
#undef WS_POLICY

static const struct ws_policy_ops *const policies[] = {
#define WS_POLICY(symbol) &ws_policy_##symbol,
#include "policy/policies.def"
#undef WS_POLICY
    NULL};

const struct ws_policy_ops *const *ws_policy_all(size_t *ret_n)
{
    *ret_n = WS_ARRAY_SIZE(policies) - 1;
    return policies;
}

const struct ws_policy_ops *ws_policy_find(const char *name)
{
    for (size_t i = 0; policies[i]; i++)
        if (!strcmp(policies[i]->name, name))
            return policies[i];
    return NULL;
}

struct ws_policy_decision *ws_policy_decide(struct ws_policy_decisions *d,
                                            enum ws_decision_kind kind, int job, int gpu)
{
    void *v = d->v;
    if (ws_grow(&v, &d->cap, d->n + 1, sizeof(*d->v)) < 0)
        return NULL;
    d->v = v;
    struct ws_policy_decision *p = &d->v[d->n++];
    memset(p, 0, offsetof(struct ws_policy_decision, why));
    p->kind = kind;
    p->job = job;
    p->gpu = gpu;
    p->server = -1;
    p->volt = p->f_core = p->f_mem = 1;
    p->energy = NAN;
    p->why[0] = 0;
    return p;
}

void ws_policy_decisions_deinit(struct ws_policy_decisions *d)
{
    free(d->v);
    *d = WS_POLICY_DECISIONS_NULL;
}

void ws_policy_explain(const struct ws_policy_snapshot *snap, struct ws_policy_decision *p,
                       const char *fmt, ...)
{
    if (!snap->explain)
        return;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(p->why, sizeof(p->why), fmt, ap);
    va_end(ap);
    if (!snap->mark_others)
        ws_policy_unmark(p->why, false);
}

void ws_policy_unmark(char *why, bool hide)
{
    char out[WS_POLICY_WHY];
    size_t n = 0;
    bool inside = false;
    for (const char *c = why; *c && n + 1 < sizeof(out); c++) {
        if (*c == '{' && hide)
            n += (size_t)snprintf(out + n, sizeof(out) - n, "another job");
        else if (*c != '{' && *c != '}' && !(inside && hide))
            out[n++] = *c;
        inside = *c == '{' || (inside && *c != '}');
        n = WS_MIN(n, sizeof(out) - 1);
    }
    out[n] = 0;
    memcpy(why, out, n + 1);
}

const char *ws_decision_name(enum ws_decision_kind kind)
{
    static const char *const names[_WS_DECISION_KIND_N] = {
        [WS_DECIDE_START] = "start",   [WS_DECIDE_FUSE] = "fuse",
        [WS_DECIDE_WAIT] = "wait",     [WS_DECIDE_PREEMPT] = "preempt",
        [WS_DECIDE_RESUME] = "resume", [WS_DECIDE_RUN_CPU] = "run on cpu",
        [WS_DECIDE_CLOCKS] = "clocks", [WS_DECIDE_POWER] = "power",
        [WS_DECIDE_TIMER] = "timer",   [WS_DECIDE_DROP] = "drop",
    };
    return (unsigned)kind < _WS_DECISION_KIND_N ? names[kind] : "?";
}

/* The value part of "name=value" if @option is of @name, else NULL. */
static const char *value_of(const char *option, const char *name)
{
    size_t n = strlen(name);
    return !strncmp(option, name, n) && option[n] == '=' ? option + n + 1 : NULL;
}

const char *ws_policy_option_text(const struct ws_policy_option *table, const char *const *options,
                                  const char *name)
{
    const char *value = NULL;
    for (const struct ws_policy_option *o = table; o && o->name; o++)
        if (!strcmp(o->name, name))
            value = o->fallback;
    for (; value && options && *options; options++) {
        const char *v = value_of(*options, name);
        if (v)
            value = v;
    }
    return value;
}

int ws_policy_options_check(const struct ws_policy_option *table, const char *const *options,
                            char *ret_error, size_t error_bytes)
{
    for (; options && *options; options++) {
        const struct ws_policy_option *o = table;
        while (o && o->name && !value_of(*options, o->name))
            o++;
        if (o && o->name)
            continue;
        int n = snprintf(ret_error, error_bytes, "no option '%s'; there %s", *options,
                         table && table->name ? "are:" : "are none");
        for (o = table; o && o->name && n > 0 && (size_t)n < error_bytes; o++)
            n += snprintf(ret_error + n, error_bytes - (size_t)n, " %s=%s", o->name, o->fallback);
        return WS_POLICY_E_OPTION;
    }
    return 0;
}

int ws_policy_option_number(const struct ws_policy_option *table, const char *const *options,
                            const char *name, double min, double max, double *ret, char *ret_error,
                            size_t error_bytes)
{
    const char *text = ws_policy_option_text(table, options, name);
    char *end = NULL;
    double v = text ? strtod(text, &end) : NAN;
    if (!text || end == text || *end || !(v >= min && v <= max)) {
        snprintf(ret_error, error_bytes, "%s=%s: a number from %g to %g is wanted", name,
                 text ? text : "", min, max);
        return WS_POLICY_E_OPTION;
    }
    *ret = v;
    return 0;
}
