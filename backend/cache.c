// SPDX-License-Identifier: Apache-2.0
#include "backend/cache.h"

#include <sha256.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

void ws_cache_init(struct ws_cache *c, uint64_t limit_bytes, uint64_t max_text_bytes)
{
    *c = (struct ws_cache){.limit_bytes = limit_bytes, .max_text_bytes = max_text_bytes};
    ws_list_init(&c->lru);
}

static void code_unref(struct ws_cache *c, struct ws_code_entry *e)
{
    if (--e->n_refs)
        return;
    HASH_DEL(c->codes, e);
    c->n_codes--;
    ws_device_module_unload(e->device, e->dmodule);
    ws_ptx_module_free(e->ptx);
    free(e);
}

static void image_free(struct ws_image *i)
{
    struct ws_cache *c = i->cache;
    ws_list_remove(&i->lru);
    HASH_DEL(c->images, i);
    c->n_images--;
    c->bytes -= i->bytes;
    for (size_t k = 0; k < i->n_by_sm; k++)
        code_unref(c, i->by_sm[k].code);
    free(i->by_sm);
    free(i->data);
    free(i);
}

void ws_cache_deinit(struct ws_cache *c)
{
    struct ws_image *i, *tmp;
    HASH_ITER (hh, c->images, i, tmp)
        image_free(i);
}

static void evict(struct ws_cache *c)
{
    while (c->bytes > c->limit_bytes && !ws_list_empty(&c->lru))
        image_free(ws_list_entry(c->lru.next, struct ws_image, lru));
}

static struct ws_image *image_ref(struct ws_image *i)
{
    ws_list_remove(&i->lru);
    i->n_refs++;
    return i;
}

struct ws_image *ws_image_unref(struct ws_image *i)
{
    if (i && !--i->n_refs) {
        ws_list_append(&i->cache->lru, &i->lru);
        evict(i->cache);
    }
    return NULL;
}

struct ws_image *ws_cache_find(struct ws_cache *c, const uint8_t *sha256)
{
    struct ws_image *i;
    HASH_FIND(hh, c->images, sha256, WS_SHA256_BYTES, i);
    return i ? image_ref(i) : NULL;
}

int ws_cache_add(struct ws_cache *c, const uint8_t *sha256, uint8_t *data, uint64_t bytes,
                 struct ws_image **ret)
{
    struct ws_image *i = ws_alloc(sizeof *i);
    if (!i)
        return ws_raise(-ENOMEM);
    memcpy(i->sha256, sha256, WS_SHA256_BYTES);
    i->cache = c;
    i->data = data;
    i->bytes = bytes;
    i->n_refs = 1;
    ws_list_init(&i->lru);
    HASH_ADD_KEYPTR(hh, c->images, i->sha256, WS_SHA256_BYTES, i);
    c->bytes += bytes;
    c->n_images++;
    evict(c);
    *ret = i;
    return 0;
}

/* The PTX text inside the image that this compute capability should run. */
static int image_text(const struct ws_image *i, uint32_t sm, char **ret, size_t *ret_len,
                      const char *name, struct ws_diags *diags)
{
    switch (ws_image_kind(i->data, i->bytes)) {
    case WS_IMAGE_FATBIN:
        return ws_fatbin_ptx(i->data, i->bytes, sm, i->cache->max_text_bytes, ret, ret_len, diags);
    case WS_IMAGE_PTX:
        *ret_len = i->bytes;
        *ret = ws_alloc(i->bytes + 1);
        if (!*ret)
            return ws_raise(-ENOMEM);
        memcpy(*ret, i->data, i->bytes);
        return 0;
    case WS_IMAGE_CUBIN:
        ws_diags_add(diags, name, 0, 0,
                     "holds machine code only; a software GPU needs PTX (nvcc -gencode "
                     "arch=compute_XX,code=compute_XX)");
        return WS_PTX_E_NOTFOUND;
    default:
        ws_diags_add(diags, name, 0, 0, "is neither a fatbin nor PTX text nor a cubin");
        return WS_PTX_E_FORMAT;
    }
}

static int code_new(struct ws_cache *c, const uint8_t *sha256, struct ws_device *device,
                    const char *text, size_t len, const char *name, struct ws_code_entry **ret,
                    struct ws_diags *diags)
{
    struct ws_code_entry *e = ws_alloc(sizeof *e);
    if (!e)
        return ws_raise(-ENOMEM);
    int r = ws_ptx_parse(&e->ptx, text, len, name, diags);
    if (!r)
        r = ws_device_module_load(device, e->ptx, &e->dmodule, diags);
    if (r) {
        ws_ptx_module_free(e->ptx);
        free(e);
        return r;
    }
    memcpy(e->sha256, sha256, WS_SHA256_BYTES);
    e->device = device;
    e->info = ws_dmodule_info(e->dmodule);
    HASH_ADD_KEYPTR(hh, c->codes, e->sha256, WS_SHA256_BYTES, e);
    c->n_codes++;
    *ret = e;
    return 0;
}

int ws_image_code(struct ws_image *i, struct ws_device *device, const char *name,
                  struct ws_code_entry **ret, struct ws_diags *diags)
{
    uint32_t sm = device->spec.cc_major * 10 + device->spec.cc_minor;
    for (size_t k = 0; k < i->n_by_sm; k++)
        if (i->by_sm[k].sm == sm) {
            *ret = i->by_sm[k].code;
            return 0;
        }
    int r = ws_grow((void **)&i->by_sm, &i->cap_by_sm, i->n_by_sm + 1, sizeof *i->by_sm);
    if (r)
        return ws_forward(r);
    char *text = NULL;
    size_t len;
    r = image_text(i, sm, &text, &len, name, diags);
    if (r)
        return r;
    SHA2_CTX sha;
    uint8_t key[WS_SHA256_BYTES];
    SHA256Init(&sha);
    SHA256Update(&sha, (const uint8_t *)text, len);
    SHA256Final(key, &sha);
    struct ws_code_entry *e;
    HASH_FIND(hh, i->cache->codes, key, WS_SHA256_BYTES, e);
    if (!e)
        r = code_new(i->cache, key, device, text, len, name, &e, diags);
    free(text);
    if (r)
        return r;
    e->n_refs++;
    i->by_sm[i->n_by_sm].sm = sm;
    i->by_sm[i->n_by_sm++].code = e;
    *ret = e;
    return 0;
}
