// SPDX-License-Identifier: Apache-2.0
#include "tests/device/cubin_make.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SECTIONS = 40, ROOM = 1 << 16 };
struct out {
    uint8_t *p;
    size_t n;
    Elf64_Shdr sections[MAX_SECTIONS];
    unsigned n_sections;
    char names[4096], strings[4096];
    size_t n_names, n_strings;
    Elf64_Sym symbols[32];
    unsigned n_symbols;
};

static size_t put(struct out *o, const void *data, size_t bytes, size_t align)
{
    while (o->n % align)
        o->n++;
    size_t at = o->n;
    if (data)
        memcpy(o->p + at, data, bytes);
    o->n += bytes;
    return at;
}

static uint32_t text(char *to, size_t *io_n, const char *s)
{
    size_t at = *io_n;
    memcpy(to + at, s, strlen(s) + 1);
    *io_n += strlen(s) + 1;
    return (uint32_t)at;
}

static unsigned section(struct out *o, uint32_t type, const char *prefix, const char *name,
                        const void *data, size_t bytes)
{
    char full[256];
    snprintf(full, sizeof(full), "%s%s", prefix, name);
    Elf64_Shdr *s = &o->sections[o->n_sections];
    s->sh_name = text(o->names, &o->n_names, full);
    s->sh_type = type;
    s->sh_addralign = 4;
    s->sh_size = bytes;
    s->sh_offset = type == SHT_NOBITS ? o->n : put(o, data, bytes, 8);
    return o->n_sections++;
}

static unsigned add_symbol(struct out *o, const char *name, unsigned info, unsigned other,
                           unsigned shndx, uint64_t value, uint64_t bytes)
{
    Elf64_Sym *s = &o->symbols[o->n_symbols];
    s->st_name = text(o->strings, &o->n_strings, name);
    s->st_info = (unsigned char)info;
    s->st_other = (unsigned char)other;
    s->st_shndx = (Elf64_Section)shndx;
    s->st_value = value;
    s->st_size = bytes;
    return o->n_symbols++;
}

struct list {
    uint8_t p[2048];
    size_t n;
};

static void attribute(struct list *l, uint8_t format, uint8_t what, uint16_t h, const void *data)
{
    uint8_t head[4] = {format, what, (uint8_t)h, (uint8_t)(h >> 8)};
    memcpy(l->p + l->n, head, sizeof(head));
    l->n += sizeof(head);
    if (format == 4) {
        memcpy(l->p + l->n, data, h);
        l->n += h;
    }
}

static void kernel_info(struct list *l, const struct cubin_make_kernel *k)
{
    attribute(l, 4, 0x37, 4, (uint32_t[]){130});
    for (uint32_t p = k->n_params; p--;) { /* last to first, as ptxas does */
        uint32_t d[3] = {0, p | k->offsets[p] << 16,
                         k->v2 ? k->sizes[p] : k->sizes[p] << 18 | 0x1f000};
        attribute(l, 4, k->v2 ? 0x45 : 0x17, sizeof(d), d);
    }
    attribute(l, 3, 0x1b, 255, NULL);
    attribute(l, 4, 0x1c, 4, (uint32_t[]){16});
    if (k->max_threads)
        attribute(l, 4, 0x05, 12, (uint32_t[]){k->max_threads, 1, 1});
    if (k->n_params)
        attribute(l, 3, 0x19, (uint16_t)k->param_bytes, NULL);
}

static void kernels(struct out *o, const struct cubin_make *c, struct list *global)
{
    static const uint8_t code[128];
    for (uint32_t i = 0; i < c->n_kernels; i++) {
        const struct cubin_make_kernel *k = &c->kernels[i];
        struct list l = {.n = 0};
        unsigned at = section(o, SHT_PROGBITS, ".text.", k->name, code, sizeof(code));
        kernel_info(&l, k);
        o->sections[section(o, SHT_LOPROC, ".nv.info.", k->name, l.p, l.n)].sh_info = at;
        if (k->shared_bytes)
            section(o, SHT_NOBITS, ".nv.shared.", k->name, NULL, k->shared_bytes);
        unsigned symbol =
            add_symbol(o, k->name, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0x10, at, 0, sizeof(code));
        attribute(global, 4, 0x2f, 8, (uint32_t[]){symbol, k->n_regs});
        attribute(global, 4, 0x11, 8, (uint32_t[]){symbol, k->frame_bytes});
    }
}

static void variables(struct out *o, const struct cubin_make *c)
{
    static const char *const names[] = {".nv.global", ".nv.global.init", ".nv.constant3"};
    for (int kind = 0; kind < 3; kind++) {
        uint8_t bytes[1024] = {0};
        size_t n = 0;
        unsigned symbols[8], n_symbols = 0;
        for (uint32_t i = 0; i < c->n_vars; i++) {
            const struct cubin_make_var *v = &c->vars[i];
            if ((v->constant ? 2 : v->init ? 1 : 0) != kind)
                continue;
            n = (n + 7) / 8 * 8;
            symbols[n_symbols++] = add_symbol(o, v->name, ELF64_ST_INFO(STB_LOCAL, STT_OBJECT),
                                              v->managed ? 4 : 0, 0, n, v->bytes);
            if (v->init)
                memcpy(bytes + n, v->init, v->bytes);
            n += v->bytes;
        }
        if (!n_symbols)
            continue;
        unsigned at = section(o, kind ? SHT_PROGBITS : SHT_NOBITS, names[kind], "", bytes, n);
        while (n_symbols)
            o->symbols[symbols[--n_symbols]].st_shndx = (Elf64_Section)at;
    }
}

uint8_t *cubin_make(const struct cubin_make *c, size_t *ret_bytes)
{
    struct out o = {.p = calloc(1, ROOM), .n = sizeof(Elf64_Ehdr), .n_names = 1, .n_strings = 1};
    struct list global = {.n = 0};
    Elf64_Ehdr h = {.e_type = c->type ? c->type : ET_EXEC,
                    .e_machine = 190,
                    .e_version = 1,
                    .e_ehsize = sizeof(h),
                    .e_shentsize = sizeof(Elf64_Shdr),
                    .e_flags = c->abi7 ? c->sm << 16 | 0x500 | c->sm : 0x6000004 | c->sm << 8};
    memcpy(h.e_ident, ELFMAG, SELFMAG);
    h.e_ident[EI_CLASS] = ELFCLASS64;
    h.e_ident[EI_DATA] = ELFDATA2LSB;
    h.e_ident[EI_VERSION] = 1;
    h.e_ident[EI_OSABI] = c->abi7 ? 0x33 : 0x41;
    h.e_ident[EI_ABIVERSION] = c->abi7 ? 7 : 8;
    if (!o.p)
        abort();
    section(&o, SHT_NULL, "", "", NULL, 0);
    add_symbol(&o, "", 0, 0, 0, 0, 0);
    kernels(&o, c, &global);
    variables(&o, c);
    if (c->call)
        add_symbol(&o, c->call, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0, 0, 0, 0);
    section(&o, SHT_LOPROC, ".nv.info", "", global.p, global.n);
    unsigned strings = section(&o, SHT_STRTAB, ".strtab", "", o.strings, o.n_strings);
    unsigned symbols =
        section(&o, SHT_SYMTAB, ".symtab", "", o.symbols, o.n_symbols * sizeof(o.symbols[0]));
    o.sections[symbols].sh_link = strings;
    o.sections[symbols].sh_entsize = sizeof(o.symbols[0]);
    size_t n_names = o.n_names + sizeof ".shstrtab";
    h.e_shstrndx = (Elf64_Half)section(&o, SHT_STRTAB, ".shstrtab", "", NULL, n_names);
    memcpy(o.p + o.sections[h.e_shstrndx].sh_offset, o.names, n_names);
    h.e_shnum = (Elf64_Half)o.n_sections;
    h.e_shoff = put(&o, o.sections, o.n_sections * sizeof(o.sections[0]), 8);
    memcpy(o.p, &h, sizeof(h));
    *ret_bytes = o.n;
    return o.p;
}

static const uint32_t table[4] = {10, 20, 30, 40}, add = 3;
const struct cubin_make cubin_make_step = {
    .sm = 86,
    .n_kernels = 1,
    .kernels = {{.name = "step",
                 .n_params = 2,
                 .sizes = {8, 4},
                 .offsets = {0, 8},
                 .param_bytes = 12,
                 .n_regs = 12,
                 .max_threads = 256}},
    .n_vars = 3,
    .vars = {{.name = "calls", .bytes = 4},
             {.name = "table", .bytes = sizeof(table), .init = table},
             {.name = "add", .bytes = 4, .init = &add, .constant = true}},
};
const char cubin_make_step_ptx[] =
    ".version 7.5\n.target sm_75\n.address_size 64\n"
    ".visible .global .align 4 .u32 table[4] = {10, 20, 30, 40};\n"
    ".visible .global .align 4 .u32 calls;\n"
    ".visible .const .align 4 .u32 add = 3;\n"
    ".visible .entry step(.param .u64 p, .param .u32 n)\n.maxntid 256, 1, 1\n{\n"
    ".reg .pred %p; .reg .b32 %r<12>; .reg .b64 %rd<8>;\n"
    "ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [n];\n"
    "mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.s32 %r5, %r2, %r3, "
    "%r4;\n"
    "setp.ne.u32 %p, %r4, 0;\n@%p bra REST;\natom.global.add.u32 %r6, [calls], 1;\n"
    "REST:\nsetp.ge.u32 %p, %r5, %r1;\n@%p bra END;\n"
    "mul.wide.u32 %rd2, %r5, 4; add.s64 %rd3, %rd1, %rd2;\n"
    "and.b32 %r7, %r5, 3; mul.wide.u32 %rd4, %r7, 4; mov.u64 %rd5, table; add.s64 %rd6, %rd5, "
    "%rd4;\n"
    "ld.global.u32 %r8, [%rd6]; ld.const.u32 %r9, [add]; ld.global.u32 %r10, [%rd3];\n"
    "mad.lo.u32 %r11, %r8, %r9, %r10; st.global.u32 [%rd3], %r11;\nEND:\nret;\n}\n";
