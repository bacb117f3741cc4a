/* SPDX-License-Identifier: Apache-2.0 */
/* A workload of the live experiments: its data and its kinds (work.c). */
#ifndef WS_BENCH_LIVE_WORK_H
#define WS_BENCH_LIVE_WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct live_data {
    uint64_t seed;
    uint32_t blocks, length, start; /* start: of steps, another each job */
    void *in, *out, *want;
    size_t in_bytes, out_bytes;
    const char *constant_name; /* a variable of the module, or NULL */
    const void *constant;
    size_t constant_bytes;
};
struct live_kind {
    const char *name, *kernel;
    uint32_t threads, blocks, length; /* by default */
    size_t in_bytes, out_bytes;       /* of a block; out 0: in place. in 0: the ring */
    bool clear_out;                   /* the kernel adds to what is there */
    void (*make)(struct live_data *w);
    void (*cpu)(const struct live_data *w, uint32_t block); /* into want */
    bool (*same)(const struct live_data *w);                /* NULL: bit for bit */
    void (*place)(struct live_data *w, uint64_t address);
};
extern const struct live_kind live_kinds[]; /* ends with a NULL name */
#endif
