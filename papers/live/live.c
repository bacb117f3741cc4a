// SPDX-License-Identifier: Apache-2.0
/* Programs are children with pipes for input and output. Each prints "ready" once it is
 * connected and has its data in place, and waits. Then all get the same moment of the device's
 * clock to count from, so that start-up is not measured.
 *
 * A program is started as `wattshare run --task NAME -- program …`. The kernel ends it when this
 * process dies. */
#include "config.h"

#include "papers/live/live.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "cli/cli.h"
#include "device/catalog.h"

enum { STATUS_TIMEOUT_MS = 30000 };    /* the host is busy while programs run */
enum { WAKE_MS = 20, LATE_MS = 5 };    /* how often to see whether the host is late */
static const char ready[] = "ready\n"; /* what a program prints before it waits for its start */
#define LEAD_MS                                                                                    \
    2.0 /* device time between the start of all and the moment that offsets count from */

/* ---- the catalog ---- */

char *ws_live_above(const char *name)
{
    char exe[PATH_MAX], *path = NULL;
    ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
    exe[n > 0 ? n : 0] = 0;
    if (strncmp(exe, BINDIR "/", sizeof(BINDIR)))
        for (char *slash; (slash = strrchr(exe, '/'));) {
            *slash = 0;
            if (asprintf(&path, "%s/%s", exe, name) < 0)
                return NULL;
            if (!access(path, R_OK))
                return path;
            free(path);
        }
    return NULL;
}

/* As the daemon finds it (backend/process/paths.h). malloc'ed. */
static char *catalog_path(void)
{
    char *path = ws_live_above("conf/gpu.d");
    return path ? path : strdup(SYSCONFDIR "/wattshare/gpu.d");
}

int ws_live_gpu(const char *name, struct ws_gpu_spec *ret)
{
    struct ws_catalog c = WS_CATALOG_NULL;
    struct ws_diags diags = WS_DIAGS_NULL;
    char *path = catalog_path(), *text = NULL;
    int r = path ? ws_catalog_load(&c, path, &diags) : -ENOMEM;
    const struct ws_gpu_spec *spec = r ? NULL : ws_catalog_find(&c, name);
    if (spec)
        *ret = *spec;
    else
        ws_cli_error("no GPU %s in the catalog %s%s%s", name, path ? path : "", r ? ": " : "",
                     r && (text = ws_diags_text(&diags)) ? text : "");
    free(text);
    ws_diags_deinit(&diags);
    ws_catalog_deinit(&c);
    free(path);
    return spec ? 0 : -1;
}

bool ws_live_gpu_in(const char *path, const char *name, struct ws_gpu_spec *ret)
{
    struct ws_catalog c = WS_CATALOG_NULL;
    struct ws_diags diags = WS_DIAGS_NULL;
    char *own = path ? NULL : catalog_path();
    int r = path || own ? ws_catalog_load(&c, path ? path : own, &diags) : -ENOMEM;
    const struct ws_gpu_spec *spec = r ? NULL : ws_catalog_find(&c, name);
    if (spec)
        *ret = *spec;
    ws_diags_deinit(&diags);
    ws_catalog_deinit(&c);
    free(own);
    return spec;
}

/* ---- start ---- */

int ws_live_start(struct ws_live *ret, const struct ws_live_wish *wish)
{
    char *conf = NULL;
    *ret = (struct ws_live){.daemon.alive_fd = -1};
    ret->program =
        ws_cli_find_part("WATTSHARE_LIVE_PROGRAM", "bench/live/program", WSLIBDIR "/program");
    if (!ret->program)
        return -1;
    ret->scaled = wish->time_scale > 0;
    ret->settle_s = wish->settle_s;
    char clock[64] = "functional";
    if (ret->scaled)
        snprintf(clock, sizeof(clock), "scaled\ntime_scale = %g", wish->time_scale);
    char timing[4200] = "";
    if (wish->follow)
        snprintf(timing, sizeof(timing), "timing = measured\nprofiles = \"%s\"\n", wish->follow);
    if (asprintf(&conf, "clock = %s\npolicy = %s\npolicy_options = {%s}\nplacement = fixed\n%s%s",
                 clock, wish->policy ? wish->policy : "none", wish->options ? wish->options : "",
                 timing, wish->tasks ? wish->tasks : "") < 0)
        return -1;
    int r = ws_private_start_conf(&ret->daemon, wish->gpus, conf, wish->log);
    free(conf);
    if (r)
        return -1;
    struct ws_live_counters c[WS_LIVE_GPUS];
    return ws_live_counters(ret, c);
}

static void become_program(struct ws_live *l, const char *task, const char *const *args, int in,
                           int out, pid_t parent)
{
    const char *argv[WS_LIVE_ARGS + 8] = {"wattshare", "run", "--task", task, "--", l->program};
    int n = 6;
    for (int i = 0; args[i] && n < WS_LIVE_ARGS + 6; i++)
        argv[n++] = args[i];
    argv[n++] = "--wait";
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(0);
    dup2(in, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    setenv(WS_ENV_SOCKET, l->daemon.endpoint, 1);
    unsetenv("WATTSHARE_PRIVATE");
    execv("/proc/self/exe", (char *const *)argv);
    _exit(WS_EXIT_CANNOT_RUN);
}

static int add_program(struct ws_live *l, const char *task, const char *const *args)
{
    int in[2] = {-1, -1}, out[2] = {-1, -1};
    if (l->n_programs == WS_LIVE_PROGRAMS) {
        ws_cli_error("at most %d programs", WS_LIVE_PROGRAMS);
        return -1;
    }
    struct ws_live_program *p = &l->programs[l->n_programs];
    *p = (struct ws_live_program){.to_fd = -1, .from_fd = -1};
    snprintf(p->task, sizeof(p->task), "%s", task);
    pid_t self = getpid();
    if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC) || (p->pid = fork()) < 0) {
        ws_cli_error("cannot start a program: %s", strerror(errno));
        for (int i = 0; i < 2; i++) {
            close(in[i]);
            close(out[i]);
        }
        return -1;
    }
    if (!p->pid)
        become_program(l, task, args, in[0], out[1], self);
    close(in[0]);
    close(out[1]);
    p->to_fd = in[1];
    p->from_fd = out[0];
    return l->n_programs++;
}

int ws_live_addf(struct ws_live *l, const char *task, const char *fmt, ...)
{
    char text[512], *save = NULL;
    const char *args[WS_LIVE_ARGS + 1];
    int n = 0;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    for (char *p = strtok_r(text, " ", &save); p && n < WS_LIVE_ARGS;
         p = strtok_r(NULL, " ", &save))
        args[n++] = p;
    args[n] = NULL;
    return add_program(l, task, args);
}

/* ---- listening ---- */

static void hear(struct ws_live_program *p)
{
    char buf[4096];
    ssize_t n = read(p->from_fd, buf, sizeof(buf));
    if (n < 0 && errno == EINTR)
        return;
    if (n <= 0) {
        close(p->from_fd);
        p->from_fd = -1;
        return;
    }
    if (p->n_said + (size_t)n + 1 > p->cap_said) {
        size_t cap = 2 * (p->n_said + (size_t)n + 1);
        char *bigger = realloc(p->said, cap);
        if (!bigger) {
            p->failed = true;
            return;
        }
        p->said = bigger;
        p->cap_said = cap;
    }
    memcpy(p->said + p->n_said, buf, (size_t)n);
    p->n_said += (size_t)n;
    p->said[p->n_said] = 0;
    p->ready |= !strncmp(p->said, ready, strlen(ready));
}

/* Until some program says something, or @until_ns of the host's clock. Return: false: it is
 * later than that, or none is left. */
static bool listen_once(struct ws_live *l, uint64_t until_ns)
{
    struct pollfd fds[WS_LIVE_PROGRAMS];
    uint64_t now_ns = ws_clock_ns();
    bool any = false;
    for (int i = 0; i < l->n_programs; i++) {
        fds[i] = (struct pollfd){.fd = l->programs[i].from_fd, .events = POLLIN};
        any |= fds[i].fd >= 0;
    }
    if (now_ns >= until_ns || !any)
        return false;
    uint64_t wait_ms = WS_MIN((until_ns - now_ns) / WS_NS_PER_MS + 1, (uint64_t)WAKE_MS);
    if (poll(fds, (nfds_t)l->n_programs, (int)wait_ms) > 0) {
        for (int i = 0; i < l->n_programs; i++)
            if (fds[i].revents)
                hear(&l->programs[i]);
    } else {
        l->n_wakes++;
        l->n_late += ws_clock_ns() > now_ns + (wait_ms + LATE_MS) * WS_NS_PER_MS;
    }
    return true;
}

static uint64_t after_s(double s)
{
    return ws_clock_ns() + (uint64_t)(s * 1e9);
}

int ws_live_counters(struct ws_live *l, struct ws_live_counters ret[WS_LIVE_GPUS])
{
    Ws__ServerMessage *m = NULL;
    int r = ws_cli_ask_status(l->daemon.endpoint, STATUS_TIMEOUT_MS, &m);
    if (r) {
        ws_cli_error("the daemon of the experiment does not answer: %s", strerror(-r));
        return -1;
    }
    l->n_gpus = (int)WS_MIN(m->status->n_gpus, (size_t)WS_LIVE_GPUS);
    for (int i = 0; i < l->n_gpus; i++) {
        const Ws__GpuStatus *g = m->status->gpus[i];
        ret[i] = (struct ws_live_counters){.now_ms = (double)g->device_ns / 1e6,
                                           .busy_ms = (double)g->busy_ns / 1e6,
                                           .sm_busy_ms = (double)g->sm_busy_ns / 1e6,
                                           .energy_mj = (double)g->energy_uj / 1e3,
                                           .idle_mj = (double)g->idle_uj / 1e3,
                                           .power_w = g->power_mw / 1e3,
                                           .n_kernels = g->n_kernels,
                                           .n_merged = m->status->n_merged};
    }
    ws__server_message__free_unpacked(m, NULL);
    return 0;
}

/* Waits until all programs are ready, and starts them together. Return: 0 or -1. */
static int start_together(struct ws_live *l, double timeout_s)
{
    uint64_t until_ns = after_s(timeout_s);
    for (int i = 0; i < l->n_programs; i++) {
        struct ws_live_program *p = &l->programs[i];
        while (!p->ready && p->from_fd >= 0 && listen_once(l, until_ns))
            ;
        if (!p->ready) {
            ws_cli_error("%s did not become ready: %s", p->task,
                         p->said ? p->said : "it said nothing");
            return -1;
        }
    }
    if (l->settle_s > 0)
        usleep((useconds_t)(l->settle_s * 1e6));
    if (ws_live_counters(l, l->before))
        return -1;
    for (int i = 0; i < l->n_gpus; i++)
        l->base_ms = WS_MAX(l->base_ms, l->before[i].now_ms + LEAD_MS);
    char go[64];
    int n = snprintf(go, sizeof(go), "go %.0f\n", l->scaled ? l->base_ms * 1e6 : 0.0);
    for (int i = 0; i < l->n_programs; i++) {
        struct ws_live_program *p = &l->programs[i];
        if (write(p->to_fd, go, (size_t)n) != n) {
            ws_cli_error("%s ended before it could begin", p->task);
            return -1;
        }
    }
    return 0;
}

/* ---- the end ---- */

static int take_jobs(struct ws_live *l, struct ws_live_program *p, struct json_object *o)
{
    struct json_object *jobs, *v;
    static const char *const keys[] = {"released", "missed", "skipped", "wrong"};
    int *const to[] = {&p->released, &p->missed, &p->skipped, &p->wrong};
    for (int i = 0; i < 4; i++) {
        if (!json_object_object_get_ex(o, keys[i], &v))
            return -1;
        *to[i] = json_object_get_int(v);
    }
    if (!json_object_object_get_ex(o, "jobs", &jobs) || !json_object_is_type(jobs, json_type_array))
        return -1;
    p->n_jobs = (int)json_object_array_length(jobs);
    p->jobs = ws_alloc_array((size_t)WS_MAX(p->n_jobs, 1), sizeof(*p->jobs));
    if (!p->jobs)
        return -1;
    for (int i = 0; i < p->n_jobs; i++) {
        struct json_object *j = json_object_array_get_idx(jobs, (size_t)i);
        double ms[3];
        if (!json_object_is_type(j, json_type_array) || json_object_array_length(j) != 3)
            return -1;
        for (size_t k = 0; k < 3; k++)
            ms[k] = (double)json_object_get_uint64(json_object_array_get_idx(j, k)) / 1e6;
        p->jobs[i] = (struct ws_live_job){ms[0], ms[1], ms[2]};
        if (l->first_ms == 0 || ms[0] < l->first_ms)
            l->first_ms = ms[0];
        l->last_ms = WS_MAX(l->last_ms, ms[2]);
    }
    return 0;
}

static int take_result(struct ws_live *l, struct ws_live_program *p)
{
    const char *line = p->said && strlen(p->said) > strlen(ready) ? p->said + strlen(ready) : "";
    struct json_object *o = json_tokener_parse(line);
    int r = o ? take_jobs(l, p, o) : -1;
    if (o)
        json_object_put(o);
    if (r)
        ws_cli_error("%s ended without a result: %s", p->task, *line ? line : "it said nothing");
    else if (p->wrong)
        ws_cli_error("%s: %d of %d results are wrong", p->task, p->wrong, p->n_jobs);
    return r || p->wrong ? -1 : 0;
}

static void kill_victim(struct ws_live *l)
{
    uint64_t at_ns = after_s(l->dies_after_s);
    while (listen_once(l, at_ns))
        ;
    l->programs[l->victim].killed = true;
    kill(l->programs[l->victim].pid, SIGKILL);
}

/* Waits for all programs to end and reads their results. Return: 0, or -1 if one failed, had
 * wrong results, or was not done in time. */
static int collect(struct ws_live *l, double timeout_s)
{
    uint64_t until_ns = after_s(timeout_s);
    l->n_wakes = l->n_late = 0;
    if (l->dies_after_s > 0)
        kill_victim(l);
    while (listen_once(l, until_ns))
        ;
    int r = ws_live_counters(l, l->after);
    for (int i = 0; i < l->n_programs; i++) {
        struct ws_live_program *p = &l->programs[i];
        if (p->from_fd >= 0) {
            ws_cli_error("%s was not done after %g s", p->task, timeout_s);
            kill(p->pid, SIGKILL);
            r = -1;
        } else if (!p->killed && take_result(l, p)) {
            r = -1;
        }
    }
    return r;
}

int ws_live_run(struct ws_live *l, double timeout_s)
{
    return start_together(l, timeout_s) || collect(l, timeout_s) ? -1 : 0;
}

void ws_live_stop(struct ws_live *l)
{
    for (int i = 0; i < l->n_programs; i++) {
        struct ws_live_program *p = &l->programs[i];
        kill(p->pid, SIGKILL);
        while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR)
            ;
        if (p->to_fd >= 0)
            close(p->to_fd);
        if (p->from_fd >= 0)
            close(p->from_fd);
        free(p->said);
        free(p->jobs);
    }
    l->n_programs = 0;
    ws_private_stop(&l->daemon);
    free(l->program);
    l->program = NULL;
}

double ws_live_energy_mj(const struct ws_live *l, double ms)
{
    double mj = 0;
    for (int i = 0; i < l->n_gpus; i++) {
        double idle_ms = l->after[i].now_ms - l->before[i].now_ms - ms;
        mj += l->after[i].energy_mj - l->before[i].energy_mj - l->before[i].power_w * idle_ms;
    }
    return mj;
}
