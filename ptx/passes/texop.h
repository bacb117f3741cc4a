/* SPDX-License-Identifier: Apache-2.0 */
/* ptx/passes/texop.h - what a texture or surface instruction says, read from its words and
 * operands. The IR keeps their modifiers as text (rows W of opcodes.def). Source: PTX ISA, "Texture
 * Instructions", "Surface Instructions". */
#ifndef WS_PTX_PASSES_TEXOP_H
#define WS_PTX_PASSES_TEXOP_H

#include "ptx/ptx.h"
#include "ptx/passes/sampler.h"

/* Operands are borrowed from the instruction; NULL: not there. */
struct ws_ptx_texop {
    uint8_t geom, lod, mode;       /* sampler.h; mode: of a surface */
    uint8_t dtype, ctype, n, size; /* element type and count of the data, bytes of an element */
    uint8_t comp;                  /* tld4: channel */
    uint8_t query, op;             /* enum ws_tex_query; sured: enum ws_ptx_sub */
    uint8_t ref;                   /* istypep: enum ws_ptx_type */
    bool formatted;                /* .p: x counts texels, data is converted */
    const struct ws_ptx_operand *handle;  /* ADDR: reg or sym; istypep: any source */
    const struct ws_ptx_operand *sampler; /* REG or SYM */
    const struct ws_ptx_operand *layer, *coord[3], *level, *gx[3], *gy[3];
    const struct ws_ptx_operand *d[4]; /* destinations, or data to store */
    const struct ws_ptx_operand *pred; /* p of d|p; istypep: destination */
};
/* Whether @op is one of these. */
bool ws_ptx_is_texop(enum ws_ptx_op op);
/* Return: false: a form that is not done: multisample textures, offsets, depth compare; or none
 * that the PTX ISA has. */
bool ws_ptx_texop_read(struct ws_ptx_texop *ret, const struct ws_ptx_insn *i);

#endif
