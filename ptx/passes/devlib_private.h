/* SPDX-License-Identifier: Apache-2.0 */
/* ptx/passes/devlib_private.h - the functions of ptx/passes/devlib_text.c, as ptx/passes/devlib.c
 * calls them. Not for other rooms. */
#ifndef WS_PTX_PASSES_DEVLIB_PRIVATE_H
#define WS_PTX_PASSES_DEVLIB_PRIVATE_H

/* In the order of the text; each but TEXT to PUSH has three arguments more than what it stands for:
 * the address of struct ws_ptx_lib, the block, the thread. */
enum ws_lib_func {
    WS_LIB_F_TEXT,
    WS_LIB_F_CLAIM,
    WS_LIB_F_CLASS,
    WS_LIB_F_POP,
    WS_LIB_F_PUSH,
    WS_LIB_F_STOP, /* kind, va */
    WS_LIB_F_VPRINTF,
    WS_LIB_F_ASSERTFAIL,
    WS_LIB_F_MALLOC,
    WS_LIB_F_FREE,
    _WS_LIB_F_N
};
extern const char ws_devlib_text[];

#endif
