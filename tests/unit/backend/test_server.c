// SPDX-License-Identifier: Apache-2.0
/* backend: messages right and wrong, limits, placement, modules and their cache, status; without
 * sockets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <fcntl.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "backend/client/segment.h"
#include "backend/scheduling/spans.h"
#include "base/clock.h"
#include "base/alloc.h"
#include "base/packet.h"
#include "tests/lib/wsserver.h"

static int setup(void **state)
{
    *state = wss_new(3);
    return 0;
}

static int teardown(void **state)
{
    wss_free(*state);
    return 0;
}

#define PTX_HEAD ".version 7.0\n.target sm_50\n.address_size 64\n"
static const char ptx[] = PTX_HEAD ".visible .global .align 8 .u64 v;\n.visible .entry k(.param "
                                   ".u64 p, .param .u32 n)\n{\nret;\n}\n"
                                   ".visible .entry m()\n{\nret;\n}\n";

/* ---- hello, placement ---- */

static void test_spread_and_visible_devices(void **state)
{
    static const struct {
        const char *visible;
        uint32_t n, gpus[3];
    } rows[] = {
        {NULL, 3, {0, 1, 2}},    {"0, 1", 2, {0, 1}}, /* the order is 1 0 2 by now */
        {NULL, 3, {1, 0, 2}},    {"1", 1, {1}},
        {"small, 0", 2, {1, 0}}, {"", 0, {0}},
        {"0,0,7,1", 1, {0}},     {"big,BIG,big", 2, {2, 0}}, /* order is 2 0 1 by now */
    };
    struct wss *w = *state;
    for (unsigned i = 0; i < WS_ARRAY_SIZE(rows); i++) {
        wss_hello(w, i, rows[i].visible);
        assert_int_equal(w->peers[i].hello_error, WS__ERROR__OK);
        assert_int_equal(w->peers[i].n_devices, rows[i].n);
        for (uint32_t k = 0; k < rows[i].n; k++)
            assert_int_equal(w->peers[i].gpus[k], rows[i].gpus[k]);
    }
    Ws__MemAlloc m = WS__MEM_ALLOC__INIT; /* the client without devices */
    m.bytes = 1;
    assert_int_equal(wss_error(w, 5, wss_do(w, 5, WS__COMMAND__C_MEM_ALLOC, &m)),
                     WS__ERROR__INVALID_DEVICE);
}

static void test_hello_refused(void **state)
{
    struct wss *w = *state;
    Ws__ClientMessage m = WS__CLIENT_MESSAGE__INIT;
    Ws__Hello h = WS__HELLO__INIT;
    h.version = 99;
    m.hello = &h;
    wss_message(w, 0, &m);
    assert_int_equal(w->peers[0].hello_error, WS__ERROR__VERSION_MISMATCH);
    assert_non_null(strstr(w->peers[0].text, "99"));
    w->config.limits.pool[WS_RESOURCE_CLIENTS] = 1;
    wss_hello(w, 1, NULL);
    wss_hello(w, 2, NULL);
    assert_int_equal(w->peers[1].hello_error, WS__ERROR__OK);
    assert_int_equal(w->peers[2].hello_error, WS__ERROR__LIMIT_EXCEEDED);
    w->config.limits.pool[WS_RESOURCE_CLIENTS] = 10;
    ws_server_drain(w->server);
    wss_hello(w, 3, NULL);
    assert_int_equal(w->peers[3].hello_error, WS__ERROR__DRAINING);
    wss_hello(w, 1, NULL);
    assert_int_equal(w->peers[1].dropped_error, WS__ERROR__MALFORMED);
    assert_int_equal(ws_server_n_clients(w->server), 0);
}

/* ---- messages that can't be read, limits ---- */

static void test_malformed_drops_the_sender_only(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
        const char *description;
    } rows[] = {
        {"\xff", 1, "cut varint"},
        {"\x1a\x05\x0a", 3, "length beyond the end"},
        {"\x1d\x01\x02\x03\x04", 5, "commands as fixed32"},
        {"\x10\x01\x1a\x02\x0a\x05", 6, "launch longer than its command"},
        {"\x10\x01\x1a\x00", 4, "empty command"},
        {"\x10\x01\x1a\x03\xf2\x3f\x00", 7, "unknown command"},
        {"\x10\x01\x1a\x04\x12\x02\x52\x09", 8, "copy with cut data"},
        {"\x00\x00", 2, "field number 0"},
        {"\x10\x01\x1a\x04\x0a\x02\x58\x05", 8, "launch with params as a number"},
        {"\x10\x01\x1a\x05\x0a\x03\x0a\x01\x41", 9, "launch with a stream of bytes"},
    };
    struct wss *w = *state;
    wss_hello(w, 0, NULL);
    uint64_t va = wss_alloc(w, 0, 0, 4096);
    for (size_t i = 0; i < WS_ARRAY_SIZE(rows); i++) {
        struct wss_peer *p = &w->peers[1];
        p->dropped = false;
        wss_hello(w, 1, NULL);
        assert_int_equal(p->hello_error, WS__ERROR__OK);
        wss_raw(w, 1, rows[i].bytes, rows[i].n);
        if (!p->dropped)
            print_error("%s\n", rows[i].description);
        assert_true(p->dropped);
        assert_int_equal(p->dropped_error, WS__ERROR__MALFORMED);
    }
    assert_int_equal(wss_error(w, 0, wss_free_mem(w, 0, va)), WS__ERROR__OK);
}

static void test_strangers_are_told_once(void **state)
{
    struct wss *w = *state;
    wss_fill(w, 0, 1, 1, 1, 1);
    assert_true(w->peers[0].dropped);
    assert_non_null(strstr(w->peers[0].text, "hello"));
    assert_int_equal(w->peers[0].n_messages, 1);
    for (int i = 0; i < 10; i++)
        wss_fill(w, 0, 1, 1, 1, 1);
    wss_raw(w, 0, "\xff", 1);
    assert_int_equal(w->peers[0].n_messages, 1);
    wss_hello(w, 0, NULL); /* a fresh start is always possible */
    assert_int_equal(w->peers[0].hello_error, WS__ERROR__OK);
    wss_raw(w, 1, "", 0); /* an empty message says nothing and does nothing */
    assert_int_equal(w->peers[1].n_messages, 0);
}

static void test_limits_drop(void **state)
{
    struct wss *w = *state;
    w->config.limits.max_commands = 4;
    w->config.limits.max_outstanding = 4;
    w->config.limits.max_streams = 2;
    w->config.limits.max_events = 2;
    Ws__ClientMessage m = WS__CLIENT_MESSAGE__INIT;
    Ws__Command c = WS__COMMAND__INIT, *five[] = {&c, &c, &c, &c, &c};
    c.c_case = WS__COMMAND__C_EVENT_DESTROY;
    m.commands = five;
    m.n_commands = 5;
    m.first_seq = 1;
    wss_hello(w, 0, NULL);
    wss_message(w, 0, &m);
    assert_int_equal(w->peers[0].dropped_error, WS__ERROR__LIMIT_EXCEEDED);
    wss_hello(
        w, 1,
        NULL); /* too many outstanding: device 0 of peer 1 is the fake that does not end its work */
    uint64_t va = wss_alloc(w, 1, 0, 4096);
    for (int i = 0; i < 4; i++)
        wss_fill(w, 1, 1, va, 16, 1);
    assert_false(w->peers[1].dropped);
    wss_fill(w, 1, 1, va, 16, 1);
    assert_int_equal(w->peers[1].dropped_error, WS__ERROR__LIMIT_EXCEEDED);
    assert_non_null(strstr(w->peers[1].text, "outstanding"));
    wss_hello(w, 2, NULL);
    for (uint64_t i = 0; i < 3; i++)
        wss_stream(w, 2, 100 + i, 0, false);
    assert_int_equal(w->peers[2].dropped_error, WS__ERROR__LIMIT_EXCEEDED);
    wss_hello(w, 3, NULL);
    for (uint64_t i = 0; i < 3; i++)
        wss_record(w, 3, i, 1);
    assert_int_equal(w->peers[3].dropped_error, WS__ERROR__LIMIT_EXCEEDED);
    wss_hello(w, 4, NULL);
    w->peers[4].next_seq = 10;
    wss_record(w, 4, 1, 1);
    w->peers[4].next_seq = 13;
    wss_record(w, 4, 1, 1);
    assert_int_equal(w->peers[4].dropped_error, WS__ERROR__MALFORMED);
    assert_non_null(strstr(w->peers[4].text, "sequence number 13 where 11"));
}

static void test_quota(void **state)
{
    struct wss *w = *state;
    w->config.limits.memory_quota_bytes = 8192;
    wss_hello(w, 0, NULL);
    uint64_t a = wss_alloc(w, 0, 0, 4000), b = wss_alloc(w, 0, 1, 4096);
    assert_true(a && b);
    assert_int_equal(wss_alloc(w, 0, 0, 1), 0);
    uint32_t device = 0;
    uint64_t q = wss_do(w, 0, WS__COMMAND__C_MEM_INFO, &device);
    assert_int_equal(wss_value(w, 0, q), 0);
    wss_free_mem(w, 0, b);
    assert_true(wss_alloc(w, 0, 0, 1));
    w->config.limits.memory_quota_bytes = 0;
    assert_int_equal(wss_alloc(w, 0, 0, UINT64_C(65) << 20), 0); /* more than the device has */
}

static void test_who_does_not_read_is_dropped(void **state)
{
    struct wss *w = *state;
    w->config.limits.max_unread_bytes = 2000;
    wss_hello(w, 0, NULL);
    w->peers[0].stuck = true;
    for (int i = 0; i < 10; i++)
        wss_query_stream(w, 0, 1);
    assert_int_equal(ws_server_n_clients(w->server), 1);
    w->peers[0].stuck = false;
    wss_turn(w);
    assert_int_equal(w->peers[0].n_replies, 10);
    w->peers[0].stuck = true;
    for (int i = 0; i < 1000; i++)
        wss_query_stream(w, 0, 1);
    assert_int_equal(ws_server_n_clients(w->server), 0);
    wss_hello(w, 1, NULL);
    w->peers[1].gone = w->peers[1].ended = true;
    wss_query_stream(w, 1, 1);
    assert_int_equal(ws_server_n_clients(w->server), 0);
}

/* What has waited for long leaves in parts, one in a turn: others' answers need not wait for it. */
static void test_much_leaves_in_parts(void **state)
{
    enum { COPIES = 40, BYTES = 50000, AT_A_TIME = 5 };
    struct wss *w = *state;
    w->dev[0].inline_completion = true;
    wss_hello(w, 0, NULL);
    Ws__Copy m = WS__COPY__INIT;
    m.stream = WS_STREAM_DEFAULT_0;
    m.src = wss_alloc(w, 0, 0, BYTES);
    m.bytes = BYTES;
    m.bulk = WS__COPY__BULK__REPLY_DST;
    unsigned first = w->peers[0].n_replies, n_turns = 0;
    w->peers[0].stuck = true;
    for (int i = 0; i < COPIES; i++)
        wss_do(w, 0, WS__COMMAND__C_COPY_SYNC, &m);
    wss_turn(w);
    w->peers[0].stuck = false;
    for (bool more = true; more; n_turns++) {
        unsigned before = w->peers[0].n_replies;
        more = !ws_server_turn(w->server);
        assert_in_range(w->peers[0].n_replies, before + 1, before + AT_A_TIME);
    }
    assert_in_range(n_turns, COPIES / AT_A_TIME, COPIES);
    assert_int_equal(w->peers[0].n_replies, first + COPIES);
    for (unsigned i = 0; i < COPIES; i++)
        assert_int_equal(w->peers[0].replies[first + i].seq, first + i + 1);
}

static void test_foreign_and_wrong_handles(void **state)
{
    struct wss *w = *state;
    wss_hello(w, 0, NULL);
    wss_hello(w, 1, NULL);
    uint64_t mine = wss_alloc(w, 0, 0, 4096), theirs = wss_alloc(w, 1, 0, 4096);
    wss_stream(w, 1, 100, 0, false);
    assert_true(mine && theirs && mine != theirs);
    assert_int_equal(wss_error(w, 0, wss_free_mem(w, 0, theirs)), WS__ERROR__INVALID_HANDLE);
    assert_int_equal(wss_error(w, 0, wss_free_mem(w, 0, mine + 512)), WS__ERROR__INVALID_HANDLE);
    static const struct {
        uint64_t stream;
        int64_t off;
        uint64_t bytes;
        bool their_memory;
        Ws__Error error;
    } fills[] = {
        {100, 0, 16, false, WS__ERROR__INVALID_HANDLE}, /* the other's stream */
        {0, 0, 16, false, WS__ERROR__INVALID_HANDLE},
        {33, 0, 16, false,
         WS__ERROR__INVALID_HANDLE}, /* default stream of a device that is not there */
        {1, 0, 16, true, WS__ERROR__INVALID_VALUE},
        {1, 4090, 16, false, WS__ERROR__INVALID_VALUE}, /* over the end */
        {1, -1, 16, false, WS__ERROR__INVALID_VALUE},
        {1, 0, UINT64_MAX, false, WS__ERROR__INVALID_VALUE},
        {1, 16, UINT64_MAX - 8, false, WS__ERROR__INVALID_VALUE},
        {1, 0, 0, false, WS__ERROR__INVALID_VALUE},
    };
    for (size_t i = 0; i < WS_ARRAY_SIZE(fills); i++) {
        wss_fill(w, 0, fills[i].stream,
                 (fills[i].their_memory ? theirs : mine) + (uint64_t)fills[i].off, fills[i].bytes,
                 1);
        Ws__Error e = wss_error(w, 0, wss_sync_stream(w, 0, 1));
        if (e != fills[i].error)
            print_error("fill %zu: %d\n", i, e);
        assert_int_equal(e, fills[i].error);
    }
    Ws__Copy c = WS__COPY__INIT;
    c.stream = 1;
    c.dst = mine;
    c.src = theirs;
    c.bytes = 16;
    assert_int_equal(wss_error(w, 0, wss_do(w, 0, WS__COMMAND__C_COPY_SYNC, &c)),
                     WS__ERROR__INVALID_VALUE);
    c.bulk = WS__COPY__BULK__STAGED_SRC;
    c.segment = 5;
    assert_int_equal(wss_error(w, 0, wss_do(w, 0, WS__COMMAND__C_COPY_SYNC, &c)),
                     WS__ERROR__INVALID_VALUE);
    c.bulk = WS__COPY__BULK__FRAME_SRC;
    for (c.frame = 0; c.frame < 3; c.frame++)
        assert_int_equal(wss_error(w, 0, wss_do(w, 0, WS__COMMAND__C_COPY_SYNC, &c)),
                         WS__ERROR__INVALID_VALUE);
    c.bulk = WS__COPY__BULK__INLINE; /* no data */
    assert_int_equal(wss_error(w, 0, wss_do(w, 0, WS__COMMAND__C_COPY_SYNC, &c)),
                     WS__ERROR__INVALID_VALUE);
    c.bulk = (Ws__Copy__Bulk)77;
    assert_int_equal(wss_error(w, 0, wss_do(w, 0, WS__COMMAND__C_COPY_SYNC, &c)),
                     WS__ERROR__INVALID_VALUE);
    assert_int_equal(w->dev[0].n_submitted + w->dev[1].n_submitted, 0);
}

/* ---- copies ---- */

static void test_copy_inline_and_in_the_reply(void **state)
{
    struct wss *w = *state;
    w->dev[0].inline_completion = true;
    wss_hello(w, 0, NULL);
    uint64_t va = wss_alloc(w, 0, 0, 4096);
    uint8_t data[1000];
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (uint8_t)i;
    Ws__Copy c = WS__COPY__INIT;
    c.stream = 1;
    c.dst = va;
    c.bytes = sizeof(data);
    c.bulk = WS__COPY__BULK__INLINE;
    c.data = (ProtobufCBinaryData){sizeof(data), data};
    wss_do(w, 0, WS__COMMAND__C_COPY, &c);
    c = (Ws__Copy)WS__COPY__INIT;
    c.stream = 1;
    c.src = va + 600;
    c.bytes = 64;
    c.bulk = WS__COPY__BULK__REPLY_DST;
    assert_int_equal(wss_error(w, 0, wss_do(w, 0, WS__COMMAND__C_COPY_SYNC, &c)), WS__ERROR__OK);
    assert_memory_equal(w->peers[0].replies[w->peers[0].n_replies - 1].data, data + 600, 64);
    wss_do(w, 0, WS__COMMAND__C_COPY, &c); /* without a reply there is nowhere to put it */
    assert_int_equal(wss_error(w, 0, wss_sync_stream(w, 0, 1)), WS__ERROR__INVALID_VALUE);
    c.bytes = 0;
    assert_int_equal(wss_error(w, 0, wss_do(w, 0, WS__COMMAND__C_COPY_SYNC, &c)), WS__ERROR__OK);
}

static void test_copies_of_boxes(void **state)
{
    struct wss *w = *state;
    w->dev[0].inline_completion = true;
    wss_hello(w, 0, NULL);
    uint64_t va = wss_alloc(w, 0, 0, 4096);
    uint8_t data[60];
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (uint8_t)(i + 1);
    Ws__Copy c = WS__COPY__INIT;
    c.stream = 1;
    c.dst = va;
    c.bytes = 5;
    c.height = 4;
    c.depth = 3;
    c.dst_pitch = 8;
    c.dst_slice = 100;
    c.bulk = WS__COPY__BULK__INLINE;
    c.data = (ProtobufCBinaryData){sizeof(data), data};
    assert_int_equal(wss_error(w, 0, wss_do(w, 0, WS__COMMAND__C_COPY_SYNC, &c)), WS__ERROR__OK);
    c = (Ws__Copy)WS__COPY__INIT; /* the second row of each slice */
    c.stream = 1;
    c.src = va + 8;
    c.bytes = 5;
    c.height = 3;
    c.src_pitch = 100;
    c.bulk = WS__COPY__BULK__REPLY_DST;
    assert_int_equal(wss_error(w, 0, wss_do(w, 0, WS__COMMAND__C_COPY_SYNC, &c)), WS__ERROR__OK);
    const uint8_t *got = w->peers[0].replies[w->peers[0].n_replies - 1].data;
    for (int z = 0; z < 3; z++)
        assert_memory_equal(got + z * 5, data + z * 20 + 5, 5);
    uint32_t n = w->dev[0].n_submitted;
    static const struct {
        uint64_t bytes, height, depth, pitch, slice;
    } bad[] = {
        {5, 4, 1, 4, 0},                      /* rows overlap */
        {5, 4, 3, 8, 28},                     /* slices overlap */
        {5, 513, 1, 8, 0},                    /* past the memory */
        {5, 4, 42, 8, 100},                   /* */
        {5, UINT64_MAX, 1, 8, 0},             /* products that wrap */
        {5, UINT64_MAX / 4, 8, 8, 0},         /* */
        {UINT64_MAX, 2, 1, UINT64_MAX, 0},    /* */
        {1, 1ull << 32, 1ull << 32, 1, 1},    /* */
        {1, 2, 1, UINT64_MAX, 0},             /* */
        {4096, 1, 1ull << 60, 0, 1ull << 60}, /* */
    };
    for (size_t i = 0; i < WS_ARRAY_SIZE(bad); i++) {
        c = (Ws__Copy)WS__COPY__INIT;
        c.stream = 1;
        c.src = va;
        c.bytes = bad[i].bytes;
        c.height = bad[i].height;
        c.depth = bad[i].depth;
        c.src_pitch = bad[i].pitch;
        c.src_slice = bad[i].slice;
        for (int inside = 0; inside < 2; inside++) {
            c.bulk = inside ? WS__COPY__BULK__NONE : WS__COPY__BULK__REPLY_DST;
            c.dst = va;
            c.dst_pitch = c.src_pitch;
            c.dst_slice = c.src_slice;
            assert_int_equal(wss_error(w, 0, wss_do(w, 0, WS__COMMAND__C_COPY_SYNC, &c)),
                             WS__ERROR__INVALID_VALUE);
        }
    }
    c = (Ws__Copy)WS__COPY__INIT; /* data for one row only */
    c.stream = 1;
    c.dst = va;
    c.bytes = 5;
    c.height = 4;
    c.dst_pitch = 8;
    c.bulk = WS__COPY__BULK__INLINE;
    c.data = (ProtobufCBinaryData){5, data};
    assert_int_equal(wss_error(w, 0, wss_do(w, 0, WS__COMMAND__C_COPY_SYNC, &c)),
                     WS__ERROR__INVALID_VALUE);
    assert_int_equal(w->dev[0].n_submitted, n);
}

/* ---- modules ---- */

static void test_modules_are_shared_and_counted(void **state)
{
    struct wss *w = *state;
    wss_hello(w, 0, NULL);
    wss_hello(w, 1, NULL);
    assert_int_equal(wss_error(w, 0, wss_load_try(w, 0, 1, 0, ptx, strlen(ptx))),
                     WS__ERROR__NEED_IMAGE);
    uint64_t s = wss_load(w, 0, 1, 0, ptx, strlen(ptx));
    assert_int_equal(wss_error(w, 0, s), WS__ERROR__OK);
    assert_int_equal(w->peers[0].replies[w->peers[0].n_replies - 1].n_kernels, 2);
    assert_int_equal(wss_error(w, 1, wss_load_try(w, 1, 1, 0, ptx, strlen(ptx))),
                     WS__ERROR__OK); /* no upload */
    assert_int_equal(wss_error(w, 1, wss_load_try(w, 1, 2, 1, ptx, strlen(ptx))), WS__ERROR__OK);
    assert_int_equal(wss_error(w, 1, wss_load_try(w, 1, 2, 1, ptx, strlen(ptx))),
                     WS__ERROR__INVALID_HANDLE); /* id in use */
    assert_int_equal(ws_cache_n_codes(&w->server->cache), 1);
    assert_int_equal(w->dev[0].n_modules, 1);
    assert_int_equal(w->dev[0].n_instances + w->dev[1].n_instances, 3);
    struct {
        uint64_t p;
        uint32_t n;
    } params = {1, 2};
    wss_launch(w, 0, 1, 1 << 20 | 0, &params, 12);
    wss_launch(w, 0, 1, 1 << 20 | 0, &params, 11); /* too few bytes */
    wss_launch(w, 0, 1, 1 << 20 | 2, &params, 12); /* no such kernel */
    wss_launch(w, 0, 2, 1 << 20 | 0, &params, 12); /* stream of another device */
    wss_launch(w, 0, 1, 9 << 20 | 0, &params, 12);
    assert_int_equal(w->peers[0].n_notices, 4);
    assert_int_equal(w->dev[0].n_ops, 1);
    uint64_t id = 1;
    wss_do(w, 0, WS__COMMAND__C_MODULE_UNLOAD, &id);
    wss_launch(w, 0, 1, 1 << 20 | 0, &params, 12); /* its id is free at once */
    assert_int_equal(w->peers[0].n_notices, 5);
    assert_int_equal(w->dev[0].n_instances + w->dev[1].n_instances,
                     3); /* the launch under way keeps it */
    fakedev_complete_all(&w->dev[0]);
    wss_turn(w);
    assert_int_equal(w->dev[0].n_instances + w->dev[1].n_instances, 2);
    ws_server_disconnected(w->server, &w->peers[1].peer);
    wss_turn(w);
    assert_int_equal(w->dev[0].n_instances + w->dev[1].n_instances, 0);
    assert_int_equal(w->server->cache.n_images, 1); /* kept for later */
    assert_int_equal(wss_error(w, 0, wss_load_try(w, 0, 1, 0, ptx, strlen(ptx))), WS__ERROR__OK);
}

static void test_cache_is_bounded(void **state)
{
    struct wss *w = *state;
    char text[3][400];
    wss_hello(w, 0, NULL);
    for (int i = 0; i < 3; i++) {
        uint64_t id = 1;
        snprintf(text[i], sizeof(text[i]), "%s// %0*d\n", ptx, 60, i);
        assert_int_equal(wss_error(w, 0, wss_load(w, 0, 1, 0, text[i], strlen(text[i]))),
                         WS__ERROR__OK);
        wss_do(w, 0, WS__COMMAND__C_MODULE_UNLOAD, &id);
        if (i == 0) { /* room for two, image and code */
            assert_true(w->server->cache.bytes > strlen(text[0]) + sizeof(struct ws_ptx_insn));
            w->server->cache.limit_bytes = w->server->cache.bytes * 2 + 200;
        }
    }
    assert_true(w->server->cache.bytes <= w->server->cache.limit_bytes);
    assert_int_equal(wss_error(w, 0, wss_load_try(w, 0, 2, 0, text[2], strlen(text[2]))),
                     WS__ERROR__OK);
    assert_int_equal(wss_error(w, 0, wss_load_try(w, 0, 3, 0, text[0], strlen(text[0]))),
                     WS__ERROR__NEED_IMAGE); /* the oldest went */
    w->server->cache.limit_bytes = 0;        /* what is in use stays, whatever the limit */
    assert_int_equal(wss_error(w, 0, wss_load(w, 0, 3, 0, text[0], strlen(text[0]))),
                     WS__ERROR__OK);
    assert_int_equal(w->server->cache.n_images, 2);
}

/* An image, or a change of the limit, may take the room of very many: no turn frees them all. */
static void test_cache_shrinks_in_turns(void **state)
{
    enum { IMAGES = 100, AT_ONCE = 32 };
    struct wss *w = *state;
    char text[400];
    uint64_t id = 1;
    wss_hello(w, 0, NULL);
    for (int i = 0; i < IMAGES; i++) {
        snprintf(text, sizeof(text), "%s// %0*d\n", ptx, 60, i);
        assert_int_equal(wss_error(w, 0, wss_load(w, 0, 1, 0, text, strlen(text))), WS__ERROR__OK);
        wss_do(w, 0, WS__COMMAND__C_MODULE_UNLOAD, &id);
    }
    assert_int_equal(w->server->cache.n_images, IMAGES);
    w->server->cache.limit_bytes = 0;
    for (uint32_t left = IMAGES; left; left -= WS_MIN(left, (uint32_t)AT_ONCE)) {
        assert_int_equal(w->server->cache.n_images, left);
        assert_int_equal(ws_server_turn(w->server) == 0, left > AT_ONCE);
    }
    assert_int_equal(w->server->cache.n_images, 0);
}

static void test_images_wrong(void **state)
{
    struct wss *w = *state;
    static const char bad[] = PTX_HEAD ".visible .entry k()\n{\nbogus.u32 %r1;\n}\n";
    static const uint8_t cubin[64] = {0x7f, 'E', 'L', 'F', 2, 1, 1, [18] = 190};
    uint8_t sha[32] = {1};
    wss_hello(w, 0, NULL);
    assert_int_equal(wss_error(w, 0, wss_load(w, 0, 1, 0, bad, sizeof(bad) - 1)),
                     WS__ERROR__UNSUPPORTED_PTX);
    assert_non_null(strstr(w->peers[0].replies[w->peers[0].n_replies - 1].text, "t.ptx:6"));
    assert_int_equal(wss_error(w, 0, wss_load(w, 0, 1, 0, "hello", 5)), WS__ERROR__INVALID_IMAGE);
    assert_int_equal(wss_error(w, 0, wss_load(w, 0, 1, 0, cubin, sizeof(cubin))),
                     WS__ERROR__NO_BINARY_FOR_GPU);
    assert_int_equal(wss_error(w, 0, wss_load_try(w, 0, UINT64_C(1) << 40, 0, ptx, strlen(ptx))),
                     WS__ERROR__INVALID_HANDLE);
    assert_int_equal(wss_error(w, 0, wss_load_try(w, 0, 1, 7, ptx, strlen(ptx))),
                     WS__ERROR__INVALID_DEVICE);
    Ws__ModuleImage i = WS__MODULE_IMAGE__INIT; /* bytes that are not what the hash says */
    i.sha256 = (ProtobufCBinaryData){32, sha};
    i.image_bytes = 4;
    i.data = (ProtobufCBinaryData){4, sha};
    wss_do(w, 0, WS__COMMAND__C_MODULE_IMAGE, &i);
    assert_int_equal(wss_error(w, 0, wss_sync_stream(w, 0, 1)), WS__ERROR__INVALID_IMAGE);
    i.offset = 2; /* a part without its beginning */
    wss_do(w, 0, WS__COMMAND__C_MODULE_IMAGE, &i);
    assert_int_equal(wss_error(w, 0, wss_sync_stream(w, 0, 1)), WS__ERROR__INVALID_IMAGE);
    i.offset = 0; /* a hole between parts */
    i.image_bytes = 40;
    wss_do(w, 0, WS__COMMAND__C_MODULE_IMAGE, &i);
    i.offset = 5;
    wss_do(w, 0, WS__COMMAND__C_MODULE_IMAGE, &i);
    assert_int_equal(wss_error(w, 0, wss_sync_stream(w, 0, 1)), WS__ERROR__INVALID_IMAGE);
    i.offset = 0; /* more than announced */
    i.image_bytes = 3;
    wss_do(w, 0, WS__COMMAND__C_MODULE_IMAGE, &i);
    assert_int_equal(wss_error(w, 0, wss_sync_stream(w, 0, 1)), WS__ERROR__INVALID_IMAGE);
    i.image_bytes = UINT64_MAX;
    wss_do(w, 0, WS__COMMAND__C_MODULE_IMAGE, &i);
    assert_int_equal(wss_error(w, 0, wss_sync_stream(w, 0, 1)), WS__ERROR__INVALID_IMAGE);
    i.sha256.len = 31;
    wss_do(w, 0, WS__COMMAND__C_MODULE_IMAGE, &i);
    assert_int_equal(wss_error(w, 0, wss_sync_stream(w, 0, 1)), WS__ERROR__INVALID_IMAGE);
    for (unsigned k = 0; k < 20; k++) { /* many begun, none ended */
        uint8_t other[32] = {(uint8_t)k, 9};
        i.sha256 = (ProtobufCBinaryData){32, other};
        i.image_bytes = 1 << 20;
        wss_do(w, 0, WS__COMMAND__C_MODULE_IMAGE, &i);
    }
    assert_false(w->peers[0].dropped);
    assert_int_equal(ws_cache_n_codes(&w->server->cache), 0);
}

/* ---- segments ---- */

static struct ws_client *client_of(struct wss *w, unsigned peer)
{
    return ws_client_find(w->server, &w->peers[peer].peer);
}

static void test_staging_chunks(void **state)
{
    struct wss *w = *state;
    struct ws_handoff_request q = {
        .kind = WS_HANDOFF_STAGING, .bytes = 4 * 8192, .chunk_bytes = 8192};
    struct ws_segment *g;
    w->dev[0].inline_completion = true;
    wss_hello(w, 0, NULL);
    struct ws_client *c = client_of(w, 0);
    uint64_t va = wss_alloc(w, 0, 0, 65536);
    assert_int_equal(ws_segment_new(c, &q, &g), WS__ERROR__OK);
    struct ws_staging_control *h = (struct ws_staging_control *)g->map;
    assert_int_equal(h->n_chunks, 4);
    static const struct {
        uint64_t offset, bytes;
        uint32_t bulk;
        bool ok;
        int chunk;
        uint32_t state;
    } rows[] = {
        {0, 8192, WS__COPY__BULK__STAGED_SRC, true, 0, WS_CHUNK_FREE},
        {8192 * 3 + 100, 8092, WS__COPY__BULK__STAGED_SRC, true, 3, WS_CHUNK_FREE},
        {8192, 100, WS__COPY__BULK__STAGED_DST, true, 1, WS_CHUNK_READY},
        {8192, 0, WS__COPY__BULK__STAGED_DST, true, 1, WS_CHUNK_READY},
        {8000, 8192, WS__COPY__BULK__STAGED_SRC, false, -1, 0},     /* over a chunk's end */
        {8192 * 3, 8193, WS__COPY__BULK__STAGED_DST, false, -1, 0}, /* over the segment's end */
        {8192 * 4, 1, WS__COPY__BULK__STAGED_DST, false, -1, 0},
        {UINT64_MAX, 2, WS__COPY__BULK__STAGED_DST, false, -1, 0},
        {0, UINT64_MAX, WS__COPY__BULK__STAGED_SRC, false, -1, 0},
        {8192 * 2, 70000, WS__COPY__BULK__STAGED_DST, false, -1, 0},
    };
    for (size_t i = 0; i < WS_ARRAY_SIZE(rows); i++) {
        Ws__Copy m = WS__COPY__INIT;
        for (int k = 0; k < 4; k++)
            h->state[k] = WS_CHUNK_BUSY;
        m.stream = 1;
        m.dst = m.src = va;
        m.bytes = rows[i].bytes;
        m.bulk = rows[i].bulk;
        m.segment = g->id;
        m.segment_offset = rows[i].offset;
        Ws__Error e = wss_error(w, 0, wss_do(w, 0, WS__COMMAND__C_COPY_SYNC, &m));
        assert_int_equal(e == WS__ERROR__OK, rows[i].ok);
        for (int k = 0; k < 4; k++)
            assert_int_equal(h->state[k],
                             k == rows[i].chunk ? rows[i].state : (uint32_t)WS_CHUNK_BUSY);
    }
    Ws__Copy m = WS__COPY__INIT; /* right chunk, memory of nobody: the chunk is told */
    m.stream = 1;
    m.src = va + 65536;
    m.bytes = 10;
    m.bulk = WS__COPY__BULK__STAGED_DST;
    m.segment = g->id;
    wss_do(w, 0, WS__COMMAND__C_COPY, &m);
    assert_int_equal(h->state[0], WS_CHUNK_FAILED);
    w->dev[0].inline_completion = false;
    m.src = va;
    for (int fails = 0; fails < 2;
         fails++) { /* the device fails it: the chunk is told, a source is free again */
        m.bulk = fails ? WS__COPY__BULK__STAGED_SRC : WS__COPY__BULK__STAGED_DST;
        m.dst = va;
        h->state[0] = WS_CHUNK_BUSY;
        wss_do(w, 0, WS__COMMAND__C_COPY, &m);
        fakedev_complete(&w->dev[0], 0, 1, 2, WS_DEV_E_INVALID_VALUE);
        wss_turn(w);
        assert_int_equal(h->state[0], fails ? WS_CHUNK_FREE : WS_CHUNK_FAILED);
    }
    m.bulk = WS__COPY__BULK__STAGED_DST;
    h->state[0] = WS_CHUNK_BUSY;
    wss_do(w, 0, WS__COMMAND__C_COPY, &m);
    assert_int_equal(h->state[0], WS_CHUNK_BUSY);
    ws_segment_release(g, c); /* the copy under way keeps it */
    fakedev_complete(&w->dev[0], 0, 1, 2, WS_DEV_OK);
    wss_turn(w);
    assert_null(c->segments.by_id);
}

static void test_segment_requests_checked(void **state)
{
    static const struct ws_handoff_request bad[] = {
        {.kind = WS_HANDOFF_STAGING, .bytes = 8192, .chunk_bytes = 0},
        {.kind = WS_HANDOFF_STAGING, .bytes = 8191, .chunk_bytes = 4096},
        {.kind = WS_HANDOFF_STAGING, .bytes = UINT64_C(961) * 4096, .chunk_bytes = 4096},
        {.kind = WS_HANDOFF_STAGING, .bytes = 0, .chunk_bytes = 4096},
        {.kind = WS_HANDOFF_PINNED, .bytes = 0},
        {.kind = WS_HANDOFF_PINNED, .bytes = UINT64_MAX},
        {.kind = WS_HANDOFF_PINNED, .bytes = (1 << 20) + 1},
    };
    struct wss *w = *state;
    struct ws_segment *g;
    w->config.limits.max_segment_bytes = 1 << 20;
    wss_hello(w, 0, NULL);
    struct ws_client *c = client_of(w, 0);
    for (size_t i = 0; i < WS_ARRAY_SIZE(bad); i++)
        assert_int_not_equal(ws_segment_new(c, &bad[i], &g), WS__ERROR__OK);
    struct ws_handoff_request q = {.kind = WS_HANDOFF_PINNED, .bytes = 1 << 20};
    assert_int_equal(ws_segment_new(c, &q, &g), WS__ERROR__OK);
    struct ws_segment *second;
    assert_int_equal(ws_segment_new(c, &q, &second), WS__ERROR__OUT_OF_MEMORY);
    static const struct {
        uint64_t address;
        Ws__Error error;
    } maps[] = {
        {WS_VA_FIRST, WS__ERROR__INVALID_VALUE},
        {WS_VA_FIRST - 4096, WS__ERROR__INVALID_VALUE},
        {UINT64_MAX - 100, WS__ERROR__INVALID_VALUE},
        {UINT64_C(0x7f0000000000), WS__ERROR__OK},
        {UINT64_C(0x7f0000000000), WS__ERROR__INVALID_VALUE}, /* twice */
    };
    for (size_t i = 0; i < WS_ARRAY_SIZE(maps); i++) {
        Ws__HostMap m = WS__HOST_MAP__INIT;
        m.segment = g->id;
        m.address = maps[i].address;
        assert_int_equal(wss_error(w, 0, wss_do(w, 0, WS__COMMAND__C_HOST_MAP, &m)), maps[i].error);
    }
}

/* Where a client names no address for pinned memory, the daemon chooses one. */
static void test_pinned_memory_is_given_its_address(void **state)
{
    enum { BYTES = 8192 };
    struct wss *w = *state;
    struct ws_handoff_request q = {.kind = WS_HANDOFF_PINNED, .bytes = BYTES};
    uint64_t at[2] = {0, 0};
    wss_hello(w, 0, NULL);
    struct ws_client *c = client_of(w, 0);
    for (int i = 0; i < 2; i++) {
        struct ws_segment *g;
        assert_int_equal(ws_segment_new(c, &q, &g), WS__ERROR__OK);
        assert_int_equal(ws_segment_host_map(c, 0, g->id, 0), WS__ERROR__OK);
        at[i] = g->mapped_at;
        assert_in_range(at[i], WS_HOST_VA_FIRST, WS_HOST_VA_LAST - BYTES);
    }
    assert_true(at[0] + BYTES <= at[1] || at[1] + BYTES <= at[0]);
}

static Ws__Error pin(struct ws_client *c, uint64_t bytes, uint64_t *io_at)
{
    struct ws_handoff_request q = {.kind = WS_HANDOFF_PINNED, .bytes = bytes};
    struct ws_segment *g;
    assert_int_equal(ws_segment_new(c, &q, &g), WS__ERROR__OK);
    Ws__Error e = ws_segment_host_map(c, 0, g->id, *io_at);
    *io_at = g->mapped_at ? g->mapped_at : *io_at;
    return e;
}

/* Nobody takes all addresses that the daemon has for pinned memory. */
static void test_addresses_of_pinned_memory_are_shared(void **state)
{
    enum { BYTES = 600 << 20 };
    const uint64_t G = WS_HOST_VA_GRANULE_BYTES;
    struct wss *w = *state;
    struct ws_accounts *a = w->server->accounts;
    w->config.limits.pool[WS_RESOURCE_HOST_BYTES] = UINT64_C(1) << 40;
    w->config.limits.pool[WS_RESOURCE_HOST_ADDRESS_BYTES] = 6 * G;
    w->peers[1].uid = w->peers[0].uid + 1;
    wss_hello(w, 0, NULL);
    wss_hello(w, 1, NULL);
    uint64_t at[5] = {0};
    for (int i = 0; i < 3; i++) /* half of them */
        assert_int_equal(pin(client_of(w, 0), BYTES, &at[i]), WS__ERROR__OK);
    assert_int_equal(ws_accounts_used(a, WS_RESOURCE_HOST_ADDRESS_BYTES), 3 * G);
    assert_int_equal(pin(client_of(w, 0), BYTES, &at[3]), WS__ERROR__OUT_OF_MEMORY);
    assert_int_equal(pin(client_of(w, 1), 4096, &at[4]), WS__ERROR__OK);
    ws_server_disconnected(w->server, &w->peers[0].peer);
    wss_turn(w);
    assert_int_equal(ws_accounts_used(a, WS_RESOURCE_HOST_ADDRESS_BYTES), G);
}

/* Where clients share a GPU's addresses, none gets in the way of what others may be given. */
static void test_addresses_for_others_cannot_be_named(void **state)
{
    const uint64_t G = WS_HOST_VA_GRANULE_BYTES;
    struct wss *w = *state;
    fakedev_set_far(&w->dev[0]);
    wss_hello(w, 0, NULL);
    wss_hello(w, 1, NULL);
    uint64_t given = 0, beside, named = WS_HOST_VA_FIRST + 9 * G, again = named,
             behind = named + 4096;
    assert_int_equal(pin(client_of(w, 0), 4096, &given), WS__ERROR__OK);
    beside = given + (1 << 20);
    assert_int_equal(pin(client_of(w, 1), 4096, &beside), WS__ERROR__NOT_SUPPORTED);
    assert_int_equal(pin(client_of(w, 1), 4096, &named), WS__ERROR__OK);
    assert_int_equal(ws_accounts_used(w->server->accounts, WS_RESOURCE_HOST_ADDRESS_BYTES), 2 * G);
    assert_int_equal(pin(client_of(w, 0), 4096, &again), WS__ERROR__NOT_SUPPORTED);
    assert_int_equal(pin(client_of(w, 0), 4096, &behind), WS__ERROR__NOT_SUPPORTED);
    /* What it has named is its own again once it has given it back. */
    uint64_t id = client_of(w, 1)->segments.n_made;
    wss_do(w, 1, WS__COMMAND__C_HOST_UNMAP, &id);
    wss_turn(w);
    assert_int_equal(pin(client_of(w, 1), 4096, &again), WS__ERROR__OK);
}

static sem_t may_map;
static _Atomic int n_mapped, n_soon;

static int slow_map(struct ws_space *s, uint64_t va, uint64_t bytes, void *host, bool soon)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 20;
    n_soon += soon;
    if (!soon && sem_timedwait(&may_map, &until))
        return -EINVAL;
    if (va % 8192)
        return -EEXIST;
    n_mapped++;
    return 0;
}

static void slow_unmap(struct ws_space *s, uint64_t va, uint64_t bytes)
{
    n_mapped--;
}

static uint64_t host_map(struct wss *w, struct ws_segment *g, uint64_t at)
{
    Ws__HostMap m = WS__HOST_MAP__INIT;
    m.segment = g->id;
    m.address = at;
    return wss_do(w, 0, WS__COMMAND__C_HOST_MAP, &m);
}

static void wait_for_reply(struct wss *w, uint64_t seq)
{
    for (int ms = 0; ms < 20000 && !wss_replied(w, 0, seq); ms++) {
        usleep(1000);
        wss_turn(w);
    }
}

/* A driver that has to be asked whether it can map memory where the client wants it, and that does
 * not answer, keeps nobody waiting but the one who asked. */
static void map_while_a_driver_waits(struct wss *w, struct ws_client *c)
{
    const uint64_t at = UINT64_C(0x7f0000000000);
    struct ws_handoff_request q = {.kind = WS_HANDOFF_PINNED, .bytes = 4096};
    struct ws_segment *g[4];
    for (int k = 0; k < 4; k++)
        assert_int_equal(ws_segment_new(c, &q, &g[k]), WS__ERROR__OK);
    uint64_t ids[2] = {g[0]->id, g[1]->id}, n = c->stats.n_retired;
    uint64_t s = host_map(w, g[0], at), refused = host_map(w, g[1], at + 4096);
    assert_int_equal(c->stats.n_retired, n);
    assert_int_equal(wss_error(w, 0, host_map(w, g[2], 0)), WS__ERROR__OK); /* of the daemon's */
    assert_int_equal(n_soon, 1);
    assert_int_equal(wss_error(w, 0, host_map(w, g[0], at)), WS__ERROR__INVALID_VALUE);
    wss_do(w, 0, WS__COMMAND__C_HOST_UNMAP, &ids[0]);
    assert_int_equal(w->peers[0].notice_error, WS__ERROR__INVALID_HANDLE);
    ws_segment_release(g[1], c); /* it goes when it is no longer in use */
    sem_post(&may_map);
    sem_post(&may_map);
    wait_for_reply(w, s);
    wait_for_reply(w, refused);
    assert_int_equal(wss_error(w, 0, s), WS__ERROR__OK);
    assert_int_equal(wss_value(w, 0, s), at);
    assert_int_equal(wss_error(w, 0, refused), WS__ERROR__NOT_SUPPORTED);
    assert_int_equal(HASH_COUNT(c->segments.by_id), 3);
    (void)host_map(w, g[3], at + 8192); /* and now it goes */
    ws_server_disconnected(w->server, &w->peers[0].peer);
    wss_turn(w);
    assert_false(ws_list_empty(&w->server->clients.dying));
}

static void test_mapping_waits_for_a_driver(void **state)
{
    static const struct ws_host_hook hook = {slow_map, slow_unmap, NULL};
    struct wss *w = *state;
    sem_init(&may_map, 0, 0);
    n_mapped = n_soon = 0;
    ws_space_set_host_hook(&hook);
    w->config.n_loaders = 2;
    fakedev_set_far(&w->dev[0]);
    wss_hello(w, 0, NULL);
    map_while_a_driver_waits(w, client_of(w, 0));
    sem_post(&may_map);
    for (int ms = 0; ms < 20000 && !ws_list_empty(&w->server->clients.dying); ms++) {
        usleep(1000);
        wss_turn(w);
    }
    ws_space_set_host_hook(NULL);
    assert_true(ws_list_empty(&w->server->clients.dying));
    assert_int_equal(n_mapped, 0);
}

/* Memory that the client has already: taken only if it can't shrink under the daemon, and then it
 * is the same memory. */
static void test_segments_of_the_clients_own(void **state)
{
    enum { BYTES = 8192 };
    struct wss *w = *state;
    struct ws_segment *g;
    struct ws_handoff_request q = {.kind = WS_HANDOFF_SHARED, .bytes = BYTES};
    wss_hello(w, 0, NULL);
    struct ws_client *c = client_of(w, 0);
    int loose = memfd_create("loose", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int small = ws_packet_memfd("small", BYTES / 2), good = ws_packet_memfd("good", BYTES);
    assert_true(loose >= 0 && !ftruncate(loose, BYTES) && small >= 0 && good >= 0);
    assert_int_equal(pwrite(good, "same", 5, 4096), 5);
    assert_int_equal(ws_segment_share(c, &q, -1, &g), WS__ERROR__INVALID_VALUE);
    assert_int_equal(ws_segment_share(c, &q, loose, &g), WS__ERROR__NOT_SUPPORTED);
    assert_int_equal(ws_segment_share(c, &q, small, &g), WS__ERROR__NOT_SUPPORTED);
    assert_int_equal(ws_segment_share(c, &q, STDERR_FILENO, &g), WS__ERROR__NOT_SUPPORTED);
    assert_int_equal(ws_segment_share(c, &q, good, &g), WS__ERROR__OK);
    assert_string_equal((char *)g->data + 4096, "same");
    close(loose);
    close(small);
    close(good);
}

/* What the daemon has made is sealed once it is used. What the client has brought is not: other
 * processes may map it later. */
static void test_whose_memory_is_sealed(void **state)
{
    enum { BYTES = 8192 };
    struct wss *w = *state;
    struct ws_segment *own, *made;
    struct ws_handoff_request shared = {.kind = WS_HANDOFF_SHARED, .bytes = BYTES},
                              pinned = {.kind = WS_HANDOFF_PINNED, .bytes = BYTES};
    wss_hello(w, 0, NULL);
    struct ws_client *c = client_of(w, 0);
    int fd = ws_packet_memfd_for_two("own", BYTES);
    assert_true(fd >= 0);
    assert_int_equal(ws_segment_share(c, &shared, fd, &own), WS__ERROR__OK);
    assert_true(ws_segment_settle(c, own));
    assert_ptr_not_equal(mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
    close(fd);
    assert_int_equal(ws_segment_new(c, &pinned, &made), WS__ERROR__OK);
    fd = dup(made->fd);
    assert_true(ws_segment_settle(c, made));
    assert_ptr_equal(mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
    close(fd);
}

/* Freeing pinned memory waits for the work before it, holds what comes behind while it acts, and
 * lets the address be used again. */
static void test_host_unmap_and_map_again(void **state)
{
    struct wss *w = *state;
    struct ws_handoff_request q = {.kind = WS_HANDOFF_PINNED, .bytes = 8192};
    struct ws_segment *a, *b;
    uint64_t at = UINT64_C(0x7f0000000000);
    wss_hello(w, 0, NULL);
    struct ws_client *c = client_of(w, 0);
    assert_int_equal(ws_segment_new(c, &q, &a) + ws_segment_new(c, &q, &b), WS__ERROR__OK);
    uint32_t id_b = b->id;
    uint64_t id_a = a->id;
    Ws__HostMap m = WS__HOST_MAP__INIT;
    m.segment = a->id;
    m.address = at;
    wss_do(w, 0, WS__COMMAND__C_HOST_MAP, &m);
    wss_fill(w, 0, 1, at, 16, 1);
    wss_do(w, 0, WS__COMMAND__C_HOST_UNMAP, &id_a);
    wss_do(w, 0, WS__COMMAND__C_HOST_UNMAP, &id_a); /* twice */
    assert_int_equal(w->peers[0].notice_error, WS__ERROR__INVALID_HANDLE);
    m.segment = id_b;
    uint64_t s = wss_do(w, 0, WS__COMMAND__C_HOST_MAP, &m);
    assert_false(wss_replied(w, 0, s));
    fakedev_complete(&w->dev[0], 0, 1, 2, WS_DEV_OK);
    wss_turn(w);
    assert_int_equal(wss_error(w, 0, s), WS__ERROR__OK);
    assert_int_equal(HASH_COUNT(c->segments.by_id), 1);
    wss_fill(w, 0, 1, at, 16, 1);
    fakedev_complete(&w->dev[0], 0, 1, 2, WS_DEV_OK);
    wss_turn(w);
    assert_int_equal(w->peers[0].retired, w->peers[0].next_seq - 1);
}

/* ---- status ---- */

static void test_status_needs_no_hello_and_remembers(void **state)
{
    struct wss *w = *state;
    Ws__ClientMessage m = WS__CLIENT_MESSAGE__INIT;
    Ws__StatusRequest q = WS__STATUS_REQUEST__INIT;
    m.status = &q;
    for (int i = 0; i < 100; i++) {
        wss_hello(w, 1, NULL);
        ws_server_disconnected(w->server, &w->peers[1].peer);
        wss_turn(w);
    }
    wss_message(w, 0, &m);
    assert_int_equal(w->peers[0].n_status, 1);
    assert_int_equal(ws_server_n_clients(w->server), 0);
    assert_int_equal(w->server->stats.n_ended, 100);
}

static void test_a_trace_ends_when_nobody_asks(void **state)
{
    struct wss *w = *state;
    Ws__ClientMessage m = WS__CLIENT_MESSAGE__INIT;
    Ws__TraceRequest q = WS__TRACE_REQUEST__INIT;
    m.trace = &q;
    wss_message(w, 0, &m);
    assert_non_null(w->server->tracing);
    int ms = ws_server_turn(w->server);
    assert_true(ms > 0 && ms <= 60001); /* the loop looks again, even if nothing happens */
    w->server->tracing->asked_ns -= 59 * WS_NS_PER_S;
    wss_turn(w);
    assert_non_null(w->server->tracing);
    w->server->tracing->asked_ns -= 2 * WS_NS_PER_S;
    assert_int_equal(ws_server_turn(w->server), -1);
    assert_null(w->server->tracing);
}

/* The n-th allocation fails, for every n: never a crash, at worst the client is dropped. */
static void test_out_of_memory_anywhere(void **state)
{
    struct wss *w = *state;
    for (uint64_t n = 1; n < 60; n++) {
        w->peers[1].dropped = false;
        w->peers[1].n_replies = 0;
        ws_alloc_fail_after(n);
        wss_hello(w, 1, NULL);
        if (w->peers[1].hello_error == WS__ERROR__OK) {
            w->peers[1].next_seq = 1;
            wss_stream(w, 1, 100, 0, false);
            Ws__MemAlloc m = WS__MEM_ALLOC__INIT;
            m.bytes = 4096;
            wss_do(w, 1, WS__COMMAND__C_MEM_ALLOC, &m);
            for (int i = 0; i < 3; i++) {
                wss_record(w, 1, (uint64_t)i, 1);
                wss_wait(w, 1, 100, (uint64_t)i);
            }
            wss_sync_device(w, 1, 0);
        }
        ws_alloc_fail_after(0);
        ws_server_disconnected(w->server, &w->peers[1].peer);
        wss_turn(w);
    }
    assert_int_equal(ws_server_n_clients(w->server), 0);
}

int main(int argc, char **argv)
{
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_spread_and_visible_devices),
        T(test_hello_refused),
        T(test_malformed_drops_the_sender_only),
        T(test_strangers_are_told_once),
        T(test_limits_drop),
        T(test_quota),
        T(test_who_does_not_read_is_dropped),
        T(test_much_leaves_in_parts),
        T(test_foreign_and_wrong_handles),
        T(test_copy_inline_and_in_the_reply),
        T(test_copies_of_boxes),
        T(test_modules_are_shared_and_counted),
        T(test_cache_is_bounded),
        T(test_cache_shrinks_in_turns),
        T(test_images_wrong),
        T(test_staging_chunks),
        T(test_segment_requests_checked),
        T(test_pinned_memory_is_given_its_address),
        T(test_addresses_of_pinned_memory_are_shared),
        T(test_addresses_for_others_cannot_be_named),
        T(test_mapping_waits_for_a_driver),
        T(test_segments_of_the_clients_own),
        T(test_whose_memory_is_sealed),
        T(test_host_unmap_and_map_again),
        T(test_status_needs_no_hello_and_remembers),
        T(test_a_trace_ends_when_nobody_asks),
        T(test_out_of_memory_anywhere),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
