// SPDX-License-Identifier: Apache-2.0
/* Opens a library that only its own RUNPATH ($ORIGIN) finds: the wrapped dlopen() must not hide who calls. */
#include <dlfcn.h>
#include <stdio.h>

int main(void)
{
    void *h = dlopen("lookalike_library.so", RTLD_NOW);
    puts(h ? "found" : dlerror());
    return h == NULL;
}
