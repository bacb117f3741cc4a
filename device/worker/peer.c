// SPDX-License-Identifier: Apache-2.0
/* Copies between the memories of two GPUs that have a worker each. A thread of its own copies piece
 * by piece through host memory that both workers have registered: each piece is two operations, one
 * after the other. Rows that adjoin on both sides are copied as one. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/packet.h"
#include "device/worker/proxy.h"

enum { PIECE_BYTES = 4 << 20 };

static struct {
    pthread_mutex_t lock;
    pthread_cond_t wake, half;
    pthread_t thread;
    bool on, end;
    struct ws_list copies;
} peers = {.lock = PTHREAD_MUTEX_INITIALIZER,
           .wake = PTHREAD_COND_INITIALIZER,
           .half = PTHREAD_COND_INITIALIZER,
           .copies = {&peers.copies, &peers.copies}};

struct peer_copy {
    struct ws_list node;
    struct ws_op *op;
    struct ws_device *to, *from;
    unsigned epoch;
    uint8_t *bounce;
};
struct peer_half {
    struct ws_op op;
    bool done;
};

static void half_done(struct ws_op *op)
{
    struct peer_half *h = op->owner;
    pthread_mutex_lock(&peers.lock);
    h->done = true;
    pthread_cond_broadcast(&peers.half);
    pthread_mutex_unlock(&peers.lock);
}

static bool run(struct peer_copy *c, struct ws_device *d, struct peer_half *h)
{
    struct ws_op *op = c->op;
    h->op.kind = WS_OPK_COPY;
    h->op.space = op->space;
    h->op.ready_ns = op->ready_ns;
    h->op.done = half_done;
    h->op.owner = h;
    ws_device_submit(d, &h->op);
    pthread_mutex_lock(&peers.lock);
    while (!h->done)
        pthread_cond_wait(&peers.half, &peers.lock);
    pthread_mutex_unlock(&peers.lock);
    op->start_ns = WS_MIN(op->start_ns, h->op.start_ns);
    op->end_ns = WS_MAX(op->end_ns, h->op.end_ns);
    op->energy_uj += h->op.energy_uj;
    if (h->op.error) {
        op->error = h->op.error;
        memcpy(op->text, h->op.text, sizeof(op->text));
    }
    return !h->op.error;
}

/* Copies @height rows of @width bytes, together no more than a piece. */
static bool piece(struct peer_copy *c, uint64_t dst, uint64_t src, uint64_t width, uint64_t height)
{
    const struct ws_op *op = c->op;
    struct peer_half in = {.op.copy = {.src_va = src,
                                       .dst_host = c->bounce,
                                       .bytes = width,
                                       .height = height,
                                       .src = {op->copy.src.row, 0},
                                       .dst = {width, 0}}};
    struct peer_half out = {.op.copy = {.dst_va = dst,
                                        .src_host = c->bounce,
                                        .bytes = width,
                                        .height = height,
                                        .src = {width, 0},
                                        .dst = {op->copy.dst.row, 0}}};
    return run(c, c->from, &in) && run(c, c->to, &out);
}

static void slice(struct peer_copy *c, uint64_t dst, uint64_t src)
{
    const struct ws_op *op = c->op;
    uint64_t width = op->copy.bytes, height = WS_MAX(op->copy.height, UINT64_C(1));
    uint64_t rows = WS_MAX(PIECE_BYTES / width, UINT64_C(1));
    for (uint64_t y = 0; y < height; y += rows) {
        uint64_t n = WS_MIN(rows, height - y), to = dst + y * op->copy.dst.row,
                 from = src + y * op->copy.src.row;
        if (width <= PIECE_BYTES && !piece(c, to, from, width, n))
            return;
        for (uint64_t x = 0; width > PIECE_BYTES && x < width; x += PIECE_BYTES)
            if (!piece(c, to + x, from + x, WS_MIN(width - x, (uint64_t)PIECE_BYTES), 1))
                return;
    }
}

static void do_copy(struct peer_copy *c)
{
    struct ws_op *op = c->op;
    int fd = ws_packet_memfd("wattshare-peer", PIECE_BYTES);
    void *m =
        fd < 0 ? MAP_FAILED : mmap(NULL, PIECE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    op->start_ns = UINT64_MAX;
    op->end_ns = 0;
    if (m == MAP_FAILED) {
        ws_check_fail(op, WS_DEV_E_NO_MEMORY, "the host has no memory for a copy between GPUs");
        op->start_ns = op->end_ns = ws_device_now_ns(c->to);
    } else {
        c->bounce = m;
        ws_device_host_register(c->from, m, PIECE_BYTES, fd);
        ws_device_host_register(c->to, m, PIECE_BYTES, fd);
        ws_proxy_settle(ws_proxy_of(c->from));
        ws_proxy_settle(ws_proxy_of(c->to));
        for (uint64_t z = 0; z < WS_MAX(op->copy.depth, UINT64_C(1)) && !op->error; z++)
            slice(c, op->copy.dst_va + z * op->copy.dst.slice,
                  op->copy.src_va + z * op->copy.src.slice);
        ws_device_host_unregister(c->from, m, PIECE_BYTES);
        ws_device_host_unregister(c->to, m, PIECE_BYTES);
        munmap(m, PIECE_BYTES);
    }
    if (fd >= 0)
        close(fd);
    op->start_ns = WS_MAX(WS_MIN(op->start_ns, op->end_ns), op->ready_ns);
    op->end_ns = WS_MAX(op->end_ns, op->start_ns);
    ws_space_leave(op->space, c->epoch);
    free(c);
    op->done(op);
}

static void *peers_main(void *arg)
{
    pthread_mutex_lock(&peers.lock);
    while (!peers.end) {
        struct ws_list *n = ws_list_pop(&peers.copies);
        if (!n) {
            pthread_cond_wait(&peers.wake, &peers.lock);
            continue;
        }
        pthread_mutex_unlock(&peers.lock);
        do_copy(ws_list_entry(n, struct peer_copy, node));
        pthread_mutex_lock(&peers.lock);
    }
    pthread_mutex_unlock(&peers.lock);
    return NULL;
}

void ws_proxy_peer_copy(struct ws_op *op, struct ws_device *to, struct ws_device *from)
{
    struct peer_copy *c = ws_alloc(sizeof(*c));
    pthread_mutex_lock(&peers.lock);
    if (c && !peers.on)
        peers.on = !pthread_create(&peers.thread, NULL, peers_main, NULL);
    bool ok = c && peers.on;
    if (ok) {
        *c = (struct peer_copy){
            .op = op, .to = to, .from = from, .epoch = ws_space_enter(op->space)};
        ws_list_append(&peers.copies, &c->node);
        pthread_cond_signal(&peers.wake);
    }
    pthread_mutex_unlock(&peers.lock);
    if (ok)
        return;
    free(c);
    ws_check_fail(op, WS_DEV_E_NO_MEMORY, "the host has no memory for a copy between GPUs");
    op->done(op);
}

/* Called when a device is closed, with no copy under way. The next copy starts the thread again. */
void ws_proxy_peers_end(void)
{
    pthread_mutex_lock(&peers.lock);
    bool on = peers.on;
    peers.end = true;
    pthread_cond_signal(&peers.wake);
    pthread_mutex_unlock(&peers.lock);
    if (on)
        pthread_join(peers.thread, NULL);
    peers.on = peers.end = false;
}
