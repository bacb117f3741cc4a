// SPDX-License-Identifier: Apache-2.0
/* models/kernel_hash.c - a kernel's code as text, and the hash of that. */
#include "models/kernel_hash.h"

#include <sha256.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/budget.h"
#include "base/error.h"

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
    for (uint32_t i = 0; i < f->n_insns && ws_budget_spend(2); i++) {
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

static int by_name(const void *a, const void *b, void *arg)
{
    const struct ws_ptx_module *m = arg;
    const uint32_t *x = a, *y = b;
    int order = strcmp(m->funcs[*x].name, m->funcs[*y].name);
    return order ? order : (*x > *y) - (*x < *y);
}

/* The functions that @f may come to, in the order of their names: modules keep them in any. */
static int add_reached(SHA2_CTX *h, struct ws_ptx_reach *reach, const struct ws_ptx_func *f)
{
    const struct ws_ptx_module *m = reach->m;
    int r = 0;
    ws_ptx_reach_find(reach, f);
    qsort_r(reach->found, reach->n, sizeof(*reach->found), by_name, (void *)m);
    for (uint32_t i = 0; i < reach->n && !r; i++) {
        const struct ws_ptx_func *to = &m->funcs[reach->found[i]];
        if (to == f)
            continue;
        add_text(h, to->name);
        if (!to->is_decl)
            r = add_function(h, m, to);
    }
    return r;
}

int ws_kernel_hash(const struct ws_ptx_module *m, const struct ws_ptx_func *f,
                   char ret[static WS_PROFILE_HASH_BYTES])
{
    struct ws_ptx_reach reach;
    int r = ws_ptx_reach_init(&reach, m);
    if (!r)
        r = ws_kernel_hash_of(&reach, f, ret);
    ws_ptx_reach_deinit(&reach);
    return r ? ws_forward(r) : 0;
}

int ws_kernel_hash_of(struct ws_ptx_reach *reach, const struct ws_ptx_func *f,
                      char ret[static WS_PROFILE_HASH_BYTES])
{
    static const char digits[] = "0123456789abcdef";
    if (f->is_decl)
        return ws_raise(-EINVAL);
    SHA2_CTX h;
    SHA256Init(&h);
    add_text(&h, "wattshare kernel 1");
    int r = add_function(&h, reach->m, f);
    if (!r)
        r = add_reached(&h, reach, f);
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
