/* SPDX-License-Identifier: Apache-2.0 */
/* backend/client/upload.h - images of modules on their way to the daemon. Threads: the loop. */
#ifndef WS_BACKEND_CLIENT_UPLOAD_H
#define WS_BACKEND_CLIENT_UPLOAD_H

#include <sha256.h>
#include "backend/client/client.h"
#include "backend/code/cache.h"

struct ws_upload {
    struct ws_list node;    /* client->modules.uploads */
    struct ws_list waiting; /* server->uploads */
    struct ws_client *client;
    uint64_t moved_ns;               /* when a part of it came last */
    uint8_t sha256[WS_SHA256_BYTES]; /* as claimed */
    SHA2_CTX sha;                    /* of what was received */
    uint8_t *data;
    uint64_t bytes, received;
    uint64_t n_left;        /* of the piece that is being taken over */
    struct ws_image *image; /* complete: held until the ModuleLoad that follows */
};
enum { WS_MAX_UPLOADS = 4 };

/* Takes a piece of an image over, until @until_ns or a little longer. *ret_left: whether some of it
 * is left: the same piece is to be given again, before anything else of the client. */
Ws__Error ws_upload_piece(struct ws_client *c, const Ws__ModuleImage *m, uint64_t until_ns,
                          bool *ret_left);
/* The image has been asked for: if its upload is complete, that is forgotten. */
void ws_upload_loaded(struct ws_client *c, const uint8_t *sha256);
void ws_uploads_free(struct ws_client *c);
/* Forgets uploads that make no progress. Return: ms after which to look again, or -1. */
int ws_uploads_turn(struct ws_server *s);

#endif
