// SPDX-License-Identifier: Apache-2.0
/* cli/coverage/coverage.h - what one program asks of CUDA, found without running it, against the ledger.
 *
 * coverage.c (the verb), coverage_elf.c (a program's or library's entry points and images), coverage_libs.c (the libraries it
 * loads), coverage_code.c (PTX, fatbins and cubins), coverage_report.c (what was found).
 * Files may be anyone's: nothing in them is trusted. Threads: none. */
#ifndef WS_CLI_COVERAGE_COVERAGE_H
#define WS_CLI_COVERAGE_COVERAGE_H

#include <stdint.h>
#include <stdio.h>
#include "base/diag.h"
#include "base/elf.h"
#include "cli/coverage/ledger.h"

/* ---- coverage_report.c ---- */
enum ws_cover_kind { WS_COVER_ENTRY, WS_COVER_OPCODE, WS_COVER_IMAGE, _WS_COVER_N };
struct ws_cover_item { /* one name that the program uses, however often */
    enum ws_cover_kind kind;
    enum ws_ledger_state state;
    bool possible;     /* a string only: it may be looked up by name at run time */
    char *name;        /* entry point, opcode with its modifiers, or what kind of image */
    char *object;      /* file in which it was first found */
    char *place;       /* missing opcodes: "kernel k, line 12: text"; else NULL */
    const char *note;  /* static: of the ledger; or NULL */
    const char *group; /* entry points: chapter; else NULL */
    unsigned n;        /* times found */
};
enum {
    WS_COVER_SLICE,
    WS_COVER_TICKET,
    WS_COVER_PERSISTENT,
    WS_COVER_FENCE,
    WS_COVER_FUSE,
    _WS_COVER_REWRITE_N
};
struct ws_cover_rewrite {                        /* of one kernel */
    char *kernel, *why_not[_WS_COVER_REWRITE_N]; /* NULL: it can be rewritten that way */
};
struct ws_cover {
    const char *program; /* borrowed */
    struct ws_cover_item *items;
    size_t n_items, cap_items;
    uint32_t *index; /* open hash of items by kind, name and place: number + 1 */
    size_t index_size;
    struct ws_cover_rewrite *rewrites;
    size_t n_rewrites, cap_rewrites;
    bool want_rewrites, want_ptxas;
    struct ws_cover_ptxas *ptxas;
    size_t n_ptxas, cap_ptxas, n_ptxas_refused;
    bool no_ptxas;
    char *ptxas_error;                    /* the first of those refused */
    unsigned n_kernels, n_images, n_uses; /* kernels, PTX texts, objects that use CUDA at all */
    bool oom;
};
/* Adds a use, or counts it again. Texts are copied but for @note and @group. */
void ws_cover_add(struct ws_cover *c, const struct ws_cover_item *item);
void ws_cover_deinit(struct ws_cover *c);
size_t ws_cover_count(const struct ws_cover *c, enum ws_cover_kind kind, enum ws_ledger_state s);
/* Orders the items: missing first, then by kind and name. */
void ws_cover_sort(struct ws_cover *c);
void ws_cover_print(const struct ws_cover *c, bool all, FILE *out);
struct json_object;
struct json_object *ws_cover_json(const struct ws_cover *c);

/* ---- coverage_rewrites.c: which rewritings kernels allow (ptx/passes/pass.h) ---- */
struct ws_ptx_module;
void ws_cover_rewrites(struct ws_cover *c, const struct ws_ptx_module *m);
void ws_cover_rewrites_print(const struct ws_cover *c, FILE *out);
/* [{"kernel": …, "slice": true or why not, …}, …] */
struct json_object *ws_cover_rewrites_json(const struct ws_cover *c);
void ws_cover_rewrites_deinit(struct ws_cover *c);

/* ---- coverage_ptxas.c: registers and spills of rewritten kernels, where there is a ptxas ---- */
void ws_cover_ptxas(struct ws_cover *c, const struct ws_ptx_module *m);
/* [{"kernel": …, "pass": "ticket", "registers": …, "change": …, "spill_bytes": …, "spill_change": …}, …] */
struct json_object *ws_cover_ptxas_json(const struct ws_cover *c);
void ws_cover_ptxas_deinit(struct ws_cover *c);
struct ws_cover_ptxas_sum { /* of all programs */
    struct ws_cover_ptxas *v;
    size_t n, cap, n_refused;
    bool none;
};
void ws_cover_ptxas_add(struct ws_cover_ptxas_sum *s, const struct ws_cover *c);
void ws_cover_ptxas_print(const struct ws_cover_ptxas_sum *s, FILE *out);
void ws_cover_ptxas_sum_deinit(struct ws_cover_ptxas_sum *s);

/* ---- coverage_libs.c ---- */
struct ws_cover_libs { /* libraries found so far, each once */
    char **paths;
    size_t n, cap;
};
/* Appends the libraries that @e (at @path) needs, as ld.so(8) looks for them; those that can't be found go to @missing as
 * "libx.so.1\n…" (malloc'ed; NULL if none). Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_cover_needed(struct ws_cover_libs *l, const char *path, const struct ws_elf *e,
                                  char **ret_missing);
void ws_cover_libs_deinit(struct ws_cover_libs *l);

/* ---- coverage_code.c ---- */
/* A program's device code, gathered before it is judged: parts of one program may be linked. */
struct ws_cover_code;
struct ws_cover_code *ws_cover_code_new(void);
struct ws_cover_code *ws_cover_code_free(struct ws_cover_code *k);
/* @image: PTX text, fatbin or cubin. Return: 0; 1: damaged, see @diags; -ENOMEM. */
WS_MUST_CHECK int ws_cover_image(struct ws_cover *c, struct ws_cover_code *k, const char *object,
                                 const void *image, size_t bytes, uint32_t sm,
                                 struct ws_diags *diags);
bool ws_cover_is_ptx(const char *text, size_t bytes);
/* After the last image: judges all of it. */
void ws_cover_code_end(struct ws_cover *c, struct ws_cover_code *k);

/* ---- coverage_elf.c ---- */
/* Adds what an ELF file asks for, its device code to @code. @sm: compute capability of the device meant (86). @diags: damage
 * in it. Return: 0; 1: damaged (see diags); -ENOMEM. */
WS_MUST_CHECK int ws_cover_elf(struct ws_cover *c, const char *object, const struct ws_elf *e,
                               struct ws_cover_code *code, uint32_t sm, struct ws_diags *diags);

#endif
