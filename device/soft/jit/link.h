/* SPDX-License-Identifier: Apache-2.0 */
/* device/soft/jit/link.h - puts the object file that LLVM makes of a kernel where it can run.
 * Private to the room.
 *
 * The code has no address of this process in it, so that it can be kept on disk: it names what it
 * needs. Micro-op and segment 7 of the image are the symbols u7 and s7; functions have the names in
 * the table of link.c. Nothing else can be named. Threads: any. */
#ifndef WS_DEVICE_SOFT_JIT_LINK_H
#define WS_DEVICE_SOFT_JIT_LINK_H

#include <stddef.h>
#include <stdint.h>

#include "base/macros.h"
#include "device/soft/jit/pages.h"

struct ws_isa;
struct ws_seg;
struct ws_uop;

/* What the names stand for; uops and segs are not read. */
struct ws_jit_names {
    const struct ws_isa *isa;
    const struct ws_uop *uops;
    const struct ws_seg *segs;
    uint32_t n_uops, n_segs; /* the place behind the last micro-op has a name, too */
};

/* The name of a function that compiled code calls; NULL: it has none. */
const char *ws_jit_name_of(const struct ws_isa *isa, void (*f)(void));

enum { _WS_JIT_LINK_OK, WS_JIT_LINK_E_OBJECT };
/* @object: of @bytes, may be damaged. @ret_run: its function "run". @why: [@room], of an object
 * that cannot be used. Return: 0; WS_JIT_LINK_E_OBJECT; -ENOMEM. */
WS_MUST_CHECK int ws_jit_link(struct ws_jit_pages **ret, uint8_t **ret_run, const void *object,
                              size_t bytes, const struct ws_jit_names *names, char *why,
                              size_t room);

#endif
