/* SPDX-License-Identifier: Apache-2.0 */
/* device/soft/mem.h - the memory of one soft device: host memory, charged against the catalog's
 * size.
 * Threads: any. */
#ifndef WS_DEVICE_SOFT_MEM_H
#define WS_DEVICE_SOFT_MEM_H

#include "device/device.h"

struct ws_mem;
WS_MUST_CHECK int ws_mem_new(struct ws_mem **ret, uint64_t limit_bytes);
/* The owner's reference; the object lives on until everything allocated is released. NULL ok. */
struct ws_mem *ws_mem_unref(struct ws_mem *m);
/* @bytes: a multiple of WS_DEVICE_PAGE_BYTES. The memory is zeroed. Return: 0, WS_DEV_E_NO_MEMORY,
 *   -ENOMEM. */
WS_MUST_CHECK int ws_mem_alloc(struct ws_mem *m, uint64_t bytes, uint8_t **ret);
/* A ws_space_release_fn; @mem is the struct ws_mem. */
void ws_mem_release(void *mem, uint8_t *host, uint64_t bytes);
/* Makes memory of a device, or memory that is mapped from a file (@private false), zero. Whole
 * pages are given back to the system, so what is large and was not touched costs nothing. */
void ws_mem_clear(uint8_t *p, uint64_t bytes, bool private);
uint64_t ws_mem_used_bytes(struct ws_mem *m);

#endif
