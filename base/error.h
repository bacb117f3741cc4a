// SPDX-License-Identifier: Apache-2.0
/* base/error.h - two classes of int.
 *
 * 0 is done. A negative value (-ENOMEM, …) is fatal where it appears: forward it unchanged. A
 * positive value (WS_X_E_…) is an outcome named in the function's contract: the caller handles it
 * and never forwards it. The three helpers cost nothing on success; with WS_DEBUG=error they print
 * a trace line each. Threads: any. */
#ifndef WS_BASE_ERROR_H
#define WS_BASE_ERROR_H

#include <errno.h>
#include "base/macros.h"

#define ws_raise(r)   ws_error_trace("raise", (r), __FILE__, __LINE__)
#define ws_forward(r) ws_error_trace("forward", (r), __FILE__, __LINE__)
#define ws_fold(r)    ws_error_fold((r), __FILE__, __LINE__)

/* Traces a negative r and returns it unchanged. @what: "raise" or "forward". */
int ws_error_trace(const char *what, int r, const char *file, int line);

/* Turns a positive outcome that the caller did not expect into -ENOTRECOVERABLE; other values
 * pass. */
int ws_error_fold(int r, const char *file, int line);

#endif
