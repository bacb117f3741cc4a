/* SPDX-License-Identifier: Apache-2.0 */
/* device/soft/jit/pages.h - the memory that LLVM writes a kernel's code to. Private to the room.
 *
 * Threads: one at a time for each ws_jit_pages. */
#ifndef WS_DEVICE_SOFT_JIT_PAGES_H
#define WS_DEVICE_SOFT_JIT_PAGES_H

#include <stdbool.h>

#include "base/macros.h"
#include "device/soft/jit/llvm.h"

struct ws_jit_pages;

/* Makes a memory manager for LLVM's MCJIT (LLVMCreateSimpleMCJITMemoryManager). An engine that is
 * given it owns the manager, and writes to the pages until it ends; they stay, with the code. LLVM
 * must be open.
 * @ret_manager: for llvm_mcjit_options. Return: the pages, or NULL: no memory. */
struct ws_jit_pages *ws_jit_pages_new(void **ret_manager);
/* Whether all that LLVM wrote may be read and its code be executed: false until the engine has
 * finished, and after it if the system did not allow it. */
bool ws_jit_pages_are_ready(const struct ws_jit_pages *p);
/* Their memory, in bytes. */
uint64_t ws_jit_pages_bytes(const struct ws_jit_pages *p);
/* The engine has ended. NULL ok; returns NULL. */
struct ws_jit_pages *ws_jit_pages_free(struct ws_jit_pages *p);

#endif
