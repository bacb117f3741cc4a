/* SPDX-License-Identifier: Apache-2.0 */
/* tests/attack/slowfile.c - files whose close() waits. Each attacker mounts a file system of its
 * own (FUSE), which every user may do in a user namespace, and serves it itself. It answers
 * whatever comes until one of its files is open, and from then on never again: the close() of such
 * a file, by whoever has it, waits until the attacker ends. */
#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/packet.h"
#include "protocol/handoff.h"
#include "tests/attack/attack.h"

enum { REQUEST_BYTES = 1 << 17, FILE_NODE = 2 };

struct answer {
    struct fuse_out_header head;
    union {
        struct fuse_init_out init;
        struct fuse_entry_out entry;
        struct fuse_attr_out attr;
        struct fuse_open_out open;
    };
};

static void put(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)!write(fd, text, strlen(text));
        close(fd);
    }
}

/* In namespaces of its own, a process may mount. */
static bool enter_namespaces(void)
{
    char map[32], group[32];
    snprintf(map, sizeof(map), "0 %u 1", (unsigned)getuid());
    snprintf(group, sizeof(group), "0 %u 1", (unsigned)getgid());
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
        return false;
    put("/proc/self/setgroups", "deny");
    put("/proc/self/uid_map", map);
    put("/proc/self/gid_map", group);
    return true;
}

static struct fuse_attr attr_of(uint64_t node)
{
    return (struct fuse_attr){.ino = node,
                              .mode = node == FILE_NODE ? S_IFREG | 0666 : S_IFDIR | 0777,
                              .nlink = 1,
                              .size = node == FILE_NODE ? 4096 : 0};
}

/* Return: bytes of the answer's part after its head; -1: there is no answer. */
static long answer(const struct fuse_in_header *q, struct answer *a)
{
    switch (q->opcode) {
    case FUSE_INIT:
        a->init = (struct fuse_init_out){
            .major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION, .max_write = 4096};
        return sizeof(a->init);
    case FUSE_LOOKUP:
        a->entry = (struct fuse_entry_out){.nodeid = FILE_NODE,
                                           .entry_valid = 3600,
                                           .attr_valid = 3600,
                                           .attr = attr_of(FILE_NODE)};
        return sizeof(a->entry);
    case FUSE_GETATTR:
        a->attr = (struct fuse_attr_out){.attr_valid = 3600, .attr = attr_of(q->nodeid)};
        return sizeof(a->attr);
    case FUSE_OPEN:
        a->open = (struct fuse_open_out){.fh = 1};
        return sizeof(a->open);
    default:
        return -1;
    }
}

static _Noreturn void serve(int fuse)
{
    static char request[REQUEST_BYTES];
    for (;;) {
        struct answer a = {0};
        const struct fuse_in_header *q = (const struct fuse_in_header *)request;
        if (read(fuse, request, sizeof(request)) < (ssize_t)sizeof(*q))
            _exit(0);
        long n = answer(q, &a);
        if (n < 0)
            continue;
        a.head = (struct fuse_out_header){.len = (uint32_t)(sizeof(a.head) + (size_t)n),
                                          .unique = q->unique};
        (void)!write(fuse, &a, a.head.len);
    }
}

/* Return: a file whose close() waits, or -1. */
static int slow_file(const struct target *t, unsigned copy)
{
    char dir[96], path[112], options[96];
    snprintf(dir, sizeof(dir), "%s/slow%u", t->dir, copy);
    snprintf(path, sizeof(path), "%s/fuse", t->dir);
    if (mkdir(dir, 0777) || !enter_namespaces())
        return -1;
    int fuse = open(path, O_RDWR | O_CLOEXEC); /* not before, or the kernel refuses the mount */
    snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", fuse);
    if (fuse < 0 || mount("slow", dir, "fuse", MS_NOSUID | MS_NODEV, options))
        return -1;
    snprintf(path, sizeof(path), "%s/file", dir);
    pid_t parent = getpid(), pid = fork();
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent)
            serve(fuse);
        _exit(0);
    }
    close(fuse);
    return open(path, O_RDWR | O_CLOEXEC);
}

/* Sends it in each way that a descriptor gets to the daemon, again and again. */
static const char *slow_files(const struct target *t, unsigned copy)
{
    struct ws_handoff_request q = {.kind = copy % 2 ? WS_HANDOFF_IMPORT : WS_HANDOFF_SHARED,
                                   .bytes = 4096};
    int fd = slow_file(t, copy);
    while (fd >= 0 && attack_goes_on(t)) {
        struct raw r;
        if (raw_open(&r, t->sock, NULL) || raw_open_side(&r, t->side))
            continue;
        memcpy(q.token, r.token, sizeof(q.token));
        for (int i = 0; i < 8; i++)
            (void)!ws_packet_send(r.side, &q, sizeof(q), fd, MSG_DONTWAIT);
        attack_sleep_ms(20);
        raw_close(&r);
    }
    return NULL;
}

const struct attack attacks_slowfile[] = {
    {"3", "slow-files", "files of an own file system, which never answers close()", slow_files,
     .copies = 2},
    {0}};
