// SPDX-License-Identifier: Apache-2.0
/* wattshare run: starts a program with libwattshare.so before it.
 *
 * With a shared daemon we become the program (exec). With --private we stay its parent: signals go on to it, its status is
 * ours, and the daemon we started ends after it. */
#include "config.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/verbs/private.h"
#include "cli/verbs/program.h"

struct run_options {
    const char *task, *gpus, *socket;
    bool is_private, gate;
    char **argv; /* the program's */
};

static int parse(int argc, char **argv, struct run_options *o)
{
    static const struct option options[] = {
        {"task", required_argument, NULL, 't'},   {"private", no_argument, NULL, 'p'},
        {"gate", no_argument, NULL, 'G'},         {"gpus", required_argument, NULL, 'g'},
        {"socket", required_argument, NULL, 's'}, {0}};
    const char *env = getenv("WATTSHARE_PRIVATE");
    *o = (struct run_options){.is_private = env && !strcmp(env, "1")};
    for (int c; (c = getopt_long(argc, argv, "+", options, NULL)) != -1;) {
        switch (c) {
        case 't':
            o->task = optarg;
            break;
        case 'p':
            o->is_private = true;
            break;
        case 'G':
            o->gate = true;
            break;
        case 'g':
            o->gpus = optarg;
            break;
        case 's':
            o->socket = optarg;
            break;
        default:
            return WS_EXIT_USAGE;
        }
    }
    if (optind >= argc) {
        ws_cli_error(
            "run needs a program: wattshare run [--task NAME] [--private | --gate] -- PROG ARGS…");
        return WS_EXIT_USAGE;
    }
    if (o->gpus && !o->is_private) {
        ws_cli_error("--gpus goes with --private; a shared daemon's GPUs stand in wattshared.conf");
        return WS_EXIT_USAGE;
    }
    if (o->gate && o->is_private) {
        ws_cli_error("--gate is for a program on a real GPU that a shared daemon drives; a private "
                     "one has software GPUs");
        return WS_EXIT_USAGE;
    }
    if (o->socket && o->is_private) {
        ws_cli_error(
            "--socket names a shared daemon and --private starts one: give only one of them");
        return WS_EXIT_USAGE;
    }
    o->argv = argv + optind;
    return 0;
}

static int run_shared(const struct run_options *o)
{
    const char *endpoint = ws_cli_endpoint(o->socket);
    Ws__ServerMessage *m = NULL;
    int r = ws_cli_ask_status(endpoint, 2000, &m);
    if (r) {
        ws_cli_error("no answer from a daemon at %s (%s); start one (systemctl start wattshared), "
                     "or let this command have "
                     "its own: wattshare run --private -- %s",
                     endpoint, strerror(-r), o->argv[0]);
        return WS_EXIT_UNAVAILABLE;
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

int ws_cli_run(int argc, char **argv)
{
    struct run_options o;
    int r = parse(argc, argv, &o);
    if (!r)
        r = ws_program_check(o.argv[0]);
    if (r)
        return r;
    return o.is_private ? run_private(&o) : run_shared(&o);
}
