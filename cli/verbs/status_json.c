// SPDX-License-Identifier: Apache-2.0
/* The status as JSON: each field of the messages in protocol/wattshare.proto under its own name,
 * in the order of their declaration. What the output has otherwise is a row of `exceptions`. */
#include "config.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <string.h>

#include "base/macros.h"
#include "cli/common/message.h"
#include "cli/verbs/status.h"
#include "cli/common/text.h"

typedef struct json_object *(*value_fn)(const ProtobufCMessage *m,
                                        const ProtobufCFieldDescriptor *f);

/* ---- values ---- */

static struct json_object *string_json(const char *text)
{
    char buf[1024];
    return json_object_new_string(ws_cli_clean(text, buf, sizeof(buf)));
}

static struct json_object *message_json(const ProtobufCMessage *m);

/* One value at @at. */
static struct json_object *one_json(const ProtobufCFieldDescriptor *f, const void *at)
{
    switch (f->type) {
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_ENUM:
        return json_object_new_uint64(*(const uint32_t *)at);
    case PROTOBUF_C_TYPE_UINT64:
        return json_object_new_uint64(*(const uint64_t *)at);
    case PROTOBUF_C_TYPE_SINT32:
        return json_object_new_int(*(const int32_t *)at);
    case PROTOBUF_C_TYPE_DOUBLE:
        return json_object_new_double(*(const double *)at);
    case PROTOBUF_C_TYPE_BOOL:
        return json_object_new_boolean(*(const protobuf_c_boolean *)at);
    case PROTOBUF_C_TYPE_STRING:
        return string_json(*(const char *const *)at);
    case PROTOBUF_C_TYPE_MESSAGE:
        return message_json(*(const ProtobufCMessage *const *)at);
    default: /* no message of the status has another type */
        return NULL;
    }
}

static size_t size_of(const ProtobufCFieldDescriptor *f)
{
    switch (f->type) {
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return sizeof(uint64_t);
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(void *);
    default:
        return sizeof(uint32_t);
    }
}

static struct json_object *field_json(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
    if (f->label != PROTOBUF_C_LABEL_REPEATED)
        return one_json(f, ws_message_at(m, f));
    struct json_object *o = json_object_new_array();
    const char *v = *(const char *const *)ws_message_at(m, f);
    for (size_t i = 0; i < ws_message_count(m, f); i++)
        json_object_array_add(o, one_json(f, v + i * size_of(f)));
    return o;
}

/* ---- exceptions ---- */

static struct json_object *policy_json(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
    return string_json(ws_message_is_set(m, f->name) ? ws_message_string(m, f->name) : "none");
}

/* Of each SM, whose kernel may use it: 0: nobody's; -1: those of several clients. */
static struct json_object *sms_json(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
    const Ws__GpuStatus *g = (const Ws__GpuStatus *)m;
    struct json_object *o = json_object_new_array();
    (void)f;
    for (size_t i = 0; i < g->n_sm_clients; i++) {
        bool several = g->sm_clients[i] == UINT32_MAX;
        json_object_array_add(o, json_object_new_int64(several ? -1 : (int64_t)g->sm_clients[i]));
    }
    return o;
}

static struct json_object *state_json(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
    (void)f;
    return string_json(ws_cli_client_state((const Ws__ClientStatus *)m));
}

static struct json_object *not_json(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
    return json_object_new_boolean(!ws_message_uint(m, f->name));
}

/* The names as keys, the counts as values. */
static struct json_object *counts_json(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
    struct json_object *o = json_object_new_object();
    Ws__NotSupported *const *v = *(Ws__NotSupported *const *const *)ws_message_at(m, f);
    for (size_t i = 0; i < ws_message_count(m, f); i++) {
        char name[256];
        json_object_object_add(o, ws_cli_clean(v[i]->name, name, sizeof(name)),
                               json_object_new_uint64(v[i]->count));
    }
    return o;
}

static const struct exception {
    const char *message, *field;
    const char *name;    /* in the output; NULL: the field's */
    const char *only_if; /* a field of the message that must be set; "": never shown */
    bool else_null;      /* else it is shown as null */
    value_fn value;      /* NULL: as any field of its type */
} exceptions[] = {
    {"StatusReply", "policy", .value = policy_json},
    {"StatusReply", "policy_options", .only_if = ""},
    {"StatusReply", "not_supported", .value = counts_json},
    {"GpuStatus", "sm_clients", .value = sms_json},
    {"GpuStatus", "driver", .only_if = "driver"},
    {"GpuStatus", "lost", .only_if = "driver"},
    {"GpuStatus", "worker_pid", .only_if = "driver"},
    {"GpuStatus", "worker_restarts", .only_if = "driver"},
    {"GpuStatus", "worker_last", .only_if = "driver"},
    {"GpuStatus", "worker_last_ns", .only_if = "driver"},
    {"GpuStatus", "worker_longest_wait_ns", .only_if = "driver"},
    {"GpuStatus", "worker_longest_preempt_ns", .only_if = "driver"},
    {"GpuStatus", "capabilities", .only_if = "driver"},
    {"ClientStatus", "task", .only_if = ""}, /* as the program says it */
    {"ClientStatus", "work", .name = "task"},
    {"ClientStatus", "gate", .only_if = "gate", .value = state_json},
    {"ClientStatus", "n_over_lease", .only_if = "gate"},
    {"ClientStatus", "n_unmeasured", .only_if = "gate"},
    {"ClientStatus", "energy_unknown", .name = "energy_known", .only_if = "gate",
     .value = not_json},
    {"ClientStatus", "has_job", .only_if = ""},
    {"ClientStatus", "deadline_left_ms", .only_if = "has_job"},
    {"ClientStatus", "not_supported", .value = counts_json},
    {"StatusReply", "others", .only_if = "others"},
    {"AccountStatus", "limited", .only_if = ""},
    {"AccountStatus", "may_hold", .only_if = "limited", .else_null = true},
    {"LearnedKernel", "name", .name = "kernel"},
    {"LearnedKernel", "n_points", .name = "n_sm_counts"},
    {"LearnedKernel", "has_power", .only_if = ""},
    {"LearnedKernel", "power_w", .only_if = "has_power", .else_null = true},
    {"LearnedKernel", "has_cold_error", .only_if = ""},
    {"LearnedKernel", "cold_error", .only_if = "has_cold_error", .else_null = true},
};

static const struct exception *exception_of(const ProtobufCMessage *m,
                                            const ProtobufCFieldDescriptor *f)
{
    for (size_t i = 0; i < WS_ARRAY_SIZE(exceptions); i++)
        if (!strcmp(exceptions[i].message, m->descriptor->short_name) &&
            !strcmp(exceptions[i].field, f->name))
            return &exceptions[i];
    return NULL;
}

/* ---- messages ---- */

static void add_field(struct json_object *o, const ProtobufCMessage *m,
                      const ProtobufCFieldDescriptor *f)
{
    static const struct exception none;
    const struct exception *e = exception_of(m, f);
    if (!e)
        e = &none;
    bool shown = !e->only_if || (e->only_if[0] && ws_message_is_set(m, e->only_if));
    if (shown)
        json_object_object_add(o, e->name ? e->name : f->name,
                               (e->value ? e->value : field_json)(m, f));
    else if (e->else_null)
        json_object_object_add(o, f->name, NULL);
}

static struct json_object *message_json(const ProtobufCMessage *m)
{
    struct json_object *o = json_object_new_object();
    for (const ProtobufCFieldDescriptor *f = NULL; (f = ws_message_next(m, f));)
        add_field(o, m, f);
    return o;
}

void ws_cli_status_json(FILE *f, const Ws__StatusReply *s)
{
    struct json_object *o = message_json(&s->base);
    fprintf(f, "%s\n",
            json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY |
                                                  JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(o);
}
