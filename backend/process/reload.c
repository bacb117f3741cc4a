// SPDX-License-Identifier: Apache-2.0
/* What changes at once: the policy, tasks (of clients yet to come), who may come in and how much he gets, limits of clients yet to come (a client keeps those it was told
 * when it came, since it relies on them), where new clients go, and what the log says. What sockets, devices and threads were
 * made from stays as it is until the next start, and the log names it. A new key of the configuration belongs into `later`
 * unless ws_reload_apply() copies it. */
#include "backend/process/reload.h"

#include <stdio.h>
#include <string.h>

#include "base/macros.h"

#define FIELD(name, field)                                                                         \
    {                                                                                              \
        name, offsetof(struct ws_config, field), sizeof((struct ws_config *)0)->field              \
    }
static const struct {
    const char *name;
    size_t offset, bytes;
} later[] = {
    FIELD("socket_mode", socket_mode),
    FIELD("clock", clock),
    FIELD("workers", n_workers),
    FIELD("rewrite", rewrite),
    FIELD("isolation", unfenced),
    FIELD("gpu_worker", gpu_worker),
    FIELD("cancel_timeout_s", cancel_timeout_s),
    FIELD("heartbeat_s", heartbeat_s),
    FIELD("max_kernel_insns", max_kernel_insns),
    FIELD("loaders", n_loaders),
    FIELD("learn", learn),
    FIELD("energy_log_ms", energy_log_ms),
    FIELD("max_message_bytes", limits.max_message_bytes),
    FIELD("max_image_bytes", limits.max_image_bytes),
    FIELD("cache_bytes", limits.cache_bytes),
};

struct names {
    char *buf;
    size_t n, size;
};

static void add(struct names *l, const char *name, bool differs)
{
    if (!differs || l->n >= l->size)
        return;
    int n = snprintf(l->buf + l->n, l->size - l->n, "%s%s", l->n ? ", " : "", name);
    l->n += n > 0 ? (size_t)n : 0;
}

static bool texts_differ(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) != 0 : a != b;
}

static bool lists_differ(char *const *a, char *const *b)
{
    for (; *a && *b; a++, b++)
        if (strcmp(*a, *b))
            return true;
    return *a || *b;
}

/* Exchanges the lists. */
static void swap_lists(char **a, char **b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char *t = a[i];
        a[i] = b[i];
        b[i] = t;
    }
}

bool ws_reload_apply(struct ws_config *live, struct ws_config *fresh, char *ret_later, size_t size)
{
    struct names l = {ret_later, 0, size};
    struct ws_limits kept = live->limits;
    struct ws_access old = live->access;
    ret_later[0] = 0;
    for (size_t i = 0; i < WS_ARRAY_SIZE(later); i++)
        add(&l, later[i].name,
            memcmp((char *)live + later[i].offset, (char *)fresh + later[i].offset,
                   later[i].bytes) != 0);
    add(&l, "energy_log", texts_differ(live->energy_log, fresh->energy_log));
    add(&l, "endpoints", lists_differ(live->endpoints, fresh->endpoints));
    add(&l, "gpus", lists_differ(live->gpus, fresh->gpus));
    add(&l, "catalog", lists_differ(live->catalog, fresh->catalog));
    add(&l, "socket_group", texts_differ(live->socket_group, fresh->socket_group));
    add(&l, "profiles", texts_differ(live->profiles, fresh->profiles));
    add(&l, "clock_helper", texts_differ(live->clock_helper, fresh->clock_helper));
    add(&l, "metrics", texts_differ(live->metrics, fresh->metrics));
    add(&l, "curve_key", memcmp(&live->curve, &fresh->curve, sizeof live->curve) != 0);
    live->limits = fresh->limits;
    live->limits.max_message_bytes = kept.max_message_bytes;
    live->limits.max_image_bytes = kept.max_image_bytes;
    live->limits.cache_bytes = kept.cache_bytes;
    live->log_level = fresh->log_level;
    live->placement = fresh->placement;
    live->drain_timeout_s = fresh->drain_timeout_s;
    live->gate_lease_ms = fresh->gate_lease_ms;
    live->access = fresh->access;
    fresh->access = old;
    struct ws_task_rules tasks = live->tasks; /* clients have copies of theirs */
    live->tasks = fresh->tasks;
    fresh->tasks = tasks;
    bool other = texts_differ(live->policy, fresh->policy) ||
                 lists_differ(live->policy_options, fresh->policy_options);
    swap_lists(&live->policy, &fresh->policy, 1);
    swap_lists(live->policy_options, fresh->policy_options, WS_CONFIG_MAX_LIST + 1);
    return other;
}
