// SPDX-License-Identifier: Apache-2.0
/* backend/config/task.h - what the configuration says of a program: which task it is, how often
 * it runs, how urgent, how much it may have. wattshared.conf(5), "task". A client has a copy
 * from its Hello on, so reloading the file never pulls it away. Threads: none. */
#ifndef WS_BACKEND_CONFIG_TASK_H
#define WS_BACKEND_CONFIG_TASK_H

#include <stdbool.h>
#include <stddef.h>
#include "base/sm_set.h"

enum { WS_TASK_NAME_BYTES = 64, WS_TASKS_MAX = 1024 };
struct ws_task {
    char name[WS_TASK_NAME_BYTES]; /* of the entry; of a program that none matches: its file name */
    double period_ms, deadline_ms; /* relative to release; 0: none */
    int priority;                  /* larger is higher; real-time > 0; 0: best effort */
    double weight;                 /* share, 1 by default */
    /* of one job's kernels on the whole first GPU, as stated; 0: from profiles, or learned */
    double wcet_ms;
    unsigned n_sm_max;    /* at most so many SMs; 0: no limit */
    struct ws_sm_set sms; /* fixed; n == 0: none */
    char gpu[32];         /* only on GPUs of this catalog name; "": any */
    char profile[64];     /* program in the profile store; "": none */
    bool busy_wait;
    /* copies count as the job's work too, and wait for its turn (GCAPS: a segment opens at the
     * first GPU command) */
    bool copies;
    /* device memory of each process; 0: what limits.memory_quota_bytes says */
    uint64_t memory_bytes;
};

/* An entry of the file: the task, and which programs are of it. A program is if of each list
 * that isn't empty one pattern holds (of the environment's: all); an entry without any is found
 * by its name only. Patterns are fnmatch(3)'s, where * also goes over '/'. */
struct ws_task_rule {
    struct ws_task task;
    char **paths, **cgroups, **env; /* NULL-terminated, or NULL; env: "NAME=PATTERN" */
    uint32_t *uids;
    size_t n_uids;
    char *file; /* where it stands, for what is found out later */
    uint32_t line, gpu_line, sms_line;
};
struct ws_task_rules {
    struct ws_task_rule *v;
    size_t n;
};
void ws_task_rules_deinit(struct ws_task_rules *r);

/* What is known of a program. */
struct ws_task_who {
    const char *name;    /* it says it is this task; "": doesn't say */
    bool trusted;        /* it may change the configuration, so its word is enough */
    const char *exe;     /* path; "": not known */
    bool exe_known;      /* by the kernel; else it says so itself */
    const char *cgroups; /* text of /proc/PID/cgroup; "": not known */
    bool has_uid;
    uint32_t uid;
    const char *const *env; /* "NAME=VALUE" of those that rules ask for */
    size_t n_env;
};
struct ws_task_doubt { /* entries that a program would have been of */
    bool refused;      /* it named one that is not for this user */
    /* The first one that it named or that matched, but of which the kernel confirms nothing, or
     * NULL. */
    const struct ws_task_rule *unconfirmed;
};
/* The entry that @who names, if its users, where it has some, may; else the first whose patterns
 * hold; else the default, with the name that the program gave itself. An entry applies only if
 * the kernel confirms one of its users, control groups or paths, or the program is trusted.
 * Return: the entry, or NULL: none. */
const struct ws_task_rule *ws_task_recognise(const struct ws_task_rules *rules,
                                             const struct ws_task_who *who, struct ws_task *ret,
                                             struct ws_task_doubt *ret_doubt);
/* Whether an entry has a pattern that @path matches. */
bool ws_task_rules_name_path(const struct ws_task_rules *r, const char *path);
/* Whether the entry applies to programs whose path the kernel tells and to no others: not to
 * those of other users, where the daemon may not look at them. */
bool ws_task_rule_needs_path(const struct ws_task_rule *r);
/* The names of variables that rules ask for, each once: @ret has room for @max. Return: how many
 * there are. */
size_t ws_task_rules_env(const struct ws_task_rules *rules, char (*ret)[WS_TASK_NAME_BYTES],
                         size_t max);

/* "0-3,7". Return: false: not such a list, or an SM beyond WS_SM_MAX. */
bool ws_sm_set_parse(const char *text, struct ws_sm_set *ret);
/* The same back. Return: @buf. */
const char *ws_sm_set_text(const struct ws_sm_set *s, char *buf, size_t size);

#endif
