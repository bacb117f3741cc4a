// SPDX-License-Identifier: Apache-2.0
/* wire: ZeroMQ's protocol and CURVE, byte by byte. What a client sends is cut at every place, and
 * lies about its lengths. test_daemon has the same with libzmq at the other end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <sodium.h>

#include "backend/wire/zmtp.h"
#include "tests/lib/curve_client.h"

enum { MAX_BYTES = 100000, MORE = 1, LONG = 2, COMMAND = 4 };

struct fixture {
    struct ws_zmtp z;
    struct ws_curve curve;
    struct ws_curve_server server;
    size_t max_bytes; /* of a message */
    size_t room;      /* that may still be taken; SIZE_MAX: no bound */
    size_t n_taken;   /* bytes of buffers that were taken */
    bool allowed;
    uint8_t asked[WS_CURVE_KEY_BYTES]; /* for this key */
    uint8_t in[4096];                  /* what a client sends */
    size_t n_in;
    uint8_t got[4096]; /* all messages: each frame's length, bytes, and whether more follow */
    size_t n_got;
    unsigned n_messages;
    struct curve_client client;
};

static struct ws_buffer *buffer(void *arg, size_t n, uint8_t **ret_data)
{
    struct fixture *f = arg;
    if (n > f->room)
        return NULL;
    f->n_taken += n;
    return ws_buffer_new(n, ret_data);
}

static size_t max_bytes(void *arg)
{
    return ((struct fixture *)arg)->max_bytes;
}

static bool allows(void *arg, const uint8_t key[WS_CURVE_KEY_BYTES])
{
    struct fixture *f = arg;
    memcpy(f->asked, key, sizeof(f->asked));
    return f->allowed;
}

static void begin(struct fixture *f, bool curve)
{
    f->curve = (struct ws_curve){.server = &f->server};
    f->n_got = f->n_messages = 0;
    f->n_taken = 0;
    ws_zmtp_init(&f->z, &(struct ws_zmtp_owner){f, buffer, max_bytes, allows},
                 curve ? &f->curve : NULL);
}

static int setup(void **state)
{
    static struct fixture f;
    memset(&f, 0, sizeof(f));
    assert_int_equal(ws_curve_init(), 0);
    crypto_box_keypair(f.server.public_key, f.server.secret_key);
    crypto_box_keypair(f.client.own_public, f.client.own_secret);
    f.max_bytes = MAX_BYTES;
    f.room = SIZE_MAX;
    f.allowed = true;
    begin(&f, false);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    ws_zmtp_deinit(&f->z);
    return 0;
}

/* ---- what a client sends ---- */

static void put(struct fixture *f, const void *p, size_t n)
{
    assert_true(f->n_in + n <= sizeof(f->in));
    memcpy(f->in + f->n_in, p, n);
    f->n_in += n;
}

static void put_greeting(struct fixture *f, const char *mechanism)
{
    uint8_t g[64] = {0xff, [8] = 1, [9] = 0x7f, 3, 1};
    memcpy(g + 12, mechanism, strlen(mechanism));
    put(f, g, sizeof(g));
}

static void put_frame(struct fixture *f, uint8_t flags, const void *p, size_t n)
{
    uint8_t head[9] = {flags, (uint8_t)n};
    if (flags & LONG)
        for (int i = 0; i < 8; i++)
            head[8 - i] = (uint8_t)((uint64_t)n >> (8 * i));
    put(f, head, flags & LONG ? 9 : 2);
    put(f, p, n);
}

static size_t metadata(uint8_t *to, const char *type, const char *identity)
{
    uint8_t *p = to;
    memcpy(p, "\13Socket-Type\0\0\0", 15);
    p[15] = (uint8_t)strlen(type);
    memcpy(p + 16, type, strlen(type));
    p += 16 + strlen(type);
    memcpy(p, "\10Identity\0\0\0", 12);
    p[12] = (uint8_t)strlen(identity);
    memcpy(p + 13, identity, strlen(identity));
    return (size_t)(p - to) + 13 + strlen(identity);
}

static void put_ready(struct fixture *f, const char *type, const char *identity)
{
    uint8_t body[256] = "\5READY";
    put_frame(f, COMMAND, body, 6 + metadata(body + 6, type, identity));
}

static void put_introduction(struct fixture *f)
{
    put_greeting(f, "NULL");
    put_ready(f, "DEALER", "");
}

/* ---- what comes out ---- */

static void note(struct fixture *f)
{
    struct ws_message m;
    ws_zmtp_message(&f->z, &m);
    for (unsigned i = 0; i < m.n_frames; i++) {
        f->got[f->n_got++] = (uint8_t)m.frames[i].n;
        memcpy(f->got + f->n_got, m.frames[i].data, m.frames[i].n);
        f->n_got += m.frames[i].n;
        f->got[f->n_got++] = i + 1 < m.n_frames;
    }
    f->n_messages++;
    ws_zmtp_forget(&f->z);
}

/* Hands in @n bytes, in pieces of at most @piece, as the daemon does: from memory that is used
 * again, or straight to a frame's place. */
static enum ws_zmtp_result feed(struct fixture *f, const uint8_t *from, size_t n, size_t piece)
{
    enum ws_zmtp_result r = WS_ZMTP_MORE;
    while (n && r == WS_ZMTP_MORE) {
        size_t k = n < piece ? n : piece, room, left;
        uint8_t *direct = ws_zmtp_room(&f->z, &room), *own = malloc(k), *p = own;
        assert_non_null(own);
        memcpy(own, from, k);
        left = k;
        if (room >= k && piece % 2) {
            memcpy(direct, from, k);
            ws_zmtp_put(&f->z, k);
            left = 0;
        }
        while ((r = ws_zmtp_take(&f->z, &p, &left)) == WS_ZMTP_MESSAGE)
            note(f);
        free(own);
        from += k;
        n -= k;
    }
    return r;
}

static enum ws_zmtp_result feed_all(struct fixture *f)
{
    enum ws_zmtp_result r = feed(f, f->in, f->n_in, sizeof(f->in));
    f->n_in = 0;
    return r;
}

/* ---- NULL ---- */

static void put_some_messages(struct fixture *f)
{
    uint8_t ping[9] = "\4PING\0\1xy";
    put_frame(f, 0, "alone", 5);
    put_frame(f, MORE, "first", 5);
    put_frame(f, MORE | LONG, "second", 6);
    put_frame(f, COMMAND, ping, sizeof(ping)); /* may stand between frames */
    put_frame(f, 0, "", 0);
    put_frame(f, 0, "", 0);
    put_frame(f, LONG, "last", 4);
}

static void test_cut_anywhere(void **state)
{
    struct fixture *f = *state;
    static uint8_t whole[sizeof(f->got)];
    put_introduction(f);
    put_some_messages(f);
    size_t n = f->n_in, n_whole = 0;
    static const uint8_t pong[] = "\4\7\4PONGxy";
    for (size_t piece = n; piece; piece--) {
        begin(f, false);
        assert_int_equal(feed(f, f->in, n, piece), WS_ZMTP_MORE);
        assert_int_equal(f->n_messages, 4);
        if (piece == n) {
            n_whole = f->n_got;
            memcpy(whole, f->got, n_whole);
            static const uint8_t want[] = "\5alone\0\5first\1\6second\1\0\0\0\0\4last";
            assert_int_equal(n_whole, sizeof(want));
            assert_memory_equal(whole, want, n_whole);
        }
        assert_int_equal(f->n_got, n_whole);
        assert_memory_equal(f->got, whole, n_whole);
        assert_memory_equal(f->z.out + f->z.n_out - 9, pong, 9);
        ws_zmtp_deinit(&f->z);
    }
    begin(f, false);
}

/* A message alone that comes as a whole takes no memory. */
static void test_small_messages_are_borrowed(void **state)
{
    struct fixture *f = *state;
    put_introduction(f);
    assert_int_equal(feed_all(f), WS_ZMTP_MORE);
    for (int i = 0; i < 100; i++)
        put_frame(f, 0, "0123456789", 10);
    assert_int_equal(feed_all(f), WS_ZMTP_MORE);
    assert_int_equal(f->n_messages, 100);
    assert_int_equal(f->n_taken, 0);
}

static enum ws_zmtp_result after_introduction(struct fixture *f, const char *bytes, size_t n)
{
    ws_zmtp_deinit(&f->z);
    begin(f, false);
    f->n_in = 0;
    put_introduction(f);
    put(f, bytes, n);
    return feed_all(f);
}
#define AFTER(f, text) after_introduction(f, text, sizeof(text) - 1)

static void test_lies_about_lengths(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(AFTER(f, "\2\377\377\377\377\377\377\377\377"), WS_ZMTP_TOO_LARGE);
    assert_int_equal(AFTER(f, "\2\200\0\0\0\0\0\0\0"), WS_ZMTP_TOO_LARGE);
    assert_int_equal(AFTER(f, "\2\0\0\0\0\0\1\206\241"), WS_ZMTP_TOO_LARGE); /* 100,001 */
    assert_int_equal(f->n_taken, 0);
    assert_int_equal(AFTER(f, "\2\0\0\0\0\0\1\206\240"), WS_ZMTP_MORE);
    assert_int_equal(f->n_taken, MAX_BYTES);
    assert_int_equal(AFTER(f, "\1\2ab\2\0\0\0\0\0\1\206\237"), WS_ZMTP_TOO_LARGE); /* together */
    assert_int_equal(f->n_taken, 2);
    assert_int_equal(AFTER(f, "\6\0\0\0\0\0\0\4\1"), WS_ZMTP_WRONG); /* a command of 1,025 */
    assert_int_equal(f->n_taken, 2 - 2);
}

static void test_message_without_end(void **state)
{
    struct fixture *f = *state;
    static char frames[WS_MAX_FRAMES * 3 + 3];
    for (size_t i = 0; i < sizeof(frames); i += 3)
        memcpy(frames + i, "\1\1x", 3);
    assert_int_equal(after_introduction(f, frames, sizeof(frames) - 3), WS_ZMTP_MORE);
    assert_int_equal(after_introduction(f, frames, sizeof(frames)), WS_ZMTP_TOO_LARGE);
    assert_int_equal(f->n_taken, WS_MAX_FRAMES);
}

static void test_no_protocol(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(AFTER(f, "\10\1x"), WS_ZMTP_WRONG);     /* flags that mean nothing */
    assert_int_equal(AFTER(f, "\5\5\4PING"), WS_ZMTP_WRONG); /* a command with more to follow */
    assert_int_equal(AFTER(f, "\4\12\11SUBSCRIBE"), WS_ZMTP_WRONG);
    assert_int_equal(AFTER(f, "\4\5\4PING"), WS_ZMTP_WRONG); /* without its time to live */
    assert_int_equal(AFTER(f, "\4\0"), WS_ZMTP_WRONG);
    static const struct {
        const char *mechanism, *type;
        uint8_t version;
        bool message_first;
    } rows[] = {{"NULL", "PUB", 3, false},    {"NULL", "REQ", 3, false},
                {"NULL", "DEALE", 3, false},  {"CURVE", "DEALER", 3, false},
                {"NULL", "DEALER", 2, false}, {"NULL", "DEALER", 3, true}};
    for (size_t i = 0; i < WS_ARRAY_SIZE(rows); i++) {
        ws_zmtp_deinit(&f->z);
        begin(f, false);
        f->n_in = 0;
        put_greeting(f, rows[i].mechanism);
        f->in[10] = rows[i].version;
        if (rows[i].message_first)
            put_frame(f, 0, "x", 1);
        put_ready(f, rows[i].type, "");
        assert_int_equal(feed_all(f), WS_ZMTP_WRONG);
        assert_int_not_equal(f->z.stage, WS_ZMTP_OPEN);
    }
    ws_zmtp_deinit(&f->z);
    begin(f, false);
    put(f, "GET / HTTP/1.0\r\n\r\n", 18);
    assert_int_equal(feed_all(f), WS_ZMTP_WRONG);
}

/* Metadata whose lengths lie beyond its end. */
static void test_metadata_that_lies(void **state)
{
    struct fixture *f = *state;
    static const char *const rows[] = {"\377", "\13Socket-Type", "\13Socket-Type\377\377\377\377",
                                       "\13Socket-Type\0\0\0\7DEALER"};
    static const size_t bytes[] = {1, 12, 16, 22};
    for (size_t i = 0; i < WS_ARRAY_SIZE(rows); i++) {
        uint8_t body[64] = "\5READY";
        ws_zmtp_deinit(&f->z);
        begin(f, false);
        put_greeting(f, "NULL");
        memcpy(body + 6, rows[i], bytes[i]);
        put_frame(f, COMMAND, body, 6 + bytes[i]);
        assert_int_equal(feed_all(f), WS_ZMTP_WRONG);
    }
}

static void test_no_room_now(void **state)
{
    struct fixture *f = *state;
    uint8_t body[2000];
    memset(body, 7, sizeof(body));
    put_introduction(f);
    assert_int_equal(feed_all(f), WS_ZMTP_MORE);
    put_frame(f, LONG, body, sizeof(body));
    f->room = 100;
    uint8_t *p = f->in;
    size_t n = 1500, before;
    assert_int_equal(ws_zmtp_take(&f->z, &p, &n), WS_ZMTP_NO_ROOM);
    before = n;
    assert_int_equal(ws_zmtp_take(&f->z, &p, &n), WS_ZMTP_NO_ROOM);
    assert_int_equal(n, before); /* nothing was lost */
    f->room = SIZE_MAX;
    n += f->n_in - 1500;
    assert_int_equal(ws_zmtp_take(&f->z, &p, &n), WS_ZMTP_MESSAGE);
    struct ws_message m;
    ws_zmtp_message(&f->z, &m);
    assert_int_equal(m.frames[0].n, sizeof(body));
    assert_memory_equal(m.frames[0].data, body, sizeof(body));
}

/* Who asks without fetching the answers does not fill anything. */
static void test_flood_of_pings(void **state)
{
    struct fixture *f = *state;
    put_introduction(f);
    assert_int_equal(feed_all(f), WS_ZMTP_MORE);
    for (int i = 0; i < 1000; i++) {
        put_frame(f, COMMAND, "\4PING\0\0abcdefgh", 15);
        assert_int_equal(feed_all(f), WS_ZMTP_MORE);
    }
    assert_true(f->z.n_out <= sizeof(f->z.out));
}

/* ---- CURVE ---- */

static void put_hello(struct fixture *f, const uint8_t *server_key)
{
    uint8_t c[CURVE_CLIENT_HELLO_BYTES];
    memcpy(f->client.server_key, server_key, 32);
    curve_client_hello(&f->client, c);
    put_frame(f, COMMAND, c, sizeof(c));
}

static void read_welcome(struct fixture *f)
{
    assert_true(curve_client_welcome(&f->client, f->z.out + f->z.n_out - WS_CURVE_WELCOME_BYTES));
}

/* @vouched: the key that the long-term key speaks for. */
static void put_initiate(struct fixture *f, const uint8_t *vouched)
{
    uint8_t c[512], m[128];
    size_t n = metadata(m, "DEALER", "");
    curve_client_initiate(&f->client, vouched, m, n, c);
    put_frame(f, COMMAND | LONG, c, CURVE_CLIENT_INITIATE_BYTES + n);
}

static void put_sealed(struct fixture *f, uint8_t flags, const char *text)
{
    uint8_t c[256];
    curve_client_seal(&f->client, flags, text, strlen(text), c);
    put_frame(f, 0, c, CURVE_CLIENT_SEAL_BYTES + strlen(text));
}

static void curve_hello(struct fixture *f)
{
    ws_zmtp_deinit(&f->z);
    begin(f, true);
    f->n_in = 0;
    put_greeting(f, "CURVE");
    put_hello(f, f->server.public_key);
    assert_int_equal(feed_all(f), WS_ZMTP_MORE);
    read_welcome(f);
}

static void curve_open(struct fixture *f)
{
    curve_hello(f);
    put_initiate(f, f->client.short_public);
    assert_int_equal(feed_all(f), WS_ZMTP_MORE);
    assert_int_equal(f->z.stage, WS_ZMTP_OPEN);
}

static void test_curve(void **state)
{
    struct fixture *f = *state;
    curve_open(f);
    assert_memory_equal(f->asked, f->client.own_public, 32);
    put_sealed(f, 0, "alone");
    put_sealed(f, MORE, "first");
    put_sealed(f, 0, "last");
    static const uint8_t want[] = "\5alone\0\5first\1\4last";
    size_t n = f->n_in;
    for (size_t piece = 1; piece <= n; piece++) { /* sealed frames have their numbers: once each */
        struct ws_curve before = f->curve;
        f->n_got = f->n_messages = 0;
        assert_int_equal(feed(f, f->in, n, piece), WS_ZMTP_MORE);
        assert_int_equal(f->n_messages, 2);
        assert_int_equal(f->n_got, sizeof(want));
        assert_memory_equal(f->got, want, sizeof(want));
        f->curve = before;
    }
    uint8_t wire[64], plain[64], nonce[24] = "CurveZMQMESSAGES";
    assert_int_equal(ws_zmtp_wire_bytes(&f->z, 5), 2 + 33 + 5);
    ws_zmtp_write(&f->z, (const uint8_t *)"reply", 5, wire);
    memcpy(nonce + 16, wire + 10, 8);
    assert_int_equal(
        crypto_box_open_easy_afternm(plain, wire + 18, 16 + 6, nonce, f->client.shared), 0);
    assert_memory_equal(plain, "\0reply", 6);
}

static void test_curve_sealed_once_only(void **state)
{
    struct fixture *f = *state;
    curve_open(f);
    put_sealed(f, 0, "pay");
    size_t n = f->n_in;
    assert_int_equal(feed(f, f->in, n, n), WS_ZMTP_MORE);
    assert_int_equal(feed(f, f->in, n, n), WS_ZMTP_WRONG); /* the same again */
    for (size_t i = 2; i < n; i++) {                       /* any byte changed */
        curve_open(f);
        put_sealed(f, 0, "pay");
        f->in[i] ^= 1;
        assert_int_equal(feed_all(f), WS_ZMTP_WRONG);
        assert_int_equal(f->n_messages, 0);
    }
    curve_open(f);
    put_frame(f, 0, "plain", 5);
    assert_int_equal(feed_all(f), WS_ZMTP_WRONG);
}

static void test_curve_who_may_not(void **state)
{
    struct fixture *f = *state;
    uint8_t public_key[32], secret_key[32];
    crypto_box_keypair(public_key, secret_key);
    ws_zmtp_deinit(&f->z);
    begin(f, true);
    put_greeting(f, "CURVE");
    put_hello(f, public_key); /* another server's */
    assert_int_equal(feed_all(f), WS_ZMTP_WRONG);
    curve_hello(f);
    put_initiate(f, public_key); /* the vouch is for another connection's key */
    assert_int_equal(feed_all(f), WS_ZMTP_WRONG);
    assert_false(f->z.refused);
    curve_hello(f);
    f->client.cookie[5] ^= 1; /* an answer to another welcome */
    put_initiate(f, f->client.short_public);
    assert_int_equal(feed_all(f), WS_ZMTP_WRONG);
    f->allowed = false;
    curve_hello(f);
    put_initiate(f, f->client.short_public);
    assert_int_equal(feed_all(f), WS_ZMTP_WRONG);
    assert_true(f->z.refused);
    assert_memory_equal(f->z.out + f->z.n_out - 12, "\4\12\5ERROR\003400", 12);
    assert_int_not_equal(f->z.stage, WS_ZMTP_OPEN);
}

/* A recorded conversation is of no use on another connection. */
static void test_curve_replay(void **state)
{
    struct fixture *f = *state;
    curve_hello(f);
    put_initiate(f, f->client.short_public);
    static uint8_t recorded[1024];
    size_t n = f->n_in;
    memcpy(recorded, f->in, n);
    assert_int_equal(feed_all(f), WS_ZMTP_MORE);
    curve_hello(f);
    assert_int_equal(feed(f, recorded, n, n), WS_ZMTP_WRONG);
}

int main(int argc, char **argv)
{
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_cut_anywhere),
        T(test_small_messages_are_borrowed),
        T(test_lies_about_lengths),
        T(test_message_without_end),
        T(test_no_protocol),
        T(test_metadata_that_lies),
        T(test_no_room_now),
        T(test_flood_of_pings),
        T(test_curve),
        T(test_curve_sealed_once_only),
        T(test_curve_who_may_not),
        T(test_curve_replay),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
