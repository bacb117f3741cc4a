// SPDX-License-Identifier: Apache-2.0
/* SuspendProgram and ResumeProgram of slurm.conf: runs the site's program as "PROGRAM on NODE" or
 * "PROGRAM off NODE" for each node of the list that slurmctld gives.
 *
 * slurmctld starts its programs with most signals blocked and without a standard input. What they
 * start would inherit that: a slurmd that was started so cannot be ended by SIGTERM, and takes its
 * log for standard input and loses it, and cannot start tasks. So this is put right first, and what
 * slurmctld has open is closed. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <syslog.h>
#include <unistd.h>

#include "slurm/hosts.h"

enum { AT_ONCE = 64 }; /* programs of the site */

static void become_ordinary(void)
{
    sigset_t none;
    for (int i = 1; i < NSIG; i++)
        signal(i, SIG_DFL); /* those that cannot be set are default anyway */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setsid();
    int fd;
    while ((fd = open("/dev/null", O_RDWR)) >= 0 && fd <= STDERR_FILENO)
        ;
    close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
}

/* Return: whether a program was started. */
static bool start(const char *program, const char *node)
{
    pid_t pid = fork();
    if (pid < 0)
        syslog(LOG_ERR, "%s: cannot be switched %s: %m", node, WS_POWER);
    if (pid)
        return pid > 0;
    execl(program, program, WS_POWER, node, (char *)NULL);
    syslog(LOG_ERR, "%s: cannot be switched %s: %s: %m", node, WS_POWER, program);
    _exit(1);
}

/* Waits for one program. Return: whether it has done its work. */
static bool wait_for_one(void)
{
    int status;
    pid_t pid;
    while ((pid = wait(&status)) < 0 && errno == EINTR)
        ;
    return pid > 0 && WIFEXITED(status) && !WEXITSTATUS(status);
}

struct switching {
    const char *program;
    int n; /* programs that run */
    bool ok;
};

static int switch_node(const char *node, void *arg)
{
    struct switching *w = arg;
    if (w->n == AT_ONCE) {
        w->ok = wait_for_one() && w->ok;
        w->n--;
    }
    bool started = start(w->program, node);
    w->n += started;
    w->ok = w->ok && started;
    return 0;
}

int main(int argc, char **argv)
{
    const char *program = getenv("WATTSHARE_POWER");
    program = program ? program : SYSCONFDIR "/wattshare/power";
    if (argc != 2 || !strcmp(argv[1], "--help")) {
        fprintf(stderr, "usage: %s NODES\nRuns \"%s %s NODE\" for each of them.\n", argv[0],
                program, WS_POWER);
        return 2;
    }
    become_ordinary();
    openlog("wattshare-power", LOG_PID | LOG_PERROR, LOG_DAEMON);
    struct switching w = {.program = program, .ok = true};
    int r = ws_hosts_each(argv[1], switch_node, &w);
    if (r)
        syslog(LOG_ERR, "cannot read the list of nodes %s", argv[1]);
    for (; w.n; w.n--)
        w.ok = wait_for_one() && w.ok;
    return r || !w.ok;
}
