// SPDX-License-Identifier: Apache-2.0
/* backend: gates and values, with devices whose work ends when the test says so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "backend/client/value.h"
#include "tests/lib/wsserver.h"

enum { LEGACY = 1, A = 100, B = 101, N = 102 /* non-blocking */ };
static uint64_t mem; /* 4 KiB on device 0 */

static int setup(void **state)
{
    struct wss *w = wss_new(1);
    wss_hello(w, 0, NULL);
    wss_stream(w, 0, A, 0, false);
    wss_stream(w, 0, B, 0, false);
    wss_stream(w, 0, N, 0, true);
    mem = wss_alloc(w, 0, 0, 4096);
    *state = w;
    return mem ? 0 : -1;
}

static int teardown(void **state)
{
    wss_free(*state);
    return 0;
}

static void gate(struct wss *w, uint64_t stream, uint64_t id)
{
    Ws__HostFunction m = WS__HOST_FUNCTION__INIT;
    m.stream = stream;
    m.function = id;
    wss_do(w, 0, WS__COMMAND__C_HOST_FUNCTION, &m);
    wss_turn(w);
}

static void open_gate(struct wss *w, uint64_t id)
{
    wss_do(w, 0, WS__COMMAND__C_HOST_FUNCTION_DONE, &id);
    wss_turn(w);
}

static void value(struct wss *w, uint64_t stream, uint64_t address, uint64_t v, uint32_t bytes,
                  uint32_t compare, bool write)
{
    Ws__StreamValue m = WS__STREAM_VALUE__INIT;
    m.stream = stream;
    m.address = address;
    m.value = v;
    m.bytes = bytes;
    m.compare = compare;
    m.write = write;
    wss_do(w, 0, WS__COMMAND__C_STREAM_VALUE, &m);
    wss_turn(w);
}

static unsigned n_running(struct wss *w)
{
    return w->dev[0].n_ops;
}

static void end_one(struct wss *w)
{
    fakedev_complete(&w->dev[0], 0, 2000000, 2000100, WS_DEV_OK);
    wss_turn(w);
}

#define FILL(stream, v) wss_fill(w, 0, stream, mem, 16, v)

static uint8_t *memory(struct wss *w)
{
    struct ws_mapping m;
    struct ws_client *c = ws_list_entry(w->server->clients.all.next, struct ws_client, node);
    assert_true(ws_space_find(c->memory.space, mem, 4096, &m));
    return m.host + (mem - m.va);
}

static void test_gate_is_told_when_reached_and_holds_its_stream_only(void **state)
{
    struct wss *w = *state;
    struct wss_peer *p = &w->peers[0];
    FILL(A, 1);
    gate(w, A, 77);
    FILL(A, 2);
    uint64_t sync = wss_sync_stream(w, 0, A);
    assert_int_equal(p->n_gates, 0); /* the stream isn't there yet */
    end_one(w);
    assert_int_equal(p->n_gates, 1);
    assert_int_equal(p->gates[0], 77);
    assert_int_equal(n_running(w), 0);
    FILL(B, 3);
    assert_int_equal(n_running(w), 1); /* another stream goes on */
    end_one(w);
    wss_turn(w);
    assert_int_equal(p->n_gates, 1); /* told once */
    assert_false(wss_replied(w, 0, sync));
    open_gate(w, 77);
    assert_int_equal(n_running(w), 1);
    end_one(w);
    assert_int_equal(wss_error(w, 0, sync), WS__ERROR__OK);
}

static void test_legacy_waits_for_a_gate_of_a_blocking_stream(void **state)
{
    struct wss *w = *state;
    gate(w, A, 1);
    gate(w, N, 2);
    FILL(LEGACY, 1);
    assert_int_equal(w->peers[0].n_gates, 2);
    assert_int_equal(n_running(w), 0);
    open_gate(w, 1);
    assert_int_equal(n_running(w), 1); /* the gate of the non-blocking one doesn't matter */
    end_one(w);
    open_gate(w, 2);
}

static void test_event_behind_a_gate(void **state)
{
    struct wss *w = *state;
    gate(w, A, 5);
    wss_record(w, 0, 9, A);
    wss_wait(w, 0, N, 9);
    FILL(N, 1);
    assert_int_equal(wss_error(w, 0, wss_query_event(w, 0, 9)), WS__ERROR__NOT_READY);
    assert_int_equal(n_running(w), 0);
    open_gate(w, 5);
    assert_int_equal(wss_error(w, 0, wss_query_event(w, 0, 9)), WS__ERROR__OK);
    assert_int_equal(n_running(w), 1);
    end_one(w);
}

static void test_wrong_gates(void **state)
{
    struct wss *w = *state;
    gate(w, 555, 1); /* no such stream */
    assert_int_equal(w->peers[0].notice_error, WS__ERROR__INVALID_HANDLE);
    assert_int_equal(wss_error(w, 0, wss_sync_stream(w, 0, A)), WS__ERROR__INVALID_HANDLE);
    FILL(A, 1);
    gate(w, A, 1);
    open_gate(w, 1); /* not reached yet */
    assert_int_equal(wss_error(w, 0, wss_sync_stream(w, 0, B)), WS__ERROR__INVALID_HANDLE);
    gate(w, B, 1); /* the id is in use */
    assert_int_equal(wss_error(w, 0, wss_sync_stream(w, 0, N)), WS__ERROR__INVALID_HANDLE);
    open_gate(w, 2); /* none */
    assert_int_equal(wss_error(w, 0, wss_sync_stream(w, 0, N)), WS__ERROR__INVALID_HANDLE);
    end_one(w);
    assert_int_equal(w->peers[0].n_gates, 1);
    open_gate(w, 1);
    gate(w, B, 1); /* free again */
    assert_int_equal(w->peers[0].n_gates, 2);
    assert_false(w->peers[0].dropped);
    open_gate(w, 1);
}

static void test_gate_goes_with_its_client(void **state)
{
    struct wss *w = *state;
    gate(w, A, 1);
    FILL(A, 1);
    Ws__ClientMessage m = WS__CLIENT_MESSAGE__INIT;
    m.goodbye = true;
    m.first_seq = w->peers[0].next_seq;
    wss_message(w, 0, &m);
    wss_turn(w);
    assert_int_equal(ws_server_n_clients(w->server), 0);
}

static void test_gate_in_a_lost_context_is_told(void **state)
{
    struct wss *w = *state;
    FILL(A, 1);
    gate(w, A, 1);
    fakedev_complete(&w->dev[0], 0, 2000000, 2000100, WS_DEV_E_ILLEGAL_ADDRESS);
    wss_turn(w);
    assert_int_equal(w->peers[0].n_gates, 1);
    open_gate(w, 1);
    gate(w, B, 2); /* …and one given afterwards */
    assert_int_equal(w->peers[0].n_gates, 2);
    open_gate(w, 2);
}

static void test_gates_reached_while_the_peer_does_not_read(void **state)
{
    struct wss *w = *state;
    w->peers[0].stuck = true;
    gate(w, A, 1);
    gate(w, B, 2);
    assert_int_equal(w->peers[0].n_gates, 0);
    w->peers[0].stuck = false;
    wss_turn(w);
    assert_int_equal(w->peers[0].n_gates, 2);
    open_gate(w, 1);
    open_gate(w, 2);
}

static void test_values(void **state)
{
    static const struct {
        const char *description;
        uint64_t have, want;
        uint32_t bytes, compare;
        bool passes;
    } rows[] = {
        {"greater", 5, 4, 4, WS_VALUE_GEQ, true},
        {"equal is enough", 5, 5, 4, WS_VALUE_GEQ, true},
        {"less", 4, 5, 4, WS_VALUE_GEQ, false},
        {"cyclic: just past the end", 2, 0xfffffffe, 4, WS_VALUE_GEQ, true},
        {"cyclic, the other way", 0xfffffffe, 2, 4, WS_VALUE_GEQ, false},
        {"cyclic, 64 bits", 2, UINT64_MAX, 8, WS_VALUE_GEQ, true},
        {"equal", 7, 7, 4, WS_VALUE_EQ, true},
        {"not equal", 7, 8, 4, WS_VALUE_EQ, false},
        {"equal in 32 of 64 bits", UINT64_C(1) << 32 | 7, 7, 8, WS_VALUE_EQ, false},
        {"upper half is another word", UINT64_C(1) << 32 | 7, 7, 4, WS_VALUE_EQ, true},
        {"a bit", 6, 2, 4, WS_VALUE_AND, true},
        {"no bit", 6, 9, 4, WS_VALUE_AND, false},
        {"nor", 0xfffffff0, 7, 4, WS_VALUE_NOR, true},
        {"nothing left for nor", 0xfffffff0, 15, 4, WS_VALUE_NOR, false},
    };
    struct wss *w = *state;
    uint8_t *p = memory(w);
    for (size_t i = 0; i < WS_ARRAY_SIZE(rows); i++) {
        memcpy(p, &rows[i].have, 8);
        value(w, A, mem, rows[i].want, rows[i].bytes, rows[i].compare, false);
        FILL(A, 1);
        if (n_running(w) != rows[i].passes)
            fail_msg("%s: %u", rows[i].description, n_running(w));
        /* a write lets it go: found at the next look, which the server asks for */
        if (!rows[i].passes) {
            assert_true(ws_server_turn(w->server) >= 0);
            uint64_t right = rows[i].compare == WS_VALUE_NOR ? 0 : rows[i].want;
            memcpy(p, &right, 8);
            wss_turn(w);
            assert_int_equal(n_running(w), 1);
        }
        end_one(w);
        assert_int_equal(ws_server_turn(w->server), -1);
    }
}

static void test_value_written_in_order(void **state)
{
    struct wss *w = *state;
    uint8_t *p = memory(w);
    uint64_t v;
    memset(p, 0, 64);
    wss_fill(w, 0, A, mem + 1024, 16, 1);
    value(w, A, mem + 8, UINT64_C(0x1122334455667788), 8, 0, true);
    memcpy(&v, p + 8, 8);
    assert_true(v == 0); /* its turn hasn't come */
    value(w, B, mem + 8, UINT64_C(0x1122334455667788), 8, WS_VALUE_EQ, false);
    FILL(B, 2);
    assert_int_equal(n_running(w), 1);
    end_one(w);
    memcpy(&v, p + 8, 8);
    assert_true(v == UINT64_C(0x1122334455667788));
    assert_int_equal(n_running(w), 1); /* B was let go by it */
    end_one(w);
    value(w, A, mem + 16, UINT64_C(0xaabbccdd11223344), 4, 0, true);
    memcpy(&v, p + 16, 8);
    assert_true(v == 0x11223344);
}

static void test_wrong_values(void **state)
{
    struct wss *w = *state;
    static const struct {
        uint64_t stream, offset;
        uint32_t bytes, compare;
        Ws__Error error;
    } rows[] = {
        {555, 0, 4, 0, WS__ERROR__INVALID_HANDLE}, {A, 2, 4, 0, WS__ERROR__INVALID_VALUE},
        {A, 4, 8, 0, WS__ERROR__INVALID_VALUE},    {A, 0, 3, 0, WS__ERROR__INVALID_VALUE},
        {A, 0, 4, 4, WS__ERROR__INVALID_VALUE},    {A, 1 << 20, 4, 0, WS__ERROR__INVALID_VALUE},
    };
    for (size_t i = 0; i < WS_ARRAY_SIZE(rows); i++) {
        value(w, rows[i].stream, mem + rows[i].offset, 0, rows[i].bytes, rows[i].compare, false);
        assert_int_equal(wss_error(w, 0, wss_sync_stream(w, 0, N)), rows[i].error);
    }
}

static void test_client_dies_waiting_for_a_value(void **state)
{
    struct wss *w = *state;
    value(w, A, mem, 99, 4, WS_VALUE_EQ, false);
    value(w, N, mem, 99, 4, WS_VALUE_EQ, false);
    Ws__ClientMessage m = WS__CLIENT_MESSAGE__INIT;
    m.goodbye = true;
    m.first_seq = w->peers[0].next_seq;
    wss_message(w, 0, &m);
    wss_turn(w);
    assert_int_equal(ws_server_n_clients(w->server), 0);
    assert_int_equal(ws_server_turn(w->server), -1);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_gate_is_told_when_reached_and_holds_its_stream_only),
        T(test_legacy_waits_for_a_gate_of_a_blocking_stream),
        T(test_event_behind_a_gate),
        T(test_wrong_gates),
        T(test_gate_goes_with_its_client),
        T(test_gate_in_a_lost_context_is_told),
        T(test_gates_reached_while_the_peer_does_not_read),
        T(test_values),
        T(test_value_written_in_order),
        T(test_wrong_values),
        T(test_client_dies_waiting_for_a_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
