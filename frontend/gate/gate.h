// SPDX-License-Identifier: Apache-2.0
/* frontend/gate/gate.h - what the files of the gate library share (libwattshare-gate.so;
 * doc/gate.md).
 *
 * The library has the driver's name and comes before it; every call goes on to the real driver.
 * Launches first ask leave of the daemon while a policy is in force, waits tell when what was
 * launched is done.
 *
 * Threads: any. Errors: never any of its own; whatever goes wrong here opens the gate. */
#ifndef WS_FRONTEND_GATE_GATE_H
#define WS_FRONTEND_GATE_GATE_H

#include <stdbool.h>
#include <stdint.h>
#include "base/macros.h"

typedef int (*ws_gate_fn)(void);

/* ---- real.c: the real driver ---- */
/* Its function; NULL: it has none of that name, or there is no driver. */
void *ws_gate_real(const char *name);
/* Says one line on stderr, once for each @once. */
void ws_gate_say(bool *once, const char *fmt, ...) WS_PRINTF(2, 3);

/* What we call in it ourselves. */
#define WS_GATE_OWN(X)                                                                             \
    X(ctx_current, "cuCtxGetCurrent", (void **ctx))                                                \
    X(ctx_set, "cuCtxSetCurrent", (void *ctx))                                                     \
    X(ctx_device, "cuCtxGetDevice", (int *device))                                                 \
    X(uuid, "cuDeviceGetUuid", (void *uuid, int device))                                           \
    X(primary_state, "cuDevicePrimaryCtxGetState", (int device, unsigned *flags, int *active))     \
                                                                                                   \
    X(event_create, "cuEventCreate", (void **event, unsigned flags))                               \
    X(event_destroy, "cuEventDestroy_v2", (void *event))                                           \
    X(event_record, "cuEventRecord", (void *event, void *stream))                                  \
    X(event_query, "cuEventQuery", (void *event))                                                  \
    X(event_elapsed, "cuEventElapsedTime", (float *ms, void *from, void *to))                      \
    X(capturing, "cuStreamIsCapturing", (void *stream, int *status))                               \
    X(capture_mode, "cuThreadExchangeStreamCaptureMode", (int *mode))
struct ws_gate_own {
#define X(member, name, args) int(*member) args;
    WS_GATE_OWN(X)
#undef X
    bool complete; /* nothing that measuring needs is missing */
};
const struct ws_gate_own *ws_gate_own(void);

/* ---- segment.c: asking and telling ---- */
enum ws_gate_state {
    WS_GATE_UNKNOWN, /* the daemon was not asked yet */
    WS_GATE_OPEN,    /* no policy, no daemon: launches just go */
    WS_GATE_POLICY,
};
extern _Atomic int ws_gate_state;

struct ws_gate_pass {            /* a launch under way */
    struct ws_gate_job *segment; /* NULL: not gated */
    struct ws_gate_stream *stream;
};
/* Waits until the launch on @stream may go. @per_thread: stream 0 is the thread's own. */
void ws_gate_enter_slowly(struct ws_gate_pass *p, void *stream, bool per_thread);
void ws_gate_leave_slowly(struct ws_gate_pass *p, bool launched);
/* The program has waited for something. */
void ws_gate_waited_slowly(void);
/* A call that may end contexts, before it. @context: that one ends, NULL with @sure: perhaps all
 * do. */
void ws_gate_ending(void *context, bool sure);
/* …after it: the contexts of device @device have gone, and our events with them. */
void ws_gate_ended(int device);

static inline void ws_gate_enter(struct ws_gate_pass *p, void *stream, bool per_thread)
{
    p->segment = NULL;
    if (WS_UNLIKELY(ws_gate_state != WS_GATE_OPEN))
        ws_gate_enter_slowly(p, stream, per_thread);
}

static inline void ws_gate_leave(struct ws_gate_pass *p, bool launched)
{
    if (WS_UNLIKELY(p->segment != NULL))
        ws_gate_leave_slowly(p, launched);
}

static inline void ws_gate_waited(void)
{
    if (WS_UNLIKELY(ws_gate_state == WS_GATE_POLICY))
        ws_gate_waited_slowly();
}

/* ---- daemon.c: the daemon ---- */
/* Connects, once; sets the state. */
void ws_gate_connect(void);
/* The daemon's number for the GPU with this uuid; -1: it drives no such GPU. */
int ws_gate_device(const uint8_t uuid[16]);
uint32_t ws_gate_lease_ms(void);
/* Return: false: no daemon any more. */
bool ws_gate_begin(uint32_t device, uint64_t serial);
void ws_gate_end(uint32_t device, uint64_t serial, uint64_t n_launches, uint64_t device_ns,
                 bool measured);
/* segment.c: the daemon says (WS_GATE_POLICY_ON, …); 0: it is gone. */
void ws_gate_told(uint64_t id);
void ws_gate_forked(void); /* in the child */

#endif
