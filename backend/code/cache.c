// SPDX-License-Identifier: Apache-2.0
#include "backend/code/cache.h"

#include "backend/code/kernels.h"

#include <sha256.h>
#include <string.h>

#include "base/alloc.h"
#include "base/budget.h"
#include "base/error.h"

void ws_cache_init(struct ws_cache *c, uint64_t limit_bytes, uint64_t max_text_bytes)
{
    *c = (struct ws_cache){.limit_bytes = limit_bytes, .max_text_bytes = max_text_bytes};
    ws_list_init(&c->lru);
    pthread_mutex_init(&c->code_lock, NULL);
}

static void image_free(struct ws_image *i)
{
    struct ws_cache *c = i->cache;
    ws_list_remove(&i->lru);
    HASH_DEL(c->images, i);
    c->n_images--;
    c->bytes -= i->bytes;
    for (size_t k = 0; k < i->n_by_sm; k++) {
        c->bytes -= i->by_sm[k].code->bytes;
        ws_code_unref(c, i->by_sm[k].code);
    }
    free(i->by_sm);
    ws_discard(c->discards, ws_discard_free, i->data, i->bytes, &(struct ws_discard_charge){0});
    free(i);
}

void ws_cache_deinit(struct ws_cache *c)
{
    struct ws_image *i, *tmp;
    HASH_ITER (hh, c->images, i, tmp)
        image_free(i);
    pthread_mutex_destroy(&c->code_lock);
}

/* A large image may take the room of thousands of small ones. */
bool ws_cache_evict_some(struct ws_cache *c)
{
    enum { AT_ONCE = 32 };
    unsigned n = 0;
    while (c->bytes > c->limit_bytes && !ws_list_empty(&c->lru)) {
        if (n++ == AT_ONCE)
            return true;
        image_free(ws_list_entry(c->lru.next, struct ws_image, lru));
    }
    return false;
}

struct ws_image *ws_image_ref(struct ws_image *i)
{
    ws_list_remove(&i->lru);
    i->n_refs++;
    return i;
}

struct ws_image *ws_image_unref(struct ws_image *i)
{
    if (i && !--i->n_refs) {
        ws_list_append(&i->cache->lru, &i->lru);
        (void)ws_cache_evict_some(i->cache);
    }
    return NULL;
}

/* ---- who is charged ---- */

struct ws_image_use {
    struct ws_image *image;
    struct ws_account *account;
    uint32_t n;          /* modules, and loads under way */
    uint64_t codes;      /* bit per place in image->by_sm: it is charged */
    struct ws_list node; /* image->uses */
};

static struct ws_image_use *use_of(struct ws_image *i, const struct ws_account *a)
{
    ws_list_for_each (n, &i->uses) {
        struct ws_image_use *u = ws_list_entry(n, struct ws_image_use, node);
        if (u->account == a)
            return u;
    }
    return NULL;
}

struct ws_image_use *ws_image_use(struct ws_image *i, struct ws_account *a, bool *ret_refused)
{
    struct ws_image_use *u = use_of(i, a);
    *ret_refused = !u && ws_account_charge(a, WS_RESOURCE_MODULE_BYTES, i->bytes);
    if (*ret_refused)
        return NULL;
    if (!u && !(u = ws_alloc(sizeof(*u)))) {
        ws_account_release(a, WS_RESOURCE_MODULE_BYTES, i->bytes);
        return NULL;
    }
    if (!u->n++) {
        u->image = ws_image_ref(i);
        u->account = ws_account_ref(a);
        ws_list_append(&i->uses, &u->node);
    }
    return u;
}

bool ws_image_use_code(struct ws_image_use *u, const struct ws_code_entry *code)
{
    const struct ws_image *i = u->image;
    for (size_t k = 0; k < WS_MIN(i->n_by_sm, (size_t)64); k++) {
        if (i->by_sm[k].code != code || u->codes >> k & 1)
            continue;
        if (ws_account_charge(u->account, WS_RESOURCE_MODULE_BYTES, code->bytes))
            return false;
        u->codes |= UINT64_C(1) << k;
    }
    return true;
}

void ws_image_unuse(struct ws_image_use *u)
{
    if (!u || --u->n)
        return;
    ws_list_remove(&u->node);
    for (size_t k = 0; k < 64 && u->codes >> k; k++)
        if (u->codes >> k & 1)
            ws_account_release(u->account, WS_RESOURCE_MODULE_BYTES,
                               u->image->by_sm[k].code->bytes);
    ws_account_release(u->account, WS_RESOURCE_MODULE_BYTES, u->image->bytes);
    ws_account_unref(u->account);
    ws_image_unref(u->image);
    free(u);
}

/* ---- images ---- */

struct ws_image *ws_cache_find(struct ws_cache *c, const uint8_t *sha256)
{
    struct ws_image *i;
    HASH_FIND(hh, c->images, sha256, WS_SHA256_BYTES, i);
    return i ? ws_image_ref(i) : NULL;
}

int ws_cache_add(struct ws_cache *c, const uint8_t *sha256, uint8_t *data, uint64_t bytes,
                 struct ws_image **ret)
{
    struct ws_image *i = ws_alloc(sizeof(*i));
    if (!i)
        return ws_raise(-ENOMEM);
    memcpy(i->sha256, sha256, WS_SHA256_BYTES);
    i->cache = c;
    i->data = data;
    i->bytes = bytes;
    i->n_refs = 1;
    ws_list_init(&i->lru);
    ws_list_init(&i->uses);
    HASH_ADD_KEYPTR(hh, c->images, i->sha256, WS_SHA256_BYTES, i);
    c->bytes += bytes;
    c->n_images++;
    (void)ws_cache_evict_some(c);
    *ret = i;
    return 0;
}

/* ---- code ---- */

static uint32_t sm_of(const struct ws_device *d)
{
    return d->spec.cc_major * 10 + d->spec.cc_minor;
}

struct ws_code_entry *ws_image_code_known(const struct ws_image *i, const struct ws_device *device)
{
    for (size_t k = 0; k < i->n_by_sm; k++)
        if (i->by_sm[k].sm == sm_of(device))
            return i->by_sm[k].code;
    return NULL;
}

int ws_image_code_adopt(struct ws_image *i, const struct ws_device *device,
                        struct ws_code_entry *code)
{
    if (ws_grow((void **)&i->by_sm, &i->cap_by_sm, i->n_by_sm + 1, sizeof(*i->by_sm))) {
        ws_code_unref(i->cache, code);
        return ws_raise(-ENOMEM);
    }
    i->by_sm[i->n_by_sm].sm = sm_of(device);
    i->by_sm[i->n_by_sm++].code = code;
    i->cache->bytes += code->bytes;
    (void)ws_cache_evict_some(i->cache);
    return 0;
}

static void key_of(const struct ws_ptx_texts *t, uint8_t *ret)
{
    SHA2_CTX sha;
    SHA256Init(&sha);
    if (t->link) { /* else the key of a text is its hash, however it came */
        const uint32_t mark[3] = {'L', t->strict, t->max_regs};
        SHA256Update(&sha, (const uint8_t *)mark, sizeof(mark));
    }
    for (size_t k = 0; k < t->n; k++) {
        uint64_t len = t->v[k].len;
        if (t->link)
            SHA256Update(&sha, (const uint8_t *)&len, sizeof(len));
        SHA256Update(&sha, (const uint8_t *)t->v[k].text, len);
    }
    SHA256Final(ret, &sha);
}

static void entry_free(struct ws_code_entry *e)
{
    if (e->dmodule)
        ws_device_module_unload(e->device, e->dmodule);
    ws_ptx_module_free(e->ptx);
    free(e->warnings);
    free(e->rewritten);
    ws_learn_code_free(e->learn);
    free(e->packed.bytes);
    free(e->variables.bytes);
    free(e->variables.at);
    free(e->places.at);
    free(e);
}

static void entry_discard(void *p, uint64_t bytes)
{
    entry_free(p);
}

static bool module_prints(const struct ws_ptx_module *m)
{
    for (uint32_t k = 0; k < m->n_funcs; k++)
        if (m->funcs[k].is_decl &&
            (!strcmp(m->funcs[k].name, "vprintf") || !strcmp(m->funcs[k].name, "__assertfail")))
            return true;
    return false;
}

/* Addresses of functions are a real GPU's own; machine code may have them anywhere, and
 * variables of its own, too. */
static bool module_bound(const struct ws_ptx_module *m)
{
    if (m->code)
        return true;
    for (uint32_t f = 0; f < m->n_funcs; f++)
        for (uint32_t k = 0; k < m->funcs[f].n_insns; k++) {
            const struct ws_ptx_call *c = m->funcs[f].insns[k].call;
            if (c &&
                (c->callee.kind != WS_OPD_SYM || WS_PTX_SYM_KIND(c->callee.sym) != WS_PTX_SYM_FUNC))
                return true;
        }
    return false;
}

static int entry_new(const struct ws_cache *c, const struct ws_ptx_texts *t,
                     struct ws_device *device, struct ws_code_entry **ret, struct ws_diags *diags)
{
    struct ws_code_entry *e = ws_alloc(sizeof(*e));
    if (!e)
        return ws_raise(-ENOMEM);
    e->device = device;
    uint64_t held = ws_budget_held();
    int r = ws_ptx_image_parse(&e->ptx, t, diags);
    for (uint32_t k = 0; !r && k < e->ptx->n_funcs; k++)
        e->n_kernels += e->ptx->funcs[k].is_entry && !e->ptx->funcs[k].is_decl;
    if (!r && ws_rewrite_any(&c->rewrite))
        r = ws_rewrite_module(e->ptx, e->n_kernels, &c->rewrite, &e->rewritten);
    if (!r)
        r = ws_device_module_load(device, e->ptx, &e->dmodule, diags);
    if (!r && ws_rewrite_any(&c->rewrite))
        ws_rewrite_find(e->dmodule, e->n_kernels, &c->rewrite, e->ptx, e->rewritten);
    if (!r && c->learn && !e->ptx->code)
        r = ws_learn_code_new(&e->learn, e->ptx, ws_dmodule_info(e->dmodule), e->n_kernels);
    if (!r && !ws_budget_spend(0)) /* not all of it may be there */
        r = ws_raise(-ENOMEM);
    if (r) {
        entry_free(e);
        return r;
    }
    e->info = ws_dmodule_info(e->dmodule);
    if ((r = ws_kernels_pack(e, diags))) {
        entry_free(e);
        return r;
    }
    uint64_t now_held = ws_budget_held();
    e->bytes = (now_held > held ? now_held - held : 0) + e->packed.n + e->variables.n_bytes +
               e->variables.n * sizeof(*e->variables.at) + e->info->n_vars * sizeof(*e->places.at) +
               e->info->later_bytes;
    e->prints = module_prints(e->ptx);
    e->bound = module_bound(e->ptx);
    for (uint32_t k = 0; k < e->info->n_kernels; k++)
        e->uses_heap |= e->info->kernels[k].uses_heap;
    e->warnings = diags && diags->n ? ws_diags_text(diags) : NULL;
    *ret = e;
    return 0;
}

/* The code of that text, with a reference more, or NULL. */
static struct ws_code_entry *find_code(struct ws_cache *c, const uint8_t *key)
{
    struct ws_code_entry *e;
    pthread_mutex_lock(&c->code_lock);
    HASH_FIND(hh, c->codes, key, WS_SHA256_BYTES, e);
    if (e)
        e->n_refs++;
    pthread_mutex_unlock(&c->code_lock);
    return e;
}

int ws_image_code_make(const struct ws_image *i, struct ws_device *device, const char *name,
                       struct ws_code_entry **ret, struct ws_diags *diags)
{
    struct ws_cache *c = i->cache;
    struct ws_ptx_texts t;
    struct ws_code_entry *e, *known;
    uint8_t key[WS_SHA256_BYTES];
    int r = ws_ptx_image_texts(&t, i->data, i->bytes, sm_of(device), device->no_machine_code,
                               c->max_text_bytes, name, diags);
    if (r)
        return r;
    key_of(&t, key);
    e = find_code(c, key);
    bool fresh = !e;
    if (fresh)
        r = entry_new(c, &t, device, &e, diags);
    ws_ptx_texts_deinit(&t);
    if (r)
        return r;
    if (fresh) {
        memcpy(e->sha256, key, sizeof(key));
        pthread_mutex_lock(&c->code_lock);
        HASH_FIND(hh, c->codes, key, WS_SHA256_BYTES, known);
        if (known) { /* another thread was faster */
            known->n_refs++;
        } else {
            e->n_refs = 1;
            HASH_ADD_KEYPTR(hh, c->codes, e->sha256, WS_SHA256_BYTES, e);
            c->n_codes++;
        }
        pthread_mutex_unlock(&c->code_lock);
        if (known) {
            entry_free(e);
            e = known;
        }
    }
    *ret = e;
    return 0;
}

uint32_t ws_cache_n_codes(struct ws_cache *c)
{
    pthread_mutex_lock(&c->code_lock);
    uint32_t n = c->n_codes;
    pthread_mutex_unlock(&c->code_lock);
    return n;
}

void ws_code_unref(struct ws_cache *c, struct ws_code_entry *e)
{
    pthread_mutex_lock(&c->code_lock);
    bool last = !--e->n_refs;
    if (last) {
        HASH_DEL(c->codes, e);
        c->n_codes--;
    }
    pthread_mutex_unlock(&c->code_lock);
    if (last)
        ws_discard(c->discards, entry_discard, e, e->bytes, &(struct ws_discard_charge){0});
}
