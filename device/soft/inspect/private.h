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
/* Is it a compare-and-swap? */
bool ws_inspect_is_cas(const struct ws_inspect_who *who);
/* "read of 4 bytes", "atomic operation on 4 bytes": what the instruction does to memory. */
void ws_inspect_access_words(const struct ws_inspect_who *who, char *ret, size_t size);
/* Tells the client of a finding, unless it was told of the same one before: the same @headline
 * kind at the same two instructions. @other: the second thread of a race, or NULL, and @other_did
 * its access in words. @va: the address in global memory, or 0. @where: the place in words, where
 * there is no such address; or "". */
void ws_inspect_tell(const struct ws_inspect_who *who, const char *headline,
                     const struct ws_inspect_who *other, const char *other_did, uint64_t va,
                     const char *where);

/* ---- shared.c, global.c, race.c ---- */
enum {
    WS_INSPECT_READS = 1,
    WS_INSPECT_WRITES = 2,
    WS_INSPECT_STRONG = 4, /* atomic operations and what PTX's memory model calls strong */
    WS_INSPECT_MEETS = 8,  /* acquires or releases by itself, without a fence */
};
struct ws_inspect_access { /* of one lane */
    struct ws_inspect_who who;
    uint64_t at;            /* the address; in shared memory: its offset there */
    struct ws_blockrun *of; /* whose shared memory that is */
    uint8_t *host;          /* of global memory */
    uint64_t bytes;
    unsigned does; /* mask of WS_INSPECT_READS and so on */
    bool idle;     /* a write that leaves the bytes as they are */
};
void ws_inspect_shared(const struct ws_inspect_access *a);
/* The same in the shared memory of another block of the cluster. */
void ws_inspect_remote(const struct ws_inspect_access *a);
void ws_inspect_global(const struct ws_inspect_access *a);
void ws_inspect_race(const struct ws_inspect_access *a);
/* A strong read of the block's has been made. */
void ws_inspect_found(struct ws_blockrun *b);
/* Other blocks may have heard of all that the block did until now. */
void ws_inspect_left(struct ws_blockrun *b);
/* A count that rises with each access: says which of two events came first. */
uint64_t ws_inspect_now(void);
/* Whether @warp has heard of what @other of the same block did at that clock; the warp's clock. */
bool ws_inspect_knows(const struct ws_blockrun *b, uint32_t warp, uint32_t other, uint32_t clock);
uint32_t ws_inspect_clock(const struct ws_blockrun *b, uint32_t warp);
/* A strong access passes on, within the block, what its warp knew, and finds what others left at
 * its place. Return: when the warp had last fenced, if the access shows others what was done
 * before that; else 0. */
uint64_t ws_inspect_order(const struct ws_inspect_access *a, bool global);
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
