// SPDX-License-Identifier: Apache-2.0
/* A module may have 100,000 kernels or variables, and a client may load it again and again: so what
 * is said of them, and where the variables are to be, is made once, by the thread that makes the
 * code. The addresses of variables are
 * each client's own. They are packed as if they were UINT64_MAX, which takes the most bytes, and
 * are then put in their places. */
#include "backend/code/kernels.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"

Ws__Error ws_error_of_kernel(const struct ws_kernel_info *k)
{
    return k->unsupported_code == WS_PTX_E_NOTFOUND ? WS__ERROR__NOT_FOUND
                                                    : WS__ERROR__UNSUPPORTED_PTX;
}

static Ws__Kernel *kernel_message(struct ws_arena *a, const struct ws_kernel_info *k)
{
    Ws__Kernel *out = ws_arena_alloc(a, sizeof(*out));
    uint32_t *offsets = ws_arena_array(a, k->n_params, sizeof(*offsets)),
             *sizes = ws_arena_array(a, k->n_params, sizeof(*sizes));
    if (!out || !offsets || !sizes)
        return NULL;
    ws__kernel__init(out);
    for (uint32_t i = 0; i < k->n_params; i++) {
        offsets[i] = (uint32_t)k->params[i].param_offset;
        sizes[i] = (uint32_t)k->params[i].size_bytes;
    }
    out->name = (char *)k->name;
    out->param_offsets = offsets;
    out->param_sizes = sizes;
    out->n_param_offsets = out->n_param_sizes = k->n_params;
    out->param_bytes = k->param_bytes;
    out->static_shared_bytes = k->static_shared_bytes;
    out->local_bytes = k->local_bytes;
    out->n_regs = k->n_regs;
    out->max_threads_per_block = k->max_threads_per_block;
    out->const_bytes = k->const_bytes;
    out->ptx_version = k->ptx_version;
    out->sm = k->sm;
    out->cluster_x = k->cluster[0];
    out->cluster_y = k->cluster[1];
    out->cluster_z = k->cluster[2];
    out->max_cluster = k->max_cluster;
    out->must_cluster = k->must_cluster;
    if (k->unsupported) {
        out->unsupported = (char *)k->unsupported;
        out->unsupported_error = ws_error_of_kernel(k);
    }
    return out;
}

static bool pack(struct ws_code_entry *code, struct ws_arena *a)
{
    Ws__ModuleInfo all = WS__MODULE_INFO__INIT;
    all.kernels = ws_arena_array(a, code->n_kernels, sizeof(*all.kernels));
    if (!all.kernels)
        return false;
    for (uint32_t i = 0; i < code->n_kernels; i++)
        if (!(all.kernels[all.n_kernels++] = kernel_message(a, &code->info->kernels[i])))
            return false;
    code->packed.n = ws__module_info__get_packed_size(&all);
    code->packed.bytes = malloc(WS_MAX(code->packed.n, (size_t)1));
    if (!code->packed.bytes)
        return false;
    ws__module_info__pack(&all, code->packed.bytes);
    return true;
}

/* ---- variables ---- */

/* Whether a variable has a place in the memory of the GPU, of which the program is told. */
static bool has_address(const struct ws_ptx_var *v)
{
    return (v->space == WS_SP_GLOBAL || v->space == WS_SP_CONST) && v->size_bytes &&
           v->link != WS_LINK_EXTERN;
}

static Ws__Variable__Kind variable_kind(enum ws_ptx_type type)
{
    switch (type) {
    case WS_T_TEXREF:
        return WS__VARIABLE__KIND__TEXREF;
    case WS_T_SURFREF:
        return WS__VARIABLE__KIND__SURFREF;
    case WS_T_SAMPLERREF:
        return WS__VARIABLE__KIND__SAMPLERREF;
    default:
        return WS__VARIABLE__KIND__DATA;
    }
}

static Ws__Variable variable_message(const struct ws_ptx_var *v)
{
    Ws__Variable w = WS__VARIABLE__INIT;
    w.name = (char *)v->name;
    w.address = UINT64_MAX;
    w.bytes = v->size_bytes;
    w.constant = v->space == WS_SP_CONST;
    w.managed = v->managed;
    w.kind = variable_kind((enum ws_ptx_type)v->type);
    return w;
}

static size_t varint_bytes(uint64_t v)
{
    size_t n = 1;
    for (; v >= 0x80; v >>= 7)
        n++;
    return n;
}

/* Writes @v as a varint of @n bytes, which may be more than it takes. */
static void put_varint(uint8_t *p, uint64_t v, size_t n)
{
    for (size_t i = 0; i < n; i++, v >>= 7)
        p[i] = (uint8_t)((v & 0x7f) | (i + 1 < n ? 0x80 : 0));
}

/* Field and length before a variable, and in it what is before the digits of its address. */
static size_t before_variable(size_t bytes)
{
    return WS_KERNELS_TAG_BYTES + varint_bytes(bytes);
}

static size_t before_address(const char *name)
{
    size_t n = strlen(name);
    return (n ? 1 + varint_bytes(n) + n : 0) + 1;
}

static bool pack_variables(struct ws_code_entry *code)
{
    struct ws_packed_variables *p = &code->variables;
    const struct ws_dmodule_info *info = code->info;
    for (uint32_t i = 0; i < info->n_vars; i++) {
        if (!has_address(&info->vars[i]))
            continue;
        Ws__Variable w = variable_message(&info->vars[i]);
        size_t n = ws__variable__get_packed_size(&w);
        p->n_bytes += before_variable(n) + n;
        p->n++;
    }
    p->bytes = malloc(WS_MAX(p->n_bytes, (size_t)1));
    p->at = ws_alloc_array(p->n + 1, sizeof(*p->at));
    if (!p->bytes || !p->at)
        return false;
    uint8_t *to = p->bytes;
    struct ws_packed_variable *at = p->at;
    for (uint32_t i = 0; i < info->n_vars; i++) {
        if (!has_address(&info->vars[i]))
            continue;
        Ws__Variable w = variable_message(&info->vars[i]);
        size_t n = ws__variable__get_packed_size(&w), before = before_variable(n);
        *to = WS_VARIABLES_FIELD << 3 | PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED;
        put_varint(to + WS_KERNELS_TAG_BYTES, n, before - WS_KERNELS_TAG_BYTES);
        ws__variable__pack(&w, to + before);
        *at++ = (struct ws_packed_variable){.index = i,
                                            .address = (uint32_t)(before + before_address(w.name)),
                                            .begin = (size_t)(to - p->bytes)};
        to += before + n;
    }
    at->begin = p->n_bytes;
    return true;
}

size_t ws_variables_tell(const struct ws_code_entry *code, const uint64_t *var_va, uint8_t *to)
{
    const struct ws_packed_variables *p = &code->variables;
    uint8_t *begin = to;
    for (uint32_t i = 0; i < p->n; i++) {
        const struct ws_packed_variable *at = &p->at[i];
        size_t n = at[1].begin - at->begin;
        if (!var_va[at->index])
            continue;
        memcpy(to, p->bytes + at->begin, n);
        put_varint(to + at->address, var_va[at->index], WS_PACKED_ADDRESS_BYTES);
        to += n;
    }
    return (size_t)(to - begin);
}

/* ---- places ---- */

/* About what a variable costs that has no initial value. One that has to be cleared costs as much
 * as its pages: new memory has none yet, but memory that the client maps may. */
enum { VARIABLE_BYTES = 256 };

static uint64_t written_bytes(const struct ws_dmodule_info *info, bool keep)
{
    uint64_t n = (uint64_t)info->n_vars * VARIABLE_BYTES;
    for (uint32_t i = 0; i < info->n_vars; i++) {
        const struct ws_ptx_var *v = &info->vars[i];
        if (!keep || !v->managed)
            n += v->managed ? v->size_bytes : v->init_bytes;
    }
    return n;
}

static Ws__Error place(struct ws_variable_places *p, uint32_t i, const struct ws_ptx_var *v)
{
    uint64_t align = v->align > 256 && v->align <= WS_DEVICE_PAGE_BYTES ? v->align : 256;
    if (align & (align - 1))
        return WS__ERROR__INVALID_PTX;
    p->at[i] = WS_ALIGN_UP(p->bytes, align);
    if (v->size_bytes > UINT64_MAX / 4 ||
        __builtin_add_overflow(p->at[i], v->size_bytes, &p->bytes) || p->bytes > UINT64_MAX / 4)
        return WS__ERROR__OUT_OF_MEMORY;
    return WS__ERROR__OK;
}

/* Lays the variables out in one piece of memory, unless the instance will bring them with it. */
static bool place_variables(struct ws_code_entry *code)
{
    const struct ws_dmodule_info *info = code->info;
    struct ws_variable_places *p = &code->places;
    p->written_bytes = written_bytes(info, false);
    p->written_keeping_bytes = written_bytes(info, true);
    p->at = ws_alloc_array(info->n_vars + 1, sizeof(*p->at));
    if (!p->at)
        return false;
    for (uint32_t i = 0; i < info->n_vars; i++) {
        p->at[i] = WS_NO_PLACE;
        if (!p->error && !info->own_vars && has_address(&info->vars[i]))
            p->error = place(p, i, &info->vars[i]);
    }
    return true;
}

int ws_kernels_pack(struct ws_code_entry *code, struct ws_diags *diags)
{
    struct ws_arena a = WS_ARENA_NULL;
    bool ok = pack(code, &a) && pack_variables(code) && place_variables(code);
    ws_arena_deinit(&a);
    if (!ok)
        return ws_raise(-ENOMEM);
    if (code->packed.n + code->variables.n_bytes <= WS_KERNELS_MAX_BYTES)
        return 0;
    ws_diags_add(diags, NULL, 0, 0,
                 "%u kernels and %u variables take %zu bytes to tell of; a module may have %d",
                 code->n_kernels, code->variables.n, code->packed.n + code->variables.n_bytes,
                 WS_KERNELS_MAX_BYTES);
    return WS_PTX_E_LIMIT;
}
