// SPDX-License-Identifier: Apache-2.0
#include "backend/process/paths.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"

char *ws_path_catalog(void)
{
    char exe[PATH_MAX], *path = NULL;
    ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
    exe[n > 0 ? n : 0] = 0;
    if (strncmp(exe, SBINDIR "/",
                sizeof(SBINDIR))) /* not installed: look from the build tree upwards */
        for (char *slash; (slash = strrchr(exe, '/'));) {
            *slash = 0;
            if (asprintf(&path, "%s/conf/gpu.d", exe) < 0)
                return NULL;
            if (!access(path, R_OK | X_OK))
                return path;
            free(path);
        }
    return strdup(SYSCONFDIR "/wattshare/gpu.d");
}

static int make_directory(const char *file)
{
    char dir[PATH_MAX];
    int n = snprintf(dir, sizeof(dir), "%s", file);
    char *slash = n > 0 && n < (int)sizeof(dir) ? strrchr(dir, '/') : NULL;
    if (!slash || slash == dir)
        return 0;
    *slash = 0;
    mode_t old = umask(0022);
    int r = mkdir(dir, 0755) && errno != EEXIST ? -errno : 0;
    umask(old);
    return r;
}

static void lock_name(const char *socket_path, char *buf, size_t size)
{
    snprintf(buf, size, "%s.lock", socket_path);
}

/* Locks the file of that name, not one that was unlinked meanwhile by the owner before. */
static int lock_file(const char *name, int *ret)
{
    for (;;) {
        struct stat held, named;
        int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
            return -errno;
        if (flock(fd, LOCK_EX | LOCK_NB)) {
            int r = errno == EWOULDBLOCK ? WS_PATH_E_SERVED : -errno;
            close(fd);
            return r;
        }
        if (!fstat(fd, &held) && !stat(name, &named) && held.st_ino == named.st_ino &&
            held.st_dev == named.st_dev) {
            *ret = fd;
            return 0;
        }
        close(fd);
    }
}

static bool somebody_listens(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(a.sun_path))
        return false;
    memcpy(a.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool yes = fd >= 0 && (!connect(fd, (struct sockaddr *)&a, sizeof(a)) || errno == EAGAIN ||
                           errno == EPROTOTYPE);
    if (fd >= 0)
        close(fd);
    return yes;
}

int ws_path_claim(const char *socket_path, int *ret_lock)
{
    char name[PATH_MAX];
    struct stat st;
    int lock = -1, r = make_directory(socket_path);
    if (r)
        return ws_raise(r);
    lock_name(socket_path, name, sizeof(name));
    r = lock_file(name, &lock);
    if (r)
        return r;
    if (somebody_listens(socket_path))
        r = WS_PATH_E_SERVED;
    else if (!lstat(socket_path, &st))
        r = !S_ISSOCK(st.st_mode) ? -EEXIST : unlink(socket_path) ? -errno : 0;
    if (r) {
        unlink(name);
        close(lock);
        return r;
    }
    *ret_lock = lock;
    return 0;
}

void ws_path_release(const char *socket_path, int lock)
{
    char name[PATH_MAX];
    lock_name(socket_path, name, sizeof(name));
    unlink(socket_path);
    unlink(name);
    close(lock);
}
