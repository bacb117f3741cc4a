// SPDX-License-Identifier: Apache-2.0
/* Which library a compiler's function is looked up in. A program usually has one of each loaded; if
 * there are several, the last one that the program asked counts. A program that is linked with one
 * calls us by name, and the original is the next in the search order. */
#include "frontend/compilers/compilers.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

#include "base/macros.h"
#include "frontend/interpose/entrypoints.h"
#include "frontend/facade.h"

static const char *const prefixes[] = {"nvrtc", "nvJitLink"};
static void *_Atomic libraries[WS_ARRAY_SIZE(prefixes)];

static int compiler_of(const char *name)
{
    while (*name == '_')
        name++;
    for (size_t i = 0; i < WS_ARRAY_SIZE(prefixes); i++)
        if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
            return (int)i;
    return -1;
}

void *ws_compiler_stand_in(void *handle, const char *name, void *found)
{
    int i = compiler_of(name);
    void *ours = i >= 0 ? ws_entrypoint_find(name) : NULL;
    if (!found || !ours || found == ours)
        return NULL;
    if (handle != RTLD_DEFAULT && handle != RTLD_NEXT)
        atomic_store(&libraries[i], handle);
    return ours;
}

void *ws_dlsym(void)
{
    /* No table of versions: this runs before AddressSanitizer can have its accesses checked. */
    void *fn = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
    return fn ? fn : dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
}

void *ws_compiler_function(const char *name)
{
    void *(*real)(void *, const char *);
    *(void **)&real = ws_dlsym();
    int i = compiler_of(name);
    void *library = i >= 0 ? atomic_load(&libraries[i]) : NULL;
    void *fn = library && real ? real(library, name) : NULL;
    if (!fn)
        fn = dlsym(RTLD_NEXT, name);
    if (!fn)
        ws_session_unsupported(name);
    return fn;
}

/* NVIDIA's libraries ask the driver for tables that no manual describes, and go on without them.
 * There are none here. */
WS_DRV_API(cuGetExportTable, (const void **table, const void *id))
{
    return table && id ? CUDA_NOT_SUPPORTED : CUDA_INVALID_VALUE;
}
