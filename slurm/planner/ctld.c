// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "slurm/planner/ctld.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/error.h"

extern char **environ;

/* Names and comments of users are not among the fields, as they could hold what looks like others.
 * Each field has a width, so none ends at something that stands in it. */
static const char list_jobs[] = "SLURM_TIME_FORMAT=%s exec squeue -h -t all -O "
                                "JobID:16,State:16,StartTime:16,EndTime:16,NodeList:512,"
                                "ReqNodes:64,admin_comment:512";
enum { ID, STATE, START, END, NODES, WANTED, COMMENT, FIELDS };
static const size_t width[FIELDS] = {16, 16, 16, 16, 512, 64, 512};
static const char list_nodes[] = "exec scontrol -o show nodes";

/* Runs @command and gives each of its lines to @f, without the end of the line. */
static int each_line(const char *command, int (*f)(char *line, void *arg), void *arg)
{
    FILE *p = popen(command, "re");
    char *line = NULL;
    size_t size = 0;
    int r = 0;
    if (!p)
        return ws_raise(-EAGAIN);
    for (ssize_t n; !r && (n = getline(&line, &size, p)) > 0;) {
        line[strcspn(line, "\n")] = 0;
        r = f(line, arg);
    }
    free(line);
    int status = pclose(p);
    return r || !status ? r : ws_raise(-EAGAIN);
}

/* ---- nodes ---- */

struct node_walk {
    int (*f)(const struct ws_ctld_node *node, void *arg);
    void *arg;
};

static int node_line(char *line, void *arg)
{
    static const char *const keys[] = {"NodeName=", "AvailableFeatures=", "Gres=", "State="};
    const struct node_walk *w = arg;
    const char *values[4] = {"", "", "", ""};
    char *rest = NULL;
    for (char *word = strtok_r(line, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        for (size_t i = 0; i < 4; i++)
            if (!*values[i] && !strncmp(word, keys[i], strlen(keys[i])))
                values[i] = word + strlen(keys[i]);
    const struct ws_ctld_node node = {values[0], values[1], values[2], values[3]};
    return *node.name && *node.state ? w->f(&node, w->arg) : 0;
}

int ws_ctld_nodes(int (*f)(const struct ws_ctld_node *node, void *arg), void *arg)
{
    struct node_walk w = {f, arg};
    return each_line(list_nodes, node_line, &w);
}

/* ---- jobs ---- */

struct job_walk {
    int (*f)(const struct ws_ctld_job *job, void *arg);
    void *arg;
};

static int job_line(char *line, void *arg)
{
    const struct job_walk *w = arg;
    size_t at = 0, length = strlen(line);
    char text[FIELDS][513];
    for (int i = 0; i < FIELDS; at += width[i++]) {
        size_t n = at < length ? strnlen(line + at, width[i]) : 0;
        while (n && line[at + n - 1] == ' ')
            n--;
        memcpy(text[i], line + (n ? at : 0), n);
        text[i][n] = 0;
    }
    const struct ws_ctld_job job = {.id = text[ID],
                                    .state = text[STATE],
                                    .start = strtod(text[START], NULL), /* "N/A": 0 */
                                    .end = strtod(text[END], NULL),
                                    .nodes = text[NODES],
                                    .wanted = text[WANTED],
                                    .admin_comment = text[COMMENT]};
    return *job.id && *job.state ? w->f(&job, w->arg) : 0;
}

int ws_ctld_jobs(int (*f)(const struct ws_ctld_job *job, void *arg), void *arg)
{
    struct job_walk w = {f, arg};
    return each_line(list_jobs, job_line, &w);
}

/* ---- orders ---- */

/* "scontrol update WHICH WHAT", without a word on standard error: it is tried again. */
static bool update(const char *which, const char *what)
{
    char *const argv[] = {"scontrol", "update", (char *)which, (char *)what, NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int status = -1;
    if (posix_spawn_file_actions_init(&actions))
        return false;
    bool ok = !posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0) &&
              !posix_spawn_file_actions_adddup2(&actions, 1, 2) &&
              !posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    while (ok && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return ok && !status;
}

bool ws_ctld_switch_on(const char *name)
{
    char which[128];
    int n = snprintf(which, sizeof(which), "NodeName=%s", name);
    return n > 0 && (size_t)n < sizeof(which) && update(which, "State=POWER_UP");
}

bool ws_ctld_begin(const char *id)
{
    char which[64];
    int n = snprintf(which, sizeof(which), "JobId=%s", id);
    return n > 0 && (size_t)n < sizeof(which) && update(which, "StartTime=now");
}
