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

#endif
