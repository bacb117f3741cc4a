/* SPDX-License-Identifier: Apache-2.0 */
/* ptx/ptx_private.h - what the files of the parser share: tokens, names, scopes. Not for other
 * rooms. */
#ifndef WS_PTX_PTX_PRIVATE_H
#define WS_PTX_PTX_PRIVATE_H

#include <locale.h>
#include "ptx/ptx.h"

/* ---- lex.c ---- */
/* Kinds of token; punctuation is its own character. */
enum {
    WS_TOK_END = 0,
    WS_TOK_NAME = 128, /* foo, %r1, $L__BB0_1, _ */
    WS_TOK_DOT,        /* .word; s points at the dot */
    WS_TOK_NUM,
    WS_TOK_STR, /* without the quotes, escapes untouched */
    WS_TOK_SHL,
    WS_TOK_SHR,
    WS_TOK_ANDAND,
    WS_TOK_OROR,
    WS_TOK_EQ,
    WS_TOK_NE,
    WS_TOK_LE,
    WS_TOK_GE,
    WS_TOK_BAD, /* s is an error message */
};

struct ws_tok {
    uint8_t kind;
    uint8_t imm_kind; /* NUM: enum ws_ptx_imm_kind */
    bool big;         /* NUM: above INT64_MAX */
    uint32_t len, line, col;
    const char *s;
    int64_t value; /* NUM */
};

struct ws_lex {
    const char *cur, *end, *line_start;
    uint32_t line;
    locale_t c_locale; /* for decimal floats; made when first needed */
};

void ws_lex_init(struct ws_lex *l, const char *text, size_t len);
void ws_lex_deinit(struct ws_lex *l);
void ws_lex_next(struct ws_lex *l, struct ws_tok *ret);
/* After the NAME token @t at a statement's start: extends it over the modifiers (".to.global.u64"),
 * which stand right behind it or after blanks; then @buf (size bytes) holds the joined text and
 * t->s points to it. */
void ws_lex_opcode(struct ws_lex *l, struct ws_tok *t, char *buf, size_t size);

/* ---- names and scopes (scope.c) ---- */
enum ws_bind_kind {
    WS_BIND_LAZYREG,
    WS_BIND_REG,
    WS_BIND_VAR,
    WS_BIND_LOCALVAR,
    WS_BIND_FUNC,
    WS_BIND_PROTO,
    WS_BIND_TARGETS
};

/* What a name means from here to the end of its scope. */
struct ws_binding {
    uint8_t kind, type, vec;
    uint16_t depth;
    int32_t index; /* of the register, variable, function, prototype; TARGETS: of parser->targets */
    uint32_t count;     /* a range's registers */
    uint32_t ref_stamp; /* depth 0: the function that last referred to it */
    struct ws_name *name;
    struct ws_binding *outer, *scope_next;
};

/* A label as one scope sees it. */
struct ws_label_use {
    struct ws_name *name;
    int32_t id; /* temporary, see parser->label_ids */
    uint16_t depth;
    bool defined;
    uint32_t line, col; /* of the first reference */
    struct ws_label_use *outer, *scope_next;
};

struct ws_name {
    struct ws_name *next;
    uint32_t hash, len;
    struct ws_binding *bind, *range;
    struct ws_label_use *label;
    const struct ws_ptx_insn *op_template; /* the text is an opcode with its modifiers */
    uint16_t op1;                          /* the text is a mnemonic: enum ws_ptx_op + 1 */
    uint32_t used_stamp, label_stamp;      /* the function that last declared it */
    uint32_t suffix;                       /* last one tried when renaming apart */
    char text[];
};

enum { WS_PTX_MAX_DEPTH = 64, WS_PTX_MAX_ERRORS = 20, WS_PTX_MAX_VEC = 4096 };

/* Temporary label: union-find over scopes, then its place. */
struct ws_label_id {
    int32_t same_as; /* another id, or -1 */
    int32_t final;   /* index into func->labels, or -1 */
    uint32_t insn;
    struct ws_name *name;
};

struct ws_parser {
    struct ws_lex lex;
    struct ws_tok t;
    const char *prev_end; /* of the token before t, to see whether two touch */
    const char *file;
    struct ws_diags *diags;
    struct ws_ptx_module *m;
    struct ws_arena scratch; /* names, bindings: freed after parsing */
    size_t n_errors, n_unsupported;
    bool oom, stop;
    size_t init_budget; /* bytes that initialisers may still take */

    struct ws_name **names;
    size_t n_names, names_cap;

    struct {
        struct ws_binding *binds;
        struct ws_label_use *labels;
    } scopes[WS_PTX_MAX_DEPTH];
    unsigned depth, range_depth; /* range_depth: deepest scope that may hold a register range */
    uint32_t stamp;              /* number of the function being parsed */

    struct ws_ptx_var *vars;
    size_t n_vars, vars_cap;
    struct ws_ptx_func *funcs;
    size_t n_funcs, funcs_cap;
    struct ws_ptx_alias *aliases;
    size_t n_aliases, aliases_cap;

    /* of the function being parsed */
    int32_t func;
    struct ws_ptx_insn *insns;
    size_t n_insns, insns_cap;
    struct ws_ptx_reg *regs;
    size_t n_regs, regs_cap;
    struct ws_ptx_var *lvars;
    size_t n_lvars, lvars_cap;
    struct ws_label_id *label_ids;
    size_t n_label_ids, label_ids_cap, n_labels; /* n_labels: defined so far */
    struct ws_ptx_proto *protos;
    size_t n_protos, protos_cap;
    struct ws_ptx_operand *targets; /* VEC of LABEL each */
    size_t n_targets, targets_cap;
    const char *pragma; /* for the next instruction, or NULL */
    /* What .loc says of the instructions that follow: insn->src_file and src_line. */
    const struct ws_ptx_file *src_file;
    uint32_t src_line;
    struct ws_ptx_file **files; /* by the number in .file, from 1; NULL where it is not used */
    size_t n_files, files_cap;
};

/* Say what is wrong at token @t; always return false. The first says that PTX itself forbids it. */
bool ws_parse_fail(struct ws_parser *p, const struct ws_tok *t, const char *fmt, ...)
    WS_PRINTF(3, 4);
bool ws_parse_unsupported(struct ws_parser *p, const struct ws_tok *t, const char *fmt, ...)
    WS_PRINTF(3, 4);
bool ws_parse_oom(struct ws_parser *p);

struct ws_name *ws_name_intern(struct ws_parser *p, const char *s,
                               size_t len); /* NULL: out of memory */
struct ws_name *ws_name_find(struct ws_parser *p, const char *s,
                             size_t len); /* NULL: no such name */
int ws_names_init(struct ws_parser *p);

bool ws_scope_enter(struct ws_parser *p);
bool ws_scope_leave(struct ws_parser *p);
/* Binds the name in the current scope, or fails at @at if it is bound there already. */
struct ws_binding *ws_scope_bind(struct ws_parser *p, struct ws_name *n, enum ws_bind_kind kind,
                                 int32_t index, const struct ws_tok *at);
/* The same in the module's scope, whatever is open inside. */
bool ws_scope_bind_module(struct ws_parser *p, struct ws_name *n, enum ws_bind_kind kind,
                          int32_t index);
bool ws_scope_bind_range(struct ws_parser *p, struct ws_name *prefix, uint32_t count, uint8_t type,
                         uint8_t vec, const struct ws_tok *at);
/* What the name means here; registers are made when first looked up. NULL: nothing, or out of
 * memory (p->oom). */
struct ws_binding *ws_scope_lookup(struct ws_parser *p, struct ws_name *n);
/* A name for a declaration inside the current function that no other declaration of it has. */
const char *ws_scope_unique(struct ws_parser *p, struct ws_name *n);
int32_t ws_scope_new_reg(struct ws_parser *p, struct ws_name *n, uint8_t type, uint8_t vec);
int32_t ws_label_ref(struct ws_parser *p, struct ws_name *n, const struct ws_tok *at);
bool ws_label_define(struct ws_parser *p, struct ws_name *n, const struct ws_tok *at);

/* ---- mods.c ---- */
/* Decodes "ld.global.v4.f32" into a template instruction kept with its name. NULL after an error
 * was reported. */
const struct ws_ptx_insn *ws_mods_decode(struct ws_parser *p, const struct ws_tok *t);
/* Writes the modifiers of an instruction, canonically: ".global.v4.f32". */
void ws_mods_print(const struct ws_ptx_insn *i, FILE *out);
bool ws_type_from_word(const char *s, size_t len, uint8_t *ret);
/* Finds "tid" of "%tid"; numbered ones ("%envreg3", "%pm1_64") too. */
bool ws_sreg_from_word(const char *s, size_t len, struct ws_ptx_operand *ret);

/* ---- parse.c ---- */
/* Copies an array that was grown while parsing into the module's arena; sets p->oom. */
void *ws_parse_keep(struct ws_parser *p, const void *v, size_t n, size_t size);
void ws_parse_next(struct ws_parser *p);
bool ws_parse_expect(struct ws_parser *p, int kind, const char *what);
bool ws_parse_accept(struct ws_parser *p, int kind);
bool ws_parse_is_dot(const struct ws_parser *p, const char *word);
void ws_parse_skip_statement(struct ws_parser *p);
/* .loc, .file, .section, and .pragma outside bodies. @ret_found: whether t was one. */
bool ws_parse_debug(struct ws_parser *p, bool *ret_found);
bool ws_parse_int(struct ws_parser *p, int64_t *ret, const char *what);
/* "prototype_0 : .callprototype …;" or ".calltargets …;" from the directive on. */
bool ws_parse_callprototype(struct ws_parser *p, struct ws_name *name, const struct ws_tok *at);
bool ws_parse_calltargets(struct ws_parser *p, struct ws_name *name, const struct ws_tok *at);

/* ---- decl.c ---- */
/* ".global .align 4 .b8 x[4] = {…}, y;" from the space on. In a function, .local, .shared and
 * .param go to it. */
bool ws_decl_vars(struct ws_parser *p, uint8_t link);
/* "(.param .u64 a, .reg .b32 b)" from the '(' on. @bind: names are bound, .reg parameters become
 * registers. */
bool ws_decl_params(struct ws_parser *p, bool bind, struct ws_ptx_var **ret, uint32_t *ret_n);
/* ".reg .b32 %r<10>, x;" from the .reg on. */
bool ws_decl_regs(struct ws_parser *p);
/* Whether t is a directive that starts a variable. */
bool ws_decl_is_space(const struct ws_parser *p);

/* ---- init.c ---- */
/* "= {…}" from the '=' on: sets init, init_bytes, init_syms and, of an array with an open first
 * dimension, that. */
bool ws_init_parse(struct ws_parser *p, struct ws_ptx_var *v);

/* ---- expr.c ---- */
/* Constant expression of integers, or one float with an optional sign. */
bool ws_expr_parse(struct ws_parser *p, struct ws_ptx_operand *ret);

/* ---- body.c ---- */
bool ws_body_parse(struct ws_parser *p);

#endif
