// SPDX-License-Identifier: Apache-2.0
/* ptx/ptx.h - the one PTX intermediate representation, read by the software GPU, the models, the passes and the templates.
 *
 * Not kept: comments, .loc, .file, .section (debug information), .pragma outside bodies; .branchtargets become an operand
 * of brx.idx.
 *
 * A module owns one arena; every pointer below lives in it and dies with ws_ptx_module_free(). The IR keeps the program's
 * order and names, so that printing and parsing again gives the same IR (ws_ptx_module_equal()).
 * Threads: a module is immutable after ws_ptx_parse() returned and may then be read by any thread.
 * Source: PTX ISA 9.0 (chapters named at the fields). */
#ifndef WS_PTX_PTX_H
#define WS_PTX_PTX_H

#include <stdbool.h>
#include <stdio.h>
#include "base/arena.h"
#include "base/diag.h"

/* ---- types (PTX ISA 5.2) ---- */
enum ws_ptx_type {
    WS_T_NONE,
    WS_T_B8,
    WS_T_B16,
    WS_T_B32,
    WS_T_B64,
    WS_T_B128,
    WS_T_U8,
    WS_T_U16,
    WS_T_U32,
    WS_T_U64,
    WS_T_S8,
    WS_T_S16,
    WS_T_S32,
    WS_T_S64,
    WS_T_F16,
    WS_T_F16X2,
    WS_T_BF16,
    WS_T_BF16X2,
    WS_T_TF32,
    WS_T_F32,
    WS_T_F64,
    WS_T_U16X2,
    WS_T_S16X2,
    WS_T_PRED,
    WS_T_TEXREF,
    WS_T_SAMPLERREF,
    WS_T_SURFREF,
    WS_T_F32X2,
    WS_T_E4M3,
    WS_T_E5M2,
    WS_T_E4M3X2,
    WS_T_E5M2X2,
    WS_T_E2M3X2,
    WS_T_E3M2X2,
    WS_T_E2M1X2,
    WS_T_UE8M0X2,
    WS_T_E4M3X4,
    WS_T_E5M2X4,
    WS_T_E2M3X4,
    WS_T_E3M2X4,
    WS_T_E2M1X4, /* 5.2.3: types of cvt only, held in .b8 to .b32 */
    _WS_T_N
};
/* Bytes of one value: 1, 2, 4, 8, 16; PRED 1; NONE 0. */
unsigned ws_ptx_type_bytes(enum ws_ptx_type t);
const char *ws_ptx_type_name(enum ws_ptx_type t); /* "f32" */

enum ws_ptx_space { /* 5.1; the enumerator GENERIC is "no space given" */
                    WS_SP_GENERIC,
                    WS_SP_REG,
                    WS_SP_CONST,
                    WS_SP_GLOBAL,
                    WS_SP_LOCAL,
                    WS_SP_SHARED,
                    WS_SP_PARAM,
                    _WS_SP_N
};

/* ---- opcodes: one row per mnemonic in opcodes.def: WS_OP(ENUM, "mnemonic", …) ---- */
enum ws_ptx_op {
#define WS_OP(id, ...) WS_OP_##id,
#include "ptx/opcodes.def"
#undef WS_OP
    _WS_OP_N
};

enum ws_ptx_side { /* what an opcode does beside writing its destination */
                   WS_SIDE_NONE,
                   WS_SIDE_ALU,
                   WS_SIDE_READ,
                   WS_SIDE_WRITE,
                   WS_SIDE_ATOMIC,
                   WS_SIDE_WARP /* lanes exchange */,
                   WS_SIDE_BARRIER,
                   WS_SIDE_FENCE,
                   WS_SIDE_CONTROL,
                   WS_SIDE_MATRIX,
};
enum ws_ptx_mix { /* classes of the instruction mix, for timing and energy models */
                  WS_MIX_AUTO,
                  WS_MIX_INT,
                  WS_MIX_FP16,
                  WS_MIX_FP32,
                  WS_MIX_FP64,
                  WS_MIX_SFU,
                  WS_MIX_CONV,
                  WS_MIX_MOVE,
                  WS_MIX_LDST,
                  WS_MIX_ATOM,
                  WS_MIX_SHUFFLE,
                  WS_MIX_SYNC,
                  WS_MIX_CTRL,
                  WS_MIX_TEX,
                  WS_MIX_TENSOR,
                  _WS_MIX_N
};
struct ws_ptx_op_info { /* one row of opcodes.def, which explains the columns */
    const char *name, *mods, *sig, *meaning;
    uint64_t subs;   /* 1 << enum ws_ptx_sub */
    uint64_t t0, t1; /* 1 << enum ws_ptx_type */
    uint8_t min_types, max_types, side, mix;
};
extern const struct ws_ptx_op_info ws_ptx_ops[_WS_OP_N];
extern const char *const ws_ptx_mix_names[_WS_MIX_N]; /* "int", "fp32", … */

/* ---- modifiers: each field is 0 when not written. Enumerators are what the interpreter switches on. ---- */
enum ws_ptx_rnd {
    WS_RND_NONE,
    WS_RND_RN,
    WS_RND_RZ,
    WS_RND_RM,
    WS_RND_RP,
    WS_RND_RNA,
    WS_RND_RNI,
    WS_RND_RZI,
    WS_RND_RMI,
    WS_RND_RPI
};
enum ws_ptx_cmp {
    WS_CMP_NONE,
    WS_CMP_EQ,
    WS_CMP_NE,
    WS_CMP_LT,
    WS_CMP_LE,
    WS_CMP_GT,
    WS_CMP_GE,
    WS_CMP_LO,
    WS_CMP_LS,
    WS_CMP_HI,
    WS_CMP_HS,
    WS_CMP_EQU,
    WS_CMP_NEU,
    WS_CMP_LTU,
    WS_CMP_LEU,
    WS_CMP_GTU,
    WS_CMP_GEU,
    WS_CMP_NUM,
    WS_CMP_NAN
};
enum ws_ptx_sub { /* the word that selects a variant of an opcode: boolean op, atomic op, shuffle/vote mode, part, … */
                  WS_SUB_NONE,
                  WS_SUB_AND,
                  WS_SUB_OR,
                  WS_SUB_XOR,
                  WS_SUB_ADD,
                  WS_SUB_MIN,
                  WS_SUB_MAX,
                  WS_SUB_INC,
                  WS_SUB_DEC,
                  WS_SUB_CAS,
                  WS_SUB_EXCH,
                  WS_SUB_POPC, /* atom/red (9.7.13.5), setp boolean, bar.red, redux */
                  WS_SUB_UP,
                  WS_SUB_DOWN,
                  WS_SUB_BFLY,
                  WS_SUB_IDX, /* shfl */
                  WS_SUB_ALL,
                  WS_SUB_ANY,
                  WS_SUB_UNI,
                  WS_SUB_BALLOT, /* vote, match */
                  WS_SUB_LO,
                  WS_SUB_HI,
                  WS_SUB_WIDE, /* mul, mad */
                  WS_SUB_L,
                  WS_SUB_R, /* shf */
                  WS_SUB_CTA,
                  WS_SUB_GL,
                  WS_SUB_SYS, /* membar */
                  WS_SUB_TO,  /* cvta.to */
                  WS_SUB_F4E,
                  WS_SUB_B4E,
                  WS_SUB_RC8,
                  WS_SUB_ECL,
                  WS_SUB_ECR,
                  WS_SUB_RC16, /* prmt */
                  WS_SUB_FINITE,
                  WS_SUB_INFINITE,
                  WS_SUB_NUMBER,
                  WS_SUB_NOTANUMBER,
                  WS_SUB_NORMAL,
                  WS_SUB_SUBNORMAL, /* testp */
                  _WS_SUB_N
};
enum ws_ptx_sem {
    WS_SEM_NONE,
    WS_SEM_WEAK,
    WS_SEM_RELAXED,
    WS_SEM_ACQUIRE,
    WS_SEM_RELEASE,
    WS_SEM_ACQ_REL,
    WS_SEM_SC,
    WS_SEM_VOLATILE,
    WS_SEM_MMIO
};
enum ws_ptx_scope { WS_SCOPE_NONE, WS_SCOPE_CTA, WS_SCOPE_CLUSTER, WS_SCOPE_GPU, WS_SCOPE_SYS };
enum {
    WS_F_FTZ = 1u << 0,
    WS_F_SAT = 1u << 1,
    WS_F_APPROX = 1u << 2,
    WS_F_FULL = 1u << 3,
    WS_F_UNI = 1u << 4,
    WS_F_SYNC = 1u << 5,
    WS_F_ALIGNED = 1u << 6,
    WS_F_CC = 1u << 7, /* writes CC.CF */
    WS_F_NC = 1u << 8,
    WS_F_SHIFTAMT = 1u << 9,
    WS_F_CLAMP = 1u << 10,
    WS_F_WRAP = 1u << 11,
    WS_F_NOFTZ = 1u << 12,
    WS_F_NAN = 1u << 13,
    WS_F_XORSIGN_ABS = 1u << 14,
    WS_F_RELU = 1u << 15,
    WS_F_NOINC = 1u << 16,
    /* The space was written with a narrower name; space is SHARED or PARAM in all cases. */
    WS_F_SP_CTA = 1u << 17,     /* .shared::cta, .param::entry */
    WS_F_SP_CLUSTER = 1u << 18, /* .shared::cluster, .param::func */
    WS_F_SP2_CTA = 1u << 19,
    WS_F_SP2_CLUSTER = 1u << 20, /* the same of space2 */
};

/* ---- operands (chapter 6) ---- */
enum ws_ptx_operand_kind {
    WS_OPD_NONE,
    WS_OPD_REG, /* reg; neg for "!%p" in a source predicate, "-%r" in vmad */
    WS_OPD_IMM, /* imm: integer as two's complement, floats as bits of f64 (imm_kind tells); see ws_ptx_imm_as() */
    WS_OPD_SREG, /* sreg, sreg_dim */
    WS_OPD_SYM,  /* address of a variable or function: sym + imm */
    WS_OPD_ADDR, /* [reg + imm], [sym + imm] or [imm]: reg >= 0, else sym >= 0, else absolute. v[0..n): what follows a
                    * comma inside the brackets (texture coordinates, tensor coordinates) */
    WS_OPD_LABEL, /* label: index into func->labels */
    WS_OPD_VEC,   /* {a, b, …}: v[0..n); the label list of brx.idx is one too */
    WS_OPD_PAIR,  /* d|p: v[0], v[1]; each REG or SINK */
    WS_OPD_SINK,  /* _ */
};
enum ws_ptx_imm_kind {
    WS_IMM_INT,
    WS_IMM_F32,
    WS_IMM_F64
}; /* 0f…: f32 bits in imm; 0d… and decimal: f64 bits in imm */

enum ws_ptx_sreg { /* chapter 10; %x.y and %x.z are the same sreg with sreg_dim 1, 2; 3: the whole vector */
                   WS_SR_NONE,
                   WS_SR_TID,
                   WS_SR_NTID,
                   WS_SR_CTAID,
                   WS_SR_NCTAID,
                   WS_SR_LANEID,
                   WS_SR_WARPID,
                   WS_SR_NWARPID,
                   WS_SR_SMID,
                   WS_SR_NSMID,
                   WS_SR_GRIDID,
                   WS_SR_LANEMASK_EQ,
                   WS_SR_LANEMASK_LE,
                   WS_SR_LANEMASK_LT,
                   WS_SR_LANEMASK_GE,
                   WS_SR_LANEMASK_GT,
                   WS_SR_CLOCK,
                   WS_SR_CLOCK_HI,
                   WS_SR_CLOCK64,
                   WS_SR_GLOBALTIMER,
                   WS_SR_GLOBALTIMER_LO,
                   WS_SR_GLOBALTIMER_HI,
                   WS_SR_ENVREG, /* sreg_dim: number 0..31 */
                   WS_SR_DYNAMIC_SMEM_SIZE,
                   WS_SR_TOTAL_SMEM_SIZE,
                   WS_SR_RESERVED_SMEM_OFFSET, /* sreg_dim: 0 _0, 1 _1, 2 _begin, 3 _end, 4 _cap */
                   WS_SR_CLUSTERID,
                   WS_SR_NCLUSTERID,
                   WS_SR_CLUSTER_CTAID,
                   WS_SR_CLUSTER_NCTAID,
                   WS_SR_CLUSTER_CTARANK,
                   WS_SR_CLUSTER_NCTARANK,
                   WS_SR_IS_EXPLICIT_CLUSTER,
                   WS_SR_PM,     /* sreg_dim: number 0..7; + 8: the 64-bit one */
                   WS_SR_WARPSZ, /* WARP_SZ constant */
                   WS_SR_AGGR_SMEM_SIZE,
                   WS_SR_CURRENT_GRAPH_EXEC,
                   _WS_SR_N
};

struct ws_ptx_operand {
    uint8_t kind;     /* enum ws_ptx_operand_kind */
    uint8_t neg;      /* predicate, or source of vmad, negated; on IMM never set */
    uint8_t imm_kind; /* enum ws_ptx_imm_kind */
    uint8_t sreg;     /* enum ws_ptx_sreg */
    uint8_t sreg_dim;
    uint16_t n;  /* elements of v */
    int32_t reg; /* index into func->regs, or -1 */
    int32_t sym; /* see WS_PTX_SYM_*, or -1 */
    int32_t label;
    int64_t imm;
    struct ws_ptx_operand *v;
    const char *
        part; /* REG: ".x", ".b0", ".h1", ".b3210": an element or part of the register as written; NULL: all of it */
};
/* A sym is local to the function when it names one of func->vars (parameters, .local, .shared declared inside), else of the
 * module (module->vars) or a function (module->funcs). The two high bits tell which; the rest is the index. */
#define WS_PTX_SYM_VAR      0x00000000
#define WS_PTX_SYM_LOCALVAR 0x20000000
#define WS_PTX_SYM_FUNC     0x40000000
#define WS_PTX_SYM_KIND(s)  ((s)&0x60000000)
#define WS_PTX_SYM_INDEX(s) ((s)&0x1fffffff)

enum { WS_PTX_MAX_OPERANDS = 16, WS_PTX_MAX_TYPES = 4 };

struct ws_ptx_insn {
    uint16_t op; /* enum ws_ptx_op */
    uint8_t n_types;
    uint8_t types[WS_PTX_MAX_TYPES];      /* in the order written: cvt.rn.f32.s32 is {F32, S32} */
    uint8_t rnd, cmp, sub, space, space2, /* space2: cp.async source, cvta has one only */
        sem, scope, vec;                  /* vec: 0 or 1 scalar, 2, 4, 8 */
    uint8_t
        cache; /* 0 or index+1 of ws_ptx_cache_names[]: ca cg cs lu cv wb wt …; the rest of an unusual opcode: ext */
    uint32_t flags; /* WS_F_… */
    int32_t guard;  /* predicate register, or -1 */
    uint8_t guard_neg;
    uint8_t n_operands;
    struct ws_ptx_operand *operands; /* [n_operands], destinations first, as written */
    const struct ws_ptx_call *call;  /* op CALL only */
    const char *
        ext; /* modifiers this IR has no field for, as written (".L1::no_allocate"), or NULL. In rows of
                           * opcodes.def marked W (tex, wmma, …) it is all that follows the mnemonic (".2d.v4.f32.f32"), and the
                           * other fields repeat the part that is known */
    const char
        *pragma; /* what .pragma says right before it ("\"nounroll\"", with its quotes), or NULL */
    uint32_t line, col; /* of the opcode in the text; 0 if made by a pass */
};
extern const char *const ws_ptx_cache_names[]; /* NULL-terminated */

struct
    ws_ptx_call { /* 9.7.12.5: call (ret…), f, (arg…); arguments are REG, IMM or local .param variables (SYM) */
    struct ws_ptx_operand callee; /* SYM of a function, or REG for an indirect call */
    int32_t proto;                /* index into func->protos for an indirect call, or -1 */
    uint32_t n_rets, n_args;
    const struct ws_ptx_operand *rets, *args;
};

/* ---- declarations ---- */
enum { WS_LINK_NONE, WS_LINK_VISIBLE, WS_LINK_EXTERN, WS_LINK_WEAK, WS_LINK_COMMON };

struct ws_ptx_reg {
    const char *name; /* with the %: "%r12" */
    uint8_t type;     /* enum ws_ptx_type */
    uint8_t vec;      /* 0/1, 2, 4 */
};

struct ws_ptx_init_sym { /* an address inside an initialiser: var + addend at byte offset (5.4.4) */
    uint64_t offset;
    int32_t sym;
    int64_t addend;
    uint8_t bytes; /* width of the field */
    bool generic;  /* generic(x) */
    bool
        masked; /* 0xFF00(x): one byte of the address, (address & 0xff << shift) >> shift; bytes is 1 */
    uint8_t shift; /* bits */
};

struct ws_ptx_var { /* 5.4: global, const, shared, local variables; parameters */
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
    int32_t
        reg; /* space REG (a .reg parameter of a .func): index into func->regs, or -1; else -1 */
    uint32_t line;
};

struct ws_ptx_label {
    const char *name;
    uint32_t insn;
};                    /* stands before func->insns[insn]; insn == n_insns: at the end */
struct ws_ptx_proto { /* .callprototype, or .calltargets (n_targets > 0, the rest empty) */
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
    uint32_t n_params,
        n_rets; /* .entry: params; .func: both. They are also vars[] with space PARAM or REG: */
    struct ws_ptx_var *params, *rets;
    uint64_t param_bytes; /* of an .entry: end of the last parameter */
    uint32_t n_vars;      /* .local/.shared/.param declared in the body, and nested blocks' */
    struct ws_ptx_var
        *vars; /* LOCALVAR index i < n_params: params[i]; then rets; then vars: ws_ptx_localvar() */
    uint32_t n_regs;
    struct ws_ptx_reg
        *regs; /* .reg of the body, renamed apart where nested blocks reuse a name. Of a range
                                             * (%r<100>) only those used, in the order of their first use: density matters more
                                             * to the interpreter than numbers that nothing refers to */
    uint32_t n_insns;
    struct ws_ptx_insn *insns;
    uint32_t n_labels;
    struct ws_ptx_label *labels;
    uint32_t n_protos;
    struct ws_ptx_proto *protos;
    uint32_t maxntid[3], reqntid[3], minnctapersm, maxnctapersm, maxnreg, reqnctapercluster[3],
        maxclusterrank; /* 0: not given; 11.4 */
    bool explicitcluster, blocksareclusters;
    int32_t
        fence; /* not part of the text: ws_ptx_fence() added it: WS_PTX_FENCE_HELPER, or the copy of function fence - 1 */
    /* not part of the text either: one of ws_ptx_lib()'s functions, or a copy of one; the copy that it made of function lib_of - 1 */
    bool lib;
    uint32_t lib_of;
    uint32_t line;
};

struct ws_ptx_alias {
    int32_t alias, aliasee;
}; /* .alias f, g: indices into module->funcs; f has no body of its own */

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
    /* Not part of the text: the machine code that this stands for (ptx/images/cubin.h), whose functions have no instructions here; or NULL */
    const uint8_t *code;
    size_t code_bytes;
    /* Nor this: its kernels are several clients', and keep each to its own memory (ptx/passes/pass.h, ws_ptx_fuse()); nobody has to do it again. */
    bool fenced;
};

enum {
    _WS_PTX_OK,
    WS_PTX_E_SYNTAX /* text is wrong: see the diagnostics */,
    WS_PTX_E_UNSUPPORTED /* right, but not ours (named) */,
    WS_PTX_E_FORMAT /* fatbin: damaged */,
    WS_PTX_E_NOTFOUND /* fatbin: holds no PTX */
};

/**
 * ws_ptx_parse() - read PTX text
 * @ret_m: out; untouched unless 0 is returned; freed with ws_ptx_module_free()
 * @text, @len: need not end in NUL; trailing NULs are ignored
 * @file: name for diagnostics, or NULL
 * @diags: may be NULL; gets at least one entry (file:line:col, what, what would be right) for each positive return
 *
 * Also runs ws_ptx_validate(). Return: 0, WS_PTX_E_SYNTAX, WS_PTX_E_UNSUPPORTED (an opcode that opcodes.def lacks, named),
 * or -ENOMEM. Never crashes or hangs on any input; memory is at most a constant times len.
 */
WS_MUST_CHECK int ws_ptx_parse(struct ws_ptx_module **ret_m, const char *text, size_t len,
                               const char *file, struct ws_diags *diags);
struct ws_ptx_module *ws_ptx_module_free(struct ws_ptx_module *m);

/* Prints PTX that parses to the same IR. Return: 0 or -EIO. */
WS_MUST_CHECK int ws_ptx_print(const struct ws_ptx_module *m, FILE *out);
/* The same as malloc'ed text of *ret_len bytes, with a NUL behind them. Return: NULL: no memory. Caller frees. */
WS_MUST_CHECK char *ws_ptx_print_text(const struct ws_ptx_module *m, size_t *ret_len);
/* Same IR, but for line, column and debug. */
bool ws_ptx_module_equal(const struct ws_ptx_module *a, const struct ws_ptx_module *b);
/* Operand kinds, types and modifiers of each instruction against opcodes.def; labels, guards. Return: 0 or WS_PTX_E_SYNTAX. */
WS_MUST_CHECK int ws_ptx_validate(const struct ws_ptx_module *m, const char *file,
                                  struct ws_diags *diags);

const struct ws_ptx_func *ws_ptx_find_func(const struct ws_ptx_module *m, const char *name);
const struct ws_ptx_var *ws_ptx_localvar(const struct ws_ptx_func *f, uint32_t index);
const char *ws_ptx_op_name(enum ws_ptx_op op);
const char *ws_ptx_sreg_name(enum ws_ptx_sreg sr); /* "%tid", without the dimension */
bool ws_ptx_sreg_is_clock(
    enum ws_ptx_sreg sr); /* clocks, timers, counters: another value at each look */
/* The class of an instruction in the mix; never WS_MIX_AUTO. */
enum ws_ptx_mix ws_ptx_insn_mix(const struct ws_ptx_insn *i);
/* An instruction as one line of PTX, for messages. @buf gets a NUL. */
void ws_ptx_insn_text(const struct ws_ptx_module *m, const struct ws_ptx_func *f,
                      const struct ws_ptx_insn *i, char *buf, size_t size);
/* The same to a stream, which says itself whether writing failed; for many of them faster. */
void ws_ptx_insn_write(const struct ws_ptx_module *m, const struct ws_ptx_func *f,
                       const struct ws_ptx_insn *i, FILE *out);
/* Bits of an immediate as a value of type t (floats converted, integers truncated). */
uint64_t ws_ptx_imm_as(const struct ws_ptx_operand *o, enum ws_ptx_type t);

/* ---- linking (ptx/images/link.c; PTX ISA 5.1 to 5.4 and 11.6, "Linking Directives") ---- */
struct ws_ptx_link_part {
    struct ws_ptx_module *m;
    const char *name; /* for messages: "b.ptx", or NULL */
};
enum { WS_PTX_LINK_STRICT = 1u << 0 };
/**
 * ws_ptx_link() - make one module of several
 * @ret: out; untouched unless 0 is returned
 * @parts, @n: taken over and freed, whatever is returned
 * @flags: WS_PTX_LINK_STRICT: a function or variable that is used and nowhere defined is an error. Without it, it stays an
 *   .extern declaration, and the kernels that reach it can't run.
 * @diags: may be NULL; names symbol, part and line of what is wrong
 *
 * Symbols that are .visible, .weak, .common or .extern are one across parts, the others are their part's own and renamed where
 * two have one name. Return: 0, WS_PTX_E_SYNTAX, WS_PTX_E_NOTFOUND (unresolved), -ENOMEM. */
WS_MUST_CHECK int ws_ptx_link(struct ws_ptx_module **ret, const struct ws_ptx_link_part *parts,
                              size_t n, unsigned flags, struct ws_diags *diags);
/* A function that CUDA's device code may call without defining it: vprintf, malloc, __assertfail, the device runtime's. */
bool ws_ptx_is_system_func(const char *name);

/* ---- images (ptx/images/image.c): PTX text, fatbins, and containers of either that are to be linked ---- */
struct ws_ptx_texts {
    bool link, strict;
    bool machine; /* one, and it is a cubin */
    size_t n;
    struct {
        char *text; /* malloc'ed */
        size_t len;
        char *name; /* malloc'ed, or NULL */
    } * v;
};
/* What a device of compute capability @sm should run of an image: PTX, or, where there is none for it, its machine code.
 * @no_machine_code: NULL: the device takes that; else why not, for messages. @max_bytes: of each text. @name: for messages.
 * Return: 0, WS_PTX_E_FORMAT, WS_PTX_E_NOTFOUND (nothing for the device), WS_PTX_E_UNSUPPORTED, -ENOMEM. */
WS_MUST_CHECK int ws_ptx_image_texts(struct ws_ptx_texts *ret, const void *image, size_t len,
                                     uint32_t sm, const char *no_machine_code, size_t max_bytes,
                                     const char *name, struct ws_diags *diags);
/* Parses them, and links them if that is what the image asks for. Return: as ws_ptx_parse(), ws_ptx_link(), ws_cubin_module(). */
WS_MUST_CHECK int ws_ptx_image_parse(struct ws_ptx_module **ret, const struct ws_ptx_texts *t,
                                     struct ws_diags *diags);
void ws_ptx_texts_deinit(struct ws_ptx_texts *t);

/* ---- control flow (ptx/analysis/cfg.c) ---- */
struct ws_ptx_block {
    uint32_t first, n; /* insns */
    int32_t succ[2];   /* -1: none; [0] fall-through or uniform target, [1] taken */
    int32_t ipdom;     /* immediate post-dominator, or -1: exit */
};
struct ws_ptx_cfg {
    uint32_t n_blocks;
    struct ws_ptx_block *blocks;
    uint32_t *block_of; /* [n_insns] */
};
/* Allocates from @a. Return: 0 or -ENOMEM. The point where lanes that diverged at a branch meet again is the first
 * instruction of its block's ipdom. */
WS_MUST_CHECK int ws_ptx_cfg_build(struct ws_ptx_cfg *ret, const struct ws_ptx_func *f,
                                   struct ws_arena *a);

/* ---- fatbin (ptx/images/fatbin.c; layout: facts of the container, checked against nvcc 13) ---- */
enum ws_fatbin_kind { WS_FATBIN_PTX = 1, WS_FATBIN_ELF = 2, WS_FATBIN_LTO = 8 };
struct ws_fatbin_entry {
    uint16_t kind;
    uint32_t sm;
    uint64_t flags;
    const uint8_t *payload;
    size_t payload_bytes; /* inside the image */
    size_t raw_bytes;     /* after decompression */
    const char *options;
    size_t options_len; /* ptxas options stored with it, inside the image; NULL if none */
};
/* Calls @each for every entry in order; stops when it returns non-zero, and returns that.
 * Return: 0, WS_PTX_E_FORMAT (with a diagnostic saying which field is wrong and at what offset), or what @each returned. */
WS_MUST_CHECK int ws_fatbin_walk(const void *image, size_t len,
                                 int (*each)(const struct ws_fatbin_entry *e, void *arg), void *arg,
                                 struct ws_diags *diags);
/* Decompressed payload (plain, LZ4 block, zstd), malloc'ed with a NUL after it. @max_bytes guards against bombs.
 * Return: 0, WS_PTX_E_FORMAT, WS_PTX_E_UNSUPPORTED (a compression or kind named in the diagnostic), -ENOMEM. */
WS_MUST_CHECK int ws_fatbin_extract(const struct ws_fatbin_entry *e, size_t max_bytes, char **ret,
                                    size_t *ret_len, struct ws_diags *diags);
/* The PTX that a device of compute capability @sm (75, 90, …) should run: the newest arch not above it, else the lowest there is.
 * Return: 0, WS_PTX_E_NOTFOUND (diagnostic lists what is there), or as above. */
WS_MUST_CHECK int ws_fatbin_ptx(const void *image, size_t len, uint32_t sm, size_t max_bytes,
                                char **ret, size_t *ret_len, struct ws_diags *diags);
/* The same, or machine code, as ws_ptx_image_texts() says; *ret_machine: it is that. */
WS_MUST_CHECK int ws_fatbin_code(const void *image, size_t len, uint32_t sm,
                                 const char *no_machine_code, size_t max_bytes, char **ret,
                                 size_t *ret_len, bool *ret_machine, struct ws_diags *diags);
/* Whether a GPU of compute capability @sm runs machine code for @code_sm: the same generation, and not newer. */
bool ws_fatbin_machine_runs(uint32_t code_sm, uint32_t sm);
/* What an image handed to cuModuleLoadData is: looks at its beginning; PTX starts with .version behind blanks and comments. */
enum ws_image_kind {
    WS_IMAGE_UNKNOWN,
    WS_IMAGE_FATBIN,
    WS_IMAGE_PTX,
    WS_IMAGE_CUBIN,
    WS_IMAGE_LINK /* base/link_image.h */
};
enum ws_image_kind ws_image_kind(const void *image, size_t len);

#endif
