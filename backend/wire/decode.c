// SPDX-License-Identifier: Apache-2.0
/* The wire format is protobuf's (protobuf.dev/programming-guides/encoding): a field is a varint
 * tag (number << 3 | type) and a varint (type 0), 8 bytes (1), a length and bytes (2), or 4
 * bytes (5). Unknown fields are skipped; the last of a repeated single field counts. */
#include "backend/wire/decode.h"

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };
enum {
    MSG_HELLO = 1,
    MSG_FIRST_SEQ = 2,
    MSG_COMMANDS = 3,
    MSG_STATUS = 4,
    MSG_GOODBYE = 5,
    MSG_TRACE = 110
};
enum { MSG_POLICY = 82, MSG_EXPLAIN = 83, MSG_STEP = 190 };
enum { COMMAND_LAUNCH = 1, COMMAND_MODULE_IMAGE = 9 };
/* Each field takes time, and with protobuf-c memory, even if nobody knows it. So a message, or a
 * command with all that is in it, may have so many of them. Elements of lists are counted apart. */
enum { MANY_FIELDS = 64, MANY_ELEMENTS = 65536, PACKED_BYTES = 1 << 20 };
enum { SMALL_BYTES = 1024 }; /* does not hold enough fields to be worth a look */

struct wire {
    const uint8_t *p, *end;
};
struct field {
    uint32_t number, type;
    uint64_t value;
    struct ws_bytes bytes;
};

static inline bool varint(struct wire *w, uint64_t *ret)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 70 && w->p < w->end; shift += 7) {
        uint8_t b = *w->p++;
        v |= shift < 64 ? (uint64_t)(b & 0x7f) << shift : 0;
        if (!(b & 0x80)) {
            *ret = v;
            return true;
        }
    }
    return false;
}

static inline bool next(struct wire *w, struct field *f)
{
    uint64_t tag;
    if (!varint(w, &tag) || tag >> 32 || !(tag >> 3))
        return false;
    f->number = (uint32_t)(tag >> 3);
    f->type = tag & 7;
    size_t fixed = f->type == FIXED64 ? 8 : 4;
    switch (f->type) {
    case VARINT:
        return varint(w, &f->value);
    case BYTES:
        if (!varint(w, &f->value) || f->value > (uint64_t)(w->end - w->p))
            return false;
        f->bytes = (struct ws_bytes){w->p, (size_t)f->value};
        w->p += f->value;
        return true;
    case FIXED64:
    case FIXED32:
        if ((size_t)(w->end - w->p) < fixed)
            return false;
        w->p += fixed;
        return true;
    default:
        return false;
    }
}

static void take_field(const struct field *f, struct ws_client_message *ret)
{
    switch (f->number) {
    case MSG_HELLO:
        ret->hello = f->bytes;
        ret->has_hello = true;
        break;
    case MSG_FIRST_SEQ:
        ret->first_seq = f->value;
        break;
    case MSG_STATUS:
        ret->has_status = true;
        break;
    case MSG_POLICY:
        ret->policy = f->bytes;
        ret->has_policy = true;
        break;
    case MSG_EXPLAIN:
        ret->explain = f->bytes;
        ret->has_explain = true;
        break;
    case MSG_TRACE:
        ret->trace = f->bytes;
        ret->has_trace = true;
        break;
    case MSG_STEP:
        ret->step = f->bytes;
        ret->has_step = true;
        break;
    case MSG_GOODBYE:
        ret->goodbye = f->value;
        break;
    default:
        break;
    }
}

bool ws_decode_message(const void *data, size_t n, uint32_t max_commands,
                       struct ws_client_message *ret)
{
    struct wire w = {data, (const uint8_t *)data + n};
    struct field f;
    unsigned n_other = 0;
    *ret = (struct ws_client_message){.all = {data, n}};
    while (w.p < w.end && ret->n_commands <= max_commands) {
        if (!next(&w, &f))
            return false;
        bool is_bytes = f.number == MSG_HELLO || f.number == MSG_COMMANDS ||
                        f.number == MSG_STATUS || f.number == MSG_TRACE || f.number == MSG_POLICY ||
                        f.number == MSG_EXPLAIN || f.number == MSG_STEP;
        bool is_varint = f.number == MSG_FIRST_SEQ || f.number == MSG_GOODBYE;
        if ((is_bytes && f.type != BYTES) || (is_varint && f.type != VARINT))
            return false;
        if (f.number == MSG_COMMANDS)
            ret->n_commands++;
        else if (++n_other > MANY_FIELDS)
            return false;
        else
            take_field(&f, ret);
    }
    return true;
}

bool ws_decode_next(const struct ws_client_message *m, size_t *pos, struct ws_bytes *ret)
{
    struct wire w = {m->all.p + *pos, m->all.p + m->all.n};
    struct field f;
    while (w.p < w.end && next(&w, &f)) {
        *pos = (size_t)(w.p - m->all.p);
        if (f.number == MSG_COMMANDS) {
            *ret = f.bytes;
            return true;
        }
    }
    return false;
}

/* What is in the command, if it is nothing but @which. */
static bool open_command(struct ws_bytes command, unsigned which, struct wire *ret)
{
    struct wire w = {command.p, command.p + command.n};
    struct field f;
    if (!command.n || command.p[0] != (which << 3 | BYTES) || !next(&w, &f) || w.p != w.end)
        return false;
    *ret = (struct wire){f.bytes.p, f.bytes.p + f.bytes.n};
    return true;
}

bool ws_decode_launch(struct ws_bytes command, Ws__Launch *l)
{
    struct wire w;
    struct field f;
    unsigned n = 0;
    if (!open_command(command, COMMAND_LAUNCH, &w))
        return false;
    *l = (Ws__Launch)WS__LAUNCH__INIT;
    while (w.p < w.end) {
        if (!next(&w, &f) || ++n > MANY_FIELDS ||
            (f.number == 11 ? f.type != BYTES : f.number <= 14 && f.type != VARINT))
            return false;
        switch (f.number) {
        case 1:
            l->stream = f.value;
            break;
        case 2:
            l->function = f.value;
            break;
        case 3:
            l->grid_x = (uint32_t)f.value;
            break;
        case 4:
            l->grid_y = (uint32_t)f.value;
            break;
        case 5:
            l->grid_z = (uint32_t)f.value;
            break;
        case 6:
            l->block_x = (uint32_t)f.value;
            break;
        case 7:
            l->block_y = (uint32_t)f.value;
            break;
        case 8:
            l->block_z = (uint32_t)f.value;
            break;
        case 9:
            l->shared_bytes = (uint32_t)f.value;
            break;
        case 10:
            l->flags = (uint32_t)f.value;
            break;
        case 11:
            l->params = (ProtobufCBinaryData){f.bytes.n, (uint8_t *)f.bytes.p};
            break;
        case 12:
            l->cluster_x = (uint32_t)f.value;
            break;
        case 13:
            l->cluster_y = (uint32_t)f.value;
            break;
        case 14:
            l->cluster_z = (uint32_t)f.value;
            break;
        default:
            break;
        }
    }
    return true;
}

bool ws_decode_image(struct ws_bytes command, Ws__ModuleImage *m)
{
    struct wire w;
    struct field f;
    unsigned n = 0;
    if (!open_command(command, COMMAND_MODULE_IMAGE, &w))
        return false;
    *m = (Ws__ModuleImage)WS__MODULE_IMAGE__INIT;
    while (w.p < w.end) {
        if (!next(&w, &f) || ++n > MANY_FIELDS ||
            (f.number == 1 || f.number == 4 ? f.type != BYTES : f.number <= 3 && f.type != VARINT))
            return false;
        ProtobufCBinaryData bytes = {f.bytes.n, (uint8_t *)f.bytes.p};
        if (f.number == 1)
            m->sha256 = bytes;
        else if (f.number == 2)
            m->offset = f.value;
        else if (f.number == 3)
            m->image_bytes = f.value;
        else if (f.number == 4)
            m->data = bytes;
    }
    return true;
}

static void *arena_alloc(void *arena, size_t n)
{
    return ws_arena_alloc(arena, n);
}

static void arena_free(void *arena, void *p)
{
}

/* ---- what protobuf-c reads ---- */

struct counts {
    uint32_t n_single, n_elements;
    uint64_t packed_bytes;
};

static bool count_field(struct counts *n, const ProtobufCFieldDescriptor *as, const struct field *f)
{
    if (!as || as->label != PROTOBUF_C_LABEL_REPEATED)
        return ++n->n_single <= MANY_FIELDS;
    bool packed = as->flags & PROTOBUF_C_FIELD_FLAG_PACKED && f->type == BYTES;
    n->packed_bytes += packed ? f->bytes.n : 0;
    return ++n->n_elements <= MANY_ELEMENTS && n->packed_bytes <= PACKED_BYTES;
}

/* Whether @b, a message of the kind @d, has few enough fields, and so have the messages in it. */
static bool is_bounded(const ProtobufCMessageDescriptor *d, struct ws_bytes b, struct counts *n)
{
    struct wire w = {b.p, b.p + b.n};
    struct field f;
    while (w.p < w.end) {
        if (!next(&w, &f))
            return false;
        const ProtobufCFieldDescriptor *as = protobuf_c_message_descriptor_get_field(d, f.number);
        if (!count_field(n, as, &f) || (as && as->type == PROTOBUF_C_TYPE_MESSAGE &&
                                        f.type == BYTES && !is_bounded(as->descriptor, f.bytes, n)))
            return false;
    }
    return true;
}

static void *unpack(const ProtobufCMessageDescriptor *d, struct ws_bytes b, struct ws_arena *arena)
{
    ProtobufCAllocator a = {arena_alloc, arena_free, arena};
    struct counts n = {0};
    if (b.n > SMALL_BYTES && !is_bounded(d, b, &n))
        return NULL;
    return protobuf_c_message_unpack(d, &a, b.n, b.p);
}

Ws__Command *ws_decode_command(struct ws_bytes b, struct ws_arena *arena)
{
    return unpack(&ws__command__descriptor, b, arena);
}

Ws__Hello *ws_decode_hello(struct ws_bytes b, struct ws_arena *arena)
{
    return unpack(&ws__hello__descriptor, b, arena);
}

Ws__PolicyRequest *ws_decode_policy(struct ws_bytes b, struct ws_arena *arena)
{
    return unpack(&ws__policy_request__descriptor, b, arena);
}

Ws__ExplainRequest *ws_decode_explain(struct ws_bytes b, struct ws_arena *arena)
{
    return unpack(&ws__explain_request__descriptor, b, arena);
}

Ws__TraceRequest *ws_decode_trace(struct ws_bytes b, struct ws_arena *arena)
{
    return unpack(&ws__trace_request__descriptor, b, arena);
}

Ws__StepRequest *ws_decode_step(struct ws_bytes b, struct ws_arena *arena)
{
    return unpack(&ws__step_request__descriptor, b, arena);
}
