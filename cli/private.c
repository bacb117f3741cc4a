// SPDX-License-Identifier: Apache-2.0
/* The daemon gets PR_SET_PDEATHSIG, so that it drains when we are killed; it tells that it is ready by a byte on a pipe. */
#include "config.h"

#include "cli/private.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"

enum { READY_TIMEOUT_MS = 20000 };

static void child(const struct ws_private *p, const char *daemon, const char *gpus, int ready_fd, pid_t parent)
{
    char fd[16];
    sigset_t none;
    const char *argv[] = {daemon, "--socket", p->endpoint, "--gpus", gpus, "--ready-fd", fd, NULL};
    snprintf(fd, sizeof fd, "%d", ready_fd);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setpgid(0, 0); /* the terminal's ^C is for the program; we stop the daemon after it */
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(0);
    unsetenv("LD_PRELOAD");
    execv(daemon, (char *const *)argv);
    ws_cli_error("cannot start '%s': %s", daemon, strerror(errno));
    _exit(WS_EXIT_CANNOT_RUN);
}

static int wait_ready(struct ws_private *p, int fd)
{
    struct pollfd pfd = {.fd = fd, .events = POLLIN};
    char byte;
    int r;
    do
        r = poll(&pfd, 1, READY_TIMEOUT_MS);
    while (r < 0 && errno == EINTR);
    if (r > 0 && read(fd, &byte, 1) == 1)
        return 0;
    ws_cli_error("the private wattshared %s; run `wattshared --socket %s` by hand to see more",
                 r == 0 ? "did not become ready in 20 s" : "ended before it was ready (its message is above)", p->endpoint);
    return -1;
}

int ws_private_start(struct ws_private *p, const char *gpus)
{
    const char *tmp = getenv("XDG_RUNTIME_DIR");
    int ready[2];
    char *daemon = ws_cli_find_part("WATTSHARED", "backend/wattshared", SBINDIR "/wattshared");
    if (!daemon)
        return -1;
    if (!tmp || strlen(tmp) > 24 || access(tmp, W_OK))
        tmp = "/tmp";
    snprintf(p->dir, sizeof p->dir, "%s/wattshare-XXXXXX", tmp);
    if (!mkdtemp(p->dir) || pipe(ready)) {
        ws_cli_error("cannot make '%s': %s", p->dir, strerror(errno));
        free(daemon);
        return -1;
    }
    snprintf(p->endpoint, sizeof p->endpoint, "ipc://%s/sock", p->dir);
    pid_t parent = getpid();
    p->pid = fork();
    if (p->pid == 0) {
        close(ready[0]);
        child(p, daemon, gpus, ready[1], parent);
    }
    close(ready[1]);
    free(daemon);
    int r = p->pid < 0 ? -1 : wait_ready(p, ready[0]);
    close(ready[0]);
    if (r)
        ws_private_stop(p);
    return r;
}

void ws_private_stop(struct ws_private *p)
{
    if (p->pid > 0) {
        kill(p->pid, SIGTERM);
        while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR)
            ;
        p->pid = 0;
    }
    if (p->dir[0])
        rmdir(p->dir);
    p->dir[0] = 0;
}
