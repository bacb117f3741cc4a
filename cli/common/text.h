// SPDX-License-Identifier: Apache-2.0
/* cli/common/text.h - writes sizes and names as people read them. Threads: any. */
#ifndef WS_CLI_COMMON_TEXT_H
#define WS_CLI_COMMON_TEXT_H

#include <stddef.h>
#include <stdint.h>

const char *ws_cli_bytes_text(uint64_t bytes, char buf[24]); /* "12.3 MiB" */
/* A copy of @text in @buf, cut to @size, in which control characters are replaced: a program's
 * name must not steer a terminal or break JSON. */
const char *ws_cli_clean(const char *text, char *buf, size_t size);
const char *ws_cli_base_name(const char *path); /* borrowed from @path */

#endif
