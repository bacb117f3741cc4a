// SPDX-License-Identifier: Apache-2.0
/* What the machine has for the daemon, from which the pools follow that the configuration leaves
 * open. The parts leave the daemon something for itself: the numbers of descriptors and mappings
 * are hard limits of the process, which must never be met. The pools of memory are parts of what
 * the daemon may have (MemoryMax= of its unit); together they leave an eighth of it. */
#include "backend/accounts/account.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/macros.h"

enum { OWN_DESCRIPTORS = 64, OBJECT_BYTES = 512 };
#define FEW_DESCRIPTORS UINT64_C(1024)

/* Sixteenths of the memory; 14 in all. */
static const uint8_t part_of_memory[_WS_RESOURCE_N] = {
    [WS_RESOURCE_HOST_BYTES] = 4,   [WS_RESOURCE_QUEUED_BYTES] = 1,  [WS_RESOURCE_OBJECTS] = 1,
    [WS_RESOURCE_MODULE_BYTES] = 3, [WS_RESOURCE_COMPILE_BYTES] = 3, [WS_RESOURCE_BLOCK_BYTES] = 2,
};

/* The number that the file begins with; @otherwise: there is none. */
static uint64_t number_in(const char *path, uint64_t otherwise)
{
    char text[64];
    FILE *f = fopen(path, "re");
    uint64_t v = otherwise;
    if (f && fgets(text, sizeof(text), f) && text[0] >= '0' && text[0] <= '9')
        v = strtoull(text, NULL, 10);
    if (f)
        fclose(f);
    return v;
}

/* The smallest memory.max from the control group of this process upwards. */
static uint64_t cgroup_bytes(void)
{
    char line[4096], path[4200];
    uint64_t least = UINT64_MAX;
    FILE *f = fopen("/proc/self/cgroup", "re");
    bool found = false;
    while (f && !found && fgets(line, sizeof(line), f))
        found = !strncmp(line, "0::/", 4);
    if (f)
        fclose(f);
    if (!found)
        return least;
    char *group = line + strlen("0::");
    group[strcspn(group, "\n")] = 0;
    for (char *slash; (slash = strrchr(group, '/')); *slash = 0) {
        snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.max", group);
        least = WS_MIN(least, number_in(path, UINT64_MAX));
    }
    return least;
}

/* Looked up once: each pool asks, and it takes some reading of files. */
uint64_t ws_accounts_system_memory(void)
{
    static _Atomic uint64_t known;
    if (!known) {
        long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
        uint64_t all = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : UINT64_C(1) << 30;
        known = WS_MIN(all, cgroup_bytes());
    }
    return known;
}

static uint64_t descriptors(void)
{
    struct rlimit files;
    uint64_t n = getrlimit(RLIMIT_NOFILE, &files) ? FEW_DESCRIPTORS : files.rlim_cur;
    n = WS_MIN(n, UINT64_C(1) << 30);
    return n > 2 * OWN_DESCRIPTORS ? n - OWN_DESCRIPTORS : n / 2;
}

uint64_t ws_accounts_system_pool(enum ws_resource r)
{
    uint64_t part = ws_accounts_system_memory() / 16 * part_of_memory[r];
    switch (r) {
    case WS_RESOURCE_CONNECTIONS:
    case WS_RESOURCE_DESCRIPTORS:
        return descriptors() / 2;
    case WS_RESOURCE_MAPPINGS:
        return number_in("/proc/sys/vm/max_map_count", 65530) / 4 * 3;
    case WS_RESOURCE_OBJECTS:
        return part / OBJECT_BYTES;
    case WS_RESOURCE_HOST_BYTES:
    case WS_RESOURCE_QUEUED_BYTES:
    case WS_RESOURCE_MODULE_BYTES:
    case WS_RESOURCE_COMPILE_BYTES:
    case WS_RESOURCE_BLOCK_BYTES:
        return part;
    default:
        return WS_ACCOUNT_UNLIMITED;
    }
}
