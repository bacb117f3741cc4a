/* SPDX-License-Identifier: Apache-2.0 */
/* Parsers of others are not made for such input: libconfuse's ends the process when read() fails,
 * and does not return from a few thousand bytes of zero. So they get a stream in memory, and text
 * only.
 *
 * What is no regular file is not even opened, because opening some devices has an effect. The name
 * may change its meaning between the look and the opening; therefore the opening does not wait, and
 * the descriptor is looked at again. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static int check(const struct stat *st)
{
    if (S_ISREG(st->st_mode) || (S_ISCHR(st->st_mode) && st->st_rdev == makedev(1, 3)))
        return 0;
    return S_ISDIR(st->st_mode) ? -EISDIR : -ENOTSUP;
}

/* Return: bytes written to @to, or negative errno. */
static ssize_t copy_all(int fd, FILE *to, size_t max)
{
    char block[4096];
    size_t n = 0;
    for (;;) {
        ssize_t got = read(fd, block, sizeof(block));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? -errno : (ssize_t)n;
        if ((size_t)got > max - n)
            return -EFBIG;
        if (memchr(block, 0, (size_t)got))
            return -EILSEQ;
        if (fwrite(block, 1, (size_t)got, to) != (size_t)got)
            return -ENOMEM;
        n += (size_t)got;
    }
}

/* The stream is as long as what was written to it, within @max bytes of memory that it owns. */
static int read_all(FILE **ret, int fd, size_t max)
{
    FILE *f = fmemopen(NULL, max + 1, "w+");
    if (!f)
        return -ENOMEM;
    ssize_t n = copy_all(fd, f, max);
    if (n < 0 || fflush(f)) {
        fclose(f);
        return n < 0 ? (int)n : -ENOMEM;
    }
    rewind(f);
    *ret = f;
    return 0;
}

int ws_file_open(FILE **ret, const char *path, size_t max, struct stat *ret_stat)
{
    struct stat st;
    if (stat(path, &st))
        return -errno;
    int r = check(&st);
    if (r)
        return r;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    r = fstat(fd, &st) ? -errno : check(&st);
    if (!r)
        r = read_all(ret, fd, max);
    close(fd);
    if (!r && ret_stat)
        *ret_stat = st;
    return r;
}

const char *ws_file_why(int error)
{
    switch (error) {
    case -EISDIR:
        return "it is a directory";
    case -ENOTSUP:
        return "it is no regular file";
    case -EILSEQ:
        return "it is no text, because it has bytes of zero";
    case -EFBIG:
        return "it is too large for a file of this kind";
    default:
        return strerror(-error);
    }
}
