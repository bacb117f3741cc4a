// SPDX-License-Identifier: Apache-2.0
// Small kernels with known answers: shuffles, votes and matches of part of a warp, counted and
// named barriers, calls through pointers, recursion, and a heap that runs out. Fails if an answer
// is wrong.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
static int failed;
static void expect(const char *what, bool ok)
{
    if (!ok)
        printf("FAIL warpedges: %s\n", what), failed = 1;
}
__global__ void warpops(int *o)
{
    int l = threadIdx.x;
    unsigned am;
    if (l % 3 == 0) {
        am = __activemask();
        o[l] = am;
    } else
        o[l] = __match_any_sync(0xb6db6db6u | 0, l & 1);
    int p;
    o[32 + l] = __match_all_sync(0xffffffff, 5, &p) + p;
    o[64 + l] = __shfl_sync(0xffffffff, l * 10, (l + 1) % 8, 8);
    o[96 + l] = __shfl_down_sync(0xffffffff, l, 5, 16);
    o[128 + l] = __ballot_sync(0xffffffff, l > 20);
    int r;
    asm volatile("{.reg .pred p; setp.gt.s32 p,%1,3; bar.red.popc.u32 %0,0,p;}" : "=r"(r) : "r"(l));
    o[160 + l] = r;
    asm volatile("bar.sync 3, 32;");
    o[192 + l] = __shfl_sync(0xffffffff, l, l + 40);
}
__global__ void named(int *o)
{ // producers arrive at 1 and free their places at 2; the consumers, who come first, sync at 1 and arrive at 2
    __shared__ int s[64];
    int sum = 0;
    for (int r = 0; r < 10; r++) {
        if (threadIdx.x >= 64) {
            int v = threadIdx.x;
            for (int k = 0; k < 100 * (r % 3); k++) // now early, now late
                v = v * 5 + 1;
            if (r > 0)
                asm volatile("bar.sync 2, 128;");
            s[threadIdx.x - 64] = (threadIdx.x - 64) * 3 + r + (v == 12345);
            __threadfence_block();
            asm volatile("bar.arrive 1, 128;");
        } else {
            asm volatile("bar.sync 1, 128;");
            sum = sum * 3 + s[63 - threadIdx.x];
            __threadfence_block();
            if (r < 9)
                asm volatile("bar.arrive 2, 128;");
        }
    }
    if (threadIdx.x < 64)
        o[threadIdx.x] = sum;
}
__global__ void votes(int *o)
{
    int t = threadIdx.x;
    o[t] = __syncthreads_and(t != 50) * 1000 + 1 + __syncthreads_and(t >= 0) * 2 +
           __syncthreads_or(t == 77) * 4 + __syncthreads_or(t > 96) * 8 +
           __syncthreads_count(t % 5 == 0) * 16;
}
__device__ int deep(int n, volatile int *p)
{
    volatile int a[64];
    a[n & 63] = n;
    if (n == 0)
        return a[0];
    return deep(n - 1, p) + a[n & 63];
}
__global__ void rec(int n, int *o)
{
    int s = 0;
    for (int k = 0; k < 5000; k++) // what a call took is there again for the next
        s += deep((n + k) % 7, o);
    o[0] = s;
    o[1] = deep(n, o);
}
__global__ void big(int *o)
{
    void *p = malloc(100u << 20);
    o[0] = p == nullptr;
    free(p);
    int n = 0;
    void *q;
    void *last = 0;
    while ((q = malloc(1 << 16))) {
        *(void **)q = last;
        last = q;
        n++;
    }
    o[1] = n;
    while (last) {
        void *x = *(void **)last;
        free(last);
        last = x;
    }
    q = malloc(1 << 20);
    o[2] = q != 0;
}
__global__ void sw(int *o)
{
    int l = threadIdx.x;
    int v;
    switch (l) {
    case 0:
        v = 5;
        break;
    case 1:
        v = l * 7;
        break;
    case 2:
        v = 11;
        break;
    case 3:
        v = o[3] + 1;
        break;
    case 4:
        v = __popc(l);
        break;
    case 5:
        v = 2;
        break;
    case 6:
        v = l << 3;
        break;
    default:
        v = -1;
    }
    o[l] = v;
}
typedef int (*fn)(int);
__device__ int f0(int x)
{
    return x + 1;
}
__device__ int f1(int x)
{
    return x * 2;
}
__device__ int f2(int x)
{
    return x * x;
}
__device__ fn table[3] = {f0, f1, f2};
__global__ void ind(int *o)
{
    o[threadIdx.x] = table[threadIdx.x % 3](threadIdx.x);
}
int main()
{
    int *d;
    int h[1024];
    cudaMalloc(&d, 4096);
    cudaMemset(d, 0, 4096);
    auto get = [&] {
        cudaError_t e = cudaDeviceSynchronize();
        if (e) {
            printf("FAIL warpedges: %s\n", cudaGetErrorString(e));
            exit(1);
        }
        cudaMemcpy(h, d, 4096, cudaMemcpyDeviceToHost);
    };
    warpops<<<1, 32>>>(d);
    get();
    bool ok = true;
    for (int l = 0; l < 32; l++) {
        if (l % 3 == 0)
            ok &= (unsigned)h[l] == 0x49249249u;
        else {
            unsigned m = 0;
            for (int k = 0; k < 32; k++)
                if (k % 3 && (k & 1) == (l & 1))
                    m |= 1u << k;
            ok &= (unsigned)h[l] == m;
        }
    }
    expect("active/match", ok);
    ok = true;
    for (int l = 0; l < 32; l++) {
        ok &= h[32 + l] == 0;
        ok &= h[64 + l] == ((l / 8 * 8) + (l + 1) % 8) * 10;
        ok &= h[96 + l] == ((l % 16 + 5 < 16) ? l + 5 : l);
        ok &= (unsigned)h[128 + l] == 0xffe00000u;
        ok &= h[160 + l] == 28;
        ok &= h[192 + l] == (l + 8) % 32;
    }
    expect("shfl/ballot/bar", ok);
    named<<<1, 128>>>(d);
    get();
    ok = true;
    for (int i = 0; i < 64; i++) {
        int sum = 0;
        for (int r = 0; r < 10; r++)
            sum = sum * 3 + (63 - i) * 3 + r;
        ok &= h[i] == sum;
    }
    expect("named", ok);
    votes<<<1, 96>>>(d);
    get();
    ok = true;
    for (int i = 0; i < 96; i++)
        ok &= h[i] == 1 + 2 + 4 + 20 * 16;
    expect("votes of the block", ok);
    cudaMemset(d, 0, 4096);
    sw<<<1, 32>>>(d);
    get();
    ok = h[0] == 5 && h[1] == 7 && h[2] == 11 && h[3] == 1 && h[4] == 1 && h[5] == 2 &&
         h[6] == 48 && h[7] == -1;
    expect("switch", ok);
    ind<<<1, 32>>>(d);
    get();
    ok = true;
    for (int i = 0; i < 32; i++)
        ok &= h[i] == (i % 3 == 0 ? i + 1 : i % 3 == 1 ? i * 2 : i * i);
    expect("indirect", ok);
    rec<<<1, 1>>>(3, d);
    get();
    int sum = 0;
    for (int k = 0; k < 5000; k++)
        sum += (3 + k) % 7 * ((3 + k) % 7 + 1) / 2;
    expect("rec", h[0] == sum && h[1] == 6);
    big<<<1, 1>>>(d);
    get();
    expect("heap", h[0] == 1 && h[1] > 60 && h[1] <= 128 && h[2] == 1);
    if (!failed)
        printf("PASS warpedges\n");
    return failed;
}
