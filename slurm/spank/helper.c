// SPDX-License-Identifier: Apache-2.0
/* The plugin is loaded into Slurm's processes, so it does nothing there that could hold them up or
 * leave a thread behind: speaking with the daemon is another process's work. */
#include "slurm/spank/helper.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <fcntl.h>

enum { TIMEOUT_MS = 10000 };

static int spawn(char *const *argv, int out, pid_t *ret)
{
    static char path[] = "PATH=/usr/sbin:/usr/bin:/sbin:/bin";
    char *environment[] = {path, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, out, STDERR_FILENO);
    posix_spawnattr_init(&attr);
    /* Slurm's processes have signals blocked that must end this one. */
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &all);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    int r = posix_spawn(ret, argv[0], &files, &attr, argv, environment);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attr);
    return r;
}

static long long now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

/* Reads to the end. Return: false: it takes too long. */
static bool read_all(int fd, char *out, size_t size, size_t *ret_n)
{
    long long until = now_ms() + TIMEOUT_MS;
    char more[256];
    *ret_n = 0;
    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        long long left = until - now_ms();
        if (left <= 0 || poll(&p, 1, (int)left) == 0)
            return false;
        bool full = *ret_n + 1 >= size;
        ssize_t n = read(fd, full ? more : out + *ret_n, full ? sizeof(more) : size - 1 - *ret_n);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return true;
        *ret_n += full ? 0 : (size_t)n;
    }
}

int ws_helper_run(char *const *argv, char *out, size_t size, size_t *ret_n)
{
    int fds[2], status = -1;
    pid_t pid;
    *ret_n = 0;
    out[0] = 0;
    if (pipe2(fds, O_CLOEXEC))
        return -1;
    int r = spawn(argv, fds[1], &pid);
    close(fds[1]);
    if (r) {
        close(fds[0]);
        return -1;
    }
    if (!read_all(fds[0], out, size, ret_n))
        kill(pid, SIGKILL);
    out[*ret_n] = 0;
    close(fds[0]);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
