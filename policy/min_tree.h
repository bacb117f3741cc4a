// SPDX-License-Identifier: Apache-2.0
/* policy/min_tree.h - one key for each of n places; the place of the smallest key, and the first
 * place whose key is small enough, in log n steps. Ties go to the lowest place. Threads: one for
 * each tree. */
#ifndef WS_POLICY_MIN_TREE_H
#define WS_POLICY_MIN_TREE_H

#include "base/macros.h"

struct ws_min_tree {
    /* A binary heap's layout: the children of i are 2i and 2i + 1, places begin at `width` */
    double *key;
    int n, width;
};

/* All keys INFINITY. Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_min_tree_init(struct ws_min_tree *t, int n);
void ws_min_tree_deinit(struct ws_min_tree *t);
void ws_min_tree_clear(struct ws_min_tree *t);
void ws_min_tree_set(struct ws_min_tree *t, int place, double key);
static inline double ws_min_tree_get(const struct ws_min_tree *t, int place)
{
    return t->key[t->width + place];
}
/* The smallest key: INFINITY where there is none. */
static inline double ws_min_tree_min(const struct ws_min_tree *t)
{
    return t->key[1];
}
/* The lowest place with a key ≤ @most; -1: none. INFINITY is no key. */
int ws_min_tree_first(const struct ws_min_tree *t, double most);
/* The lowest place with the smallest key; -1: none. */
int ws_min_tree_argmin(const struct ws_min_tree *t);

#endif
