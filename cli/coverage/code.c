// SPDX-License-Identifier: Apache-2.0
/* Judges device code by the software GPU's decoder: every instruction of every kernel is decoded
 * as when a module is loaded, and what the decoder refuses is listed.
 *
 * Of a fatbin, the PTX counts that a device of the given compute capability would get, or the
 * machine code, where there is no PTX. A kernel that exists only as machine code cannot run. Which
 * ones these are is known only when the whole program has been read, because -rdc=true stores
 * linked machine code and PTX in different places. For the same reason the parts of one program are
 * judged together: a function that another part defines is not missing. */
#include "config.h"

#include "cli/coverage/coverage.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "device/soft/exec/exec.h"
#include "ptx/images/device_runtime.h"
#include "ptx/ptx.h"

enum { MAX_PTX_BYTES = 256 << 20, EM_CUDA_ = 190 };

struct code_part {
    struct ws_ptx_module *m;
    char *object;
};
struct machine_kernel { /* in a cubin, without PTX in the same program */
    char *name, *object;
    uint32_t sm;
};
struct ws_cover_code {
    struct code_part *parts;
    size_t n_parts, cap_parts;
    struct machine_kernel *machine;
    size_t n_machine, cap_machine;
    const char **defined; /* what the parts define, sorted; when all have been read */
    size_t n_defined, cap_defined;
};

struct ws_cover_code *ws_cover_code_new(void)
{
    return ws_alloc(sizeof(struct ws_cover_code));
}

struct ws_cover_code *ws_cover_code_free(struct ws_cover_code *k)
{
    for (size_t i = 0; k && i < k->n_parts; i++) {
        ws_ptx_module_free(k->parts[i].m);
        free(k->parts[i].object);
    }
    for (size_t i = 0; k && i < k->n_machine; i++) {
        free(k->machine[i].name);
        free(k->machine[i].object);
    }
    if (k) {
        free(k->parts);
        free(k->machine);
        free(k->defined);
    }
    free(k);
    return NULL;
}

/* ---- reading ---- */
/* The device runtime of dynamic parallelism comes along as PTX, and needs hardware: it is not the
 * program's, and a software GPU has functions of its own in its place. */
static bool is_device_runtime(const struct ws_ptx_module *m)
{
    for (uint32_t f = 0; f < m->n_funcs; f++)
        if (!m->funcs[f].is_decl && ws_ptx_device_runtime(m->funcs[f].name))
            return true;
    return false;
}

static int read_ptx(struct ws_cover *c, struct ws_cover_code *k, const char *object,
                    const char *text, size_t bytes)
{
    struct ws_diags d = WS_DIAGS_NULL;
    struct ws_ptx_module *m = NULL;
    int r = ws_ptx_parse(&m, text, bytes, NULL, &d);
    c->n_images++;
    for (size_t i = 0; r > 0 && i < d.n; i++) {
        char place[512];
        snprintf(place, sizeof(place), "line %u: %s", d.v[i].line, d.v[i].text ? d.v[i].text : "");
        ws_cover_add(c, &(struct ws_cover_item){.kind = WS_COVER_OPCODE,
                                                .state = WS_LEDGER_MISSING,
                                                .name = "PTX that is not understood",
                                                .object = (char *)object,
                                                .place = place});
    }
    ws_diags_deinit(&d);
    if (r)
        return WS_MIN(r, 0);
    if (is_device_runtime(m)) {
        c->n_images--;
        ws_ptx_module_free(m);
        return 0;
    }
    char *name = ws_strdup(object);
    if (!name || ws_grow((void **)&k->parts, &k->cap_parts, k->n_parts + 1, sizeof(*k->parts))) {
        free(name);
        ws_ptx_module_free(m);
        return ws_raise(-ENOMEM);
    }
    k->parts[k->n_parts++] = (struct code_part){m, name};
    return 0;
}

static int note_machine_kernel(struct ws_cover_code *k, const char *object, const char *name,
                               uint32_t sm)
{
    char *n = ws_strdup(name), *o = ws_strdup(object);
    if (!n || !o ||
        ws_grow((void **)&k->machine, &k->cap_machine, k->n_machine + 1, sizeof(*k->machine))) {
        free(n);
        free(o);
        return ws_raise(-ENOMEM);
    }
    k->machine[k->n_machine++] = (struct machine_kernel){n, o, sm};
    return 0;
}

/* Kernels of a cubin: those that have a bank of parameters, .nv.constant0.NAME, which functions
 * that kernels call do not have. @data is aligned. Return: 0, 1: damaged, or -ENOMEM. */
static int read_cubin(struct ws_cover_code *k, const char *object, const void *data, size_t bytes,
                      struct ws_diags *diags)
{
    static const char bank[] = ".nv.constant0.";
    const size_t prefix = sizeof(bank) - 1;
    struct ws_elf e;
    if (ws_elf_init_machine(&e, data, bytes, EM_CUDA_)) {
        ws_diags_add(diags, object, 0, 0, "a cubin in it is damaged");
        return 1;
    }
    for (uint32_t i = 0; i < e.n_sections; i++) {
        const char *name = ws_elf_section_name(&e, &e.sections[i]);
        if (!name || strncmp(name, bank, prefix) || !name[prefix])
            continue;
        int r = note_machine_kernel(k, object, name + prefix,
                                    (((const Elf64_Ehdr *)data)->e_flags >> 8) & 0xff);
        if (r)
            return r;
    }
    return 0;
}

struct walk {
    struct ws_cover_code *k;
    const char *object;
    struct ws_diags *diags;
    unsigned n_ptx;
    bool lto;
    uint32_t sm,
        chosen; /* the compute capability asked for, and of the machine code that it gets */
    bool has_machine;
};

/* The highest one that is not above what is asked for, or else the lowest. */
static bool fits_better(const struct walk *w, uint32_t sm)
{
    if ((sm <= w->sm) != (w->chosen <= w->sm))
        return sm <= w->sm;
    return sm <= w->sm ? sm > w->chosen : sm < w->chosen;
}

static int look(const struct ws_fatbin_entry *e, void *arg)
{
    struct walk *w = arg;
    w->n_ptx += e->kind == WS_FATBIN_PTX;
    w->lto |= e->kind == WS_FATBIN_LTO;
    if (e->kind == WS_FATBIN_ELF && (!w->has_machine || fits_better(w, e->sm))) {
        w->has_machine = true;
        w->chosen = e->sm;
    }
    return 0;
}

static int each_cubin(const struct ws_fatbin_entry *e, void *arg)
{
    struct walk *w = arg;
    char *data = NULL;
    size_t bytes = 0;
    if (e->kind != WS_FATBIN_ELF || e->sm != w->chosen)
        return 0;
    int r = ws_fatbin_extract(e, MAX_PTX_BYTES, &data, &bytes, w->diags);
    if (!r)
        r = read_cubin(w->k, w->object, data, bytes, w->diags);
    free(data);
    return r;
}

static int read_fatbin(struct ws_cover *c, struct ws_cover_code *k, const char *object,
                       const void *image, size_t bytes, uint32_t sm, struct ws_diags *diags)
{
    struct walk w = {.k = k, .object = object, .diags = diags, .sm = sm};
    char *text = NULL;
    size_t len = 0;
    int r = ws_fatbin_walk(image, bytes, look, &w, diags);
    if (r)
        return r < 0 ? ws_forward(r) : 1;
    if (!w.n_ptx && w.lto)
        ws_cover_add(c, &(struct ws_cover_item){.kind = WS_COVER_IMAGE,
                                                .state = WS_LEDGER_MISSING,
                                                .name = "code for link-time optimisation only",
                                                .object = (char *)object,
                                                .note = "build it with PTX"});
    if (!w.n_ptx) {
        r = ws_fatbin_walk(image, bytes, each_cubin, &w, diags);
        return r < 0 ? ws_forward(r) : r != 0;
    }
    r = ws_fatbin_ptx(image, bytes, sm, MAX_PTX_BYTES, &text, &len, diags);
    if (!r)
        r = read_ptx(c, k, object, text, len);
    free(text);
    return r < 0 ? ws_forward(r) : r != 0;
}

int ws_cover_image(struct ws_cover *c, struct ws_cover_code *k, const char *object,
                   const void *image, size_t bytes, uint32_t sm, struct ws_diags *diags)
{
    char *copy;
    int r;
    switch (ws_image_kind(image, bytes)) {
    case WS_IMAGE_PTX:
        return read_ptx(c, k, object, image, bytes);
    case WS_IMAGE_FATBIN:
        return read_fatbin(c, k, object, image, bytes, sm, diags);
    case WS_IMAGE_CUBIN:
        copy = ws_alloc(bytes);
        if (!copy)
            return ws_raise(-ENOMEM);
        memcpy(copy, image, bytes);
        r = read_cubin(k, object, copy, bytes, diags);
        free(copy);
        return r;
    default:
        ws_diags_add(diags, object, 0, 0, "neither PTX, nor a fatbin, nor a cubin");
        return 1;
    }
}

bool ws_cover_is_ptx(const char *text, size_t bytes)
{
    struct ws_ptx_module *m = NULL;
    if (ws_image_kind(text, bytes) != WS_IMAGE_PTX)
        return false;
    int r = ws_ptx_parse(&m, text, bytes, NULL, NULL);
    ws_ptx_module_free(m);
    return r == 0 || r == WS_PTX_E_UNSUPPORTED;
}

/* ---- judging ---- */
struct judge {
    struct ws_cover *c;
    const struct ws_cover_code *k;
    const struct code_part *part;
    const struct ws_ptx_insn **lacking; /* sorted by address when complete */
    size_t n_lacking, cap_lacking;
    FILE *out; /* writes into text */
    char text[256];
};

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int note_defined(struct ws_cover_code *k, const char *name)
{
    if (ws_grow((void **)&k->defined, &k->cap_defined, k->n_defined + 1, sizeof(*k->defined)))
        return -ENOMEM;
    k->defined[k->n_defined++] = name;
    return 0;
}

static int find_defined(struct ws_cover_code *k)
{
    for (size_t i = 0; i < k->n_parts; i++) {
        const struct ws_ptx_module *m = k->parts[i].m;
        for (uint32_t f = 0; f < m->n_funcs; f++)
            if (!m->funcs[f].is_decl && note_defined(k, m->funcs[f].name))
                return -ENOMEM;
        for (uint32_t v = 0; v < m->n_vars; v++)
            if (m->vars[v].link != WS_LINK_EXTERN && note_defined(k, m->vars[v].name))
                return -ENOMEM;
    }
    if (k->n_defined)
        qsort(k->defined, k->n_defined, sizeof(*k->defined), by_name);
    return 0;
}

static bool is_defined(const struct ws_cover_code *k, const char *name)
{
    return k->n_defined && bsearch(&name, k->defined, k->n_defined, sizeof(*k->defined), by_name);
}

/* Whether the decoder's complaint is of something that linking finds in another part, or adds. */
static bool is_linked(const struct ws_cover_code *k, const char *text)
{
    static const char *const prefixes[] = {"unresolved external function ",
                                           "unresolved external variable "};
    for (size_t i = 0; i < WS_ARRAY_SIZE(prefixes); i++) {
        size_t n = strlen(prefixes[i]);
        if (!strncmp(text, prefixes[i], n) &&
            (is_defined(k, text + n) || ws_device_runtime_has(text + n)))
            return true;
    }
    return false;
}

/* "mul.wide.s32", until the next call. */
static const char *opcode_text(struct judge *j, const struct ws_ptx_insn *i)
{
    rewind(j->out);
    ws_ptx_insn_print_op(i, j->out);
    fputc('\0', j->out);
    fflush(j->out);
    return j->text;
}

static void lack(void *arg, const struct ws_ptx_func *entry, const struct ws_ptx_func *in,
                 const struct ws_ptx_insn *i, const char *text)
{
    struct judge *j = arg;
    char place[1024];
    const char *name = i ? opcode_text(j, i) : text;
    if (is_linked(j->k, text))
        return;
    int n = snprintf(place, sizeof(place), "kernel %.400s", entry->name);
    if (in != entry)
        n += snprintf(place + n, sizeof(place) - (size_t)n, ", function %.400s", in->name);
    if (i)
        snprintf(place + n, sizeof(place) - (size_t)n, ", line %u: %.160s", i->line, text);
    ws_cover_add(j->c, &(struct ws_cover_item){.kind = WS_COVER_OPCODE,
                                               .state = WS_LEDGER_MISSING,
                                               .name = (char *)name,
                                               .object = j->part->object,
                                               .place = place});
    if (ws_grow((void **)&j->lacking, &j->cap_lacking, j->n_lacking + 1, sizeof(*j->lacking))) {
        j->c->oom = true;
        return;
    }
    j->lacking[j->n_lacking++] = i;
}

static int by_address(const void *a, const void *b)
{
    const struct ws_ptx_insn *x = *(const struct ws_ptx_insn *const *)a,
                             *y = *(const struct ws_ptx_insn *const *)b;
    return (x > y) - (x < y);
}

static void add_opcode(struct judge *j, const char *name)
{
    if (ws_cover_again(j->c, WS_COVER_OPCODE, name))
        return;
    const char *note = ws_ledger_opcode_note(name);
    ws_cover_add(j->c,
                 &(struct ws_cover_item){.kind = WS_COVER_OPCODE,
                                         .state = note ? WS_LEDGER_APPROXIMATE : WS_LEDGER_DONE,
                                         .name = (char *)name,
                                         .object = j->part->object,
                                         .note = note});
}

static void add_specials(struct judge *j, const struct ws_ptx_operand *o)
{
    for (unsigned k = 0; k < o->n; k++)
        add_specials(j, &o->v[k]);
    if (o->kind == WS_OPD_SREG && ws_ledger_opcode_note(ws_ptx_sreg_name(o->sreg)))
        add_opcode(j, ws_ptx_sreg_name(o->sreg));
}

static void judge_function(struct judge *j, const struct ws_ptx_func *f)
{
    for (uint32_t n = 0; n < f->n_insns; n++) {
        const struct ws_ptx_insn *i = &f->insns[n];
        if (j->n_lacking &&
            bsearch(&i, j->lacking, j->n_lacking, sizeof(const struct ws_ptx_insn *), by_address))
            continue;
        add_opcode(j, opcode_text(j, i));
        for (unsigned k = 0; k < i->n_operands; k++)
            add_specials(j, &i->operands[k]);
    }
}

static void judge_part(struct ws_cover *c, const struct ws_cover_code *k, const struct code_part *p)
{
    struct judge j = {.c = c, .k = k, .part = p};
    j.out = fmemopen(j.text, sizeof(j.text), "w");
    if (!j.out) {
        c->oom = true;
        return;
    }
    if (ws_code_audit(p->m, lack, &j) < 0)
        c->oom = true;
    if (j.n_lacking)
        qsort(j.lacking, j.n_lacking, sizeof(*j.lacking), by_address);
    for (uint32_t f = 0; f < p->m->n_funcs; f++) {
        c->n_kernels += p->m->funcs[f].is_entry && !p->m->funcs[f].is_decl;
        judge_function(&j, &p->m->funcs[f]);
    }
    if (c->want_rewrites)
        ws_cover_rewrites(c, p->m);
    if (c->want_ptxas && !c->no_ptxas)
        ws_cover_ptxas(c, p->m);
    free(j.lacking);
    fclose(j.out);
}

/* The device runtime's own functions come linked into the machine code of programs that use it. */
static bool of_device_runtime(const char *name)
{
    return strstr(name, "_cuda_device_runtime_cu_") || strstr(name, "cnprtCnpv2");
}

void ws_cover_code_end(struct ws_cover *c, struct ws_cover_code *k)
{
    if (find_defined(k)) {
        c->oom = true;
        return;
    }
    for (size_t i = 0; i < k->n_parts; i++) {
        if (c->progress)
            c->progress("judging kernels", k->n_parts, i);
        judge_part(c, k, &k->parts[i]);
    }
    for (size_t i = 0; i < k->n_machine; i++) {
        const struct machine_kernel *m = &k->machine[i];
        char place[600];
        if (is_defined(k, m->name) || of_device_runtime(m->name))
            continue;
        snprintf(place, sizeof(place), "kernel %.400s, for sm_%" PRIu32, m->name, m->sm);
        ws_cover_add(c, &(struct ws_cover_item){.kind = WS_COVER_IMAGE,
                                                .state = WS_LEDGER_MISSING,
                                                .name = "machine code without PTX",
                                                .object = m->object,
                                                .place = place,
                                                .note = "build it with PTX (-arch=compute_75)"});
    }
}
