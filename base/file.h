/* SPDX-License-Identifier: Apache-2.0 */
/* base/file.h - text files that somebody else has written: configuration, keys, the GPU catalog.
 * What stands under a file's name may be anything: a directory, a pipe that nobody writes to, a
 * device, a file without end, or one that somebody changes at the moment. Threads: any. */
#ifndef WS_BASE_FILE_H
#define WS_BASE_FILE_H

#include <stdio.h>
#include <sys/stat.h>

#include "base/macros.h"

enum { WS_FILE_TEXT_BYTES = 1 << 20 }; /* more than any text that people write */

/* Reads the whole file, which must be a regular one (or /dev/null) of at most @max bytes, and gives
 * a stream of what was read. Reading from the stream cannot fail, and what happens to the file
 * afterwards does not show in it. Never blocks for a pipe or a device. @ret: the caller ends it
 * with fclose(); it has no descriptor. @ret_stat: the file's, or NULL.
 * Return: 0; -EISDIR, -ENOTSUP (no regular file), -EFBIG (more than @max bytes), -EILSEQ (a byte of
 * zero, so it is no text), or what else open() or read() say. */
WS_MUST_CHECK int ws_file_open(FILE **ret, const char *path, size_t max, struct stat *ret_stat);

/* What such an error means, after "cannot be read: ". */
const char *ws_file_why(int error);

#endif
