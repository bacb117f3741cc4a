// SPDX-License-Identifier: Apache-2.0
/* What a finding says. Its first line is for the client's library, which knows where the program
 * made its allocations: the address in global memory (0: none) and the kernel's name. The rest is
 * for people: what happened, and on lines of their own the thread and the instruction. */
#include "device/soft/inspect/private.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "device/space.h"

enum { FINDING_MAX = 1536 };

struct ws_inspect_who ws_inspect_lane(struct ws_core_ctx *c, const struct ws_uop *u, unsigned lane)
{
    return (struct ws_inspect_who){
        .c = c, .block = c->b->linear, .thread = c->w->index * 32 + (lane & 31), .src = u->src};
}

static const struct ws_ptx_func *func_of(const struct ws_inspect_who *who)
{
    const struct ws_blockrun *b = who->c->b;
    return &b->g->code->m->funcs[b->img->srcs[who->src].func];
}

/* NULL: it is none of the program's. */
static const struct ws_ptx_insn *insn_of(const struct ws_inspect_who *who)
{
    const struct ws_ptx_func *f = func_of(who);
    uint32_t i = who->c->b->img->srcs[who->src].insn;
    return i < f->n_insns ? &f->insns[i] : NULL;
}

bool ws_inspect_is_cas(const struct ws_inspect_who *who)
{
    const struct ws_ptx_insn *i = insn_of(who);
    return i && ws_ptx_ops[i->op].effect == WS_EFFECT_ATOMIC && i->sub == WS_SUB_CAS;
}

void ws_inspect_access_words(const struct ws_inspect_who *who, char *ret, size_t size)
{
    const struct ws_ptx_insn *i = insn_of(who);
    uint32_t bytes = 0;
    const char *word = "access";
    switch (i ? ws_ptx_ops[i->op].effect : WS_EFFECT_NONE) {
    case WS_EFFECT_READ:
        word = "read of";
        break;
    case WS_EFFECT_WRITE:
        word = "write of";
        break;
    case WS_EFFECT_ATOMIC:
        word = "atomic operation on";
        break;
    default:
        snprintf(ret, size, "%s", word);
        return;
    }
    bytes = ws_ptx_type_bytes((enum ws_ptx_type)i->types[0]) * (i->vec > 1 ? i->vec : 1u);
    snprintf(ret, size, "%s %u byte%s", word, bytes, bytes == 1 ? "" : "s");
}

struct finding {
    char v[FINDING_MAX];
    size_t n;
};

static WS_PRINTF(2, 3) void add(struct finding *t, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(t->v + t->n, sizeof(t->v) - t->n, fmt, ap);
    va_end(ap);
    t->n = n < 0 ? t->n : WS_MIN(t->n + (size_t)n, sizeof(t->v) - 1);
}

/* One thread, and its instruction on a line of its own. */
static void add_thread(struct finding *t, const struct ws_inspect_who *who, const char *did)
{
    const struct ws_grid *g = who->c->b->g;
    const struct ws_ptx_func *f = func_of(who);
    const struct ws_ptx_insn *i = insn_of(who);
    uint32_t bx = g->block[0], by = g->block[1], n = who->thread;
    char words[96] = "", place[256];
    add(t, "    %s thread (%u,%u,%u) of block (%u,%u,%u)\n", did, n % bx, n / bx % by, n / bx / by,
        (uint32_t)(who->block % g->grid[0]), (uint32_t)(who->block / g->grid[0] % g->grid[1]),
        (uint32_t)(who->block / g->grid[0] / g->grid[1]));
    if (!i)
        return;
    ws_ptx_insn_text(g->code->m, f, i, words, sizeof(words));
    ws_ptx_insn_place(i, place, sizeof(place));
    add(t, "        at %s: %s\n", place, words);
}

/* Findings at the same two instructions, of the same kind, are one. */
static uint64_t key_of(const struct ws_inspect_who *who, const struct ws_inspect_who *other,
                       const char *headline)
{
    const struct ws_inspect_who *both[2] = {who, other};
    uint64_t key = (uint64_t)headline[0] << 8 | (uint64_t)headline[1], parts[2] = {0, 0};
    for (int k = 0; k < 2; k++)
        if (both[k])
            parts[k] =
                ((uint64_t)(uintptr_t)func_of(both[k]) ^ (uint64_t)(uintptr_t)insn_of(both[k])) *
                UINT64_C(0x9e3779b97f4a7c15);
    return key ^ (parts[0] + parts[1]); /* either of the two may come first */
}

void ws_inspect_tell(const struct ws_inspect_who *who, const char *headline,
                     const struct ws_inspect_who *other, const char *other_did, uint64_t va,
                     const char *where)
{
    struct finding t = {.n = 0};
    const struct ws_blockrun *b = who->c->b;
    if (!ws_inspect_is_new(b->g->inspect, key_of(who, other, headline)))
        return;
    add(&t, "%" PRIx64 " %s\n", va, b->g->code->m->funcs[b->img->func].name);
    add(&t, "%s\n", headline);
    add_thread(&t, who, "by");
    if (other)
        add_thread(&t, other, other_did);
    if (*where)
        add(&t, "    %s\n", where);
    ws_space_print(ws_exec_own_space(b), WS_OUTPUT_FINDING, t.v, t.n);
}

void ws_inspect_fault(struct ws_core_ctx *c, const struct ws_uop *u, enum ws_dev_error e,
                      unsigned lane, uint64_t va, const char *what)
{
    struct ws_inspect_who who = ws_inspect_lane(c, u, lane);
    bool address = e == WS_DEV_E_ILLEGAL_ADDRESS || e == WS_DEV_E_MISALIGNED;
    char did[48], headline[160], where[64] = "";
    uint64_t window = WS_WINDOW_OF(va);
    ws_inspect_access_words(&who, did, sizeof(did));
    if (address && !what)
        snprintf(headline, sizeof(headline), "%s %s",
                 e == WS_DEV_E_MISALIGNED ? "misaligned" : "invalid", did);
    else
        snprintf(headline, sizeof(headline), "the kernel was stopped: %s",
                 what ? what : ws_dev_error_name(e));
    if (address && (window || u->x & WS_X_A32)) {
        snprintf(where, sizeof(where), "at %s + %" PRIu64,
                 window == WS_WINDOW_LOCAL ? "local memory" : "shared memory", va & ~window);
        va = 0;
    }
    ws_inspect_tell(&who, headline, NULL, "", address ? va : 0, where);
}
