// SPDX-License-Identifier: Apache-2.0
/* base/packet: packets with descriptors. A sender that is no friend may send more descriptors than
 * one; none of them may stay open in the receiver. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/packet.h"

enum { MAX_SENT_FDS = 12 };

struct pair {
    int sender, receiver;
};

static int setup(void **state)
{
    static struct pair p;
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
        return -1;
    p = (struct pair){fds[0], fds[1]};
    *state = &p;
    return 0;
}

static int teardown(void **state)
{
    struct pair *p = *state;
    if (p->sender >= 0)
        close(p->sender);
    if (p->receiver >= 0)
        close(p->receiver);
    return 0;
}

static int count_open(void)
{
    int n = 0;
    for (int fd = 0; fd < 1024; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

/* Sends "hi" with @n duplicates of descriptor 0, as ws_packet_send() never does for n > 1. */
static void send_fds(int socket, int n)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(MAX_SENT_FDS * sizeof(int))];
    } control = {0};
    int fds[MAX_SENT_FDS] = {0}; /* standard input, so often */
    struct iovec iov = {(char[]){"hi"}, 2};
    struct msghdr m = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = &control,
                       .msg_controllen = CMSG_SPACE((size_t)n * sizeof(int))};
    struct cmsghdr *h = CMSG_FIRSTHDR(&m);
    h->cmsg_level = SOL_SOCKET;
    h->cmsg_type = SCM_RIGHTS;
    h->cmsg_len = CMSG_LEN((size_t)n * sizeof(int));
    memcpy(CMSG_DATA(h), fds, (size_t)n * sizeof(int));
    assert_int_equal(sendmsg(socket, &m, 0), 2);
}

static void test_first_descriptor_is_kept_others_are_closed(void **state)
{
    struct pair *p = *state;
    for (int n = 1; n <= MAX_SENT_FDS; n++) {
        char packet[8];
        int fd = -1, before = count_open();
        send_fds(p->sender, n);
        assert_int_equal(ws_packet_recv(p->receiver, packet, sizeof(packet), &fd, 0), 2);
        assert_true(fd >= 0);
        assert_int_equal(count_open(), before + 1);
        close(fd);
    }
}

static void test_unwanted_descriptors_are_closed(void **state)
{
    struct pair *p = *state;
    char packet[8];
    int before = count_open();
    for (int n = 1; n <= MAX_SENT_FDS; n++) {
        send_fds(p->sender, n);
        assert_int_equal(ws_packet_recv(p->receiver, packet, sizeof(packet), NULL, 0), 2);
        assert_int_equal(count_open(), before);
    }
}

static void test_packet_that_is_too_long(void **state)
{
    struct pair *p = *state;
    char packet[1];
    int fd = 7, before = count_open();
    send_fds(p->sender, 2);
    assert_int_equal(ws_packet_recv(p->receiver, packet, sizeof(packet), &fd, 0), -EMSGSIZE);
    assert_int_equal(fd, -1);
    assert_int_equal(count_open(), before);
}

static void test_send_and_receive(void **state)
{
    struct pair *p = *state;
    char packet[8] = {0};
    int fd = 7;
    assert_int_equal(ws_packet_send(p->sender, "abc", 3, -1, 0), 0);
    assert_int_equal(ws_packet_recv(p->receiver, packet, sizeof(packet), &fd, 0), 3);
    assert_string_equal(packet, "abc");
    assert_int_equal(fd, -1);
    assert_int_equal(ws_packet_send(p->sender, "d", 1, 0, 0), 0);
    assert_int_equal(ws_packet_recv(p->receiver, packet, sizeof(packet), &fd, 0), 1);
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    close(fd);
    assert_int_equal(ws_packet_recv(p->receiver, packet, sizeof(packet), &fd, MSG_DONTWAIT),
                     -EAGAIN);
    assert_int_equal(shutdown(p->sender, SHUT_WR), 0);
    assert_int_equal(ws_packet_recv(p->receiver, packet, sizeof(packet), &fd, 0), 0);
}

/* A socket whose last close() would wait for ten minutes, for its other end does not read. */
static int lingering(int *ret_other)
{
    static const char bytes[64 << 10];
    const struct linger l = {.l_onoff = 1, .l_linger = 600};
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(at);
    int little = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &little, sizeof(little)), 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&at, n), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &n), 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l)), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, n), 0);
    *ret_other = accept(listener, NULL, NULL);
    assert_true(*ret_other >= 0);
    close(listener);
    assert_true(send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0);
    return fd;
}

/* Sends it with @n bytes, as the only one who has it. */
static void send_lingering(int socket, size_t n, int *ret_other)
{
    int fd = lingering(ret_other);
    assert_int_equal(ws_packet_send(socket, "hi", n, fd, 0), 0);
    close(fd);
}

/* If one of them waited, this would take ten minutes: SIGALRM ends it. */
static void test_nothing_lingers(void **state)
{
    struct pair *p = *state;
    char packet[8];
    int other[4], before, fd = -1;
    alarm(60);
    before = count_open();
    send_lingering(p->sender, 2, &other[0]);
    assert_int_equal(ws_packet_recv(p->receiver, packet, sizeof(packet), NULL, 0), 2);
    send_lingering(p->sender, 2, &other[1]);
    assert_int_equal(ws_packet_recv(p->receiver, packet, sizeof(packet), &fd, 0), 2);
    ws_packet_drop_fd(fd);
    send_lingering(p->sender, 0, &other[2]);
    assert_int_equal(ws_packet_send(p->sender, "", 0, -1, 0), 0); /* which is not the end */
    send_lingering(p->sender, 2, &other[3]);
    assert_int_equal(ws_packet_send(p->receiver, "unread", 6, -1, 0), 0); /* an error at the end */
    close(p->sender);
    ws_packet_discard(p->receiver);
    close(p->receiver);
    for (int i = 0; i < 4; i++)
        close(other[i]);
    assert_int_equal(count_open(), before - 2);
    p->sender = p->receiver = -1;
    alarm(0);
}

/* Before and after the kernel is told to let no descriptor in. */
static void test_bytes_bring_no_descriptor(void **state)
{
    int fds[2], other[2];
    char bytes[8];
    alarm(60);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    int before = count_open() + 1; /* other[0] */
    send_lingering(fds[0], 2, &other[0]);
    struct ws_packet_fds came;
    assert_int_equal(ws_packet_recv_bytes(fds[1], bytes, sizeof(bytes), 0, &came), 2);
    assert_int_equal(came.n, 1);
    ws_packet_drop_fd(came.v[0]);
    assert_int_equal(count_open(), before);
    assert_int_equal(ws_packet_send(fds[0], "a", 1, -1, 0), 0);
    send_lingering(fds[0], 2, &other[1]);
    ws_packet_let_fds_in(fds[1], false);
    int r = ws_packet_send(fds[0], "hi", 2, 0, 0);
    assert_true(!r || r == -EPERM); /* an older kernel lets it in */
    close(fds[0]);
    ws_packet_discard(fds[1]);
    close(fds[1]);
    close(other[0]);
    close(other[1]);
    alarm(0);
    (void)state;
}

/* What lies unread is seen without taking it, a packet without bytes too. */
static void test_unread(void **state)
{
    struct pair *p = *state;
    struct ws_packet_fds came;
    char bytes[8];
    int fds[2];
    assert_int_equal(ws_packet_send(p->sender, "", 0, 0, 0), 0);
    int before = count_open();
    assert_true(ws_packet_unread(p->receiver));
    assert_int_equal(count_open(), before);
    assert_int_equal(ws_packet_recv_all(p->receiver, bytes, sizeof(bytes), &came, 0), 0);
    assert_int_equal(came.n, 1);
    close(came.v[0]);
    assert_false(ws_packet_unread(p->receiver));
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    assert_int_equal(ws_packet_send(fds[0], "a", 1, -1, 0), 0);
    assert_true(ws_packet_unread(fds[1]));
    assert_int_equal(recv(fds[1], bytes, sizeof(bytes), 0), 1);
    assert_false(ws_packet_unread(fds[1]));
    close(fds[0]);
    close(fds[1]);
}

static void test_pipe_is_known(void **state)
{
    int fds[2];
    ino_t one, other, none;
    assert_int_equal(pipe(fds), 0);
    assert_true(ws_packet_is_pipe(fds[0], &one));
    assert_true(ws_packet_is_pipe(fds[1], &other));
    assert_true(one && one == other);
    close(fds[0]);
    close(fds[1]);
    int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_false(ws_packet_is_pipe(file, &none));
    assert_int_equal(none, 0);
    close(file);
    (void)state;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_first_descriptor_is_kept_others_are_closed, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_unwanted_descriptors_are_closed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_packet_that_is_too_long, setup, teardown),
        cmocka_unit_test_setup_teardown(test_send_and_receive, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nothing_lingers, setup, teardown),
        cmocka_unit_test(test_bytes_bring_no_descriptor),
        cmocka_unit_test_setup_teardown(test_unread, setup, teardown),
        cmocka_unit_test(test_pipe_is_known),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
