/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that go wrong, and the error that CUDA gives for each. The program passes if it gets
 * exactly that error. */
#ifndef WS_TESTS_CUDA_FAULT_H
#define WS_TESTS_CUDA_FAULT_H
#include "work.h"
#define WORK "fault"

static const struct fault {
    const char *name;
    int error;
} faults[] = {
    {"none", 0},         /* the same kernel without a fault */
    {"outside", 700},    /* cudaErrorIllegalAddress */
    {"misaligned", 716}, /* cudaErrorMisalignedAddress */
    {"trap", 719},       /* cudaErrorLaunchFailure */
    {"assert", 710},     /* cudaErrorAssert */
    {"endless", 702},    /* cudaErrorLaunchTimeout */
    {"null", 700},
    {"foreign", 700}, /* an address past the end of the allocation, by one element */
};
enum { N_FAULTS = sizeof(faults) / sizeof(faults[0]), FAULT_N = 1000 };

static inline int fault_find(const char *name)
{
    for (int i = 0; i < N_FAULTS; i++)
        if (!strcmp(faults[i].name, name))
            return i;
    fprintf(stderr, "fault: no fault '%s'\n", name);
    exit(2);
}
#endif
