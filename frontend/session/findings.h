// SPDX-License-Identifier: Apache-2.0
/* frontend/session/findings.h - what `wattshare check` tells of this program: the daemon's
 * findings, with what only this process knows of its allocations, and leaks. Without
 * WATTSHARE_CHECK in the environment these functions do nothing. Threads: any. */
#ifndef WS_FRONTEND_SESSION_FINDINGS_H
#define WS_FRONTEND_SESSION_FINDINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool ws_findings_wanted(void);
/* The program has got memory of a device, and has given it back. */
void ws_findings_allocated(uint64_t address, uint64_t bytes);
void ws_findings_freed(uint64_t address);
/* All memory of devices has gone, by a reset. */
void ws_findings_reset(void);
/* Prints a finding of the daemon's (WS_OUTPUT_FINDING in device/mapping.h). */
void ws_findings_print(const char *text, size_t n);
/* The process ends: prints what was not freed. @lost: its memory was lost by an error before. */
void ws_findings_end(bool lost);

#endif
