// SPDX-License-Identifier: Apache-2.0
/* The distance of two words by dynamic programming: cell (i, k) is the distance of the first i
 * letters of one from the first k of the other. Three rows are kept, since an exchange of
 * neighbours looks two rows back. */
#include "config.h"

#include "cli/common/nearest.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/macros.h"

enum { LETTERS_MAX = 32 };

static size_t distance(const char *a, const char *b)
{
    size_t rows[3][LETTERS_MAX + 1], n = strlen(a), m = strlen(b);
    if (n > LETTERS_MAX || m > LETTERS_MAX)
        return SIZE_MAX;
    for (size_t k = 0; k <= m; k++)
        rows[0][k] = k;
    for (size_t i = 1; i <= n; i++) {
        size_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *two_above = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t k = 1; k <= m; k++) {
            size_t changed = above[k - 1] + (a[i - 1] != b[k - 1]);
            row[k] = WS_MIN(changed, WS_MIN(above[k], row[k - 1]) + 1);
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
                row[k] = WS_MIN(row[k], two_above[k - 2] + 1);
        }
    }
    return rows[n % 3][m];
}

void ws_nearest_init(struct ws_nearest *n, const char *word)
{
    *n = (struct ws_nearest){.word = word, .distance = strlen(word) / 3 + 1};
}

void ws_nearest_try(struct ws_nearest *n, const char *candidate)
{
    size_t d = distance(n->word, candidate);
    if (d >= n->distance)
        return;
    n->best = candidate;
    n->distance = d;
}

const char *ws_nearest_text(const struct ws_nearest *n, char *buf, size_t size)
{
    snprintf(buf, size, n->best ? "; did you mean '%s'?" : "%s", n->best ? n->best : "");
    return buf;
}
