// SPDX-License-Identifier: Apache-2.0
/* frontend/channel/zmq_load.h - loads libzmq at the first CUDA call: linking it would cost every
 * preloaded program milliseconds. Threads: any. */
#ifndef WS_FRONTEND_CHANNEL_ZMQ_LOAD_H
#define WS_FRONTEND_CHANNEL_ZMQ_LOAD_H

#include <zmq.h> /* types and constants only; no function of it is linked */

#define WS_ZMQ_FUNCTIONS(X)                                                                        \
    X(ctx_new)                                                                                     \
    X(ctx_term)                                                                                    \
    X(ctx_set)                                                                                     \
    X(socket)                                                                                      \
    X(close)                                                                                       \
    X(connect)                                                                                     \
    X(setsockopt)                                                                                  \
    X(getsockopt)                                                                                  \
    X(send)                                                                                        \
    X(msg_init)                                                                                    \
    X(msg_recv)                                                                                    \
    X(msg_data)                                                                                    \
    X(msg_size)                                                                                    \
    X(msg_close)                                                                                   \
    X(strerror)                                                                                    \
    X(socket_monitor)

struct ws_zmq {
#define WS_ZMQ_MEMBER(f) __typeof__(&zmq_##f) f;
    WS_ZMQ_FUNCTIONS(WS_ZMQ_MEMBER)
#undef WS_ZMQ_MEMBER
};

/* NULL if libzmq.so.5 can't be had; @ret_why then says why (borrowed). Loaded once for the process,
 * never unloaded. */
const struct ws_zmq *ws_zmq_load(const char **ret_why);

#endif
