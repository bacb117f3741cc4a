/* SPDX-License-Identifier: Apache-2.0 */
/* backend/client/buffer.h - bytes of a message that outlive the call they were handed in by, with
 * a count of those who hold them. Threads: the loop. */
#ifndef WS_BACKEND_CLIENT_BUFFER_H
#define WS_BACKEND_CLIENT_BUFFER_H

#include <stddef.h>
#include <stdint.h>
#include "base/macros.h"

/* Whoever makes one embeds it, and @end frees the whole when nobody holds it any more. */
struct ws_buffer {
    uint32_t n_refs;
    void (*end)(struct ws_buffer *b);
};
/* One frame of a message. */
struct ws_frame {
    const uint8_t *data;
    size_t n;
    struct ws_buffer *buffer; /* owns the bytes; NULL: they are borrowed until the callee returns */
};

/* Return: the same. NULL ok, here and below. */
struct ws_buffer *ws_buffer_ref(struct ws_buffer *b);
void ws_buffer_unref(struct ws_buffer *b);
/* A buffer of @n bytes, which *ret_data points at, with one reference; NULL: out of memory. */
WS_MUST_CHECK struct ws_buffer *ws_buffer_new(size_t n, uint8_t **ret_data);

/* Makes a borrowed frame one that can be kept: takes a reference to its buffer, or moves its bytes
 * to a new buffer. The caller gives ->buffer back with ws_buffer_unref(). Return: 0 or -ENOMEM,
 * with nothing changed. */
WS_MUST_CHECK int ws_frame_keep(struct ws_frame *f);

#endif
