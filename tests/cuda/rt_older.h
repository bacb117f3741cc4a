/* SPDX-License-Identifier: Apache-2.0 */
/* tests/cuda/rt_older.h - what rt11.c and rt12.c share, programs as older toolkits built them. Who
 * includes it defines PROGRAM, its name in messages. */
#ifndef WS_TESTS_CUDA_RT_OLDER_H
#define WS_TESTS_CUDA_RT_OLDER_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NO(code)                                                                                   \
    do {                                                                                           \
        int c_ = (code);                                                                           \
        if (c_) {                                                                                  \
            printf("FAIL " PROGRAM ": line %d: %s is %d\n", __LINE__, #code, c_);                  \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
#define IS(a, b)                                                                                   \
    do {                                                                                           \
        long long a_ = (long long)(a), b_ = (long long)(b);                                        \
        if (a_ != b_) {                                                                            \
            printf("FAIL " PROGRAM ": line %d: %s is %lld, not %lld\n", __LINE__, #a, a_, b_);     \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* What lies behind a structure that a later toolkit has made larger is neither read nor written. */
#define GUARDED(structure)                                                                         \
    struct {                                                                                       \
        structure s;                                                                               \
        unsigned char behind[320];                                                                 \
    }
#define GUARD(g) memset((g).behind, 0xa5, sizeof((g).behind))
#define WHOLE(g)                                                                                   \
    for (size_t i_ = 0; i_ < sizeof((g).behind); i_++)                                             \
    IS((g).behind[i_], 0xa5)

#endif
