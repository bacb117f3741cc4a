// SPDX-License-Identifier: Apache-2.0
/* backend: very many operations end at once. What follows on it is done in parts, users take turns,
 * and nothing is lost. A turn's time is of no length here, so a few ends are dealt with in each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "backend/client/user.h"
#include "tests/lib/wsserver.h"

enum { GREEDY = 0, SECOND = 1, MODEST = 2, STREAMS = 100, MOST_TURNS = 10 * STREAMS };

static struct wss *w;

static int setup(void **state)
{
    w = wss_new(1);
    w->peers[MODEST].uid = 1001;
    for (unsigned p = GREEDY; p <= MODEST; p++)
        wss_hello(w, p, NULL);
    return 0;
}

static int teardown(void **state)
{
    wss_free(w);
    return 0;
}

static struct ws_client *client(unsigned peer)
{
    return ws_client_find(w->server, &w->peers[peer].peer);
}

/* An operation in each of @n streams, with an answer behind it. Return: the first answer's number;
 * they are STEP apart. */
enum { STEP = 3 };
static uint64_t work(unsigned peer, unsigned n)
{
    uint64_t va = wss_alloc(w, peer, 0, 4096), first = 0;
    for (unsigned i = 0; i < n; i++) {
        wss_stream(w, peer, WS_STREAM_FIRST + i, 0, true);
        wss_fill(w, peer, WS_STREAM_FIRST + i, va, 4, 1);
        uint64_t seq = wss_sync_stream(w, peer, WS_STREAM_FIRST + i);
        first = first ? first : seq;
    }
    return first;
}

static void all_end(void)
{
    w->server->messages.slice_ns = 0;
    fakedev_complete_all(&w->dev[0]);
}

/* How many of the answers from @first on have come. They come in the order in which the operations
 * have ended. */
static unsigned n_answered(unsigned peer, uint64_t first)
{
    unsigned n = 0;
    const struct wss_peer *p = &w->peers[peer];
    for (unsigned i = 0; i < p->n_replies; i++)
        if (p->replies[i].seq >= first)
            assert_int_equal(p->replies[i].seq, first + STEP * n++);
    return n;
}

static void test_ends_in_parts(void **state)
{
    uint64_t first = work(GREEDY, STREAMS);
    unsigned n = 0, n_turns = 0;
    all_end();
    while (n < STREAMS && n_turns++ < MOST_TURNS) {
        int ms = ws_server_turn(w->server);
        unsigned now = n_answered(GREEDY, first);
        assert_true(now - n < STREAMS / 4);
        n = now;
        if (n < STREAMS)
            assert_int_equal(ms, 0); /* nobody sleeps while something is left */
    }
    assert_int_equal(n, STREAMS);
    wss_turn(w);
    assert_int_not_equal(ws_server_turn(w->server), 0);
}

/* Neither the streams of another user nor its clients come before one's own. */
static void test_users_take_turns(void **state)
{
    uint64_t a = work(GREEDY, STREAMS), b = work(SECOND, STREAMS), c = work(MODEST, 1);
    all_end();
    for (unsigned i = 0; i < MOST_TURNS && !n_answered(MODEST, c); i++)
        wss_turn(w);
    assert_int_equal(n_answered(MODEST, c), 1);
    assert_true(n_answered(GREEDY, a) + n_answered(SECOND, b) < STREAMS / 4);
}

/* ---- a turn with time for everything ---- */

static int (*send_really)(void *arg, const struct ws_peer *to, const void *data, size_t n);
static uint64_t greedy_before; /* what was left to do for it, when the modest client was told */

static uint64_t greedy_left(void)
{
    const struct ws_client *c = client(GREEDY);
    return c->stats.n_commands - c->stats.n_retired;
}

static int send_and_see(void *arg, const struct ws_peer *to, const void *data, size_t n)
{
    if (to->id == w->peers[MODEST].peer.id)
        greedy_before = greedy_left();
    return send_really(arg, to, data, n);
}

/* The greedy client has very many operations that have ended. From now on there is time for all. */
static void see_greedy(void)
{
    w->server->messages.slice_ns = WS_SLICE_UNLIMITED;
    send_really = w->server->transport.send;
    w->server->transport.send = send_and_see;
    greedy_before = 0;
}

/* An answer goes out when it is there, not when the turn has no time for others any more. */
static void test_answer_goes_out(void **state)
{
    uint64_t seq = work(MODEST, 1);
    work(GREEDY, STREAMS);
    all_end();
    see_greedy();
    wss_turn(w);
    assert_int_equal(n_answered(MODEST, seq), 1);
    assert_int_equal(greedy_left(), 0);
    assert_true(greedy_before > STREAMS); /* of two for each stream */
}

/* Nor does a message that comes now wait for what others have left. */
static void test_message_is_answered(void **state)
{
    work(GREEDY, STREAMS);
    all_end();
    wss_turn(w);
    see_greedy();
    uint64_t seq = wss_query_stream(w, MODEST, WS_STREAM_DEFAULT_0);
    assert_true(wss_replied(w, MODEST, seq));
    assert_int_equal(greedy_left(), 0);
    assert_true(greedy_before > STREAMS);
}

/* What a client has in a device's hands when it goes comes back to nobody, in parts as well. */
static void test_client_goes_meanwhile(void **state)
{
    work(GREEDY, STREAMS);
    uint64_t seq = work(MODEST, STREAMS);
    all_end();
    wss_turn(w);
    ws_client_drop(client(GREEDY), WS__ERROR__OK, "by the test");
    unsigned n_turns = 0;
    for (; n_turns < MOST_TURNS && !ws_list_empty(&w->server->clients.dying); n_turns++)
        wss_turn(w);
    wss_turn(w);
    for (; n_turns < MOST_TURNS &&
           (!ws_server_idle(w->server) || !ws_list_empty(&w->server->clients.dying));
         n_turns++)
        wss_turn(w);
    assert_in_range(n_turns, STREAMS / 10, MOST_TURNS - 1);
    assert_int_equal(n_answered(MODEST, seq), STREAMS);
    assert_int_equal(ws_server_n_clients(w->server), 2);
}

int main(int argc, char **argv)
{
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_ends_in_parts),   T(test_users_take_turns),    T(test_client_goes_meanwhile),
        T(test_answer_goes_out), T(test_message_is_answered),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
