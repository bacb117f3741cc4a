// SPDX-License-Identifier: Apache-2.0
/* frontend/session/link_image.h - writes containers of images to be linked (base/link_image.h).
 * Threads: any. */
#ifndef WS_FRONTEND_SESSION_LINK_IMAGE_H
#define WS_FRONTEND_SESSION_LINK_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/macros.h"

struct ws_link_input {
    const void *data; /* PTX text, fatbin, cubin */
    uint64_t bytes;
    const char *name; /* NULL: none */
};
/* *ret: malloc'ed. @flags: WS_LINK_IMAGE_STRICT. @max_regs: of a thread; 0: no limit. Return: 0,
 * -ENOMEM, -E2BIG: too many inputs. */
WS_MUST_CHECK int ws_link_image_make(const struct ws_link_input *v, size_t n, unsigned flags,
                                     uint32_t max_regs, void **ret, uint64_t *ret_bytes);
/* Whether a container starts at @p; its length, which lies inside @room_bytes. */
bool ws_link_image_is(const void *p, uint64_t room_bytes, uint64_t *ret_bytes);
/* The parts of a container of @bytes, one after the other. Return: false: no more, or damaged. */
bool ws_link_image_part(const void *image, uint64_t bytes, size_t i, struct ws_link_input *ret);

#endif
