// SPDX-License-Identifier: Apache-2.0
/* tests/device/cubin_make.h - writes small cubins with names, sizes and attributes. They contain no
 * code that a GPU could run. Nothing of wattshare is used for writing, so that the reader in
 * ptx/images/cubin.c is compared with something independent. */
#ifndef WS_TESTS_DEVICE_CUBIN_MAKE_H
#define WS_TESTS_DEVICE_CUBIN_MAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cubin_make_kernel {
    const char *name;
    uint32_t n_params;
    uint32_t sizes[8], offsets[8];
    uint32_t param_bytes, n_regs, shared_bytes, frame_bytes, max_threads;
    bool v2; /* parameters described the newer way */
};
struct cubin_make_var {
    const char *name;
    uint32_t bytes;
    const void *init; /* NULL: zeros */
    bool constant, managed;
};
struct cubin_make {
    uint32_t sm;
    bool abi7;
    uint16_t type; /* 0: an executable */
    uint32_t n_kernels, n_vars;
    struct cubin_make_kernel kernels[8];
    struct cubin_make_var vars[8];
    const char *call; /* left to the driver; or NULL */
};
/* malloc'ed. */
uint8_t *cubin_make(const struct cubin_make *c, size_t *ret_bytes);

/* One with a kernel and variables that the next text stands for:
 * step(p, n): p[i] += add * table[i & 3] for i < n, and calls += 1 in each block's first thread. */
extern const struct cubin_make cubin_make_step;
extern const char cubin_make_step_ptx[];

#endif
