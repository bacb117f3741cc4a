// SPDX-License-Identifier: Apache-2.0
/* Writes doc/coverage.md from the ledger. Entry points come from
 * frontend/interpose/entrypoints.def. For opcodes, the software GPU's decoder is given each form
 * of instruction in the PTX files that the command line names (tests/ptx has one file with every
 * form that a census of programs found, and others with forms beyond it). Each form is tried in
 * a kernel of its own, so that none is dead code. `make doc-coverage` writes the page, and a
 * test compares it. */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/coverage/ledger.h"
#include "device/soft/exec/exec.h"
#include "ptx/ptx.h"

enum { LINE = 100 };

/* Prints text, with a new line in place of a space where a word would end beyond the 100th column.
 * What goes on an item of a list ("- ") is indented as that is. */
__attribute__((format(printf, 1, 2))) static void put(const char *format, ...)
{
    static size_t column;
    static bool item;
    char text[1024];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    for (const char *p = text; *p;) {
        size_t space = *p == ' ', n = strcspn(p + space, " \n") + space;
        if (!column)
            item = *p == '-';
        if (space && column + n > LINE) {
            column = (size_t)printf("\n%s%.*s", item ? "  " : "", (int)(n - 1), p + 1) - 1;
        } else {
            n += *p == '\n';
            printf("%.*s", (int)n, p);
            column = *p == '\n' ? 0 : column + n;
        }
        p += n;
    }
}

/* ---- entry points ---- */
static const char *const api_titles[_WS_LEDGER_API_N] = {"CUDA Runtime", "CUDA Driver",
                                                         "NVRTC and nvJitLink"};

static int by_chapter(const void *va, const void *vb)
{
    const struct ws_ledger_entry *a = va, *b = vb;
    if (a->api != b->api)
        return (int)a->api - (int)b->api;
    int r = strcmp(a->chapter, b->chapter);
    return r ? r : strcmp(a->name, b->name);
}

static bool same_chapter(const struct ws_ledger_entry *a, const struct ws_ledger_entry *b)
{
    return a->api == b->api && !strcmp(a->chapter, b->chapter);
}

static void list_names(const struct ws_ledger_entry *e, size_t n, enum ws_ledger_state s)
{
    bool first = true;
    for (size_t i = 0; i < n; i++) {
        if (e[i].state != s)
            continue;
        put("%s`%s`", first ? "" : ", ", e[i].name);
        first = false;
    }
}

static void chapter_row(const struct ws_ledger_entry *e, size_t n, size_t sums[_WS_LEDGER_N])
{
    size_t count[_WS_LEDGER_N] = {0};
    for (size_t i = 0; i < n; i++)
        count[e[i].state]++;
    printf("| %s | %zu | %zu | %zu |\n", e->chapter, count[WS_LEDGER_DONE],
           count[WS_LEDGER_APPROXIMATE], count[WS_LEDGER_MISSING]);
    for (int s = 0; s < _WS_LEDGER_N; s++)
        sums[s] += count[s];
}

/* Those approximate or missing, with what they answer. */
static void chapter_detail(const struct ws_ledger_entry *e, size_t n)
{
    const char *why = NULL;
    for (size_t i = 0; i < n; i++) {
        if (e[i].state == WS_LEDGER_APPROXIMATE)
            put("- approximate `%s`: %s\n", e[i].name, e[i].note);
        if (e[i].state == WS_LEDGER_MISSING)
            why = e[i].note;
    }
    if (why) {
        put("- missing in %s, %s: ", e->chapter, why);
        list_names(e, n, WS_LEDGER_MISSING);
        put("\n");
    }
}

static int print_entries(void)
{
    size_t n = ws_ledger_n_entries();
    struct ws_ledger_entry *e = ws_alloc_array(n, sizeof(*e));
    if (!e)
        return 1;
    for (size_t i = 0; i < n; i++)
        e[i] = ws_ledger_entry(i);
    qsort(e, n, sizeof(*e), by_chapter);
    for (size_t i = 0, end; i < n; i = end) {
        size_t sums[_WS_LEDGER_N] = {0};
        put("\n## Entry points: %s\nChapters are those of NVIDIA's headers.\n\n"
            "| chapter | done | approximate | missing |\n|---|---|---|---|\n",
            api_titles[e[i].api]);
        for (end = i; end < n && e[end].api == e[i].api;) {
            size_t from = end;
            while (end < n && same_chapter(&e[end], &e[from]))
                end++;
            chapter_row(&e[from], end - from, sums);
        }
        printf("| **all** | %zu | %zu | %zu |\n\n", sums[WS_LEDGER_DONE],
               sums[WS_LEDGER_APPROXIMATE], sums[WS_LEDGER_MISSING]);
        for (size_t from = i, to; from < end; from = to) {
            for (to = from; to < end && same_chapter(&e[to], &e[from]);)
                to++;
            chapter_detail(&e[from], to - from);
        }
    }
    free(e);
    return 0;
}

/* ---- opcodes ---- */
struct opcode_form {
    char *text; /* with modifiers: "mul.wide.s32" */
    enum ws_ptx_op op;
    enum ws_ledger_state state;
    char *why; /* missing: what the decoder says; approximate: static */
};
static struct opcode_form *forms;
static size_t n_forms, cap_forms;

static void form_text(const struct ws_ptx_module *m, const struct ws_ptx_func *f,
                      const struct ws_ptx_insn *i, char *buf, size_t size)
{
    char line[1024];
    ws_ptx_insn_text(m, f, i, line, sizeof(line));
    char *p = line + strspn(line, " \t");
    if (*p == '@') {
        p += strcspn(p, " \t");
        p += strspn(p, " \t");
    }
    p[strcspn(p, " \t;\n")] = 0;
    snprintf(buf, size, "%s", p);
}

static void note_lack(void *arg, const struct ws_ptx_func *entry, const struct ws_ptx_func *in,
                      const struct ws_ptx_insn *i, const char *text)
{
    char **why = arg;
    if (!*why)
        *why = ws_strdup(text);
}

/* Judges one instruction alone: the function is cut down to it. */
static int judge(struct ws_ptx_module *m, uint32_t func, uint32_t at)
{
    struct ws_ptx_func *f = &m->funcs[func], whole = *f;
    char text[256], *why = NULL;
    form_text(m, f, &f->insns[at], text, sizeof(text));
    for (size_t k = 0; k < n_forms; k++)
        if (!strcmp(forms[k].text, text))
            return 0;
    struct ws_ptx_insn alone = f->insns[at];
    f->insns = &alone;
    f->n_insns = 1;
    struct ws_ptx_label *labels = ws_alloc_array(f->n_labels + 1, sizeof(*labels));
    for (uint32_t k = 0; labels && k < f->n_labels; k++)
        labels[k] = (struct ws_ptx_label){f->labels[k].name, 1};
    f->labels = labels;
    int r = labels ? ws_code_audit(m, note_lack, &why) : -1;
    *f = whole;
    free(labels);
    if (r || ws_grow((void **)&forms, &cap_forms, n_forms + 1, sizeof(*forms))) {
        free(why);
        return 1;
    }
    enum ws_ledger_state state = WS_LEDGER_DONE;
    if (why)
        state = WS_LEDGER_MISSING;
    else if (ws_ledger_opcode_note(text))
        state = WS_LEDGER_APPROXIMATE;
    forms[n_forms++] = (struct opcode_form){ws_strdup(text), alone.op, state, why};
    return 0;
}

static int read_forms(const char *path)
{
    FILE *f = fopen(path, "rb");
    char *text = NULL;
    size_t cap = 0;
    struct ws_ptx_module *m = NULL;
    struct ws_diags d = WS_DIAGS_NULL;
    ssize_t n = f ? getdelim(&text, &cap, 0, f) : -1;
    int r = n < 0 || ws_ptx_parse(&m, text, (size_t)n, path, &d);
    for (uint32_t k = 0; !r && k < m->n_funcs; k++)
        for (uint32_t i = 0; !r && m->funcs[k].is_entry && i < m->funcs[k].n_insns; i++)
            r = judge(m, k, i);
    if (r)
        fprintf(stderr, "ledger_doc: %s: %s\n", path, d.n ? d.v[0].text : "cannot be read");
    ws_ptx_module_free(m);
    ws_diags_deinit(&d);
    free(text);
    if (f)
        fclose(f);
    return r;
}

/* A cell of a table: a bar would end it. */
static void put_cell(const char *text)
{
    for (; *text; text++)
        printf(*text == '|' ? "\\%c" : "%c", *text);
}

/* What an opcode with @all forms counts as; _WS_LEDGER_N: no form of it was tried. */
static size_t opcode_state(const size_t count[_WS_LEDGER_N], size_t all)
{
    if (!all)
        return _WS_LEDGER_N;
    if (count[WS_LEDGER_MISSING] == all)
        return WS_LEDGER_MISSING;
    return count[WS_LEDGER_APPROXIMATE] ? WS_LEDGER_APPROXIMATE : WS_LEDGER_DONE;
}

static void opcode_row(enum ws_ptx_op op, size_t rows[_WS_LEDGER_N + 1])
{
    size_t count[_WS_LEDGER_N] = {0};
    for (size_t k = 0; k < n_forms; k++)
        if (forms[k].op == op)
            count[forms[k].state]++;
    size_t all = count[0] + count[1] + count[2];
    printf("| `%s` | ", ws_ptx_ops[op].name);
    put_cell(ws_ptx_ops[op].meaning);
    printf(" | %zu | %zu | %zu |", count[WS_LEDGER_DONE], count[WS_LEDGER_APPROXIMATE],
           count[WS_LEDGER_MISSING]);
    bool first = true;
    for (size_t k = 0; k < n_forms; k++)
        if (forms[k].op == op && forms[k].state == WS_LEDGER_MISSING) {
            printf("%s`%s`", first ? " " : ", ", forms[k].text);
            first = false;
        }
    printf(all ? " |\n" : " no form tried |\n");
    rows[opcode_state(count, all)]++;
}

static void print_opcodes(void)
{
    size_t rows[_WS_LEDGER_N + 1] = {0}, count[_WS_LEDGER_N] = {0};
    put("\n## PTX opcodes\nEach form (opcode with modifiers and types) was given to the decoder "
        "of the software GPU. A missing one makes the kernels that hold it fail at launch, with "
        "the PTX line named at module load.\n\n| opcode | meaning | done | approximate | missing | "
        "missing forms |\n|---|---|---|---|---|---|\n");
    for (int op = 0; op < _WS_OP_N; op++)
        opcode_row(op, rows);
    for (size_t k = 0; k < n_forms; k++)
        count[forms[k].state]++;
    put("\nForms tried: %zu; done %zu, approximate %zu, missing %zu. Opcodes: %d; done %zu, with "
        "approximations %zu, missing %zu, not tried %zu.\n\nApproximate:\n\n",
        n_forms, count[0], count[1], count[2], (int)_WS_OP_N, rows[WS_LEDGER_DONE],
        rows[WS_LEDGER_APPROXIMATE], rows[WS_LEDGER_MISSING], rows[_WS_LEDGER_N]);
    for (size_t k = 0; k < n_forms; k++)
        if (forms[k].state == WS_LEDGER_APPROXIMATE)
            put("- `%s`: %s\n", forms[k].text, ws_ledger_opcode_note(forms[k].text));
    for (int sr = 0; sr < _WS_SR_N; sr++) {
        const char *name = ws_ptx_sreg_name(sr), *note = name ? ws_ledger_opcode_note(name) : NULL;
        if (note)
            put("- `%s`: %s\n", name, note);
    }
}

int main(int argc, char **argv)
{
    put("# Coverage: what wattshare does of CUDA\n\n"
        "Written by `make doc-coverage` from `frontend/interpose/entrypoints.def`, "
        "`cli/coverage/ledger.def` and the "
        "software GPU's decoder; don't edit. `wattshare coverage PROGRAM` says the same of one "
        "program. *Done*: as CUDA documents it. *Approximate*: differs as the row says. "
        "*Missing*: answers \"not supported\" (801), is counted and shown by `wattshare "
        "status`.\n");
    for (int i = 1; i < argc; i++)
        if (read_forms(argv[i]))
            return 1;
    if (print_entries())
        return 1;
    print_opcodes();
    for (size_t k = 0; k < n_forms; k++) {
        free(forms[k].text);
        free(forms[k].why);
    }
    free(forms);
    return 0;
}
