/* SPDX-License-Identifier: Apache-2.0 */
/* tests/attack/message.c - attacks by messages of a client that has said hello: row 7, and messages
 * and images that lie. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/macros.h"
#include "tests/attack/attack.h"

/* ---- row 7: work for the loop ---- */

/* Allocations are cleared, so this is 64 GiB of zeros in 50 KB. */
static const char *clearing(const struct target *t, unsigned copy)
{
    Ws__MemAlloc alloc = WS__MEM_ALLOC__INIT;
    Ws__MemFree free_it = WS__MEM_FREE__INIT;
    struct raw r;
    alloc.bytes = 32 << 20;
    (void)copy;
    while (attack_goes_on(t) && attack_open(&r, t)) {
        if (!raw_call(&r, WS__COMMAND__C_MEM_ALLOC, &alloc, &free_it.address)) {
            uint64_t last = 0;
            for (int i = 0; i < 2000; i++) {
                raw_put(&r, WS__COMMAND__C_MEM_FREE, &free_it);
                last = raw_put(&r, WS__COMMAND__C_MEM_ALLOC, &alloc);
            }
            if (!raw_send(&r))
                raw_wait(&r, last, NULL);
        }
        raw_close(&r);
    }
    return NULL;
}

static const char *variable(const struct target *t, unsigned copy)
{
    struct raw r;
    char ptx[256];
    for (unsigned i = 0; attack_goes_on(t) && attack_open(&r, t); i++) {
        int n = snprintf(ptx, sizeof(ptx),
                         "// %u %u\n.version 7.0\n.target sm_50\n.address_size 64\n"
                         ".visible .global .b8 big[1073741824];\n.visible .entry k()\n{\nret;\n}\n",
                         i, copy);
        raw_load(&r, 1, ptx, (size_t)n);
        raw_close(&r);
    }
    return NULL;
}

/* 100,000 commands that each tell of a function that is not supported, under another name. */
static const char *not_supported(const struct target *t, unsigned copy)
{
    Ws__NotSupported s = WS__NOT_SUPPORTED__INIT;
    struct raw r;
    char name[64];
    s.name = name;
    s.count = 1;
    for (unsigned n = 0; attack_goes_on(t) && attack_open(&r, t); raw_close(&r))
        while (attack_goes_on(t)) {
            for (int i = 0; i < 2000; i++) {
                snprintf(name, sizeof(name), "cuNothing%u_%u", copy, n++);
                raw_put(&r, WS__COMMAND__C_NOT_SUPPORTED, &s);
            }
            if (raw_send(&r))
                break;
        }
    return NULL;
}

/* Asks for one thing again and again, without hello, and reads the answers. */
static const char *ask(const struct target *t, const Ws__ClientMessage *m, unsigned at_a_time)
{
    Ws__ServerMessage *a = NULL;
    while (attack_goes_on(t)) {
        int fd = raw_dial(t->sock), e = fd < 0 || raw_greet(fd, "", 0) ? -1 : 0;
        while (!e && attack_goes_on(t)) {
            for (unsigned i = 0; !e && i < at_a_time; i++)
                e = raw_message(fd, m);
            for (unsigned i = 0; !e && i < at_a_time; i++) {
                a = raw_receive(fd);
                e = a ? 0 : -1;
                if (a)
                    ws__server_message__free_unpacked(a, NULL);
            }
        }
        if (fd >= 0)
            close(fd);
        attack_sleep_ms(1);
    }
    return NULL;
}

static const char *traces(const struct target *t, unsigned copy)
{
    Ws__ClientMessage m = WS__CLIENT_MESSAGE__INIT;
    Ws__TraceRequest q = WS__TRACE_REQUEST__INIT;
    q.version = WS_PROTOCOL_VERSION;
    m.trace = &q;
    (void)copy;
    return ask(t, &m, 8);
}

static const char *statuses(const struct target *t, unsigned copy)
{
    Ws__ClientMessage m = WS__CLIENT_MESSAGE__INIT;
    Ws__StatusRequest q = WS__STATUS_REQUEST__INIT;
    q.version = WS_PROTOCOL_VERSION;
    m.status = &q;
    (void)copy;
    return ask(t, &m, 8);
}

/* Why the newest job ran as it did, and which policy is in force. */
static const char *explanations(const struct target *t, unsigned copy)
{
    Ws__ClientMessage m = WS__CLIENT_MESSAGE__INIT;
    Ws__ExplainRequest explain = WS__EXPLAIN_REQUEST__INIT;
    Ws__PolicyRequest policy = WS__POLICY_REQUEST__INIT;
    explain.version = policy.version = WS_PROTOCOL_VERSION;
    m.explain = copy % 2 ? NULL : &explain;
    m.policy = copy % 2 ? &policy : NULL;
    return ask(t, &m, 8);
}

/* Full messages of commands that do nothing. */
static const char *queries(const struct target *t, unsigned copy)
{
    Ws__Query q = WS__QUERY__INIT;
    struct raw r;
    q.what_case = WS__QUERY__WHAT_STREAM;
    q.stream = WS_STREAM_DEFAULT_0;
    (void)copy;
    for (; attack_goes_on(t) && attack_open(&r, t); raw_close(&r))
        while (attack_goes_on(t)) {
            uint64_t last = 0;
            for (int i = 0; i < 4000; i++)
                last = raw_put(&r, WS__COMMAND__C_QUERY, &q);
            if (raw_send(&r) || raw_wait(&r, last, NULL) < 0)
                break;
        }
    return NULL;
}

/* Writes the head of a field of @n bytes. Return: its length. */
static size_t put_head(uint8_t *to, unsigned number, size_t n)
{
    size_t k = 0;
    to[k++] = (uint8_t)(number << 3 | 2);
    for (; n >= 0x80; n >>= 7)
        to[k++] = (uint8_t)(n | 0x80);
    to[k++] = (uint8_t)n;
    return k;
}

/* Messages full of fields that nobody knows: by themselves, in a hello, a command or a launch. */
static const char *fields(const struct target *t, unsigned copy)
{
    enum { HELLO = 1, COMMANDS = 3, LAUNCH = 1, HEAD = 16, N = 1300000 };
    static const uint8_t unknown[] = {0x80, 0x7d, 0};
    uint8_t *text = malloc(HEAD + N * sizeof(unknown)), *all = text + HEAD;
    struct raw r;
    for (size_t i = 0; text && i < N; i++)
        memcpy(all + i * sizeof(unknown), unknown, sizeof(unknown));
    for (unsigned i = copy; text && attack_goes_on(t) && attack_open(&r, t); i++) {
        const unsigned numbers[][2] = {{0}, {HELLO}, {COMMANDS}, {LAUNCH, COMMANDS}};
        uint8_t *from = all;
        size_t n = N * sizeof(unknown);
        for (unsigned k = 0; k < 2 && numbers[i % 4][k]; k++) {
            uint8_t head[8];
            size_t n_head = put_head(head, numbers[i % 4][k], n);
            memcpy(from -= n_head, head, n_head);
            n += n_head;
        }
        raw_frame(r.fd, from, n, false);
        raw_wait(&r, 1, NULL); /* it is closed */
        raw_close(&r);
    }
    return NULL;
}

/* ---- images that lie ---- */

struct fatbin_header {
    uint32_t magic;
    uint16_t version, header_bytes;
    uint64_t bytes;
};
struct fatbin_entry {
    uint16_t kind, version; /* 1: PTX */
    uint32_t header_bytes;
    uint64_t bytes;
    uint32_t compressed_bytes, options_at;
    uint16_t minor, major;
    uint32_t sm, name_at, name_bytes;
    uint64_t flags, reserved, text_bytes;
};
enum { FATBIN_LZ4 = 0x2000, FATBIN_ZSTD = 0x8000 };

/* A fat binary whose compressed text says that it has @text_bytes. */
static size_t lie(uint8_t *to, bool zstd, uint64_t text_bytes, uint32_t compressed_bytes,
                  uint8_t seed)
{
    enum { PAYLOAD = 4096 };
    struct fatbin_header h = {0xba55ed50, 1, sizeof(h), sizeof(struct fatbin_entry) + PAYLOAD};
    struct fatbin_entry e = {.kind = 1,
                             .version = 0x101,
                             .header_bytes = sizeof(e),
                             .bytes = PAYLOAD,
                             .compressed_bytes = compressed_bytes,
                             .minor = 0,
                             .major = 7,
                             .sm = 50,
                             .flags = zstd ? FATBIN_ZSTD : FATBIN_LZ4,
                             .text_bytes = text_bytes};
    memcpy(to, &h, sizeof(h));
    memcpy(to + sizeof(h), &e, sizeof(e));
    uint8_t *p = to + sizeof(h) + sizeof(e);
    /* LZ4: literals and a match that repeats to the end; zstd: a frame that claims 2^62 bytes. */
    memset(p, 0xff, PAYLOAD);
    p[0] = 0x1f;
    p[1] = seed;
    p[2] = 1;
    p[3] = 0;
    if (zstd)
        memcpy(p, "\x28\xb5\x2f\xfd\xe0\0\0\0\0\0\0\0\x40\1\0\0", 16);
    return sizeof(h) + sizeof(e) + PAYLOAD;
}

static const char *lies(const struct target *t, unsigned copy)
{
    static const uint64_t sizes[] = {0,       1,          4095,       1 << 20,
                                     1 << 30, UINT32_MAX, UINT64_MAX, 1ull << 62};
    static const uint32_t compressed[] = {4096, 0, 4097, UINT32_MAX};
    uint8_t image[8192];
    struct raw r;
    for (unsigned i = 0; attack_goes_on(t) && attack_open(&r, t); i++) {
        size_t n =
            lie(image, copy % 2, sizes[i % WS_ARRAY_SIZE(sizes)],
                compressed[i / WS_ARRAY_SIZE(sizes) % WS_ARRAY_SIZE(compressed)], (uint8_t)i);
        raw_load(&r, i + 1, image, n);
        raw_close(&r);
    }
    return NULL;
}

/* ---- messages that stop half way ---- */

static const char *stop_in_message(const struct target *t, unsigned copy)
{
    uint8_t head[9];
    struct raw r;
    (void)copy;
    if (!attack_open(&r, t))
        return NULL;
    raw_bytes(r.fd, head, raw_head(head, 100000, false));
    raw_bytes(r.fd, head, 5);
    raise(SIGSTOP);
    return NULL;
}

static const char *stop_in_ring(const struct target *t, unsigned copy)
{
    struct raw r;
    if (!attack_open(&r, t) || raw_open_side(&r, t->side) || raw_open_ring(&r))
        return NULL;
    /* The first slot says that it is full and is not; the next one comes before it. */
    struct ws_ring_slot *slot = r.ring.memory->to_daemon;
    slot[0].bytes = copy % 2 ? UINT32_MAX : 200;
    slot[0].after = copy % 3;
    memset(slot[0].data, 0x10, 100);
    slot[0].state = WS_RING_FULL;
    slot[1].state = WS_RING_FULL;
    ws_ring_signal(&r.ring);
    raise(SIGSTOP);
    return NULL;
}

/* The ring's owner writes everywhere in it, all the time. */
static const char *ring_noise(const struct target *t, unsigned copy)
{
    struct raw r;
    for (; attack_goes_on(t) && attack_open(&r, t); raw_close(&r)) {
        if (raw_open_side(&r, t->side) || raw_open_ring(&r))
            continue;
        for (unsigned i = 0; i < 20000 && attack_goes_on(t); i++) {
            struct ws_ring_slot *s = &r.ring.memory->to_daemon[(unsigned)rand() % WS_RING_SLOTS];
            s->bytes = (unsigned)rand() % (2 * WS_RING_MESSAGE_BYTES);
            s->data[rand() % 64] = (uint8_t)rand();
            s->after = (unsigned)rand() % 2;
            s->state = (unsigned)rand() % 3;
            if (i % 16 == 0)
                ws_ring_signal(&r.ring);
        }
    }
    (void)copy;
    return NULL;
}

const struct attack attacks_message[] = {
    {"7", "clearing", "2,000 times (free, allocate 32 MiB) in a message", clearing, .copies = 1},
    {"7", "variable", "PTX of 150 bytes with a variable of 1 GB", variable, .max_mib = 2048},
    {"7", "not-supported", "tells of functions that are not supported", not_supported, .copies = 1},
    {"7", "traces", "asks for the trace all the time", traces, .copies = 2},
    {"7", "statuses", "asks for the status all the time", statuses, .copies = 2},
    {"7", "explanations", "asks for explanations and the policy all the time", explanations,
     .copies = 2, .conf = "policy = \"rr\"\n"},
    {"7", "queries", "messages of 4,000 questions each", queries, .copies = 2},
    {"7", "fields", "messages of 1,300,000 fields that nobody knows", fields, .copies = 2},
    {"+", "lies", "images that lie about their sizes", lies, .copies = 2},
    {"+", "stop-message", "SIGSTOP in the middle of a message", stop_in_message, .copies = 4},
    {"+", "stop-ring", "SIGSTOP in the middle of a message of the ring", stop_in_ring, .copies = 4},
    {"+", "ring-noise", "writes everywhere in its ring", ring_noise, .copies = 1},
    {0}};
