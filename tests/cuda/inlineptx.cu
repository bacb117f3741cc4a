// SPDX-License-Identifier: Apache-2.0
// Uses inline PTX and intrinsics: special registers, byte permutes and dot products, carries,
// funnel shifts, find-first, votes, matches, clocks, address spaces, and cache hints on loads.
// Fails if a result differs from the host's.
#include <vector>
#include "work.cuh"
#define WORK "inlineptx"

typedef unsigned u32;
typedef unsigned long long u64;
enum { COLUMNS = 16 };

__global__ void work(const u32 *in, u64 *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    u32 a, b = in[(i + 1) % n], lane, c = in[(i + 2) % n], lo, hi;
    u64 *o = out + (size_t)i * COLUMNS;
    asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(a) : "l"(in + i));
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    o[0] = lane;
    o[1] = __byte_perm(a, b, 0x5214);
    o[2] = (u32)__dp4a((int)a, (int)b, (int)c);
    asm("add.cc.u32 %0, %2, %3;\n\taddc.u32 %1, %4, 0;" : "=r"(lo), "=r"(hi) : "r"(a), "r"(b), "r"(c));
    o[3] = (u64)hi << 32 | lo;
    o[4] = __funnelshift_l(a, b, c & 31);
    o[5] = __ffs(a & c) | (u64)__clz(b) << 8 | (u64)__popc(c) << 16 | (u64)__brev(a) << 32;
    o[6] = __umulhi(a, b) | (u64)__mulhi((int)a, (int)b) << 32;
    u32 r;
    asm("{\n\t.reg .pred p;\n\tsetp.lt.u32 p, %1, %2;\n\tselp.u32 %0, %1, %2, p;\n\t@p add.u32 %0, %0, 1;\n\t}" : "=r"(r) : "r"(a), "r"(b));
    o[7] = r;
    u32 x;
    asm("lop3.b32 %0, %1, %2, %3, 0x96;" : "=r"(x) : "r"(a), "r"(b), "r"(c));
    o[8] = x;
    o[9] = __ballot_sync(0xffffffff, a & 1) | (u64)__all_sync(0xffffffff, a != 0) << 32 | (u64)__any_sync(0xffffffff, a == 0) << 33;
    o[10] = __match_any_sync(0xffffffff, a & 3);
    long long t0 = clock64();
    u32 ns0, ns1;
    asm volatile("mov.u32 %0, %%globaltimer_lo;" : "=r"(ns0));
    __nanosleep(20);
    asm volatile("mov.u32 %0, %%globaltimer_lo;" : "=r"(ns1));
    o[11] = clock64() > t0 && ns1 - ns0 < 1000000000u;
    __shared__ u32 s[128];
    s[threadIdx.x] = a;
    __syncwarp();
    u32 at = (u32)__cvta_generic_to_shared(&s[threadIdx.x ^ 1]), y;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(y) : "r"(at));
    o[12] = y;
    o[13] = __isShared(s) | __isGlobal(in) << 1 | __isShared(in) << 2;
    o[14] = (u64)__ldg(&in[i]) + (__ldcg(&in[i]) + __ldcs(&in[i]));
    o[15] = __sad((int)a, (int)b, c) | (u64)__vabsdiffu4(a, b) << 32;
}

static u32 host_perm(u32 a, u32 b, u32 s)
{
    u64 v = (u64)b << 32 | a;
    u32 r = 0;
    for (int k = 0; k < 4; k++)
        r |= (u32)(v >> 8 * (s >> 4 * k & 7) & 0xff) << 8 * k;
    return r;
}

static u32 host_brev(u32 a)
{
    u32 r = 0;
    for (int k = 0; k < 32; k++)
        r |= (a >> k & 1) << (31 - k);
    return r;
}

int main()
{
    const int n = 256;
    std::vector<u32> in(n);
    std::vector<u64> out(n * COLUMNS);
    u32 *di;
    u64 *d;
    for (int i = 0; i < n; i++)
        in[i] = (u32)work_random(i) | (i == 5 ? 0 : 1 << 20);
    in[5] = 0;
    CHECK(cudaMalloc(&di, n * 4));
    CHECK(cudaMalloc(&d, out.size() * 8));
    CHECK(cudaMemcpy(di, in.data(), n * 4, cudaMemcpyHostToDevice));
    work<<<2, 128>>>(di, d, n);
    CHECK_LAUNCH();
    CHECK(cudaMemcpy(out.data(), d, out.size() * 8, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) {
        u32 a = in[i], b = in[(i + 1) % n], c = in[(i + 2) % n], ballot = 0, match = 0, dot = c, sad4 = 0, all = 1, any = 0;
        for (int k = 0; k < 32; k++) {
            u32 v = in[i / 32 * 32 + k];
            ballot |= (v & 1) << k;
            match |= (u32)((v & 3) == (a & 3)) << k;
            all &= v != 0;
            any |= v == 0;
        }
        for (int k = 0; k < 4; k++) {
            int p = a >> 8 * k & 0xff, q = b >> 8 * k & 0xff;
            dot += (u32)((signed char)p * (signed char)q);
            sad4 |= (u32)abs(p - q) << 8 * k;
        }
        u64 sum = (u64)a + b;
        u32 sh = c & 31;
        const u64 want[COLUMNS] = {
            (u64)i % 32,
            host_perm(a, b, 0x5214),
            dot,
            ((u64)(u32)(c + (sum >> 32)) << 32) | (u32)sum,
            sh ? b << sh | a >> (32 - sh) : b,
            (u64)__builtin_ffs((int)(a & c)) | (u64)(b ? __builtin_clz(b) : 32) << 8 | (u64)__builtin_popcount(c) << 16 | (u64)host_brev(a) << 32,
            (u32)((u64)a * b >> 32) | (u64)(u32)((long long)(int)a * (int)b >> 32) << 32,
            a < b ? a + 1 : b,
            a ^ b ^ c,
            ballot | (u64)all << 32 | (u64)any << 33,
            match,
            1,
            in[i ^ 1],
            3,
            (u64)a + (u32)(a + a),
            (u32)(c + (u32)llabs((long long)(int)a - (int)b)) | (u64)sad4 << 32,
        };
        for (int k = 0; k < COLUMNS; k++)
            if (out[i * COLUMNS + k] != want[k])
                return work_fail(WORK, "column %d of thread %d is %llx, not %llx", k, i, out[i * COLUMNS + k], want[k]);
    }
    CHECK(cudaFree(di));
    CHECK(cudaFree(d));
    return work_pass(WORK);
}
