// SPDX-License-Identifier: Apache-2.0
/* frontend/session/session.h - what a client has: devices, memory, streams, events, modules. The
 * rooms above (context, memory, stream, …) call only this; the session calls only the channel.
 *
 * Threads: any, unless a function says otherwise. Errors: every function returns a Ws__Error
 * (WS__ERROR__OK is 0). ws_rt_error() and ws_drv_error() (frontend/errors.c) translate it to CUDA's
 * codes; only they know both. The session keeps no last error and no current device of a thread.
 *
 * Asynchronous functions return as soon as the command is in the batch. When the context is lost
 * (a sticky error), all functions return its error.
 *
 * The first call that needs the daemon connects. If that fails, one line on stderr names the
 * endpoint and the remedy, and every call returns WS__ERROR__DISCONNECTED from then on, at once. In
 * a forked child of a process that was connected every call returns DISCONNECTED; a child of a
 * process that was not connected connects anew. After exit has begun, functions that free or
 * unregister succeed without doing anything. */
#ifndef WS_FRONTEND_SESSION_SESSION_H
#define WS_FRONTEND_SESSION_SESSION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/macros.h"
#include "protocol/protocol.h"

typedef int ws_err; /* Ws__Error; the one typedef of this room, to tell it from errno-like ints */

/* Connects, unless it is connected already. */
ws_err ws_session_connect(void);
/* Whether this process, or the one that it was forked from, was ever connected. Takes no lock. */
bool ws_session_used(void);
/* Flushes and says goodbye; called at exit. */
void ws_session_shutdown(void);

/* ---- devices ---- */
ws_err ws_session_device_count(int *ret);
/* Borrowed for the life of the process; NULL if @device is out of range or there is no daemon.
 * Fields: Ws__Device. */
const Ws__Device *ws_session_device(int device);
ws_err ws_session_mem_info(int device, uint64_t *ret_free, uint64_t *ret_total);
ws_err ws_session_reset(int device);

/* ---- memory ---- */
enum ws_mem_kind {
    WS_MEM_NONE /* ordinary host memory */,
    WS_MEM_DEVICE,
    WS_MEM_PINNED,
    WS_MEM_VARIABLE /* of a module */,
    WS_MEM_VIRTUAL /* mapped into a reservation, and accessible to some device */,
    WS_MEM_IMPORTED /* another client's allocation */
};
static inline bool ws_mem_on_device(enum ws_mem_kind kind)
{
    return kind != WS_MEM_NONE && kind != WS_MEM_PINNED;
}
struct ws_mem_info {
    enum ws_mem_kind kind;
    bool readonly;
    uint64_t base, bytes;
    int device;
};
ws_err ws_session_mem_alloc(int device, uint64_t bytes, uint64_t *ret_address);
/* INVALID_VALUE: @address is not the start of a live allocation. */
ws_err ws_session_mem_free(uint64_t address);
/* Pinned memory, in a segment that is shared with the daemon. Over TCP it is plain memory that
 * counts as pinned. */
ws_err ws_session_host_alloc(uint64_t bytes, void **ret);
ws_err ws_session_host_free(void *p);
/* True if devices can reach the memory of ws_session_host_alloc(): where it is shared with the
 * daemon. */
bool ws_session_maps_host(void);
/* The memory that @address lies in; its kind is NONE if it is unknown. Never talks to the
 * daemon. */
void ws_session_mem_find(uint64_t address, struct ws_mem_info *ret);

/* As ws_session_mem_alloc(), but other devices may use it only as far as ws_session_access()
 * says. */
ws_err ws_session_mem_alloc_own(int device, uint64_t bytes, uint64_t *ret_address);
/* As ws_session_mem_free(), without waiting: the memory is freed when the work that the client has
 * given so far is done. */
ws_err ws_session_mem_free_async(uint64_t address);
/* The program's own pages [p, p + bytes) become shared with the daemon at the same addresses; their
 * contents are kept. From then on they are pinned memory. NOT_SUPPORTED: their kind does not allow
 * it (mapped files, stacks, read-only memory); or the daemon is remote; or, without @must_map, what
 * other threads write beside [p, p + bytes) meanwhile could be lost (adopt.c). */
ws_err ws_session_host_adopt(void *p, uint64_t bytes, bool must_map);
/* The pages become ordinary memory again. INVALID_VALUE: they were not adopted. */
ws_err ws_session_host_disown(void *p);

/* ---- physical memory and addresses (vmm.c); sizes are multiples of WS_MEM_GRANULE_BYTES ---- */
ws_err ws_session_memory_create(int device, uint64_t bytes, uint64_t *ret_object);
ws_err ws_session_memory_release(uint64_t object);
/* A descriptor that stands for the object, to be closed by the caller; and an object from one.
 * NOT_SUPPORTED: remote daemon. */
ws_err ws_session_memory_export(uint64_t object, int *ret_fd);
ws_err ws_session_memory_import(int fd, uint64_t *ret_object, int *ret_device, uint64_t *ret_bytes);
/* @wanted: an address that the program would like; it gets it if nobody has it. */
ws_err ws_session_va_reserve(uint64_t bytes, uint64_t alignment, uint64_t wanted,
                             uint64_t *ret_address);
ws_err ws_session_va_free(uint64_t address);
ws_err ws_session_map(uint64_t address, uint64_t bytes, uint64_t object, uint64_t offset);
/* Waits for the client's work. */
ws_err ws_session_unmap(uint64_t address, uint64_t bytes);
/* @device may read, write [address, address + bytes): whole mappings, or an allocation of
 * ws_session_mem_alloc_own(). */
ws_err ws_session_access(uint64_t address, uint64_t bytes, int device, bool read, bool write);
/* Tells copies that [base, base + bytes) can be accessed now (or no longer). @device: whose memory
 * it is. */
ws_err ws_session_virtual_add(uint64_t base, uint64_t bytes, int device, bool readonly);
void ws_session_virtual_remove(uint64_t base);

/* ---- between clients of one daemon; handles have WS_SHARE_BYTES bytes ---- */
/* A handle of the allocation that holds @address. */
ws_err ws_session_memory_share(uint64_t address, uint8_t *ret_handle, uint64_t *ret_base);
/* Maps another client's allocation; all devices may use it. Closing waits for the client's work. */
ws_err ws_session_memory_open(const uint8_t *handle, uint64_t *ret_address, uint64_t *ret_bytes);
ws_err ws_session_memory_close(uint64_t address);
ws_err ws_session_event_share(uint64_t event, uint8_t *ret_handle);
ws_err ws_session_event_open(const uint8_t *handle, int device, uint64_t *ret_event);

/* Whether kernels of @device may use allocations of @peer. */
ws_err ws_session_peer_access(int device, int peer, bool on);

enum ws_copy_dir {
    WS_COPY_AUTO /* from the addresses: unified addressing */,
    WS_COPY_H2H,
    WS_COPY_H2D,
    WS_COPY_D2H,
    WS_COPY_D2D
};
/* @async false: CUDA's rules for the synchronous copies (host-visible effects are complete on
 * return; the legacy stream's order holds). @async true: pinned memory and device to device return
 * at once; pageable memory may be staged or waited for, as CUDA allows. Ranges are checked
 * (INVALID_VALUE). */
ws_err ws_session_copy(uint64_t stream, void *dst, const void *src, uint64_t bytes,
                       enum ws_copy_dir dir, bool async);
/* One side of a copy of a box: the address of its first byte; bytes from one row to the next, from
 * one slice to the next. */
struct ws_copy_side {
    uint64_t address;
    uint64_t pitch_bytes, slice_bytes;
};
struct ws_copy_box {
    uint64_t width_bytes, height, depth;
};
/* The same for rows in slices. Rows and slices may not overlap (INVALID_VALUE). One command where
 * the daemon knows both sides. */
ws_err ws_session_copy_box(uint64_t stream, const struct ws_copy_side *dst,
                           const struct ws_copy_side *src, const struct ws_copy_box *box,
                           enum ws_copy_dir dir, bool async);
ws_err ws_session_fill(uint64_t stream, uint64_t dst, uint32_t value, uint32_t value_bytes,
                       uint64_t width_bytes, uint64_t height, uint64_t pitch_bytes, bool async);

/* ---- streams; ids as in the protocol ---- */
static inline uint64_t ws_stream_legacy(int device)
{
    return WS_STREAM_DEFAULT_0 + (uint64_t)device;
}
/* The calling thread's default stream: a blocking stream, made at first use. */
uint64_t ws_stream_per_thread(int device);
ws_err ws_session_stream_create(int device, bool non_blocking, int priority, uint64_t *ret);
/* Whether the program has ever created a stream that is not ordered with the default one (a
 * non-blocking stream). */
bool ws_session_any_non_blocking(void);
/* A copy in the legacy stream @stream has returned before it was done: non-blocking streams that
 * are created from now on wait for it. */
ws_err ws_session_note_copy(uint64_t stream);
ws_err ws_session_stream_destroy(uint64_t stream);
ws_err ws_session_stream_info(uint64_t stream, int *ret_device, bool *ret_non_blocking,
                              int *ret_priority); /* INVALID_HANDLE */
ws_err ws_session_stream_sync(uint64_t stream);
ws_err ws_session_stream_query(uint64_t stream); /* OK or NOT_READY */
ws_err ws_session_stream_wait(uint64_t stream, uint64_t event);
ws_err ws_session_device_sync(int device);
/* Called after each successful wait for a stream, an event or a device, if not NULL. */
extern void (*_Atomic ws_session_synced)(void);

/* ---- what holds a stream ---- */
/* Puts the place of a host function into a stream: the stream stops there until
 * ws_session_gate_open(). @gate: a number of the caller's choice, used once. */
ws_err ws_session_gate_put(uint64_t stream, uint64_t gate);
ws_err ws_session_gate_open(uint64_t gate);
/* For the threads that serve host functions: they are never delayed by work that waits for one. */
void ws_session_serve_gates(void);
/* Waits until a stream has reached the place of a host function. Return: DISCONNECTED when no
 * stream will reach one any more. */
ws_err ws_session_gate_next(uint64_t *ret_gate);
/* The error that the context was lost with, or OK. */
ws_err ws_session_lost(void);
/* Writes a word when the stream gets there, or holds the stream until the word compares with @value
 * as CUstreamWaitValue_flags @compare says. @bytes: 4 or 8. */
ws_err ws_session_value(uint64_t stream, uint64_t address, uint64_t value, uint32_t bytes,
                        bool write, uint32_t compare);

/* ---- events ---- */
ws_err ws_session_event_create(int device, bool timing, uint64_t *ret);
ws_err ws_session_event_destroy(uint64_t event);
int ws_session_event_device(uint64_t event); /* -1: no such event */
ws_err ws_session_event_record(uint64_t event, uint64_t stream);
ws_err ws_session_event_sync(uint64_t event);
ws_err ws_session_event_query(uint64_t event);
/* Milliseconds of device time. INVALID_HANDLE: never recorded or without timing; NOT_READY. */
ws_err ws_session_event_elapsed(uint64_t start, uint64_t end, float *ret_ms);

/* ---- modules ---- */
struct ws_session_module;   /* an image loaded on one device */
struct ws_session_function; /* a kernel of it; lives as long as the module */
/* @image: fatbin, PTX text (NUL-terminated) or cubin; @bytes: 0 to find the length from the image
 * itself. @ret_log: NULL, or
 * gets a malloc'ed text when PTX is wrong. */
ws_err ws_session_module_load(int device, const void *image, uint64_t bytes, const char *name,
                              struct ws_session_module **ret, char **ret_log);
ws_err ws_session_module_unload(struct ws_session_module *m);
ws_err ws_session_module_function(struct ws_session_module *m, const char *name,
                                  struct ws_session_function **ret); /* NOT_FOUND */
/* The kernels of a module, from 0 on. */
ws_err ws_session_module_function_at(struct ws_session_module *m, size_t index,
                                     struct ws_session_function **ret); /* NOT_FOUND: no more */
ws_err ws_session_module_variable(struct ws_session_module *m, const char *name,
                                  uint64_t *ret_address, uint64_t *ret_bytes);
/* WS__VARIABLE__KIND__…; 0 if there is no such variable. */
int ws_session_module_variable_kind(struct ws_session_module *m, const char *name);
/* The module's managed variables, from 0 on. Return: false: no more. */
bool ws_session_module_managed(struct ws_session_module *m, size_t index, const char **ret_name,
                               uint64_t *ret_bytes);
/* Right after loading: moves them all to @addresses, memory of ws_session_host_alloc(). @keep: what
 * is there stays, else it gets the initial values. */
ws_err ws_session_module_place(struct ws_session_module *m, const uint64_t *addresses, bool keep);
bool ws_session_module_variable_managed(struct ws_session_module *m, const char *name);
const Ws__Kernel *ws_function_info(const struct ws_session_function *f); /* borrowed */
int ws_function_device(const struct ws_session_function *f);

/* ---- launch: asynchronous ---- */
struct ws_launch {
    const struct ws_session_function *function;
    uint64_t stream;
    uint32_t grid[3], block[3], shared_bytes, flags; /* flags: 1 cooperative */
    uint32_t cluster[3]; /* blocks of a cluster; 0: as the kernel says */
    bool non_portable;   /* clusters may be larger than all GPUs with clusters allow */
    /* one of: */
    void *const *args;     /* addresses of the arguments, as cudaLaunchKernel has them */
    const void *packed;    /* the packed parameter buffer (CU_LAUNCH_PARAM_BUFFER_POINTER), */
    uint32_t packed_bytes; /* its size */
};
/* Checks grid, block and shared size against the device (INVALID_CONFIGURATION) and the kernel
 * (INVALID_VALUE) at once, as CUDA does. */
ws_err ws_session_launch(const struct ws_launch *l);
/* Only the checks; the stream is not looked at. */
ws_err ws_session_launch_check(const struct ws_launch *l);
ws_err ws_session_occupancy(const struct ws_session_function *f, uint32_t block_threads,
                            uint32_t shared_bytes, uint32_t *ret_blocks);

/* Records that something is answered "not supported": the first time for each name with one line on
 * stderr. Counted for the daemon's status. */
void ws_session_unsupported(const char *name);

/* ---- kernels' output, limits ---- */
/* Writes what kernels have printed until now to stdout and stderr. The functions above that wait do
 * it by themselves. */
void ws_session_output(void);
enum ws_limit { WS_LIMIT_PRINTF_FIFO, WS_LIMIT_MALLOC_HEAP, WS_LIMIT_STACK };
ws_err ws_session_set_limit(int device, enum ws_limit what,
                            uint64_t value); /* OUT_OF_MEMORY: too much */

#endif
