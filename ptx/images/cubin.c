// SPDX-License-Identifier: Apache-2.0
/* ptx/images/cubin.c - reads what a cubin says of itself: its symbols, and the lists of attributes
 * in .nv.info.
 *
 * A kernel is a function symbol marked as an entry, with code; what is known of it stands in
 * .nv.info.NAME (parameters, bounds) and, under its symbol, in .nv.info (registers, frame). A
 * variable is an object symbol in one of the sections of global or constant memory. Names, offsets
 * and counts are the file's: each is checked against the file before it is used, fields are copied
 * out, since nothing need be aligned. Attributes that aren't known are passed over, as their length
 * is given.
 *
 *   attributes: u8 format, u8 attribute, u16 h: format 1: no value, 2 and 3: the value is h, 4: h
 *   bytes follow */
#include "ptx/images/cubin.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/budget.h"
#include "base/error.h"
#include "base/table.h"

enum {
    MACHINE_CUDA = 190,
    OTHER_ENTRY = 0x10,
    OTHER_MANAGED = 0x04,
    TYPE_TEXTURE = 10, /* symbols of texture and surface references, and samplers */
    TYPE_SAMPLER = 12,
    MAX_PARAM_BYTES = 32764,
    MAX_PARAMS = 4096,
    /* Of names, which many symbols may share, and each gets a copy of. */
    MAX_NAME_BYTES = 64 * 1024,
};
enum {
    ATTR_MAX_THREADS = 0x05,
    ATTR_REQNTID = 0x10,
    ATTR_FRAME_SIZE = 0x11,
    ATTR_KPARAM_INFO = 0x17,
    ATTR_CBANK_PARAM_SIZE = 0x19,
    ATTR_REGCOUNT = 0x2f,
    ATTR_KPARAM_INFO_V2 = 0x45,
};

struct section {
    Elf64_Shdr h;
    const char *name;
    const uint8_t *data; /* NULL: has no bytes in the file */
    UT_hash_handle hh;
};
struct cubin_reader {
    struct ws_cubin *c;
    const uint8_t *p;
    size_t len;
    const char *name;
    struct ws_diags *diags;
    struct section *sections, *by_name;
    uint32_t n_sections;
    const struct section *symtab, *strtab;
    uint32_t n_symbols;
    int32_t *kernel_of; /* [n_symbols]: index among the kernels, or -1 */
};

static int bad(const struct cubin_reader *r, const char *what)
{
    ws_diags_add(r->diags, r->name, 0, 0, "machine code is damaged: %s", what);
    return WS_PTX_E_FORMAT;
}

static int unsupported(const struct cubin_reader *r, const char *what)
{
    ws_diags_add(r->diags, r->name, 0, 0, "machine code: not supported: %s", what);
    return WS_PTX_E_UNSUPPORTED;
}

/* A text of at most MAX_NAME_BYTES that ends inside of [@data, @data + @bytes); NULL: none. */
static const char *text_at(const uint8_t *data, uint64_t bytes, uint64_t at)
{
    if (!data || at >= bytes)
        return NULL;
    uint64_t most = WS_MIN(bytes - at, (uint64_t)MAX_NAME_BYTES);
    return memchr(data + at, 0, most) ? (const char *)data + at : NULL;
}

/* ---- header and sections ---- */

static int read_header(struct cubin_reader *r, Elf64_Ehdr *h)
{
    if (r->len < sizeof(*h))
        return bad(r, "the ELF header is cut off");
    memcpy(h, r->p, sizeof(*h));
    if (memcmp(h->e_ident, ELFMAG, SELFMAG) || h->e_machine != MACHINE_CUDA)
        return bad(r, "it is no ELF file for NVIDIA's machine");
    if (h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_ident[EI_DATA] != ELFDATA2LSB)
        return unsupported(r, "code for 32 bits, or of the other byte order");
    r->c->abi_version = h->e_ident[EI_ABIVERSION];
    if (r->c->abi_version == 8)
        r->c->sm = h->e_flags >> 8 & 0xff;
    else if (r->c->abi_version == 7)
        r->c->sm = h->e_flags & 0xff;
    else
        return unsupported(r, "its version of the ABI is neither 7 nor 8");
    if (h->e_type == ET_REL)
        return unsupported(r, "it is not linked (-dc, -rdc=true); link it, or build with PTX");
    if (h->e_type != ET_EXEC)
        return unsupported(r, "its ELF type is not that of an executable");
    if (r->c->sm < 30)
        return bad(r, "it names no architecture");
    return 0;
}

static int read_sections(struct cubin_reader *r, const Elf64_Ehdr *h)
{
    if (!h->e_shnum || h->e_shentsize != sizeof(Elf64_Shdr) || h->e_shoff > r->len ||
        (r->len - h->e_shoff) / sizeof(Elf64_Shdr) < h->e_shnum || h->e_shstrndx >= h->e_shnum)
        return bad(r, "the table of sections lies outside");
    r->n_sections = h->e_shnum;
    r->sections = ws_alloc_array(r->n_sections, sizeof(*r->sections));
    if (!r->sections)
        return ws_raise(-ENOMEM);
    for (uint32_t k = 0; k < r->n_sections; k++) {
        struct section *s = &r->sections[k];
        memcpy(&s->h, r->p + h->e_shoff + k * sizeof(s->h), sizeof(s->h));
        if (s->h.sh_type == SHT_NULL || s->h.sh_type == SHT_NOBITS)
            continue;
        if (s->h.sh_offset > r->len || s->h.sh_size > r->len - s->h.sh_offset)
            return bad(r, "a section reaches behind the end");
        s->data = r->p + s->h.sh_offset;
    }
    const struct section *names = &r->sections[h->e_shstrndx];
    for (uint32_t k = 0; k < r->n_sections; k++) {
        struct section *s = &r->sections[k], *known;
        s->name =
            s->h.sh_type == SHT_NULL ? "" : text_at(names->data, names->h.sh_size, s->h.sh_name);
        if (!s->name)
            return bad(r, "a section's name lies outside, or is too long");
        if (s->h.sh_type == SHT_SYMTAB && r->symtab)
            return bad(r, "it has two tables of symbols");
        if (s->h.sh_type == SHT_SYMTAB)
            r->symtab = s;
        HASH_FIND_STR(r->by_name, s->name, known);
        if (*s->name && !known)
            HASH_ADD_KEYPTR(hh, r->by_name, s->name, strlen(s->name), s);
    }
    if (!r->symtab)
        return bad(r, "it has no table of symbols");
    if (r->symtab->h.sh_entsize != sizeof(Elf64_Sym) || r->symtab->h.sh_link >= r->n_sections ||
        !r->symtab->data)
        return bad(r, "the table of symbols has a wrong shape");
    r->strtab = &r->sections[r->symtab->h.sh_link];
    r->n_symbols = (uint32_t)WS_MIN(r->symtab->h.sh_size / sizeof(Elf64_Sym), INT32_MAX);
    return 0;
}

/* ---- symbols ---- */

static void symbol(const struct cubin_reader *r, uint32_t k, Elf64_Sym *ret)
{
    memcpy(ret, r->symtab->data + (size_t)k * sizeof(*ret), sizeof(*ret));
}

static bool is_kernel(const Elf64_Sym *s)
{
    return ELF64_ST_TYPE(s->st_info) == STT_FUNC && s->st_shndx != SHN_UNDEF &&
           s->st_other & OTHER_ENTRY;
}

static bool is_call(const Elf64_Sym *s)
{
    return ELF64_ST_TYPE(s->st_info) == STT_FUNC && s->st_shndx == SHN_UNDEF;
}

/* The section of a variable that programs can name, or NULL. */
static const struct section *var_section(const struct cubin_reader *r, const Elf64_Sym *s)
{
    if (ELF64_ST_TYPE(s->st_info) != STT_OBJECT || !s->st_size || s->st_shndx >= r->n_sections ||
        s->st_shndx == SHN_UNDEF)
        return NULL;
    const struct section *at = &r->sections[s->st_shndx];
    return !strcmp(at->name, ".nv.global") || !strcmp(at->name, ".nv.global.init") ||
                   !strcmp(at->name, ".nv.constant3")
               ? at
               : NULL;
}

/* The section PREFIX NAME. *ret: NULL: there is none. */
static int section_of(const struct cubin_reader *r, const char *prefix, const char *name,
                      const struct section **ret)
{
    struct section *s = NULL;
    size_t a = strlen(prefix), n = strlen(name);
    char *full = ws_alloc(a + n + 1);
    if (!full)
        return ws_raise(-ENOMEM);
    memcpy(full, prefix, a);
    memcpy(full + a, name, n + 1);
    HASH_FIND(hh, r->by_name, full, a + n, s);
    free(full);
    *ret = s;
    return 0;
}

static int read_symbols(struct cubin_reader *r)
{
    struct ws_cubin *c = r->c;
    for (int pass = 0; pass < 2; pass++) {
        c->n_kernels = c->n_vars = c->n_calls = 0;
        for (uint32_t k = 0; k < r->n_symbols; k++) {
            Elf64_Sym s;
            if (!ws_budget_spend(1))
                return ws_raise(-ENOMEM);
            symbol(r, k, &s);
            const struct section *at = var_section(r, &s);
            unsigned type = ELF64_ST_TYPE(s.st_info);
            if (type >= TYPE_TEXTURE && type <= TYPE_SAMPLER)
                return unsupported(r, "texture or surface references");
            if (!is_kernel(&s) && !is_call(&s) && !at)
                continue;
            const char *name = text_at(r->strtab->data, r->strtab->h.sh_size, s.st_name);
            if (!name)
                return bad(r, "a symbol's name lies outside, or is too long");
            if (is_kernel(&s) && !*name)
                return bad(r, "a kernel has no name");
            if (is_kernel(&s) && s.st_shndx >= r->n_sections)
                return bad(r, "a kernel's code lies in no section");
            if (at && (s.st_value > at->h.sh_size || s.st_size > at->h.sh_size - s.st_value))
                return bad(r, "a variable lies outside of its section");
            /* Literals and the like have names that no program can say. */
            if (at && (name[0] == '$' || name[0] == '.' || !*name))
                continue;
            if (pass && is_kernel(&s)) {
                c->kernels[c->n_kernels].name = name;
                r->kernel_of[k] = (int32_t)c->n_kernels;
            } else if (pass && is_call(&s)) {
                c->calls[c->n_calls] = name;
            } else if (pass) {
                c->vars[c->n_vars] =
                    (struct ws_cubin_var){.name = name,
                                          .constant = !strcmp(at->name, ".nv.constant3"),
                                          .managed = s.st_other & OTHER_MANAGED,
                                          .bytes = s.st_size,
                                          .init = at->data ? at->data + s.st_value : NULL};
            }
            c->n_kernels += is_kernel(&s);
            c->n_calls += is_call(&s);
            c->n_vars += at != NULL;
        }
        if (pass)
            break;
        c->kernels = ws_arena_array(&c->arena, c->n_kernels + (size_t)1, sizeof(*c->kernels));
        c->vars = ws_arena_array(&c->arena, c->n_vars + (size_t)1, sizeof(*c->vars));
        c->calls = ws_arena_array(&c->arena, c->n_calls + (size_t)1, sizeof(*c->calls));
        r->kernel_of = ws_alloc_array(r->n_symbols + (size_t)1, sizeof(*r->kernel_of));
        if (!c->kernels || !c->vars || !c->calls || !r->kernel_of)
            return ws_raise(-ENOMEM);
        for (uint32_t k = 0; k < r->n_symbols; k++)
            r->kernel_of[k] = -1;
    }
    return 0;
}

/* ---- attributes ---- */

struct attribute {
    uint8_t format, what;
    uint16_t h;
    const uint8_t *data; /* [h], of format 4 */
};

static uint32_t u32_at(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof(v));
    return v;
}

static uint16_t u16_at(const uint8_t *p)
{
    uint16_t v;
    memcpy(&v, p, sizeof(v));
    return v;
}

/* The next one; *io_at is its offset. Return: false: there is none; *ret_r: 0, or it is damaged. */
static bool next_attribute(const struct cubin_reader *r, const struct section *s, uint64_t *io_at,
                           struct attribute *ret, int *ret_r)
{
    uint64_t left = s->h.sh_size - *io_at;
    *ret_r = 0;
    if (!s->data || !left)
        return false;
    if (left < 4) {
        *ret_r = bad(r, "an attribute is cut off");
        return false;
    }
    const uint8_t *p = s->data + *io_at;
    *ret = (struct attribute){.format = p[0], .what = p[1], .h = u16_at(p + 2), .data = p + 4};
    uint64_t bytes = 4 + (p[0] == 4 ? ret->h : 0);
    if (p[0] < 1 || p[0] > 4 || bytes > left) {
        *ret_r = bad(r, "an attribute's format or length is wrong");
        return false;
    }
    *io_at += bytes;
    return true;
}

/* Of .nv.info: a symbol, and a number that is about it. */
static int read_global_info(struct cubin_reader *r)
{
    const struct section *s = NULL;
    struct attribute a;
    uint64_t at = 0;
    int e = section_of(r, ".nv.info", "", &s);
    while (!e && s && next_attribute(r, s, &at, &a, &e)) {
        if ((a.what != ATTR_REGCOUNT && a.what != ATTR_FRAME_SIZE) || a.format != 4)
            continue;
        if (a.h < 8 || u32_at(a.data) >= r->n_symbols)
            return bad(r, "an attribute names a symbol that is not there");
        int32_t k = r->kernel_of[u32_at(a.data)];
        if (k >= 0 && a.what == ATTR_REGCOUNT)
            r->c->kernels[k].n_regs = u32_at(a.data + 4);
        else if (k >= 0)
            r->c->kernels[k].local_bytes = u32_at(a.data + 4);
    }
    return e;
}

static int read_param(struct cubin_reader *r, struct ws_cubin_kernel *k, const struct attribute *a,
                      uint32_t *io_n)
{
    if (a->format != 4 || a->h < 12)
        return bad(r, "a parameter's description is cut off");
    uint32_t ordinal = u16_at(a->data + 4), last = u32_at(a->data + 8);
    if (ordinal >= k->n_params || k->params[ordinal].bytes)
        return bad(r, "a parameter is missing, or there twice");
    /* The other bits say what kind of value it is. */
    k->params[ordinal] = (struct ws_cubin_param){
        .offset = u16_at(a->data + 6),
        .bytes = a->what == ATTR_KPARAM_INFO ? last >> 18 : last & 0xffffff};
    if (!k->params[ordinal].bytes)
        return bad(r, "a parameter has no size");
    ++*io_n;
    return 0;
}

static bool is_param(const struct attribute *a)
{
    return a->what == ATTR_KPARAM_INFO || a->what == ATTR_KPARAM_INFO_V2;
}

static int read_kernel_attribute(struct cubin_reader *r, struct ws_cubin_kernel *k,
                                 const struct attribute *a, uint32_t *io_n)
{
    uint32_t *three = a->what == ATTR_MAX_THREADS ? k->max_threads
                      : a->what == ATTR_REQNTID   ? k->required_block
                                                  : NULL;
    if (is_param(a))
        return read_param(r, k, a, io_n);
    if (a->what == ATTR_CBANK_PARAM_SIZE)
        k->param_bytes = a->h;
    if (three && (a->format != 4 || a->h < 12))
        return bad(r, "a kernel's bounds are cut off");
    for (int d = 0; three && d < 3; d++)
        three[d] = u32_at(a->data + (size_t)d * 4);
    return 0;
}

static int check_params(const struct cubin_reader *r, const struct ws_cubin_kernel *k, uint32_t n)
{
    uint64_t end = 0;
    if (n != k->n_params)
        return bad(r, "a parameter is missing, or there twice");
    for (uint32_t p = 0; p < n; p++) {
        if (k->params[p].offset < end)
            return bad(r, "two parameters lie in one place");
        end = (uint64_t)k->params[p].offset + k->params[p].bytes;
    }
    return end > k->param_bytes || k->param_bytes > MAX_PARAM_BYTES
               ? bad(r, "parameters reach behind their end")
               : 0;
}

static int read_kernel(struct cubin_reader *r, struct ws_cubin_kernel *k)
{
    const struct section *info = NULL, *shared = NULL;
    struct attribute a;
    uint64_t at = 0;
    uint32_t n = 0;
    int e = section_of(r, ".nv.info.", k->name, &info);
    if (!e)
        e = section_of(r, ".nv.shared.", k->name, &shared);
    if (e)
        return e;
    if (shared && shared->h.sh_size > UINT32_MAX)
        return bad(r, "a kernel's shared memory is too large");
    k->shared_bytes = shared ? (uint32_t)shared->h.sh_size : 0;
    while (info && next_attribute(r, info, &at, &a, &e))
        k->n_params += is_param(&a);
    if (e)
        return e;
    if (k->n_params > MAX_PARAMS)
        return bad(r, "a kernel has too many parameters");
    k->params = ws_arena_array(&r->c->arena, k->n_params + (size_t)1, sizeof(*k->params));
    if (!k->params)
        return ws_raise(-ENOMEM);
    at = 0;
    while (!e && info && next_attribute(r, info, &at, &a, &e))
        e = read_kernel_attribute(r, k, &a, &n);
    return e ? e : check_params(r, k, n);
}

/* ---- all ---- */

/* Names are the image's until here. */
static int keep_name(struct ws_cubin *c, const char **io)
{
    *io = ws_arena_strndup(&c->arena, *io, strlen(*io));
    return *io ? 0 : ws_raise(-ENOMEM);
}

static int keep_names(struct ws_cubin *c)
{
    int e = 0;
    for (uint32_t k = 0; !e && k < c->n_kernels; k++)
        e = keep_name(c, &c->kernels[k].name);
    for (uint32_t k = 0; !e && k < c->n_vars; k++)
        e = keep_name(c, &c->vars[k].name);
    for (uint32_t k = 0; !e && k < c->n_calls; k++)
        e = keep_name(c, &c->calls[k]);
    return e;
}

int ws_cubin_read(struct ws_cubin *ret, const void *image, size_t len, const char *name,
                  struct ws_diags *diags)
{
    struct ws_cubin c = {0};
    struct cubin_reader r = {.c = &c, .p = image, .len = len, .name = name, .diags = diags};
    Elf64_Ehdr h;
    int e = read_header(&r, &h);
    if (!e)
        e = read_sections(&r, &h);
    if (!e)
        e = read_symbols(&r);
    if (!e)
        e = read_global_info(&r);
    for (uint32_t k = 0; !e && k < c.n_kernels; k++)
        e = read_kernel(&r, &c.kernels[k]);
    if (!e)
        e = keep_names(&c);
    HASH_CLEAR(hh, r.by_name);
    free(r.sections);
    free(r.kernel_of);
    if (e) {
        ws_cubin_deinit(&c);
        return e;
    }
    *ret = c;
    return 0;
}

void ws_cubin_deinit(struct ws_cubin *c)
{
    ws_arena_deinit(&c->arena);
    *c = (struct ws_cubin){0};
}

/* ---- as a module ---- */

static int module_kernels(struct ws_ptx_module *m, const struct ws_cubin *c)
{
    m->funcs = ws_arena_array(&m->arena, c->n_kernels + c->n_calls + (size_t)1, sizeof(*m->funcs));
    if (!m->funcs)
        return ws_raise(-ENOMEM);
    for (uint32_t k = 0; k < c->n_kernels; k++) {
        const struct ws_cubin_kernel *from = &c->kernels[k];
        struct ws_ptx_func *f = &m->funcs[m->n_funcs++];
        *f = (struct ws_ptx_func){.name = from->name,
                                  .is_entry = true,
                                  .link = WS_LINK_VISIBLE,
                                  .n_params = from->n_params,
                                  .param_bytes = from->param_bytes};
        memcpy(f->maxntid, from->max_threads, sizeof(f->maxntid));
        memcpy(f->reqntid, from->required_block, sizeof(f->reqntid));
        f->params = ws_arena_array(&m->arena, f->n_params + (size_t)1, sizeof(*f->params));
        if (!f->params)
            return ws_raise(-ENOMEM);
        for (uint32_t p = 0; p < f->n_params; p++)
            f->params[p] = (struct ws_ptx_var){.name = "",
                                               .space = WS_SP_PARAM,
                                               .type = WS_T_B8,
                                               .is_array = true,
                                               .align = 1,
                                               .size_bytes = from->params[p].bytes,
                                               .n_elems = from->params[p].bytes,
                                               .param_offset = from->params[p].offset,
                                               .reg = -1};
    }
    for (uint32_t k = 0; k < c->n_calls; k++)
        m->funcs[m->n_funcs++] =
            (struct ws_ptx_func){.name = c->calls[k], .is_decl = true, .link = WS_LINK_EXTERN};
    return 0;
}

static int module_vars(struct ws_ptx_module *m, const struct ws_cubin *c)
{
    m->vars = ws_arena_array(&m->arena, c->n_vars + (size_t)1, sizeof(*m->vars));
    if (!m->vars)
        return ws_raise(-ENOMEM);
    for (uint32_t k = 0; k < c->n_vars; k++)
        m->vars[m->n_vars++] =
            (struct ws_ptx_var){.name = c->vars[k].name,
                                .space = c->vars[k].constant ? WS_SP_CONST : WS_SP_GLOBAL,
                                .type = WS_T_B8,
                                .link = WS_LINK_VISIBLE,
                                .is_array = true,
                                .managed = c->vars[k].managed,
                                .align = 1,
                                .size_bytes = c->vars[k].bytes,
                                .n_elems = c->vars[k].bytes,
                                .reg = -1};
    return 0;
}

int ws_cubin_module(struct ws_ptx_module **ret, const void *image, size_t len, const char *name,
                    struct ws_diags *diags)
{
    struct ws_cubin c;
    int r = ws_cubin_read(&c, image, len, name, diags);
    if (r)
        return r;
    struct ws_ptx_module *m = ws_alloc(sizeof(*m));
    if (!m) {
        ws_cubin_deinit(&c);
        return ws_raise(-ENOMEM);
    }
    *m = (struct ws_ptx_module){.sm = (uint16_t)c.sm, .address_size = 64};
    char target[16];
    int n = snprintf(target, sizeof(target), "sm_%u", c.sm);
    m->target = ws_arena_strndup(&m->arena, target, (size_t)n);
    uint8_t *code = ws_arena_alloc(&m->arena, len);
    r = m->target && code ? 0 : ws_raise(-ENOMEM);
    if (!r) {
        memcpy(code, image, len);
        m->code = code;
        m->code_bytes = len;
        r = module_kernels(m, &c);
    }
    if (!r)
        r = module_vars(m, &c);
    if (r) {
        ws_cubin_deinit(&c);
        ws_ptx_module_free(m);
        return r;
    }
    ws_arena_take(&m->arena, &c.arena);
    *ret = m;
    return 0;
}
