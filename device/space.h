/* SPDX-License-Identifier: Apache-2.0 */
/* device/space.h - what implementations of device.h see of an address space, beyond device.h
 * itself. */
#ifndef WS_DEVICE_SPACE_H
#define WS_DEVICE_SPACE_H

#include "device/device.h"

/* Gives a mapping's memory back. Called without locks, on the thread that unmapped it or that left
 * the space last. */
typedef void ws_space_release_fn(void *arg, uint8_t *host, uint64_t bytes);

/* As ws_space_map_host(), with a device and access: @release is called with @arg once nobody can
 * see the memory any more. On an error it is not called. @m->flags is not read. */
WS_MUST_CHECK int ws_space_map(struct ws_space *s, const struct ws_mapping *m,
                               ws_space_release_fn *release, void *arg);

/* Memory of @d that lies where @b says. The caller owns a reference; on an error what is behind @b
 * stays his.
 * Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_memory_wrap(struct ws_device *d, uint64_t bytes, const struct ws_backing *b,
                                 struct ws_memory **ret);

/* Asked when host memory is mapped into a space, by ws_space_map_host(): a device whose kernels
 * can't use a space's table makes it reachable for them at @va. The first error refuses the
 * mapping. @soon: as ws_space_map_host_soon() says; operations of the space wait for it. @gone (may
 * be NULL) is told of each space that ends, when all its memory has gone. Any thread. NULL: nobody
 * asks. */
struct ws_host_hook {
    int (*map)(struct ws_space *s, uint64_t va, uint64_t bytes, void *host, bool soon);
    void (*unmap)(struct ws_space *s, uint64_t va, uint64_t bytes);
    void (*gone)(struct ws_space *s);
};
void ws_space_set_host_hook(const struct ws_host_hook *h);

/* Whether a mapping has any address of [va, va + bytes). */
bool ws_space_meets(const struct ws_space *s, uint64_t va, uint64_t bytes);
/* As ws_space_find(), as the devices of mask @who see it: not there if they may not read, read-only
 * if they may not write. */
bool ws_space_find_as(const struct ws_space *s, uint32_t who, uint64_t va, uint64_t bytes,
                      struct ws_mapping *ret);

/* Between enter and leave the memory of every mapping that ws_space_find() returned stays valid,
 * even when it is unmapped meanwhile. Any thread; may nest. Leave takes what enter returned. */
WS_MUST_CHECK unsigned ws_space_enter(struct ws_space *s);
void ws_space_leave(struct ws_space *s, unsigned epoch);

/* As ws_space_find(), without copying what a copy does not need: host address of @va and how many
 * bytes follow it in the same mapping. Return: false if @va is not mapped, or no device may read
 * it. */
bool ws_space_resolve(const struct ws_space *s, uint64_t va, uint8_t **ret_host,
                      uint64_t *ret_bytes, uint32_t *ret_flags, struct ws_device **ret_device);

/* Hands a kernel's output to what ws_space_set_print() set. Calls for one space never overlap. Any
 * thread. */
void ws_space_print(const struct ws_space *s, enum ws_output to, const char *text, size_t n);

/* Bytes of text that the client wants kept of what its kernels print (cudaLimitPrintfFifoSize). Any
 * thread. */
uint64_t ws_space_print_bytes(const struct ws_space *s);
uint64_t ws_space_stack_bytes(const struct ws_space *s); /* 0: it was never set */

/* The reference is borrowed; NULL: nobody. Any thread. */
struct ws_payer *ws_space_payer(const struct ws_space *s);
uint64_t ws_space_margin(const struct ws_space *s); /* what ws_space_set_margin() set. Any thread */

/* Where an address lies that is in no mapping. */
struct ws_space_near {
    struct ws_mapping m;
    uint64_t distance; /* bytes: from the mapping's end, or from the address to its begin */
    bool behind;       /* the mapping; else before it */
};
/* The mapping of the space itself, among those that the devices of mask @who may read, that is
 * nearest to @va. Any thread. Return: false: @va lies in a mapping, or there is none to either
 * side. */
bool ws_space_find_near(const struct ws_space *s, uint32_t who, uint64_t va,
                        struct ws_space_near *ret);

/* What kernels of the devices of mask @who may read now, as {address, bytes} in ascending order,
 * what adjoins joined; up to @max of them. *ret_version (may be NULL) is the space's version that
 * they are of. Any thread. Return: how many there are. */
uint32_t ws_space_ranges(struct ws_space *s, uint32_t who, uint64_t (*ret)[2], uint32_t max,
                         uint32_t *ret_version);
/* A number that changes whenever a mapping or its access does. Any thread. */
uint32_t ws_space_version(const struct ws_space *s);

/* Never given twice in a process, never 0. */
uint64_t ws_space_id(const struct ws_space *s);

/* A number that stands for the bytes that are not zero in what is mapped in [low, high), and for
 * where they are; memory that nobody has written yet makes no difference. To compare runs. Any
 * thread. */
uint64_t ws_space_digest(struct ws_space *s, uint64_t low, uint64_t high);

/* Bytes of device memory mapped now. */
uint64_t ws_space_device_bytes(const struct ws_space *s);

/* Makes the heap ready in memory of @d, if it is not yet. Any thread. Return: 0, or as
 * ws_device_mem_alloc(). */
WS_MUST_CHECK int ws_space_open_heap(struct ws_space *s, struct ws_device *d);
/* The heap is ready at @va, which somebody else has mapped; again, if it has moved. Return: 0 or
 * -ENOMEM. */
WS_MUST_CHECK int ws_space_tell_heap(struct ws_space *s, uint64_t va, uint64_t bytes);
/* Where the heap is, once it is ready. Any thread. Return: false: it isn't. */
bool ws_space_heap(const struct ws_space *s, uint64_t *ret_va, uint64_t *ret_bytes);
/* For devices that keep the heap's books in the heap itself: who is about to use it, and who has
 * done so. Where the last one found that all was given back, the next one wipes the books before
 * anybody goes on. Any thread. */
enum ws_heap_turn {
    WS_HEAP_GO,   /* until ws_space_heap_end() */
    WS_HEAP_WIPE, /* wipe them first, then ws_space_heap_wiped(); only if may_wipe. Then as GO */
    WS_HEAP_WAIT, /* ask again: they are to be wiped, or are being */
};
enum ws_heap_turn ws_space_heap_begin(struct ws_space *s, bool may_wipe);
void ws_space_heap_wiped(struct ws_space *s);
void ws_space_heap_end(struct ws_space *s, bool wipe);
/* malloc() of device code. Return: 0 when there is no room. Any thread. */
uint64_t ws_space_heap_take(const struct ws_space *s, uint64_t bytes);
/* Return: false if @va is not what ws_space_heap_take() gave. Any thread. */
bool ws_space_heap_give(const struct ws_space *s, uint64_t va);

/* Counts @bytes for what kernels of the space have started and nobody has begun (started.h). Any
 * thread. Return: false: then they would be more than @max_bytes, and nothing is counted. */
bool ws_space_started_take(struct ws_space *s, uint64_t bytes, uint64_t max_bytes);
void ws_space_started_give(struct ws_space *s, uint64_t bytes);

#endif
