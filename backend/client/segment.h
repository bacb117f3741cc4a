/* SPDX-License-Identifier: Apache-2.0 */
/* backend/client/segment.h - segments: memory that a client and the daemon share. Threads: the
 * loop. */
#ifndef WS_BACKEND_CLIENT_SEGMENT_H
#define WS_BACKEND_CLIENT_SEGMENT_H

#include "backend/client/client.h"
#include "base/table.h"

struct ws_segment {
    uint32_t id;
    uint32_t kind; /* WS_HANDOFF_STAGING, WS_HANDOFF_PINNED, WS_HANDOFF_SHARED */
    int fd;        /* until it is settled, then -1; SHARED: -1 */
    uint8_t *map, *data;
    uint64_t map_bytes, bytes;
    uint32_t chunk_bytes, n_chunks;
    uint64_t mapped_at;   /* PINNED: the client's address; 0: not mapped */
    uint64_t taken_bytes; /* of the client's host_va, from mapped_at on */
    uint32_t n_copies;    /* under way */
    bool unmapping;       /* a HostUnmap is under way */
    bool mapping;         /* a HostMap is, on another thread */
    bool released;        /* the client has freed it; goes when the last use ends */
    UT_hash_handle hh;
};

struct ws_client_segments {
    struct ws_segment *by_id;
    uint32_t n_made, n_unmapping;
};

Ws__Error ws_segment_new(struct ws_client *c, const struct ws_handoff_request *q,
                         struct ws_segment **ret);
/* WS_HANDOFF_SHARED. @fd: the client's memory, borrowed */
Ws__Error ws_segment_share(struct ws_client *c, const struct ws_handoff_request *q, int fd,
                           struct ws_segment **ret);
struct ws_segment *ws_segment_find(struct ws_client *c, uint32_t id);
/* The client has mapped the memory, and the daemon is about to use it. Return: false: it must not:
 * the client could keep it waiting. */
bool ws_segment_settle(struct ws_client *c, struct ws_segment *g);
/* Replies to a HostMap, now or when a driver has answered. @at: where kernels will see it; 0:
 * chosen here. Return: an error: it is refused, and the client is not told yet. */
Ws__Error ws_segment_host_map(struct ws_client *c, uint64_t seq, uint32_t id, uint64_t at);
/* The client wants it no more. */
void ws_segment_release(struct ws_segment *g, struct ws_client *c);
/* A HostUnmap is done: the client wants it no more. */
void ws_segment_unmapped(struct ws_segment *g, struct ws_client *c);
/* A copy is done with it. */
void ws_segment_put(struct ws_segment *g, struct ws_client *c);
void ws_segment_chunk_done(struct ws_segment *g, uint32_t chunk, uint32_t state);
/* Of a client that is gone: one of its segments. Return: false: it has none. */
bool ws_segments_free_one(struct ws_client *c);

#endif
