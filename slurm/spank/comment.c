// SPDX-License-Identifier: Apache-2.0
#include "slurm/spank/comment.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char between[] = "; ";

static bool is_of(const char *entry, const char *node)
{
    size_t n = strlen(node);
    return !strncmp(entry, node, n) && !strncmp(entry + n, ": ", 2);
}

char *ws_comment_with(const char *old, const char *node, const char *text)
{
    size_t n = strlen(old) + strlen(node) + strlen(text) + 2 * sizeof(between);
    char *ret = malloc(n), *to = ret;
    if (!ret)
        return NULL;
    while (*old) {
        const char *end = strstr(old, between);
        size_t len = end ? (size_t)(end - old) : strlen(old);
        if (!is_of(old, node))
            to += sprintf(to, "%.*s%s", (int)len, old, between);
        old += len + (end ? strlen(between) : 0);
    }
    sprintf(to, "%s: %s", node, text);
    return ret;
}
