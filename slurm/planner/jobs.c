// SPDX-License-Identifier: Apache-2.0
/* A job that was planned a moment ago is not among slurmctld's jobs yet. It is kept here until it
 * is seen there, or until it is clear that its submission has failed. */
#include "config.h"

#include "slurm/planner/jobs.h"

#include <math.h>
#include <slurm/slurm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "slurm/planner/note.h"

enum { PAUSE_US = 500000 };
static const double submission_s = 5; /* from a plan until slurmctld must have shown its job */

struct held_gpu {
    double made; /* 0: no planned job */
    char node[64];
    double start, length;
};

struct news { /* what one look at slurmctld has found */
    struct ws_plan_node *nodes;
    char (*names)[64];
    size_t n_nodes;
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

/* Whether @feature is one of @features, which commas separate. */
static bool has_feature(const char *features, const char *feature)
{
    size_t n = strlen(feature);
    for (const char *p = features; p && *p; p += strcspn(p, ","), p += *p == ',')
        if (!strncmp(p, feature, n) && (!p[n] || p[n] == ','))
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

static enum ws_plan_power power_of(uint32_t state)
{
    if (state & (NODE_STATE_POWERED_DOWN | NODE_STATE_POWERING_DOWN))
        return WS_PLAN_OFF;
    return state & NODE_STATE_POWERING_UP ? WS_PLAN_STARTING : WS_PLAN_ON;
}

static int take_nodes(struct news *s, const struct ws_planner_config *c, const node_info_msg_t *m)
{
    s->nodes = ws_alloc_array(m->record_count + 1, sizeof(*s->nodes));
    s->names = ws_alloc_array(m->record_count + 1, sizeof(*s->names));
    if (!s->nodes || !s->names)
        return ws_raise(-ENOMEM);
    for (uint32_t i = 0; i < m->record_count; i++) {
        const node_info_t *v = &m->node_array[i];
        struct ws_plan_node node = {.kind = -1, .n_gpus = n_gpus_of(v->gres)};
        if (!v->name || strlen(v->name) >= sizeof(s->names[0]))
            continue;
        for (int k = 0; k < c->n_kinds; k++)
            if (has_feature(v->features, c->kinds[k].name))
                node.kind = k;
        uint32_t base = v->node_state & NODE_STATE_BASE;
        node.power = power_of(v->node_state);
        bool usable = node.kind >= 0 && node.n_gpus &&
                      !(v->node_state & (NODE_STATE_DRAIN | NODE_STATE_FAIL)) &&
                      (node.power || (base != NODE_STATE_DOWN && base != NODE_STATE_UNKNOWN));
        if (!usable)
            continue;
        snprintf(s->names[s->n_nodes], sizeof(s->names[0]), "%s", v->name);
        s->nodes[s->n_nodes++] = node;
    }
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

/* A job that has no plan holds a GPU of each of its nodes until its time limit. */
static int take_foreign(struct news *s, const slurm_job_info_t *j)
{
    hostlist_t list = slurm_hostlist_create(j->nodes);
    char *name;
    int r = 0;
    while (list && !r && (name = slurm_hostlist_shift(list))) {
        struct held_gpu h = {.start = (double)j->start_time,
                             .length = fmax(difftime(j->end_time, j->start_time), 0)};
        snprintf(h.node, sizeof(h.node), "%s", name);
        r = hold(&s->held, &s->n_held, &s->cap_held, &h);
        free(name);
    }
    slurm_hostlist_destroy(list);
    return r;
}

/* @turn_on_s: a job whose node is being switched on has the time of its allotment as its start. */
static int take_job(struct news *s, const slurm_job_info_t *j, double turn_on_s)
{
    struct ws_plan_note note;
    uint32_t state = j->job_state & JOB_STATE_BASE;
    bool holds = state == JOB_PENDING || state == JOB_RUNNING || state == JOB_SUSPENDED ||
                 (j->job_state & JOB_COMPLETING);
    bool begun = state != JOB_PENDING;
    if (!ws_plan_note_read(j->admin_comment, &note))
        return holds && begun && j->nodes ? take_foreign(s, j) : 0;
    const char *node = begun ? j->nodes : j->req_nodes;
    if (!holds || !node)
        return add_over(s, note.made);
    struct held_gpu h = {.made = note.made,
                         .length = note.length,
                         .start = begun ? (double)j->start_time : INFINITY};
    if (j->job_state & JOB_CONFIGURING)
        h.start += turn_on_s;
    snprintf(h.node, sizeof(h.node), "%s", node);
    return hold(&s->held, &s->n_held, &s->cap_held, &h);
}

/* ---- a look at slurmctld ---- */

static int look(struct news *s, const struct ws_planner_config *c)
{
    node_info_msg_t *nodes = NULL;
    job_info_msg_t *jobs = NULL;
    int r = -EAGAIN;
    if (!slurm_load_node(0, &nodes, SHOW_ALL) &&
        !slurm_load_jobs(0, &jobs, SHOW_ALL | SHOW_DETAIL)) {
        r = take_nodes(s, c, nodes);
        for (uint32_t i = 0; i < jobs->record_count && !r; i++)
            r = take_job(s, &jobs->job_array[i], c->turn_on_s);
    }
    if (nodes)
        slurm_free_node_info_msg(nodes);
    if (jobs)
        slurm_free_job_info_msg(jobs);
    return r;
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

static int by_plan(const void *a, const void *b)
{
    const struct held_gpu *x = a, *y = b;
    return (x->made > y->made) - (x->made < y->made);
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
        struct news s = {0};
        double begun = ws_planner_now();
        if (!look(&s, j->config))
            (void)replace(j, &s, begun); /* without memory, what was known before stays */
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
    slurm_init(NULL);
    int r = pthread_create(&thread, NULL, ask_again, j);
    if (!r)
        pthread_detach(thread);
    return ws_raise(-r);
}

/* ---- plans ---- */

static int index_of(const struct ws_planner_jobs *j, const char *name)
{
    for (size_t i = 0; i < j->n_nodes; i++)
        if (!strcmp(j->names[i], name))
            return (int)i;
    return -1;
}

static int place(struct ws_planner_jobs *j, double made, const struct ws_plan_wish *wish,
                 struct ws_plan_place *ret, char *ret_node)
{
    struct ws_plan_job *jobs = ws_alloc_array(j->n_held + 1, sizeof(*jobs));
    size_t n = 0;
    if (!jobs)
        return ws_raise(-ENOMEM);
    for (size_t i = 0; i < j->n_held; i++) {
        int node = index_of(j, j->held[i].node);
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
    if (r || ret->node < 0)
        return r;
    snprintf(ret_node, sizeof(j->names[0]), "%s", j->names[ret->node]);
    struct held_gpu h = {.made = made, .start = INFINITY, .length = ret->point.t};
    snprintf(h.node, sizeof(h.node), "%s", ret_node);
    return hold(&j->held, &j->n_held, &j->cap_held, &h);
}

int ws_planner_jobs_place(struct ws_planner_jobs *j, double made, const struct ws_plan_wish *wish,
                          struct ws_plan_place *ret, char ret_node[64])
{
    pthread_mutex_lock(&j->mutex);
    int r = j->known && j->n_nodes ? place(j, made, wish, ret, ret_node) : 1;
    pthread_mutex_unlock(&j->mutex);
    return r;
}
