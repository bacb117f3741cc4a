// SPDX-License-Identifier: Apache-2.0
#include "backend/client/buffer.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

struct plain {
    struct ws_buffer base;
    _Alignas(16) uint8_t bytes[];
};

struct ws_buffer *ws_buffer_ref(struct ws_buffer *b)
{
    if (b)
        b->n_refs++;
    return b;
}

void ws_buffer_unref(struct ws_buffer *b)
{
    if (b && !--b->n_refs)
        b->end(b);
}

static void plain_end(struct ws_buffer *b)
{
    free(WS_CONTAINER_OF(b, struct plain, base));
}

struct ws_buffer *ws_buffer_new(size_t n, uint8_t **ret_data)
{
    struct plain *p = n > SIZE_MAX - sizeof(*p) ? NULL : malloc(sizeof(*p) + n);
    if (!p)
        return NULL;
    p->base = (struct ws_buffer){.n_refs = 1, .end = plain_end};
    *ret_data = p->bytes;
    return &p->base;
}

int ws_frame_keep(struct ws_frame *f)
{
    uint8_t *data;
    if (ws_buffer_ref(f->buffer))
        return 0;
    f->buffer = ws_buffer_new(f->n, &data);
    if (!f->buffer)
        return ws_raise(-ENOMEM);
    f->data = memcpy(data, f->data, f->n);
    return 0;
}
