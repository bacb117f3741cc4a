// SPDX-License-Identifier: Apache-2.0
// Uses printf() on the device with every conversion of the CUDA C++ Programming Guide, through a
// pipe of its own. Fails if a text differs from that of the C library.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>
#include <cuda_runtime.h>

#define LINES(P)                                                                                   \
    P("plain %% text\n");                                                                          \
    P("%d %i %u %o %x %X %c\n", -5, 6, 7u, 8, 255, 255, 'q');                                      \
    P("%5d|%-5d|%05d|%+d|% d|%#x|%#o\n", 42, 42, 42, 42, 42, 42, 42);                              \
    P("%*d|%-*d|%.*f\n", 7, 12, 7, 12, 3, 2.5);                                                    \
    P("%lld %llu %llx %ld %lu\n", -1234567890123LL, 12345678901234ULL, 0xfeedfacecafeULL, -9L,     \
      9UL);                                                                                        \
    P("%f %e %E %g %G %a\n", 1.5, 12345.678, 12345.678, 1e-10, 1e20, 1.0);                         \
    P("%.3f|%10.2f|%-10.2f|%+.1e\n", 3.14159, 2.71828, 2.71828, 1234.5);                           \
    P("%f %f %F\n", 1.0 / zero, -1.0 / zero, 0.5);                                                 \
    P("%s|%10s|%-10s|%.2s\n", "abc", "abc", "abc", "abc");                                         \
    P("%hd %hhd %hu\n", (short)-3, (signed char)-4, (unsigned short)65535);                        \
    P("%d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d " \
      "%d %d\n",                                                                                   \
      1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25,   \
      26, 27, 28, 29, 30, 31, 32);

__global__ void lines(double zero){LINES(printf)} __global__ void values(int *ret)
{
    char local[8] = {'l', 'o', 'c', char('a' + threadIdx.x), 0};
    ret[0] = printf("%s\n", local);
    ret[1] = printf("none\n");
    ret[2] = printf("%d %d %d\n", 1, 2, 3);
}

static char want[8192];
template <class... A> static void keep(const char *format, A... a)
{
    snprintf(want + strlen(want), sizeof(want) - strlen(want), format, a...);
}

int main()
{
    double zero = 0;
    LINES(keep)
    strcat(want, "loca\nnone\n1 2 3\n");
    int *d, ret[3] = {9, 9, 9}, pipes[2];
    cudaMalloc(&d, sizeof(ret));
    fflush(stdout);
    int out = dup(1);
    if (pipe(pipes) || dup2(pipes[1], 1) < 0)
        return 2;
    lines<<<1, 1>>>(zero);
    values<<<1, 1>>>(d);
    cudaError_t e = cudaMemcpy(ret, d, sizeof(ret), cudaMemcpyDeviceToHost);
    if (e == cudaSuccess)
        e = cudaDeviceSynchronize();
    fflush(stdout);
    dup2(out, 1);
    close(pipes[1]);
    static char got[8192];
    size_t n = 0;
    for (ssize_t r; n < sizeof(got) - 1 && (r = read(pipes[0], got + n, sizeof(got) - 1 - n)) > 0;)
        n += r;
    if (e != cudaSuccess || strcmp(got, want) != 0 || ret[0] != 1 || ret[1] != 0 || ret[2] != 3) {
        printf("FAIL conversions: %s, returned %d %d %d\n--- got\n%s--- wanted\n%s",
               cudaGetErrorString(e), ret[0], ret[1], ret[2], got, want);
        return 1;
    }
    printf("PASS conversions\n");
    return 0;
}
