// SPDX-License-Identifier: Apache-2.0
/* Sections `task NAME { … }`. Each value is checked as it is read, where libconfuse knows its line; what must hold between values,
 * at the end of the section, where the lines noted on the way say which value is meant. What depends on the GPUs is checked when
 * these are known (ws_config_check_tasks()). */
#include "backend/process/config_task.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

enum { MAX_TASKS = 1024, MAX_PATTERNS = 64, MAX_PRIORITY = 99 };
#define MAX_MS     (24 * 3600e3)
#define MIN_WEIGHT 0.001
#define MAX_WEIGHT 1e6

/* The section being read. */
static _Thread_local struct ws_task_rules read_rules;
static _Thread_local const char *read_path;
static _Thread_local uint32_t first_line, gpu_line, sms_line, deadline_line;

static void note(const cfg_t *cfg)
{
    if (!first_line)
        first_line = (uint32_t)cfg->line;
}

static int on_ms(cfg_t *cfg, cfg_opt_t *opt)
{
    double v = cfg_opt_getnfloat(opt, 0);
    note(cfg);
    if (!strcmp(opt->name, "deadline_ms"))
        deadline_line = (uint32_t)cfg->line;
    if (v > 0 && v <= MAX_MS)
        return 0;
    cfg_error(cfg, "%s = %g is out of range: use milliseconds, more than 0 and at most %.0f",
              opt->name, v, MAX_MS);
    return -1;
}

static int on_weight(cfg_t *cfg, cfg_opt_t *opt)
{
    double v = cfg_opt_getnfloat(opt, 0);
    note(cfg);
    if (v >= MIN_WEIGHT && v <= MAX_WEIGHT)
        return 0;
    cfg_error(cfg, "weight = %g is out of range: use %g to %.0f", v, MIN_WEIGHT, MAX_WEIGHT);
    return -1;
}

static int on_int(cfg_t *cfg, cfg_opt_t *opt)
{
    static const struct {
        const char *name;
        long min, max;
        const char *more;
    } rows[] = {
        {"priority", 0, MAX_PRIORITY, " (0: best effort; larger is more urgent)"},
        {"max_sms", 1, WS_SM_MAX, ""},
        {"memory_quota_bytes", 1, 1L << 44, ""},
    };
    long v = cfg_opt_getnint(opt, 0);
    note(cfg);
    if (!strcmp(opt->name, "max_sms"))
        sms_line = (uint32_t)cfg->line;
    for (size_t i = 0; i < WS_ARRAY_SIZE(rows); i++)
        if (!strcmp(opt->name, rows[i].name) && (v < rows[i].min || v > rows[i].max)) {
            cfg_error(cfg, "%s = %ld is out of range: use %ld to %ld%s", opt->name, v, rows[i].min,
                      rows[i].max, rows[i].more);
            return -1;
        }
    return 0;
}

static int on_sms(cfg_t *cfg, cfg_opt_t *opt)
{
    const char *v = cfg_opt_getnstr(opt, 0);
    struct ws_sm_set s;
    note(cfg);
    sms_line = (uint32_t)cfg->line;
    if (v && ws_sm_set_parse(v, &s))
        return 0;
    cfg_error(cfg,
              "sms = \"%s\" is no list of SMs: use numbers from 0 to %d and ranges, like \"0-3,7\"",
              v ? v : "", WS_SM_MAX - 1);
    return -1;
}

static int on_name(cfg_t *cfg, cfg_opt_t *opt)
{
    const char *v = cfg_opt_getnstr(opt, 0);
    bool gpu = !strcmp(opt->name, "gpu");
    size_t max = gpu ? sizeof((struct ws_task *)0)->gpu : sizeof((struct ws_task *)0)->profile;
    note(cfg);
    if (gpu)
        gpu_line = (uint32_t)cfg->line;
    if (v && v[0] && strlen(v) < max)
        return 0;
    cfg_error(cfg, "%s = \"%s\" is wrong: use a name of 1 to %zu characters%s", opt->name,
              v ? v : "", max - 1, gpu ? ", one of gpus" : "");
    return -1;
}

static int on_bool(cfg_t *cfg, cfg_opt_t *opt)
{
    note(cfg);
    return 0;
}

/* ---- patterns ---- */

static const char *path_wrong(const char *p)
{
    return p[0] == '/' || p[0] == '*' ? NULL : "use a whole path, like \"/opt/cam/*\"";
}

static const char *variable_wrong(const char *p)
{
    size_t n = strcspn(p, "=");
    bool ok = n && n < WS_TASK_NAME_BYTES && !isdigit((unsigned char)p[0]);
    for (size_t i = 0; ok && i < n; i++)
        ok = isalnum((unsigned char)p[i]) || p[i] == '_';
    return ok ? NULL : "use \"NAME=PATTERN\", or \"NAME\" for any value";
}

/* Return: 0, -ENOENT. */
static int find_user(const char *name, uint32_t *ret)
{
    char *end;
    unsigned long v = strtoul(name, &end, 10);
    if (isdigit((unsigned char)name[0]) && !*end && v < UINT32_MAX) {
        *ret = (uint32_t)v;
        return 0;
    }
    struct passwd *p = getpwnam(name); /* before any thread */
    if (!p)
        return -ENOENT;
    *ret = p->pw_uid;
    return 0;
}

static const char *user_wrong(const char *name)
{
    uint32_t uid;
    return find_user(name, &uid) ? "there is no such user: use a name of this machine, or a number"
                                 : NULL;
}

static int patterns_check(cfg_t *cfg, cfg_opt_t *opt, const char *(*wrong)(const char *))
{
    unsigned n = cfg_opt_size(opt);
    const char *v = n ? cfg_opt_getnstr(opt, n - 1) : NULL,
               *right = n > MAX_PATTERNS ? "a list has at most 64 entries"
                        : v              ? wrong(v)
                                         : NULL;
    note(cfg);
    if (!right)
        return 0;
    cfg_error(cfg, "%s: \"%s\" is wrong: %s", opt->name, v ? v : "", right);
    return -1;
}

static int on_path(cfg_t *cfg, cfg_opt_t *opt)
{
    return patterns_check(cfg, opt, path_wrong);
}

static int on_user(cfg_t *cfg, cfg_opt_t *opt)
{
    return patterns_check(cfg, opt, user_wrong);
}

static int on_env(cfg_t *cfg, cfg_opt_t *opt)
{
    return patterns_check(cfg, opt, variable_wrong);
}

/* ---- a section ---- */

static int strings(cfg_t *sec, const char *key, char ***ret)
{
    unsigned n = cfg_size(sec, key);
    if (!n)
        return 0;
    *ret = ws_alloc_array(n + 1, sizeof **ret);
    for (unsigned i = 0; *ret && i < n; i++)
        if (!((*ret)[i] = ws_strdup(cfg_getnstr(sec, key, i))))
            return -ENOMEM;
    return *ret ? 0 : -ENOMEM;
}

static int users(cfg_t *sec, struct ws_task_rule *r)
{
    unsigned n = cfg_size(sec, "match_user");
    if (n && !(r->uids = ws_alloc_array(n, sizeof *r->uids)))
        return -ENOMEM;
    for (; r->n_uids < n; r->n_uids++)
        (void)find_user(cfg_getnstr(sec, "match_user", (unsigned)r->n_uids), &r->uids[r->n_uids]);
    return 0;
}

static void get_ms(cfg_t *sec, const char *key, double *ret)
{
    if (cfg_size(sec, key))
        *ret = cfg_getfloat(sec, key);
}

static void take_values(cfg_t *sec, struct ws_task *t)
{
    get_ms(sec, "period_ms", &t->period_ms);
    get_ms(sec, "deadline_ms", &t->deadline_ms);
    get_ms(sec, "wcet_ms", &t->wcet_ms);
    get_ms(sec, "weight", &t->weight);
    if (cfg_size(sec, "priority"))
        t->priority = (int)cfg_getint(sec, "priority");
    if (cfg_size(sec, "max_sms"))
        t->n_sm_max = (unsigned)cfg_getint(sec, "max_sms");
    if (cfg_size(sec, "memory_quota_bytes"))
        t->memory_bytes = (uint64_t)cfg_getint(sec, "memory_quota_bytes");
    if (cfg_size(sec, "sms"))
        (void)ws_sm_set_parse(cfg_getstr(sec, "sms"), &t->sms); /* checked */
    if (cfg_size(sec, "gpu"))
        snprintf(t->gpu, sizeof t->gpu, "%s", cfg_getstr(sec, "gpu"));
    if (cfg_size(sec, "profile"))
        snprintf(t->profile, sizeof t->profile, "%s", cfg_getstr(sec, "profile"));
    t->busy_wait = cfg_size(sec, "busy_wait") && cfg_getbool(sec, "busy_wait");
    t->copies = cfg_size(sec, "copies") && cfg_getbool(sec, "copies");
    if (t->period_ms && !t->deadline_ms)
        t->deadline_ms = t->period_ms;
}

static bool title_ok(const char *t)
{
    size_t n = 0;
    for (; t && t[n]; n++)
        if (!isalnum((unsigned char)t[n]) && !strchr("._-+@", t[n]))
            return false;
    return n && n < WS_TASK_NAME_BYTES;
}

/* What is wrong with the section as a whole, at *ret_line; "": nothing. */
static void whole_wrong(const struct ws_task *t, char *ret, size_t size, uint32_t *ret_line)
{
    ret[0] = 0;
    if (!title_ok(t->name)) {
        snprintf(ret, size, "the name \"%s\" is wrong: use 1 to %d letters, digits and . _ - + @",
                 t->name, WS_TASK_NAME_BYTES - 1);
        *ret_line = first_line;
    } else if (t->period_ms && t->deadline_ms > t->period_ms) {
        snprintf(ret, size,
                 "deadline_ms = %g is later than the next job: use at most period_ms = %g",
                 t->deadline_ms, t->period_ms);
        *ret_line = deadline_line;
    } else if (t->sms.n && t->n_sm_max) {
        snprintf(ret, size, "sms and max_sms together: give the SMs, or how many of them");
        *ret_line = sms_line;
    }
}

static int section_end(cfg_t *cfg, cfg_t *sec)
{
    char wrong[256];
    uint32_t line = 0;
    const char *title = cfg_title(sec);
    void *v = read_rules.v;
    struct ws_task_rule r = {.line = first_line ? first_line : (uint32_t)cfg->line,
                             .gpu_line = gpu_line,
                             .sms_line = sms_line,
                             .task.weight = 1};
    snprintf(r.task.name, sizeof r.task.name, "%s", title ? title : "");
    take_values(sec, &r.task);
    if (title && strlen(title) >= sizeof r.task.name)
        r.task.name[0] = 0;
    whole_wrong(&r.task, wrong, sizeof wrong, &line);
    if (!wrong[0] && read_rules.n == MAX_TASKS) {
        snprintf(wrong, sizeof wrong,
                 "more than %d tasks: use patterns that cover several programs", MAX_TASKS);
        line = r.line;
    }
    if (wrong[0]) {
        int end = cfg->line;
        if (line)
            cfg->line = (int)line;
        cfg_error(cfg, "task %s: %s", r.task.name, wrong);
        cfg->line = end;
        return -1;
    }
    size_t cap = read_rules.n; /* one by one: there are few */
    if (ws_grow(&v, &cap, read_rules.n + 1, sizeof r)) {
        cfg_error(cfg, "out of memory");
        return -1;
    }
    read_rules.v = v;
    struct ws_task_rule *to = &read_rules.v[read_rules.n++];
    *to = r;
    to->file = ws_strdup(read_path);
    if (to->file && !strings(sec, "match_path", &to->paths) &&
        !strings(sec, "match_cgroup", &to->cgroups) && !strings(sec, "match_env", &to->env) &&
        !users(sec, to))
        return 0;
    cfg_error(cfg, "out of memory");
    return -1;
}

static int on_task(cfg_t *cfg, cfg_opt_t *opt)
{
    int r = section_end(cfg, cfg_opt_getnsec(opt, cfg_opt_size(opt) - 1));
    first_line = gpu_line = sms_line = deadline_line = 0;
    return r;
}

/* ---- for config.c ---- */

static const struct {
    const char *name;
    cfg_type_t type;
    cfg_flag_t flags;
    cfg_validate_callback_t check;
} keys[] = {
    {"match_path", CFGT_STR, CFGF_LIST, on_path},
    {"match_cgroup", CFGT_STR, CFGF_LIST, on_path},
    {"match_user", CFGT_STR, CFGF_LIST, on_user},
    {"match_env", CFGT_STR, CFGF_LIST, on_env},
    {"period_ms", CFGT_FLOAT, 0, on_ms},
    {"deadline_ms", CFGT_FLOAT, 0, on_ms},
    {"wcet_ms", CFGT_FLOAT, 0, on_ms},
    {"priority", CFGT_INT, 0, on_int},
    {"weight", CFGT_FLOAT, 0, on_weight},
    {"sms", CFGT_STR, 0, on_sms},
    {"max_sms", CFGT_INT, 0, on_int},
    {"memory_quota_bytes", CFGT_INT, 0, on_int},
    {"gpu", CFGT_STR, 0, on_name},
    {"profile", CFGT_STR, 0, on_name},
    {"busy_wait", CFGT_BOOL, 0, on_bool},
    {"copies", CFGT_BOOL, 0, on_bool},
};
_Static_assert(WS_ARRAY_SIZE(keys) < WS_CONFIG_TASK_KEYS, "room for the end");

void ws_config_task_keys(cfg_opt_t ret[WS_CONFIG_TASK_KEYS])
{
    memset(ret, 0, WS_CONFIG_TASK_KEYS * sizeof *ret);
    for (size_t i = 0; i < WS_ARRAY_SIZE(keys); i++) {
        ret[i].name = keys[i].name;
        ret[i].type = keys[i].type;
        ret[i].flags = keys[i].flags | CFGF_NODEFAULT;
    }
}

void ws_config_task_begin(cfg_t *cfg, const char *path)
{
    for (size_t i = 0; i < WS_ARRAY_SIZE(keys); i++) {
        char name[64];
        snprintf(name, sizeof name, "task|%s", keys[i].name);
        cfg_set_validate_func(cfg, name, keys[i].check);
    }
    cfg_set_validate_func(cfg, "task", on_task);
    read_path = path;
    first_line = gpu_line = sms_line = deadline_line = 0;
}

void ws_config_task_end(void)
{
    ws_task_rules_deinit(&read_rules);
    read_path = NULL;
}

void ws_config_task_take(struct ws_config *c)
{
    if (!read_rules.n)
        return;
    ws_task_rules_deinit(&c->tasks);
    c->tasks = read_rules;
    read_rules = (struct ws_task_rules){0};
}

/* ---- against the GPUs ---- */

static unsigned largest(const struct ws_sm_set *s)
{
    unsigned max = 0;
    for (unsigned i = 0; i < WS_SM_MAX; i++)
        if (ws_sm_set_has(s, i))
            max = i;
    return max;
}

static bool rule_check(const struct ws_task_rule *r, const struct ws_gpu_spec *const *specs,
                       size_t n, struct ws_diags *diags)
{
    const struct ws_task *t = &r->task;
    char names[256] = "", sms[256];
    const struct ws_gpu_spec *best = NULL;
    for (size_t i = 0, k = 0; i < n; i++) {
        if (k < sizeof names)
            k += (size_t)snprintf(names + k, sizeof names - k, "%s%s", i ? ", " : "",
                                  specs[i]->name);
        if ((!t->gpu[0] || !strcmp(t->gpu, specs[i]->name)) &&
            (!best || specs[i]->n_sms > best->n_sms))
            best = specs[i];
    }
    if (!best) {
        ws_diags_add(diags, r->file, t->gpu[0] ? r->gpu_line : r->line, 0,
                     "task %s: gpu = \"%s\" is not among gpus: use one of %s", t->name, t->gpu,
                     names);
        return false;
    }
    if (t->n_sm_max > best->n_sms)
        ws_diags_add(
            diags, r->file, r->sms_line, 0,
            "task %s: max_sms = %u, but the largest GPU it may use, %s, has %u: use at most "
            "that",
            t->name, t->n_sm_max, best->name, best->n_sms);
    else if (t->sms.n && largest(&t->sms) >= best->n_sms)
        ws_diags_add(
            diags, r->file, r->sms_line, 0,
            "task %s: sms = \"%s\", but the largest GPU it may use, %s, has the SMs 0 to %u",
            t->name, ws_sm_set_text(&t->sms, sms, sizeof sms), best->name, best->n_sms - 1);
    else
        return true;
    return false;
}

int ws_config_check_tasks(const struct ws_config *c, const struct ws_gpu_spec *const *specs,
                          size_t n, struct ws_diags *diags)
{
    int r = 0;
    for (size_t i = 0; i < c->tasks.n; i++)
        if (!rule_check(&c->tasks.v[i], specs, n, diags))
            r = WS_CONFIG_E_INVALID;
    return r;
}
