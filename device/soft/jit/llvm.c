// SPDX-License-Identifier: Apache-2.0
#include "device/soft/jit/llvm.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/macros.h"
#include "device/soft/jit/code.h"

struct ws_llvm ws_llvm;
static bool opened;
static _Atomic bool missing; /* it was looked for, and is not there */
static struct {
    const uint8_t *at;
    size_t bytes;
} build_id;

static bool look_up(void *lib)
{
    static const struct {
        const char *name;
        size_t at;
    } all[] = {
#define X(ret, name, params) {"LLVM" #name, offsetof(struct ws_llvm, name)},
        WS_LLVM_FUNCTIONS(X)
#undef X
    };
    for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++) {
        void *f = dlsym(lib, all[k].name);
        if (!f)
            return false;
        memcpy((char *)&ws_llvm + all[k].at, &f, sizeof(f));
    }
    return true;
}

/* ---- the build id ---- */
static void read_notes(const uint8_t *at, size_t bytes)
{
    ElfW(Nhdr) n;
    for (; bytes >= sizeof(n);) {
        memcpy(&n, at, sizeof(n));
        size_t name = WS_ALIGN_UP((size_t)n.n_namesz, (size_t)4);
        size_t text = WS_ALIGN_UP((size_t)n.n_descsz, (size_t)4);
        if (name > bytes - sizeof(n) || text > bytes - sizeof(n) - name)
            return;
        if (n.n_type == NT_GNU_BUILD_ID && n.n_namesz == sizeof(ELF_NOTE_GNU) &&
            memcmp(at + sizeof(n), ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) == 0) {
            build_id.at = at + sizeof(n) + name;
            build_id.bytes = n.n_descsz;
        }
        at += sizeof(n) + name + text;
        bytes -= sizeof(n) + name + text;
    }
}

/* Called for each library there is. */
static int look_for_notes(struct dl_phdr_info *i, size_t bytes, void *of)
{
    (void)bytes;
    bool is_it = false;
    for (int k = 0; k < i->dlpi_phnum; k++) {
        const ElfW(Phdr) *p = &i->dlpi_phdr[k];
        is_it |= p->p_type == PT_LOAD && (uintptr_t)of - (i->dlpi_addr + p->p_vaddr) < p->p_memsz;
    }
    for (int k = 0; is_it && k < i->dlpi_phnum; k++) {
        const ElfW(Phdr) *p = &i->dlpi_phdr[k];
        if (p->p_type == PT_NOTE)
            read_notes((const uint8_t *)(i->dlpi_addr + p->p_vaddr), p->p_memsz);
    }
    return is_it;
}

size_t ws_llvm_build_id(const uint8_t **ret)
{
    *ret = build_id.at;
    return build_id.bytes;
}

/* The library is never closed: compiled code and its tables live as long as the process. */
static void open_once(void)
{
    static const char *const names[] = {"libLLVM-16.so.1", "libLLVM-15.so.1", "libLLVM-14.so.1"};
    for (size_t k = 0; k < sizeof(names) / sizeof(names[0]) && !opened; k++) {
        void *lib = dlopen(names[k], RTLD_NOW | RTLD_LOCAL);
        if (!lib)
            continue;
        opened = look_up(lib);
        if (!opened)
            dlclose(lib);
    }
    if (!opened) {
        atomic_store(&missing, true);
        return;
    }
    void *inside;
    memcpy(&inside, &ws_llvm.ContextCreate, sizeof(inside));
    dl_iterate_phdr(look_for_notes, inside);
    ws_llvm.InstallFatalErrorHandler(ws_jit_failed);
    ws_llvm.InitializeX86TargetInfo();
    ws_llvm.InitializeX86Target();
    ws_llvm.InitializeX86TargetMC();
    ws_llvm.InitializeX86AsmPrinter();
}

bool ws_llvm_open(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_once);
    return opened;
}

bool ws_llvm_is_missing(void)
{
    return atomic_load_explicit(&missing, memory_order_relaxed);
}
