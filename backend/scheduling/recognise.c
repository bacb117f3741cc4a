// SPDX-License-Identifier: Apache-2.0
/* Which task a client is, found out when it says hello.
 *
 * Its path and cgroup are read from /proc by the process id that the kernel gave us with the
 * connection (client/identity.h). The path needs the right to look at the process (the same user,
 * or CAP_SYS_PTRACE): a daemon without it knows the client's word only, as of remote ones, and a
 * task then needs a user or a cgroup that the kernel confirms (config/task.c). The environment is
 * never read there. Instead, where rules ask for variables, the first hello is
 * answered with their names, and the library says hello again with their values: nothing else of
 * a program's environment leaves it, containers and remote clients need no special case, and
 * without such rules it costs nothing. */
#include "backend/backend.h"
#include "backend/client/identity.h"
#include "backend/client/sms.h"
#include "backend/client/step.h"
#include "backend/client/user.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backend/scheduling/dispatch_private.h"
#include "backend/scheduling/recognise.h"
#include "base/alloc.h"

enum { MAX_ENV = 256, MAX_ENV_BYTES = 64 << 10 };

bool ws_hello_needs_env(struct ws_server *s, const Ws__Hello *h, Ws__HelloReply *ret)
{
    char names[WS_ENV_NAMES_MAX][WS_TASK_NAME_BYTES];
    struct ws_arena *a = &s->arena;
    if (h->env_told)
        return false;
    size_t n = WS_MIN(ws_task_rules_env(&s->config->tasks, names, WS_ENV_NAMES_MAX),
                      (size_t)WS_ENV_NAMES_MAX);
    if (!n || !(ret->env_wanted = ws_arena_array(a, n, sizeof(*ret->env_wanted))))
        return false;
    for (size_t i = 0; i < n; i++) {
        char *copy = ws_arena_alloc(a, sizeof(names[i]));
        if (!copy)
            return false;
        memcpy(copy, names[i], sizeof(names[i]));
        ret->env_wanted[ret->n_env_wanted++] = copy;
    }
    return true;
}

static size_t env_of(const Ws__Hello *h, const char **ret)
{
    size_t n = 0, bytes = 0;
    for (size_t i = 0; i < h->n_env && n < MAX_ENV && bytes < MAX_ENV_BYTES; i++) {
        bytes += strlen(h->env[i]);
        if (strchr(h->env[i], '='))
            ret[n++] = h->env[i];
    }
    return n;
}

bool ws_is_trusted(uint32_t uid)
{
    return uid == 0 || uid == geteuid();
}

/* Once for each entry. */
static void tell_unconfirmed(struct ws_server *s, const struct ws_newcomer *n,
                             const struct ws_task_rule *r)
{
    size_t i = (size_t)(r - s->config->tasks.v);
    uint64_t bit = UINT64_C(1) << i % 64, *word = &s->clients.told_tasks[i / 64];
    if (*word & bit)
        return;
    *word |= bit;
    ws_log(
        WS_WARN,
        "client: pid=%u uid=%d would be task %s by its own word only, which is not enough: taken "
        "as task %s; to let the kernel confirm it, add match_user or match_cgroup to the "
        "section (%s:%u)",
        n->pid, (int)n->uid, r->task.name, n->work.name, r->file ? r->file : "", r->line);
}

static bool names_path(const void *rules, const char *path)
{
    return ws_task_rules_name_path(rules, path);
}

void ws_newcomer_recognise(struct ws_server *s, const Ws__Hello *h, struct ws_newcomer *n)
{
    struct ws_identity id = {.exe = ""};
    const char *env[MAX_ENV];
    struct ws_task_doubt doubt;
    n->step = NULL;
    if (n->has_cred) {
        ws_identity_read(n->fd, n->pid, n->uid, names_path, &s->config->tasks, &id);
        n->step = ws_step_of_program(s, n->fd, n->pid, n->uid);
    }
    n->exe_known = id.exe[0];
    if (n->exe_known)
        memcpy(n->exe, id.exe, sizeof(n->exe));
    struct ws_task_who who = {.name = n->name,
                              .trusted = ws_is_trusted(n->uid),
                              .exe = n->exe,
                              .exe_known = n->exe_known,
                              .cgroups = id.cgroups,
                              .has_uid = n->uid != UINT32_MAX,
                              .uid = n->uid,
                              .env = env,
                              .n_env = env_of(h, env)};
    n->work_known = ws_task_recognise(&s->config->tasks, &who, &n->work, &doubt) != NULL;
    if (n->step)
        ws_step_apply(n->step, &n->work);
    if (doubt.refused)
        ws_log(
            WS_WARN,
            "client: pid=%u uid=%u says it is task %s, whose match_user does not have this user: "
            "taken as task %s",
            n->pid, n->uid, n->name, n->work.name);
    if (doubt.unconfirmed && !n->work_known)
        tell_unconfirmed(s, n, doubt.unconfirmed);
}

Ws__Error ws_client_set_task(struct ws_client *c, const char *name, char *ret_text, size_t size)
{
    struct ws_identity id = {.exe = ""};
    if (c->who.has_cred) {
        struct ws_peer_info info = {.fd = -1};
        const struct ws_message m = {.peer = &c->peer};
        c->server->transport.info(c->server->transport.arg, &m, &info);
        ws_identity_read(info.fd, c->who.pid, c->who.uid, names_path, &c->server->config->tasks,
                         &id);
    }
    struct ws_task_who who = {.name = name,
                              .trusted = ws_is_trusted(c->who.uid),
                              .exe = id.exe[0] ? id.exe : c->who.exe,
                              .exe_known = id.exe[0],
                              .cgroups = id.cgroups,
                              .has_uid = c->who.uid != UINT32_MAX,
                              .uid = c->who.uid};
    struct ws_task task;
    struct ws_task_doubt doubt;
    size_t n = strlen(name);
    if (!n || n >= WS_TASK_NAME_BYTES) {
        snprintf(ret_text, size, "the name of a task has 1 to %d characters",
                 WS_TASK_NAME_BYTES - 1);
        return WS__ERROR__INVALID_VALUE;
    }
    const struct ws_task_rule *r =
        ws_task_recognise(&c->server->config->tasks, &who, &task, &doubt);
    if (doubt.refused) {
        snprintf(ret_text, size, "task %s is for other users (its match_user)", name);
        return WS__ERROR__DENIED;
    }
    if (doubt.unconfirmed) {
        snprintf(ret_text, size,
                 "task %s is not given to a program by its own word: its section needs match_user "
                 "or match_cgroup",
                 name);
        return WS__ERROR__DENIED;
    }
    if (!r) {
        snprintf(ret_text, size, "the daemon's configuration has no task %s", name);
        return WS__ERROR__NOT_FOUND;
    }
    if (c->jobs.n_open)
        ws_dispatch_waits(c);
    if (c->jobs.n_open || c->jobs.own.open) {
        snprintf(ret_text, size, "the program's GPU work is under way: name the task before it");
        return WS__ERROR__NOT_READY;
    }
    if (c->jobs.task)
        ws_gpu_task_free(c->server->dispatch, c->jobs.task); /* made anew with its next work */
    c->work = task;
    if (c->step)
        ws_step_apply(c->step, &c->work);
    c->work.weight *= ws_user_share(c) / (double)WS_SHARE_DEFAULT;
    c->who.work_known = true;
    c->jobs.own.has_base = c->jobs.own.has_release = false; /* other periods */
    c->jobs.own.n_releases = 0;
    snprintf(c->who.task, sizeof(c->who.task), "%s", task.name);
    for (uint32_t i = 0; i < c->n_contexts; i++)
        ws_context_limit_sms(&c->contexts[i]);
    return WS__ERROR__OK;
}

/* ---- GPUs and SMs ---- */

uint32_t ws_task_gpus(const struct ws_server *s, const struct ws_task *t, uint32_t *order,
                      uint32_t n)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++)
        if (!t->gpu[0] || !strcmp(t->gpu, s->gpus[order[i]].device->spec.name))
            order[kept++] = order[i];
    return kept;
}
