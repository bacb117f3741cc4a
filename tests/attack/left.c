/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/attack/left.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WAIT_MS = 5000, STEP_MS = 50, UIDS_END = 62000 };

static bool __attribute__((format(printf, 3, 4)))
say(char *text, size_t size, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, size, format, ap);
    va_end(ap);
    return false;
}

unsigned left_descriptors(const struct daemon *d)
{
    char path[64];
    unsigned n = 0;
    snprintf(path, sizeof(path), "/proc/%d/fd", (int)d->target.pid);
    DIR *dir = opendir(path);
    for (const struct dirent *e; dir && (e = readdir(dir));)
        n += e->d_name[0] != '.';
    if (dir)
        closedir(dir);
    return n;
}

/* What others than root, who asks, are charged with. */
static bool nothing_charged(int fd, char *text, size_t size)
{
    Ws__ServerMessage *m = raw_status(fd);
    bool none = true;
    if (!m)
        return say(text, size, "the daemon does not tell its status");
    for (size_t i = 0; none && i < m->status->n_accounts; i++) {
        const Ws__AccountStatus *a = m->status->accounts[i];
        if (a->used && strcmp(a->account, "user 0"))
            none = say(text, size, "%s is still charged with %llu of %s", a->account,
                       (unsigned long long)a->used, a->resource);
    }
    ws__server_message__free_unpacked(m, NULL);
    return none;
}

static bool nothing_now(const struct daemon *d, int fd, unsigned n_descriptors, char *text,
                        size_t size)
{
    if (!nothing_charged(fd, text, size))
        return false;
    unsigned n = left_descriptors(d) - 1; /* our own connection's */
    return n <= n_descriptors ||
           say(text, size, "the daemon has %u descriptors, and had %u at first", n, n_descriptors);
}

bool left_nothing_inside(const struct daemon *d, unsigned n_descriptors, unsigned ms, char *text,
                         size_t size)
{
    bool none = false;
    int fd = raw_dial(d->target.sock);
    if (fd < 0 || raw_greet(fd, "", 0))
        say(text, size, "the daemon takes no connection when all have gone");
    else
        for (unsigned waited = 0; !none && waited < ms; waited += STEP_MS) {
            none = nothing_now(d, fd, n_descriptors, text, size);
            if (!none)
                attack_sleep_ms(STEP_MS);
        }
    if (fd >= 0)
        close(fd);
    return none;
}

/* The first entry of @dir that belongs to a user of ours and is a number, if @numbers. */
static bool nobodys(const char *dir, bool numbers, char *text, size_t size)
{
    struct stat st;
    char path[512];
    bool none = true;
    DIR *d = opendir(dir);
    for (const struct dirent *e; none && d && (e = readdir(d));) {
        snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
        if ((numbers && !atoi(e->d_name)) || stat(path, &st) || st.st_uid < UID_DAEMON ||
            st.st_uid >= (numbers ? UID_DAEMON + 1 : UIDS_END))
            continue;
        none = say(text, size, "%s of user %u is left", path, st.st_uid);
    }
    if (d)
        closedir(d);
    return none;
}

bool left_nothing_outside(char *text, size_t size)
{
    bool none = false;
    for (unsigned ms = 0; !none && ms < WAIT_MS; ms += STEP_MS) {
        none = nobodys("/proc", true, text, size) && nobodys("/dev/shm", false, text, size);
        if (!none)
            attack_sleep_ms(STEP_MS);
    }
    return none;
}
