// SPDX-License-Identifier: Apache-2.0
/* Any bytes on the handoff socket and in the slots of a ring, from local clients of the server core
 * with fake devices. The input is a sequence of records: a byte (low two bits: which client; the
 * others: what it does) and what that asks for. A descriptor that the daemon keeps for nobody is an
 * error, as are devices that hold something in the end. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "tests/fuzz/bytes.h"
#include "tests/fuzz/side.h"
#include "tests/lib/wsserver.h"

enum { CLIENTS = 4, MAX_STEPS = 64 };
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void hello(struct wss *w, unsigned k)
{
    Ws__ClientMessage m = WS__CLIENT_MESSAGE__INIT;
    Ws__Hello h = WS__HELLO__INIT;
    h.version = WS_PROTOCOL_VERSION;
    h.local = true;
    m.hello = &h;
    wss_message(w, k, &m);
}

/* A request of the size that requests have, with the client's token unless the input says
 * otherwise. */
static void ask(struct wss *w, unsigned k, struct side *s, struct bytes *in)
{
    struct ws_handoff_request q = {.kind = take8(in)};
    uint8_t how = take8(in);
    const struct ws_client *c = ws_client_find(w->server, &w->peers[k].peer);
    if (q.kind & 0x80)
        q.kind = WS_HANDOFF_RING + (q.kind & 1);
    q.segment = how & 3;
    q.bytes = take_size(in);
    q.chunk_bytes = how & 4 ? 4096 : (uint32_t)take_size(in);
    if (c && !(how & 8))
        memcpy(q.token, c->wire.token, sizeof(q.token));
    side_ask(s, &q);
    ws_server_handoff_turn(w->server);
    side_answers(s, q.kind);
}

static void write_slot(struct side *s, struct bytes *in)
{
    uint8_t how = take8(in);
    const uint8_t *data;
    if (!s->ring.memory)
        return;
    struct ws_ring_slot *slot = &s->ring.memory->to_daemon[how & (WS_RING_SLOTS - 1)];
    size_t n = take_bytes(in, take8(in), &data);
    memcpy(slot->data, data, n);
    atomic_store(&slot->bytes, how & 8 ? (uint32_t)take_size(in) : (uint32_t)n);
    atomic_store(&slot->after, how & 16 ? take_size(in) : s->ring.n_sent);
    atomic_store(&slot->state, how & 32 ? take8(in) : WS_RING_FULL);
}

static void step(struct wss *w, struct side *sides, struct bytes *in)
{
    uint8_t what = take8(in);
    unsigned k = what % CLIENTS;
    struct side *s = &sides[k];
    const uint8_t *data;
    switch (what >> 2 & 7) {
    case 0:
        hello(w, k);
        break;
    case 1:
        side_connect(s, w->server->handoff.path);
        ws_server_handoff_turn(w->server);
        break;
    case 2:
    case 3:
        ask(w, k, s, in);
        break;
    case 4: {
        unsigned n_fds = take8(in) & 7;
        size_t n = take_bytes(in, take8(in) & 63, &data);
        side_send(s, data, n, n_fds);
        ws_server_handoff_turn(w->server);
        side_answers(s, 0);
        break;
    }
    case 5:
        write_slot(s, in);
        break;
    case 6:
        ws_ring_signal(&s->ring);
        ws_server_handoff_turn(w->server);
        w->peers[k].n_replies = 0;
        wss_turn(w);
        break;
    default:
        if (what & 0x80) {
            side_end(s);
            ws_server_handoff_turn(w->server);
        } else {
            size_t n = take_bytes(in, take8(in), &data);
            w->peers[k].n_replies = 0;
            s->ring.n_sent++;
            wss_raw(w, k, data, n);
        }
    }
}

/* The lowest one that is free would not tell: one that is left open may lie above others that were
 * closed. */
static unsigned n_descriptors(void)
{
    enum { MOST = 128 };
    unsigned n = 0;
    for (int fd = 0; fd < MOST; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    static int null = -1;
    static char path[64];
    struct side sides[CLIENTS];
    struct bytes in = {p, n};
    if (null < 0) {
        ws_log_set_output(null = open("/dev/null", O_WRONLY | O_CLOEXEC), "");
        snprintf(path, sizeof(path), "/dev/shm/fuzz_side.%d", (int)getpid());
        side_init(&sides[0]);
        side_send(&sides[0], "", 0, 1); /* opens what it keeps open */
    }
    unsigned before = n_descriptors();
    struct wss *w = wss_new(2);
    /* what /proc says of this process does not depend on the input */
    for (unsigned k = 0; k < CLIENTS; k++)
        w->peers[k].pid = 0;
    w->config.limits.max_segment_bytes = 1 << 20;
    if (ws_server_handoff_listen(w->server, path, 0600))
        abort();
    for (unsigned k = 0; k < CLIENTS; k++)
        side_init(&sides[k]);
    for (int i = 0; in.n && i < MAX_STEPS; i++)
        step(w, sides, &in);
    for (unsigned k = 0; k < CLIENTS; k++)
        side_end(&sides[k]);
    wss_free(w); /* aborts if the devices still hold anything */
    if (n_descriptors() != before) {
        fprintf(stderr, "a descriptor is left open\n");
        abort();
    }
    return 0;
}
