// SPDX-License-Identifier: Apache-2.0
/* device/soft/jit/store.c - the folder in which object files are kept.
 *
 * A file's name is its key in hexadecimal digits. It begins with struct file_head, and the object
 * follows. Files are written under another name and then renamed, so that nobody reads half of one.
 * When a file is used it gets the time of now: so its time says which one goes first.
 *
 * Several processes of one user may share a folder. None keeps in memory what is in it: whoever has
 * added a file looks through the folder. That takes a microsecond for each file, and compiling what
 * was added took some ten thousand. */
#include "device/soft/jit/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sha256.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"

enum {
    NAME_DIGITS = 2 * WS_JIT_KEY_BYTES,
    MAX_OBJECT = 16 << 20,
    BLOCK = 4096,     /* of the file system: what a file takes is a multiple */
    LEFT_BEHIND = 60, /* seconds after which a half-written file is nobody's */
};

struct file_head {
    char magic[8];
    uint8_t key[WS_JIT_KEY_BYTES];
    uint64_t bytes;                       /* of the object */
    uint8_t digest[SHA256_DIGEST_LENGTH]; /* of all above, and the object */
};
static const char magic[8] = "wsobj 1";

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int folder_fd = -1; /* this and below: under the lock */
static uint64_t room;
static struct ws_jit_store_counts counts;

static void name_of(const uint8_t *key, char name[NAME_DIGITS + 1])
{
    for (int k = 0; k < WS_JIT_KEY_BYTES; k++)
        snprintf(name + 2 * (size_t)k, 3, "%02x", key[k]);
}

static void digest_of(const struct file_head *h, const void *object, uint8_t *ret)
{
    SHA2_CTX sha;
    SHA256Init(&sha);
    SHA256Update(&sha, (const uint8_t *)h, offsetof(struct file_head, digest));
    SHA256Update(&sha, object, h->bytes);
    SHA256Final(ret, &sha);
}

static bool is_ours_alone(const struct stat *st)
{
    return st->st_uid == geteuid() && !(st->st_mode & (S_IRWXG | S_IRWXO));
}

/* ---- room ---- */
struct kept_file {
    char name[NAME_DIGITS + 1];
    struct timespec used;
    uint64_t bytes;
};

static int by_time(const void *a, const void *b)
{
    const struct timespec *x = &((const struct kept_file *)a)->used;
    const struct timespec *y = &((const struct kept_file *)b)->used;
    if (x->tv_sec != y->tv_sec)
        return x->tv_sec < y->tv_sec ? -1 : 1;
    return (x->tv_nsec > y->tv_nsec) - (x->tv_nsec < y->tv_nsec);
}

static bool is_old(const struct stat *st)
{
    return time(NULL) - st->st_mtime > LEFT_BEHIND;
}

static bool is_name(const char *s)
{
    return strlen(s) == NAME_DIGITS && strspn(s, "0123456789abcdef") == NAME_DIGITS;
}

/* Return: whether the file is one of ours, which counts. */
static bool look_at(const char *name, struct kept_file *ret)
{
    struct stat st;
    bool half = strncmp(name, "new-", 4) == 0;
    if ((!half && !is_name(name)) || fstatat(folder_fd, name, &st, AT_SYMLINK_NOFOLLOW) ||
        !S_ISREG(st.st_mode))
        return false;
    if (half && is_old(&st))
        unlinkat(folder_fd, name, 0);
    if (half)
        return false;
    memcpy(ret->name, name, NAME_DIGITS + 1);
    ret->used = st.st_mtim;
    ret->bytes = WS_ALIGN_UP((uint64_t)st.st_size, (uint64_t)BLOCK);
    return true;
}

/* Return: how many there are in *ret, which is the caller's; all that there is memory for. */
static size_t list(struct kept_file **ret, uint64_t *ret_bytes)
{
    int fd = openat(folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    size_t n = 0, cap = 0;
    if (!dir && fd >= 0)
        close(fd);
    *ret = NULL;
    *ret_bytes = 0;
    for (struct dirent *d; dir && (d = readdir(dir));) {
        if (ws_grow((void **)ret, &cap, n + 1, sizeof(**ret)))
            break;
        if (look_at(d->d_name, &(*ret)[n]))
            *ret_bytes += (*ret)[n++].bytes;
    }
    if (dir)
        closedir(dir);
    return n;
}

/* Makes the files fit into the room. Once they don't, an eighth is made free, so that this is
 * seldom needed. */
static void make_room(void)
{
    struct kept_file *all;
    uint64_t bytes, less = room - room / 8;
    size_t n = list(&all, &bytes);
    if (bytes > room)
        qsort(all, n, sizeof(*all), by_time);
    else
        n = 0;
    for (size_t k = 0; k < n && bytes > less; k++) {
        if (unlinkat(folder_fd, all[k].name, 0) == 0)
            counts.n_dropped++;
        bytes -= all[k].bytes;
    }
    free(all);
}

int ws_jit_store_open(const char *folder, uint64_t max_bytes)
{
    struct stat st;
    int fd = -1, r = 0;
    if (folder) {
        fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        r = fd < 0 || fstat(fd, &st) ? -errno : is_ours_alone(&st) ? 0 : -EPERM;
    }
    pthread_mutex_lock(&lock);
    if (folder_fd >= 0)
        close(folder_fd);
    folder_fd = r ? -1 : fd;
    room = max_bytes;
    counts = (struct ws_jit_store_counts){0};
    if (folder_fd >= 0)
        make_room();
    pthread_mutex_unlock(&lock);
    if (r && fd >= 0)
        close(fd);
    return r ? ws_raise(r) : 0;
}

bool ws_jit_store_is_open(void)
{
    pthread_mutex_lock(&lock);
    bool open = folder_fd >= 0;
    pthread_mutex_unlock(&lock);
    return open;
}

/* ---- reading ---- */
/* All of a file of that size, or nothing. */
static bool read_all(int fd, uint8_t *to, size_t bytes)
{
    size_t at = 0;
    while (at < bytes) {
        ssize_t n = read(fd, to + at, bytes - at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += (size_t)n;
    }
    return true;
}

/* Return: the object, malloc'ed, or NULL: the file is not as it was written. */
static void *read_object(int fd, const uint8_t *key, size_t *ret_bytes)
{
    struct stat st;
    struct file_head h;
    uint8_t digest[SHA256_DIGEST_LENGTH];
    if (fstat(fd, &st) || !S_ISREG(st.st_mode) || !is_ours_alone(&st) ||
        !read_all(fd, (uint8_t *)&h, sizeof(h)) || memcmp(h.magic, magic, sizeof(magic)) != 0 ||
        memcmp(h.key, key, sizeof(h.key)) != 0 || h.bytes > MAX_OBJECT ||
        (uint64_t)st.st_size != sizeof(h) + h.bytes)
        return NULL;
    void *object = ws_alloc(h.bytes ? h.bytes : 1);
    if (object && read_all(fd, object, h.bytes)) {
        digest_of(&h, object, digest);
        if (memcmp(digest, h.digest, sizeof(digest)) == 0) {
            *ret_bytes = h.bytes;
            return object;
        }
    }
    free(object);
    return NULL;
}

static bool get(const uint8_t *key, void **ret, size_t *ret_bytes)
{
    char name[NAME_DIGITS + 1];
    name_of(key, name);
    int fd = openat(folder_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) {
        counts.n_missed++;
        return false;
    }
    *ret = fd >= 0 ? read_object(fd, key, ret_bytes) : NULL;
    if (*ret) {
        (void)futimens(fd, NULL);
        counts.n_found++;
    } else {
        (void)unlinkat(folder_fd, name, 0);
        counts.n_damaged++;
    }
    if (fd >= 0)
        close(fd);
    return *ret != NULL;
}

bool ws_jit_store_get(const uint8_t *key, void **ret, size_t *ret_bytes)
{
    pthread_mutex_lock(&lock);
    bool found = folder_fd >= 0 && get(key, ret, ret_bytes);
    pthread_mutex_unlock(&lock);
    return found;
}

void ws_jit_store_remove(const uint8_t *key)
{
    char name[NAME_DIGITS + 1];
    name_of(key, name);
    pthread_mutex_lock(&lock);
    if (folder_fd >= 0) {
        (void)unlinkat(folder_fd, name, 0);
        counts.n_damaged++;
    }
    pthread_mutex_unlock(&lock);
}

/* ---- writing ---- */
static bool write_all(int fd, const void *from, size_t bytes)
{
    const uint8_t *at = from;
    while (bytes) {
        ssize_t n = write(fd, at, bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        bytes -= (size_t)n;
    }
    return true;
}

static void put(const uint8_t *key, const void *object, size_t bytes)
{
    struct file_head h = {.bytes = bytes};
    char name[NAME_DIGITS + 1], half[32];
    memcpy(h.magic, magic, sizeof(magic));
    memcpy(h.key, key, sizeof(h.key));
    digest_of(&h, object, h.digest);
    name_of(key, name);
    snprintf(half, sizeof(half), "new-%ld", (long)getpid());
    (void)unlinkat(folder_fd, half, 0); /* of a process that died, and had the same number */
    int fd = openat(folder_fd, half, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                    S_IRUSR | S_IWUSR);
    if (fd < 0)
        return;
    bool ok = write_all(fd, &h, sizeof(h)) && write_all(fd, object, bytes);
    ok = close(fd) == 0 && ok && renameat(folder_fd, half, folder_fd, name) == 0;
    if (!ok) {
        (void)unlinkat(folder_fd, half, 0);
        return;
    }
    counts.n_kept++;
    make_room();
}

void ws_jit_store_put(const uint8_t *key, const void *object, size_t bytes)
{
    pthread_mutex_lock(&lock);
    if (folder_fd >= 0 && bytes <= MAX_OBJECT && bytes <= room / 8)
        put(key, object, bytes);
    pthread_mutex_unlock(&lock);
}

struct ws_jit_store_counts ws_jit_store_counts(void)
{
    pthread_mutex_lock(&lock);
    struct ws_jit_store_counts c = counts;
    pthread_mutex_unlock(&lock);
    return c;
}
