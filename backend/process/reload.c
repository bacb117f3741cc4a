// SPDX-License-Identifier: Apache-2.0
/* Each key's row in config_keys.def says whether a reload may change it. A key that may not keeps
 * its value until the next start, because sockets, devices or threads were made from it; the log
 * names it if the file has another value now. Sections `task` and `user` and the list of allowed
 * keys change as a whole. A client keeps the limits and the task that it was told when it
 * connected, since it relies on them. */
#include "backend/process/reload.h"

#include <stdio.h>
#include <string.h>

#include "backend/process/config_key.h"
#include "base/macros.h"

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

/* Exchanges the values of the keys of a section that may change; adds the others that differ to
 * @later. */
static void apply(enum ws_config_section section, void *live, void *fresh, struct names *later)
{
    size_t n;
    const struct ws_config_key *keys = ws_config_keys(&n);
    for (size_t i = 0; i < n; i++) {
        if (keys[i].section != section)
            continue;
        if (keys[i].reload == WS_CONFIG_NEXT_START)
            add(later, keys[i].name, !ws_config_key_same(&keys[i], live, fresh));
        else
            ws_config_key_swap(&keys[i], live, fresh);
    }
}

bool ws_reload_apply(struct ws_config *live, struct ws_config *fresh, char *ret_later, size_t size)
{
    struct names later = {ret_later, 0, size};
    const struct ws_config_key *policy = ws_config_key_find(WS_CONFIG_TOP, "policy"),
                               *options = ws_config_key_find(WS_CONFIG_TOP, "policy_options"),
                               *key = ws_config_key_find(WS_CONFIG_TOP, "curve_key");
    bool other_policy =
        !ws_config_key_same(policy, live, fresh) || !ws_config_key_same(options, live, fresh);
    ret_later[0] = 0;
    apply(WS_CONFIG_TOP, live, fresh, &later);
    apply(WS_CONFIG_LIMITS, &live->limits, &fresh->limits, &later);
    /* The file may be the same and have another key in it. */
    add(&later, key->name,
        ws_config_key_same(key, live, fresh) &&
            memcmp(&live->curve, &fresh->curve, sizeof(live->curve)) != 0);
    struct ws_access access = live->access;
    live->access = fresh->access;
    fresh->access = access;
    live->has_admin_group = fresh->has_admin_group;
    live->admin_gid = fresh->admin_gid;
    struct ws_task_rules tasks = live->tasks;
    live->tasks = fresh->tasks;
    fresh->tasks = tasks;
    return other_policy;
}
