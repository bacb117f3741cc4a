// SPDX-License-Identifier: Apache-2.0
/* protocol/protocol.h - framing, order, limits and shared memory of the language in
 * wattshare.proto.
 *
 * Carrier. A client opens one ZeroMQ DEALER to the daemon's ROUTER (ipc:// or tcp://). Each message
 * is one ClientMessage or ServerMessage in its first frame; further frames hold bulk data named by
 * Copy.frame. There is no empty delimiter frame. Order. Commands of one client are taken in
 * sequence; those of one stream run in order. A command with a reply gets exactly one Reply with
 * its seq, replies may come in another order than their commands. Ids that are not the client's
 * give INVALID_HANDLE. A command without reply that fails leaves its error with the client: the
 * next Sync reply carries it, and a Notice tells at once. Errors of value 32…63 are sticky: all
 * later work of the client is skipped and every reply carries it. Flow. Each Notice.retired says
 * how many commands have left the daemon; a client never has more than max_outstanding others.
 * Death. On one machine each client holds the handoff socket open (below): its end of file is the
 * client's death, whatever the cause. Over tcp it is the loss of the ZeroMQ connection
 * (heartbeats). What the client had sent before is handled first.
 *
 * Handoff socket (SOCK_SEQPACKET). A client connects and sends struct ws_handoff_request; the
 * answer is struct ws_handoff_reply, with one file descriptor (SCM_RIGHTS) where a segment was
 * asked for: a memfd sealed against shrinking and growing, made and charged by the daemon. The
 * connection stays open as long as the client lives; further requests follow on it.
 *
 * Segments. PINNED: bytes of data, the client maps them and announces the address by HostMap.
 * STAGING: a control page, then chunks. The client maps a segment before the first HostMap or Copy
 * that names it: by then the daemon may seal it against holes, and nobody can map it for writing
 * any more. Each chunk has a state word, changed by futex-woken atomics:
 *   FREE -> (client) BUSY, fills it, sends Copy STAGED_SRC -> (daemon, once read) FREE FREE ->
 *   (client) BUSY, sends Copy STAGED_DST -> (daemon, once written) READY or FAILED -> (client, once
 *   read) FREE
 * A client that lies here harms only itself: the daemon checks every offset against the segment it
 * made. */
#ifndef WS_PROTOCOL_PROTOCOL_H
#define WS_PROTOCOL_PROTOCOL_H

#include <stdatomic.h>
#include <stdint.h>
#include "protocol/wattshare.pb-c.h"

enum { WS_PROTOCOL_VERSION = 1, WS_TOKEN_BYTES = 16, WS_SHA256_BYTES = 32 };
/* Notice.reached to a gated client: a policy is in force, is not any more; else an answer to
 * GateBegin.serial (from WS_GATE_SERIAL_FIRST on): serial * 2: its launches may go; + 1: its lease
 * is over, it has to ask again. */
enum { WS_GATE_POLICY_ON = 1, WS_GATE_POLICY_OFF = 2, WS_GATE_SERIAL_FIRST = 8 };
enum {
    WS_FUNCTION_INDEX_BITS = 20,
    WS_STREAM_DEFAULT_0 = 1,
    WS_STREAM_FIRST = 64,
    WS_MAX_DEVICES = 32
};
#define WS_DEFAULT_SOCKET  "ipc:///run/wattshare/wattshared.sock"
#define WS_ENV_SOCKET      "WATTSHARE_SOCKET"      /* endpoint the client connects to */
#define WS_ENV_GATE_DRIVER "WATTSHARE_GATE_DRIVER" /* the real libcuda.so.1, for gated programs */
#define WS_ENV_TASK        "WATTSHARE_TASK"
#define WS_ENV_SMS         "WATTSHARE_SMS" /* Hello.sms */
/* `wattshare check`: the file in which findings are counted, a line each; and whether leaks are
 * findings ("1"). */
#define WS_ENV_CHECK       "WATTSHARE_CHECK"
#define WS_ENV_CHECK_LEAKS "WATTSHARE_CHECK_LEAKS"

/* A message over tcp is no longer than this, however long others may be, and no answer to a copy
 * is: what goes there is encrypted, and opened, in one piece. */
enum { WS_FAR_MESSAGE_BYTES = 256 << 10 };

/* Device addresses: all of a client's allocations lie in [WS_VA_FIRST, WS_VA_LAST); no host mapping
 * of a Linux process does. */
#define WS_VA_FIRST UINT64_C(0x200000000000)
#define WS_VA_LAST  UINT64_C(0x500000000000)

/* Pinned host memory: where the daemon chooses the address (HostMap), it lies in [WS_HOST_VA_FIRST,
 * WS_HOST_VA_LAST), where Linux puts nothing by itself. */
#define WS_HOST_VA_FIRST UINT64_C(0x110000000000)
#define WS_HOST_VA_LAST  WS_VA_FIRST
/* From here on to WS_HOST_VA_LAST no client gets any: there the daemon maps memory of its own. */
#define WS_OWN_VA (WS_HOST_VA_LAST - (UINT64_C(1) << 30))

/* Physical memory that has no address yet (MemCreate) comes in multiples of this; and handles of
 * shared things are so long. */
#define WS_MEM_GRANULE_BYTES (UINT64_C(2) << 20)
enum { WS_SHARE_BYTES = 32 };

/* EXPORT: gives a descriptor that stands for an object's memory and keeps it; any client that sends
 * it back with IMPORT gets an object of its own for the same memory (reply: bytes, and segment: its
 * device).
 * SHARED: as PINNED, but of memory that the client has and shares with others already. The
 * descriptor that comes along is a memfd that cannot shrink any more; its first bytes are meant.
 * RING, then DOORBELL: the two descriptors of the ring (ring.h) for small messages, once for each
 * client, before its first command. A daemon that knows none refuses, and all goes through
 * ZeroMQ. */
enum {
    WS_HANDOFF_HELLO = 1,
    WS_HANDOFF_STAGING = 2,
    WS_HANDOFF_PINNED = 3,
    WS_HANDOFF_FREE = 4,
    WS_HANDOFF_EXPORT = 5,
    WS_HANDOFF_IMPORT = 6,
    WS_HANDOFF_SHARED = 7,
    WS_HANDOFF_RING = 80,
    WS_HANDOFF_DOORBELL = 81
};
struct ws_handoff_request {
    uint32_t kind;
    uint32_t segment; /* WS_HANDOFF_FREE */
    uint8_t token[WS_TOKEN_BYTES];
    /* Data bytes; STAGING: a multiple of chunk_bytes; EXPORT, IMPORT: the object's id */
    uint64_t bytes;
    uint32_t chunk_bytes; /* STAGING */
    uint32_t reserved;
};
struct ws_handoff_reply {
    uint32_t error; /* Ws__Error */
    uint32_t segment;
    uint64_t data_offset; /* of the first data byte in the descriptor */
    uint64_t bytes;
};

enum { WS_CHUNK_FREE = 0, WS_CHUNK_BUSY = 1, WS_CHUNK_READY = 2, WS_CHUNK_FAILED = 3 };
enum { WS_STAGING_MAX_CHUNKS = 960 };
struct ws_staging_control { /* first page of a STAGING segment */
    uint32_t magic, n_chunks, chunk_bytes, reserved;
    uint8_t pad[48];
    _Atomic uint32_t state[WS_STAGING_MAX_CHUNKS];
    /* Threads of the client inside futex_wait: the daemon wakes only if non-zero */
    _Atomic uint32_t n_waiting;
};
#define WS_STAGING_MAGIC UINT32_C(0x57535347)

#endif
