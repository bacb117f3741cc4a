// SPDX-License-Identifier: Apache-2.0
/* frontend/memory/copy.h - copies and fills of boxes in pitched linear memory. Threads: any. */
#ifndef WS_FRONTEND_MEMORY_COPY_H
#define WS_FRONTEND_MEMORY_COPY_H

#include <stdbool.h>
#include "frontend/session/session.h"

/* Rules as ws_session_copy(). The sides' pitch and slice are checked (INVALID_VALUE). */
ws_err ws_copy_box(uint64_t stream, const struct ws_copy_side *dst, const struct ws_copy_side *src,
                   const struct ws_copy_box *box, enum ws_copy_dir dir, bool async);
ws_err ws_fill_box(uint64_t stream, const struct ws_copy_side *dst, uint32_t value,
                   uint32_t value_bytes, const struct ws_copy_box *box, bool async);

#endif
