// SPDX-License-Identifier: Apache-2.0
/* backend: order of streams and events, joins, errors; with devices whose work ends when the
 * test says so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "tests/lib/wsserver.h"

enum {
    LEGACY = 1,
    LEGACY_1 = 2,
    A = 100,
    B = 101,
    N = 102 /* non-blocking */,
    C1 = 103 /* on device 1 */
};

static uint64_t mem; /* 4 KiB on device 0 */

static int setup(void **state)
{
    struct wss *w = wss_new(2);
    wss_hello(w, 0, NULL);
    wss_stream(w, 0, A, 0, false);
    wss_stream(w, 0, B, 0, false);
    wss_stream(w, 0, N, 0, true);
    wss_stream(w, 0, C1, 1, false);
    mem = wss_alloc(w, 0, 0, 4096);
    *state = w;
    return mem ? 0 : -1;
}

static int teardown(void **state)
{
    wss_free(*state);
    return 0;
}

/* Fills are told apart by their value. */
static unsigned running(struct wss *w, uint32_t value)
{
    unsigned n = 0;
    for (unsigned d = 0; d < 2; d++)
        for (unsigned i = 0; i < w->dev[d].n_ops; i++)
            n += w->dev[d].ops[i]->fill.value == value;
    return n;
}

static void end(struct wss *w, uint32_t value, uint64_t start_ns, uint64_t end_ns,
                enum ws_dev_error e)
{
    for (unsigned d = 0; d < 2; d++)
        for (unsigned i = 0; i < w->dev[d].n_ops; i++)
            if (w->dev[d].ops[i]->fill.value == value) {
                fakedev_complete(&w->dev[d], i, start_ns, end_ns, e);
                wss_turn(w);
                return;
            }
    fail_msg("fill %u is not running", value);
}

static uint64_t ready(struct wss *w, uint32_t value)
{
    for (unsigned i = 0; i < w->dev[0].n_ops; i++)
        if (w->dev[0].ops[i]->fill.value == value)
            return w->dev[0].ops[i]->ready_ns;
    return 0;
}

#define FILL(stream, value) wss_fill(w, 0, stream, mem, 16, value)
#define END(value)          end(w, value, 2000000, 2000000 + value, WS_DEV_OK)

static void test_one_stream_is_in_order(void **state)
{
    struct wss *w = *state;
    FILL(A, 1);
    FILL(A, 2);
    assert_int_equal(running(w, 1), 1);
    assert_int_equal(running(w, 2), 0);
    END(1);
    assert_int_equal(running(w, 2), 1);
    assert_int_equal(ready(w, 2),
                     2000001); /* not before its predecessor's end on the device clock */
    END(2);
}

static void test_streams_overlap(void **state)
{
    struct wss *w = *state;
    FILL(A, 1);
    FILL(B, 2);
    FILL(N, 3);
    assert_int_equal(running(w, 1) + running(w, 2) + running(w, 3), 3);
    END(2);
    END(1);
    END(3);
}

static void test_legacy_waits_for_blocking_and_they_for_it(void **state)
{
    struct wss *w = *state;
    FILL(A, 1);
    FILL(B, 2);
    FILL(LEGACY, 3);
    FILL(B, 4);
    FILL(A, 5);
    FILL(N, 6);
    assert_int_equal(running(w, 3), 0);
    assert_int_equal(running(w, 6), 1); /* exempt */
    end(w, 2, 2000000, 2005000, WS_DEV_OK);
    assert_int_equal(running(w, 3), 0);
    assert_int_equal(running(w, 4), 0);
    end(w, 1, 2000000, 2001000, WS_DEV_OK);
    assert_int_equal(running(w, 3), 1);
    assert_int_equal(ready(w, 3), 2005000); /* the later of both */
    assert_int_equal(running(w, 4) + running(w, 5), 0);
    end(w, 3, 2005000, 2006000, WS_DEV_OK);
    assert_int_equal(running(w, 4), 1);
    assert_int_equal(running(w, 5), 1);
    assert_int_equal(ready(w, 5), 2006000);
    END(4);
    END(5);
    END(6);
}

static void test_legacy_alternating_many_times(void **state)
{
    struct wss *w = *state;
    for (uint32_t i = 1; i <= 60; i++)
        FILL(i & 1 ? A : LEGACY, (uint8_t)i);
    for (uint32_t i = 1; i <= 60; i++) {
        assert_int_equal(w->dev[0].n_ops, 1);
        end(w, i, i, 2000000 + i, WS_DEV_OK);
    }
    assert_int_equal(w->dev[0].n_ops, 0);
}

static void test_legacy_is_per_device(void **state)
{
    struct wss *w = *state;
    uint64_t mem1 = wss_alloc(w, 0, 1, 4096);
    wss_fill(w, 0, C1, mem1, 16, 1);
    FILL(LEGACY, 2);
    assert_int_equal(running(w, 2), 1);
    wss_fill(w, 0, LEGACY_1, mem1, 16, 3);
    assert_int_equal(running(w, 3), 0);
    END(1);
    assert_int_equal(running(w, 3), 1);
    END(2);
    END(3);
}

static void test_event_orders_streams(void **state)
{
    struct wss *w = *state;
    FILL(A, 1);
    wss_record(w, 0, 7, A);
    wss_wait(w, 0, B, 7);
    FILL(B, 2);
    assert_int_equal(running(w, 2), 0);
    assert_int_equal(wss_error(w, 0, wss_query_event(w, 0, 7)), WS__ERROR__NOT_READY);
    END(1);
    assert_int_equal(running(w, 2), 1);
    assert_int_equal(ready(w, 2), 2000001);
    uint64_t q = wss_query_event(w, 0, 7);
    assert_int_equal(wss_value(w, 0, q), 2000001);
    END(2);
}

static void test_event_rerecorded(void **state)
{
    struct wss *w = *state;
    FILL(A, 1);
    wss_record(w, 0, 7, A);
    wss_wait(w, 0, N, 7); /* waits for the record behind 1, whatever comes later */
    FILL(N, 9);
    FILL(B, 2);
    wss_record(w, 0, 7, B);
    wss_wait(w, 0, C1, 7); /* waits for the one behind 2 */
    uint64_t s = wss_sync_event(w, 0, 7);
    END(2);
    assert_true(wss_replied(w, 0, s));
    assert_int_equal(running(w, 9), 0);
    assert_int_equal(wss_error(w, 0, wss_query_event(w, 0, 7)), WS__ERROR__OK);
    END(1);
    assert_int_equal(running(w, 9), 1);
    END(9);
}

static void test_event_never_recorded_is_done(void **state)
{
    struct wss *w = *state;
    wss_wait(w, 0, A, 55);
    FILL(A, 1);
    assert_int_equal(running(w, 1), 1);
    uint64_t q = wss_query_event(w, 0, 55);
    assert_int_equal(wss_error(w, 0, q), WS__ERROR__OK);
    assert_int_equal(w->peers[0].replies[w->peers[0].n_replies - 1].value2, 0);
    assert_int_equal(wss_error(w, 0, wss_sync_event(w, 0, 55)), WS__ERROR__OK);
    END(1);
}

static void test_event_destroyed_while_waited_for(void **state)
{
    struct wss *w = *state;
    uint64_t e = 7;
    FILL(A, 1);
    wss_record(w, 0, e, A);
    uint64_t s = wss_sync_event(w, 0, e);
    wss_wait(w, 0, B, e);
    FILL(B, 2);
    wss_do(w, 0, WS__COMMAND__C_EVENT_DESTROY, &e);
    assert_int_equal(running(w, 2), 0);
    assert_false(wss_replied(w, 0, s));
    END(1);
    assert_int_equal(running(w, 2), 1);
    assert_true(wss_replied(w, 0, s));
    END(2);
}

static void test_event_wait_across_devices(void **state)
{
    struct wss *w = *state;
    uint64_t mem1 = wss_alloc(w, 0, 1, 4096);
    FILL(A, 1);
    wss_record(w, 0, 7, A);
    wss_wait(w, 0, C1, 7);
    wss_fill(w, 0, C1, mem1, 16, 2);
    assert_int_equal(running(w, 2), 0);
    end(w, 1, 1, 99000000, WS_DEV_OK);
    assert_int_equal(running(w, 2), 1);
    assert_true(w->dev[1].ops[0]->ready_ns <
                99000000); /* clocks of different devices are not compared */
    END(2);
}

static void test_sync_stream_and_device(void **state)
{
    struct wss *w = *state;
    FILL(A, 1);
    FILL(N, 2);
    uint64_t sa = wss_sync_stream(w, 0, A), sn = wss_sync_stream(w, 0, N),
             sb = wss_sync_stream(w, 0, B);
    uint64_t sd = wss_sync_device(w, 0, 0), s1 = wss_sync_device(w, 0, 1);
    assert_true(wss_replied(w, 0, sb));
    assert_true(wss_replied(w, 0, s1));
    assert_false(wss_replied(w, 0, sa));
    END(2);
    assert_true(wss_replied(w, 0, sn));
    assert_false(wss_replied(w, 0, sd));
    FILL(N, 3); /* later work does not hold the join */
    END(1);
    assert_true(wss_replied(w, 0, sa));
    assert_true(wss_replied(w, 0, sd));
    END(3);
    assert_int_equal(w->peers[0].retired, w->peers[0].next_seq - 1);
}

static void test_sync_legacy_waits_for_blocking(void **state)
{
    struct wss *w = *state;
    FILL(A, 1);
    assert_int_equal(wss_error(w, 0, wss_query_stream(w, 0, LEGACY)), WS__ERROR__NOT_READY);
    uint64_t s = wss_sync_stream(w, 0, LEGACY);
    assert_false(wss_replied(w, 0, s));
    END(1);
    assert_true(wss_replied(w, 0, s));
}

/* Work given after a sync is not ready before what the client saw end. */
static void test_seen_time_is_a_floor(void **state)
{
    struct wss *w = *state;
    FILL(A, 1);
    uint64_t s = wss_sync_stream(w, 0, A);
    FILL(N, 2); /* given before the client could know */
    end(w, 1, 1, 5000000, WS_DEV_OK);
    assert_true(wss_replied(w, 0, s));
    FILL(B, 3);
    assert_true(ready(w, 2) < 5000000);
    assert_int_equal(ready(w, 3), 5000000);
    END(2);
    END(3);
}

static void test_stream_destroyed_while_busy(void **state)
{
    struct wss *w = *state;
    uint64_t a = A;
    FILL(A, 1);
    FILL(A, 2);
    wss_do(w, 0, WS__COMMAND__C_STREAM_DESTROY, &a);
    FILL(A, 3); /* no such stream any more */
    assert_int_equal(w->peers[0].notice_error, WS__ERROR__INVALID_HANDLE);
    END(1);
    END(2);
    assert_int_equal(w->dev[0].n_ops, 0);
    wss_stream(w, 0, A, 0, false);
    FILL(A, 4);
    END(4);
}

static void test_free_waits_for_all_work(void **state)
{
    struct wss *w = *state;
    uint64_t other = wss_alloc(w, 0, 0, 8192), used = w->dev[0].used_bytes;
    FILL(A, 1);
    FILL(N, 2);
    uint64_t f = wss_free_mem(w, 0, other), again = wss_free_mem(w, 0, other);
    assert_int_equal(wss_error(w, 0, again), WS__ERROR__INVALID_HANDLE);
    END(1);
    assert_false(wss_replied(w, 0, f));
    assert_int_equal(w->dev[0].used_bytes, used);
    END(2);
    assert_int_equal(wss_error(w, 0, f), WS__ERROR__OK);
    assert_int_equal(w->dev[0].used_bytes, used - 8192);
}

static void test_async_error_goes_to_the_next_sync_once(void **state)
{
    struct wss *w = *state;
    wss_fill(w, 0, 999, mem, 16, 1);
    assert_int_equal(w->peers[0].notice_error, WS__ERROR__INVALID_HANDLE);
    assert_int_equal(w->peers[0].n_notices, 1);
    wss_fill(w, 0, A, mem + 8192, 16, 1);
    assert_int_equal(wss_error(w, 0, wss_query_stream(w, 0, A)), WS__ERROR__OK);
    assert_int_equal(wss_error(w, 0, wss_sync_stream(w, 0, A)),
                     WS__ERROR__INVALID_HANDLE); /* the first one */
    assert_int_equal(wss_error(w, 0, wss_sync_stream(w, 0, A)), WS__ERROR__OK);
}

static void test_sticky_error_skips_and_reset_clears(void **state)
{
    struct wss *w = *state;
    FILL(A, 1);
    FILL(A, 2);
    FILL(N, 3);
    unsigned before = w->dev[0].n_submitted;
    end(w, 1, 1, 2, WS_DEV_E_ILLEGAL_ADDRESS);
    assert_int_equal(w->peers[0].notice_error, WS__ERROR__ILLEGAL_ADDRESS);
    assert_string_equal(w->peers[0].text, "fake: illegal-address");
    assert_int_equal(w->dev[0].n_ops, 0);            /* 3 was cancelled */
    assert_int_equal(w->dev[0].n_submitted, before); /* 2 was skipped */
    FILL(B, 4);
    assert_int_equal(w->dev[0].n_submitted, before);
    assert_int_equal(wss_error(w, 0, wss_sync_stream(w, 0, A)), WS__ERROR__ILLEGAL_ADDRESS);
    assert_int_equal(wss_error(w, 0, wss_sync_device(w, 0, 0)), WS__ERROR__ILLEGAL_ADDRESS);
    assert_int_equal(wss_alloc(w, 0, 0, 512), 0);
    Ws__Reset reset = WS__RESET__INIT;
    assert_int_equal(wss_error(w, 0, wss_do(w, 0, WS__COMMAND__C_RESET, &reset)), WS__ERROR__OK);
    assert_int_equal(w->dev[0].used_bytes, 0);
    mem = wss_alloc(w, 0, 0, 4096);
    assert_int_not_equal(mem, 0);
    FILL(LEGACY, 5);
    END(5);
    assert_int_equal(wss_error(w, 0, wss_sync_device(w, 0, 0)), WS__ERROR__OK);
    assert_int_equal(w->peers[0].retired, w->peers[0].next_seq - 1);
}

static void test_reset_holds_later_work_until_it_is_through(void **state)
{
    struct wss *w = *state;
    Ws__Reset reset = WS__RESET__INIT;
    FILL(LEGACY, 1);
    uint64_t r = wss_do(w, 0, WS__COMMAND__C_RESET, &reset);
    FILL(N, 2); /* pipelined behind it: this stream is of the time before */
    assert_int_equal(w->peers[0].notice_error, WS__ERROR__INVALID_HANDLE);
    wss_stream(w, 0, N, 0, true);
    FILL(N, 2); /* this one is not, and nothing stands before the fill */
    assert_false(wss_replied(w, 0, r));
    assert_int_equal(running(w, 2), 0); /* but it must not run while the reset waits */
    FILL(LEGACY, 3);
    END(1);
    assert_int_equal(wss_error(w, 0, r), WS__ERROR__OK);
    assert_int_equal(running(w, 3), 1);
    assert_int_equal(running(w, 2), 1);
    end(w, 3, 1, 2, WS_DEV_E_ILLEGAL_ADDRESS); /* its memory is gone */
}

static void test_death_in_the_middle(void **state)
{
    struct wss *w = *state;
    wss_hello(w, 1, NULL);
    uint64_t mem1 = wss_alloc(w, 1, 0, 4096);
    FILL(A, 1);
    FILL(LEGACY, 2);
    wss_record(w, 0, 7, LEGACY);
    wss_wait(w, 0, B, 7);
    FILL(B, 3);
    wss_sync_event(w, 0, 7);
    wss_sync_device(w, 0, 0);
    wss_free_mem(w, 0, mem);
    wss_fill(w, 1, LEGACY, mem1, 16, 9);
    assert_true(ws_server_disconnected(w->server, &w->peers[0].peer));
    wss_turn(w);
    assert_int_equal(w->dev[0].used_bytes, 0);
    assert_int_equal(w->dev[1].used_bytes,
                     4096); /* the other's: placement gave it the emptier GPU */
    assert_int_equal(running(w, 9), 1);
    uint64_t s = wss_sync_device(w, 1, 0);
    END(9);
    assert_int_equal(wss_error(w, 1, s), WS__ERROR__OK);
    unsigned n = w->peers[0].n_messages;
    FILL(A, 4); /* late message: told once */
    FILL(A, 5);
    assert_int_equal(w->peers[0].n_messages, n + 1);
    assert_true(w->peers[0].dropped);
}

static void test_unordered_device_completions_from_outside(void **state)
{
    struct wss *w = *state;
    w->dev[0].inline_completion = true;
    for (int i = 0; i < 300; i++)
        FILL(i % 3 == 0 ? LEGACY : i % 3 == 1 ? A : N, 1);
    assert_int_equal(wss_error(w, 0, wss_sync_device(w, 0, 0)), WS__ERROR__OK);
    assert_int_equal(w->peers[0].retired, w->peers[0].next_seq - 1);
}

int main(int argc, char **argv)
{
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_one_stream_is_in_order),
        T(test_streams_overlap),
        T(test_legacy_waits_for_blocking_and_they_for_it),
        T(test_legacy_alternating_many_times),
        T(test_legacy_is_per_device),
        T(test_event_orders_streams),
        T(test_event_rerecorded),
        T(test_event_never_recorded_is_done),
        T(test_event_destroyed_while_waited_for),
        T(test_event_wait_across_devices),
        T(test_sync_stream_and_device),
        T(test_sync_legacy_waits_for_blocking),
        T(test_seen_time_is_a_floor),
        T(test_stream_destroyed_while_busy),
        T(test_free_waits_for_all_work),
        T(test_async_error_goes_to_the_next_sync_once),
        T(test_sticky_error_skips_and_reset_clears),
        T(test_reset_holds_later_work_until_it_is_through),
        T(test_death_in_the_middle),
        T(test_unordered_device_completions_from_outside),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
