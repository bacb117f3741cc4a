// SPDX-License-Identifier: Apache-2.0
/* Modules. An image is sent once for each content, which is identified by its SHA-256. The hash of
 * an image in a read-only mapping of a file (a fatbin) is kept by address, so that a second device
 * does not hash it again. Memory that the program may change is hashed every time. If the caller
 * gives no length, it is read from the image, never past the end of the mappings that hold it.
 *
 * Launch: arguments are collected from the offsets that the daemon returned with the module. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sha2.h>

#include "base/alloc.h"
#include "base/launch_check.h"
#include "base/log.h"
#include "frontend/session/image.h"
#include "frontend/session/private.h"

enum { CUDA_MAX_PARAM_BYTES = 32764 };

struct ws_session_function {
    struct ws_session_module *module;
    const Ws__Kernel *info;
    uint64_t id;
};
struct ws_session_module {
    uint64_t id;
    int device;
    uint32_t epoch;
    Ws__Reply *reply;                      /* owns the info of kernels and variables */
    struct ws_session_function *functions; /* sorted by name */
    size_t n_functions;
};

/* ---- hash ---- */

static struct hashed {
    struct ws_image_place place;
    uint64_t bytes;
    uint8_t sha256[WS_SHA256_BYTES];
} * hashes;
static size_t n_hashes, cap_hashes;
static pthread_mutex_t hash_lock = PTHREAD_MUTEX_INITIALIZER;

static bool same_place(const struct ws_image_place *a, const struct ws_image_place *b)
{
    return a->address == b->address && a->file == b->file && a->file_offset == b->file_offset;
}

static void hash_image(const void *image, uint64_t bytes, const struct ws_image_place *place,
                       uint8_t *ret)
{
    if (place->constant) {
        pthread_mutex_lock(&hash_lock);
        for (size_t i = 0; i < n_hashes; i++) {
            if (hashes[i].bytes == bytes && same_place(&hashes[i].place, place)) {
                memcpy(ret, hashes[i].sha256, WS_SHA256_BYTES);
                pthread_mutex_unlock(&hash_lock);
                return;
            }
        }
        pthread_mutex_unlock(&hash_lock);
    }
    SHA2_CTX sha;
    SHA256Init(&sha);
    SHA256Update(&sha, image, bytes);
    SHA256Final(ret, &sha);
    if (place->constant) {
        pthread_mutex_lock(&hash_lock);
        if (!ws_grow((void **)&hashes, &cap_hashes, n_hashes + 1, sizeof(*hashes))) {
            hashes[n_hashes].place = *place;
            hashes[n_hashes].bytes = bytes;
            memcpy(hashes[n_hashes].sha256, ret, WS_SHA256_BYTES);
            n_hashes++;
        }
        pthread_mutex_unlock(&hash_lock);
    }
}

/* ---- loading ---- */

static ws_err upload(struct ws_channel *c, const uint8_t *image, uint64_t bytes, uint8_t *sha256)
{
    enum { PART_BYTES = 256 * 1024 };
    uint64_t part =
        WS_MIN((uint64_t)PART_BYTES, (uint64_t)ws_session_limits()->max_message_bytes / 2);
    for (uint64_t at = 0; at < bytes; at += part) {
        Ws__ModuleImage m = WS__MODULE_IMAGE__INIT;
        m.sha256 = (ProtobufCBinaryData){.len = WS_SHA256_BYTES, .data = sha256};
        m.offset = at;
        m.image_bytes = bytes;
        m.data =
            (ProtobufCBinaryData){.len = WS_MIN(part, bytes - at), .data = (uint8_t *)image + at};
        ws_err r = ws_channel_post(c, WS_COMMAND(MODULE_IMAGE, module_image, &m));
        if (r)
            return r;
    }
    return WS__ERROR__OK;
}

static int compare_functions(const void *a, const void *b)
{
    return strcmp(((const struct ws_session_function *)a)->info->name,
                  ((const struct ws_session_function *)b)->info->name);
}

/* What the daemon says is used as offsets into the program's buffers, so it must be consistent. */
static bool kernel_sane(const Ws__Kernel *k)
{
    if (k->n_param_offsets != k->n_param_sizes || k->param_bytes > CUDA_MAX_PARAM_BYTES)
        return false;
    for (size_t i = 0; i < k->n_param_offsets; i++)
        if (k->param_offsets[i] > k->param_bytes ||
            k->param_sizes[i] > k->param_bytes - k->param_offsets[i])
            return false;
    return true;
}

static ws_err adopt(struct ws_session_module *m)
{
    const Ws__ModuleInfo *info = m->reply->module;
    if (!info)
        return WS__ERROR__INTERNAL;
    m->functions = ws_alloc_array(info->n_kernels + 1, sizeof(*m->functions));
    if (!m->functions)
        return WS__ERROR__INTERNAL;
    for (size_t i = 0; i < info->n_kernels; i++) {
        if (!kernel_sane(info->kernels[i]))
            return WS__ERROR__INTERNAL;
        m->functions[i] = (struct ws_session_function){
            .module = m, .info = info->kernels[i], .id = m->id << WS_FUNCTION_INDEX_BITS | i};
    }
    m->n_functions = info->n_kernels;
    if (info->prints)
        ws_session_note_prints();
    qsort(m->functions, m->n_functions, sizeof(*m->functions), compare_functions);
    for (size_t i = 0; i < info->n_variables; i++) {
        const Ws__Variable *v = info->variables[i];
        if (v->address && v->bytes &&
            ws_memtab_add(WS_MEM_VARIABLE, v->address, v->bytes, m->device, 0))
            return WS__ERROR__INTERNAL;
    }
    return WS__ERROR__OK;
}

static void module_free(struct ws_session_module *m)
{
    if (!m)
        return;
    if (m->reply && m->reply->module && m->epoch == ws_session_epoch(m->device))
        for (size_t i = 0; i < m->reply->module->n_variables; i++)
            ws_memtab_remove(WS_MEM_VARIABLE, m->reply->module->variables[i]->address, NULL, NULL);
    ws_channel_reply_free(m->reply);
    free(m->functions);
    free(m);
}

static ws_err load(struct ws_channel *c, struct ws_session_module *m, const void *image,
                   uint64_t bytes, uint8_t *sha256, const char *name)
{
    Ws__ModuleLoad l = WS__MODULE_LOAD__INIT;
    l.module = m->id;
    l.device = m->device;
    l.sha256 = (ProtobufCBinaryData){.len = WS_SHA256_BYTES, .data = sha256};
    l.image_bytes = bytes;
    l.name = (char *)(name ? name : "");
    ws_err r = ws_channel_call(c, WS_COMMAND(MODULE_LOAD, module_load, &l), &m->reply);
    if (r != WS__ERROR__NEED_IMAGE)
        return r;
    ws_channel_reply_free(m->reply);
    m->reply = NULL;
    r = upload(c, image, bytes, sha256);
    return r ? r : ws_channel_call(c, WS_COMMAND(MODULE_LOAD, module_load, &l), &m->reply);
}

/* Logs one line for each kernel of a module that cannot run. */
static void warn(const char *text)
{
    while (*text) {
        size_t n = strcspn(text, "\n");
        ws_log(WS_WARN, "module: %.*s", (int)WS_MIN(n, (size_t)500), text);
        text += n + (text[n] == '\n');
    }
}

ws_err ws_session_module_load(int device, const void *image, uint64_t bytes, const char *name,
                              struct ws_session_module **ret, char **ret_log)
{
    static _Atomic uint64_t next_id = 1;
    struct ws_channel *c;
    struct ws_image_place place;
    uint8_t sha256[WS_SHA256_BYTES];
    if (ret_log)
        *ret_log = NULL;
    ws_err r = ws_session_enter(&c);
    if (!r && (device < 0 || device >= ws_session_n_devices()))
        r = WS__ERROR__INVALID_DEVICE;
    if (!r && !image)
        r = WS__ERROR__INVALID_VALUE;
    if (r)
        return r;
    if (ws_image_place(image, bytes, &place) ||
        (!bytes && ws_image_length(image, place.room_bytes, &bytes)))
        return WS__ERROR__INVALID_IMAGE;
    uint64_t limit = ws_session_limits()->max_image_bytes;
    if (limit && bytes > limit) {
        ws_log(WS_ERROR,
               "session: module %s has %" PRIu64 " bytes, the daemon takes at most %" PRIu64,
               name ? name : "", bytes, limit);
        return WS__ERROR__INVALID_IMAGE;
    }
    hash_image(image, bytes, &place, sha256);
    struct ws_session_module *m = ws_alloc(sizeof(*m));
    if (!m)
        return WS__ERROR__INTERNAL;
    m->id = next_id++;
    m->device = device;
    m->epoch = ws_session_epoch(device);
    r = load(c, m, image, bytes, sha256, name);
    ws_session_output();
    if (!r && m->reply->text && m->reply->text[0])
        warn(m->reply->text);
    if (!r && (r = adopt(m)))
        ws_channel_post(c, WS_COMMAND(MODULE_UNLOAD, module_unload, m->id));
    if (r) {
        if (ret_log && m->reply && m->reply->text && m->reply->text[0])
            *ret_log = ws_strdup(m->reply->text);
        module_free(m);
        return r;
    }
    *ret = m;
    return WS__ERROR__OK;
}

ws_err ws_session_module_unload(struct ws_session_module *m)
{
    struct ws_channel *c;
    if (ws_session_ended())
        return WS__ERROR__OK;
    ws_err r = ws_session_enter(&c);
    if (!r && m->epoch == ws_session_epoch(m->device))
        r = ws_channel_post(c, WS_COMMAND(MODULE_UNLOAD, module_unload, m->id));
    module_free(m);
    return r;
}

ws_err ws_session_module_function(struct ws_session_module *m, const char *name,
                                  struct ws_session_function **ret)
{
    Ws__Kernel k = {.name = (char *)name};
    struct ws_session_function key = {.info = &k};
    struct ws_session_function *f =
        bsearch(&key, m->functions, m->n_functions, sizeof(key), compare_functions);
    if (!f)
        return WS__ERROR__NOT_FOUND;
    *ret = f;
    return WS__ERROR__OK;
}

ws_err ws_session_module_function_at(struct ws_session_module *m, size_t index,
                                     struct ws_session_function **ret)
{
    if (index >= m->n_functions)
        return WS__ERROR__NOT_FOUND;
    *ret = &m->functions[index];
    return WS__ERROR__OK;
}

ws_err ws_session_module_variable(struct ws_session_module *m, const char *name,
                                  uint64_t *ret_address, uint64_t *ret_bytes)
{
    const Ws__ModuleInfo *info = m->reply->module;
    for (size_t i = 0; i < info->n_variables; i++) {
        const Ws__Variable *v = info->variables[i];
        if (!strcmp(v->name, name)) {
            if (ret_address)
                *ret_address = v->address;
            if (ret_bytes)
                *ret_bytes = v->bytes;
            return WS__ERROR__OK;
        }
    }
    return WS__ERROR__NOT_FOUND;
}

int ws_session_module_variable_kind(struct ws_session_module *m, const char *name)
{
    const Ws__ModuleInfo *info = m->reply->module;
    for (size_t i = 0; i < info->n_variables; i++)
        if (!strcmp(info->variables[i]->name, name))
            return (int)info->variables[i]->kind;
    return WS__VARIABLE__KIND__DATA;
}

static Ws__Variable *managed_at(struct ws_session_module *m, size_t index)
{
    const Ws__ModuleInfo *info = m->reply->module;
    for (size_t i = 0; i < info->n_variables; i++)
        if (info->variables[i]->managed && !index--)
            return info->variables[i];
    return NULL;
}

bool ws_session_module_managed(struct ws_session_module *m, size_t index, const char **ret_name,
                               uint64_t *ret_bytes)
{
    const Ws__Variable *v = managed_at(m, index);
    if (v) {
        *ret_name = v->name;
        *ret_bytes = v->bytes;
    }
    return v != NULL;
}

ws_err ws_session_module_place(struct ws_session_module *m, const uint64_t *addresses, bool keep)
{
    struct ws_channel *c;
    Ws__ModulePlace q = WS__MODULE_PLACE__INIT;
    Ws__Reply *reply = NULL;
    ws_err r = ws_session_enter(&c);
    if (r)
        return r;
    q.module = m->id;
    q.addresses = (uint64_t *)addresses;
    while (managed_at(m, q.n_addresses))
        q.n_addresses++;
    q.keep = keep;
    r = ws_channel_call(c, WS_COMMAND(MODULE_PLACE, module_place, &q), &reply);
    ws_channel_reply_free(reply);
    for (size_t i = 0; !r && i < q.n_addresses; i++) {
        Ws__Variable *v = managed_at(m, i);
        ws_memtab_remove(WS_MEM_VARIABLE, v->address, NULL, NULL);
        v->address = addresses[i];
    }
    return r;
}

bool ws_session_module_variable_managed(struct ws_session_module *m, const char *name)
{
    const Ws__ModuleInfo *info = m->reply->module;
    for (size_t i = 0; i < info->n_variables; i++)
        if (!strcmp(info->variables[i]->name, name))
            return info->variables[i]->managed;
    return false;
}

const Ws__Kernel *ws_function_info(const struct ws_session_function *f)
{
    return f->info;
}
int ws_function_device(const struct ws_session_function *f)
{
    return f->module->device;
}

/* ---- launch ---- */

static ws_err check_shape(const struct ws_launch *l, const Ws__Kernel *k, const Ws__Device *d)
{
    const uint32_t *g = l->grid, *b = l->block;
    struct ws_launch_shape shape = {
        .grid = {g[0], g[1], g[2]},
        .block = {b[0], b[1], b[2]},
        .static_shared_bytes = k->static_shared_bytes,
        .dynamic_shared_bytes = l->shared_bytes,
        .max_threads_per_block = d->max_threads_per_block,
        .max_shared_bytes = d->shared_bytes_per_block_optin,
        .kernel_max_threads = k->max_threads_per_block,
        .cluster = {l->cluster[0], l->cluster[1], l->cluster[2]},
        .kernel_cluster = {k->cluster_x, k->cluster_y, k->cluster_z},
        .kernel_must_cluster = k->must_cluster,
        .kernel_max_cluster = k->max_cluster,
        .max_cluster = ws_launch_max_cluster(d->cc_major, l->non_portable),
    };
    switch (ws_launch_check(&shape)) {
    case WS_LAUNCH_VALID:
        return WS__ERROR__OK;
    case WS_LAUNCH_BAD_GRID:
    case WS_LAUNCH_BAD_BLOCK:
        return WS__ERROR__INVALID_CONFIGURATION;
    case WS_LAUNCH_TOO_MANY_THREADS:
    case WS_LAUNCH_TOO_MUCH_SHARED:
        break;
    case WS_LAUNCH_BAD_CLUSTER:
        return WS__ERROR__INVALID_CLUSTER;
    }
    return WS__ERROR__INVALID_VALUE;
}

ws_err ws_session_launch_check(const struct ws_launch *l)
{
    struct ws_channel *c;
    ws_err r = ws_session_enter(&c);
    const struct ws_session_function *f = l->function;
    if (!r && f->module->epoch != ws_session_epoch(f->module->device))
        r = WS__ERROR__INVALID_HANDLE;
    return r ? r : check_shape(l, f->info, ws_session_device(f->module->device));
}

ws_err ws_session_launch(const struct ws_launch *l)
{
    struct ws_channel *c;
    ws_err r = ws_session_enter(&c);
    if (WS_UNLIKELY(r))
        return r;
    const struct ws_session_function *f = l->function;
    const Ws__Kernel *k = f->info;
    int device = f->module->device;
    if (WS_UNLIKELY(ws_stream_device(l->stream) != device ||
                    f->module->epoch != ws_session_epoch(device)))
        return WS__ERROR__INVALID_HANDLE;
    r = check_shape(l, k, ws_session_device(device));
    if (WS_UNLIKELY(r))
        return r;
    if (WS_UNLIKELY(k->unsupported[0]))
        return k->unsupported_error == WS__ERROR__NOT_FOUND ? WS__ERROR__NOT_FOUND
                                                            : WS__ERROR__NOT_SUPPORTED;
    uint32_t limit = ws_session_limits()->max_param_bytes;
    if (WS_UNLIKELY(limit && k->param_bytes > limit))
        return WS__ERROR__NOT_SUPPORTED;
    uint8_t params[k->param_bytes + 1];
    const void *packed = l->packed;
    if (packed) {
        if (l->packed_bytes < k->param_bytes)
            return WS__ERROR__INVALID_VALUE;
    } else if (k->param_bytes) {
        if (!l->args)
            return WS__ERROR__INVALID_VALUE;
        memset(params, 0, k->param_bytes); /* holes between parameters */
        for (size_t i = 0; i < k->n_param_offsets; i++) {
            if (!l->args[i])
                return WS__ERROR__INVALID_VALUE;
            memcpy(params + k->param_offsets[i], l->args[i], k->param_sizes[i]);
        }
        packed = params;
    }
    Ws__Launch m = WS__LAUNCH__INIT;
    m.stream = l->stream;
    m.function = f->id;
    m.grid_x = l->grid[0];
    m.grid_y = l->grid[1];
    m.grid_z = l->grid[2];
    m.block_x = l->block[0];
    m.block_y = l->block[1];
    m.block_z = l->block[2];
    m.shared_bytes = l->shared_bytes;
    m.flags = l->flags;
    m.cluster_x = l->cluster[0];
    m.cluster_y = l->cluster[1];
    m.cluster_z = l->cluster[2];
    m.params = (ProtobufCBinaryData){.len = k->param_bytes, .data = (uint8_t *)packed};
    return ws_channel_post_launch(c, &m);
}

ws_err ws_session_occupancy(const struct ws_session_function *f, uint32_t block_threads,
                            uint32_t shared_bytes, uint32_t *ret_blocks)
{
    struct ws_channel *c;
    Ws__Occupancy m = WS__OCCUPANCY__INIT;
    Ws__Reply *reply = NULL;
    ws_err r = ws_session_enter(&c);
    if (r)
        return r;
    m.function = f->id;
    m.block_threads = block_threads;
    m.shared_bytes = shared_bytes;
    r = ws_channel_call(c, WS_COMMAND(OCCUPANCY, occupancy, &m), &reply);
    if (!r)
        *ret_blocks = (uint32_t)reply->value;
    ws_channel_reply_free(reply);
    return r;
}
