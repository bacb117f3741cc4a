// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/common/message.h"

#include <assert.h>
#include <stddef.h>

const ProtobufCFieldDescriptor *ws_message_field(const ProtobufCMessage *m, const char *name)
{
    const ProtobufCFieldDescriptor *f =
        protobuf_c_message_descriptor_get_field_by_name(m->descriptor, name);
    assert(f);
    return f;
}

/* protobuf-c sorts the descriptions by tag; the struct has its members as the .proto declares
 * them. */
const ProtobufCFieldDescriptor *ws_message_next(const ProtobufCMessage *m,
                                                const ProtobufCFieldDescriptor *f)
{
    const ProtobufCFieldDescriptor *next = NULL;
    for (unsigned i = 0; i < m->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *c = &m->descriptor->fields[i];
        if ((!f || c->offset > f->offset) && (!next || c->offset < next->offset))
            next = c;
    }
    return next;
}

const void *ws_message_at(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
    return (const char *)m + f->offset;
}

size_t ws_message_count(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
    return *(const size_t *)((const char *)m + f->quantifier_offset);
}

uint64_t ws_message_uint(const ProtobufCMessage *m, const char *name)
{
    const ProtobufCFieldDescriptor *f = ws_message_field(m, name);
    const void *at = ws_message_at(m, f);
    switch (f->type) {
    case PROTOBUF_C_TYPE_UINT64:
        return *(const uint64_t *)at;
    case PROTOBUF_C_TYPE_BOOL:
        return *(const protobuf_c_boolean *)at != 0;
    default:
        return *(const uint32_t *)at; /* an enum has as many bytes */
    }
}

const char *ws_message_string(const ProtobufCMessage *m, const char *name)
{
    return *(const char *const *)ws_message_at(m, ws_message_field(m, name));
}

bool ws_message_is_set(const ProtobufCMessage *m, const char *name)
{
    if (ws_message_field(m, name)->type == PROTOBUF_C_TYPE_STRING)
        return ws_message_string(m, name)[0] != 0;
    if (ws_message_field(m, name)->type == PROTOBUF_C_TYPE_MESSAGE)
        return *(const void *const *)ws_message_at(m, ws_message_field(m, name)) != NULL;
    return ws_message_uint(m, name) != 0;
}
