// SPDX-License-Identifier: Apache-2.0
/* frontend/stream/work.h - a piece of work that is put on a stream: what all façades call to
 * enqueue it. While no stream is being captured this is the session's call and one test of a flag;
 * while one is, the work may become a node of a graph (graph/capture.c). A node of a graph holds
 * the same struct. Threads: any. Functions return a ws_err; codes that only CUDA has are wrapped in
 * it (WS_ERR_CUDA). */
#ifndef WS_FRONTEND_STREAM_WORK_H
#define WS_FRONTEND_STREAM_WORK_H

#include <stdatomic.h>
#include "frontend/memory/copy.h"
#include "frontend/errors.h"

enum ws_work_kind {
    WS_WORK_EMPTY,
    WS_WORK_LAUNCH,
    WS_WORK_COPY,
    WS_WORK_FILL,
    WS_WORK_RECORD,
    WS_WORK_WAIT,
    WS_WORK_HOST,     /* a function of the program */
    WS_WORK_CALLBACK, /* …of cudaStreamAddCallback */
    WS_WORK_VALUES,   /* waits for and writes of words in memory */
    WS_WORK_ALLOC,
    WS_WORK_FREE,
    WS_WORK_CHILD, /* a graph; never issued by itself */
    WS_WORK_CONDITIONAL,
};
struct ws_value_op { /* CUstreamBatchMemOpParams, as far as it matters */
    uint64_t address, value;
    uint32_t flags; /* of a wait: WS_VALUE_… */
    uint8_t bytes;  /* 4 or 8; 0: a memory barrier, nothing to do here */
    bool is_wait;
};
enum { WS_VALUE_GEQ, WS_VALUE_EQ, WS_VALUE_AND, WS_VALUE_NOR };

struct ws_fn;
struct ws_graph;
struct ws_stream_work {
    enum ws_work_kind kind;
    union {
        struct {
            struct ws_launch l; /* stream: unused */
            struct ws_fn *fn;
        } launch;
        struct {
            struct ws_copy_side dst, src;
            struct ws_copy_box box;
            enum ws_copy_dir dir;
        } copy;
        struct {
            struct ws_copy_side dst;
            uint32_t value, value_bytes;
            struct ws_copy_box box;
        } fill;
        struct {
            uint64_t event;
            bool external;
        } event; /* RECORD, WAIT */
        struct {
            void (*fn)(void *);
            void (*callback)(void *stream, int code, void *data);
            void *data, *stream; /* stream: the program's handle, for the callback */
            bool runtime;        /* the callback wants the runtime's codes */
        } host;
        struct {
            const struct ws_value_op *ops; /* borrowed; a node has its own */
            size_t n;
        } values;
        struct {
            uint64_t address, bytes;
            int device;
            uint64_t *ret_address;    /* ALLOC */
        } memory;                     /* ALLOC, FREE */
        const struct ws_graph *graph; /* CHILD: borrowed, to be cloned */
    };
};

/* How many streams are being captured; how many events remember that they were recorded in a
 * capture. */
extern _Atomic unsigned ws_work_watch, ws_work_marked;
static inline bool ws_work_watched(void)
{
    return WS_UNLIKELY(atomic_load_explicit(&ws_work_watch, memory_order_relaxed) != 0);
}

static inline bool ws_work_events_watched(void)
{
    return ws_work_watched() ||
           WS_UNLIKELY(atomic_load_explicit(&ws_work_marked, memory_order_relaxed) != 0);
}

/* Issues @w to the session, or adds it to the graph that @stream is captured into. @async: as
 * ws_session_copy(). */
ws_err ws_work_put(uint64_t stream, const struct ws_stream_work *w, bool async);
/* As ws_work_put(), but what is not captured is left to the caller. @ret_taken: out; whether it
 * was. */
ws_err ws_work_capture(uint64_t stream, const struct ws_stream_work *w, bool async,
                       bool *ret_taken);
/* Issues it whatever is being captured. */
ws_err ws_work_issue(uint64_t stream, const struct ws_stream_work *w, bool async);

/* cudaFree() and the like of an address that may be a graph's. Return: a CUDA code, or -1: it is
 * not a graph's. */
int ws_block_free_outside(uint64_t address);
/* To be asked by calls that may wait for, or change, more than they are told of (allocation,
 * freeing, synchronisation, queries): not allowed during captures of other than relaxed mode.
 * Return: CUDA_OK or CUDA's code; then those captures are lost. */
int ws_work_unsafe_slow(void);
static inline int ws_work_unsafe(void)
{
    return ws_work_watched() ? ws_work_unsafe_slow() : CUDA_OK;
}
/* To be asked before waiting for or querying a stream or an event by itself. Return: as above. */
int ws_work_wait_stream_slow(uint64_t stream);
int ws_work_wait_event_slow(uint64_t event);
static inline int ws_work_wait_stream(uint64_t stream)
{
    return ws_work_watched() ? ws_work_wait_stream_slow(stream) : CUDA_OK;
}
static inline int ws_work_wait_event(uint64_t event)
{
    return ws_work_events_watched() ? ws_work_wait_event_slow(event) : CUDA_OK;
}
int ws_work_wait_device_slow(int device);
static inline int ws_work_wait_device(int device)
{
    return ws_work_watched() ? ws_work_wait_device_slow(device) : CUDA_OK;
}
/* Before a stream or an event is destroyed. */
void ws_work_forget_stream_slow(uint64_t stream);
void ws_work_forget_event_slow(uint64_t event);
/* A device has been reset: captures on it are over. */
void ws_work_forget_device(int device);
static inline void ws_work_forget_stream(uint64_t stream)
{
    if (ws_work_watched())
        ws_work_forget_stream_slow(stream);
}
static inline void ws_work_forget_event(uint64_t event)
{
    if (ws_work_events_watched())
        ws_work_forget_event_slow(event);
}
/* True if @stream is being captured: for calls that make memory or the like in stream order. */
bool ws_work_capturing_slow(uint64_t stream);
static inline bool ws_work_capturing(uint64_t stream)
{
    return ws_work_watched() && ws_work_capturing_slow(stream);
}

/* ---- by kind: as the session's functions, or those of copy.h ---- */
static inline ws_err ws_work_launch(const struct ws_launch *l, struct ws_fn *fn)
{
    if (!ws_work_watched())
        return ws_session_launch(l);
    return ws_work_put(
        l->stream, &(struct ws_stream_work){.kind = WS_WORK_LAUNCH, .launch = {.l = *l, .fn = fn}},
        true);
}
static inline ws_err ws_work_copy(uint64_t stream, void *dst, const void *src, uint64_t bytes,
                                  enum ws_copy_dir dir, bool async)
{
    if (!ws_work_watched())
        return ws_session_copy(stream, dst, src, bytes, dir, async);
    return ws_work_put(stream,
                       &(struct ws_stream_work){.kind = WS_WORK_COPY,
                                                .copy = {.dst = {(uintptr_t)dst, bytes, bytes},
                                                         .src = {(uintptr_t)src, bytes, bytes},
                                                         .box = {bytes, 1, 1},
                                                         .dir = dir}},
                       async);
}
static inline ws_err ws_work_copy_box(uint64_t stream, const struct ws_copy_side *dst,
                                      const struct ws_copy_side *src, const struct ws_copy_box *box,
                                      enum ws_copy_dir dir, bool async)
{
    if (!ws_work_watched())
        return ws_copy_box(stream, dst, src, box, dir, async);
    return ws_work_put(
        stream,
        &(struct ws_stream_work){.kind = WS_WORK_COPY,
                                 .copy = {.dst = *dst, .src = *src, .box = *box, .dir = dir}},
        async);
}
static inline ws_err ws_work_fill_box(uint64_t stream, const struct ws_copy_side *dst,
                                      uint32_t value, uint32_t value_bytes,
                                      const struct ws_copy_box *box, bool async)
{
    if (!ws_work_watched())
        return ws_fill_box(stream, dst, value, value_bytes, box, async);
    return ws_work_put(
        stream,
        &(struct ws_stream_work){
            .kind = WS_WORK_FILL,
            .fill = {.dst = *dst, .value = value, .value_bytes = value_bytes, .box = *box}},
        async);
}
static inline ws_err ws_work_fill(uint64_t stream, uint64_t dst, uint32_t value,
                                  uint32_t value_bytes, uint64_t width_bytes, uint64_t height,
                                  uint64_t pitch_bytes, bool async)
{
    struct ws_copy_side d = {dst, pitch_bytes, 0};
    struct ws_copy_box b = {width_bytes, height, 1};
    return ws_work_fill_box(stream, &d, value, value_bytes, &b, async);
}
/* @external: a node of its own in a capture, not a dependency of the capture. */
static inline ws_err ws_work_record(uint64_t event, uint64_t stream, bool external)
{
    if (!ws_work_events_watched() && !external)
        return ws_session_event_record(event, stream);
    return ws_work_put(
        stream, &(struct ws_stream_work){.kind = WS_WORK_RECORD, .event = {event, external}}, true);
}
static inline ws_err ws_work_wait(uint64_t stream, uint64_t event, bool external)
{
    if (!ws_work_events_watched() && !external)
        return ws_session_stream_wait(stream, event);
    return ws_work_put(
        stream, &(struct ws_stream_work){.kind = WS_WORK_WAIT, .event = {event, external}}, true);
}

#endif
