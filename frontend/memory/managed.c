// SPDX-License-Identifier: Apache-2.0
/* The daemon loads a module with all its variables in device memory. The managed ones are then
 * moved to memory that the daemon shares with this process, before anybody has seen their
 * addresses. */
#include "frontend/memory/managed.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "frontend/errors.h"
#include "frontend/memory/hostmem.h"

struct ws_managed {
    struct ws_managed *next;
    char *name;
    void *memory;
};

static const struct ws_managed *find(const struct ws_managed *list, const char *name)
{
    while (list && strcmp(list->name, name) != 0)
        list = list->next;
    return list;
}

/* Each gets pages of its own. */
static int make(struct ws_managed **list, const char *name, uint64_t bytes, int device)
{
    struct ws_managed *v = ws_alloc(sizeof(*v));
    char *copy = v ? ws_strdup(name) : NULL;
    int code = CUDA_OUT_OF_MEMORY;
    if (copy)
        code = ws_hostmem_alloc(WS_HOSTMEM_MANAGED, device, bytes, 0, &v->memory);
    if (code) {
        free(copy);
        free(v);
        return code;
    }
    v->name = copy;
    v->next = *list;
    *list = v;
    return CUDA_OK;
}

int ws_managed_place(struct ws_managed **list, struct ws_session_module *m, int device)
{
    struct ws_managed *before = *list;
    const char *name;
    uint64_t bytes;
    size_t n = 0;
    int code = CUDA_OK;
    while (!code && ws_session_module_managed(m, n, &name, &bytes)) {
        n++;
        if (!ws_session_maps_host()) {
            ws_session_unsupported("__managed__ variables with a remote daemon");
            code = CUDA_NOT_SUPPORTED;
        } else if (!find(before, name)) {
            code = make(list, name, bytes, device);
        }
    }
    uint64_t at[n + 1];
    for (size_t i = 0; !code && i < n; i++) {
        ws_session_module_managed(m, i, &name, &bytes);
        at[i] = (uintptr_t)find(*list, name)->memory;
    }
    if (!code && n)
        code = ws_drv_error(ws_session_module_place(m, at, before != NULL));
    while (code && *list != before) {
        struct ws_managed *v = *list;
        *list = v->next;
        v->next = NULL;
        ws_managed_free(v);
    }
    return code;
}

void ws_managed_free(struct ws_managed *list)
{
    while (list) {
        struct ws_managed *next = list->next;
        ws_hostmem_free(WS_HOSTMEM_MANAGED, list->memory);
        free(list->name);
        free(list);
        list = next;
    }
}
