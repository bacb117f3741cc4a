// SPDX-License-Identifier: Apache-2.0
/* frontend/stream/host.h - what is done on the host in stream order: functions of the program, and
 * what graphs need (copies from and to pageable memory, conditional nodes). Threads: any. */
#ifndef WS_FRONTEND_STREAM_HOST_H
#define WS_FRONTEND_STREAM_HOST_H

#include "frontend/stream/work.h"

/* A function or callback of the program (WS_WORK_HOST, WS_WORK_CALLBACK). */
ws_err ws_host_put(uint64_t stream, const struct ws_stream_work *w);
/* @run is called when @stream has got there, on a thread of ours where it must not wait for work of
 * the device other than its own copies; the stream goes on when somebody calls ws_host_open(@gate).
 * When the daemon is gone it is called with @gate 0. */
ws_err ws_host_put_internal(uint64_t stream, void (*run)(void *arg, uint64_t gate), void *arg);
void ws_host_open(uint64_t gate);
/* A stream of its own for copies made on that thread. 0: none to be had. */
uint64_t ws_host_stream(int device);

#endif
