/* SPDX-License-Identifier: Apache-2.0 */
/* base/hash.h - a hash for tables whose keys a client chooses: nobody outside of the process can
 * choose keys that meet in one place. Source: Aumasson, Bernstein, "SipHash: a fast short-input
 * PRF" (2012), with one round for each word and three at the end. Threads: any. */
#ifndef WS_BASE_HASH_H
#define WS_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* Another value in each process. */
uint64_t ws_hash(const void *data, size_t bytes);
/* The same for one word, faster: any two words have the same value once in 2^32 processes. Source:
 * Dietzfelbinger, "Universal hashing and k-wise independent random variables via integer arithmetic
 * without primes" (1996). */
uint32_t ws_hash_word(uint64_t word);

#endif
