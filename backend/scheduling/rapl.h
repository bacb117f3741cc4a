// SPDX-License-Identifier: Apache-2.0
/* backend/scheduling/rapl.h - energy of the host's processor packages, as the kernel's powercap
 * interface counts it (Linux Documentation/power/powercap). Threads: any. */
#ifndef WS_BACKEND_SCHEDULING_RAPL_H
#define WS_BACKEND_SCHEDULING_RAPL_H

#include <stdbool.h>
#include <stdint.h>

enum { WS_RAPL_PACKAGES_MAX = 8 };
struct ws_rapl {
    unsigned n; /* packages */
    uint64_t uj[WS_RAPL_PACKAGES_MAX], range_uj[WS_RAPL_PACKAGES_MAX];
};
/* Reads the counters below @root (NULL: /sys/class/powercap). Return: false: there are none, or
 * they may not be read. */
bool ws_rapl_read(struct ws_rapl *ret, const char *root);
/* What was used from @before to @after, over all packages; counters wrap at their range. */
uint64_t ws_rapl_used_uj(const struct ws_rapl *before, const struct ws_rapl *after);

#endif
