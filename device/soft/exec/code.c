// SPDX-License-Identifier: Apache-2.0
/* device/soft/exec/code.c - a module made executable: the vector build that fits the host, and an
 * image of each kernel with what is known of it (registers, memory, why it cannot run). */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/budget.h"
#include "base/clock.h"
#include "base/error.h"
#include "device/soft/decode/priv.h"
#include "device/soft/exec/tex.h"
#include "device/soft/jit/jit.h"
#include "device/space.h"

/* ---- vector builds ---- */
static const struct ws_isa *isa_pick(void)
{
    static const struct ws_isa *const all[] = {
#ifndef WS_ONE_CORE
        &ws_isa_avx512, &ws_isa_avx2,
#endif
        &ws_isa_sse2};
    const char *want = getenv("WS_SOFT_ISA");
    for (size_t k = 0; k < WS_ARRAY_SIZE(all); k++)
        if (want && strcmp(want, all[k]->name) == 0 && all[k]->supported())
            return all[k];
    for (size_t k = 0; k < WS_ARRAY_SIZE(all); k++)
        if (all[k]->supported())
            return all[k];
    return &ws_isa_sse2;
}

const char *ws_exec_isa(void)
{
    return isa_pick()->name;
}

/* ---- code ---- */
/* Where the registers of a function are used, in the order of the text. */
struct spans {
    uint32_t *first, *last; /* [n_regs]: instructions; first ~0: never used */
    /* Registers by their last use: those of instruction k are of_last[k] - 1 and what next names,
     * down to 0. */
    uint32_t *of_last, *next;
    int32_t *delta; /* [n_insns + 2]: how many more are live from there on */
};

static void note_uses(const struct ws_ptx_func *f, struct spans *s)
{
    memset(s->first, 0xff, (f->n_regs + (size_t)1) * sizeof(*s->first));
    for (uint32_t k = 0; k < f->n_insns; k++)
        for (unsigned n = 0; n < f->insns[k].n_operands; n++) {
            const struct ws_ptx_operand *o = &f->insns[k].operands[n];
            for (unsigned j = 0; j < (o->n ? o->n : 1u); j++) {
                int32_t r = o->n ? o->v[j].reg : o->reg;
                if (r < 0 || (uint32_t)r >= f->n_regs)
                    continue;
                s->first[r] = WS_MIN(s->first[r], k);
                s->last[r] = k;
            }
        }
    for (uint32_t r = 0; r < f->n_regs; r++)
        if (s->first[r] != ~0u) {
            s->next[r] = s->of_last[s->last[r]];
            s->of_last[s->last[r]] = r + 1;
        }
}

/* Registers that were used before the loop from @head to @k, and are last used in it, are live to
 * its end. Return: how many steps it took. */
static uint64_t stretch(struct spans *s, uint32_t head, uint32_t k)
{
    uint64_t steps = k - head;
    for (uint32_t at = head; at < k; at++) {
        uint32_t *link = &s->of_last[at];
        while (*link) {
            uint32_t r = *link - 1;
            steps++;
            if (s->first[r] >= head) {
                link = &s->next[r];
                continue;
            }
            *link = s->next[r];
            s->next[r] = s->of_last[k];
            s->of_last[k] = r + 1;
            s->last[r] = k;
        }
    }
    return steps;
}

static void stretch_over_loops(const struct ws_ptx_func *f, struct spans *s)
{
    uint64_t left = WS_MIN(UINT64_C(1000000) + 200 * (uint64_t)f->n_insns, UINT64_C(100000000));
    for (uint32_t k = 0; k < f->n_insns; k++) {
        const struct ws_ptx_insn *i = &f->insns[k];
        if (i->op != WS_OP_BRA || f->labels[i->operands[0].label].insn > k)
            continue;
        uint64_t steps = stretch(s, f->labels[i->operands[0].label].insn, k);
        if (steps > left || !ws_budget_spend(steps / 16)) /* a rougher estimate will do */
            return;
        left -= steps;
    }
}

static uint32_t most_live(const struct ws_ptx_func *f, const struct spans *s)
{
    int32_t live = 0;
    uint32_t max = 0;
    for (uint32_t r = 0; r < f->n_regs; r++) {
        if (s->first[r] == ~0u)
            continue;
        unsigned bytes = f->regs[r].type == WS_T_PRED ? 0 : ws_ptx_type_bytes(f->regs[r].type);
        s->delta[s->first[r]] += (int32_t)(bytes + 3) / 4;
        s->delta[s->last[r] + 1] -= (int32_t)(bytes + 3) / 4;
    }
    for (uint32_t k = 0; k < f->n_insns; k++) {
        live += s->delta[k];
        max = WS_MAX(max, (uint32_t)live);
    }
    return max;
}

/* What ptxas would use: the most registers live at once in the order of the text, where a register
 * that a loop reads is live in all of the loop. 32-bit units, predicates not counted. An estimate:
 * ptxas reorders and shares, and unrolls loops where there are registers for it. For 108 kernels of
 * tests/cuda, tests/ptx_run and bench, ptxas of CUDA 13.0 (sm_75) takes as many as the median, 7
 * more or less on average. */
static uint32_t estimate_regs(const struct ws_ptx_func *f)
{
    struct ws_arena a = WS_ARENA_NULL;
    struct spans s = {
        .first = ws_arena_array(&a, f->n_regs + (size_t)1, sizeof(*s.first)),
        .last = ws_arena_array(&a, f->n_regs + (size_t)1, sizeof(*s.last)),
        .of_last = ws_arena_array(&a, f->n_insns + (size_t)1, sizeof(*s.of_last)),
        .next = ws_arena_array(&a, f->n_regs + (size_t)1, sizeof(*s.next)),
        .delta = ws_arena_array(&a, f->n_insns + (size_t)2, sizeof(*s.delta)),
    };
    uint32_t max = 0;
    if (s.first && s.last && s.of_last && s.next && s.delta) {
        note_uses(f, &s);
        stretch_over_loops(f, &s);
        max = most_live(f, &s);
    }
    ws_arena_deinit(&a);
    if (f->maxnreg)
        max = WS_MIN(max, f->maxnreg);
    return WS_MIN(WS_MAX(max, 16u), 255u);
}

static uint32_t max_threads(const struct ws_ptx_func *f)
{
    const uint32_t *n = f->reqntid[0] ? f->reqntid : f->maxntid;
    if (!n[0])
        return 1024;
    uint64_t all = (uint64_t)n[0] * WS_MAX(n[1], 1u) * WS_MAX(n[2], 1u);
    return (uint32_t)WS_MIN(all, UINT64_C(1024));
}

static uint32_t const_bytes(const struct ws_ptx_module *m)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < m->n_vars; k++)
        if (m->vars[k].space == WS_SP_CONST)
            n += (uint32_t)m->vars[k].size_bytes;
    return n;
}

static void describe(const struct ws_code *c, const struct ws_ptx_func *f,
                     const struct ws_exec_image *img, struct ws_kernel_info *ret)
{
    *ret = ws_kernel_info_of(c->m, f);
    ret->static_shared_bytes = img->shared_bytes;
    ret->local_bytes = img->local_bytes;
    ret->n_regs = estimate_regs(f);
    ret->max_threads_per_block = max_threads(f);
    ret->uses_heap = img->uses_heap;
    ret->prints = img->prints;
    ret->starts = img->starts;
    ret->const_bytes = c->const_bytes;
}

/* A kernel that can't run: its name and parameters, and why. */
static int describe_unsupported(struct ws_code *c, const struct ws_ptx_func *f, int code,
                                const char *reason, struct ws_kernel_info *ret)
{
    char *why = ws_arena_strndup(&c->arena, reason, strlen(reason));
    if (!why)
        return ws_raise(-ENOMEM);
    *ret = ws_kernel_info_of(c->m, f);
    ret->unsupported = why;
    ret->unsupported_code = code;
    return 0;
}

static int decode_kernel(struct ws_code *c, struct ws_dec *d, const struct ws_ptx_func *f)
{
    char reason[256];
    if (!ws_budget_spend(1))
        return ws_raise(-ENOMEM);
    struct ws_exec_image **img = &c->images[c->n_kernels];
    struct ws_kernel_info *info = &c->infos[c->n_kernels];
    int r = ws_dec_image(d, (uint32_t)(f - c->m->funcs), img, reason);
    if (r > 0)
        r = describe_unsupported(c, f, r, reason, info);
    else if (r == 0)
        describe(c, f, *img, info);
    c->n_kernels += r == 0;
    return r;
}

static int decode(struct ws_code **ret, const struct ws_ptx_module *m, uint32_t hardware_cc,
                  struct ws_diags *diags, const struct ws_audit *audit)
{
    struct ws_code *c = ws_alloc(sizeof(*c));
    struct ws_dec *d = NULL;
    uint32_t n_kernels = 0;
    if (!c)
        return ws_raise(-ENOMEM);
    c->n_refs = 1;
    c->m = m;
    c->hardware_cc = hardware_cc;
    c->isa = isa_pick();
    c->audit = audit;
    c->jit = audit ? NULL : ws_jit_images_new(c);
    c->const_bytes = const_bytes(m);
    for (uint32_t k = 0; k < m->n_funcs; k++)
        n_kernels += m->funcs[k].is_entry && !m->funcs[k].is_decl;
    c->infos = ws_arena_array(&c->arena, n_kernels + (size_t)1, sizeof(*c->infos));
    c->images = ws_arena_array(&c->arena, n_kernels + (size_t)1, sizeof(*c->images));
    int r = c->infos && c->images ? ws_dec_new(&d, c, diags) : ws_raise(-ENOMEM);
    for (uint32_t k = 0; !r && k < m->n_funcs; k++)
        if (m->funcs[k].is_entry && !m->funcs[k].is_decl)
            r = decode_kernel(c, d, &m->funcs[k]);
    ws_dec_free(d);
    if (r != 0) {
        ws_code_free(c);
        return ws_forward(r);
    }
    uint64_t n_uops = 0;
    for (uint32_t k = 0; k < c->n_kernels; k++)
        n_uops += c->images[k] ? c->images[k]->n_uops : 0; /* some are not supported */
    ws_jit_images_reserve(c->jit, n_uops);
    *ret = c;
    return 0;
}

int ws_code_new(struct ws_code **ret, const struct ws_ptx_module *m, uint32_t hardware_cc,
                struct ws_diags *diags)
{
    return decode(ret, m, hardware_cc, diags, NULL);
}

int ws_code_audit(const struct ws_ptx_module *m, ws_code_lack *each, void *arg)
{
    const struct ws_audit audit = {each, arg};
    struct ws_code *c = NULL;
    int r = decode(&c, m, 0, NULL, &audit);
    ws_code_free(c);
    return WS_MIN(r, 0);
}

void ws_code_ref(struct ws_code *c)
{
    atomic_fetch_add(&c->n_refs, 1);
}

void ws_code_put(struct ws_code *c)
{
    if (atomic_fetch_sub(&c->n_refs, 1) > 1)
        return;
    ws_arena_deinit(&c->arena);
    free(c);
}

struct ws_code *ws_code_free(struct ws_code *c)
{
    if (c) {
        ws_jit_images_free(c->jit);
        ws_code_put(c);
    }
    return NULL;
}

uint64_t ws_code_later_bytes(const struct ws_code *c)
{
    return ws_jit_images_reserved(c->jit);
}

const struct ws_kernel_info *ws_code_kernels(const struct ws_code *c, uint32_t *ret_n)
{
    *ret_n = c->n_kernels;
    return c->infos;
}
