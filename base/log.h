// SPDX-License-Identifier: Apache-2.0
/* base/log.h - one line per event, module first, then key=value, lower case, no newline:
 *     ws_log(WS_WARN, "server: client dropped client=%u reason=%s", id, why);
 * Lines go to one descriptor (2 by default; never stdout). WS_DEBUG=ptx,error in the environment
 * selects debug modules; WS_DEBUG=all selects every one. Threads: any; each line is a single
 * write(). */
#ifndef WS_BASE_LOG_H
#define WS_BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>
#include "base/macros.h"

enum ws_log_level { WS_ERROR, WS_WARN, WS_INFO, WS_DEBUG };

void ws_log(enum ws_log_level level, const char *fmt, ...) WS_PRINTF(2, 3);

/* Lines above this level are dropped. Default: WS_INFO. Debug lines pass where ws_debug_on()
 * selected them. */
void ws_log_set_level(enum ws_log_level level);

/* At most @per_s lines of one kind (of the same format) are written a second, after the first
 * WS_LOG_BURST; what is left out is counted, and the next line says how many there were. So whoever
 * can cause a line cannot fill a disk. 0, as at first: no limit. Debug lines have none. */
enum { WS_LOG_BURST = 2000 };
void ws_log_set_limit(uint32_t per_s);

/* @fd: borrowed, must stay open; @prefix: copied, at most 31 bytes, stands before each line. */
void ws_log_set_output(int fd, const char *prefix);

/* @tap: gets each line that is written, without prefix, level and newline; @text: borrowed. NULL:
 *       nobody. Any thread. */
void ws_log_set_tap(void (*tap)(enum ws_log_level level, const char *text, size_t n));

/* @writer: gets each line before it is written, as the tap does; true: it has taken the line. NULL:
 *          none. Any thread. */
void ws_log_set_writer(bool (*writer)(enum ws_log_level level, const char *text, size_t n));

/* True if WS_DEBUG names @module. The environment is read once. */
bool ws_debug_on(const char *module);

#endif
