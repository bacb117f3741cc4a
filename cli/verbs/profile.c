// SPDX-License-Identifier: Apache-2.0
/* wattshare profile: runs a program several times, on more and more SMs of a GPU, under a daemon
 * of its own, which learns from the runs and keeps what it learns in a profile store. Then it
 * prints what is known of the kernels that ran.
 *
 * The daemon measures (backend/learn/learn.h); this file only varies the number of SMs. The
 * daemon has one GPU at a time, so that nothing else runs on it. The program's profiles are
 * those whose number of runs has changed. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "cli/cli.h"
#include "cli/common/options.h"
#include "cli/common/private_daemon.h"
#include "cli/verbs/profiles.h"
#include "cli/common/program.h"
#include "cli/common/text.h"

enum { SMS_MAX = 256, SMS_TEXT_MAX = 2048, RUNS_MAX = 1000 };
#define ENV_STORE     "WATTSHARE_PROFILES"
#define DEFAULT_STORE "profiles.db"

struct plan {
    const char *store, *gpus;
    unsigned sms[SMS_MAX];
    size_t n_sms; /* 0: 1, 2, 4 … all */
    int n_runs;
    bool json;
    char **argv;
};

/* What a store holds: how often each profile ran. */
struct seen {
    struct seen_one {
        struct ws_profile_key key;
        uint64_t n_runs;
    } * v;
    size_t n, cap;
};

struct shown {
    const struct seen *before;
    struct json_object *array; /* NULL: for people */
    uint64_t n;
};

static bool number(const char *text, long max, long *ret)
{
    char *end;
    errno = 0;
    *ret = strtol(text, &end, 10);
    return end != text && !*end && !errno && *ret >= 1 && *ret <= max;
}

static int parse_sms(void *values, char *text)
{
    struct plan *p = values;
    char *save, copy[SMS_TEXT_MAX];
    snprintf(copy, sizeof(copy), "%s", text);
    bool ok = strlen(text) < sizeof(copy);
    p->n_sms = 0;
    for (char *w = strtok_r(copy, ",", &save); w && ok; w = strtok_r(NULL, ",", &save)) {
        long n;
        ok = p->n_sms < SMS_MAX && number(w, SMS_MAX, &n);
        if (ok)
            p->sms[p->n_sms++] = (unsigned)n;
    }
    if (ok && p->n_sms)
        return 0;
    ws_cli_error("--sms %s: expected numbers of SMs from 1 to %d, as in 1,2,4", text, SMS_MAX);
    return -EINVAL;
}

static const struct ws_option options[] = {
    {"store", "FILE",
     "The file where profiles are kept; made if it does not exist (WATTSHARE_PROFILES of the "
     "environment, else profiles.db).",
     WS_TEXT(struct plan, store)},
    {"gpus", "LIST",
     "Types of GPUs, as in the catalog, separated by commas; one after another (rtx3070).",
     WS_TEXT(struct plan, gpus)},
    {"sms", "N[,N...]",
     "Run with these numbers of SMs, in this order, instead of 1, 2, 4 and so on.",
     WS_PARSE(parse_sms)},
    {"runs", "N", "Run so often with each number of SMs, 1 to 1000 (1).",
     .more = "The longest time seen stands for the worst case.",
     WS_INT(struct plan, n_runs, 1, RUNS_MAX)},
    {"json", NULL, "Show the profiles as JSON, as wattshare profiles show --json does.",
     WS_FLAG(struct plan, json)},
    {0}};
static const char *const arguments[] = {"-- PROG [ARG...]", NULL};
static const char *const examples[] = {
    "wattshare profile --store detector.db --gpus rtx3070,t400 -- ./detector frame.png",
    "wattshare profiles show detector.db", NULL};

static int profile(int argc, char **argv);

const struct ws_verb ws_verb_profile = {
    .name = "profile",
    .purpose = "run a program to learn its kernels' times and powers",
    .about = "The program runs on more and more SMs of a GPU of a private daemon.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .min_arguments = 1,
    .missing = "profile needs a program",
    .command_follows = true,
    .run = profile,
};

static int parse(int argc, char **argv, struct plan *p)
{
    const char *store = getenv(ENV_STORE);
    *p = (struct plan){
        .store = store && *store ? store : DEFAULT_STORE, .gpus = "rtx3070", .n_runs = 1};
    return ws_verb_parse(&ws_verb_profile, argc, argv, p, &p->argv);
}

/* ---- what is in the store ---- */

static uint64_t runs_of(const struct ws_profile *p)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < p->n_points; i++)
        n += p->points[i].n_runs;
    return n;
}

static int see_one(void *arg, const struct ws_profile *p)
{
    struct seen *s = arg;
    int r = ws_grow((void **)&s->v, &s->cap, s->n + 1, sizeof(*s->v));
    if (!r)
        s->v[s->n++] = (struct seen_one){p->key, runs_of(p)};
    return r;
}

static uint64_t runs_before(const struct seen *s, const struct ws_profile_key *key)
{
    for (size_t i = 0; i < s->n; i++)
        if (!strcmp(s->v[i].key.hash, key->hash) && !strcmp(s->v[i].key.gpu, key->gpu) &&
            !strcmp(s->v[i].key.shape, key->shape))
            return s->v[i].n_runs;
    return 0;
}

static int show_one(void *arg, const struct ws_profile *p)
{
    struct shown *s = arg;
    if (runs_of(p) == runs_before(s->before, &p->key))
        return 0;
    s->n++;
    if (!s->array)
        return ws_cli_profile_show(p);
    json_object_array_add(s->array, ws_cli_profile_json(p));
    return 0;
}

/* Calls @each for all of the store. Return: an exit status. */
static int for_store(const struct plan *p, int mode,
                     int (*each)(void *arg, const struct ws_profile *p), void *arg)
{
    struct ws_store *s = ws_cli_store_open(p->store, mode);
    if (!s)
        return 1;
    int r = ws_store_each(s, each, arg), status = r ? ws_cli_store_failed(p->store, s, r) : 0;
    ws_store_close(s);
    return status;
}

static int show(const struct plan *p, const struct seen *before)
{
    struct shown s = {before, p->json ? json_object_new_array() : NULL, 0};
    int status = for_store(p, WS_STORE_READ, show_one, &s);
    if (p->json && !status)
        printf("%s\n", json_object_to_json_string_ext(s.array, JSON_C_TO_STRING_PRETTY));
    json_object_put(s.array);
    if (!status && !s.n) {
        ws_cli_error("%s ran no kernel to its end, so there is nothing to keep", p->argv[0]);
        status = 1;
    }
    return status;
}

/* ---- running ---- */

/* On @n SMs. @out: for the program's standard output. */
static int run_on(const struct plan *p, const char *gpu, unsigned n, int out)
{
    char text[16];
    snprintf(text, sizeof(text), "%u", n);
    if (setenv(WS_ENV_SMS, text, 1))
        return WS_EXIT_CANNOT_RUN;
    for (int i = 0; i < p->n_runs; i++) {
        int r = ws_program_run(p->argv, out);
        if (!r)
            continue;
        ws_cli_error("%s exited with status %d on %u SMs of %s; the runs before are kept",
                     p->argv[0], r, n, gpu);
        return r == WS_EXIT_CANNOT_RUN || r == WS_EXIT_NOT_FOUND ? r : 1;
    }
    return 0;
}

/* How many SMs the daemon's GPU has; 0: said. Says to @f how its model was held against
 * measurements. */
static unsigned gpu_sms(const char *endpoint, FILE *f)
{
    Ws__ServerMessage *m = NULL;
    int r = ws_cli_ask_status(endpoint, WS_CLI_NEXT_TIMEOUT_MS, &m);
    const Ws__GpuStatus *g = !r && m->status->n_gpus ? m->status->gpus[0] : NULL;
    unsigned n = g ? g->n_sms : 0;
    char text[400];
    if (g && g->calibrated[0]) {
        fprintf(f, "catalog entry %s: %s\n", g->name,
                ws_cli_clean(g->calibrated, text, sizeof(text)));
        fflush(f);
    }
    if (!r)
        ws__server_message__free_unpacked(m, NULL);
    if (!n)
        ws_cli_error("the private daemon does not answer (%s)", strerror(-r));
    return n;
}

static int profile_gpu(const struct plan *p, const char *gpu, int *first_out, int quiet)
{
    /* The machine's configuration is not read: its policy and tasks could keep the program from
     * SMs. */
    const char *more[] = {"--config", "/dev/null", "--profiles", p->store, NULL};
    struct ws_private d;
    if (ws_private_start_with(&d, gpu, more))
        return WS_EXIT_UNAVAILABLE;
    unsigned all = gpu_sms(d.endpoint, p->json ? stderr : stdout);
    int r = all ? ws_program_environment(d.endpoint, NULL) : WS_EXIT_UNAVAILABLE;
    for (size_t i = 0; i < p->n_sms && !r; i++)
        if (p->sms[i] > all) {
            ws_cli_error("--sms %u: %s has only %u SMs", p->sms[i], gpu, all);
            r = WS_EXIT_USAGE;
        }
    size_t i = 0;
    for (unsigned n = p->n_sms ? p->sms[0] : 1; !r;) {
        r = run_on(p, gpu, n, *first_out);
        *first_out = quiet;
        if (p->n_sms ? ++i == p->n_sms : n == all)
            break;
        n = p->n_sms ? p->sms[i] : WS_MIN(2 * n, all);
    }
    ws_private_stop(&d);
    return r;
}

static int profile_gpus(const struct plan *p)
{
    char *gpus = ws_strdup(p->gpus), *save = NULL;
    int quiet = open("/dev/null", O_WRONLY | O_CLOEXEC), first_out = STDERR_FILENO;
    int r = gpus && quiet >= 0 ? 0 : WS_EXIT_CANNOT_RUN;
    for (char *g = r ? NULL : strtok_r(gpus, ", ", &save); g && !r; g = strtok_r(NULL, ", ", &save))
        r = profile_gpu(p, g, &first_out, quiet);
    if (quiet >= 0)
        close(quiet);
    free(gpus);
    return r;
}

static int profile(int argc, char **argv)
{
    struct plan p;
    struct seen before = {0};
    int r = parse(argc, argv, &p);
    if (r >= 0)
        return r;
    r = ws_program_check(p.argv[0]);
    if (!r)
        r = for_store(&p, WS_STORE_WRITE, see_one, &before);
    if (!r)
        r = profile_gpus(&p);
    if (!r)
        r = show(&p, &before);
    free(before.v);
    return r;
}
