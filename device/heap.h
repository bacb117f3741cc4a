/* SPDX-License-Identifier: Apache-2.0 */
/* device/heap.h - where device code's malloc() and free() get their memory (CUDA C++ Programming
 * Guide, "Dynamic Global Memory Allocation and Operations"): offsets into a stretch of memory that
 * the caller has, of a size that never changes.
 *
 * What is free and what is not is kept apart from that memory: whatever a kernel writes there, or
 * gives to free(), the heap stays whole. Threads: any; a lock inside. */
#ifndef WS_DEVICE_HEAP_H
#define WS_DEVICE_HEAP_H

#include <stdbool.h>
#include <stdint.h>
#include "base/macros.h"

enum { WS_HEAP_GRANULE_BYTES = 16 }; /* the alignment CUDA promises */
struct ws_heap;
/* @bytes: rounded down to granules, at least one and at most 64 GiB. Return: 0, -EINVAL, -ENOMEM.
 */
WS_MUST_CHECK int ws_heap_new(struct ws_heap **ret, uint64_t bytes);
struct ws_heap *ws_heap_free(struct ws_heap *h);
/* At least @bytes (0 counts as 1). Return: false when there is no room. */
bool ws_heap_take(struct ws_heap *h, uint64_t bytes, uint64_t *ret_offset);
/* Return: false if @offset is not what ws_heap_take() gave, or was given back already. */
bool ws_heap_give(struct ws_heap *h, uint64_t offset);

#endif
