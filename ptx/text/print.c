// SPDX-License-Identifier: Apache-2.0
/* ptx/text/print.c - the IR as PTX text that parses to the same IR.
 *
 * Everything a reference needs must stand above it, and the numbering of functions follows their
 * first mention; hence: heads of all functions in order (when there is anything but kernels), then
 * variables, then bodies. In a body all declarations come first, in the order of their numbers.
 * Numbers of registers follow their first use in the text, which is the same again. */
#include "ptx/ptx.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "ptx/ptx_private.h"

static const char *const link_words[] = {"", ".visible ", ".extern ", ".weak ", ".common "};
static const char *const space_words[_WS_SP_N] = {"",       ".reg",    ".const", ".global",
                                                  ".local", ".shared", ".param"};

struct printer {
    const struct ws_ptx_module *m;
    const struct ws_ptx_func *f;
    FILE *out;
};

static void print_imm(FILE *out, const struct ws_ptx_operand *o)
{
    if (o->imm_kind == WS_IMM_F32)
        fprintf(out, "0f%08" PRIX32, (uint32_t)o->imm);
    else if (o->imm_kind == WS_IMM_F64)
        fprintf(out, "0d%016" PRIX64, (uint64_t)o->imm);
    else if (o->imm == INT64_MIN) /* its absolute value is no signed number */
        fputs("0x8000000000000000", out);
    else
        fprintf(out, "%" PRId64, o->imm);
}

static const char *sym_name(const struct printer *p, int32_t sym)
{
    uint32_t k = WS_PTX_SYM_INDEX(sym);
    const struct ws_ptx_var *v;
    switch (WS_PTX_SYM_KIND(sym)) {
    case WS_PTX_SYM_VAR:
        return k < p->m->n_vars ? p->m->vars[k].name : "?";
    case WS_PTX_SYM_FUNC:
        return k < p->m->n_funcs ? p->m->funcs[k].name : "?";
    default:
        v = p->f ? ws_ptx_localvar(p->f, k) : NULL;
        return v ? v->name : "?";
    }
}

static void print_offset(FILE *out, int64_t v)
{
    if (v)
        fprintf(out, "+%" PRId64, v);
}

static void print_sreg(FILE *out, const struct ws_ptx_operand *o)
{
    static const char *const dims[] = {".x", ".y", ".z", ""};
    static const char *const offsets[] = {"_0", "_1", "_begin", "_end", "_cap"};
    fputs(ws_ptx_sreg_name(o->sreg), out);
    switch (o->sreg) {
    case WS_SR_TID:
    case WS_SR_NTID:
    case WS_SR_CTAID:
    case WS_SR_NCTAID:
    case WS_SR_CLUSTERID:
    case WS_SR_NCLUSTERID:
    case WS_SR_CLUSTER_CTAID:
    case WS_SR_CLUSTER_NCTAID:
        fputs(dims[o->sreg_dim & 3], out);
        break;
    case WS_SR_ENVREG:
        fprintf(out, "%u", o->sreg_dim);
        break;
    case WS_SR_PM:
        fprintf(out, "%d%s", o->sreg_dim & 7, o->sreg_dim & 8 ? "_64" : "");
        break;
    case WS_SR_RESERVED_SMEM_OFFSET:
        fputs(o->sreg_dim < WS_ARRAY_SIZE(offsets) ? offsets[o->sreg_dim] : "?", out);
        break;
    }
}

static const char *reg_name(const struct printer *p, int32_t reg)
{
    return p->f && reg >= 0 && (uint32_t)reg < p->f->n_regs ? p->f->regs[reg].name : "?";
}

static void print_operand(const struct printer *p, const struct ws_ptx_operand *o);

static void print_list(const struct printer *p, const struct ws_ptx_operand *v, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        if (k)
            fputs(", ", p->out);
        print_operand(p, &v[k]);
    }
}

static void print_address(const struct printer *p, const struct ws_ptx_operand *o)
{
    fputc('[', p->out);
    if (o->reg >= 0)
        fprintf(p->out, "%s%s", reg_name(p, o->reg), o->part ? o->part : "");
    else if (o->sym >= 0)
        fputs(sym_name(p, o->sym), p->out);
    if (o->reg >= 0 || o->sym >= 0)
        print_offset(p->out, o->imm);
    else
        print_imm(p->out, o);
    if (o->n) {
        fputs(", ", p->out);
        print_list(p, o->v, o->n);
    }
    fputc(']', p->out);
}

static void print_operand(const struct printer *p, const struct ws_ptx_operand *o)
{
    switch (o->kind) {
    case WS_OPD_REG:
        fprintf(p->out, "%s%s%s",
                !o->neg                                ? ""
                : p->f->regs[o->reg].type == WS_T_PRED ? "!"
                                                       : "-",
                reg_name(p, o->reg), o->part ? o->part : "");
        break;
    case WS_OPD_IMM:
        print_imm(p->out, o);
        break;
    case WS_OPD_SREG:
        print_sreg(p->out, o);
        break;
    case WS_OPD_SYM:
        fputs(sym_name(p, o->sym), p->out);
        print_offset(p->out, o->imm);
        break;
    case WS_OPD_ADDR:
        print_address(p, o);
        break;
    case WS_OPD_LABEL:
        fputs(o->label >= 0 && (uint32_t)o->label < p->f->n_labels ? p->f->labels[o->label].name
                                                                   : "?",
              p->out);
        break;
    case WS_OPD_VEC:
        fputc('{', p->out);
        print_list(p, o->v, o->n);
        fputc('}', p->out);
        break;
    case WS_OPD_PAIR:
        print_operand(p, &o->v[0]);
        fputc('|', p->out);
        print_operand(p, &o->v[1]);
        break;
    case WS_OPD_SINK:
        fputc('_', p->out);
        break;
    }
}

static void print_call(const struct printer *p, const struct ws_ptx_call *c)
{
    if (c->n_rets) {
        fputs(" (", p->out);
        print_list(p, c->rets, c->n_rets);
        fputs("),", p->out);
    }
    fputc(' ', p->out);
    print_operand(p, &c->callee);
    if (c->n_args || c->proto >= 0) {
        fputs(", (", p->out);
        print_list(p, c->args, c->n_args);
        fputc(')', p->out);
    }
    if (c->proto >= 0 && (uint32_t)c->proto < p->f->n_protos)
        fprintf(p->out, ", %s", p->f->protos[c->proto].name);
}

void ws_ptx_insn_print_op(const struct ws_ptx_insn *i, FILE *out)
{
    fputs(ws_ptx_op_name(i->op), out);
    if (i->op < _WS_OP_N)
        ws_mods_print(i, out);
}

/* Without the line's end. @brx: name of the list that stands for the labels of brx.idx, or NULL to
 * print them. */
static void print_insn(const struct printer *p, const struct ws_ptx_insn *i, const char *brx)
{
    if (i->guard >= 0)
        fprintf(p->out, "@%s%s ", i->guard_neg ? "!" : "", reg_name(p, i->guard));
    ws_ptx_insn_print_op(i, p->out);
    if (i->call)
        print_call(p, i->call);
    for (unsigned k = 0; k < i->n_operands; k++) {
        fputs(k ? ", " : " ", p->out);
        if (brx && i->op == WS_OP_BRX_IDX && k == 1)
            fputs(brx, p->out);
        else
            print_operand(p, &i->operands[k]);
    }
    fputc(';', p->out);
}

static void print_var_head(FILE *out, const struct ws_ptx_var *v)
{
    unsigned natural = ws_ptx_type_bytes(v->type) * WS_MAX(v->vec, 1);
    fputs(space_words[v->space], out);
    if (v->managed)
        fputs(" .attribute(.managed)", out);
    if (v->align != natural)
        fprintf(out, " .align %u", v->align);
    if (v->vec > 1)
        fprintf(out, " .v%u", v->vec);
    fprintf(out, " .%s", ws_ptx_type_name(v->type));
    if (v->ptr_attr) {
        fprintf(out, " .ptr%s%s", v->ptr_space ? " " : "", space_words[v->ptr_space]);
        if (v->ptr_align)
            fprintf(out, " .align %u", v->ptr_align);
    }
    fprintf(out, " %s", v->name);
    for (uint32_t k = 0; k < v->n_dims; k++)
        if (v->dims[k])
            fprintf(out, "[%" PRIu64 "]", v->dims[k]);
        else
            fputs("[]", out);
}

static void print_init_sym(const struct printer *p, const struct ws_ptx_init_sym *s)
{
    if (s->masked)
        fprintf(p->out, "0x%" PRIX64 "(", UINT64_C(0xff) << s->shift);
    fprintf(p->out, s->generic ? "generic(%s)" : "%s", sym_name(p, s->sym));
    print_offset(p->out, s->addend);
    if (s->masked)
        fputc(')', p->out);
}

static void print_elem(FILE *out, const struct ws_ptx_var *v, uint64_t at, unsigned bytes)
{
    uint64_t u = 0;
    if (at < v->init_bytes)
        memcpy(&u, v->init + at, WS_MIN((uint64_t)WS_MIN(bytes, 8u), v->init_bytes - at));
    switch (v->type) {
    case WS_T_F32:
        fprintf(out, "0f%08" PRIX64, u);
        break;
    case WS_T_F64:
        fprintf(out, "0d%016" PRIX64, u);
        break;
    case WS_T_S64:
    case WS_T_B64:
    case WS_T_U64:
        fprintf(out, "0x%" PRIX64, u);
        break;
    default:
        fprintf(out, "%" PRIu64, u);
    }
}

/* Braces for each dimension and vector, as assemblers want them; each list stops at its last part
 * that is not zero. */
static void print_init(const struct printer *p, const struct ws_ptx_var *v)
{
    unsigned bytes = ws_ptx_type_bytes(v->type), n_inner = 0;
    uint64_t end = v->init_bytes, inner[20],
             span = 1; /* inner[]: elements in one pair of braces, outermost left out */
    uint32_t s = 0;
    if (!bytes || (!end && !v->n_init_syms))
        return;
    if (v->n_init_syms)
        end = WS_MAX(end, v->init_syms[v->n_init_syms - 1].offset + 1);
    if (v->vec > 1)
        inner[n_inner++] = span = v->vec;
    for (uint32_t k = v->n_dims; k-- > 1;)
        inner[n_inner++] = span *= v->dims[k];
    bool list = v->is_array || v->vec > 1;
    n_inner -= !v->is_array && v->vec > 1;
    end = (end + bytes - 1) / bytes;
    fputs(list ? " = {" : " = ", p->out);
    for (uint64_t e = 0; e < end; e++) {
        if (e)
            fputs(e % 32 ? ", " : ",\n\t", p->out);
        for (unsigned k = 0; k < n_inner; k++)
            fputs(e % inner[k] ? "" : "{", p->out);
        if (s < v->n_init_syms && v->init_syms[s].offset == e * bytes)
            print_init_sym(p, &v->init_syms[s++]);
        else
            print_elem(p->out, v, e * bytes, bytes);
        for (unsigned k = 0; k < n_inner; k++)
            fputs((e + 1) % inner[k] && e + 1 < end ? "" : "}", p->out);
    }
    if (list)
        fputc('}', p->out);
}

static void print_params(FILE *out, const struct ws_ptx_var *v, uint32_t n)
{
    fputc('(', out);
    for (uint32_t k = 0; k < n; k++) {
        fputs(k ? ",\n\t" : "", out);
        print_var_head(out, &v[k]);
    }
    fputc(')', out);
}

static void print_dims(FILE *out, const char *word, const uint32_t v[3])
{
    if (v[0] || v[1] || v[2])
        fprintf(out, "\n.%s %u, %u, %u", word, v[0], v[1], v[2]);
}

static void print_number(FILE *out, const char *word, uint32_t v)
{
    if (v)
        fprintf(out, "\n.%s %u", word, v);
}

static void print_head(const struct printer *p, const struct ws_ptx_func *f, bool full)
{
    fprintf(p->out, "%s%s ", link_words[f->link], f->is_entry ? ".entry" : ".func");
    if (f->n_rets) {
        print_params(p->out, f->rets, f->n_rets);
        fputc(' ', p->out);
    }
    fputs(f->name, p->out);
    print_params(p->out, f->params, f->n_params);
    if (f->noreturn)
        fputs(" .noreturn", p->out);
    if (!full)
        return;
    print_dims(p->out, "maxntid", f->maxntid);
    print_dims(p->out, "reqntid", f->reqntid);
    print_number(p->out, "minnctapersm", f->minnctapersm);
    print_number(p->out, "maxnctapersm", f->maxnctapersm);
    print_number(p->out, "maxnreg", f->maxnreg);
    print_dims(p->out, "reqnctapercluster", f->reqnctapercluster);
    print_number(p->out, "maxclusterrank", f->maxclusterrank);
    if (f->explicitcluster)
        fputs("\n.explicitcluster", p->out);
    if (f->blocksareclusters)
        fputs("\n.blocksareclusters", p->out);
}

/* Those of parameters are declared by them: the first ones, and what a pass has added. */
static bool is_param_reg(const struct ws_ptx_func *f, uint32_t reg)
{
    for (uint32_t k = 0; k < f->n_params + f->n_rets; k++) {
        const struct ws_ptx_var *v = k < f->n_params ? &f->params[k] : &f->rets[k - f->n_params];
        if (v->reg == (int32_t)reg)
            return true;
    }
    return false;
}

/* Names of one type share a declaration. */
static void print_regs(const struct printer *p)
{
    const struct ws_ptx_func *f = p->f;
    const struct ws_ptx_reg *last = NULL;
    unsigned in_line = 0;
    for (uint32_t k = 0; k < f->n_regs; k++) {
        const struct ws_ptx_reg *r = &f->regs[k];
        if (is_param_reg(f, k))
            continue;
        if (last && last->type == r->type && last->vec == r->vec && in_line < 16) {
            fprintf(p->out, ", %s", r->name);
            in_line++;
            continue;
        }
        fputs(last ? ";\n" : "", p->out);
        fputs("\t.reg ", p->out);
        if (r->vec > 1)
            fprintf(p->out, ".v%u ", r->vec);
        fprintf(p->out, ".%s %s", ws_ptx_type_name(r->type), r->name);
        last = r;
        in_line = 1;
    }
    fputs(last ? ";\n" : "", p->out);
}

static void print_protos(const struct printer *p)
{
    for (uint32_t k = 0; k < p->f->n_protos; k++) {
        const struct ws_ptx_proto *r = &p->f->protos[k];
        if (r->n_targets) {
            fprintf(p->out, "%s: .calltargets ", r->name);
            for (uint32_t j = 0; j < r->n_targets; j++)
                fprintf(p->out, "%s%s", j ? ", " : "",
                        sym_name(p, r->targets[j] | WS_PTX_SYM_FUNC));
        } else {
            fprintf(p->out, "%s: .callprototype ", r->name);
            if (r->n_rets)
                print_params(p->out, r->rets, r->n_rets);
            fputs(" _ ", p->out);
            print_params(p->out, r->params, r->n_params);
            if (r->noreturn)
                fputs(" .noreturn", p->out);
        }
        fputs(";\n", p->out);
    }
}

static void print_body(const struct printer *p)
{
    const struct ws_ptx_func *f = p->f;
    uint32_t label = 0;
    char brx[40];
    fputs("\n{\n", p->out);
    print_regs(p);
    for (uint32_t k = 0; k < f->n_vars; k++) {
        fprintf(p->out, "\t%s", link_words[f->vars[k].link]);
        print_var_head(p->out, &f->vars[k]);
        fputs(";\n", p->out);
    }
    print_protos(p);
    for (uint32_t k = 0; k <= f->n_insns; k++) {
        for (; label < f->n_labels && f->labels[label].insn == k; label++)
            fprintf(p->out, "%s:\n", f->labels[label].name);
        if (k == f->n_insns)
            break;
        const struct ws_ptx_insn *i = &f->insns[k];
        if (i->pragma)
            fprintf(p->out, "\t.pragma %s;\n", i->pragma);
        if (i->op == WS_OP_BRX_IDX && i->n_operands == 2) {
            snprintf(brx, sizeof(brx), "$ws_brx_%u", k);
            fprintf(p->out, "%s: .branchtargets ", brx);
            print_list(p, i->operands[1].v, i->operands[1].n);
            fputs(";\n", p->out);
        }
        fputc('\t', p->out);
        print_insn(p, i, brx);
        fputc('\n', p->out);
    }
    fputs("}\n", p->out);
}

/* Kernels alone need no heads in front, unless something takes the address of one. */
static bool needs_heads(const struct ws_ptx_module *m)
{
    for (uint32_t k = 0; k < m->n_funcs; k++)
        if (!m->funcs[k].is_entry || m->funcs[k].is_decl)
            return true;
    for (uint32_t k = 0; k < m->n_vars; k++)
        for (uint32_t j = 0; j < m->vars[k].n_init_syms; j++)
            if (WS_PTX_SYM_KIND(m->vars[k].init_syms[j].sym) == WS_PTX_SYM_FUNC)
                return true;
    return false;
}

int ws_ptx_print(const struct ws_ptx_module *m, FILE *out)
{
    struct printer p = {.m = m, .out = out};
    /* Not "debug": assemblers then ask for the debug information that the IR does not keep. */
    fprintf(out, ".version %d.%d\n.target %s%s%s\n", m->version / 10, m->version % 10, m->target,
            m->texmode_independent ? ", texmode_independent" : "",
            m->map_f64_to_f32 ? ", map_f64_to_f32" : "");
    if (m->version >= 23 ||
        m->address_size != 32) /* older versions have no .address_size, only 32 */
        fprintf(out, ".address_size %u\n", m->address_size);
    if (needs_heads(m))
        for (uint32_t k = 0; k < m->n_funcs; k++) {
            print_head(&p, &m->funcs[k], false);
            fputs(";\n", out);
        }
    for (uint32_t k = 0; k < m->n_vars; k++) {
        fputs(link_words[m->vars[k].link], out);
        print_var_head(out, &m->vars[k]);
        print_init(&p, &m->vars[k]);
        fputs(";\n", out);
    }
    for (uint32_t k = 0; k < m->n_funcs; k++) {
        p.f = &m->funcs[k];
        if (p.f->is_decl)
            continue;
        print_head(&p, p.f, true);
        print_body(&p);
    }
    for (uint32_t k = 0; k < m->n_aliases; k++)
        fprintf(out, ".alias %s, %s;\n", m->funcs[m->aliases[k].alias].name,
                m->funcs[m->aliases[k].aliasee].name);
    return ferror(out) ? ws_raise(-EIO) : 0;
}

char *ws_ptx_print_text(const struct ws_ptx_module *m, size_t *ret_len)
{
    char *text = NULL;
    FILE *f = open_memstream(&text, ret_len);
    int r = f ? ws_ptx_print(m, f) : -ENOMEM;
    if (f && fclose(f))
        r = -ENOMEM;
    if (!r)
        return text;
    free(text);
    return NULL;
}

void ws_ptx_insn_write(const struct ws_ptx_module *m, const struct ws_ptx_func *f,
                       const struct ws_ptx_insn *i, FILE *out)
{
    struct printer p = {.m = m, .f = f, .out = out};
    print_insn(&p, i, NULL);
}

void ws_ptx_insn_text(const struct ws_ptx_module *m, const struct ws_ptx_func *f,
                      const struct ws_ptx_insn *i, char *buf, size_t size)
{
    struct printer p = {.m = m, .f = f};
    if (!size)
        return;
    buf[0] = '\0';
    p.out = fmemopen(buf, size, "w");
    if (!p.out)
        return;
    print_insn(&p, i, NULL);
    fclose(p.out);
    buf[size - 1] = '\0';
}

void ws_ptx_insn_place(const struct ws_ptx_insn *i, char *buf, size_t size)
{
    const char *name = i->src_file ? i->src_file->name : NULL;
    int n = 0;
    if (!name || !i->src_line) {
        snprintf(buf, size, "PTX line %" PRIu32, i->line);
        return;
    }
    /* Of a name that is too long, folders are left out from the front. */
    for (;;) {
        const char *slash = strchr(name + 1, '/');
        n = snprintf(buf, size, "%s:%" PRIu32 " (PTX line %" PRIu32 ")", name, i->src_line,
                     i->line);
        if ((size_t)n < size || !slash)
            break;
        name = slash + 1;
    }
    for (char *c = buf; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            *c = '?';
}
