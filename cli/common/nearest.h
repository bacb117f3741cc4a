// SPDX-License-Identifier: Apache-2.0
/* cli/common/nearest.h - which of the right words a wrong one was probably meant to be. Threads:
 * any. */
#ifndef WS_CLI_COMMON_NEAREST_H
#define WS_CLI_COMMON_NEAREST_H

#include <stddef.h>

struct ws_nearest {
    const char *word; /* what was typed */
    const char *best; /* NULL: no word that was tried is near */
    size_t distance;  /* of the best */
};

/* A word is near if few letters must be changed, added, removed or exchanged with their neighbour:
 * at most one in three of what was typed. Borrows @word. */
void ws_nearest_init(struct ws_nearest *n, const char *word);
/* Borrows @candidate. */
void ws_nearest_try(struct ws_nearest *n, const char *candidate);
/* "; did you mean 'BEST'?", or "". Returns @buf. */
const char *ws_nearest_text(const struct ws_nearest *n, char *buf, size_t size);

#endif
