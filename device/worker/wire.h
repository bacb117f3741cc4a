// SPDX-License-Identifier: Apache-2.0
/* device/worker/wire.h - what the daemon and the process that has a GPU say to each other.
 *
 * Both are of one build, which the first message checks; so messages are plain structures. They come in packets (SOCK_SEQPACKET): a head,
 * then a structure of the message's type, then what belongs to it. What is longer than a packet travels in a memory file.
 *
 * Channels: "ops" (submissions there; ends, prints and descriptors of memory back), "calls" (a call waits for its answer; notices have
 * none), and as many "loaders" as modules are being loaded at once, each handed over on "calls". One page of memory is shared. */
#ifndef WS_DEVICE_WORKER_WIRE_H
#define WS_DEVICE_WORKER_WIRE_H

#include <stdatomic.h>
#include "device/cuda/cuda.h"
#include "device/cuda/keep.h"

enum {
    WS_WIRE_FD_OPS = 3, /* descriptors that the worker is started with */
    WS_WIRE_FD_CALLS = 4,
    WS_WIRE_FD_PAGE = 5,
    WS_WIRE_INLINE_BYTES = 64 << 10, /* of a packet, without its head */
    WS_WIRE_BLOB_INLINE =
        16 << 10,          /* of a copy's bytes in a packet; more are in memory of their own */
    WS_WIRE_EXIT_LOST = 3, /* the context was lost, which was told */
};

enum ws_wire_type {
    WS_WIRE_HELLO = 1,
    /* ops, to the worker */
    WS_WIRE_SUBMIT,
    /* ops, from it */
    WS_WIRE_DONE,
    WS_WIRE_PRINT, /* id: the space; value: enum ws_output */
    WS_WIRE_MADE,  /* struct ws_cuda_kept, with its descriptor */
    WS_WIRE_GONE,
    /* calls: answered */
    WS_WIRE_MEMORY_NEW,
    WS_WIRE_MAP,
    WS_WIRE_REGION_NEW, /* with the region's descriptor */
    WS_WIRE_HOST_MAP,
    WS_WIRE_INSTANCE_NEW,
    WS_WIRE_OCCUPANCY,
    WS_WIRE_PREEMPT,
    WS_WIRE_CHARGE,
    WS_WIRE_ADOPT_MEMORY,
    WS_WIRE_ADOPT_GRANULE,
    WS_WIRE_ADOPT_END,
    WS_WIRE_ACCESS,
    WS_WIRE_PLACE, /* answer: granule, offset */
    WS_WIRE_LOAD,  /* on a loader; value: enum ws_wire_code */
    /* calls: notices */
    WS_WIRE_UNMAP,
    WS_WIRE_HOST_UNMAP,
    WS_WIRE_MEMORY_FREE,
    WS_WIRE_REGION_FREE,
    WS_WIRE_INSTANCE_FREE,
    WS_WIRE_MODULE_FREE,
    WS_WIRE_SPACE_GONE,
    WS_WIRE_CANCEL,
    WS_WIRE_LOADER, /* a loader's descriptor */
};

enum ws_wire_code {
    WS_WIRE_CODE_PTX,
    WS_WIRE_CODE_FENCED, /* ws_ptx_module.fenced */
    WS_WIRE_CODE_MACHINE
};

struct ws_wire_head {
    uint32_t type, in_memory; /* in_memory: the rest is in the memory file that came with it */
    uint64_t id, bytes;       /* bytes: of the rest */
    int64_t value;            /* the result of a call */
};

/* To the worker: what to open. */
struct ws_wire_config {
    char build[64];
    int32_t ordinal; /* -1: only count */
    uint32_t index, max_running, preemptible, unfenced;
    int32_t log_level;
    uint64_t spin_ns;
    char driver_library[512], nvml_library[512]; /* "": the usual ones */
};
/* Back: what it is; behind it, diagnostics. value: ws_device_open_cuda()'s. */
struct ws_wire_hello {
    char build[64];
    uint32_t count, keeps;
    struct ws_gpu_spec spec;
    uint8_t uuid[16];
    struct ws_cuda_capabilities capabilities; /* names: in @names */
    char names[WS_CUDA_MAX_CAPABILITIES][48];
    uint64_t now_ns, host_ns; /* the device's clock when the host's was that */
};

/* Shared. Numbers are the worker's to write, and nothing is believed of them but that they are numbers. */
struct ws_wire_page {
    _Atomic uint64_t taken; /* the last submission that it began to carry out */
    _Atomic uint32_t seq;   /* odd while telemetry is written */
    _Atomic uint32_t lost;  /* lost_text says why */
    struct ws_device_telemetry telemetry;
    char lost_text[192];
};

struct ws_wire_map {
    uint64_t space, memory, va, bytes, offset; /* HOST_MAP: memory is the region */
    uint32_t readers, writers;
};
struct ws_wire_memory { /* NEW, ADOPT; the answer to NEW has it, too */
    uint64_t bytes;
    struct ws_cuda_kept kept; /* id 0: none */
};
struct ws_wire_instance {
    uint64_t module, space;
    uint32_t write,
        n_vars; /* behind it: var_va[n_vars], which is the answer where the module's instances have variables of their own */
};
struct ws_wire_occupancy {
    uint32_t kernel, threads, shared_bytes;
    uint32_t blocks_per_sm, limit; /* answer; limit: ws_wire_limits[] */
};
struct ws_wire_kernel { /* behind it: why_bytes of text */
    uint32_t static_shared_bytes, local_bytes, n_regs, max_threads_per_block, const_bytes;
    uint32_t uses_heap, supported, why_bytes;
    int32_t unsupported_code;
};
struct ws_wire_loaded { /* behind it: kernels, then diagnostics */
    uint32_t n_kernels;
};

/* Where one side of a copy lies. */
enum ws_wire_side { WS_WIRE_VA, WS_WIRE_REGION, WS_WIRE_BLOB };
struct ws_wire_place {
    uint32_t side;
    uint64_t region, at; /* at: the address, or the offset in the region or blob */
    struct ws_pitches pitch;
};
struct ws_wire_submit {
    uint64_t space, ready_ns; /* space 0: none */
    uint32_t kind, blob_is_memory;
    struct {
        struct ws_wire_place dst, src;
        uint64_t bytes, height, depth, blob_bytes,
            blob_out; /* blob_out: of them, where what comes back begins */
    } copy;
    struct {
        uint64_t va, width_bytes, height, pitch_bytes;
        uint32_t value, value_bytes;
    } fill;
    struct {
        uint64_t instance;
        uint32_t kernel, grid[3], block[3], shared_bytes, flags, param_bytes, has_progress;
        struct ws_cuda_progress progress;
        struct ws_sm_set sms;
        uint64_t heap_va, heap_bytes, print_bytes; /* of the space; heap_va 0: it has none */
    } launch;
};
struct ws_wire_done { /* behind it: what a copy brought back, if it is short */
    uint32_t error, preempted, has_progress, in_loss, untouched;
    struct ws_cuda_progress progress;
    char text[192];
    uint64_t start_ns, end_ns, energy_uj, n_thread_insns;
    struct ws_op_counts counts;
};

extern const char *const ws_wire_limits[4];
/* Says of which build this is, and with which sizes. @ret: [64]. */
void ws_wire_build(char *ret);

/* Sends; @body and @more, either may be NULL, follow the head, whose bytes and in_memory are set here. @fd: borrowed, -1: none; with
 * more than WS_WIRE_INLINE_BYTES none is possible. Return: 0 or negative errno (-EAGAIN with MSG_DONTWAIT in @flags). */
struct ws_wire_part {
    const void *p;
    uint64_t bytes;
};
WS_MUST_CHECK int ws_wire_send(int socket, struct ws_wire_head head, struct ws_wire_part body,
                               struct ws_wire_part more, int fd, int flags);

/* A message that came; valid until ws_wire_done_with(). */
struct ws_wire_message {
    struct ws_wire_head head;
    const uint8_t *body; /* head.bytes of it */
    int fd;              /* that came with it, to be taken (set to -1) or closed; -1: none */
    void *map;
    uint64_t map_bytes;
    _Alignas(16) uint8_t packet[sizeof(struct ws_wire_head) + WS_WIRE_INLINE_BYTES];
};
/* Return: 0; -ECONNRESET at the end of the connection; -EPROTO (no message of ours); other negative errno. */
WS_MUST_CHECK int ws_wire_recv(int socket, struct ws_wire_message *m);
void ws_wire_done_with(struct ws_wire_message *m);
/* The body begins with @bytes: copies them. Return: false if it is shorter. */
bool ws_wire_take(const struct ws_wire_message *m, void *to, size_t bytes);

/* Diagnostics as bytes, and back: what can't be read is left. */
void ws_wire_put_diags(FILE *f, const struct ws_diags *d);
void ws_wire_get_diags(const uint8_t *p, uint64_t bytes, struct ws_diags *d);

#endif
