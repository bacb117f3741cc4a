// SPDX-License-Identifier: Apache-2.0
/* A stream writes a word, at once when it gets there, or waits until a word in the client's
 * memory compares as it wants. Kernels, copies and the program itself write such words without
 * telling anybody, so the loop looks: at every turn, and every POLL_MS if nothing else happens. Of
 * very many streams it looks at LOOKS_A_TURN in a turn, at as many of each client's.
 * Reading needs no device: soft devices' memory and pinned memory are mapped here, and only the
 * loop takes mappings away. In a real GPU's memory, which is out of the host's reach, values are
 * written by a copy, and waiting for one is refused. */
#include "backend/client/value.h"

#include <string.h>

#include "backend/backend.h"
#include "backend/client/stream.h"

enum { POLL_MS = 1, LOOKS_A_TURN = 1024 };

static bool out_of_reach(const struct ws_mapping *m)
{
    return m->device && m->device->ops->map;
}

static Ws__Error write_by_copy(struct ws_client *c, struct ws_stream *s, const Ws__StreamValue *m,
                               uint64_t seq, bool *ret_queued)
{
    struct ws_command *j = ws_command_new(c, WS_COMMAND_OP);
    if (!j)
        return WS__ERROR__INTERNAL;
    j->seq = seq;
    j->op.kind = WS_OPK_COPY;
    j->op.copy.dst_va = m->address;
    j->op.copy.src_va = 0;
    j->op.copy.dst_host = NULL;
    j->op.copy.bytes = m->bytes;
    j->op.copy.height = j->op.copy.depth = 1;
    j->op.copy.dst = j->op.copy.src = (struct ws_pitches){m->bytes, m->bytes};
    _Static_assert(sizeof(j->inline_bytes) >= sizeof(m->value), "room for one value");
    j->op.copy.src_host = memcpy(j->inline_bytes, &m->value, m->bytes);
    *ret_queued = true;
    ws_stream_push(s, j);
    return WS__ERROR__OK;
}

Ws__Error ws_value_submit(struct ws_client *c, const Ws__StreamValue *m, uint64_t seq,
                          bool *ret_queued)
{
    struct ws_stream *s = ws_stream_find(c, m->stream);
    struct ws_mapping map;
    if (!s)
        return WS__ERROR__INVALID_HANDLE;
    if ((m->bytes != 4 && m->bytes != 8) || m->address % m->bytes || m->compare > WS_VALUE_NOR ||
        !ws_space_find(c->memory.space, m->address, m->bytes, &map) ||
        (m->write && map.flags & WS_MAP_READONLY))
        return WS__ERROR__INVALID_VALUE;
    if (out_of_reach(&map))
        return m->write ? write_by_copy(c, s, m, seq, ret_queued) : WS__ERROR__NOT_SUPPORTED;
    struct ws_command *j = ws_command_new(c, WS_COMMAND_VALUE);
    if (!j)
        return WS__ERROR__INTERNAL;
    j->seq = seq;
    j->value.va = m->address;
    j->value.value = m->value;
    j->value.bytes = (uint8_t)m->bytes;
    j->value.compare = (uint8_t)m->compare;
    j->value.write = m->write;
    *ret_queued = true;
    ws_stream_push(s, j);
    return WS__ERROR__OK;
}

/* CUstreamWaitValue_flags: "greater or equal" is of the cyclic difference. */
static bool compare(uint64_t have, uint64_t want, unsigned bytes, unsigned how)
{
    uint64_t mask = bytes == 4 ? UINT32_MAX : UINT64_MAX, diff = (have - want) & mask;
    switch (how) {
    case WS_VALUE_GEQ:
        return !(diff >> (bytes * 8 - 1));
    case WS_VALUE_EQ:
        return !diff;
    case WS_VALUE_AND:
        return (have & want & mask) != 0;
    default:
        return (~(have | want) & mask) != 0;
    }
}

bool ws_value_pass(struct ws_command *j)
{
    struct ws_client *c = j->client;
    struct ws_mapping m;
    if (c->errors.sticky)
        return true;
    if (!ws_space_find(c->memory.space, j->value.va, j->value.bytes, &m)) {
        ws_client_async_error(c, j->stream->context, WS__ERROR__ILLEGAL_ADDRESS,
                              "a stream waits for a value at 0x%llx, which has been freed",
                              (unsigned long long)j->value.va);
        return true;
    }
    if (out_of_reach(&m)) { /* mapped there since */
        ws_client_async_error(c, j->stream->context, WS__ERROR__NOT_SUPPORTED,
                              "a stream waits for a value at 0x%llx, in the GPU's memory",
                              (unsigned long long)j->value.va);
        return true;
    }
    uint8_t *p = m.host + (j->value.va - m.va);
    if (j->value.write) {
        if (j->value.bytes == 4)
            __atomic_store_n((uint32_t *)p, (uint32_t)j->value.value, __ATOMIC_RELEASE);
        else
            __atomic_store_n((uint64_t *)p, j->value.value, __ATOMIC_RELEASE);
        return true;
    }
    uint64_t have = j->value.bytes == 4 ? __atomic_load_n((uint32_t *)p, __ATOMIC_ACQUIRE)
                                        : __atomic_load_n((uint64_t *)p, __ATOMIC_ACQUIRE);
    return compare(have, j->value.value, j->value.bytes, j->value.compare);
}

void ws_value_wait(struct ws_stream *s)
{
    struct ws_client *c = s->context->client;
    ws_list_append(&c->streams.polling, &s->blocked);
    if (ws_list_empty(&c->streams.polls))
        ws_list_append(&c->server->queues.polling, &c->streams.polls);
}

/* Looks at up to @most of the client's streams; the next time comes the turn of the others. Return:
 * how many. */
static unsigned look(struct ws_client *c, unsigned most)
{
    struct ws_list looked_at, *n;
    unsigned k = 0;
    ws_list_init(&looked_at);
    for (; k < most && (n = ws_list_pop(&c->streams.polling)); k++) {
        struct ws_stream *s = ws_list_entry(n, struct ws_stream, blocked);
        ws_list_append(&looked_at, n);
        if (ws_value_pass(s->head))
            ws_stream_wake(s);
    }
    while ((n = ws_list_pop(&looked_at)))
        ws_list_append(&c->streams.polling, n);
    return k;
}

static unsigned n_polling(const struct ws_server *s)
{
    unsigned k = 0;
    ws_list_for_each (n, &s->queues.polling)
        k++;
    return k;
}

int ws_server_poll_values(struct ws_server *s)
{
    if (WS_LIKELY(ws_list_empty(&s->queues.polling)))
        return -1;
    unsigned n_clients = n_polling(s), n_looks = 0;
    unsigned each = LOOKS_A_TURN / WS_MAX(n_clients, 1) + 1;
    for (; n_clients && n_looks < LOOKS_A_TURN; n_clients--) {
        struct ws_list *n = ws_list_pop(&s->queues.polling);
        struct ws_client *c = ws_list_entry(n, struct ws_client, streams.polls);
        n_looks += look(c, each);
        if (!ws_list_empty(&c->streams.polling))
            ws_list_append(&s->queues.polling, n);
    }
    return ws_list_empty(&s->queues.polling) ? -1 : POLL_MS;
}
