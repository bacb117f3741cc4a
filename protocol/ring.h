// SPDX-License-Identifier: Apache-2.0
/* protocol/ring.h - a queue of small messages between a client and the daemon of the same
 * machine.
 *
 * ZeroMQ hands each message to a thread of its own on either side, so a question and its answer
 * change threads six times. The ring is shared memory with a few slots for each direction, and a
 * doorbell: a pair of connected sockets, of which each end holds one. Who has a small message puts
 * it into the next slot and rings; then it needs two changes of threads. What is larger, or finds
 * the slots full, goes through ZeroMQ as without a ring, and so does everything over tcp.
 *
 * Order. Each end counts the messages that it gives to ZeroMQ, and those that came from there, from
 * the ring's opening on. A slot says how many messages went through ZeroMQ before it ("after"); the
 * receiver takes it only when it has had so many. And whoever has received a message from ZeroMQ
 * first takes what lies in the ring before it handles that message: it was put there earlier if it
 * is due. So messages are handled in the order in which they were sent, whichever way they took.
 * Which messages count: the client's with commands; the daemon's with replies and notices (not
 * hello, status, "dropped").
 *
 * Trust. Indices are kept by each end for itself; a slot's length is read once and checked, and its
 * bytes are copied before they are looked at. A peer that writes anything at any time into the
 * memory can so send bad messages, as it can through ZeroMQ, and spoil its own. Neither end ever
 * waits for a slot, and ringing never blocks.
 *
 * Threads: one at a time for each end. */
#ifndef WS_PROTOCOL_RING_H
#define WS_PROTOCOL_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>
#include "base/macros.h"
#include "base/packet.h"

enum { WS_RING_SLOTS = 8, WS_RING_SLOT_BYTES = 4096, WS_RING_MESSAGE_BYTES = 4096 - 16 };
enum { WS_RING_EMPTY = 0, WS_RING_FULL = 1 };

struct ws_ring_slot {
    _Atomic uint32_t state; /* the sender: EMPTY -> FULL, the receiver: FULL -> EMPTY */
    _Atomic uint32_t bytes;
    _Atomic uint64_t after;
    uint8_t data[WS_RING_MESSAGE_BYTES];
};
struct ws_ring_memory {
    /* A thread of the client is about to sleep: ring for what you send */
    _Atomic uint32_t client_waits;
    uint8_t pad[4092];
    struct ws_ring_slot to_daemon[WS_RING_SLOTS], to_client[WS_RING_SLOTS];
};
_Static_assert(sizeof(struct ws_ring_slot) == WS_RING_SLOT_BYTES, "no gaps");

struct ws_ring {                   /* one end; all 0 and doorbell -1: none */
    struct ws_ring_memory *memory; /* NULL: none */
    struct ws_ring_slot *out, *in;
    uint32_t next_out, next_in;
    uint64_t n_sent, n_received; /* through ZeroMQ, since the ring was opened */
    int doorbell;                /* this end's socket; owned */
};

/* @fd: of the memory (borrowed), which is known to be large enough and sealed. The doorbell comes
 *      later. 0 or negative errno. */
WS_MUST_CHECK int ws_ring_map(struct ws_ring *l, int fd, bool is_client);
/* Unmaps, and closes the doorbell. */
void ws_ring_end(struct ws_ring *l);

/* Return: false: it is too long, there is no ring or no room: send it through ZeroMQ and count that
 * in n_sent. */
bool ws_ring_put(struct ws_ring *l, const void *data, size_t n);
/* The next message that is due, copied to @buf of WS_RING_MESSAGE_BYTES. Return: its length;
 * -EAGAIN: there is none; -EPROTO: the peer does not keep to the rules. */
ssize_t ws_ring_take(struct ws_ring *l, void *buf);

/* The client: from here on it wants to be rung for, or no more. Before it looks for the last time
 * and sleeps. */
void ws_ring_wait(const struct ws_ring *l, bool on);
/* Wakes the other end. Never blocks; a doorbell that still rings is enough. */
void ws_ring_signal(const struct ws_ring *l);
/* Quiets the doorbell, before looking into the slots. @ret: as for ws_packet_recv_bytes(). Return:
 * false: the other end is closed. */
bool ws_ring_hear(const struct ws_ring *l, struct ws_packet_fds *ret);

#endif
