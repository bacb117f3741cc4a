// SPDX-License-Identifier: Apache-2.0
/* backend: a long message is handled in slices, and meanwhile others are served. The slices of
 * these tests are of no time at all: of what a client sends, a few commands are carried out in
 * each turn. So what is tested is an order, which the machine's speed does not change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <unistd.h>

#include "backend/wire/ring.h"
#include "base/clock.h"
#include "protocol/ring.h"
#include "tests/lib/wsserver.h"

enum { GREEDY = 0, OTHER = 1, MODEST = 2, MANY = 40 };

static struct wss *w;

static int setup(void **state)
{
    w = wss_new(1);
    for (unsigned p = GREEDY; p <= MODEST; p++)
        wss_hello(w, p, NULL);
    w->server->messages.slice_ns = 0;
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

/* A message of @n questions, each of which is answered at once. */
static Ws__ClientMessage *questions(unsigned peer, unsigned n)
{
    static Ws__ClientMessage m;
    static Ws__Command commands[MANY], *list[MANY];
    static Ws__Query query;
    assert_true(n <= MANY);
    ws__client_message__init(&m);
    ws__query__init(&query);
    query.what_case = WS__QUERY__WHAT_STREAM;
    query.stream = WS_STREAM_DEFAULT_0;
    for (unsigned i = 0; i < n; i++) {
        ws__command__init(&commands[i]);
        commands[i].c_case = WS__COMMAND__C_QUERY;
        commands[i].query = &query;
        list[i] = &commands[i];
    }
    m.commands = list;
    m.n_commands = n;
    m.first_seq = w->peers[peer].next_seq;
    w->peers[peer].next_seq += n;
    return &m;
}

/* Hands a message over, and no more. The bytes do not outlive the call. */
static void give(unsigned peer, const Ws__ClientMessage *m, struct ws_frame *second)
{
    struct ws_frame frames[2] = {{.n = ws__client_message__get_packed_size(m)}};
    uint8_t *bytes = malloc(frames[0].n);
    ws__client_message__pack(m, bytes);
    frames[0].data = bytes;
    if (second)
        frames[1] = *second;
    struct ws_message msg = {
        .peer = &w->peers[peer].peer, .frames = frames, .n_frames = second ? 2 : 1};
    ws_server_handle(w->server, &msg);
    memset(bytes, 0xee, frames[0].n);
    free(bytes);
}

static bool wants(unsigned peer)
{
    return ws_server_wants(w->server, &w->peers[peer].peer);
}

static void turns_until_idle(void)
{
    for (unsigned i = 0; i < 10 * MANY && !ws_server_idle(w->server); i++)
        wss_turn(w);
    assert_true(ws_server_idle(w->server));
}

/* Replies of @peer came in order, without a gap, from seq 1 on. */
static void check_replies(unsigned peer, unsigned n)
{
    assert_int_equal(w->peers[peer].n_replies, n);
    for (unsigned i = 0; i < n; i++)
        assert_int_equal(w->peers[peer].replies[i].seq, i + 1);
}

static void test_long_message_is_cut(void **state)
{
    give(GREEDY, questions(GREEDY, MANY), NULL);
    wss_turn(w);
    unsigned first = w->peers[GREEDY].n_replies;
    assert_in_range(first, 1, MANY / 2);
    assert_false(ws_server_idle(w->server)); /* the daemon does not end before it is done */
    assert_false(wants(GREEDY));
    assert_int_equal(ws_server_turn(w->server), 0); /* nobody sleeps while something is left */
    assert_in_range(w->peers[GREEDY].n_replies, first + 1, MANY - 1);
    turns_until_idle();
    check_replies(GREEDY, MANY);
    wss_turn(w);
    assert_int_not_equal(ws_server_turn(w->server), 0);
    w->server->messages.slice_ns = WS_SLICE_UNLIMITED;
    assert_true(wants(GREEDY));
}

static void test_messages_keep_their_order(void **state)
{
    give(GREEDY, questions(GREEDY, MANY), NULL);
    wss_turn(w);
    give(GREEDY, questions(GREEDY, 3), NULL);
    give(GREEDY, questions(GREEDY, MANY), NULL);
    turns_until_idle();
    check_replies(GREEDY, 2 * MANY + 3);
}

static void test_modest_client_comes_first(void **state)
{
    give(GREEDY, questions(GREEDY, MANY), NULL);
    give(OTHER, questions(OTHER, MANY), NULL);
    wss_turn(w);
    wss_turn(w);
    /* However slow this machine is with the modest one: these two have used more. */
    ws_recent_add(&client(GREEDY)->sender.use, ws_clock_ns(), UINT64_C(1) << 60);
    ws_recent_add(&client(OTHER)->sender.use, ws_clock_ns(), UINT64_C(1) << 60);
    for (unsigned i = 1; i <= 3; i++) {
        unsigned before = w->peers[GREEDY].n_replies + w->peers[OTHER].n_replies;
        give(MODEST, questions(MODEST, 1), NULL);
        wss_turn(w);
        check_replies(MODEST, i);
        assert_int_equal(w->peers[GREEDY].n_replies + w->peers[OTHER].n_replies, before);
    }
    assert_in_range(w->peers[GREEDY].n_replies + w->peers[OTHER].n_replies, 1, 2 * MANY - 2);
    turns_until_idle();
    check_replies(GREEDY, MANY);
    check_replies(OTHER, MANY);
}

/* Time counts for the user: a client that has used nothing waits for one that has, if the other
 * clients of its user have used more. */
static void test_user_who_used_less_comes_first(void **state)
{
    w->peers[3].uid = 2000;
    wss_hello(w, 3, NULL);
    turns_until_idle();
    uint64_t now = ws_clock_ns();
    ws_account_add_time(client(GREEDY)->who.account, WS_ACCOUNT_LOOP, 900000000, now);
    ws_account_add_time(client(3)->who.account, WS_ACCOUNT_LOOP, 300000000, now);
    ws_recent_add(&client(3)->sender.use, now, 300000000);
    give(GREEDY, questions(GREEDY, 1), NULL);
    give(3, questions(3, 1), NULL);
    wss_turn(w);
    check_replies(3, 1);
    check_replies(GREEDY, 0);
    turns_until_idle();
    check_replies(GREEDY, 1);
}

/* What was used long ago does not count. */
static void test_use_is_forgotten(void **state)
{
    uint64_t period = UINT64_C(1) << WS_RECENT_SHIFT;
    struct ws_recent use = {0};
    ws_recent_add(&use, 5 * period, 1000);
    ws_recent_add(&use, 5 * period + 1, 24);
    assert_int_equal(ws_recent_ns(&use, 6 * period - 1), 1024);
    assert_int_equal(ws_recent_ns(&use, 6 * period), 512);
    assert_int_equal(ws_recent_ns(&use, 8 * period), 128);
    assert_int_equal(ws_recent_ns(&use, 5000 * period), 0);
}

/* While there is time left, a short message is handled when it comes. */
static void test_short_message_is_not_held(void **state)
{
    w->server->messages.slice_ns = WS_SLICE_UNLIMITED;
    give(MODEST, questions(MODEST, 1), NULL);
    assert_true(ws_list_empty(&w->server->messages.waiting));
    assert_int_equal(client(MODEST)->stats.n_retired, 1);
}

static void test_dropped_while_held(void **state)
{
    give(GREEDY, questions(GREEDY, MANY), NULL);
    wss_turn(w);
    give(GREEDY, questions(GREEDY, MANY), NULL);
    ws_client_drop(client(GREEDY), WS__ERROR__OK, "by the test");
    wss_turn(w);
    assert_null(client(GREEDY));
    assert_true(ws_list_empty(&w->server->messages.waiting));
    assert_in_range(w->peers[GREEDY].n_replies, 1, MANY - 1);
}

/* What makes a client be dropped comes when its turn comes, and nothing after it is handled. */
static void test_bad_message_behind_a_long_one(void **state)
{
    give(GREEDY, questions(GREEDY, MANY), NULL);
    struct ws_frame frame = {.data = (const uint8_t *)"\xff", .n = 1};
    struct ws_message bad = {.peer = &w->peers[GREEDY].peer, .frames = &frame, .n_frames = 1};
    ws_server_handle(w->server, &bad);
    give(GREEDY, questions(GREEDY, 1), NULL);
    turns_until_idle();
    wss_turn(w);
    check_replies(GREEDY, MANY);
    assert_true(w->peers[GREEDY].dropped);
    assert_int_equal(w->peers[GREEDY].dropped_error, WS__ERROR__MALFORMED);
}

static void test_goodbye_in_a_long_message(void **state)
{
    Ws__ClientMessage *m = questions(GREEDY, MANY);
    m->goodbye = true;
    give(GREEDY, m, NULL);
    wss_turn(w);
    assert_non_null(client(GREEDY));
    turns_until_idle();
    /* Who says goodbye does not wait for answers: those of the last slice are not sent. */
    assert_in_range(w->peers[GREEDY].n_replies, MANY / 2, MANY);
    wss_turn(w);
    assert_null(client(GREEDY));
}

/* One command with much data is cut too: others are served between its parts, and all of it
 * comes. */
static void test_long_piece_is_cut(void **state)
{
    static const char ptx[] = ".version 7.0\n.target sm_50\n.address_size 64\n"
                              ".visible .entry k()\n{\nret;\n}\n";
    enum { BYTES = 1000000 };
    uint8_t sha256[WS_SHA256_BYTES], *bytes = malloc(BYTES);
    memset(bytes, ' ', BYTES);
    memcpy(bytes, ptx, sizeof(ptx) - 1);
    wss_sha256(bytes, BYTES, sha256);
    Ws__ModuleImage piece = WS__MODULE_IMAGE__INIT;
    piece.sha256 = (ProtobufCBinaryData){sizeof(sha256), sha256};
    piece.image_bytes = BYTES;
    piece.data = (ProtobufCBinaryData){BYTES, bytes};
    Ws__ClientMessage *m = questions(GREEDY, 1);
    m->commands[0]->c_case = WS__COMMAND__C_MODULE_IMAGE;
    m->commands[0]->module_image = &piece;
    give(GREEDY, m, NULL);
    wss_turn(w);
    ws_recent_add(&client(GREEDY)->sender.use, ws_clock_ns(), UINT64_C(1) << 60);
    for (unsigned i = 1; i <= 3; i++) {
        give(MODEST, questions(MODEST, 1), NULL);
        wss_turn(w);
        check_replies(MODEST, i);
    }
    assert_int_equal(client(GREEDY)->stats.n_retired, 0);
    turns_until_idle();
    assert_int_equal(client(GREEDY)->stats.n_retired, 1);
    assert_int_equal(w->peers[GREEDY].notice_error, WS__ERROR__OK);
    w->server->messages.slice_ns = WS_SLICE_UNLIMITED;
    assert_int_equal(wss_error(w, GREEDY, wss_load_try(w, GREEDY, 1, 0, bytes, BYTES)),
                     WS__ERROR__OK);
    free(bytes);
}

static void frame_end(struct ws_buffer *b)
{
    free(b);
}

/* The data of a copy lie in a frame of their own, which is kept as long as the message is. */
static void test_data_of_a_held_message(void **state)
{
    w->server->messages.slice_ns = WS_SLICE_UNLIMITED;
    uint64_t va = wss_alloc(w, GREEDY, 0, 512);
    w->server->messages.slice_ns = 0;
    struct {
        struct ws_buffer base;
        uint8_t bytes[512];
    } *b = calloc(1, sizeof(*b));
    b->base = (struct ws_buffer){1, frame_end};
    memset(b->bytes, 0x5a, sizeof(b->bytes));
    struct ws_frame second = {b->bytes, sizeof(b->bytes), &b->base};
    Ws__Copy copy = WS__COPY__INIT;
    copy.stream = WS_STREAM_DEFAULT_0;
    copy.dst = va;
    copy.bytes = sizeof(b->bytes);
    copy.bulk = WS__COPY__BULK__FRAME_SRC;
    copy.frame = 1;
    Ws__ClientMessage *m = questions(GREEDY, MANY);
    m->commands[MANY - 1]->c_case = WS__COMMAND__C_COPY;
    m->commands[MANY - 1]->copy = &copy;
    give(GREEDY, m, &second);
    ws_buffer_unref(&b->base);
    unsigned n_copies = 0;
    for (unsigned i = 0; i < 10 * MANY && !n_copies; i++) {
        wss_turn(w);
        n_copies = w->dev[0].n_ops;
    }
    assert_int_equal(n_copies, 1);
    assert_int_equal(((const uint8_t *)w->dev[0].ops[0]->copy.src_host)[511], 0x5a);
    fakedev_complete_all(&w->dev[0]);
    turns_until_idle();
    assert_int_equal(w->peers[GREEDY].notice_error, WS__ERROR__OK);
}

/* Replies that lie in the ring continue the order. Return: how many. */
static unsigned take_replies(struct ws_ring *ring, unsigned n_before)
{
    uint8_t bytes[WS_RING_MESSAGE_BYTES];
    ssize_t n;
    unsigned n_replies = 0;
    while ((n = ws_ring_take(ring, bytes)) >= 0) {
        Ws__ServerMessage *m = ws__server_message__unpack(NULL, (size_t)n, bytes);
        assert_non_null(m);
        for (size_t i = 0; i < m->n_replies; i++)
            assert_int_equal(m->replies[i]->seq, n_before + ++n_replies);
        ws__server_message__free_unpacked(m, NULL);
    }
    return n_replies;
}

/* What lies in the ring waits for the message that was sent before it. */
static void test_ring_of_a_held_client(void **state)
{
    struct ws_server *s = w->server;
    char path[64];
    int memory, doorbell;
    snprintf(path, sizeof(path), "/tmp/wst-messages-%d", (int)getpid());
    assert_int_equal(ws_server_handoff_listen(s, path, 0600), 0);
    assert_int_equal(ws_client_ring_new(client(GREEDY), &memory), WS__ERROR__OK);
    struct ws_ring ring = {.doorbell = -1};
    assert_int_equal(ws_ring_map(&ring, memory, true), 0);
    assert_int_equal(ws_client_ring_doorbell(client(GREEDY), &doorbell), WS__ERROR__OK);
    ring.doorbell = doorbell;
    uint8_t bytes[WS_RING_MESSAGE_BYTES];

    give(GREEDY, questions(GREEDY, MANY), NULL);
    ring.n_sent++;
    Ws__ClientMessage *m = questions(GREEDY, 30);
    assert_true(ws_ring_put(&ring, bytes, ws__client_message__pack(m, bytes)));
    m = questions(GREEDY, 20);
    assert_true(ws_ring_put(&ring, bytes, ws__client_message__pack(m, bytes)));
    ws_ring_signal(&ring);
    ws_server_handoff_turn(s);
    give(GREEDY, questions(GREEDY, 5), NULL);
    ring.n_sent++;
    m = questions(GREEDY, 2);
    assert_true(ws_ring_put(&ring, bytes, ws__client_message__pack(m, bytes)));
    ws_ring_signal(&ring);
    ws_server_handoff_turn(s);
    unsigned n = 0;
    for (unsigned i = 0; i < 10 * MANY && n < MANY + 30 + 20 + 5 + 2; i++) {
        ws_server_handoff_turn(s);
        wss_turn(w);
        n += take_replies(&ring, n);
    }
    assert_int_equal(n, MANY + 30 + 20 + 5 + 2);
    assert_false(w->peers[GREEDY].dropped);
    ws_ring_end(&ring);
    close(memory);
}

/* Its connection ends while its last message is not handled yet: it is, and then it goes. */
static void test_lost_while_held(void **state)
{
    give(GREEDY, questions(GREEDY, MANY), NULL);
    ws_server_disconnected(w->server, &w->peers[GREEDY].peer);
    wss_turn(w);
    wss_turn(w);
    assert_non_null(client(GREEDY));
    turns_until_idle();
    check_replies(GREEDY, MANY);
    wss_turn(w);
    assert_null(client(GREEDY));
}

/* What a client had is given back in parts, and others are served meanwhile. */
static void test_end_of_a_client_that_has_much(void **state)
{
    uint64_t before = w->dev[0].used_bytes;
    w->server->messages.slice_ns = WS_SLICE_UNLIMITED;
    for (unsigned i = 0; i < 100; i++) {
        assert_int_not_equal(wss_alloc(w, GREEDY, 0, 4096), 0);
        wss_record(w, GREEDY, 1 + i, WS_STREAM_DEFAULT_0);
    }
    w->server->messages.slice_ns = 0;
    ws_client_drop(client(GREEDY), WS__ERROR__OK, "by the test");
    unsigned n_turns = 0;
    for (; !n_turns || (!ws_list_empty(&w->server->clients.dying) && n_turns < 1000); n_turns++) {
        give(MODEST, questions(MODEST, 1), NULL);
        assert_int_equal(ws_server_turn(w->server), 0);
        check_replies(MODEST, n_turns + 1);
        wss_turn(w);
    }
    assert_in_range(n_turns, 3, 999);
    assert_int_equal(w->dev[0].used_bytes, before);
}

/* Those who are no clients wait like one client; a hello is not lost, nor what comes after it. */
static void test_strangers(void **state)
{
    enum { STRANGER = 5, ASKER = 6 };
    Ws__ClientMessage status = WS__CLIENT_MESSAGE__INIT, hello = WS__CLIENT_MESSAGE__INIT;
    Ws__StatusRequest ask = WS__STATUS_REQUEST__INIT;
    Ws__Hello h = WS__HELLO__INIT;
    status.status = &ask;
    h.version = WS_PROTOCOL_VERSION;
    h.exe = (char *)"late";
    hello.hello = &h;
    give(ASKER, &status, NULL);
    give(STRANGER, &hello, NULL);
    assert_false(wants(STRANGER));
    assert_false(wants(ASKER));
    assert_false(wants(7)); /* nor anybody else until then: what waits here is in no user's turn */
    give(STRANGER, questions(STRANGER, 3), NULL);
    turns_until_idle();
    assert_int_equal(w->peers[ASKER].n_status, 1);
    assert_true(w->peers[STRANGER].said_hello);
    check_replies(STRANGER, 3);
    assert_true(wants(ASKER));
    assert_true(wants(7));
}

/* Nobody would ever end a client that is made for a connection which is no more. */
static void test_stranger_ends_before_its_hello_is_read(void **state)
{
    enum { STRANGER = 5, ASKER = 6 };
    Ws__ClientMessage status = WS__CLIENT_MESSAGE__INIT, hello = WS__CLIENT_MESSAGE__INIT;
    Ws__StatusRequest ask = WS__STATUS_REQUEST__INIT;
    Ws__Hello h = WS__HELLO__INIT;
    status.status = &ask;
    h.version = WS_PROTOCOL_VERSION;
    h.exe = (char *)"gone";
    hello.hello = &h;
    give(ASKER, &status, NULL);
    give(STRANGER, &hello, NULL);
    assert_false(wants(STRANGER));
    ws_server_disconnected(w->server, &w->peers[STRANGER].peer);
    turns_until_idle();
    assert_int_equal(w->peers[ASKER].n_status, 1);
    assert_null(client(STRANGER));
}

int main(int argc, char **argv)
{
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_long_message_is_cut),
        T(test_messages_keep_their_order),
        T(test_modest_client_comes_first),
        T(test_user_who_used_less_comes_first),
        T(test_use_is_forgotten),
        T(test_short_message_is_not_held),
        T(test_dropped_while_held),
        T(test_bad_message_behind_a_long_one),
        T(test_goodbye_in_a_long_message),
        T(test_long_piece_is_cut),
        T(test_data_of_a_held_message),
        T(test_ring_of_a_held_client),
        T(test_lost_while_held),
        T(test_end_of_a_client_that_has_much),
        T(test_strangers),
        T(test_stranger_ends_before_its_hello_is_read),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
