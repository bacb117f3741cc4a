// SPDX-License-Identifier: Apache-2.0
/* models/kernel_hash.c - a kernel's code as text, and the hash of that. */
#include "models/kernel_hash.h"

#include <sha256.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "ptx/edit.h"

enum { INSN_BYTES = 4096 };

static void add_text(SHA2_CTX *h, const char *s)
{
    SHA256Update(h, (const uint8_t *)s,
                 strlen(s) + 1); /* with the NUL, so that "ab" "c" isn't "a" "bc" */
}

static void add_variable(SHA2_CTX *h, const struct ws_ptx_var *v)
{
    char text[96];
    snprintf(text, sizeof(text), "%u %u %u %llu %u", v->space, v->type, v->vec,
             (unsigned long long)v->size_bytes, v->align);
    add_text(h, v->name);
    add_text(h, text);
}

/* The module's variables that an operand names; those of the function are hashed with it. */
static void add_named(SHA2_CTX *h, const struct ws_ptx_module *m, const struct ws_ptx_operand *o)
{
    if (o->sym >= 0 && WS_PTX_SYM_KIND(o->sym) == WS_PTX_SYM_VAR &&
        (o->kind == WS_OPD_SYM || o->kind == WS_OPD_ADDR) &&
        (uint32_t)WS_PTX_SYM_INDEX(o->sym) < m->n_vars)
        add_variable(h, &m->vars[WS_PTX_SYM_INDEX(o->sym)]);
    for (uint32_t i = 0; i < o->n; i++)
        add_named(h, m, &o->v[i]);
}

static void add_function(SHA2_CTX *h, const struct ws_ptx_module *m, const struct ws_ptx_func *f,
                         char *text)
{
    snprintf(text, INSN_BYTES, "%s %u %u %u; %u %u %u, %u %u %u, %u %u",
             f->is_entry ? "entry" : "func", f->n_params, f->n_rets, f->n_vars, f->maxntid[0],
             f->maxntid[1], f->maxntid[2], f->reqntid[0], f->reqntid[1], f->reqntid[2],
             f->minnctapersm, f->maxnreg);
    add_text(h, text);
    /* Its parameters and variables; their names carry the kernel's, which is no part of what it does, but of which one it is. */
    for (uint32_t i = 0; i < f->n_params + f->n_rets + f->n_vars; i++)
        add_variable(h, ws_ptx_localvar(f, i));
    for (uint32_t i = 0; i < f->n_labels; i++) {
        snprintf(text, INSN_BYTES, "%s %u", f->labels[i].name, f->labels[i].insn);
        add_text(h, text);
    }
    for (uint32_t i = 0; i < f->n_insns; i++) {
        const struct ws_ptx_insn *insn = &f->insns[i];
        ws_ptx_insn_text(m, f, insn, text, INSN_BYTES);
        add_text(h, text);
        for (uint32_t k = 0; k < insn->n_operands; k++)
            add_named(h, m, &insn->operands[k]);
    }
}

static int by_name(const void *a, const void *b)
{
    const struct ws_ptx_func *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

int ws_kernel_hash(const struct ws_ptx_module *m, const struct ws_ptx_func *f,
                   char ret[static WS_PROFILE_HASH_BYTES])
{
    if (f->is_decl)
        return ws_raise(-EINVAL);
    char *text = ws_alloc(INSN_BYTES);
    bool *reached = ws_alloc_array(m->n_funcs, sizeof(*reached));
    if (!text || !reached) {
        free(text);
        free(reached);
        return ws_raise(-ENOMEM);
    }
    SHA2_CTX h;
    SHA256Init(&h);
    add_text(&h, "wattshare kernel 1");
    add_function(&h, m, f, text);
    ws_ptx_mark_reached(m, f, reached);
    /* In the order of their names: modules keep them in any. */
    const struct ws_ptx_func **found = ws_alloc_array((size_t)m->n_funcs + 1, sizeof(*found));
    size_t n = 0;
    if (!found) {
        free(text);
        free(reached);
        return ws_raise(-ENOMEM);
    }
    for (uint32_t i = 0; i < m->n_funcs; i++)
        if (reached[i] && &m->funcs[i] != f)
            found[n++] = &m->funcs[i];
    qsort(found, n, sizeof(*found), by_name);
    for (size_t i = 0; i < n; i++) {
        add_text(&h, found[i]->name);
        if (!found[i]->is_decl)
            add_function(&h, m, found[i], text);
    }
    free(found);
    uint8_t digest[SHA256_DIGEST_LENGTH];
    SHA256Final(digest, &h);
    for (size_t i = 0; i < sizeof(digest); i++)
        snprintf(ret + 2 * i, 3, "%02x", digest[i]);
    free(text);
    free(reached);
    return 0;
}
