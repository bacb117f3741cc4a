// SPDX-License-Identifier: Apache-2.0
/* Addresses are only noted when an allocation is made. They become names when something is said of
 * the allocation, which is rare: dladdr() knows the file, and the file's symbol table (the dynamic
 * one, where it is stripped) the function, also one that is not exported. */
#include "frontend/session/callers.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/elf.h"
#include "base/macros.h"

enum { OWN_MAX = 12 }; /* frames of this library above the program's */

static bool is_of(const void *address, const Dl_info *file)
{
    Dl_info info;
    return dladdr(address, &info) && info.dli_fbase == file->dli_fbase;
}

void ws_callers_take(struct ws_callers *ret)
{
    void *at[WS_CALLERS_MAX + OWN_MAX];
    Dl_info own;
    int n = backtrace(at, WS_ARRAY_SIZE(at)), first = 0;
    bool known = dladdr((void *)(uintptr_t)ws_callers_take, &own) != 0;
    /* A sanitizer's backtrace() stands on the stack, too. */
    while (known && first < n && !is_of(at[first], &own))
        first++;
    while (known && first < n && is_of(at[first], &own))
        first++;
    ret->n = WS_MIN(n - first, WS_CALLERS_MAX);
    memcpy(ret->at, at + first, (size_t)ret->n * sizeof(at[0]));
}

/* Of the C++ library, where the program has it. */
char *__cxa_demangle(const char *name, char *buf, size_t *size, int *status) __attribute__((weak));

const char *ws_callers_demangle(const char *name, char *buf, size_t size)
{
    int status;
    bool mangled = !strncmp(name, "_Z", 2) && __cxa_demangle;
    char *plain = mangled ? __cxa_demangle(name, NULL, NULL, &status) : NULL;
    snprintf(buf, size, "%s", plain ? plain : name);
    free(plain);
    return buf;
}

struct file {
    void *map;
    size_t bytes;
};

static bool file_open(struct file *f, const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool ok = fd >= 0 && !fstat(fd, &st) && st.st_size > 0;
    f->bytes = ok ? (size_t)st.st_size : 0;
    f->map = ok ? mmap(NULL, f->bytes, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    if (fd >= 0)
        close(fd);
    return f->map != MAP_FAILED;
}

/* The function of @e that holds @at, an address as the file has it. NULL: the file names none. */
static const char *function_at(const struct ws_elf *e, uint64_t at, uint64_t *ret_in)
{
    static const uint32_t tables[] = {SHT_SYMTAB, SHT_DYNSYM};
    struct ws_elf_symbols s;
    for (size_t k = 0; k < WS_ARRAY_SIZE(tables); k++)
        for (uint64_t i = 0; ws_elf_symbols(e, tables[k], &s) && i < s.n; i++) {
            const Elf64_Sym *sym = &s.v[i];
            if (ELF64_ST_TYPE(sym->st_info) != STT_FUNC || at < sym->st_value ||
                at - sym->st_value >= sym->st_size)
                continue;
            *ret_in = at - sym->st_value;
            return ws_elf_symbol_name(&s, sym);
        }
    return NULL;
}

static void print_one(uint64_t at, FILE *to, const char *indent)
{
    Dl_info info;
    struct file f;
    struct ws_elf e;
    char name[512] = "?";
    uint64_t in = 0;
    at--; /* of the call itself, not of what comes behind it */
    if (!dladdr((void *)(uintptr_t)at, &info) || !info.dli_fname) {
        fprintf(to, "%s0x%llx\n", indent, (unsigned long long)at);
        return;
    }
    uint64_t offset = at - (uintptr_t)info.dli_fbase;
    if (file_open(&f, info.dli_fname)) {
        if (!ws_elf_init(&e, f.map, f.bytes)) {
            if (((const Elf64_Ehdr *)f.map)->e_type == ET_EXEC) /* its addresses are not moved */
                offset = at;
            const char *symbol = function_at(&e, offset, &in);
            if (symbol)
                ws_callers_demangle(symbol, name, sizeof(name));
        }
        munmap(f.map, f.bytes);
    }
    fprintf(to, "%s%s+0x%llx in %s+0x%llx\n", indent, name, (unsigned long long)in, info.dli_fname,
            (unsigned long long)offset);
}

void ws_callers_print(const struct ws_callers *c, FILE *to, const char *indent)
{
    for (int i = 0; i < c->n; i++)
        print_one((uintptr_t)c->at[i], to, indent);
}
