// SPDX-License-Identifier: Apache-2.0
/* The text is the one that `scontrol show job -d` prints after GRES=. It comes from slurmctld. What
 * stands in the job's environment (SLURM_SHARDS_ON_NODE) is not used: where Slurm has nothing to
 * say, the user's own value stays there. */
#include "slurm/spank/gres.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GPUS_MAX = 32 };

/* "0-1,3" up to ')'. Adds to the mask. Return: false: it is no such list. */
static bool read_list(const char *p, unsigned long *mask)
{
    while (*p != ')') {
        char *end;
        if (!isdigit((unsigned char)*p))
            return false;
        unsigned long a = strtoul(p, &end, 10), b = a;
        if (*end == '-')
            b = strtoul(end + 1, &end, 10);
        if (a > b || b >= GPUS_MAX)
            return false;
        for (; a <= b; a++)
            *mask |= 1ul << a;
        p = end + (*end == ',');
    }
    return true;
}

/* One entry, "NAME[:TYPE]:COUNT(IDX:LIST)". Return: false: it cannot be read. */
static bool read_entry(const char *p, size_t n, struct ws_gres *g, unsigned long *mask)
{
    char entry[160];
    if (n >= sizeof(entry))
        return false;
    memcpy(entry, p, n);
    entry[n] = 0;
    bool shard = !strncmp(entry, "shard:", strlen("shard:")),
         gpu = !strncmp(entry, "gpu:", strlen("gpu:"));
    if (!shard && !gpu)
        return true; /* not ours */
    char *idx = strstr(entry, "(IDX:");
    if (!idx || !read_list(idx + strlen("(IDX:"), mask))
        return false;
    *idx = 0;
    const char *count = strrchr(entry, ':');
    if (shard)
        g->shards += (unsigned)strtoul(count + 1, NULL, 10);
    g->whole |= gpu;
    return true;
}

bool ws_gres_read(const char *text, struct ws_gres *ret)
{
    unsigned long mask = 0;
    *ret = (struct ws_gres){0};
    for (const char *p = text, *end; *p; p = end + (*end == ',')) {
        int depth = 0;
        for (end = p; *end && (depth || *end != ','); end++)
            depth += (*end == '(') - (*end == ')');
        if (!read_entry(p, (size_t)(end - p), ret, &mask))
            return false;
    }
    if (ret->shards)
        ret->whole = false;
    for (unsigned i = 0, n = 0; i < GPUS_MAX; i++)
        if (mask >> i & 1)
            n += (unsigned)snprintf(ret->gpus + n, sizeof(ret->gpus) - n, n ? ",%u" : "%u", i);
    return true;
}
