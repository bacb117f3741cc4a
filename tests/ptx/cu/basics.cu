// SPDX-License-Identifier: Apache-2.0
// Arithmetic, half types, atomics, warp functions, math, printf, inline assembly, cooperative groups: for what the compiler emits.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cstdio>
#include <cassert>
namespace cg = cooperative_groups;
__constant__ float cf[64];
__constant__ int ci = 7;
__device__ double gd = 3.5;
__managed__ int mg[3];
__device__ volatile int flag;
template <class T> __global__ void red(T *in, T *out, int n)
{
    extern __shared__ char sm[];
    T *s = (T *)sm;
    auto b = cg::this_thread_block();
    auto w = cg::tiled_partition<32>(b);
    T v = 0;
    for (int i = b.group_index().x * b.size() + b.thread_rank(); i < n; i += gridDim.x * blockDim.x)
        v += in[i];
    s[threadIdx.x] = v;
    b.sync();
    v = cg::reduce(w, v, cg::plus<T>());
    if (w.thread_rank() == 0)
        atomicAdd(out, v);
    auto t4 = cg::tiled_partition<4>(w);
    v = t4.shfl_xor(v, 1);
    out[1] = v;
    auto l = cg::labeled_partition(w, (int)threadIdx.x & 3);
    out[2] = l.size();
    out[3] = cg::inclusive_scan(w, (int)v);
}
template __global__ void red<float>(float *, float *, int);
template __global__ void red<int>(int *, int *, int);
template __global__ void red<double>(double *, double *, int);
__global__ void grid(int *p)
{
    auto g = cg::this_grid();
    p[g.thread_rank()] = 1;
    g.sync();
    p[0] += p[1];
}
__global__ void half_k(__half *a, __half2 *b, __nv_bfloat16 *c, __nv_bfloat162 *d, float *o, int n)
{
    int i = threadIdx.x;
    a[i] = __hfma(a[i], a[i + 1], a[i + 2]);
    b[i] = __hadd2(b[i], __hmul2(b[i + 1], b[i + 2]));
    c[i] = __hadd(c[i], c[i + 1]);
#if __CUDA_ARCH__ >= 800
    d[i] = __hfma2(d[i], d[i + 1], d[i + 2]);
#endif
    o[i] = __half2float(a[i]) + __bfloat162float(c[i]);
    a[i] = hexp(a[i]);
    a[i + 1] = hsqrt(a[i]);
    a[i] = __hmax(a[i], a[i + 4]);
    b[i] = __hmin2(b[i], b[i + 1]);
    if (__hlt(a[i], a[i + 1]))
        o[3] = 1;
    a[5] = __float2half_rz(o[2]);
    b[9] = __floats2half2_rn(o[1], o[2]);
    atomicAdd(b, b[3]);
    atomicAdd(a, a[3]);
    atomicAdd(c, c[2]);
    o[7] = __int2half_rn(n);
    o[4] = htanh(a[6]);
}
__global__ void at(int *i, unsigned *u, unsigned long long *l, float *f, double *d, short *s)
{
    atomicAdd(i, 1);
    atomicSub(i, 2);
    atomicExch(i, 3);
    atomicMin(i, 4);
    atomicMax(i, 5);
    atomicInc(u, 6);
    atomicDec(u, 7);
    atomicCAS(i, 8, 9);
    atomicAnd(i, 1);
    atomicOr(i, 2);
    atomicXor(i, 3);
    atomicAdd(l, 4ull);
    atomicMax(l, 5ull);
    atomicCAS(l, 1ull, 2ull);
    atomicAdd(f, 1.f);
    atomicAdd(d, 1.);
    atomicExch(f, 2.f);
    i[3] = atomicAdd_system(i, 1);
    i[4] = atomicAdd_block(i, 1);
    atomicCAS((unsigned short *)s, (unsigned short)1, (unsigned short)2);
    __threadfence();
    __threadfence_block();
    __threadfence_system();
    i[9] = atomicMin((long long *)l, 3ll);
}
__global__ void warp(int *o, float *f, unsigned m)
{
    int v = o[threadIdx.x];
    o[1] = __shfl_sync(m, v, 3);
    o[2] = __shfl_up_sync(m, v, 1);
    o[3] = __shfl_down_sync(m, v, 2);
    o[4] = __shfl_xor_sync(m, v, 4, 16);
    f[1] = __shfl_sync(m, f[0], 1);
    o[5] = __ballot_sync(m, v);
    o[6] = __all_sync(m, v);
    o[7] = __any_sync(m, v);
    o[8] = __uni_sync(m, v);
    o[9] = __activemask();
    o[10] = __match_any_sync(m, v);
    int p;
    o[11] = __match_all_sync(m, v, &p);
    o[12] = p;
    __syncwarp(m);
    o[13] = __syncthreads_count(v);
    o[14] = __syncthreads_and(v);
    o[15] = __syncthreads_or(v);
#if __CUDA_ARCH__ >= 800
    o[16] = __reduce_add_sync(m, v);
    o[17] = __reduce_max_sync(m, (unsigned)v);
    o[18] = __reduce_and_sync(m, (unsigned)v);
#endif
    __nanosleep(100);
    o[21] = __popc(v);
    o[22] = __clz(v);
    o[23] = __ffs(v);
    o[24] = __brev(v);
    o[25] = __byte_perm(v, v, 0x1234);
    o[26] = __funnelshift_l(v, v, 3);
    o[27] = __funnelshift_rc(v, v, 3);
    o[28] = __dp4a(v, v, v);
    o[29] = __dp2a_lo(v, v, v);
    o[30] = __fns(v, 2, 3);
    o[31] = __vadd4(v, v);
    o[32] = __vabsdiffu4(v, v);
    o[33] = __vsadu4(v, v);
    o[34] = __vcmpgts2(v, v);
    o[35] = __vavgs2(v, v);
    o[36] = __viaddmax_s32_relu(v, v, v);
    o[37] = __vimin3_s16x2(v, v, v);
    o[38] = __mul24(v, v);
    o[39] = __umul24(v, v);
    o[40] = __mulhi(v, v);
    o[41] = __umul64hi(v, v);
    o[42] = __sad(v, v, v);
    o[43] = __usad(v, v, v);
    o[44] = __rhadd(v, v);
}
__global__ void math(float *f, double *d, int n)
{
    float x = f[threadIdx.x];
    double y = d[threadIdx.x];
    f[0] = sinf(x) + cosf(x) + tanf(x) + expf(x) + logf(x) + powf(x, x) + rsqrtf(x) + sqrtf(x) +
           erff(x) + tanhf(x) + x + floorf(x) + ceilf(x) + rintf(x) + truncf(x) + cbrtf(x) +
           atan2f(x, x) + lgammaf(x);
    d[0] = sin(y) + cos(y) + exp(y) + log(y) + pow(y, y) + sqrt(y) + rsqrt(y) + y + tgamma(y) +
           erfc(y) + j0(y);
    f[1] = __sinf(x) + __expf(x) + __logf(x) + __fdividef(x, x) + __fsqrt_rd(x) + __fadd_rz(x, x) +
           __fmaf_ru(x, x, x) + __frcp_rn(x) + __saturatef(x) + __tanf(x) + __powf(x, x);
    d[1] = __dadd_rd(y, y) + __dmul_ru(y, y) + __ddiv_rz(y, y) + __dsqrt_rn(y) + __fma_rd(y, y, y);
    f[2] = __int_as_float(n) + __double2float_rd(y);
    d[2] = __hiloint2double(n, n);
    f[3] = __ll2float_rn(n) + __uint2float_rz(n);
    ((int *)f)[4] =
        __float2int_rd(x) + __double2int_ru(y) + isnan(x) + isinf(y) + isfinite(x) + signbit(y);
    ((long long *)d)[5] = __double2ll_rn(y);
    f[5] = fmaxf(x, f[6]) + fminf(x, f[7]) + copysignf(x, f[8]) + fabsf(x) + fdimf(x, 3) +
           hypotf(x, x) + normcdff(x) + ldexpf(x, n) + frexpf(x, &n) + modff(x, f);
}
__global__ void misc(int *p, char *c, short *s, long long *l, uint4 *u, double2 *dd,
                     unsigned char *uc, const int *__restrict__ ro)
{
    printf("hi %d %f %s\n", p[0], gd, "x");
    assert(p[1] != 3);
    p[2] = clock();
    l[0] = clock64();
    u[0] = u[1];
    dd[0] = dd[1];
    c[0] = c[1] + c[2];
    s[0] = s[1] / s[2];
    p[3] = p[4] / p[5];
    p[6] %= p[7];
    l[1] = l[2] / l[3];
    l[4] %= l[5];
    p[8] = __ldg(ro + 3);
    p[9] = __ldcg(p + 1);
    __stcs(p + 2, 4);
    __stwt(p + 3, 5);
    int a[20];
    for (int i = 0; i < 20; i++)
        a[i] = p[i];
    p[10] = a[p[11]];
    mg[1] = cf[p[3]] + ci;
    flag = 1;
    while (flag)
        ;
    uc[0] = uc[1] * 3;
    p[12] = (int)l[0];
    l[8] = (unsigned)p[9];
    void *q = malloc(100);
    free(q);
    p[13] = __isGlobal(p) + __isShared(p);
    __prof_trigger(3);
    p[14] = ((int (*)(int))l[9])(4);
    int *al = (int *)alloca(p[0]);
    al[0] = 3;
    p[2] = al[p[3]];
    asm volatile("{ .reg .pred p; .reg .u32 x; setp.ne.u32 p, %1, 0; @p mov.u32 %0, 3; add.cc.u32 "
                 "x, %1, %1; addc.u32 %0, x, 0; }"
                 : "=r"(p[0])
                 : "r"(p[1]));
    asm volatile("{ .reg .pred p; lab: setp.ne.u32 p, %1, 0; @p bra lab; mov.u32 %0, %%smid; }"
                 : "=r"(p[0])
                 : "r"(p[1]));
    asm volatile("{ .reg .pred p; lab: setp.ne.u32 p, %1, 0; @p bra lab; mov.u32 %0, %%smid; }"
                 : "=r"(p[0])
                 : "r"(p[1]));
    __builtin_assume(p != 0);
    if (p[3] == 99)
        __trap();
    __int128 z = l[3];
    z *= l[4];
    z /= l[5];
    l[6] = (long long)(z >> 64);
}
