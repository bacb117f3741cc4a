// SPDX-License-Identifier: Apache-2.0
/* NVIDIA's ptxas as a program. XLA, and with it JAX, starts the ptxas that it finds beside its own
 * package, by its path, and loads what that makes. So a program that uses CUDA and starts a ptxas
 * gets the stand-in that lies beside this library (ptxas.sh). A compiler that starts ptxas, as nvcc
 * does, does not use CUDA itself and keeps the real one: its machine code goes into files.
 *
 * The functions may run in the child of a fork, where other threads' locks stay held for good. So
 * they take none, and the stand-in's path is made before. */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/macros.h"
#include "frontend/compilers/compilers.h"
#include "frontend/session/session.h"

static char stand_in[PATH_MAX];

void ws_compiler_begin(void)
{
    Dl_info self;
    const char *slash = dladdr(stand_in, &self) ? strrchr(self.dli_fname, '/') : NULL;
    if (slash && snprintf(stand_in, sizeof(stand_in), "%.*s/wattshare-ptxas",
                          (int)(slash - self.dli_fname), self.dli_fname) >= PATH_MAX)
        stand_in[0] = '\0';
}

static const char *choose(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    const char *name = slash ? slash + 1 : path;
    bool ours = name && !strcmp(name, "ptxas") && ws_session_used() && !access(stand_in, X_OK);
    return ours ? stand_in : path;
}

WS_EXPORT int execve(const char *path, char *const argv[], char *const envp[])
{
    return (int)syscall(SYS_execve, choose(path), argv, envp);
}

WS_EXPORT int execv(const char *path, char *const argv[])
{
    return (int)syscall(SYS_execve, choose(path), argv, environ);
}

typedef int spawn_fn(pid_t *, const char *, const posix_spawn_file_actions_t *,
                     const posix_spawnattr_t *, char *const[], char *const[]);

static spawn_fn *real(const char *name)
{
    void *(*find)(void *, const char *);
    *(void **)&find = ws_dlsym();
    spawn_fn *fn = NULL;
    if (find)
        *(void **)&fn = find(RTLD_NEXT, name);
    return fn;
}

#define SPAWN(name)                                                                                \
    WS_EXPORT int name(pid_t *restrict pid, const char *restrict path,                             \
                       const posix_spawn_file_actions_t *actions,                                  \
                       const posix_spawnattr_t *restrict attr, char *const argv[restrict],         \
                       char *const envp[restrict])                                                 \
    {                                                                                              \
        spawn_fn *fn = real(#name);                                                                \
        return fn ? fn(pid, choose(path), actions, attr, argv, envp) : ENOSYS;                     \
    }
SPAWN(posix_spawn)
SPAWN(posix_spawnp)
