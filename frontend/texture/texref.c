// SPDX-License-Identifier: Apache-2.0
/* Texture and surface references (deprecated in CUDA). A module's .texref or .surfref is a variable
 * of eight bytes that holds the address of a header. What the program sets is collected, and the
 * header is written anew at every change.
 *
 * CUDA takes a reference's state at each launch, so launches under way must still see the old one:
 * a change waits for the device. A state from which no header can be made (a filter set before the
 * format that allows it) leaves the reference unbound until another call completes it; the calls
 * that bind memory report what is wrong. */
#include "frontend/texture/texref.h"

#include <pthread.h>
#include <string.h>

#include "frontend/errors.h"

static struct ws_slab refs = WS_SLAB(struct ws_texref);
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* one reference for each variable */

/* ---- headers ---- */

static int write_variable(struct ws_texref *t, const struct ws_texture *header)
{
    if (!t->variable)
        return CUDA_OK;
    int code = ws_drv_error(ws_session_device_sync(t->device));
    if (!code && !t->header) {
        code = ws_header_new(t->device, &t->header);
        if (!code)
            code = ws_header_write(t->device, t->variable, &t->header, sizeof(t->header));
    }
    return code ? code : ws_header_write(t->device, t->header, header, sizeof(*header));
}

/* Linear memory and pitched memory are read in the reference's format. */
static void set_format(const struct ws_texref *t, struct cu_resource_desc *r)
{
    if (r->resType == WS_RES_LINEAR) {
        r->res.linear.format = t->format;
        r->res.linear.numChannels = t->n_channels;
    } else if (r->resType == WS_RES_PITCH2D) {
        r->res.pitch2D.format = t->format;
        r->res.pitch2D.numChannels = t->n_channels;
    }
}

/* Brings the header up to date. @strict: a state that makes none is an error. */
int ws_texref_update(struct ws_texref *t, bool strict)
{
    struct ws_texture header;
    struct cu_resource_desc r = t->resource;
    if (!t->bound)
        return CUDA_OK;
    set_format(t, &r);
    int code = t->surface ? ws_surface_describe(t->device, &r, &header)
                          : ws_texture_describe(t->device, &r, &t->texture, NULL, &header);
    if (code && strict)
        return code == CUDA_NOT_SUPPORTED ? code : CUDA_INVALID_VALUE;
    if (code)
        memset(&header, 0, sizeof(header));
    return write_variable(t, &header);
}

int ws_texref_bind(struct ws_texref *t, const struct cu_resource_desc *r)
{
    struct cu_resource_desc old = t->resource;
    bool was_bound = t->bound;
    t->resource = *r;
    t->bound = true;
    int code = ws_texref_update(t, true);
    if (code) {
        t->resource = old;
        t->bound = was_bound;
    }
    return code;
}

/* ---- references ---- */

bool ws_texref_valid(const struct ws_texref *t)
{
    return ws_slab_has(&refs, t);
}

struct ws_texref *ws_texref_new(struct ws_cuda_context *c, bool surface)
{
    struct ws_texref *t = ws_slab_new(&refs);
    if (!t)
        return NULL;
    t->ctx = c;
    t->device = c->device;
    t->surface = surface;
    t->format = 0x20;
    t->n_channels = 1;
    t->texture.maxAnisotropy = 1;
    return t;
}

struct wanted {
    const struct ws_mod *mod;
    uint64_t variable;
    struct ws_texref *found;
};
static void match(void *object, void *arg)
{
    struct ws_texref *t = object;
    struct wanted *w = arg;
    if (t->mod == w->mod && t->variable == w->variable)
        w->found = t;
}

int ws_texref_of_module(struct ws_cuda_context *c, bool surface, struct ws_mod *m, const char *name,
                        struct ws_texref **ret)
{
    struct wanted w = {.mod = m};
    uint64_t bytes;
    int kind = surface ? WS__VARIABLE__KIND__SURFREF : WS__VARIABLE__KIND__TEXREF;
    if (!ws_mod_valid(m))
        return CUDA_INVALID_HANDLE;
    if (!ret || !name)
        return CUDA_INVALID_VALUE;
    ws_err e = ws_session_module_variable(m->module, name, &w.variable, &bytes);
    if (e)
        return ws_drv_error(e);
    if (ws_session_module_variable_kind(m->module, name) != kind)
        return CUDA_NOT_FOUND;
    pthread_mutex_lock(&lock);
    ws_slab_each(&refs, match, &w);
    if (!w.found && (w.found = ws_texref_new(c, surface))) {
        w.found->mod = m;
        w.found->variable = w.variable;
        w.found->device = m->device;
    }
    pthread_mutex_unlock(&lock);
    if (!w.found)
        return CUDA_OUT_OF_MEMORY;
    *ret = w.found;
    return CUDA_OK;
}

void ws_texref_free(struct ws_texref *t)
{
    if (t->header)
        ws_header_free(t->device, t->header);
    ws_slab_free(&refs, t);
}

static void drop_of_module(void *object, void *arg)
{
    struct ws_texref *t = object;
    if (t->mod == arg)
        ws_texref_free(t);
}
void ws_texref_drop_module(const struct ws_mod *m)
{
    ws_slab_each(&refs, drop_of_module, (void *)m);
}

struct texref_owner {
    const struct ws_cuda_context *ctx;
    int device;
};
static void drop_of_context(void *object, void *arg)
{
    struct ws_texref *t = object;
    const struct texref_owner *w = arg;
    if (w->ctx ? t->ctx == w->ctx : t->device == w->device)
        ws_texref_free(t);
}
void ws_texref_drop(const struct ws_cuda_context *c, int device)
{
    struct texref_owner w = {c, device};
    ws_slab_each(&refs, drop_of_context, &w);
}
