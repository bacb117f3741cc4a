/* SPDX-License-Identifier: Apache-2.0 */
/* device/soft/jit/store.h - object files of kernels, kept in a folder from one process to the next.
 * Private to the room.
 *
 * A file is found by a hash of all that the object was made from. The folder and its files belong
 * to the user of this process alone: nobody else can put code there. What is read is compared with
 * a digest of it, so that a file that was cut or has rotted is not run; it is removed. If all of
 * them together are larger than they may be, those go that were not used for the longest time.
 * Threads: any. */
#ifndef WS_DEVICE_SOFT_JIT_STORE_H
#define WS_DEVICE_SOFT_JIT_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macros.h"

enum { WS_JIT_KEY_BYTES = 32 };

struct ws_jit_store_counts {
    uint64_t n_found, n_missed, n_kept;
    uint64_t n_damaged; /* found, and removed */
    uint64_t n_dropped; /* for want of room */
};

/* Uses a folder from now on, instead of the one before; NULL: none, as at first. Return: 0; -EPERM:
 * it is somebody else's, or others may use it; or what open() says. */
WS_MUST_CHECK int ws_jit_store_open(const char *folder, uint64_t max_bytes);
bool ws_jit_store_is_open(void);
/* Return: whether there is one; *ret is the caller's to free(). */
bool ws_jit_store_get(const uint8_t *key, void **ret, size_t *ret_bytes);
/* Keeps a copy, if that can be done. */
void ws_jit_store_put(const uint8_t *key, const void *object, size_t bytes);
/* What ws_jit_store_get() gave cannot be used. */
void ws_jit_store_remove(const uint8_t *key);
struct ws_jit_store_counts ws_jit_store_counts(void);

#endif
