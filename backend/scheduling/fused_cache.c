// SPDX-License-Identifier: Apache-2.0
/* Templates are made from the IR of the clients' modules, which their images keep: an entry
 * under way holds a reference to each image, and the thread touches nothing else. Once made, a
 * template stands for itself: its makers may go.
 *
 * An entry that isn't under way and that no launch uses may leave, the longest unused first. */
#include "backend/client/module.h"
#include "backend/code/loader.h"
#include "backend/scheduling/fused_cache.h"

#include "backend/scheduling/fused_arena.h"

#include <sha256.h>
#include <stdio.h>
#include <string.h>

#include "backend/scheduling/fused.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "templates/manifest.h"

enum { MAX_ENTRIES = 128 };

struct ws_fused_entry {
    struct ws_loader_work job; /* first: loader.c hands it back */
    uint8_t key[WS_SHA256_BYTES];
    struct ws_fused_cache *cache;
    struct ws_device *device;
    struct ws_fused_code code;
    bool under_way;
    uint32_t n_refs;
    struct ws_list lru; /* in cache->lru while it may leave */
    UT_hash_handle hh;
    /* in: while it is under way */
    uint32_t n;
    enum ws_fused_how how;
    struct ws_template_kernel kernels[WS_FUSE_MAX];
    struct ws_template_kernel own[WS_FUSE_MAX]; /* the programs'; kernels: what stands for them */
    struct ws_image *images[WS_FUSE_MAX];       /* references */
    /* out */
    int r; /* 0, WS_PTX_E_UNSUPPORTED, -ENOMEM */
    char why[192];
    uint64_t make_ns;
    /* code.constants where kernels see them; NULL: not needed yet */
    uint8_t *constants;
    uint64_t constants_va;
};

struct ws_fused_cache {
    struct ws_server *server;
    struct ws_fused_entry *entries;
    struct ws_list lru;                    /* oldest first */
    struct ws_template_manifest *manifest; /* NULL: none */
    uint64_t make_ns;
};

int ws_fused_kernel_cmp(const struct ws_fused_kernel *a, const struct ws_fused_kernel *b)
{
    int c = memcmp(a->module->code->sha256, b->module->code->sha256, WS_SHA256_BYTES);
    return c ? c : (a->kernel > b->kernel) - (a->kernel < b->kernel);
}

static void key_of(const struct ws_device *d, const struct ws_fused_kernel *kernels, uint32_t n,
                   enum ws_fused_how how, uint8_t *ret)
{
    SHA2_CTX sha;
    uint32_t head[] = {d->spec.cc_major, d->spec.cc_minor, n, how};
    SHA256Init(&sha);
    SHA256Update(&sha, (const uint8_t *)head, sizeof(head));
    for (uint32_t k = 0; k < n; k++) {
        SHA256Update(&sha, kernels[k].module->code->sha256, WS_SHA256_BYTES);
        SHA256Update(&sha, (const uint8_t *)&kernels[k].kernel, sizeof(kernels[k].kernel));
    }
    SHA256Final(ret, &sha);
}

/* ---- making; on any thread ---- */

/* The launch itself would say why the device can't run it; here it is known beforehand. */
static int load(struct ws_fused_entry *e)
{
    struct ws_diags diags = WS_DIAGS_NULL;
    int r = ws_device_module_load(e->device, e->code.template->ptx, &e->code.dmodule, &diags);
    ws_diags_deinit(&diags);
    if (r)
        return ws_forward(r);
    const struct ws_dmodule_info *info = ws_dmodule_info(e->code.dmodule);
    const char *name = e->code.template->ptx->funcs[e->code.template->fused.func].name;
    while (e->code.kernel < info->n_kernels &&
           strcmp(info->kernels[e->code.kernel].name, name) != 0)
        e->code.kernel++;
    if (e->code.kernel == info->n_kernels)
        return ws_raise(-EIO);
    const char *unsupported = info->kernels[e->code.kernel].unsupported;
    if (unsupported)
        snprintf(e->why, sizeof(e->why), "%s", unsupported);
    return unsupported ? WS_PTX_E_UNSUPPORTED : 0;
}

static int32_t find_var(const struct ws_ptx_module *m, const struct ws_ptx_var *like)
{
    for (uint32_t k = 0; k < m->n_vars; k++)
        if (!strcmp(m->vars[k].name, like->name) && m->vars[k].size_bytes == like->size_bytes &&
            (m->vars[k].space == WS_SP_GLOBAL || m->vars[k].space == WS_SP_CONST))
            return (int32_t)k;
    return -1;
}

/* A constant of the replacement's own: one place for all members by the same replacement. */
static int place_constant(struct ws_fused_entry *e, uint32_t k, uint32_t v)
{
    struct ws_fused_code *c = &e->code;
    const struct ws_ptx_var *var = &e->kernels[k].m->vars[v];
    for (uint32_t j = 0; j < k; j++)
        if (c->bind[j] && e->kernels[j].m == e->kernels[k].m &&
            c->template->member[j].var[v] >= 0) {
            c->bind[k][v].at = c->bind[j][v].at;
            return 0;
        }
    uint64_t at = c->constants_bytes, end = WS_ALIGN_UP(at + var->size_bytes, UINT64_C(256));
    uint8_t *more = realloc(c->constants, end);
    if (!more)
        return ws_raise(-ENOMEM);
    memset(more + at, 0, end - at);
    if (var->init_bytes)
        memcpy(more + at, var->init, var->init_bytes);
    c->constants = more;
    c->constants_bytes = end;
    c->bind[k][v].at = at;
    return 0;
}

static int bind_vars(struct ws_fused_entry *e, uint32_t k)
{
    const struct ws_ptx_module *m = e->kernels[k].m;
    struct ws_fused_bind *b = e->code.bind[k] = ws_alloc_array((size_t)m->n_vars + 1, sizeof(*b));
    if (!b)
        return ws_raise(-ENOMEM);
    for (uint32_t v = 0; v < m->n_vars; v++) {
        const struct ws_ptx_var *var = &m->vars[v];
        b[v].own = find_var(e->own[k].m, var);
        if (e->code.template->member[k].var[v] < 0 || b[v].own >= 0 || !var->size_bytes ||
            var->space == WS_SP_SHARED)
            continue;
        if (var->space != WS_SP_CONST) {
            snprintf(e->why, sizeof(e->why), "the template's variable %.100s is not the program's",
                     var->name);
            return WS_PTX_E_UNSUPPORTED;
        }
        int r = place_constant(e, k, v);
        if (r)
            return ws_forward(r);
    }
    return 0;
}

static void work(struct ws_loader_work *job)
{
    struct ws_fused_entry *e = WS_CONTAINER_OF(job, struct ws_fused_entry, job);
    uint64_t before_ns = ws_clock_ns();
    if (e->how == WS_FUSED_LEADER && e->kernels[0].m != e->own[0].m) {
        snprintf(e->why, sizeof(e->why), "replaced by a template made by hand");
        e->r = WS_PTX_E_UNSUPPORTED;
        return;
    }
    e->r =
        e->how == WS_FUSED_LEADER
            ? ws_template_make_leader(&e->code.template, e->kernels, e->device->plain_memory,
                                      e->why, sizeof(e->why))
            : ws_template_make(&e->code.template, e->kernels, e->n, e->how == WS_FUSED_SAME_BLOCK,
                               e->device->plain_memory, e->why, sizeof(e->why));
    for (uint32_t k = 0; !e->r && k < e->n; k++)
        if (e->kernels[k].m != e->own[k].m)
            e->r = bind_vars(e, k);
    if (!e->r)
        e->r = load(e);
    e->make_ns = ws_clock_ns() - before_ns;
    if (e->r < 0 && *ws_loader_limit_text(job, e->why, sizeof(e->why)))
        e->r = WS_PTX_E_UNSUPPORTED; /* another time it would take as much */
}

/* ---- entries ---- */

static void instance_put(struct ws_device *d, struct ws_fused_instance *i)
{
    if (!i || --i->n_refs)
        return;
    ws_device_instance_free(d, i->instance);
    free(i->var_va);
    free(i);
}

void ws_fused_cache_instance_put(const struct ws_fused_code *c, struct ws_fused_instance *i)
{
    instance_put(c->entry->device, i);
}

static void entry_free(struct ws_fused_entry *e)
{
    instance_put(e->device, e->code.instance);
    ws_fused_arena_give(e->cache->server, e->constants, e->code.constants_bytes);
    ws_list_remove(&e->lru);
    HASH_DEL(e->cache->entries, e);
    if (e->code.dmodule)
        ws_device_module_unload(e->device, e->code.dmodule);
    ws_template_free(e->code.template);
    for (uint32_t k = 0; k < WS_FUSE_MAX; k++)
        free(e->code.bind[k]);
    free(e->code.constants);
    free(e);
}

/* Nobody needs it for now. */
static void rest(struct ws_fused_entry *e)
{
    struct ws_fused_cache *c = e->cache;
    ws_list_append(&c->lru, &e->lru);
    while (HASH_COUNT(c->entries) > MAX_ENTRIES && !ws_list_empty(&c->lru))
        entry_free(ws_list_entry(c->lru.next, struct ws_fused_entry, lru));
}

static void made(struct ws_loader_work *job)
{
    struct ws_fused_entry *e = WS_CONTAINER_OF(job, struct ws_fused_entry, job);
    e->under_way = false;
    for (uint32_t k = 0; k < e->n; k++)
        ws_image_unref(e->images[k]);
    e->cache->make_ns += e->make_ns;
    if (ws_debug_on("fused"))
        ws_log(WS_DEBUG, "fused: template kernels=%u us=%llu%s%s", e->n,
               (unsigned long long)(e->make_ns / 1000), e->r ? " refused: " : "",
               e->r ? (e->r < 0 ? "no memory" : e->why) : "");
    if (e->r < 0)
        entry_free(e); /* another time there may be more memory */
    else
        rest(e);
}

static struct ws_fused_entry *entry_new(struct ws_server *s, struct ws_device *d,
                                        const struct ws_fused_kernel *kernels, uint32_t n,
                                        enum ws_fused_how how, const uint8_t *key)
{
    struct ws_fused_entry *e = ws_alloc(sizeof(*e));
    if (!e)
        return NULL;
    e->job = (struct ws_loader_work){.work = work, .done = made};
    memcpy(e->key, key, sizeof(e->key));
    e->cache = s->fused.cache;
    e->device = d;
    e->code.entry = e;
    e->under_way = true;
    e->r = -ECANCELED; /* unless a thread takes it up */
    e->n = n;
    e->how = how;
    ws_list_init(&e->lru);
    for (uint32_t k = 0; k < n; k++) {
        const struct ws_module *m = kernels[k].module;
        const char *name = m->code->info->kernels[kernels[k].kernel].name;
        e->kernels[k] = (struct ws_template_kernel){
            m->code->ptx, (uint32_t)(ws_ptx_find_func(m->code->ptx, name) - m->code->ptx->funcs)};
        e->images[k] = ws_image_ref(m->image);
        e->own[k] = e->kernels[k];
        const struct ws_template_replacement *by = ws_template_manifest_find(
            e->cache->manifest, e->own[k].m, e->own[k].func, m->image->sha256);
        if (by)
            e->kernels[k] = (struct ws_template_kernel){by->m, by->func};
    }
    HASH_ADD_KEYPTR(hh, e->cache->entries, e->key, sizeof(e->key), e);
    return e;
}

int ws_fused_cache_get(struct ws_server *s, struct ws_device *d,
                       const struct ws_fused_kernel *kernels, uint32_t n, enum ws_fused_how how,
                       const struct ws_fused_code **ret, const char **ret_why)
{
    uint8_t key[WS_SHA256_BYTES];
    struct ws_fused_entry *e;
    key_of(d, kernels, n, how, key);
    HASH_FIND(hh, s->fused.cache->entries, key, sizeof(key), e);
    if (!e) {
        e = entry_new(s, d, kernels, n, how, key);
        if (!e)
            return ws_raise(-ENOMEM);
        ws_loader_run(s->loader, &e->job); /* without threads, it is made and perhaps gone now */
        HASH_FIND(hh, s->fused.cache->entries, key, sizeof(key), e);
    }
    if (!e || e->under_way)
        return e ? -EAGAIN : ws_raise(-ENOMEM);
    ws_list_remove(&e->lru);
    if (e->r) {
        ws_list_append(&e->cache->lru, &e->lru);
        *ret_why = e->why;
        return WS_FUSED_E_REFUSED;
    }
    e->n_refs++;
    *ret = &e->code;
    return 0;
}

void ws_fused_cache_put(const struct ws_fused_code *c)
{
    if (!--c->entry->n_refs)
        rest(c->entry);
}

static int read_manifest(struct ws_server *s)
{
    struct ws_diags diags = WS_DIAGS_NULL;
    int r = ws_template_manifest_read(&s->fused.cache->manifest, s->config->templates, &diags);
    for (size_t k = 0; r > 0 && k < diags.n; k++)
        ws_log(WS_ERROR, "%s:%u: %s", diags.v[k].file ? diags.v[k].file : "templates",
               diags.v[k].line, diags.v[k].text);
    ws_diags_deinit(&diags);
    if (!r)
        ws_log(WS_INFO, "fused: templates=%s kernels=%zu", s->config->templates,
               ws_template_manifest_n(s->fused.cache->manifest));
    return r > 0 ? -EINVAL : r;
}

int ws_fused_cache_constants(struct ws_server *s, const struct ws_fused_code *c, uint64_t *ret_va)
{
    struct ws_fused_entry *e = c->entry;
    if (!e->constants) {
        int r = ws_fused_arena_take(s, c->constants_bytes, &e->constants, &e->constants_va);
        if (r)
            return ws_forward(r);
        memcpy(e->constants, c->constants, c->constants_bytes);
    }
    *ret_va = e->constants_va;
    return 0;
}

int ws_fused_cache_instance(struct ws_server *s, const struct ws_fused_code *c,
                            const uint64_t *var_va, struct ws_fused_instance **ret)
{
    struct ws_fused_code *code = &c->entry->code;
    struct ws_space *space = ws_fused_arena_space(s);
    size_t n = c->template->ptx->n_vars;
    struct ws_fused_instance *i = code->instance;
    if (!i || memcmp(i->var_va, var_va, n * sizeof(*var_va)) != 0) {
        i = ws_alloc(sizeof(*i));
        if (i)
            i->var_va = ws_alloc_array(n + 1, sizeof(*var_va));
        int r = !i || !i->var_va || !space ? -ENOMEM : 0;
        if (!r && n)
            memcpy(i->var_va, var_va, n * sizeof(*var_va));
        if (!r)
            r = ws_device_instance_borrow(c->entry->device, c->dmodule, space, var_va,
                                          &i->instance);
        if (r) {
            if (i)
                free(i->var_va);
            free(i);
            return ws_forward(r);
        }
        instance_put(c->entry->device, code->instance);
        code->instance = i;
        i->n_refs = 1;
    }
    i->n_refs++;
    *ret = i;
    return 0;
}

int ws_fused_cache_new(struct ws_server *s)
{
    s->fused.cache = ws_alloc(sizeof(*s->fused.cache));
    if (!s->fused.cache)
        return ws_raise(-ENOMEM);
    s->fused.cache->server = s;
    ws_list_init(&s->fused.cache->lru);
    return s->config->templates ? read_manifest(s) : 0;
}

void ws_fused_cache_free(struct ws_server *s)
{
    struct ws_fused_entry *e, *next;
    if (!s->fused.cache)
        return;
    HASH_ITER (hh, s->fused.cache->entries, e, next)
        entry_free(e);
    ws_template_manifest_free(s->fused.cache->manifest);
    free(s->fused.cache);
    s->fused.cache = NULL;
}

void ws_fused_cache_counts(const struct ws_server *s, struct ws_fused_counts *ret)
{
    for (const struct ws_fused_entry *e = s->fused.cache->entries; e; e = e->hh.next) {
        ret->n_templates += !e->under_way && !e->r;
        ret->n_refusals += !e->under_way && e->r;
    }
    ret->make_ns = s->fused.cache->make_ns;
}
