// SPDX-License-Identifier: Apache-2.0
/* backend: a client whose connection ends is dropped when its last messages were handled, and not
 * much later if none come. Without ZeroMQ: what its queue would hold is handed in by the tests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "protocol/handoff.h"
#include "protocol/ring.h"
#include "tests/lib/wsserver.h"

struct fixture {
    struct wss *w;
    char path[64];
    int side;            /* the client's end of its handoff connection; -1: closed */
    struct ws_ring ring; /* the client's end */
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    f->w = wss_new(1);
    f->side = f->ring.doorbell = -1;
    snprintf(f->path, sizeof(f->path), "/tmp/wst-leaving-%d", (int)getpid());
    assert_int_equal(ws_server_handoff_listen(f->w->server, f->path, 0600), 0);
    *state = f;
    return 0;
}

static void side_close(struct fixture *f)
{
    close(f->side);
    f->side = -1;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    ws_ring_end(&f->ring);
    if (f->side >= 0)
        side_close(f);
    wss_free(f->w);
    free(f);
    return 0;
}

static void hello_local(struct fixture *f, unsigned peer)
{
    Ws__ClientMessage m = WS__CLIENT_MESSAGE__INIT;
    Ws__Hello h = WS__HELLO__INIT;
    h.version = WS_PROTOCOL_VERSION;
    h.exe = (char *)"/bin/x";
    h.local = true;
    m.hello = &h;
    wss_message(f->w, peer, &m);
    assert_int_equal(f->w->peers[peer].hello_error, WS__ERROR__OK);
}

static struct ws_client *client(struct fixture *f, unsigned peer)
{
    return ws_client_find(f->w->server, &f->w->peers[peer].peer);
}

static void side_send(struct fixture *f, unsigned peer, uint32_t kind, int *ret_fd)
{
    struct ws_handoff_request q = {.kind = kind};
    struct ws_handoff_reply a;
    memcpy(q.token, client(f, peer)->wire.token, sizeof(q.token));
    assert_int_equal(ws_packet_send(f->side, &q, sizeof(q), -1, 0), 0);
    ws_server_handoff_turn(f->w->server); /* accepts a new connection */
    ws_server_handoff_turn(f->w->server);
    assert_int_equal(ws_packet_recv(f->side, &a, sizeof(a), ret_fd, MSG_DONTWAIT), sizeof(a));
    assert_int_equal(a.error, WS__ERROR__OK);
}

static void side_open(struct fixture *f, unsigned peer)
{
    f->side = ws_handoff_connect(f->path);
    assert_true(f->side >= 0);
    side_send(f, peer, WS_HANDOFF_HELLO, NULL);
}

static void ring_open(struct fixture *f, unsigned peer)
{
    int fd;
    side_send(f, peer, WS_HANDOFF_RING, &fd);
    assert_int_equal(ws_ring_map(&f->ring, fd, true), 0);
    close(fd);
    side_send(f, peer, WS_HANDOFF_DOORBELL, &f->ring.doorbell);
}

/* No descriptor of the handoff socket is readable: else the loop would spin. */
static bool is_quiet(struct fixture *f)
{
    struct pollfd p = {.fd = ws_server_handoff_fd(f->w->server), .events = POLLIN};
    return poll(&p, 1, 0) == 0;
}

/* A message of one Fill. Return: its bytes, in @buf. */
static size_t fill_message(struct wss *w, unsigned peer, uint64_t va, uint8_t *buf)
{
    Ws__ClientMessage m = WS__CLIENT_MESSAGE__INIT;
    Ws__Command c = WS__COMMAND__INIT, *list[] = {&c};
    Ws__Fill fill = WS__FILL__INIT;
    fill.stream = 1;
    fill.dst = va;
    fill.value_bytes = 1;
    fill.width_bytes = 16;
    c.c_case = WS__COMMAND__C_FILL;
    c.fill = &fill;
    m.commands = list;
    m.n_commands = 1;
    m.first_seq = w->peers[peer].next_seq++;
    return ws__client_message__pack(&m, buf);
}

static void say_goodbye(struct wss *w, unsigned peer)
{
    Ws__ClientMessage m = WS__CLIENT_MESSAGE__INIT;
    m.goodbye = true;
    wss_message(w, peer, &m);
}

/* ---- the end of the connection ---- */

static void test_lost_is_dropped_at_once(void **state)
{
    struct fixture *f = *state;
    struct wss *w = f->w;
    wss_hello(w, 0, NULL);
    wss_hello(w, 1, NULL);
    assert_true(ws_server_disconnected(w->server, &w->peers[0].peer));
    assert_false(ws_server_disconnected(w->server, &w->peers[0].peer)); /* told once */
    assert_null(client(f, 0));
    assert_non_null(client(f, 1));
    assert_int_equal(w->server->stats.n_ended, 1);
    assert_int_equal(ws_server_turn(w->server), -1);
}

/* Its answer can't be sent, and some of what it sent is still to be handled. */
static void test_answer_not_sent_with_messages_left(void **state)
{
    struct fixture *f = *state;
    struct wss *w = f->w;
    w->dev[0].inline_completion = true;
    wss_hello(w, 0, NULL);
    uint64_t va = wss_alloc(w, 0, 0, 4096);
    w->queued = true;
    w->peers[0].gone = w->peers[0].ended = true;
    wss_query_stream(w, 0, 1);
    wss_fill(w, 0, 1, va, 16, 1);
    assert_int_equal(w->dev[0].n_submitted, 1);
    w->queued = false;
    wss_turn(w);
    assert_int_equal(ws_server_n_clients(w->server), 0);
}

/* ---- the handoff connection or the ring ends before the last messages are received ---- */

static void test_handoff_ends_before_the_last_messages(void **state)
{
    struct fixture *f = *state;
    struct wss *w = f->w;
    w->dev[0].inline_completion = true;
    hello_local(f, 0);
    side_open(f, 0);
    uint64_t va = wss_alloc(w, 0, 0, 4096);
    side_close(f);
    ws_server_handoff_turn(w->server);
    assert_true(is_quiet(f));
    wss_turn(w);
    wss_fill(w, 0, 1, va, 16, 1);
    assert_int_equal(w->dev[0].n_submitted, 1);
    assert_int_equal(ws_server_n_clients(w->server), 1);
    say_goodbye(w, 0);
    assert_int_equal(ws_server_n_clients(w->server), 0);
}

static void test_leaving_is_dropped_in_time(void **state)
{
    struct fixture *f = *state;
    struct wss *w = f->w;
    hello_local(f, 0);
    side_open(f, 0);
    side_close(f);
    ws_server_handoff_turn(w->server);
    int ms = ws_server_turn(w->server);
    assert_true(ms > 0 && ms <= 1001);
    wss_turn(w);
    assert_int_equal(ws_server_n_clients(w->server), 1);
    client(f, 0)->leaving.until_ns -= 1000 * WS_NS_PER_MS;
    wss_turn(w);
    assert_int_equal(ws_server_n_clients(w->server), 0);
    assert_int_equal(ws_server_turn(w->server), -1);
}

static void test_ring_ends_before_the_last_messages(void **state)
{
    struct fixture *f = *state;
    struct wss *w = f->w;
    uint8_t buf[WS_RING_MESSAGE_BYTES], first[WS_RING_MESSAGE_BYTES];
    w->dev[0].inline_completion = true;
    hello_local(f, 0);
    side_open(f, 0);
    uint64_t va = wss_alloc(w, 0, 0, 4096);
    ring_open(f, 0);
    size_t n_first = fill_message(w, 0, va, first), n = fill_message(w, 0, va, buf);
    f->ring.n_sent++; /* the first goes by ZeroMQ; the second, in the ring, waits for it */
    assert_true(ws_ring_put(&f->ring, buf, n));
    ws_ring_end(&f->ring);
    ws_server_handoff_turn(w->server);
    assert_int_equal(w->dev[0].n_submitted, 0);
    assert_int_equal(ws_server_n_clients(w->server), 1);
    assert_true(is_quiet(f));
    wss_raw(w, 0, first, n_first);
    assert_int_equal(w->dev[0].n_submitted, 2);
    assert_int_equal(ws_server_n_clients(w->server), 1);
}

/* All at once, and the ring was not looked at yet: as of a client that was killed. */
static void test_lost_with_a_message_in_the_ring(void **state)
{
    struct fixture *f = *state;
    struct wss *w = f->w;
    uint8_t buf[WS_RING_MESSAGE_BYTES];
    w->dev[0].inline_completion = true;
    hello_local(f, 0);
    side_open(f, 0);
    uint64_t va = wss_alloc(w, 0, 0, 4096);
    ring_open(f, 0);
    assert_true(ws_ring_put(&f->ring, buf, fill_message(w, 0, va, buf)));
    ws_server_disconnected(w->server, &w->peers[0].peer);
    assert_int_equal(w->dev[0].n_submitted, 1);
    assert_int_equal(ws_server_n_clients(w->server), 0);
}

/* A process that is being started has all of the daemon's files open for a while. What the daemon
 * closes then must not be told of any more, because nothing is left of it. */
static void test_ends_while_a_process_starts(void **state)
{
    struct fixture *f = *state;
    struct wss *w = f->w;
    hello_local(f, 0);
    side_open(f, 0);
    ring_open(f, 0);
    assert_true(is_quiet(f));
    pid_t starting = fork();
    if (!starting) {
        pause();
        _exit(0);
    }
    shutdown(f->side, SHUT_RDWR);
    shutdown(f->ring.doorbell, SHUT_RDWR);
    ws_server_disconnected(w->server, &w->peers[0].peer);
    wss_turn(w);
    bool quiet = is_quiet(f);
    kill(starting, SIGKILL);
    assert_int_equal(waitpid(starting, NULL, 0), starting);
    assert_int_equal(ws_server_n_clients(w->server), 0);
    assert_true(quiet);
}

/* ---- floods of the handoff socket ---- */

/* Three hundred connect behind a client that has said its hello already, and say nothing. */
static void test_handoff_flood(void **state)
{
    struct fixture *f = *state;
    struct wss *w = f->w;
    enum { N = 300, MAY_HAVE = 16 };
    int fds[N];
    struct ws_handoff_request q = {.kind = WS_HANDOFF_HELLO};
    struct ws_handoff_reply a = {.error = WS__ERROR__INTERNAL};
    w->config.limits.pool[WS_RESOURCE_CONNECTIONS] = 2 * MAY_HAVE;
    hello_local(f, 0);
    memcpy(q.token, client(f, 0)->wire.token, sizeof(q.token));
    f->side = ws_handoff_connect(f->path);
    assert_true(f->side >= 0);
    assert_int_equal(ws_packet_send(f->side, &q, sizeof(q), -1, 0), 0);
    for (int i = 0; i < N; i++) {
        fds[i] = ws_handoff_connect(f->path);
        assert_true(fds[i] >= 0);
    }
    for (int i = 0; i < N; i++) {
        ws_server_handoff_turn(w->server);
        assert_true(ws_accounts_used(w->server->accounts, WS_RESOURCE_CONNECTIONS) <= MAY_HAVE);
    }
    assert_int_equal(ws_packet_recv(f->side, &a, sizeof(a), NULL, MSG_DONTWAIT), sizeof(a));
    assert_int_equal(a.error, WS__ERROR__OK);
    assert_true(is_quiet(f));
    assert_int_equal(ws_server_handoff_timeout_ms(w->server), -1);
    for (int i = 0; i < N; i++)
        close(fds[i]);
    ws_server_handoff_turn(w->server);
    assert_int_equal(ws_accounts_used(w->server->accounts, WS_RESOURCE_CONNECTIONS), 1);
}

/* ---- seats ---- */

static void test_the_seat_of_a_lost_client_is_free(void **state)
{
    struct fixture *f = *state;
    struct wss *w = f->w;
    w->config.limits.pool[WS_RESOURCE_CLIENTS] = 1;
    wss_hello(w, 0, NULL);
    w->queued = true;
    wss_hello(w, 1, NULL);
    assert_int_equal(w->peers[1].hello_error, WS__ERROR__LIMIT_EXCEEDED);
    w->peers[0].ended = true;
    wss_hello(w, 1, NULL);
    assert_int_equal(w->peers[1].hello_error, WS__ERROR__OK);
    assert_null(client(f, 0));
}

static void test_the_users_seat_of_a_lost_client_is_free(void **state)
{
    struct fixture *f = *state;
    struct wss *w = f->w;
    struct ws_user_limits everybody = {.everybody = true, .limit[WS_RESOURCE_CLIENTS] = 1};
    w->config.access.limits = &everybody;
    w->config.access.n_limits = 1;
    wss_hello(w, 0, NULL);
    w->queued = true;
    wss_hello(w, 1, NULL);
    assert_int_equal(w->peers[1].hello_error, WS__ERROR__LIMIT_EXCEEDED);
    w->peers[0].ended = true;
    wss_hello(w, 1, NULL);
    assert_int_equal(w->peers[1].hello_error, WS__ERROR__OK);
    assert_null(client(f, 0));
    w->config.access = WS_ACCESS_NULL;
}

int main(int argc, char **argv)
{
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_lost_is_dropped_at_once),
        T(test_answer_not_sent_with_messages_left),
        T(test_handoff_ends_before_the_last_messages),
        T(test_leaving_is_dropped_in_time),
        T(test_ring_ends_before_the_last_messages),
        T(test_lost_with_a_message_in_the_ring),
        T(test_ends_while_a_process_starts),
        T(test_handoff_flood),
        T(test_the_seat_of_a_lost_client_is_free),
        T(test_the_users_seat_of_a_lost_client_is_free),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
