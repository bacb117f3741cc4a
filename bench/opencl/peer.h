/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of kernels.cl by an OpenCL driver that computes on one core of the CPU: what
 * people run kernels with who have no GPU. libOpenCL is opened at run time, and need not be
 * there. */
#ifndef WS_BENCH_INTERP_CL_H
#define WS_BENCH_INTERP_CL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Makes everything ready. @buffers: memory of @bytes each that kernels may be given. Return: NULL,
 * or why there is nothing to compare with; static text. */
const char *cl_open(void *const *buffers, size_t n_buffers, size_t bytes);
/* Whether there is such a kernel. @params: its parameters, as CUDA lays them out. What is made
 * ready is of this kernel until the next call. */
bool cl_prepare(const char *name, const void *params, const uint32_t grid[2],
                const uint32_t block[2]);
/* Runs it once, to the end. Return: false: it can't. */
bool cl_launch(void);

#endif
