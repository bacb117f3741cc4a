// SPDX-License-Identifier: Apache-2.0
// AES-128 in counter mode, for many small instances: one table of 1 KiB in shared memory, from which the other three are turned, in place of
// four in constant memory, whose lookups go one address at a time. The program's own tables and round keys are read from its variable.
// nvcc -ptx -arch=sm_75 encryption.cu -o encryption.ptx
#include <stdint.h>

extern "C" {
struct aes_tables {
    uint32_t te[4][256], sbox[256], key[44];
};
__constant__ struct aes_tables aes_t; // the program's

static __device__ uint32_t swapped(uint32_t x)
{
    return __byte_perm(x, 0, 0x0123);
}

// Column a of the first table, turned right by a byte for each row.
#define TABLE(x, row) __funnelshift_r(table[x], table[x], 8 * (row))
// MixColumns leaves SubBytes(x) itself in the second byte.
#define SBOX(x) (table[x] >> 8 & 255)

__global__ void aes_ctr_shared(const uint4 *in, uint4 *out, uint64_t nonce, int blocks)
{
    __shared__ uint32_t table[256];
    for (int k = threadIdx.x; k < 256; k += blockDim.x)
        table[k] = aes_t.te[0][k];
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= blocks)
        return;
    uint32_t s[4] = {(uint32_t)(nonce >> 32), (uint32_t)nonce, 0, (uint32_t)i}, n[4];
    for (int k = 0; k < 4; k++)
        s[k] ^= aes_t.key[k];
#pragma unroll
    for (int round = 1; round < 10; round++) {
#pragma unroll
        for (int k = 0; k < 4; k++)
            n[k] = TABLE(s[k] >> 24, 0) ^ TABLE(s[(k + 1) & 3] >> 16 & 255, 1) ^
                   TABLE(s[(k + 2) & 3] >> 8 & 255, 2) ^ TABLE(s[(k + 3) & 3] & 255, 3) ^
                   aes_t.key[4 * round + k];
#pragma unroll
        for (int k = 0; k < 4; k++)
            s[k] = n[k];
    }
#pragma unroll
    for (int k = 0; k < 4; k++)
        n[k] = (SBOX(s[k] >> 24) << 24 | SBOX(s[(k + 1) & 3] >> 16 & 255) << 16 |
                SBOX(s[(k + 2) & 3] >> 8 & 255) << 8 | SBOX(s[(k + 3) & 3] & 255)) ^
               aes_t.key[40 + k];
    uint4 v = in[i];
    out[i] = make_uint4(v.x ^ swapped(n[0]), v.y ^ swapped(n[1]), v.z ^ swapped(n[2]),
                        v.w ^ swapped(n[3]));
}
}
