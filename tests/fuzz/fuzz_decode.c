// SPDX-License-Identifier: Apache-2.0
/* Bytes of any kind as one message of a client, read as the daemon reads it: no crash, no overrun;
 * a launch or a piece of an image that is read in place is the one that protobuf-c reads. */
#include <stdlib.h>
#include <string.h>

#include "backend/wire/decode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Fields that are messages may come in pieces, which protobuf-c puts together: only what comes in
 * one piece is compared. */
static bool one_piece(struct ws_bytes c)
{
    size_t at = 1;
    uint64_t n = 0;
    for (unsigned shift = 0; at < c.n && shift < 63; shift += 7) {
        uint8_t b = c.p[at++];
        n |= (uint64_t)(b & 0x7f) << shift;
        if (!(b & 0x80))
            return n == c.n - at;
    }
    return false;
}

static void compare(struct ws_bytes bytes, const Ws__Launch *l)
{
    Ws__Command *c = ws__command__unpack(NULL, bytes.n, bytes.p);
    if (c && c->c_case == WS__COMMAND__C_LAUNCH) {
        const Ws__Launch *m = c->launch;
        if (l->stream != m->stream || l->function != m->function || l->grid_x != m->grid_x ||
            l->grid_y != m->grid_y || l->grid_z != m->grid_z || l->block_x != m->block_x ||
            l->block_y != m->block_y || l->block_z != m->block_z ||
            l->shared_bytes != m->shared_bytes || l->flags != m->flags ||
            l->params.len != m->params.len ||
            (l->params.len && memcmp(l->params.data, m->params.data, l->params.len)))
            abort();
    }
    ws__command__free_unpacked(c, NULL);
}

static bool same(ProtobufCBinaryData a, ProtobufCBinaryData b)
{
    return a.len == b.len && (!a.len || !memcmp(a.data, b.data, a.len));
}

static void compare_image(struct ws_bytes bytes, const Ws__ModuleImage *i)
{
    Ws__Command *c = ws__command__unpack(NULL, bytes.n, bytes.p);
    if (c && c->c_case == WS__COMMAND__C_MODULE_IMAGE) {
        const Ws__ModuleImage *m = c->module_image;
        if (i->offset != m->offset || i->image_bytes != m->image_bytes ||
            !same(i->sha256, m->sha256) || !same(i->data, m->data))
            abort();
    }
    ws__command__free_unpacked(c, NULL);
}

static void commands(const struct ws_client_message *m, struct ws_arena *arena)
{
    struct ws_bytes c;
    size_t at = 0;
    uint32_t n = 0;
    while (ws_decode_next(m, &at, &c)) {
        Ws__Launch l;
        Ws__ModuleImage i;
        n++;
        bool launch = ws_decode_launch(c, &l), image = !launch && ws_decode_image(c, &i);
        if (!launch && !image)
            (void)ws_decode_command(c, arena);
        else if (launch && one_piece(c))
            compare(c, &l);
        else if (image && one_piece(c))
            compare_image(c, &i);
    }
    if (n != m->n_commands)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ws_client_message m;
    struct ws_arena arena = WS_ARENA_NULL;
    if (!ws_decode_message(data, size, UINT32_MAX, &m))
        return 0;
    arena.limit_bytes = 64 << 20;
    commands(&m, &arena);
    if (m.has_hello)
        (void)ws_decode_hello(m.hello, &arena);
    if (m.has_policy)
        (void)ws_decode_policy(m.policy, &arena);
    if (m.has_explain)
        (void)ws_decode_explain(m.explain, &arena);
    if (m.has_trace)
        (void)ws_decode_trace(m.trace, &arena);
    ws_arena_deinit(&arena);
    return 0;
}
