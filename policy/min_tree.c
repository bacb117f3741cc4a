// SPDX-License-Identifier: Apache-2.0
/* A tournament: each inner node has the smaller key of its two children. */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "policy/min_tree.h"

int ws_min_tree_init(struct ws_min_tree *t, int n)
{
    *t = (struct ws_min_tree){.n = n, .width = 1};
    while (t->width < n)
        t->width *= 2;
    t->key = ws_alloc_array(2 * (size_t)t->width, sizeof(*t->key));
    if (!t->key)
        return ws_raise(-ENOMEM);
    ws_min_tree_clear(t);
    return 0;
}

void ws_min_tree_deinit(struct ws_min_tree *t)
{
    free(t->key);
    *t = (struct ws_min_tree){0};
}

void ws_min_tree_clear(struct ws_min_tree *t)
{
    for (int i = 0; i < 2 * t->width; i++)
        t->key[i] = INFINITY;
}

void ws_min_tree_set(struct ws_min_tree *t, int place, double key)
{
    int i = t->width + place;
    t->key[i] = key;
    while ((i /= 2)) {
        double smaller = fmin(t->key[2 * i], t->key[2 * i + 1]);
        if (t->key[i] == smaller)
            break;
        t->key[i] = smaller;
    }
}

int ws_min_tree_first(const struct ws_min_tree *t, double most)
{
    int i = 1;
    if (!(t->key[1] <= most) || isinf(t->key[1]))
        return -1;
    while (i < t->width)
        i = t->key[2 * i] <= most ? 2 * i : 2 * i + 1;
    return i - t->width;
}

int ws_min_tree_argmin(const struct ws_min_tree *t)
{
    return ws_min_tree_first(t, t->key[1]);
}
