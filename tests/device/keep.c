// SPDX-License-Identifier: Apache-2.0
/* Tests device memory that outlives its process (device/cuda/keep.h). A process makes memory of all
 * kinds, writes it, and is killed. It fails if another process cannot adopt the memory from its
 * descriptors, does not find what was written, or cannot go on working with it.
 *
 * Usage: keep KIND [DRIVER NVML], as tests/device/conformance. Exit status 77: the GPU cannot
 * export memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/macros.h"
#include "device/cuda/keep.h"
#include "tests/device/suite.h"

#define GRANULE (UINT64_C(2) << 20)
enum { MAX_KEPT = 32, SKIP = 77 };

static void check(bool ok, const char *text)
{
    if (!ok) {
        fprintf(stderr, "keep: %s\n", text);
        exit(1);
    }
}

/* What there is: at two clients' addresses. */
static const struct spot {
    uint64_t at, bytes;
} spots[] = {
    {65536, 4096},                       /* three in one granule … */
    {65536 + 8192, 512},                 /* … */
    {GRANULE - 300 * 1024, 600 * 1024},  /* … and in the next one */
    {4 * GRANULE, 4 * GRANULE},          /* whole */
    {16 * GRANULE, 2 * GRANULE + 12800}, /* whole, and a rest */
};
enum { N_SPOTS = WS_ARRAY_SIZE(spots), SHARED = 0 };
#define BASE   SUITE_VA(0)
#define SECOND SUITE_VA(1) /* where the other client sees the shared one's granule */
#define FREED  (BASE + 64 * GRANULE)

static uint8_t content(int spot, uint64_t i)
{
    return (uint8_t)((i >> 12) * 31 + i * 7 + (uint64_t)spot * 13 + 1);
}

/* ---- from one process to the other ---- */

struct message {
    enum { MADE, GONE, READY, NOT_HERE } what;
    struct ws_cuda_kept kept;
};

static void send_message(int to, struct message m, int fd)
{
    struct iovec v = {&m, sizeof(m)};
    union {
        char buf[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } c = {{0}};
    struct msghdr h = {.msg_iov = &v, .msg_iovlen = 1};
    if (fd >= 0) {
        h.msg_control = c.buf;
        h.msg_controllen = sizeof(c.buf);
        struct cmsghdr *one = CMSG_FIRSTHDR(&h);
        one->cmsg_level = SOL_SOCKET;
        one->cmsg_type = SCM_RIGHTS;
        one->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(one), &fd, sizeof(fd));
    }
    check(sendmsg(to, &h, 0) == (ssize_t)sizeof(m), "a message can't be sent");
}

static struct message receive(int from, int *ret_fd)
{
    struct message m;
    struct iovec v = {&m, sizeof(m)};
    char buf[CMSG_SPACE(sizeof(int))];
    struct msghdr h = {
        .msg_iov = &v, .msg_iovlen = 1, .msg_control = buf, .msg_controllen = sizeof(buf)};
    *ret_fd = -1;
    check(recvmsg(from, &h, MSG_CMSG_CLOEXEC) == (ssize_t)sizeof(m), "the first process ended");
    struct cmsghdr *one = CMSG_FIRSTHDR(&h);
    if (one && one->cmsg_type == SCM_RIGHTS)
        memcpy(ret_fd, CMSG_DATA(one), sizeof(*ret_fd));
    return m;
}

/* ---- the process that makes it ---- */

static void on_made(void *arg, const struct ws_cuda_kept *k, int fd)
{
    check(fd >= 0, "a piece has no descriptor");
    send_message(*(int *)arg, (struct message){MADE, *k}, fd);
    close(fd);
}

static void on_gone(void *arg, const struct ws_cuda_kept *k)
{
    send_message(*(int *)arg, (struct message){GONE, *k}, -1);
}

static void put(struct suite *s, int c, int spot, uint64_t va)
{
    uint8_t *p = malloc(spots[spot].bytes);
    for (uint64_t i = 0; i < spots[spot].bytes; i++)
        p[i] = content(spot, i);
    suite_put(s, c, va, p, spots[spot].bytes);
    free(p);
}

static struct suite open_device(void)
{
    struct suite s = {0};
    struct ws_diags diags = WS_DIAGS_NULL;
    check(!suite_open(&s.device, &diags), "the device can't be opened");
    for (int c = 0; c < SUITE_CLIENTS; c++)
        check(!ws_space_new(&s.space[c]), "no space");
    ws_diags_deinit(&diags);
    return s;
}

static int map(struct suite *s, int c, uint64_t va, uint64_t bytes, struct ws_memory *m)
{
    return ws_space_map_memory(s->space[c], va, bytes, m, 0, WS_ACCESS_ALL, WS_ACCESS_ALL);
}

static void first_process(int to)
{
    struct suite s = open_device();
    struct ws_memory *m;
    uint64_t granule, offset;
    if (!ws_device_cuda_keep(s.device, &(struct ws_cuda_keep){on_made, on_gone, &to})) {
        send_message(to, (struct message){.what = NOT_HERE}, -1);
        exit(0);
    }
    for (int k = 0; k < N_SPOTS; k++) {
        check(!ws_device_memory_new(s.device, spots[k].bytes, &m), "no memory");
        check(!map(&s, 0, BASE + spots[k].at, spots[k].bytes, m), "memory can't be mapped");
        put(&s, 0, k, BASE + spots[k].at);
        if (k == SHARED) {
            ws_memory_place(m, &granule, &offset);
            check(granule == GRANULE && offset == spots[k].at, "not its place");
            check(!map(&s, 1, SECOND + offset, spots[k].bytes, m), "no second place");
        }
        ws_memory_unref(m);
    }
    check(!ws_device_mem_alloc(s.device, s.space[0], FREED, 3 * GRANULE + 512), "no memory");
    check(!ws_space_unmap(s.space[0], FREED), "memory can't be freed");
    send_message(to, (struct message){.what = READY}, -1);
    for (;;)
        pause();
}

/* ---- the one that goes on ---- */

static struct {
    struct ws_cuda_kept kept;
    int fd;
} pieces[MAX_KEPT];
static int n_pieces, n_gone;

static void forget(void *arg, const struct ws_cuda_kept *k)
{
    int i = 0;
    while (i < n_pieces && (pieces[i].kept.id != k->id || pieces[i].kept.va != k->va))
        i++;
    check(i < n_pieces, "something is gone that was never made");
    close(pieces[i].fd);
    pieces[i] = pieces[--n_pieces];
    n_gone++;
}

static void told(void *arg, const struct ws_cuda_kept *k, int fd)
{
    check(fd >= 0 && n_pieces < MAX_KEPT, "no descriptor, or too many");
    pieces[n_pieces].kept = *k;
    pieces[n_pieces++].fd = fd;
}

static int n_descriptors(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (d && readdir(d))
        n++;
    closedir(d);
    return n;
}

static void expect(struct suite *s, int c, int spot, uint64_t va)
{
    uint8_t *p = calloc(1, spots[spot].bytes);
    suite_get(s, c, p, va, spots[spot].bytes);
    for (uint64_t i = 0; i < spots[spot].bytes; i++)
        check(p[i] == content(spot, i), "memory is not as it was left");
    free(p);
}

static int whole_of(uint64_t bytes)
{
    int i = 0;
    while (i < n_pieces && (pieces[i].kept.va || pieces[i].kept.bytes != bytes))
        i++;
    check(i < n_pieces, "the whole granules of a memory were not told");
    return i;
}

static struct ws_memory *adopt_memory(struct suite *s, int spot)
{
    struct ws_memory *m;
    uint64_t whole = spots[spot].bytes & ~(GRANULE - 1);
    int i = whole ? whole_of(whole) : -1;
    check(!ws_cuda_adopt_memory(s->device, spots[spot].bytes, whole ? &pieces[i].kept : NULL,
                                whole ? pieces[i].fd : -1, &m),
          "memory can't be adopted");
    check(ws_cuda_adopt_memory(s->device, spots[spot].bytes + GRANULE,
                               whole ? &pieces[i].kept : NULL, 0, &m) == -EINVAL,
          "a size that does not fit");
    return m;
}

static void second_process(void)
{
    struct suite s = open_device();
    struct ws_memory *m, *lost;
    int n_before = n_pieces;
    check(ws_device_cuda_keep(s.device, &(struct ws_cuda_keep){told, forget, NULL}), "can't keep");
    for (int i = 0; i < n_before; i++)
        if (pieces[i].kept.va)
            check(!ws_cuda_adopt_granule(s.device, &pieces[i].kept, pieces[i].fd),
                  "a granule can't be adopted");
    /* What has its part in no granule that was adopted can't be mapped: it would be somebody's
     * else. */
    check(!ws_cuda_adopt_memory(s.device, 4096, NULL, -1, &lost), "no memory");
    check(map(&s, 0, FREED, 4096, lost) == -EINVAL, "memory from nowhere");
    ws_memory_unref(lost);
    for (int k = 0; k < N_SPOTS; k++) {
        m = adopt_memory(&s, k);
        check(!map(&s, 0, BASE + spots[k].at, spots[k].bytes, m), "memory is not where it was");
        if (k == SHARED)
            check(!map(&s, 1, SECOND + spots[k].at, spots[k].bytes, m), "no second place");
        ws_memory_unref(m);
    }
    ws_cuda_adopt_end(s.device);
    for (int k = 0; k < N_SPOTS; k++)
        expect(&s, 0, k, BASE + spots[k].at);
    /* the same memory at both places */
    uint8_t b = 0xee, got = 0, zero[512] = {0}, fresh[512];
    suite_put(&s, 0, BASE + spots[SHARED].at + 7, &b, 1);
    suite_get(&s, 1, &got, SECOND + spots[SHARED].at + 7, 1);
    check(got == b, "the second place is other memory");
    /* new memory in an adopted granule, and elsewhere */
    for (int k = 0; k < 2; k++) {
        uint64_t va = k ? FREED : BASE + 65536 + 65536;
        check(!ws_device_mem_alloc(s.device, s.space[0], va, 512), "no new memory");
        suite_get(&s, 0, fresh, va, 512);
        check(!memcmp(zero, fresh, 512), "new memory is not zero");
    }
    check(n_pieces == n_before + 1, "the new granule was not told");
    for (int c = 0; c < SUITE_CLIENTS; c++)
        ws_space_free(s.space[c]);
    check(n_pieces == 0, "pieces are left");
    ws_device_close(s.device);
}

int main(int argc, char **argv)
{
    int pair[2], fd, status;
    if (!suite_target_parse(argc, argv)) {
        fprintf(stderr, "usage: keep KIND [DRIVER NVML]\n");
        return 2;
    }
    int n = n_descriptors();
    check(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), "no socket");
    pid_t child = fork(); /* before anything of the driver is there */
    check(child >= 0, "no process");
    if (!child) {
        close(pair[0]);
        first_process(pair[1]);
    }
    close(pair[1]);
    struct message m;
    while ((m = receive(pair[0], &fd)).what != READY && m.what != NOT_HERE) {
        if (m.what == GONE)
            forget(NULL, &m.kept);
        else
            told(NULL, &m.kept, fd);
    }
    kill(child, SIGKILL);
    check(waitpid(child, &status, 0) == child, "no child");
    close(pair[0]);
    if (m.what == NOT_HERE) {
        fprintf(stderr, "the GPU can't export memory\n");
        return SKIP;
    }
    check(n_gone == 2 && n_pieces > N_SPOTS - 1, "what was freed was not told");
    second_process();
    uint32_t (*violations)(const char **) = NULL;
    void *p = suite_mock("ws_mock_violations");
    memcpy(&violations, &p, sizeof(p));
    const char *first = "";
    check(!violations || !violations(&first), first);
    check(suite_target.cuda && (!suite_target.mock || n_descriptors() == n),
          "descriptors are left");
    printf("keep: adopted\n");
    return 0;
}
