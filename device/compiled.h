/* SPDX-License-Identifier: Apache-2.0 */
/* device/compiled.h - the machine code that software GPUs of this process make of kernels
 * (doc/jit.md). Threads: any. */
#ifndef WS_DEVICE_COMPILED_H
#define WS_DEVICE_COMPILED_H

#include <stdint.h>

#include "base/macros.h"

/* From now on machine code is kept in @folder, and what is found there is not compiled again. The
 * files take at most @max_bytes. NULL: none are kept, as at first. Return: 0; -EPERM: the folder is
 * not this user's alone; what open() says. Then nothing is kept. */
WS_MUST_CHECK int ws_compiled_keep_in(const char *folder, uint64_t max_bytes);

/* Why a kernel stays in the interpreter. */
enum ws_compiled_not {
    WS_NOT_OPERATION, /* it has operations for which there is no code */
    WS_NOT_SIZE,      /* compiling it would take too long */
    WS_NOT_ROOM,      /* its module may not hold so much code, or there is no memory */
    WS_NOT_COMPILER,  /* LLVM's library is not installed, or has failed */
    WS_NOT_FASTER,    /* its blocks took less time when they were interpreted */
    _WS_COMPILED_NOT
};
struct ws_compiled_counts {
    /* Kernels that have run, of the modules in memory, each counted for each shape of its blocks:
     * not for long yet; will be compiled now or soon; are compiled; are not. */
    uint64_t n_cold, n_waiting, n_compiled, n_not[_WS_COMPILED_NOT];
    /* Ever: how many were compiled, and found in the folder; files there that were damaged. */
    uint64_t n_made, n_found, n_damaged;
};
struct ws_compiled_counts ws_compiled_counts(void);

/* For who is about to end the process with @status: if a kernel is being compiled, it ends here,
 * without any clean-up, since the library's own must not come while it compiles. */
void ws_compiled_end(int status);

#endif
