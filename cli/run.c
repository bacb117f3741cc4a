// SPDX-License-Identifier: Apache-2.0
/* wattshare run: starts a program with libwattshare.so before it.
 *
 * With a shared daemon we become the program (exec). With --private we stay its parent: signals go on to it, its status is
 * ours, and the daemon we started ends after it. */
#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "cli/cli.h"
#include "cli/elf_kind.h"
#include "cli/private.h"

struct run_options {
    const char *task, *gpus, *socket;
    bool is_private;
    char **argv; /* the program's */
};

static int parse(int argc, char **argv, struct run_options *o)
{
    static const struct option options[] = {{"task", required_argument, NULL, 't'},
                                            {"private", no_argument, NULL, 'p'},
                                            {"gpus", required_argument, NULL, 'g'},
                                            {"socket", required_argument, NULL, 's'},
                                            {0}};
    const char *env = getenv("WATTSHARE_PRIVATE");
    *o = (struct run_options){.is_private = env && !strcmp(env, "1")};
    for (int c; (c = getopt_long(argc, argv, "+", options, NULL)) != -1;) {
        switch (c) {
        case 't':
            o->task = optarg;
            break;
        case 'p':
            o->is_private = true;
            break;
        case 'g':
            o->gpus = optarg;
            break;
        case 's':
            o->socket = optarg;
            break;
        default:
            return WS_EXIT_USAGE;
        }
    }
    if (optind >= argc) {
        ws_cli_error("run needs a program: wattshare run [--task NAME] [--private] -- PROG ARGS…");
        return WS_EXIT_USAGE;
    }
    if (o->gpus && !o->is_private) {
        ws_cli_error("--gpus goes with --private; a shared daemon's GPUs stand in wattshared.conf");
        return WS_EXIT_USAGE;
    }
    if (o->socket && o->is_private) {
        ws_cli_error(
            "--socket names a shared daemon and --private starts one: give only one of them");
        return WS_EXIT_USAGE;
    }
    o->argv = argv + optind;
    return 0;
}

/* The file that execvp() would run, in @path; false if there is none. */
static bool find_program(const char *name, char path[PATH_MAX])
{
    const char *dirs = getenv("PATH");
    if (strchr(name, '/')) {
        snprintf(path, PATH_MAX, "%s", name);
        return !access(path, F_OK);
    }
    for (const char *d = dirs ? dirs : "/usr/bin:/bin"; d;
         d = strchr(d, ':') ? strchr(d, ':') + 1 : NULL) {
        int n = (int)strcspn(d, ":");
        if (snprintf(path, PATH_MAX, "%.*s/%s", n, n ? d : ".", name) < PATH_MAX &&
            !access(path, X_OK))
            return true;
    }
    return false;
}

/* Says why preloading cannot work, if so. */
static int check_program(const char *name)
{
    char path[PATH_MAX];
    const char *why = NULL;
    if (!find_program(name, path)) {
        ws_cli_error("program '%s' not found", name);
        return WS_EXIT_NOT_FOUND;
    }
    switch (ws_elf_kind(path)) {
    case WS_ELF_STATIC:
        why = "is linked statically, so no library can be preloaded: link it dynamically (without "
              "-static)";
        break;
    case WS_ELF_SETUID:
        why = "is setuid, setgid or has file capabilities, so the linker ignores LD_PRELOAD: run a "
              "copy without these";
        break;
    case WS_ELF_FOREIGN:
        why = "is not a 64-bit x86 program";
        break;
    case WS_ELF_OTHER:
    case WS_ELF_DYNAMIC:
        break;
    }
    if (why)
        ws_cli_error("'%s' %s", path, why);
    return why ? WS_EXIT_CANNOT_RUN : 0;
}

#ifdef __SANITIZE_ADDRESS__
enum { RUNTIME_FIRST = 1 }; /* the sanitizer's runtime must stand before a library built with it */
#else
enum { RUNTIME_FIRST = 0 };
#endif

/* Puts our library before what LD_PRELOAD holds, once. */
static int set_preload(const char *lib)
{
    const char *old = getenv("LD_PRELOAD");
    char *rest = ws_strdup(old ? old : ""), *value = ws_strdup(lib), *save = NULL;
    for (char *p = rest ? strtok_r(rest, ": ", &save) : NULL; p && value;
         p = strtok_r(NULL, ": ", &save)) {
        char *longer = NULL;
        bool first = RUNTIME_FIRST && strstr(p, "/libasan");
        if (!strcmp(p, lib))
            continue;
        if (asprintf(&longer, "%s:%s", first ? p : value, first ? value : p) < 0)
            longer = NULL;
        free(value);
        value = longer;
    }
    int r = rest && value ? setenv("LD_PRELOAD", value, 1) : -1;
    free(rest);
    free(value);
    return r;
}

/* Puts first the folder where our library has the driver's names: for programs that look for the driver's file themselves
 * (ctypes.util.find_library), or whose dlopen() isn't ours (RTLD_DEEPBIND). It is the same file, so it isn't loaded twice. */
static int set_library_path(const char *lib)
{
    const char *old = getenv("LD_LIBRARY_PATH");
    const char *slash = strrchr(lib, '/');
    int dir = slash ? (int)(slash - lib) : 0;
    char *value = NULL;
    if (!slash || (old && strstr(old, "/wattshare-driver")))
        return 0;
    if (asprintf(&value, "%.*s/wattshare-driver%s%s", dir, lib, old && *old ? ":" : "",
                 old ? old : "") < 0)
        return -1;
    int r = setenv("LD_LIBRARY_PATH", value, 1);
    free(value);
    return r;
}

static int set_environment(const struct run_options *o, const char *endpoint)
{
    char *lib =
        ws_cli_find_part("WATTSHARE_LIB", "frontend/libwattshare.so", WSLIBDIR "/libwattshare.so");
    int r = -1;
    if (lib)
        r = set_preload(lib) || set_library_path(lib) || setenv(WS_ENV_SOCKET, endpoint, 1) ||
            (o->task && setenv(WS_ENV_TASK, o->task, 1));
    free(lib);
    return r ? WS_EXIT_CANNOT_RUN : 0;
}

static int exec_failed(const char *name)
{
    int e = errno;
    ws_cli_error("cannot run '%s': %s", name, strerror(e));
    return e == ENOENT ? WS_EXIT_NOT_FOUND : WS_EXIT_CANNOT_RUN;
}

static int run_shared(const struct run_options *o)
{
    const char *endpoint = ws_cli_endpoint(o->socket);
    Ws__ServerMessage *m = NULL;
    int r = ws_cli_ask_status(endpoint, 2000, &m);
    if (r) {
        ws_cli_error("no answer from a daemon at %s (%s); start one (systemctl start wattshared), "
                     "or let this command have "
                     "its own: wattshare run --private -- %s",
                     endpoint, strerror(-r), o->argv[0]);
        return WS_EXIT_UNAVAILABLE;
    }
    ws__server_message__free_unpacked(m, NULL);
    r = set_environment(o, endpoint);
    if (r)
        return r;
    execvp(o->argv[0], o->argv);
    return exec_failed(o->argv[0]);
}

static volatile sig_atomic_t program_pid;

/* What the kernel sends (^C in the terminal) the program, in the same process group, has got itself. */
static void forward(int sig, siginfo_t *info, void *context)
{
    if (program_pid > 0 && info->si_code <= 0)
        kill((pid_t)program_pid, sig);
}

static int run_private(const struct run_options *o)
{
    static const int forwarded[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
    struct ws_private p;
    struct sigaction sa = {.sa_sigaction = forward, .sa_flags = SA_SIGINFO};
    int status = 0, r;
    if (ws_private_start(&p, o->gpus ? o->gpus : "rtx3070"))
        return WS_EXIT_UNAVAILABLE;
    r = set_environment(o, p.endpoint);
    if (!r) {
        pid_t self = getpid(), pid = fork();
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG,
                  SIGTERM); /* killed ourselves, we leave no program without its daemon */
            if (getppid() != self)
                _exit(WS_EXIT_CANNOT_RUN);
            execvp(o->argv[0], o->argv);
            _exit(exec_failed(o->argv[0]));
        }
        program_pid = pid;
        for (size_t i = 0; i < WS_ARRAY_SIZE(forwarded); i++)
            sigaction(forwarded[i], &sa, NULL);
        while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
        program_pid = 0;
        if (pid < 0)
            r = exec_failed(o->argv[0]);
        else
            r = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
    ws_private_stop(&p);
    return r;
}

int ws_cli_run(int argc, char **argv)
{
    struct run_options o;
    int r = parse(argc, argv, &o);
    if (!r)
        r = check_program(o.argv[0]);
    if (r)
        return r;
    return o.is_private ? run_private(&o) : run_shared(&o);
}
