// SPDX-License-Identifier: Apache-2.0
#include "device/soft/jit/llvm.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

struct ws_llvm ws_llvm;
static bool opened;

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
    if (!opened)
        return;
    ws_llvm.LinkInMCJIT();
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
