// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include <pthread.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/macros.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint64_t key[6]; /* two for texts, the others for words */

static void make_key(void)
{
    if (getrandom(key, sizeof(key), GRND_NONBLOCK) == (ssize_t)sizeof(key))
        return;
    key[0] = ws_clock_ns(); /* early in the machine's life, or the system call is forbidden */
    key[1] = (uint64_t)(uintptr_t)&key;
    for (unsigned i = 2; i < WS_ARRAY_SIZE(key); i++)
        key[i] = 0x9e3779b97f4a7c15 * (key[0] + i) ^ key[1];
}

static uint64_t rotate(uint64_t x, unsigned bits)
{
    return x << bits | x >> (64 - bits);
}

static void round_of(uint64_t v[4])
{
    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] = rotate(v[0], 32) + v[3];
    v[2] += v[1];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] = rotate(v[2], 32);
}

static void take(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    round_of(v);
    v[0] ^= word;
}

uint64_t ws_hash(const void *data, size_t bytes)
{
    pthread_once(&once, make_key);
    uint64_t v[4] = {key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d,
                     key[0] ^ 0x6c7967656e657261, key[1] ^ 0x7465646279746573};
    const uint8_t *p = data;
    uint64_t word;
    for (size_t left = bytes; left >= sizeof(word); left -= sizeof(word), p += sizeof(word)) {
        memcpy(&word, p, sizeof(word));
        take(v, word);
    }
    word = (uint64_t)bytes << 56;
    for (size_t k = 0; k < bytes % sizeof(word); k++)
        word |= (uint64_t)p[k] << 8 * k;
    take(v, word);
    v[2] ^= 0xff;
    for (int k = 0; k < 3; k++)
        round_of(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* Two words that differ have any pair of values for @h equally often. What follows keeps that, as
 * it only gives each value another name, and keeps words in a row from having values in a row. */
uint32_t ws_hash_word(uint64_t word)
{
    enum { SHIFT = 63 }; /* of 64 + 64 - 1 bits the highest 64 */
    pthread_once(&once, make_key);
    unsigned __int128 a = (unsigned __int128)key[2] << 64 | key[3],
                      b = (unsigned __int128)key[4] << 64 | key[5];
    uint64_t h = (uint64_t)((a * word + b) >> SHIFT);
    h = (h ^ h >> 32) * 0x9e3779b97f4a7c15;
    h = (h ^ h >> 29) * 0xd6e8feb86659fd93;
    return (uint32_t)(h ^ h >> 32);
}
