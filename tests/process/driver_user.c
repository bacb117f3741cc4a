// SPDX-License-Identifier: Apache-2.0
/* Usage: driver_user [dlopen NAME | stranger LIBRARY]. Uses the CUDA driver by being linked with it
 * or by opening it. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int cuInit(unsigned);

int main(int argc, char **argv)
{
    int (*init)(unsigned) = cuInit;
    if (argc > 2 && !strcmp(argv[1], "dlopen")) {
        void *h = dlopen(argv[2], RTLD_NOW);
        init = h ? (int (*)(unsigned))dlsym(h, "cuInit") : NULL;
        if (!init) {
            printf("no cuInit in %s\n", argv[2]);
            return 1;
        }
    } else if (argc > 2) {
        void *h = dlopen(argv[2], RTLD_NOW);
        int (*open_driver)(void) = h ? (int (*)(void))dlsym(h, "library_opens_driver") : NULL;
        printf("stranger %d\n", open_driver ? open_driver() : -1);
        return 0;
    }
    printf("cuInit %s\n", init(0) == 0 ? "fine" : "fails");
    return 0;
}
