// SPDX-License-Identifier: Apache-2.0
/* Sections `task NAME { … }`. Single values are checked as they are read (config_key.c). Here is
 * checked what must hold between the values of a section, at its end: the lines that config.c
 * noted say which value is meant. What depends on the GPUs is checked when these are known
 * (ws_config_check_tasks()). */
#include "backend/process/config_task.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

/* The tasks of the file that is being read. */
static _Thread_local struct ws_task_rules read_rules;

static bool title_ok(const char *t)
{
    size_t n = 0;
    for (; t && t[n]; n++)
        if (!isalnum((unsigned char)t[n]) && !strchr("._-+@", t[n]))
            return false;
    return n && n < WS_TASK_NAME_BYTES;
}

/* What is wrong with the section as a whole, at *ret_line; "": nothing. */
static void whole_wrong(const struct ws_task_rule *r, const char *title, char *ret, size_t size,
                        uint32_t *ret_line)
{
    const struct ws_task *t = &r->task;
    ret[0] = 0;
    *ret_line = r->line;
    if (!title_ok(title)) {
        snprintf(ret, size, "the name \"%s\" is wrong: use 1 to %d letters, digits and . _ - + @",
                 title, WS_TASK_NAME_BYTES - 1);
    } else if (t->period_ms && t->deadline_ms > t->period_ms) {
        snprintf(ret, size,
                 "deadline_ms = %g is later than the next job: use at most period_ms = %g",
                 t->deadline_ms, t->period_ms);
        *ret_line = ws_config_line(WS_CONFIG_TASK, "deadline_ms");
    } else if (t->sms.n && t->n_sm_max) {
        snprintf(ret, size, "sms and max_sms together: give the SMs or how many of them, not both");
        *ret_line = r->sms_line;
    } else if (read_rules.n > WS_TASKS_MAX) {
        snprintf(ret, size, "more than %d tasks: use patterns that cover several programs",
                 WS_TASKS_MAX);
    }
}

/* Stores what the section says, and where. Return: 0 or -ENOMEM. */
static int rule_init(struct ws_task_rule *r, const cfg_t *cfg, cfg_t *section, const char *path)
{
    const char *title = cfg_title(section);
    uint32_t first = ws_config_first_line(WS_CONFIG_TASK);
    r->line = first ? first : (uint32_t)cfg->line; /* an empty section has its end */
    r->gpu_line = ws_config_line(WS_CONFIG_TASK, "gpu");
    r->sms_line =
        WS_MAX(ws_config_line(WS_CONFIG_TASK, "sms"), ws_config_line(WS_CONFIG_TASK, "max_sms"));
    snprintf(r->task.name, sizeof(r->task.name), "%s", title ? title : "");
    if (ws_config_take_task(r, section) || !(r->file = ws_strdup(path)))
        return ws_raise(-ENOMEM);
    if (r->task.period_ms && !r->task.deadline_ms)
        r->task.deadline_ms = r->task.period_ms;
    return 0;
}

int ws_config_task_add(cfg_t *cfg, cfg_t *section, const char *path)
{
    char wrong[256];
    const char *title = cfg_title(section) ? cfg_title(section) : "";
    uint32_t line;
    void *v = read_rules.v;
    size_t cap = read_rules.n; /* one by one: there are few */
    if (ws_grow(&v, &cap, read_rules.n + 1, sizeof(*read_rules.v))) {
        cfg_error(cfg, "out of memory");
        return -1;
    }
    read_rules.v = v;
    struct ws_task_rule *r = &read_rules.v[read_rules.n++];
    *r = (struct ws_task_rule){0};
    if (rule_init(r, cfg, section, path)) {
        cfg_error(cfg, "out of memory");
        return -1;
    }
    whole_wrong(r, title, wrong, sizeof(wrong), &line);
    if (!wrong[0])
        return 0;
    int end = cfg->line;
    cfg->line = (int)line;
    cfg_error(cfg, "task %s: %s", title, wrong);
    cfg->line = end;
    return -1;
}

void ws_config_task_end(void)
{
    ws_task_rules_deinit(&read_rules);
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
        if (k < sizeof(names))
            k += (size_t)snprintf(names + k, sizeof(names) - k, "%s%s", i ? ", " : "",
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
            t->name, ws_sm_set_text(&t->sms, sms, sizeof(sms)), best->name, best->n_sms - 1);
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
