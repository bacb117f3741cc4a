// SPDX-License-Identifier: Apache-2.0
/* How the toolkit is recognised. A program with the shared runtime names the runtime's file, whose
 * name has the version ("libcudart.so.12"), among the files that it needs. A program with the
 * static runtime has the runtime's symbols; before CUDA 13 those include functions that CUDA 13 no
 * longer has, and before CUDA 12 they lack some that came with it. redirect.c has the list of
 * loaded objects. */
#include "frontend/interpose/toolkit.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/elf.h"
#include "frontend/interpose/redirect.h"

static const char runtime[] = "libcudart.so.";
static atomic_int opened;

static int number(const char *s)
{
    int n = 0;
    for (; *s >= '0' && *s <= '9' && n < 1000; s++)
        n = n * 10 + (*s - '0');
    return n;
}

int ws_toolkit_of_name(const char *name)
{
    const char *slash = strrchr(name, '/');
    name = slash ? slash + 1 : name;
    return strncmp(name, runtime, sizeof(runtime) - 1) ? 0 : number(name + sizeof(runtime) - 1);
}

int ws_toolkit_of_file(const void *image, size_t bytes)
{
    static const char removed[] = "\0cudaThreadSynchronize", kept[] = "\0cudaMalloc",
                      added[] = "\0cudaGetDeviceProperties_v2";
    struct ws_elf e;
    struct ws_elf_symbols s;
    if (ws_elf_init(&e, image, bytes))
        return 0;
    if (ws_elf_symbols(&e, SHT_DYNSYM, &s)) {
        const char *at = memmem(s.names, s.names_bytes, runtime, sizeof(runtime) - 1);
        if (at && memchr(at, '\0', s.names_bytes - (size_t)(at - s.names)))
            return number(at + sizeof(runtime) - 1);
    }
    if (!ws_elf_symbols(&e, SHT_SYMTAB, &s) ||
        !memmem(s.names, s.names_bytes, kept, sizeof(kept))) /* with both zeros */
        return 0;
    if (!memmem(s.names, s.names_bytes, removed, sizeof(removed)))
        return 13;
    return memmem(s.names, s.names_bytes, added, sizeof(added)) ? 12 : 11;
}

void ws_toolkit_opened(const char *name)
{
    int n = ws_toolkit_of_name(name), old = atomic_load(&opened);
    while (n > old && !atomic_compare_exchange_weak(&opened, &old, n))
        ;
}

bool ws_toolkit_before(const void *address, int version)
{
    int newest, own = ws_redirect_toolkit(address, &newest), by_name = atomic_load(&opened);
    if (!own)
        own = newest > by_name ? newest : by_name;
    return own && own < version;
}
