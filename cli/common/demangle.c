// SPDX-License-Identifier: Apache-2.0
/* The C++ library knows how names are made. It is in memory, since libzmq needs it; if it is not
 * after all, names stay as they are.
 *
 * Names are chosen by clients, and one of 200 characters can stand for more text than there is
 * memory: each part of it may be made of two of the part before. So a process of its own makes the
 * text, which has little time, and what it made is kept. Where many names take too long, no more
 * are tried. */
#include "config.h"

#include "cli/common/demangle.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/table.h"
#include "base/clock.h"
#include "cli/common/text.h"

enum { TEXT_BYTES = 512, KEPT_MAX = 4096, NAME_MAX_BYTES = 4096, MOST_MS = 300, BAD_MAX = 8 };

typedef char *(*demangle_fn)(const char *, char *, size_t *, int *);

struct read_name {
    UT_hash_handle hh;
    char text[TEXT_BYTES];
    char name[];
};

static _Noreturn void be_demangler(demangle_fn function, const char *name, int out)
{
    const struct rlimit memory = {64 << 20, 64 << 20};
    int status;
    setrlimit(RLIMIT_DATA, &memory);
    const char *text = function(name, NULL, NULL, &status);
    size_t n = text ? strnlen(text, TEXT_BYTES - 1) : 0;
    _exit(text && write(out, text, n) == (ssize_t)n ? 0 : 1);
}

/* Return: 0 with @text; 1: it is no such name; -1: it took too long, or there is no process. */
static int make_text(demangle_fn function, const char *name, char text[TEXT_BYTES])
{
    int pipes[2], status = -1;
    ssize_t n = -1;
    if (pipe2(pipes, O_CLOEXEC))
        return -1;
    pid_t pid = fork();
    if (!pid)
        be_demangler(function, name, pipes[1]);
    close(pipes[1]);
    uint64_t end_ns = ws_clock_ns() + MOST_MS * WS_NS_PER_MS;
    struct pollfd p = {.fd = pipes[0], .events = POLLIN};
    int came = 0;
    while (pid > 0 && (came = poll(&p, 1, ws_timeout_until(end_ns))) < 0 && ws_clock_ns() < end_ns)
        ; /* a signal */
    if (came == 1)
        n = read(pipes[0], text, TEXT_BYTES - 1);
    else if (pid > 0)
        kill(pid, SIGKILL);
    close(pipes[0]);
    if (pid > 0)
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
    text[n > 0 ? n : 0] = 0;
    return n > 0 && !status ? 0 : came == 1 ? 1 : -1;
}

static const struct read_name *find(demangle_fn function, const char *name)
{
    static struct read_name *all;
    static unsigned n_bad;
    struct read_name *k;
    size_t n = strlen(name);
    HASH_FIND(hh, all, name, n, k);
    if (k || n > NAME_MAX_BYTES || HASH_COUNT(all) >= KEPT_MAX || n_bad >= BAD_MAX)
        return k;
    k = ws_alloc(sizeof(*k) + n + 1);
    if (!k)
        return NULL;
    memcpy(k->name, name, n + 1);
    n_bad += make_text(function, name, k->text) < 0;
    HASH_ADD_KEYPTR(hh, all, k->name, n, k);
    return k;
}

const char *ws_demangle(const char *name, char *buf, size_t size)
{
    static demangle_fn function;
    const struct read_name *k = NULL;
    if (!function)
        *(void **)&function = dlsym(RTLD_DEFAULT, "__cxa_demangle");
    if (function && !strncmp(name, "_Z", 2))
        k = find(function, name);
    return ws_cli_clean(k && k->text[0] ? k->text : name, buf, size);
}
