// SPDX-License-Identifier: Apache-2.0
/* device/soft/decode/tex.c - texture and surface instructions: one micro-op each, with a ws_texop
 * that holds its rows. What the instruction says is read by ptx/passes/texop.c; forms that it
 * doesn't know are refused like any other opcode. */
#include <string.h>

#include "device/soft/decode/priv.h"
#include "device/soft/exec/tex.h"
#include "ptx/passes/texop.h"

typedef enum ws_ptx_type type;

static uint32_t row(struct ws_dec *d, const struct ws_ptx_operand *o, type t)
{
    return o ? ws_dec_src(d, o, t) : 0;
}

static void rows(struct ws_dec *d, const struct ws_ptx_operand *const *o, unsigned n, type t,
                 uint32_t *ret)
{
    for (unsigned k = 0; k < n; k++)
        ret[k] = row(d, o[k], t);
}

/* What all of them have. */
static struct ws_texop begin(struct ws_dec *d, const struct ws_ptx_texop *p)
{
    struct ws_texop o = {.geom = p->geom,
                         .lod = p->lod,
                         .mode = p->mode,
                         .dtype = p->dtype,
                         .ctype = p->ctype,
                         .n = p->n,
                         .size = p->size,
                         .comp = p->comp,
                         .query = p->query,
                         .op = p->op,
                         .formatted = p->formatted};
    struct ws_ptx_operand h = {.kind = p->handle->reg >= 0 ? WS_OPD_REG : WS_OPD_SYM,
                               .reg = p->handle->reg,
                               .sym = p->handle->sym};
    o.handle = ws_dec_src(d, &h, WS_T_U64);
    o.sampler = row(d, p->sampler, WS_T_U64);
    o.layer = row(d, p->layer, WS_T_U32);
    rows(d, p->coord, 3, (type)p->ctype, o.coord);
    o.level = row(d, p->level, p->ctype ? (type)p->ctype : WS_T_U32);
    rows(d, p->gx, 3, WS_T_F32, o.gx);
    rows(d, p->gy, 3, WS_T_F32, o.gy);
    return o;
}

static void emit(struct ws_dec *d, enum ws_handler h, const struct ws_texop *o, uint32_t x)
{
    struct ws_texop *kept = ws_arena_alloc(&d->code->arena, sizeof(*kept));
    if (!kept) {
        d->oom = true;
        return;
    }
    *kept = *o;
    struct ws_uop *u = ws_dec_emit(d, h);
    u->imm = (int64_t)(uintptr_t)kept;
    u->x = x;
}

/* Destinations are written under their own names; those of another width through temporaries. */
static void emit_load(struct ws_dec *d, enum ws_handler h, const struct ws_ptx_texop *p, uint32_t x)
{
    struct ws_texop o = begin(d, p);
    bool finish[4] = {false};
    for (unsigned k = 0; k < o.n; k++)
        o.d[k] = ws_dec_dst(d, p->d[k], (type)o.dtype, &finish[k]);
    if (p->pred)
        o.pred = ws_dec_pred_dst(d, p->pred);
    emit(d, h, &o, x);
    for (unsigned k = 0; k < o.n; k++)
        if (finish[k])
            ws_dec_finish(d, p->d[k], (type)o.dtype, o.d[k]);
}

static void emit_store(struct ws_dec *d, enum ws_handler h, const struct ws_ptx_texop *p)
{
    struct ws_texop o = begin(d, p);
    rows(d, p->d, o.n, (type)o.dtype, o.d);
    if (h == WS_H_sust && o.formatted)
        o.size = 1; /* the surface's format says how far texels are aligned */
    emit(d, h, &o, 0);
}

void ws_dec_tex(struct ws_dec *d, const struct ws_ptx_insn *i)
{
    struct ws_ptx_texop p;
    if (!ws_ptx_texop_read(&p, i)) {
        ws_dec_no_such(d, i);
        return;
    }
    switch (i->op) {
    case WS_OP_TEX:
        emit_load(d, WS_H_tex, &p, 0);
        break;
    case WS_OP_TLD4:
        emit_load(d, WS_H_tld4, &p, 0);
        break;
    case WS_OP_TXQ:
        emit_load(d, WS_H_txq, &p, WS_TEXTURE_MAGIC);
        break;
    case WS_OP_SUQ:
        emit_load(d, WS_H_txq, &p, WS_SURFACE_MAGIC);
        break;
    case WS_OP_SULD:
        emit_load(d, WS_H_suld, &p, 0);
        break;
    case WS_OP_SUST:
        emit_store(d, WS_H_sust, &p);
        break;
    case WS_OP_SURED:
        emit_store(d, WS_H_sured, &p);
        break;
    default: {
        uint32_t a = ws_dec_src(d, p.handle, WS_T_U64);
        ws_dec_emit3(d, WS_H_istypep, ws_dec_pred_dst(d, p.pred), a, 0)->x = p.ref;
        break;
    }
    }
}
