// SPDX-License-Identifier: Apache-2.0
/* Uploads. An image is known by the hash that the daemon computes over the bytes that arrived, so
 * no client can put bytes under another image's name. Hashing takes longer than all else that is
 * done with an image on the loop, so a piece is copied and hashed in steps. */
#include "backend/client/upload.h"

#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "backend/client/user.h"
#include "base/alloc.h"
#include "base/clock.h"

#define UPLOAD_MAX_NS (60 * WS_NS_PER_S)
enum { STEP_BYTES = 32 << 10 }; /* hashed in about 0.1 ms */

static struct ws_upload *find(struct ws_client *c, const uint8_t *sha256)
{
    ws_list_for_each (n, &c->modules.uploads) {
        struct ws_upload *u = ws_list_entry(n, struct ws_upload, node);
        if (!memcmp(u->sha256, sha256, WS_SHA256_BYTES))
            return u;
    }
    return NULL;
}

static void upload_free(struct ws_client *c, struct ws_upload *u)
{
    ws_list_remove(&u->node);
    ws_list_remove(&u->waiting);
    c->modules.n_uploads--;
    if (u->data)
        ws_discard(&c->server->discards, ws_discard_free, u->data, u->bytes,
                   &(struct ws_discard_charge){c->who.account, WS_RESOURCE_MODULE_BYTES, u->bytes});
    else
        ws_client_release(c, WS_RESOURCE_MODULE_BYTES, u->bytes);
    ws_image_unref(u->image);
    free(u);
}

void ws_uploads_free(struct ws_client *c)
{
    while (!ws_list_empty(&c->modules.uploads))
        upload_free(c, ws_list_entry(c->modules.uploads.next, struct ws_upload, node));
}

int ws_uploads_turn(struct ws_server *s)
{
    uint64_t now = WS_LIKELY(ws_list_empty(&s->uploads)) ? 0 : ws_clock_ns();
    while (!ws_list_empty(&s->uploads)) {
        struct ws_upload *u = ws_list_entry(s->uploads.next, struct ws_upload, waiting);
        if (now - u->moved_ns < UPLOAD_MAX_NS)
            return (int)((UPLOAD_MAX_NS - (now - u->moved_ns)) / WS_NS_PER_MS + 1);
        ws_log(WS_WARN, "module: upload forgotten client=%u bytes=%llu of %llu: no progress",
               u->client->id, (unsigned long long)u->received, (unsigned long long)u->bytes);
        upload_free(u->client, u);
    }
    return -1;
}

void ws_upload_loaded(struct ws_client *c, const uint8_t *sha256)
{
    struct ws_upload *u = find(c, sha256);
    if (u && u->image)
        upload_free(c, u);
}

static Ws__Error start(struct ws_client *c, const Ws__ModuleImage *q, struct ws_upload **ret)
{
    if (!q->image_bytes || q->image_bytes > c->limits.max_image_bytes)
        return WS__ERROR__INVALID_IMAGE;
    if (c->modules.n_uploads >= WS_MAX_UPLOADS)
        upload_free(c, ws_list_entry(c->modules.uploads.next, struct ws_upload, node));
    if (ws_client_charge(c, WS_RESOURCE_MODULE_BYTES, q->image_bytes))
        return WS__ERROR__OUT_OF_MEMORY;
    struct ws_upload *u = ws_alloc(sizeof(*u));
    if (!u || !(u->data = malloc(q->image_bytes))) {
        ws_client_release(c, WS_RESOURCE_MODULE_BYTES, q->image_bytes);
        free(u);
        return WS__ERROR__OUT_OF_MEMORY;
    }
    u->client = c;
    ws_list_init(&u->waiting);
    memcpy(u->sha256, q->sha256.data, WS_SHA256_BYTES);
    SHA256Init(&u->sha);
    u->bytes = q->image_bytes;
    ws_list_append(&c->modules.uploads, &u->node);
    c->modules.n_uploads++;
    *ret = u;
    return WS__ERROR__OK;
}

static Ws__Error end(struct ws_client *c, struct ws_upload *u)
{
    uint8_t sha256[WS_SHA256_BYTES];
    SHA256Final(sha256, &u->sha);
    if (memcmp(sha256, u->sha256, sizeof(sha256))) {
        upload_free(c, u);
        return WS__ERROR__INVALID_IMAGE;
    }
    u->image = ws_cache_find(&c->server->cache, sha256);
    if (u->image) { /* another client was faster; the upload stays charged for a moment */
        ws_discard(&c->server->discards, ws_discard_free, u->data, u->bytes,
                   &(struct ws_discard_charge){0});
        u->data = NULL;
        return WS__ERROR__OK;
    }
    if (ws_cache_add(&c->server->cache, sha256, u->data, u->bytes, &u->image)) {
        upload_free(c, u);
        return WS__ERROR__OUT_OF_MEMORY;
    }
    u->data = NULL;
    return WS__ERROR__OK;
}

/* The upload that the piece belongs to, made if it is the first. */
static Ws__Error upload_of(struct ws_client *c, const Ws__ModuleImage *q, struct ws_upload **ret)
{
    struct ws_upload *u = find(c, q->sha256.data);
    if (u && u->n_left && u->n_left <= q->data.len) { /* goes on */
        *ret = u;
        return WS__ERROR__OK;
    }
    if (u && !q->offset) { /* from the start again */
        upload_free(c, u);
        u = NULL;
    }
    if (!u) {
        Ws__Error e = q->offset ? WS__ERROR__INVALID_IMAGE : start(c, q, &u);
        if (e)
            return e;
    }
    if (u->image || q->offset != u->received || q->image_bytes != u->bytes ||
        q->data.len > u->bytes - u->received) {
        upload_free(c, u);
        return WS__ERROR__INVALID_IMAGE;
    }
    u->n_left = q->data.len;
    *ret = u;
    return WS__ERROR__OK;
}

Ws__Error ws_upload_piece(struct ws_client *c, const Ws__ModuleImage *q, uint64_t until_ns,
                          bool *ret_left)
{
    struct ws_upload *u;
    *ret_left = false;
    Ws__Error e = q->sha256.len == WS_SHA256_BYTES ? upload_of(c, q, &u) : WS__ERROR__INVALID_IMAGE;
    if (e)
        return e;
    ws_list_remove(&u->waiting);
    ws_list_append(&c->server->uploads, &u->waiting);
    do {
        size_t n = WS_MIN(u->n_left, (uint64_t)STEP_BYTES);
        if (n) {
            memcpy(u->data + u->received, q->data.data + (q->data.len - u->n_left), n);
            SHA256Update(&u->sha, u->data + u->received, n);
        }
        u->received += n;
        u->n_left -= n;
        u->moved_ns = ws_clock_ns();
    } while (u->n_left && u->moved_ns < until_ns);
    *ret_left = u->n_left;
    return u->received == u->bytes ? end(c, u) : WS__ERROR__OK;
}
