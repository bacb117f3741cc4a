// SPDX-License-Identifier: Apache-2.0
/* Slurm's plugin (SPANK). In srun, sbatch and salloc it reads the options. In slurmstepd, as root
 * and before the tasks are started, it announces the step to the node's daemon, which from then on
 * knows the step's programs by their ancestry, and puts into the tasks' environment what `wattshare
 * run` would set. When the step's tasks have ended it writes what the job has used into the job's
 * AdminComment, and in the epilog, which comes after every end of a job, into the ledger. That a
 * step ends need not be announced: the daemon watches slurmstepd. */
#include <stdint.h>
#include <sys/types.h>

#include <slurm/slurm.h>
#include <slurm/spank.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "slurm/planner/note.h"
#include "slurm/spank/comment.h"
#include "slurm/spank/gres.h"
#include "slurm/spank/helper.h"
#include "slurm/spank/wishes.h"

SPANK_PLUGIN(wattshare, 1)

enum { ARGS_MAX = 48, ARG_BYTES = 8192, OUT_BYTES = 64 << 10, NOTHING_TO_COLLECT = 1 };

static struct ws_wishes wishes;
/* Why the step has no GPU; "": it has. Before the tasks are started there is nobody to tell. */
static char refusal[512];
static bool announced; /* to the daemon */

struct settings {     /* of the line in plugstack.conf */
    char socket[256]; /* "": the system's daemon */
    char wattshare[256];
    char ledger[256]; /* "": none */
    bool gres_optional;
};

/* ---- settings ---- */

/* Copies @text, with the node's name for each %n. */
static void put_node(char *to, size_t size, const char *text)
{
    const char *node = getenv("SLURMD_NODENAME"); /* slurmd sets it for its own processes */
    size_t n = 0;
    for (; *text && n + 1 < size; text++) {
        if (text[0] == '%' && text[1] == 'n') {
            n += (size_t)snprintf(to + n, size - n, "%s", node ? node : "");
            n = n < size ? n : size - 1;
            text++;
        } else {
            to[n++] = *text;
        }
    }
    to[n] = 0;
}

static bool value_of(const char *arg, const char *name, const char **ret)
{
    size_t n = strlen(name);
    *ret = arg + n + 1;
    return !strncmp(arg, name, n) && arg[n] == '=';
}

/* Return: false: an argument is wrong, and was logged. */
static bool read_settings(struct settings *s, int argc, char **argv)
{
    const char *v;
    *s = (struct settings){.wattshare = WS_SPANK_WATTSHARE};
    for (int i = 0; i < argc; i++) {
        if (value_of(argv[i], "socket", &v)) {
            put_node(s->socket, sizeof(s->socket), v);
        } else if (value_of(argv[i], "wattshare", &v)) {
            snprintf(s->wattshare, sizeof(s->wattshare), "%s", v);
        } else if (value_of(argv[i], "ledger", &v)) {
            put_node(s->ledger, sizeof(s->ledger), v);
        } else if (value_of(argv[i], "gres", &v) &&
                   (!strcmp(v, "optional") || !strcmp(v, "required"))) {
            s->gres_optional = !strcmp(v, "optional");
        } else {
            slurm_error("wattshare: plugstack.conf: %s: expected socket=ENDPOINT, wattshare=PATH, "
                        "ledger=FILE, "
                        "gres=required or gres=optional",
                        argv[i]);
            return false;
        }
    }
    return true;
}

/* ---- options ---- */

static int take_option(int val, const char *text, int remote)
{
    char buf[256];
    const char *wrong = ws_wishes_take(&wishes, (enum ws_wish)val, text, buf, sizeof(buf));
    if (wrong)
        slurm_error("wattshare: %s", wrong);
    return wrong ? -1 : 0;
}

int slurm_spank_init(spank_t sp, int argc, char **argv)
{
    for (int i = 0; i < _WS_WISH_N; i++) {
        const struct ws_wish_info *w = &ws_wish_info[i];
        struct spank_option o = {.name = (char *)w->name,
                                 .arginfo = (char *)w->argument,
                                 .usage = (char *)w->usage,
                                 .has_arg = i == WS_WISH_TASK ? 2 : 1,
                                 .val = i,
                                 .cb = take_option};
        /* An array in the plugin would do for srun alone. */
        if (spank_context() != S_CTX_SLURMD && spank_context() != S_CTX_JOB_SCRIPT &&
            spank_option_register(sp, &o) != ESPANK_SUCCESS)
            return -1;
    }
    return 0;
}

/* ---- the arguments of `wattshare step` ---- */

struct arguments {
    char *v[ARGS_MAX + 1];
    int n;
    bool failed;
};

__attribute__((format(printf, 2, 3))) static void add(struct arguments *a, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    a->failed |= a->n == ARGS_MAX || vasprintf(&a->v[a->n], fmt, args) < 0;
    va_end(args);
    a->n += !a->failed;
    a->v[a->n] = NULL;
}

static void arguments_free(struct arguments *a)
{
    while (a->n)
        free(a->v[--a->n]);
}

static void add_wishes(struct arguments *a)
{
    for (int i = 0; i < _WS_WISH_N; i++)
        if (wishes.given[i] && ws_wish_info[i].begin_option)
            add(a, "--%s=%s", ws_wish_info[i].begin_option, wishes.text[i]);
    if (wishes.text[WS_WISH_TASK][0])
        add(a, "--task=%s", wishes.text[WS_WISH_TASK]);
}

/* Variables of the job that are extended, not replaced. */
static void add_environment(struct arguments *a, spank_t sp)
{
    static const char *const names[] = {"LD_PRELOAD",
                                        "LD_LIBRARY_PATH",
                                        "PATH",
                                        "TRITON_PTXAS_PATH",
                                        "TRITON_PTXAS_BLACKWELL_PATH",
                                        "JAX_SKIP_CUDA_CONSTRAINTS_CHECK",
                                        "TORCHINDUCTOR_SHAPE_PADDING"};
    char value[ARG_BYTES];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (spank_getenv(sp, names[i], value, sizeof(value)) == ESPANK_SUCCESS)
            add(a, "--env=%s=%s", names[i], value);
}

/* ---- what Slurm allotted ---- */

/* Return: -1. */
__attribute__((format(printf, 1, 2))) static int refuse(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(refusal, sizeof(refusal), fmt, args);
    va_end(args);
    return -1;
}

/* slurmctld's word. @ret_plan: volt is 0 where the job has none. Return: false: it did not answer,
 * or the text cannot be read: the refusal says it. */
static bool read_job(uint32_t job, uint32_t node, struct ws_gres *ret,
                     struct ws_plan_note *ret_plan)
{
    job_info_msg_t *m = NULL;
    *ret = (struct ws_gres){0};
    *ret_plan = (struct ws_plan_note){0};
    if (slurm_load_job(&m, job, SHOW_DETAIL) || !m->record_count) {
        refuse("wattshare: slurmctld does not say what job %u was allotted", job);
        return false;
    }
    const slurm_job_info_t *j = &m->job_array[0];
    const char *text = node < j->gres_detail_cnt ? j->gres_detail_str[node] : "";
    bool ok = ws_gres_read(text ? text : "", ret);
    if (!ok)
        refuse("wattshare: job %u: cannot read GRES=%s", job, text);
    if (!ws_plan_note_read(j->admin_comment, ret_plan))
        ret_plan->volt = 0;
    slurm_free_job_info_msg(m);
    return ok;
}

/* ---- the step ---- */

static void set_environment(spank_t sp, const char *out, size_t n)
{
    for (const char *p = out; p < out + n; p += strlen(p) + 1) {
        char name[64];
        const char *eq = strchr(p, '=');
        if (!eq || (size_t)(eq - p) >= sizeof(name))
            continue;
        snprintf(name, sizeof(name), "%.*s", (int)(eq - p), p);
        spank_setenv(sp, name, eq + 1, 1);
    }
}

static int announce(spank_t sp, const struct settings *s, struct arguments *a)
{
    uint32_t job, step, node;
    uid_t uid;
    struct ws_gres gres;
    struct ws_plan_note plan;
    static char out[OUT_BYTES];
    size_t n;
    if (spank_get_item(sp, S_JOB_ID, &job) || spank_get_item(sp, S_JOB_STEPID, &step) ||
        spank_get_item(sp, S_JOB_UID, &uid) || spank_get_item(sp, S_JOB_NODEID, &node) ||
        !read_job(job, node, &gres, &plan))
        return -1;
    add(a, "%s", s->wattshare);
    add(a, "step");
    add(a, "begin");
    if (s->socket[0])
        add(a, "--socket=%s", s->socket);
    add(a, "--job=%u", job);
    add(a, "--step=%u", step);
    add(a, "--uid=%u", (unsigned)uid);
    add(a, "--pid=%d", (int)getpid());
    if (gres.gpus[0])
        add(a, "--gpus=%s", gres.gpus);
    else if (s->gres_optional)
        add(a, "--all-gpus");
    if (gres.shards)
        add(a, "--shards=%u", gres.shards);
    if (gres.whole && plan.volt > 0)
        add(a, "--clocks=%.6f:%.6f:%.6f", plan.volt, plan.core, plan.memory);
    add_wishes(a);
    add_environment(a, sp);
    if (a->failed)
        return -1;
    if (ws_helper_run(a->v, out, sizeof(out), &n)) {
        out[strcspn(out, "\n")] = 0;
        return refuse("%s", out[0] ? out : "wattshare: the step could not be announced");
    }
    /* A program whose parent has ended becomes slurmstepd's child, and so stays in the step. */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    set_environment(sp, out, n);
    announced = true;
    return 0;
}

/* job_submit.lua finds there what the user asked the planner for. */
static int ask_planner(spank_t sp)
{
    static const struct {
        enum ws_wish wish;
        const char *name;
    } told[] = {{WS_WISH_TASK, "WATTSHARE_TASK"},
                {WS_WISH_FINISH, "WATTSHARE_FINISH"},
                {WS_WISH_LENGTH, "WATTSHARE_LENGTH"}};
    for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++)
        if (wishes.text[told[i].wish][0] &&
            spank_job_control_setenv(sp, told[i].name, wishes.text[told[i].wish], 1))
            return -1;
    return 0;
}

int slurm_spank_init_post_opt(spank_t sp, int argc, char **argv)
{
    struct settings s;
    struct arguments a = {.n = 0};
    char buf[256];
    if (spank_context() == S_CTX_SLURMD || spank_context() == S_CTX_JOB_SCRIPT)
        return 0;
    const char *wrong = ws_wishes_wrong(&wishes, buf, sizeof(buf));
    if (wrong)
        slurm_error("wattshare: %s", wrong);
    if (wrong || !read_settings(&s, argc, argv))
        return -1;
    if (wishes.given[WS_WISH_FINISH] && spank_context() != S_CTX_REMOTE)
        return ask_planner(sp);
    if (!wishes.given[WS_WISH_TASK] || spank_context() != S_CTX_REMOTE)
        return 0;
    if (announce(sp, &s, &a) && !refusal[0])
        refuse("wattshare: the step could not be announced");
    arguments_free(&a);
    return 0;
}

/* The task's standard error is connected by now, so the user is told. */
int slurm_spank_task_init_privileged(spank_t sp, int argc, char **argv)
{
    if (refusal[0])
        slurm_error("%s", refusal);
    return refusal[0] ? -1 : 0;
}

/* ---- what the job used ---- */

/* Runs `wattshare step WHAT` for the job. @out gets its line. Return: its exit status. */
static int ask_use(const struct settings *s, const char *what, uint32_t job, uint32_t step,
                   char *out, size_t size)
{
    struct arguments a = {.n = 0};
    size_t n = 0;
    out[0] = 0;
    add(&a, "%s", s->wattshare);
    add(&a, "step");
    add(&a, "%s", what);
    if (s->socket[0])
        add(&a, "--socket=%s", s->socket);
    add(&a, "--job=%u", job);
    add(&a, "--step=%u", step);
    int r = a.failed ? -1 : ws_helper_run(a.v, out, size, &n);
    out[strcspn(out, "\n")] = 0;
    arguments_free(&a);
    return r;
}

static const char *node_name(void)
{
    const char *node = getenv("SLURMD_NODENAME"); /* slurmd sets it for its own processes */
    return node ? node : "node";
}

/* The job's AdminComment with the node's entry, malloc'ed; NULL: slurmctld does not answer.
 * @ret_there: it has this entry already. */
static char *comment_with(uint32_t job, const char *text, bool *ret_there)
{
    job_info_msg_t *m = NULL;
    char *ret = NULL;
    if (slurm_load_job(&m, job, SHOW_DETAIL))
        return NULL;
    if (m->record_count) {
        const char *old = m->job_array[0].admin_comment;
        ret = ws_comment_with(old ? old : "", node_name(), text);
        *ret_there = old && strstr(old, text);
    }
    slurm_free_job_info_msg(m);
    return ret;
}

static bool write_comment(uint32_t job, char *value)
{
    job_desc_msg_t m;
    slurm_init_job_desc_msg(&m);
    m.job_id = job;
    m.admin_comment = value;
    return !slurm_update_job(&m);
}

/* Slurm 22.05 has no way to append, so what another node writes between our reading and our writing
 * is lost. Each node looks later whether its entry is still there, and writes it again. */
static void comment(uint32_t job, uint32_t n_nodes, const char *text)
{
    enum { TRIES = 5, PAUSE_US = 20000 };
    bool there = false, ok = true;
    for (int i = 0; ok && !there && i < (n_nodes > 1 ? TRIES : 1); i++) {
        if (i)
            usleep(PAUSE_US + (useconds_t)getpid() % PAUSE_US);
        char *value = comment_with(job, text, &there);
        ok = value && (there || write_comment(job, value));
        free(value);
    }
    if (!ok)
        slurm_error("wattshare: job %u: cannot write \"%s\" into its AdminComment", job, text);
}

/* A task has ended. The comment must be written before Slurm knows that the step is over: it takes
 * none for jobs that have ended. */
int slurm_spank_task_exit(spank_t sp, int argc, char **argv)
{
    static uint32_t n_ended;
    uint32_t job, step, n_tasks, n_nodes;
    struct settings s;
    char out[512];
    if (!announced || spank_get_item(sp, S_JOB_LOCAL_TASK_COUNT, &n_tasks) || ++n_ended < n_tasks ||
        spank_get_item(sp, S_JOB_ID, &job) || spank_get_item(sp, S_JOB_STEPID, &step) ||
        spank_get_item(sp, S_JOB_NNODES, &n_nodes) || !read_settings(&s, argc, argv))
        return 0;
    if (!ask_use(&s, "look", job, step, out, sizeof(out)))
        comment(job, n_nodes, out);
    else
        slurm_error("wattshare: job %u: %s", job, out);
    return 0;
}

static void write_ledger(const char *path, uint32_t job, const char *text)
{
    FILE *f = fopen(path, "ae");
    bool ok = f && fprintf(f, "job %u, %s: %s\n", job, node_name(), text) > 0;
    ok = f && !fclose(f) && ok;
    if (!ok)
        slurm_error("wattshare: cannot write to %s", path);
}

/* Whatever goes wrong here is logged and no more: an epilog that fails would take the node out of
 * service. */
int slurm_spank_job_epilog(spank_t sp, int argc, char **argv)
{
    uint32_t job;
    struct settings s;
    char out[512];
    if (spank_get_item(sp, S_JOB_ID, &job) || !read_settings(&s, argc, argv))
        return 0;
    int r = ask_use(&s, "collect", job, 0, out, sizeof(out));
    if (!r && s.ledger[0])
        write_ledger(s.ledger, job, out);
    if (!r)
        slurm_info("wattshare: job %u: %s", job, out);
    else if (r != NOTHING_TO_COLLECT)
        slurm_error("wattshare: job %u: %s", job, out);
    return 0;
}
