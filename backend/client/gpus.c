// SPDX-License-Identifier: Apache-2.0
/* Which GPU a client sees under which number. The daemon has an order (the emptiest first if
 * placement is "spread"). CUDA_VISIBLE_DEVICES picks from it as the CUDA documentation says: by
 * index, by "GPU-" and the beginning of a UUID and, here, also by the catalog's name. An index is
 * the daemon's number of the GPU, whatever the order: who starts one program with 0 and another
 * with 1 wants two GPUs. Of several GPUs of one name the first in the order is meant. The first
 * entry that names nothing, or a GPU that was named before, ends the list. */
#include "backend/backend.h"
#include "backend/client/gpus.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static uint32_t emptiest(const struct ws_server *s)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < s->n_visible; i++)
        if (s->gpus[i].n_home < s->gpus[best].n_home)
            best = i;
    return best;
}

static uint32_t daemon_order(const struct ws_server *s, bool fixed, uint32_t order[WS_MAX_DEVICES])
{
    bool spread = !fixed && s->config->placement == WS_PLACE_SPREAD;
    uint32_t n = 0, first = spread ? emptiest(s) : 0;
    if (s->n_visible)
        order[n++] = first;
    for (uint32_t i = 0; i < s->n_visible; i++)
        if (i != first)
            order[n++] = i;
    return n;
}

static void uuid_text(const uint8_t uuid[16], char out[37])
{
    char *p = out;
    for (int i = 0; i < 16; i++)
        p += sprintf(p, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
}

/* The GPU of @all that @word names and that is not yet in @taken; -1: none. */
static int named(const struct ws_server *s, const char *word, const uint32_t *all, uint32_t n,
                 uint64_t taken)
{
    char *end;
    if (isdigit((unsigned char)word[0])) {
        unsigned long i = strtoul(word, &end, 10);
        return !*end && i < n && !(taken >> i & 1) ? (int)i : -1;
    }
    for (uint32_t i = 0; i < n; i++) {
        const struct ws_gpu *g = &s->gpus[all[i]];
        char uuid[37];
        uuid_text(g->uuid, uuid);
        if (taken >> all[i] & 1)
            continue;
        if (!strcasecmp(word, g->device->spec.name))
            return (int)all[i];
        if (!strncasecmp(word, "GPU-", 4) && word[4] &&
            !strncasecmp(word + 4, uuid, strlen(word + 4)))
            return (int)all[i];
    }
    return -1;
}

uint32_t ws_gpus_order(const struct ws_server *s, const Ws__Hello *h, bool fixed,
                       uint32_t order[WS_MAX_DEVICES])
{
    uint32_t all[WS_MAX_DEVICES], n_all = daemon_order(s, fixed, all), n = 0;
    if (!h->has_visible_devices) {
        memcpy(order, all, n_all * sizeof(*all));
        return n_all;
    }
    uint64_t taken = 0;
    for (const char *p = h->visible_devices; *p;) {
        char word[64];
        size_t len = strcspn(p, ",");
        const char *a = p, *b = p + len;
        while (a < b && isspace((unsigned char)*a))
            a++;
        while (a < b && isspace((unsigned char)b[-1]))
            b--;
        snprintf(word, sizeof(word), "%.*s", (int)WS_MIN(b - a, 63), a);
        int i = word[0] ? named(s, word, all, n_all, taken) : -1;
        if (i < 0)
            break;
        taken |= UINT64_C(1) << i;
        order[n++] = (uint32_t)i;
        p += len + (p[len] == ',');
    }
    return n;
}
