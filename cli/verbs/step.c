// SPDX-License-Identifier: Apache-2.0
/* wattshare step: how a batch scheduler's plugin speaks with the daemon. `begin` announces a step
 * and prints what its programs need in their environment; `look` and `collect` ask what a job
 * used. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/common/link.h"
#include "cli/common/options.h"
#include "cli/common/program.h"

enum { EXIT_NOTHING = 1, EXIT_REFUSED = 3, GPUS_MAX = 32, ENV_MAX = 16 };
enum { COLLECT_TRIES = 2000, COLLECT_PAUSE_US = 2000 };

/* What ws_program_environment() sets, or extends. */
static const char *const variables[] = {"LD_PRELOAD",
                                        "LD_LIBRARY_PATH",
                                        "PATH",
                                        "TRITON_PTXAS_PATH",
                                        WS_ENV_SOCKET,
                                        "TRITON_PTXAS_BLACKWELL_PATH",
                                        WS_ENV_TASK,
                                        "JAX_SKIP_CUDA_CONSTRAINTS_CHECK",
                                        "TORCHINDUCTOR_SHAPE_PADDING"};

struct step_options {
    const char *socket, *task, *gpus;
    uint64_t job, memory_bytes;
    int shards, sms, priority;
    uint64_t step, uid, pid;
    double period_ms, deadline_ms, volt, core, memory;
    bool all_gpus;
    char *env[ENV_MAX];
    int n_env;
};

static int take_env(void *values, char *text)
{
    struct step_options *o = values;
    if (!strchr(text, '=') || o->n_env == ENV_MAX) {
        ws_cli_error("--env=%.40s: expected NAME=VALUE, at most %d times", text, ENV_MAX);
        return -1;
    }
    o->env[o->n_env++] = text;
    return 0;
}

static int take_clocks(void *values, char *text)
{
    struct step_options *o = values;
    int n = 0;
    if (sscanf(text, "%lf:%lf:%lf%n", &o->volt, &o->core, &o->memory, &n) == 3 && !text[n])
        return 0;
    ws_cli_error("--clocks=%s: expected V:CORE:MEMORY, such as 0.9:0.8:1", text);
    return -1;
}

static const struct ws_option options[] = {
    {"job", "N", "The scheduler's number of the job.", WS_UINT64(struct step_options, job),
     .required = true},
    {"step", "N", "begin, look: the number of the step.", WS_UINT64(struct step_options, step),
     .max = UINT32_MAX},
    {"uid", "UID", "begin: the user whose step it is.", WS_UINT64(struct step_options, uid),
     .max = UINT32_MAX},
    {"pid", "PID", "begin: the step is this process and all that it starts.",
     WS_UINT64(struct step_options, pid), .max = INT32_MAX},
    {"gpus", "LIST", "begin: the GPUs that the job may use here, by the daemon's numbers (0,1).",
     WS_TEXT(struct step_options, gpus)},
    {"all-gpus", NULL, "begin: the job may use all GPUs.", WS_FLAG(struct step_options, all_gpus)},
    {"shards", "N", "begin: the shards that the job has here; without it, GPUs as a whole.",
     WS_INT(struct step_options, shards, 1, 1000000)},
    {"period", "MS", "begin: GPU work comes at this interval.",
     WS_NUMBER(struct step_options, period_ms, 0, 1e9)},
    {"deadline", "MS", "begin: GPU work is to end this long after it was given.",
     WS_NUMBER(struct step_options, deadline_ms, 0, 1e9)},
    {"priority", "N", "begin: priority of the GPU work.",
     WS_INT(struct step_options, priority, 0, 1000000)},
    {"sms", "N", "begin: SMs that each program may use.",
     WS_INT(struct step_options, sms, 1, 1024)},
    {"memory", "BYTES", "begin: device memory that each program may use.",
     WS_UINT64(struct step_options, memory_bytes)},
    {"clocks", "V:CORE:MEMORY",
     "begin: voltage and clocks of its GPUs while it works, as shares of the default.",
     WS_PARSE(take_clocks)},
    {"task", "NAME", "begin: the task that the programs belong to.",
     WS_TEXT(struct step_options, task)},
    {"env", "NAME=VALUE", "begin: a variable of the job that is extended.", .repeats = true,
     WS_PARSE(take_env)},
    WS_OPTION_SOCKET(struct step_options, socket),
    {0}};

static const char *const arguments[] = {"begin", "look", "collect", NULL};
static const char *const examples[] = {
    "wattshare step begin --job 12 --step 0 --uid 1000 --pid 4711 --gpus 0 --shards 2",
    "wattshare step collect --job 12", NULL};

static int step(int argc, char **argv);

const struct ws_verb ws_verb_step = {
    .name = "step",
    .purpose = "tell the daemon of a batch scheduler's steps",
    .about =
        "For the plugins of batch schedulers, as root: wattshare-slurm(8). begin announces a "
        "step and prints the variables that its programs need, each ended by a 0 byte. collect "
        "prints what a job used, and the daemon forgets it. look prints the same of a job that "
        "goes on, once the programs of --step are gone.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .min_arguments = 1,
    .max_arguments = 1,
    .missing = "step needs begin, look or collect",
    .run = step,
};

static bool is_step(const Ws__ServerMessage *m)
{
    return m->step;
}

/* Return: 0, or the exit status with the error printed. @ret: freed by the caller. */
static int ask(struct ws_cli_link *l, const char *endpoint, Ws__StepRequest *q,
               Ws__ServerMessage **ret)
{
    Ws__ClientMessage m = WS__CLIENT_MESSAGE__INIT;
    q->version = WS_PROTOCOL_VERSION;
    m.step = q;
    int r = ws_cli_link_ask(l, &m, is_step, WS_CLI_NEXT_TIMEOUT_MS, ret);
    return r ? ws_cli_no_daemon(endpoint, r, NULL) : 0;
}

/* Numbers separated by commas. Return: how many; -1: it is no such list. */
static int read_gpus(const char *text, uint32_t *ret)
{
    int n = 0;
    for (const char *p = text; p && *p; n++) {
        char *end;
        if (n == GPUS_MAX || *p < '0' || *p > '9')
            return -1;
        ret[n] = (uint32_t)strtoul(p, &end, 10);
        if (*end && *end != ',')
            return -1;
        p = end + (*end == ',');
    }
    return n;
}

static void print_environment(void)
{
    for (size_t i = 0; i < WS_ARRAY_SIZE(variables); i++) {
        const char *value = getenv(variables[i]);
        if (value)
            printf("%s=%s%c", variables[i], value, 0);
    }
}

/* The environment that the programs will have, as far as it is extended, becomes ours. */
static int make_environment(const struct step_options *o, const char *endpoint)
{
    for (size_t i = 0; i < WS_ARRAY_SIZE(variables); i++)
        unsetenv(variables[i]);
    for (int i = 0; i < o->n_env; i++)
        if (putenv(o->env[i]))
            return WS_EXIT_CANNOT_RUN;
    return ws_program_environment(endpoint, o->task);
}

static int begin(struct ws_cli_link *l, const char *endpoint, const struct step_options *o)
{
    Ws__StepRequest q = WS__STEP_REQUEST__INIT;
    Ws__ServerMessage *m;
    uint32_t gpus[GPUS_MAX];
    int n = read_gpus(o->gpus, gpus);
    if (n < 0)
        return ws_verb_wrong(&ws_verb_step, "--gpus=%s: expected numbers, such as 0,1", o->gpus);
    q.job = o->job;
    q.step = (uint32_t)o->step;
    q.uid = (uint32_t)o->uid;
    q.pid = (uint32_t)o->pid;
    q.all_gpus = o->all_gpus;
    q.shards = (uint32_t)o->shards;
    q.gpus = gpus;
    q.n_gpus = (size_t)n;
    q.period_ms = o->period_ms;
    q.deadline_ms = o->deadline_ms;
    q.has_priority = o->priority >= 0;
    q.priority = WS_MAX(o->priority, 0);
    q.sms = (uint32_t)o->sms;
    q.memory_bytes = o->memory_bytes;
    q.volt = o->volt;
    q.core = o->core;
    q.memory = o->memory;
    int r = ask(l, endpoint, &q, &m);
    if (r)
        return r;
    if (m->step->error) {
        ws_cli_error("%s", m->step->text);
        r = EXIT_REFUSED;
    }
    ws__server_message__free_unpacked(m, NULL);
    if (!r && !(r = make_environment(o, endpoint)))
        print_environment();
    return r;
}

static void print_use(const Ws__StepReply *a)
{
    uint64_t uj = a->busy_uj + a->idle_uj;
    printf("%llu.%06llu J (%llu.%06llu J idle), %.3f ms, %llu kernels, %llu programs",
           (unsigned long long)(uj / 1000000), (unsigned long long)(uj % 1000000),
           (unsigned long long)(a->idle_uj / 1000000), (unsigned long long)(a->idle_uj % 1000000),
           (double)a->device_ns / 1e6, (unsigned long long)a->n_kernels,
           (unsigned long long)a->n_programs);
    if (a->n_jobs)
        printf(", %llu of %llu late", (unsigned long long)a->n_late, (unsigned long long)a->n_jobs);
    puts("");
}

/* Programs that were killed leave a moment later: until then there is something to wait for. */
static int collect(struct ws_cli_link *l, const char *endpoint, const struct step_options *o,
                   bool look)
{
    for (int i = 0; i < COLLECT_TRIES; i++) {
        Ws__StepRequest q = WS__STEP_REQUEST__INIT;
        Ws__ServerMessage *m;
        q.job = o->job;
        q.step = (uint32_t)o->step;
        q.collect = true;
        q.look = look;
        int r = ask(l, endpoint, &q, &m);
        if (r)
            return r;
        bool again = !m->step->error && m->step->n_here;
        if (m->step->error) {
            ws_cli_error("%s", m->step->text);
            r = m->step->error == WS__ERROR__NOT_FOUND ? EXIT_NOTHING : EXIT_REFUSED;
        } else if (!again) {
            print_use(m->step);
        }
        ws__server_message__free_unpacked(m, NULL);
        if (!again)
            return r;
        usleep(COLLECT_PAUSE_US);
    }
    ws_cli_error("job %llu still has programs here", (unsigned long long)o->job);
    return EXIT_REFUSED;
}

static int step(int argc, char **argv)
{
    struct step_options o = {.priority = -1};
    char **rest;
    int r = ws_verb_parse(&ws_verb_step, argc, argv, &o, &rest);
    if (r >= 0)
        return r;
    bool is_begin = !strcmp(rest[0], "begin"), is_look = !strcmp(rest[0], "look");
    if (!is_begin && !is_look && strcmp(rest[0], "collect") != 0)
        return ws_verb_wrong(&ws_verb_step, "expected begin, look or collect, not %s", rest[0]);
    if (!o.job || (is_begin && !o.pid))
        return ws_verb_wrong(&ws_verb_step, "%s needs --job%s", rest[0],
                             is_begin ? ", --step, --uid and --pid" : "");
    const char *endpoint = ws_cli_endpoint(o.socket);
    struct ws_cli_link *l = NULL;
    r = ws_cli_link_open(&l, endpoint);
    if (r)
        return ws_cli_no_daemon(endpoint, r, NULL);
    r = is_begin ? begin(l, endpoint, &o) : collect(l, endpoint, &o, is_look);
    ws_cli_link_close(l);
    return r;
}
