// SPDX-License-Identifier: Apache-2.0
/* cli/common/demangle.h - names of kernels as they were written. Threads: any. */
#ifndef WS_CLI_COMMON_DEMANGLE_H
#define WS_CLI_COMMON_DEMANGLE_H

#include <stddef.h>

/* "_Z6matmulPf" becomes "matmul(float*)" in @buf, cut to @size and cleaned of control characters. A
 * name that is no C++ name stays as it is. Returns @buf. */
const char *ws_demangle(const char *name, char *buf, size_t size);

#endif
