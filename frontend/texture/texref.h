// SPDX-License-Identifier: Apache-2.0
/* frontend/texture/texref.h - texture and surface references: the variables of a module that
 * kernels read textures by. Threads: any. Functions return a CUDA code unless they say
 * otherwise. */
#ifndef WS_FRONTEND_TEXTURE_TEXREF_H
#define WS_FRONTEND_TEXTURE_TEXREF_H

#include "frontend/texture/texture.h"

struct ws_texref {
    struct ws_slot slot;
    struct ws_cuda_context *ctx;
    struct ws_mod *mod; /* NULL: made by cuTexRefCreate(), which no kernel can read */
    uint64_t variable;  /* of the module */
    uint64_t header;    /* 0: none yet */
    int device;
    bool surface, bound;
    struct cu_resource_desc resource;
    struct cu_texture_desc texture;
    int format;
    unsigned n_channels;
};

/* A reference that no module has. Return: NULL without memory. */
struct ws_texref *ws_texref_new(struct ws_cuda_context *c, bool surface);
/* The reference of a module's variable; the same one each time. INVALID_HANDLE, INVALID_VALUE,
 * NOT_FOUND, OUT_OF_MEMORY. */
int ws_texref_of_module(struct ws_cuda_context *c, bool surface, struct ws_mod *m, const char *name,
                        struct ws_texref **ret);
bool ws_texref_valid(const struct ws_texref *t);
void ws_texref_free(struct ws_texref *t);
/* Binds it to an array or to memory. If no header can be made of that, it stays as it was. */
int ws_texref_bind(struct ws_texref *t, const struct cu_resource_desc *r);
/* After a change of its fields: brings the header up to date. @strict: a state from which none can
 * be made is an error. */
int ws_texref_update(struct ws_texref *t, bool strict);

#endif
