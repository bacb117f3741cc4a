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

#endif
