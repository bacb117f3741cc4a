/* SPDX-License-Identifier: Apache-2.0 */
/* tests/attack/work.c - attacks by single commands and requests that are much work for the daemon:
 * row 7. */
#include <stdlib.h>

#include "tests/attack/attack.h"

static bool open_or_wait(struct raw *r, const struct target *t)
{
    while (attack_goes_on(t)) {
        if (!raw_open(r, t->sock, NULL))
            return true;
        attack_sleep_ms(5);
    }
    return false;
}

/* An image of 256 MiB in pieces of nearly 4 MiB. It is not what its hash says, but that is known
 * at its end only. */
static const char *pieces(const struct target *t, unsigned copy)
{
    enum { PIECE = (4 << 20) - 4096, PIECES = 64 };
    uint8_t *piece = calloc(1, PIECE), sha256[WS_SHA256_BYTES] = {(uint8_t)copy};
    Ws__ModuleImage image = WS__MODULE_IMAGE__INIT;
    struct raw r;
    image.image_bytes = (uint64_t)PIECE * PIECES;
    image.sha256 = (ProtobufCBinaryData){sizeof(sha256), sha256};
    image.data = (ProtobufCBinaryData){PIECE, piece};
    for (; attack_goes_on(t) && open_or_wait(&r, t); raw_close(&r))
        for (unsigned i = 0; attack_goes_on(t); i = (i + 1) % PIECES) {
            image.offset = (uint64_t)i * PIECE;
            raw_put(&r, WS__COMMAND__C_MODULE_IMAGE, &image);
            if (raw_send(&r))
                break;
        }
    return NULL;
}

const struct attack attacks_work[] = {
    {"7", "pieces", "images of 256 MiB in pieces of 4 MiB", pieces, .copies = 1}, {0}};
