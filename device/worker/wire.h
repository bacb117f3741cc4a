// SPDX-License-Identifier: Apache-2.0
/* device/worker/wire.h - the messages between the daemon and the process that has a GPU. calls.def
 * lists them.
 *
 * Both programs are of one build, which the first message checks; so messages are plain structures.
 * Each comes in a packet (SOCK_SEQPACKET): a head, then the structure of the message's type, then
 * further bytes. What is longer than a packet travels in a memory file.
 *
 * There are three kinds of connections. "ops" carries submissions to the worker, and back the ends
 * of operations, what kernels print, and descriptors of memory. "calls" carries calls, which wait
 * for their answers, and notices. A "loader" carries modules; there are as many as modules are
 * being loaded at once, and each is handed over on "calls". One page of memory is shared. */
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
    WS_WIRE_EXIT_LOST = 3, /* exit status: the context was lost, and the daemon was told */
    WS_WIRE_TEXT = 256,    /* of a reason, with its 0 */
    WS_WIRE_PATH = 512,    /* of a library's path, with its 0 */
    WS_WIRE_BUILD = 64,    /* of the build's name, with its 0 */
};

enum ws_wire_type {
    _WS_WIRE_NONE,
#define CALL(NAME, name, thread, out, back, end) WS_WIRE_##NAME,
#define NOTICE(NAME, name, thread, out, end)     WS_WIRE_##NAME,
#include "device/worker/calls.def"
#undef CALL
#undef NOTICE
    _WS_WIRE_TYPES
};

/* What calls.def says of a message; its head explains both enumerations. */
enum ws_wire_thread {
    WS_WIRE_BY_START = 1,
    WS_WIRE_BY_OPS,
    WS_WIRE_BY_CALLS,
    WS_WIRE_BY_LOADER,
    WS_WIRE_BY_READER
};
enum ws_wire_end { WS_WIRE_ENDS, WS_WIRE_AGAIN, WS_WIRE_REPLAYED, WS_WIRE_STARTING };
struct ws_wire_row {
    const char *name;
    enum ws_wire_thread by;
    enum ws_wire_end end;
    bool answered;
    uint32_t out_bytes, back_bytes; /* of the structures */
};
extern const struct ws_wire_row ws_wire_rows[_WS_WIRE_TYPES];

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
    char build[WS_WIRE_BUILD];
    int32_t ordinal; /* -1: only count */
    uint32_t index, max_running, preemptible, unfenced;
    int32_t log_level;
    uint64_t spin_ns, host_va, host_bytes;
    char driver_library[WS_WIRE_PATH], nvml_library[WS_WIRE_PATH]; /* "": the usual ones */
};
/* From the worker: what it has opened. */
struct ws_wire_hello {
    char build[WS_WIRE_BUILD];
    uint32_t count, keeps;
    uint32_t has_host_va; /* the addresses that it was to keep free are, and it can map there */
    struct ws_gpu_spec spec;
    uint64_t meter_update_ns; /* of the device */
    uint8_t uuid[16];
    struct ws_cuda_capabilities capabilities; /* names: in @names */
    char names[WS_CUDA_MAX_CAPABILITIES][48];
    uint64_t now_ns, host_ns; /* the device's clock, and the host's at the same time */
};

/* The shared page. The worker writes its numbers; the daemon relies on nothing but that they are
 * numbers. */
struct ws_wire_page {
    _Atomic uint64_t taken;      /* the last submission that it began to carry out */
    _Atomic uint32_t seq;        /* odd while telemetry is written */
    _Atomic uint32_t lost;       /* lost_text says why */
    _Atomic uint64_t free_bytes; /* of the GPU's memory; 0: not known */
    /* From when a preemption was asked for until the GPU was asked to stop the launch: the last
     * one, and the longest that there was */
    _Atomic uint64_t preempt_ns, longest_preempt_ns;
    struct ws_device_telemetry telemetry;
    char lost_text[WS_WIRE_TEXT];
};

struct ws_wire_map {
    uint64_t space, memory, va, bytes, offset; /* HOST_MAP: memory is the region */
    uint32_t readers, writers;
};
struct ws_wire_memory {
    uint64_t bytes;
    struct ws_cuda_kept kept; /* id 0: none */
};
/* Behind it: var_va[n_vars]; the answer has them where the module's instances have variables of
 * their own. */
struct ws_wire_instance {
    uint64_t module, space;
    uint32_t write, n_vars; /* enum ws_instance_write */
};
struct ws_wire_occupancy {
    uint32_t kernel, threads, shared_bytes;
    uint32_t blocks_per_sm, limit; /* answer; limit: ws_wire_limits[] */
};
/* Behind it: why_bytes of text. */
struct ws_wire_kernel {
    uint32_t static_shared_bytes, local_bytes, n_regs, max_threads_per_block, const_bytes;
    uint32_t uses_heap, prints, supported, why_bytes;
    int32_t unsupported_code;
};
/* Behind it: kernels, then diagnostics. */
struct ws_wire_loaded {
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
        uint64_t bytes, height, depth;
        uint64_t blob_bytes, blob_out; /* the first blob_out bytes go out, the rest comes back */
    } copy;
    struct {
        uint64_t va, width_bytes, height, pitch_bytes;
        uint32_t value, value_bytes;
    } fill;
    struct {
        uint64_t instance;
        uint32_t kernel, grid[3], block[3], cluster[3], shared_bytes, flags, param_bytes,
            has_progress;
        struct ws_cuda_progress progress;
        struct ws_sm_set sms;
        uint64_t heap_va, heap_bytes, print_bytes, stack_bytes; /* of the space; heap_va 0: none */
    } launch;
};
struct ws_wire_done {
    uint32_t error, preempted, has_progress, in_loss, untouched;
    struct ws_cuda_progress progress;
    char text[WS_WIRE_TEXT];
    uint64_t start_ns, end_ns, energy_uj, n_thread_insns;
    struct ws_op_counts counts;
};

extern const char *const ws_wire_limits[4];
/* The name of this build, which the sizes of its messages are part of. */
void ws_wire_build(char ret[WS_WIRE_BUILD]);
/* The name of a type of message, for logs; "unknown" if there is no such type. */
const char *ws_wire_name(uint32_t type);

static inline struct ws_wire_head ws_wire_head_of(enum ws_wire_type type, uint64_t id)
{
    return (struct ws_wire_head){.type = type, .id = id};
}

struct ws_wire_part {
    const void *p;
    uint64_t bytes;
};
#define WS_PART(x)   ((struct ws_wire_part){&(x), sizeof(x)})
#define WS_PART_NONE ((struct ws_wire_part){NULL, 0})
/* Sends a message. @body and @more follow the head, whose bytes and in_memory are set here; either
 * may be WS_PART_NONE. @fd: borrowed; -1: none. A message of more than WS_WIRE_INLINE_BYTES can
 * carry none. Return: 0 or negative errno (-EAGAIN with MSG_DONTWAIT in @flags). */
WS_MUST_CHECK int ws_wire_send(int socket, struct ws_wire_head head, struct ws_wire_part body,
                               struct ws_wire_part more, int fd, int flags);

/* A message that came; valid until ws_wire_done_with(). */
struct ws_wire_message {
    struct ws_wire_head head;
    const uint8_t *body; /* head.bytes of it */
    int fd;              /* came with it; whoever keeps it sets this to -1; -1: none */
    void *map;
    uint64_t map_bytes;
    _Alignas(16) uint8_t packet[sizeof(struct ws_wire_head) + WS_WIRE_INLINE_BYTES];
};
/* Return: 0; -ECONNRESET at the end of the connection; -EPROTO (what came is no message); other
 * negative errno. */
WS_MUST_CHECK int ws_wire_recv(int socket, struct ws_wire_message *m);
void ws_wire_done_with(struct ws_wire_message *m);
/* Whether the message is one that thread @by serves, and has the whole structure of its type. */
bool ws_wire_is_for(const struct ws_wire_message *m, enum ws_wire_thread by);
/* Copies the first @bytes of the body. Return: false if it is shorter. */
bool ws_wire_take(const struct ws_wire_message *m, void *to, size_t bytes);

/* Writes diagnostics as bytes, and reads them. Reading stops where the bytes are damaged. */
void ws_wire_put_diags(FILE *f, const struct ws_diags *d);
void ws_wire_get_diags(const uint8_t *p, uint64_t bytes, struct ws_diags *d);

#endif
