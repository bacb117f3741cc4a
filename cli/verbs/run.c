// SPDX-License-Identifier: Apache-2.0
/* wattshare run: starts a program with libwattshare.so preloaded.
 *
 * With a shared daemon this process becomes the program (exec). With --private it stays the
 * program's parent: it passes signals on, exits with the program's status, and ends the daemon
 * that it started. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/common/options.h"
#include "cli/common/private_daemon.h"
#include "cli/common/program.h"

struct run_options {
    const char *task, *gpus, *socket;
    bool is_private, gate;
    char **argv; /* the program's */
};

static const struct ws_option options[] = {
    {"private", NULL,
     "Start a daemon with software GPUs for this command alone, and end it afterwards.",
     .more = "Also chosen by WATTSHARE_PRIVATE=1.", WS_FLAG(struct run_options, is_private)},
    {"gpus", "LIST",
     "The private daemon's GPUs: names of the catalog, separated by commas (rtx3070).",
     WS_TEXT(struct run_options, gpus)},
    {"gate", NULL,
     "Start the program on its own NVIDIA driver; its launches wait until the daemon lets them go.",
     .more = "Its GPU must be one of the daemon's. wattshare status shows such a client as gated; "
             "with a job as gate-waits, gate-holds or, if it kept the GPU longer than "
             "gate_lease_ms, as gate-over.",
     WS_FLAG(struct run_options, gate)},
    {"task", "NAME",
     "The task that the program belongs to, a section of wattshared.conf(5); without such a "
     "section, the name under which the program is shown.",
     .more = "A section that is for other users has no effect.", WS_TEXT(struct run_options, task)},
    WS_OPTION_SOCKET(struct run_options, socket),
    {0}};

static const char *const arguments[] = {"-- PROG [ARG...]", NULL};
static const char *const examples[] = {"wattshare run --private --gpus rtx3070,t400 -- ./matmul",
                                       "wattshare run -- ./matmul 512",
                                       "wattshare run --task camera -- ./detector", NULL};

static int run(int argc, char **argv);

const struct ws_verb ws_verb_run = {
    .name = "run",
    .purpose = "run a CUDA program on the daemon's GPUs",
    .about = "The program is not changed: libwattshare.so is preloaded into it.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .min_arguments = 1,
    .missing = "run needs a program",
    .command_follows = true,
    .run = run,
};

static int parse(int argc, char **argv, struct run_options *o)
{
    const char *env = getenv("WATTSHARE_PRIVATE");
    *o = (struct run_options){.is_private = env && !strcmp(env, "1")};
    int status = ws_verb_parse(&ws_verb_run, argc, argv, o, &o->argv);
    if (status >= 0)
        return status;
    if (o->gpus && !o->is_private)
        return ws_verb_wrong(&ws_verb_run, "--gpus goes with --private; wattshared.conf says which "
                                           "GPUs a shared daemon has");
    if (o->gate && o->is_private)
        return ws_verb_wrong(&ws_verb_run, "--gate is for a real GPU that a shared daemon drives, "
                                           "and a private daemon has software GPUs");
    if (o->socket && o->is_private)
        return ws_verb_wrong(&ws_verb_run, "--socket names a shared daemon and --private starts "
                                           "one: give only one of them");
    return -1;
}

static int run_shared(const struct run_options *o)
{
    const char *endpoint = ws_cli_endpoint(o->socket);
    Ws__ServerMessage *m = NULL;
    int r = ws_cli_ask_status(endpoint, WS_CLI_TIMEOUT_MS, &m);
    if (r) {
        char or_else[512];
        snprintf(or_else, sizeof(or_else),
                 "one for this command alone: wattshare run --private -- %s", o->argv[0]);
        return ws_cli_no_daemon(endpoint, r, or_else);
    }
    ws__server_message__free_unpacked(m, NULL);
    r = o->gate ? ws_program_gate(endpoint, o->task) : ws_program_environment(endpoint, o->task);
    if (r)
        return r;
    execvp(o->argv[0], o->argv);
    return ws_program_exec_failed(o->argv[0]);
}

static int run_private(const struct run_options *o)
{
    struct ws_private p;
    if (ws_private_start(&p, o->gpus ? o->gpus : "rtx3070"))
        return WS_EXIT_UNAVAILABLE;
    int r = ws_program_environment(p.endpoint, o->task);
    if (!r)
        r = ws_program_run(o->argv, -1);
    ws_private_stop(&p);
    return r;
}

static int run(int argc, char **argv)
{
    struct run_options o;
    int r = parse(argc, argv, &o);
    if (r >= 0)
        return r;
    r = ws_program_check(o.argv[0]);
    if (r)
        return r;
    return o.is_private ? run_private(&o) : run_shared(&o);
}
