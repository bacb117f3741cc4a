// SPDX-License-Identifier: Apache-2.0
/* Starts programs with libwattshare.so preloaded. Sets the environment, refuses programs that
 * cannot be preloaded, passes signals on to a child, and returns its status. */
#include "config.h"

#include "cli/common/program.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "cli/cli.h"
#include "cli/common/elf_kind.h"

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

int ws_program_check(const char *name)
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
enum { RUNTIME_FIRST = 1 }; /* the sanitizer's runtime must precede a library built with it */
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

/* Puts first the folder where our library has the driver's names: for programs that look for the
 * driver's file themselves (ctypes.util.find_library), or whose dlopen() isn't ours
 * (RTLD_DEEPBIND). It is the same file, so it isn't loaded twice. */
static int set_library_path(const char *lib, const char *folder)
{
    const char *old = getenv("LD_LIBRARY_PATH");
    const char *slash = strrchr(lib, '/');
    int dir = slash ? (int)(slash - lib) : 0;
    char *value = NULL;
    if (!slash || (old && strstr(old, folder)))
        return 0;
    if (asprintf(&value, "%.*s%s%s%s", dir, lib, folder, old && *old ? ":" : "", old ? old : "") <
        0)
        return -1;
    int r = setenv("LD_LIBRARY_PATH", value, 1);
    free(value);
    return r;
}

/* Adds a folder beside the library to PATH, in front or behind, once. */
static int add_to_path(const char *lib, const char *folder, bool front)
{
    char *value = NULL;
    const char *old = getenv("PATH"), *slash = strrchr(lib, '/');
    if (!slash || (old && strstr(old, folder)))
        return 0;
    if (!old || !*old)
        old = "/usr/bin:/bin";
    int n = (int)(slash - lib);
    int r = front ? asprintf(&value, "%.*s%s:%s", n, lib, folder, old)
                  : asprintf(&value, "%s:%.*s%s", old, n, lib, folder);
    if (r < 0)
        return -1;
    r = setenv("PATH", value, 1);
    free(value);
    return r;
}

/* Programs that call nvidia-smi, as CodeCarbon does, find ours where there is no other. */
static int set_path(const char *lib)
{
    char found[PATH_MAX];
    return find_program("nvidia-smi", found) ? 0 : add_to_path(lib, "/wattshare-driver", false);
}

/* *ret: the program at @name, in the library's folder, to be freed; NULL: it is not there. Return:
 * 0 or -1: no memory. */
static int find_stand_in(const char *lib, const char *name, char **ret)
{
    const char *slash = strrchr(lib, '/');
    *ret = NULL;
    if (slash && asprintf(ret, "%.*s%s", (int)(slash - lib), lib, name) < 0) {
        *ret = NULL;
        return -1;
    }
    if (*ret && access(*ret, X_OK)) {
        free(*ret);
        *ret = NULL;
    }
    return 0;
}

/* PyCUDA and CuPy call nvcc and load what that makes, so a stand-in comes before it
 * (frontend/compilers): in PATH, and as NVCC, which CuPy asks first. Many programs take the folder
 * two above nvcc for the toolkit's, so CUDA_PATH tells them where that is. Who says either already
 * keeps it. */
static int set_nvcc(const char *lib)
{
    static const char folder[] = "/wattshare-compilers";
    char found[PATH_MAX], *path;
    if (!find_program("nvcc", found) || strstr(found, folder))
        return 0;
    int r = find_stand_in(lib, "/wattshare-compilers/nvcc", &path);
    if (path)
        r = setenv("NVCC", path, 0) || setenv("CUDA_PATH", dirname(dirname(found)), 0) ||
            add_to_path(lib, folder, true);
    free(path);
    return r;
}

/* Triton calls ptxas and loads what that makes. The stand-in for it lies beside the library. Who
 * names a ptxas already keeps that one. */
static int set_ptxas(const char *lib)
{
    char *path;
    int r = find_stand_in(lib, "/wattshare-ptxas", &path);
    if (path)
        r = setenv("TRITON_PTXAS_PATH", path, 0) || setenv("TRITON_PTXAS_BLACKWELL_PATH", path, 0);
    free(path);
    return r;
}

/* JAX asks libcupti for its version before it tries CUDA, and that wants tables of NVIDIA's own
 * driver to say it. Only profiles of JAX need libcupti. */
static int set_jax(void)
{
    return setenv("JAX_SKIP_CUDA_CONSTRAINTS_CHECK", "1", 0);
}

/* PyTorch's compiler pads matrices if that is faster. To find out it fills some with random
 * numbers, by kernels that are machine code. */
static int set_inductor(void)
{
    return setenv("TORCHINDUCTOR_SHAPE_PADDING", "0", 0);
}

/* cuBLAS of ours, behind our library. WATTSHARE_BLAS="" leaves a program with NVIDIA's, which real
 * GPUs can run. */
static int set_blas(void)
{
    const char *chosen = getenv("WATTSHARE_BLAS");
    if (chosen && !*chosen)
        return 0;
    char *lib = ws_cli_find_part("WATTSHARE_BLAS", "frontend/libwattshare-blas.so",
                                 WSLIBDIR "/libwattshare-blas.so");
    int r = lib ? set_preload(lib) : -1;
    free(lib);
    return r;
}

int ws_program_environment(const char *endpoint, const char *task)
{
    char *lib =
        ws_cli_find_part("WATTSHARE_LIB", "frontend/libwattshare.so", WSLIBDIR "/libwattshare.so");
    int r = -1;
    if (lib)
        r = set_blas() || set_preload(lib) || set_library_path(lib, "/wattshare-driver") ||
            set_path(lib) || set_nvcc(lib) || set_ptxas(lib) || set_jax() || set_inductor() ||
            setenv(WS_ENV_SOCKET, endpoint, 1) || (task && setenv(WS_ENV_TASK, task, 1));
    free(lib);
    return r ? WS_EXIT_CANNOT_RUN : 0;
}

/* Finds the real driver's file with the dynamic linker, in a process where no library of wattshare
 * has its name. */
static void find_driver(void)
{
    struct link_map *map;
    void *h = getenv(WS_ENV_GATE_DRIVER) ? NULL : dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (h && !dlinfo(h, RTLD_DI_LINKMAP, &map) && map->l_name[0] == '/')
        setenv(WS_ENV_GATE_DRIVER, map->l_name,
               1); /* the library looks by itself where it is missing */
}

int ws_program_gate(const char *endpoint, const char *task)
{
    char *lib = ws_cli_find_part("WATTSHARE_GATE_LIB", "frontend/gate/libwattshare-gate.so",
                                 WSLIBDIR "/libwattshare-gate.so");
    int r = -1;
    find_driver();
    if (lib)
        r = set_preload(lib) || set_library_path(lib, "/wattshare-gate") ||
            setenv(WS_ENV_SOCKET, endpoint, 1) || (task && setenv(WS_ENV_TASK, task, 1));
    free(lib);
    return r ? WS_EXIT_CANNOT_RUN : 0;
}

int ws_program_exec_failed(const char *name)
{
    int e = errno;
    ws_cli_error("cannot run '%s': %s", name, strerror(e));
    return e == ENOENT ? WS_EXIT_NOT_FOUND : WS_EXIT_CANNOT_RUN;
}

static volatile sig_atomic_t program_pid;

/* What the kernel sends (^C in the terminal) the program, in the same process group, has got
 * itself. */
static void forward(int sig, siginfo_t *info, void *context)
{
    if (program_pid > 0 && info->si_code <= 0)
        kill((pid_t)program_pid, sig);
}

/* In the child. @out: what its standard output is; -1: ours. */
static _Noreturn void become(char **argv, pid_t parent, int out)
{
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* killed ourselves, we leave no program without its daemon */
    if (getppid() != parent || (out >= 0 && dup2(out, STDOUT_FILENO) < 0))
        _exit(WS_EXIT_CANNOT_RUN);
    execvp(argv[0], argv);
    _exit(ws_program_exec_failed(argv[0]));
}

int ws_program_run(char **argv, int out)
{
    static const int forwarded[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
    struct sigaction sa = {.sa_sigaction = forward, .sa_flags = SA_SIGINFO};
    pid_t self = getpid(), pid = fork();
    int status = 0;
    if (pid == 0)
        become(argv, self, out);
    if (pid < 0)
        return ws_program_exec_failed(argv[0]);
    program_pid = pid;
    for (size_t i = 0; i < WS_ARRAY_SIZE(forwarded); i++)
        sigaction(forwarded[i], &sa, NULL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    program_pid = 0;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
