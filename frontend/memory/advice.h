// SPDX-License-Identifier: Apache-2.0
/* frontend/memory/advice.h - advice about managed memory, and prefetches of it. The host and the
 * devices share the pages of managed memory, so nothing is moved: what a program says is
 * remembered, and returned when it asks. Threads: any. All functions return a CUDA code. */
#ifndef WS_FRONTEND_MEMORY_ADVICE_H
#define WS_FRONTEND_MEMORY_ADVICE_H

#include "frontend/context/context.h"
#include "frontend/cuda_types.h"

/* Before CUDA 13 a location was a device's number, and -1 was the host. */
static inline struct cuda_mem_location ws_location_of_device(int device)
{
    return device == -1 ? (struct cuda_mem_location){WS_CUDA_LOCATION_HOST, 0}
                        : (struct cuda_mem_location){WS_CUDA_LOCATION_DEVICE, device};
}

/* INVALID_VALUE: the range is not inside managed memory, or a location makes no sense;
 * INVALID_DEVICE. */
int ws_advice_set(uint64_t address, uint64_t bytes, int advice, const struct cuda_mem_location *l);
int ws_advice_prefetch(uint64_t address, uint64_t bytes, const struct cuda_mem_location *l);
/* What is in the range counts no more: nothing to do, but to check. */
int ws_advice_discard(uint64_t address, uint64_t bytes);
int ws_advice_get(void *ret, size_t ret_bytes, int attribute, uint64_t address, uint64_t bytes);
/* The memory is freed. */
void ws_advice_forget(uint64_t address, uint64_t bytes);

/* Batches: @first[k] is the index of the first range that @l[k] is for. @n_locations 0, @l NULL:
 * discard only. */
struct ws_advice_batch {
    const uint64_t *addresses;
    const size_t *sizes;
    size_t n;
    const struct cuda_mem_location *l;
    const size_t *first;
    size_t n_locations;
    bool discard;
};
int ws_advice_batch(const struct ws_advice_batch *b, uint64_t stream);

#endif
