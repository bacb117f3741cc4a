// SPDX-License-Identifier: Apache-2.0
/* A line of the log is "module: text key=value key=value: text" (base/log.h). From it come the
 * entry's fields: MESSAGE whole, WATTSHARE_MODULE, and one field for each key: pid becomes
 * CLIENT_PID, any other WATTSHARE_ and its name in capitals. So who logs need not know of the
 * journal. The first value of a key counts: our own numbers stand before what a client calls
 * itself.
 *
 * The format is documented ("Native Journal Protocol"): lines KEY=value; a value with a newline
 * in it is KEY, newline, its length in 8 bytes, little-endian, value, newline. */
#include "backend/process/journal.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"

enum { ENTRY_BYTES = 4096, KEYS_MAX = 16, KEY_BYTES = 32 };

static int journal_fd = -1;

bool ws_journal_is(int fd)
{
    const char *stream = getenv("JOURNAL_STREAM");
    unsigned long long device, inode;
    struct stat st;
    return stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 && !fstat(fd, &st) &&
           st.st_dev == device && st.st_ino == inode;
}

struct entry {
    char *buf;
    size_t n, size;
    bool full;
};

static void put(struct entry *e, const void *p, size_t n)
{
    if (e->full || n > e->size - e->n) {
        e->full = true;
        return;
    }
    memcpy(e->buf + e->n, p, n);
    e->n += n;
}

static void field(struct entry *e, const char *key, const char *value, size_t n)
{
    put(e, key, strlen(key));
    if (memchr(value, '\n', n)) {
        uint8_t length[8];
        for (int i = 0; i < 8; i++)
            length[i] = (uint8_t)((uint64_t)n >> 8 * i);
        put(e, "\n", 1);
        put(e, length, sizeof(length));
    } else {
        put(e, "=", 1);
    }
    put(e, value, n);
    put(e, "\n", 1);
}

/* The word's key in capitals, if it is key=value. Return: where the value begins, or NULL. */
static const char *word_key(const char *word, size_t n, char key[KEY_BYTES])
{
    static const char prefix[] = "WATTSHARE_";
    const char *eq = memchr(word, '=', n);
    size_t k = eq ? (size_t)(eq - word) : 0, at = sizeof(prefix) - 1;
    if (!k || k + sizeof(prefix) > KEY_BYTES)
        return NULL;
    memcpy(key, prefix, at);
    for (size_t i = 0; i < k; i++) {
        if (!islower((unsigned char)word[i]) && word[i] != '_' &&
            (!i || !isdigit((unsigned char)word[i])))
            return NULL;
        key[at++] = (char)toupper((unsigned char)word[i]);
    }
    key[at] = 0;
    if (!strcmp(key, "WATTSHARE_PID"))
        memcpy(key, "CLIENT_PID", sizeof "CLIENT_PID");
    return eq + 1;
}

static void word_fields(struct entry *e, const char *text, size_t n)
{
    char keys[KEYS_MAX][KEY_BYTES];
    int n_keys = 0;
    for (size_t at = 0; at < n && n_keys < KEYS_MAX;) {
        const char *word = text + at, *space = memchr(word, ' ', n - at);
        size_t length = space ? (size_t)(space - word) : n - at;
        const char *value = word_key(word, length, keys[n_keys]), *end = word + length;
        at += length + 1;
        bool seen = false;
        for (int i = 0; i < n_keys; i++)
            seen |= !strcmp(keys[i], keys[n_keys]);
        if (!value || seen)
            continue;
        while (end > value && (end[-1] == ':' || end[-1] == ','))
            end--;
        field(e, keys[n_keys++], value, (size_t)(end - value));
    }
}

size_t ws_journal_entry(enum ws_log_level level, const char *text, size_t n, char *buf, size_t size)
{
    static const char *const priorities[] = {"3", "4", "6", "7"};
    struct entry e = {buf, 0, size, false};
    const char *colon = memchr(text, ':', n), *space = memchr(text, ' ', n);
    field(&e, "MESSAGE", text, n);
    field(&e, "PRIORITY", priorities[level], 1);
    field(&e, "SYSLOG_IDENTIFIER", "wattshared", strlen("wattshared"));
    if (colon && (!space || colon < space))
        field(&e, "WATTSHARE_MODULE", text, (size_t)(colon - text));
    word_fields(&e, text, n);
    return e.full ? 0 : e.n;
}

static bool journal_write(enum ws_log_level level, const char *text, size_t n)
{
    char buf[ENTRY_BYTES];
    size_t bytes = ws_journal_entry(level, text, n, buf, sizeof(buf));
    return bytes && send(journal_fd, buf, bytes, MSG_NOSIGNAL) == (ssize_t)bytes;
}

int ws_journal_open(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(a.sun_path))
        return -ENAMETOOLONG;
    strcpy(a.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a))) {
        int r = -errno;
        if (fd >= 0)
            close(fd);
        return r;
    }
    ws_journal_close();
    journal_fd = fd;
    ws_log_set_writer(journal_write);
    return 0;
}

void ws_journal_close(void)
{
    ws_log_set_writer(NULL);
    if (journal_fd >= 0)
        close(journal_fd);
    journal_fd = -1;
}
