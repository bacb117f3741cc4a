// SPDX-License-Identifier: Apache-2.0
/* What commands take away from work that is under way: Reset, ModuleUnload, MemFree, StreamDestroy
 * and the client's end, beside launches that run, wait or come afterwards. A software GPU runs the
 * launches. Most of this can only be seen to be wrong in a tree with sanitizers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/lib/softserver.h"

/* count: adds 1 to *out @turns times. wild: writes to address 0. */
static const char ptx[] =
    ".version 8.0\n.target sm_75\n.address_size 64\n.global .align 4 .u32 total;\n"
    ".visible .entry count(.param .u64 out, .param .u32 turns)\n{\n"
    ".reg .pred %p; .reg .b32 %r<3>; .reg .b64 %rd;\n"
    "ld.param.u64 %rd, [out]; ld.param.u32 %r1, [turns];\n"
    "L: red.global.add.u32 [%rd], 1; red.global.add.u32 [total], 1; sub.u32 %r1, %r1, 1;\n"
    "setp.ne.u32 %p, %r1, 0; @%p bra L;\nret;\n}\n"
    ".visible .entry wild()\n{\n.reg .b64 %rd; mov.u64 %rd, 0; st.global.u32 [%rd], 1; ret;\n}\n";
enum { COUNT, WILD };
enum { LONG_TURNS = 200000, BATCH = 24, STREAMS = 3, STREAM_0 = 100, MODULES = 2 };

struct args {
    uint64_t out;
    uint32_t turns;
};

/* A message being made. */
struct batch {
    Ws__Command commands[BATCH], *list[BATCH];
    union {
        Ws__Launch launch;
        Ws__Reset reset;
        Ws__MemFree mem_free;
        Ws__MemAlloc mem_alloc;
        Ws__Fill fill;
        Ws__StreamCreate stream_create;
        Ws__EventRecord event_record;
        Ws__StreamWait stream_wait;
    } sub[BATCH];
    struct args args[BATCH];
    size_t n;
};

static Ws__Command *next(struct batch *b, Ws__Command__CCase which)
{
    Ws__Command *m = b->list[b->n] = &b->commands[b->n];
    ws__command__init(m);
    m->c_case = which;
    return m;
}

static void put_launch(struct batch *b, uint64_t stream, uint64_t module, uint32_t kernel,
                       uint64_t out, uint32_t turns)
{
    Ws__Launch *l = &b->sub[b->n].launch;
    ws__launch__init(l);
    b->args[b->n] = (struct args){out, turns};
    l->stream = stream;
    l->function = module << WS_FUNCTION_INDEX_BITS | kernel;
    l->grid_x = 2;
    l->grid_y = l->grid_z = l->block_x = l->block_y = l->block_z = 1;
    l->params = (ProtobufCBinaryData){kernel == COUNT ? 12 : 0, (uint8_t *)&b->args[b->n]};
    next(b, WS__COMMAND__C_LAUNCH)->launch = l;
    b->n++;
}

static void put_reset(struct batch *b)
{
    ws__reset__init(&b->sub[b->n].reset);
    next(b, WS__COMMAND__C_RESET)->reset = &b->sub[b->n].reset;
    b->n++;
}

static uint64_t send_batch(struct softs *s, unsigned c, struct batch *b)
{
    uint64_t seq = softs_send(s, c, b->list, b->n);
    b->n = 0;
    return seq;
}

static int setup(void **state)
{
    *state = softs_new("rtx3070", 0, 0);
    softs_hello(*state, 0);
    return softs_load(*state, 0, 1, ptx) ? -1 : 0;
}

static int teardown(void **state)
{
    softs_free(*state);
    return 0;
}

static void test_launches_behind_a_reset(void **state)
{
    struct softs *s = *state;
    struct batch b = {.n = 0};
    uint64_t out = softs_alloc(s, 0, 4096);
    put_launch(&b, WS_STREAM_DEFAULT_0, 1, COUNT, out, LONG_TURNS);
    put_reset(&b);
    for (int i = 0; i < 20; i++)
        put_launch(&b, WS_STREAM_DEFAULT_0, 1, COUNT, out, 1);
    uint64_t seq = send_batch(s, 0, &b);
    assert_int_equal(softs_answer(s, 0, seq + 1), WS__ERROR__OK);
    assert_int_equal(s->clients[0].notice_error, WS__ERROR__INVALID_HANDLE); /* no such function */
    assert_int_equal(softs_sync(s, 0), WS__ERROR__OK);
    assert_int_equal(softs_load(s, 0, 1, ptx), WS__ERROR__OK); /* its id is free */
}

/* The module is loaded again, and memory allocated, while the reset waits for the long launch. */
static void test_work_behind_a_reset_waits_for_it(void **state)
{
    struct softs *s = *state;
    struct batch b = {.n = 0};
    uint64_t out = softs_alloc(s, 0, 4096);
    assert_int_equal(softs_load(s, 0, 2, ptx), WS__ERROR__OK);
    put_launch(&b, WS_STREAM_DEFAULT_0, 1, COUNT, out, LONG_TURNS);
    put_reset(&b);
    uint64_t seq = send_batch(s, 0, &b) + 1;
    assert_int_equal(softs_load(s, 0, 1, ptx), WS__ERROR__OK); /* while the old one runs */
    uint64_t fresh = softs_alloc(s, 0, 4096);
    put_launch(&b, WS_STREAM_DEFAULT_0, 1, COUNT, fresh, 3);
    (void)send_batch(s, 0, &b);
    assert_int_equal(softs_answer(s, 0, seq), WS__ERROR__OK);
    assert_int_equal(softs_sync(s, 0), WS__ERROR__OK);
    assert_int_equal(*(uint32_t *)softs_host(s, 0, fresh, 4), 2 * 3); /* the reset spared it */
}

static void test_two_resets_in_one_message(void **state)
{
    struct softs *s = *state;
    struct batch b = {.n = 0};
    uint64_t out = softs_alloc(s, 0, 4096);
    put_launch(&b, WS_STREAM_DEFAULT_0, 1, COUNT, out, LONG_TURNS);
    put_reset(&b);
    uint64_t seq = send_batch(s, 0, &b) + 1;
    assert_int_equal(softs_load(s, 0, 1, ptx), WS__ERROR__OK);
    uint64_t fresh = softs_alloc(s, 0, 4096);
    put_launch(&b, WS_STREAM_DEFAULT_0, 1, COUNT, fresh, LONG_TURNS);
    put_reset(&b);
    uint64_t second = send_batch(s, 0, &b) + 1;
    assert_int_equal(softs_answer(s, 0, seq), WS__ERROR__OK);
    assert_int_equal(softs_answer(s, 0, second), WS__ERROR__OK);
    assert_int_equal(s->clients[0].notice_error, WS__ERROR__OK);
    assert_int_equal(s->clients[0].client->stats.memory_bytes, 0);
}

/* ---- at random ---- */

enum { CLIENTS = 3 };
struct mix {
    struct softs *s;
    uint32_t random;
    uint64_t out[CLIENTS];
};

static uint32_t draw(struct mix *m, uint32_t n)
{
    m->random = m->random * 1664525u + 1013904223u;
    return (m->random >> 8) % n;
}

static uint64_t some_stream(struct mix *m)
{
    uint32_t i = draw(m, STREAMS + 1);
    return i ? STREAM_0 + i : (uint64_t)WS_STREAM_DEFAULT_0;
}

static void put_something(struct mix *m, unsigned c, struct batch *b)
{
    Ws__Command *k;
    switch (draw(m, 24)) {
    case 0:
        put_reset(b);
        return;
    case 1:
        k = next(b, WS__COMMAND__C_MODULE_UNLOAD);
        k->module_unload = 1 + draw(m, MODULES);
        break;
    case 2:
        k = next(b, WS__COMMAND__C_MEM_FREE);
        ws__mem_free__init(&b->sub[b->n].mem_free);
        b->sub[b->n].mem_free.address = m->out[c];
        k->mem_free = &b->sub[b->n].mem_free;
        break;
    case 3:
        k = next(b, WS__COMMAND__C_STREAM_DESTROY);
        k->stream_destroy = STREAM_0 + 1 + draw(m, STREAMS);
        break;
    case 4:
    case 5:
        k = next(b, WS__COMMAND__C_STREAM_CREATE);
        ws__stream_create__init(&b->sub[b->n].stream_create);
        b->sub[b->n].stream_create.stream = STREAM_0 + 1 + draw(m, STREAMS);
        b->sub[b->n].stream_create.non_blocking = draw(m, 2);
        k->stream_create = &b->sub[b->n].stream_create;
        break;
    case 6:
        k = next(b, WS__COMMAND__C_EVENT_DESTROY);
        k->event_destroy = 1 + draw(m, 2);
        break;
    case 7:
        k = next(b, WS__COMMAND__C_EVENT_RECORD);
        ws__event_record__init(&b->sub[b->n].event_record);
        b->sub[b->n].event_record.event = 1 + draw(m, 2);
        b->sub[b->n].event_record.stream = some_stream(m);
        k->event_record = &b->sub[b->n].event_record;
        break;
    case 8:
        k = next(b, WS__COMMAND__C_STREAM_WAIT);
        ws__stream_wait__init(&b->sub[b->n].stream_wait);
        b->sub[b->n].stream_wait.event = 1 + draw(m, 2);
        b->sub[b->n].stream_wait.stream = some_stream(m);
        k->stream_wait = &b->sub[b->n].stream_wait;
        break;
    case 9:
        k = next(b, WS__COMMAND__C_FILL);
        ws__fill__init(&b->sub[b->n].fill);
        b->sub[b->n].fill.stream = some_stream(m);
        b->sub[b->n].fill.dst = m->out[c];
        b->sub[b->n].fill.value_bytes = 4;
        b->sub[b->n].fill.width_bytes = 4096;
        k->fill = &b->sub[b->n].fill;
        break;
    case 10:
        put_launch(b, some_stream(m), 1 + draw(m, MODULES), draw(m, 4) ? COUNT : WILD, m->out[c],
                   1);
        return;
    default:
        put_launch(b, some_stream(m), 1 + draw(m, MODULES), COUNT, m->out[c],
                   1 + draw(m, draw(m, 8) ? 50 : 20000));
        return;
    }
    b->n++;
}

static void prepare(struct mix *m, unsigned c)
{
    if (softs_sync(m->s, c) && m->s->clients[c].client->errors.sticky) {
        struct batch b = {.n = 0};
        put_reset(&b);
        (void)softs_answer(m->s, c, send_batch(m->s, c, &b));
    }
    for (uint64_t k = 1; k <= MODULES; k++)
        if (!ws_module_find(m->s->clients[c].client, k))
            assert_int_equal(softs_load(m->s, c, k, ptx), WS__ERROR__OK);
    m->out[c] = softs_alloc(m->s, c, 4096);
}

static void check_mix(const char *policy, uint32_t seed)
{
    struct mix m = {.random = seed};
    struct batch b = {.n = 0};
    softs_policy = policy;
    m.s = softs_new("rtx3070", 0, 0);
    softs_policy = NULL;
    for (unsigned c = 0; c < CLIENTS; c++)
        softs_hello(m.s, c);
    for (int step = 0; step < 150; step++) {
        unsigned c = draw(&m, CLIENTS);
        if (step % 15 == 0 || !m.out[c])
            for (c = 0; c < CLIENTS; c++)
                prepare(&m, c);
        c = draw(&m, CLIENTS);
        for (uint32_t n = 1 + draw(&m, BATCH - 1); b.n < n;)
            put_something(&m, c, &b);
        (void)send_batch(m.s, c, &b);
        assert_false(m.s->clients[c].client->dropped);
        if (!draw(&m, 40)) {
            softs_drop(m.s, c);
            while (m.s->server->clients.n + 1 > CLIENTS) /* until its seat is free */
                softs_turn(m.s);
            softs_hello(m.s, c);
            prepare(&m, c);
        }
        if (!draw(&m, 3))
            softs_turn(m.s);
    }
    for (unsigned c = 0; c < CLIENTS; c++) { /* all of them still work */
        struct batch last = {.n = 0};
        put_reset(&last);
        assert_int_equal(softs_answer(m.s, c, send_batch(m.s, c, &last)), WS__ERROR__OK);
        prepare(&m, c);
        put_launch(&last, WS_STREAM_DEFAULT_0, 1, COUNT, m.out[c], 7);
        (void)send_batch(m.s, c, &last);
        assert_int_equal(softs_sync(m.s, c), WS__ERROR__OK);
        assert_int_equal(*(uint32_t *)softs_host(m.s, c, m.out[c], 4), 2 * 7);
    }
    softs_free(m.s);
}

static void test_mixed(void **state)
{
    static const char *const policies[] = {NULL, "fifo", "rr", "gcaps", "consolidate"};
    (void)state;
    for (size_t p = 0; p < sizeof(policies) / sizeof(policies[0]); p++)
        for (uint32_t seed = 1; seed <= 3; seed++)
            check_mix(policies[p], seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_launches_behind_a_reset, setup, teardown),
        cmocka_unit_test_setup_teardown(test_work_behind_a_reset_waits_for_it, setup, teardown),
        cmocka_unit_test_setup_teardown(test_two_resets_in_one_message, setup, teardown),
        cmocka_unit_test(test_mixed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
