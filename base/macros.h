// SPDX-License-Identifier: Apache-2.0
/* base/macros.h - small macros used everywhere. */
#ifndef WS_BASE_MACROS_H
#define WS_BASE_MACROS_H

#include <stddef.h>
#include <stdint.h>

#define WS_MUST_CHECK        __attribute__((warn_unused_result))
#define WS_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define WS_EXPORT            __attribute__((visibility("default")))
#define WS_CLEANUP(fn)       __attribute__((cleanup(fn)))
#define WS_LIKELY(x)         __builtin_expect(!!(x), 1)
#define WS_UNLIKELY(x)       __builtin_expect(!!(x), 0)

#define WS_ARRAY_SIZE(a)                   (sizeof(a) / sizeof((a)[0]))
#define WS_CONTAINER_OF(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))
#define WS_MIN(a, b)                       ((a) < (b) ? (a) : (b))
#define WS_MAX(a, b)                       ((a) > (b) ? (a) : (b))

/* Rounds x up to a multiple of a, a power of two. Overflow is the caller's to exclude. */
#define WS_ALIGN_UP(x, a) (((x) + ((a)-1)) & ~((__typeof__(x))(a)-1))

/* Defines WS_CLEANUP's helper for a destructor `type *fn(type *)`: a function fn##p(type **). */
#define WS_DEFINE_CLEANUP(type, fn)                                                                \
    static inline void fn##p(type *p)                                                              \
    {                                                                                              \
        if (*p)                                                                                    \
            fn(*p);                                                                                \
    }

#define WS_NS_PER_US UINT64_C(1000)
#define WS_NS_PER_MS UINT64_C(1000000)
#define WS_NS_PER_S  UINT64_C(1000000000)

#endif
