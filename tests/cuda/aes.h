/* SPDX-License-Identifier: Apache-2.0 */
/* AES-128 in counter mode. The CPU's cipher works byte by byte as FIPS 197 describes it. The kernel
 * uses the word tables of the Rijndael proposal, made here from the S-box. So the two share only
 * the S-box and the key schedule. */
#ifndef WS_TESTS_CUDA_AES_H
#define WS_TESTS_CUDA_AES_H
#include "work.h"
#define WORK "aes"
enum { AES_SIZE_KIB = 4096, AES_MAX_KIB = 1 << 20, AES_BLOCK = 256 };

struct aes_tables {
    uint32_t te[4][256]; /* column of MixColumns(SubBytes(x)), rotated */
    uint32_t sbox[256];
    uint32_t key[44]; /* round keys, big-endian words */
};

static inline uint8_t aes_times2(uint8_t x)
{
    return (uint8_t)(x << 1 ^ (x & 0x80 ? 0x1b : 0));
}

static inline uint8_t aes_times(uint8_t a, uint8_t b)
{
    uint8_t r = 0;
    for (; b; b >>= 1, a = aes_times2(a))
        if (b & 1)
            r ^= a;
    return r;
}

static inline uint8_t aes_sbox(uint8_t x)
{
    uint8_t inverse = x, r;
    for (int i = 0; i < 253 && x; i++) /* x^254 */
        inverse = aes_times(inverse, x);
    r = inverse;
    for (int i = 1; i < 5; i++)
        r ^= (uint8_t)(inverse << i | inverse >> (8 - i));
    return r ^ 0x63;
}

static inline void aes_make_tables(struct aes_tables *t, const uint8_t key[16])
{
    uint8_t rcon = 1;
    for (int i = 0; i < 256; i++) {
        uint32_t s = t->sbox[i] = aes_sbox((uint8_t)i);
        uint32_t w =
            (uint32_t)aes_times((uint8_t)s, 2) << 24 | s << 16 | s << 8 | aes_times((uint8_t)s, 3);
        for (int r = 0; r < 4; r++, w = w >> 8 | w << 24)
            t->te[r][i] = w;
    }
    for (int i = 0; i < 4; i++)
        t->key[i] = (uint32_t)key[4 * i] << 24 | (uint32_t)key[4 * i + 1] << 16 |
                    (uint32_t)key[4 * i + 2] << 8 | key[4 * i + 3];
    for (int i = 4; i < 44; i++) {
        uint32_t w = t->key[i - 1];
        if (i % 4 == 0) {
            w = w << 8 | w >> 24;
            w = t->sbox[w >> 24] << 24 | t->sbox[w >> 16 & 255] << 16 | t->sbox[w >> 8 & 255] << 8 |
                t->sbox[w & 255];
            w ^= (uint32_t)rcon << 24;
            rcon = aes_times2(rcon);
        }
        t->key[i] = t->key[i - 4] ^ w;
    }
}

/* FIPS 197, section 5.1, on bytes. */
static inline void aes_cpu_block(const struct aes_tables *t, const uint8_t in[16], uint8_t out[16])
{
    uint8_t s[16], n[16];
    for (int i = 0; i < 16; i++)
        s[i] = in[i] ^ (uint8_t)(t->key[i / 4] >> (24 - 8 * (i % 4)));
    for (int round = 1; round <= 10; round++) {
        for (int i = 0; i < 16; i++) /* SubBytes, ShiftRows */
            n[i] = (uint8_t)t->sbox[s[(i + 4 * (i % 4)) % 16]];
        for (int c = 0; c < 4; c++) {
            const uint8_t *v = n + 4 * c;
            uint8_t all = v[0] ^ v[1] ^ v[2] ^ v[3];
            for (int r = 0; r < 4; r++) {
                uint8_t m =
                    round == 10
                        ? v[r]
                        : (uint8_t)(v[r] ^ all ^ aes_times2((uint8_t)(v[r] ^ v[(r + 1) % 4])));
                s[4 * c + r] = m ^ (uint8_t)(t->key[4 * round + c] >> (24 - 8 * r));
            }
        }
    }
    memcpy(out, s, 16);
}

/* Appendix C.1 of FIPS 197: key 00…0f, plain text 00 11 … ff. */
static const uint8_t aes_fips_cipher[16] = {0x69, 0xc4, 0xe0, 0xd8, 0x6a, 0x7b, 0x04, 0x30,
                                            0xd8, 0xcd, 0xb7, 0x80, 0x70, 0xb4, 0xc5, 0x5a};
static inline void aes_fips_input(uint8_t key[16], uint8_t plain[16])
{
    for (int i = 0; i < 16; i++) {
        key[i] = (uint8_t)i;
        plain[i] = (uint8_t)(0x11 * i);
    }
}

static inline int aes_cpu_self_test(void)
{
    struct aes_tables t;
    uint8_t key[16], plain[16], out[16];
    aes_fips_input(key, plain);
    aes_make_tables(&t, key);
    aes_cpu_block(&t, plain, out);
    return memcmp(out, aes_fips_cipher, 16) ? work_fail(WORK, "the CPU's cipher fails FIPS 197 C.1")
                                            : 0;
}

static inline void aes_fill(uint8_t *plain, long bytes, uint8_t key[16])
{
    for (long i = 0; i < bytes; i += 8) {
        uint64_t r = work_random((uint64_t)i);
        memcpy(plain + i, &r, 8);
    }
    for (int i = 0; i < 16; i++)
        key[i] = (uint8_t)work_random(1000 + (uint64_t)i);
}

/* Counter block: the nonce's 8 bytes, then the block's number, big-endian. */
static inline void aes_cpu_ctr(const struct aes_tables *t, uint64_t nonce, const uint8_t *in,
                               uint8_t *out, long blocks)
{
    for (long b = 0; b < blocks; b++) {
        uint8_t counter[16], pad[16];
        for (int i = 0; i < 8; i++) {
            counter[i] = (uint8_t)(nonce >> (56 - 8 * i));
            counter[8 + i] = (uint8_t)((uint64_t)b >> (56 - 8 * i));
        }
        aes_cpu_block(t, counter, pad);
        for (int i = 0; i < 16; i++)
            out[16 * b + i] = in[16 * b + i] ^ pad[i];
    }
}

static inline int aes_check(const uint8_t *out, const uint8_t *want, long bytes)
{
    for (long i = 0; i < bytes; i++)
        if (out[i] != want[i])
            return work_fail(WORK, "byte %ld is %02x, not %02x", i, out[i], want[i]);
    return 0;
}
#endif
