// SPDX-License-Identifier: Apache-2.0
/* The kernels of the live experiments (doc/live.md). Each takes its data as n_blocks equal parts,
 * one for each block, and a length: how often a block works through its part, so that a small input
 * lasts as long as wanted. The blocks of an instance are therefore equal, and a launch of several
 * instances' blocks by hand is the same launch with more parts.
 *
 * `make live-ptx` writes kernels.ptx, which is what programs load. */
#include <stdint.h>
#include "live.h"

extern "C" {
/* AES-128, FIPS 197, by tables of the Rijndael proposal: 16 bytes a thread, encrypted again and again. */
__constant__ struct live_aes live_aes;

static __device__ uint32_t swapped(uint32_t x)
{
    return __byte_perm(x, 0, 0x0123);
}

static __device__ void encryption(unsigned block, uint4 *data, uint32_t length)
{
    uint4 *at = data + block * blockDim.x + threadIdx.x, v = *at;
    uint32_t s[4] = {swapped(v.x), swapped(v.y), swapped(v.z), swapped(v.w)}, n[4];
    for (; length; length--) {
        for (int i = 0; i < 4; i++)
            s[i] ^= live_aes.key[i];
        for (int round = 1; round < 10; round++) {
            for (int i = 0; i < 4; i++)
                n[i] = live_aes.te[0][s[i] >> 24] ^ live_aes.te[1][s[(i + 1) & 3] >> 16 & 255] ^
                       live_aes.te[2][s[(i + 2) & 3] >> 8 & 255] ^
                       live_aes.te[3][s[(i + 3) & 3] & 255] ^ live_aes.key[4 * round + i];
            for (int i = 0; i < 4; i++)
                s[i] = n[i];
        }
        for (int i = 0; i < 4; i++)
            n[i] = (live_aes.sbox[s[i] >> 24] << 24 | live_aes.sbox[s[(i + 1) & 3] >> 16 & 255] << 16 |
                    live_aes.sbox[s[(i + 2) & 3] >> 8 & 255] << 8 |
                    live_aes.sbox[s[(i + 3) & 3] & 255]) ^
                   live_aes.key[40 + i];
        for (int i = 0; i < 4; i++)
            s[i] = n[i];
    }
    *at = make_uint4(swapped(s[0]), swapped(s[1]), swapped(s[2]), swapped(s[3]));
}

__global__ void live_encryption(uint4 *data, uint32_t length)
{
    encryption(blockIdx.x, data, length);
}

/* A bitonic sort of each part in shared memory; every further round sorts what the last one left, each number XORed with the
 * round's. */
__global__ void live_sorting(uint32_t *data, uint32_t length)
{
    __shared__ uint32_t s[2 * LIVE_THREADS];
    unsigned t = threadIdx.x;
    uint32_t *part = data + blockIdx.x * 2 * LIVE_THREADS;
    s[t] = part[t];
    s[t + LIVE_THREADS] = part[t + LIVE_THREADS];
    for (uint32_t round = 0; round < length; round++) {
        s[t] ^= live_mix(round);
        s[t + LIVE_THREADS] ^= live_mix(round);
        for (unsigned size = 2; size <= 2 * LIVE_THREADS; size <<= 1)
            for (unsigned stride = size / 2; stride; stride >>= 1) {
                unsigned i = 2 * t - (t & (stride - 1));
                __syncthreads();
                uint32_t a = s[i], b = s[i + stride];
                if ((a > b) == ((i & size) == 0)) {
                    s[i] = b;
                    s[i + stride] = a;
                }
            }
        __syncthreads();
    }
    part[t] = s[t];
    part[t + LIVE_THREADS] = s[t + LIVE_THREADS];
}

/* How often a word of four letters, another one each round, stands in the block's part of a text. */
static __device__ void search(unsigned block, const uint8_t *text, uint32_t length, uint32_t *found)
{
    const uint8_t *part = text + block * LIVE_TEXT_BYTES;
    uint32_t n = 0;
    for (uint32_t round = 0; round < length; round++) {
        uint32_t word = live_word(round);
        for (uint32_t i = threadIdx.x; i + 4 <= LIVE_TEXT_BYTES; i += LIVE_THREADS) {
            uint32_t k = 0;
            while (k < 4 && part[i + k] == (word >> 8 * k & 255))
                k++;
            n += k == 4;
        }
    }
    atomicAdd(&found[block], n);
}

__global__ void live_search(const uint8_t *text, uint32_t length, uint32_t *found)
{
    search(blockIdx.x, text, length, found);
}

/* European options (Black, Scholes 1973); the time left grows from round to round, and a thread adds up the prices of its option. */
static __device__ float normal(float d)
{
    float k = 1.0f / (1.0f + 0.2316419f * fabsf(d));
    float p = k * (0.31938153f + k * (-0.356563782f +
                                      k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f))));
    float tail = 0.39894228f * expf(-0.5f * d * d) * p;
    return d > 0 ? 1.0f - tail : tail;
}

static __device__ void blackscholes(unsigned block, const float2 *options, uint32_t length, float *call)
{
    unsigned i = block * blockDim.x + threadIdx.x;
    float price = options[i].x, strike = options[i].y, sum = 0;
    for (uint32_t round = 0; round < length; round++) {
        float years = live_years(round), v = LIVE_VOLATILITY * sqrtf(years);
        float d1 = (logf(price / strike) + (LIVE_RATE + 0.5f * LIVE_VOLATILITY * LIVE_VOLATILITY) * years) / v;
        sum += price * normal(d1) - strike * expf(-LIVE_RATE * years) * normal(d1 - v);
    }
    call[i] = sum / length;
}

__global__ void live_blackscholes(const float2 *options, uint32_t length, float *call)
{
    blackscholes(blockIdx.x, options, length, call);
}

/* Points in the unit circle, by a generator for each thread; whole numbers only. */
static __device__ void montecarlo(unsigned block, const uint32_t *seeds, uint32_t length, uint32_t *inside)
{
    unsigned i = block * blockDim.x + threadIdx.x;
    inside[i] = live_points(seeds[i], length);
}

__global__ void live_montecarlo(const uint32_t *seeds, uint32_t length, uint32_t *inside)
{
    montecarlo(blockIdx.x, seeds, length, inside);
}

/* Two workloads' instances merged by hand, as the paper's authors did: the first @n blocks are those of the first. */
__global__ void live_search_blackscholes(uint32_t n, const uint8_t *text, uint32_t text_length,
                                         uint32_t *found, const float2 *options, uint32_t length,
                                         float *call)
{
    if (blockIdx.x < n)
        search(blockIdx.x, text, text_length, found);
    else
        blackscholes(blockIdx.x - n, options, length, call);
}

__global__ void live_encryption_montecarlo(uint32_t n, uint4 *data, uint32_t data_length,
                                           void *nothing, const uint32_t *seeds, uint32_t length,
                                           uint32_t *inside)
{
    if (blockIdx.x < n)
        encryption(blockIdx.x, data, data_length);
    else
        montecarlo(blockIdx.x - n, seeds, length, inside);
}

/* A walk over a ring of addresses, one warp a block: of a known duration, as each step waits for memory. The dynamic shared memory it
 * is launched with keeps a second block off the SM. */
__global__ void live_steps(void **ring, uint32_t start, uint32_t length, uint64_t *end)
{
    void **p = ring + (start + blockIdx.x) % LIVE_RING;
    for (uint32_t i = 0; i < length; i += 32)
#pragma unroll
        for (int k = 0; k < 32; k++)
            p = (void **)*(void *volatile *)p;
    end[blockIdx.x] = p - ring;
}
}
