// SPDX-License-Identifier: Apache-2.0
/* Any bytes as messages of clients to the server core, with fake devices. The input is a sequence
 * of records: a byte (low three bits: which peer; the others: what happens before, below), a length
 * of two bytes, and that many bytes of message. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "backend/client/segment.h"
#include "base/log.h"
#include "tests/lib/wsserver.h"

enum { COMPLETE = 0x80, DISCONNECT = 0x40, INLINE = 0x20, SEGMENTS = 0x10, TWO_FRAMES = 0x08 };

static void make_segments(struct ws_client *c)
{
    struct ws_handoff_request staging = {
        .kind = WS_HANDOFF_STAGING, .bytes = 4 * 4096, .chunk_bytes = 4096};
    struct ws_handoff_request pinned = {.kind = WS_HANDOFF_PINNED, .bytes = 8192};
    struct ws_segment *g;
    (void)ws_segment_new(c, &staging, &g);
    (void)ws_segment_new(c, &pinned, &g);
}

static void happen(struct wss *w, uint8_t what)
{
    struct wss_peer *p = &w->peers[what % WSS_PEERS];
    struct ws_client *c = ws_client_find(w->server, &p->peer);
    for (int i = 0; i < 2; i++) {
        if (what & COMPLETE && w->dev[i].n_ops)
            fakedev_complete(&w->dev[i], w->dev[i].n_ops / 2, 1, 2,
                             what & INLINE ? WS_DEV_E_TRAP : WS_DEV_OK);
        w->dev[i].inline_completion = what & INLINE;
    }
    if (what & DISCONNECT)
        ws_server_disconnected(w->server, &p->peer);
    else if (c && what & SEGMENTS)
        make_segments(c);
    p->n_replies = 0;
    wss_turn(w);
    c = ws_client_find(w->server, &p->peer);
    if (c)
        c->wire.seq_known = false; /* the fuzzer is not to guess sequence numbers */
}

static void message(struct wss *w, uint8_t what, const uint8_t *p, size_t n)
{
    static uint8_t more[64];
    uint8_t *own = malloc(n ? n : 1); /* of that size, so that reading beyond it is noticed */
    struct ws_frame frames[2] = {{.data = own, .n = n}, {.data = more, .n = sizeof(more)}};
    struct ws_message m = {.peer = &w->peers[what % WSS_PEERS].peer,
                           .frames = frames,
                           .n_frames = what & TWO_FRAMES ? 2 : 1};
    if (!own)
        abort();
    memcpy(own, p, n);
    memset(more, 7, sizeof(more));
    ws_server_handle(w->server, &m);
    free(own);
    wss_turn(w);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    static int null = -1;
    if (null < 0)
        ws_log_set_output(null = open("/dev/null", O_WRONLY), "");
    struct wss *w = wss_new(2);
    /* what /proc says of this process does not depend on the input */
    for (unsigned k = 0; k < WSS_PEERS; k++)
        w->peers[k].pid = 0;
    w->config.limits.max_outstanding = 512;
    w->config.limits.max_commands = 128;
    w->config.limits.max_image_bytes = 65536;
    w->config.limits.max_segment_bytes = 1 << 16;
    w->config.limits.max_message_bytes = 65536;
    w->dev[0].base.spec.memory_bytes = w->dev[1].base.spec.memory_bytes = 1 << 20;
    w->server->cache.limit_bytes = 4096;
    while (n >= 3) {
        size_t len = WS_MIN((size_t)(p[1] | p[2] << 8), n - 3);
        happen(w, p[0]);
        message(w, p[0], p + 3, len);
        p += 3 + len;
        n -= 3 + len;
    }
    wss_free(w); /* aborts if the devices still hold anything */
    return 0;
}
