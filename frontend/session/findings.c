// SPDX-License-Identifier: Apache-2.0
/* The daemon says which address a kernel touched; this process knows which allocation that is in or
 * near, who made it, and who freed it. What was freed is kept until its addresses are used again,
 * so that a use after free names both. Each finding is also a line of the file that WATTSHARE_CHECK
 * names, which `wattshare check` counts: a program may have several processes, or be killed. */
#include "frontend/session/findings.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/macros.h"
#include "frontend/config.h"
#include "frontend/session/callers.h"

#define PREFIX "wattshare check: "
enum { FREED_MAX = 4096 }; /* allocations that are remembered after they were freed */
static const char INDENT[] = "        ";

struct allocation {
    uint64_t address, bytes;
    struct ws_callers made, freed;
    bool live;
};
static struct allocation *all; /* oldest first; this and below: under the lock */
static size_t n_all, cap_all, n_freed;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

bool ws_findings_wanted(void)
{
    return ws_frontend_config()->check[0] != 0;
}

/* ---- allocations ---- */

static void forget(size_t i)
{
    n_freed -= !all[i].live;
    memmove(all + i, all + i + 1, (n_all - i - 1) * sizeof(*all));
    n_all--;
}

void ws_findings_allocated(uint64_t address, uint64_t bytes)
{
    struct allocation a = {.address = address, .bytes = bytes, .live = true};
    if (!ws_findings_wanted())
        return;
    ws_callers_take(&a.made);
    pthread_mutex_lock(&lock);
    for (size_t i = n_all; i-- > 0;) /* freed memory whose addresses are used again */
        if (!all[i].live && all[i].address < address + bytes &&
            address < all[i].address + all[i].bytes)
            forget(i);
    if (!ws_grow((void **)&all, &cap_all, n_all + 1, sizeof(*all)))
        all[n_all++] = a;
    pthread_mutex_unlock(&lock);
}

void ws_findings_freed(uint64_t address)
{
    struct ws_callers who;
    if (!ws_findings_wanted())
        return;
    ws_callers_take(&who);
    pthread_mutex_lock(&lock);
    for (size_t i = n_all; i-- > 0;)
        if (all[i].live && all[i].address == address) {
            all[i].live = false;
            all[i].freed = who;
            n_freed++;
            break;
        }
    for (size_t i = 0; n_freed > FREED_MAX && i < n_all; i++)
        if (!all[i].live)
            forget(i--);
    pthread_mutex_unlock(&lock);
}

void ws_findings_reset(void)
{
    pthread_mutex_lock(&lock);
    n_all = n_freed = 0;
    pthread_mutex_unlock(&lock);
}

/* ---- words ---- */

/* A line for `wattshare check` to count. */
static void count(const char *what)
{
    char line[32];
    int fd = open(ws_frontend_config()->check, O_WRONLY | O_APPEND | O_CLOEXEC);
    int n = snprintf(line, sizeof(line), "%s\n", what);
    if (fd < 0)
        return;
    if (write(fd, line, (size_t)n) != n)
        fprintf(stderr, PREFIX "%s was not counted\n", what);
    close(fd);
}

static bool inside(const struct allocation *a, uint64_t address)
{
    return address - a->address < a->bytes;
}

static bool before(const struct allocation *a, uint64_t address)
{
    return address < a->address;
}

/* From the allocation's end, or to its begin; inside: from its begin. */
static uint64_t distance(const struct allocation *a, uint64_t address)
{
    if (before(a, address))
        return a->address - address;
    return address - a->address - (inside(a, address) ? 0 : a->bytes);
}

/* The allocation that @address is in, also a freed one; else the nearest live one. NULL: there is
 * none. Lock held. */
static const struct allocation *nearest(uint64_t address)
{
    const struct allocation *best = NULL;
    for (size_t i = n_all; i-- > 0;) {
        const struct allocation *a = &all[i];
        if (inside(a, address))
            return a;
        if (a->live && (!best || distance(a, address) < distance(best, address)))
            best = a;
    }
    return best;
}

/* Lock held. */
static void print_place(uint64_t address)
{
    const struct allocation *a = nearest(address);
    if (!a) {
        fprintf(stderr, "    address 0x%" PRIx64 " is in none of the program's allocations\n",
                address);
        return;
    }
    fprintf(stderr,
            "    address 0x%" PRIx64 ", %" PRIu64 " bytes %s the %s of %" PRIu64
            " bytes at 0x%" PRIx64 "\n",
            address, distance(a, address),
            inside(a, address)   ? "into"
            : before(a, address) ? "before"
                                 : "behind",
            a->live ? "allocation" : "freed allocation", a->bytes, a->address);
    fprintf(stderr, "    allocated by\n");
    ws_callers_print(&a->made, stderr, INDENT);
    if (a->live)
        return;
    fprintf(stderr, "    freed by\n");
    ws_callers_print(&a->freed, stderr, INDENT);
}

void ws_findings_print(const char *text, size_t n)
{
    char *copy = strndup(text, n), *line = NULL, *rest = copy, kernel[512];
    uint64_t address = 0;
    if (!copy)
        return;
    char *head = strsep(&rest, "\n"), *name = strchr(head, ' ');
    address = strtoull(head, NULL, 16);
    line = strsep(&rest, "\n");
    fprintf(stderr, PREFIX "%s in kernel %s\n%s", line ? line : "",
            ws_callers_demangle(name ? name + 1 : "?", kernel, sizeof(kernel)), rest ? rest : "");
    pthread_mutex_lock(&lock);
    if (address)
        print_place(address);
    pthread_mutex_unlock(&lock);
    free(copy);
    count("error");
}

void ws_findings_end(bool lost)
{
    if (!ws_findings_wanted() || !ws_frontend_config()->check_leaks)
        return;
    if (lost) {
        fprintf(stderr, PREFIX "leaks are not looked for, since an error has ended the context\n");
        return;
    }
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < n_all; i++)
        if (all[i].live) {
            fprintf(stderr, PREFIX "leak of %" PRIu64 " bytes at 0x%" PRIx64 "\n    allocated by\n",
                    all[i].bytes, all[i].address);
            ws_callers_print(&all[i].made, stderr, INDENT);
            count("leak");
        }
    pthread_mutex_unlock(&lock);
}
