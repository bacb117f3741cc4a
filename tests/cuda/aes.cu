// SPDX-License-Identifier: Apache-2.0
// Encrypts with AES-128 in counter mode, one 16-byte block a thread, with tables and round keys in
// constant memory. Fails if a byte differs from the CPU's cipher.
#include "aes.h"
#include "work.cuh"

extern "C" {
__constant__ struct aes_tables aes_t;

static __device__ uint32_t swap(uint32_t x)
{
    return __byte_perm(x, 0, 0x0123);
}

static __device__ void encrypt(uint32_t s[4])
{
    for (int i = 0; i < 4; i++)
        s[i] ^= aes_t.key[i];
    for (int round = 1; round < 10; round++) {
        uint32_t n[4];
        for (int i = 0; i < 4; i++)
            n[i] = aes_t.te[0][s[i] >> 24] ^ aes_t.te[1][s[(i + 1) & 3] >> 16 & 255] ^
                   aes_t.te[2][s[(i + 2) & 3] >> 8 & 255] ^ aes_t.te[3][s[(i + 3) & 3] & 255] ^
                   aes_t.key[4 * round + i];
        for (int i = 0; i < 4; i++)
            s[i] = n[i];
    }
    uint32_t n[4];
    for (int i = 0; i < 4; i++)
        n[i] = (aes_t.sbox[s[i] >> 24] << 24 | aes_t.sbox[s[(i + 1) & 3] >> 16 & 255] << 16 |
                aes_t.sbox[s[(i + 2) & 3] >> 8 & 255] << 8 | aes_t.sbox[s[(i + 3) & 3] & 255]) ^
               aes_t.key[40 + i];
    for (int i = 0; i < 4; i++)
        s[i] = n[i];
}

__global__ void aes_ecb(const uint4 *in, uint4 *out, int blocks)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= blocks)
        return;
    uint4 v = in[i];
    uint32_t s[4] = {swap(v.x), swap(v.y), swap(v.z), swap(v.w)};
    encrypt(s);
    out[i] = make_uint4(swap(s[0]), swap(s[1]), swap(s[2]), swap(s[3]));
}

__global__ void aes_ctr(const uint4 *in, uint4 *out, uint64_t nonce, int blocks)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= blocks)
        return;
    uint32_t s[4] = {(uint32_t)(nonce >> 32), (uint32_t)nonce, 0, (uint32_t)i};
    encrypt(s);
    uint4 v = in[i];
    out[i] = make_uint4(v.x ^ swap(s[0]), v.y ^ swap(s[1]), v.z ^ swap(s[2]), v.w ^ swap(s[3]));
}
}

static int fips(uint8_t *d)
{
    struct aes_tables t;
    uint8_t key[16], plain[16], out[16];
    aes_fips_input(key, plain);
    aes_make_tables(&t, key);
    CHECK(cudaMemcpyToSymbol(aes_t, &t, sizeof t));
    CHECK(cudaMemcpy(d, plain, 16, cudaMemcpyHostToDevice));
    aes_ecb<<<1, 32>>>((const uint4 *)d, (uint4 *)d, 1);
    CHECK_LAUNCH();
    CHECK(cudaMemcpy(out, d, 16, cudaMemcpyDeviceToHost));
    return memcmp(out, aes_fips_cipher, 16) ? work_fail(WORK, "the kernel fails FIPS 197 C.1") : 0;
}

int main(int argc, char **argv)
{
    long bytes = work_arg(argc, argv, 1, AES_SIZE_KIB, AES_MAX_KIB) * 1024, blocks = bytes / 16;
    long iterations = work_arg(argc, argv, 2, 1, 1000000);
    uint8_t *plain = (uint8_t *)work_alloc(bytes), *want = (uint8_t *)work_alloc(bytes),
            *out = (uint8_t *)work_alloc(bytes);
    uint8_t key[16], *d;
    struct aes_tables t;
    if (aes_cpu_self_test())
        return 1;
    aes_fill(plain, bytes, key);
    aes_make_tables(&t, key);
    aes_cpu_ctr(&t, 0x0123456789abcdef, plain, want, blocks);
    CHECK(cudaMalloc(&d, bytes));
    for (long it = 0; it < iterations; it++) {
        if (fips(d))
            return 1;
        CHECK(cudaMemcpyToSymbol(aes_t, &t, sizeof t));
        CHECK(cudaMemcpy(d, plain, bytes, cudaMemcpyHostToDevice));
        aes_ctr<<<(blocks + AES_BLOCK - 1) / AES_BLOCK, AES_BLOCK>>>(
            (const uint4 *)d, (uint4 *)d, 0x0123456789abcdef, (int)blocks);
        CHECK_LAUNCH();
        CHECK(cudaMemcpy(out, d, bytes, cudaMemcpyDeviceToHost));
        if (aes_check(out, want, bytes))
            return 1;
    }
    CHECK(cudaFree(d));
    return work_pass(WORK);
}
