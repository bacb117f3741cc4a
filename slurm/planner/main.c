// SPDX-License-Identifier: Apache-2.0
/* wattshare-planner: a service beside slurmctld that answers job_submit.lua. With --ask it is the
 * client that the script runs. The socket is for root and the service's own user, as slurmctld is
 * one of them. */
#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "slurm/planner/answer.h"

enum { LINE = 1024, WAIT_MS = 1000 };

static const char usage[] =
    "usage: wattshare-planner [--config FILE] [--socket PATH]\n"
    "       wattshare-planner --ask [--socket PATH] TASK LENGTH-SECONDS FINISH-SECONDS\n"
    "       wattshare-planner --power-saving [--config FILE]\n";

static int complain(const char *what, const char *path)
{
    fprintf(stderr, "wattshare-planner: %s: %s: %s\n", path, what, strerror(errno));
    return 1;
}

/* Return: false: the path is too long. */
static bool address_of(const char *path, struct sockaddr_un *ret)
{
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    return (size_t)snprintf(ret->sun_path, sizeof(ret->sun_path), "%s", path) <
           sizeof(ret->sun_path);
}

/* Reads up to the end of a line, which is taken off. Return: false: it takes too long, or the line
 * does. */
static bool read_line(int fd, char *line)
{
    for (size_t n = 0; n + 1 < LINE;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, WAIT_MS) != 1)
            return false;
        ssize_t got = read(fd, line + n, LINE - 1 - n);
        if (got <= 0)
            return false;
        n += (size_t)got;
        line[n] = 0;
        if (line[n - 1] == '\n') {
            line[n - 1] = 0;
            return true;
        }
    }
    return false;
}

static void write_line(int fd, char *line)
{
    size_t n = strlen(line);
    line[n++] = '\n';
    /* It fits into a socket's buffer. Who has gone away needs no answer. */
    (void)!send(fd, line, n, MSG_NOSIGNAL);
}

/* ---- the client ---- */

static int ask(const char *path, char **words)
{
    struct sockaddr_un address;
    char line[LINE];
    int n = snprintf(line, sizeof(line) - 1, "%s %s %s", words[0], words[1], words[2]);
    if (n < 0 || (size_t)n >= sizeof(line) - 1 || strchr(line, '\n')) {
        puts("no the question is too long");
        return 0;
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || !address_of(path, &address) ||
        connect(fd, (struct sockaddr *)&address, sizeof(address)))
        return complain("there is no planner", path);
    write_line(fd, line);
    bool ok = read_line(fd, line);
    close(fd);
    if (!ok)
        return complain("the planner does not answer", path);
    puts(line);
    return 0;
}

/* ---- the service ---- */

static int listen_at(const char *path)
{
    struct sockaddr_un address;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || !address_of(path, &address))
        return -1;
    unlink(path);
    mode_t mask = umask(0077);
    bool ok = !bind(fd, (struct sockaddr *)&address, sizeof(address)) && !listen(fd, SOMAXCONN);
    umask(mask);
    return ok ? fd : -1;
}

static void serve_one(struct ws_planner_jobs *jobs, int fd)
{
    char question[LINE], answer[LINE];
    if (read_line(fd, question)) {
        ws_planner_answer(jobs, question, answer, sizeof(answer) - 1);
        printf("%s: %s\n", question, answer);
        fflush(stdout);
        write_line(fd, answer);
    }
    close(fd);
}

static int serve(const char *config_path, const char *path)
{
    static struct ws_planner_config config;
    static struct ws_planner_jobs jobs;
    int r = ws_planner_config_read(&config, config_path);
    if (r)
        return 1;
    int fd = listen_at(path);
    if (fd < 0)
        return complain("cannot listen", path);
    r = ws_planner_jobs_start(&jobs, &config);
    if (r) {
        errno = -r;
        return complain("cannot start", path);
    }
    for (;;) {
        int peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
        if (peer >= 0)
            serve_one(&jobs, peer);
        else if (errno != EINTR && errno != ECONNABORTED)
            return complain("cannot accept", path);
    }
}

/* ---- lines for slurm.conf ---- */

static int print_power_saving(const char *config_path)
{
    static struct ws_planner_config c;
    double longest = 0;
    if (ws_planner_config_read(&c, config_path))
        return 1;
    for (int i = 0; i < c.n_kinds; i++) {
        double s = ws_planner_break_even(&c, i);
        if (isinf(s)) {
            fprintf(stderr,
                    "wattshare-planner: %s: expected turn_on_j, and idle_w in section `gpu %s`\n",
                    config_path, c.kinds[i].name);
            return 1;
        }
        printf("# %s: break-even after %.1f s\n", c.kinds[i].name, s);
        longest = fmax(longest, s);
    }
    printf("SuspendTime=%.0f\nResumeTimeout=%.0f\nSuspendProgram=%s/wattshare-suspend\n"
           "ResumeProgram=%s/wattshare-resume\n",
           fmax(ceil(longest), 1), ws_planner_resume_timeout(&c), SBINDIR, SBINDIR);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"config", required_argument, NULL, 'c'}, {"socket", required_argument, NULL, 's'},
        {"ask", no_argument, NULL, 'a'},          {"power-saving", no_argument, NULL, 'p'},
        {"help", no_argument, NULL, 'h'},         {0}};
    const char *config = SYSCONFDIR "/wattshare/planner.conf",
               *path = "/run/wattshare-planner/sock";
    bool asks = false, saves = false;
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) >= 0;) {
        if (c == 'c')
            config = optarg;
        else if (c == 's')
            path = optarg;
        else if (c == 'a')
            asks = true;
        else if (c == 'p')
            saves = true;
        else
            return fputs(usage, c == 'h' ? stdout : stderr), c == 'h' ? 0 : 2;
    }
    if (argc - optind != (asks ? 3 : 0) || (asks && saves))
        return fputs(usage, stderr), 2;
    if (saves)
        return print_power_saving(config);
    return asks ? ask(path, argv + optind) : serve(config, path);
}
