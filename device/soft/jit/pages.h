/* SPDX-License-Identifier: Apache-2.0 */
/* device/soft/jit/pages.h - the memory that a kernel's code lies in. Private to the room.
 *
 * Threads: one at a time for each ws_jit_pages. */
#ifndef WS_DEVICE_SOFT_JIT_PAGES_H
#define WS_DEVICE_SOFT_JIT_PAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/macros.h"

struct ws_jit_pages {
    uint8_t *code, *data; /* whole pages each; data: NULL if there is none */
    uint64_t code_bytes, data_bytes;
    int fd; /* until they are finished; else -1 */
};

/* Memory of zeros that can be written to. NULL: there is none that could be executed later. */
struct ws_jit_pages *ws_jit_pages_new(uint64_t code_bytes, uint64_t data_bytes);
/* From now on the code can be executed and the data read, and nothing can write to either. Return:
 * false: the system does not allow it. */
WS_MUST_CHECK bool ws_jit_pages_finish(struct ws_jit_pages *p);
/* NULL ok; returns NULL. */
struct ws_jit_pages *ws_jit_pages_free(struct ws_jit_pages *p);

#endif
