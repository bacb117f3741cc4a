// SPDX-License-Identifier: Apache-2.0
/* backend: objects, reservations, mappings, access, sharing between clients, and who is charged;
 * wrong and hostile sequences. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "backend/accounts/account.h"
#include "backend/client/vmm.h"
#include "tests/lib/wsserver.h"

#define G WS_MEM_GRANULE_BYTES

static int setup(void **state)
{
    struct wss *w = *state = wss_new(2);
    for (unsigned i = 0; i < 2; i++) {
        w->dev[i].base.spec.memory_bytes = 64 * G;
        w->dev[i].inline_completion = true;
    }
    wss_hello(w, 0, NULL);
    wss_hello(w, 1, NULL);
    return 0;
}

static int teardown(void **state)
{
    wss_free(*state); /* checks that the devices have everything back */
    return 0;
}

static Ws__Error create(struct wss *w, unsigned p, uint64_t object, uint32_t device, uint64_t bytes)
{
    Ws__MemCreate m = WS__MEM_CREATE__INIT;
    m.object = object;
    m.device = device;
    m.bytes = bytes;
    return wss_error(w, p, wss_do(w, p, WS__COMMAND__C_MEM_CREATE, &m));
}

static Ws__Error reserve(struct wss *w, unsigned p, uint64_t bytes, uint64_t align, uint64_t *ret)
{
    Ws__VaReserve m = WS__VA_RESERVE__INIT;
    m.bytes = bytes;
    m.alignment = align;
    uint64_t seq = wss_do(w, p, WS__COMMAND__C_VA_RESERVE, &m);
    *ret = wss_value(w, p, seq);
    return wss_error(w, p, seq);
}

/* Return: where it is. */
static uint64_t reserve_at(struct wss *w, unsigned p, uint64_t bytes, uint64_t wanted)
{
    Ws__VaReserve m = WS__VA_RESERVE__INIT;
    m.bytes = bytes;
    m.wanted = wanted;
    uint64_t seq = wss_do(w, p, WS__COMMAND__C_VA_RESERVE, &m);
    assert_int_equal(wss_error(w, p, seq), WS__ERROR__OK);
    return wss_value(w, p, seq);
}

static Ws__Error unreserve(struct wss *w, unsigned p, uint64_t va)
{
    return wss_error(w, p, wss_do(w, p, WS__COMMAND__C_VA_FREE, &va));
}

static Ws__Error map(struct wss *w, unsigned p, uint64_t va, uint64_t bytes, uint64_t object,
                     uint64_t offset)
{
    Ws__MemMap m = WS__MEM_MAP__INIT;
    m.address = va;
    m.bytes = bytes;
    m.object = object;
    m.offset = offset;
    return wss_error(w, p, wss_do(w, p, WS__COMMAND__C_MEM_MAP, &m));
}

static Ws__Error unmap(struct wss *w, unsigned p, uint64_t va, uint64_t bytes)
{
    Ws__MemUnmap m = WS__MEM_UNMAP__INIT;
    m.address = va;
    m.bytes = bytes;
    return wss_error(w, p, wss_do(w, p, WS__COMMAND__C_MEM_UNMAP, &m));
}

static Ws__Error allow(struct wss *w, unsigned p, uint64_t va, uint64_t bytes, uint32_t device,
                       bool read, bool write)
{
    Ws__MemAccess m = WS__MEM_ACCESS__INIT;
    m.address = va;
    m.bytes = bytes;
    m.device = device;
    m.read = read;
    m.write = write;
    return wss_error(w, p, wss_do(w, p, WS__COMMAND__C_MEM_ACCESS, &m));
}

static Ws__Error share(struct wss *w, unsigned p, int what, uint64_t x, const uint8_t *handle,
                       uint64_t *ret_seq)
{
    Ws__Share m = WS__SHARE__INIT;
    m.what = what;
    m.address = m.event = x;
    if (handle)
        m.handle = (ProtobufCBinaryData){WS_SHARE_BYTES, (uint8_t *)handle};
    *ret_seq = wss_do(w, p, WS__COMMAND__C_SHARE, &m);
    return wss_error(w, p, *ret_seq);
}

static const uint8_t *data_of(struct wss *w, unsigned p, uint64_t seq)
{
    for (unsigned i = 0; i < w->peers[p].n_replies && i < WSS_REPLIES; i++)
        if (w->peers[p].replies[i].seq == seq)
            return w->peers[p].replies[i].data;
    fail_msg("no reply");
    return NULL;
}

static bool fill_works(struct wss *w, unsigned p, uint64_t va)
{
    w->peers[p].notice_error = WS__ERROR__OK;
    wss_fill(w, p, 1, va, 64, 7);
    assert_int_equal(wss_error(w, p, wss_sync_stream(w, p, 1)), w->peers[p].notice_error);
    return !w->peers[p].notice_error;
}

static void test_map_and_access(void **state)
{
    struct wss *w = *state;
    uint64_t va;
    assert_int_equal(create(w, 0, 5, 0, 2 * G), WS__ERROR__OK);
    assert_int_equal(reserve(w, 0, 4 * G, 8 * G, &va), WS__ERROR__OK);
    assert_int_equal(va % (8 * G), 0);
    assert_int_equal(map(w, 0, va + G, 2 * G, 5, 0), WS__ERROR__OK);
    assert_false(fill_works(w, 0, va + G));
    assert_int_equal(allow(w, 0, va + G, 2 * G, 0, true, false), WS__ERROR__OK);
    assert_false(fill_works(w, 0, va + G));
    assert_int_equal(allow(w, 0, va + G, 2 * G, 0, true, true), WS__ERROR__OK);
    assert_true(fill_works(w, 0, va + G));
    assert_int_equal(allow(w, 0, va + G, 2 * G, 0, false, false), WS__ERROR__OK);
    assert_false(fill_works(w, 0, va + G));
    assert_false(fill_works(w, 0, va));
    /* the second half of the object once more: behind the first, one range for copies */
    assert_int_equal(map(w, 0, va + 3 * G, G, 5, G), WS__ERROR__OK);
    assert_int_equal(allow(w, 0, va + G, 3 * G, 1, true, true), WS__ERROR__OK);
    struct ws_client *c = ws_client_find(w->server, &w->peers[0].peer);
    assert_true(ws_space_covers(c->memory.space, va + 3 * G - 32, 64, true));
    assert_false(ws_space_covers(c->memory.space, va + 4 * G - 32, 64, false));
    assert_int_equal(unmap(w, 0, va + G, 3 * G), WS__ERROR__OK);
    assert_int_equal(unreserve(w, 0, va), WS__ERROR__OK);
}

static void test_wrong_numbers(void **state)
{
    struct wss *w = *state;
    uint64_t va, other;
    static const struct {
        const char *description;
        uint64_t at, bytes, object, offset;
        Ws__Error want;
    } rows[] = {
        {"another object", 0, G, 99, 0, WS__ERROR__INVALID_HANDLE},
        {"nothing", 0, 0, 5, 0, WS__ERROR__INVALID_VALUE},
        {"odd size", 0, G + 512, 5, 0, WS__ERROR__INVALID_VALUE},
        {"odd offset", 0, G, 5, 512, WS__ERROR__INVALID_VALUE},
        {"offset at the end", 0, G, 5, 2 * G, WS__ERROR__INVALID_VALUE},
        {"offset wraps", 0, 2 * G, 5, -G, WS__ERROR__INVALID_VALUE},
        {"longer than the object", 0, 3 * G, 5, 0, WS__ERROR__INVALID_VALUE},
        {"beyond the reservation", 3 * G, 2 * G, 5, 0, WS__ERROR__INVALID_VALUE},
        {"before the reservation", -G, G, 5, 0, WS__ERROR__INVALID_VALUE},
        {"size wraps", 0, -G, 5, 0, WS__ERROR__INVALID_VALUE},
        {"odd address", 512, G, 5, 0, WS__ERROR__INVALID_VALUE},
        {"good", G, 2 * G, 5, 0, WS__ERROR__OK},
        {"overlaps the end", 2 * G, G, 5, 0, WS__ERROR__INVALID_VALUE},
        {"overlaps the start", 0, 2 * G, 5, 0, WS__ERROR__INVALID_VALUE},
    };
    assert_int_equal(create(w, 0, 5, 0, 2 * G), WS__ERROR__OK);
    assert_int_equal(create(w, 0, 5, 0, 2 * G), WS__ERROR__INVALID_HANDLE);
    assert_int_equal(create(w, 0, 6, 9, 2 * G), WS__ERROR__INVALID_DEVICE);
    assert_int_equal(create(w, 0, 6, 0, G + 1), WS__ERROR__INVALID_VALUE);
    assert_int_equal(create(w, 0, 6, 0, 0), WS__ERROR__INVALID_VALUE);
    assert_int_equal(create(w, 0, 6, 0, 65 * G), WS__ERROR__OUT_OF_MEMORY);
    assert_int_equal(create(w, 0, 6, 0, -G), WS__ERROR__OUT_OF_MEMORY);
    assert_int_equal(reserve(w, 0, 4 * G, 3 * G, &va), WS__ERROR__INVALID_VALUE);
    assert_int_equal(reserve(w, 0, G / 2, 0, &va), WS__ERROR__INVALID_VALUE);
    assert_int_equal(reserve(w, 0, -G, 0, &va), WS__ERROR__OUT_OF_MEMORY);
    assert_int_equal(reserve(w, 0, WS_MAX_RESERVED_BYTES, 0, &va), WS__ERROR__OUT_OF_MEMORY);
    assert_int_equal(reserve(w, 0, 4 * G, 0, &va), WS__ERROR__OK);
    for (size_t i = 0; i < WS_ARRAY_SIZE(rows); i++) {
        Ws__Error e = map(w, 0, va + rows[i].at, rows[i].bytes, rows[i].object, rows[i].offset);
        if (e != rows[i].want)
            print_error("%s\n", rows[i].description);
        assert_int_equal(e, rows[i].want);
    }
    uint64_t at = WS_VA_FIRST + 100 * WS_VA_GRANULE_BYTES;
    assert_int_equal(reserve_at(w, 0, 2 * G, at), at);
    assert_int_not_equal(reserve_at(w, 0, 2 * G, at), at); /* taken: somewhere else */
    assert_int_equal(unreserve(w, 0, at), WS__ERROR__OK);
    assert_int_equal(reserve_at(w, 0, 2 * G, at), at);
    assert_int_not_equal(reserve_at(w, 0, 2 * G, at + G / 2), at + G / 2);
    assert_int_equal(unreserve(w, 0, va), WS__ERROR__INVALID_VALUE);
    assert_int_equal(unreserve(w, 0, va + G), WS__ERROR__INVALID_VALUE);
    assert_int_equal(unmap(w, 0, va + G, G), WS__ERROR__INVALID_VALUE);
    assert_int_equal(unmap(w, 0, va + 2 * G, G), WS__ERROR__INVALID_VALUE);
    assert_int_equal(unmap(w, 0, va + G, -G), WS__ERROR__INVALID_VALUE);
    assert_int_equal(unmap(w, 0, va, 4 * G), WS__ERROR__INVALID_VALUE);
    assert_int_equal(allow(w, 0, va, 4 * G, 0, true, true), WS__ERROR__INVALID_VALUE);
    assert_int_equal(allow(w, 0, va + G, 2 * G, 7, true, true), WS__ERROR__INVALID_DEVICE);
    assert_int_equal(allow(w, 0, va + G, 2 * G, 0, false, true), WS__ERROR__INVALID_VALUE);
    /* what is another client's is not there */
    assert_int_equal(reserve(w, 1, G, 0, &other), WS__ERROR__OK);
    assert_int_equal(map(w, 1, other, G, 5, 0), WS__ERROR__INVALID_HANDLE);
    assert_int_equal(unmap(w, 1, va + G, 2 * G), WS__ERROR__INVALID_VALUE);
    assert_int_equal(unreserve(w, 1, va), WS__ERROR__INVALID_VALUE);
    assert_int_equal(allow(w, 1, va + G, 2 * G, 0, true, true), WS__ERROR__INVALID_VALUE);
    assert_int_equal(unmap(w, 0, va + G, 2 * G), WS__ERROR__OK);
    assert_int_equal(unmap(w, 0, va + G, 2 * G), WS__ERROR__INVALID_VALUE);
    /* ordinary memory is no reservation, and reserved memory is not to be freed */
    uint64_t plain = wss_alloc(w, 0, 0, G);
    assert_int_equal(map(w, 0, plain, G, 5, 0), WS__ERROR__INVALID_VALUE);
    assert_int_equal(allow(w, 0, plain, G, 1, true, true), WS__ERROR__INVALID_VALUE);
    assert_int_equal(wss_error(w, 0, wss_free_mem(w, 0, va)), WS__ERROR__INVALID_HANDLE);
}

static void test_mapping_outlives_its_handle(void **state)
{
    struct wss *w = *state;
    uint64_t va, object = 5;
    assert_int_equal(create(w, 0, object, 0, G), WS__ERROR__OK);
    assert_int_equal(reserve(w, 0, G, 0, &va), WS__ERROR__OK);
    assert_int_equal(map(w, 0, va, G, object, 0), WS__ERROR__OK);
    assert_int_equal(allow(w, 0, va, G, 0, true, true), WS__ERROR__OK);
    wss_do(w, 0, WS__COMMAND__C_MEM_RELEASE, &object);
    assert_int_equal(map(w, 0, va, G, object, 0), WS__ERROR__INVALID_HANDLE);
    assert_true(fill_works(w, 0, va));
    assert_int_equal(w->dev[0].used_bytes, G);
    assert_int_equal(unmap(w, 0, va, G), WS__ERROR__OK);
    assert_int_equal(w->dev[0].used_bytes, 0);
    wss_do(w, 0, WS__COMMAND__C_MEM_RELEASE,
           &object); /* again: an error of the client's, nothing else */
    assert_int_equal(w->peers[0].notice_error, WS__ERROR__INVALID_HANDLE);
}

static uint64_t status_bytes(struct wss *w, unsigned p)
{
    return ws_client_find(w->server, &w->peers[p].peer)->stats.memory_bytes;
}

static void test_memory_goes_from_client_to_client(void **state)
{
    struct wss *w = *state;
    uint8_t handle[WS_SHARE_BYTES], wrong[WS_SHARE_BYTES];
    uint64_t seq, va = wss_alloc(w, 0, 0, 4096), there;
    assert_int_equal(share(w, 0, WS__SHARE__WHAT__MEMORY_EXPORT, va + 100, NULL, &seq),
                     WS__ERROR__OK);
    assert_int_equal(wss_value(w, 0, seq), va);
    memcpy(handle, data_of(w, 0, seq), sizeof(handle));
    memcpy(wrong, handle, sizeof(wrong));
    wrong[0] ^= 1;
    assert_int_equal(share(w, 1, WS__SHARE__WHAT__MEMORY_IMPORT, 0, wrong, &seq),
                     WS__ERROR__INVALID_HANDLE);
    assert_int_equal(share(w, 1, WS__SHARE__WHAT__MEMORY_IMPORT, 0, NULL, &seq),
                     WS__ERROR__INVALID_HANDLE);
    assert_int_equal(share(w, 1, WS__SHARE__WHAT__MEMORY_EXPORT, va, NULL, &seq),
                     WS__ERROR__INVALID_VALUE);
    assert_int_equal(share(w, 1, WS__SHARE__WHAT__MEMORY_IMPORT, 0, handle, &seq), WS__ERROR__OK);
    there = wss_value(w, 1, seq);
    assert_true(fill_works(w, 1, there));
    assert_int_equal(status_bytes(w, 0), 4096);
    assert_int_equal(status_bytes(w, 1), 0);
    /* its owner gives it up: it lives, on the other's account */
    assert_int_equal(wss_error(w, 0, wss_free_mem(w, 0, va)), WS__ERROR__OK);
    assert_int_equal(status_bytes(w, 0), 0);
    assert_int_equal(status_bytes(w, 1), 4096);
    assert_true(fill_works(w, 1, there));
    assert_int_equal(wss_error(w, 1, wss_free_mem(w, 1, there)), WS__ERROR__OK);
    assert_int_equal(status_bytes(w, 1), 0);
    assert_int_equal(w->dev[0].used_bytes + w->dev[1].used_bytes, 0);
    assert_int_equal(share(w, 1, WS__SHARE__WHAT__MEMORY_IMPORT, 0, handle, &seq),
                     WS__ERROR__INVALID_HANDLE);
}

static void goodbye(struct wss *w, unsigned p)
{
    Ws__ClientMessage m = WS__CLIENT_MESSAGE__INIT;
    m.goodbye = true;
    wss_message(w, p, &m);
    wss_turn(w);
}

static void test_owner_ends_first(void **state)
{
    struct wss *w = *state;
    uint64_t seq, va = wss_alloc(w, 0, 0, 4096), there;
    uint8_t handle[WS_SHARE_BYTES];
    share(w, 0, WS__SHARE__WHAT__MEMORY_EXPORT, va, NULL, &seq);
    memcpy(handle, data_of(w, 0, seq), sizeof(handle));
    assert_int_equal(share(w, 1, WS__SHARE__WHAT__MEMORY_IMPORT, 0, handle, &seq), WS__ERROR__OK);
    there = wss_value(w, 1, seq);
    goodbye(w, 0);
    assert_true(fill_works(w, 1, there));
    assert_int_equal(status_bytes(w, 1), 4096);
    goodbye(w, 1);
    assert_int_equal(w->dev[0].used_bytes + w->dev[1].used_bytes, 0);
}

static void test_event_of_two_clients(void **state)
{
    struct wss *w = *state;
    uint64_t seq;
    uint8_t handle[WS_SHARE_BYTES];
    for (unsigned i = 0; i < 2; i++)
        w->dev[i].inline_completion = false;
    uint64_t va = wss_alloc(w, 0, 0, 4096);
    assert_int_equal(share(w, 0, WS__SHARE__WHAT__EVENT_EXPORT, 70, NULL, &seq), WS__ERROR__OK);
    memcpy(handle, data_of(w, 0, seq), sizeof(handle));
    assert_int_equal(share(w, 1, WS__SHARE__WHAT__EVENT_IMPORT, 80, handle, &seq), WS__ERROR__OK);
    assert_int_equal(share(w, 1, WS__SHARE__WHAT__EVENT_IMPORT, 80, handle, &seq),
                     WS__ERROR__INVALID_HANDLE);
    handle[3] ^= 1;
    assert_int_equal(share(w, 1, WS__SHARE__WHAT__EVENT_IMPORT, 81, handle, &seq),
                     WS__ERROR__INVALID_HANDLE);
    /* never recorded: done */
    assert_int_equal(wss_error(w, 1, wss_query_event(w, 1, 80)), WS__ERROR__OK);
    wss_fill(w, 0, 1, va, 64, 1);
    wss_record(w, 0, 70, 1);
    assert_int_equal(wss_error(w, 1, wss_query_event(w, 1, 80)), WS__ERROR__NOT_READY);
    seq = wss_sync_event(w, 1, 80);
    wss_wait(w, 1, 1, 80);
    uint64_t behind = wss_sync_stream(w, 1, 1);
    assert_false(wss_replied(w, 1, seq));
    assert_false(wss_replied(w, 1, behind));
    /* who was to record it ends: nobody waits for ever */
    goodbye(w, 0);
    wss_turn(w);
    assert_true(wss_replied(w, 1, seq));
    assert_true(wss_replied(w, 1, behind));
    assert_int_equal(wss_error(w, 1, wss_query_event(w, 1, 80)), WS__ERROR__OK);
}

static void test_who_waits_for_anothers_event_may_end_first(void **state)
{
    struct wss *w = *state;
    uint64_t seq;
    uint8_t handle[WS_SHARE_BYTES];
    for (unsigned i = 0; i < 2; i++)
        w->dev[i].inline_completion = false;
    uint64_t va = wss_alloc(w, 0, 0, 4096);
    assert_int_equal(share(w, 0, WS__SHARE__WHAT__EVENT_EXPORT, 70, NULL, &seq), WS__ERROR__OK);
    memcpy(handle, data_of(w, 0, seq), sizeof(handle));
    assert_int_equal(share(w, 1, WS__SHARE__WHAT__EVENT_IMPORT, 80, handle, &seq), WS__ERROR__OK);
    wss_fill(w, 0, 1, va, 64, 1);
    wss_record(w, 0, 70, 1);
    wss_sync_event(w, 1, 80);
    goodbye(w, 1);
    wss_turn(w);
    seq = wss_sync_event(w, 0, 70);
    fakedev_complete_all(&w->dev[0]);
    fakedev_complete_all(&w->dev[1]);
    wss_turn(w);
    assert_true(wss_replied(w, 0, seq)); /* and the other client, which is gone, is not looked at */
}

/* Peer 0 asks for an address that peer 1 has, and gives back what it gets. Return: it is told that
 * a program that goes has the address: 1 or 0; -1: it gets it. */
static int told_to_ask_again(struct wss *w, uint64_t at)
{
    uint64_t got = reserve_at(w, 0, 2 * G, at);
    int told = (int)w->peers[0].replies[w->peers[0].n_replies - 1].value2;
    assert_int_equal(unreserve(w, 0, got), WS__ERROR__OK);
    return got == at ? -1 : told;
}

static void cancel_later(struct ws_device *d, struct ws_space *s)
{
}

/* A program that comes when another has ended gets its addresses, as soon as they are free. */
static void test_addresses_of_who_goes(void **state)
{
    enum { STAYS, LEAVES, IS_AT_WORK, FROM_THE_MIDDLE, NOBODYS, FREE, N };
    static const int want[N] = {[LEAVES] = 1, [IS_AT_WORK] = 1, [FROM_THE_MIDDLE] = 1, [FREE] = -1};
    static struct ws_device_ops slow;
    struct wss *w = *state;
    struct fakedev *dev = &w->dev[1]; /* the other client has the first one */
    uint64_t va = wss_alloc(w, 1, 0, 4096), at = reserve_at(w, 1, 2 * G, 0);
    int told[N];
    slow = *dev->base.ops;
    slow.cancel = cancel_later;
    dev->base.ops = &slow;
    dev->inline_completion = false;
    wss_fill(w, 1, 1, va, 64, 1);
    told[STAYS] = told_to_ask_again(w, at);
    w->peers[1].ended = w->queued = true; /* its last messages are not handled yet */
    ws_client_leave(ws_client_find(w->server, &w->peers[1].peer), "its doorbell has ended");
    told[LEAVES] = told_to_ask_again(w, at);
    w->queued = false;
    wss_turn(w);
    told[IS_AT_WORK] = told_to_ask_again(w, at);
    told[FROM_THE_MIDDLE] = told_to_ask_again(w, at + G);
    told[NOBODYS] = told_to_ask_again(w, 1);
    fakedev_complete_all(dev); /* before anything can fail: the teardown waits for it */
    wss_turn(w);
    told[FREE] = told_to_ask_again(w, at);
    for (int k = 0; k < N; k++)
        if (told[k] != want[k])
            fail_msg("step %d: told %d, not %d", k, told[k], want[k]);
}

static void test_peer_access(void **state)
{
    struct wss *w = *state;
    Ws__PeerAccess m = WS__PEER_ACCESS__INIT;
    struct ws_mapping map;
    uint64_t va = wss_alloc(w, 0, 0, 4096);
    struct ws_client *c = ws_client_find(w->server, &w->peers[0].peer);
    uint32_t own = 1u << c->contexts[0].gpu->device->index,
             peer = 1u << c->contexts[1].gpu->device->index;
    assert_true(ws_space_find(c->memory.space, va, 1, &map));
    assert_int_equal(map.readers, own);
    m.device = 1;
    m.on = true;
    assert_int_equal(wss_error(w, 0, wss_do(w, 0, WS__COMMAND__C_PEER_ACCESS, &m)), WS__ERROR__OK);
    assert_true(ws_space_find(c->memory.space, va, 1, &map));
    assert_int_equal(map.readers, own | peer);
    assert_int_equal(map.writers, own | peer);
    m.on = false;
    assert_int_equal(wss_error(w, 0, wss_do(w, 0, WS__COMMAND__C_PEER_ACCESS, &m)), WS__ERROR__OK);
    assert_true(ws_space_find(c->memory.space, va, 1, &map));
    assert_int_equal(map.readers, own);
    m.peer = 1;
    assert_int_equal(wss_error(w, 0, wss_do(w, 0, WS__COMMAND__C_PEER_ACCESS, &m)),
                     WS__ERROR__INVALID_DEVICE);
    m.peer = 40;
    assert_int_equal(wss_error(w, 0, wss_do(w, 0, WS__COMMAND__C_PEER_ACCESS, &m)),
                     WS__ERROR__INVALID_DEVICE);
}

static void test_reset_takes_what_is_of_the_device(void **state)
{
    struct wss *w = *state;
    uint64_t va;
    Ws__Reset r = WS__RESET__INIT;
    assert_int_equal(create(w, 0, 5, 0, G), WS__ERROR__OK);
    assert_int_equal(create(w, 0, 6, 1, G), WS__ERROR__OK);
    assert_int_equal(reserve(w, 0, 2 * G, 0, &va), WS__ERROR__OK);
    assert_int_equal(map(w, 0, va, G, 5, 0), WS__ERROR__OK);
    assert_int_equal(map(w, 0, va + G, G, 6, 0), WS__ERROR__OK);
    assert_int_equal(allow(w, 0, va, 2 * G, 0, true, true), WS__ERROR__OK);
    assert_int_equal(wss_error(w, 0, wss_do(w, 0, WS__COMMAND__C_RESET, &r)), WS__ERROR__OK);
    assert_int_equal(w->dev[0].used_bytes + w->dev[1].used_bytes, G);
    assert_int_equal(map(w, 0, va, G, 5, 0), WS__ERROR__INVALID_HANDLE);
    assert_int_equal(map(w, 0, va, G, 6, 0), WS__ERROR__OK);
    assert_int_equal(unmap(w, 0, va, 2 * G), WS__ERROR__OK);
    assert_int_equal(unreserve(w, 0, va), WS__ERROR__OK);
}

static void test_quota(void **state)
{
    struct wss *w = *state;
    w->config.limits.memory_quota_bytes = 3 * G;
    assert_int_equal(create(w, 0, 1, 0, 2 * G), WS__ERROR__OK);
    assert_int_equal(create(w, 0, 2, 0, 2 * G), WS__ERROR__OUT_OF_MEMORY);
    assert_int_equal(create(w, 0, 2, 1, G), WS__ERROR__OK);
    assert_int_equal(wss_alloc(w, 0, 0, 512), 0);
    uint64_t object = 1;
    wss_do(w, 0, WS__COMMAND__C_MEM_RELEASE, &object);
    assert_int_not_equal(wss_alloc(w, 0, 0, 512), 0);
}

/* The heap of kernels is device memory as any other: on the user's account, part of the quota. */
static void test_heap_of_kernels_is_charged(void **state)
{
    enum { MIB = 1 << 20 };
    struct wss *w = *state;
    struct ws_accounts *a = w->server->accounts;
    struct ws_client *c = ws_client_find(w->server, &w->peers[0].peer);
    uint64_t before = ws_accounts_used(a, WS_RESOURCE_DEVICE_BYTES);
    w->config.limits.memory_quota_bytes = 16 * MIB;
    assert_int_equal(ws_memory_set_heap(c, 32 * MIB), WS__ERROR__OK); /* as long as none is used */
    assert_int_equal(ws_memory_place_heap(&c->contexts[0]), WS__ERROR__OUT_OF_MEMORY);
    assert_int_equal(ws_memory_set_heap(c, 4 * MIB), WS__ERROR__OK);
    assert_int_equal(ws_accounts_used(a, WS_RESOURCE_DEVICE_BYTES), before);
    for (int i = 0; i < 2; i++)
        assert_int_equal(ws_memory_place_heap(&c->contexts[0]), WS__ERROR__OK);
    assert_int_equal(ws_accounts_used(a, WS_RESOURCE_DEVICE_BYTES), before + 4 * MIB);
    /* A launch may be on its way, whose kernel makes the heap as large as it then is to be. */
    assert_int_equal(ws_memory_set_heap(c, 32 * MIB), WS__ERROR__OUT_OF_MEMORY);
    assert_int_equal(ws_memory_set_heap(c, UINT64_MAX), WS__ERROR__OUT_OF_MEMORY);
    assert_int_equal(ws_space_heap_bytes(c->memory.space), 4 * MIB);
    assert_int_equal(ws_memory_set_heap(c, 12 * MIB), WS__ERROR__OK);
    assert_int_equal(ws_accounts_used(a, WS_RESOURCE_DEVICE_BYTES), before + 12 * MIB);
    assert_int_equal(create(w, 0, 1, 0, 8 * MIB), WS__ERROR__OUT_OF_MEMORY);
    ws_server_disconnected(w->server, &w->peers[0].peer);
    wss_turn(w);
    assert_int_equal(ws_accounts_used(a, WS_RESOURCE_DEVICE_BYTES), before);
}

/* What kernels print is on the user's account before the first kernel that prints. */
static void test_printed_text_is_charged(void **state)
{
    enum { MIB = 1 << 20, ROOM = WS_OUTPUT_ROOM };
    struct wss *w = *state;
    struct ws_accounts *a = w->server->accounts;
    struct ws_client *c = ws_client_find(w->server, &w->peers[0].peer);
    uint64_t before = ws_accounts_used(a, WS_RESOURCE_HOST_BYTES);
    w->config.limits.pool[WS_RESOURCE_HOST_BYTES] = before + MIB;
    assert_int_equal(ws_memory_place_printed(c), WS__ERROR__OUT_OF_MEMORY);
    w->config.limits.pool[WS_RESOURCE_HOST_BYTES] = before + 100 * MIB;
    for (int i = 0; i < 2; i++)
        assert_int_equal(ws_memory_place_printed(c), WS__ERROR__OK);
    assert_int_equal(ws_accounts_used(a, WS_RESOURCE_HOST_BYTES),
                     before + WS_OUTPUT_DEFAULT_BYTES * ROOM);
    assert_int_equal(ws_memory_set_printed(c, 2 * MIB), WS__ERROR__OK);
    assert_int_equal(ws_accounts_used(a, WS_RESOURCE_HOST_BYTES), before + 2 * MIB * ROOM);
    assert_int_equal(ws_memory_set_printed(c, 64 * MIB), WS__ERROR__OUT_OF_MEMORY);
    assert_int_equal(ws_memory_set_printed(c, 4096), WS__ERROR__OK);
    assert_int_equal(ws_accounts_used(a, WS_RESOURCE_HOST_BYTES), before + 4096 * ROOM);
    ws_server_disconnected(w->server, &w->peers[0].peer);
    wss_turn(w);
    assert_int_equal(ws_accounts_used(a, WS_RESOURCE_HOST_BYTES), before);
}

int main(int argc, char **argv)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_map_and_access),
        T(test_wrong_numbers),
        T(test_mapping_outlives_its_handle),
        T(test_memory_goes_from_client_to_client),
        T(test_owner_ends_first),
        T(test_event_of_two_clients),
        T(test_who_waits_for_anothers_event_may_end_first),
        T(test_addresses_of_who_goes),
        T(test_peer_access),
        T(test_reset_takes_what_is_of_the_device),
        T(test_quota),
        T(test_heap_of_kernels_is_charged),
        T(test_printed_text_is_charged),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
