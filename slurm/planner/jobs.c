// SPDX-License-Identifier: Apache-2.0
/* A job that was planned a moment ago is not among slurmctld's jobs yet. It is kept here until it
 * is seen there, or until it is clear that its submission has failed.
 *
 * A job whose node is off is not left to Slurm at once: Slurm would allot the node to it, and then
 * look only every 30 s whether the node has come up. So the job was submitted with a time before
 * which it does not begin. Here its node is switched on, and when that is up, the job is told to
 * begin. Without the planner, Slurm does both when the time has come. */
#include "config.h"

#include "slurm/planner/jobs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "slurm/hosts.h"
#include "slurm/planner/ctld.h"
#include "slurm/planner/note.h"

enum { PAUSE_US = 500000 };
static const double submission_s = 5; /* from a plan until slurmctld must have shown its job */

/* What was done for a job that waits for its node. */
enum step { NOTHING, SWITCHED_ON, BEGUN };

struct held_gpu {
    double made; /* 0: no planned job */
    char node[64];
    double start, length;
    char id[16]; /* of a job that waits for its node; "": it does not */
    enum step step;
};

struct news { /* what one look at slurmctld has found */
    const struct ws_planner_config *config;
    struct ws_plan_node *nodes;
    char (*names)[64];
    size_t n_nodes, cap_nodes, cap_names;
    struct held_gpu *held;
    size_t n_held, cap_held;
    double *over; /* plans of jobs that have ended */
    size_t n_over, cap_over;
};

double ws_planner_now(void)
{
    struct timeval t;
    gettimeofday(&t, NULL);
    return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

/* ---- nodes ---- */

/* Whether @word is one of @list, whose words end at any of @ends. */
static bool list_has(const char *list, const char *ends, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = list; *p; p += strcspn(p, ends), p += strspn(p, ends))
        if (!strncmp(p, word, n) && strcspn(p, ends) == n)
            return true;
    return false;
}

/* GPUs of "gpu:2(S:0),shard:8" or "gpu:h200:2". */
static int n_gpus_of(const char *gres)
{
    int n = 0;
    for (const char *p = gres; p && *p; p += strcspn(p, ","), p += *p == ',')
        if (!strncmp(p, "gpu:", strlen("gpu:"))) {
            size_t len = strcspn(p, "(,");
            const char *count = p + len;
            while (count[-1] != ':')
                count--;
            n += atoi(count);
        }
    return n > 0 && n <= 64 ? n : 0;
}

/* Of a node's state: + separates its words, and the rest may stand at its end. */
static bool state_has(const char *state, const char *word)
{
    return list_has(state, "+*~#!%$@^-", word);
}

static enum ws_plan_power power_of(const char *state)
{
    if (state_has(state, "POWER_UP") || state_has(state, "POWERING_UP"))
        return WS_PLAN_STARTING;
    if (state_has(state, "POWERED_DOWN") || state_has(state, "POWERING_DOWN"))
        return WS_PLAN_OFF;
    return WS_PLAN_ON;
}

static int take_node(const struct ws_ctld_node *v, void *arg)
{
    struct news *s = arg;
    struct ws_plan_node node = {
        .kind = -1, .n_gpus = n_gpus_of(v->gres), .power = power_of(v->state)};
    for (int k = 0; k < s->config->n_kinds; k++)
        if (list_has(v->features, ",", s->config->kinds[k].name))
            node.kind = k;
    bool out = state_has(v->state, "DRAIN") || state_has(v->state, "FAIL"),
         lost = state_has(v->state, "DOWN") || state_has(v->state, "UNKNOWN");
    if (strlen(v->name) >= sizeof(s->names[0]) || node.kind < 0 || !node.n_gpus || out ||
        (lost && node.power == WS_PLAN_ON))
        return 0;
    void *nodes = s->nodes, *names = s->names;
    int r = ws_grow(&nodes, &s->cap_nodes, s->n_nodes + 1, sizeof(*s->nodes));
    s->nodes = nodes;
    if (!r)
        r = ws_grow(&names, &s->cap_names, s->n_nodes + 1, sizeof(*s->names));
    s->names = names;
    if (r)
        return ws_forward(r);
    snprintf(s->names[s->n_nodes], sizeof(s->names[0]), "%s", v->name);
    s->nodes[s->n_nodes++] = node;
    return 0;
}

/* ---- jobs ---- */

static int hold(struct held_gpu **held, size_t *n, size_t *cap, const struct held_gpu *h)
{
    void *v = *held;
    int r = ws_grow(&v, cap, *n + 1, sizeof(**held));
    if (r < 0)
        return ws_forward(r);
    *held = v;
    (*held)[(*n)++] = *h;
    return 0;
}

static int add_over(struct news *s, double made)
{
    void *v = s->over;
    int r = ws_grow(&v, &s->cap_over, s->n_over + 1, sizeof(*s->over));
    if (r < 0)
        return ws_forward(r);
    s->over = v;
    s->over[s->n_over++] = made;
    return 0;
}

struct foreign { /* what has no plan */
    struct news *news;
    const struct ws_ctld_job *job;
};

static int hold_foreign(const char *node, void *arg)
{
    const struct foreign *v = arg;
    struct held_gpu h = {.start = v->job->start, .length = fmax(v->job->end - v->job->start, 0)};
    snprintf(h.node, sizeof(h.node), "%s", node);
    return hold(&v->news->held, &v->news->n_held, &v->news->cap_held, &h);
}

/* A job that has no plan holds a GPU of each of its nodes until its time limit. */
static int take_foreign(struct news *s, const struct ws_ctld_job *j)
{
    struct foreign v = {s, j};
    int r = ws_hosts_each(j->nodes, hold_foreign, &v);
    return r == -ENOMEM ? ws_forward(r) : 0; /* a list that was cut off counts as far as it goes */
}

static bool has_ended(const struct ws_ctld_job *j)
{
    static const char *const ends[] = {"COMPLETED", "CANCELLED", "FAILED",    "TIMEOUT",
                                       "NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE",
                                       "REVOKED",   "OUT_OF_ME"};
    for (size_t i = 0; i < WS_ARRAY_SIZE(ends); i++)
        if (!strncmp(j->state, ends[i], strlen(ends[i])))
            return true;
    return false;
}

/* A job whose node is being switched on has the time of its allotment as its start. */
static int take_job(const struct ws_ctld_job *j, void *arg)
{
    struct news *s = arg;
    struct ws_plan_note note;
    bool ended = has_ended(j), waits = !*j->nodes;
    if (!ws_plan_note_read(j->admin_comment, &note))
        return ended || waits ? 0 : take_foreign(s, j);
    const char *node = waits ? j->wanted : j->nodes;
    if (ended || !*node)
        return add_over(s, note.made);
    struct held_gpu h = {
        .made = note.made, .length = note.length, .start = waits ? INFINITY : j->start};
    if (!strcmp(j->state, "CONFIGURING"))
        h.start += s->config->turn_on_s;
    snprintf(h.node, sizeof(h.node), "%s", node);
    if (waits && note.waits)
        snprintf(h.id, sizeof(h.id), "%s", j->id);
    return hold(&s->held, &s->n_held, &s->cap_held, &h);
}

/* ---- a look at slurmctld ---- */

static int by_plan(const void *a, const void *b)
{
    const struct held_gpu *x = a, *y = b;
    return (x->made > y->made) - (x->made < y->made);
}

static int look(struct news *s)
{
    int r = ws_ctld_nodes(take_node, s);
    if (!r)
        r = ws_ctld_jobs(take_job, s);
    if (s->n_held)
        qsort(s->held, s->n_held, sizeof(*s->held), by_plan);
    return r;
}

static int index_of(const char (*names)[64], size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(names[i], name))
            return (int)i;
    return -1;
}

/* Switches on what the job waits for, and lets it begin there. What slurmctld refuses is tried
 * again at the next look. */
static void go_on(const struct news *s, struct held_gpu *h)
{
    int node = h->id[0] ? index_of(s->names, s->n_nodes, h->node) : -1;
    if (node < 0)
        return;
    enum ws_plan_power power = s->nodes[node].power;
    if (power == WS_PLAN_OFF && h->step < SWITCHED_ON && ws_ctld_switch_on(h->node))
        h->step = SWITCHED_ON;
    if (power == WS_PLAN_ON && h->step < BEGUN && ws_ctld_begin(h->id))
        h->step = BEGUN;
}

static bool was_seen(const struct news *s, double made)
{
    for (size_t i = 0; i < s->n_held; i++)
        if (s->held[i].made == made)
            return true;
    for (size_t i = 0; i < s->n_over; i++)
        if (s->over[i] == made)
            return true;
    return false;
}

/* What earlier looks have done. */
static void recall(struct ws_planner_jobs *j, struct news *s)
{
    pthread_mutex_lock(&j->mutex);
    for (size_t i = 0; i < j->n_held && s->n_held; i++) {
        if (j->held[i].step == NOTHING)
            continue;
        struct held_gpu *h = bsearch(&j->held[i], s->held, s->n_held, sizeof(*s->held), by_plan);
        if (h)
            h->step = j->held[i].step;
    }
    pthread_mutex_unlock(&j->mutex);
}

/* Takes the place of what was known before. @begun: when the look began. */
static int replace(struct ws_planner_jobs *j, struct news *s, double begun)
{
    int r = 0;
    pthread_mutex_lock(&j->mutex);
    for (size_t i = 0; i < j->n_held && !r; i++)
        if (j->held[i].made > begun - submission_s && !was_seen(s, j->held[i].made))
            r = hold(&s->held, &s->n_held, &s->cap_held, &j->held[i]);
    if (!r) {
        if (s->n_held)
            qsort(s->held, s->n_held, sizeof(*s->held), by_plan);
        struct news old = {.nodes = j->nodes, .names = j->names, .held = j->held};
        j->nodes = s->nodes;
        j->names = s->names;
        j->n_nodes = s->n_nodes;
        j->held = s->held;
        j->n_held = s->n_held;
        j->cap_held = s->cap_held;
        j->known = true;
        s->nodes = old.nodes;
        s->names = old.names;
        s->held = old.held;
    }
    pthread_mutex_unlock(&j->mutex);
    return r;
}

static void *ask_again(void *arg)
{
    struct ws_planner_jobs *j = arg;
    for (;;) {
        struct news s = {.config = j->config};
        double begun = ws_planner_now();
        if (!look(&s)) {
            /* Without the mutex: slurmctld may be waiting for a plan. */
            recall(j, &s);
            for (size_t i = 0; i < s.n_held; i++)
                go_on(&s, &s.held[i]);
            (void)replace(j, &s, begun); /* without memory, what was known before stays */
        }
        free(s.nodes);
        free(s.names);
        free(s.held);
        free(s.over);
        usleep(PAUSE_US);
    }
    return NULL;
}

int ws_planner_jobs_start(struct ws_planner_jobs *j, const struct ws_planner_config *config)
{
    pthread_t thread;
    *j = (struct ws_planner_jobs){.config = config};
    pthread_mutex_init(&j->mutex, NULL);
    int r = pthread_create(&thread, NULL, ask_again, j);
    if (!r)
        pthread_detach(thread);
    return ws_raise(-r);
}

/* ---- plans ---- */

static int place(struct ws_planner_jobs *j, double made, const struct ws_plan_wish *wish,
                 struct ws_plan_place *ret, char *ret_node, bool *ret_waits)
{
    struct ws_plan_job *jobs = ws_alloc_array(j->n_held + 1, sizeof(*jobs));
    size_t n = 0;
    if (!jobs)
        return ws_raise(-ENOMEM);
    for (size_t i = 0; i < j->n_held; i++) {
        int node = index_of(j->names, j->n_nodes, j->held[i].node);
        if (node >= 0)
            jobs[n++] = (struct ws_plan_job){node, j->held[i].start, j->held[i].length};
    }
    const struct ws_plan_cluster cluster = {.n_kinds = j->config->n_kinds,
                                            .nodes = j->nodes,
                                            .n_nodes = j->n_nodes,
                                            .jobs = jobs,
                                            .n_jobs = n,
                                            .theta = j->config->theta,
                                            .policy = j->config->policy,
                                            .turn_on_s = j->config->turn_on_s,
                                            .interval = j->config->interval,
                                            .interval_text = j->config->interval_text};
    int r = ws_plan_make(&cluster, made, wish, 1, ret);
    free(jobs);
    ret_node[0] = 0;
    *ret_waits = false;
    if (r || ret->node < 0)
        return r;
    snprintf(ret_node, sizeof(j->names[0]), "%s", j->names[ret->node]);
    *ret_waits = j->nodes[ret->node].power != WS_PLAN_ON;
    struct held_gpu h = {.made = made, .start = INFINITY, .length = ret->point.t};
    snprintf(h.node, sizeof(h.node), "%s", ret_node);
    return hold(&j->held, &j->n_held, &j->cap_held, &h);
}

int ws_planner_jobs_place(struct ws_planner_jobs *j, double made, const struct ws_plan_wish *wish,
                          struct ws_plan_place *ret, char ret_node[64], bool *ret_waits)
{
    pthread_mutex_lock(&j->mutex);
    int r = j->known && j->n_nodes ? place(j, made, wish, ret, ret_node, ret_waits) : 1;
    pthread_mutex_unlock(&j->mutex);
    return r;
}
