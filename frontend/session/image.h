// SPDX-License-Identifier: Apache-2.0
/* frontend/session/image.h - the length of the module image at an address, when the caller does not
 * say it. Threads: any. */
#ifndef WS_FRONTEND_SESSION_IMAGE_H
#define WS_FRONTEND_SESSION_IMAGE_H

#include <stdbool.h>
#include <stdint.h>
#include "base/macros.h"

struct ws_image_place {
    uint64_t address, room_bytes; /* readable bytes from the image on */
    uint64_t file, file_offset;   /* what is mapped there (inode and device mixed), 0 if no file */
    bool constant;                /* a read-only mapping of a file */
};
/* Looks @image up in /proc/self/maps. Return: 0, or -EFAULT if it, or the @bytes after it, are not
 * readable. */
WS_MUST_CHECK int ws_image_place(const void *image, uint64_t bytes, struct ws_image_place *ret);
/* Length of a fatbin, ELF or PTX text (with its NUL) at @image, all inside @room_bytes. Return: 0,
 * or -EINVAL: not an image. */
WS_MUST_CHECK int ws_image_length(const void *image, uint64_t room_bytes, uint64_t *ret_bytes);

#endif
