/* SPDX-License-Identifier: Apache-2.0 */
/* device/soft/inspect/private.h - what the room's files share. */
#ifndef WS_DEVICE_SOFT_INSPECT_PRIVATE_H
#define WS_DEVICE_SOFT_INSPECT_PRIVATE_H

#include "device/soft/exec/priv.h"
#include "device/soft/inspect/inspect.h"

/* ---- finding.c ---- */
/* A thread and the instruction that it executes. */
struct ws_inspect_who {
    struct ws_core_ctx *c;
    uint64_t block;  /* linear number in the grid */
    uint32_t thread; /* linear number in the block */
    uint32_t src;    /* index into the image's srcs */
};
struct ws_inspect_who ws_inspect_lane(struct ws_core_ctx *c, const struct ws_uop *u, unsigned lane);
/* "read of 4 bytes", "atomic operation on 4 bytes": what the instruction does to memory. */
void ws_inspect_access_words(const struct ws_inspect_who *who, char *ret, size_t size);
/* Tells the client of a finding, unless it was told of the same one before: the same @headline
 * kind at the same two instructions. @other: the second thread of a race, or NULL, and @other_did
 * its access in words. @va: the address in global memory, or 0. @where: the place in words, where
 * there is no such address; or "". */
void ws_inspect_tell(const struct ws_inspect_who *who, const char *headline,
                     const struct ws_inspect_who *other, const char *other_did, uint64_t va,
                     const char *where);

/* ---- shared.c, global.c ---- */
enum {
    WS_INSPECT_READS = 1,
    WS_INSPECT_WRITES = 2,
    WS_INSPECT_STRONG = 4, /* atomic operations and what PTX's memory model calls strong */
    WS_INSPECT_MEETS = 8,  /* acquires or releases by itself, without a fence */
};
struct ws_inspect_access { /* of one lane */
    struct ws_inspect_who who;
    uint64_t at;   /* the address; in shared memory: its offset there */
    uint8_t *host; /* of global memory */
    uint64_t bytes;
    unsigned does; /* mask of WS_INSPECT_READS and so on */
};
void ws_inspect_shared(const struct ws_inspect_access *a);
void ws_inspect_global(const struct ws_inspect_access *a);
/* A fence of the warp. */
void ws_inspect_fence(struct ws_blockrun *b, uint32_t warp);

/* A micro-op that touches memory. */
struct ws_inspect_op {
    const struct ws_uop *(*plain)(struct ws_core_ctx *c, const struct ws_uop *u); /* executes it */
    uint8_t row, does;
};

/* ---- inspect.c ---- */
/* Return: whether it is the first time that the process meets @key. */
bool ws_inspect_is_new(struct ws_inspect *s, uint64_t key);

#endif
