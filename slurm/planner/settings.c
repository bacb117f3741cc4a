// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "slurm/planner/settings.h"

#include <confuse.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

/* Return: 1. */
WS_PRINTF(2, 3) static int wrong(const char *path, const char *fmt, ...)
{
    va_list args;
    fprintf(stderr, "wattshare-planner: %s: ", path);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
    return 1;
}

static bool in_range(double v, double least, double most)
{
    return v >= least && v <= most;
}

static int take_kind(struct ws_planner_config *c, const char *path, cfg_t *s)
{
    const char *name = cfg_title(s);
    if (c->n_kinds == WS_PLAN_KINDS)
        return wrong(path, "more than %d kinds of GPU", WS_PLAN_KINDS);
    struct ws_planner_kind *k = &c->kinds[c->n_kinds++];
    if (!*name || strlen(name) >= sizeof(k->name))
        return wrong(path, "gpu %s: expected a name of up to 63 characters", name);
    snprintf(k->name, sizeof(k->name), "%s", name);
    double dynamic_w = cfg_getfloat(s, "dynamic_w"), memory = cfg_getfloat(s, "memory_share");
    k->static_w = cfg_getfloat(s, "static_w");
    k->idle_w = cfg_getfloat(s, "idle_w");
    k->core_share = cfg_getfloat(s, "core_share");
    k->memory_w = memory * dynamic_w;
    k->core_w = (1 - memory) * dynamic_w;
    if (!in_range(k->static_w, 0, 1e6) || !in_range(dynamic_w, 0, 1e6) ||
        !in_range(k->idle_w, 0, 1e6) || !in_range(k->core_share, 0, 1) || !in_range(memory, 0, 1))
        return wrong(path, "gpu %s: watts are 0 to 1e6, shares 0 to 1", name);
    return 0;
}

static int kind_by_name(const struct ws_planner_config *c, const char *name)
{
    for (int i = 0; i < c->n_kinds; i++)
        if (!strcmp(c->kinds[i].name, name))
            return i;
    return -1;
}

static int take_model(struct ws_planner_config *c, const char *path, cfg_t *s)
{
    const char *task = cfg_getstr(s, "task"), *gpu = cfg_getstr(s, "gpu");
    struct ws_planner_model *m = &c->models[c->n_models++];
    char error[128];
    m->kind = kind_by_name(c, gpu);
    if (m->kind < 0)
        return wrong(path, "model of %s: there is no section `gpu %s`", task, gpu);
    if (!*task || strlen(task) >= sizeof(m->task))
        return wrong(path, "model: expected a task's name of up to 63 characters");
    snprintf(m->task, sizeof(m->task), "%s", task);
    m->dvfs = (struct ws_dvfs_task){.p0 = cfg_getfloat(s, "p0"),
                                    .gamma = cfg_getfloat(s, "gamma"),
                                    .c = cfg_getfloat(s, "c"),
                                    .t0 = cfg_getfloat(s, "t0"),
                                    .d = cfg_getfloat(s, "d"),
                                    .delta = cfg_getfloat(s, "delta")};
    if (ws_dvfs_task_check(&m->dvfs, error, sizeof(error)))
        return wrong(path, "model of %s on %s: %s is wrong", task, gpu, error);
    return 0;
}

static int take(struct ws_planner_config *c, const char *path, cfg_t *cfg)
{
    char error[128];
    const char *interval = cfg_getstr(cfg, "interval");
    c->theta = cfg_getfloat(cfg, "theta");
    c->margin_s = cfg_getfloat(cfg, "margin_s");
    c->turn_on_s = cfg_getfloat(cfg, "turn_on_s");
    c->turn_on_j = cfg_getfloat(cfg, "turn_on_j");
    if (!in_range(c->turn_on_s, 0, 1e6) || !in_range(c->turn_on_j, 0, 1e9))
        return wrong(path, "turn_on_s is 0 to 1e6, turn_on_j 0 to 1e9");
    if (!in_range(c->theta, 0, 1) || !in_range(c->margin_s, 0, 1e6))
        return wrong(path, "theta is 0 to 1, margin_s 0 to 1e6");
    c->policy = ws_policy_find(cfg_getstr(cfg, "policy"));
    if (!c->policy || !ws_edl_is(c->policy))
        return wrong(path, "policy is " WS_EDL_POLICIES);
    if (strlen(interval) >= sizeof(c->interval_text))
        return wrong(path, "interval is too long");
    snprintf(c->interval_text, sizeof(c->interval_text), "%s", interval);
    if (ws_dvfs_interval_parse(interval, &c->interval, error, sizeof(error)))
        return wrong(path, "interval: %s", error);
    int r = 0;
    for (unsigned i = 0; i < cfg_size(cfg, "gpu") && !r; i++)
        r = take_kind(c, path, cfg_getnsec(cfg, "gpu", i));
    if (!r && !c->n_kinds)
        r = wrong(path, "expected a section `gpu NAME` for each kind of GPU");
    c->models = ws_alloc_array(cfg_size(cfg, "model") + 1, sizeof(*c->models));
    if (!c->models)
        return ws_raise(-ENOMEM);
    for (unsigned i = 0; i < cfg_size(cfg, "model") && !r; i++)
        r = take_model(c, path, cfg_getnsec(cfg, "model", i));
    return r;
}

int ws_planner_config_read(struct ws_planner_config *ret, const char *path)
{
    cfg_opt_t gpu[] = {
        CFG_FLOAT("static_w", 0, CFGF_NONE),       CFG_FLOAT("dynamic_w", 0, CFGF_NONE),
        CFG_FLOAT("idle_w", 0, CFGF_NONE),         CFG_FLOAT("core_share", 0.8, CFGF_NONE),
        CFG_FLOAT("memory_share", 0.1, CFGF_NONE), CFG_END()};
    cfg_opt_t model[] = {CFG_STR("task", "", CFGF_NONE),
                         CFG_STR("gpu", "", CFGF_NONE),
                         CFG_FLOAT("p0", 0, CFGF_NONE),
                         CFG_FLOAT("gamma", 0, CFGF_NONE),
                         CFG_FLOAT("c", 0, CFGF_NONE),
                         CFG_FLOAT("t0", 0, CFGF_NONE),
                         CFG_FLOAT("d", 0, CFGF_NONE),
                         CFG_FLOAT("delta", 0, CFGF_NONE),
                         CFG_END()};
    cfg_opt_t top[] = {CFG_STR("policy", "edl", CFGF_NONE),
                       CFG_FLOAT("theta", 0.9, CFGF_NONE),
                       CFG_FLOAT("margin_s", 1, CFGF_NONE),
                       CFG_FLOAT("turn_on_s", 0, CFGF_NONE),
                       CFG_FLOAT("turn_on_j", 0, CFGF_NONE),
                       CFG_STR("interval", "wide", CFGF_NONE),
                       CFG_SEC("gpu", gpu, CFGF_MULTI | CFGF_TITLE | CFGF_NO_TITLE_DUPES),
                       CFG_SEC("model", model, CFGF_MULTI),
                       CFG_END()};
    *ret = (struct ws_planner_config){0};
    cfg_t *cfg = cfg_init(top, CFGF_NONE);
    if (!cfg)
        return ws_raise(-ENOMEM);
    int r = cfg_parse(cfg, path);
    if (r == CFG_FILE_ERROR)
        r = wrong(path, "%s", strerror(errno));
    else if (r == CFG_SUCCESS)
        r = take(ret, path, cfg);
    cfg_free(cfg);
    if (r) {
        free(ret->models);
        *ret = (struct ws_planner_config){0};
    }
    return r;
}

bool ws_planner_model_of(const struct ws_planner_config *c, int kind, const char *task,
                         double length, struct ws_dvfs_task *ret)
{
    const struct ws_planner_kind *k = &c->kinds[kind];
    bool found = false;
    /* The last one counts, so that a model can be added at the end. */
    for (size_t i = 0; i < c->n_models; i++)
        if (c->models[i].kind == kind && !strcmp(c->models[i].task, task)) {
            *ret = c->models[i].dvfs;
            found = true;
        }
    if (!found)
        *ret = (struct ws_dvfs_task){.p0 = k->static_w,
                                     .gamma = k->memory_w,
                                     .c = k->core_w,
                                     .d = 1,
                                     .delta = k->core_share};
    double whole = ret->t0 + ret->d;
    if (length > 0 && whole > 0) {
        ret->t0 *= length / whole;
        ret->d *= length / whole;
    }
    ret->t0 += c->margin_s;
    return found || length > 0;
}

double ws_planner_break_even(const struct ws_planner_config *c, int kind)
{
    double idle_w = c->kinds[kind].idle_w;
    return idle_w > 0 && c->turn_on_j > 0 ? c->turn_on_j / idle_w : INFINITY;
}

double ws_planner_resume_timeout(const struct ws_planner_config *c)
{
    return ceil(fmax(2 * c->turn_on_s, 60));
}
