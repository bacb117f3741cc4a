// SPDX-License-Identifier: Apache-2.0
/* base/packet: packets with descriptors. A sender that is no friend may send more descriptors than
 * one; none of them may stay open in the receiver. */
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
    close(p->sender);
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

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_first_descriptor_is_kept_others_are_closed, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_unwanted_descriptors_are_closed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_packet_that_is_too_long, setup, teardown),
        cmocka_unit_test_setup_teardown(test_send_and_receive, setup, teardown),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
