/* SPDX-License-Identifier: Apache-2.0 */
/* ptx/passes/devlib.h - printf, assert, trap, malloc and free of device code, done by functions of
 * our own in the module (ptx/passes/devlib.c), so that what they do is one client's: texts go to a
 * buffer of the launch, an assertion or a trap ends its thread, memory comes from the client's
 * heap. The functions are code like the program's: a fence that is put up afterwards stands before
 * their accesses, too.
 *
 * Source: CUDA C++ Programming Guide, "Formatted Output", "Assertion", "Trap function", "Dynamic
 * Global Memory Allocation and Operations"; PTX ABI of vprintf, malloc, free, __assertfail as nvcc
 * writes it. */
#ifndef WS_PTX_PASSES_DEVLIB_H
#define WS_PTX_PASSES_DEVLIB_H

#include "ptx/ptx.h"

/* What a kernel may come to. */
enum {
    WS_LIB_PRINTS = 1u << 0, /* vprintf */
    WS_LIB_STOPS = 1u << 1,  /* __assertfail, trap, brkpt */
    WS_LIB_HEAP = 1u << 2,   /* malloc, free */
};
/* Of kernel @func: an or of the above; 0 where it calls none of it. Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_ptx_lib_uses(const struct ws_ptx_module *m, uint32_t func, uint32_t *ret);
/* Why that can't be done by functions of ours: calls through a register to functions that need
 * them, parameters that leave no room.
 * Return: 0; WS_PTX_E_UNSUPPORTED with the reason in @ret_text; -ENOMEM. */
WS_MUST_CHECK int ws_ptx_lib_refused(const struct ws_ptx_module *m, uint32_t func, char *ret_text,
                                     size_t text_bytes);
/* Adds an entry, NAME$lib, that does. @func: an .entry for which ws_ptx_lib_refused() said 0. It
 * has one parameter more, at the end: a uint64_t, the address of struct ws_ptx_lib. Passes of
 * ptx/passes/pass.h come after this one.
 * Return: 0, or -ENOMEM with the module's other functions as they were. */
WS_MUST_CHECK int ws_ptx_lib(struct ws_ptx_module *m, uint32_t func, uint32_t *ret_func);

/* Marks kernels @funcs[@n] and the functions that they may come to. @io: [m->n_funcs]. Return: 0 or
 * -ENOMEM. */
WS_MUST_CHECK int ws_ptx_lib_reached(const struct ws_ptx_module *m, const uint32_t *funcs,
                                     uint32_t n, bool *io);

/* ---- what kernels and the host share ----
 *
 * There is one for each launch, in memory that the kernel may read and write. */

/* Of a record, and of what stopped a thread. */
enum ws_lib_kind {
    WS_LIB_TEXT = 1,
    WS_LIB_ASSERT,
    WS_LIB_TRAP,
    WS_LIB_FREE, /* of what malloc() did not give */
};
struct ws_ptx_lib {
    uint64_t stopped; /* 0, or the first thread that stopped: enum ws_lib_kind */
    uint64_t block;   /* its: x | y << 32 | z << 48 */
    uint64_t thread;  /* x | y << 10 | z << 20 */
    uint64_t va;      /* WS_LIB_FREE */
    uint64_t head;    /* bytes asked for so far; records lie in the first room_bytes of them */
    uint64_t room_bytes, room; /* of the records; its address */
    uint64_t heap, heap_bytes; /* address; 0: none */
    struct {
        uint64_t unused, taken; /* WS_LIB_HEAP_BOOK_OF(): from here on; how many */
    } book;                     /* the heap's first words, put here when the launch has ended */
    uint64_t reserved[5];
};
/* Followed by args[n_args], then format_bytes of the format (TEXT), then strings; all with their
 * NUL. An argument that is a string is its offset in the record, or 0 for NULL. ASSERT: args are
 * message, file, function. Nothing here is to be believed: a kernel can write to it what it likes.
 */
struct ws_lib_record {
    uint32_t bytes; /* of all, a multiple of 8; 0: the last one was before */
    uint32_t kind;
    uint64_t block;
    uint32_t thread, n_args, format_bytes;
    uint32_t line; /* ASSERT */
    uint64_t args[];
};
#define WS_LIB_HEAP_BOOK_OF(v) ((v)&UINT64_C(0xffffffffff)) /* without its era */
enum {
    WS_LIB_STRING_MAX = 1024,     /* of a format or a string, with its NUL; what is longer is cut */
    WS_LIB_HEAP_BOOK_BYTES = 1088 /* of the heap itself, at its beginning */
};
static inline void ws_lib_unpack(uint64_t block, uint32_t thread, uint32_t ret_block[3],
                                 uint32_t ret_thread[3])
{
    ret_block[0] = (uint32_t)block;
    ret_block[1] = (uint32_t)(block >> 32) & 0xffff;
    ret_block[2] = (uint32_t)(block >> 48);
    ret_thread[0] = thread & 0x3ff;
    ret_thread[1] = thread >> 10 & 0x3ff;
    ret_thread[2] = thread >> 20;
}

#endif
