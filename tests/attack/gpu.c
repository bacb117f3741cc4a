/* SPDX-License-Identifier: Apache-2.0 */
/* tests/attack/gpu.c - attacks on a real GPU, which is a process of its own beside the daemon. The
 * driver is the mock: rows + and 9. */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/macros.h"
#include "protocol/handoff.h"
#include "tests/attack/attack.h"

/* ---- the worker ---- */

static pid_t parent_of(pid_t pid)
{
    char path[64], text[512] = "";
    int parent = 0;
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "r");
    if (!f)
        return 0;
    size_t n = fread(text, 1, sizeof(text) - 1, f);
    fclose(f);
    text[n] = 0;
    const char *end = strrchr(text, ')');
    return end && sscanf(end, ") %*c %d", &parent) == 1 ? parent : 0;
}

/* The daemon's child; 0: it has none now. */
static pid_t worker_of(const struct target *t)
{
    pid_t found = 0;
    DIR *d = opendir("/proc");
    for (const struct dirent *e; d && !found && (e = readdir(d));) {
        pid_t pid = atoi(e->d_name);
        if (pid && parent_of(pid) == t->pid)
            found = pid;
    }
    if (d)
        closedir(d);
    return found;
}

/* ---- killed workers ---- */

#define HEAD "// %u\n.version 7.0\n.target sm_50\n.address_size 64\n"

static void begin_load(struct raw *r, unsigned i)
{
    enum { KERNELS = 300 };
    char text[KERNELS * 48 + 128];
    size_t n = (size_t)snprintf(text, sizeof(text), HEAD, i);
    for (unsigned k = 0; k < KERNELS; k++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, ".visible .entry k%u(){ret;}\n", k);
    raw_load_begin(r, i + 1, text, n);
}

/* Memory that others can be given, and a descriptor of it, again and again. */
static void begin_export(struct raw *r, unsigned i)
{
    Ws__MemCreate create = WS__MEM_CREATE__INIT;
    create.object = 100 + i;
    create.bytes = 2 << 20;
    raw_call(r, WS__COMMAND__C_MEM_CREATE, &create, NULL);
    struct ws_handoff_request q = {.kind = WS_HANDOFF_EXPORT, .bytes = create.object};
    memcpy(q.token, r->token, sizeof(q.token));
    for (int k = 0; k < 4; k++)
        (void)!send(r->side, &q, sizeof(q), MSG_DONTWAIT);
}

static void begin_allocations(struct raw *r, unsigned i)
{
    Ws__MemAlloc alloc = WS__MEM_ALLOC__INIT;
    for (unsigned k = 0; k < 50; k++) {
        alloc.bytes = 4096 + (uint64_t)((i + k) % 7) * 300000;
        raw_put(r, WS__COMMAND__C_MEM_ALLOC, &alloc);
    }
    raw_send(r);
}

static void begin_nothing(struct raw *r, unsigned i)
{
    (void)r;
    (void)i;
}

/* Kills the worker as often as it may be restarted within a minute, each time while the daemon
 * wants something else of it. */
static const char *kill_workers(const struct target *t, unsigned copy)
{
    static void (*const begin[])(struct raw *, unsigned) = {
        begin_load, begin_export, begin_allocations, begin_nothing, begin_load};
    (void)copy;
    for (unsigned i = 0; i < WS_ARRAY_SIZE(begin); i++) {
        struct raw r;
        Ws__Sync s = WS__SYNC__INIT;
        pid_t pid = worker_of(t), next = pid;
        if (!pid || raw_open(&r, t->sock, NULL) || raw_open_side(&r, t->side))
            return "the harness has no worker to kill, or is no client";
        begin[i](&r, i);
        usleep(i * 700);
        kill(pid, SIGKILL);
        for (int k = 0; k < 5000 && (!next || next == pid); k++) {
            usleep(1000);
            next = worker_of(t);
        }
        if (!next || next == pid)
            return "there is no other worker";
        s.what_case = WS__SYNC__WHAT_DEVICE;
        if (raw_call(&r, WS__COMMAND__C_SYNC, &s, NULL) < 0)
            return "a client whose worker was killed gets no answer";
        raw_close(&r);
        attack_sleep_ms(200);
    }
    return NULL;
}

/* ---- a kernel without an end, without a policy ---- */

/* Its blocks take all the room that there is on the GPU. */
static const char *endless(const struct target *t, unsigned copy)
{
    Ws__Launch l = raw_launch(1, 0);
    char text[256];
    struct raw r;
    int n = snprintf(text, sizeof(text), HEAD ".visible .entry k()\n{\nL:\nbra L;\n}\n", copy);
    l.grid_x = 4096;
    l.block_x = 1024;
    for (; attack_goes_on(t) && attack_open(&r, t); raw_close(&r)) {
        Ws__Sync s = WS__SYNC__INIT;
        s.what_case = WS__SYNC__WHAT_DEVICE;
        if (raw_load(&r, 1, text, (size_t)n))
            continue;
        raw_put(&r, WS__COMMAND__C_LAUNCH, &l);
        uint64_t seq = raw_put(&r, WS__COMMAND__C_SYNC, &s);
        int e = -1;
        if (!raw_send(&r))
            while (attack_goes_on(t) && e < 0)
                e = raw_wait(&r, seq, NULL);
        raw_close(&r);
        return e < 0                            ? "its kernel was not ended"
               : e == WS__ERROR__LAUNCH_TIMEOUT ? NULL
                                                : "it was not told that its kernel took too long";
    }
    return NULL;
}

const struct attack attacks_gpu[] = {
    {"+", "worker-kills", "SIGKILL of a real GPU's workers beside 12 programs", kill_workers,
     .owner = true, .ms = 3000, .max_call_ms = 5000, .n_programs = 12, .mock = true,
     .may_be_told = true},
    {"9", "endless-real", "a kernel that never ends on a real GPU, no policy", endless, .ms = 5000,
     .max_call_ms = 5000, .mock = true, .may_be_told = true, .conf = "max_kernel_ms = 500\n"},
    {0}};
