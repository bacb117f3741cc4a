// SPDX-License-Identifier: Apache-2.0
/* The driver's file. JAX looks whether /dev/nvidiactl is there before it tries CUDA, and runs on
 * the processor where it is not. NVIDIA's kernel module makes that file; where there is none, what
 * is told of it is what is told of /dev/null. Nothing opens the file: all calls of the driver come
 * to this library.
 *
 * The older names are what programs call that were built with a libc before 2.33. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/macros.h"

static int ask(const char *path, void *ret)
{
    long r = syscall(SYS_stat, path, ret);
    if (r && errno == ENOENT && !strcmp(path, "/dev/nvidiactl"))
        r = syscall(SYS_stat, "/dev/null", ret);
    return (int)r;
}

WS_EXPORT int stat(const char *restrict path, struct stat *restrict ret)
{
    return ask(path, ret);
}

WS_EXPORT int stat64(const char *restrict path, struct stat64 *restrict ret)
{
    return ask(path, ret);
}

int __xstat(int version, const char *path, struct stat *ret);
WS_EXPORT int __xstat(int version, const char *path, struct stat *ret)
{
    return ask(path, ret);
}

int __xstat64(int version, const char *path, struct stat64 *ret);
WS_EXPORT int __xstat64(int version, const char *path, struct stat64 *ret)
{
    return ask(path, ret);
}
