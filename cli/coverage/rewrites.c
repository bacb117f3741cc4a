// SPDX-License-Identifier: Apache-2.0
/* Finds which rewritings each kernel allows (ptx/passes/pass.h), that is, how it can be carried
 * out while others share its GPU. */
#include "config.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/coverage/coverage.h"
#include "cli/common/table.h"
#include "ptx/passes/pass.h"

static const char *const names[_WS_COVER_REWRITE_N] = {"slice", "ticket", "persistent", "fence",
                                                       "fuse"};

/* malloc'ed; NULL: it allows it. */
static int ask(const struct ws_ptx_module *m, uint32_t f, int rewrite, char **ret)
{
    char why[160] = "";
    bool flat = false;
    int r;
    if (rewrite == WS_COVER_FENCE)
        r = ws_ptx_fence_refused(m, f, why, sizeof(why));
    else if (rewrite == WS_COVER_FUSE)
        r = ws_ptx_fuse_refused(m, f, why, sizeof(why));
    else
        r = ws_ptx_rewrite_refused(m, f, (enum ws_ptx_rewrite)(WS_REWRITE_SLICE + rewrite), &flat,
                                   why, sizeof(why));
    *ret = r > 0 ? ws_strdup(why) : NULL;
    return r < 0 || (r > 0 && !*ret) ? -ENOMEM : 0;
}

void ws_cover_rewrites(struct ws_cover *c, const struct ws_ptx_module *m)
{
    for (uint32_t f = 0; f < m->n_funcs; f++) {
        if (!m->funcs[f].is_entry || m->funcs[f].is_decl)
            continue;
        if (ws_grow((void **)&c->rewrites, &c->cap_rewrites, c->n_rewrites + 1,
                    sizeof(*c->rewrites))) {
            c->oom = true;
            return;
        }
        struct ws_cover_rewrite *k = &c->rewrites[c->n_rewrites++];
        *k = (struct ws_cover_rewrite){.kernel = ws_strdup(m->funcs[f].name)};
        c->oom |= !k->kernel;
        for (int i = 0; i < _WS_COVER_REWRITE_N; i++)
            c->oom |= ask(m, f, i, &k->why_not[i]) < 0;
    }
}

void ws_cover_rewrites_deinit(struct ws_cover *c)
{
    for (size_t k = 0; k < c->n_rewrites; k++) {
        free(c->rewrites[k].kernel);
        for (int i = 0; i < _WS_COVER_REWRITE_N; i++)
            free(c->rewrites[k].why_not[i]);
    }
    free(c->rewrites);
}

void ws_cover_rewrites_print(const struct ws_cover *c, FILE *out)
{
    static const char *const heads[] = {"  kernel", "slice", "ticket",  "persistent",
                                        "fence",    "fuse",  "why not", NULL};
    struct ws_table t;
    if (!c->n_rewrites)
        return;
    ws_table_init(&t, heads);
    for (size_t k = 0; k < c->n_rewrites; k++) {
        const struct ws_cover_rewrite *r = &c->rewrites[k];
        const char *why = "";
        ws_table_add(&t, "  %.60s", r->kernel);
        for (int i = 0; i < _WS_COVER_REWRITE_N; i++) {
            ws_table_add(&t, "%s", r->why_not[i] ? "no" : "yes");
            if (r->why_not[i] && !*why)
                why = r->why_not[i];
        }
        ws_table_add(&t, "%s", why);
    }
    ws_table_print(&t, out);
    ws_table_deinit(&t);
}

struct json_object *ws_cover_rewrites_json(const struct ws_cover *c)
{
    struct json_object *list = json_object_new_array();
    for (size_t k = 0; k < c->n_rewrites; k++) {
        const struct ws_cover_rewrite *r = &c->rewrites[k];
        struct json_object *o = json_object_new_object();
        json_object_object_add(o, "kernel", json_object_new_string(r->kernel ? r->kernel : ""));
        for (int i = 0; i < _WS_COVER_REWRITE_N; i++)
            json_object_object_add(o, names[i],
                                   r->why_not[i] ? json_object_new_string(r->why_not[i])
                                                 : json_object_new_boolean(true));
        json_object_array_add(list, o);
    }
    return list;
}
