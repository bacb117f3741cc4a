// SPDX-License-Identifier: Apache-2.0
/* base/heap.h - binary heaps: an array whose first element comes before all others. The elements
 * are the caller's, of any type; the code is made for each type, so that comparing costs no call.
 *
 *   WS_HEAP(release_heap, struct release, const void *, sooner)
 *
 * defines, for the order that `bool sooner(arg, const struct release *a, const struct release *b)`
 * states,
 *
 *   release_heap_make(arg, v, n)     orders the n elements of v;
 *   release_heap_sift(arg, v, n, i)  restores the order after v[i] was replaced by an element that
 *                                    comes later (v[0] = v[--n] takes the first out).
 *
 * Which of two equal elements comes first is not said. Threads: as the caller's. */
#ifndef WS_BASE_HEAP_H
#define WS_BASE_HEAP_H

#include <stdbool.h>

#define WS_HEAP(name, type, arg_type, before)                                                      \
    static void name##_sift(arg_type arg, type *v, int n, int i)                                   \
    {                                                                                              \
        for (;;) {                                                                                 \
            int least = i, l = 2 * i + 1;                                                          \
            if (l < n && before(arg, &v[l], &v[least]))                                            \
                least = l;                                                                         \
            if (l + 1 < n && before(arg, &v[l + 1], &v[least]))                                    \
                least = l + 1;                                                                     \
            if (least == i)                                                                        \
                return;                                                                            \
            type t = v[i];                                                                         \
            v[i] = v[least];                                                                       \
            v[least] = t;                                                                          \
            i = least;                                                                             \
        }                                                                                          \
    }                                                                                              \
    static void name##_make(arg_type arg, type *v, int n)                                          \
    {                                                                                              \
        for (int i = n / 2 - 1; i >= 0; i--)                                                       \
            name##_sift(arg, v, n, i);                                                             \
    }

#endif
