// SPDX-License-Identifier: Apache-2.0
/* frontend/session/freeze.h - stops every other thread that writes to some pages while the contents
 * of the pages move. */
#ifndef WS_FRONTEND_SESSION_FREEZE_H
#define WS_FRONTEND_SESSION_FREEZE_H

#include <stdint.h>

/* From here until ws_thaw() no write to [@from, @to), whole pages, gets through: a thread that
 * tries waits, and writes what it wanted to whatever is mapped there then. The caller must neither
 * write there meanwhile nor wait for another thread (malloc() may do both). A system call of
 * another thread that writes there waits too, or, where this process may not hold up the kernel,
 * fails with EFAULT. Return: a handle, or negative errno (an older kernel, a forbidden call, pages
 * of a file). */
int ws_freeze(uint64_t from, uint64_t to);
void ws_thaw(int freeze);

#endif
