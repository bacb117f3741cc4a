// SPDX-License-Identifier: Apache-2.0
/* How one question is asked of a daemon, and where the installed parts of wattshare are
 * (cli/cli.h). */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "cli/cli.h"
#include "cli/common/link.h"

const char *ws_cli_endpoint(const char *option)
{
    const char *env = getenv(WS_ENV_SOCKET);
    if (option)
        return option;
    return env && *env ? env : WS_DEFAULT_SOCKET;
}

char *ws_cli_find_part(const char *env, const char *build_path, const char *installed_path)
{
    const char *given = getenv(env);
    char exe[PATH_MAX], *path = NULL;
    ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
    if (given && *given) {
        if (!access(given, R_OK))
            return ws_strdup(given);
        ws_cli_error("%s names '%s': %s", env, given, strerror(errno));
        return NULL;
    }
    if (n > 0) {
        exe[n] = 0;
        *strrchr(exe, '/') = 0;
        if (asprintf(&path, "%s/../%s", exe, build_path) >= 0 && !access(path, R_OK)) {
            char *real = realpath(path, NULL);
            free(path);
            return real;
        }
        free(path);
    }
    if (!access(installed_path, R_OK))
        return ws_strdup(installed_path);
    ws_cli_error("'%s' is missing: install wattshare, or set %s to its path", installed_path, env);
    return NULL;
}

int ws_cli_ask_status(const char *endpoint, int timeout_ms, Ws__ServerMessage **ret)
{
    struct ws_cli_link *l;
    int r = ws_cli_link_open(&l, endpoint);
    if (r)
        return r;
    r = ws_cli_link_status(l, timeout_ms, ret);
    ws_cli_link_close(l);
    return r;
}

int ws_cli_no_daemon(const char *endpoint, int error, const char *or_else)
{
    bool tcp = !strncmp(endpoint, "tcp://", 6);
    if (!tcp && strncmp(endpoint, "ipc://", 6))
        ws_cli_error("\"%s\" is no endpoint of a daemon: use ipc:///PATH or tcp://ADDRESS:PORT",
                     endpoint);
    else if (tcp && error == -EPERM) /* ws_cli_link_open() has said it */
        return WS_EXIT_UNAVAILABLE;
    else if (error == -EPROTONOSUPPORT)
        ws_cli_error("the daemon at %s is of another version: use the wattshare that came with it",
                     endpoint);
    else if (error == -EPROTO)
        ws_cli_error("what answers at %s is no daemon of wattshare", endpoint);
    else if (error == -EMSGSIZE)
        ws_cli_error("what answers at %s sends more than a daemon of wattshare does", endpoint);
    else if (or_else)
        ws_cli_error("no answer from a daemon at %s (%s); start one: systemctl start wattshared, "
                     "or %s",
                     endpoint, strerror(-error), or_else);
    else
        ws_cli_error("no answer from a daemon at %s (%s); start one: systemctl start wattshared, "
                     "or wattshared --socket %s",
                     endpoint, strerror(-error), endpoint);
    return WS_EXIT_UNAVAILABLE;
}

int ws_cli_ask(const char *socket, const Ws__ClientMessage *request,
               bool (*accept)(const Ws__ServerMessage *m), Ws__ServerMessage **ret)
{
    const char *endpoint = ws_cli_endpoint(socket);
    struct ws_cli_link *l = NULL;
    int r = ws_cli_link_open(&l, endpoint);
    if (!r)
        r = ws_cli_link_ask(l, request, accept, WS_CLI_TIMEOUT_MS, ret);
    ws_cli_link_close(l);
    return r ? ws_cli_no_daemon(endpoint, r, NULL) : 0;
}
