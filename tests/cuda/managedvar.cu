// SPDX-License-Identifier: Apache-2.0
/* Uses __managed__ variables: initial values, writes of the host seen by kernels and the other way
 * round, copies by symbol, the same on two devices. Fails if a value is wrong. */
#include <cstdio>
#include <cstring>

struct point {
    int x, y;
};
__managed__ int counter = 40;
__managed__ struct point points[100];
__managed__ double untouched[3] = {1.5, -2.5, 1e300};

__global__ void step(int by)
{
    int i = threadIdx.x;
    atomicAdd(&counter, by);
    points[i].y = 2 * points[i].x + i;
}

#define MUST(x)                                                                                    \
    do {                                                                                           \
        cudaError_t e_ = (x);                                                                      \
        if (e_ != cudaSuccess) {                                                                   \
            printf("FAIL managedvar: %s: %s\n", #x, cudaGetErrorString(e_));                       \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

static int wrong(const char *what, int got, int want)
{
    if (got != want)
        printf("FAIL managedvar: %s is %d, not %d\n", what, got, want);
    return got != want;
}

int main()
{
    int n_devices, expected = 40, copied = 0;
    if (wrong("first value", counter, 40) || untouched[2] != 1e300)
        return 1;
    MUST(cudaGetDeviceCount(&n_devices));
    for (int round = 0; round < 3; round++) {
        MUST(cudaSetDevice(round % n_devices));
        for (int i = 0; i < 100; i++)
            points[i].x = i * (round + 1);
        counter += 2;
        step<<<1, 100>>>(round + 1);
        MUST(cudaDeviceSynchronize());
        expected += 2 + 100 * (round + 1);
        if (wrong("counter", counter, expected))
            return 1;
        for (int i = 0; i < 100; i++)
            if (wrong("point", points[i].y, 2 * i * (round + 1) + i))
                return 1;
    }
    MUST(cudaMemcpyFromSymbol(&copied, counter, sizeof copied));
    if (wrong("copy by symbol", copied, expected))
        return 1;
    copied = 7;
    MUST(cudaMemcpyToSymbol(counter, &copied, sizeof copied));
    if (wrong("counter after a copy by symbol", counter, 7))
        return 1;
    struct cudaPointerAttributes a;
    MUST(cudaPointerGetAttributes(&a, &counter));
    if (wrong("kind of memory", a.type, cudaMemoryTypeManaged))
        return 1;
    if (untouched[0] != 1.5 || untouched[1] != -2.5 || untouched[2] != 1e300)
        return wrong("untouched", 0, 1);
    printf("PASS managedvar\n");
    return 0;
}
