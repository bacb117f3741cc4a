// SPDX-License-Identifier: Apache-2.0
/* A library that gets at the driver by dlopen() may keep the addresses in variables which it calls
 * as the functions, `cuInit` and so on, and may export them. Our functions are preloaded, so the
 * dynamic linker would take them for these variables, and the library would write over our code.
 * Such symbols are made STV_PROTECTED, in the library's table in memory: references from within
 * the library then mean its own variable. Only the dynamic linker reads the table, and it does so
 * when it relocates, before which redirect.c sees a library that was opened. One that the program
 * was linked with is seen too late for this. */
#include "frontend/interpose/variables.h"

#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include "base/elf.h"
#include "base/macros.h"

enum { PAGE = 4096 };

static bool is_own_variable(const struct ws_elf_symbols *s, const Elf64_Sym *sym,
                            void *(*find)(const char *name))
{
    if (ELF64_ST_TYPE(sym->st_info) != STT_OBJECT || sym->st_shndx == SHN_UNDEF ||
        ELF64_ST_VISIBILITY(sym->st_other) != STV_DEFAULT || sym->st_name >= s->names_bytes ||
        s->names_bytes - sym->st_name < sizeof("cu") ||
        memcmp(s->names + sym->st_name, "cu", 2) != 0)
        return false;
    const char *name = ws_elf_symbol_name(s, sym);
    return name && find(name);
}

void ws_variables_keep(const void *image, size_t bytes, uintptr_t base, uintptr_t last,
                       void *(*find)(const char *name))
{
    struct ws_elf e;
    struct ws_elf_symbols s;
    if (ws_elf_init(&e, image, bytes) || !ws_elf_symbols(&e, SHT_DYNSYM, &s))
        return;
    const Elf64_Shdr *table = ws_elf_section(&e, ".dynsym");
    size_t table_bytes = s.n * sizeof(*s.v);
    if (!table || table->sh_addr % 8 || table->sh_addr > last - base ||
        table_bytes > last - base - table->sh_addr)
        return;
    int prot = PROT_READ | (ws_elf_code_segment(&e, table->sh_addr, table_bytes) ? PROT_EXEC : 0);
    Elf64_Sym *loaded = (Elf64_Sym *)(base + table->sh_addr);
    uintptr_t first_page = (uintptr_t)loaded & ~(uintptr_t)(PAGE - 1);
    size_t pages_bytes = (uintptr_t)loaded + table_bytes - first_page;
    bool writable = false;
    for (uint64_t i = 0; i < s.n; i++) {
        if (!is_own_variable(&s, &s.v[i], find))
            continue;
        if (!writable && mprotect((void *)first_page, pages_bytes, PROT_READ | PROT_WRITE))
            return;
        writable = true;
        if (!memcmp(&loaded[i], &s.v[i], sizeof(*loaded)))
            loaded[i].st_other |= STV_PROTECTED;
    }
    if (writable)
        (void)!mprotect((void *)first_page, pages_bytes, prot);
}
