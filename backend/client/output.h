// SPDX-License-Identifier: Apache-2.0
/* backend/client/output.h - what a client's kernels have printed and the client has not fetched.
 * As CUDA's buffer it has a size, which cudaLimitPrintfFifoSize sets, and when it is full the
 * oldest records give way to new ones. CUDA keeps a record's arguments where we keep its text,
 * which may be longer; so that no program loses what CUDA would keep, WS_OUTPUT_ROOM bytes are
 * kept for each byte of the limit. They lie in small blocks: neither a kernel that prints nor the
 * client that fetches makes the other wait for more than a record. Threads: any. */
#ifndef WS_BACKEND_CLIENT_OUTPUT_H
#define WS_BACKEND_CLIENT_OUTPUT_H

#include <pthread.h>
#include "device/device.h"

enum {
    WS_OUTPUT_DEFAULT_BYTES = 1 << 20,
    WS_OUTPUT_MAX_BYTES = 64 << 20,
    WS_OUTPUT_ROOM = 4,
    WS_OUTPUT_HEAD_BYTES = 4 /* of a record: enum ws_output, length in 3 bytes */
};

struct ws_output_fifo {
    pthread_mutex_t lock;
    struct ws_output_block *oldest, *newest; /* NULL: nothing is held */
    struct ws_output_block *at_end;          /* where the newest byte is */
    size_t first, n, room; /* bytes: before the oldest one; held; free at the end */
    uint64_t limit_bytes, n_lost;
};

void ws_output_init(struct ws_output_fifo *f);
void ws_output_deinit(struct ws_output_fifo *f);
/* For ws_space_set_print(); @fifo: a struct ws_output_fifo. */
void ws_output_add(void *fifo, enum ws_output to, const char *text, size_t n);
/* Takes whole records, oldest first, as many as fit in @max; one that does not fit alone is cut.
 * Return: bytes written. */
size_t ws_output_take(struct ws_output_fifo *f, uint8_t *data, size_t max, uint64_t *ret_left,
                      uint64_t *ret_lost);
/* @bytes: up to WS_OUTPUT_MAX_BYTES; WS_OUTPUT_ROOM times as much may be held. What is there beyond
 * the new limit is lost. */
void ws_output_limit(struct ws_output_fifo *f, uint64_t bytes);
/* How many bytes may be held now. Not while the limit changes. */
uint64_t ws_output_most(const struct ws_output_fifo *f);

#endif
