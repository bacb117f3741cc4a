// SPDX-License-Identifier: Apache-2.0
/* models/kernel_hash.c - a kernel's code as text, and the hash of that. */
#include "models/kernel_hash.h"

#include <sha256.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "ptx/passes/edit.h"

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

/* The instructions' text, each with its NUL. One stream for all: opening one for each takes longer
 * than printing. */
static int add_insns(SHA2_CTX *h, const struct ws_ptx_module *m, const struct ws_ptx_func *f)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    if (!out)
        return ws_raise(-ENOMEM);
    for (uint32_t i = 0; i < f->n_insns; i++) {
        ws_ptx_insn_write(m, f, &f->insns[i], out);
        putc_unlocked(0, out);
    }
    bool failed = ferror(out);
    if (fclose(out) || failed) {
        free(text);
        return ws_raise(-ENOMEM);
    }
    SHA256Update(h, (const uint8_t *)text, n);
    free(text);
    for (uint32_t i = 0; i < f->n_insns; i++)
        for (uint32_t k = 0; k < f->insns[i].n_operands; k++)
            add_named(h, m, &f->insns[i].operands[k]);
    return 0;
}

static int add_function(SHA2_CTX *h, const struct ws_ptx_module *m, const struct ws_ptx_func *f)
{
    char text[256];
    snprintf(text, sizeof(text), "%s %u %u %u; %u %u %u, %u %u %u, %u %u",
             f->is_entry ? "entry" : "func", f->n_params, f->n_rets, f->n_vars, f->maxntid[0],
             f->maxntid[1], f->maxntid[2], f->reqntid[0], f->reqntid[1], f->reqntid[2],
             f->minnctapersm, f->maxnreg);
    add_text(h, text);
    /* Its parameters and variables; their names carry the kernel's, which is no part of what it
     * does, but of which one it is. */
    for (uint32_t i = 0; i < f->n_params + f->n_rets + f->n_vars; i++)
        add_variable(h, ws_ptx_localvar(f, i));
    for (uint32_t i = 0; i < f->n_labels; i++) {
        add_text(h, f->labels[i].name);
        snprintf(text, sizeof(text), "%u", f->labels[i].insn);
        add_text(h, text);
    }
    return add_insns(h, m, f);
}

static int by_name(const void *a, const void *b)
{
    const struct ws_ptx_func *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

/* The functions that @f may come to, in the order of their names: modules keep them in any. */
static int add_reached(SHA2_CTX *h, const struct ws_ptx_module *m, const struct ws_ptx_func *f)
{
    bool *reached = ws_alloc_array(m->n_funcs, sizeof(*reached));
    const struct ws_ptx_func **found = ws_alloc_array((size_t)m->n_funcs + 1, sizeof(*found));
    size_t n = 0;
    int r = reached && found ? 0 : ws_raise(-ENOMEM);
    if (!r)
        ws_ptx_mark_reached(m, f, reached);
    for (uint32_t i = 0; i < m->n_funcs && !r; i++)
        if (reached[i] && &m->funcs[i] != f)
            found[n++] = &m->funcs[i];
    if (n)
        qsort(found, n, sizeof(*found), by_name);
    for (size_t i = 0; i < n && !r; i++) {
        add_text(h, found[i]->name);
        if (!found[i]->is_decl)
            r = add_function(h, m, found[i]);
    }
    free(found);
    free(reached);
    return r;
}

int ws_kernel_hash(const struct ws_ptx_module *m, const struct ws_ptx_func *f,
                   char ret[static WS_PROFILE_HASH_BYTES])
{
    static const char digits[] = "0123456789abcdef";
    if (f->is_decl)
        return ws_raise(-EINVAL);
    SHA2_CTX h;
    SHA256Init(&h);
    add_text(&h, "wattshare kernel 1");
    int r = add_function(&h, m, f);
    if (!r)
        r = add_reached(&h, m, f);
    if (r)
        return ws_forward(r);
    uint8_t digest[SHA256_DIGEST_LENGTH];
    SHA256Final(digest, &h);
    for (size_t i = 0; i < sizeof(digest); i++) {
        ret[2 * i] = digits[digest[i] >> 4];
        ret[2 * i + 1] = digits[digest[i] & 15];
    }
    ret[2 * sizeof(digest)] = 0;
    return 0;
}
