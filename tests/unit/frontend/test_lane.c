// SPDX-License-Identifier: Apache-2.0
/* protocol/lane: what is sent two ways arrives in order, whatever the delays; lies are refused; a fork does not inherit it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "protocol/lane.h"
#include "protocol/side.h"

static void open_pair(struct ws_lane *client, struct ws_lane *daemon)
{
    int pair[2], fd = ws_packet_memfd("test", sizeof(struct ws_lane_memory));
    assert_true(fd >= 0);
    assert_int_equal(ws_lane_map(client, fd, true), 0);
    assert_int_equal(ws_lane_map(daemon, fd, false), 0);
    close(fd);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    client->bell = pair[0];
    daemon->bell = pair[1];
}

static void test_put_and_take(void **state)
{
    (void)state;
    struct ws_lane c, d;
    uint8_t big[WS_LANE_MESSAGE_BYTES + 1] = {1}, got[WS_LANE_MESSAGE_BYTES];
    open_pair(&c, &d);
    assert_int_equal(ws_lane_take(&d, got), -EAGAIN);
    assert_false(ws_lane_put(&c, big, sizeof big));
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < WS_LANE_SLOTS; i++) {
            big[WS_LANE_MESSAGE_BYTES - 1] = (uint8_t)(round + i);
            assert_true(ws_lane_put(&c, big, (size_t)(WS_LANE_MESSAGE_BYTES)));
        }
        assert_false(ws_lane_put(&c, big, 1));            /* full */
        assert_int_equal(ws_lane_take(&c, got), -EAGAIN); /* the other direction is empty */
        for (int i = 0; i < WS_LANE_SLOTS; i++) {
            assert_int_equal(ws_lane_take(&d, got), WS_LANE_MESSAGE_BYTES);
            assert_int_equal(got[WS_LANE_MESSAGE_BYTES - 1], (uint8_t)(round + i));
        }
        assert_int_equal(ws_lane_take(&d, got), -EAGAIN);
    }
    assert_true(ws_lane_put(&d, "", 0));
    assert_int_equal(ws_lane_take(&c, got), 0);
    ws_lane_end(&c);
    ws_lane_end(&d);
    assert_false(ws_lane_put(&c, big, 1)); /* no lane: the other way */
    assert_int_equal(ws_lane_take(&c, got), -EAGAIN);
}

static void test_lies(void **state)
{
    (void)state;
    struct ws_lane c, d;
    uint8_t got[WS_LANE_MESSAGE_BYTES];
    open_pair(&c, &d);
    struct ws_lane_slot *s = d.in;
    s->state = 77; /* no state there is */
    assert_int_equal(ws_lane_take(&d, got), -EAGAIN);
    s->state = WS_LANE_FULL;
    s->bytes = WS_LANE_MESSAGE_BYTES + 1;
    assert_int_equal(ws_lane_take(&d, got), -EPROTO);
    s->bytes = 3;
    s->after = UINT64_MAX; /* never due */
    assert_int_equal(ws_lane_take(&d, got), -EAGAIN);
    s->after = 0;
    assert_int_equal(ws_lane_take(&d, got), 3);
    ws_lane_end(&c);
    ws_lane_end(&d);
}

/* One direction of a conversation, the other way being a queue that delivers late. */
static void test_order_over_two_ways(void **state)
{
    (void)state;
    enum { N = 200000 };
    struct ws_lane c, d;
    static uint32_t queue[N];
    uint32_t head = 0, tail = 0, next = 0, by_lane = 0, got;
    open_pair(&c, &d);
    srand(3);
    for (uint32_t i = 0; next < N;) {
        int what = rand() % 4;
        if (what < 2 && i < N && tail - head < 6) { /* send */
            bool lane = rand() % 3 && ws_lane_put(&c, &i, sizeof i);
            if (!lane) {
                queue[tail++] = i;
                c.n_sent++;
            }
            by_lane += lane;
            i++;
        } else if (what == 2) { /* rung */
            while (ws_lane_take(&d, &got) == sizeof got)
                assert_int_equal(got, next++);
        } else if (head < tail) { /* the queue delivers: first what lies in the lane */
            uint32_t came = queue[head++];
            while (ws_lane_take(&d, &got) == sizeof got)
                assert_int_equal(got, next++);
            assert_int_equal(came, next++);
            d.n_received++;
        }
    }
    assert_true(by_lane > N / 10 && by_lane < N);
    ws_lane_end(&c);
    ws_lane_end(&d);
}

/* Two threads, sleeping by the rules: no ring is lost. */
enum { ROUNDS = 20000 };

static void wait_bell(struct ws_lane *l)
{
    char b[64];
    assert_true(recv(l->bell, b, sizeof b, 0) > 0); /* sleeps */
}

static void *echo(void *arg)
{
    struct ws_lane *d = arg;
    uint8_t m[WS_LANE_MESSAGE_BYTES];
    for (int i = 0; i < ROUNDS;) {
        ssize_t n = ws_lane_take(d, m);
        if (n < 0) {
            wait_bell(d);
            continue;
        }
        i++;
        while (!ws_lane_put(d, m, (size_t)n))
            sched_yield();
        if (atomic_load(&d->memory->client_waits))
            ws_lane_ring(d);
    }
    return NULL;
}

static void test_no_ring_is_lost(void **state)
{
    (void)state;
    struct ws_lane c, d;
    pthread_t t;
    uint8_t m[WS_LANE_MESSAGE_BYTES];
    open_pair(&c, &d);
    alarm(200); /* a lost ring would sleep for ever */
    pthread_create(&t, NULL, echo, &d);
    int sent = 0, got = 0;
    srand(9);
    while (got < ROUNDS) {
        for (int n = 1 + rand() % WS_LANE_SLOTS; n && sent < ROUNDS; n--) {
            memcpy(m, &sent, sizeof sent);
            if (!ws_lane_put(&c, m, sizeof sent + (size_t)(rand() % 100)))
                break;
            sent++;
            ws_lane_ring(&c);
        }
        for (;;) {
            ws_lane_wait(&c, true);
            ssize_t n = ws_lane_take(&c, m);
            if (n >= 0) {
                int i;
                memcpy(&i, m, sizeof i);
                assert_int_equal(i, got++);
            } else if (got < sent) {
                wait_bell(&c);
            } else {
                break;
            }
            ws_lane_wait(&c, false);
        }
    }
    alarm(0);
    pthread_join(t, NULL);
    ws_lane_end(&c);
    ws_lane_end(&d);
}

static void test_bell(void **state)
{
    (void)state;
    struct ws_lane c, d;
    open_pair(&c, &d);
    alarm(200);
    for (int i = 0; i < 100000; i++)
        ws_lane_ring(&c); /* nobody hears: must not block */
    assert_true(ws_lane_hear(&d));
    while (recv(d.bell, &(char[4096]){0}, 4096, MSG_DONTWAIT) > 0)
        ;
    assert_true(ws_lane_hear(&d)); /* silent, and there */
    ws_lane_end(&c);
    assert_false(ws_lane_hear(&d));
    ws_lane_ring(&d); /* no SIGPIPE */
    alarm(0);
    ws_lane_end(&d);
}

static void test_a_child_has_none(void **state)
{
    (void)state;
    struct ws_lane c, d;
    int status;
    open_pair(&c, &d);
    pid_t pid = fork();
    if (!pid) /* ENOMEM: not mapped */
        _exit(msync(c.memory, sizeof *c.memory, MS_ASYNC) == -1 && errno == ENOMEM ? 0 : 1);
    assert_true(waitpid(pid, &status, 0) == pid);
    assert_int_equal(status, 0);
    ws_lane_end(&c);
    ws_lane_end(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_put_and_take),
        cmocka_unit_test(test_lies),
        cmocka_unit_test(test_order_over_two_ways),
        cmocka_unit_test(test_no_ring_is_lost),
        cmocka_unit_test(test_bell),
        cmocka_unit_test(test_a_child_has_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
