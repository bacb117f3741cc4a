// SPDX-License-Identifier: Apache-2.0
/* The connection begins with a greeting of 64 bytes from both ends, then come commands that
 * introduce both ends (READY, or CURVE's), and then frames. A frame is a byte of flags, a
 * length of one or eight bytes, and a body. With CURVE each body is a sealed one, with flags of
 * its own inside.
 *
 * The body of a frame is borrowed from the bytes that were handed in, if it lies there as a whole
 * and is a message alone: nearly all are such. Else the owner is asked for memory of its size as
 * soon as the size is known, and what follows can be read straight to its place there. */
#include "backend/wire/zmtp.h"

#include <string.h>
#include <strings.h>

enum {
    GREETING_BYTES = 64,
    GREETING_SIGNATURE = 10,
    GREETING_MECHANISM = 12,
    MECHANISM_BYTES = 20,
    GREETING_AS_SERVER = 32,
    MAJOR = 3,
    MINOR = 1,
    COMMAND_MAX = 1024 /* CURVE's longest, INITIATE, has about 300 */
};
enum { FLAG_MORE = 1, FLAG_LONG = 2, FLAG_COMMAND = 4 };
enum { STEP_ON = -1 }; /* no result yet */

static int wrong(struct ws_zmtp *z, const char *why)
{
    z->why = why;
    return WS_ZMTP_WRONG;
}

/* ---- what goes out by itself ---- */

static bool has_out(const struct ws_zmtp *z, size_t n)
{
    return n <= sizeof(z->out) - z->n_out;
}

static void put_out(struct ws_zmtp *z, const void *p, size_t n)
{
    memcpy(z->out + z->n_out, p, n);
    z->n_out += n;
}

/* The head of a command of @n bytes, at most 255. */
static void put_command_head(struct ws_zmtp *z, size_t n)
{
    put_out(z, (uint8_t[]){FLAG_COMMAND, (uint8_t)n}, 2);
}

/* A command in an open connection; none, if the other end does not fetch the ones before. */
static void put_command(struct ws_zmtp *z, const uint8_t *body, size_t n)
{
    if (!has_out(z, n + 2 + WS_CURVE_SEAL_BYTES))
        return;
    if (!z->curve) {
        put_command_head(z, n);
        put_out(z, body, n);
        return;
    }
    put_out(z, (uint8_t[]){0, (uint8_t)(n + WS_CURVE_SEAL_BYTES)}, 2);
    ws_curve_seal(z->curve, WS_CURVE_COMMAND, body, n, z->out + z->n_out);
    z->n_out += n + WS_CURVE_SEAL_BYTES;
}

static const char *mechanism(const struct ws_zmtp *z)
{
    return z->curve ? "CURVE" : "NULL";
}

static void put_greeting(struct ws_zmtp *z)
{
    uint8_t g[GREETING_BYTES] = {0xff, [9] = 0x7f, MAJOR, MINOR};
    memcpy(g + GREETING_MECHANISM, mechanism(z), strlen(mechanism(z)));
    g[GREETING_AS_SERVER] = z->curve != NULL;
    put_out(z, g, sizeof(g));
}

/* ---- introductions ---- */

/* What we say of ourselves. */
static const uint8_t our_metadata[] = "\13Socket-Type\0\0\0\6ROUTER\10Identity\0\0\0";
enum { OUR_METADATA_BYTES = sizeof(our_metadata) }; /* its last byte ends the last length */

static bool is_command(const uint8_t *p, size_t n, const char *name)
{
    size_t length = strlen(name);
    return n > length && p[0] == length && !memcmp(p + 1, name, length);
}

/* Names and values, each behind its length. Return: it is a DEALER. */
static bool is_dealer(const uint8_t *p, size_t n)
{
    static const char name[] = "Socket-Type", value[] = "DEALER";
    bool dealer = false;
    while (n) {
        size_t k = p[0];
        if (n < 1 + k + 4)
            return false;
        const uint8_t *v = p + 1 + k;
        size_t size = (size_t)v[0] << 24 | (size_t)v[1] << 16 | (size_t)v[2] << 8 | v[3];
        if (size > n - 1 - k - 4)
            return false;
        if (k == sizeof(name) - 1 && !strncasecmp((const char *)p + 1, name, k))
            dealer = size == sizeof(value) - 1 && !memcmp(v + 4, value, size);
        p = v + 4 + size;
        n -= 1 + k + 4 + size;
    }
    return dealer;
}

static int open_now(struct ws_zmtp *z, const uint8_t *metadata, size_t n)
{
    if (!is_dealer(metadata, n))
        return wrong(z, "it is no DEALER");
    z->stage = WS_ZMTP_OPEN;
    return STEP_ON;
}

static int null_ready(struct ws_zmtp *z, const uint8_t *p, size_t n)
{
    static const char name[] = "\5READY";
    size_t length = sizeof(name) - 1;
    if (!is_command(p, n, "READY"))
        return wrong(z, "it does not introduce itself");
    put_command_head(z, length + OUR_METADATA_BYTES);
    put_out(z, name, length);
    put_out(z, our_metadata, OUR_METADATA_BYTES);
    return open_now(z, p + length, n - length);
}

static int curve_hello(struct ws_zmtp *z, const uint8_t *p, size_t n)
{
    uint8_t welcome[WS_CURVE_WELCOME_BYTES];
    if (!ws_curve_hello(z->curve, p, n, welcome))
        return wrong(z, "it does not know this daemon's public key");
    put_command_head(z, sizeof(welcome));
    put_out(z, welcome, sizeof(welcome));
    z->stage = WS_ZMTP_INITIATE;
    return STEP_ON;
}

static int curve_initiate(struct ws_zmtp *z, uint8_t *p, size_t n)
{
    static const char error[] = "\5ERROR\003400";
    uint8_t key[WS_CURVE_KEY_BYTES], ready[OUR_METADATA_BYTES + WS_CURVE_READY_SEAL_BYTES];
    const uint8_t *metadata;
    size_t n_metadata;
    if (!ws_curve_initiate(z->curve, p, n, key, &metadata, &n_metadata))
        return wrong(z, "it does not prove who it is");
    if (!z->owner.allows(z->owner.arg, key)) {
        z->refused = true;
        put_command_head(z, sizeof(error) - 1);
        put_out(z, error, sizeof(error) - 1);
        return wrong(z, "its key is not allowed");
    }
    ws_curve_ready(z->curve, our_metadata, OUR_METADATA_BYTES, ready);
    put_command_head(z, sizeof(ready));
    put_out(z, ready, sizeof(ready));
    return open_now(z, metadata, n_metadata);
}

static int introduce(struct ws_zmtp *z, uint8_t *p, size_t n)
{
    switch (z->stage) {
    case WS_ZMTP_HELLO:
        return curve_hello(z, p, n);
    case WS_ZMTP_INITIATE:
        return curve_initiate(z, p, n);
    default:
        return null_ready(z, p, n);
    }
}

/* ---- frames ---- */

static int command(struct ws_zmtp *z, const uint8_t *p, size_t n)
{
    enum { PING_BYTES = 7 }; /* name and time to live, before the context */
    uint8_t pong[5 + WS_ZMTP_CONTEXT_MAX] = "\4PONG";
    if (is_command(p, n, "PONG"))
        return STEP_ON;
    if (!is_command(p, n, "PING") || n < PING_BYTES || n > PING_BYTES + WS_ZMTP_CONTEXT_MAX)
        return wrong(z, "a command that means nothing here");
    memcpy(pong + 5, p + PING_BYTES, n - PING_BYTES);
    put_command(z, pong, 5 + n - PING_BYTES);
    return STEP_ON;
}

static int append(struct ws_zmtp *z, const uint8_t *p, size_t n, struct ws_buffer *b)
{
    z->frames[z->n_frames++] = (struct ws_frame){p, n, ws_buffer_ref(b)};
    z->message_bytes += n;
    return z->flags & FLAG_MORE ? STEP_ON : (int)WS_ZMTP_MESSAGE;
}

/* A frame's body is there as a whole. */
static int body_there(struct ws_zmtp *z, uint8_t *p, size_t n, struct ws_buffer *b)
{
    uint8_t inner;
    if (z->stage != WS_ZMTP_OPEN)
        return introduce(z, p, n);
    if (z->curve) {
        if (!ws_curve_open(z->curve, p, n, &inner, &p, &n))
            return wrong(z, "a sealed frame that cannot be opened");
        z->flags = (uint8_t)((inner & WS_CURVE_MORE ? FLAG_MORE : 0) |
                             (inner & WS_CURVE_COMMAND ? FLAG_COMMAND : 0));
    }
    return z->flags & FLAG_COMMAND ? command(z, p, n) : append(z, p, n, b);
}

/* The flags and the length of a frame are there. */
static int check_head(struct ws_zmtp *z)
{
    uint64_t n = 0;
    for (size_t i = 1; i < z->n_head; i++)
        n = n << 8 | z->head[i];
    z->flags = z->head[0];
    bool is_command = z->flags & FLAG_COMMAND;
    if (is_command ? z->flags & FLAG_MORE : z->stage != WS_ZMTP_OPEN)
        return wrong(z, "a frame that may not stand there");
    size_t extra = z->curve ? WS_CURVE_SEAL_BYTES : 0, max = z->owner.max_bytes(z->owner.arg);
    if (is_command && (z->stage != WS_ZMTP_OPEN || !z->curve)) {
        if (n > COMMAND_MAX)
            return wrong(z, "a command that is too long");
    } else if (z->message_bytes > max || n > extra + max - z->message_bytes ||
               z->n_frames == WS_MAX_FRAMES) {
        return WS_ZMTP_TOO_LARGE;
    }
    z->body_bytes = (size_t)n;
    z->body_came = 0;
    z->has_head = true;
    return STEP_ON;
}

static bool gather(struct ws_zmtp *z, uint8_t **p, size_t *n, size_t want)
{
    size_t k = want - z->n_head < *n ? want - z->n_head : *n;
    memcpy(z->head + z->n_head, *p, k);
    z->n_head += k;
    *p += k;
    *n -= k;
    return z->n_head == want;
}

static int take_head(struct ws_zmtp *z, uint8_t **p, size_t *n)
{
    if (!z->n_head && !gather(z, p, n, 1))
        return WS_ZMTP_MORE;
    if (z->head[0] & ~(FLAG_MORE | FLAG_LONG | FLAG_COMMAND))
        return wrong(z, "a frame with unknown flags");
    if (!gather(z, p, n, z->head[0] & FLAG_LONG ? 9 : 2))
        return WS_ZMTP_MORE;
    return check_head(z);
}

/* No head is held any more. */
static void end_frame(struct ws_zmtp *z)
{
    ws_buffer_unref(z->body_buffer);
    z->body_buffer = NULL;
    z->body = NULL;
    z->has_head = false;
    z->n_head = 0;
}

static int take_body(struct ws_zmtp *z, uint8_t **p, size_t *n)
{
    /* With CURVE what a frame is shows when it is open, and then it cannot be tried again. */
    bool alone = !z->curve && !z->n_frames && !(z->flags & FLAG_MORE);
    int r;
    if (!z->body_buffer && alone && z->body_bytes <= *n) {
        uint8_t *body = *p;
        *p += z->body_bytes;
        *n -= z->body_bytes;
        r = body_there(z, body, z->body_bytes, NULL);
    } else {
        if (!z->body_buffer &&
            !(z->body_buffer = z->owner.buffer(z->owner.arg, z->body_bytes, &z->body)))
            return WS_ZMTP_NO_ROOM;
        size_t left = z->body_bytes - z->body_came, k = left < *n ? left : *n;
        memcpy(z->body + z->body_came, *p, k);
        ws_zmtp_put(z, k);
        *p += k;
        *n -= k;
        if (z->body_came < z->body_bytes)
            return WS_ZMTP_MORE;
        r = body_there(z, z->body, z->body_bytes, z->body_buffer);
    }
    end_frame(z);
    return r;
}

/* ---- the greeting ---- */

static int take_greeting(struct ws_zmtp *z, uint8_t **p, size_t *n)
{
    char name[MECHANISM_BYTES] = {0};
    bool whole = gather(z, p, n, GREETING_BYTES);
    const uint8_t *g = z->head;
    if ((z->n_head && g[0] != 0xff) || (z->n_head >= GREETING_SIGNATURE && !(g[9] & 1)))
        return wrong(z, "it does not speak ZeroMQ");
    if (z->n_head > GREETING_SIGNATURE && g[GREETING_SIGNATURE] < MAJOR)
        return wrong(z, "its ZeroMQ is older than 4.0");
    if (!whole)
        return WS_ZMTP_MORE;
    memcpy(name, mechanism(z), strlen(mechanism(z)));
    if (memcmp(g + GREETING_MECHANISM, name, sizeof(name)))
        return wrong(z, z->curve ? "it does not use CURVE" : "it uses keys, which are for tcp");
    z->n_head = 0;
    z->stage = z->curve ? WS_ZMTP_HELLO : WS_ZMTP_READY;
    return STEP_ON;
}

/* ---- the connection ---- */

void ws_zmtp_init(struct ws_zmtp *z, const struct ws_zmtp_owner *owner, struct ws_curve *curve)
{
    memset(z, 0, sizeof(*z));
    z->owner = *owner;
    z->curve = curve;
    put_greeting(z);
}

void ws_zmtp_forget(struct ws_zmtp *z)
{
    for (unsigned i = 0; i < z->n_frames; i++)
        ws_buffer_unref(z->frames[i].buffer);
    z->n_frames = 0;
    z->message_bytes = 0;
}

void ws_zmtp_deinit(struct ws_zmtp *z)
{
    ws_zmtp_forget(z);
    end_frame(z);
}

enum ws_zmtp_result ws_zmtp_take(struct ws_zmtp *z, uint8_t **p, size_t *n)
{
    int r;
    do {
        r = z->stage == WS_ZMTP_GREETING ? take_greeting(z, p, n)
            : z->has_head                ? take_body(z, p, n)
                                         : take_head(z, p, n);
    } while (r == STEP_ON);
    return (enum ws_zmtp_result)r;
}

uint8_t *ws_zmtp_room(struct ws_zmtp *z, size_t *ret_n)
{
    *ret_n = z->body_buffer ? z->body_bytes - z->body_came : 0;
    return z->body_buffer ? z->body + z->body_came : NULL;
}

void ws_zmtp_put(struct ws_zmtp *z, size_t n)
{
    z->body_came += n;
}

void ws_zmtp_message(struct ws_zmtp *z, struct ws_message *ret)
{
    ret->frames = z->frames;
    ret->n_frames = z->n_frames;
    ret->oversized = false;
}

size_t ws_zmtp_frame_head(uint8_t head[WS_ZMTP_HEAD_MAX], size_t n)
{
    uint64_t v = n;
    if (n < 256) {
        head[0] = 0;
        head[1] = (uint8_t)n;
        return 2;
    }
    head[0] = FLAG_LONG;
    for (int i = 8; i; i--, v >>= 8)
        head[i] = (uint8_t)v;
    return WS_ZMTP_HEAD_MAX;
}

size_t ws_zmtp_wire_bytes(const struct ws_zmtp *z, size_t n)
{
    size_t body = n + (z->curve ? WS_CURVE_SEAL_BYTES : 0);
    return body + (body < 256 ? 2 : WS_ZMTP_HEAD_MAX);
}

void ws_zmtp_write(struct ws_zmtp *z, const uint8_t *data, size_t n, uint8_t *to)
{
    to += ws_zmtp_frame_head(to, n + (z->curve ? WS_CURVE_SEAL_BYTES : 0));
    if (z->curve)
        ws_curve_seal(z->curve, 0, data, n, to);
    else
        memcpy(to, data, n);
}

void ws_zmtp_ping(struct ws_zmtp *z)
{
    put_command(z, (const uint8_t *)"\4PING\0", 7);
}
