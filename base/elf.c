// SPDX-License-Identifier: Apache-2.0
#include "base/elf.h"

#include <errno.h>
#include <string.h>

const void *ws_elf_contents(const struct ws_elf *e, const Elf64_Shdr *s, uint64_t align)
{
    if (s->sh_type == SHT_NOBITS || s->sh_offset > e->bytes ||
        s->sh_size > e->bytes - s->sh_offset || s->sh_offset % align)
        return NULL;
    return e->data + s->sh_offset;
}

int ws_elf_init(struct ws_elf *ret, const void *data, uint64_t bytes)
{
    return ws_elf_init_machine(ret, data, bytes, EM_X86_64);
}

int ws_elf_init_machine(struct ws_elf *ret, const void *data, uint64_t bytes, uint16_t machine)
{
    const Elf64_Ehdr *h = data;
    if (bytes < sizeof(*h) || memcmp(h->e_ident, ELFMAG, SELFMAG) != 0 ||
        h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_ident[EI_DATA] != ELFDATA2LSB ||
        h->e_machine != machine)
        return -EINVAL;
    *ret = (struct ws_elf){.data = data, .bytes = bytes};
    if (!h->e_shoff ||
        !h->e_shnum) /* stripped of its section headers, or more sections than e_shnum can say */
        return 0;
    if (h->e_shentsize != sizeof(Elf64_Shdr) || h->e_shoff % 8 || h->e_shoff > bytes ||
        h->e_shnum > (bytes - h->e_shoff) / sizeof(Elf64_Shdr) || h->e_shstrndx >= h->e_shnum)
        return -EINVAL;
    ret->sections = (const Elf64_Shdr *)(ret->data + h->e_shoff);
    ret->n_sections = h->e_shnum;
    const Elf64_Shdr *names = &ret->sections[h->e_shstrndx];
    ret->names = ws_elf_contents(ret, names, 1);
    if (!ret->names)
        return -EINVAL;
    ret->names_bytes = names->sh_size;
    return 0;
}

static const char *string_at(const char *table, uint64_t table_bytes, uint64_t at)
{
    return at < table_bytes && memchr(table + at, 0, table_bytes - at) ? table + at : NULL;
}

const char *ws_elf_section_name(const struct ws_elf *e, const Elf64_Shdr *s)
{
    return string_at(e->names, e->names_bytes, s->sh_name);
}

const Elf64_Shdr *ws_elf_section(const struct ws_elf *e, const char *name)
{
    for (uint32_t i = 0; i < e->n_sections; i++) {
        const char *n = ws_elf_section_name(e, &e->sections[i]);
        if (n && !strcmp(n, name))
            return &e->sections[i];
    }
    return NULL;
}

const Elf64_Phdr *ws_elf_code_segment(const struct ws_elf *e, uint64_t value, uint64_t size)
{
    const Elf64_Ehdr *h = (const Elf64_Ehdr *)e->data;
    if (h->e_phentsize != sizeof(Elf64_Phdr) || h->e_phoff % 8 || h->e_phoff > e->bytes ||
        h->e_phnum > (e->bytes - h->e_phoff) / sizeof(Elf64_Phdr))
        return NULL;
    const Elf64_Phdr *p = (const Elf64_Phdr *)(e->data + h->e_phoff);
    for (unsigned i = 0; i < h->e_phnum; i++, p++)
        if (p->p_type == PT_LOAD && (p->p_flags & PF_X) && value >= p->p_vaddr &&
            value - p->p_vaddr < p->p_memsz && size <= p->p_memsz - (value - p->p_vaddr))
            return p;
    return NULL;
}

bool ws_elf_symbols(const struct ws_elf *e, uint32_t type, struct ws_elf_symbols *ret)
{
    for (uint32_t i = 0; i < e->n_sections; i++) {
        const Elf64_Shdr *s = &e->sections[i];
        if (s->sh_type != type || s->sh_link >= e->n_sections || s->sh_entsize != sizeof(Elf64_Sym))
            continue;
        const Elf64_Shdr *names = &e->sections[s->sh_link];
        ret->v = ws_elf_contents(e, s, 8);
        ret->n = s->sh_size / sizeof(Elf64_Sym);
        ret->names = ws_elf_contents(e, names, 1);
        ret->names_bytes = names->sh_size;
        return ret->v && ret->names;
    }
    return false;
}

const char *ws_elf_symbol_name(const struct ws_elf_symbols *s, const Elf64_Sym *sym)
{
    return string_at(s->names, s->names_bytes, sym->st_name);
}
