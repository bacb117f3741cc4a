// SPDX-License-Identifier: Apache-2.0
/* What a client may send on a connection in ZeroMQ's protocol: bytes of any kind, and what a client
 * says in truth, in any order, with and without encryption, cut at any place. Beside crashes it
 * looks for messages that nobody has sent, or that somebody has sent whose key is not allowed.
 *
 * The input: a byte (the connection, enum below), the size of the pieces that arrive, and records.
 * Each record is what it is (enum what) and what that takes. */
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "backend/wire/zmtp.h"
#include "tests/fuzz/bytes.h"
#include "tests/lib/curve_client.h"

enum { CURVE = 1, NOT_ALLOWED = 2, LITTLE_ROOM = 4 };
enum what { RAW, GREETING, NEXT_STEP, FRAME, SEALED, CHANGED, LIE, ANSWER, _WHAT_N };
enum { MORE = 1, LONG = 2, COMMAND = 4 };
enum { MAX_BYTES = 5000, MOST = 1000, ROOM = 2000 };

struct connection {
    struct ws_zmtp z;
    struct ws_curve curve;
    struct curve_client client;
    uint8_t what;
    size_t piece;
    bool welcomed, ended;
    unsigned n_sealed; /* by the client, and as they were */
    unsigned n_frames; /* that came out */
};

static struct ws_curve_server server;
static uint8_t own_public[32], own_secret[32];

static struct ws_buffer *buffer(void *arg, size_t n, uint8_t **ret_data)
{
    const struct connection *k = arg;
    return k->what & LITTLE_ROOM && n > ROOM ? NULL : ws_buffer_new(n, ret_data);
}

static size_t max_bytes(void *arg)
{
    (void)arg;
    return MAX_BYTES;
}

static bool allows(void *arg, const uint8_t key[WS_CURVE_KEY_BYTES])
{
    const struct connection *k = arg;
    return !(k->what & NOT_ALLOWED) && !memcmp(key, own_public, sizeof(own_public));
}

static void must(bool ok)
{
    if (!ok)
        abort();
}

static void message(struct connection *k)
{
    struct ws_message m;
    size_t n = 0;
    ws_zmtp_message(&k->z, &m);
    must(m.n_frames && m.n_frames <= WS_MAX_FRAMES);
    for (unsigned i = 0; i < m.n_frames; i++) {
        n += m.frames[i].n;
        uint8_t *copy = malloc(m.frames[i].n + 1); /* reads all of it */
        memcpy(copy, m.frames[i].data, m.frames[i].n);
        free(copy);
    }
    must(n <= MAX_BYTES);
    k->n_frames += m.n_frames;
    must(!(k->what & CURVE) || (k->n_frames <= k->n_sealed && !(k->what & NOT_ALLOWED)));
    ws_zmtp_forget(&k->z);
}

/* Bytes arrive, in pieces. */
static void arrive(struct connection *k, const uint8_t *from, size_t n)
{
    while (n && !k->ended) {
        size_t part = n < k->piece ? n : k->piece, room, left = part;
        uint8_t *direct = ws_zmtp_room(&k->z, &room), *own = malloc(part), *p = own;
        enum ws_zmtp_result r;
        memcpy(own, from, part);
        if (room >= part && k->piece % 2) {
            memcpy(direct, from, part);
            ws_zmtp_put(&k->z, part);
            left = 0;
        }
        while ((r = ws_zmtp_take(&k->z, &p, &left)) == WS_ZMTP_MESSAGE)
            message(k);
        free(own);
        k->ended = r != WS_ZMTP_MORE;
        must(k->z.n_out <= sizeof(k->z.out));
        from += part;
        n -= part;
    }
}

static void frame(struct connection *k, uint8_t flags, const uint8_t *p, size_t n)
{
    uint8_t head[WS_ZMTP_HEAD_MAX] = {flags, (uint8_t)n};
    for (int i = 0; flags & LONG && i < 8; i++)
        head[8 - i] = (uint8_t)((uint64_t)n >> (8 * i));
    arrive(k, head, flags & LONG ? 9 : 2);
    arrive(k, p, n);
}

static void greet(struct connection *k)
{
    uint8_t g[64] = {0xff, [8] = 1, [9] = 0x7f, 3, 1};
    memcpy(g + 12, k->what & CURVE ? "CURVE" : "NULL", k->what & CURVE ? 5 : 4);
    arrive(k, g, sizeof(g));
}

static const uint8_t metadata[] = "\13Socket-Type\0\0\0\6DEALER\10Identity\0\0\0\0";
enum { METADATA_BYTES = sizeof(metadata) - 1 };

/* What a client that keeps to the protocol says next. */
static void next_step(struct connection *k)
{
    uint8_t c[CURVE_CLIENT_INITIATE_BYTES + METADATA_BYTES] = "\5READY";
    if (k->z.stage == WS_ZMTP_READY) {
        memcpy(c + 6, metadata, METADATA_BYTES);
        frame(k, COMMAND, c, 6 + METADATA_BYTES);
    } else if (k->z.stage == WS_ZMTP_HELLO) {
        curve_client_hello(&k->client, c);
        frame(k, COMMAND, c, CURVE_CLIENT_HELLO_BYTES);
    } else if (k->z.stage == WS_ZMTP_INITIATE && k->z.n_out >= WS_CURVE_WELCOME_BYTES) {
        k->welcomed =
            curve_client_welcome(&k->client, k->z.out + k->z.n_out - WS_CURVE_WELCOME_BYTES);
        if (!k->welcomed)
            return;
        curve_client_initiate(&k->client, k->client.short_public, metadata, METADATA_BYTES, c);
        frame(k, COMMAND | LONG, c, sizeof(c));
    }
}

static void sealed(struct connection *k, uint8_t flags, const uint8_t *p, size_t n, size_t change)
{
    uint8_t *c = malloc(CURVE_CLIENT_SEAL_BYTES + n);
    size_t all = CURVE_CLIENT_SEAL_BYTES + n;
    if (!k->welcomed) {
        free(c);
        return;
    }
    curve_client_seal(&k->client, flags, p, n, c);
    if (change)
        c[change % all] ^= 1;
    else
        k->n_sealed++;
    frame(k, all > 255 ? LONG : 0, c, all);
    free(c);
}

static void lie(struct connection *k, uint8_t flags, uint64_t n)
{
    uint8_t head[WS_ZMTP_HEAD_MAX] = {flags | LONG};
    for (int i = 0; i < 8; i++)
        head[8 - i] = (uint8_t)(n >> (8 * i));
    arrive(k, head, sizeof(head));
}

/* The daemon sends something, and what has gathered leaves. */
static void answer(struct connection *k, size_t n)
{
    if (k->z.stage != WS_ZMTP_OPEN)
        return;
    size_t wire = ws_zmtp_wire_bytes(&k->z, n);
    uint8_t *data = calloc(1, n + 1), *to = malloc(wire);
    ws_zmtp_write(&k->z, data, n, to);
    ws_zmtp_ping(&k->z);
    k->z.n_out = 0;
    free(data);
    free(to);
}

static void record(struct connection *k, struct bytes *b)
{
    const uint8_t *p;
    enum what what = take8(b) % _WHAT_N;
    uint8_t flags = what == GREETING || what == NEXT_STEP || what == RAW ? 0 : take8(b);
    size_t change = what == CHANGED ? 1 + take16(b) : 0, n;
    switch (what) {
    case GREETING:
        greet(k);
        return;
    case NEXT_STEP:
        next_step(k);
        return;
    case LIE:
        lie(k, flags, take_size(b));
        return;
    case ANSWER:
        answer(k, flags * 4u);
        return;
    default:
        n = take_bytes(b, take16(b) % MOST, &p);
    }
    if (what == RAW)
        arrive(k, p, n);
    else if (what == FRAME)
        frame(k, flags, p, flags & LONG ? n : n % 256);
    else
        sealed(k, flags, p, n, change);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool ready;
    struct bytes b = {data, size};
    struct connection k = {.what = take8(&b)};
    if (!ready) {
        must(!ws_curve_init());
        crypto_box_keypair(server.public_key, server.secret_key);
        crypto_box_keypair(own_public, own_secret);
        ready = true;
    }
    k.piece = 1 + take8(&b) * 4u;
    k.curve.server = &server;
    memcpy(k.client.own_public, own_public, 32);
    memcpy(k.client.own_secret, own_secret, 32);
    memcpy(k.client.server_key, server.public_key, 32);
    ws_zmtp_init(&k.z, &(struct ws_zmtp_owner){&k, buffer, max_bytes, allows},
                 k.what & CURVE ? &k.curve : NULL);
    while (b.n && !k.ended)
        record(&k, &b);
    ws_zmtp_deinit(&k.z);
    ws_curve_deinit(&k.curve);
    return 0;
}
