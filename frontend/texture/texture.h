// SPDX-License-Identifier: Apache-2.0
/* frontend/texture/texture.h - texture and surface objects, and headers (base/texture.h) in device
 * memory. Threads: any. Functions return CUDA codes. */
#ifndef WS_FRONTEND_TEXTURE_TEXTURE_H
#define WS_FRONTEND_TEXTURE_TEXTURE_H

#include "frontend/texture/array.h"
#include "frontend/module/module.h"

/* ---- headers: a place on a device, and what is written there ---- */
/* Checks the descriptions against CUDA's rules and writes the header that they mean into *ret.
 * @view: NULL or of an array. INVALID_VALUE, INVALID_FILTER_SETTING, INVALID_CHANNEL_DESCRIPTOR,
 * INVALID_HANDLE (not an array), NOT_SUPPORTED. */
int ws_texture_describe(int device, const struct cu_resource_desc *r,
                        const struct cu_texture_desc *t, const struct cuda_view_desc *view,
                        struct ws_texture *ret);
int ws_surface_describe(int device, const struct cu_resource_desc *r, struct ws_texture *ret);
/* A place for a header on @device; its address is the handle. One that is given back is used again
 * last, so that kernels in flight still find what they were given. */
int ws_header_new(int device, uint64_t *ret_address);
void ws_header_free(int device, uint64_t address);
/* Done on return, for all streams, whatever they are busy with. */
int ws_header_write(int device, uint64_t address, const void *data, size_t bytes);
/* All places are gone. */
void ws_header_reset_device(int device);

/* ---- objects ---- */
struct ws_texobj {
    uint64_t address; /* the handle */
    struct ws_cuda_context *ctx;
    int device;
    bool surface, has_view;
    struct cu_resource_desc resource;
    struct cu_texture_desc texture;
    struct cuda_view_desc view;
};
int ws_texobj_new(struct ws_cuda_context *c, bool surface, const struct cu_resource_desc *r,
                  const struct cu_texture_desc *t, const struct cuda_view_desc *view,
                  uint64_t *ret);
/* INVALID_VALUE: no such object. */
int ws_texobj_free(uint64_t address, bool surface);
/* A copy. INVALID_VALUE: no such object. */
int ws_texobj_get(uint64_t address, bool surface, struct ws_texobj *ret);

/* ---- references: variables of a module ---- */
struct ws_texref;
void ws_texref_drop_module(const struct ws_mod *m);

/* As ws_array_drop(), which calls it. */
void ws_texture_drop(const struct ws_cuda_context *c, int device, bool gone);
void ws_texref_drop(const struct ws_cuda_context *c, int device);

#endif
