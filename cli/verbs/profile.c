// SPDX-License-Identifier: Apache-2.0
/* `wattshare profile`: runs a program again and again, on more and more SMs of a GPU, with a daemon of its own that learns from it and
 * keeps what it learns in a profile store; then shows what is known of the kernels that ran.
 *
 * The daemon does the measuring (backend/learn/learn.h); here is only the varying. One GPU at a time, so that nothing else is on it. Which
 * profiles are this program's is seen by their runs before and after. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "cli/cli.h"
#include "cli/verbs/private.h"
#include "cli/verbs/profiles.h"
#include "cli/verbs/program.h"

enum { SMS_MAX = 256, RUNS_MAX = 1000, ASK_MS = 5000 };
#define ENV_STORE     "WATTSHARE_PROFILES"
#define DEFAULT_STORE "profiles.db"

struct plan {
    const char *store, *gpus;
    unsigned sms[SMS_MAX];
    size_t n_sms; /* 0: 1, 2, 4 … all */
    long n_runs;
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

static int usage(void)
{
    ws_cli_error("profile needs a program: wattshare profile [--store FILE] [--gpus LIST] "
                 "[--sms N,…] [--runs N] [--json] -- PROG ARGS…");
    return WS_EXIT_USAGE;
}

static bool number(const char *text, long max, long *ret)
{
    char *end;
    errno = 0;
    *ret = strtol(text, &end, 10);
    return end != text && !*end && !errno && *ret >= 1 && *ret <= max;
}

static bool parse_sms(const char *text, struct plan *p)
{
    char *copy = ws_strdup(text), *save = NULL;
    bool ok = copy;
    for (char *w = ok ? strtok_r(copy, ",", &save) : NULL; w && ok;
         w = strtok_r(NULL, ",", &save)) {
        long n;
        ok = p->n_sms < SMS_MAX && number(w, SMS_MAX, &n);
        if (ok)
            p->sms[p->n_sms++] = (unsigned)n;
    }
    free(copy);
    return ok && p->n_sms;
}

static int parse(int argc, char **argv, struct plan *p)
{
    static const struct option options[] = {
        {"store", required_argument, NULL, 's'}, {"gpus", required_argument, NULL, 'g'},
        {"sms", required_argument, NULL, 'm'},   {"runs", required_argument, NULL, 'r'},
        {"json", no_argument, NULL, 'j'},        {0}};
    const char *store = getenv(ENV_STORE);
    *p = (struct plan){
        .store = store && *store ? store : DEFAULT_STORE, .gpus = "rtx3070", .n_runs = 1};
    for (int c; (c = getopt_long(argc, argv, "+", options, NULL)) != -1;) {
        switch (c) {
        case 's':
            p->store = optarg;
            break;
        case 'g':
            p->gpus = optarg;
            break;
        case 'm':
            p->n_sms = 0;
            if (!parse_sms(optarg, p)) {
                ws_cli_error("--sms %s: numbers of SMs from 1 to %d are wanted, like 1,2,4", optarg,
                             SMS_MAX);
                return WS_EXIT_USAGE;
            }
            break;
        case 'r':
            if (!number(optarg, RUNS_MAX, &p->n_runs)) {
                ws_cli_error("--runs %s: a number from 1 to %d is wanted", optarg, RUNS_MAX);
                return WS_EXIT_USAGE;
            }
            break;
        case 'j':
            p->json = true;
            break;
        default:
            return WS_EXIT_USAGE;
        }
    }
    if (optind >= argc)
        return usage();
    p->argv = argv + optind;
    return 0;
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
    int r = ws_grow((void **)&s->v, &s->cap, s->n + 1, sizeof *s->v);
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
        ws_cli_error("%s ran no kernel to its end, so there is nothing to be kept", p->argv[0]);
        status = 1;
    }
    return status;
}

/* ---- running ---- */

/* On @n SMs. @out: for the program's standard output. */
static int run_on(const struct plan *p, const char *gpu, unsigned n, int out)
{
    char text[16];
    snprintf(text, sizeof text, "%u", n);
    if (setenv(WS_ENV_SMS, text, 1))
        return WS_EXIT_CANNOT_RUN;
    for (long i = 0; i < p->n_runs; i++) {
        int r = ws_program_run(p->argv, out);
        if (!r)
            continue;
        ws_cli_error("%s ended with status %d on %u SMs of %s; what ran before it is kept",
                     p->argv[0], r, n, gpu);
        return r == WS_EXIT_CANNOT_RUN || r == WS_EXIT_NOT_FOUND ? r : 1;
    }
    return 0;
}

/* How many SMs the daemon's GPU has; 0: said. */
static unsigned gpu_sms(const char *endpoint)
{
    Ws__ServerMessage *m = NULL;
    int r = ws_cli_ask_status(endpoint, ASK_MS, &m);
    unsigned n = !r && m->status->n_gpus ? m->status->gpus[0]->n_sms : 0;
    if (!r)
        ws__server_message__free_unpacked(m, NULL);
    if (!n)
        ws_cli_error("the private daemon doesn't answer (%s)", strerror(-r));
    return n;
}

static int profile_gpu(const struct plan *p, const char *gpu, int *first_out, int quiet)
{
    /* No machine's configuration: its policy and tasks would stand between the program and the SMs. */
    const char *more[] = {"--config", "/dev/null", "--profiles", p->store, NULL};
    struct ws_private d;
    if (ws_private_start_with(&d, gpu, more))
        return WS_EXIT_UNAVAILABLE;
    unsigned all = gpu_sms(d.endpoint);
    int r = all ? ws_program_environment(d.endpoint, NULL) : WS_EXIT_UNAVAILABLE;
    for (size_t i = 0; i < p->n_sms && !r; i++)
        if (p->sms[i] > all) {
            ws_cli_error("--sms %u: %s has %u", p->sms[i], gpu, all);
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

static int profile(const struct plan *p)
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

int ws_cli_profile(int argc, char **argv)
{
    struct plan p;
    struct seen before = {0};
    int r = parse(argc, argv, &p);
    if (!r)
        r = ws_program_check(p.argv[0]);
    if (!r)
        r = for_store(&p, WS_STORE_WRITE, see_one, &before);
    if (!r)
        r = profile(&p);
    if (!r)
        r = show(&p, &before);
    free(before.v);
    return r;
}
