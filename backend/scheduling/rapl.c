// SPDX-License-Identifier: Apache-2.0
#include "backend/scheduling/rapl.h"

#include <inttypes.h>
#include <stdio.h>

static bool number(const char *root, unsigned package, const char *file, uint64_t *ret)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/intel-rapl:%u/%s", root, package, file);
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    bool ok = fscanf(f, "%" SCNu64, ret) == 1;
    fclose(f);
    return ok;
}

bool ws_rapl_read(struct ws_rapl *ret, const char *root)
{
    ret->n = 0;
    root = root ? root : "/sys/class/powercap";
    while (ret->n < WS_RAPL_PACKAGES_MAX && number(root, ret->n, "energy_uj", &ret->uj[ret->n]) &&
           number(root, ret->n, "max_energy_range_uj", &ret->range_uj[ret->n]))
        ret->n++;
    return ret->n > 0;
}

uint64_t ws_rapl_used_uj(const struct ws_rapl *before, const struct ws_rapl *after)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < before->n && i < after->n; i++)
        sum += after->uj[i] >= before->uj[i] ? after->uj[i] - before->uj[i]
                                             : after->uj[i] + (before->range_uj[i] - before->uj[i]);
    return sum;
}
