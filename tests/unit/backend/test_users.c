// SPDX-License-Identifier: Apache-2.0
/* backend: what clients take is charged to their users, bounded, and given back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "backend/client/object.h"
#include "backend/client/user.h"
#include "backend/client/vmm.h"
#include "backend/wire/ring.h"
#include "base/alloc.h"
#include "protocol/handoff.h"
#include "tests/lib/wsserver.h"

enum { ALICE = 1000, BOB = 1001 };

static int setup(void **state)
{
    struct wss *w = *state = wss_new(1);
    for (unsigned i = WSS_PEERS / 2; i < WSS_PEERS; i++)
        w->peers[i].uid = BOB;
    return 0;
}

/* Whatever a test did, nothing is charged when its clients are gone. */
static int teardown(void **state)
{
    struct wss *w = *state;
    ws_alloc_fail_after(0);
    for (unsigned i = 0; i < WSS_PEERS; i++)
        ws_server_disconnected(w->server, &w->peers[i].peer);
    wss_turn(w);
    wss_turn(w);
    int left = ws_accounts_next(w->server->accounts, NULL) != NULL;
    wss_free(w);
    return left;
}

static struct ws_client *client(struct wss *w, unsigned peer)
{
    return ws_client_find(w->server, &w->peers[peer].peer);
}

static uint64_t used(struct wss *w, unsigned peer, enum ws_resource r)
{
    return ws_account_used(client(w, peer)->who.account, r);
}

static void test_seats_are_left_for_others(void **state)
{
    struct wss *w = *state;
    w->config.limits.pool[WS_RESOURCE_CLIENTS] = 4;
    wss_hello(w, 0, NULL);
    wss_hello(w, 1, NULL);
    assert_int_equal(w->peers[1].hello_error, WS__ERROR__OK);
    wss_hello(w, 2, NULL);
    assert_int_equal(w->peers[2].hello_error, WS__ERROR__LIMIT_EXCEEDED);
    assert_non_null(strstr(w->peers[2].text, "user 1000 has 2 clients"));
    assert_non_null(strstr(w->peers[2].text, "max_clients"));
    wss_hello(w, 4, NULL);
    assert_int_equal(w->peers[4].hello_error, WS__ERROR__OK);
}

/* Row 10 of the attacks: segments of one byte until the daemon has no mapping left. */
static void test_segments_are_counted(void **state)
{
    struct wss *w = *state;
    struct ws_handoff_request q = {.kind = WS_HANDOFF_PINNED, .bytes = 1};
    struct ws_segment *g = NULL;
    unsigned n = 0;
    w->config.limits.pool[WS_RESOURCE_MAPPINGS] = 40;
    wss_hello(w, 0, NULL);
    wss_hello(w, 1, NULL);
    wss_hello(w, 4, NULL);
    while (n < 100 && !ws_segment_new(client(w, n & 1), &q, &g))
        n++;
    assert_int_equal(n, 20);
    assert_int_equal(ws_segment_new(client(w, 1), &q, &g), WS__ERROR__OUT_OF_MEMORY);
    assert_int_equal(used(w, 0, WS_RESOURCE_MAPPINGS), 20);
    assert_int_equal(used(w, 0, WS_RESOURCE_HOST_BYTES), 20 * 4096); /* whole pages */
    assert_int_equal(ws_segment_new(client(w, 4), &q, &g), WS__ERROR__OK);
    ws_segment_release(g, client(w, 4));
    assert_int_equal(used(w, 4, WS_RESOURCE_MAPPINGS), 0);
    ws_server_disconnected(w->server, &w->peers[1].peer); /* what it had is free again */
    wss_turn(w);
    assert_int_equal(used(w, 0, WS_RESOURCE_MAPPINGS), 10);
}

static void test_bytes_of_segments_are_shared(void **state)
{
    struct wss *w = *state;
    struct ws_handoff_request q = {.kind = WS_HANDOFF_PINNED, .bytes = 5 << 20};
    struct ws_segment *g;
    w->config.limits.pool[WS_RESOURCE_HOST_BYTES] = 12 << 20;
    wss_hello(w, 0, NULL);
    wss_hello(w, 1, NULL);
    assert_int_equal(ws_segment_new(client(w, 0), &q, &g), WS__ERROR__OK);
    assert_int_equal(ws_segment_new(client(w, 1), &q, &g), WS__ERROR__OUT_OF_MEMORY);
    q.bytes = UINT64_MAX - 100; /* rounding it up to pages overflows */
    assert_int_equal(ws_segment_new(client(w, 1), &q, &g), WS__ERROR__OUT_OF_MEMORY);
}

static void test_rings_and_exports_are_counted(void **state)
{
    struct wss *w = *state;
    int fd;
    w->config.limits.pool[WS_RESOURCE_DESCRIPTORS] = 4;
    wss_hello(w, 0, NULL);
    wss_hello(w, 1, NULL);
    wss_hello(w, 2, NULL);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(ws_client_ring_new(client(w, i), &fd), WS__ERROR__OK);
        close(fd);
    }
    assert_int_equal(ws_client_ring_new(client(w, 2), &fd), WS__ERROR__OUT_OF_MEMORY);
    assert_int_equal(used(w, 0, WS_RESOURCE_MAPPINGS), 2);
    assert_int_equal(used(w, 0, WS_RESOURCE_DESCRIPTORS), 2);
}

/* ---- images ---- */

static const char ptx[] = ".version 7.0\n.target sm_50\n.address_size 64\n"
                          ".visible .entry k()\n{\nret;\n}\n";

/* The first byte of an image that never comes whole. */
static void begin_upload(struct wss *w, unsigned peer, uint8_t name, uint64_t bytes)
{
    uint8_t sha256[WS_SHA256_BYTES] = {name}, byte = 0;
    Ws__ModuleImage i = WS__MODULE_IMAGE__INIT;
    i.sha256 = (ProtobufCBinaryData){sizeof(sha256), sha256};
    i.image_bytes = bytes;
    i.data = (ProtobufCBinaryData){1, &byte};
    wss_do(w, peer, WS__COMMAND__C_MODULE_IMAGE, &i);
}

static void test_uploads_are_bounded_by_user(void **state)
{
    struct wss *w = *state;
    w->config.limits.pool[WS_RESOURCE_MODULE_BYTES] = 10000;
    for (unsigned i = 0; i < 5; i++)
        wss_hello(w, i, NULL);
    begin_upload(w, 0, 1, 2000);
    begin_upload(w, 1, 1, 2000);
    assert_int_equal(used(w, 0, WS_RESOURCE_MODULE_BYTES), 4000);
    begin_upload(w, 2, 1, 2000); /* beyond half */
    assert_int_equal(used(w, 0, WS_RESOURCE_MODULE_BYTES), 4000);
    begin_upload(w, 4, 1, 2000);
    assert_int_equal(used(w, 4, WS_RESOURCE_MODULE_BYTES), 2000);
    begin_upload(w, 0, 1, 500); /* from the start again */
    assert_int_equal(used(w, 0, WS_RESOURCE_MODULE_BYTES), 2500);
}

static void test_upload_without_progress_is_forgotten(void **state)
{
    struct wss *w = *state;
    wss_hello(w, 0, NULL);
    begin_upload(w, 0, 1, 2000);
    begin_upload(w, 0, 2, 3000);
    struct ws_list *first = w->server->uploads.next;
    assert_in_range(ws_server_turn(w->server), 1, 60001);
    ws_list_entry(first, struct ws_upload, waiting)->moved_ns -= 61 * UINT64_C(1000000000);
    wss_turn(w);
    assert_int_equal(used(w, 0, WS_RESOURCE_MODULE_BYTES), 3000);
    assert_int_equal(client(w, 0)->modules.n_uploads, 1);
}

static void test_image_is_charged_once_to_each_user(void **state)
{
    struct wss *w = *state;
    uint64_t id = 1;
    for (unsigned i = 0; i < 5; i++)
        wss_hello(w, i, NULL);
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(wss_error(w, i, wss_load(w, i, 1, 0, ptx, strlen(ptx))), WS__ERROR__OK);
    assert_int_equal(wss_error(w, 0, wss_load(w, 0, 2, 0, ptx, strlen(ptx))), WS__ERROR__OK);
    assert_int_equal(used(w, 0, WS_RESOURCE_MODULE_BYTES), strlen(ptx));
    assert_int_equal(used(w, 4, WS_RESOURCE_MODULE_BYTES), strlen(ptx));
    wss_do(w, 4, WS__COMMAND__C_MODULE_UNLOAD, &id);
    assert_int_equal(used(w, 4, WS_RESOURCE_MODULE_BYTES), 0);
    w->config.limits.pool[WS_RESOURCE_MODULE_BYTES] = strlen(ptx);
    assert_int_equal(wss_error(w, 4, wss_load_try(w, 4, 3, 0, ptx, strlen(ptx))),
                     WS__ERROR__OUT_OF_MEMORY);
    assert_int_equal(wss_error(w, 0, wss_load_try(w, 0, 3, 0, ptx, strlen(ptx))), WS__ERROR__OK);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        T(test_seats_are_left_for_others),          T(test_segments_are_counted),
        T(test_bytes_of_segments_are_shared),       T(test_rings_and_exports_are_counted),
        T(test_uploads_are_bounded_by_user),        T(test_upload_without_progress_is_forgotten),
        T(test_image_is_charged_once_to_each_user),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
