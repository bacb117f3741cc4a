// SPDX-License-Identifier: Apache-2.0
#include "frontend/session/link_image.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/link_image.h"

static const char *name_of(const struct ws_link_input *v)
{
    return v->name ? v->name : "";
}

/* Of its name in the container, with the NUL: a longer one is cut off. */
static size_t name_bytes(const struct ws_link_input *v)
{
    return strnlen(name_of(v), WS_LINK_IMAGE_MAX_NAME - 1) + 1;
}

int ws_link_image_make(const struct ws_link_input *v, size_t n, unsigned flags, uint32_t max_regs,
                       void **ret, uint64_t *ret_bytes)
{
    if (n > WS_LINK_IMAGE_MAX_PARTS)
        return -E2BIG;
    uint64_t names = sizeof(struct ws_link_image) + n * sizeof(struct ws_link_part), at = names;
    for (size_t i = 0; i < n; i++)
        at += name_bytes(&v[i]);
    for (size_t i = 0; i < n; i++)
        at = WS_ALIGN_UP(at, (uint64_t)WS_LINK_IMAGE_ALIGN) + v[i].bytes;
    uint8_t *image = ws_alloc(at);
    if (!image)
        return -ENOMEM;
    struct ws_link_image h = {.magic = WS_LINK_IMAGE_MAGIC,
                              .version = WS_LINK_IMAGE_VERSION,
                              .flags = (uint16_t)flags,
                              .n_parts = (uint32_t)n,
                              .max_regs = max_regs,
                              .bytes = at};
    memcpy(image, &h, sizeof(h));
    at = names;
    for (size_t i = 0; i < n; i++) {
        memcpy(image + at, name_of(&v[i]), name_bytes(&v[i]) - 1); /* the NUL is there */
        at += name_bytes(&v[i]);
    }
    for (size_t i = 0; i < n; i++) {
        at = WS_ALIGN_UP(at, (uint64_t)WS_LINK_IMAGE_ALIGN);
        struct ws_link_part p = {.offset = at, .bytes = v[i].bytes, .name = names};
        names += name_bytes(&v[i]);
        memcpy(image + sizeof(h) + i * sizeof(p), &p, sizeof(p));
        memcpy(image + at, v[i].data, v[i].bytes);
        at += v[i].bytes;
    }
    *ret = image;
    *ret_bytes = at;
    return 0;
}

bool ws_link_image_is(const void *p, uint64_t room_bytes, uint64_t *ret_bytes)
{
    struct ws_link_image h;
    const uint32_t magic = WS_LINK_IMAGE_MAGIC;
    if (room_bytes < sizeof(h))
        return false;
    for (size_t i = 0; i < sizeof(magic); i++) /* text may be shorter than a header */
        if (((const uint8_t *)p)[i] != ((const uint8_t *)&magic)[i])
            return false;
    memcpy(&h, p, sizeof(h));
    *ret_bytes = h.bytes;
    return h.magic == WS_LINK_IMAGE_MAGIC && h.bytes >= sizeof(h) && h.bytes <= room_bytes;
}

bool ws_link_image_part(const void *image, uint64_t bytes, size_t i, struct ws_link_input *ret)
{
    const uint8_t *d = image;
    struct ws_link_image h;
    struct ws_link_part p;
    if (bytes < sizeof(h))
        return false;
    memcpy(&h, d, sizeof(h));
    if (i >= h.n_parts || h.n_parts > (bytes - sizeof(h)) / sizeof(p))
        return false;
    memcpy(&p, d + sizeof(h) + i * sizeof(p), sizeof(p));
    if (p.offset > bytes || p.bytes > bytes - p.offset || p.name >= bytes ||
        !memchr(d + p.name, 0, bytes - p.name))
        return false;
    *ret = (struct ws_link_input){d + p.offset, p.bytes, (const char *)d + p.name};
    return true;
}
