// SPDX-License-Identifier: Apache-2.0
#include "tests/process/lookalike.h"

#include <dlfcn.h>

/* lookalike_program [LIBRARY]: makes a CUDA call, then loads LIBRARY and has it make one. */
int main(int argc, char **argv)
{
    int n = -1;
    printf("program %d\n", cudaGetDeviceCount(&n));
    if (argc > 1) {
        void *h = dlopen(argv[1], RTLD_NOW);
        int (*call)(void) = h ? (int (*)(void))dlsym(h, "library_call") : NULL;
        int (*error)(void) = h ? (int (*)(void))dlsym(h, "library_error") : NULL;
        if (!call || !error) {
            printf("dlopen: %s\n", dlerror());
            return 3;
        }
        printf("error before the library's call %d\n", error());
        printf("library %d\n", call());
        int of_program = cudaGetLastError(), of_library = error();
        printf("errors afterwards %d %d\n", of_program, of_library);
        printf("errors at last %d\n", cudaGetLastError() + error());
        dlclose(h);
        h = dlopen(argv[1], RTLD_NOW); /* perhaps at the same address */
        call = (int (*)(void))dlsym(h, "library_call");
        printf("library again %d\n", call());
    }
    return 0;
}
