// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "base/log.h"

int ws_error_trace(const char *what, int r, const char *file, int line)
{
    if (WS_UNLIKELY(r < 0) && ws_debug_on("error"))
        ws_log(WS_DEBUG, "error: %s r=%d at=%s:%d", what, r, file, line);
    return r;
}

int ws_error_fold(int r, const char *file, int line)
{
    return ws_error_trace("fold", r > 0 ? -ENOTRECOVERABLE : r, file, line);
}
