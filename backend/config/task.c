// SPDX-License-Identifier: Apache-2.0
/* Which task a program is.
 *
 * What a program says of itself (its name, its environment, its path where the kernel does not
 * tell that) it may say as it likes; what the kernel says of it (user, cgroup, path) it may not. A
 * task gives quotas, priorities and SMs, so it rests on the kernel's word: a rule applies only if
 * the kernel confirms at least one of its lists. Users bind in every case, even where the program
 * gives the task's name. Root and the daemon's user may say what they like: they can change the
 * rules. */
#include "backend/config/task.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"

/* The task of a program nobody has said anything about. @exe: path, may be "". */
static void set_default(struct ws_task *ret, const char *exe)
{
    const char *slash = strrchr(exe, '/');
    *ret = (struct ws_task){.weight = 1};
    snprintf(ret->name, sizeof(ret->name), "%.*s", WS_TASK_NAME_BYTES - 1,
             slash    ? slash + 1
             : exe[0] ? exe
                      : "unknown");
}

static void list_free(char **list)
{
    for (char **p = list; p && *p; p++)
        free(*p);
    free(list);
}

void ws_task_rules_deinit(struct ws_task_rules *r)
{
    for (size_t i = 0; i < r->n; i++) {
        list_free(r->v[i].paths);
        list_free(r->v[i].cgroups);
        list_free(r->v[i].env);
        free(r->v[i].uids);
        free(r->v[i].file);
    }
    free(r->v);
    *r = (struct ws_task_rules){0};
}

/* ---- patterns ---- */

static bool any_matches(char *const *patterns, const char *text)
{
    for (; *patterns; patterns++)
        if (!fnmatch(*patterns, text, 0))
            return true;
    return false;
}

/* A line is "0::/user.slice/session-2.scope", or with the controllers' names in the middle. */
static bool cgroup_matches(char *const *patterns, const char *text)
{
    char path[4096];
    while (*text) {
        size_t n = strcspn(text, "\n");
        const char *a = memchr(text, ':', n),
                   *b = a ? memchr(a + 1, ':', n - (size_t)(a + 1 - text)) : NULL;
        if (b) {
            snprintf(path, sizeof(path), "%.*s",
                     (int)WS_MIN(n - (size_t)(b + 1 - text), sizeof(path) - 1), b + 1);
            if (any_matches(patterns, path))
                return true;
        }
        text += n + (text[n] == '\n');
    }
    return false;
}

static bool uid_matches(const struct ws_task_rule *r, const struct ws_task_who *who)
{
    for (size_t i = 0; who->has_uid && i < r->n_uids; i++)
        if (r->uids[i] == who->uid)
            return true;
    return false;
}

static bool variable_matches(const char *pattern, const struct ws_task_who *who)
{
    size_t n = strcspn(pattern, "=");
    for (size_t i = 0; i < who->n_env; i++) {
        const char *v = who->env[i];
        if (!strncmp(v, pattern, n) && v[n] == '=' &&
            (!pattern[n] || !fnmatch(pattern + n + 1, v + n + 1, 0)))
            return true;
    }
    return false;
}

static bool env_matches(char *const *patterns, const struct ws_task_who *who)
{
    for (; *patterns; patterns++)
        if (!variable_matches(*patterns, who))
            return false;
    return true;
}

static bool rule_matches(const struct ws_task_rule *r, const struct ws_task_who *who)
{
    if (!r->paths && !r->cgroups && !r->env && !r->n_uids)
        return false;
    return (!r->paths || (who->exe[0] && any_matches(r->paths, who->exe))) &&
           (!r->cgroups || cgroup_matches(r->cgroups, who->cgroups)) &&
           (!r->n_uids || uid_matches(r, who)) && (!r->env || env_matches(r->env, who));
}

static bool is_confirmed(const struct ws_task_rule *r, const struct ws_task_who *who)
{
    return who->trusted || (r->n_uids && uid_matches(r, who)) ||
           (r->cgroups && cgroup_matches(r->cgroups, who->cgroups)) ||
           (r->paths && who->exe_known && any_matches(r->paths, who->exe));
}

bool ws_task_rules_name_path(const struct ws_task_rules *r, const char *path)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->v[i].paths && any_matches(r->v[i].paths, path))
            return true;
    return false;
}

bool ws_task_rule_needs_path(const struct ws_task_rule *r)
{
    return r->paths && !r->n_uids && !r->cgroups;
}

/* @r if the kernel confirms it. */
static const struct ws_task_rule *
confirm(const struct ws_task_rule *r, const struct ws_task_who *who, struct ws_task_doubt *doubt)
{
    if (is_confirmed(r, who))
        return r;
    if (!doubt->unconfirmed)
        doubt->unconfirmed = r;
    return NULL;
}

/* The rule that @who names. */
static const struct ws_task_rule *find_named(const struct ws_task_rules *rules,
                                             const struct ws_task_who *who,
                                             struct ws_task_doubt *doubt)
{
    for (size_t i = 0; who->name[0] && i < rules->n; i++) {
        const struct ws_task_rule *r = &rules->v[i];
        if (strcmp(r->task.name, who->name) != 0)
            continue;
        doubt->refused = r->n_uids && !uid_matches(r, who);
        return doubt->refused ? NULL : confirm(r, who, doubt);
    }
    return NULL;
}

const struct ws_task_rule *ws_task_recognise(const struct ws_task_rules *rules,
                                             const struct ws_task_who *who, struct ws_task *ret,
                                             struct ws_task_doubt *ret_doubt)
{
    *ret_doubt = (struct ws_task_doubt){0};
    const struct ws_task_rule *found = find_named(rules, who, ret_doubt);
    bool named = who->name[0] && !ret_doubt->refused && !ret_doubt->unconfirmed;
    for (size_t i = 0; !named && !found && i < rules->n; i++)
        if (rule_matches(&rules->v[i], who))
            found = confirm(&rules->v[i], who, ret_doubt);
    if (found)
        *ret = found->task;
    else
        set_default(ret, who->exe);
    if (!found && named)
        snprintf(ret->name, sizeof(ret->name), "%.*s", WS_TASK_NAME_BYTES - 1, who->name);
    return found;
}

static bool name_known(char (*v)[WS_TASK_NAME_BYTES], size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(v[i], name))
            return true;
    return false;
}

size_t ws_task_rules_env(const struct ws_task_rules *rules, char (*ret)[WS_TASK_NAME_BYTES],
                         size_t max)
{
    size_t n = 0;
    for (size_t i = 0; i < rules->n; i++)
        for (char *const *p = rules->v[i].env; p && *p; p++) {
            char name[WS_TASK_NAME_BYTES];
            snprintf(name, sizeof(name), "%.*s", (int)WS_MIN(strcspn(*p, "="), sizeof(name) - 1),
                     *p);
            if (name_known(ret, WS_MIN(n, max), name))
                continue;
            if (n < max)
                memcpy(ret[n], name, sizeof(name));
            n++;
        }
    return n;
}

/* ---- sets of SMs ---- */

static bool number(const char **p, unsigned *ret)
{
    char *end;
    if (!isdigit((unsigned char)**p))
        return false;
    unsigned long v = strtoul(*p, &end, 10);
    *p = end;
    *ret = (unsigned)v;
    return v < WS_SM_MAX;
}

bool ws_sm_set_parse(const char *text, struct ws_sm_set *ret)
{
    struct ws_sm_set s = {0};
    for (const char *p = text;;) {
        unsigned a, b;
        while (*p == ' ')
            p++;
        if (!number(&p, &a))
            return false;
        b = a;
        if (*p == '-') {
            p++;
            if (!number(&p, &b) || b < a)
                return false;
        }
        for (unsigned i = a; i <= b; i++)
            ws_sm_set_add(&s, i);
        while (*p == ' ')
            p++;
        if (!*p)
            break;
        if (*p++ != ',')
            return false;
    }
    *ret = s;
    return true;
}

const char *ws_sm_set_text(const struct ws_sm_set *s, char *buf, size_t size)
{
    size_t n = 0;
    buf[0] = 0;
    for (unsigned i = 0, last; i < WS_SM_MAX && n < size; i = last + 1) {
        last = i;
        if (!ws_sm_set_has(s, i))
            continue;
        while (last + 1 < WS_SM_MAX && ws_sm_set_has(s, last + 1))
            last++;
        n += (size_t)snprintf(buf + n, size - n, last > i ? "%s%u-%u" : "%s%u", n ? "," : "", i,
                              last);
    }
    return buf;
}
