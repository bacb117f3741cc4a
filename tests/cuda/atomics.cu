// SPDX-License-Identifier: Apache-2.0
// Uses every atomic function of CUDA on global and shared memory, of each type; vectors, halves,
// 128 bits; and inline PTX as programs write it. Fails if a result differs from the one that every
// order gives.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include "work.cuh"
#define WORK "atomics"

typedef unsigned long long u64;
enum { THREADS = 256, BLOCKS = 12, N = THREADS * BLOCKS };

struct cells {
    int add, sub, min, max, exch, cas;
    unsigned inc, dec, umin, umax, u_and, u_or, u_xor;
    u64 add64, min64, max64, and64, or64, xor64, cas64;
    long long smin64, smax64;
    float addf, exchf;
    double addd;
    unsigned short cas16;
    alignas(16) float4 addf4;
    alignas(16) unsigned long long wide[2];
    __half2 half2;
    __nv_bfloat162 bf2;
    __half half;
};

__host__ __device__ static unsigned mix(unsigned i)
{
    i *= 2654435761u;
    return i ^ i >> 15;
}

__global__ void run(cells *c, int *shared_out)
{
    __shared__ int local_sum, local_max;
    __shared__ unsigned local_or;
    __shared__ double local_d;
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, r = mix(i);
    if (threadIdx.x == 0) {
        local_sum = 0;
        local_max = INT32_MIN;
        local_or = 0;
        local_d = 0;
    }
    __syncthreads();
    atomicAdd(&c->add, (int)i);
    atomicSub(&c->sub, (int)i);
    atomicMin(&c->min, (int)r);
    atomicMax(&c->max, (int)r);
    atomicExch(&c->exch, 77);
    for (int seen = c->cas, was;; seen = was) { // adds by compare and swap
        was = atomicCAS(&c->cas, seen, seen + 3);
        if (was == seen)
            break;
    }
    atomicInc(&c->inc, 99);
    atomicDec(&c->dec, 99);
    atomicMin(&c->umin, r);
    atomicMax(&c->umax, r);
    atomicAnd(&c->u_and, r | 0x10);
    atomicOr(&c->u_or, r & 0xf0);
    atomicXor(&c->u_xor, r);
    atomicAdd(&c->add64, (u64)r << 20);
    atomicMin(&c->min64, (u64)r << 32 | i);
    atomicMax(&c->max64, (u64)r << 32 | i);
    atomicAnd(&c->and64, ~((u64)1 << (i & 31)));
    atomicOr(&c->or64, (u64)1 << (i & 63));
    atomicXor(&c->xor64, (u64)r << 7);
    atomicMin(&c->smin64, (long long)((u64)r << 33));
    atomicMax(&c->smax64, (long long)((u64)r << 33));
    atomicAdd(&c->addf, 0.25f * (float)(i % 8)); // exact
    atomicExch(&c->exchf, 1.5f);
    atomicAdd(&c->addd, 1.0 / 1024 * i);
    for (u64 seen = c->cas64, was;; seen = was) {
        was = atomicCAS(&c->cas64, seen, seen * 2862933555777941757ull + 3037000493ull);
        if (was == seen)
            break;
    }
    if (atomicCAS(&c->cas16, (unsigned short)0, (unsigned short)1) == 0)
        atomicAdd_system(&c->add, 1000);
    atomicAdd_block(&local_sum, (int)(i % 7));
    atomicMax(&local_max, (int)r);
    atomicOr(&local_or, 1u << (i % 32));
    atomicAdd(&local_d, 0.5);
#if __CUDA_ARCH__ >= 900
    atomicAdd(&c->addf4, make_float4(1, 2, 3, (float)(i % 4)));
#endif
    atomicAdd(&c->half2, __floats2half2_rn(i < 512 ? 1.0f : 0.0f, i < 256 ? 2.0f : 0.0f));
    atomicAdd(&c->half, __float2half(i < 1024 ? 1.0f : 0.0f));
    atomicAdd(&c->bf2, __floats2bfloat162_rn(i < 128 ? 1.0f : 0.0f, i < 64 ? -2.0f : 0.0f));
#if __CUDA_ARCH__ >= 900
    { // a 128-bit counter and its complement, swapped together
        u64 lo = 0, hi = ~0ull, was_lo, was_hi;
        for (;;) {
            asm volatile("{ .reg .b128 a, b, d;\n mov.b128 a, {%2, %3};\n mov.b128 b, {%4, %5};\n"
                         "atom.relaxed.gpu.global.cas.b128 d, [%6], a, b;\n mov.b128 {%0, %1}, d; }"
                         : "=l"(was_lo), "=l"(was_hi)
                         : "l"(lo), "l"(hi), "l"(lo + 1), "l"(~(lo + 1)), "l"(c->wide)
                         : "memory");
            if (was_lo == lo && was_hi == hi)
                break;
            lo = was_lo;
            hi = was_hi;
        }
    }
#endif
    unsigned lane, brev, mask;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    asm("brev.b32 %0, %1;" : "=r"(brev) : "r"(i));
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %1, 0; vote.sync.ballot.b32 %0, p, 0xffffffff; }" : "=r"(mask) : "r"(i & 1));
    asm volatile("red.global.add.u32 [%0], %1;" ::"l"(&c->sub), "r"(lane + (brev != __brev(i)) * 100 + (mask != 0xaaaaaaaau) * 100) : "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        shared_out[4 * blockIdx.x] = local_sum;
        shared_out[4 * blockIdx.x + 1] = local_max;
        shared_out[4 * blockIdx.x + 2] = (int)local_or;
        shared_out[4 * blockIdx.x + 3] = (int)local_d;
    }
}

#define SAME(field)                                                                                \
    do {                                                                                           \
        if (memcmp(&got.field, &want.field, sizeof got.field)) {                                   \
            work_fail(WORK, "%s is wrong", #field);                                                \
            bad++;                                                                                 \
        }                                                                                          \
    } while (0)

int main(void)
{
    static cells want, got;
    cells *d;
    int bad = 0, *d_shared, shared[4 * BLOCKS];
    cudaDeviceProp prop;
    CHECK(cudaGetDeviceProperties(&prop, 0));
    memset(&want, 0, sizeof want);
    want.min = INT32_MAX;
    want.max = INT32_MIN;
    want.umin = ~0u;
    want.u_and = ~0u;
    want.min64 = want.and64 = ~0ull;
    want.smin64 = INT64_MAX;
    want.smax64 = INT64_MIN;
    want.wide[1] = ~0ull;
    CHECK(cudaMalloc(&d, sizeof *d));
    CHECK(cudaMalloc(&d_shared, sizeof shared));
    CHECK(cudaMemcpy(d, &want, sizeof want, cudaMemcpyHostToDevice));
    run<<<BLOCKS, THREADS>>>(d, d_shared);
    CHECK_LAUNCH();
    CHECK(cudaMemcpy(&got, d, sizeof got, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(shared, d_shared, sizeof shared, cudaMemcpyDeviceToHost));
    for (unsigned i = 0; i < N; i++) {
        unsigned r = mix(i);
        want.add += (int)i;
        want.sub += (int)(i % 32) - (int)i;
        want.min = (int)r < want.min ? (int)r : want.min;
        want.max = (int)r > want.max ? (int)r : want.max;
        want.cas += 3;
        want.inc = want.inc >= 99 ? 0 : want.inc + 1;
        want.dec = want.dec == 0 || want.dec > 99 ? 99 : want.dec - 1;
        want.umin = r < want.umin ? r : want.umin;
        want.umax = r > want.umax ? r : want.umax;
        want.u_and &= r | 0x10;
        want.u_or |= r & 0xf0;
        want.u_xor ^= r;
        want.add64 += (u64)r << 20;
        u64 key = (u64)r << 32 | i;
        want.min64 = key < want.min64 ? key : want.min64;
        want.max64 = key > want.max64 ? key : want.max64;
        want.and64 &= ~((u64)1 << (i & 31));
        want.or64 |= (u64)1 << (i & 63);
        want.xor64 ^= (u64)r << 7;
        long long sk = (long long)((u64)r << 33);
        want.smin64 = sk < want.smin64 ? sk : want.smin64;
        want.smax64 = sk > want.smax64 ? sk : want.smax64;
        want.addf += 0.25f * (float)(i % 8);
        want.addd += 1.0 / 1024 * i;
        want.cas64 = want.cas64 * 2862933555777941757ull + 3037000493ull;
    }
    want.add += 1000;
    want.exch = 77;
    want.exchf = 1.5f;
    want.cas16 = 1;
    if (prop.major >= 9) {
        want.addf4 = make_float4(N, 2.0f * N, 3.0f * N, 1.5f * N);
        want.wide[0] = N;
        want.wide[1] = ~(u64)N;
    }
    want.half2 = __floats2half2_rn(512, 512);
    want.half = __float2half(1024);
    want.bf2 = __floats2bfloat162_rn(128, -128);
    SAME(add);
    SAME(sub);
    SAME(min);
    SAME(max);
    SAME(exch);
    SAME(cas);
    SAME(inc);
    SAME(dec);
    SAME(umin);
    SAME(umax);
    SAME(u_and);
    SAME(u_or);
    SAME(u_xor);
    SAME(add64);
    SAME(min64);
    SAME(max64);
    SAME(and64);
    SAME(or64);
    SAME(xor64);
    SAME(smin64);
    SAME(smax64);
    SAME(addf);
    SAME(exchf);
    SAME(addd);
    SAME(cas64);
    SAME(cas16);
    SAME(addf4);
    SAME(wide);
    SAME(half2);
    SAME(half);
    SAME(bf2);
    for (int b = 0; b < BLOCKS; b++) {
        int sum = 0, max = INT32_MIN;
        for (unsigned i = b * THREADS; i < (b + 1u) * THREADS; i++) {
            sum += (int)(i % 7);
            max = (int)mix(i) > max ? (int)mix(i) : max;
        }
        if (shared[4 * b] != sum || shared[4 * b + 1] != max || shared[4 * b + 2] != -1 || shared[4 * b + 3] != THREADS / 2)
            bad += work_fail(WORK, "block %d: %d %d %x %d, not %d %d ffffffff %d", b, shared[4 * b], shared[4 * b + 1],
                             shared[4 * b + 2], shared[4 * b + 3], sum, max, THREADS / 2);
    }
    CHECK(cudaFree(d));
    CHECK(cudaFree(d_shared));
    return bad ? 1 : work_pass(WORK);
}
