// SPDX-License-Identifier: Apache-2.0
/* Takes device memory, says whether it got it, and keeps it until a file exists.
 *
 *     hold KIB FILE */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CALL(name, types, ...) (((int(*) types)dlsym(lib, name))(__VA_ARGS__))

int main(int argc, char **argv)
{
    void *lib = dlopen("libcuda.so.1", RTLD_NOW), *context;
    unsigned long long memory;
    int device;
    if (argc != 3 || !lib || CALL("cuInit", (unsigned), 0) ||
        CALL("cuDeviceGet", (int *, int), &device, 0) ||
        CALL("cuDevicePrimaryCtxRetain", (void **, int), &context, device) ||
        CALL("cuCtxSetCurrent", (void *), context)) {
        printf("hold: no GPU\n");
        return 1;
    }
    int r =
        CALL("cuMemAlloc_v2", (unsigned long long *, size_t), &memory, (size_t)atol(argv[1]) << 10);
    printf("%s\n", r == 2 ? "refused" : r ? "failed" : "held"); /* 2: CUDA_ERROR_OUT_OF_MEMORY */
    fflush(stdout);
    while (access(argv[2], F_OK))
        usleep(20000);
    return 0;
}
