/* SPDX-License-Identifier: Apache-2.0 */
/* ptx/text/text.h - PTX text to IR and back, the check of an IR, and what is asked of one. */
#ifndef WS_PTX_TEXT_TEXT_H
#define WS_PTX_TEXT_TEXT_H

#include <stdio.h>
#include "base/diag.h"
#include "ptx/ir.h"

/**
 * ws_ptx_parse() - read PTX text
 * @ret_m: out; untouched unless 0 is returned; freed with ws_ptx_module_free()
 * @text, @len: need not end in NUL; trailing NULs are ignored
 * @file: name for diagnostics, or NULL
 * @diags: may be NULL; gets at least one entry (file:line:col, what, what would be right) for each
 *   positive return
 *
 * Also runs ws_ptx_validate(). Return: 0, WS_PTX_E_SYNTAX, WS_PTX_E_UNSUPPORTED (an opcode that
 * opcodes.def lacks, named), or -ENOMEM. Never crashes or hangs on any input; memory is at most a
 * constant times len.
 */
WS_MUST_CHECK int ws_ptx_parse(struct ws_ptx_module **ret_m, const char *text, size_t len,
                               const char *file, struct ws_diags *diags);
struct ws_ptx_module *ws_ptx_module_free(struct ws_ptx_module *m);

/* Prints PTX that parses to the same IR. Return: 0 or -EIO. */
WS_MUST_CHECK int ws_ptx_print(const struct ws_ptx_module *m, FILE *out);
/* The same as malloc'ed text of *ret_len bytes, with a NUL behind them. Return: NULL: no memory.
 * Caller frees. */
WS_MUST_CHECK char *ws_ptx_print_text(const struct ws_ptx_module *m, size_t *ret_len);
/* Same IR, but for line, column and debug. */
bool ws_ptx_module_equal(const struct ws_ptx_module *a, const struct ws_ptx_module *b);
/* Operand kinds, types and modifiers of each instruction against opcodes.def; labels, guards.
 * Return: 0, WS_PTX_E_SYNTAX, or -ENOMEM (the thread's budget is used up). */
WS_MUST_CHECK int ws_ptx_validate(const struct ws_ptx_module *m, const char *file,
                                  struct ws_diags *diags);

const struct ws_ptx_func *ws_ptx_find_func(const struct ws_ptx_module *m, const char *name);
const struct ws_ptx_var *ws_ptx_localvar(const struct ws_ptx_func *f, uint32_t index);
const char *ws_ptx_sreg_name(enum ws_ptx_sreg sr); /* "%tid", without the dimension */
/* Clocks, timers and counters, which have another value each time they are read. */
bool ws_ptx_sreg_is_clock(enum ws_ptx_sreg sr);
/* The class of an instruction in the mix; never WS_MIX_AUTO. */
enum ws_ptx_mix ws_ptx_insn_mix(const struct ws_ptx_insn *i);
/* Prints the opcode with its modifiers, as "mul.wide.s32". */
void ws_ptx_insn_print_op(const struct ws_ptx_insn *i, FILE *out);
/* An instruction as one line of PTX, for messages. @buf gets a NUL. */
void ws_ptx_insn_text(const struct ws_ptx_module *m, const struct ws_ptx_func *f,
                      const struct ws_ptx_insn *i, char *buf, size_t size);
/* The same to a stream, which is faster for many instructions. The stream tells whether writing
 * failed. */
void ws_ptx_insn_write(const struct ws_ptx_module *m, const struct ws_ptx_func *f,
                       const struct ws_ptx_insn *i, FILE *out);
/* Where the instruction stands, for messages: "sum.cu:12 (PTX line 48)", or "PTX line 48" if the
 * compiler did not say from which line it was made (nvcc -lineinfo). Of a name for which there is
 * no room, folders are left out from the front. @buf gets a NUL. */
void ws_ptx_insn_place(const struct ws_ptx_insn *i, char *buf, size_t size);
/* Bits of an immediate as a value of type t (floats converted, integers truncated). */
uint64_t ws_ptx_imm_as(const struct ws_ptx_operand *o, enum ws_ptx_type t);

#endif
