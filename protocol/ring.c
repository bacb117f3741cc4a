// SPDX-License-Identifier: Apache-2.0
/* One end of a ring (ring.h says how it works). A put publishes by the store of FULL and then
 * rings; the other end quiets the doorbell and then looks: so a message whose ring was swallowed is
 * seen by who swallowed it. */
#include "protocol/ring.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/packet.h"

int ws_ring_map(struct ws_ring *l, int fd, bool is_client)
{
    struct ws_ring_memory *m = mmap(NULL, sizeof(*m), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    *l = (struct ws_ring){.doorbell = -1};
    if (m == MAP_FAILED)
        return -errno;
    madvise(m, sizeof(*m), MADV_DONTFORK); /* a child is another client, or none */
    l->memory = m;
    l->out = is_client ? m->to_daemon : m->to_client;
    l->in = is_client ? m->to_client : m->to_daemon;
    return 0;
}

void ws_ring_end(struct ws_ring *l)
{
    if (l->memory)
        munmap(l->memory, sizeof(*l->memory));
    if (l->doorbell >= 0)
        close(l->doorbell);
    *l = (struct ws_ring){.doorbell = -1};
}

bool ws_ring_put(struct ws_ring *l, const void *data, size_t n)
{
    if (!l->memory || n > WS_RING_MESSAGE_BYTES)
        return false;
    struct ws_ring_slot *s = &l->out[l->next_out % WS_RING_SLOTS];
    if (atomic_load_explicit(&s->state, memory_order_acquire) != WS_RING_EMPTY)
        return false;
    memcpy(s->data, data, n);
    atomic_store_explicit(&s->bytes, (uint32_t)n, memory_order_relaxed);
    atomic_store_explicit(&s->after, l->n_sent, memory_order_relaxed);
    atomic_store(&s->state, WS_RING_FULL);
    l->next_out++;
    return true;
}

ssize_t ws_ring_take(struct ws_ring *l, void *buf)
{
    if (!l->memory)
        return -EAGAIN;
    struct ws_ring_slot *s = &l->in[l->next_in % WS_RING_SLOTS];
    if (atomic_load(&s->state) != WS_RING_FULL ||
        atomic_load_explicit(&s->after, memory_order_relaxed) > l->n_received)
        return -EAGAIN;
    uint32_t n = atomic_load_explicit(&s->bytes, memory_order_relaxed);
    if (n > WS_RING_MESSAGE_BYTES)
        return -EPROTO;
    memcpy(buf, s->data, n);
    atomic_store_explicit(&s->state, WS_RING_EMPTY, memory_order_release);
    l->next_in++;
    return n;
}

void ws_ring_wait(const struct ws_ring *l, bool on)
{
    if (l->memory)
        atomic_store(&l->memory->client_waits, on);
}

void ws_ring_signal(const struct ws_ring *l)
{
    ssize_t ignored = send(l->doorbell, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    (void)ignored; /* full: it rings already; closed: whoever looks for that learns it elsewhere */
}

bool ws_ring_hear(const struct ws_ring *l, struct ws_packet_fds *ret)
{
    char rings[64];
    ssize_t n = ws_packet_recv_bytes(l->doorbell, rings, sizeof(rings), MSG_DONTWAIT, ret);
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}
