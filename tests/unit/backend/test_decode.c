// SPDX-License-Identifier: Apache-2.0
/* backend: messages and commands with very many fields are refused before they are read, and those
 * that a client of a later version may send are not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "backend/wire/decode.h"

/* A field that nobody knows: number 2000, a varint, 0. */
static const uint8_t unknown[] = {0x80, 0x7d, 0x00};
enum { MANY = 100000, FEW = 20, MAX_COMMANDS = 100, HEAD = 16 };

struct fixture {
    struct ws_arena arena;
    uint8_t *text; /* HEAD bytes of room, then MANY of the field */
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    f->arena = (struct ws_arena)WS_ARENA_NULL;
    f->text = malloc(HEAD + MANY * sizeof(unknown));
    for (size_t i = 0; i < MANY; i++)
        memcpy(f->text + HEAD + i * sizeof(unknown), unknown, sizeof(unknown));
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    ws_arena_deinit(&f->arena);
    free(f->text);
    free(f);
    return 0;
}

static size_t put_varint(uint8_t *to, uint64_t v)
{
    size_t n = 0;
    for (; v >= 0x80; v >>= 7)
        to[n++] = (uint8_t)(v | 0x80);
    to[n++] = (uint8_t)v;
    return n;
}

/* A message of kind @number, in a field of another one, with @n of the fields in it. */
static struct ws_bytes within(struct fixture *f, unsigned number, size_t n)
{
    uint8_t head[HEAD];
    size_t n_head = put_varint(head, number << 3 | 2);
    n_head += put_varint(head + n_head, n * sizeof(unknown));
    memcpy(f->text + HEAD - n_head, head, n_head);
    return (struct ws_bytes){f->text + HEAD - n_head, n_head + n * sizeof(unknown)};
}

static void test_fields_of_a_message(void **state)
{
    struct fixture *f = *state;
    struct ws_client_message m;
    assert_true(ws_decode_message(f->text + HEAD, FEW * sizeof(unknown), MAX_COMMANDS, &m));
    assert_false(ws_decode_message(f->text + HEAD, MANY * sizeof(unknown), MAX_COMMANDS, &m));
}

/* Commands without anything in them, two bytes each: one more than may come is enough to know. */
static void test_commands_are_counted_no_further(void **state)
{
    struct fixture *f = *state;
    struct ws_client_message m;
    for (size_t i = 0; i < MANY; i++)
        memcpy(f->text + 2 * i, "\x1a\0", 2);
    assert_true(ws_decode_message(f->text, 2 * MAX_COMMANDS, MAX_COMMANDS, &m));
    assert_int_equal(m.n_commands, MAX_COMMANDS);
    assert_true(ws_decode_message(f->text, 2 * MANY, MAX_COMMANDS, &m));
    assert_int_equal(m.n_commands, MAX_COMMANDS + 1);
}

static void test_fields_of_a_command(void **state)
{
    struct fixture *f = *state;
    struct ws_bytes many = {f->text + HEAD, MANY * sizeof(unknown)};
    Ws__Launch l;
    Ws__ModuleImage i;
    assert_non_null(ws_decode_command(within(f, WS__COMMAND__C_SYNC, FEW), &f->arena));
    assert_null(ws_decode_command(many, &f->arena));
    assert_null(ws_decode_command(within(f, WS__COMMAND__C_SYNC, MANY), &f->arena));
    assert_null(ws_decode_hello(many, &f->arena));
    assert_null(ws_decode_explain(many, &f->arena));
    assert_true(ws_decode_launch(within(f, WS__COMMAND__C_LAUNCH, FEW), &l));
    assert_false(ws_decode_launch(within(f, WS__COMMAND__C_LAUNCH, MANY), &l));
    assert_true(ws_decode_image(within(f, WS__COMMAND__C_MODULE_IMAGE, FEW), &i));
    assert_false(ws_decode_image(within(f, WS__COMMAND__C_MODULE_IMAGE, MANY), &i));
}

/* Elements of lists: as many as a large module has variables, and no more. */
static void test_elements(void **state)
{
    enum { USUAL = 50000, TOO_MANY = 2000000 };
    struct fixture *f = *state;
    Ws__Command c = WS__COMMAND__INIT;
    Ws__ModulePlace place = WS__MODULE_PLACE__INIT;
    c.c_case = WS__COMMAND__C_MODULE_PLACE;
    c.module_place = &place;
    place.addresses = calloc(TOO_MANY, sizeof(uint64_t));
    uint8_t *bytes = malloc(TOO_MANY + 64);
    place.n_addresses = USUAL;
    struct ws_bytes b = {bytes, ws__command__pack(&c, bytes)};
    const Ws__Command *read = ws_decode_command(b, &f->arena);
    assert_non_null(read);
    assert_int_equal(read->module_place->n_addresses, USUAL);
    place.n_addresses = TOO_MANY;
    b.n = ws__command__pack(&c, bytes);
    assert_null(ws_decode_command(b, &f->arena));
    free(place.addresses);
    free(bytes);
}

int main(int argc, char **argv)
{
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_fields_of_a_message),
        T(test_commands_are_counted_no_further),
        T(test_fields_of_a_command),
        T(test_elements),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
