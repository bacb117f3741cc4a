// SPDX-License-Identifier: Apache-2.0
/* protocol/ring: what is sent two ways arrives in order, whatever the delays; lies are refused; a
 * fork does not inherit it. */
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

#include "protocol/ring.h"
#include "protocol/handoff.h"

static void open_pair(struct ws_ring *client, struct ws_ring *daemon)
{
    int pair[2], fd = ws_packet_memfd("test", sizeof(struct ws_ring_memory));
    assert_true(fd >= 0);
    assert_int_equal(ws_ring_map(client, fd, true), 0);
    assert_int_equal(ws_ring_map(daemon, fd, false), 0);
    close(fd);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    client->doorbell = pair[0];
    daemon->doorbell = pair[1];
}

static void test_put_and_take(void **state)
{
    (void)state;
    struct ws_ring c, d;
    uint8_t big[WS_RING_MESSAGE_BYTES + 1] = {1}, got[WS_RING_MESSAGE_BYTES];
    open_pair(&c, &d);
    assert_int_equal(ws_ring_take(&d, got), -EAGAIN);
    assert_false(ws_ring_put(&c, big, sizeof(big)));
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < WS_RING_SLOTS; i++) {
            big[WS_RING_MESSAGE_BYTES - 1] = (uint8_t)(round + i);
            assert_true(ws_ring_put(&c, big, (size_t)(WS_RING_MESSAGE_BYTES)));
        }
        assert_false(ws_ring_put(&c, big, 1));            /* full */
        assert_int_equal(ws_ring_take(&c, got), -EAGAIN); /* the other direction is empty */
        for (int i = 0; i < WS_RING_SLOTS; i++) {
            assert_int_equal(ws_ring_take(&d, got), WS_RING_MESSAGE_BYTES);
            assert_int_equal(got[WS_RING_MESSAGE_BYTES - 1], (uint8_t)(round + i));
        }
        assert_int_equal(ws_ring_take(&d, got), -EAGAIN);
    }
    assert_true(ws_ring_put(&d, "", 0));
    assert_int_equal(ws_ring_take(&c, got), 0);
    ws_ring_end(&c);
    ws_ring_end(&d);
    assert_false(ws_ring_put(&c, big, 1)); /* no ring: the other way */
    assert_int_equal(ws_ring_take(&c, got), -EAGAIN);
}

static void test_lies(void **state)
{
    (void)state;
    struct ws_ring c, d;
    uint8_t got[WS_RING_MESSAGE_BYTES];
    open_pair(&c, &d);
    struct ws_ring_slot *s = d.in;
    s->state = 77; /* no state there is */
    assert_int_equal(ws_ring_take(&d, got), -EAGAIN);
    s->state = WS_RING_FULL;
    s->bytes = WS_RING_MESSAGE_BYTES + 1;
    assert_int_equal(ws_ring_take(&d, got), -EPROTO);
    s->bytes = 3;
    s->after = UINT64_MAX; /* never due */
    assert_int_equal(ws_ring_take(&d, got), -EAGAIN);
    s->after = 0;
    assert_int_equal(ws_ring_take(&d, got), 3);
    ws_ring_end(&c);
    ws_ring_end(&d);
}

/* One direction of a conversation, the other way being a queue that delivers late. */
static void test_order_over_two_ways(void **state)
{
    (void)state;
    enum { N = 200000 };
    struct ws_ring c, d;
    static uint32_t queue[N];
    uint32_t head = 0, tail = 0, next = 0, by_lane = 0, got;
    open_pair(&c, &d);
    srand(3);
    for (uint32_t i = 0; next < N;) {
        int what = rand() % 4;
        if (what < 2 && i < N && tail - head < 6) { /* send */
            bool ring = rand() % 3 && ws_ring_put(&c, &i, sizeof(i));
            if (!ring) {
                queue[tail++] = i;
                c.n_sent++;
            }
            by_lane += ring;
            i++;
        } else if (what == 2) { /* rung */
            while (ws_ring_take(&d, &got) == sizeof(got))
                assert_int_equal(got, next++);
        } else if (head < tail) { /* the queue delivers: first what lies in the ring */
            uint32_t came = queue[head++];
            while (ws_ring_take(&d, &got) == sizeof(got))
                assert_int_equal(got, next++);
            assert_int_equal(came, next++);
            d.n_received++;
        }
    }
    assert_true(by_lane > N / 10 && by_lane < N);
    ws_ring_end(&c);
    ws_ring_end(&d);
}

/* Two threads, sleeping by the rules: no ring is lost. */
enum { ROUNDS = 20000 };

static void wait_bell(struct ws_ring *l)
{
    char b[64];
    assert_true(recv(l->doorbell, b, sizeof(b), 0) > 0); /* sleeps */
}

static void *echo(void *arg)
{
    struct ws_ring *d = arg;
    uint8_t m[WS_RING_MESSAGE_BYTES];
    for (int i = 0; i < ROUNDS;) {
        ssize_t n = ws_ring_take(d, m);
        if (n < 0) {
            wait_bell(d);
            continue;
        }
        i++;
        while (!ws_ring_put(d, m, (size_t)n))
            sched_yield();
        if (atomic_load(&d->memory->client_waits))
            ws_ring_signal(d);
    }
    return NULL;
}

static void test_no_ring_is_lost(void **state)
{
    (void)state;
    struct ws_ring c, d;
    pthread_t t;
    uint8_t m[WS_RING_MESSAGE_BYTES];
    open_pair(&c, &d);
    alarm(200); /* a lost ring would sleep for ever */
    pthread_create(&t, NULL, echo, &d);
    int sent = 0, got = 0;
    srand(9);
    while (got < ROUNDS) {
        for (int n = 1 + rand() % WS_RING_SLOTS; n && sent < ROUNDS; n--) {
            memcpy(m, &sent, sizeof(sent));
            if (!ws_ring_put(&c, m, sizeof(sent) + (size_t)(rand() % 100)))
                break;
            sent++;
            ws_ring_signal(&c);
        }
        for (;;) {
            ws_ring_wait(&c, true);
            ssize_t n = ws_ring_take(&c, m);
            if (n >= 0) {
                int i;
                memcpy(&i, m, sizeof(i));
                assert_int_equal(i, got++);
            } else if (got < sent) {
                wait_bell(&c);
            } else {
                break;
            }
            ws_ring_wait(&c, false);
        }
    }
    alarm(0);
    pthread_join(t, NULL);
    ws_ring_end(&c);
    ws_ring_end(&d);
}

static void test_bell(void **state)
{
    (void)state;
    struct ws_ring c, d;
    open_pair(&c, &d);
    alarm(200);
    for (int i = 0; i < 100000; i++)
        ws_ring_signal(&c); /* nobody hears: must not block */
    assert_true(ws_ring_hear(&d, NULL));
    while (recv(d.doorbell, &(char[4096]){0}, 4096, MSG_DONTWAIT) > 0)
        ;
    assert_true(ws_ring_hear(&d, NULL)); /* silent, and there */
    ws_ring_end(&c);
    assert_false(ws_ring_hear(&d, NULL));
    ws_ring_signal(&d); /* no SIGPIPE */
    alarm(0);
    ws_ring_end(&d);
}

static void test_a_child_has_none(void **state)
{
    (void)state;
    struct ws_ring c, d;
    int status;
    open_pair(&c, &d);
    pid_t pid = fork();
    if (!pid) /* ENOMEM: not mapped */
        _exit(msync(c.memory, sizeof(*c.memory), MS_ASYNC) == -1 && errno == ENOMEM ? 0 : 1);
    assert_true(waitpid(pid, &status, 0) == pid);
    assert_int_equal(status, 0);
    ws_ring_end(&c);
    ws_ring_end(&d);
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
