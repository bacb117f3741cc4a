// SPDX-License-Identifier: Apache-2.0
/* Programs that look to the redirect as if nvcc had linked the CUDA runtime into them, made without
 * nvcc: the runtime's functions are local symbols. Should one of these be reached, the redirect
 * failed. */
#include <stdio.h>
#include <unistd.h>

#define NATIVE(ret, name, args)                                                                    \
    __attribute__((visibility("hidden"), noinline, used, aligned(16))) ret name args               \
    {                                                                                              \
        static const char text[] = "NATIVE " #name "\n";                                           \
        if (write(1, text, sizeof(text) - 1) < 0)                                                  \
            _exit(2);                                                                              \
        return 0;                                                                                  \
    }
void **__cudaRegisterFatBinary(void *);
int cudaMalloc(void **, unsigned long), cudaGetDeviceCount(int *), cudaGetLastError(void);
NATIVE(void **, __cudaRegisterFatBinary, (void *image))
NATIVE(int, cudaMalloc, (void **ret, unsigned long bytes))
NATIVE(int, cudaGetDeviceCount, (int *ret))
NATIVE(int, cudaGetLastError, (void))

static const struct {
    unsigned magic, version;
    const void *data, *other;
} wrapper __attribute__((section(".nvFatBinSegment"), used)) = {0x466243b1, 1, 0, 0};

/* As nvcc's start-up code does, before main. */
__attribute__((constructor)) static void register_all(void)
{
    __cudaRegisterFatBinary((void *)&wrapper);
}
