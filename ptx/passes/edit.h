/* SPDX-License-Identifier: Apache-2.0 */
/* ptx/passes/edit.h - a new function made of an old one, or of several, instruction by instruction:
 * what passes write with. Not for other rooms.
 *
 * Begin; add what comes first; copy the old instructions in order, adding between them; end. Out of
 * memory is remembered and reported at the end; until then everything may be called. Labels of the
 * old function keep their numbers. */
#ifndef WS_PTX_PASSES_EDIT_H
#define WS_PTX_PASSES_EDIT_H

#include "ptx/ptx.h"

/* One of the old functions: where what is its own begins in the new one. */
struct ws_ptx_source {
    const struct ws_ptx_func *f;
    uint32_t regs, labels, params, protos;
    uint64_t param_offset,
        param_pad; /* of its first parameter; bytes before it, to keep its alignment */
    int32_t *vars; /* [f->n_vars]: index among the new one's, or -1: left out. malloc'ed */
    uint32_t *labels_at,
        *next_label; /* its labels by instruction, as lists; label + 1, 0 ends. malloc'ed */
};

struct ws_ptx_edit {
    struct ws_ptx_module *m;
    const struct ws_ptx_func *old; /* of the source that is copied from */
    struct ws_ptx_source *sources, *from;
    uint32_t n_sources;
    struct ws_ptx_func f;
    size_t cap_insns, cap_labels, cap_regs, cap_vars; /* f's arrays are malloc'ed until the end */
    uint32_t n_own;                                   /* for names */
    char prefix[16];         /* of own names; begins no name of the old functions */
    struct ws_ptx_insn lost; /* where a caller writes when memory is out */
    bool failed;
};

/* Several functions become one. @fused_name: of the new function; borrowed until the end. Where
 * there are several, their registers, labels, variables and parameters get names of their own.
 * Parameters stand one function's after another's, each beginning at a multiple of 16, then
 * @ctl_bytes as below. @drop_shared: their static shared variables are left out; what refers to
 * them is the caller's. */
void ws_ptx_edit_begin_all(struct ws_ptx_edit *e, struct ws_ptx_module *m, const uint32_t *funcs,
                           uint32_t n, const char *fused_name, uint64_t ctl_bytes,
                           bool drop_shared);
/* From here on copies are of source @k. */
void ws_ptx_edit_select(struct ws_ptx_edit *e, uint32_t k);
/* The new number of a register of the source that is copied from. */
static inline int32_t ws_ptx_edit_old_reg(const struct ws_ptx_edit *e, int32_t reg)
{
    return e->from ? (int32_t)e->from->regs + reg : 0; /* NULL: out of memory */
}

/* @suffix: of the new function's name. @ctl_bytes: of one more parameter at the end, aligned to 8;
 *   0: none. */
void ws_ptx_edit_begin(struct ws_ptx_edit *e, struct ws_ptx_module *m, uint32_t func,
                       const char *suffix, uint64_t ctl_bytes);
/* Appends the function to the module. Return: 0 or -ENOMEM with the module as it was. */
WS_MUST_CHECK int ws_ptx_edit_end(struct ws_ptx_edit *e, uint32_t *ret_func);

int32_t ws_ptx_edit_reg(struct ws_ptx_edit *e, enum ws_ptx_type type);
/* A label that is nowhere yet. */
int32_t ws_ptx_edit_label(struct ws_ptx_edit *e);
void ws_ptx_edit_place(struct ws_ptx_edit *e, int32_t label);
/* A .shared variable of its own. Return: its sym. */
int32_t ws_ptx_edit_shared(struct ws_ptx_edit *e, uint64_t bytes, uint32_t align);
/* A .param variable of its own, for what a call returns. Return: its sym. */
int32_t ws_ptx_edit_result(struct ws_ptx_edit *e, uint64_t bytes, uint32_t align);
/* One more .reg parameter, of a function that isn't a kernel; at most WS_EDIT_PARAMS_MAX. Before
 * anything is copied. Return: its register. */
enum { WS_EDIT_PARAMS_MAX = 4 };
int32_t ws_ptx_edit_param(struct ws_ptx_edit *e, enum ws_ptx_type type);
/* The sym of the parameter that ctl_bytes made. */
int32_t ws_ptx_edit_ctl(const struct ws_ptx_edit *e);

/* Appends an instruction with one type (WS_T_NONE: none). Operands are copied. Never NULL;
 * modifiers are the caller's to set. */
struct ws_ptx_insn *ws_ptx_edit_add(struct ws_ptx_edit *e, enum ws_ptx_op op, enum ws_ptx_type type,
                                    uint8_t n_operands, const struct ws_ptx_operand *operands);
#define WS_EDIT(e, op, type, ...)                                                                  \
    ws_ptx_edit_add((e), WS_OP_##op, WS_T_##type,                                                  \
                    sizeof((struct ws_ptx_operand[]){__VA_ARGS__}) /                               \
                        sizeof(struct ws_ptx_operand),                                             \
                    (struct ws_ptx_operand[]){__VA_ARGS__})
/* Makes it run only in threads where @pred is true, or with @negated false. */
void ws_ptx_edit_guard(struct ws_ptx_insn *i, int32_t pred, bool negated);
/* Appends a copy of old instruction @index, whose operands are its own and whose labels
 * ws_ptx_edit_skip() has placed. Return: the copy. */
struct ws_ptx_insn *ws_ptx_edit_copy_only(struct ws_ptx_edit *e, uint32_t index);
/* call (rets), f, (args); all registers. */
void ws_ptx_edit_call(struct ws_ptx_edit *e, uint32_t func, uint32_t n_rets,
                      const struct ws_ptx_operand *rets, uint32_t n_args,
                      const struct ws_ptx_operand *args);
/* The labels at the old function's end. */
void ws_ptx_edit_old_end(struct ws_ptx_edit *e);
/* Places the labels that stand before old instruction @index, which must be the next one. If it is
 * not copied then, it is left out. */
void ws_ptx_edit_skip(struct ws_ptx_edit *e, uint32_t index);

/* ---- what passes have in common ---- */

/* ld.param of a field of the parameter that ctl_bytes made. Return: a new register. */
int32_t ws_ptx_edit_load(struct ws_ptx_edit *e, enum ws_ptx_type type, size_t field);
/* setp. Return: a new predicate. */
int32_t ws_ptx_edit_compare(struct ws_ptx_edit *e, enum ws_ptx_cmp cmp, enum ws_ptx_type type,
                            struct ws_ptx_operand a, struct ws_ptx_operand b);
void ws_ptx_edit_branch_if(struct ws_ptx_edit *e, int32_t pred, bool negated, int32_t label);
/* ld.param.v2 of two fields side by side, the first at a multiple of twice their size. @ret: new
 * registers. */
void ws_ptx_edit_load2(struct ws_ptx_edit *e, enum ws_ptx_type type, size_t field, int32_t ret[2]);
/* @number = ret[0] + n[0] * (ret[1] + n[1] * ret[2]), for those that are read. @shape: field of a
 *   struct ws_ptx_shape in the
 * parameter that ctl_bytes made. @ret: u32 registers where @reads says so; ret[0] may be @number.
 */
void ws_ptx_edit_split(struct ws_ptx_edit *e, int32_t number, size_t shape, const bool reads[3],
                       const int32_t ret[3]);
/* Operand @n of @i, a special register until now, becomes the u32 register @reg. */
void ws_ptx_edit_read(struct ws_ptx_insn *i, uint8_t n, int32_t reg);

/* ---- a kernel copied with functions that it may call (ptx/passes/copies.c) ---- */
struct ws_ptx_copies {
    bool *needs;     /* [m->n_funcs]: functions of which there is, or will be, a copy */
    uint32_t *clone; /* [m->n_funcs]: then: the number of that copy */
    uint32_t helper; /* as given to ws_ptx_copy_kernel() */
};
struct ws_ptx_copier {
    /* Marks the functions that must be copied, among those that @func may call. @needs:
     * [m->n_funcs], false. Return: 0 or -ENOMEM. */
    int (*needs)(const struct ws_ptx_module *m, uint32_t func, bool *needs);
    /* Whether @f is a copy of function @func that this pass made. */
    bool (*is_copy)(const struct ws_ptx_func *f, uint32_t func);
    /* Adds the copy of function @func to the module. Return: 0 with *ret, the copy's number; or
     * -ENOMEM with the module as it was. */
    int (*write)(struct ws_ptx_module *m, uint32_t func, const struct ws_ptx_copies *c,
                 uint32_t *ret);
};
/* Copies kernel @func and the functions that need it. @helper: of the pass's own, for its write().
 * *ret_func: the kernel's copy.
 * Return: 0, or -ENOMEM with the module as it was. */
WS_MUST_CHECK int ws_ptx_copy_kernel(struct ws_ptx_module *m, uint32_t func,
                                     const struct ws_ptx_copier *by, uint32_t helper,
                                     uint32_t *ret_func);
/* The copy to which a call in a copy must go; -1: no call, or of a function that is not copied. */
int64_t ws_ptx_copy_of_callee(const struct ws_ptx_copies *c, const struct ws_ptx_insn *i);
/* The call just copied goes to function @func, with @n_more arguments more. */
void ws_ptx_edit_redirect(struct ws_ptx_edit *e, struct ws_ptx_insn *i, uint32_t func,
                          uint32_t n_more, const struct ws_ptx_operand *more);
/* Whether @f calls one of the marked functions by its name. */
bool ws_ptx_calls_any(const struct ws_ptx_func *f, const bool *funcs);
/* Marks the functions among @among that call a marked function, directly or through others. Return:
 * 0 or -ENOMEM. */
WS_MUST_CHECK int ws_ptx_mark_callers(const struct ws_ptx_module *m, const bool *among, bool *io);

/* ---- block and thread numbers that a pass replaces (ptx/analysis/own.c) ---- */
enum ws_ptx_own_which { WS_OWN_CTAID, WS_OWN_NCTAID, WS_OWN_TID, WS_OWN_NTID, _WS_OWN_N };
struct ws_ptx_own_value {
    bool read;         /* by the old function */
    bool is_field;     /* its value is a field of the parameter that ctl_bytes made */
    size_t field;      /* then: which */
    int32_t reg;       /* of the new function, which holds it; -1: none */
    int32_t copies_to; /* register of the old function that is only ever this value; -1: none */
    uint32_t copied_at;
};
struct ws_ptx_own {
    const struct ws_ptx_func *f;
    struct ws_ptx_own_value of[_WS_OWN_N][3];
};
/* Which of them an operand is, or -1. */
int ws_ptx_own_of(const struct ws_ptx_operand *o);
/* What the source that is copied from reads. No value is replaced until one of the next two says
 * so. */
void ws_ptx_own_find(struct ws_ptx_own *own, struct ws_ptx_edit *e);
/* Its value is in the returned register, where the pass must put it before the first copied
 * instruction. */
int32_t ws_ptx_own_reg(struct ws_ptx_own *own, struct ws_ptx_edit *e, enum ws_ptx_own_which which,
                       unsigned dim);
/* Its three values are fields of three uint32_t of the parameter that ctl_bytes made. */
void ws_ptx_own_load(struct ws_ptx_own *own, enum ws_ptx_own_which which, size_t field);
bool ws_ptx_own_reads(const struct ws_ptx_own *own, enum ws_ptx_own_which which);
/* ws_ptx_edit_skip() and ws_ptx_edit_copy_only() with the values replaced. Return: the copy; NULL:
 * the instruction is left out. */
struct ws_ptx_insn *ws_ptx_own_copy(struct ws_ptx_own *own, struct ws_ptx_edit *e, uint32_t index);

/* Writes "line 41: …", or without the line where it is 0. Return: WS_PTX_E_UNSUPPORTED. */
WS_PRINTF(4, 5)
int ws_ptx_refuse(char *text, size_t text_bytes, uint32_t line, const char *fmt, ...);

/* Sets @reached[i] for each function i that @f may call, itself or through others. @reached:
 * [m->n_funcs]. Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_ptx_mark_reached(const struct ws_ptx_module *m, const struct ws_ptx_func *f,
                                      bool *reached);

/* Whether the kernel or a function it may call reads %tid.y, %tid.z or all of %tid. Return: 0 or
 * -ENOMEM. */
WS_MUST_CHECK int ws_ptx_reads_tid_yz(const struct ws_ptx_module *m, uint32_t func, bool *ret);
/* Whether a thread may come to the end of the text, where a ret is understood. */
bool ws_ptx_falls_off(const struct ws_ptx_func *f);
/* Whether @op is in the kernel or a function it may call. Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_ptx_has_op(const struct ws_ptx_module *m, uint32_t func, enum ws_ptx_op op,
                                bool *ret);

/* The branch of @f, the kernel or a function it may call, at which it may wait for other blocks
 * (ptx/analysis/wait.c); NULL: it waits for none.
 * @reached: as above, of the kernel. Allocates from @a. Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_ptx_waits(const struct ws_ptx_module *m, const struct ws_ptx_func *f,
                               const struct ws_ptx_cfg *cfg, const bool *reached,
                               struct ws_arena *a, const struct ws_ptx_insn **ret_where);

static inline struct ws_ptx_operand ws_opd_reg(int32_t r)
{
    return (struct ws_ptx_operand){.kind = WS_OPD_REG, .reg = r, .sym = -1, .label = -1};
}
static inline struct ws_ptx_operand ws_opd_imm(int64_t v)
{
    return (struct ws_ptx_operand){.kind = WS_OPD_IMM, .reg = -1, .sym = -1, .label = -1, .imm = v};
}
static inline struct ws_ptx_operand ws_opd_sreg(enum ws_ptx_sreg s, uint8_t dim)
{
    return (struct ws_ptx_operand){.kind = WS_OPD_SREG,
                                   .reg = -1,
                                   .sym = -1,
                                   .label = -1,
                                   .sreg = (uint8_t)s,
                                   .sreg_dim = dim};
}
static inline struct ws_ptx_operand ws_opd_label(int32_t l)
{
    return (struct ws_ptx_operand){.kind = WS_OPD_LABEL, .reg = -1, .sym = -1, .label = l};
}
/* [reg + offset] */
static inline struct ws_ptx_operand ws_opd_at(int32_t r, int64_t offset)
{
    return (struct ws_ptx_operand){
        .kind = WS_OPD_ADDR, .reg = r, .sym = -1, .label = -1, .imm = offset};
}
/* [sym + offset] */
static inline struct ws_ptx_operand ws_opd_at_sym(int32_t sym, int64_t offset)
{
    return (struct ws_ptx_operand){
        .kind = WS_OPD_ADDR, .reg = -1, .sym = sym, .label = -1, .imm = offset};
}
/* The address of sym */
static inline struct ws_ptx_operand ws_opd_sym(int32_t sym)
{
    return (struct ws_ptx_operand){.kind = WS_OPD_SYM, .reg = -1, .sym = sym, .label = -1};
}

#endif
