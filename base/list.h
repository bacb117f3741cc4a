// SPDX-License-Identifier: Apache-2.0
/* base/list.h - intrusive doubly linked list. A head and an unlinked node both point at themselves.
 * Threads: none. */
#ifndef WS_BASE_LIST_H
#define WS_BASE_LIST_H

#include <stdbool.h>
#include "base/macros.h"

struct ws_list {
    struct ws_list *prev, *next;
};

static inline void ws_list_init(struct ws_list *l)
{
    l->prev = l->next = l;
}

static inline bool ws_list_empty(const struct ws_list *l)
{
    return l->next == l;
}

static inline void ws_list_append(struct ws_list *head, struct ws_list *node)
{
    node->prev = head->prev;
    node->next = head;
    head->prev->next = node;
    head->prev = node;
}

/* Safe on an unlinked node. */
static inline void ws_list_remove(struct ws_list *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    ws_list_init(node);
}

static inline struct ws_list *ws_list_pop(struct ws_list *head)
{
    struct ws_list *n = head->next;
    if (n == head)
        return NULL;
    ws_list_remove(n);
    return n;
}

#define ws_list_entry(node, type, member) WS_CONTAINER_OF(node, type, member)
#define ws_list_for_each(it, head)                                                                 \
    for (struct ws_list *it = (head)->next; it != (head); it = it->next)
#define ws_list_for_each_safe(it, head)                                                            \
    for (struct ws_list *it = (head)->next, *it##_next = it->next; it != (head);                   \
         it = it##_next, it##_next = it->next)

#endif
