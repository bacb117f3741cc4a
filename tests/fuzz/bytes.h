/* SPDX-License-Identifier: Apache-2.0 */
/* tests/fuzz/bytes.h - the bytes of a fuzzer's input, read one after another as numbers. What is
 * read beyond the end is 0. */
#ifndef WS_TESTS_FUZZ_BYTES_H
#define WS_TESTS_FUZZ_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct bytes {
    const uint8_t *p;
    size_t n;
};

static inline uint8_t take8(struct bytes *b)
{
    if (!b->n)
        return 0;
    b->n--;
    return *b->p++;
}

static inline uint32_t take16(struct bytes *b)
{
    uint32_t low = take8(b);
    return low | (uint32_t)take8(b) << 8;
}

static inline uint64_t take64(struct bytes *b)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64; shift += 8)
        v |= (uint64_t)take8(b) << shift;
    return v;
}

/* A size or a count: small ones, powers of two and their neighbours, and sometimes any number. */
static inline uint64_t take_size(struct bytes *b)
{
    uint8_t what = take8(b);
    if (what < 128)
        return what;
    if (what < 224)
        return (UINT64_C(1) << (what & 31)) + what / 32 - 5;
    return what < 240 ? UINT64_C(1) << (what & 15) << 32 : take64(b);
}

/* At most @max bytes, which lie in the input. Return: how many there are. */
static inline size_t take_bytes(struct bytes *b, size_t max, const uint8_t **ret)
{
    size_t n = max < b->n ? max : b->n;
    *ret = b->p;
    b->p += n;
    b->n -= n;
    return n;
}

#endif
