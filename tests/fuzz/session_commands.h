/* SPDX-License-Identifier: Apache-2.0 */
/* tests/fuzz/session_commands.h - commands that are well formed, made of the bytes of an input, for
 * fuzz_session.c. Streams, events, modules and addresses are mostly such as the client may have. */
#ifndef WS_TESTS_FUZZ_SESSION_COMMANDS_H
#define WS_TESTS_FUZZ_SESSION_COMMANDS_H

#include "protocol/protocol.h"
#include "tests/fuzz/bytes.h"

enum { SESSION_ADDRESSES = 8, SESSION_BATCH = 32, SESSION_PARAM_BYTES = 16, SESSION_IMAGES = 3 };

/* What clients were told, which their later commands may name. */
struct session_told {
    uint64_t addresses[SESSION_ADDRESSES]; /* the newest ones */
    unsigned n_addresses;
    uint8_t handle[WS_SHARE_BYTES]; /* of what was shared last */
};

/* Commands that are to go in one message, of one client. */
struct session_batch {
    unsigned n;
    Ws__Command commands[SESSION_BATCH], *list[SESSION_BATCH];
    uint8_t params[SESSION_BATCH][SESSION_PARAM_BYTES];
    union {
        Ws__Launch launch;
        Ws__Copy copy;
        Ws__Fill fill;
        Ws__EventRecord record;
        Ws__StreamWait wait;
        Ws__StreamCreate stream;
        Ws__ModuleImage image;
        Ws__HostFunction host_function;
        Ws__StreamValue value;
        Ws__Sync sync;
        Ws__Query query;
        Ws__MemAlloc alloc;
        Ws__MemFree free;
        Ws__ModuleLoad load;
        Ws__HostMap map;
        Ws__Reset reset;
        Ws__Occupancy occupancy;
        Ws__MemCreate create;
        Ws__VaReserve reserve;
        Ws__MemMap mem_map;
        Ws__MemUnmap unmap;
        Ws__MemAccess access;
        Ws__Share share;
        Ws__PeerAccess peer;
        Ws__ModulePlace place;
        Ws__Limit limit;
        Ws__JobBegin job;
        Ws__GateBegin gate;
    } of[SESSION_BATCH];
};

/* Modules with small kernels; the last one can't be read. */
extern const char *const session_images[SESSION_IMAGES];

/* Once, before the others. */
void session_commands_init(void);
/* Add to the batch, which must have room: a command of the kind that @step says; MemAlloc;
 * ModuleLoad; a ModuleImage with the first @n bytes of an image. */
void session_command(struct session_told *w, struct session_batch *b, uint8_t step,
                     struct bytes *in);
void session_alloc(struct session_batch *b, uint32_t gpu, uint64_t bytes);
void session_load(struct session_batch *b, uint64_t id, uint32_t gpu, unsigned image);
void session_upload(struct session_batch *b, unsigned image, uint64_t offset, size_t n);
/* Adds the last command again, @times or as often as there is room. */
void session_repeat(struct session_batch *b, unsigned times);

#endif
