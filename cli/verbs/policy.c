// SPDX-License-Identifier: Apache-2.0
/* wattshare policy: lists the policies, shows the one that a daemon has, and gives it another. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/common/nearest.h"
#include "cli/common/options.h"
#include "policy/policy.h"

enum { EXIT_REFUSED = 1 };

static bool is_policy(const Ws__ServerMessage *m)
{
    return m->policy != NULL;
}

static int ask(const char *socket, Ws__PolicyRequest *q, Ws__ServerMessage **ret)
{
    Ws__ClientMessage m = WS__CLIENT_MESSAGE__INIT;
    q->version = WS_PROTOCOL_VERSION;
    m.policy = q;
    return ws_cli_ask(socket, &m, is_policy, ret);
}

static void print_options(const struct ws_policy_ops *ops)
{
    for (const struct ws_policy_option *o = ops->options; o && o->name; o++)
        printf("  %s=%s  %s\n", o->name, o->fallback, o->help);
    if (!ops->options || !ops->options->name)
        puts("  it has no options");
}

/* All policies; needs no daemon. */
static int list(void)
{
    size_t n;
    const struct ws_policy_ops *const *all = ws_policy_all(&n);
    for (size_t i = 0; i < n; i++)
        printf("%-18s %s\n", all[i]->name, all[i]->summary);
    printf("%-18s %s\n", "none", "each command starts at once");
    return 0;
}

static int no_such(const char *name)
{
    struct ws_nearest near;
    char text[80];
    size_t n;
    const struct ws_policy_ops *const *all = ws_policy_all(&n);
    ws_nearest_init(&near, name);
    for (size_t i = 0; i < n; i++)
        ws_nearest_try(&near, all[i]->name);
    ws_nearest_text(&near, text, sizeof(text));
    ws_cli_error("there is no policy '%s'%s%s prints their names", name, text,
                 near.best ? " wattshare policy list" : "; wattshare policy list");
    return WS_EXIT_USAGE;
}

static int show_one(const char *name)
{
    const struct ws_policy_ops *ops = ws_policy_find(name);
    if (!ops)
        return no_such(name);
    printf("%s: %s\n", ops->name, ops->summary);
    print_options(ops);
    return 0;
}

static void print_in_force(const Ws__PolicyReply *a)
{
    const struct ws_policy_ops *ops = ws_policy_find(a->name);
    printf("%s", a->name);
    for (size_t i = 0; i < a->n_options; i++)
        printf(" %s", a->options[i]);
    puts("");
    if (ops)
        print_options(ops);
}

static int show(const char *socket)
{
    Ws__PolicyRequest q = WS__POLICY_REQUEST__INIT;
    Ws__ServerMessage *m;
    int r = ask(socket, &q, &m);
    if (r)
        return r;
    print_in_force(m->policy);
    ws__server_message__free_unpacked(m, NULL);
    return 0;
}

static int set(const char *socket, const char *name, char **options, int n)
{
    Ws__PolicyRequest q = WS__POLICY_REQUEST__INIT;
    Ws__ServerMessage *m;
    if (strcmp(name, "none") && !ws_policy_find(name))
        return no_such(name);
    q.set = true;
    q.name = (char *)name;
    q.options = options;
    q.n_options = (size_t)n;
    int r = ask(socket, &q, &m);
    if (r)
        return r;
    if (m->policy->error) {
        ws_cli_error("policy %s: %s", name, m->policy->text);
        r = EXIT_REFUSED;
    } else {
        print_in_force(m->policy);
    }
    ws__server_message__free_unpacked(m, NULL);
    return r;
}

struct policy_verb_options {
    const char *socket;
};

static const struct ws_option options[] = {WS_OPTION_SOCKET(struct policy_verb_options, socket),
                                           {0}};
static const char *const arguments[] = {"[show]", "show NAME", "set NAME [OPTION=VALUE...]", "list",
                                        NULL};
static const char *const examples[] = {"wattshare policy list", "wattshare policy show edl",
                                       "wattshare policy set edl theta=0.9",
                                       "wattshare policy set none", NULL};

static int policy(int argc, char **argv);

const struct ws_verb ws_verb_policy = {
    .name = "policy",
    .purpose = "list scheduling policies, show the daemon's, set another",
    .about = "show, or nothing, prints the daemon's policy and its options. show NAME prints the "
             "options of one policy, and list prints the names of all: neither needs a daemon. "
             "set gives the daemon another policy.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .max_arguments = WS_ARGUMENTS_ANY,
    .asked = "policies",
    .asked_later = true,
    .run = policy,
};

static int policy(int argc, char **argv)
{
    struct policy_verb_options o = {0};
    char **rest;
    int status = ws_verb_parse(&ws_verb_policy, argc, argv, &o, &rest), n = 0;
    if (status >= 0)
        return status;
    while (rest[n])
        n++;
    if (!n || (n == 1 && !strcmp(rest[0], "show")))
        return show(o.socket);
    if (n == 1 && !strcmp(rest[0], "list"))
        return list();
    if (n == 2 && !strcmp(rest[0], "show"))
        return show_one(rest[1]);
    if (n >= 2 && !strcmp(rest[0], "set"))
        return set(o.socket, rest[1], rest + 2, n - 2);
    return ws_verb_wrong(&ws_verb_policy, "expected list, show, show NAME or set NAME "
                                          "[OPTION=VALUE...]");
}
