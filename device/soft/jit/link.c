// SPDX-License-Identifier: Apache-2.0
/* device/soft/jit/link.c - from an object file to code.
 *
 * LLVM's own linker would do, but none of its C interfaces, in all versions that are taken, lets us
 * choose the pages (pages.c says why we must). What LLVM makes of one function is simple: code,
 * constants, and references of three kinds. Anything else is refused. */
#include "device/soft/jit/link.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/elf.h"
#include "base/error.h"
#include "device/soft/exec/priv.h"
#include "device/soft/jit/emit.h"

enum { MAX_BYTES = 64 << 20, MAX_ALIGN = 4096 };
#define NOT_PLACED UINT64_MAX

struct linking {
    struct ws_elf elf;
    struct ws_elf_symbols symbols;
    const struct ws_jit_names *names;
    uint64_t *at; /* by section: where it lies, from the first byte of the pages; or NOT_PLACED */
    uint64_t code_bytes, data_bytes;
    struct ws_jit_pages *pages;
    char *why;
    size_t room;
};

static int refuse(struct linking *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
static int refuse(struct linking *l, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(l->why, l->room, format, args);
    va_end(args);
    return WS_JIT_LINK_E_OBJECT;
}

/* ---- names ---- */
typedef void function(void);
#define FUNCTIONS(X)                                                                               \
    X(ws_jit_handler)                                                                              \
    X(ws_jit_next)                                                                                 \
    X(ws_jit_wait)                                                                                 \
    X(ws_jit_call_function)                                                                        \
    X(ws_jit_return)                                                                               \
    X(ws_jit_look)                                                                                 \
    X(ws_jit_note)                                                                                 \
    X(ws_jit_note_two)                                                                             \
    X(ws_jit_improve)                                                                              \
    X(ws_exec_exit)                                                                                \
    X(ws_exec_end_warp)                                                                            \
    X(memcpy)                                                                                      \
    X(memset)
static const struct {
    const char *name;
    function *f;
} functions[] = {
#define X(name) {#name, (function *)name},
    FUNCTIONS(X)
#undef X
};
static const char count_lanes[] = "count_lanes", count_banks[] = "count_banks"; /* of the isa */

const char *ws_jit_name_of(const struct ws_isa *isa, void (*f)(void))
{
    if (f == (function *)isa->count_lanes)
        return count_lanes;
    if (f == (function *)isa->count_banks)
        return count_banks;
    for (size_t k = 0; k < WS_ARRAY_SIZE(functions); k++)
        if (functions[k].f == f)
            return functions[k].name;
    return NULL;
}

static function *function_of(const struct ws_isa *isa, const char *name)
{
    if (strcmp(name, count_lanes) == 0)
        return (function *)isa->count_lanes;
    if (strcmp(name, count_banks) == 0)
        return (function *)isa->count_banks;
    for (size_t k = 0; k < WS_ARRAY_SIZE(functions); k++)
        if (strcmp(functions[k].name, name) == 0)
            return functions[k].f;
    return NULL;
}

/* Return: 0: the name stands for nothing. */
static uint64_t address_of(const struct ws_jit_names *n, const char *name)
{
    if (name[0] && name[1] >= '0' && name[1] <= '9') {
        char *end;
        unsigned long k = strtoul(name + 1, &end, 10);
        bool is_uop = name[0] == 'u' && k <= n->n_uops, is_seg = name[0] == 's' && k < n->n_segs;
        if (*end || (!is_uop && !is_seg))
            return 0;
        return is_uop ? (uint64_t)(uintptr_t)n->uops + k * sizeof(*n->uops)
                      : (uint64_t)(uintptr_t)n->segs + k * sizeof(*n->segs);
    }
    return (uint64_t)(uintptr_t)function_of(n->isa, name);
}

/* ---- sections ---- */
/* Frames for unwinding are left out: nothing of ours is unwound. */
static bool is_wanted(const struct linking *l, const Elf64_Shdr *s)
{
    const char *name = ws_elf_section_name(&l->elf, s);
    return s->sh_flags & SHF_ALLOC && s->sh_size && name && strcmp(name, ".eh_frame") != 0;
}

static int place(struct linking *l, uint32_t k)
{
    const Elf64_Shdr *s = &l->elf.sections[k];
    bool is_code = s->sh_flags & SHF_EXECINSTR;
    uint64_t *end = is_code ? &l->code_bytes : &l->data_bytes;
    uint64_t align = s->sh_addralign ? s->sh_addralign : 1;
    if (s->sh_type != SHT_PROGBITS || s->sh_flags & (SHF_WRITE | SHF_TLS) ||
        !ws_elf_contents(&l->elf, s, 1) || align & (align - 1) || align > MAX_ALIGN)
        return refuse(l, "section %u is of a kind that is not expected", k);
    l->at[k] = WS_ALIGN_UP(*end, align);
    *end = l->at[k] + s->sh_size; /* the file's size bounds it */
    return *end <= MAX_BYTES ? 0 : refuse(l, "too large");
}

static int place_all(struct linking *l)
{
    int r = 0;
    l->at = ws_alloc_array(l->elf.n_sections, sizeof(*l->at));
    if (!l->at)
        return ws_raise(-ENOMEM);
    for (uint32_t k = 0; k < l->elf.n_sections && !r; k++) {
        l->at[k] = NOT_PLACED;
        if (is_wanted(l, &l->elf.sections[k]))
            r = place(l, k);
    }
    if (!r && !l->code_bytes)
        r = refuse(l, "it has no code");
    return r;
}

static int copy_all(struct linking *l)
{
    l->pages = ws_jit_pages_new(l->code_bytes, l->data_bytes);
    if (!l->pages)
        return ws_raise(-ENOMEM);
    for (uint32_t k = 0; k < l->elf.n_sections; k++) {
        const Elf64_Shdr *s = &l->elf.sections[k];
        if (l->at[k] == NOT_PLACED)
            continue;
        if (!(s->sh_flags & SHF_EXECINSTR))
            l->at[k] += l->pages->code_bytes;
        memcpy(l->pages->code + l->at[k], ws_elf_contents(&l->elf, s, 1), s->sh_size);
    }
    return 0;
}

/* ---- references ---- */
static bool is_placed(const struct linking *l, uint32_t section)
{
    return section < l->elf.n_sections && l->at[section] != NOT_PLACED;
}

/* Return: 0: it has none. */
static uint64_t value_of(const struct linking *l, uint64_t symbol)
{
    if (!symbol || symbol >= l->symbols.n)
        return 0;
    const Elf64_Sym *s = &l->symbols.v[symbol];
    if (s->st_shndx == SHN_UNDEF) {
        const char *name = ws_elf_symbol_name(&l->symbols, s);
        return name ? address_of(l->names, name) : 0;
    }
    if (!is_placed(l, s->st_shndx) || s->st_value > l->elf.sections[s->st_shndx].sh_size)
        return 0;
    return (uint64_t)(uintptr_t)l->pages->code + l->at[s->st_shndx] + s->st_value;
}

static int refer(struct linking *l, uint32_t section, const Elf64_Rela *r)
{
    uint64_t size = l->elf.sections[section].sh_size, type = ELF64_R_TYPE(r->r_info);
    uint64_t width = type == R_X86_64_64 ? 8 : 4;
    if (type != R_X86_64_64 && type != R_X86_64_PC32 && type != R_X86_64_PLT32)
        return refuse(l, "a reference of type %u", (unsigned)type);
    if (r->r_offset > size || width > size - r->r_offset)
        return refuse(l, "a reference outside of its section");
    uint64_t value = value_of(l, ELF64_R_SYM(r->r_info));
    if (!value)
        return refuse(l, "a name that is not known");
    value += (uint64_t)r->r_addend;
    uint8_t *where = l->pages->code + l->at[section] + r->r_offset;
    if (width == 8) {
        memcpy(where, &value, sizeof(value));
        return 0;
    }
    int64_t far = (int64_t)(value - (uint64_t)(uintptr_t)where);
    int32_t near = (int32_t)far;
    if (near != far)
        return refuse(l, "a reference that is too far");
    memcpy(where, &near, sizeof(near));
    return 0;
}

static int refer_all(struct linking *l)
{
    int r = 0;
    for (uint32_t k = 0; k < l->elf.n_sections && !r; k++) {
        const Elf64_Shdr *s = &l->elf.sections[k];
        if (s->sh_type == SHT_REL)
            return refuse(l, "references without addends");
        if (s->sh_type != SHT_RELA || !is_placed(l, s->sh_info))
            continue;
        const Elf64_Rela *all = ws_elf_contents(&l->elf, s, 8);
        if (!all)
            return refuse(l, "references outside of the file");
        for (uint64_t n = 0; n < s->sh_size / sizeof(*all) && !r; n++)
            r = refer(l, s->sh_info, &all[n]);
    }
    return r;
}

static int find_run(struct linking *l, uint8_t **ret)
{
    for (uint64_t k = 0; k < l->symbols.n; k++) {
        const Elf64_Sym *s = &l->symbols.v[k];
        const char *name = ws_elf_symbol_name(&l->symbols, s);
        if (!name || strcmp(name, "run") != 0 || !is_placed(l, s->st_shndx) ||
            !(l->elf.sections[s->st_shndx].sh_flags & SHF_EXECINSTR) ||
            s->st_value >= l->elf.sections[s->st_shndx].sh_size)
            continue;
        *ret = l->pages->code + l->at[s->st_shndx] + s->st_value;
        return 0;
    }
    return refuse(l, "it has no function");
}

static int link_all(struct linking *l, const void *object, size_t bytes, uint8_t **ret_run)
{
    if ((uintptr_t)object % 8 || ws_elf_init(&l->elf, object, bytes) ||
        ((const Elf64_Ehdr *)object)->e_type != ET_REL ||
        !ws_elf_symbols(&l->elf, SHT_SYMTAB, &l->symbols))
        return refuse(l, "it is no object file");
    int r = place_all(l);
    if (!r)
        r = copy_all(l);
    if (!r)
        r = refer_all(l);
    if (!r)
        r = find_run(l, ret_run);
    if (!r && !ws_jit_pages_finish(l->pages))
        r = ws_raise(-ENOMEM);
    return r;
}

int ws_jit_link(struct ws_jit_pages **ret, uint8_t **ret_run, const void *object, size_t bytes,
                const struct ws_jit_names *names, char *why, size_t room)
{
    struct linking l = {.names = names, .why = why, .room = room};
    int r = link_all(&l, object, bytes, ret_run);
    free(l.at);
    if (r) {
        ws_jit_pages_free(l.pages);
        return r;
    }
    *ret = l.pages;
    return 0;
}
