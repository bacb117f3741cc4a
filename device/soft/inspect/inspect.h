/* SPDX-License-Identifier: Apache-2.0 */
/* device/soft/inspect/inspect.h - `wattshare check`: the interpreter's side of it.
 *
 * What kernels do wrong is told to their client as text (WS_OUTPUT_FINDING), once for each place in
 * the code. There is one struct ws_inspect in a process; software GPUs that inspect share it,
 * because they may use each other's memory. Without it nothing here is called, and micro-ops are as
 * the decoder made them.
 * Threads: any. */
#ifndef WS_DEVICE_SOFT_INSPECT_INSPECT_H
#define WS_DEVICE_SOFT_INSPECT_INSPECT_H

#include <stdint.h>
#include "base/macros.h"
#include "device/device.h"

struct ws_blockrun;
struct ws_core_ctx;
struct ws_inspect;
struct ws_inspect_launch;
struct ws_uop;

/* The process's, with a reference. @tools: mask of enum ws_inspect_tool; the first caller's count.
 * Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_inspect_join(struct ws_inspect **ret, uint32_t tools);
void ws_inspect_leave(struct ws_inspect *s); /* NULL ok */
bool ws_inspect_has(const struct ws_inspect *s, enum ws_inspect_tool tool);

/* ---- what the device tells, where it inspects ---- */

/* Device memory at @host that is a client's from now on, and that was never written; it goes back;
 * somebody else than a kernel writes some of it. */
void ws_inspect_memory_new(uint8_t *host, uint64_t bytes);
void ws_inspect_memory_free(uint8_t *host);
void ws_inspect_memory_written(const uint8_t *host, uint64_t bytes);
/* A kernel gets the memory from its malloc(): what was done there before has nothing to do with
 * what is done from now on. */
void ws_inspect_races_forget(const uint8_t *host, uint64_t bytes);

/* A launch, for races in global memory between its warps. @ret: NULL where these are not looked
 * for. Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_inspect_launch_new(struct ws_inspect_launch **ret, const struct ws_inspect *s,
                                        uint64_t n_blocks);
void ws_inspect_launch_free(struct ws_inspect_launch *l); /* NULL ok */

/* ---- what the interpreter tells ---- */

/* What is known of the shared memory of the blocks that @b will be. Return: 0 or -ENOMEM;
 * ws_inspect_block_free() in either case. */
WS_MUST_CHECK int ws_inspect_block_new(struct ws_blockrun *b);
void ws_inspect_block_free(struct ws_blockrun *b);
/* These only where b->inspect is set. A block starts; a warp comes to a barrier, and another passes
 * it when it opens; a barrier has opened for all and is ready to be used again; a warp ends. */
void ws_inspect_block_start(struct ws_blockrun *b);
void ws_inspect_arrive(struct ws_blockrun *b, uint32_t warp, uint32_t bar);
void ws_inspect_pass(struct ws_blockrun *b, uint32_t warp, uint32_t bar);
void ws_inspect_open(struct ws_blockrun *b, uint32_t bar);
void ws_inspect_exit(struct ws_blockrun *b, uint32_t warp);

/* A lane's fault (see ws_exec_fault()). @what: as there; NULL: nothing more to say. */
void ws_inspect_fault(struct ws_core_ctx *c, const struct ws_uop *u, enum ws_dev_error e,
                      unsigned lane, uint64_t va, const char *what);

#endif
