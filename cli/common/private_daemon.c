// SPDX-License-Identifier: Apache-2.0
/* There are three processes: this one, a guard, and the daemon. The guard is the daemon's
 * parent. It holds one end of a pipe whose other end only this process holds. When that end
 * closes, because this process is done or was killed, the guard drains the daemon, waits for it,
 * and removes the directory, so that nothing is left behind. If the guard itself is killed,
 * PR_SET_PDEATHSIG ends the daemon. Guard and daemon are in a process group of their own, so
 * that ^C in the terminal reaches the program alone. */
#include "config.h"

#include "cli/common/private_daemon.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"

enum { READY_TIMEOUT_MS = 20000, DIR_MAX = 24 };

struct start { /* what is wanted of the daemon */
    const char *gpus, *const *more, *conf, *log;
    const char *daemon;
};

static void remove_directory(const char *dir)
{
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));)
        if (e->d_name[0] != '.')
            unlinkat(dirfd(d), e->d_name, 0);
    if (d)
        closedir(d);
    rmdir(dir);
}

/* The configuration as a file of the directory. Return: 0 or -1 with the error printed. */
static int write_conf(const struct ws_private *p, const char *conf, char path[96])
{
    snprintf(path, 96, "%s/wattshared.conf", p->dir);
    FILE *f = fopen(path, "w");
    bool ok = f && fputs(conf, f) >= 0;
    if ((f && fclose(f)) || !ok) {
        ws_cli_error("%s: %s", path, strerror(errno));
        return -1;
    }
    return 0;
}

static void log_to(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0)
        ws_cli_error("%s: %s", path, strerror(errno));
    else
        dup2(fd, STDERR_FILENO);
}

static void exec_daemon(const struct ws_private *p, const struct start *w, int ready_fd,
                        pid_t guard)
{
    char fd[16], conf[96];
    enum { OWN = 9 };
    const char *argv[OWN + WS_PRIVATE_MORE + 1] = {w->daemon, "--socket",   p->endpoint,
                                                   "--gpus",  w->gpus,      "--log-level",
                                                   "warning", "--ready-fd", fd};
    for (size_t i = 0; w->more && w->more[i] && i < WS_PRIVATE_MORE; i++)
        argv[OWN + i] = w->more[i];
    snprintf(fd, sizeof(fd), "%d", ready_fd);
    fcntl(ready_fd, F_SETFD, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != guard)
        _exit(0);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    unsetenv("LD_PRELOAD");
    unsetenv("NOTIFY_SOCKET"); /* is the program's, whose readiness is not the daemon's */
    if (w->conf) {
        if (write_conf(p, w->conf, conf))
            _exit(WS_EXIT_CANNOT_RUN);
        argv[OWN] = "--config";
        argv[OWN + 1] = conf;
    }
    if (w->log)
        log_to(w->log);
    execv(w->daemon, (char *const *)argv);
    ws_cli_error("cannot start '%s': %s", w->daemon, strerror(errno));
    _exit(WS_EXIT_CANNOT_RUN);
}

static void guard(const struct ws_private *p, const struct start *w, int ready_fd, int alive_fd)
{
    sigset_t none;
    char byte;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setpgid(0, 0);
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    pid_t self = getpid(), pid = fork();
    if (pid == 0) {
        close(alive_fd);
        exec_daemon(p, w, ready_fd, self);
    }
    close(ready_fd);
    while (read(alive_fd, &byte, 1) < 0 && errno == EINTR)
        ;
    if (pid > 0) {
        kill(pid, SIGTERM);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    remove_directory(p->dir);
    _exit(0);
}

static int wait_ready(const struct ws_private *p, int fd)
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
                 r == 0 ? "did not become ready in 20 s"
                        : "ended before it was ready (its message is above)",
                 p->endpoint);
    return -1;
}

static int make_directory(struct ws_private *p)
{
    const char *parent = getenv("XDG_RUNTIME_DIR");
    if (!parent || strlen(parent) > DIR_MAX ||
        access(parent, W_OK)) /* a Unix socket's path is short */
        parent = "/tmp";
    snprintf(p->dir, sizeof(p->dir), "%s/wattshare-XXXXXX", parent);
    if (!mkdtemp(p->dir)) {
        ws_cli_error("cannot make a directory in '%s': %s", parent, strerror(errno));
        p->dir[0] = 0;
        return -1;
    }
    snprintf(p->endpoint, sizeof(p->endpoint), "ipc://%s/sock", p->dir);
    return 0;
}

static int start(struct ws_private *p, struct start *w)
{
    int ready[2] = {-1, -1}, alive[2] = {-1, -1};
    char *daemon = ws_cli_find_part("WATTSHARED", "backend/wattshared", SBINDIR "/wattshared");
    *p = (struct ws_private){.alive_fd = -1};
    if (!daemon)
        return -1;
    int r = make_directory(p);
    if (!r && (pipe2(ready, O_CLOEXEC) || pipe2(alive, O_CLOEXEC) || (p->guard = fork()) < 0)) {
        ws_cli_error("cannot start a private wattshared: %s", strerror(errno));
        remove_directory(p->dir);
        close(ready[0]);
        close(ready[1]);
        close(alive[0]);
        close(alive[1]);
        r = -1;
    } else if (!r && p->guard == 0) {
        close(ready[0]);
        close(alive[1]);
        w->daemon = daemon;
        guard(p, w, ready[1], alive[0]);
    }
    free(daemon);
    if (r)
        return r;
    close(ready[1]);
    close(alive[0]);
    p->alive_fd = alive[1];
    r = wait_ready(p, ready[0]);
    close(ready[0]);
    if (r)
        ws_private_stop(p);
    return r;
}

int ws_private_start(struct ws_private *p, const char *gpus)
{
    return start(p, &(struct start){.gpus = gpus});
}

int ws_private_start_with(struct ws_private *p, const char *gpus, const char *const *more)
{
    return start(p, &(struct start){.gpus = gpus, .more = more});
}

int ws_private_start_conf(struct ws_private *p, const char *gpus, const char *conf, const char *log)
{
    return start(p, &(struct start){.gpus = gpus, .conf = conf, .log = log});
}

void ws_private_stop(struct ws_private *p)
{
    if (p->guard <= 0)
        return;
    close(p->alive_fd);
    while (waitpid(p->guard, NULL, 0) < 0 && errno == EINTR)
        ;
    p->guard = 0;
}
