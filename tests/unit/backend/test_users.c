// SPDX-License-Identifier: Apache-2.0
/* backend: what clients take is charged to their users, bounded, and given back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "backend/client/upload.h"
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

/* Who is somebody else in a container takes no share of its own. */
static void test_subordinates_are_charged_to_their_user(void **state)
{
    static const char list[] = "# USER:FIRST:NUMBER\n\nnobody-has-this-name:100000:65536\n"
                               "1000:100000:65536\n1001:165536:1\n1001:nonsense:1\n";
    char path[] = "/tmp/wst-subuid-XXXXXX";
    struct wss *w = *state;
    struct ws_access *access = &w->config.access;
    int fd = mkstemp(path);
    assert_int_equal(write(fd, list, sizeof(list) - 1), sizeof(list) - 1);
    close(fd);
    assert_int_equal(ws_access_load_subordinates(access, path), 0);
    unlink(path);
    assert_int_equal(ws_access_load_subordinates(access, path), -ENOENT);
    assert_int_equal(ws_access_owner(access, 99999), 99999);
    assert_int_equal(ws_access_owner(access, 100000), ALICE);
    assert_int_equal(ws_access_owner(access, 165535), ALICE);
    assert_int_equal(ws_access_owner(access, 165536), BOB);
    assert_int_equal(ws_access_owner(access, 165537), 165537);
    w->config.limits.pool[WS_RESOURCE_CLIENTS] = 4;
    w->peers[1].uid = 100007;
    w->peers[2].uid = 165000;
    wss_hello(w, 0, NULL);
    wss_hello(w, 1, NULL);
    assert_int_equal(w->peers[1].hello_error, WS__ERROR__OK);
    assert_int_equal(used(w, 1, WS_RESOURCE_CLIENTS), 2);
    wss_hello(w, 2, NULL);
    assert_int_equal(w->peers[2].hello_error, WS__ERROR__LIMIT_EXCEEDED);
    assert_non_null(strstr(w->peers[2].text, "user 1000 has 2 clients"));
    wss_hello(w, 4, NULL);
    assert_int_equal(w->peers[4].hello_error, WS__ERROR__OK);
    ws_access_deinit(access);
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

/* What munmap() saw of the mapping that is watched. */
static struct {
    const void *map;
    int fd;
    bool unmapped, was_open;
} watched;

int __real_munmap(void *p, size_t n);
int __wrap_munmap(void *p, size_t n);
int __wrap_munmap(void *p, size_t n)
{
    if (p == watched.map) {
        watched.unmapped = true;
        watched.was_open = fcntl(watched.fd, F_GETFD) >= 0;
    }
    return __real_munmap(p, n);
}

/* Else it may be the last to keep the pages, and the loop, which closes it, has to free them. */
static void test_descriptor_of_a_segment_goes_before_its_mapping(void **state)
{
    struct wss *w = *state;
    struct ws_handoff_request q = {.kind = WS_HANDOFF_PINNED, .bytes = 4096};
    struct ws_segment *g;
    wss_hello(w, 0, NULL);
    assert_int_equal(ws_segment_new(client(w, 0), &q, &g), WS__ERROR__OK);
    assert_true(g->fd >= 0);
    watched.map = g->map;
    watched.fd = g->fd;
    ws_segment_release(g, client(w, 0));
    watched.map = NULL;
    assert_true(watched.unmapped);
    assert_false(watched.was_open);
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
    uint64_t bytes = strlen(ptx) + w->server->cache.codes->bytes;
    assert_true(bytes > strlen(ptx));
    assert_int_equal(used(w, 0, WS_RESOURCE_MODULE_BYTES), bytes);
    assert_int_equal(used(w, 4, WS_RESOURCE_MODULE_BYTES), bytes);
    wss_do(w, 4, WS__COMMAND__C_MODULE_UNLOAD, &id);
    assert_int_equal(used(w, 4, WS_RESOURCE_MODULE_BYTES), 0);
    w->config.limits.pool[WS_RESOURCE_MODULE_BYTES] = bytes;
    assert_int_equal(wss_error(w, 4, wss_load_try(w, 4, 3, 0, ptx, strlen(ptx))),
                     WS__ERROR__OUT_OF_MEMORY);
    assert_int_equal(wss_error(w, 0, wss_load_try(w, 0, 3, 0, ptx, strlen(ptx))), WS__ERROR__OK);
}

static void test_code_is_charged(void **state)
{
    struct wss *w = *state;
    wss_hello(w, 0, NULL);
    /* alone, so half of it: the image, and no code */
    w->config.limits.pool[WS_RESOURCE_MODULE_BYTES] = 2 * (strlen(ptx) + 1);
    assert_int_equal(wss_error(w, 0, wss_load(w, 0, 1, 0, ptx, strlen(ptx))),
                     WS__ERROR__OUT_OF_MEMORY);
    assert_int_equal(used(w, 0, WS_RESOURCE_MODULE_BYTES), 0);
    w->config.limits.pool[WS_RESOURCE_MODULE_BYTES] *= 1000;
    assert_int_equal(wss_error(w, 0, wss_load(w, 0, 1, 0, ptx, strlen(ptx))), WS__ERROR__OK);
}

/* ---- small things, and what waits ---- */

static uint64_t objects(struct wss *w, unsigned peer)
{
    return used(w, peer, WS_RESOURCE_OBJECTS);
}

static void test_objects_are_counted(void **state)
{
    struct wss *w = *state;
    wss_hello(w, 0, NULL);
    wss_hello(w, 4, NULL);
    uint64_t at_first = objects(w, 0), id = 1;
    wss_stream(w, 0, WS_STREAM_FIRST, 0, false);
    assert_int_equal(objects(w, 0), at_first + 1);
    wss_record(w, 0, 5, WS_STREAM_FIRST);
    assert_int_equal(objects(w, 0), at_first + 2);
    uint64_t va = wss_alloc(w, 0, 0, 512);
    assert_int_equal(objects(w, 0), at_first + 3);
    assert_int_equal(wss_error(w, 0, wss_load(w, 0, 1, 0, ptx, strlen(ptx))), WS__ERROR__OK);
    assert_int_equal(objects(w, 0), at_first + 4);
    w->config.limits.pool[WS_RESOURCE_OBJECTS] = 2 * objects(w, 0);
    assert_int_equal(wss_alloc(w, 0, 0, 512), 0);
    assert_int_equal(wss_error(w, 0, wss_load_try(w, 0, 2, 0, ptx, strlen(ptx))),
                     WS__ERROR__OUT_OF_MEMORY);
    wss_stream(w, 0, WS_STREAM_FIRST + 1, 0, false);
    assert_int_equal(w->peers[0].notice_error, WS__ERROR__OUT_OF_MEMORY);
    assert_false(w->peers[0].dropped);
    assert_true(wss_alloc(w, 4, 0, 512)); /* others have their share */
    wss_do(w, 0, WS__COMMAND__C_MODULE_UNLOAD, &id);
    assert_int_equal(wss_error(w, 0, wss_free_mem(w, 0, va)), WS__ERROR__OK);
    uint64_t stream = WS_STREAM_FIRST, event = 5;
    wss_do(w, 0, WS__COMMAND__C_STREAM_DESTROY, &stream);
    wss_do(w, 0, WS__COMMAND__C_EVENT_DESTROY, &event);
    assert_int_equal(objects(w, 0), at_first);
}

/* A wait for all streams puts a mark into each that is busy. */
static void test_marks_are_counted(void **state)
{
    enum { STREAMS = 6 };
    struct wss *w = *state;
    wss_hello(w, 0, NULL);
    uint64_t va = wss_alloc(w, 0, 0, 512);
    for (uint64_t i = 0; i < STREAMS; i++) {
        wss_stream(w, 0, WS_STREAM_FIRST + i, 0, true);
        wss_fill(w, 0, WS_STREAM_FIRST + i, va, 512, 1);
    }
    uint64_t before = objects(w, 0);
    wss_sync_device(w, 0, 0);
    assert_int_equal(objects(w, 0), before + STREAMS);
    w->config.limits.pool[WS_RESOURCE_OBJECTS] = 2 * objects(w, 0) + 4;
    wss_sync_device(w, 0, 0);
    assert_true(w->peers[0].dropped);
    assert_int_equal(w->peers[0].dropped_error, WS__ERROR__LIMIT_EXCEEDED);
    fakedev_complete_all(&w->dev[0]);
    wss_turn(w);
}

static uint64_t read_back(struct wss *w, unsigned peer, uint64_t va, uint64_t bytes)
{
    Ws__Copy m = WS__COPY__INIT;
    m.stream = WS_STREAM_DEFAULT_0;
    m.src = va;
    m.bytes = bytes;
    m.bulk = WS__COPY__BULK__REPLY_DST;
    return wss_do(w, peer, WS__COMMAND__C_COPY_SYNC, &m);
}

/* Data for a reply waits in the daemon until the copy is done: gigabytes for a few messages. */
static void test_data_that_waits_is_bounded(void **state)
{
    enum { MOST = WS_FAR_MESSAGE_BYTES, ROOM = 64 << 10 }; /* room: for answers */
    struct wss *w = *state;
    w->config.limits.pool[WS_RESOURCE_QUEUED_BYTES] = 8 * MOST;
    wss_hello(w, 0, NULL);
    uint64_t va = wss_alloc(w, 0, 0, MOST + 1);
    assert_int_equal(wss_error(w, 0, read_back(w, 0, va, MOST + 1)), WS__ERROR__INVALID_VALUE);
    for (unsigned i = 0; i < 3; i++)
        assert_false(wss_replied(w, 0, read_back(w, 0, va, MOST)));
    assert_in_range(used(w, 0, WS_RESOURCE_QUEUED_BYTES), 3 * MOST, 3 * MOST + ROOM);
    assert_int_equal(wss_error(w, 0, read_back(w, 0, va, MOST)), WS__ERROR__OUT_OF_MEMORY);
    wss_hello(w, 4, NULL); /* others have their share */
    uint64_t others = wss_alloc(w, 4, 0, MOST);
    assert_false(wss_replied(w, 4, read_back(w, 4, others, MOST)));
    for (unsigned i = 0; i < 3; i++) {
        fakedev_complete_all(&w->dev[0]);
        wss_turn(w);
        wss_turn(w); /* more than goes in one turn */
    }
    assert_in_range(used(w, 0, WS_RESOURCE_QUEUED_BYTES), 0, ROOM);
}

/* Answers to somebody who does not fetch them. */
static void test_answers_that_wait_are_bounded(void **state)
{
    struct wss *w = *state;
    wss_hello(w, 0, NULL);
    wss_hello(w, 4, NULL);
    w->config.limits.pool[WS_RESOURCE_QUEUED_BYTES] = 40000;
    w->peers[0].stuck = true;
    unsigned n = 0;
    for (; n < 20000 && client(w, 0); n++)
        wss_query_stream(w, 0, 9999); /* an error with a text */
    assert_true(n > 100 && n < 20000);
    assert_int_equal(used(w, 4, WS_RESOURCE_QUEUED_BYTES), 0);
    wss_query_stream(w, 4, WS_STREAM_DEFAULT_0);
    assert_int_equal(w->peers[4].n_replies, 1);
    assert_true(client(w, 4) != NULL);
}

/* ---- who sees what ---- */

static void ask_status(struct wss *w, unsigned peer)
{
    Ws__ClientMessage m = WS__CLIENT_MESSAGE__INIT;
    Ws__StatusRequest q = WS__STATUS_REQUEST__INIT;
    m.status = &q;
    wss_message(w, peer, &m);
}

static void ask_trace(struct wss *w, unsigned peer, uint64_t after)
{
    Ws__ClientMessage m = WS__CLIENT_MESSAGE__INIT;
    Ws__TraceRequest q = WS__TRACE_REQUEST__INIT;
    q.after = after;
    m.trace = &q;
    wss_message(w, peer, &m);
}

static void ask_explain(struct wss *w, unsigned peer, uint64_t job)
{
    Ws__ClientMessage m = WS__CLIENT_MESSAGE__INIT;
    Ws__ExplainRequest q = WS__EXPLAIN_REQUEST__INIT;
    q.job = job;
    m.explain = &q;
    wss_message(w, peer, &m);
}

static void launch(struct wss *w, unsigned peer)
{
    wss_load(w, peer, 1, 0, ptx, strlen(ptx));
    wss_launch(w, peer, WS_STREAM_DEFAULT_0, 1 << WS_FUNCTION_INDEX_BITS, NULL, 0);
}

enum { ADMIN = WSS_PEERS - 1 }; /* the peer of the daemon's user */

static void test_status_shows_ones_own(void **state)
{
    struct wss *w = *state;
    w->peers[ADMIN].uid = geteuid();
    wss_hello(w, 0, NULL);
    wss_hello(w, 1, NULL);
    wss_hello(w, 4, NULL);
    ask_status(w, 4);
    assert_int_equal(w->peers[4].saw.n_clients, 1);
    assert_int_equal(w->peers[4].saw.uid, BOB);
    assert_int_equal(w->peers[4].saw.n_others, 2);
    assert_int_equal(w->peers[4].saw.n_accounts, 1);
    ws_server_disconnected(w->server, &w->peers[0].peer); /* those that have ended as well */
    wss_turn(w);
    ask_status(w, 2); /* no client: by the connection's user */
    assert_int_equal(w->peers[2].saw.n_clients, 2);
    assert_int_equal(w->peers[2].saw.n_others, 1);
    ask_status(w, ADMIN);
    assert_int_equal(w->peers[ADMIN].saw.n_clients, 3);
    assert_false(w->peers[ADMIN].saw.has_others);
    assert_int_equal(w->peers[ADMIN].saw.n_accounts, 2);
}

static void test_sms_of_others_are_not_told(void **state)
{
    struct wss *w = *state;
    w->peers[ADMIN].uid = geteuid();
    wss_hello(w, 0, NULL);
    launch(w, 0);
    ask_status(w, 0);
    assert_int_equal(w->peers[0].saw.sm_client, 1);
    ask_status(w, 4);
    assert_int_equal(w->peers[4].saw.sm_client, UINT32_MAX);
    ask_status(w, ADMIN);
    assert_int_equal(w->peers[ADMIN].saw.sm_client, 1);
    fakedev_complete_all(&w->dev[0]);
    wss_turn(w);
}

static void test_trace_shows_ones_own(void **state)
{
    struct wss *w = *state;
    w->peers[ADMIN].uid = geteuid();
    wss_hello(w, 0, NULL);
    wss_hello(w, 4, NULL);
    ask_trace(w, 0, 0);
    launch(w, 0);
    launch(w, 4);
    launch(w, 4);
    fakedev_complete_all(&w->dev[0]);
    wss_turn(w);
    ask_trace(w, ADMIN, 0);
    unsigned n = w->peers[ADMIN].saw.n_spans;
    assert_true(n >= 2);
    ask_trace(w, 0, 0);
    assert_int_equal(w->peers[0].saw.n_spans, 1);
    assert_int_equal(w->peers[0].saw.seen, n); /* it asks for later ones next */
    ask_trace(w, 5, 0);
    assert_int_equal(w->peers[5].saw.n_spans, n - 1);
    w->peers[6].uid = 77;
    ask_trace(w, 6, 0);
    assert_int_equal(w->peers[6].saw.n_spans, 0);
}

static void test_policy_is_for_administrators(void **state)
{
    struct wss *w = *state;
    Ws__ClientMessage m = WS__CLIENT_MESSAGE__INIT;
    Ws__PolicyRequest q = WS__POLICY_REQUEST__INIT;
    w->peers[ADMIN].uid = geteuid();
    q.set = true;
    q.name = (char *)"rr";
    m.policy = &q;
    wss_message(w, 0, &m);
    assert_int_equal(w->peers[0].saw.policy_error, WS__ERROR__DENIED);
    wss_message(w, ADMIN, &m);
    assert_int_equal(w->peers[ADMIN].saw.policy_error, WS__ERROR__OK);
    wss_hello(w, 0, NULL);
    launch(w, 0);
    ask_explain(w, 0, 0);
    assert_non_null(strstr(w->peers[0].saw.explain, "job 1"));
    ask_explain(w, 4, 1);
    assert_null(strstr(w->peers[4].saw.explain, "job 1"));
    ask_explain(w, 4, 0);
    assert_null(strstr(w->peers[4].saw.explain, "job 1"));
    ask_explain(w, ADMIN, 0);
    assert_non_null(strstr(w->peers[ADMIN].saw.explain, "job 1"));
    fakedev_complete_all(&w->dev[0]);
    wss_turn(w);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        T(test_seats_are_left_for_others),
        T(test_subordinates_are_charged_to_their_user),
        T(test_segments_are_counted),
        T(test_descriptor_of_a_segment_goes_before_its_mapping),
        T(test_bytes_of_segments_are_shared),
        T(test_rings_and_exports_are_counted),
        T(test_uploads_are_bounded_by_user),
        T(test_upload_without_progress_is_forgotten),
        T(test_image_is_charged_once_to_each_user),
        T(test_code_is_charged),
        T(test_status_shows_ones_own),
        T(test_sms_of_others_are_not_told),
        T(test_trace_shows_ones_own),
        T(test_policy_is_for_administrators),
        T(test_objects_are_counted),
        T(test_marks_are_counted),
        T(test_data_that_waits_is_bounded),
        T(test_answers_that_wait_are_bounded),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
