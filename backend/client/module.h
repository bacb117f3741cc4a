/* SPDX-License-Identifier: Apache-2.0 */
/* backend/client/module.h - modules of a client. Threads: the loop. */
#ifndef WS_BACKEND_CLIENT_MODULE_H
#define WS_BACKEND_CLIENT_MODULE_H

#include "backend/client/client.h"
#include "backend/code/cache.h"
#include "base/table.h"

struct ws_module {
    uint64_t id;
    struct ws_context *context;
    struct ws_image_use *use;
    struct ws_image *image; /* of @use */
    struct ws_code_entry *code;
    struct ws_dinstance *instance;
    uint64_t *var_va;
    struct ws_allocation *variables; /* NULL: none */
    bool launched;                   /* a kernel of it has been given */
    bool placing;                    /* another instance is being made, for other places */
    uint64_t n_resets;               /* of the context, when it was loaded */
    uint32_t n_refs;      /* its id, or the join that takes it away; launches that have not ended */
    struct ws_list node;  /* context->modules, as long as it is there */
    struct ws_list taken; /* a join's modules, or client->modules.making */
    UT_hash_handle hh;
};

struct ws_client_modules {
    struct ws_module *by_id, *last; /* last: that was found */
    struct ws_list uploads;         /* newest last */
    uint32_t n_uploads;
    struct ws_list making; /* those whose first instance is being made: ws_module.taken */
    struct ws_list loads;  /* ModuleLoads whose code is being made */
};

/* Has the module's code made, answers and retires the ModuleLoad. */
void ws_module_load(struct ws_client *c, const Ws__ModuleLoad *m, uint64_t seq);
/* Takes the client's waiting loads away; those of @x are answered with an error, without @x
 * nobody is told. */
void ws_module_loads_forget(struct ws_client *c, struct ws_context *x);
/* Moves a module's managed variables to the client's mapped memory, answers and retires the
 * command. Nothing of it has run. */
void ws_module_place(struct ws_client *c, const Ws__ModulePlace *m, uint64_t seq);
struct ws_module *ws_module_find(struct ws_client *c, uint64_t id);
/* Its id is free; the reference that went with the id is the caller's. */
void ws_module_unlink(struct ws_client *c, struct ws_module *m);
static inline struct ws_module *ws_module_ref(struct ws_module *m)
{
    m->n_refs++;
    return m;
}
void ws_module_unref(struct ws_module *m); /* the last one frees it */
Ws__Error ws_module_occupancy(struct ws_client *c, const Ws__Occupancy *m, uint32_t *ret_blocks);
/* Of a client that is gone: one of its modules. Return: false: it has none. */
bool ws_modules_free_one(struct ws_client *c);

#endif
