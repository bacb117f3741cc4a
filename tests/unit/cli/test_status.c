// SPDX-License-Identifier: Apache-2.0
/* cli: the status as text and as JSON. A message with something in every field is printed, and
 * beside each message an empty one. The lines that stood there when tests/unit/cli/status.* were
 * written must still stand there, in their order: programs and people read them. A field that is
 * new adds lines, and needs no change here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/macros.h"
#include "cli/common/message.h"
#include "cli/verbs/status.h"

/* ---- a message with a value in every field, made from the field's tag ---- */

static void *must_alloc(size_t n, size_t size)
{
    void *p = calloc(n, size);
    if (!p)
        abort();
    return p;
}

static void fill(ProtobufCMessage *m);

static ProtobufCMessage *message_new(const ProtobufCMessageDescriptor *d)
{
    ProtobufCMessage *m = must_alloc(1, d->sizeof_message);
    d->message_init(m);
    return m;
}

static void fill_value(const ProtobufCFieldDescriptor *f, void *at)
{
    char text[128];
    switch (f->type) {
    case PROTOBUF_C_TYPE_BOOL:
        *(protobuf_c_boolean *)at = 1;
        break;
    case PROTOBUF_C_TYPE_ENUM:
        *(uint32_t *)at = 2;
        break;
    case PROTOBUF_C_TYPE_SINT32:
        *(int32_t *)at = -(int32_t)f->id;
        break;
    case PROTOBUF_C_TYPE_UINT32:
        *(uint32_t *)at = f->id;
        break;
    case PROTOBUF_C_TYPE_UINT64:
        *(uint64_t *)at = f->id * UINT64_C(1000000007);
        break;
    case PROTOBUF_C_TYPE_DOUBLE:
        *(double *)at = f->id + 0.25;
        break;
    case PROTOBUF_C_TYPE_STRING:
        snprintf(text, sizeof(text), "%s \"of\" /a/\x1b[1m", f->name);
        if (!(*(char **)at = strdup(text)))
            abort();
        break;
    case PROTOBUF_C_TYPE_MESSAGE:
        *(ProtobufCMessage **)at = message_new(f->descriptor);
        break;
    default:
        fail_msg("%s has a type that the status does not know", f->name);
    }
}

/* The first entry is full, the second one is empty. */
static void fill_list(ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
    bool wide = f->type == PROTOBUF_C_TYPE_STRING || f->type == PROTOBUF_C_TYPE_MESSAGE;
    size_t size = wide ? sizeof(void *) : sizeof(uint32_t);
    char *v = must_alloc(2, size);
    fill_value(f, v);
    if (wide)
        fill_value(f, v + size);
    else
        *(uint32_t *)(v + size) = UINT32_MAX;
    if (f->type == PROTOBUF_C_TYPE_MESSAGE)
        fill(*(ProtobufCMessage **)v);
    *(void **)((char *)m + f->offset) = v;
    *(size_t *)((char *)m + f->quantifier_offset) = 2;
}

static void fill(ProtobufCMessage *m)
{
    for (unsigned i = 0; i < m->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &m->descriptor->fields[i];
        if (f->label == PROTOBUF_C_LABEL_REPEATED)
            fill_list(m, f);
        else
            fill_value(f, (char *)m + f->offset);
    }
}

static int setup(void **state)
{
    ProtobufCMessage *m = message_new(&ws__status_reply__descriptor);
    fill(m);
    *state = m;
    return 0;
}

static int teardown(void **state)
{
    protobuf_c_message_free_unpacked(*state, NULL);
    return 0;
}

/* ---- the tests ---- */

static char *printed(void (*print)(FILE *, const Ws__StatusReply *), const Ws__StatusReply *s)
{
    char *text = NULL;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    print(f, s);
    fclose(f);
    return text;
}

/* Each line of the file stands in @text, and in this order. */
static void assert_has_lines(const char *text, const char *file)
{
    char line[1024], path[512];
    const char *dir = getenv("srcdir");
    snprintf(path, sizeof(path), "%s/tests/unit/cli/%s", dir ? dir : ".", file);
    FILE *f = fopen(path, "r");
    if (!f)
        fail_msg("%s cannot be read", path);
    while (fgets(line, sizeof(line), f)) {
        const char *at = strstr(text, line);
        if (!at) {
            fclose(f);
            fail_msg("%s has no longer, or not in its place: %s", file, line);
        }
        text = at + strlen(line);
    }
    fclose(f);
}

static void test_text(void **state)
{
    char *text = printed(ws_cli_status_text, *state);
    assert_has_lines(text, "status.txt");
    free(text);
}

static void test_json(void **state)
{
    char *text = printed(ws_cli_status_json, *state);
    assert_has_lines(text, "status.json");
    free(text);
}

/* A field that nobody has made an exception of is there by its name, wherever it is declared. */
static void test_new_field(void **state)
{
    static const char *const counters[] = {"n_messages", "copied_bytes", "span_ns", "n_runs"};
    char *text = printed(ws_cli_status_json, *state);
    for (size_t i = 0; i < WS_ARRAY_SIZE(counters); i++)
        assert_non_null(strstr(text, counters[i]));
    free(text);
}

/* The order of declaration, whatever the tags are. */
static void test_order(void **state)
{
    const ProtobufCMessage *m = *state;
    const ProtobufCFieldDescriptor *f = NULL;
    static const char *const first[] = {"version", "pid", "socket", "uptime_ns"};
    for (size_t i = 0; i < WS_ARRAY_SIZE(first); i++)
        assert_string_equal((f = ws_message_next(m, f))->name, first[i]);
    unsigned n = WS_ARRAY_SIZE(first);
    while ((f = ws_message_next(m, f)))
        n++;
    assert_int_equal(n, m->descriptor->n_fields);
}

int main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
    const struct CMUnitTest tests[] = {T(test_text), T(test_json), T(test_new_field),
                                       T(test_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
