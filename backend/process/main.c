// SPDX-License-Identifier: Apache-2.0
/* wattshared(8): options, configuration, devices; then the loop. */
#include <config.h> /* the build's; "config.h" would be ours */

#include <fcntl.h>
#include <getopt.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "backend/process/config.h"
#include "backend/process/follow.h"
#include "backend/process/journal.h"
#include "backend/process/loop.h"
#include "backend/process/real.h"
#include "backend/process/reload.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "device/catalog.h"
#include "device/compiled.h"
#include "device/cuda/clocks.h"

#define DEFAULT_CONFIG SYSCONFDIR "/wattshare/wattshared.conf"

static const char usage[] =
    "Usage: wattshared [OPTION…]\n"
    "Shares the GPUs of this machine between CUDA programs started with `wattshare run`.\n"
    "\n"
    "  -c, --config FILE      read FILE (default " DEFAULT_CONFIG ", if it is there)\n"
    "  -s, --socket LIST      listen at these only: ipc:///PATH, tcp://ADDRESS:PORT\n"
    "  -g, --gpus LIST        software GPUs, names of the catalog: rtx3070,t400; or cuda, cuda:0\n"
    "      --catalog PATH     GPU catalog, a file or directory\n"
    "      --clock CLOCK      functional (default), scaled: device time passes, or\n"
    "                         skip: kernels are not executed\n"
    "      --profiles FILE    store of what is learned of kernels; made if it isn't there\n"
    "  -w, --workers N        threads of the software GPUs (default: as many as cores)\n"
    "      --log-level LEVEL  error, warning, info (default) or debug\n"
    "      --metrics ADDRESS:PORT  serve metrics for Prometheus there\n"
    "      --check            read the configuration and the catalog, say what is wrong, and stop\n"
    "      --ready-fd N       write one byte to descriptor N when clients can connect\n"
    "      --exit-when-idle   stop when the last client has gone\n"
    "      --foreground       accepted for other service managers; the daemon never goes to the "
    "background\n"
    "  -h, --help, -V, --version\n"
    "\n"
    "See wattshared(8) and wattshared.conf(5).\n";

enum {
    OPT_CLOCK = 256,
    OPT_CHECK,
    OPT_READY_FD,
    OPT_EXIT_WHEN_IDLE,
    OPT_FOREGROUND,
    OPT_CATALOG,
    OPT_LOG_LEVEL,
    OPT_METRICS,
    OPT_PROFILES
};
enum { EXIT_FAILED = 1, EXIT_USAGE = 2, LOG_LINES_PER_S = 20 };

struct options {
    const char *config, *socket, *gpus, *catalog, *clock, *log_level, *metrics, *profiles;
    long workers; /* -1: not given */
    bool check;
    struct ws_loop_options loop;
};

static bool parse_number(const char *text, long max, long *ret)
{
    char *end;
    errno = 0;
    *ret = strtol(text, &end, 10);
    return text[0] && !*end && !errno && *ret >= 0 && *ret <= max;
}

/* Return: -1 to go on, else the exit status. */
static int parse_options(int argc, char **argv, struct options *o)
{
    static const struct option table[] = {
        {"config", required_argument, NULL, 'c'},
        {"socket", required_argument, NULL, 's'},
        {"gpus", required_argument, NULL, 'g'},
        {"workers", required_argument, NULL, 'w'},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},
        {"catalog", required_argument, NULL, OPT_CATALOG},
        {"clock", required_argument, NULL, OPT_CLOCK},
        {"log-level", required_argument, NULL, OPT_LOG_LEVEL},
        {"metrics", required_argument, NULL, OPT_METRICS},
        {"profiles", required_argument, NULL, OPT_PROFILES},
        {"check", no_argument, NULL, OPT_CHECK},
        {"ready-fd", required_argument, NULL, OPT_READY_FD},
        {"exit-when-idle", no_argument, NULL, OPT_EXIT_WHEN_IDLE},
        {"foreground", no_argument, NULL, OPT_FOREGROUND},
        {0},
    };
    long n;
    *o = (struct options){.workers = -1, .loop.ready_fd = -1};
    for (int c; (c = getopt_long(argc, argv, "c:s:g:w:hV", table, NULL)) != -1;) {
        switch (c) {
        case 'c':
            o->config = optarg;
            break;
        case 's':
            o->socket = optarg;
            break;
        case 'g':
            o->gpus = optarg;
            break;
        case OPT_CATALOG:
            o->catalog = optarg;
            break;
        case OPT_CLOCK:
            o->clock = optarg;
            break;
        case OPT_LOG_LEVEL:
            o->log_level = optarg;
            break;
        case OPT_METRICS:
            o->metrics = optarg;
            break;
        case OPT_PROFILES:
            o->profiles = optarg;
            break;
        case OPT_CHECK:
            o->check = true;
            break;
        case OPT_EXIT_WHEN_IDLE:
            o->loop.exit_when_idle = true;
            break;
        case OPT_FOREGROUND:
            break;
        case 'w':
            if (!parse_number(optarg, 1024, &o->workers)) {
                fprintf(stderr, "wattshared: --workers \"%s\" is wrong: use 0 to 1024\n", optarg);
                return EXIT_USAGE;
            }
            break;
        case OPT_READY_FD:
            if (!parse_number(optarg, 1 << 20, &n)) {
                fprintf(stderr,
                        "wattshared: --ready-fd \"%s\" is wrong: use the number of an open "
                        "descriptor\n",
                        optarg);
                return EXIT_USAGE;
            }
            o->loop.ready_fd = (int)n;
            break;
        case 'h':
            fputs(usage, stdout);
            return 0;
        case 'V':
            puts("wattshared " VERSION);
            return 0;
        default:
            fputs("Try `wattshared --help`.\n", stderr);
            return EXIT_USAGE;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "wattshared: \"%s\" is no option; try `wattshared --help`\n", argv[optind]);
        return EXIT_USAGE;
    }
    return -1;
}

static void print_diags(struct ws_diags *d)
{
    for (size_t i = 0; i < d->n; i++) {
        const struct ws_diag *e = &d->v[i];
        if (e->file && e->line)
            fprintf(stderr, "wattshared: %s:%u: %s\n", e->file, e->line, e->text);
        else
            fprintf(stderr, "wattshared: %s%s%s\n", e->file ? e->file : "", e->file ? ": " : "",
                    e->text);
    }
    ws_diags_deinit(d);
}

/* A daemon that is not root cannot see the paths of other users' programs. */
static void warn_of_tasks(const struct ws_config *c)
{
    for (size_t i = 0; i < c->tasks.n && geteuid(); i++) {
        const struct ws_task_rule *r = &c->tasks.v[i];
        if (ws_task_rule_needs_path(r))
            fprintf(stderr,
                    "wattshared: %s:%u: warning: task %s has match_path alone, which applies to "
                    "programs of the daemon's user only: add match_user or match_cgroup\n",
                    r->file, r->line, r->task.name);
    }
}

static int load_config(struct ws_config *c, const struct options *o, struct ws_diags *d)
{
    int r = 0;
    if (o->config || !access(DEFAULT_CONFIG, F_OK)) {
        const char *path = o->config ? o->config : DEFAULT_CONFIG;
        r = ws_config_load(c, path, d);
        if (r < 0)
            ws_diags_add(d, path, 0, 0, "cannot be read: %s", ws_file_why(r));
    }
    if (!r && o->socket)
        r = ws_config_set_endpoints(c, o->socket, d);
    /* A daemon beside the machine's leaves the port alone that the machine's configuration names;
     * a configuration of its own is meant as it is written. */
    if (!r && (o->metrics || (o->socket && !o->config)))
        r = ws_config_set_metrics(c, o->metrics ? o->metrics : "", d);
    if (!r && o->gpus)
        r = ws_config_set_gpus(c, o->gpus, d);
    if (!r && o->catalog)
        r = ws_config_set_catalog(c, o->catalog, d);
    if (!r && o->clock)
        r = ws_config_set_clock(c, o->clock, d);
    if (!r && o->profiles)
        r = ws_config_set_profiles(c, o->profiles, d);
    if (!r && o->log_level)
        r = ws_config_set_log_level(c, o->log_level, d);
    if (o->workers >= 0)
        c->n_workers = (uint32_t)o->workers;
    if (!r)
        r = ws_config_finish(c, d);
    return r;
}

static int load_catalog(const struct ws_config *c, struct ws_catalog *catalog, struct ws_diags *d)
{
    for (char *const *p = c->catalog; *p; p++) {
        int r = ws_catalog_load(catalog, *p, d);
        if (r < 0)
            ws_diags_add(d, *p, 0, 0, "cannot be read as a GPU catalog: %s", ws_file_why(r));
        if (r)
            return r;
    }
    return 0;
}

/* What `gpus` comes to. */
struct gpus {
    uint32_t n;
    const struct ws_gpu_spec *specs[WS_MAX_GPUS_CONFIGURED];
    struct ws_device *real[WS_MAX_GPUS_CONFIGURED]; /* NULL: a software GPU */
};

static int find_real(const struct ws_config *c, const char *name, struct gpus *g,
                     struct ws_diags *d)
{
    uint32_t n = ws_real_open(
        name, g->n,
        &(const struct ws_real_choice){.worker = c->gpu_worker,
                                       .preemptible = c->policy != NULL,
                                       .unfenced = c->unfenced,
                                       .cancel_ns = c->cancel_timeout_s * UINT64_C(1000000000)},
        g->real + g->n, WS_MAX_GPUS_CONFIGURED - g->n, d);
    for (uint32_t k = g->n; k < g->n + n; k++) {
        g->specs[k] = &g->real[k]->spec;
        int r = c->clock_helper && !g->real[k]->clocks
                    ? ws_clocks_manage(g->real[k], c->clock_helper)
                    : 0;
        if (r == -EINVAL)
            ws_diags_add(d, c->clock_helper, 0, 0, "is too long for a socket (clock_helper)");
        if (r)
            return r == -EINVAL ? WS_CATALOG_E_INVALID : r;
    }
    g->n += n;
    return n ? 0 : WS_CATALOG_E_INVALID;
}

static int find_soft(const char *name, const struct ws_catalog *catalog, struct gpus *g,
                     struct ws_diags *d)
{
    char names[512] = "";
    g->specs[g->n] = ws_catalog_find(catalog, name);
    if (g->specs[g->n]) {
        g->n++;
        return 0;
    }
    for (size_t k = 0, n = 0; k < catalog->n && n < sizeof(names); k++)
        n += snprintf(names + n, sizeof(names) - n, "%s%s", k ? ", " : "", catalog->v[k].name);
    ws_diags_add(d, "gpus", 0, 0, "\"%s\" is not in the catalog, which has: %s", name, names);
    return WS_CATALOG_E_INVALID;
}

static int find_gpus(const struct ws_config *c, const struct ws_catalog *catalog, struct gpus *ret,
                     struct ws_diags *d)
{
    int r = 0;
    uint32_t n_real = 0, n_soft = 0;
    *ret = (struct gpus){0};
    for (uint32_t i = 0; c->gpus[i]; i++)
        *(ws_real_is(c->gpus[i]) ? &n_real : &n_soft) += 1;
    for (uint32_t i = 0; c->gpus[i]; i++) {
        const struct ws_gpu_spec *spec = ws_catalog_find(catalog, c->gpus[i]);
        if (!spec || !spec->host || (i && !c->gpus[i + 1]))
            continue;
        ws_diags_add(d, "gpus", 0, 0,
                     "\"%s\" is the host's own processor: it goes last, behind a GPU", c->gpus[i]);
        return WS_CATALOG_E_INVALID;
    }
    if (n_real && n_soft) {
        ws_diags_add(d, "gpus", 0, 0,
                     "real GPUs (\"cuda\") and software GPUs can't serve together; name one kind");
        return WS_CATALOG_E_INVALID;
    }
    if (n_real && (c->rewrite.kind != WS_REWRITE_NONE || c->rewrite.fence || c->rewrite.fuse)) {
        ws_diags_add(d, "rewrite", 0, 0,
                     "is for software GPUs; real ones rewrite kernels themselves: leave it out");
        return WS_CATALOG_E_INVALID;
    }
    for (uint32_t i = 0; c->gpus[i] && ret->n < WS_MAX_GPUS_CONFIGURED; i++) {
        int one =
            n_real ? find_real(c, c->gpus[i], ret, d) : find_soft(c->gpus[i], catalog, ret, d);
        r = one ? one : r;
    }
    return r;
}

/* ---- SIGHUP ---- */

struct reloading {
    struct ws_config *live;
    const struct options *options;
};

static void log_diag(const struct ws_diag *d)
{
    const char *file = d->file ? d->file : "";
    if (d->line)
        ws_log(WS_ERROR, "config: %s:%u: %s", file, d->line, d->text);
    else
        ws_log(WS_ERROR, "config: %s%s%s", file, *file ? ": " : "", d->text);
}

/* All of it, or nothing. */
static bool reload(void *arg)
{
    struct reloading *l = arg;
    struct ws_config fresh;
    struct ws_catalog catalog = WS_CATALOG_NULL;
    struct ws_diags d = WS_DIAGS_NULL;
    struct gpus gpus = {0};
    char later[256];
    bool other_policy = false;
    if (ws_config_init(&fresh)) {
        ws_log(WS_ERROR, "config: not reloaded: out of memory");
        return false;
    }
    int r = load_config(&fresh, l->options, &d);
    if (!r)
        r = load_catalog(&fresh, &catalog, &d);
    if (!r)
        r = find_gpus(&fresh, &catalog, &gpus, &d);
    if (!r)
        r = ws_config_check_tasks(&fresh, gpus.specs, gpus.n, &d);
    for (size_t i = 0; i < d.n; i++)
        log_diag(&d.v[i]);
    if (r) {
        ws_log(WS_ERROR, "config: not reloaded; all is as it was");
    } else {
        other_policy = ws_reload_apply(l->live, &fresh, later, sizeof(later));
        ws_log_set_level(l->live->log_level);
        ws_log(WS_INFO, "config: reloaded%s%s", later[0] ? "; waits for the next start: " : "",
               later);
    }
    ws_diags_deinit(&d);
    ws_catalog_deinit(&catalog);
    ws_config_deinit(&fresh);
    return other_policy;
}

/* Without it kernels are compiled again. */
static void keep_code(const struct ws_config *c, const struct gpus *gpus)
{
    const char *folder =
        c->code_cache && *c->code_cache ? c->code_cache : getenv("CACHE_DIRECTORY");
    bool has_soft = gpus->n && !gpus->real[0]; /* or all are real */
    if (!has_soft || c->compile == WS_COMPILE_NEVER || !folder || !c->code_cache_bytes)
        return;
    int r = ws_compiled_keep_in(folder, c->code_cache_bytes);
    if (r)
        ws_log(WS_WARN, "code_cache: path=%s error=%s", folder,
               r == -EPERM ? "it must be the daemon's own, with mode 0700" : strerror(-r));
}

static int serve(const struct ws_config *c, const struct gpus *gpus, const struct options *o,
                 struct ws_diags *d)
{
    struct ws_device *devices[WS_MAX_GPUS_CONFIGURED] = {NULL};
    struct ws_device_options options = {
        .clock = c->clock,
        .scale = c->time_scale,
        .meter = c->meter,
        .meter_update_ns = c->meter_update_ms * WS_NS_PER_MS,
        .meter_noise = c->meter_noise / 100.0,
        .n_workers = c->n_workers,
        .max_kernel_insns = c->max_kernel_insns,
        .local_bytes_per_thread_max = 512 << 10,
        .heap_bytes = 8 << 20,
        .inspect = c->check,
        .compile = c->compile,
    };
    struct ws_follow follow[WS_MAX_GPUS_CONFIGURED] = {0};
    uint32_t n = 0;
    int r = 0;
    keep_code(c, gpus);
    for (; !r && n < gpus->n; n++) {
        devices[n] = gpus->real[n];
        if (c->follows && !devices[n] && c->profiles && *c->profiles) {
            r = ws_follow_read(&follow[n], c->profiles, gpus->specs[n]->name, d);
            options.followed = follow[n].v;
            options.n_followed = (uint32_t)follow[n].n;
            ws_log(WS_INFO, "gpus: gpu=%u name=%s follows %zu measured kernels", n,
                   gpus->specs[n]->name, follow[n].n);
        }
        if (!r && !devices[n])
            r = ws_device_open_soft(&devices[n], gpus->specs[n], n, &options, d);
    }
    if (r < 0 && !d->n)
        ws_diags_add(d, gpus->specs[n - 1]->name, 0, 0, "cannot be opened: %s", strerror(-r));
    if (!r)
        r = ws_loop_run(c, devices, n, &o->loop);
    for (uint32_t i = 0; i < n; i++) {
        if (!gpus->real[i])
            ws_device_close(devices[i]);
        ws_follow_deinit(&follow[i]);
    }
    return r;
}

/* Messages of up to 4 MiB come and go. If each had a mapping of its own, half of the time of a busy
 * daemon would go into making pages. Larger blocks (images) go back to the system when they are
 * freed. The end of the heap does not: after many small things of a client have been freed, the
 * last of them could give back 100 MiB at once, which keeps the loop for more than 10 ms. What is
 * freed there is used again, and how much there can be is on the users' accounts. */
static void keep_freed_memory(void)
{
    enum { NEVER = -1, OWN_MAPPING_BYTES = 8 << 20 };
    (void)mallopt(M_MMAP_THRESHOLD, OWN_MAPPING_BYTES);
    (void)mallopt(M_TRIM_THRESHOLD, NEVER);
}

/* The kernel's table of a process's descriptors grows when they are more than it has room for. In a
 * process with threads that takes some 10 ms, in which nobody would be served; so it grows now. */
static void make_room_for_descriptors(uint64_t limit)
{
    enum { MOST = 65536 }; /* half a MiB of the kernel's memory */
    int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, (int)WS_MIN(limit, (uint64_t)MOST) - 1);
    if (fd >= 0)
        close(fd);
}

static void prepare_process(void)
{
    keep_freed_memory();
    sigset_t set;
    struct rlimit files;
    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set,
                NULL); /* before any thread: all inherit it, and the loop reads a signalfd */
    if (!getrlimit(RLIMIT_NOFILE, &files)) {
        files.rlim_cur = files.rlim_max; /* two descriptors for each client */
        (void)setrlimit(RLIMIT_NOFILE, &files);
        make_room_for_descriptors(files.rlim_max);
    }
}

int main(int argc, char **argv)
{
    struct options o;
    struct ws_config config;
    struct ws_catalog catalog = WS_CATALOG_NULL;
    struct ws_diags diags = WS_DIAGS_NULL;
    struct gpus gpus = {0};
    int status = parse_options(argc, argv, &o);
    if (status >= 0)
        return status;
    ws_log_set_output(2, "wattshared");
    ws_log_set_limit(LOG_LINES_PER_S);
    if (ws_journal_is(2) && ws_journal_open(WS_JOURNAL_SOCKET))
        ws_log(WS_WARN, "main: cannot reach " WS_JOURNAL_SOCKET "; log lines carry no fields");
    if (ws_config_init(&config)) {
        fputs("wattshared: out of memory\n", stderr);
        return 1;
    }
    int r = load_config(&config, &o, &diags);
    if (!r)
        r = load_catalog(&config, &catalog, &diags);
    if (!r) {
        ws_log_set_level(config.log_level);
        prepare_process(); /* before real GPUs are opened: that starts threads */
        r = find_gpus(&config, &catalog, &gpus, &diags);
    }
    if (!r)
        r = ws_config_check_tasks(&config, gpus.specs, gpus.n, &diags);
    status = r ? EXIT_FAILED : 0;
    if (!r && o.check)
        warn_of_tasks(&config);
    if (!r && !o.check) {
        o.loop.reload = reload;
        o.loop.reload_arg = &(struct reloading){&config, &o};
        r = serve(&config, &gpus, &o, &diags);
        status = r ? EXIT_FAILED : 0;
        if (r < 0)
            ws_log(WS_ERROR, "main: ended: %s", strerror(-r));
    }
    ws_real_close();
    print_diags(&diags);
    ws_catalog_deinit(&catalog);
    ws_config_deinit(&config);
    ws_compiled_end(status);
    return status;
}
