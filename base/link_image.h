// SPDX-License-Identifier: Apache-2.0
/* base/link_image.h - the container for images that are to be linked into one module: what
 * cuLinkComplete() hands out, and what relocatable device code (nvcc -rdc=true) is sent to the
 * daemon as. Written by the frontend, read by ptx/images/image.c; whoever reads one checks every
 * field.
 *
 * From the start: the header, n_parts parts, names, then the parts' bytes, each at a multiple of 8.
 * All numbers little-endian; offsets are from the start of the container. A part is PTX text, a
 * fatbin or a cubin. */
#ifndef WS_BASE_LINK_IMAGE_H
#define WS_BASE_LINK_IMAGE_H

#include <stdint.h>

#define WS_LINK_IMAGE_MAGIC                                                                        \
    UINT32_C(0x4c73770a) /* "\nwsL": neither a fatbin nor ELF nor PTX text starts so */
enum { WS_LINK_IMAGE_VERSION = 1, WS_LINK_IMAGE_MAX_PARTS = 4096, WS_LINK_IMAGE_ALIGN = 8 };
enum { WS_LINK_IMAGE_MAX_NAME = 4096 }; /* bytes of a part's name, with its NUL */
enum {
    WS_LINK_IMAGE_STRICT =
        1u << 0, /* what stays unresolved is an error, as the linker of cuLinkComplete() says it */
};

struct ws_link_image {
    uint32_t magic;
    uint16_t version, flags;
    uint32_t n_parts;
    uint32_t max_regs; /* of a thread, in kernels that do not say so themselves; 0: no limit */
    uint64_t bytes;    /* of all */
};
struct ws_link_part {
    uint64_t offset, bytes;
    uint64_t name; /* offset of a text with a NUL: for messages */
};

#endif
