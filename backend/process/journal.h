// SPDX-License-Identifier: Apache-2.0
/* backend/process/journal.h - log lines as entries of systemd's journal, with fields. Threads:
 * any, once opened. */
#ifndef WS_BACKEND_PROCESS_JOURNAL_H
#define WS_BACKEND_PROCESS_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include "base/log.h"

#define WS_JOURNAL_SOCKET "/run/systemd/journal/socket"

/* Whether @fd goes to the journal: JOURNAL_STREAM names its device and inode. */
bool ws_journal_is(int fd);
/* From now on lines of the log go to the journal's socket at @path. Return: 0 or negative errno;
 * then they go where they went. */
WS_MUST_CHECK int ws_journal_open(const char *path);
void ws_journal_close(void);

/* The entry for a line, in the journal's native format. @size: of @buf. Return: bytes, 0: it
 * does not fit. */
size_t ws_journal_entry(enum ws_log_level level, const char *text, size_t n, char *buf,
                        size_t size);

#endif
