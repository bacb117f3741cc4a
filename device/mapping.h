/* SPDX-License-Identifier: Apache-2.0 */
/* device/mapping.h - what a client's kernels and copies may touch: address spaces, physical memory,
 * the heap of device code, and where its printf goes. All devices of a client share its space.
 *
 * A device makes physical memory. It can be mapped into any number of spaces at any number of
 * places.
 * Threads: the daemon's loop, where nothing else is said. */
#ifndef WS_DEVICE_MAPPING_H
#define WS_DEVICE_MAPPING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/macros.h"

struct ws_device;

/* ---- address spaces ---- */
struct ws_payer;
struct ws_space;
enum { WS_MAP_READONLY = 1u << 0 }; /* kernels must not write */
#define WS_ACCESS_ALL UINT32_MAX
enum {
    WS_ACCESS_DEVICES = 32
}; /* masks of devices by ws_device.index; a device beyond has no bit */
/* A mapping: [va, va + bytes) is backed by host memory at @host of this process. */
struct ws_mapping {
    uint64_t va, bytes;
    uint8_t *host;
    uint32_t flags;
    uint32_t readers, writers; /* the devices whose kernels may read, write */
    /* Whose memory; NULL: the client's own host memory (pinned, staged). */
    struct ws_device *device;
};
WS_MUST_CHECK int ws_space_new(struct ws_space **ret);
/* No operation may be in flight. Does not free what is mapped by ws_space_map_host(). */
struct ws_space *ws_space_free(struct ws_space *s);
/* Maps host memory (a shared segment) at @va, which is the client's own address of it. @host:
 * borrowed until unmapped. A driver may be waited for. Any thread.
 * Return: 0, -EEXIST (overlaps a mapping), -EINVAL (empty, wraps), -ENOMEM. */
WS_MUST_CHECK int ws_space_map_host(struct ws_space *s, uint64_t va, uint64_t bytes, void *host);
/* The same at an address at which no process has anything else: so a GPU's worker can do it later,
 * and nobody waits. */
WS_MUST_CHECK int ws_space_map_host_soon(struct ws_space *s, uint64_t va, uint64_t bytes,
                                         void *host);
/* The mapping whose range holds [va, va + bytes) whole. Return: true with a copy in *ret. Any
 * thread. */
bool ws_space_find(const struct ws_space *s, uint64_t va, uint64_t bytes, struct ws_mapping *ret);
/* Whether [va, va + bytes) is mapped without a hole, by one mapping or several, and may be written
 * if asked. It looks at the first WS_SPACE_COVERS_MOST mappings and at the last one, which takes a
 * few hundredths of a millisecond: what lies between is left to the device, which looks at each
 * when it gets there. Any thread. */
enum { WS_SPACE_COVERS_MOST = 256 };
bool ws_space_covers(const struct ws_space *s, uint64_t va, uint64_t bytes, bool write);
/* Who may read and write the mapping that starts at @va, from now on. Return: 0 or -ENOENT. */
WS_MUST_CHECK int ws_space_set_access(struct ws_space *s, uint64_t va, uint32_t readers,
                                      uint32_t writers);
/* Removes the mapping that starts at @va; its memory goes back to its device. Kernels still running
 * may not use it any more (the caller makes sure, or they fault). Return: 0 or -ENOENT. */
WS_MUST_CHECK int ws_space_unmap(struct ws_space *s, uint64_t va);
/* The same for the mapping of the highest address. Return: false: there is none. */
bool ws_space_unmap_last(struct ws_space *s);

/* A space that holds what all of @members hold at the moment of each access, for one launch of
 * several clients. Nothing is mapped in it itself; kernels that use malloc() can't run in it. The
 * members must outlive it; one may stand there twice. Where two members come to hold one address
 * later, the older mapping is the one that is seen: a fence keeps each client to its own.
 * Return: 0, -EEXIST (two of them hold the same address), -EINVAL (n not 1…WS_SPACE_JOIN_MAX, or a
 * joint space among them), -ENOMEM. */
enum { WS_SPACE_JOIN_MAX = 32 };
WS_MUST_CHECK int ws_space_join(struct ws_space **ret, struct ws_space *const *members, uint32_t n);

/* ---- physical memory ---- */
struct ws_memory;
/* Where a device has put it. @release is called once nobody can see the memory any more, on any
 * thread, without locks. */
struct ws_backing {
    uint8_t *host; /* NULL: out of the host's reach; then the device has map and unmap */
    void (*release)(void *arg, uint8_t *host, uint64_t bytes);
    void *arg;
};
struct ws_memory *ws_memory_unref(struct ws_memory *m); /* NULL ok; returns NULL. Any thread */
/* Maps [offset, offset + bytes) of @m at @va; the mapping holds a reference. Return: 0, -EEXIST,
 * -EINVAL (empty, wraps, beyond the memory's end), -ENOMEM. Ends with ws_space_unmap(). */
WS_MUST_CHECK int ws_space_map_memory(struct ws_space *s, uint64_t va, uint64_t bytes,
                                      struct ws_memory *m, uint64_t offset, uint32_t readers,
                                      uint32_t writers);

/* Where @m can be mapped a second time: at addresses that are *ret_offset more than a multiple of
 * *ret_granule, while nothing else lies in the granules of addresses that it is in then. */
void ws_memory_place(const struct ws_memory *m, uint64_t *ret_granule, uint64_t *ret_offset);

/* What kernels write: of one printf, or of one failed assertion; called on a device thread. NULL:
 * dropped. A finding is what a device that inspects kernels has to say of them: a line with an
 * address in hexadecimal digits (0: none) and the kernel's name, then text. */
enum ws_output {
    WS_OUTPUT_PRINTF = 1, /* the numbers of stdout and stderr */
    WS_OUTPUT_ASSERT = 2,
    WS_OUTPUT_FINDING = 3
};
void ws_space_set_print(struct ws_space *s,
                        void (*print)(void *arg, enum ws_output to, const char *text, size_t n),
                        void *arg);

/* Bytes of text of what a launch prints that shall not be lost (cudaLimitPrintfFifoSize): a device
 * that keeps it until the launch has ended makes room for about as much. */
void ws_space_set_print_bytes(struct ws_space *s, uint64_t bytes);
/* Bytes of stack for each thread of kernels whose need cannot be told from their code
 * (cudaLimitStackSize). Software GPUs give each thread what it needs, and do not ask. */
void ws_space_set_stack_bytes(struct ws_space *s, uint64_t bytes);

/* How far before and behind a mapping kernels of software GPUs may read, and find zeros. Spaces
 * begin with 0. Any thread. */
void ws_space_set_margin(struct ws_space *s, uint64_t bytes);

/* For whom a device works beside the space's operations: it compiles their kernels. Called at most
 * once, before the first launch. The space takes a reference. Spaces begin with nobody. */
void ws_space_set_payer(struct ws_space *s, struct ws_payer *p);

/* Bytes that malloc() in device code may give out (cudaLimitMallocHeapSize). Kernels that call
 * malloc() or free() find the heap mapped, in memory of the device that first ran one. Once it is,
 * only ws_space_drop_heap() lets the size change.
 * Return: 0, or -EBUSY. */
WS_MUST_CHECK int ws_space_set_heap_bytes(struct ws_space *s, uint64_t bytes);
/* How large the heap is, or will be. Any thread. */
uint64_t ws_space_heap_bytes(struct ws_space *s);
/* Where it will be: of a device whose addresses are real ones (ws_device_ops.map), all clients' lie
 * in different places. 0: anywhere, as at first. *ret_bytes: how large it will be, which stays from
 * then on. Return: 0, or -EBUSY: it is there. */
WS_MUST_CHECK int ws_space_place_heap(struct ws_space *s, uint64_t va, uint64_t *ret_bytes);
/* Gives the heap back, with all that was allocated in it (cudaDeviceReset). @d: only if it lies in
 * this device's memory; NULL: in any case. No kernel of the space may be running. */
void ws_space_drop_heap(struct ws_space *s, const struct ws_device *d);

#endif
