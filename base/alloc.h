// SPDX-License-Identifier: Apache-2.0
/* base/alloc.h - zeroed, overflow-checked allocation. NULL means out of memory; the caller returns
 * -ENOMEM. Freed with free(). All of it fails once the thread's budget (base/budget.h) is used up;
 * only the growth of ws_grow() counts there, until the budget ends. In test builds
 * ws_alloc_fail_after(n) makes the n-th allocation from now fail. Threads: any. */
#ifndef WS_BASE_ALLOC_H
#define WS_BASE_ALLOC_H

#include <stdint.h>
#include <stdlib.h>
#include "base/macros.h"

WS_MUST_CHECK void *ws_alloc(size_t size);
WS_MUST_CHECK void *ws_alloc_array(size_t n, size_t size);
/* Grows *p (n elements of size) to hold at least want elements, doubling; new elements are zeroed.
 * @n_cap: in/out capacity in elements. Return: 0 or -ENOMEM with nothing changed. */
WS_MUST_CHECK int ws_grow(void **p, size_t *n_cap, size_t want, size_t size);
/* The same for bytes: new ones are not zeroed, and there are not many more than are wanted. */
WS_MUST_CHECK int ws_grow_bytes(uint8_t **p, size_t *n_cap, size_t want);
WS_MUST_CHECK char *ws_strdup(const char *s);

/* The n-th allocation from now (1 = next) fails, once; 0 turns it off. For tests. */
void ws_alloc_fail_after(uint64_t n);

static inline void ws_freep(void *p)
{
    free(*(void **)p);
}

#endif
