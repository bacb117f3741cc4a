// SPDX-License-Identifier: Apache-2.0
/* base/elf.h - reads the sections and symbols of an ELF file: enough to find a CUDA runtime that
 * was linked in. The file is anyone's: every offset is checked against its size. Threads: any, on
 * different objects. */
#ifndef WS_FRONTEND_ELF_H
#define WS_FRONTEND_ELF_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/macros.h"

struct ws_elf {
    const uint8_t *data;
    uint64_t bytes;
    const Elf64_Shdr *sections; /* inside data, or NULL */
    uint32_t n_sections;
    const char *names; /* of sections */
    uint64_t names_bytes;
};
struct ws_elf_symbols {
    const Elf64_Sym *v;
    uint64_t n;
    const char *names;
    uint64_t names_bytes;
};

/* @data: borrowed, 8-byte aligned. Return: 0, or -EINVAL: not a readable 64-bit little-endian x86
 *        ELF file. */
WS_MUST_CHECK int ws_elf_init(struct ws_elf *ret, const void *data, uint64_t bytes);
/* As ws_elf_init(), for machine @machine (EM_…). */
WS_MUST_CHECK int ws_elf_init_machine(struct ws_elf *ret, const void *data, uint64_t bytes,
                                      uint16_t machine);
/* A section's name, or NULL if it is damaged. */
const char *ws_elf_section_name(const struct ws_elf *e, const Elf64_Shdr *s);
/* NULL if there is none of that name. */
const Elf64_Shdr *ws_elf_section(const struct ws_elf *e, const char *name);
/* A section's bytes (as many as sh_size says), or NULL if it has none, or they lie outside of the
 * file or not on a multiple of
 * @align in it. */
const void *ws_elf_contents(const struct ws_elf *e, const Elf64_Shdr *s, uint64_t align);
/* The executable segment that holds [@value, @value + @size), or NULL. */
const Elf64_Phdr *ws_elf_code_segment(const struct ws_elf *e, uint64_t value, uint64_t size);
/* The table of @type SHT_SYMTAB or SHT_DYNSYM. Return: false if there is none, or it is damaged. */
bool ws_elf_symbols(const struct ws_elf *e, uint32_t type, struct ws_elf_symbols *ret);
/* NULL if the name lies outside the table or has no end. */
const char *ws_elf_symbol_name(const struct ws_elf_symbols *s, const Elf64_Sym *sym);

#endif
