// SPDX-License-Identifier: Apache-2.0
/* Modules of a client: an image, which all clients share, with variables of its own on one
 * device. An image is known by the hash that the daemon computes over the bytes that arrived, so
 * no client can put bytes under another image's name. */
#include "backend/client/module.h"

#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "backend/client/instance.h"
#include "backend/client/memory.h"
#include "backend/client/reply.h"
#include "backend/client/upload.h"
#include "backend/client/user.h"
#include "backend/code/kernels.h"
#include "backend/code/load.h"
#include "base/alloc.h"

struct ws_module *ws_module_find(struct ws_client *c, uint64_t id)
{
    if (WS_LIKELY(c->modules.last && c->modules.last->id == id))
        return c->modules.last;
    struct ws_module *m;
    HASH_FIND(hh, c->modules.by_id, &id, sizeof(id), m);
    if (m)
        c->modules.last = m;
    return m;
}

void ws_module_unlink(struct ws_client *c, struct ws_module *m)
{
    HASH_DEL(c->modules.by_id, m);
    if (c->modules.last == m)
        c->modules.last = NULL;
}

static void module_free(struct ws_module *m)
{
    ws_list_remove(&m->node);
    ws_device_instance_free(m->context->gpu->device, m->instance);
    if (m->variables)
        ws_memory_free(m->variables);
    ws_image_unuse(m->use);
    free(m->var_va);
    ws_client_object_gone(m->context->client);
    free(m);
}

void ws_module_unref(struct ws_module *m)
{
    if (!--m->n_refs)
        module_free(m);
}

bool ws_modules_free_one(struct ws_client *c)
{
    struct ws_module *m = c->modules.by_id;
    if (!m)
        return false;
    ws_module_unlink(c, m);
    ws_module_unref(m);
    return true;
}

static Ws__Error error_of_ptx(int r)
{
    switch (r) {
    case WS_PTX_E_SYNTAX:
        return WS__ERROR__INVALID_PTX;
    case WS_PTX_E_UNSUPPORTED:
        return WS__ERROR__UNSUPPORTED_PTX;
    case WS_PTX_E_FORMAT:
    case WS_PTX_E_LIMIT:
        return WS__ERROR__INVALID_IMAGE;
    case WS_PTX_E_NOTFOUND:
        return WS__ERROR__NO_BINARY_FOR_GPU;
    case -ENOMEM:
        return WS__ERROR__OUT_OF_MEMORY;
    default:
        return WS__ERROR__INTERNAL;
    }
}

/* A command that comes to nothing. */
static void refuse(struct ws_client *c, uint64_t seq, Ws__Error e, const char *text)
{
    ws_client_reply_error(c, seq, e, text);
    ws_client_retire(c, 1);
}

/* The instance that writes what belongs to the new places has been made. */
static void placed(struct ws_instance_made *made)
{
    struct ws_module *m = made->module;
    struct ws_client *c = m->context->client;
    struct ws_device *d = m->context->gpu->device;
    Ws__Error e = made->error;
    m->placing = false;
    if (!e && (c->dropped || m->launched)) {
        ws_device_instance_free(d, made->instance);
        e = WS__ERROR__INVALID_HANDLE;
    } else if (!e) {
        uint64_t *old = m->var_va;
        ws_device_instance_free(d, m->instance);
        m->instance = made->instance;
        m->var_va = made->var_va;
        made->var_va = old;
    }
    if (!c->dropped) {
        ws_client_reply_error(c, made->seq, e, "");
        ws_client_retire(c, 1);
    }
    ws_module_unref(m);
}

void ws_module_place(struct ws_client *c, const Ws__ModulePlace *q, uint64_t seq)
{
    struct ws_module *m = ws_module_find(c, q->module);
    Ws__Error e = WS__ERROR__OK;
    if (m && m->code->info->own_vars)
        e = WS__ERROR__INVALID_VALUE;
    else if (!m || m->launched || m->placing)
        e = WS__ERROR__INVALID_HANDLE;
    if (e) {
        refuse(c, seq, e, "");
        return;
    }
    m->placing = true;
    ws_instance_make(&(struct ws_instance_want){.module = ws_module_ref(m),
                                                .seq = seq,
                                                .addresses = q->addresses,
                                                .n_addresses = q->n_addresses,
                                                .keep = q->keep,
                                                .done = placed});
}

/* A field of repeated messages, of which @bytes has all, the first one's tag included. Protobuf-c
 * copies a field that it does not know as it is, behind its tag. */
static void add_packed(Ws__ModuleInfo *out, uint32_t field, uint8_t *bytes, size_t n)
{
    if (!n)
        return;
    out->base.unknown_fields[out->base.n_unknown_fields++] =
        (ProtobufCMessageUnknownField){.tag = field,
                                       .wire_type = PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED,
                                       .data = bytes + WS_KERNELS_TAG_BYTES,
                                       .len = n - WS_KERNELS_TAG_BYTES};
}

/* Packs the answer to a ModuleLoad: what the module holds. */
static Ws__Error tell(struct ws_instance_made *made)
{
    const struct ws_code_entry *code = made->module->code;
    ProtobufCMessageUnknownField packed[2];
    Ws__ModuleInfo out = WS__MODULE_INFO__INIT;
    Ws__Reply r = WS__REPLY__INIT;
    uint8_t *variables = malloc(WS_MAX(code->variables.n_bytes, (size_t)1));
    if (!variables)
        return WS__ERROR__OUT_OF_MEMORY;
    out.base.unknown_fields = packed;
    add_packed(&out, WS_KERNELS_FIELD, code->packed.bytes, code->packed.n);
    add_packed(&out, WS_VARIABLES_FIELD, variables,
               ws_variables_tell(code, made->var_va, variables));
    out.prints = code->prints;
    r.seq = made->seq;
    r.module = &out;
    if (code->warnings)
        r.text = code->warnings;
    made->told = ws_reply_pack(&r, &made->told_bytes);
    free(variables);
    return made->told ? WS__ERROR__OK : WS__ERROR__OUT_OF_MEMORY;
}

/* ---- loads: ModuleLoads whose code is being made ----
 *
 * A ModuleLoad is answered when its code is there; nothing of the client can depend on the module
 * before. A reset of the device meanwhile answers it with an error. */

static const char reset_text[] = "the device was reset while the module was loading";

struct load {
    struct ws_module_load load;
    struct ws_list node; /* client->modules.loads */
    struct ws_context *context;
    struct ws_image_use *use;
    uint64_t seq, module;
};

static void load_free(struct load *w)
{
    ws_load_forget(&w->load);
    ws_list_remove(&w->node);
    ws_image_unuse(w->use);
    free(w);
}

static bool is_loading(struct ws_client *c, uint64_t module)
{
    ws_list_for_each (n, &c->modules.loads)
        if (ws_list_entry(n, struct load, node)->module == module)
            return true;
    ws_list_for_each (n, &c->modules.making)
        if (ws_list_entry(n, struct ws_module, taken)->id == module)
            return true;
    return false;
}

void ws_module_loads_forget(struct ws_client *c, struct ws_context *x)
{
    ws_list_for_each_safe (n, &c->modules.loads) {
        struct load *w = ws_list_entry(n, struct load, node);
        if (x && w->context != x)
            continue;
        uint64_t seq = w->seq;
        load_free(w);
        if (x)
            refuse(c, seq, WS__ERROR__INVALID_HANDLE, reset_text);
    }
}

/* Answers and retires the ModuleLoad. */
static void made(struct ws_instance_made *made)
{
    struct ws_module *m = made->module;
    struct ws_context *x = m->context;
    struct ws_client *c = x->client;
    bool was_reset = m->n_resets != x->n_resets;
    ws_list_remove(&m->taken);
    m->instance = made->instance;
    m->var_va = made->var_va;
    made->var_va = NULL;
    if (c->dropped || made->error || was_reset) {
        if (!c->dropped && made->error)
            refuse(c, made->seq, made->error, "");
        else if (!c->dropped)
            refuse(c, made->seq, WS__ERROR__INVALID_HANDLE, reset_text);
        ws_module_unref(m);
        return;
    }
    HASH_ADD(hh, c->modules.by_id, id, sizeof(m->id), m);
    ws_client_reply_packed(c, &made->told, made->told_bytes);
    ws_client_retire(c, 1);
}

/* Makes the module, answers and retires the ModuleLoad. @use: taken. */
static void module_add(struct ws_context *x, uint64_t seq, uint64_t id, struct ws_image *image,
                       struct ws_image_use *use, struct ws_code_entry *code)
{
    struct ws_client *c = x->client;
    if (!ws_image_use_code(use, code)) {
        ws_client_tell_refused(c, WS_RESOURCE_MODULE_BYTES, code->bytes);
        ws_image_unuse(use);
        refuse(c, seq, WS__ERROR__OUT_OF_MEMORY, "the user's clients have too many modules");
        return;
    }
    bool refused = ws_client_object(c);
    struct ws_module *m = refused ? NULL : ws_alloc(sizeof(*m));
    if (!m) {
        if (!refused)
            ws_client_object_gone(c);
        ws_image_unuse(use);
        refuse(c, seq, WS__ERROR__OUT_OF_MEMORY,
               refused ? "the user's clients have too many objects"
                       : "the daemon is out of memory");
        return;
    }
    m->id = id;
    m->context = x;
    m->use = use;
    m->image = image;
    m->code = code;
    m->n_refs = 1;
    ws_list_init(&m->taken);
    ws_list_append(&x->modules, &m->node);
    Ws__Error e = m->code->n_kernels >= 1u << WS_FUNCTION_INDEX_BITS ? WS__ERROR__UNSUPPORTED_PTX
                                                                     : code->places.error;
    if (!e && code->places.bytes)
        e = ws_memory_alloc(x, code->places.bytes, WS_MEMORY_INTERNAL, &m->variables);
    if (e) {
        refuse(c, seq, e, "");
        ws_module_unref(m);
        return;
    }
    m->n_resets = x->n_resets;
    ws_list_append(&c->modules.making, &m->taken);
    ws_instance_make(
        &(struct ws_instance_want){.module = m, .seq = seq, .tell = tell, .done = made});
}

static void loaded(struct ws_module_load *load, struct ws_image *image, struct ws_code_entry *code,
                   int r, const struct ws_diags *diags)
{
    struct load *w = WS_CONTAINER_OF(load, struct load, load);
    struct ws_context *x = w->context;
    uint64_t seq = w->seq, module = w->module;
    struct ws_image_use *use = r ? NULL : w->use;
    w->use = r ? w->use : NULL;
    load_free(w);
    if (r) {
        char *text = ws_diags_text(diags);
        refuse(x->client, seq, error_of_ptx(r), text ? text : "");
        free(text);
    } else {
        module_add(x, seq, module, image, use, code);
    }
}

/* @use: taken if true is returned. */
static bool load_start(struct ws_context *x, struct ws_image *image, struct ws_image_use *use,
                       const Ws__ModuleLoad *q, uint64_t seq)
{
    struct ws_client *c = x->client;
    struct load *w = ws_alloc(sizeof(*w));
    if (!w)
        return false;
    *w = (struct load){.load.done = loaded, .context = x, .seq = seq, .module = q->module};
    ws_list_append(&c->modules.loads, &w->node);
    w->use = use;
    if (!ws_load_start(&c->server->loads, c->server->loader, &w->load, image, x->gpu->device,
                       q->name, c->who.account))
        return true;
    w->use = NULL;
    load_free(w);
    return false;
}

static void load_image(struct ws_context *x, struct ws_image *image, const Ws__ModuleLoad *q,
                       uint64_t seq)
{
    struct ws_client *c = x->client;
    bool refused;
    struct ws_image_use *use = ws_image_use(image, c->who.account, &refused);
    struct ws_code_entry *code = ws_image_code_known(image, x->gpu->device);
    if (refused)
        ws_client_tell_refused(c, WS_RESOURCE_MODULE_BYTES, image->bytes);
    if (!use) {
        refuse(c, seq, WS__ERROR__OUT_OF_MEMORY,
               refused ? "the user's clients have too many modules"
                       : "the daemon is out of memory");
    } else if (code) {
        module_add(x, seq, q->module, image, use, code);
    } else if (!load_start(x, image, use, q, seq)) {
        ws_image_unuse(use);
        refuse(c, seq, WS__ERROR__OUT_OF_MEMORY, "the daemon is out of memory");
    }
}

void ws_module_load(struct ws_client *c, const Ws__ModuleLoad *q, uint64_t seq)
{
    struct ws_server *s = c->server;
    if (q->device >= c->n_contexts) {
        refuse(c, seq, WS__ERROR__INVALID_DEVICE, "no such device");
        return;
    }
    if (q->module >> 40 || ws_module_find(c, q->module) || is_loading(c, q->module)) {
        refuse(c, seq, WS__ERROR__INVALID_HANDLE, "module id is in use or too large");
        return;
    }
    if (q->sha256.len != WS_SHA256_BYTES || q->image_bytes > c->limits.max_image_bytes) {
        refuse(c, seq, WS__ERROR__INVALID_IMAGE,
               "image has no SHA-256 or is larger than the daemon takes");
        return;
    }
    struct ws_context *x = &c->contexts[q->device];
    struct ws_image *image = ws_cache_find(&s->cache, q->sha256.data);
    ws_upload_loaded(c, q->sha256.data);
    if (!image) {
        refuse(c, seq, WS__ERROR__NEED_IMAGE, "");
        return;
    }
    load_image(x, image, q, seq);
    ws_image_unref(image);
}

Ws__Error ws_module_occupancy(struct ws_client *c, const Ws__Occupancy *q, uint32_t *ret_blocks)
{
    struct ws_module *m = ws_module_find(c, q->function >> WS_FUNCTION_INDEX_BITS);
    uint32_t index = q->function & ((1u << WS_FUNCTION_INDEX_BITS) - 1);
    struct ws_occupancy o;
    if (!m || index >= m->code->n_kernels)
        return WS__ERROR__INVALID_HANDLE;
    if (!q->block_threads || ws_device_occupancy(m->context->gpu->device, m->code->dmodule, index,
                                                 q->block_threads, q->shared_bytes, &o))
        return WS__ERROR__INVALID_VALUE;
    *ret_blocks = o.blocks_per_sm;
    return WS__ERROR__OK;
}
