// SPDX-License-Identifier: Apache-2.0
/* backend: a real wattshared process and raw clients. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.h>
#include <cmocka.h>

#include "base/clock.h"
#include "tests/lib/wsclient.h"
#include "tests/lib/cpu_time.h"

struct fixture {
    struct wst_daemon d;
    struct wst_client a, b;
};

static int setup(void **state)
{
    static const char conf[] =
        "endpoints = {\"%IPC%\", \"%TCP%\"}\nworkers = 1\ndrain_timeout_s = 5\n";
    struct fixture *f = calloc(1, sizeof(*f));
    wst_daemon_start(&f->d, conf, NULL);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    int r = wst_daemon_stop(&f->d);
    free(f);
    return r;
}

struct fill_params {
    uint64_t p;
    uint32_t v;
};

static void test_memory_module_launch(void **state)
{
    struct fixture *f = *state;
    uint64_t va;
    uint32_t out[256];
    wst_open(&f->a, NULL, f->d.ipc, true);
    assert_int_equal(f->a.hello->n_devices, 2);
    assert_int_equal(wst_alloc(&f->a, 0, sizeof(out), &va), 0);
    assert_int_equal(wst_load_ptx(&f->a, 1, 0, wst_ptx), 0);
    int fill = wst_kernel_index(&f->a, "fill"), add = wst_kernel_index(&f->a, "add");
    assert_int_not_equal(wst_variable(&f->a, "counter"), 0);
    wst_launch(&f->a, 1, 1, (uint32_t)fill, 4, 64, &(struct fill_params){va, 100}, 12);
    wst_launch(&f->a, 1, 1, (uint32_t)add, 4, 64, &(struct fill_params){va, 1000}, 12);
    assert_int_equal(wst_read(&f->a, 1, va, out, sizeof(out)), 0);
    for (uint32_t i = 0; i < 256; i++)
        assert_int_equal(out[i], 1100 + i);
    assert_int_equal(wst_sync_device(&f->a, 0), 0);
    assert_int_equal(wst_free(&f->a, va), 0);
    assert_int_equal(wst_free(&f->a, va), WS__ERROR__INVALID_HANDLE);
    wst_close(&f->a, true);
}

static void wait_clients(struct fixture *f, size_t want)
{
    uint64_t end = ws_clock_ns() + 60 * WS_NS_PER_S;
    do {
        Ws__StatusReply *s = wst_status(f->d.ipc);
        size_t n = 0;
        for (size_t k = 0; k < s->n_clients; k++)
            n += s->clients[k]->connected;
        wst_status_free(s);
        if (n == want)
            return;
        usleep(10000);
    } while (ws_clock_ns() < end);
    fail_msg("not %zu clients after 60 s; the log: %s", want, f->d.log);
}

/* Computes with a client and compares: the others must not disturb it. */
static void check_works(struct wst_client *c, uint64_t va, uint32_t seed)
{
    uint32_t out[256];
    wst_launch(c, 1, 1, 0, 4, 64, &(struct fill_params){va, seed}, 12);
    wst_launch(c, 1, 1, 1, 4, 64, &(struct fill_params){va, 5}, 12);
    assert_int_equal(wst_read(c, 1, va, out, sizeof(out)), 0);
    for (uint32_t i = 0; i < 256; i++)
        assert_int_equal(out[i], seed + 5 + i);
}

static uint64_t prepare(struct wst_client *c)
{
    uint64_t va = 0;
    assert_int_equal(wst_alloc(c, 0, 1024, &va), 0);
    assert_int_equal(wst_load_ptx(c, 1, 0, wst_ptx), 0);
    assert_int_equal(wst_kernel_index(c, "fill"), 0);
    assert_int_equal(wst_kernel_index(c, "add"), 1);
    return va;
}
#ifdef __SANITIZE_ADDRESS__
static const bool asan = true;
#else
static const bool asan = false;
#endif

enum { K_FILL, K_ADD, K_SPIN, K_OOB, K_EMPTY };

/* ---- shared memory ---- */

static void test_staging_both_ways(void **state)
{
    enum { CHUNK = 65536, N = 8 };
    struct fixture *f = *state;
    uint32_t id;
    uint8_t *map;
    uint64_t off, va;
    wst_open(&f->a, NULL, f->d.ipc, true);
    assert_int_equal(wst_alloc(&f->a, 0, CHUNK * N, &va), 0);
    assert_int_equal(wst_segment(&f->a, WS_HANDOFF_STAGING, CHUNK * N, CHUNK, &id, &map, &off), 0);
    struct ws_staging_control *h = (struct ws_staging_control *)map;
    assert_int_equal(h->magic, WS_STAGING_MAGIC);
    assert_int_equal(h->n_chunks, N);
    /* Four times as much as fits: each chunk is used again as soon as the daemon has freed it. */
    for (int i = 0; i < 4 * N; i++) {
        int k = i % N;
        h->n_waiting = 1;
        for (uint32_t s; (s = h->state[k]) != WS_CHUNK_FREE;)
            ws_futex_wait(&h->state[k], s, 5000000000u);
        h->state[k] = WS_CHUNK_BUSY;
        memset(map + off + (size_t)k * CHUNK, i + 1, CHUNK);
        Ws__Copy m = WS__COPY__INIT;
        m.stream = 1;
        m.dst = va + (uint64_t)k * CHUNK;
        m.bytes = CHUNK;
        m.bulk = WS__COPY__BULK__STAGED_SRC;
        m.segment = id;
        m.segment_offset = (uint64_t)k * CHUNK;
        wst_post(&f->a, WS__COMMAND__C_COPY, &m);
        wst_flush(&f->a);
    }
    assert_int_equal(wst_sync_device(&f->a, 0), 0);
    for (int k = 0; k < N; k++) {
        assert_int_equal(h->state[k], WS_CHUNK_FREE);
        Ws__Copy m = WS__COPY__INIT;
        h->state[k] = WS_CHUNK_BUSY;
        m.stream = 1;
        m.src = va + (uint64_t)k * CHUNK;
        m.bytes = CHUNK;
        m.bulk = WS__COPY__BULK__STAGED_DST;
        m.segment = id;
        m.segment_offset = (uint64_t)k * CHUNK;
        wst_post(&f->a, WS__COMMAND__C_COPY, &m);
    }
    wst_flush(&f->a);
    for (int k = 0; k < N; k++) {
        for (uint32_t s; (s = h->state[k]) == WS_CHUNK_BUSY;)
            ws_futex_wait(&h->state[k], s, 5000000000u);
        assert_int_equal(h->state[k], WS_CHUNK_READY);
        assert_int_equal(map[off + (size_t)k * CHUNK + CHUNK - 1], 3 * N + k + 1);
    }
    munmap(map, off + CHUNK * N);
    wst_close(&f->a, true);
}

static void test_pinned_memory_is_seen_by_kernels(void **state)
{
    struct fixture *f = *state;
    uint32_t id;
    uint8_t *map;
    uint64_t off, va;
    wst_open(&f->a, NULL, f->d.ipc, true);
    va = prepare(&f->a);
    assert_int_equal(wst_segment(&f->a, WS_HANDOFF_PINNED, 65536, 0, &id, &map, &off), 0);
    Ws__HostMap m = WS__HOST_MAP__INIT;
    m.segment = id;
    m.address = (uint64_t)(uintptr_t)map + off;
    assert_int_equal(wst_call(&f->a, WS__COMMAND__C_HOST_MAP, &m)->error, 0);
    wst_launch(&f->a, 1, 1, K_FILL, 4, 64, &(struct fill_params){m.address, 7}, 12);
    Ws__Copy c = WS__COPY__INIT; /* and by copies */
    c.stream = 1;
    c.dst = va;
    c.src = m.address;
    c.bytes = 1024;
    assert_int_equal(wst_call(&f->a, WS__COMMAND__C_COPY_SYNC, &c)->error, 0);
    assert_int_equal(((uint32_t *)(map + off))[255], 262);
    uint32_t out[256];
    assert_int_equal(wst_read(&f->a, 1, va, out, sizeof(out)), 0);
    assert_int_equal(out[100], 107);
    uint64_t id64 = id;
    wst_post(&f->a, WS__COMMAND__C_HOST_UNMAP, &id64);
    assert_int_equal(wst_call(&f->a, WS__COMMAND__C_COPY_SYNC, &c)->error,
                     WS__ERROR__INVALID_VALUE);
    munmap(map, off + 65536);
    wst_close(&f->a, true);
}

static void test_side_socket_needs_the_token(void **state)
{
    struct fixture *f = *state;
    struct ws_handoff_request q = {.kind = WS_HANDOFF_HELLO};
    struct ws_handoff_reply a;
    wst_open(&f->a, NULL, f->d.ipc, true);
    for (int i = 0; i < 4; i++) {
        int fd = ws_handoff_connect(f->a.hello->handoff_socket), n = (int)sizeof(q);
        assert_true(fd >= 0);
        if (i == 1) /* the right one, but that client has its connection */
            memcpy(q.token, f->a.hello->token.data, sizeof(q.token));
        if (i == 2)
            q.kind = WS_HANDOFF_PINNED, q.bytes = 4096; /* without hello */
        if (i == 3)
            n = 7;
        assert_int_equal(ws_packet_send(fd, &q, (size_t)n, -1, 0), 0);
        ssize_t got = ws_packet_recv(fd, &a, sizeof(a), NULL, 0);
        assert_true(i == 3 ? got == 0 : got == sizeof(a) && a.error == WS__ERROR__DENIED);
        assert_true(ws_packet_recv(fd, &a, sizeof(a), NULL, 0) <= 0); /* closed */
        close(fd);
    }
    assert_int_equal(wst_sync_device(&f->a, 0), 0);
    wst_close(&f->a, true);
}

static void test_end_of_the_side_socket_is_the_end(void **state)
{
    struct fixture *f = *state;
    wst_open(&f->a, NULL, f->d.ipc, true);
    wst_open(&f->b, NULL, f->d.ipc, true);
    uint64_t vb = prepare(&f->b);
    close(f->a.side);
    f->a.side = -1;
    wait_clients(f, 1);
    check_works(&f->b, vb, 1);
    wst_post(&f->a, WS__COMMAND__C_MEM_INFO, &(uint32_t){0});
    wst_flush(&f->a);
    assert_true(wst_wait_dropped(&f->a, 60000)); /* who goes on is told */
    wst_close(&f->a, false);
    wst_close(&f->b, false);
}

/* ---- remote ---- */

static void test_tcp_frames(void **state)
{
    struct fixture *f = *state;
    enum { BYTES = 250000, TOO_MANY = WS_FAR_MESSAGE_BYTES + 1 };
    uint8_t *p = malloc(TOO_MANY), *back = malloc(BYTES);
    uint64_t va;
    for (int i = 0; i < BYTES; i++)
        p[i] = (uint8_t)(i * 7 + i / 256);
    wst_open(&f->a, NULL, f->d.tcp, true);
    assert_string_equal(f->a.hello->handoff_socket, "");
    assert_int_equal(wst_alloc(&f->a, 0, BYTES, &va), 0);
    Ws__Copy m = WS__COPY__INIT;
    m.stream = 1;
    m.dst = va;
    m.bytes = BYTES;
    m.bulk = WS__COPY__BULK__FRAME_SRC;
    m.frame = 1;
    wst_post(&f->a, WS__COMMAND__C_COPY, &m);
    wst_send_raw(&f->a, f->a.batch, f->a.n_batch, true);
    wst_send_raw(&f->a, p, BYTES, false);
    f->a.n_batch = 0;
    assert_int_equal(wst_read(&f->a, 1, va, back, BYTES), 0);
    assert_memory_equal(p, back, BYTES);
    Ws__StatusReply *s = wst_status(f->d.tcp);
    assert_int_equal(s->clients[0]->bytes_in, BYTES);
    assert_int_equal(s->clients[0]->bytes_out, BYTES);
    assert_int_equal(s->clients[0]->uid, getuid()); /* the list of allowed keys says so */
    wst_status_free(s);
    assert_int_equal(f->a.hello->limits->max_message_bytes, WS_FAR_MESSAGE_BYTES);
    wst_send_raw(&f->a, p, TOO_MANY, false);
    assert_true(wst_wait_dropped(&f->a, 60000));
    assert_int_equal(f->a.last_notice.error, WS__ERROR__LIMIT_EXCEEDED);
    wst_close(&f->a, false); /* no goodbye: the connection's end is enough */
    wait_clients(f, 0);
    free(p);
    free(back);
}

/* ---- who misbehaves ---- */

static void test_flood_is_dropped(void **state)
{
    struct fixture *f = *state;
    wst_open(&f->a, NULL, f->d.ipc, true);
    wst_open(&f->b, NULL, f->d.ipc, true);
    uint64_t vb = prepare(&f->b);
    prepare(&f->a);
    wst_launch(&f->a, 1, 1, K_SPIN, 1, 1, NULL, 0); /* nothing behind it ends */
    for (int i = 0; i < 9000; i++) {
        wst_launch(&f->a, 1, 1, K_EMPTY, 1, 1, NULL, 0);
        if (i % 1000 == 0)
            wst_flush(&f->a);
    }
    wst_flush(&f->a);
    assert_true(wst_wait_dropped(&f->a, 60000));
    assert_int_equal(f->a.last_notice.error, WS__ERROR__LIMIT_EXCEEDED);
    assert_non_null(strstr(f->a.last_notice.text, "outstanding"));
    wait_clients(f, 1);
    check_works(&f->b, vb, 3);
    wst_close(&f->a, false);
    wst_close(&f->b, true);
}

static void test_never_reads(void **state)
{
    struct fixture *f = *state;
    int hwm = 1;
    wst_open(&f->b, NULL, f->d.ipc, true);
    uint64_t vb = prepare(&f->b);
    wst_connect(&f->a, NULL, f->d.ipc);
    zmq_setsockopt(f->a.sock, ZMQ_RCVHWM, &hwm, sizeof(hwm));
    zmq_disconnect(f->a.sock, f->d.ipc);
    zmq_connect(f->a.sock, f->d.ipc); /* with that window */
    assert_int_equal(wst_hello(&f->a, true, NULL), 0);
    uint64_t va = prepare(&f->a);
    long before = wst_daemon_rss_anon_kib(&f->d), most = 0;
    Ws__Copy m = WS__COPY__INIT; /* each asks for 1000 bytes and fetches nothing */
    m.stream = 1;
    m.src = va;
    m.bytes = 1000;
    m.bulk = WS__COPY__BULK__REPLY_DST;
    for (int i = 0; i < 400; i++) {
        for (int k = 0; k < 200; k++)
            wst_post(&f->a, WS__COMMAND__C_COPY_SYNC, &m);
        zmq_send(f->a.sock, f->a.batch, f->a.n_batch, ZMQ_DONTWAIT);
        f->a.n_batch = 0;
        long now = wst_daemon_rss_anon_kib(&f->d);
        most = now > most ? now : most;
    }
    wait_clients(f, 1);
    assert_true(most - before <
                (asan ? 512 : 64) * 1024); /* freed memory stays in the sanitizer's quarantine */
    assert_true(wst_daemon_log_has(&f->d, "does not read"));
    check_works(&f->b, vb, 9);
    wst_close(&f->a, false);
    wst_close(&f->b, true);
}

static void test_garbage_and_giants(void **state)
{
    struct fixture *f = *state;
    uint8_t junk[4096];
    uint8_t *big = calloc(1, 6 << 20);
    wst_open(&f->b, NULL, f->d.ipc, true);
    uint64_t vb = prepare(&f->b);
    srand(1);
    for (int round = 0; round < 60; round++) {
        static struct wst_client c;
        if (round % 2)
            wst_open(&c, NULL, f->d.ipc, true);
        else
            wst_connect(&c, NULL, f->d.ipc);
        for (size_t i = 0; i < sizeof(junk); i++)
            junk[i] = (uint8_t)rand();
        for (int k = round % 4; k-- > 0;)
            wst_send_raw(&c, junk, (size_t)(rand() % (int)sizeof(junk)), true);
        wst_send_raw(&c, junk, (size_t)(rand() % (int)sizeof(junk)), false);
        wst_close(&c, false);
    }
    for (int kind = 0; kind < 2;
         kind++) { /* one frame beyond ZeroMQ's limit, then a hundred frames below it */
        wst_open(&f->a, NULL, f->d.ipc, true);
        for (int i = 0; i < 100 && kind; i++)
            wst_send_raw(&f->a, big, 60000, true);
        wst_send_raw(&f->a, big, kind ? 1 : 6 << 20, false);
        wait_clients(f, 1);
        wst_close(&f->a, false);
    }
    check_works(&f->b, vb, 4);
    wst_close(&f->b, true);
    free(big);
}

static void test_fault_hurts_its_client_only(void **state)
{
    struct fixture *f = *state;
    wst_open(&f->a, NULL, f->d.ipc, true);
    wst_open(&f->b, NULL, f->d.ipc, true);
    uint64_t va = prepare(&f->a), vb = prepare(&f->b);
    wst_launch(&f->a, 1, 1, K_OOB, 1, 1, &vb, 8); /* the other's address */
    assert_int_equal(wst_sync_stream(&f->a, 1), WS__ERROR__ILLEGAL_ADDRESS);
    assert_int_equal(f->a.last_notice.error, WS__ERROR__ILLEGAL_ADDRESS);
    assert_non_null(strstr(f->a.last_notice.text, "oob"));
    assert_int_equal(wst_free(&f->a, va), WS__ERROR__ILLEGAL_ADDRESS);
    check_works(&f->b, vb, 4);
    Ws__Reset r = WS__RESET__INIT;
    assert_int_equal(wst_call(&f->a, WS__COMMAND__C_RESET, &r)->error, 0);
    check_works(&f->a, prepare(&f->a), 8);
    wst_close(&f->a, true);
    wst_close(&f->b, true);
}

/* ---- the ring ---- */

static void test_lane_and_zeromq_keep_order(void **state)
{
    struct fixture *f = *state;
    wst_open(&f->a, NULL, f->d.ipc, true);
    assert_int_equal(wst_ring_open(&f->a), 0);
    int fd;
    assert_int_equal(wst_side_request(&f->a, WS_HANDOFF_RING, &fd), WS__ERROR__INVALID_VALUE);
    assert_int_equal(wst_side_request(&f->a, WS_HANDOFF_DOORBELL, &fd), WS__ERROR__INVALID_VALUE);
    f->a.ring_use = WST_RING_SOMETIMES;
    uint64_t va = prepare(&f->a);
    srand(11);
    for (uint32_t i = 0; i < 400; i++) { /* out of order, it would be dropped */
        uint32_t out[64];
        for (int k = rand() % 12; k; k--) {
            wst_launch(&f->a, 1, 1, K_FILL, 1, 64, &(struct fill_params){va, i - 1}, 12);
            wst_flush(&f->a);
        }
        wst_launch(&f->a, 1, 1, K_FILL, 1, 64, &(struct fill_params){va, i}, 12);
        wst_flush(&f->a);
        wst_launch(&f->a, 1, 1, K_ADD, 1, 64, &(struct fill_params){va, 5}, 12);
        wst_flush(&f->a);
        assert_int_equal(wst_read(&f->a, 1, va, out, sizeof(out)), 0);
        assert_int_equal(out[63], i + 5 + 63);
        assert_int_equal(wst_sync_device(&f->a, 0), 0);
    }
    assert_true(f->a.ring.next_out > 400 && f->a.ring.n_sent > 400 && f->a.ring.next_in > 400);
    /* An answer too long for the ring, with short ones around it. */
    static uint8_t big[20000];
    uint64_t more;
    assert_int_equal(wst_alloc(&f->a, 0, sizeof(big), &more), 0);
    for (int i = 0; i < 50; i++) {
        assert_int_equal(wst_sync_device(&f->a, 0), 0);
        assert_int_equal(wst_read(&f->a, 1, more, big, sizeof(big)), 0);
        assert_int_equal(wst_sync_device(&f->a, 0), 0);
    }
    assert_true(f->a.ring.n_received >= 50);
    wst_close(&f->a, true);
}

/* A message in the ring whose forerunner is still on its way through ZeroMQ. */
static void test_lane_waits_for_zeromq(void **state)
{
    struct fixture *f = *state;
    wst_open(&f->a, NULL, f->d.ipc, true);
    assert_int_equal(wst_ring_open(&f->a), 0);
    Ws__Sync sync = WS__SYNC__INIT;
    sync.what_case = WS__SYNC__WHAT_DEVICE;
    uint64_t first = wst_post(&f->a, WS__COMMAND__C_SYNC, &sync);
    uint8_t late[256];
    size_t n = f->a.n_batch;
    assert_true(n <= sizeof(late));
    memcpy(late, f->a.batch, n);
    f->a.n_batch = f->a.n_batch_commands = 0;
    f->a.ring.n_sent = 1; /* as if sent */
    f->a.ring_use = WST_RING_ALWAYS;
    uint64_t second = wst_post(&f->a, WS__COMMAND__C_SYNC, &sync);
    wst_flush(&f->a);
    assert_null(wst_wait(&f->a, second, 100));
    assert_false(f->a.dropped);
    wst_send_raw(&f->a, late, n, false);
    const Ws__Reply *r = wst_wait(&f->a, first, 60000);
    assert_true(r && !r->error);
    r = wst_wait(&f->a, second, 60000);
    assert_true(r && !r->error);
    assert_int_equal(wst_sync_device(&f->a, 0), 0);
    wst_close(&f->a, true);
}

static void test_lane_lies_are_dropped(void **state)
{
    struct fixture *f = *state;
    wst_open(&f->a, NULL, f->d.ipc, true);
    assert_int_equal(wst_ring_open(&f->a), 0);
    f->a.ring.out[0].bytes = WS_RING_MESSAGE_BYTES + 1;
    f->a.ring.out[0].state = WS_RING_FULL;
    ws_ring_signal(&f->a.ring);
    assert_true(wst_wait_dropped(&f->a, 60000));
    assert_int_equal(f->a.last_notice.error, WS__ERROR__MALFORMED);
    wst_close(&f->a, false);
    wst_open(&f->a, NULL, f->d.ipc, true);
    assert_int_equal(wst_ring_open(&f->a), 0);
    assert_true(ws_ring_put(&f->a.ring, "\xff\xff\xff", 3)); /* no message */
    ws_ring_signal(&f->a.ring);
    assert_true(wst_wait_dropped(&f->a, 60000));
    wst_close(&f->a, false);
    wst_open(&f->a, NULL, f->d.ipc, true); /* who closes the doorbell is gone */
    assert_int_equal(wst_ring_open(&f->a), 0);
    wait_clients(f, 1);
    ws_ring_end(&f->a.ring);
    wait_clients(f, 0);
    wst_close(&f->a, false);
}

/* Writes into all of its ring while the daemon reads there, and rings without end. */
static _Noreturn void hostile(const char *endpoint, unsigned seed)
{
    static struct wst_client c;
    void *ctx = zmq_ctx_new();
    srand(seed);
    for (;;) {
        wst_open(&c, ctx, endpoint, true);
        if (wst_ring_open(&c))
            _exit(1);
        for (int i = 0; i < 3000; i++) {
            struct ws_ring_slot *s = &c.ring.out[i % WS_RING_SLOTS];
            if (seed & 1) { /* a good message that changes under the reader's hands */
                Ws__Sync sync = WS__SYNC__INIT;
                sync.what_case = WS__SYNC__WHAT_DEVICE;
                wst_post(&c, WS__COMMAND__C_SYNC, &sync);
                bool put = ws_ring_put(&c.ring, c.batch, c.n_batch);
                c.n_batch = c.n_batch_commands = 0;
                ws_ring_signal(&c.ring);
                s->data[rand() % 16] ^= (uint8_t)rand();
                s->bytes = (uint32_t)rand() % 5000;
                if (!put)
                    break;
            } else {
                for (int k = rand() % 64; k; k--)
                    ((volatile uint8_t *)c.ring.memory)[rand() % sizeof(*c.ring.memory)] =
                        (uint8_t)rand();
                s->after = (uint64_t)(rand() % 2);
                s->bytes = (uint32_t)rand() % 4200;
                s->state = (uint32_t)(rand() % 3);
                ws_ring_signal(&c.ring);
            }
        }
        wst_close(&c, false);
    }
}

static void test_hostile_lanes(void **state)
{
    struct fixture *f = *state;
    enum { N = 4 };
    pid_t pids[N];
    wst_open(&f->b, NULL, f->d.ipc, true);
    assert_int_equal(wst_ring_open(&f->b), 0);
    f->b.ring_use = WST_RING_ALWAYS;
    uint64_t vb = prepare(&f->b);
    for (unsigned i = 0; i < N; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (!pids[i])
            hostile(f->d.ipc, i);
    }
    uint64_t end = ws_clock_ns() + 2 * WS_NS_PER_S;
    for (uint32_t i = 0; ws_clock_ns() < end; i++)
        check_works(&f->b, vb, i);
    for (unsigned i = 0; i < N; i++) {
        int status;
        kill(pids[i], SIGKILL);
        waitpid(pids[i], &status, 0);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    }
    wait_clients(f, 1);
    check_works(&f->b, vb, 1);
    wst_close(&f->b, true);
}

/* ---- death ---- */

/* In a child: connects, keeps busy until it is killed. */
static _Noreturn void victim(const char *endpoint, unsigned seed)
{
    static struct wst_client c;
    uint64_t va, vb;
    uint32_t id;
    uint8_t *map;
    uint64_t off;
    srand(seed);
    wst_open(&c, NULL, endpoint, true);
    c.ring_use = seed % 3; /* never, sometimes, always */
    if ((c.ring_use && wst_ring_open(&c)) || wst_alloc(&c, 0, 65536, &va) ||
        wst_load_ptx(&c, 1, 0, wst_ptx) ||
        wst_segment(&c, WS_HANDOFF_STAGING, 16 * 4096, 4096, &id, &map, &off))
        _exit(1);
    for (unsigned i = 0;; i++) {
        Ws__StreamCreate n = WS__STREAM_CREATE__INIT;
        n.stream = 100 + i;
        wst_post(&c, WS__COMMAND__C_STREAM_CREATE, &n);
        for (int k = 0; k < 20; k++) {
            Ws__Copy m = WS__COPY__INIT;
            m.stream = k & 1 ? n.stream : 1;
            m.dst = va;
            m.bytes = 4096;
            m.bulk = WS__COPY__BULK__STAGED_SRC;
            m.segment = id;
            m.segment_offset = (uint64_t)(k % 16) * 4096;
            wst_post(&c, WS__COMMAND__C_COPY, &m);
            wst_launch(&c, n.stream, 1, K_FILL, 16, 64, &(struct fill_params){va, i}, 12);
            Ws__EventRecord e = {PROTOBUF_C_MESSAGE_INIT(&ws__event_record__descriptor),
                                 (uint64_t)k, n.stream, true};
            wst_post(&c, WS__COMMAND__C_EVENT_RECORD, &e);
            Ws__StreamWait w = {PROTOBUF_C_MESSAGE_INIT(&ws__stream_wait__descriptor), 1,
                                (uint64_t)k};
            wst_post(&c, WS__COMMAND__C_STREAM_WAIT, &w);
        }
        if (seed % 4 == 0)
            wst_launch(&c, n.stream, 1, K_SPIN, 2, 32, NULL, 0);
        wst_post(&c, WS__COMMAND__C_STREAM_DESTROY, &n.stream);
        wst_flush(&c);
        if (wst_alloc(&c, 0, 4096, &vb) || (seed % 4 && wst_sync_device(&c, 0)))
            _exit(1);
        if (seed % 4 == 0)
            pause();
    }
}

static void test_200_kills(void **state)
{
    struct fixture *f = *state;
    enum { N = 200, AT_ONCE = 4 };
    pid_t pids[AT_ONCE];
    wst_open(&f->b, NULL, f->d.ipc, true);
    uint64_t vb = prepare(&f->b);
    srand(5);
    for (unsigned round = 0; round < N / AT_ONCE; round++) {
        for (unsigned i = 0; i < AT_ONCE; i++) {
            pids[i] = fork();
            assert_true(pids[i] >= 0);
            if (!pids[i])
                victim(f->d.ipc, round * AT_ONCE + i);
        }
        for (unsigned i = 0; i < AT_ONCE; i++) {
            int status;
            usleep((useconds_t)(rand() % 12000));
            check_works(&f->b, vb, round);
            kill(pids[i], SIGKILL);
            waitpid(pids[i], &status, 0);
            assert_true(
                WIFSIGNALED(status)); /* had it ended by itself, something had gone wrong for it */
        }
    }
    wait_clients(f, 1);
    check_works(&f->b, vb, 1);
    Ws__StatusReply *s = wst_status(f->d.ipc);
    uint64_t used = 0;
    for (size_t i = 0; i < s->n_gpus; i++)
        used += s->gpus[i]->memory_used_bytes;
    assert_int_equal(used, s->clients[0]->memory_bytes);
    assert_int_equal(s->clients[0]->uid, getuid());
    assert_int_equal(s->clients[0]->pid, getpid());
    wst_status_free(s);
    assert_true(wst_daemon_n_fds(&f->d) < 60);
    wst_close(&f->b, true);
}

static void test_100_clients(void **state)
{
    struct fixture *f = *state;
    enum { N = 100 };
    struct wst_client *c = calloc(N, sizeof(*c));
    void *ctx = zmq_ctx_new();
    uint64_t start = cpu_ns_of(f->d.pid);
    for (int i = 0; i < N; i++) {
        wst_open(&c[i], ctx, f->d.ipc, true);
        check_works(&c[i], prepare(&c[i]), (uint32_t)i);
    }
    for (int i = 0; i < N; i++)
        wst_close(&c[i], i & 1);
    wait_clients(f, 0);
    uint64_t ms = (cpu_ns_of(f->d.pid) - start) / 1000000;
    assert_in_range(ms, 1, 5000);
    long before = wst_daemon_rss_kib(&f->d);
    for (int i = 0; i < N; i++)
        wst_open(&c[i], ctx, f->d.ipc, true);
    assert_true((wst_daemon_rss_kib(&f->d) - before) / N <= 1024);
    for (int i = 0; i < N; i++)
        wst_close(&c[i], true);
    zmq_ctx_term(ctx);
    free(c);
}

/* ---- the daemon's own life ---- */

static void test_second_daemon_is_refused(void **state)
{
    struct fixture *f = *state;
    char command[256];
    const char *program = getenv("WATTSHARED") ? getenv("WATTSHARED") : "backend/wattshared";
    snprintf(command, sizeof(command), "timeout 60 %s --socket %s 2>%s/second", program, f->d.ipc,
             f->d.dir);
    assert_int_equal(WEXITSTATUS(system(command)), 1);
    snprintf(command, sizeof(command), "grep -q 'another daemon serves' %s/second && rm %s/second",
             f->d.dir, f->d.dir);
    assert_int_equal(system(command), 0);
    wst_open(&f->a, NULL, f->d.ipc, true); /* the first is as it was */
    check_works(&f->a, prepare(&f->a), 1);
    wst_close(&f->a, true);
}

static void test_stale_socket_is_replaced(void **state)
{
    struct fixture *f = *state;
    kill(f->d.pid, SIGKILL);
    waitpid(f->d.pid, NULL, 0);
    assert_int_equal(access(f->d.ipc + 6, F_OK), 0);
    wst_daemon_restart(&f->d);
    wst_open(&f->a, NULL, f->d.ipc, true);
    check_works(&f->a, prepare(&f->a), 1);
    wst_close(&f->a, true);
}

static void test_drain(void **state)
{
    struct fixture *f = *state;
    wst_open(&f->a, NULL, f->d.ipc, true);
    prepare(&f->a);
    wst_launch(&f->a, 1, 1, K_SPIN, 1, 1, NULL, 0);
    assert_non_null(wst_call(&f->a, WS__COMMAND__C_MEM_INFO, &(uint32_t){0})); /* it has it all */
    kill(f->d.pid, SIGTERM);
    int r;
    do { /* until it has noticed */
        wst_connect(&f->b, NULL, f->d.ipc);
        r = wst_hello(&f->b, true, NULL);
        wst_close(&f->b, false);
    } while (r == WS__ERROR__OK);
    assert_int_equal(r, WS__ERROR__DRAINING);
    assert_false(wst_wait_dropped(&f->a, 300)); /* its work is under way */
    kill(f->d.pid, SIGTERM);                    /* at once, then */
    assert_true(wst_wait_dropped(&f->a, 60000));
    assert_int_equal(f->a.last_notice.error, WS__ERROR__DRAINING);
    wst_close(&f->a, false);
}

/* One message whose commands are many, and long: each waits for 4,000 streams. When the daemon has
 * begun with it, another client is served before it is through. */
static void test_long_message_holds_nobody_up(void **state)
{
    enum { STREAMS = 4000, WAITS = 4000 };
    struct fixture *f = *state;
    uint64_t first = 0, last = 0;
    wst_open(&f->a, NULL, f->d.ipc, true);
    wst_open(&f->b, NULL, f->d.ipc, true);
    for (uint64_t i = 0; i < STREAMS; i++) {
        Ws__StreamCreate m = WS__STREAM_CREATE__INIT;
        m.stream = 100 + i;
        wst_post(&f->a, WS__COMMAND__C_STREAM_CREATE, &m);
    }
    assert_int_equal(wst_sync_device(&f->a, 0), 0);
    for (unsigned i = 0; i < WAITS; i++) {
        Ws__Sync m = WS__SYNC__INIT;
        m.what_case = WS__SYNC__WHAT_DEVICE;
        last = wst_post(&f->a, WS__COMMAND__C_SYNC, &m);
        first = first ? first : last;
    }
    wst_flush(&f->a);
    assert_non_null(wst_wait(&f->a, first, 60000));
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(wst_sync_device(&f->b, 0), 0);
    assert_null(wst_wait(&f->a, last, 1));
    assert_non_null(wst_wait(&f->a, last, 60000));
    wst_close(&f->a, true);
    wst_close(&f->b, true);
}

static void test_exit_when_idle(void **state)
{
    static const char *const idle[] = {"--exit-when-idle", "--gpus", "t400,t400", NULL};
    struct wst_daemon d;
    static struct wst_client c;
    int status = -1;
    wst_daemon_start(&d, NULL, idle);
    wst_open(&c, NULL, d.ipc, true);
    assert_int_equal(c.hello->n_devices, 2);
    assert_string_equal(c.hello->devices[1]->name, "t400");
    assert_memory_not_equal(c.hello->devices[0]->uuid.data, c.hello->devices[1]->uuid.data, 16);
    wst_close(&c, true);
    waitpid(d.pid, &status, 0);
    assert_int_equal(status, 0);
    assert_int_equal(rmdir(d.dir), 0); /* nothing is left in it */
    unlink(d.log);
}

int main(int argc, char **argv)
{
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_memory_module_launch),
        T(test_staging_both_ways),
        T(test_pinned_memory_is_seen_by_kernels),
        T(test_side_socket_needs_the_token),
        T(test_end_of_the_side_socket_is_the_end),
        T(test_tcp_frames),
        T(test_flood_is_dropped),
        T(test_never_reads),
        T(test_garbage_and_giants),
        T(test_fault_hurts_its_client_only),
        T(test_lane_and_zeromq_keep_order),
        T(test_lane_waits_for_zeromq),
        T(test_lane_lies_are_dropped),
        T(test_hostile_lanes),
        T(test_200_kills),
        T(test_100_clients),
        T(test_second_daemon_is_refused),
        T(test_stale_socket_is_replaced),
        T(test_drain),
        T(test_long_message_holds_nobody_up),
        cmocka_unit_test(test_exit_when_idle),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
