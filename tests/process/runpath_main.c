// SPDX-License-Identifier: Apache-2.0
/* Opens a library that only this program's own RUNPATH ($ORIGIN) finds. Fails if the wrapped
 * dlopen() hides who calls it. */
#include <dlfcn.h>
#include <stdio.h>

int main(void)
{
    void *h = dlopen("lookalike_library.so", RTLD_NOW);
    puts(h ? "found" : dlerror());
    return h == NULL;
}
