// SPDX-License-Identifier: Apache-2.0
/* cli/common/message.h - the fields of a protobuf message by their names, as the message's
 * description has them. Threads: any. */
#ifndef WS_CLI_COMMON_MESSAGE_H
#define WS_CLI_COMMON_MESSAGE_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stdint.h>

/* The field of that name; there must be one. */
const ProtobufCFieldDescriptor *ws_message_field(const ProtobufCMessage *m, const char *name);
/* The field that comes after @f where the .proto declares them; NULL stands for the first's
 * predecessor and for the end. */
const ProtobufCFieldDescriptor *ws_message_next(const ProtobufCMessage *m,
                                                const ProtobufCFieldDescriptor *f);
/* Where the value is; of a repeated field, the pointer to the array. */
const void *ws_message_at(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f);
/* Entries of a repeated field. */
size_t ws_message_count(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f);
/* The value of a field that isn't repeated, as a whole number: also of a bool, and of an enum its
 * number. */
uint64_t ws_message_uint(const ProtobufCMessage *m, const char *name);
const char *ws_message_string(const ProtobufCMessage *m, const char *name);
/* Whether it differs from what a new message has: 0, false, "", no message. */
bool ws_message_is_set(const ProtobufCMessage *m, const char *name);

#endif
