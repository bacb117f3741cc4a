// SPDX-License-Identifier: Apache-2.0
/* cli/coverage/coverage.h - finds what one program asks of CUDA, without running it, and
 * compares it with the ledger (ledger.h).
 *
 * elf.c reads a program's or library's entry points and images, libs.c finds the libraries that
 * it loads, code.c reads PTX, fatbins and cubins, and report.c collects what was found. The
 * files may come from anybody: nothing in them is trusted. Threads: none. */
#ifndef WS_CLI_COVERAGE_COVERAGE_H
#define WS_CLI_COVERAGE_COVERAGE_H

#include <stdint.h>
#include <stdio.h>
#include "base/diag.h"
#include "base/elf.h"
#include "cli/coverage/ledger.h"

/* ---- report.c: what was found ---- */
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
    /* Told how much of it is done; NULL: nobody is. */
    void (*progress)(const char *what, uint64_t total, uint64_t done);
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
/* Adds a use, or counts one more if it is known. All texts but note and group are copied. */
void ws_cover_add(struct ws_cover *c, const struct ws_cover_item *item);
/* Counts a use of what is known and has no place. Return: false: it is not known. */
bool ws_cover_again(struct ws_cover *c, enum ws_cover_kind kind, const char *name);
void ws_cover_deinit(struct ws_cover *c);
size_t ws_cover_count(const struct ws_cover *c, enum ws_cover_kind kind, enum ws_ledger_state s);
/* Orders the items: missing first, then by kind and name. */
void ws_cover_sort(struct ws_cover *c);
void ws_cover_print(const struct ws_cover *c, bool all, FILE *out);
struct json_object;
struct json_object *ws_cover_json(const struct ws_cover *c);

/* ---- rewrites.c: which rewritings kernels allow (ptx/passes/pass.h) ---- */
struct ws_ptx_module;
void ws_cover_rewrites(struct ws_cover *c, const struct ws_ptx_module *m);
void ws_cover_rewrites_print(const struct ws_cover *c, FILE *out);
/* [{"kernel": …, "slice": true or why not, …}, …] */
struct json_object *ws_cover_rewrites_json(const struct ws_cover *c);
void ws_cover_rewrites_deinit(struct ws_cover *c);

/* ---- ptxas.c: registers and spills of rewritten kernels, where there is a ptxas ---- */
void ws_cover_ptxas(struct ws_cover *c, const struct ws_ptx_module *m);
/* [{"kernel": …, "pass": "ticket", "registers": …, "change": …, "spill_bytes": …,
 * "spill_change": …}, …] */
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

/* ---- libs.c: the libraries that a program loads ---- */
struct ws_cover_libs { /* libraries found so far, each once */
    char **paths;
    size_t n, cap;
};
/* Appends the libraries that @e (at @path) needs, as ld.so(8) finds them. @ret_missing: those
 * that cannot be found, as "libx.so.1\n…" (malloc'ed; NULL: all were found). Return: 0 or
 * -ENOMEM. */
WS_MUST_CHECK int ws_cover_needed(struct ws_cover_libs *l, const char *path, const struct ws_elf *e,
                                  char **ret_missing);
void ws_cover_libs_deinit(struct ws_cover_libs *l);

/* ---- code.c: device code ---- */
/* A program's device code. All of it is collected before it is judged, since its parts may be
 * linked with each other. */
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

/* ---- elf.c: programs and libraries ---- */
/* Adds what an ELF file asks for, and its device code to @code. @sm: the compute capability of
 * the device, as 86. @diags: gets what is damaged in the file. Return: 0; 1: damaged (see
 * diags); -ENOMEM. */
WS_MUST_CHECK int ws_cover_elf(struct ws_cover *c, const char *object, const struct ws_elf *e,
                               struct ws_cover_code *code, uint32_t sm, struct ws_diags *diags);

#endif
