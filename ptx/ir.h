/* SPDX-License-Identifier: Apache-2.0 */
/* ptx/ir.h - the one intermediate representation of PTX: modules, functions, instructions,
 * operands.
 *
 * A module owns one arena. Every pointer below points into it and dies with ws_ptx_module_free().
 * The IR keeps the program's order and names, so that printing and parsing again gives the same IR
 * (ws_ptx_module_equal()). Not kept: comments, .section (debug information), .pragma outside
 * bodies. .loc and .file are kept, but not printed; .branchtargets become an operand of brx.idx.
 * Threads: a module is immutable after ws_ptx_parse() returned and may then be read by any thread.
 * Source: PTX ISA 9.0; chapters are named at the fields. */
#ifndef WS_PTX_IR_H
#define WS_PTX_IR_H

#include <stdbool.h>
#include "base/arena.h"
#include "ptx/modifier.h"
#include "ptx/opcode.h"

/* ---- operands (chapter 6) ---- */
enum ws_ptx_operand_kind {
    WS_OPD_NONE,
    WS_OPD_REG,  /* reg; neg for "!%p" in a source predicate, "-%r" in vmad */
    WS_OPD_IMM,  /* imm: see imm_kind and ws_ptx_imm_as() */
    WS_OPD_SREG, /* sreg, sreg_dim */
    WS_OPD_SYM,  /* address of a variable or function: sym + imm */
    /* [reg + imm] if reg >= 0, else [sym + imm] if sym >= 0, else [imm]. v[0..n): what follows a
     * comma inside the brackets (coordinates of a texture or a tensor). */
    WS_OPD_ADDR,
    WS_OPD_LABEL, /* label: index into func->labels */
    WS_OPD_VEC,   /* {a, b, …}: v[0..n); the label list of brx.idx is one too */
    WS_OPD_PAIR,  /* d|p: v[0], v[1]; each REG or SINK */
    WS_OPD_SINK,  /* _ */
};

enum ws_ptx_imm_kind {
    WS_IMM_INT, /* imm is the integer, in two's complement */
    WS_IMM_F32, /* 0f…: imm is the bits of the 32-bit number */
    WS_IMM_F64, /* 0d… and decimal: imm is the bits of the 64-bit number */
};

/* clang-format off */
/* Special registers, chapter 10. %x.y and %x.z are the same one with sreg_dim 1 and 2; 3 is the
 * whole vector. */
enum ws_ptx_sreg {
    WS_SR_NONE,
    WS_SR_TID, WS_SR_NTID, WS_SR_CTAID, WS_SR_NCTAID,
    WS_SR_LANEID, WS_SR_WARPID, WS_SR_NWARPID, WS_SR_SMID, WS_SR_NSMID, WS_SR_GRIDID,
    WS_SR_LANEMASK_EQ, WS_SR_LANEMASK_LE, WS_SR_LANEMASK_LT, WS_SR_LANEMASK_GE, WS_SR_LANEMASK_GT,
    WS_SR_CLOCK, WS_SR_CLOCK_HI, WS_SR_CLOCK64,
    WS_SR_GLOBALTIMER, WS_SR_GLOBALTIMER_LO, WS_SR_GLOBALTIMER_HI,
    WS_SR_ENVREG, /* sreg_dim: number 0..31 */
    WS_SR_DYNAMIC_SMEM_SIZE, WS_SR_TOTAL_SMEM_SIZE,
    WS_SR_RESERVED_SMEM_OFFSET, /* sreg_dim: 0 _0, 1 _1, 2 _begin, 3 _end, 4 _cap */
    WS_SR_CLUSTERID, WS_SR_NCLUSTERID, WS_SR_CLUSTER_CTAID, WS_SR_CLUSTER_NCTAID,
    WS_SR_CLUSTER_CTARANK, WS_SR_CLUSTER_NCTARANK, WS_SR_IS_EXPLICIT_CLUSTER,
    WS_SR_PM,     /* sreg_dim: number 0..7; + 8: the 64-bit one */
    WS_SR_WARPSZ, /* the constant WARP_SZ */
    WS_SR_AGGR_SMEM_SIZE, WS_SR_CURRENT_GRAPH_EXEC,
    _WS_SR_N
};
/* clang-format on */

struct ws_ptx_operand {
    uint8_t kind;     /* enum ws_ptx_operand_kind */
    uint8_t neg;      /* predicate, or source of vmad, negated; never set on IMM */
    uint8_t imm_kind; /* enum ws_ptx_imm_kind */
    uint8_t sreg;     /* enum ws_ptx_sreg */
    uint8_t sreg_dim;
    uint16_t n;  /* elements of v */
    int32_t reg; /* index into func->regs, or -1 */
    int32_t sym; /* see WS_PTX_SYM_*, or -1 */
    int32_t label;
    int64_t imm;
    struct ws_ptx_operand *v;
    /* REG: an element or part of the register as written: ".x", ".b0", ".h1", ".b3210"; NULL: all
     * of it */
    const char *part;
};
/* A sym names one of func->vars (LOCALVAR: parameters, .local and .shared declared inside), of
 * module->vars or of module->funcs. The two high bits tell which; the rest is the index. */
#define WS_PTX_SYM_VAR      0x00000000
#define WS_PTX_SYM_LOCALVAR 0x20000000
#define WS_PTX_SYM_FUNC     0x40000000
#define WS_PTX_SYM_KIND(s)  ((s)&0x60000000)
#define WS_PTX_SYM_INDEX(s) ((s)&0x1fffffff)

/* ---- instructions (chapter 9) ---- */
enum { WS_PTX_MAX_OPERANDS = 16, WS_PTX_MAX_TYPES = 4 };

/* 11.5.2: a file of the program's source. */
struct ws_ptx_file {
    const char *name; /* as the compiler was given it; NULL: there is no .file for its number */
};

struct ws_ptx_insn {
    uint16_t op; /* enum ws_ptx_op */
    uint8_t n_types;
    uint8_t types[WS_PTX_MAX_TYPES];   /* in the order written: cvt.rn.f32.s32 is {F32, S32} */
    uint8_t rnd, cmp, sub, sem, scope; /* ptx/modifier.h */
    uint8_t space, space2;             /* space2: the source of cp.async */
    uint8_t vec;                       /* 0 or 1 scalar, 2, 4, 8 */
    uint8_t cache;                     /* 0 or index + 1 of ws_ptx_cache_names[] */
    uint32_t flags;                    /* enum ws_ptx_flag */
    int32_t guard;                     /* predicate register, or -1 */
    uint8_t guard_neg;
    uint8_t n_operands;
    struct ws_ptx_operand *operands; /* [n_operands], destinations first, as written */
    const struct ws_ptx_call *call;  /* opcode CALL only */
    /* Modifiers that have no field here, as written (".L1::no_allocate"), or NULL. In rows of
     * opcodes.def marked W (tex, wmma, …) it is all that follows the mnemonic (".2d.v4.f32.f32"),
     * and the other fields repeat the part that is known. */
    const char *ext;
    /* What .pragma says right before the instruction ("\"nounroll\"", with its quotes), or NULL. */
    const char *pragma;
    uint32_t line, col; /* of the opcode in the text; 0 if a pass made it */
    /* .loc (11.5.1): the line of the program's source that the instruction was made from. NULL and
     * 0: the compiler did not say. Not printed. */
    const struct ws_ptx_file *src_file;
    uint32_t src_line;
};

/* 9.7.12.5: call (ret…), f, (arg…). Arguments are REG, IMM or local .param variables (SYM). */
struct ws_ptx_call {
    struct ws_ptx_operand callee; /* SYM of a function, or REG for an indirect call */
    int32_t proto;                /* index into func->protos for an indirect call, or -1 */
    uint32_t n_rets, n_args;
    const struct ws_ptx_operand *rets, *args;
};

static inline bool ws_ptx_does(const struct ws_ptx_insn *i, uint32_t properties)
{
    return (ws_ptx_ops[i->op].does & properties) != 0;
}

/* Whether the first operand is a destination. Where the row's operands are not checked (sig "*"),
 * true if it may be one. */
static inline bool ws_ptx_writes_first(const struct ws_ptx_insn *i)
{
    const struct ws_ptx_op_info *info = &ws_ptx_ops[i->op];
    if (!i->n_operands || info->effect == WS_EFFECT_WRITE || info->effect == WS_EFFECT_CONTROL)
        return false;
    return info->sig[0] == 'd' || info->sig[0] == '*';
}

/* ---- declarations (5.4, 11) ---- */
enum ws_ptx_linkage { WS_LINK_NONE, WS_LINK_VISIBLE, WS_LINK_EXTERN, WS_LINK_WEAK, WS_LINK_COMMON };

struct ws_ptx_reg {
    const char *name; /* with the %: "%r12" */
    uint8_t type;     /* enum ws_ptx_type */
    uint8_t vec;      /* 0 or 1, 2, 4 */
};

/* An address inside an initialiser (5.4.4): that of sym, plus addend. */
struct ws_ptx_init_sym {
    uint64_t offset; /* of the field, in bytes */
    int32_t sym;
    int64_t addend;
    uint8_t bytes; /* width of the field */
    bool generic;  /* generic(x) */
    /* 0xFF00(x): one byte of the address, (address & 0xff << shift) >> shift; bytes is 1. */
    bool masked;
    uint8_t shift; /* bits */
};

/* 5.4: global, const, shared, local variables; parameters. */
struct ws_ptx_var {
    const char *name;
    uint8_t space, type, link, vec;
    bool is_array, managed, ptr_attr; /* ptr_attr: a parameter with .ptr */
    uint8_t ptr_space;
    uint32_t ptr_align;
    uint32_t align;      /* bytes; the natural one if not written */
    uint64_t size_bytes; /* 0: extern array of unknown size (dynamic shared memory) */
    uint64_t n_elems;
    uint32_t n_dims;
    const uint64_t *dims;
    const uint8_t *init; /* the first init_bytes bytes, or NULL; the rest is zero */
    uint64_t init_bytes; /* <= size_bytes */
    uint32_t n_init_syms;
    const struct ws_ptx_init_sym *init_syms;
    uint64_t param_offset; /* parameters: C layout from the start of the list */
    int32_t reg;           /* a .reg parameter of a .func: index into func->regs; else -1 */
    uint32_t line;
};

struct ws_ptx_label {
    const char *name;
    uint32_t insn; /* stands before func->insns[insn]; n_insns: at the end */
};

/* .callprototype, or .calltargets (n_targets > 0, the rest empty). */
struct ws_ptx_proto {
    const char *name;
    uint32_t n_rets, n_params;
    struct ws_ptx_var *rets, *params;
    bool noreturn;
    uint32_t n_targets;
    int32_t *targets; /* indices into module->funcs */
};

enum { WS_PTX_FENCE_HELPER = -1 };
struct ws_ptx_func {
    const char *name;
    bool is_entry, is_decl, noreturn;
    uint8_t link;
    uint32_t n_params, n_rets; /* .entry: parameters; .func: both */
    struct ws_ptx_var *params, *rets;
    uint64_t param_bytes; /* of an .entry: end of the last parameter */
    /* .local, .shared and .param declared in the body and in nested blocks. A LOCALVAR index counts
     * params, then rets, then these: ws_ptx_localvar(). */
    uint32_t n_vars;
    struct ws_ptx_var *vars;
    /* .reg of the body, renamed apart where nested blocks reuse a name. Of a range (%r<100>) only
     * those that are used, in the order of their first use: the interpreter is faster with few
     * registers. */
    uint32_t n_regs;
    struct ws_ptx_reg *regs;
    uint32_t n_insns;
    struct ws_ptx_insn *insns;
    uint32_t n_labels;
    struct ws_ptx_label *labels;
    uint32_t n_protos;
    struct ws_ptx_proto *protos;
    uint32_t maxntid[3], reqntid[3], minnctapersm, maxnctapersm, maxnreg, reqnctapercluster[3],
        maxclusterrank; /* 11.4; 0: not given */
    bool explicitcluster, blocksareclusters;
    /* The rest is not part of the text. */
    /* ws_ptx_fence() made it: WS_PTX_FENCE_HELPER, or the copy of function fence - 1; 0: it did
     * not. */
    int32_t fence;
    bool lib;        /* one of ws_ptx_lib()'s functions, or a copy that it made */
    uint32_t lib_of; /* the copy that ws_ptx_lib() made of function lib_of - 1; 0: none */
    uint32_t line;
};

/* .alias f, g: indices into module->funcs; f has no body of its own. */
struct ws_ptx_alias {
    int32_t alias, aliasee;
};

struct ws_ptx_module {
    struct ws_arena arena;
    uint16_t version;   /* major * 10 + minor: 90 for 9.0 */
    uint16_t sm;        /* .target sm_75: 75 */
    const char *target; /* as written, without options: "sm_75", "sm_90a" */
    bool map_f64_to_f32, texmode_independent;
    bool debug; /* .target …, debug; not printed, because debug information is not kept */
    uint8_t address_size; /* 32 or 64 */
    uint32_t n_vars;
    struct ws_ptx_var *vars;
    uint32_t n_funcs;
    struct ws_ptx_func *funcs;
    uint32_t n_aliases;
    struct ws_ptx_alias *aliases;
    /* The rest is not part of the text. Machine code that this module stands for
     * (ptx/images/cubin.h), whose functions have no instructions here; or NULL. */
    const uint8_t *code;
    size_t code_bytes;
    /* Its kernels belong to several clients, and each keeps to its own client's memory already
     * (ws_ptx_fuse() in ptx/passes/pass.h). */
    bool fenced;
};

/* Outcomes of functions that read PTX and images. */
enum {
    _WS_PTX_OK,
    WS_PTX_E_SYNTAX, /* the text is wrong: see the diagnostics */
    /* The text is right, but wattshare cannot do it; the diagnostics name what. */
    WS_PTX_E_UNSUPPORTED,
    WS_PTX_E_FORMAT,   /* the image is damaged */
    WS_PTX_E_NOTFOUND, /* the image holds no PTX, or a symbol is defined nowhere */
    WS_PTX_E_LIMIT,    /* it takes more time or memory than it may (base/budget.h) */
};

#endif
