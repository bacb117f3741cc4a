// SPDX-License-Identifier: Apache-2.0
/* Finds which entry points an ELF object uses, and what device code it holds.
 *
 * With a CUDA runtime or driver that is linked dynamically, the entry points are the undefined
 * dynamic symbols. nvcc's static runtime has all of its functions in .symtab, used or not, so
 * this file looks for references to them: it tries every position of the executable sections as
 * a call, a jump, a lea or a mov whose operand is the address of an entry point. References
 * inside the runtime's own functions do not count. This is approximate: bytes may look like a
 * call by chance, and an address that stands only in a table of data is not found. Names that
 * are only strings (for dlsym, cuGetProcAddress) are "possible". An object with a static runtime
 * holds many such strings itself; there only those count whose address the program's own code
 * takes. The functions of a stripped runtime are known if the runtime is
 * (base/runtimes/static_runtime.h). */
#include "config.h"

#include "cli/coverage/coverage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/runtimes/static_runtime.h"

struct function {
    uint64_t from, to;
    const char *name;
    bool is_runtime, is_entry;
};
struct elf_scan {
    struct ws_cover *c;
    const char *object;
    const struct ws_elf *e;
    struct ws_diags *diags;
    uint32_t sm;
    struct function *functions; /* by address; those of the runtime among them */
    size_t n_functions, cap_functions;
    bool has_runtime, uses_cuda;
};

static void add_entry(struct elf_scan *s, const struct ws_ledger_entry *e, bool possible)
{
    ws_cover_add(s->c, &(struct ws_cover_item){.kind = WS_COVER_ENTRY,
                                               .state = e->state,
                                               .possible = possible,
                                               .name = (char *)e->name,
                                               .object = (char *)s->object,
                                               .note = e->note,
                                               .group = e->chapter});
    s->uses_cuda = true;
}

/* ---- dynamic symbols ---- */
static void scan_dynamic(struct elf_scan *s)
{
    struct ws_elf_symbols syms;
    struct ws_ledger_entry e;
    if (!ws_elf_symbols(s->e, SHT_DYNSYM, &syms))
        return;
    for (uint64_t i = 0; i < syms.n; i++) {
        const char *name = ws_elf_symbol_name(&syms, &syms.v[i]);
        if (!name || syms.v[i].st_shndx != SHN_UNDEF)
            continue;
        if (ws_ledger_find(name, &e)) {
            add_entry(s, &e, false);
        } else if ((!strncmp(name, "cuda", 4) && name[4] >= 'A' && name[4] <= 'Z') ||
                   !strncmp(name, "__cuda", 6)) {
            e = (struct ws_ledger_entry){.name = name,
                                         .state = WS_LEDGER_MISSING,
                                         .chapter = "unknown",
                                         .note = "no entry point of CUDA that wattshare knows"};
            add_entry(s, &e, false);
        }
    }
}

/* ---- the static runtime ---- */
static int by_address(const void *va, const void *vb)
{
    const struct function *a = va, *b = vb;
    if (a->from != b->from)
        return a->from < b->from ? -1 : 1;
    return (int)b->is_entry - (int)a->is_entry;
}

static int add_function(struct elf_scan *s, const struct function *f)
{
    if (ws_grow((void **)&s->functions, &s->cap_functions, s->n_functions + 1,
                sizeof(*s->functions)))
        return ws_raise(-ENOMEM);
    s->functions[s->n_functions++] = *f;
    s->has_runtime |= f->is_entry;
    return 0;
}

static bool is_entry(const char *name)
{
    struct ws_ledger_entry e;
    return strstr(name, "cuda") && ws_ledger_find(name, &e) && e.api == WS_LEDGER_RUNTIME;
}

static int find_symbols(struct elf_scan *s)
{
    struct ws_elf_symbols syms;
    int r = 0;
    if (!ws_elf_symbols(s->e, SHT_SYMTAB, &syms))
        return 0;
    for (uint64_t i = 0; i < syms.n && !r; i++) {
        const Elf64_Sym *y = &syms.v[i];
        const char *name = ws_elf_symbol_name(&syms, y);
        if (!name || y->st_shndx == SHN_UNDEF || ELF64_ST_TYPE(y->st_info) != STT_FUNC ||
            y->st_value + y->st_size < y->st_value)
            continue;
        struct function f = {y->st_value, y->st_value + y->st_size, name, false, false};
        f.is_entry = is_entry(name);
        f.is_runtime = f.is_entry || !strncmp(name, "libcudart_static_", 17);
        r = add_function(s, &f);
    }
    return r;
}

/* The functions of a runtime without symbols. What lies between its entry points is the runtime's
 * too. */
static int find_stripped(struct elf_scan *s)
{
    struct ws_static_runtime rt;
    struct ws_static_function f;
    if (!ws_static_runtime_find(s->e, &rt))
        return 0;
    int r = add_function(s, &(struct function){rt.address, rt.address, "", false, true});
    for (size_t i = 0; !r && ws_static_runtime_next(&rt, &i, &f);)
        r = add_function(s,
                         &(struct function){f.address, f.address, f.name, is_entry(f.name), true});
    if (!s->has_runtime)
        return r;
    qsort(s->functions, s->n_functions, sizeof(*s->functions), by_address);
    for (size_t i = 0; i < s->n_functions; i++)
        s->functions[i].to =
            i + 1 < s->n_functions ? s->functions[i + 1].from : rt.address + rt.bytes;
    return r;
}

static int find_functions(struct elf_scan *s)
{
    int r = find_symbols(s);
    if (!r && !s->n_functions && ws_elf_section(s->e, ".nvFatBinSegment"))
        r = find_stripped(s);
    if (s->n_functions)
        qsort(s->functions, s->n_functions, sizeof(*s->functions), by_address);
    return r;
}

/* The function that begins at @va, or that holds it; NULL if none. */
static const struct function *function_at(const struct elf_scan *s, uint64_t va, bool begins)
{
    size_t lo = 0, hi = s->n_functions;
    while (lo < hi) { /* the first with from > va, or from >= va */
        size_t mid = lo + (hi - lo) / 2;
        if (begins ? s->functions[mid].from < va : s->functions[mid].from <= va)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (begins)
        return lo < s->n_functions && s->functions[lo].from == va ? &s->functions[lo] : NULL;
    return lo && va < s->functions[lo - 1].to ? &s->functions[lo - 1] : NULL;
}

/* A string of read-only data at @va, or NULL. */
static const char *string_at(const struct elf_scan *s, uint64_t va)
{
    for (uint32_t i = 0; i < s->e->n_sections; i++) {
        const Elf64_Shdr *h = &s->e->sections[i];
        if (h->sh_type != SHT_PROGBITS || !(h->sh_flags & SHF_ALLOC) ||
            (h->sh_flags & (SHF_EXECINSTR | SHF_WRITE)) || va < h->sh_addr ||
            va - h->sh_addr >= h->sh_size)
            continue;
        const char *p = ws_elf_contents(s->e, h, 1);
        uint64_t at = va - h->sh_addr;
        return p && memchr(p + at, 0, h->sh_size - at) ? p + at : NULL;
    }
    return NULL;
}

static bool is_name(const char *p)
{
    return (p[0] == 'c' && p[1] == 'u') || !strncmp(p, "__cuda", 6);
}

/* The program's own code refers to @va. */
static void refer(struct elf_scan *s, uint64_t va, bool is_code)
{
    struct ws_ledger_entry e;
    const struct function *f = function_at(s, va, true);
    if (f && f->is_entry && ws_ledger_find(f->name, &e)) {
        add_entry(s, &e, false);
    } else if (!f && !is_code) {
        const char *name = string_at(s, va);
        if (name && is_name(name) && ws_ledger_find_asked(name, &e))
            add_entry(s, &e, true);
    }
}

static void scan_code(struct elf_scan *s, const uint8_t *p, uint64_t bytes, uint64_t va)
{
    bool fixed = ((const Elf64_Ehdr *)(const void *)s->e->data)->e_type == ET_EXEC;
    for (uint64_t i = 0; i + 7 <= bytes; i++) {
        unsigned skip = 0; /* bytes of the instruction before its operand */
        bool is_code = false, absolute = false;
        if (p[i] == 0xe8 || p[i] == 0xe9) { /* call, jmp */
            skip = 1;
            is_code = true;
        } else if (p[i] == 0x0f && (p[i + 1] & 0xf0) == 0x80) { /* jcc */
            skip = 2;
            is_code = true;
        } else if ((p[i] & 0xf8) == 0x48 && p[i + 1] == 0x8d &&
                   (p[i + 2] & 0xc7) == 0x05) { /* lea */
            skip = 3;
        } else if (fixed && (p[i] & 0xf8) == 0xb8) { /* mov $imm32 */
            skip = 1;
            absolute = true;
        } else if (fixed && (p[i] & 0xf8) == 0x48 && p[i + 1] == 0xc7 &&
                   (p[i + 2] & 0xf8) == 0xc0) {
            skip = 3;
            absolute = true;
        }
        if (!skip)
            continue;
        int32_t operand;
        memcpy(&operand, p + i + skip, sizeof(operand));
        uint64_t to = absolute ? (uint32_t)operand : va + i + skip + 4 + (uint64_t)(int64_t)operand;
        const struct function *in = NULL;
        if (!function_at(s, to, true) && is_code)
            continue;
        in = function_at(s, va + i, false);
        if (!in || !in->is_runtime)
            refer(s, to, is_code);
    }
}

/* ---- data ---- */
static bool is_data(const Elf64_Shdr *h)
{
    return h->sh_type == SHT_PROGBITS && (h->sh_flags & SHF_ALLOC) &&
           !(h->sh_flags & SHF_EXECINSTR);
}

static void scan_strings(struct elf_scan *s, const char *p, uint64_t bytes)
{
    struct ws_ledger_entry e;
    for (const char *end = p + bytes, *next; p < end; p = next + 1) {
        next = memchr(p, 0, (size_t)(end - p));
        if (!next)
            return;
        if (next - p > 4 && next - p < 80 && is_name(p) && ws_ledger_find_asked(p, &e))
            add_entry(s, &e, true);
    }
}

/* PTX that a program holds as text, to be compiled at run time. What does not parse may be a
 * template: left alone. */
static int scan_ptx(struct elf_scan *s, struct ws_cover_code *code, const char *p, uint64_t bytes)
{
    static const char word[] = ".version ";
    const char *start = p, *end = p + bytes;
    while ((p = memmem(p, (size_t)(end - p), word, sizeof(word) - 1))) {
        const char *from = p, *to = memchr(p, 0, (size_t)(end - p));
        while (from > start && from[-1])
            from--;
        if (!to)
            return 0;
        if (ws_cover_is_ptx(from, (size_t)(to - from))) {
            s->uses_cuda = true;
            int r = ws_cover_image(s->c, code, s->object, from, (size_t)(to - from), s->sm, NULL);
            if (r)
                return WS_MIN(r, 0);
        }
        p = to;
    }
    return 0;
}

/* Fatbins back to back, each on a multiple of 8. */
static int scan_fatbins(struct elf_scan *s, struct ws_cover_code *code, const uint8_t *p,
                        uint64_t bytes)
{
    enum { HEADER = 16 };
    for (uint64_t at = 0; bytes - at >= HEADER;) {
        uint32_t magic;
        uint16_t header;
        uint64_t body;
        if (s->c->progress)
            s->c->progress("reading device code", bytes, at);
        memcpy(&magic, p + at, 4);
        memcpy(&header, p + at + 6, 2);
        memcpy(&body, p + at + 8, 8);
        if (!magic) { /* padding */
            at += 8;
            continue;
        }
        if (magic != 0xba55ed50 || header < HEADER || header > bytes - at ||
            body > bytes - at - header) {
            ws_diags_add(s->diags, s->object, 0, 0,
                         "a fatbin in it is damaged (at byte %llu of its section)",
                         (unsigned long long)at);
            return 1;
        }
        int r = ws_cover_image(s->c, code, s->object, p + at, header + body, s->sm, s->diags);
        if (r)
            return r;
        at = WS_MIN(WS_ALIGN_UP(at + header + body, (uint64_t)8), bytes);
    }
    return 0;
}

static int scan_section(struct elf_scan *s, struct ws_cover_code *code, const Elf64_Shdr *h)
{
    const char *name = ws_elf_section_name(s->e, h);
    const uint8_t *p = ws_elf_contents(s->e, h, 1);
    int r = 0;
    if (!p || !name)
        return 0;
    if (!strcmp(name, ".nv_fatbin") || !strcmp(name, "__nv_relfatbin")) {
        s->uses_cuda = true;
        return scan_fatbins(s, code, p, h->sh_size);
    }
    if (h->sh_type == SHT_PROGBITS && (h->sh_flags & SHF_EXECINSTR) && s->has_runtime)
        scan_code(s, p, h->sh_size, h->sh_addr);
    if (is_data(h)) {
        r = scan_ptx(s, code, (const char *)p, h->sh_size);
        if (!s->has_runtime)
            scan_strings(s, (const char *)p, h->sh_size);
    }
    return r;
}

/* Registers device code, but with a runtime that can't be found: `wattshare run` can't redirect
 * it. */
static void check_stripped(struct elf_scan *s)
{
    struct ws_elf_symbols syms;
    if (s->has_runtime || !ws_elf_section(s->e, ".nvFatBinSegment"))
        return;
    if (ws_elf_symbols(s->e, SHT_DYNSYM, &syms))
        for (uint64_t i = 0; i < syms.n; i++) {
            const char *name = ws_elf_symbol_name(&syms, &syms.v[i]);
            if (name && !strcmp(name, "__cudaRegisterFatBinary"))
                return;
        }
    ws_cover_add(s->c, &(struct ws_cover_item){.kind = WS_COVER_IMAGE,
                                               .state = WS_LEDGER_MISSING,
                                               .name = "CUDA runtime without symbols",
                                               .object = (char *)s->object,
                                               .note = "stripped, and of a version that is not "
                                                       "known, so its entry points can't be "
                                                       "found nor redirected: build it with "
                                                       "-cudart shared, or with a CUDA runtime "
                                                       "of 12.9 to 13.5, or don't strip it"});
}

int ws_cover_elf(struct ws_cover *c, const char *object, const struct ws_elf *e,
                 struct ws_cover_code *code, uint32_t sm, struct ws_diags *diags)
{
    struct elf_scan s = {.c = c, .object = object, .e = e, .diags = diags, .sm = sm};
    int r = find_functions(&s);
    if (!r) {
        scan_dynamic(&s);
        check_stripped(&s);
    }
    for (uint32_t i = 0; i < e->n_sections && !r; i++)
        r = scan_section(&s, code, &e->sections[i]);
    c->n_uses += s.uses_cuda;
    free(s.functions);
    return r;
}
