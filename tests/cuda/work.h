/* SPDX-License-Identifier: Apache-2.0 */
/* What all workloads share: arguments, random numbers, the verdict. For C and C++. */
#ifndef WS_TESTS_CUDA_WORK_H
#define WS_TESTS_CUDA_WORK_H

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The i-th argument as a number in [1, max], or @otherwise where it isn't given. */
static inline long work_arg(int argc, char **argv, int i, long otherwise, long max)
{
    char *end;
    if (i >= argc)
        return otherwise;
    long v = strtol(argv[i], &end, 10);
    if (*end || end == argv[i] || v < 1 || v > max) {
        fprintf(stderr, "%s: argument %d is '%s', not a number from 1 to %ld\n", argv[0], i,
                argv[i], max);
        exit(2);
    }
    return v;
}

/* splitmix64: the state is a counter, so any element can be made without those before it. */
static inline uint64_t work_random(uint64_t index)
{
    uint64_t z = (index + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static inline void *work_alloc(size_t bytes)
{
    void *p = malloc(bytes ? bytes : 1);
    if (!p) {
        fprintf(stderr, "out of memory\n");
        exit(2);
    }
    return p;
}

static inline int work_pass(const char *name)
{
    printf("PASS %s\n", name);
    return 0;
}

static inline int work_fail(const char *name, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    printf("FAIL %s: ", name);
    vprintf(fmt, ap);
    putchar('\n');
    va_end(ap);
    fflush(stdout);
    return 1;
}

#endif
